"""Which memory of a run is alive: of arrays, until NumPy frees them, and of strings and containers."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from threading import RLock
from typing import Any

from irc.ops.sizes import STRING_BYTES, object_bytes
from irc.runtime.array_memory import is_alone
from irc.runtime.values import Array, arrays_once, containers, owner


class ArrayBytes:
    """The bytes of the arrays that a run has made and that something still refers to.

    A view counts as the array whose memory it shows, and each array counts once. Read-only arrays are the model's or
    the caller's and do not count. Several threads may report to one object.

    Args:
        others: values whose memory is not the run's either.

    Attributes:
        now: bytes alive.
        arrays: how many have been counted so far, those that are gone too; each was an allocation.
    """

    def __init__(self, others: Iterable[Any] = ()) -> None:
        self.now = self.arrays = 0
        # By identity of the array that owns the memory: what it is counted as.
        self._known: dict[int, tuple[weakref.ref[Array], int]] = {}
        self._lock = RLock()  # an array may die, and say so, at any time: inside of these methods too
        self.disown(others)

    def count(self, values: Iterable[Any]) -> int:
        """Count the memory of ``values``, contents of lists included; the bytes not counted before."""
        made = 0
        for array in arrays_once(values):
            root = owner(array)
            if array.flags.writeable and id(root) not in self._known:
                made += self._enter(root, root.nbytes + text_bytes(root))
                self.arrays += 1
        return made

    def disown(self, values: Iterable[Any]) -> None:
        """Never count the memory of ``values``, and no longer if it has been counted: it is not the run's."""
        for array in arrays_once(values):
            root = owner(array)
            with self._lock:
                # The weak reference goes at once: it must not tell that the array is gone.
                self.now -= self._known.pop(id(root), (None, 0))[1]
            self._enter(root, 0)

    def _enter(self, root: Array, size: int) -> int:
        key = id(root)

        def gone(_: Any) -> None:
            with self._lock:
                del self._known[key]
                self.now -= size

        with self._lock:
            if key in self._known:
                return 0
            self._known[key] = weakref.ref(root, gone), size
            self.now += size
        return size


def text_bytes(array: Array) -> int:
    """The bytes of the strings in ``array``; 0 for any other element type."""
    if not array.dtype.hasobject:
        return 0
    return sum(STRING_BYTES + len(s) for s in array.reshape(-1) if isinstance(s, str))


class ObjectBytes:
    """The bytes of a run's strings, lists, tuples and dictionaries that are still referenced.

    They are held here, so that none is counted twice, and released when room is needed. Until then, those that nothing
    else refers to count too, as they are in memory.

    Args:
        others: those of the caller, which do not count.

    Attributes:
        now: bytes held.
    """

    def __init__(self, others: Iterable[Any] = ()) -> None:
        self._others = list(others)  # a reference more, so that they are not let go of
        self._held: dict[int, Any] = {}
        self._sizes: dict[int, int] = {}
        self.now = 0
        self.count(self._others)
        self.now = 0

    def count(self, values: Iterable[Any]) -> None:
        """Count ``values`` and what they hold; known objects are counted again at their present size."""
        given = list(values)
        for container, items in containers(given):
            if container is not given:
                self.resize(container)
            for text in items:
                if isinstance(text, str):
                    self.resize(text)

    def resize(self, value: Any) -> None:
        """Count a string or container, but not what it holds, by its present size."""
        key, size = id(value), object_bytes(value)
        self.now += size - self._sizes.get(key, 0)
        self._held[key], self._sizes[key] = value, size

    def let_go(self) -> None:
        """Release all that nothing else refers to."""
        # Again and again: what a list held may be alone once the list is gone.
        while gone := [key for key in self._held if is_alone(self._held, key)]:
            for key in gone:
                del self._held[key]
                self.now -= self._sizes.pop(key)
