"""Reading files that others name: regular ones only."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

# Opening a pipe would wait for a writer, were it not for O_NONBLOCK; Windows has no pipes in folders, but O_BINARY.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """``path``, opened to be read or mapped.

    Raises:
        OSError: it cannot be opened, or is a folder, a pipe or a device: those have no size, and may never end.
        ValueError: no file can have that name.
    """
    descriptor = os.open(path, _FLAGS)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(f"this is a {'folder' if stat.S_ISDIR(mode) else 'pipe or device'}, not a regular file")
        return open(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
