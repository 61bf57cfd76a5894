"""Convolutions by native products and by transformed tiles, against the interpreter in double precision."""

import gc
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.effort import examples
from tests.models import onnx_model

pytest.importorskip("llvmlite")

import irc
from irc.native.convolution_calls import convolution_of
from irc.native.convolutions import TILES, WINDOWS
from irc.native.inner_loops import LOOPS
from irc.native.packed import PACKED
from irc.native.panels import MOST_FEATURES
from irc.native.target import current
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.convolution import convolve
from irc.runtime.kernels.support import as_constant
from irc.runtime.kernels.windows import Axes, Axis, Window
from irc.runtime.threads import share
from tests.native.guarded import fresh, placed
from tests.native.test_windows import LAYOUTS, laid, random, windows

Array = np.ndarray[Any, Any]

SINGLE = np.dtype("f4")
LARGEST_ERROR = 2.5
"""Of a sum of products, in units of 2^-24 times the sum of their magnitudes, for random numbers."""

natively = pytest.mark.skipif(current().vector_bytes not in MOST_FEATURES, reason="there is no code for this processor")


def check_convolution(
    x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array, most: float = 8.0
) -> None:
    """``out`` is the convolution, but for rounding."""
    exact, bound = (
        convolve(*[None if a is None else of(a.astype("f8")) for a in (x, w, b)], group, axes)
        for of in (np.asarray, np.abs)
    )
    assert (np.abs(out - exact) <= most * 2.0**-24 * bound + 1e-30).all()


def plain(size: tuple[int, ...], kernel: int = 3, stride: int = 1, pad: int = 1) -> Axes:
    rank = len(size)
    return Window((kernel,) * rank, (stride,) * rank, (1,) * rank, (pad,) * 2 * rank, "NOTSET", False).resolve(size)


def convolving(w: Array, shape: tuple[int, ...]) -> onnx.ModelProto:
    """A model that convolves ``x`` of ``shape`` with ``w``, padded by one."""
    return onnx_model(helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]), {"x": [*shape]}, "y", {"w": w})


def made(x: Array, w: Array, b: Array | None = None, group: int = 1, axes: Axes | None = None) -> Array | None:
    axes = plain(x.shape[2:]) if axes is None else axes
    out = fresh((x.shape[0], w.shape[0], *[a.out for a in axes]), SINGLE)
    return out if LOOPS.convolution(x, w, b, group, axes, out) else None


@examples(150)
@given(windows(), st.sampled_from(LAYOUTS), st.integers(1, 40), st.integers(1, 20), st.integers(1, 3), st.booleans())
def test_random_windows(axes, layout, features, channels, group, biased):
    x = placed(laid(random((2, channels * group, *[a.size for a in axes]), SINGLE, 1), layout))
    w = as_constant(placed(random((features * group, channels, *[a.kernel for a in axes]), SINGLE, 2)))
    b = as_constant(placed(random((features * group,), SINGLE, 3))) if biased else None
    out = made(x, w, b, group, axes)
    if out is not None:
        check_convolution(x, w, b, group, axes, out)


@natively
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("size", [(7, 7), (8, 8), (13, 13), (14, 15), (28, 3), (1, 40), (33, 34)])
@pytest.mark.parametrize("features", [12, 30, 64])
@pytest.mark.parametrize("group", [1, 2])
def test_tiles(size, features, group, biased):
    x = random((2, 24 * group, *size), SINGLE, 1)
    w = as_constant(random((features * group, 24, 3, 3), SINGLE, 2))
    b = as_constant(random((features * group,), SINGLE, 3)) if biased else None
    axes = plain(size)
    out = made(x, w, b, group, axes)
    assert out is not None
    check_convolution(x, w, b, group, axes, out)


