"""Memory for packed weights."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irc.errors import Error
from irc.native.packed import Pieces
from irc.runtime.array_memory import ALIGNMENT, address_of
from irc.runtime.values import owner

SHAPES = [(3,), (5, 7), (1 << 10, 1 << 10), (0, 4), (1 << 23,), (65, 33)]


def test_arrays_lie_apart_in_few_pieces():
    pieces = Pieces()
    with ThreadPoolExecutor(4) as threads:
        arrays = [*threads.map(lambda shape: pieces.array(shape, np.dtype("f4")), SHAPES * 10)]
    places = sorted((address_of(x), x.nbytes) for x in arrays if x.size)
    assert all(begin % ALIGNMENT == 0 for begin, _ in places)
    assert all(begin + size <= after for (begin, size), (after, _) in pairwise(places))
    assert len({id(owner(x)) for x in arrays if x.size}) < len(places) // 2


def test_a_piece_is_freed_with_its_last_array():
    pieces = Pieces()
    first, second = pieces.copy(np.eye(300)[:, ::2]), pieces.array((1 << 22,), np.dtype("f8"))
    np.testing.assert_array_equal(first, np.eye(300)[:, ::2])
    memory = weakref.ref(owner(first))
    assert memory() is not owner(second)
    del first
    gc.collect()
    assert memory() is None


def test_there_may_not_be_so_much_memory():
    with pytest.raises(Error, match="IRC403"):
        Pieces().array((1 << 60,), np.dtype("u1"))
