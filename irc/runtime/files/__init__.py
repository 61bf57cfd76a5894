"""``.irc`` files."""
