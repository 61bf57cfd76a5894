"""Resize and Upsample against ONNX Runtime and the definitions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from irc.errors import Error
from irc.runtime.kernels.resize import COORDINATES, NEAREST, Side
from tests.effort import examples
from tests.kernels.helpers import assert_same, check_against_ort, run_kernel, values

ROUNDING = [n for n in NEAREST if n != "simple"]


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


SCALES = [(1, 1, 2, 2), (1, 1, 3, 2), (1, 1, 1.5, 2.3), (1, 1, 0.6, 0.5), (1, 1, 2, 0.4), (2, 1, 1, 3), (1, 1, 1, 1)]


def exact_coordinate(coordinates: str, i: int, size: int, out: int) -> Fraction:
    """The specification's formulas, for sizes that are given; an axis that keeps its size stays as it is."""
    half, ratio = Fraction(1, 2), Fraction(size, out)
    if size == out:
        return Fraction(i)
    if coordinates == "align_corners":
        return Fraction(i * (size - 1), out - 1) if out > 1 else Fraction(0)
    if coordinates == "pytorch_half_pixel" and out == 1:
        return Fraction(0)
    return {"asymmetric": i * ratio, "tf_half_pixel_for_nn": (i + half) * ratio}.get(
        coordinates, (i + half) * ratio - half
    )


EXACT_ROUNDING = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round_prefer_floor": lambda c: math.ceil(c - Fraction(1, 2)),
    "round_prefer_ceil": lambda c: math.floor(c + Fraction(1, 2)),
}


@pytest.mark.parametrize("nearest_mode", ROUNDING)
@pytest.mark.parametrize("coordinates", [c for c in COORDINATES if c != "tf_crop_and_resize"])
def test_nearest_for_all_sizes(coordinates, nearest_mode):
    """Which element is nearest must not depend on rounding errors (ONNX Runtime's does: 26 to 64, element 32)."""
    attrs = {"coordinate_transformation_mode": coordinates, "nearest_mode": nearest_mode}
    sizes = [(n, m) for n in (1, 2, 3, 5, 7, 9, 11, 12, 20, 26) for m in (1, 2, 3, 4, 7, 10, 12, 24, 26, 28, 64)]
    for size, out in [*sizes, (5000, 7), (49, 4097)]:
        x = np.arange(size, dtype=np.float32).reshape(1, size)
        at = [EXACT_ROUNDING[nearest_mode](exact_coordinate(coordinates, i, size, out)) for i in range(out)]
        version = 19 if coordinates == "half_pixel_symmetric" else 11
        (found,) = run_kernel("Resize", [x, floats(), floats(), np.array([1, out])], attrs, version)
        assert found.tolist() == [np.clip(at, 0, size - 1).tolist()], (size, out)


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_sizes_that_keep_the_ratio_are_rounded_from_exact_ones(policy):
    """6 by 10 that become 3 by n are scaled by 1/2; 7 by 3 to 5 by 2, by 5/7 or 2/3."""
    for shape, sizes in (((6, 10), (3, 9)), ((7, 3), (5, 2)), ((26, 13), (64, 40)), ((3, 3), (1, 7))):
        factor = (min if policy == "not_larger" else max)(Fraction(s, n) for s, n in zip(sizes, shape))
        expected = [math.floor(factor * n + Fraction(1, 2)) for n in shape]
        x = values(*shape)
        attrs = {"mode": "nearest", "keep_aspect_ratio_policy": policy}
        (found,) = run_kernel("Resize", [x, floats(), floats(), np.array(sizes)], attrs, 18)
        assert list(found.shape) == expected


def misses_whole(coordinates: str, size: int, out: int) -> bool:
    """Whether a coordinate is whole, but not if it is computed in float32 with a rounded scale."""
    side = Side(size, out, np.float32(out) / np.float32(size), out)
    exact = [exact_coordinate(coordinates, i, size, out) for i in range(out)]
    rounded = [COORDINATES[coordinates](np.float32(i), side) for i in range(out)]
    return any(a.denominator == 1 and a != Fraction(float(b)) for a, b in zip(exact, rounded, strict=True))


