"""Fusion: what may fuse, how groups merge, and the pass that does it."""

from irc.fuser.fuse import Fuse
from irc.fuser.policy import Policy

__all__ = ["Fuse", "Policy"]
