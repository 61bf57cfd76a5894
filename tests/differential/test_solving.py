"""Pseudoinverses, triangular equations, distances and spectra of all dimensions, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.arrays import ramp
from tests.differential.helpers import Array, Typed, compare
from tests.differential.test_everyday import BOOLS, COMPLEX, GAPS, INTS, NAN, SOURCES, SPECIAL, TURNED, X, make
from tests.differential.test_mathematics import SQUARES

HALF = make(3, 4, dtype="float16")
WIDE = make(2, 3, 5, dtype="float64")


@pytest.mark.parametrize("suffix", ["", "_"])
def test_steps(suffix: str) -> None:
    for x in [*SOURCES, COMPLEX, HALF]:
        for y in (x.copy(), x[..., :1].copy() if x.ndim else x.copy(), np.array(0.5, x.dtype), np.array(0.5)):
            compare(f"aten::heaviside{suffix}", x, y)
    compare(f"aten::heaviside{suffix}", np.array(0.0, np.float32), np.array([0.5, NAN], np.float32))


def test_trapezoids() -> None:
    for x in (X, TURNED, INTS, SPECIAL):
        for dim in (0, -1):
            compare("aten::trapz", x, 0.5, dim)
            compare("aten::trapz", x, x, dim)


def test_correlations() -> None:
    empty = make(3, 0), make(0, 3)
    for x in (X, TURNED, GAPS, INTS, COMPLEX, BOOLS, X[0], *empty, WIDE, np.array(2.0, np.float32)):
        compare("aten::corrcoef", x, strides=False)


@pytest.mark.parametrize("suffix", ["", "_"])
def test_renorm(suffix: str) -> None:
    for x in (X, TURNED, GAPS, WIDE, COMPLEX, HALF, INTS, X[0], make(0, 3), np.array(2.0, np.float32)):
        for p in (1, 2, 0.5, float("inf"), 0, -1):
            for dim in (0, -1, 5):
                for maxnorm in (1.5, 0, -1):
                    compare(f"aten::renorm{suffix}", x, p, dim, maxnorm)


def test_distances_among_rows() -> None:
    for x in (X, TURNED, GAPS, X.astype("float64"), INTS, COMPLEX, X[:1], X[:0], X[:, :0], WIDE, X[0]):
        for p in (2.0, 1.0, 0.0, 3.5, float("inf"), -1.0):
            compare("aten::pdist", x, p)


def test_products_of_many() -> None:
    a, b, c = make(2, 3), make(3, 4), make(4, 5)
    row, column = make(2), make(5)
    for factors in ([a, b], [a, b, c], [row, a, b], [row, a, b, c, column], [c, column], [row, row], [a[:, :0], b[:0]]):
        compare("aten::linalg_multi_dot", factors, tolerance=1e-5)
    for factors in ([a], [a, c], [a, row, b], [a, b.astype("float64")], [WIDE, b], [row, column]):
        compare("aten::linalg_multi_dot", factors)
    compare("aten::linalg_multi_dot", [INTS, INTS.T, INTS])


def test_eigenvalues() -> None:
    turning = np.array([[0, 1], [-1, 0]], np.float32)
    for x in (*SQUARES, turning, COMPLEX[:3, :3], make(2, 0, 0), X, INTS[:3, :3], X[0]):
        compare("aten::linalg_eigvals", x, tolerance=1e-4)


@pytest.mark.parametrize("upper", [False, True])
def test_triangular_equations(upper: bool) -> None:
    def check(a: Array, b: Array) -> None:
        for left in (True, False):
            for ones in (True, False):
                compare("aten::linalg_solve_triangular", a, b, upper, left, ones, tolerance=1e-4)
        for turned in (True, False):
            for ones in (True, False):
                compare("aten::triangular_solve", b, a, upper, turned, ones, outputs=2, tolerance=1e-4)

    for a in [*SQUARES, SQUARES[0].T, SQUARES[1][0].astype(np.complex128) * (1 + 1j)]:
        n = a.shape[-1]
        for shape in ((n, 2), (n, n), (2, n), (n,), (2, n, 3), (n, 0)):
            check(a, make(*shape, dtype="float64").astype(a.dtype))
    check(np.zeros((2, 2)), np.ones((2, 2)))
    check(np.zeros((0, 0)), np.ones((0, 2)))
    check(SQUARES[0], X[:, :3])
    check(INTS[:3, :3], INTS[:3, :3])
    check(X, X)


def test_pseudoinverses() -> None:
    singular = np.outer(np.arange(3.0), np.arange(4.0))
    for x in [*SQUARES, make(3, 5, dtype="float64"), WIDE, singular, X, COMPLEX, make(0, 3), make(2, 3, 0), INTS, X[0]]:
        close: dict[str, Any] = {"tolerance": 1e-4 if x.dtype.itemsize < 8 or x.dtype.kind == "c" else 1e-8}
        compare("aten::pinverse", x, 1e-6, **close)
        for hermitian in (False, True):
            symmetric = x @ np.conjugate(np.swapaxes(x, -1, -2)) if hermitian and x.ndim > 1 else x
            for rcond in (1e-6, 0.3, np.array(0.3, x.dtype)):
                compare("aten::linalg_pinv", symmetric, rcond, hermitian, **close)
            for atol, rtol in ((None, None), (0.5, None), (0.0, None), (None, 0.3), (0.5, 0.1)):
                compare("aten::linalg_pinv", symmetric, atol, rtol, hermitian, **close)
    compare("aten::linalg_pinv", WIDE, np.array([0.1, 0.9]), None, False)
    compare("aten::linalg_pinv", X, None, None, True)


@pytest.mark.parametrize("name", "fftn ifftn rfftn irfftn".split())
def test_spectra_of_all_dimensions(name: str) -> None:
    options = (None, None), ([2], None), ([2, 5], None), (None, [0]), ([3], [-2]), ([2], [0, 1]), (None, [0, 0])
    for x in (X, TURNED, GAPS, INTS, COMPLEX, COMPLEX.T, WIDE, BOOLS, X[0], np.array(1.0, np.float32)):
        for sizes, axes in options:
            for norm in (None, "ortho", "odd"):
                compare(f"aten::fft_{name}", x, sizes, axes, norm, tolerance=1e-5)


def test_parts_of_storage() -> None:
    base = ramp(3, 4)
    for x in (base, base.T, base[1:], base[:, ::2], base[1:, ::2], np.broadcast_to(ramp(4), (3, 4)), INTS):
        for size, stride in (([2, 2], [4, 1]), ([2], [3]), ([2], [0]), ([0, 2], [1, 1]), ([2, 2], [40, 1])):
            for offset in (None, 0, 1):
                compare("aten::as_strided_scatter", x, np.asarray(ramp(*size) + np.float32(50)), size, stride, offset)
    compare("aten::as_strided_scatter", base, ramp(2), [2, 2], [4, 1], None)
    compare("aten::as_strided_scatter", base, np.array(9.0, np.float32), Typed([], "int[]"), Typed([], "int[]"), 5)


def test_images_from_maxima() -> None:
    places = np.array([[[0, 3], [8, 11]]])
    x = ramp(1, 2, 2) + 1
    pair = np.ascontiguousarray(ramp(1, 2, 2, 2).transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    for size in ([4, 4], [3, 4], [2, 2], [12], [-3, -4]):
        compare("aten::max_unpool2d", x, places, size)
        compare("aten::max_unpool2d", x[None], places[None], size)
        compare("aten::max_unpool2d", pair, np.broadcast_to(places, (1, 2, 2, 2)).copy(), size)
    for source, index in ((x[0], places[0]), (x, places.astype(np.int32)), (x, places[:, :1]), (x, places * 0 - 1)):
        compare("aten::max_unpool2d", source, index, [3, 4])
    for shape in ((0, 1, 2, 2), (2, 0, 2, 2), (1, 1, 0, 2), (0, 2, 2)):
        compare("aten::max_unpool2d", ramp(*shape), np.zeros(shape, np.int64), [3, 4])


@pytest.mark.parametrize("suffix", ["", "_"])
def test_slopes_in_evaluation(suffix: str) -> None:
    for x in SOURCES:
        compare(f"aten::rrelu{suffix}", x, 0.1, 0.5, False, None)
        compare(f"aten::rrelu{suffix}", x, -1, 2, False, None)


def test_what_tells_whether_it_succeeded() -> None:
    for a in SQUARES:
        symmetric = a @ np.swapaxes(a, -1, -2)
        for check in (True, False):
            compare("aten::linalg_inv_ex", a, check, outputs=2, tolerance=1e-7)
            for flag in (True, False):
                compare("aten::linalg_cholesky_ex", symmetric, flag, check, outputs=2, tolerance=1e-7)
                compare("aten::linalg_solve_ex", a, symmetric, flag, check, outputs=2, tolerance=1e-7)


def test_by_factors() -> None:
    for a in SQUARES:
        lower = np.linalg.cholesky(a @ np.swapaxes(a, -1, -2))
        for upper in (True, False):
            factor = np.ascontiguousarray(np.swapaxes(lower, -1, -2)) if upper else lower
            compare("aten::cholesky_inverse", factor, upper, tolerance=1e-6)
            compare("aten::cholesky_solve", make(*a.shape[:-1], 2, dtype="float64"), factor, upper, tolerance=1e-6)
    compare("aten::cholesky_solve", make(2, 2), SQUARES[0], False)


def test_products_along_a_dimension() -> None:
    threes, bits = make(4, 3), (make(4, 3) + 1j * make(4, 3, seed=1)).astype(np.complex64)
    for x, y in ((threes, threes[::-1].copy()), (threes, threes[:1].copy()), (bits, threes), (INTS[:, :3], threes[:3])):
        compare("aten::linalg_cross", x, y, -1)
        compare("aten::linalg_vecdot", x, y, -1, strides=False)
        compare("aten::linalg_vecdot", x, y, 0, strides=False)
    for x, y in ((X, X[:, ::-1].copy()), (threes, threes[0].copy()), (threes.T, threes[::-1].copy().T)):
        for dim in (0, -1):
            compare("aten::linalg_cross", x, y, dim, strides=False)
    for dims in ((0, -2, -1), (1, 0, 1), (-1, -1, -2)):
        compare("aten::linalg_diagonal", X, *dims)
