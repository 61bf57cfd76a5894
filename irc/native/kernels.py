"""The parts of kernels: calls of native code, on one or several threads, and memory for results.

Fresh memory costs a page fault for each 4 KiB, which takes as long as many kernels take to fill it. So a result of
`LEAST` bytes or more lies in a *block*, which goes back to a pool when the last array over it is gone.

Invariants:

- An array over a block has the block's `_BlockOwner` at the end of its chain of bases, so the block returns to the pool
  exactly when the last array over its memory dies.
- The pool keeps at most `MOST` bytes; further blocks are freed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.ir.tensor import Array
from irc.native.calls import Expected, call_of
from irc.native.jit import Code, Make, process_jit
from irc.runtime.array_memory import ALIGNMENT, aligned_bytes
from irc.runtime.bounds import CURRENT, pace
from irc.runtime.kernels.support import check_size, scratch

PIECE = 100_000
"""Nanoseconds of work, by estimate, between looks at the clock, and at least in each piece that threads share."""

SHARED = 200_000
"""Nanoseconds of work, by estimate, from which on threads share it.

A thread that has slept for 25 ms takes 0.05 ms to wake. On virtual machines Linux often wakes it on the processor
that already has the work, which takes 0.1 ms more than one thread alone.
"""

RELEASED = 10_000
"""Nanoseconds of work from which on other Python threads may run meanwhile."""

SMALL_SCRATCH = 1 << 20
"""Bytes of scratch that no limit need be asked for."""

BYTE = np.dtype(np.uint8)


class Call(NamedTuple):
    """A call for arrays that lie in one way.

    Attributes:
        call: of the arrays, and maybe a range (`irc.native.calls`).
        code: is held by this.
        layout: what the code was made for.
        size: of the range.
        nanoseconds: of work, by estimate.
        pieces: into which it is cut.
        scratch: bytes that each piece needs for itself.
        work: bytes of work memory that each thread keeps, which the code gets behind the arrays.
    """

    call: Callable[..., bool]
    code: Code
    layout: Sequence[int]
    size: int
    nanoseconds: float
    pieces: int
    scratch: int = 0
    work: int = 0

    @property
    def is_simple(self) -> bool:
        """Whether nothing but `call` is to be done, without limits asked for."""
        return self.pieces == 1 and self.scratch <= SMALL_SCRATCH and not self.work

    @staticmethod
    def of(
        code: Code,
        arrays: Sequence[Expected | None],
        layout: Sequence[int],
        size: int,
        work: float,
        scratch: int = 0,
    ) -> Call:
        """A call of a loop function, over a range of ``size``, which takes ``work`` nanoseconds by estimate."""
        call = call_of(code.address, arrays, layout, size, releases=work > RELEASED, scratch=scratch)
        return Call(call, code, layout, size, work, 1, scratch).of_work(work)

    @staticmethod
    def of_loops(
        name: str,
        key: str,
        make: Make,
        arrays: int,
        layout: Sequence[int],
        size: int,
        work: float,
        memory: int = 0,
    ) -> Call:
        """A call of the loop function ``name`` in the module with this key, on arrays checked by the caller.

        The last of these are so many bytes of work ``memory``, if it needs any, which `run` adds.
        """
        call = Call.of(process_jit().load(name, key, make), [None] * arrays, layout, size, work)
        return call._replace(work=memory)

    def of_work(self, work: float) -> Call:
        """This call in as many pieces as its estimated nanoseconds are worth."""
        pieces = min(int(work) // PIECE, self.size) if work >= SHARED else 1
        return self if pieces == self.pieces else self._replace(pieces=pieces, nanoseconds=work)

    def has_room(self) -> bool:
        """Whether the run may take as much work memory: NumPy may need less."""
        try:
            check_size((self.work,), BYTE)
        except Error:
            return False
        return True

    def run(self, arrays: Sequence[Array]) -> bool:
        """Compute; False if the arrays are not as expected."""
        size, pieces, call, work = self.size, self.pieces, self.call, self.work
        if self.scratch and CURRENT.scope.guard is not None:
            check_size((pieces, self.scratch), BYTE)
        if pieces == 1:
            return call(*arrays, work_memory(work)) if work else call(*arrays)
        refused: list[int] = []
        mask = bounds_mask(size, pieces)

        def bound(number: int) -> int:
            return size * number // pieces & mask if number < pieces else size

        def piece(number: int) -> None:
            own = [work_memory(work)] if work else []
            if not call(*arrays, *own, bound(number), bound(number + 1)):
                refused.append(number)
            pace()

        CURRENT.scope.share(pieces, piece)
        return not refused


def bounds_mask(size: int, pieces: int) -> int:
    """What the begins of pieces are masked with: long ones begin where a cache line does.

    Vectors that are stored across two lines take 10 % longer.
    """
    return -ALIGNMENT if size >= pieces << 10 else -1


def work_memory(size: int) -> Array:
    """Bytes that this thread keeps, as many or more."""
    scope = CURRENT.scope
    kept = scope.scratch.get(_WORK)
    return kept if kept is not None and kept.size >= size and scope.guard is None else scratch(_WORK, (size,), BYTE)


_WORK = "native code"

# -- memory of large results ---------------------------------------------------

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


class _BlockOwner:
    """Owns a block while arrays refer to it, and returns it to the pool afterwards."""

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
    return np.ndarray(shape, dtype, np.asarray(_BlockOwner(size)))
