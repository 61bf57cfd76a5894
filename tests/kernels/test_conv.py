"""Convolutions against ONNX Runtime."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.errors import Error
from irc.runtime.kernels import convolution, grid_sample, windows  # noqa: F401
from irc.runtime.kernels.windows import Window
from tests.effort import examples, tuned
from tests.kernels.helpers import assert_same, check_against_ort, run_kernel, values

CONV = {
    "3x3": ((2, 4, 9, 8), (6, 4, 3, 3), {"pads": [1, 1, 1, 1]}),
    "asymmetric pads, strides, dilations, groups": (
        (2, 4, 11, 12),
        (6, 2, 3, 2),
        {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 3], "dilations": [2, 1]},
    ),
    "depthwise": ((2, 4, 9, 8), (4, 1, 3, 3), {"group": 4, "pads": [1, 1, 1, 1]}),
    "depthwise, stride 2, multiplier 2": ((2, 4, 9, 8), (8, 1, 3, 3), {"group": 4, "strides": [2, 2]}),
    "pointwise": ((2, 4, 9, 8), (6, 4, 1, 1), {}),
    "pointwise in groups": ((2, 4, 9, 8), (6, 2, 1, 1), {"group": 2}),
    "1x1 stride 2": ((2, 4, 9, 8), (6, 4, 1, 1), {"strides": [2, 2]}),
    "1x1 padded": ((1, 2, 3, 3), (3, 2, 1, 1), {"pads": [1, 2, 0, 1]}),
    "stride beyond the kernel": ((1, 2, 11, 11), (3, 2, 2, 2), {"strides": [4, 3]}),
    "stride beyond all sizes": ((1, 2, 7, 5), (3, 2, 3, 3), {"strides": [2**62, 1]}),
    "1x1 with strides beyond all sizes": ((1, 2, 7, 5), (3, 2, 1, 1), {"strides": [2**62, 2**62]}),
    "depthwise, stride beyond all sizes": ((1, 2, 7, 5), (2, 1, 3, 3), {"strides": [1, 2**62], "group": 2}),
    "padding beyond the kernel": ((1, 2, 3, 3), (3, 2, 2, 2), {"pads": [4, 3, 4, 5], "strides": [2, 1]}),
    "dilation beyond the stride": ((1, 2, 12, 12), (3, 2, 3, 3), {"dilations": [3, 4], "strides": [2, 2]}),
    "1-D": ((2, 4, 19), (6, 4, 3), {"pads": [1, 2], "strides": [2]}),
    "1-D depthwise": ((2, 4, 19), (4, 1, 5), {"group": 4, "pads": [4, 0]}),
    "3-D": ((2, 4, 5, 6, 7), (6, 4, 2, 3, 2), {"pads": [1, 0, 1, 0, 1, 1], "strides": [2, 1, 2]}),
    "3-D groups": ((1, 4, 5, 6, 7), (2, 2, 3, 1, 2), {"group": 2, "dilations": [2, 1, 3]}),
    "same upper": ((1, 2, 7, 8), (3, 2, 4, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 3]}),
    "same lower": ((1, 2, 7, 8), (3, 2, 4, 3), {"auto_pad": "SAME_LOWER", "strides": [2, 3]}),
    "valid": ((1, 2, 7, 8), (3, 2, 4, 3), {"auto_pad": "VALID", "strides": [2, 1]}),
    "empty batch": ((0, 2, 7, 8), (3, 2, 4, 3), {}),
}


@pytest.mark.parametrize("opset", [7, 11, 22])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("case", CONV)
def test_conv(case, bias, opset):
    x, w, attrs = CONV[case]
    inputs = [values(*x), values(*w), *([values(w[0])] if bias else [])]
    check_against_ort("Conv", inputs, {"kernel_shape": list(w[2:]), **attrs}, opset)


def test_conv_in_blocks(monkeypatch, tune):
    """However small the blocks, the result is the same: block borders are no borders of the image."""
    inputs, attrs = [values(2, 4, 13, 9), values(6, 2, 3, 3), values(6)], {"group": 2, "pads": [2, 1, 1, 1]}
    for strides in ([1, 1], [3, 2]):
        (whole,) = run_kernel("Conv", inputs, {**attrs, "strides": strides}, 11)
        for least in (1, 20, 40):
            tune("irc.runtime.kernels.convolution.COLUMNS", least)
            tune("irc.runtime.kernels.convolution.COLUMN_ELEMENTS", 1)
            (parts,) = run_kernel("Conv", inputs, {**attrs, "strides": strides}, 11)
            np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-5)
        monkeypatch.undo()


@st.composite
def _axes(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Size, kernel, stride, dilation and padding, at each side, of one to three axes; at least one window fits."""
    found: list[tuple[int, ...]] = []
    for _ in range(draw(st.integers(1, 3))):
        size, kernel, stride, dilation = (draw(st.integers(1, 5)) for _ in range(4))
        begin, end = (draw(st.sampled_from([0, 0, 0, 1, 2, 5])) for _ in range(2))
        size += max(0, (kernel - 1) * dilation + 1 - begin - end - size)
        found.append((size, kernel, stride * draw(st.sampled_from([1, 1, 1, 3])), dilation, begin, end))
    return found


