"""The runtime: lowering graphs to plans, running them on NumPy, compiled models and their files."""

from irc.runtime.memory.growable import GrowableArray

__all__ = ["GrowableArray"]
