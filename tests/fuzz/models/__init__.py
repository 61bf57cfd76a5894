"""Mutated models: irc refuses them, or computes what they say, within its limits."""
