"""Depthwise convolution and pooling by native loops, against the interpreter's kernels."""

import itertools
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

import irc
from irc.errors import Error
from irc.ir import parse_graph
from irc.native.backend import Native, with_loops
from irc.native.inner_loops import LOOPS
from irc.runtime.kernels.convolution import convolve
from irc.runtime.kernels.pool import maxima, means
from irc.runtime.kernels.windows import Axes, Window, columns
from tests.effort import examples
from tests.models import onnx_model
from tests.native.guarded import fresh, placed

pytest.importorskip("llvmlite")

from irc.native.windows import call_for

Array = np.ndarray[Any, Any]

FLOATS = [np.dtype(t) for t in ("f4", "f8", "f2", ml_dtypes.bfloat16)]
INTEGERS = [np.dtype(t) for t in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")]
UNIT = {"float32": 2.0**-24, "float64": 2.0**-53, "float16": 2.0**-11, "bfloat16": 2.0**-8}
"""Half of the distance of 1 to the next number."""


@st.composite
def windows(draw: st.DrawFn) -> Axes:
    rank = draw(st.integers(1, 2))

    def numbers(low: int, high: int, count: int = rank) -> tuple[int, ...]:
        return draw(st.tuples(*[st.integers(low, high)] * count))

    sizes = tuple(draw(st.sampled_from([1, 2, 3, 5, 7, 8, 14, 15, 16, 17, 28, 31, 33, 50])) for _ in range(rank))
    kernel = draw(st.one_of(st.just((3,) * rank), st.tuples(*[st.sampled_from([1, 2, 3, 4, 5, 7])] * rank)))
    strides = draw(st.one_of(st.just((1,) * rank), st.just((2,) * rank), st.tuples(*[st.integers(1, 8)] * rank)))
    dilations = draw(st.one_of(st.just((1,) * rank), st.tuples(*[st.integers(1, 4)] * rank)))
    pads = draw(st.one_of(st.just((1,) * (2 * rank)), st.tuples(*[st.integers(0, 9)] * (2 * rank))))
    auto_pad = draw(st.sampled_from(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"]))
    try:
        return Window(kernel, strides, dilations, pads, auto_pad, draw(st.booleans())).resolve(sizes)
    except Error:
        return Window(kernel, strides, (1,) * rank, (9,) * (2 * rank), "NOTSET", False).resolve(sizes)


LAYOUTS = ["in order", "gaps", "backwards", "channels last", "one image"]


def laid(x: Array, layout: str) -> Array:
    """``x`` in memory of that layout."""
    if layout == "gaps":
        wide = np.zeros((*[2 * n for n in x.shape[:-1]], x.shape[-1] + 3), x.dtype)
        made = wide[(*(slice(None, None, 2),) * (x.ndim - 1), slice(1, 1 + x.shape[-1]))]
    elif layout == "backwards":
        made = np.empty_like(x)[::-1, ::-1, ..., ::-1]
    elif layout == "channels last":
        made = np.moveaxis(np.empty((x.shape[0], *x.shape[2:], x.shape[1]), x.dtype), -1, 1)
    elif layout == "one image":
        return np.broadcast_to(x[:1], x.shape)
    else:
        return x
    made[...] = x
    return made


def random(shape: Sequence[int], dtype: np.dtype[Any], seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if dtype.kind in "iu":
        return rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, shape, dtype, endpoint=True)
    return rng.standard_normal(shape).astype(dtype)


def assert_made() -> None:
    """Assert that the last call was of native code."""
    assert list(LOOPS._loops.values())[-1].call is not None


@pytest.fixture(autouse=True)
def anew() -> None:
    LOOPS._loops = {}


many = examples(40)


@many
@given(windows(), st.sampled_from(FLOATS), st.integers(1, 3), st.integers(1, 3), st.sampled_from(LAYOUTS), st.data())
def test_depthwise_convolution(axes, dtype, channels, sharing, layout, data):
    x = placed(laid(random((2, channels + 1, *[a.size for a in axes]), dtype, 1), layout))
    w = placed(random((x.shape[1] * sharing, 1, *[a.kernel for a in axes]), dtype, 2))
    b = data.draw(st.sampled_from([None, placed(random((len(w),), dtype, 3))]))
    out = fresh((2, len(w), *[a.out for a in axes]), dtype)
    LOOPS._loops = {}
    assert with_loops(convolve)(x, w, b, x.shape[1], axes, out=out) is out
    assert_made()
    wide = [None if a is None else a.astype(np.float64) for a in (x, w, b)]
    exact = convolve(*wide, x.shape[1], axes)
    sizes = convolve(*[None if a is None else abs(a) for a in wide], x.shape[1], axes)
    inner = 2.0**-24 if dtype.itemsize < 4 else 0
    taps = w[0].size + 1
    bound = sizes * (taps * (inner or UNIT[dtype.name]) + UNIT[dtype.name]) + 1e-7 * (dtype.itemsize < 4)
    assert (abs(out.astype(np.float64) - exact) <= bound * (1 + 1e-6) + np.finfo(np.float32).tiny).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: d.name)
def test_infinities_of_images_stay_where_they_are_seen(dtype):
    axes = Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "NOTSET", False).resolve((20, 37))
    x = random((1, 2, 20, 37), dtype, 1)
    x[0, 0, 5, 6], x[0, 1, 0, 36], x[0, 1, 19, 0] = np.inf, np.nan, -np.inf
    w = random((2, 1, 3, 3), dtype, 2)
    found, expected = with_loops(convolve)(x, w, None, 2, axes), convolve(x, w, None, 2, axes)
    assert_made()
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(expected))
    assert (~np.isfinite(found)).sum() == 9 + 4 + 4


