"""Operators of everyday programs that belong to no large family: each against torch, on several layouts and types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.differential.helpers import Array, compare

NAN = np.nan


def make(*shape: int, dtype: str = "float32", seed: int = 0, low: float = -3, high: float = 4) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape).astype(dtype)


X, TURNED, GAPS = make(3, 4), make(4, 3).T, make(3, 8)[:, ::2]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, NAN, 1, -1, NAN, 3, 3], np.float32)
INTS, BYTES = make(3, 4, dtype="int64", low=-9, high=9), make(3, 4, dtype="uint8", low=0)
BOOLS = make(3, 4) > 0
COMPLEX = (X + 1j * make(3, 4, seed=1)).astype(np.complex64)
SOURCES = [X, TURNED, GAPS, SPECIAL, INTS, BYTES, BOOLS, make(2, 0, 3), np.array(-2.5, np.float32), X.astype("float64")]


@pytest.mark.parametrize("name", "angle rad2deg deg2rad signbit rad2deg_ deg2rad_".split())
def test_of_one(name: str) -> None:
    for x in SOURCES:
        compare(f"aten::{name}", x)
    if name == "angle":
        compare("aten::angle", COMPLEX)
        compare("aten::angle", COMPLEX.T)
        for number in (2, -2, 1.5, -1.5, 1 - 1j):
            compare("aten::angle", number)


@pytest.mark.parametrize("name", "logaddexp logaddexp2 gcd gcd_".split())
def test_of_two(name: str) -> None:
    for x in SOURCES:
        for y in (x, x[..., :1] if x.ndim else x):
            compare(f"aten::{name}", x, y, tolerance=2e-6)
    if name == "gcd":
        compare("aten::gcd", 12, -18)
        compare("aten::gcd", INTS, INTS.astype(np.int32).T.copy().T)


@pytest.mark.parametrize("name", "cummax cummin logcumsumexp cumprod_ diff msort".split())
def test_along_a_dimension(name: str) -> None:
    pair = {"outputs": 2} if name in ("cummax", "cummin") else {}
    for x in [*SOURCES, make(2, 3, 4, dtype="int64"), make(4, 3, 2).T]:
        for dim in (0, -1) if name not in ("msort", "diff") else (0,):
            rest: tuple[Any, ...] = () if name == "msort" else (1, dim, None, None) if name == "diff" else (dim,)
            rest = (dim, None) if name == "cumprod_" else rest
            compare(f"aten::{name}", x, *rest, tolerance=1e-5, **pair)


def test_differences() -> None:
    for n in (0, 1, 2, 9):
        compare("aten::diff", X, n, 1, None, None)
        compare("aten::diff", TURNED, n, -1, TURNED[:, :1], None)
        compare("aten::diff", INTS, n, 0, INTS[:1], INTS[:2])


@pytest.mark.parametrize("name", ["nansum", "nanmean"])
def test_without_what_is_no_number(name: str) -> None:
    holes = np.where(make(3, 4, seed=2) > 0, X, np.float32(NAN))
    for x in [*SOURCES, holes, np.full((2, 2), NAN, np.float32)]:
        compare(f"aten::{name}", x, None, False, None)
        for dims in ([0], [-1]):
            compare(f"aten::{name}", x, dims, True, None)
    compare(f"aten::{name}", holes, [0, 1], False, 7)


def test_distances_and_membership() -> None:
    for p in (0, 1, 2, 3.0, float("inf")):
        compare("aten::dist", X, TURNED, p)
        compare("aten::dist", X, X[:1], p)
    for invert in (False, True):
        compare("aten::isin", INTS, INTS[0], False, invert)
        compare("aten::isin", INTS.T, np.zeros(0, np.int64), False, invert)
        compare("aten::isin", TURNED, float(TURNED[0, 0]), False, invert)
        compare("aten::isin", 3, INTS, False, invert)


def test_products() -> None:
    for x, y in ((X, X), (TURNED, X), (X[0], X), (X[0], X[1]), (X, np.array(2.0, np.float32)), (make(2, 3, 4), X)):
        compare("aten::inner", x, y, tolerance=1e-5)
    compare("aten::inner", X, make(3, 5))
    compare("aten::inner", make(0, 4), X)
    compare("aten::vdot", X[0], X[1], tolerance=1e-5)
    compare("aten::vdot", COMPLEX[0], COMPLEX[1], tolerance=1e-5)
    compare("aten::vdot", X, X)
    for x, y in ((X, X[:2]), (X[0], X), (INTS, BYTES), (make(2, 3, 2), X), (np.array(2.0, np.float32), X)):
        compare("aten::kron", x, y)
    for beta, alpha in ((1, 1), (2, 3), (0, 1)):
        compare("aten::baddbmm_", make(2, 3, 5), make(2, 3, 4), make(2, 4, 5), beta, alpha, tolerance=1e-5)


def test_diagonals() -> None:
    for x in (X, TURNED, INTS, X[0], make(2, 3, 4), np.array(1.0, np.float32)):
        for offset, dims in ((0, (-2, -1)), (2, (0, -1)), (-1, (1, 0)), (0, (0, 0))):
            compare("aten::diag_embed", x, offset, *dims)


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_scattered_in_place(reduce: str) -> None:
    index = np.random.default_rng(0).integers(0, 3, (3, 4))
    for include in (True, False):
        compare("aten::scatter_reduce_", X, 0, index, make(3, 4, seed=3), reduce, include)


@pytest.mark.parametrize("name", "inverse linalg_inv det linalg_det cholesky linalg_cholesky".split())
def test_square_matrices(name: str) -> None:
    upper = [(False,), (True,)] if "cholesky" in name else [()]
    for shape in ((3, 3), (2, 4, 4), (1, 1), (0, 0), (2, 0, 0)):
        x = make(*shape, dtype="float64")
        x = x @ np.swapaxes(x, -1, -2) + 2 * np.eye(shape[-1])
        for rest in upper:
            compare(f"aten::{name}", x, *rest, tolerance=1e-9)
            compare(f"aten::{name}", np.swapaxes(x, -1, -2), *rest, tolerance=1e-9)
            compare(f"aten::{name}", x.astype(np.float32), *rest, tolerance=2e-4)
    for wrong in (np.zeros((2, 2)), X, X[0], INTS[:3, :3], -np.eye(2)):
        compare(f"aten::{name}", wrong, *upper[0])


STRINGS = ["", "a", "Ab c", "abcabc", "ABC", "12", "a1", "  x\t\n", "Title Case", "two  words", "-12", "+3", "_id"]


@pytest.mark.parametrize(
    "name",
    "isalnum isalpha isdecimal isdigit islower isnumeric isprintable isspace istitle isupper "
    "capitalize swapcase title".split(),
)
def test_of_strings(name: str) -> None:
    for text in STRINGS:
        compare(f"aten::{name}", text)


def test_in_strings() -> None:
    for text in STRINGS:
        for sought in ("a", "bc", "c", "zz", ""):
            for name in ("find", "rfind", "rindex"):
                for start, end in ((0, -1), (1, -1), (1, 4), (0, -2)):
                    if start <= len(text):  # beyond, torch fails inside
                        compare(f"aten::{name}", text, sought, start, end)
            if sought and text:  # of nothing, and in nothing, torch seeks for ever
                compare("aten::replace", text, sought, "-+", -1)
                compare("aten::replace", text, sought, "", 1)
                for name in ("partition", "rpartition"):
                    compare(f"aten::{name}", text, sought, outputs=3)
        for name in ("strip", "lstrip", "rstrip"):
            compare(f"aten::{name}", text, " \n\t\f\v")
            compare(f"aten::{name}", text, "aA1")
        for width in (0, 5, 6, 20):
            for name in ("center", "ljust", "rjust"):
                compare(f"aten::{name}", text, width, "*")
            compare("aten::zfill", text, width)
    compare("aten::center", "a", 4, "**")


def test_of_numbers() -> None:
    for n in (0, 1, -1, 255, -4096, 2**63 - 1):
        for name in ("hex", "bin", "oct"):
            compare(f"aten::{name}", n)
    for a in (7, -7, 7.5, -7.5, 0, 0.0):
        for b in (2, -2, 2.5, -2.5, 0, 0.0):
            compare("aten::divmod", a, b, outputs=2)
        for name in ("degrees", "radians", "fabs"):
            compare(f"aten::{name}", a)
    for n in (-1, 0, 1, 5, 20):
        compare("aten::factorial", n)
    for x in (0.0, 1.5, -3.25, 1e300):
        compare("aten::frexp", x, outputs=2)
        compare("aten::modf", x, outputs=2)