@given(_axes(), st.integers(1, 3), st.booleans(), st.data())
def test_columns_are_what_windows_see(axes, channels, at_once, data):
    resolved = tuple(
        Window((kernel,), (stride,), (dilation,), (begin, end), "NOTSET", False).resolve((size,))[0]
        for size, kernel, stride, dilation, begin, end in axes
    )
    rows = resolved[0].out
    start = data.draw(st.integers(0, rows - 1))
    count = data.draw(st.integers(1, rows - start))
    check_columns(resolved, channels, at_once, start, count)


def check_columns(resolved, channels, at_once, start, count):
    """Beside one index after the other, of an image with zeros around it."""
    shape = (channels, *[a.size for a in resolved])
    image = np.arange(1, 1 + math.prod(shape), dtype=np.float32).reshape(shape)
    padded = np.pad(image, [(0, 0), *[(a.begin, a.end + a.reach + a.stride) for a in resolved]])
    taps = [np.arange(a.kernel) * a.dilation for a in resolved]
    places = [np.arange(a.out) * a.stride for a in resolved]
    places[0] = places[0][start : start + count]
    index = np.ix_(np.arange(channels), *[np.add.outer(t, p).reshape(-1) for t, p in zip(taps, places)])
    interleaved = padded[index].reshape(channels, *[n for t, p in zip(taps, places) for n in (len(t), len(p))])
    rank = len(resolved)
    expected = interleaved.transpose(0, *range(1, 2 * rank, 2), *range(2, 2 * rank + 1, 2))
    with tuned("irc.runtime.kernels.windows.PACE_ELEMENTS", 1 << 30 if at_once else 0):
        windows.storage.cache_clear()
        found = windows.columns(image, tuple(resolved), start, count)
    windows.storage.cache_clear()
    np.testing.assert_array_equal(found, expected)


@st.composite
def conv_cases(draw):
    rank = draw(st.integers(1, 3))
    kernel = draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank))
    strides = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    dilations = draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank))
    group, per_group, features = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    sizes = [draw(st.integers(1, 5)) + r - 1 for r in reach]
    attrs = {"group": group, "strides": strides, "dilations": dilations, "kernel_shape": kernel}
    if draw(st.booleans()):
        attrs["pads"] = draw(st.lists(st.integers(0, 3), min_size=2 * rank, max_size=2 * rank))
    else:
        attrs["auto_pad"] = draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER", "VALID"]))
        if attrs["auto_pad"] != "VALID":  # ONNX Runtime refuses it, see test_same_padding_of_dilated_conv
            attrs["dilations"] = [1] * rank
    x = values(draw(st.integers(1, 2)), group * per_group, *sizes)
    return x, values(group * features, per_group, *kernel), values(group * features), attrs


@given(conv_cases())
@examples(60)
def test_conv_property(case):
    x, w, b, attrs = case
    check_against_ort("Conv", [x, w, b], attrs, 11)


