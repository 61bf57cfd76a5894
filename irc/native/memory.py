"""Memory for large results, used again when nothing shows it any more.

Fresh memory costs a page fault for each 4 KiB, which takes as long as many kernels take to fill it. So a result of
`LEAST` bytes or more lies in a *block*, which goes back to a pool when the last array over it is gone.

Invariants:

- An array over a block has the block's `_Loan` at the end of its chain of bases, so that a loan lives exactly as
  long as something shows its memory.
- The pool keeps at most `MOST` bytes; what is more is freed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.runtime.array_memory import aligned_bytes
from irc.runtime.kernels.support import check_size

LEAST = 1 << 18
MOST = 64 << 20


class _Block(NamedTuple):
    """Bytes, and NumPy's description of them, which takes longer to make than to keep."""

    memory: Array
    interface: dict[str, Any]


class _Pool:
    """Blocks that nothing shows, by their size."""

    def __init__(self) -> None:
        self._blocks: dict[int, list[_Block]] = {}
        self._bytes = 0

    def take(self, size: int) -> _Block:
        try:
            block = self._blocks[size].pop()
        except LookupError:
            memory = aligned_bytes(size)  # stores that span two cache lines take 10 % more of a cheap loop
            return _Block(memory, memory.__array_interface__)
        self._bytes -= size
        return block

    def give(self, block: _Block) -> None:
        size = block.memory.nbytes
        if self._bytes + size <= MOST:
            self._bytes += size
            self._blocks.setdefault(size, []).append(block)


_POOL = _Pool()


class _Loan:
    """A block while arrays show it."""

    __slots__ = ("__array_interface__", "_block")

    def __init__(self, size: int) -> None:
        self._block = _POOL.take(size)
        self.__array_interface__ = self._block.interface

    def __del__(self) -> None:
        _POOL.give(self._block)


def new_array(shape: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """An array with any contents, in C order; Error if it would be too large for the run, or absurdly so."""
    check_size(shape, dtype)
    size = dtype.itemsize * math.prod(shape)
    if size < LEAST:
        return np.empty(shape, dtype)
    return np.ndarray(shape, dtype, np.asarray(_Loan(size)))
