"""Weights that never change, laid out once for the loops that read them, and kept as long as they are."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from weakref import ref

import numpy as np

from irc.ir.tensor import Array
from irc.ops.algebra import AnyDType
from irc.runtime.array_memory import address_of, aligned, aligned_bytes
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


class Pieces:
    """Memory for packed weights, in pieces that the operating system gives in large pages.

    Most weights are smaller than such a page, and a processor that streams them goes through small pages a fifth
    slower. A piece is freed when the last array in it is gone: large arrays have pieces of their own.
    """

    def __init__(self) -> None:
        self._rests: list[Array] = []  # of pieces; who takes one out has it: nobody waits, nor does a signal handler

    def array(self, shape: Sequence[int], dtype: AnyDType) -> Array:
        """A new array, with any contents.

        Raises:
            Error: IRC403 if there is not so much memory.
        """
        size = math.prod(shape) * dtype.itemsize
        if size > _PIECE // 2:
            return _piece(size)[:size].view(dtype).reshape(shape)
        try:
            rest = self._rests.pop()
        except IndexError:
            rest = _NOTHING
        if len(rest) < size:
            rest = _piece(_PIECE)
        self._rests.append(rest[aligned(size) :])
        return rest[:size].view(dtype).reshape(shape)

    def copy(self, array: Array) -> Array:
        """``array`` in C order."""
        made = self.array(array.shape, array.dtype)
        made[...] = array
        return made


_PAGE, _PIECE = 1 << 21, 1 << 22
"""Bytes of a large page; of a piece, for which NumPy asks for such."""

_NOTHING = np.empty(0, np.uint8)


def _piece(size: int) -> Array:
    whole = aligned_bytes(max(size, _PIECE) + _PAGE)
    return whole[-address_of(whole) % _PAGE :]


PIECES = Pieces()
"""Those of this process."""
