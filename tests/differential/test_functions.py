"""Bessel's functions, exponentials of matrices, least squares, spectrograms and fake quantization, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.differential.helpers import Array, compare
from tests.differential.test_everyday import COMPLEX, INTS, NAN, SOURCES, TURNED, X, make
from tests.differential.test_mathematics import SQUARES

WIDE = np.concatenate([np.linspace(-40, 40, 61), [0, -0.0, 700.5, -710, np.inf, -np.inf, NAN]])


@pytest.mark.parametrize("name", "special_i0e special_i1 special_i1e".split())
def test_bessel(name: str) -> None:
    for x in [*SOURCES, WIDE, WIDE.astype(np.float32)]:
        if name == "special_i1" and x.dtype.kind == "f":  # torch's is not a number of infinities, to which it grows
            x = np.where(np.isinf(x), x.dtype.type(5), x)
        compare(f"aten::{name}", x, tolerance=1e-6 if x.dtype != np.float64 else 1e-12)


def test_polygamma() -> None:
    for n in (0, 1, 2, 3, 6, -1):
        for x in [*SOURCES, np.abs(WIDE), np.linspace(0.01, 3, 50)]:
            x = np.asarray(np.abs(x)) if n and x.dtype != bool else x
            close = 1e-4 if x.dtype != np.float64 else 1e-9
            compare("aten::polygamma", n, x, tolerance=close)
            compare("aten::polygamma_", x, n, tolerance=close)


@pytest.mark.parametrize("name", "digamma_ lgamma_ erfc_ erfinv_ i0_ fix_".split())
def test_in_place(name: str) -> None:
    for x in [*SOURCES, COMPLEX]:
        compare(f"aten::{name}", x, tolerance=1e-4)


def test_of_two_in_place() -> None:
    for x in SOURCES:
        compare("aten::hypot_", x, x.copy())
        compare("aten::xlogy_", x, x[..., :1].copy() if x.ndim else x.copy())
        compare("aten::xlogy_", x, 2.5)
        compare("aten::bitwise_not_", x)


def test_exponentials_of_matrices() -> None:
    turning = np.array([[0, -3], [3, 0]], np.float32)
    large, small = make(4, 5, 5, dtype="float64") * 20, make(3, 3) * 1e-3
    broken = make(2, 3, 3)
    broken[1, 0, 0] = NAN
    for x in (*SQUARES, turning, large, small, COMPLEX[:3, :3], make(0, 2, 2), make(2, 0, 0), X, INTS[:3, :3], X[0]):
        for name in ("matrix_exp", "linalg_matrix_exp"):
            compare(f"aten::{name}", x, tolerance=1e-4 if x.dtype.char in "fF" else 1e-8, strides=False)
    compare("aten::matrix_exp", broken[:1], tolerance=1e-4)


def test_least_squares() -> None:
    tall, broad = make(2, 5, 3, dtype="float64"), make(3, 5)
    for driver in (None, "gels", "gelsy", "gelsd", "gelss", "odd"):
        for a in (tall, broad, SQUARES[0], SQUARES[1], tall.astype(np.complex128) * (1 + 2j), X[:0], INTS):
            for b in (make(*a.shape[:-1], 2), make(*a.shape[:-1]), make(a.shape[-2], 3), make(a.shape[-2])):
                close: dict[str, Any] = {"tolerance": 1e-3 if a.dtype == np.float32 else 1e-7}
                compare("aten::linalg_lstsq", a, b.astype(a.dtype), None, driver, outputs=4, strides=False, **close)
        if driver != "gels":
            singular = np.outer(np.arange(1.0, 5), np.arange(1.0, 4))
            compare("aten::linalg_lstsq", singular, make(4, 2, dtype="float64"), 1e-6, driver, outputs=4, strides=False)


def test_chains() -> None:
    a, b, c = make(2, 3), make(3, 4), make(4, 5)
    for factors in ([a], [a, b], [a, b, c], [a, c], [a[0], b], [X.astype("f8"), X.T]):
        compare("aten::chain_matmul", factors, tolerance=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_fake_quantization(dtype: str) -> None:
    special = np.array([0, -0.0, np.inf, -np.inf, NAN, 1e6, -1e6, 0.25, 0.75, 1.25], dtype)
    for x in (make(3, 4, dtype=dtype), make(4, 3, dtype=dtype).T, special, make(2, 3, 2, dtype=dtype)):
        for scale, zero in ((0.1, 3), (0.37, 0), (0.5, 255), (0.1, 300)):
            compare("aten::fake_quantize_per_tensor_affine", x, scale, zero, 0, 255)
            tensors = np.array([scale], np.float32), np.array([zero], np.int32)
            compare("aten::fake_quantize_per_tensor_affine", x, *tensors, 0, 255)
    x = make(2, 3, 4, dtype=dtype)
    for axis, n in ((0, 2), (1, 3), (-1, 4), (2, 4), (1, 2)):
        scales = np.random.default_rng(n).uniform(0.05, 1, n).astype(np.float32)
        for zero in (np.arange(n, dtype=np.int32), np.arange(n, dtype=np.float32)):
            compare("aten::fake_quantize_per_channel_affine", x, scales, zero, axis, -128, 127)


def spectrum(*shape: int) -> Array:
    return (make(*shape) + 1j * make(*shape, seed=1)).astype(np.complex64)


def test_signals_of_spectra() -> None:
    window = np.hanning(10)[1:-1].astype(np.float32) + np.float32(0.1)
    for x in (spectrum(5, 6), spectrum(2, 5, 4), spectrum(2, 5, 4).astype(np.complex128), spectrum(8, 3)):
        for hop in (None, 2, 4):
            for center in (True, False):
                for size in (None, 7, 40):
                    for normalized in (True, False):
                        rest = (center, normalized, None, size, False)
                        compare("aten::istft", x, 8, hop, None, window, *rest, tolerance=1e-4, strides=False)
    x = spectrum(8, 5)
    compare("aten::istft", x, 8, 2, 6, window[:6].copy(), True, False, False, None, True, tolerance=1e-4)
    compare("aten::istft", x, 8, 2, None, None, True, False, False, None, False, tolerance=1e-4)
    compare("aten::istft", x, 8, 2, None, None, True, False, True, None, False)
    compare("aten::istft", x, 8, 9, None, None, True, False, None, None, False)
    compare("aten::istft", X, 8, 2, None, None, True, False, None, None, False)
    compare("aten::istft", x[:5], 8, 8, None, np.zeros(8, np.float32), True, False, None, None, False)


@pytest.mark.parametrize("suffix", ["", "_"])
def test_random_slopes(suffix: str) -> None:
    for x in (X, TURNED, make(2, 3, dtype="float16"), INTS):
        compare(f"aten::rrelu{suffix}", x, 0.25, 0.25, True, None, tolerance=1e-3)
        compare(f"aten::rrelu{suffix}", x, 0.5, 0.25, True, None)
