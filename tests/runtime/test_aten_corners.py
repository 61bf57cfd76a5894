"""Torch operators where torch's answer is not the obvious one: what is not a number, no dimension, no element.

Expected results are those of torch 2.13; ``tests/differential`` asks torch for them again.
"""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from irc.errors import Error
from tests.runtime.helpers import f32, run
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
ONES, TALL = np.ones((1, 2, 2), np.float32), np.ones((2, 2, 2), np.float32)
HALF_NAN, INFINITE = f32(1, NAN).reshape(1, 1, 2), f32(INF, 0).reshape(1, 1, 2)
NONE_CHOSEN, FIRST_CHOSEN = np.zeros((1, 1, 2), bool), np.array([[[True, False]]])
POWERS = f32(-INF, -0.0, -2, 4, INF)
TURN = np.array([1j, 2], np.complex64)
BFLOATS = np.array([[1, 2, 3], [4, 5, 6]], ml_dtypes.bfloat16)

CALLS: list[tuple[str, tuple[Any, ...], Any]] = [
    ("_pack_padded_sequence", (np.array([[1.0, 2], [3, 4]]), index(2, 1), True), ([1, 3, 2], [2, 1])),
    ("_pad_packed_sequence", (f32(1, 3, 2), index(2, 1), True, 9.0, 3), ([[1, 2, 9], [3, 9, 9]], [2, 1])),
    ("segment_reduce", (f32(1, 2, 3), "mean", index(2, 0, 1), None, None, 0, False, None), f32(1.5, NAN, 3)),
    ("segment_reduce", (f32(1, 2, 3), "max", index(2, 1), None, None, 0, False, 2.5), f32(2.5, 3)),
    ("index_reduce", (f32(1, 2), 0, index(1, 1), f32(4, 6), "mean", True), f32(1, 4)),
    ("index_reduce", (f32(1, 2), 0, index(1, 1), f32(4, 6), "amin", False), f32(1, 4)),
    ("embedding_renorm_", (np.array([[3.0, 4], [3, 4]]), index(1), 1.0, 2.0), [[3, 4], [0.6, 0.8]]),
    ("multilabel_margin_loss", (f32(1, 0, 2), index(0, -1, 1), 1), 2 / 3),
    ("feature_alpha_dropout", (f32(1, 2), 0.5, False), f32(1, 2)),
    ("conj_physical", (np.array([1 + 2j]),), [1 - 2j]),
    ("angle", (np.array([[1j, -1], [1, -1j]]).T,), np.array([[np.pi / 2, 0], [np.pi, -np.pi / 2]])),
    ("resize_", (f32(1, 2), [2], None), f32(1, 2)),
    ("resize_as_", (f32(1, 2), f32(3, 4), None), f32(1, 2)),
    ("logaddexp", (TURN, np.array([1, 300 - 1j], np.complex64)), np.array([1.21357008 + 0.25271138j, 300 - 1j])),
    ("logaddexp", (np.array([-INF, INF, NAN + 0j]), np.array([-INF, INF, 1j])), np.array([-INF, INF, NAN + NAN * 1j])),
    ("linalg_cross", (f32(1, 0, 0), f32(0, 1, 0), -1), f32(0, 0, 1)),
    ("linalg_vecdot", (f32(1, 2), f32(3, 4), -1), number(11)),
    ("linalg_inv_ex", (np.eye(2) * 2, False), (np.eye(2) / 2, 0)),
    ("cholesky_solve", (np.ones((2, 1)), np.array([[2.0, 9], [0, 1]]), False), [[0.25], [1]]),
    ("cholesky_inverse", (np.array([[2.0, 9], [0, 1]]), False), [[0.25, 0], [0, 1]]),
    ("special_i0e", (f32(0, 1, -40),), f32(1, 0.46575961, 0.06327828)),
    ("special_i1", (f32(0, 1, -1),), f32(0, 0.5651591, -0.5651591)),
    ("special_i1e", (f32(40, -1),), f32(0.06248223, -0.20791042)),
    ("polygamma", (1, f32(1, 0.5, -0.5)), [np.pi**2 / 6, np.pi**2 / 2, np.pi**2 / 2 + 4]),
    ("polygamma", (2, np.array([1.0])), [-2.4041138063191885]),
    ("linalg_matrix_exp", (np.array([[0.0, 20], [0, 0]]),), [[1, 20], [0, 1]]),
    ("linalg_lstsq", (np.array([[1.0], [1]]), np.array([[1.0], [3]]), None, "gelsd"), ([[2]], [2], 1, [2**0.5])),
    ("chain_matmul", ([np.eye(2), np.eye(2) * 3],), np.eye(2) * 3),
    ("fake_quantize_per_tensor_affine", (f32(0.26, -9, NAN), 0.5, 2, 0, 3), f32(0.5, -1, -1)),
    ("fake_quantize_per_channel_affine", (f32(0.26, 9), f32(0.5, 1), np.int32([0, 1]), 0, 0, 3), f32(0.5, 2)),
    ("istft", (np.fft.rfft(np.ones((3, 4))).T, 4, 2, None, None, False, False, None, None, False), np.ones(8)),
    ("rrelu", (f32(-4, 2), 0.25, 0.25, True, None), f32(-1, 2)),
    # maxima
    ("max_pool2d_with_indices", (f32(1, NAN, 3, 4).reshape(1, 1, 2, 2), [2, 2], [2, 2], [0, 0], [1, 1], False),
     ([[[[NAN]]]], [[[[1]]]])),
    ("max_pool1d_with_indices", (f32(NAN, NAN, 3).reshape(1, 3), [3], [3], [0], [1], False), ([[NAN]], [[1]])),
    ("max_pool1d_with_indices", (f32(-INF, 2, 1).reshape(1, 3), [2], [1], [0], [1], False), ([[2, 2]], [[1, 1]])),
    ("adaptive_max_pool1d", (f32(NAN, 2, NAN, 1, 5, 5).reshape(1, 6), [2]), ([[NAN, 5]], [[2, 4]])),
    # positions map onto the whole input, also where the pad on one side cuts off
    ("reflection_pad1d", (f32(0, 1, 2, 3).reshape(1, 4), [-2, 2]), [[2, 3, 2, 1]]),
    ("replication_pad1d", (f32(0, 1, 2, 3).reshape(1, 4), [3, -5]), [[0, 0]]),
    ("reflection_pad2d", (np.arange(6).reshape(1, 2, 3), [-1, 1, 1, -1]), [[[4, 5, 4], [1, 2, 1]]]),
    ("replication_pad2d", (np.arange(6).reshape(1, 2, 3), [2, -1, -1, 2]), [[[3, 3, 3, 4]] * 3]),
    ("reflection_pad3d", (np.arange(8).reshape(1, 2, 2, 2), [-1, 1, 1, -1, 1, 0]),
     [[[[7, 6], [5, 4]], [[3, 2], [1, 0]], [[7, 6], [5, 4]]]]),
    ("replication_pad3d", (np.arange(8).reshape(1, 2, 2, 2), [-1, 2, 0, -1, -1, 1]), [[[[5, 5, 5]], [[5, 5, 5]]]]),
    ("pad", (f32(0, 1, 2, 3).reshape(1, 1, 4), [-4, 3], "reflect", None), [[[2, 1, 0]]]),
    ("pad", (f32(0, 1, 2, 3).reshape(1, 1, 4), [1, -4], "replicate", None), [[[0]]]),
    # the ends become integers first, what is between them last
    ("linspace", (-4.9, 3.9, 7, 3, *OPTIONS), np.int32([-4, -2, -1, 0, 0, 1, 3])),
    ("linspace", (7.9, 7.9, 1, 0, *OPTIONS), np.uint8([7])),
    ("logspace", (-1.5, 1.9, 5, 10.0, 4, *OPTIONS), [0, 0, 1, 3, 10]),
    ("logspace", (0, 3, 4, 2.5, 3, *OPTIONS), np.int32([1, 2, 6, 15])),
    # sums over what only one operand has
    ("tensordot", (np.arange(6.0).reshape(2, 3), np.ones((1, 2)), [1], [0]), [[3, 3], [12, 12]]),
    ("tensordot", (np.ones((1, 2), int), np.arange(6).reshape(3, 2), [0], [0]), [[6, 9], [6, 9]]),
    ("einsum", ("...i,j->ij", [np.arange(6.0).reshape(3, 2), np.array([1.0, 2])], None), [[6, 12], [9, 18]]),
    ("einsum", ("i...->", [np.arange(4)], None), 6),
    ("einsum", ("...,...->", [np.arange(4.0), np.array([[1.0], [2]])], None), 18.0),
    # losses of integers
    ("margin_ranking_loss", (index(1, 5), index(2, -1), index(1, -1), 1.0, 0), f32(2, 7)),
    ("hinge_embedding_loss", (index(1, 5, -3, -7), index(1, -1, 1, -1), 1.5, 0), [1, 0, -3, 8]),
    ("hinge_embedding_loss", (np.uint8([1, 5, 253]), index(1, -1, 1), 1.5, 2), 506),
    ("poisson_nll_loss", (index(1, 2), index(3, 1), True, False, 1e-8, 0), f32(-0.28171817, 5.3890561)),
    ("cosine_embedding_loss", (index(1, 5), index(2, 1), np.array(-1), 0.0, 1), number(0.61394061)),
    ("triplet_margin_loss", (index(1, 5), index(2, 1), index(0, 3), 1.0, 2.0, 1e-6, False, 0), number(2.8870378)),
    # special functions on the whole axis
    ("polygamma", (2, f32(-0.5, -2.5, 0.5, 3)), f32(-0.82879664, -0.10820405, -16.828797, -0.15411381)),
    ("polygamma", (3, f32(-0.25, -3.75)), f32(1555.7633, 1558.5201)),
    ("polygamma", (3, np.array([-3.0, 0, INF])), [INF, INF, NAN]),
    ("polygamma", (2, np.array([-3.0])), [-INF]),
    ("polygamma", (1, f32(-0.25, -3.7, 20)), f32(18.541879, 14.842425, 0.05127082)),
    ("digamma", (np.array([-1e-20, 1e-20]),), [1e20, -1e20]),
    ("lgamma", (np.array([0.9999999999, 2.0000000001]),), [5.7721571274281786e-11, 4.2278438184e-11]),
    ("special_i0e", (np.array([1e308]),), [3.989422804014327e-155]),
    ("special_i1", (np.array([1e308, -1e300]),), [INF, -INF]),
    ("logcumsumexp", (np.array([1j, 2 + 1j]), 0), np.array([1j, np.log(np.exp(1j) + np.exp(2 + 1j))])),
    ("cov", (BFLOATS, 1, None, None), np.ones((2, 2), ml_dtypes.bfloat16)),
    ("corrcoef", (BFLOATS,), np.ones((2, 2), ml_dtypes.bfloat16)),
    ("linalg_matrix_norm", (BFLOATS, 1, [-2, -1], False, None), np.array(9, ml_dtypes.bfloat16)),
    ("linalg_norm", (np.float16([[3, 0], [0, 4]]), "fro", None, False, None), number(5, np.float16)),
    ("vander", (np.float16([2, 3]), 3, False), np.float16([[4, 2, 1], [9, 3, 1]])),
    ("index_reduce", (number(3), 0, index(0), number(2), "prod", True), number(6)),
    ("fft_rfftfreq", (3, -0.0, None, *OPTIONS), f32(NAN, -INF)),
    ("xlogy", (f32(-0.0), f32(0.5)), f32(0)),
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
    ("scaled_dot_product_attention", (TALL, TALL, TALL, None, 1.0, False, None, False), np.zeros((2, 2, 2))),
    ("poisson", (number(0), None), 0),
    # numbers that elements do not hold
    ("isin", (f32(0.1, 0.2), 0.1, False, False), [True, False]),
    ("isin", (0.2, f32(0.1, 0.2), False, False), True),
    ("eq", (np.array([0.1, -7, INF], np.float16), 0.1), [True, False, False]),
    ("eq", (np.array([INF, 1], np.float16), 100000.0), [True, False]),
    ("remainder", (np.array([0.1, -7], np.float16), 0.7), [0.0999755859375, 0.001953125]),
    # taken apart
    ("frexp", (f32(3, -0.5, 0),), ([0.75, -0.5, 0], [2, 0, 0])),
    ("frexp", (np.array([[1.5]], np.float64),), ([[0.75]], [[1]])),
    ("frexp", (BFLOATS.T,), ([[0.5, 0.5], [0.5, 0.625], [0.75, 0.75]], [[1, 3], [2, 3], [2, 3]])),
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
    ("silu", (np.array([1j, 0], np.complex64),), [-0.27315125 + 0.5j, 0]),
    ("logsumexp", (TURN, [0], False), 2.0761714 + 0.10572524j),
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

NOTHING, NO_IMAGES = np.zeros((2, 0), np.float32), np.zeros((0, 3, 4, 4))
NONES = np.array([1, NAN, -2, 5], ml_dtypes.bfloat16)
TRUE = np.array([True])
PIXELS = np.array([[[[0, 1, 2], [10, 11, 12]]]], np.uint8)
BYTES = np.array([[[[0, 255], [255, 0]]]], np.uint8)

EXACT: list[tuple[str, tuple[Any, ...], Any]] = [
    ("nextafter", (number([0, 1, 65504, NAN], np.float16), number([1, 0, INF, 0], np.float16)),
     number([2**-24, 1 - 2**-11, INF, NAN], np.float16)),
    ("nextafter_", (BFLOATS.copy(), BFLOATS[:1]),
     number([[1, 2, 3], [4 - 2**-6, 5 - 2**-5, 6 - 2**-5]], ml_dtypes.bfloat16)),
    ("logit", (f32(0, 0.5, 1, NAN), 1.0), f32(INF, INF, -INF, NAN)),
    ("pairwise_distance", (index(1, 2), index(1, 2), 1.0, 0.5, False), number(1)),
    ("bernoulli_", (np.ones((0, 3)), TALL * 3, None), np.ones((0, 3))),
    ("l1_loss", (index(1, 2), index(3, 5), 0), index(2, 3)),
    ("l1_loss", (number([2, 7], np.uint8), number([5, 4], np.uint8), 2), number(256, np.int64)),
    ("index_put", (f32(1, 2), [number([0, 1], np.uint8)], f32(5), True), f32(1, 7)),
    ("index_put", (f32(1, 2), [number([1, 1], np.uint8)], f32(5, 6), False), f32(5, 6)),
    ("lerp", (f32(1, 2), f32(2, 4), number(2, np.int64)), f32(3, 6)),
    ("lerp", (f32(1, 2), f32(2, 4), number(0.5, np.float64)), f32(1.5, 3)),
    ("lerp_", (number(1), number(2), number(0.5, np.float64)), number(1.5)),
    ("lerp", (number(1), number(2), number(0.5, np.float64)), number(1.5, np.float64)),
    ("lerp", (f32(1, 2), f32(2, 4), number(0.5j, np.complex64)), np.array([1 + 0.5j, 2 + 1j], np.complex64)),
    ("pairwise_distance", (np.array([[2**40]]), np.array([[2**40 + 3]]), 2.0, 0.0, False), f32(3)),
    # numbers that elements do not hold
    ("where", (TRUE, number([1], np.uint8), number(300, np.int64)), number([1], np.uint8)),
    ("where", (TRUE, number(300, np.int64), number([1], np.uint8)), number([44], np.uint8)),
    ("where", (TRUE, 1e9, number([1], np.float16)), number([INF], np.float16)),
    ("where", (TRUE, -1, number([1], np.uint8)), number([255], np.uint8)),
    ("add", (number([1], np.uint8), 300, 1), number([45], np.uint8)),
    ("add", (number([1], np.uint8), number([1], np.int32), 300), number([301], np.int32)),
    ("add", (number([1], np.uint8), number([1], np.uint8), -1), number([0], np.uint8)),
    ("addcmul", (*[number([1], np.float16)] * 3, 1e9), number([INF], np.float16)),
    ("addcmul", (*[number([1], np.uint8)] * 3, 2.5), number([3], np.uint8)),
    ("pow", (f32(1, 2), 1e300), f32(1, INF)),
    ("pow", (300, number([1, 2], np.uint8)), number([44, 144], np.uint8)),
    ("clamp", (number([1], np.uint8), None, number(300, np.int64)), number([1], np.uint8)),
    ("clamp", (number([1, 9], np.float16), None, INF), number([1, 9], np.float16)),
    ("clamp", (number([1, 9], np.uint8), 2, 2.5), f32(2, 2.5)),
    ("masked_fill", (number([1], np.uint8), TRUE, number(-1, np.int64)), number([255], np.uint8)),
    ("masked_fill", (number([1], np.uint8), TRUE, number(1.5)), number([1], np.uint8)),
    ("fill", (number([1], np.uint8), number(300, np.int64)), number([44], np.uint8)),
    ("hardtanh", (number([-5, 1, 5], np.int32), -3, 2), number([-3, 1, 2], np.int32)),
    ("hardtanh", (number([1, 5], np.uint8), 2, 4), number([2, 4], np.uint8)),
    ("threshold", (number([1, 5], np.uint8), 3, 7), number([7, 5], np.uint8)),
    ("threshold", (number([-1, -2], np.int8), -1.5, 7), number([7, 7], np.int8)),
    ("threshold", (number([1, 5], np.float16), 1e9, 7), number([7, 7], np.float16)),
    # numbers go into tensors as exactly as those hold them
    *((kind, (np.zeros(1), *rest), np.array([0.1])) for kind, rest in (
        ("fill", (0.1,)),
        ("fill_", (0.1,)),
        ("masked_fill", (TRUE, 0.1)),
        ("masked_fill_", (TRUE, 0.1)),
        ("index_fill", (0, index(0), 0.1)),
        ("index_fill_", (0, index(0), 0.1)),
        ("scatter", (0, index(0), 0.1)),
        ("scatter_", (0, index(0), 0.1)),
        ("scatter", (0, index(0), 0.1, "add")),
        ("copy_", (0.1,)),
    )),
    ("constant_pad_nd", (np.zeros(1), [1, 0], 0.1), np.array([0.1, 0])),
    ("pad", (np.zeros(1), [1, 0], "constant", 0.1), np.array([0.1, 0])),
    ("masked_fill", (np.zeros(1), TRUE, -1.7976931348623157e308), np.array([-1.7976931348623157e308])),
    ("fill", (np.zeros(1, np.int64), 2**53 + 1), index(2**53 + 1)),
    ("fill", (np.zeros(1, np.complex128), 0.1j), np.array([0.1j])),
    ("fill", (np.zeros(1, np.uint8), -1), np.array([255], np.uint8)),
    ("fill", (np.zeros(1, np.float16), 1 + 2**-11 + 2**-30), np.array([1], np.float16)),
    ("fill", (np.zeros(1, np.float16), INF), np.array([INF], np.float16)),
    ("fill", (np.zeros(1, bool), INF), TRUE),
    ("bucketize", (0.1, np.array([0.1, 0.2]), False, False), number(0, np.int64)),
    # bytes are interpolated as floats
    ("upsample_bilinear2d", (BYTES, [2, 3], False, None, None),
     np.array([[[[0, 128, 255], [255, 128, 0]]]], np.uint8)),
    ("upsample_bicubic2d", (BYTES, [2, 4], False, None, None),
     np.array([[[[0, 58, 197, 255], [255, 197, 58, 0]]]], np.uint8)),
    ("upsample_bilinear2d", (PIXELS, [3, 4], False, None, None),
     np.array([[[[0, 1, 1, 2], [5, 6, 6, 7], [10, 11, 11, 12]]]], np.uint8)),
    ("_upsample_bilinear2d_aa", (PIXELS, [1, 1], False, None, None), np.array([[[[6]]]], np.uint8)),
    # what is not a bfloat16 is larger than all that are
    ("sort", (NONES, -1, False), (NONES[[2, 0, 3, 1]], index(2, 0, 3, 1))),
    ("argsort", (NONES, -1, True), index(1, 3, 0, 2)),
    ("topk", (NONES, 2, -1, True, True), (NONES[[1, 3]], index(1, 3))),
    ("kthvalue", (NONES, 1, -1, False), (NONES[2], number(2, np.int64))),
    ("median", (NONES,), NONES[1]),
    ("median", (NONES, -1, False), (NONES[1], number(1, np.int64))),
    ("mode", (NONES[[0, 1, 1]], -1, False), (NONES[0], number(0, np.int64))),
    ("_unique2", (NONES[[0, 1, 2, 0]], True, True, True), (NONES[[2, 0, 1]], index(1, 2, 0, 1), index(1, 2, 1))),
    ("searchsorted", (NONES[[2, 0, 3]], NONES, False, False, None, None), index(1, 3, 0, 2)),
    # a number is taken for one of the boundaries' type
    ("searchsorted", (number([0.1, 0.5], ml_dtypes.bfloat16), 0.1, False, True, None, None), number(1, np.int64)),
    ("searchsorted", (number([0.1, 0.5], np.float16), 0.1, False, False, None, None), number(0, np.int64)),
    # complex numbers
    ("to", (TURN, 11, False, False, None), np.array([True, True])),
    ("copy_", (np.zeros(2, bool), TURN, False), np.array([True, True])),
    ("l1_loss", (TURN, TURN * 0, 2), number(3)),
    ("pairwise_distance", (TURN, TURN * 0, 1.0, 0.0, False), number(3)),
    ("nan_to_num", (np.array([complex(NAN, INF)]), None, 2.0, None), np.array([2j])),
    # numbers of different types, and what is not a number
    ("prim::max", (1, 2.5), 2.5),
    ("prim::max", (3, 2.5), 3.0),
    ("prim::min", (1, 2.5), 1.0),
    ("prim::max", (1.0, NAN), NAN),
    ("prim::max", (NAN, 1.0), 1.0),
    ("prim::min", (NAN, 1.0), 1.0),
    ("prim::max", ([1.0, NAN],), 1.0),
    ("prim::max", ([1, 2], [1, 3]), [1, 3]),
    ("prim::min", ([1, 2], [1, 3]), [1, 2]),
    ("prim::min", ([3], [1, 2]), [1, 2]),
    ("div", (1 + 1j, 2j), 0.5 - 0.5j),
    ("log", (1.0 + 0j,), 0j),
    # integers of 64 bits
    ("Int", (1e300,), LEAST),
    ("Int", (2.0**63,), LEAST),
    ("Int", (-INF,), LEAST),
    ("Int", (NAN,), LEAST),
    ("Int", (" 12",), 12),
    ("ceil", (1.5,), 2),
    ("floor", (-(2.0**63),), LEAST),
    # no dimension to reduce over
    ("any", (f32(1, 0), [], False), np.array([True, False])),
    ("all", (f32(1, 0), [], True), np.array([True, False])),
    ("any", (f32(1, 0), None, False), np.array(True)),
    # indices, and tensors without dimensions
    ("take_along_dim", (f32(1, 2, 3), index(-1, -3), 0), f32(3, 1)),
    ("gather", (np.ones((2, 3), np.float32), 1, index(), False), f32()),
    ("scatter", (f32(1, 2), 0, index(), 5.0), f32(1, 2)),
    ("scatter_add", (np.ones((1, 2), np.float32), 0, index(), f32(1)), np.ones((1, 2), np.float32)),
    ("scatter_reduce", (np.ones((1, 2), np.float32), 0, index(), f32(1), "sum", False), np.ones((1, 2), np.float32)),
    ("index_put", (f32(1, 2), [TRUE[[0, 0]]], number(5, np.int64), False), f32(5, 5)),
    (
        "scatter_reduce",
        (np.array([True, True]), 0, index(0, 1), np.array([True, False]), "amax", False),
        np.array([True, False]),
    ),
    # no rows, or nothing in them
    ("inner", (NOTHING, NOTHING), np.zeros((2, 2), np.float32)),
    ("mode", (NOTHING.T, 1, False), (f32(), index())),
    ("searchsorted", (NOTHING, np.ones((2, 3), np.float32), False, False, None, None), np.zeros((2, 3), np.int64)),
    ("searchsorted", (np.ones((2, 3), np.float32), NOTHING, False, False, None, None), np.zeros((2, 0), np.int64)),
    ("addbmm", (np.zeros((3, 0)), np.ones((2, 3, 4)), np.ones((2, 4, 0)), 1, 1), np.zeros((3, 0))),
    ("im2col", (NO_IMAGES, [2, 2], [1, 1], [0, 0], [1, 1]), np.zeros((0, 12, 9))),
    ("adaptive_max_pool2d", (NO_IMAGES, [2, 2]), (np.zeros((0, 3, 2, 2)), np.zeros((0, 3, 2, 2), np.int64))),
    (
        "rnn_tanh",
        (np.ones((5, 0, 3)), np.ones((1, 0, 4)), [np.ones((4, 3)), np.ones((4, 4))], False, 1, 0.0, *[False] * 3),
        (np.ones((5, 0, 4)), np.ones((1, 0, 4))),
    ),
    ("mT", (number(2),), number(2)),
    ("mH", (number(2),), number(2)),
    ("movedim", (number(2), 0, -1), number(2)),
    ("topk", (number(2), 0, -1, True, True), (number(2), number(0, np.int64))),
    # strings
    ("format", ("{}", 1, 2), "1"),
    ("format", ("{:d}{}", 1), "{:d}1"),
    ("count", ("banana", "a", 2, -1), 2),
    ("count", ("banana", "an", -3, 5), 1),
    ("count", ("banana", "a", 0, -2), 2),
    ("str", (0.1,), "0.10000000000000001"),
    ("str", (1e16,), "10000000000000000."),
    ("str", (1e17 + 2e6,), "100000000002000000."),
    ("str", (1e20,), "1e+20"),
    ("str", (2.0**63,), "9.2233720368547758e+18"),
    ("str", (-0.0,), "0."),
    ("str", (1e-5,), "1.0000000000000001e-05"),
    ("str", (NAN,), "nan"),
    ("str", (-1.5 - 0.1j,), "-1.5-0.10000000000000001j"),
    ("str", ((1, [2], 0.5),), "(1, [2], 0.5)"),
    ("str", ((1,),), "(1,)"),
    ("str", ({"a": 2.0},), "{a: 2.}"),
]  # fmt: skip

REFUSALS: list[tuple[str, tuple[Any, ...], str]] = [
    ("poisson", (np.array([1.0, -1.0]), None), "a rate is negative"),
    ("bilinear", (np.ones((3, 2)), np.ones((1, 2)), np.ones((1, 2, 2)), None), r"the shapes are \[3, 2\] and \[1, 2\]"),
    (
        "einsum",
        ("ij,jk->ik", [np.ones((2, 2)), np.ones((2, 2))], [0, 1, 2]),
        "a path of 3 numbers, but there must be 2",
    ),
    ("fill_", (np.zeros(1, np.int8), 300), "300 does not fit into an element of type int8"),
    ("fill", (np.zeros(1, np.uint8), -300), "does not fit"),
    ("fill", (np.zeros(1, np.int64), INF), "does not fit"),
    ("fill", (np.zeros(1, np.float32), 1e300), "does not fit"),
    ("fill", (np.zeros(1, np.float32), 1j), "does not fit"),
    ("masked_fill", (np.zeros(1, np.int8), TRUE, 300), "does not fit"),
    ("full_like", (np.zeros(1, np.int8), 300, None, *OPTIONS, None), "does not fit"),
    ("Float", ("1e400",), "too large"),
    ("IntImplicit", (number(1.5),), "float32 is given where an integer is needed"),
    ("IntImplicit", (number(True, np.bool_),), "bool is given where an integer"),
    *[(f"{kind}Implicit", (index(3),), "given where a number") for kind in ("Int", "Float", "Scalar")],
    ("index_put", (f32(1, 2), [index(0, 1)], np.ones(2), False), "float64 cannot be written into one of float32"),
    ("index_put_", (f32(1, 2), [index(0, 1)], number(1, np.int64), False), "cannot be written"),
    ("masked_scatter", (f32(1), TRUE, np.ones(1)), "cannot be written"),
    ("scatter", (f32(1), 0, index(0), np.ones(1)), "cannot be written"),
    ("scatter_add", (f32(1), 0, index(0), np.ones(1)), "cannot be written"),
    ("clamp", (np.zeros(1, np.int8), 0, 300), "300 does not fit"),
    ("clamp_", (np.zeros(1, np.uint8), 300, None), "300 does not fit"),
    ("clamp", (np.zeros(1, np.float16), -1e9, 1e9), "does not fit"),
    ("clamp", (f32(1), None, 1e300), "does not fit"),
    ("where", (TRUE, number([1], np.uint8), 300), "300 does not fit"),
    ("where", (TRUE, 300, number([1], np.uint8)), "300 does not fit"),
    ("where", (TRUE, f32(1), 1e300), "does not fit"),
    ("add", (number([1], np.uint8), number([1], np.uint8), 300), "300 does not fit"),
    ("add", (number([1], np.uint8), 5, 300), "300 does not fit"),
    ("rsub", (number([1], np.float16), number([1], np.float16), 1e9), "does not fit"),
    ("addcmul", (*[number([1], np.uint8)] * 3, 300), "300 does not fit"),
    ("addcmul", (*[f32(1)] * 3, 1e300), "does not fit"),
    ("index_add", (number([1], np.uint8), 0, index(0), number([1], np.uint8), 300), "300 does not fit"),
    ("pow", (number([1], np.uint8), 300), "300 does not fit"),
    ("pow", (number([1], np.float16), 1e9), "does not fit"),
    ("masked_fill", (number([1], np.uint8), TRUE, number(300, np.int64)), "300 does not fit"),
    ("masked_fill", (number([1], np.int8), TRUE, number(NAN)), "does not fit"),
    ("masked_fill", (f32(1), TRUE, number(1j, np.complex64)), "does not fit"),
    ("masked_fill", (number([1], np.int8), TRUE, number(300, ml_dtypes.bfloat16)), "does not fit"),
    ("index_fill", (number([1], np.float16), 0, index(0), number(1e9)), "does not fit"),
    ("hardtanh", (number([1], np.int8), -300, 300), "-300 does not fit"),
    ("hardtanh", (number([1], np.uint8), -1, 3), "must not be negative"),
    ("hardtanh", (number([1], np.float16), -1e9, 1e9), "does not fit"),
    ("threshold", (number([1], np.uint8), 100, 300), "300 does not fit"),
    ("threshold", (number([1], np.uint8), 300, 1), "300 does not fit"),
    ("threshold", (f32(1), 100, 1e300), "does not fit"),
    ("add", (index(1), index(1), 2.5), "alpha is 2.5"),
    ("rsub", (index(1), index(1), 2.5), "alpha is 2.5"),
    ("add", (f32(1), f32(1), 2j), "alpha is 2j"),
    ("topk", (number(2), 2, -1, True, True), "k is 2"),
    ("_pack_padded_sequence", (np.ones((2, 2)), index(1, 2), True), "longer ones first"),
    ("dropout", (f32(1), 1.5, False), "must be between 0 and 1"),
    ("allclose", (f32(1), f32(1), NAN, 0.0, False), "must not be negative"),
    ("meshgrid", ([np.ones((2, 2))],), "meshgrid takes vectors"),
    ("hsplit", (np.ones(5), 2), "no 2 parts of one size"),
    ("linalg_matrix_norm", (BFLOATS, 2, [-2, -1], False, None), "is of float32 or float64"),
    ("reflection_pad2d", (np.ones((1, 3, 3)), [1, 1]), "padded by 4 widths"),
    ("replication_pad1d", (np.ones((1, 2)), [1, -3]), "cuts off more"),
    ("constant_pad_nd", (np.ones((1, 2)), [3, -3], 0), "cuts off more"),
    ("cross", (np.ones((2, 3)), np.ones(3), -1), "dimensions each"),
    ("soft_margin_loss", (index(1, 2), index(1, -1), 1), "soft_margin_loss is not defined on integers"),
    ("hinge_embedding_loss", (index(1, 5), index(1, -1), 1.0, 1), "has no mean"),
    ("cross_entropy_loss", (index(1, 5), np.array(0), None, 1, -100, 0.0), "aten::cross_entropy_loss is not defined"),
    ("linspace", (0, 300, 3, 0, *OPTIONS), "300 does not fit"),
    ("_pad_packed_sequence", (f32(1, 3, 2), index(2, 1), True, 9.0, 1), "to length 1"),
    ("segment_reduce", (f32(1, 2, 3), "sum", index(2, 2), None, None, 0, False, None), "amount to 3"),
    ("index_reduce", (f32(1, 2), 0, index(1), f32(4), "sum", True), "reduce is 'sum'"),
    ("multilabel_margin_loss", (f32(1, 0), index(0, 2), 1), "not below 2"),
    ("resize_", (f32(1, 2), [3], None), "cannot resize"),
    ("linalg_cross", (f32(1, 2), f32(1, 2), -1), "of 3 elements"),
    ("polygamma", (-1, f32(1)), "from the 0th on"),
    ("rrelu", (f32(-1), 0.5, 0.25, True, None), "cannot draw slopes"),
    ("linalg_matrix_exp", (f32(1, 2),), "square matrices"),
    ("chain_matmul", ([f32(1)],), "takes matrices"),
    ("linalg_lstsq", (np.eye(2), np.eye(3), None, None), "no least squares problem"),
    ("linalg_lstsq", (np.eye(2), np.eye(2), None, "odd"), "driver is 'odd'"),
    ("fake_quantize_per_tensor_affine", (f32(1), 0.1, 300, 0, 255), "zero point 300"),
    ("fake_quantize_per_channel_affine", (f32(1), f32(1), index(0), -1, 0, 255), "no dimension -1"),
    ("istft", (np.ones((3, 2), np.complex64), 8, 2, None, None, True, False, None, None, False), "no istft"),
    ("istft", (np.ones((5, 2), np.complex64), 8, 9, None, None, True, False, None, None, False), "hop length 9"),
    ("istft", (np.ones((5, 2), np.complex64), 8, 2, None, np.zeros(8), True, False, None, None, False), "overlap"),
    ("kthvalue", (number(2), 2, -1, False), "no element of rank 2"),
    ("mode", (NOTHING, 1, False), "no most frequent element"),
    ("im2col", (np.zeros((2, 0, 4, 4)), [2, 2], [1, 1], [0, 0], [1, 1]), "no window fits"),
    ("mT", (f32(1),), "a matrix"),
    ("gather", (f32(1), 0, index(-1), False), "out of range"),
    ("take_along_dim", (f32(1), index(-1), None), "out of range"),
    ("upsample_bilinear2d", (np.zeros((1, 1, 2, 2), np.int64), [3, 3], False, None, None), "not defined on integers"),
    ("ceil", (1e300,), "does not fit"),
    ("floor", (NAN,), "does not fit"),
    ("Int", ("99999999999999999999",), "does not fit"),
    ("Int", ("1_000",), "not a number"),
    ("Int", ("2 ",), "not a number"),
    ("Float", ("1_000",), "not a number"),
    ("Float", (" 2.5 ",), "not a number"),
    ("format", ("{} {}", 1), "2 places for 1 values"),
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
    # a tensor without dimensions counts as one that has dimension 0, no other
    ("flip", (number(1), [5]), "out of range"),
    ("softmax", (number(1), 7, None), "out of range"),
    ("sort", (number(1), -3, False), "out of range"),
    ("argsort", (number(1), 1, False), "out of range"),
    ("argmax", (number(1), 9, False), "out of range"),
    ("argmin", (number(1), -2, True), "out of range"),
    ("max", (number(1), 1, False), "out of range"),
    ("min", (number(1), -2, False), "out of range"),
    ("mode", (number(1), 1, False), "out of range"),
    ("flatten", (number(1), 1, -1), "out of range"),
    ("unfold", (number(1), 1, 1, 1), "out of range"),
    ("unfold", (number(1), 0, 2, 1), "no windows of 2"),  # a number in an array: what lies behind it is not its own
    ("unfold", (number(1), 0, 1, 0), "no windows of 1 by 0"),
    ("index_select", (number(1), 1, index(0)), "out of range"),
    ("masked_scatter", (f32(1, 2), np.array([True, False, True]), f32(5, 6)), "a mask of shape"),
    ("masked_scatter_", (f32(1), np.array([True, False, True]), f32(5, 6)), "a mask of shape"),
    ("masked_fill", (f32(1, 2), np.array([True, False, True]), 0), "a mask of shape"),
    ("masked_select", (f32(1, 2), np.array([True, False, True])), "a mask of shape"),
    ("arange", (0, 5, 0.5, 4, *OPTIONS), "no range"),
    ("pow", (np.array([True]), np.array([True])), "bools"),
    ("sub", (np.array([True]), np.array([True]), 1), "bools"),
    ("rsub", (np.array([True]), True, 1), "bools"),
    ("embedding", (f32(1, 2).reshape(2, 1), f32(0), -1, False, False), "must be integers"),
    ("frexp", (np.array([1, 2]),), "floating-point"),
    ("remainder", (np.array([True]), np.array([True])), "bools"),
    ("fmod", (np.array([True]), np.array(True)), "bools"),
    ("floor_divide", (np.array([True]), np.array([True])), "bools"),
    ("div", (np.array([True]), np.array([True]), "trunc"), "bools"),
    ("clamp", (f32(1), None, None), "bound"),
    ("scaled_dot_product_attention", (ONES, ONES, ONES, TALL, 0.0, False, None, False), "a mask of shape"),
    ("scaled_dot_product_attention", (ONES, ONES, ONES, ONES > 0, 0.0, True, None, False), "not both"),
    ("scaled_dot_product_attention", (ONES, TALL, TALL, None, 0.0, False, None, True), "cannot share"),
    ("masked_fill", (f32(1, 2), f32(0, 1), 2.0), "float32 is not a mask"),
    ("masked_fill_", (f32(1, 2), number([0, 1], np.uint8), 2.0), "uint8 is not a mask"),
    ("masked_fill", (f32(1, 2), np.array([True, False]), f32(3, 4)), "not a single value"),
    ("masked_fill_", (f32(1, 2), np.array([True, False]), f32(3)), "not a single value"),
    ("masked_select", (f32(1, 2), f32(0, 1)), "not a mask"),
    ("masked_scatter", (f32(1, 2), number([0, 1], np.uint8), f32(3, 4)), "not a mask"),
    ("where", (f32(0, 1), f32(1, 2), f32(3, 4)), "not a mask"),
    ("index_fill", (np.zeros((2, 2)), 0, index(0), np.zeros((2, 2))), "not a single value"),
    ("index_fill_", (np.zeros((2, 2)), 0, index(0), np.zeros(2)), "not a single value"),
    ("sub", (f32(1), TRUE, 1), "no difference"),
    ("sub_", (f32(1), number(True, np.bool_), 1), "no difference"),
    ("sub_", (f32(1), True, 1), "no difference"),
    ("rsub", (TRUE, 1, 1), "no difference"),
    ("addcdiv", (f32(1), index(1), index(1), 1), "does not divide integers"),
    ("addcdiv_", (f32(1), TRUE, index(1), 1), "does not divide integers"),
    ("addcmul", (TRUE, TRUE, TRUE, 1), "not defined on bools"),
    ("bitwise_left_shift", (TRUE, TRUE), "bitwise_left_shift is not defined on bools"),
    ("bitwise_right_shift", (TRUE, TRUE), "bitwise_right_shift is not defined on bools"),
    ("__lshift__", (TRUE, TRUE), "__lshift__ is not defined on bools"),
    ("__rshift__", (TRUE, TRUE), "__rshift__ is not defined on bools"),
    ("__ilshift__", (TRUE.copy(), TRUE), "__ilshift__ is not defined on bools"),
    ("__irshift__", (TRUE.copy(), TRUE), "__irshift__ is not defined on bools"),
    ("__lshift__", (ONES[0], 1), "__lshift__ is not defined on floats"),
    ("clamp_", (TRUE.copy(), TRUE, TRUE), "not defined on bools"),
    ("clamp", (TRUE, TRUE, TRUE + 0j), "not defined on complex numbers"),
    ("cross_entropy_loss", (ONES[0] + 0j, index(0, 1), None, 1, -100, 0.0), "not defined on complex numbers"),
    ("l1_loss", (index(1, 2), index(3, 4), 1), "int64 has no mean"),
    ("one_hot", (np.array([1, 0], np.int32), 3), "int32"),
    ("index_put", (f32(1, 2).reshape(1, 2), [TRUE, TRUE], number(5, np.int64), False), "cannot be written"),
    ("scaled_dot_product_attention", (ONES, ONES, ONES, index(1, 0), 0.0, False, None, False), "a mask of int64"),
    *[
        ("scaled_dot_product_attention", (ONES, *rest, None, 0.0, False, None, False), "one element type")
        for rest in ((ONES, ONES.astype(np.float64)), (ONES.astype(np.float64), ONES))
    ],
    ("bucketize", (f32(1, 2), ONES[0], False, False), "boundaries are a vector"),
    ("bucketize", (f32(1, 2), number(1), False, False), "boundaries are a vector"),
    ("lerp", (f32(1), f32(2), index(1)), "one element type"),
    ("lerp", (f32(1), number(2, np.float64), 0.5), "one element type"),
    ("lerp_", (f32(1), f32(2), number(1j, np.complex64)), "cannot be written"),
    ("scatter_", (f32(1), 0, index(0), f32(1), "sum"), "'add', 'multiply'"),
    ("scatter_reduce", (f32(1), 0, index(0), f32(1), "add", True), "'sum', 'prod'"),
    ("scatter", (f32(1), 0, index(0, 0), number(1)), "too small"),
    ("scatter_add", (f32(1), 1, index(), f32(1)), "out of range"),
    ("gather", (f32(1), 1, index(), False), "out of range"),
    # results would have other shapes than the types say
    ("layer_norm", (f32(1, 2), [2], TALL[0], None, 1e-5, True), "the normalized shape"),
    ("layer_norm", (TALL, [2], None, f32(1), 1e-5, True), "the normalized shape"),
    ("rms_norm", (f32(1, 2), [2], TALL[0], None), "the normalized shape"),
    ("prelu", (ONES[:, :1], f32(1, 2)), "1 channels need one slope"),
    ("prelu", (f32(1, 2), f32(1, 2)), "need one slope"),
    ("bernoulli", (ONES, TALL / 2, None), "probabilities of shape"),
    ("bernoulli_", (ONES.copy(), TALL / 2, None), "probabilities of shape"),
    ("bernoulli_", (ONES.copy(), 2.0, None), "not between 0 and 1"),
    ("bernoulli_", (f32(), 2.0, None), "not between 0 and 1"),
    ("bernoulli_", (f32(1), f32(NAN), None), "not between 0 and 1"),
    ("dropout", (ONES, 2.0, True), "the probability of dropout is 2.0"),
    ("scaled_dot_product_attention", (TALL, TALL, TALL, None, 2.0, False), "the probability of dropout is 2.0"),
    ("addmm", (np.ones((2, 3)), np.ones((2, 3)), np.ones((3, 2)), 1, 1), "does not fit a product"),
    ("addmm", (np.ones((2, 3)), np.ones((2, 3)), np.ones((3, 2)), 0, 1), "does not fit a product"),
    ("addmm", (np.ones((1, 2, 2)), np.ones((2, 3)), np.ones((3, 2)), 1, 1), "does not fit a product"),
    ("addmv", (np.ones(3), np.ones((2, 3)), np.ones(3), 1, 1), "does not fit a product"),
    ("addbmm", (np.ones((3, 3)), np.ones((1, 2, 3)), np.ones((1, 3, 2)), 1, 1), "does not fit a product"),
    ("bmm", (TALL, ONES), "as many matrices"),
    ("baddbmm", (TALL, ONES, TALL, 1, 1), "as many matrices"),
    ("batch_norm", (TALL, None, None, f32(0), f32(1), True, 0.1, 1e-5, False), "2 channels need"),
]


def copies(arguments: tuple[Any, ...]) -> list[Any]:
    return [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]


@pytest.mark.parametrize(("kind", "arguments", "expected"), CALLS)
def test_results(kind: str, arguments: tuple[Any, ...], expected: Any) -> None:
    with np.errstate(all="ignore"):
        found = op(kind, *copies(arguments))
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, wanted in pairs:
        assert isinstance(one, np.ndarray | int), "a scalar of NumPy is not a tensor"
        values = np.asarray(one).astype(np.complex128 if np.iscomplexobj(one) else np.float64)
        wanted = np.asarray(wanted, values.dtype)
        assert values.shape == wanted.shape
        np.testing.assert_allclose(values, wanted, rtol=1e-6)
        assert (np.signbit(values.real) == np.signbit(wanted.real))[~np.isnan(values)].all()


@pytest.mark.parametrize(("kind", "arguments", "expected"), EXACT)
def test_exact_results(kind: str, arguments: tuple[Any, ...], expected: Any) -> None:
    with np.errstate(all="ignore"):
        found = op(kind, *copies(arguments))
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, wanted in pairs:
        assert np.asarray(one).dtype == np.asarray(wanted).dtype
        assert type(one) is type(wanted) or isinstance(one, np.ndarray)
        if np.asarray(one).dtype == BFLOATS.dtype:  # of which NumPy does not know what is not a number
            one, wanted = np.asarray(one, np.float32), np.asarray(wanted, np.float32)
        np.testing.assert_array_equal(one, wanted)


@pytest.mark.parametrize("element", ["f2", "f4", "f8"])
@pytest.mark.parametrize("other", ["f2", "f4", "f8"])
def test_an_entropy_has_the_wider_type_of_logits_and_probabilities(element: str, other: str) -> None:
    found = op("cross_entropy_loss", np.zeros((1, 2), element), np.full((1, 2), 0.5, other), None, 1, -100, 0.0)
    assert found.dtype == max(element, other)
    np.testing.assert_allclose(found, np.log(2), rtol=1e-3)


def test_a_sum_of_integers_stays_within_64_bits() -> None:
    assert op("sum", [2**62] * 3) == -(2**62)  # torch sums in 32 bits
    assert op("abs", LEAST) == op("floordiv", LEAST, -1) == LEAST


def test_constant_lists_are_written_as_lists() -> None:
    text = """graph():
  %0 : (int, int[]) = prim::Constant[value=(1, [2])]()
  %1 : int[] = prim::Constant[value=[3]]()
  %2 : str = prim::Constant[value="{} {}"]()
  %3 : str = aten::format(%2, %0, %1)
  %4 : str = aten::str(%0)
  %5 : str = prim::Constant[value="%s %s"]()
  %6 : (int[], int[]) = prim::Constant[value=([1], [2])]()
  %7 : str = aten::percentFormat(%5, %6)
  %8 : str = prim::Constant[value="%s"]()
  %9 : str = aten::percentFormat(%8, %1)
  return (%3, %4, %7, %9)
"""
    assert run(text) == ["(1, [2]) [3]", "(1, [2])", "[1] [2]", "[3]"]


@pytest.mark.parametrize("options", [[5, 6, *[None] * 6], [6, *[None] * 6], [6, *[None] * 5], [5, 6, *[None] * 5]])
def test_random_integers_with_and_without_bounds_and_generators(options: list[Any]) -> None:
    found = op("randint_like", np.zeros(20), *options)
    least = 5 if options[1] == 6 else 0
    assert found.dtype == np.float64
    assert ((least <= found) & (found < 6)).all()


@pytest.mark.parametrize("call", ["add(%l, %l, %n)", "add_(%l, %l, %n)"])
def test_factors_of_lists_are_refused(call: str) -> None:
    text = f"""graph(%n : int, %l : int[]):
  %y : int[] = aten::{call}
  return (%y)
"""
    with pytest.raises(Error, match=r"^IRC423: .*does not take arguments of the types"):
        run(text, 3, [3])


@pytest.mark.parametrize(("kind", "arguments", "message"), REFUSALS)
def test_refusals(kind: str, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Error, match=message):
        op(kind, *copies(arguments))


def test_projections_of_an_lstm() -> None:
    x, hidden, cell = (np.ones(shape, np.float32) for shape in ((2, 1, 3), (1, 1, 1), (1, 1, 4)))
    params = [np.zeros(shape, np.float32) for shape in ((16, 3), (16, 1), (16,), (16,))]
    y, last, cells = op("lstm", x, [hidden, cell], [*params, np.ones((1, 4), np.float32)], True, 1, 0.0, *[False] * 3)
    np.testing.assert_allclose(cells, np.full((1, 1, 4), 0.25))
    np.testing.assert_allclose(last, [[[4 * 0.5 * np.tanh(0.25)]]], rtol=1e-6)
    np.testing.assert_allclose(y[:, 0, 0], 2 * np.tanh([0.5, 0.25]), rtol=1e-6)
    with pytest.raises(Error, match="of a projected LSTM"):
        op("lstm", x, [hidden, cell], [*params, params[0]], True, 1, 0.0, *[False] * 3)


@pytest.mark.parametrize(
    ("bounds", "least", "most"),
    [((), 0, 127), ((5,), 0, 4), ((-3, 2), -3, 1), ((120, None), 120, 127), ((-128, None), -128, 127)],
)
def test_random_integers_in_place_from_one_bound_to_another_or_to_the_largest(
    bounds: tuple[Any, ...], least: int, most: int
) -> None:
    found = op("random_", np.zeros(4000, np.int8), *bounds, None)
    assert (found.min(), found.max()) == (least, most)


def test_numbers_of_events_of_any_rate() -> None:
    found = op("poisson", np.array([0.0, 1e30, INF, np.nan, 4.0]), None)
    assert (found[0], found[2]) == (0, INF) and np.isnan(found[3])
    assert abs(found[1] / 1e30 - 1) < 1e-12 and found[4] == round(found[4])
    assert op("poisson", np.zeros((2, 0), np.float32), None).shape == (2, 0)