@natively
@pytest.mark.parametrize(
    ("channels", "features", "size", "kernel", "stride", "kind"),
    [(64, 64, 56, 3, 1, TILES), (128, 96, 14, 3, 1, TILES), (64, 32, 28, 3, 2, WINDOWS), (3, 32, 60, 7, 2, WINDOWS)],
)
def test_errors_are_bounded(channels, features, size, kernel, stride, kind):
    x = random((1, channels, size, size), SINGLE, 1)
    w = as_constant(random((features, channels, kernel, kernel), SINGLE, 2))
    axes = plain((size, size), kernel, stride, kernel // 2)
    out = made(x, w, None, 1, axes)
    assert out is not None
    how = convolution_of(x, w, 1, axes, out)
    assert how is not None and how.form.kind == kind
    check_convolution(x, w, None, 1, axes, out, LARGEST_ERROR if channels * kernel > 64 else 5.0)


@natively
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("shape", "features", "kernel", "stride", "pad"),
    [
        ((1, 1, 16_000), 257, 512, 160, 0),
        ((2, 129, 4), 128, 3, 1, 1),
        ((2, 64, 2), 64, 3, 2, 1),
        ((1, 200, 1, 1), 50, 1, 1, 0),
        ((3, 3, 32, 32), 24, 16, 16, 0),
        ((2, 8, 2, 2, 2), 40, 3, 2, 1),
    ],
)
def test_few_positions_and_wide_strides(shape, features, kernel, stride, pad, layout, biased):
    x = laid(random(shape, SINGLE, 1), layout)
    axes = plain(shape[2:], kernel, stride, pad)
    w = as_constant(random((features, shape[1], *[kernel] * len(axes)), SINGLE, 2))
    b = as_constant(random((features,), SINGLE, 3)) if biased else None
    out = made(x, w, b, 1, axes)
    assert out is not None
    check_convolution(x, w, b, 1, axes, out)


@natively
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, -3e38])
def test_what_tiles_would_spread_is_left_to_products(value):
    """In a tile, an infinity of one place would make NaN of all results."""
    x, w = random((1, 16, 20, 20), SINGLE, 1), as_constant(random((16, 16, 3, 3), SINGLE, 2))
    assert made(x, w) is not None
    x[0, 3, 5, 6] = value
    assert made(x, w) is None
    weights = w.copy()
    weights[2, 3, 1, 1] = value
    assert made(random((1, 16, 20, 20), SINGLE, 1), as_constant(weights)) is None