TRANSPOSE = {
    "plain": ((2, 4, 5, 6), (4, 3, 3, 3), {}),
    "stride 2": ((2, 4, 5, 6), (4, 3, 2, 2), {"strides": [2, 2]}),
    "pads, groups, dilations": (
        (2, 4, 5, 6),
        (4, 3, 3, 2),
        {"group": 2, "pads": [1, 0, 2, 1], "strides": [2, 3], "dilations": [2, 1]},
    ),
    "output_padding": ((1, 2, 4, 4), (2, 3, 3, 3), {"strides": [3, 2], "output_padding": [2, 1], "pads": [1, 1, 1, 1]}),
    "output_shape": ((1, 2, 4, 4), (2, 3, 3, 3), {"strides": [3, 2], "output_shape": [10, 8]}),
    "output_shape, output_padding": (
        (1, 2, 3, 3),
        (2, 2, 3, 3),
        {"strides": [3, 2], "output_shape": [10, 8], "output_padding": [1, 1]},
    ),
    "output_shape, same upper": (
        (1, 2, 4, 4),
        (2, 3, 3, 3),
        {"strides": [3, 2], "output_shape": [11, 8], "auto_pad": "SAME_UPPER"},
    ),
    "same upper": ((1, 2, 4, 5), (2, 3, 3, 4), {"strides": [2, 3], "auto_pad": "SAME_UPPER"}),
    "same lower": ((1, 2, 4, 5), (2, 3, 3, 4), {"strides": [2, 3], "auto_pad": "SAME_LOWER"}),
    "valid": ((1, 2, 4, 5), (2, 3, 3, 4), {"strides": [2, 3], "auto_pad": "VALID"}),
    "depthwise": ((1, 3, 4, 5), (3, 1, 4, 4), {"strides": [2, 2], "group": 3, "pads": [1, 1, 1, 1]}),
    "1-D": ((2, 4, 9), (4, 3, 5), {"strides": [3], "pads": [2, 1]}),
    "3-D": ((1, 2, 3, 4, 3), (2, 3, 2, 3, 2), {"strides": [2, 1, 3], "pads": [0, 1, 1, 1, 0, 0]}),
}


@pytest.mark.parametrize("opset", [7, 11, 22])
@pytest.mark.parametrize("case", TRANSPOSE)
def test_conv_transpose(case, opset):
    x, w, attrs = TRANSPOSE[case]
    group = attrs.get("group", 1)
    inputs = [values(*x), values(*w), values(w[1] * group)]
    check_against_ort("ConvTranspose", inputs, {"kernel_shape": list(w[2:]), **attrs}, opset)


def test_conv_transpose_in_blocks(tune):

    inputs, attrs = [values(2, 4, 7, 5), values(4, 2, 3, 3)], {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 1]}
    (whole,) = run_kernel("ConvTranspose", inputs, attrs, 11)
    tune("irc.runtime.kernels.convolution.COLUMN_ELEMENTS", 500)
    (parts,) = run_kernel("ConvTranspose", inputs, attrs, 11)
    np.testing.assert_allclose(parts, whole, rtol=1e-5, atol=1e-5)


@given(st.data())
@examples(40)
def test_conv_transpose_is_the_transpose_of_conv(data):
    """<conv(x), y> = <x, conv_transpose(y)> for every x and y, with the same weights."""
    x, w, _, attrs = data.draw(conv_cases())
    x, w = x.astype(np.float64), w.astype(np.float64)
    (forward,) = run_kernel("Conv", [x, w], attrs, 11)
    y = np.random.default_rng(1).standard_normal(forward.shape)
    rank = x.ndim - 2
    pads = attrs.get("pads")
    if pads is None:  # as Conv resolves auto_pad, which ConvTranspose resolves in its own way
        from irc.runtime.kernels.windows import Window

        window = Window(None, tuple(attrs["strides"]), tuple(attrs["dilations"]), None, attrs["auto_pad"], False)
        axes = window.resolve(x.shape[2:], w.shape[2:])
        pads = [a.begin for a in axes] + [a.end for a in axes]
    full = [
        (o - 1) * s + (k - 1) * d + 1 - pads[i] - pads[rank + i]
        for i, (o, s, k, d) in enumerate(
            zip(forward.shape[2:], attrs["strides"], attrs["kernel_shape"], attrs["dilations"], strict=True)
        )
    ]
    back = {k: v for k, v in attrs.items() if k != "auto_pad"} | {
        "pads": pads,
        "output_padding": [n - f for n, f in zip(x.shape[2:], full, strict=True)],
    }
    (transposed,) = run_kernel("ConvTranspose", [y, w], back, 11)
    assert transposed.shape == x.shape
    np.testing.assert_allclose((forward * y).sum(), (x * transposed).sum(), rtol=1e-9, atol=1e-9)


