"""Reading files that others name: regular ones only."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

_NO_WAITING: int = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe would wait for a writer; Windows has no pipes in folders."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """``path``, opened to be read or mapped.

    Raises:
        OSError: it cannot be opened, or is a pipe or a device: those have no size, and may never end.
        ValueError: no file can have that name.
    """
    file = open(path, "rb", opener=lambda name, flags: os.open(name, flags | _NO_WAITING))  # noqa: SIM115
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError("this is a pipe or a device, not a regular file")
