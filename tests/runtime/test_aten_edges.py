"""Values, layouts and refusals of torch operators at the edges of what they take, which the sweep against torch found.

Expected results are those of torch 2.13; ``tests/differential/test_corners.py`` asks torch for them again.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irc
from irc.errors import Error
from tests.runtime.helpers import f32, graph_of
from tests.runtime.test_aten import op

NAN, INF = float("nan"), float("inf")


def number(value: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def of(dtype: Any, *values: Any) -> np.ndarray:
    return np.array(values, dtype)


def halves(*values: Any) -> np.ndarray:
    return np.array(values, np.float16)


IMAGE = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
SMALL = np.array([1e-12 + 3e-13j, -2e-20j, 4 + 3j], np.complex64)
HUGE_INTEGERS = of(np.int64, 2**60 + 1, 2**60 + 3, -7, -2).reshape(1, 1, 2, 2)
ROTATED = np.array([[0.5, 0.25], [0.125, 1]], np.float16)
COLUMNS = np.arange(6, dtype=np.float32).reshape(3, 2).T

VALUES: list[tuple[str, tuple[Any, ...], Any]] = [
    # strings: negative places count from the end
    ("find", ("banana", "n", -3, -1), 4),
    ("find", ("banana", "a", -40, -1), 1),
    ("rfind", ("banana", "an", -6, -2), 3),
    ("index", ("banana", "na", -2, -1), 4),
    ("rindex", ("banana", "b", -6, 3), 0),
    ("count", ("banana", "a", 0, -9), 0),
    # numbers, and how they become elements
    ("tensor", (0.3, 7, None, False), number(np.float32(0.3), np.float64)),
    ("as_tensor", (1.1, 7, None), number(np.float32(1.1), np.float64)),
    ("linspace", (1 + 1j, 3, 3, None, None, None, None), of(np.complex64, 1 + 1j, 2 + 0.5j, 3)),
    ("linspace", (0.5, 9, 1, 11, None, None, None), of(bool, True)),
    ("linspace", (0, NAN, 0, 3, None, None, None), of(np.int32)),
    ("ldexp", (halves(1.5, 3), of(np.int64, 2, -1)), halves(6, 1.5)),
    ("ldexp", (f32(1e-30, -3), of(np.int64, 200, -400)), f32(1e-30 * 2.0**200, -0.0)),
    ("ldexp", (of(np.float64, 1, 3), f32(0.5, -0.25)), of(np.float64, 2**0.5, 3 * 2**-0.25)),
    ("log1p", (SMALL,), np.array([1e-12 + 3e-13j, -2e-20j, np.log(5 + 3j)], np.complex64)),
    ("elu", (f32(0.0, -0.0, 2), -3, 1, -1), f32(0.0, -0.0, 2)),
    ("elu", (f32(0.0, -0.0), 2, -1, 1), f32(-0.0, 0.0)),
    ("trapezoid", (of(np.int8, 90, 90, 90, 90), 1, -1), number(398)),
    ("trapezoid", (of(np.uint8, 200, 1, 200), 2, 0), number((401 - 72) * 2)),
    # reductions and norms
    ("std", (np.zeros((0, 2)), None, -3, False), number(NAN, np.float64)),
    ("embedding_renorm_", (np.array([[3j, 4]], np.complex64), of(np.int64, 0), 1.0, 2.0), np.array([[0.6j, 0.8]], "F")),
    ("_weight_norm", (np.eye(2, dtype="f"), np.array([[2.0, 3]], "f"), 1), np.diag(f32(2, 3))),
    ("_weight_norm", (np.ones((2, 2, 2), "f"), np.full((2, 1, 1), 2, "f"), 1), np.ones((2, 2, 2), "f")),
    ("batch_norm", (f32(5, 5).reshape(2, 1), None, f32(7), None, None, True, 0.1, 0.0, False), [[7], [7]]),
    ("avg_pool2d", (HUGE_INTEGERS, [1, 2], [], [0], False, True, None), [[[[2**60 + 2], [-4]]]]),
    ("avg_pool2d", (HUGE_INTEGERS, [1, 2], [], [0], False, True, -2), [[[[-(2**60) - 2], [4]]]]),
    (
        "embedding_bag",
        (f32(3, NAN, 5).reshape(3, 1), of(np.int64, 0, 1, 2), of(np.int64, 0), False, 2, False, None, False),
        None,
    ),
    ("linalg_matrix_power", (ROTATED, 2), np.array([[0.28125, 0.375], [0.1875, 1.03125]], np.float16)),
    ("linalg_cholesky_ex", (np.array([[4.0, 0], [0, NAN]]), False, False), None),
    # losses
    ("huber_loss", (f32(0, 4), of(np.float64, 0.5, 0), 0, 2.0), f32(0.125, 6)),
    ("huber_loss", (halves(0, 4), f32(0.5, 0), 2, 1.0), number(3.625, np.float16)),
    ("cosine_embedding_loss", (of(np.uint8, 3, 4), of(np.uint8, 6, 8), number(1, np.int64), 0.0, 0), None),
    ("cosine_similarity", (f32(1e30), of(np.float16, 2), 0, 1e-8), number(1)),
    ("binary_cross_entropy_with_logits", (f32(0), of(np.float64, 1), None, None, 0), of(np.float64, np.log(2))),
    ("binary_cross_entropy_with_logits", (f32(0), halves(1), None, None, 2), halves(np.log(2)).reshape(())),
    # linear algebra
    ("addr", (number(3, np.float64), f32(1, 2), f32(2), 1, -1), np.array([[1.0], [-1]])),
    ("addr", (of(bool, True).reshape(1, 1), of(bool, True), of(bool, True, False), 0, 1), np.array([[True, False]])),
    ("linalg_vecdot", (number(2), number(3), -1), number(6)),
    ("float_power", (f32(-INF, 4), 0.5), of(np.float64, NAN, 2)),
    ("logit", (f32(0.5, 0.75), NAN), f32(0, np.log(3))),
    (
        "embedding_renorm_",
        (np.array([[3.0, 4], [6, 8]]), of(np.int64, -1, 1), 1.0, 2.0),
        np.array([[3, 4], [0.6, 0.8]]),
    ),
    ("constant_pad_nd", (of(np.int64, 1, 2), [-1, 0], INF), of(np.int64, 2)),
    # images
    ("upsample_bilinear2d", (IMAGE, [2, 5], False, 7.5, None), None),
    ("upsample_linear1d", (IMAGE[0], [3], False, 2.5), IMAGE[0]),
    ("_upsample_bilinear2d_aa", (IMAGE, [2, 3], True, 3.5, 0.5), IMAGE),
    # dropout of all or nothing
    ("feature_alpha_dropout", (of(np.int16, 3, 4), 1.0, True), of(np.int16, 0, 0)),
    ("feature_dropout", (f32(1, 2), 1.0, True), f32(0, 0)),
    ("dropout", (of(bool, True, False), 1.0, True), of(bool, False, False)),
]
"""None: only torch is asked."""

REFUSED: list[tuple[str, tuple[Any, ...], str]] = [
    ("normal_", (f32(1), 0.0, -2.0, None), "deviation -2.0 is negative"),
    ("normal_", (f32(1), 0.0, NAN, None), "not a number"),
    ("uniform_", (f32(1, 2), 2.0, 1.5, None), "no number from 2.0 to 1.5"),
    ("normal", (f32(1), np.ones(1, "F"), None), "a deviation is a real number"),
    ("multinomial", (np.ones((2, 1, 2)), 1, True, None), "a vector or rows of a matrix"),
    ("slice_scatter", (f32(1, 2), f32(2, 1), 0, None, None, -1), "a positive step"),
    ("rrelu", (f32(1), 0.5, 0.25, False, None), "cannot draw slopes"),
    ("dropout", (of(np.int64, 1), 0.5, True), "cannot be written into a tensor of int64"),
    ("native_dropout", (of(bool, True), 0.5, True), "cannot be written into a tensor of bool"),
    ("feature_alpha_dropout", (np.ones((1, 2), np.uint8), 0.5, True), "cannot be written into a tensor of uint8"),
    ("one_hot", (of(np.int64), -1), "number of classes must be given"),
    ("copy_", (of(np.int64, 1), NAN, False), "nan does not fit"),
    ("upsample_nearest2d", (IMAGE, [4, 4], [2.0, 2.0]), "exactly one of"),
    ("adaptive_avg_pool3d", (np.ones((1, 2, 2, 2), "f"), [2]), "the result has 3 sizes, not 1"),
    ("avg_pool2d", (IMAGE, [1, 2], [], [0], False, True, 0), "not divided by 0"),
    ("huber_loss", (of(np.int64, 1), of(np.int64, 2), 0, 1.0), "not defined on integers"),
    ("huber_loss", (f32(1), f32(2), 0, 0.0), "up to a distance above 0"),
    ("cosine_similarity", (f32(1), f32(2), 0, -1.0), "must not be negative"),
    ("softshrink", (f32(1), -0.5), "must be finite, not negative"),
    ("softshrink", (f32(1), INF), "must be finite, not negative"),
    ("rrelu", (f32(1), 0.5, INF, False, None), "cannot draw slopes"),
    ("exponential_", (f32(1), NAN, None), "a rate above 0"),
    ("uniform_", (f32(1), 0.0, 1e300, None), "does not fit"),
    ("fill", (of(np.uint8, 1), -0.5), "does not fit"),
    ("copy_", (of(np.uint8, 1), -2.0, False), "does not fit"),
    ("cdist", (np.ones((2, 3)), np.ones((2, 3)), 2.0, 3), "no mode 3"),
    ("cdist", (np.ones((2, 3)), np.ones((2, 1)), 2.0, None), "3 and 1 coordinates"),
    ("pdist", (np.ones((2, 3)), NAN), "no distances by p"),
    ("addr", (of(np.int64, 1).reshape(1, 1), of(np.int64, 1), of(np.int64, 1), 1, 0.5), "multiplied by integers"),
    ("linalg_matrix_norm", (np.ones((2, 2), np.int32), 1.0, [-2, -1], False, 7), "not defined on integers"),
    ("linalg_norm", (np.ones((2, 2, 2)), None, [0, 1, 2], False, None), "of one dimension or of two"),
    ("unique_consecutive", (np.ones((2, 0)), False, False, 0), "no elements to compare"),
    ("tensor_split", (f32(1, 2), number(1, np.int32), 0), "places to split at are of int64"),
    ("reflection_pad1d", (f32(1, 2, 3), [1, 1]), "expected 2 or 3 dimensions"),
    ("replication_pad2d", (np.ones((2, 1, 1, 2, 2)), [1, 1, 1, 1]), "expected 3 or 4 dimensions"),
    ("grid_sampler_3d", (np.ones((1, 1, 1, 1, 1)), np.ones((1, 1, 1, 1, 3)), 2, 0, False), "not of volumes"),
    ("conv_transpose1d", (np.ones((1, 1, 3)), np.ones((1, 1, 2)), None, [2], [0], [2], 1, [1]), "below the stride"),
    ("im2col", (np.ones((1, 1, 3, 3)), [2, 2], [1], [0, 0], [1, 1]), "images need 2 entries"),
    ("cholesky_inverse", (np.array([[1.0, 0], [5, 0]]), False), "a 0 on its diagonal"),
    ("nanmean", (f32(1, 2), [0], False, 4), "a mean is a float"),
    ("fft_ifft", (f32(1, 2), -1, 0, None), "no Fourier transform of -1"),
    ("flipud", (number(1),), "no dimension 0"),
    ("fliplr", (f32(1, 2),), "no dimension 1"),
    ("__interpolate", (IMAGE, [4, 4], None, "nearest", True, None, False), "align_corners means nothing"),
]

STRIDES: list[tuple[str, tuple[Any, ...], tuple[int, ...]]] = [
    ("isclose", (COLUMNS, COLUMNS.copy(), 1e-5, 1e-8, False), (1, 2)),
    ("isclose", (np.ones((2, 3)), np.asfortranarray(np.ones((2, 3))), 1e-5, 1e-8, False), (3, 1)),
    ("rot90", (COLUMNS, 4, [0, 1]), (3, 1)),
    ("rot90", (COLUMNS, -2, [0, 1]), (1, 2)),
    ("rot90", (COLUMNS, 1, [0, 1]), (2, 1)),
    ("pow", (2.5, COLUMNS), (3, 1)),
    ("pow", (COLUMNS, 2.5), (1, 2)),
    ("mse_loss", (COLUMNS, np.ones((2, 3), "f"), 0), (1, 2)),
    ("l1_loss", (np.ones((2, 3), "f"), COLUMNS, 0), (3, 1)),
    ("smooth_l1_loss", (COLUMNS, COLUMNS, 0, 0.5), (1, 2)),
    ("huber_loss", (COLUMNS, COLUMNS, 0, 0.5), (1, 2)),
    ("margin_ranking_loss", (np.ones((2, 3), "f"), np.ones((2, 3), "f"), COLUMNS, 0.5, 0), (1, 2)),
    ("pad", (COLUMNS, [-1, 0], "constant", None), (1, 2)),
    ("pad", (IMAGE.transpose(0, 3, 1, 2), [1, 1], "constant", None), None),
    ("pad", (IMAGE.transpose(0, 3, 1, 2), [0, 1, 1, 0], "circular", None), (18, 6, 3, 1)),
    (
        "conv1d",
        (np.ones((1, 2, 4), "f"), np.ones((3, 2, 2), "f").transpose(0, 2, 1), None, [1], [0], [1], 1),
        (9, 1, 3),
    ),
    (
        "conv1d",
        (np.ones((2, 4, 1), "f").transpose(0, 2, 1), np.ones((3, 1, 2), "f"), None, [1], [0], [1], 1),
        (9, 1, 3),
    ),
    (
        "conv1d",
        (np.ones((2, 4, 2), "f").transpose(0, 2, 1), np.ones((3, 2, 2), "f"), None, [1], [0], [1], 1),
        (9, 3, 1),
    ),
]


def copies(arguments: tuple[Any, ...]) -> list[Any]:
    """Arguments in memory of their own, each laid out as before."""
    return [np.copy(a, "K") if isinstance(a, np.ndarray) else a for a in arguments]


@pytest.mark.parametrize(("kind", "arguments", "expected"), [c for c in VALUES if c[2] is not None])
def test_values(kind: str, arguments: tuple[Any, ...], expected: Any) -> None:
    with np.errstate(all="ignore"):
        found = op(kind, *copies(arguments))
    if not isinstance(expected, list):
        assert np.asarray(found).dtype == np.asarray(expected).dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    if np.asarray(found).dtype.kind == "f" and not np.isnan(found).any():
        np.testing.assert_array_equal(np.signbit(found), np.signbit(np.asarray(expected, float)))


@pytest.mark.parametrize(("kind", "arguments", "message"), REFUSED)
def test_refusals(kind: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Error, match=message):
        op(kind, *copies(arguments))


@pytest.mark.parametrize(("kind", "arguments", "expected"), [c for c in STRIDES if c[2] is not None])
def test_strides(kind: str, arguments: tuple[Any, ...], expected: tuple[int, ...]) -> None:
    assert op("stride", op(kind, *arguments)) == list(expected)


def test_what_is_circular_is_not_made_of_nothing() -> None:
    with pytest.raises(Error, match=r"^IRC424: .*leaves nothing of"):
        op("pad", np.ones((2, 3), np.float32), [2, -3], "circular", None)


def test_maxima_of_bags_are_the_first_numbers() -> None:
    """What is not a number is the maximum if it comes first, and else is passed over."""
    weight = f32(3, 1, NAN, NAN, 5, 2).reshape(3, 2)
    found, _, _, rows = op("embedding_bag", weight, of(np.int64, 0, 1, 2), of(np.int64, 0), False, 2)
    np.testing.assert_array_equal(found, [[5, 2]])
    np.testing.assert_array_equal(rows, [[2, 2]])
    found, _, _, rows = op("embedding_bag", weight, of(np.int64, 1, 0), of(np.int64, 0), False, 2)
    np.testing.assert_array_equal(found, [[NAN, NAN]])
    np.testing.assert_array_equal(rows, [[1, 1]])


def test_channels_without_variance() -> None:
    """What lies apart from the mean is infinitely far away; torch's answer depends on the layout."""
    x = f32(1, 3, 2).reshape(3, 1)
    with np.errstate(all="ignore"):
        found = op("batch_norm", x, None, f32(7), f32(2), f32(0), False, 0.1, 0.0, False)
    np.testing.assert_array_equal(found, [[-INF], [INF], [NAN]])


