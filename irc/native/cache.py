"""Object code, kept from process to process in the user's own folder.

What is in there is executed, so it is read only from a folder that belongs to the user and that nobody else may write
to or read (mode 0700); otherwise nothing is kept. An entry's name is a hash of all that it depends on: the text that is
compiled, LLVM's version, the processor. It holds a hash of itself: one that is damaged counts as absent. Entries are
written under another name first, so that nobody ever reads half of one. The oldest go when the folder has more than
`MOST_BYTES`.
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
            content = (self.folder / name).read_bytes()
        except OSError:
            return None
        code = content[_DIGEST:]
        return code if hashlib.sha256(code).digest() == content[:_DIGEST] else None

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
                    file.write(hashlib.sha256(code).digest() + code)
                os.replace(path, self.folder / name)
            except BaseException:
                with suppress(OSError):
                    os.unlink(path)
                raise

    def _trim(self) -> None:
        """Remove the oldest entries until they have half of `MOST_BYTES`, if they have more than that."""
        assert self.folder is not None
        entries = sorted((entry.stat().st_mtime, entry.stat().st_size, entry) for entry in self.folder.iterdir())
        size = sum(bytes_ for _, bytes_, _ in entries)
        if size <= MOST_BYTES:
            return
        for _, bytes_, entry in entries:
            if size <= MOST_BYTES // 2:
                break
            entry.unlink()
            size -= bytes_


def default_folder() -> Path | None:
    """Where the user's entries are: None if nothing is to be kept."""
    given = os.environ.get(FOLDER)
    if given is not None:
        return Path(given) / "native" if given else None
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "irc" / "native" if os.path.isabs(base) else None


def _is_private(folder: Path) -> bool:
    """Whether ``folder`` is the user's alone; it is made if it is not there."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
