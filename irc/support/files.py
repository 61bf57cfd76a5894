"""Files: written whole or not at all, and read only if they are regular ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from irc.errors import Error, cannot

_NO_WAITING: int = getattr(os, "O_NONBLOCK", 0)
"""Opening a pipe would wait for a writer; Windows has no pipes in folders."""


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Generator[BinaryIO]:
    """A new file that replaces ``path`` if the block ends well, and is removed if it does not.

    Links are followed, and the new file gets the permissions of the old one. Devices and pipes are written directly,
    as there is nothing to replace.

    Raises:
        Error: IRC501 if the file cannot be written.
    """
    where = os.fsdecode(path)
    given, target = Path(where), Path(real_path(where))
    try:
        if given.is_dir():
            raise Error("IRC501", "this is a folder, not a file to write", where)
        if given.exists() and not given.is_file():
            with open(given, "wb") as device:
                yield device
            return
        with _beside(target) as file:
            yield file
    except OSError as error:
        raise cannot("IRC501", "write the file", error, where) from error


def spare_sources(
    sources: Collection[str], written: Iterable[str], why: str = "the model is read from this file"
) -> None:
    """Refuse to write files over those that a model is read from.

    Args:
        sources: real paths, as ``Module.sources`` has them.
        written: where to write; links are followed.
        why: what is said of such a file.

    Raises:
        Error: IRC503 if one of ``written`` is one of ``sources``.
    """
    for path in written:
        if real_path(path) in sources:
            raise Error("IRC503", f"{why}: give the output another name", path)


def real_path(path: str) -> str:
    """The path that writing to ``path`` changes, links followed; IRC501 if no file can have the name."""
    if "\0" in path:
        raise Error("IRC501", "the name of a file cannot contain a null character", path)
    try:
        return os.path.realpath(path)
    except (OSError, ValueError) as error:  # the latter for half of a surrogate pair
        raise cannot("IRC501", "write the file", error, path) from None


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


@contextmanager
def _beside(target: Path) -> Generator[BinaryIO]:
    temporary = target.with_name(f".irc-{os.urandom(6).hex()}")  # short: the target's name may be as long as can be
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else None
    # At no time may more people read it than the file that it replaces.
    first = 0o666 if mode is None else 0o600  # new files are the umask's to restrict
    try:
        with open(temporary, "xb", opener=lambda path, flags: os.open(path, flags, first)) as file:
            yield file
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
