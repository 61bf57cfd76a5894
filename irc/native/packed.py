"""Weights that never change, laid out once for the loops that read them, and kept as long as they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from weakref import ref

from irc.ir.tensor import Array
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.support import is_constant

MOST_BYTES = 1 << 30
"""Of all that is kept in a process."""


class Packed:
    """What has been made of constants: by their identities, and what it was made for."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[list[ref[Array]], tuple[Array, ...] | None]] = {}

    def __len__(self) -> int:
        return len(self._kept)

    def of(
        self,
        constants: tuple[Array | None, ...],
        purpose: Hashable,
        size: Callable[[], int],
        make: Callable[[], tuple[Array, ...] | None],
    ) -> tuple[Array, ...] | None:
        """The cached result of ``make`` for ``constants`` and this ``purpose``, of at most ``size()`` bytes.

        None if they may change, or there is no room.
        """
        given = [x for x in constants if x is not None]
        key = tuple(map(id, constants)), purpose
        kept = self._kept.get(key)
        if kept is not None and all(known() is x for known, x in zip(kept[0], given, strict=True)):
            return kept[1]
        if not all(map(is_constant, given)) or not self._admits(size()):
            return None
        made = make()

        def drop(_: object) -> None:
            self._kept.pop(key, None)

        self._kept[key] = [ref(x, drop) for x in given], made
        return made

    def _admits(self, size: int) -> bool:
        """Whether there is room for ``size`` more bytes: asked before they are made, again in each run."""
        guard = CURRENT.scope.guard
        kept = sum([x.nbytes for _, arrays in [*self._kept.values()] for x in arrays or ()])
        return kept + size <= MOST_BYTES and (guard is None or guard.keeps(size))


PACKED = Packed()
"""Those of this process."""
