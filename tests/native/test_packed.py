"""Packed weights, and the memory for them."""

import gc
import sys
import weakref
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from irc.errors import Error
from irc.native.packed import Pieces
from irc.native.packing import pack
from irc.native.panels import MOST_FEATURES
from irc.native.target import current
from irc.runtime.array_memory import address_of, aligned_bytes
from irc.runtime.values import owner
from tests.native.guarded import fresh, placed

G = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
"""Of Winograd's F(2x2, 3x3)."""


def test_a_signal_handler_may_take_memory_in_between():
    pieces, kind = Pieces(), np.dtype("u1")
    found = []

    def interrupt(frame, event, _):
        if event == "call" and frame.f_code is aligned_bytes.__code__:
            sys.setprofile(None)
            found.append(pieces.array((1 << 20,), kind))

    sys.setprofile(interrupt)
    try:
        found.append(pieces.array((1 << 20,), kind))
    finally:
        sys.setprofile(None)
    found += [pieces.array((1 << 20,), kind) for _ in range(8)]
    places = sorted(map(address_of, found))
    assert all(after - before >= 1 << 20 for before, after in pairwise(places))


def test_a_piece_is_freed_with_its_last_array():
    pieces = Pieces()
    first, *others = pieces.copy(np.eye(300)[:, ::2]), *[pieces.array((1 << 21,), np.dtype("u1")) for _ in range(4)]
    np.testing.assert_array_equal(first, np.eye(300)[:, ::2])
    memory = weakref.ref(owner(first))
    assert memory() is not owner(others[-1])
    del first, others
    gc.collect()
    assert memory() is None


def test_there_may_not_be_so_much_memory():
    with pytest.raises(Error, match="IRC403"):
        Pieces().array((1 << 60,), np.dtype("u1"))


@pytest.mark.skipif(current().vector_bytes not in MOST_FEATURES, reason="there is no code for this processor")
@pytest.mark.parametrize("is_tiled", [True, False])
@pytest.mark.parametrize(("groups", "count", "features"), [(1, 1, 1), (1, 30, 14), (3, 12, 6), (2, 13, 5), (1, 50, 32)])
@pytest.mark.parametrize("depth", [1, 7])
def test_weights_in_blocks_of_features(depth, groups, count, features, is_tiled):
    blocks, numbers = -(-count // features), (16,) if is_tiled else ()
    weights = np.random.default_rng(1).standard_normal((groups * count, depth, *[9] * is_tiled)).astype("f4")
    packed = fresh((groups * blocks, *numbers, depth, features), np.float32)
    pack(placed(weights), packed, groups)
    filters = weights.reshape(groups, count, depth, *[3, 3] * is_tiled)
    wide = (G @ filters @ G.T).reshape(groups, count, depth, 16) if is_tiled else filters[..., None]
    padded = np.zeros((groups, blocks * features, *wide.shape[2:]))
    padded[:, :count] = wide
    expected = padded.reshape(groups * blocks, features, depth, -1).transpose(0, 3, 2, 1)
    np.testing.assert_array_equal(packed, expected.reshape(packed.shape).astype("f4"))