@pytest.mark.parametrize("weight", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [(0, 0), (1, 2), (2, 1)])
@pytest.mark.parametrize("width", [5, 40])
def test_weights_that_are_not_finite_make_nan_of_padding(weight, place, width):
    axes = Window((3, 3), (1, 1), (1, 1), (1, 1, 1, 1), "NOTSET", False).resolve((6, width))
    x, w = random((1, 2, 6, width), np.dtype("f4"), 1), random((2, 1, 3, 3), np.dtype("f4"), 2)
    w[1, 0, place[0], place[1]] = weight
    with np.errstate(invalid="ignore"):
        expected = convolve(x, w, None, 2, axes)
    np.testing.assert_allclose(with_loops(convolve)(x, w, None, 2, axes), expected, rtol=1e-4, atol=1e-5)
    assert_made()
    assert np.isnan(expected).any()


@many
@given(windows(), st.sampled_from([*FLOATS, *INTEGERS]), st.sampled_from(LAYOUTS), st.booleans())
def test_maxima(axes, dtype, layout, special):
    x = random((2, 3, *[a.size for a in axes]), dtype, 1)
    if special and dtype.kind not in "iu":
        x.flat[::7], x.flat[3::11], x.flat[5::13], x.flat[::17] = np.nan, np.inf, -np.inf, -0.0
    x, found = placed(laid(x, layout)), fresh((2, 3, *[a.out for a in axes]), dtype)
    LOOPS._loops = {}
    with_loops(maxima)(x, axes, out=found)
    assert_made()
    exact = np.dtype(np.float64) if dtype.kind not in "iu" else dtype
    np.testing.assert_array_equal(found.astype(exact), maxima(x, axes).astype(exact))


@many
@given(
    windows(), st.sampled_from(FLOATS), st.sampled_from(LAYOUTS), st.booleans(), st.sampled_from([None, None, 3, -7])
)
def test_means(axes, dtype, layout, include, divisor):
    x = placed(laid(random((2, 3, *[a.size for a in axes]), dtype, 1), layout))
    found = fresh((2, 3, *[a.out for a in axes]), dtype)
    LOOPS._loops = {}
    with np.errstate(all="ignore"):
        with_loops(means)(x, axes, include, divisor, out=found)
        assert_made()
        exact = means(x.astype(np.float64), axes, include, divisor)
        sizes = abs(means(abs(x.astype(np.float64)), axes, include, divisor))
    inner = max(2.0**-24, UNIT[dtype.name]) if dtype.itemsize < 8 else UNIT[dtype.name]
    depth = sum(a.kernel for a in axes)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    seen = ~np.isnan(exact)
    assert (abs(found.astype(np.float64) - exact)[seen] <= (sizes * inner * (depth + 1) + 1e-30)[seen]).all()


@many
@given(windows(), st.sampled_from([np.dtype(t) for t in ("f4", "f8", "f2", "i1")]), st.integers(1, 4), st.data())
def test_columns(axes, dtype, channels, data):
    x = random((channels, *[a.size for a in axes]), dtype, 1)
    if dtype.kind == "f":
        x.flat[::7] = np.nan
    start = data.draw(st.integers(0, axes[0].out - 1))
    count = data.draw(st.integers(1, axes[0].out - start))
    expected = columns(x, axes, start, count).copy()
    found = fresh(expected.shape, dtype)
    assert LOOPS.columns(placed(x), axes, start, found)
    np.testing.assert_array_equal(found.view(f"u{dtype.itemsize}"), expected.view(f"u{dtype.itemsize}"))


