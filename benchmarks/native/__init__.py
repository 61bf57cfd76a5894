"""Derivation, accuracy and speed of the native backend's parts."""
