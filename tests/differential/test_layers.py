"""Layers against torch: convolution, pooling, normalisation, resizing, attention, recurrence, losses, products."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.differential.helpers import Array, Typed, compare

LAST = (0, 3, 1, 2)


def noise(*shape: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).normal(size=shape).astype(dtype)


def chances(*shape: int) -> Array:
    return np.random.default_rng(list(shape)).uniform(0.05, 0.95, shape).astype(np.float32)


# -- convolution ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_convolution(dtype: str) -> None:
    x, w, b = noise(2, 4, 7, 8, dtype=dtype), noise(6, 4, 3, 3, dtype=dtype), noise(6, dtype=dtype)
    close = {"float32": 1e-5, "float64": 1e-11, "float16": 5e-3}[dtype]
    for bias in (b, None):
        for stride, padding, dilation in (([1, 1], [0, 0], [1, 1]), ([2, 1], [1, 2], [1, 1]), ([1, 2], [2, 2], [2, 1])):
            compare("aten::conv2d", x, w, bias, stride, padding, dilation, 1, tolerance=close)
            compare("aten::conv2d", x, w[:, :2], bias, stride, padding, dilation, 2, tolerance=close)
    compare("aten::conv2d", x, noise(4, 1, 3, 3, dtype=dtype), None, [1, 1], [1, 1], [1, 1], 4, tolerance=close)
    for padding in ("same", "valid"):
        compare("aten::conv2d", x, w, b, [1, 1], padding, [1, 1], 1, tolerance=close)
        compare("aten::conv2d", x, noise(6, 4, 2, 4, dtype=dtype), b, [1, 1], padding, [2, 1], 1, tolerance=close)
        compare("aten::_convolution_mode", x, w[:, :2], b, [1, 1], padding, [1, 2], 2, tolerance=close)
        compare("aten::_convolution_mode", x, w, None, [1, 1], padding, [1, 1], 1, tolerance=close)
    compare("aten::_convolution_mode", x, w, b, [2, 1], "valid", [1, 1], 1, tolerance=close)
    compare("aten::conv2d", x[0], w, b, [1, 1], [1, 1], [1, 1], 1, tolerance=close)
    compare(
        "aten::conv1d", noise(2, 4, 9, dtype=dtype), noise(6, 4, 3, dtype=dtype), b, [2], [1], [1], 1, tolerance=close
    )
    compare(
        "aten::conv3d",
        noise(1, 2, 5, 6, 7, dtype=dtype),
        noise(4, 2, 3, 2, 1, dtype=dtype),
        None,
        [1, 2, 1],
        [1, 0, 0],
        [1, 1, 1],
        1,
        tolerance=close,
    )
    for stride, padding, out, dilation in (([1, 1], [0, 0], [0, 0], [1, 1]), ([2, 3], [1, 1], [1, 2], [1, 2])):
        turned = noise(4, 3, 3, 3, dtype=dtype)
        compare(
            "aten::conv_transpose2d",
            x,
            turned,
            noise(3, dtype=dtype),
            stride,
            padding,
            out,
            1,
            dilation,
            tolerance=close,
        )
        compare("aten::conv_transpose2d", x, turned[:, :2], None, stride, padding, out, 2, dilation, tolerance=close)
    flags = (False, False, True, True)
    for transposed in (False, True):
        weight = noise(4, 4, 3, 3, dtype=dtype)
        arguments = (x, weight, None, [2, 2], [1, 1], [1, 1], transposed, [0, 0], 1)
        compare("aten::convolution", *arguments, tolerance=close)
        compare("aten::_convolution", *arguments, *flags, tolerance=close)


def test_convolution_keeps_channels_last() -> None:
    x = noise(2, 7, 8, 4).transpose(LAST)
    w = noise(6, 4, 3, 3)
    compare("aten::conv2d", x, w, None, [1, 1], [1, 1], [1, 1], 1)
    compare("aten::conv2d", noise(2, 4, 7, 8), noise(6, 3, 3, 4).transpose(LAST), None, [1, 1], [1, 1], [1, 1], 1)
    compare("aten::conv2d", noise(2, 4, 8, 7).transpose(0, 1, 3, 2), w, None, [1, 1], [1, 1], [1, 1], 1)


def test_convolution_refuses_what_does_not_fit() -> None:
    x, w = noise(2, 4, 7, 8), noise(6, 4, 3, 3)
    compare("aten::conv2d", noise(2, 3, 7, 8), w, None, [1, 1], [0, 0], [1, 1], 1)
    compare("aten::conv2d", x, w, noise(5), [1, 1], [0, 0], [1, 1], 1)
    compare("aten::conv2d", noise(2, 4, 2, 2), w, None, [1, 1], [0, 0], [1, 1], 1)
    compare("aten::conv2d", x, w, None, [0, 1], [0, 0], [1, 1], 1)
    compare("aten::conv2d", x, w, None, [1, 1], [-1, 0], [1, 1], 1)
    compare("aten::conv2d", x, w.astype(np.float64), None, [1, 1], [0, 0], [1, 1], 1)


def test_columns() -> None:
    x = noise(2, 3, 6, 7)
    for dilation, padding, stride in (([1, 1], [0, 0], [1, 1]), ([2, 1], [1, 2], [2, 3])):
        compare("aten::im2col", x, [3, 2], dilation, padding, stride)
    compare("aten::col2im", noise(2, 3 * 6, 4 * 6), [6, 7], [3, 2], [1, 1], [0, 0], [1, 1])
    compare("aten::col2im", noise(2, 3 * 4, 3 * 4), [6, 7], [2, 2], [1, 1], [0, 0], [2, 2], strides=False)


# -- pooling -------------------------------------------------------------------

PARAMETERS = [
    ([2, 2], Typed([], "int[]"), [0, 0], False),
    ([3, 2], [2, 1], [1, 1], False),
    ([3, 3], [2, 2], [1, 1], True),
    ([2, 3], [3, 2], [0, 1], True),
    ([10, 12], Typed([], "int[]"), [0, 2], True),
    ([10, 12], [3, 4], [0, 0], True),
]


@pytest.mark.parametrize("layout", ["plain", "last"])
def test_pooling(layout: str) -> None:
    x = noise(2, 3, 7, 8) if layout == "plain" else noise(2, 7, 8, 3).transpose(LAST)
    for kernel, stride, padding, ceil in PARAMETERS:
        compare("aten::max_pool2d", x, kernel, stride, padding, [1, 1], ceil)
        compare("aten::max_pool2d_with_indices", x, kernel, stride, padding, [1, 1], ceil, outputs=2)
        for include in (True, False):
            for divisor in (None, 3):
                compare("aten::avg_pool2d", x, kernel, stride, padding, ceil, include, divisor, tolerance=1e-5)
    compare("aten::max_pool2d", x, [2, 2], [1, 1], [0, 0], [2, 3], False)
    for size in ([1, 1], [3, 5], [7, 8], [4, 3]):
        compare("aten::adaptive_avg_pool2d", x, size, tolerance=1e-5)
        compare("aten::adaptive_max_pool2d", x, size, outputs=2)


def test_pooling_of_other_ranks() -> None:
    compare("aten::max_pool1d", noise(2, 3, 9), [3], [2], [1], [1], False)
    compare("aten::max_pool1d_with_indices", noise(2, 3, 9), [3], [2], [1], [1], False, outputs=2)
    compare("aten::max_pool3d", noise(1, 2, 5, 6, 7), [2, 2, 3], [2, 1, 2], [0, 1, 1], [1, 1, 1], False)
    compare("aten::max_pool2d", noise(3, 7, 8), [2, 2], [2, 2], [0, 0], [1, 1], False)
    compare("aten::avg_pool1d", noise(2, 3, 9), [3], [2], [1], False, True)
    compare("aten::avg_pool3d", noise(1, 2, 5, 6, 7), [2, 2, 3], [2, 1, 2], [0, 1, 1], False, True, None)
    compare("aten::adaptive_avg_pool1d", noise(2, 3, 9), [4])
    compare("aten::adaptive_avg_pool3d", noise(1, 2, 5, 6, 7), [2, 3, 4], tolerance=1e-5)
    compare("aten::avg_pool2d", noise(2, 3, 5, 5, dtype="float16"), [2, 2], [2, 2], [0, 0], False, True, None)
    nan = np.array([[[[1, np.nan], [2, 3]]]], np.float32)
    compare("aten::max_pool2d", nan, [2, 2], [1, 1], [0, 0], [1, 1], False)
    compare("aten::max_pool2d", noise(1, 1, 4, 4), [2, 2], [2, 2], [2, 2], [1, 1], False)


# -- normalisation -------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("training", [False, True])
def test_batch_normalisation(dtype: str, training: bool) -> None:
    for x in (noise(4, 3, dtype=dtype), noise(2, 3, 5, 4, dtype=dtype), noise(2, 5, 4, 3, dtype=dtype).transpose(LAST)):
        w, b, mean = (noise(3, dtype=dtype, seed=s) for s in (1, 2, 3))
        var = np.abs(noise(3, dtype=dtype, seed=4)) + dtype_one(dtype)
        compare("aten::batch_norm", x, w, b, mean, var, training, 0.1, 1e-5, True, tolerance=2e-5)
        compare("aten::batch_norm", x, None, None, mean, var, training, 0.3, 1e-3, True, tolerance=2e-5)
    compare("aten::batch_norm", noise(4, 3), None, None, None, None, True, 0.1, 1e-5, True, tolerance=2e-5)
    x = noise(2, 3, 5, 4, dtype=dtype)
    for use_input in (True, False):
        running = (noise(3, dtype=dtype), np.abs(noise(3, dtype=dtype, seed=1)) + dtype_one(dtype))
        compare("aten::instance_norm", x, None, None, *running, use_input, 0.1, 1e-5, True, tolerance=2e-5)
    w, b = noise(3, dtype=dtype), noise(3, dtype=dtype, seed=1)
    compare("aten::instance_norm", x, w, b, None, None, True, 0.1, 1e-5, True, tolerance=2e-5)


def dtype_one(dtype: str) -> np.ndarray:
    return np.ones((), dtype)


def test_other_normalisations() -> None:
    x = noise(2, 6, 4, 5)
    w, b = noise(4, 5), noise(4, 5, seed=1)
    for arguments in ((w, b), (None, None), (w, None)):
        compare("aten::layer_norm", x, [4, 5], *arguments, 1e-5, True, tolerance=2e-5)
        compare("aten::native_layer_norm", x, [4, 5], *arguments, 1e-5, outputs=3, tolerance=2e-5)
    compare("aten::layer_norm", noise(2, 5, 4).transpose(0, 2, 1), [5], None, None, 1e-5, True, tolerance=2e-5)
    compare("aten::layer_norm", noise(3, 8, dtype="float16"), [8], None, None, 1e-5, True, tolerance=5e-3)
    for groups in (1, 2, 3, 6):
        compare("aten::group_norm", x, groups, noise(6), noise(6, seed=1), 1e-5, True, tolerance=2e-5)
    compare("aten::group_norm", noise(2, 4, 5, 6).transpose(LAST), 2, None, None, 1e-5, True, tolerance=2e-5)
    compare("aten::rms_norm", x, [5], noise(5), None, tolerance=2e-5)
    for dim, shape in (
        (0, (2, 1, 1, 1)),
        (1, (1, 6, 1, 1)),
        (3, (1, 1, 1, 5)),
        (0, (2,)),
        (-1, ()),
        (-2, (1, 1, 4, 1)),
    ):
        compare("aten::_weight_norm", x, noise(*shape), dim, tolerance=2e-5)
        half = noise(2, 6, 4, 5, dtype="float16")
        compare("aten::_weight_norm", half, noise(*shape, dtype="float16"), dim, tolerance=5e-3)
    compare("aten::rms_norm", x, [4, 5], None, 1e-3, tolerance=2e-5)
    for name in ("softmax", "log_softmax"):
        for dim in (0, 1, -1):
            compare(f"aten::{name}", x, dim, None)
            compare(f"aten::{name}", x.transpose(0, 2, 1, 3), dim, None, strides=False)
            compare(f"aten::{name}", x, dim, 7)
        compare(f"aten::{name}", noise(3, 4, dtype="float16"), 1, None)
        compare(f"aten::{name}", np.array([[1, -np.inf, 2]], np.float32), 1, None)
    for name in ("dropout", "feature_dropout", "alpha_dropout", "dropout_"):
        compare(f"aten::{name}", x, 0.5, False)
        compare(f"aten::{name}", x, 0.0, True)
    compare("aten::dropout", x, 0.5, True, values=False)
    compare("aten::native_dropout", x, 0.5, False, outputs=2)


# -- resizing and sampling -----------------------------------------------------

SIZES = [(14, 16), (7, 8), (9, 11), (3, 5), (1, 1), (13, 4)]


@pytest.mark.parametrize("layout", ["plain", "last"])
def test_resizing(layout: str) -> None:
    x = noise(2, 3, 7, 8) if layout == "plain" else noise(2, 7, 8, 3).transpose(LAST)
    for size in SIZES:
        compare("aten::upsample_nearest2d", x, list(size), None, None)
        for corners in (False, True):
            compare("aten::upsample_bilinear2d", x, list(size), corners, None, None, tolerance=1e-4)
            compare("aten::upsample_bicubic2d", x, list(size), corners, None, None, tolerance=1e-4)
    for scales in ([2.0, 2.0], [1.5, 0.5], [0.3, 3.0]):
        compare("aten::upsample_nearest2d", x, None, scales)
        compare("aten::upsample_bilinear2d", x, None, False, scales, tolerance=1e-4)
        compare("aten::upsample_bicubic2d", x, None, False, scales, tolerance=1e-4)
    compare("aten::upsample_nearest2d", x, [10, 12], 1.5, 1.6)
    compare("aten::upsample_bilinear2d", x, [10, 12], False, 1.5, 1.6, tolerance=1e-4)


def test_resizing_smoothly() -> None:
    x = noise(2, 3, 17, 23)
    for size in [*SIZES, (17, 23), (40, 9), (8, 46)]:
        for mode in ("bilinear", "bicubic", "lanczos"):
            for corners in (False, True):
                compare(f"aten::_upsample_{mode}2d_aa", x, list(size), corners, None, None, tolerance=1e-4)
    for scales in ([2.0, 2.0], [1.5, 0.5], [0.3, 3.0]):
        compare("aten::_upsample_bilinear2d_aa", x, None, False, scales, tolerance=1e-4)
        compare("aten::_upsample_bicubic2d_aa", x, None, False, scales, tolerance=1e-4)


def test_resizing_to_the_nearest_exactly() -> None:
    for size in range(1, 24):
        for out in range(1, 40, 3):
            compare("aten::_upsample_nearest_exact1d", noise(1, 2, size), [out], None)
            compare("aten::upsample_nearest1d", noise(1, 2, size), [out], None)
    for scale in (0.3, 0.5, 1.5, 2.0, 2.5, 3.0):
        compare("aten::_upsample_nearest_exact1d", noise(1, 2, 13), None, [scale])
        compare("aten::_upsample_nearest_exact2d", noise(1, 2, 7, 9), None, [scale, 1.7])
    compare("aten::_upsample_nearest_exact3d", noise(1, 2, 3, 4, 5), [6, 5, 7], None, None, None)


def test_resizing_of_other_ranks() -> None:
    compare("aten::upsample_nearest1d", noise(2, 3, 7), [11], None)
    compare("aten::upsample_nearest1d", noise(2, 3, 7), None, [2.5])
    compare("aten::upsample_linear1d", noise(2, 3, 7), [11], False, None, tolerance=1e-4)
    compare("aten::upsample_nearest3d", noise(1, 2, 3, 4, 5), [6, 5, 4], None, None, None)
    compare("aten::upsample_trilinear3d", noise(1, 2, 3, 4, 5), [6, 5, 4], True, None, None, None, tolerance=1e-4)
    compare("aten::upsample_nearest2d", np.arange(48, dtype=np.uint8).reshape(1, 3, 4, 4), [7, 5], None, None)


def test_interpolation() -> None:
    x = noise(1, 2, 5, 6)
    options = (None, False)
    for mode, corners in (
        ("nearest", None),
        ("bilinear", False),
        ("bilinear", True),
        ("bicubic", False),
        ("area", None),
    ):
        compare("aten::__interpolate", x, [7, 9], None, mode, corners, *options, tolerance=1e-4)
        if corners is not True:
            compare("aten::__interpolate", x, None, [1.5, 2.0], mode, corners, *options, tolerance=1e-4)
            compare("aten::__interpolate", x, None, 2.0, mode, corners, True, False, tolerance=1e-4)


def test_sampling() -> None:
    x, grid = noise(2, 3, 5, 6), noise(2, 4, 7, 2)
    for mode in (0, 1, 2):
        for padding in (0, 1, 2):
            for corners in (False, True):
                compare("aten::grid_sampler", x, grid, mode, padding, corners, tolerance=1e-4)
    for corners in (False, True):
        compare("aten::affine_grid_generator", noise(2, 2, 3), [2, 3, 4, 5], corners, tolerance=1e-5, strides=False)


def test_padding() -> None:
    x = noise(2, 3, 4, 5)
    for widths in ([1, 2], [1, 0, 2, 1], [-1, 2], [0, 0, -1, -1], [1, 1, 1, 1, 1, 1]):
        compare("aten::constant_pad_nd", x, widths, 1.5)
        compare("aten::pad", x, widths, "constant", None)
        compare("aten::pad", x, widths, "constant", 2.5)
    for mode in ("reflect", "replicate", "circular"):
        compare("aten::pad", x, [1, 2, 2, 1], mode, None)
        compare("aten::pad", noise(2, 3, 4), [1, 2], mode, None)
    compare("aten::reflection_pad2d", x, [1, 2, 2, 1])
    compare("aten::replication_pad1d", noise(2, 3, 4), [1, 2])
    compare("aten::pad", x, [5, 5], "reflect", None)
    compare("aten::constant_pad_nd", noise(2, 4, 5, 3).transpose(LAST), [1, 1], 0)


# -- products ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64"])
def test_products(dtype: str) -> None:
    def make(*shape: int, seed: int = 0) -> Array:
        return (noise(*shape, seed=seed) * 3).round().astype(dtype)

    for a, b in (((3, 4), (4, 5)), ((4,), (4,)), ((3, 4), (4,)), ((4,), (4, 5)), ((2, 3, 4), (4, 5))):
        compare("aten::matmul", make(*a), make(*b, seed=1))
    for a, b in (((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((2, 3, 4), (4,)), ((3, 4), (2, 4, 5))):
        compare("aten::matmul", make(*a), make(*b, seed=1), strides=False)
    compare("aten::mm", make(4, 3).T, make(4, 5))
    compare("aten::bmm", make(2, 3, 4), make(2, 4, 5))
    compare("aten::mv", make(3, 4), make(4))
    compare("aten::dot", make(4), make(4, seed=1))
    compare("aten::outer", make(3), make(4))
    compare("aten::linear", make(2, 3, 4), make(5, 4), make(5))
    compare("aten::linear", make(4), make(5, 4), None)
    for beta, alpha in ((1, 1), (2, 3), (0, 1)):
        compare("aten::addmm", make(5), make(3, 4), make(4, 5), beta, alpha)
        compare("aten::addmm_", make(3, 5), make(3, 4), make(4, 5), beta, alpha)
        compare("aten::baddbmm", make(2, 3, 5), make(2, 3, 4), make(2, 4, 5), beta, alpha)
        compare("aten::addbmm", make(3, 5), make(2, 3, 4), make(2, 4, 5), beta, alpha, tolerance=2e-3)
        compare("aten::addmv", make(3), make(3, 4), make(4), beta, alpha)
    compare("aten::cross", make(2, 3), make(2, 3, seed=1), 1)
    compare("aten::cross", make(3, 2), make(3, 2, seed=1), None)
    compare("aten::mm", make(3, 4), make(3, 4))
    compare("aten::matmul", make(3, 4), make(4, 5).astype("float64" if dtype != "float64" else "float32"))


def test_summation() -> None:
    a, b = noise(3, 4), noise(4, 5)
    for equation, operands in (
        ("ij,jk->ik", [a, b]),
        ("ij,jk", [a, b]),
        ("ij->ji", [a]),
        ("ij->i", [a]),
        ("ii->i", [noise(4, 4)]),
        ("ii", [noise(4, 4)]),
        ("bij,bjk->bik", [noise(2, 3, 4), noise(2, 4, 5)]),
        ("...ij,...jk->...ik", [noise(2, 3, 4), noise(4, 5)]),
        ("i,j->ij", [noise(3), noise(4)]),
        ("bhqd,bhkd->bhqk", [noise(2, 2, 3, 4), noise(2, 2, 5, 4)]),
        ("ij,jk,kl->il", [a, b, noise(5, 2)]),
        ("bchw,cd->bdhw", [noise(2, 3, 4, 5), noise(3, 2)]),
        ("bcxd,bcyd->bcyx", [noise(2, 3, 4, 5), noise(2, 3, 2, 5)]),
        ("ij,jk->ki", [a, b]),
        ("bij,bjk->kbi", [noise(2, 3, 4), noise(2, 4, 5)]),
        ("i,j->ji", [noise(3), noise(4)]),
        ("ij,ij->ji", [a, a]),
        ("ij,ij->", [a, a]),
        ("ij,kj->ik", [a, noise(1, 4)]),
        ("ij,kj->ik", [noise(1, 4), a]),
        ("ij,jk->ik", [noise(1, 1), noise(1, 5)]),
        ("ii,ij->j", [noise(4, 4), a.T]),
        ("aij,bi,c->cb", [noise(2, 3, 4), noise(5, 3), noise(2)]),
        ("ijk->kj", [noise(2, 3, 4)]),
        ("i...j->j...", [noise(2, 3, 4, 5)]),
        ("i...j->...", [noise(2, 3, 4, 5)]),
        ("b...i,...ij->j...b", [noise(2, 3, 1, 4), noise(5, 4, 2)]),
        ("Bi,iA", [noise(2, 3), noise(3, 4)]),
        ("aB,Bc,aD->Dc", [noise(2, 3), noise(3, 4), noise(2, 5)]),
        ("ij,jk->ik", [a, noise(0, 4).T[:, :0].reshape(4, 0)]),
        ("ij,jk->ik", [noise(3, 0), noise(0, 2)]),
        (",i->i", [noise(), noise(3)]),
    ):
        compare("aten::einsum", equation, operands, None, tolerance=1e-5)
        turned = [np.ascontiguousarray(x.T).T for x in operands]
        compare("aten::einsum", equation, turned, None, tolerance=1e-5)
    compare("aten::tensordot", noise(2, 3, 4), noise(4, 3, 5), [1, 2], [1, 0], tolerance=1e-5)
    compare("aten::bilinear", noise(2, 3), noise(2, 4), noise(5, 3, 4), noise(5), tolerance=1e-5)


# -- attention, recurrence, losses ---------------------------------------------


def test_attention() -> None:
    q, k, v = noise(2, 2, 3, 4), noise(2, 2, 5, 4, seed=1), noise(2, 2, 5, 6, seed=2)
    mask = noise(3, 5) > 0
    mask[:, 0] = True

    def attend(query: Array, mask: Array | None, causal: bool, scale: float | None, grouped: bool) -> None:
        options = (mask, 0.0, causal, scale, grouped)
        compare("aten::scaled_dot_product_attention", query, k, v, *options, strides=False, tolerance=1e-5)

    for given in (None, mask, noise(3, 5), noise(2, 1, 3, 5)):
        for scale in (None, 0.7):
            attend(q, given, False, scale, False)
    attend(q, None, True, None, False)
    attend(noise(2, 4, 3, 4), None, False, None, True)


MASKS: list[tuple[Array | None, int | None]] = [
    (None, None),
    (np.triu(np.ones((5, 5), bool), 1), 0),
    (np.array([[False] * 4 + [True], [True] + [False] * 4]), 1),
    (noise(2, 2, 5, 5) > 0.8, 2),
]


@pytest.mark.parametrize(("mask", "type"), MASKS)
def test_attention_in_one_piece(mask: Array | None, type: int | None) -> None:
    x, layers = noise(2, 5, 6), (noise(18, 6), noise(18), noise(6, 6), noise(6))
    for average in (True, False):
        given = (x, x, x, 6, 2, *layers, mask, True, average, type)
        compare("aten::_native_multi_head_attention", *given, outputs=2, strides=False, tolerance=1e-4)
    norms = (noise(6), noise(6, seed=1), noise(6, seed=2), noise(6))
    feed = (noise(8, 6), noise(8), noise(6, 8), noise(6))
    for gelu in (False, True):
        for first in (False, True):
            options = (gelu, first, 1e-5)
            arguments = (*layers, *options, *norms, *feed, mask, type)
            compare("aten::_transformer_encoder_layer_fwd", x, 6, 2, *arguments, strides=False, tolerance=1e-4)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("both", [False, True])
def test_recurrent_layers(name: str, both: bool) -> None:
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    directions, layers, hidden, width = 1 + both, 2, 5, 3
    outputs = 3 if name == "lstm" else 2
    for biased in (True, False):
        params: list[Array] = []
        for layer in range(layers):
            for d in range(directions):
                inputs = width if layer == 0 else hidden * directions
                params += [noise(gates * hidden, inputs, seed=d), noise(gates * hidden, hidden, seed=d)]
                params += [noise(gates * hidden, seed=d), noise(gates * hidden, seed=d + 9)] if biased else []
        for first in (False, True):
            x = noise(2, 4, width) if first else noise(4, 2, width)
            state = noise(layers * directions, 2, hidden)
            hx = [state, state + 1] if name == "lstm" else state
            flags = (biased, layers, 0.0, False, both, first)
            compare(f"aten::{name}", x, hx, params, *flags, outputs=outputs, tolerance=1e-5, strides=False)
        sizes = np.array([2, 2, 1])
        flags = (biased, layers, 0.0, False, both)
        packed = noise(5, width)
        compare(f"aten::{name}", packed, sizes, hx, params, *flags, outputs=outputs, tolerance=1e-5, strides=False)
    if not both:
        cell = [
            noise(gates * hidden, width),
            noise(gates * hidden, hidden),
            noise(gates * hidden),
            noise(gates * hidden),
        ]
        state = noise(2, hidden)
        hx = [state, state + 1] if name == "lstm" else state
        compare(f"aten::{name}_cell", noise(2, width), hx, *cell, outputs=outputs - 1, tolerance=1e-5, strides=False)


def test_losses() -> None:
    x, y = noise(3, 4), noise(3, 4, seed=1)
    for reduction in (0, 1, 2):
        for name in ("mse_loss", "l1_loss"):
            compare(f"aten::{name}", x, y, reduction, tolerance=1e-5)
        compare("aten::smooth_l1_loss", x, y, reduction, 0.5, tolerance=1e-5)
        compare("aten::huber_loss", x, y, reduction, 0.5, tolerance=1e-5)
        compare("aten::kl_div", x, chances(3, 4), reduction, False, tolerance=1e-5)
        compare("aten::kl_div", x, y, reduction, True, tolerance=1e-5)
        compare("aten::binary_cross_entropy", chances(3, 4), chances(4, 3).T, None, reduction, tolerance=1e-5)
        compare("aten::binary_cross_entropy_with_logits", x, chances(3, 4), None, None, reduction, tolerance=1e-5)
        compare(
            "aten::binary_cross_entropy_with_logits",
            x,
            chances(3, 4),
            chances(4),
            chances(4) * 2,
            reduction,
            tolerance=1e-5,
        )
        classes = np.array([1, 3, 0])
        for weight in (None, chances(4)):
            for ignored in (-100, 3):
                compare("aten::nll_loss", x, classes, weight, reduction, ignored, tolerance=1e-5)
                for smoothing in (0.0, 0.2):
                    arguments = (x, classes, weight, reduction, ignored, smoothing)
                    compare("aten::cross_entropy_loss", *arguments, tolerance=1e-5)
        compare("aten::cross_entropy_loss", x, chances(3, 4), None, reduction, -100, 0.0, tolerance=1e-5)
        wide = chances(3, 4).astype(np.float64)
        for target, weight in ((wide, None), (wide, chances(4)), (chances(3, 4), chances(4).astype(np.float64))):
            compare("aten::cross_entropy_loss", x, target, weight, reduction, -100, 0.1, tolerance=1e-5)
        compare(
            "aten::cross_entropy_loss",
            noise(2, 4, 3),
            np.array([[1, 0, 2]] * 2),
            None,
            reduction,
            -100,
            0.0,
            tolerance=1e-5,
        )


def test_distances() -> None:
    x, y = noise(3, 4), noise(3, 4, seed=1)
    compare("aten::cosine_similarity", x, y, 1, 1e-8, tolerance=1e-5)
    for p in (1.0, 2.0, math.inf):
        compare("aten::pairwise_distance", x, y, p, 1e-6, False, tolerance=1e-5)
        compare("aten::cdist", x, noise(5, 4), p, None, tolerance=1e-4)
    compare("aten::cdist", noise(2, 3, 4), noise(2, 5, 4), 2.0, None, tolerance=1e-4)