@natively
@pytest.mark.parametrize("magnitude", [2.0**48, 2.0**60])
def test_tiles_overflow_nowhere_else(magnitude):
    """Inputs whose transforms are as large as can be, and weights of one tap: products make 1/64 of what tiles do."""
    signs = np.where((np.arange(20) + 1) // 2 % 2 == 0, 1.0, -1.0)
    x = np.broadcast_to(magnitude * np.outer(signs, signs), (1, 64, 20, 20)).astype("f4")
    w = np.zeros((16, 64, 3, 3), SINGLE)
    w[:, :, 0, 0] = magnitude
    out = made(x, as_constant(w))
    assert (out is None) == (magnitude == 2.0**60)
    if out is not None:
        check_convolution(x, w, None, 1, plain((20, 20)), out)


@natively
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("far", [1 << 27, 1 << 32])
def test_taps_far_outside(far, axis):
    """Of three taps, the outer ones see padding only: code would count columns in 32 bits."""
    x, w = random((1, 16, 20, 20), SINGLE, 1), random((16, 16, *((3, 1), (1, 3))[axis]), SINGLE, 2)
    axes = list(plain((20, 20), 1, 1, 0))
    axes[axis] = Axis(20, 20, 3, 1, far, far, far)
    out = made(x, as_constant(w), axes=tuple(axes))
    if out is not None:
        middle = w[:, :, 1:2] if axis == 0 else w[..., 1:2]
        check_convolution(x, middle, None, 1, plain((20, 20), 1, 1, 0), out)


@natively
def test_packed_weights_are_within_limits():
    x, w = random((1, 256, 8, 8), SINGLE, 1), random((256, 256, 3, 3), SINGLE, 2)
    model = irc.compile(convolving(w, x.shape), backend="native")
    gc.collect()
    before = len(PACKED)
    limited = model.run({"x": x}, limits=irc.Limits(bytes=w.nbytes))["y"]  # not for 16/9 of that
    assert len(PACKED) == before
    np.testing.assert_allclose(model.run({"x": x}, limits=irc.Limits(bytes=2 * w.nbytes))["y"], limited, atol=1e-3)
    assert len(PACKED) == before + 1


class Subclass(np.ndarray):
    pass


@natively
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("size", [(4, 4), (14, 14), (40, 40)])
def test_a_refused_subclass_is_not_taken_for_a_result(size, kernel):
    x, w = random((1, 16, *size), SINGLE, 0), as_constant(random((24, 16, kernel, kernel), SINGLE, 1))
    axes = plain(size, kernel, pad=kernel // 2)
    wanted = made(x, w, axes=axes)
    assert wanted is not None
    found = made(x.view(Subclass), w, axes=axes)
    assert found is None or (found == wanted).all()


@natively
def test_infinities_stay_where_they_are():
    x = np.zeros((1, 16, 20, 20), SINGLE)
    model = irc.compile(convolving(np.ones((16, 16, 3, 3), SINGLE), x.shape), backend="native")
    assert not model.run({"x": x})["y"].any()
    x[0, 0, 5, 5] = np.inf
    found = model.run({"x": x})["y"]
    assert np.isinf(found).sum() == 9 * 16 and not np.isnan(found).any()


@natively
def test_packed_weights_go_with_the_weights():
    x, w = random((1, 16, 20, 20), SINGLE, 1), as_constant(random((16, 16, 3, 3), SINGLE, 2))
    gc.collect()
    before = len(PACKED)
    made(x, w)
    assert len(PACKED) == before + 1
    del w
    gc.collect()
    assert len(PACKED) == before


@natively
@pytest.mark.parametrize(("size", "kernel"), [((56, 56), 3), ((14, 14), 3), ((30, 41), 1), ((56, 56), 1), ((2, 2), 3)])
def test_results_do_not_depend_on_threads(size, kernel):
    x = random((2, 96, *size), SINGLE, 1)
    w = as_constant(random((100, 96, kernel, kernel), SINGLE, 2))
    axes = plain(size, kernel, 1, kernel // 2)
    one = made(x, w, None, 1, axes)
    before = CURRENT.scope.share
    CURRENT.scope.share = lambda pieces, piece: share(pieces, piece, 2)
    try:
        two = made(x, w, None, 1, axes)
    finally:
        CURRENT.scope.share = before
    assert one is not None and two is not None and one.tobytes() == two.tobytes()
    for i in range(2):
        alone = made(x[i : i + 1], w, None, 1, axes)
        assert alone is not None and alone.tobytes() == one[i : i + 1].tobytes()


@natively
def test_long_calls_pause(pacing):
    """Also of one block of pixels for many features."""
    x, w = random((1, 64, 8, 8), SINGLE, 1), as_constant(random((30_000, 64, 1, 1), SINGLE, 2))
    assert made(x, w, axes=plain((8, 8), 1, 1, 0)) is not None
    assert pacing.times > 4


@pytest.mark.parametrize("given_", ["", "b", "w"])
@pytest.mark.parametrize("dtype", ["f4", "f2"])
@pytest.mark.parametrize(
    ("size", "w", "attributes"),
    [
        ((9, 8), (16, 24, 2, 2), {"strides": [2, 2]}),
        ((9, 8), (16, 24, 3, 3), {"strides": [2, 2], "pads": [1] * 4, "output_padding": [1, 1]}),
        ((14, 15), (16, 24, 3, 3), {"pads": [1] * 4}),
        ((9, 8), (16, 8, 4, 4), {"strides": [2, 2], "pads": [1] * 4, "group": 2}),
        ((9, 8), (16, 1, 4, 3), {"strides": [2, 1], "pads": [5, 1, 0, 1], "group": 16}),
        ((9, 8), (16, 24, 3, 2), {"strides": [3, 1], "dilations": [2, 3]}),
        ((50,), (16, 24, 16), {"strides": [8], "pads": [4, 4]}),
        ((4, 5, 3), (16, 8, 2, 3, 2), {"strides": [2, 1, 3], "pads": [0, 1, 0, 1, 0, 0]}),
    ],
)
def test_transposed(size: tuple[int, ...], w: tuple[int, ...], attributes: Any, dtype: str, given_: str) -> None:
    rng = np.random.default_rng(3)
    arrays = {
        name: rng.standard_normal(n).astype(dtype) for name, n in (("w", w), ("b", w[1] * attributes.get("group", 1)))
    }
    names = ["x", *given_]
    node = helper.make_node("ConvTranspose", ["x", "w", "b"], ["y"], **attributes)
    weights = {name: each for name, each in arrays.items() if name not in given_}
    made = onnx_model(node, dict.fromkeys(names, dtype), weights=weights, opset=17)
    native, plain_ = (irc.compile(made, backend=backend) for backend in ("native", "numpy"))
    tolerance = 1e-4 if dtype == "f4" else 2e-2
    for n in (1, 2, 1):
        feeds = {"x": rng.standard_normal((n, w[0], *size)).astype(dtype)} | {name: arrays[name] for name in given_}
        np.testing.assert_allclose(native.run(feeds)["y"], plain_.run(feeds)["y"], rtol=tolerance, atol=tolerance)
