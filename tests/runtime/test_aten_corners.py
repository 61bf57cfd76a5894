"""Torch operators where torch's answer is not the obvious one: what is no number, no dimension, no element.

Expected results are those of torch 2.13; ``tests/differential`` asks torch for them again.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irc.errors import Error
from tests.runtime.helpers import f32
from tests.runtime.test_aten import op

NAN, INF = float("nan"), float("inf")
OPTIONS = (None, None, None)
LEAST = -(2**63)


def number(value: Any, dtype: Any = np.float32) -> np.ndarray:
    return np.array(value, dtype)


def index(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
PLACES = f32(NAN, 0, -1.3, 0.2, 1.25, -1.25, -1.5, 2, INF, 0).reshape(1, 1, 5, 2)
ONES = np.ones((1, 2, 2), np.float32)
HALF_NAN, INFINITE = f32(1, NAN).reshape(1, 1, 2), f32(INF, 0).reshape(1, 1, 2)
NONE_CHOSEN, FIRST_CHOSEN = np.zeros((1, 1, 2), bool), np.array([[[True, False]]])
POWERS = f32(-INF, -0.0, -2, 4, INF)
BFLOATS = np.array([[1, 2, 3], [4, 5, 6]], ml_dtypes.bfloat16)

CALLS: list[tuple[str, tuple[Any, ...], Any]] = [
    # maxima
    ("max_pool2d_with_indices", (f32(1, NAN, 3, 4).reshape(1, 1, 2, 2), [2, 2], [2, 2], [0, 0], [1, 1], False),
     ([[[[NAN]]]], [[[[1]]]])),
    ("max_pool1d_with_indices", (f32(NAN, NAN, 3).reshape(1, 3), [3], [3], [0], [1], False), ([[NAN]], [[1]])),
    ("max_pool1d_with_indices", (f32(-INF, 2, 1).reshape(1, 3), [2], [1], [0], [1], False), ([[2, 2]], [[1, 1]])),
    ("adaptive_max_pool1d", (f32(NAN, 2, NAN, 1, 5, 5).reshape(1, 6), [2]), ([[NAN, 5]], [[2, 4]])),
    # ranges
    ("arange", (0, 5, 2.5, 4, *OPTIONS), [0, 2, 4]),
    ("arange", (0.9, 5, 1.5, 4, *OPTIONS), [0, 1, 2, 3, 4]),
    ("arange", (0.5, 0.6, 1, 4, *OPTIONS), []),
    ("arange", (0, 5, 2.5, 3, *OPTIONS), [0, 2]),
    # integers of 64 bits
    ("__lshift__", (1, 63), LEAST),
    ("__lshift__", (1, 64), 1),
    ("__lshift__", (3, 62), -(2**62)),
    ("__lshift__", (-5, -1), LEAST),
    ("__lshift__", (7, 10**12), 7),
    ("__rshift__", (-5, -1), -1),
    ("__rshift__", (-5, 65), -3),
    ("neg", (LEAST,), LEAST),
    ("prim::abs", (LEAST,), LEAST),
    # results without dimensions
    ("pairwise_distance", (f32(1, 2), f32(3, 4), 1.0, 0.0, False), 4),
    ("pairwise_distance", (f32(1, 2), f32(3, 4), 1.0, 0.0, True), [4]),
    ("dropout", (number(2), 1.0, True), 0),
    ("feature_dropout", (np.ones((2, 2), np.float32), 1.0, True), [[0, 0], [0, 0]]),
    ("native_dropout", (number(2), 1.0, True), (0, False)),
    ("native_dropout", (f32(2, 3), 1.0, None), ([0, 0], [False, False])),
    ("native_dropout", (f32(2, 3), 1.0, False), ([2, 3], [True, True])),
    ("native_dropout", (f32(2, 3), 0.0, None), ([2, 3], [True, True])),
    ("alpha_dropout", (number(2), 1.0, True), 0),
    ("poisson", (number(0), None), 0),
    # sorting
    ("unique_consecutive", (f32(), True, True, None), ([], [], [])),
    ("unique_consecutive", (np.zeros((0, 3), np.float32), True, True, 0), (np.zeros((0, 3)), [], [])),
    ("unique_consecutive", (f32(NAN, NAN, 1, 1), True, True, None), ([NAN, NAN, 1], [0, 1, 2, 2], [1, 1, 2])),
    ("_unique2", (f32(NAN, 1, NAN, 1), True, True, True), ([1, NAN, NAN], [1, 0, 2, 0], [2, 1, 1])),
    ("mode", (f32(1, NAN, NAN), -1, False), (1, 0)),
    ("mode", (f32(NAN), -1, True), ([NAN], [0])),
    ("mode", (f32(3, 1, 3, 1, 2), -1, False), (1, 3)),
    # attention
    ("scaled_dot_product_attention", (HALF_NAN, ONES, ONES, FIRST_CHOSEN, 0.0, False, None, False), [[[NAN] * 2]]),
    ("scaled_dot_product_attention", (HALF_NAN, ONES, ONES, NONE_CHOSEN, 0.0, False, None, False), [[[NAN] * 2]]),
    ("scaled_dot_product_attention", (ONES[:, :1], ONES, ONES, INFINITE, 0.0, False, None, False), [[[NAN] * 2]]),
    ("scaled_dot_product_attention", (ONES[:, :1], ONES, ONES, NONE_CHOSEN, 0.0, False, None, False), [[[0, 0]]]),
    ("scaled_dot_product_attention", (ONES[:, :1], ONES, ONES, FIRST_CHOSEN, 0.0, False, None, False), [[[1, 1]]]),
    # sampling: bilinear, nearest, bicubic; zeros, border, reflection
    ("grid_sampler", (IMAGE, PLACES, 0, 0, True), [[[[NAN, 3.96, 1.171875, 0, NAN]]]]),
    ("grid_sampler", (IMAGE, PLACES, 0, 1, False), [[[[6, 7.6, 3, 12, 9]]]]),
    ("grid_sampler", (IMAGE, PLACES, 0, 2, False), [[[[6, 7.7, 3, 6.5, 6]]]]),
    ("grid_sampler", (IMAGE, PLACES, 1, 0, True), [[[[0, 8, 3, 0, 0]]]]),
    ("grid_sampler", (IMAGE, PLACES, 1, 1, False), [[[[8, 8, 3, 12, 11]]]]),
    ("grid_sampler", (IMAGE, PLACES, 1, 2, True), [[[[8, 8, 3, 9, 8]]]]),
    ("grid_sampler", (IMAGE, PLACES, 1, 2, False), [[[[8, 8, 3, 8, 8]]]]),
    ("grid_sampler", (IMAGE, PLACES[:, :, :1], 2, 0, False), [[[[NAN]]]]),
    ("grid_sampler", (IMAGE, PLACES[:, :, ::4], 2, 1, False), [[[[NAN, NAN]]]]),
    ("grid_sampler", (IMAGE, PLACES[:, :, ::4], 2, 2, True), [[[[NAN, NAN]]]]),
    # sums of small floats
    ("einsum", ("i->", [BFLOATS[0]], None), 6),
    ("einsum", ("ij->j", [BFLOATS], None), [5, 7, 9]),
    ("einsum", ("ij->j", [np.full((4096, 1), 1, np.float16)], None), [4096]),
    ("einsum", ("ij", [BFLOATS], None), [[1, 2, 3], [4, 5, 6]]),
    # tensors without dimensions
    ("index_fill", (number(1), 0, index(0), 5), 5),
    ("index_fill", (number(1), -1, number(-1, np.int64), 5), 5),
    ("index_copy", (number(1), 0, index(0), number(7)), 7),
    ("index_copy", (number(1), 0, number(0, np.int64), f32(7)), 7),
    ("index_copy", (f32(1, 2), 0, index(1), number(7)), [1, 7]),
    ("index_add", (number(1), 0, index(0), number(7), 2), 15),
    ("index_add", (f32(1, 2), 0, number(1, np.int64), f32(7), 1), [1, 9]),
    ("scatter_reduce", (number(1), 0, index(0), number(7), "sum", True), 8),
    ("scatter_reduce", (number(1), 0, number(0, np.int64), number(7), "mean", True), 4),
    ("scatter_reduce", (number(1), 0, number(0, np.int64), number(7), "mean", False), 7),
    ("constant_pad_nd", (number(3), [], 9), 3),
    # masks
    ("masked_scatter", (f32(1), np.array([True, False, True]), f32(5, 6)), [5, 1, 6]),
    ("masked_scatter", (number(1), np.array([True]), f32(5, 6)), [5]),
    # powers and logarithms
    ("kl_div", (f32(1, 1, 1, 1), f32(-1, 0, 1, NAN), 0, False), [NAN, 0, -1, NAN]),
    ("kl_div", (f32(-INF, INF), f32(0, 0), 0, False), [NAN, NAN]),
    ("pow", (POWERS, 0.5), [NAN, -0.0, NAN, 2, INF]),
    ("pow_", (POWERS, 0.5), [NAN, -0.0, NAN, 2, INF]),
    ("pow", (POWERS, -0.5), [NAN, -INF, NAN, 0.5, 0]),
    ("pow", (POWERS, number(0.5)), [INF, 0, NAN, 2, INF]),
    ("pow", (POWERS.astype(np.float16), 0.5), [INF, 0, NAN, 2, INF]),
    ("pow", (index(4, 9), 0.5), [2, 3]),
    ("pow", (np.array([2j], np.complex64), 0.5), [1 + 1j]),
    ("pow", (np.array([True, False]), 1), [1, 0]),
]  # fmt: skip

REFUSALS: list[tuple[str, tuple[Any, ...], str]] = [
    ("index_add", (f32(1, 2), 0, index(-1), f32(1), 1), "out of range"),
    ("index_add", (f32(1, 2), 0, index(0, 1), f32(1), 1), r"\[1\] is given where \[2\]"),
    ("index_add", (np.zeros((2, 3)), 0, index(0), np.zeros(3), 1), "cannot be added"),
    ("index_add", (np.zeros((2, 3)), 1, index(0, 1), np.zeros((1, 2)), 1), r"where \[2, 2\]"),
    ("index_copy", (f32(1, 2), 0, index(-1), f32(1)), "out of range"),
    ("index_copy", (f32(1, 2), 0, index(0, 1), f32(1)), r"\[1\] is given where \[2\]"),
    ("index_copy", (np.zeros((2, 3)), 0, index(0), np.zeros(3)), r"\[3\] is given where \[1, 3\]"),
    ("index_copy", (number(1), 0, index(0, 0), number(7)), r"\[1\] is given where \[2\]"),
    ("index_fill", (f32(1, 2), 0, index(2), 1), "out of range"),
    ("index_fill", (f32(1, 2), 0, np.zeros((1, 2), np.int64), 1), "must be a vector"),
    ("masked_scatter", (f32(1, 2), np.array([True, False, True]), f32(5, 6)), "a mask of shape"),
    ("masked_scatter_", (f32(1), np.array([True, False, True]), f32(5, 6)), "a mask of shape"),
    ("masked_fill", (f32(1, 2), np.array([True, False, True]), 0), "a mask of shape"),
    ("masked_select", (f32(1, 2), np.array([True, False, True])), "a mask of shape"),
    ("arange", (0, 5, 0.5, 4, *OPTIONS), "no range"),
    ("pow", (np.array([True]), np.array([True])), "bools"),
    ("remainder", (np.array([True]), np.array([True])), "bools"),
    ("fmod", (np.array([True]), np.array(True)), "bools"),
    ("floor_divide", (np.array([True]), np.array([True])), "bools"),
    ("div", (np.array([True]), np.array([True]), "trunc"), "bools"),
    ("clamp", (f32(1), None, None), "bound"),
]


def copies(arguments: tuple[Any, ...]) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


@pytest.mark.parametrize(("kind", "arguments", "expected"), CALLS)
def test_results(kind: str, arguments: tuple[Any, ...], expected: Any) -> None:
    with np.errstate(all="ignore"):
        found = op(kind, *copies(arguments))
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, wanted in pairs:
        assert isinstance(one, np.ndarray | int), "a scalar of NumPy is no tensor"
        values = np.asarray(one).astype(np.complex128 if np.iscomplexobj(one) else np.float64)
        wanted = np.asarray(wanted, values.dtype)
        assert values.shape == wanted.shape
        np.testing.assert_allclose(values, wanted, rtol=1e-6)
        assert (np.signbit(values.real) == np.signbit(wanted.real))[~np.isnan(values)].all()


@pytest.mark.parametrize(("kind", "arguments", "message"), REFUSALS)
def test_refusals(kind: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Error, match=message):
        op(kind, *copies(arguments))
