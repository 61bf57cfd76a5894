"""Windows, Fourier transforms and complex numbers, against torch."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.helpers import compare
from tests.differential.test_everyday import BOOLS, BYTES, COMPLEX, GAPS, INTS, SPECIAL, TURNED, X, make

NONE = (None, None, None, None)


@pytest.mark.parametrize("name", "hann hamming blackman kaiser".split())
def test_windows(name: str) -> None:
    for length in (0, 1, 2, 7, 16):
        compare(f"aten::{name}_window", length, *NONE, tolerance=2e-6)
        for periodic in (True, False):
            compare(f"aten::{name}_window", length, periodic, 7, None, None, None, tolerance=2e-6)
            if name in ("hamming", "kaiser"):
                compare(f"aten::{name}_window", length, periodic, 0.6, *NONE, tolerance=2e-6)
    compare("aten::hamming_window", 5, False, 0.6, 0.3, *NONE, tolerance=2e-6)
    compare(f"aten::{name}_window", 5, 4, None, None, None)
    compare(f"aten::{name}_window", -1, *NONE)


@pytest.mark.parametrize("name", "fft ifft rfft irfft".split())
def test_transforms(name: str) -> None:
    sources = [X, TURNED, GAPS, INTS, BOOLS, COMPLEX, COMPLEX.T, make(2, 3, 5, dtype="float64")]
    for x in [*sources, np.array(1.0, np.float32)]:
        for dim in (-1, 0):
            for norm in (None, "ortho", "forward", "odd"):
                compare(f"aten::fft_{name}", x, None, dim, norm, tolerance=1e-5)
            for n in (1, 3, 6, 0):
                compare(f"aten::fft_{name}", x, n, dim, None, tolerance=1e-5)
        compare(f"aten::fft_{name}2", x, None, [-2, -1], None, tolerance=1e-5)
        compare(f"aten::fft_{name}2", x, [2, -1], [-2, -1], "ortho", tolerance=1e-5)
        compare(f"aten::fft_{name}2", x, [2], [-2, -1], None)


def test_order_of_frequencies() -> None:
    for name in ("fftshift", "ifftshift"):
        for x in (X, TURNED, INTS, make(5), np.array(1.0)):
            for dim in (None, [0], [-1]):
                compare(f"aten::fft_{name}", x, dim)
        compare(f"aten::fft_{name}", make(2, 3, 4), [0, 2])
    for name in ("fftfreq", "rfftfreq"):
        for n in (1, 4, 7):
            compare(f"aten::fft_{name}", n, 0.5, *NONE)
            compare(f"aten::fft_{name}", n, 1.0, 7, None, None, None)


def test_complex_numbers_of_parts() -> None:
    for name in ("complex", "polar"):
        for x, y in (
            (X, X[0]),
            (TURNED, X),
            (GAPS, TURNED),
            (X.astype("f8"), X.astype("f8")),
            (X, X.astype("f8")),
            (INTS, INTS),
        ):
            compare(f"aten::{name}", x, y)
    for a, b in ((1.0, 2.0), (2, 1), (2, 0.5), (0.5, 2)):
        compare("aten::polar", a, b)


@pytest.mark.parametrize("name", "isposinf isneginf isreal sinc sinc_ special_sinc i0 special_entr".split())
def test_of_one(name: str) -> None:
    for x in [X, TURNED, GAPS, SPECIAL, INTS, BYTES, BOOLS, make(2, 0, 3), np.array(-2.5, np.float32), X.astype("f8")]:
        compare(f"aten::{name}", x, tolerance=3e-6)
    compare(f"aten::{name}", COMPLEX, tolerance=3e-6)


@pytest.mark.parametrize("name", "lcm nextafter ldexp float_power".split())
def test_of_two(name: str) -> None:
    for x in (X, TURNED, INTS, BYTES, SPECIAL[:4], BOOLS):
        for y in (x, np.abs(x), x[..., :1], np.asarray(x * 2)):
            compare(f"aten::{name}", x, y, tolerance=3e-6)
    if name == "float_power":
        compare("aten::float_power", INTS, 2)
        compare("aten::float_power", 2.5, INTS)
    if name == "ldexp":
        compare("aten::ldexp", X, INTS)
        compare("aten::ldexp", 1.5, -3)


def test_lines_and_words() -> None:
    for code in range(128):
        compare("aten::splitlines", f"a{chr(code)}b", False)
    for text in ("", "a", "a b  c ", "one\ntwo\r\nthree\n", "\n\nx", " a,b,,c"):
        for keep in (False, True):
            compare("aten::splitlines", text, keep)
        for separator in (" ", ",", "b "):
            for most in (-1, 0, 1, 2):
                compare("aten::rsplit", text, separator, most)


def test_transposed() -> None:
    for name in ("mH", "matrix_H"):
        for x in (X, TURNED, make(2, 3, 4), INTS, X[0]):
            compare(f"aten::{name}", x)
