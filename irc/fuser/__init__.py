"""Fusion: what may fuse, how groups merge, and the pass that does it."""

from irc.fuser.fuse import Fuse

__all__ = ["Fuse"]
