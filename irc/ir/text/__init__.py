"""The text form: lexer, parsers by what they read, printer."""