@st.composite
def resize_cases(draw):
    opset = draw(st.sampled_from([11, 13, 18, 19]))
    mode = draw(st.sampled_from(["nearest", "linear", "cubic"]))
    coordinates = set(COORDINATES) - {"tf_crop_and_resize", "half_pixel_symmetric"}
    if opset >= 13:
        coordinates.remove("tf_half_pixel_for_nn")
    attrs = {"mode": mode, "coordinate_transformation_mode": draw(st.sampled_from(sorted(coordinates)))}
    if mode == "nearest":
        attrs["nearest_mode"] = draw(st.sampled_from(ROUNDING))
    if mode == "cubic":
        attrs["exclude_outside"] = draw(st.integers(0, 1))
        attrs["cubic_coeff_a"] = draw(st.sampled_from([-0.75, -0.5]))
    if mode != "nearest" and opset >= 18:
        attrs["antialias"] = draw(st.integers(0, 1))
        if attrs["antialias"]:  # with which ONNX Runtime computes all coordinates in this way
            attrs["coordinate_transformation_mode"] = "half_pixel"
    shape = [draw(st.integers(1, 9)) for _ in range(2)]
    x = values(1, 2, *shape)
    if draw(st.booleans()):
        scales = draw(
            st.lists(st.sampled_from([0.3, 0.5, 0.6, 0.7, 1.0, 1.3, 1.5, 2.0, 2.3, 3.0]), min_size=2, max_size=2)
        )
        outs = [int(np.float32(s) * np.float32(n)) for s, n in zip(scales, shape, strict=True)]
        assume(min(outs) > 0)
        # Since 19 align_corners counts with fractional sizes, which ONNX Runtime has not taken up.
        assume(opset < 19 or attrs["coordinate_transformation_mode"] != "align_corners")
        inputs = [x, None if opset >= 13 else floats(), floats(1, 1, *scales)]
    else:
        outs = draw(st.lists(st.integers(1, 20), min_size=2, max_size=2))
        inputs = [x, None if opset >= 13 else floats(), None if opset >= 13 else floats(), np.array([1, 2, *outs])]
        if attrs.get("nearest_mode") in ("floor", "ceil"):  # 7 to 1: element 3, by ONNX Runtime 2.9999998
            how = attrs["coordinate_transformation_mode"]
            assume(not any(misses_whole(how, n, m) for n, m in zip(shape, outs, strict=True)))
    # Where no size changes ONNX Runtime copies, even if the scale is 1.3 and every coordinate does change.
    # With antialiasing it does so axis by axis.
    assume(all(n != m for n, m in zip(outs, shape, strict=True)) if attrs.get("antialias") else outs != shape)
    return inputs, attrs, opset


@given(resize_cases())
@examples(150)
def test_against_ort(case):
    inputs, attrs, opset = case
    check_against_ort("Resize", inputs, attrs, opset, rtol=1e-3, atol=1e-4)


@given(st.data())
@examples(40)
def test_crop_and_resize_against_ort(data):
    mode = data.draw(st.sampled_from(["nearest", "linear", "cubic"]))
    starts = data.draw(st.lists(st.floats(-0.25, 0.5, width=32), min_size=2, max_size=2))
    ends = data.draw(st.lists(st.floats(0.625, 1.25, width=32), min_size=2, max_size=2))
    outs = data.draw(st.lists(st.sampled_from([1, 2, 3, 9, 10, 15]), min_size=2, max_size=2))  # none the input's
    attrs = {"mode": mode, "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 7.5}
    inputs = [values(1, 2, 6, 7), floats(0, 0, *starts, 1, 1, *ends), None, np.array([1, 2, *outs])]
    check_against_ort("Resize", inputs, attrs, 13, rtol=1e-3, atol=1e-3)


def test_half_pixel_symmetric_against_ort():
    attrs = {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"}
    check_against_ort("Resize", [values(1, 1, 7, 5), None, floats(1, 1, 0.6, 1.7)], attrs, 19)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.float16, np.float64, np.int64])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_dtypes(dtype, mode):
    """The result is that for float64, as the type; integers are truncated, and do not wrap where cubic overshoots."""
    x = np.random.default_rng(0).integers(0, 120, (5, 6)).astype(dtype)
    x[2, 2:4] = 127
    (ours,) = run_kernel("Resize", [x, None, floats(1.5, 2.5)], {"mode": mode}, 13)
    (exact,) = run_kernel("Resize", [x.astype(np.float64), None, floats(1.5, 2.5)], {"mode": mode}, 13)
    if np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        exact = np.clip(exact, limits.min, limits.max)
        assert np.all(np.abs(ours - exact) < 1 + 1e-4)
        assert ours.dtype == dtype
    else:
        assert_same([ours], [exact.astype(dtype)], rtol=2e-3)


