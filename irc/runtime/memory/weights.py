"""Weights in one piece of memory, which the system may give in huge pages.

A processor that reads weights looks up each page of them. In pages of 4 KiB, those of even a small model are more than
it remembers, so that each run looks them up anew: decoders take a tenth longer. NumPy asks Linux for pages of 2 MiB for
arrays of 4 MiB or more; so weights are parts of such an array.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from weakref import WeakValueDictionary

from irc.errors import Error
from irc.ir.tensor import Tensor
from irc.runtime.memory.raw import aligned, aligned_bytes
from irc.runtime.values import Array, owner

PAGE = 4096
"""Bytes; several smaller tensors lie in one page anyhow."""

HUGE_PAGE = 1 << 21
"""Bytes; where pages are of another size, this costs nothing."""

WORTH = 1 << 22
"""Bytes of all tensors from which on NumPy asks for huge pages."""

_PIECES: WeakValueDictionary[int, Array] = WeakValueDictionary()
"""The arrays that tensors have been moved to, by identity."""


def gather(tensors: Iterable[Tensor]) -> None:
    """Move the contents of ``tensors`` to one array; each is freed where it was before the next is moved.

    What is mapped from a file stays there: other processes may have it in memory, too. So does what is a part of such
    an array already, for another graph, or shows only a part of an array, or elements of it repeatedly. Splats have no
    contents to be moved.
    """
    dense = (t for t in dict.fromkeys(tensors) if not (t.is_splat or t.is_absent or t.dtype.numpy.hasobject))
    wanted = [t for t in dense if t.nbytes >= PAGE]
    total = sum([aligned(t.nbytes) for t in wanted])
    if total < WORTH:
        return
    with suppress(Error):  # there is no memory for it, or one cannot be read, which the run will say
        memory = aligned_bytes(total + -total % HUGE_PAGE, HUGE_PAGE)
        _PIECES[id(owner(memory))] = owner(memory)
        begin = 0
        for tensor in wanted:
            found = tensor.peek()
            if tensor.is_transient or _may_move(found):
                place = memory[begin : begin + found.nbytes].view(found.dtype).reshape(found.shape)
                place[...] = found
                begin += aligned(found.nbytes)
                tensor.move(place)


def _may_move(array: Array) -> bool:
    """Whether the memory of ``array``, all of it, belongs to this process alone, and was not gathered yet."""
    whole = owner(array)
    is_own = whole.base is None or isinstance(whole.base, bytes)
    return is_own and whole.nbytes == array.nbytes and id(whole) not in _PIECES
