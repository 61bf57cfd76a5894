"""The runtime: lowering graphs to plans, running them on NumPy, compiled models and their files."""

from irc.runtime.kernels.registry import kernel
from irc.runtime.kernels.support import check_size
from irc.runtime.memory.growable import GrowableArray

__all__ = ["GrowableArray", "check_size", "kernel"]
