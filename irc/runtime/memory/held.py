"""Which strings and containers of a run are alive. Unlike NumPy for arrays, Python does not report their end."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

from irc.ir.ops.made_bytes import object_bytes
from irc.runtime.memory.references import is_alone


class HeldBytes:
    """The bytes of the strings, lists, tuples and dictionaries of a run that something else still refers to.

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
        pending, seen = [values], set[int]()
        while pending:
            for value in pending.pop():
                if not isinstance(value, (str, list, tuple, dict)):
                    continue
                found: Any = cast("Any", value)
                self.resize(found)
                if not isinstance(found, str) and id(found) not in seen:
                    seen.add(id(found))
                    pending.append(cast("dict[Any, Any]", found).values() if isinstance(found, dict) else found)

    def resize(self, value: Any) -> None:
        """Count a string or container, but not what it holds, by its present size."""
        key, size = id(value), object_bytes(value)
        self.now += size - self._sizes.get(key, 0)
        self._held[key], self._sizes[key] = value, size

    def let_go(self) -> None:
        """Release all that nothing else refers to."""
        while gone := [key for key in self._held if is_alone(self._held, key)]:
            for key in gone:
                del self._held[key]
                self.now -= self._sizes.pop(key)