def test_cells_of_several_element_types_have_the_common_one() -> None:
    x, h = np.ones((2, 3), np.float32), np.ones((2, 2))
    for kind, gates in (("gru_cell", 3), ("rnn_tanh_cell", 1)):
        weights = np.ones((gates * 2, 3), np.float32), np.ones((gates * 2, 2))
        assert op(kind, x, h, *weights).dtype == np.float64


def test_exponentials_of_small_floats() -> None:
    found = op("linalg_matrix_exp", np.array([[0, 1], [0, 0]], ml_dtypes.bfloat16))
    assert found.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(np.asarray(found, np.float32), [[1, 1], [0, 1]])


def test_soft_margins_of_complex_numbers() -> None:
    x, t = np.array([1 + 1j, -2j], np.complex64), np.array([1, 1j], np.complex64)
    np.testing.assert_allclose(op("soft_margin_loss", x, t, 0), np.log(1 + np.exp(-t * x)), rtol=1e-6)


def test_windows_of_integers_leave_spectra_in_the_precision_of_the_signal() -> None:
    x, window = np.arange(8, dtype=np.float32), of(np.int32, 1, 2, 2, 1)
    found = op("stft", x, 4, 2, None, window, False, None, True)
    assert found.dtype == np.complex64
    np.testing.assert_allclose(found[:, 0], np.fft.rfft(x[:4] * window), rtol=1e-6)


@pytest.mark.parametrize("passes", ["", "default"])
def test_powers_of_zero_by_declared_types(passes: str) -> None:
    """Numbers of any declared type have the arithmetic of tensors; integers and floats that of Python."""
    text = """graph(%a : {0}, %b : {1}):
  %r : float = aten::pow(%a, %b)
  return (%r)
"""
    anything = irc.compile(graph_of(text.format("Scalar", "Scalar")), passes=passes)
    assert list(anything.run({"a": 0, "b": -3}).values()) == [INF]
    for types in (("int", "int"), ("float", "int"), ("float", "float")):
        model = irc.compile(graph_of(text.format(*types)), passes=passes)
        with pytest.raises(Error, match="cannot be raised to the power -3"):
            model.run({"a": 0, "b": -3} if types[0] == "int" else {"a": 0.0, "b": -3 if types[1] == "int" else -3.0})
