"""What every layer may use: files, text for people, deferred imports, plugins, remarks of passes."""
