"""Decompositions, norms, quantiles and losses of pairs, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irc.ir import parse_graph
from irc.runtime.plan import lower
from tests.differential.helpers import Array, compare, text_of
from tests.differential.test_everyday import COMPLEX, INTS, NAN, TURNED, X, make


def mine(kind: str, *arguments: Any, outputs: int = 1) -> Any:
    return lower(parse_graph(text_of(kind, arguments, outputs))).run(list(arguments))


def square(*shape: int, dtype: str = "float64") -> Array:
    x = make(*shape, dtype=dtype)
    return (x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])).astype(dtype)


SQUARES = [square(3, 3), square(2, 4, 4), square(1, 1), np.swapaxes(square(2, 3, 3) + make(3, 3), -1, -2)]


def test_equations() -> None:
    for a in SQUARES:
        n = a.shape[-1]
        for b in (make(*a.shape[:-1], 2, dtype="float64"), make(*a.shape[:-1], dtype="float64")):
            compare("aten::linalg_solve", a, b, True, tolerance=1e-8)
        compare("aten::linalg_solve", a, make(*a.shape[:-2], 2, n, dtype="float64"), False, tolerance=1e-8)
        compare("aten::linalg_solve", a, make(n, dtype="float64"), True, tolerance=1e-8)
    compare("aten::linalg_solve", np.zeros((2, 2)), np.zeros((2, 2)), True)
    compare("aten::linalg_solve", X, X, True)
    compare("aten::linalg_solve", SQUARES[0], X[:, :1], True)


@pytest.mark.parametrize("name", "linalg_slogdet slogdet logdet linalg_matrix_power matrix_power".split())
def test_of_square_matrices(name: str) -> None:
    for a in [*SQUARES, -SQUARES[0], np.zeros((2, 2)), X, X[0], INTS[:3, :3]]:
        for rest in ((0,), (1,), (3,), (-2,)) if "power" in name else ((),):
            compare(f"aten::{name}", a, *rest, outputs=2 if "slog" in name else 1, tolerance=1e-8)


def test_decompositions() -> None:
    for a in [*SQUARES, make(3, 5, dtype="float64"), make(2, 5, 3, dtype="float64")]:
        compare("aten::linalg_svdvals", a, None, tolerance=1e-9)
        for full in (True, False):
            compare("aten::linalg_svd", a, full, None, outputs=3, values=False)
            u, s, vh = mine("aten::linalg_svd", a, full, None, outputs=3)
            np.testing.assert_allclose(
                (u[..., : s.shape[-1]] * s[..., None, :]) @ vh[..., : s.shape[-1], :], a, atol=1e-9
            )
    for a in SQUARES[:3]:
        for triangle in ("L", "U"):
            compare("aten::linalg_eigvalsh", a, triangle, tolerance=1e-9)
            compare("aten::linalg_eigh", a, triangle, outputs=2, values=False)
        values, vectors = mine("aten::linalg_eigh", a, "L", outputs=2)
        np.testing.assert_allclose(vectors * values[..., None, :] @ np.swapaxes(vectors, -1, -2), a, atol=1e-9)
    compare("aten::linalg_eigh", SQUARES[0], "X", outputs=2)


def test_norms() -> None:
    for x in (X, TURNED, make(2, 3, 4, dtype="float64"), COMPLEX, INTS, X[0]):
        for ord in ("fro", "nuc", 1, -1, 2, -2, float("inf"), 3, "odd"):
            for dim in ([-2, -1], [1, 0]):
                compare("aten::linalg_matrix_norm", x, ord, dim, x.ndim == 3, None, tolerance=1e-5)
            for dim in (None, [0, 1], [0]):
                compare("aten::linalg_norm", x, ord, dim, False, None, tolerance=1e-5)
        for dim in (None, [0], [-1]):
            compare("aten::linalg_norm", x, None, dim, True, None, tolerance=1e-5)


def test_outer_and_diagonal() -> None:
    for x in (X, TURNED, INTS):
        for beta, alpha in ((1, 1), (2, 3), (0, 1)):
            compare("aten::addr", x, x[:, 0].copy(), x[0].copy(), beta, alpha)
    for blocks in ([X, X[0], TURNED], [INTS, X], [np.array(2.0, np.float32)], [X, make(2, 3, 4)]):
        compare("aten::block_diag", list(blocks))
    for offset in (0, 2, -1):
        compare("aten::diagflat", TURNED, offset)
        compare("aten::diagflat", np.array(3), offset)


@pytest.mark.parametrize("name", ["quantile", "nanquantile"])
def test_quantiles(name: str) -> None:
    holes = np.where(make(3, 4, seed=2) > 1, np.float32(NAN), X)
    holes[1] = NAN
    for x in (X, TURNED, holes, make(2, 3, 4), np.array(1.5, np.float32), X.astype("f8"), INTS, X[:0]):
        q = np.array([0, 0.3, 0.5, 1], x.dtype)
        for way in ("linear", "lower", "higher", "midpoint", "nearest", "odd"):
            for keep in (False, True):
                for dim in (None, 0, -1):
                    compare(f"aten::{name}", x, 0.4, dim, keep, way, strides=False)
                    compare(f"aten::{name}", x, q, dim, keep, way, strides=False)
    compare(f"aten::{name}", X, 1.5, None, False, "linear")


def test_medians_of_numbers() -> None:
    holes = np.where(make(3, 4, seed=2) > 1, np.float32(NAN), X)
    for x in (X, TURNED, INTS, holes, np.array(1.5, np.float32), np.full((2, 2), NAN), X[:0]):
        compare("aten::nanmedian", x)
        for dim in (0, -1):
            for keep in (False, True):
                distinct = x if not np.isnan(np.asarray(x, float)).all() else X
                compare("aten::nanmedian", distinct, dim, keep, outputs=2)


SIGNS = np.where(make(3, 4, seed=3) > 0, 1, -1).astype(np.float32)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_losses(reduction: int) -> None:
    for x in (X, TURNED, X.astype("f8"), X.astype("f2")):
        y, signs = make(3, 4, seed=5).astype(x.dtype), SIGNS.astype(x.dtype)
        near: dict[str, Any] = {"strides": False, "tolerance": 2e-3 if x.dtype == np.float16 else 2e-5}
        compare("aten::margin_ranking_loss", x, y, signs, 0.5, reduction, **near)
        compare("aten::hinge_embedding_loss", x, signs, 0.5, reduction, **near)
        compare("aten::soft_margin_loss", x, signs, reduction, **near)
        for log in (True, False):
            for full in (True, False):
                compare("aten::poisson_nll_loss", np.abs(x), np.abs(y), log, full, 1e-3, reduction, **near)
        for swap in (True, False):
            compare("aten::triplet_margin_loss", x, y, y[::-1].copy(), 1.0, 2.0, 1e-6, swap, reduction, **near)
        compare("aten::cosine_embedding_loss", x, y, signs[:, 0].copy(), 0.1, reduction, **near)
    compare("aten::cosine_embedding_loss", X, X, SIGNS, 0.1, reduction)
    compare("aten::soft_margin_loss", INTS, INTS, reduction)


def test_orthogonal() -> None:
    for a in [*SQUARES, make(3, 5, dtype="float64"), make(2, 5, 3, dtype="float64")]:
        for mode in ("reduced", "complete", "r", "odd"):
            compare("aten::linalg_qr", a, mode, outputs=2, tolerance=1e-8)


def test_choices() -> None:
    for r in (0, 1, 2, 3, 5):
        for again in (False, True):
            compare("aten::combinations", X[0], r, again)
            compare("aten::combinations", INTS[0, :0], r, again)
    compare("aten::combinations", X, 2, False)
    for vectors in ([X[0], X[1, :2]], [INTS[0], INTS[1], INTS[2, :1]], [X[0], INTS[0]], [X], [X[0], X[0, :0]]):
        compare("aten::cartesian_prod", vectors)


def test_integrals_and_powers() -> None:
    for y in (X, TURNED, INTS, X[0], make(2, 3, 4, dtype="float64")):
        for dim in (0, -1):
            n = y.shape[dim]
            compare("aten::trapezoid", y, np.linspace(0, 2, n).astype(np.float32), dim, tolerance=1e-5)
            compare("aten::trapezoid", y, 0.5, dim, tolerance=1e-5)
            compare("aten::trapezoid", y, y, dim, tolerance=1e-5)
    for x in (X[0], INTS[0], COMPLEX[0], X):
        for n in (None, 0, 1, 5):
            for increasing in (False, True):
                compare("aten::vander", x, n, increasing, tolerance=1e-5)


def test_covariances() -> None:
    counts, weights = np.array([1, 2, 0, 3]), np.array([0.5, 1, 2, 0.1], np.float32)
    for x in (X, TURNED, INTS, X[0], COMPLEX, X > 0):
        for correction in (0, 1):
            for f in (None, counts):
                for w in (None, weights):
                    compare("aten::cov", x, correction, f, w, tolerance=2e-5)


@pytest.mark.filterwarnings("ignore")
def test_spectra_over_time() -> None:
    window = np.hanning(8).astype(np.float32)
    for x in (make(40), make(2, 40), make(40, dtype="float64"), make(2, 40) * 1j, make(5)):
        for hop, length, w in ((None, None, None), (3, 8, window), (5, 6, None), (2, 8, window[:6])):
            for normalized in (False, True):
                for onesided in (None, False, True):
                    for as_complex in (True, False, None):
                        rest = (normalized, onesided, as_complex, None)
                        compare("aten::stft", x, 8, hop, length, w, *rest, tolerance=1e-5)
