"""The runtime: lowering graphs to plans, running them on NumPy, compiled models and their files."""

from irc.runtime.growable import GrowableArray
from irc.runtime.kernels.registry import kernel
from irc.runtime.kernels.support import check_size

__all__ = ["GrowableArray", "check_size", "kernel"]