@pytest.mark.parametrize("pieces", [2, 3, 7, 100])
@pytest.mark.parametrize("sizes", [(9, 40), (5, 7), (13, 16)])
@pytest.mark.parametrize("stride", [1, 2])
def test_any_ranges_give_equal_bits(sizes, stride, pieces):
    axes = Window((3, 3), (stride,) * 2, (1, 1), (1, 1, 1, 1), "NOTSET", False).resolve(sizes)
    x, w = random((2, 3, *sizes), np.dtype("f4"), 1), random((3, 1, 3, 3), np.dtype("f4"), 2)
    whole = np.empty((2, 3, *[a.out for a in axes]), np.float32)
    for arrays, work in (((x, w, whole), "products"), ((x, whole), "maxima")):
        call = call_for(work, arrays, axes)
        assert call is not None and call.call(*arrays)
        parts = np.full_like(whole, np.nan)
        cuts = [call.size * i // pieces for i in range(pieces + 1)]
        for begin, end in itertools.pairwise(cuts):
            before = parts.copy().reshape(call.size, -1)
            assert call.call(*arrays[:-1], parts, begin, end)
            after = parts.reshape(call.size, -1)
            for untouched in (slice(0, begin), slice(end, None)):
                np.testing.assert_array_equal(after[untouched], before[untouched])
        np.testing.assert_array_equal(parts, whole)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u1", "f2"])
@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "pads"),
    [
        ((3, 3, 3), (1, 1, 1), (1, 1, 1), (1,) * 6),
        ((2, 2, 2), (2, 2, 2), (1, 1, 1), (0,) * 6),
        ((2, 3, 7), (1, 2, 3), (2, 1, 1), (1, 0, 3, 0, 2, 1)),
        ((4, 1, 1), (3, 1, 1), (1, 1, 1), (2, 0, 0, 1, 0, 0)),
        ((1, 7, 7), (1, 1, 1), (1, 1, 1), (0, 3, 3, 0, 3, 3)),
    ],
)
def test_maxima_of_cubes(kernel, strides, dilations, pads, dtype):
    axes = Window(kernel, strides, dilations, pads, "NOTSET", False).resolve((7, 8, 9))
    x = random((2, 3, 7, 8, 9), np.dtype(dtype), 1)
    if x.dtype.kind == "f":
        x[0, 1, 2, 3, 4], x[1, 0, 0, 0, 0], x[1, 2] = np.nan, np.inf, -np.inf
    for laid_ in (x, x[..., ::-1], x.swapaxes(3, 4).copy().swapaxes(3, 4)):
        np.testing.assert_array_equal(with_loops(maxima)(laid_, axes), maxima(laid_, axes))


CALLS = {
    "aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %four)": "products",
    "aten::convolution(%x, %w, %none, %twos, %ones, %ones, %no, %ones, %four)": "products",
    "aten::conv2d(%x, %full, %none, %twos, %ones, %ones, %one)": "columns",
    "aten::max_pool2d(%x, %threes, %ones, %ones, %ones, %no)": "maxima",
    "aten::avg_pool2d(%x, %threes, %twos, %ones, %yes, %no, %none)": "means",
    "aten::constant_pad_nd(%x, %threes, %one)": "pad",
    "aten::replication_pad2d(%x, %widths)": "pad",
}
CONSTANTS = {
    "none": ("NoneType", "None"),
    "one": ("int", "1"),
    "four": ("int", "4"),
    "no": ("bool", "False"),
    "yes": ("bool", "True"),
    "ones": ("int[]", "[1, 1]"),
    "twos": ("int[]", "[2, 2]"),
    "threes": ("int[]", "[3, 3]"),
    "widths": ("int[]", "[1, 0, 2, 3]"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("layout", ["in order", "channels last"])
def test_torch_operators_share_the_loops(call, layout):
    lines = [
        f"  %{name} : {kind} = prim::Constant[value={value}]()\n"
        for name, (kind, value) in CONSTANTS.items()
        if f"%{name}" in call
    ]
    text = f"graph(%x : Tensor, %w : Tensor, %full : Tensor):\n{''.join(lines)}  %y : Tensor = {call}\n  return (%y)\n"
    shapes = {"x": (2, 4, 30, 33), "w": (8, 1, 3, 3), "full": (8, 4, 3, 3)}
    given = {name: random(shape, np.dtype("f4"), i) for i, (name, shape) in enumerate(shapes.items())}
    given["x"] = laid(given["x"], layout)
    LOOPS._loops = {}
    found = irc.compile(parse_graph(text), backend=Native()).run(given)["y"]
    if CALLS[call] != "pad" or layout == "in order":
        assert CALLS[call] in [kind[0] for kind in LOOPS._loops]
    expected = irc.compile(parse_graph(text), backend="numpy").run(given)["y"]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert found.strides == expected.strides


@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "Conv"])
def test_threads_give_equal_bits(kind):
    given = {"x": random((4, 64, 112, 112), np.dtype("f4"), 1), "w": random((64, 1, 3, 3), np.dtype("f4"), 2)}
    given = given if kind == "Conv" else {"x": given["x"]}
    attributes = {"group": 64} if kind == "Conv" else {"kernel_shape": [3, 3]}
    proto = onnx_model(helper.make_node(kind, [*given], ["y"], pads=[1, 1, 1, 1], **attributes), given)
    one, two = (irc.compile(proto, backend=Native(), options=irc.Options(threads=n)).run(given)["y"] for n in (1, 2))
    call = list(LOOPS._loops.values())[-1].call
    assert call is not None and call.pieces > 1
    np.testing.assert_array_equal(one, two)
