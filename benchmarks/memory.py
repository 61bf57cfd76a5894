"""The highest memory a step of this process has used."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")


class Watch:
    """Resident bytes above those when the watch was made.

    Linux can forget the highest value so far (``clear_refs``), so that each
    step has its own; elsewhere it is the highest since the process began.
    """

    def __init__(self) -> None:
        self._base = _resident()

    def reset(self) -> None:
        """A step begins."""
        if _CLEAR.exists():
            _CLEAR.write_text("5")

    def highest(self) -> int:
        """The highest since ``reset``."""
        return max(0, _highest() - self._base)


def _resident() -> int:
    return _status("VmRSS") if _STATUS.exists() else _highest()


def _highest() -> int:
    if _STATUS.exists():
        return _status("VmHWM")
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1024


def _status(key: str) -> int:
    (line,) = (line for line in _STATUS.read_text().splitlines() if line.startswith(key + ":"))
    return int(line.split()[1]) * 1024
