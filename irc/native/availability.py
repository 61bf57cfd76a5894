"""Whether there is native code in this process, and if not, why.

Nothing here imports llvmlite before something is to be compiled.
"""

from __future__ import annotations

import gc
import platform
import sys
import warnings
from functools import cache
from importlib.util import find_spec
from threading import Lock

from irc.ir.graph import gc_paused

_LOCK = Lock()


@cache
def unavailable() -> str:
    """Why this machine has no native code, as far as that shows without llvmlite; "" if it may have."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "AMD64"):
        return f"native code is for Linux on x86-64, not for {sys.platform} on {platform.machine()}"
    if sys.implementation.name != "cpython" or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return "native code is for CPython with its global lock"
    if find_spec("llvmlite") is None:
        return "llvmlite is not installed: pip install 'irc[native]'"
    return ""


@cache
def unusable() -> str:
    """Why nothing may be compiled in this process; empty if it may.

    The first call imports llvmlite and tests what it compiles. If that fails, a RuntimeWarning says so, once.
    """
    # Threads may come here at once, so that the first one keeps the others waiting: kernels ask too often for a lock.
    with _LOCK, gc_paused():
        return _unusable()


@cache
def _unusable() -> str:
    reason = unavailable()
    if reason:
        return reason
    try:
        from irc.native.selftest import failure

        reason = failure()
    except Exception as error:  # whatever another version of llvmlite, or another machine, makes of it
        reason = f"the self-test ends with {type(error).__name__}: {error}"
    if not gc.get_freeze_count():
        # What has been imported and compiled stays. By way of the permanent generation it becomes old without being
        # looked at: two collections of a large model would take as long as all else in its first run.
        gc.freeze()
        gc.unfreeze()
    if reason:
        warnings.warn(f"no native code is used: {reason}. NumPy computes everything.", RuntimeWarning, stacklevel=3)
    return reason
