"""Fusion groups, and how they run block by block."""
