"""Object code, kept from process to process in the user's own folder.

What is in there is executed, so it is read only from a folder that belongs to the user and that nobody else may write
to or read (mode 0700); otherwise nothing is kept. An entry's name is a hash of all that it depends on: the text that is
compiled, LLVM's version, the processor. It holds a hash of its name and of itself: one that is damaged, or another's,
counts as absent, as do links and files that others may touch. Entries are written under another name first, so that
nobody ever reads half of one. The oldest go when the folder has more than `MOST_BYTES`.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

FOLDER = "IRC_CACHE_DIR"
"""The environment variable that says where; if it is set, but empty, nothing is kept."""

MOST_BYTES = 64 << 20
_DIGEST = hashlib.sha256().digest_size


class ObjectCache:
    """The entries of a folder.

    Args:
        folder: it is made if it is not there; None: nothing is kept.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder if folder is not None and _is_private(folder) else None
        self._is_trimmed = False

    def read(self, name: str) -> bytes | None:
        """The entry called ``name``; None if there is none that is whole."""
        if self.folder is None:
            return None
        try:
            descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                content = file.read() if _is_own(os.fstat(descriptor), stat.S_IFREG) else b""
        except OSError:
            return None
        code = content[_DIGEST:]
        return code if _digest(name, code) == content[:_DIGEST] else None

    def write(self, name: str, code: bytes) -> None:
        """Keep ``code`` as ``name``. What the disk refuses is not kept."""
        if self.folder is None:
            return
        with suppress(OSError):
            if not self._is_trimmed:
                self._is_trimmed = True
                self._trim()
            descriptor, path = tempfile.mkstemp(prefix=".", dir=self.folder)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(_digest(name, code) + code)
                os.replace(path, self.folder / name)
            except BaseException:
                with suppress(OSError):
                    os.unlink(path)
                raise

    def _trim(self) -> None:
        """Remove the oldest entries until they have half of `MOST_BYTES`, if they have more than that."""
        assert self.folder is not None
        entries: list[tuple[float, int, Path]] = []
        for entry in self.folder.iterdir():
            with suppress(FileNotFoundError):  # another process trims, too
                found = entry.lstat()
                entries.append((found.st_mtime, found.st_size, entry))
        size = sum(bytes_ for _, bytes_, _ in entries)
        if size <= MOST_BYTES:
            return
        for _, bytes_, entry in sorted(entries):
            if size <= MOST_BYTES // 2:
                break
            entry.unlink(missing_ok=True)
            size -= bytes_


def default_folder() -> Path | None:
    """Where the user's entries are: None if nothing is to be kept."""
    given = os.environ.get(FOLDER)
    if given is not None:
        return Path(given) / "native" if given else None
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.expanduser("~/.cache")
    return Path(base) / "irc" / "native" if os.path.isabs(base) else None


def _is_private(folder: Path) -> bool:
    """Whether ``folder`` is the user's alone; it is made if it is not there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return False
    return _is_own(found, stat.S_IFDIR)


def _is_own(found: os.stat_result, kind: int) -> bool:
    """Whether what ``found`` tells of is of that kind, and the user's alone."""
    mode = found.st_mode
    return stat.S_IFMT(mode) == kind and found.st_uid == os.getuid() and not stat.S_IMODE(mode) & 0o077


def _digest(name: str, code: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\0" + code).digest()
