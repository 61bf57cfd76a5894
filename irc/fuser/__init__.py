"""Fusion: what may fuse, how groups merge, and the pass that does it."""

from irc.fuser.fuse import Cluster, Fuse
from irc.fuser.policy import Policy, operators

__all__ = ["Cluster", "Fuse", "Policy", "operators"]