def test_empty():
    assert run_kernel("Resize", [values(0, 3), None, floats(1, 2)], {}, 13)[0].shape == (0, 6)
    assert run_kernel("Resize", [values(2, 3), None, floats(1, 0.1)], {}, 13)[0].shape == (2, 0)


def test_scalar():
    x = np.array(3.5, np.float32)
    for mode in ("nearest", "linear"):
        assert_same(run_kernel("Upsample", [x, floats()], {"mode": mode}, 9), [x])


X = values(1, 4)
BAD = {
    "scales missing": ("Resize", [X], {}, 13, "exactly one"),
    "both": ("Resize", [X, None, floats(1, 2), np.array([1, 8])], {}, 13, "exactly one"),
    "number of scales": ("Resize", [X, None, floats(2)], {}, 13, "scales"),
    "number of sizes": ("Resize", [X, None, None, np.array([2])], {"axes": [0, 1]}, 18, "sizes"),
    "scales 10": ("Resize", [X, floats(2)], {}, 10, "scales"),
    "scale 0": ("Resize", [X, None, floats(1, 0)], {}, 13, "greater than 0"),
    "scale nan": ("Resize", [X, None, floats(1, np.nan)], {}, 13, "greater than 0"),
    "scale infinite": ("Upsample", [X, floats(1, np.inf)], {}, 9, "scale"),
    "negative scale": ("Upsample", [X], {"scales": [1.0, -2.0]}, 7, "greater than 0"),
    "negative size": ("Resize", [X, None, None, np.array([1, -8])], {}, 13, "resized"),
    "size from nothing": ("Resize", [values(1, 0), None, None, np.array([1, 8])], {}, 13, "resized"),
    "huge": ("Resize", [X, None, None, np.array([1 << 30, 1 << 30])], {}, 13, "GiB"),
    "axis": ("Resize", [X, None, floats(2)], {"axes": [2]}, 18, "axis"),
    "axis twice": ("Resize", [X, None, floats(2, 2)], {"axes": [1, -1]}, 18, "twice"),
    "roi missing": (
        "Resize",
        [X, None, floats(1, 2)],
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
        13,
        "roi",
    ),
    "roi nan": (
        "Resize",
        [X, floats(0, np.nan, 1, 1), floats(1, 2)],
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
        13,
        "finite",
    ),
    "mode": ("Resize", [X, None, floats(1, 2)], {"mode": "quadratic"}, 13, "mode"),
    "mode 10": ("Resize", [X, floats(1, 2)], {"mode": "cubic"}, 10, "mode"),
    "nearest_mode": ("Resize", [X, None, floats(1, 2)], {"nearest_mode": "simple"}, 13, "nearest_mode"),
    "rank of Upsample 1": ("Upsample", [X], {"height_scale": 2.0, "width_scale": 2.0}, 1, "dimensions"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_operands_are_errors(case):
    op_type, inputs, attrs, version, message = BAD[case]
    with pytest.raises(Error, match=message):
        run_kernel(op_type, inputs, attrs, version)


def test_strings_are_not_interpolated():
    x = np.array([["a", "b"]], object)
    scales = np.array([1, 2], np.float32)
    assert run_kernel("Resize", [x, None, scales], {}, 19)[0].tolist() == [["a", "a", "b", "b"]]
    with pytest.raises(Error, match="only the mode 'nearest'"):
        run_kernel("Resize", [x, None, scales], {"mode": "linear"}, 19)
    with pytest.raises(Error, match="only the mode 'nearest'"):
        run_kernel("GridSample", [x[None, None], np.zeros((1, 1, 1, 2), np.float32)], {}, 20)


@pytest.mark.parametrize("block", [1, 40, 1 << 20])
@pytest.mark.parametrize("scales", [(1, 1, 2, 3), (1, 1, 1, 2.5), (1, 1, 0.5, 1)])
def test_images_in_blocks(scales, block, tune):
    """However many are resized at a time, along whatever axes, and of what was remembered of sides of these sizes."""
    tune("irc.runtime.kernels.resize._BLOCK", block)
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 6)).astype(np.float32)
    for mode in ("linear", "cubic"):
        for _ in range(2):
            check_against_ort("Resize", [x, None, floats(*scales)], {"mode": mode}, 13, rtol=1e-4, atol=1e-5)
