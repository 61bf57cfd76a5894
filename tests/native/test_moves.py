"""Copies of arrays whose axes are permuted, by native tiles, against NumPy's."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from irc.native.inner_loops import LOOPS
from irc.runtime.kernels.shape import padded
from tests.effort import examples
from tests.models import onnx_model
from tests.native.guarded import fresh, placed

pytest.importorskip("llvmlite")

from irc.native.moves import MOST_ROWS, Append, call_for_append, call_for_copy, call_for_gather, call_for_rows

Array = np.ndarray[Any, Any]

DTYPES = [np.dtype(t) for t in ("?", "i1", "f2", ml_dtypes.bfloat16, "f4", "i4", "f8", "u8", "c8")]
SIZES = (1, 2, 3, 5, 8, 15, 16, 17, 33, 40)


def numbers(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """Elements of any bits, but bools."""
    rng = np.random.default_rng(0)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    bits = rng.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    return bits.view(dtype).reshape(shape)


def bits_of(x: Array) -> bytes:
    return np.ascontiguousarray(x).tobytes()


@st.composite
def permuted(draw: st.DrawFn) -> Array:
    """An array whose last axis is not the one along which elements lie side by side, maybe with gaps."""
    rank = draw(st.integers(2, 4))
    shape = tuple(draw(st.sampled_from(SIZES)) for _ in range(rank))
    x = numbers(shape, draw(st.sampled_from(DTYPES)))
    gaps = draw(st.tuples(*[st.sampled_from([1, 1, 2, -1])] * (rank - 1)))
    return x[(*(slice(None, None, gap) for gap in gaps), ...)].transpose(draw(st.permutations(range(rank))))


@examples(200)
@given(permuted())
def test_copies(x):
    x, out = placed(x), fresh(x.shape, x.dtype)
    if (call := call_for_copy(x, out)) is not None:
        assert call.run((x, out))
        assert bits_of(out) == bits_of(x)


@pytest.mark.parametrize("pieces", [2, 3, 9])
def test_any_ranges_make_the_copy(pieces):
    x = numbers((2, 3, 50, 21), np.dtype("f4")).transpose(1, 0, 3, 2)
    out = np.zeros(x.shape, np.float32)
    call = call_for_copy(x, out)
    assert call is not None
    for begin, end in itertools.pairwise(call.size * i // pieces for i in range(pieces + 1)):
        assert call.call(x, out, begin, end)
    assert bits_of(out) == bits_of(x)


@pytest.mark.parametrize(
    "x",
    [
        np.zeros((0, 5)).T,
        np.zeros((8, 64, 4, 30)).transpose(0, 2, 1, 3),
        np.broadcast_to(np.float32(1), (40, 50)),
        np.full((40, 50), "a", object).T,
        np.full((40, 50), "abc").T,
        np.zeros((40, 50), np.complex128).T,
        np.zeros((40, 50))[:, ::2],
    ],
    ids=["empty", "whole rows", "one element", "objects", "strings", "too large", "gaps"],
)
def test_the_rest_is_left_to_numpy(x):
    assert not LOOPS.copy(x, np.empty(x.shape, x.dtype))


@st.composite
def to_pad(draw: st.DrawFn) -> tuple[Array, list[tuple[int, int]], str]:
    """An array whose rows are dense, how many elements are added to each axis, and the mode."""
    rank = draw(st.integers(1, 4))
    before = tuple(draw(st.sampled_from(SIZES[:6])) for _ in range(rank - 1))
    x = numbers((*before, draw(st.sampled_from(SIZES))), draw(st.sampled_from(DTYPES)))
    gaps = draw(st.tuples(*[st.sampled_from([1, 1, 2, -1])] * (rank - 1)))
    added = [draw(st.tuples(st.integers(0, 9), st.integers(0, 20))) for _ in range(rank)]
    return x[(*(slice(None, None, gap) for gap in gaps), ...)], added, draw(st.sampled_from(MODES))


MODES = ["constant", "edge", "reflect", "wrap"]


@examples(200)
@given(to_pad())
@example((np.ones((3, 4, 2), np.float32)[..., :1], [(1, 2), (0, 3), (0, 1)], "edge"))
def test_padding(case):
    x, added, mode = case
    expected = padded(x, added, mode, 1)
    out = fresh(expected.shape, x.dtype)
    done = LOOPS.pad(placed(x), added, mode, placed(np.ones(1, x.dtype)), out)
    assert done == (out.size <= MOST_ROWS * out.shape[-1])
    assert not done or bits_of(out) == bits_of(expected)


@pytest.mark.parametrize("fills", [False, True])
def test_rows_of_a_concatenation(fills: bool) -> None:
    rows, width, whole, place = 3, 20, 32, 12
    source = placed(np.arange(rows * width, dtype=np.uint8).reshape(rows, width))
    out = fresh((rows, whole), source.dtype)
    before = out[0, 0]
    assert call_for_rows(rows, width, whole, place, fills=fills).run((source, out))
    np.testing.assert_array_equal(out[:, place:], source)
    assert (out[:, :place] == (0 if fills else before)).all()


@pytest.mark.parametrize("dtype", ["u1", "f8"])
@pytest.mark.parametrize(("shape", "axis"), [((7, 3), 0), ((2, 5), 1), ((2, 3, 4), 1)])
def test_gathered_rows(shape: tuple[int, ...], axis: int, dtype: str) -> None:
    x, end = placed(numbers(shape, np.dtype(dtype))), shape[axis]
    for given_, is_right in (
        ([0, -1, end - 1, -end], True),
        ([end], False),
        ([-end - 1], False),
        ([0, 1 << 62], False),
    ):
        indices, met = placed(np.array(given_)), fresh((1,), np.int32)
        met[:] = 0
        out = fresh((*shape[:axis], len(given_), *shape[axis + 1 :]), x.dtype)
        assert call_for_gather(x, len(given_), axis).run((x, indices, met, out))
        assert met[0] == (not is_right)
        if is_right:
            np.testing.assert_array_equal(out, x.take(given_, axis))


@pytest.mark.parametrize("shape", [(3, 5), (2, 3, 5), (2, 3, 4, 5)], ids=str)
@pytest.mark.parametrize("turned", [False, True])
def test_rows_along_several_axes(shape: tuple[int, ...], turned: bool) -> None:
    whole = placed(np.arange(2 * 3 * 4 * 5, dtype=np.int32).reshape(2, 3, 4, 5))
    source = np.broadcast_to(whole[0, 0], (*shape[:-2], 4, 5))[..., : shape[-2], :] if len(shape) < 4 else whole
    source = source[(..., slice(None, None, -1), slice(None))] if turned else source
    (rows, *axes), (step, *steps) = source.shape[:-1], source.strides[:-1]
    out = fresh(source.shape, source.dtype)
    assert call_for_rows(rows, 20, 20, 0, step, inner=list(zip(axes, steps))).run((source, out))
    np.testing.assert_array_equal(out, source)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("turned", [False, True])
def test_rows_behind_others(rows: int, turned: bool) -> None:
    new = np.arange(2 * 3 * rows * 5, dtype=np.float32).reshape((2, rows, 3, 5) if turned else (2, 3, rows, 5))
    new = placed(new).swapaxes(1, 2) if turned else placed(new)
    whole = fresh((2, 3, 8, 5), new.dtype)
    before, both = whole.copy(), whole[:, :, 1:]  # ends where the memory does
    layout = Append(3, *new.strides[:3], rows, 20)
    counts = [placed(np.array(n)) for n in (both.shape[2], *both.strides[:2])]
    assert call_for_append(6, layout).run((new, both, *counts))
    np.testing.assert_array_equal(both[:, :, -rows:], new)
    assert whole[:, :, :-rows].tobytes() == before[:, :, :-rows].tobytes()


def model(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    return onnx_model(nodes, {"x": [16, 40, 60]}, "y", {"shape": np.array([60, -1])})