def test_deform_conv_against_the_definition():
    """Two offset groups, fractional offsets and a mask, against the formula written as loops."""
    x, w = values(1, 4, 5, 6), values(3, 4, 2, 2)
    offset, mask = values(1, 2 * 4 * 2, 4, 5), values(1, 2 * 4, 4, 5)
    (ours,) = run_kernel("DeformConv", [x, w, offset, None, mask], {"offset_group": 2}, 19)

    def at(c: int, y: float, z: float) -> float:
        total = 0.0
        for i in range(5):
            for j in range(6):
                total += max(0.0, 1 - abs(y - i)) * max(0.0, 1 - abs(z - j)) * x[0, c, i, j]
        return total

    expected = np.zeros((1, 3, 4, 5))
    for oy, ox, c, i, j in np.ndindex(4, 5, 4, 2, 2):
        tap = (c // 2) * 4 + i * 2 + j
        value = at(c, oy + i + offset[0, 2 * tap, oy, ox], ox + j + offset[0, 2 * tap + 1, oy, ox])
        expected[0, :, oy, ox] += w[:, c, i, j] * value * mask[0, tap, oy, ox]
    assert_same([ours], [expected.astype(np.float32)])


BAD = {
    "channels": ("Conv", [values(1, 3, 5, 5), values(4, 2, 3, 3)], {}, "channels"),
    "groups": ("Conv", [values(1, 4, 5, 5), values(3, 2, 3, 3)], {"group": 2}, "groups"),
    "no group": ("Conv", [values(1, 4, 5, 5), values(3, 4, 3, 3)], {"group": 0}, "groups"),
    "bias": ("Conv", [values(1, 3, 5, 5), values(4, 3, 3, 3), values(3)], {}, "bias"),
    "rank": ("Conv", [values(1, 3, 5), values(4, 3, 3, 3)], {}, "kernel|spatial"),
    "no spatial axes": ("Conv", [values(1, 3), values(4, 3)], {}, "dimensions"),
    "scalar": ("Conv", [values(), values(4, 3, 1)], {}, "dimensions|spatial"),
    "window too large": ("Conv", [values(1, 3, 5, 5), values(4, 3, 7, 3)], {}, "does not fit"),
    "kernel_shape": ("Conv", [values(1, 3, 5, 5), values(4, 3, 3, 3)], {"kernel_shape": [3, 2]}, "kernel_shape"),
    "empty kernel": ("Conv", [values(1, 3, 5, 5), values(4, 3, 1, 0)], {}, "at least 1"),
    "stride 0": ("Conv", [values(1, 3, 5, 5), values(4, 3, 3, 3)], {"strides": [0, 1]}, "strides"),
    "negative pad": ("Conv", [values(1, 3, 5, 5), values(4, 3, 3, 3)], {"pads": [0, -1, 0, 0]}, "pads"),
    "too many pads": ("Conv", [values(1, 3, 5, 5), values(4, 3, 3, 3)], {"pads": [1, 1, 1]}, "pads"),
    "auto_pad": ("Conv", [values(1, 3, 5, 5), values(4, 3, 3, 3)], {"auto_pad": "SAME"}, "auto_pad"),
    "huge": ("ConvTranspose", [values(1, 1, 2, 2), values(1, 1, 1, 1)], {"output_shape": [1 << 30, 1 << 30]}, "GiB"),
    "output_padding": ("ConvTranspose", [values(1, 1, 2), values(1, 1, 1)], {"output_padding": [-1]}, "output_padding"),
    "negative result": ("ConvTranspose", [values(1, 1, 2), values(1, 1, 1)], {"pads": [2, 2]}, "negative"),
    "offset": ("DeformConv", [values(1, 1, 3, 3), values(1, 1, 2, 2), values(1, 8, 2, 3)], {}, "offset"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_operands_are_errors(case):
    op_type, inputs, attrs, message = BAD[case]
    with pytest.raises(Error, match=message):
        run_kernel(op_type, inputs, attrs, None)
