"""``python -m benchmarks.native.fit``: derive the native functions' coefficients, and write them as a module.

Each is a best approximation in the sense of `benchmarks.native.remez`, in 60 digits, rounded at the end. The degrees
are the lowest with an error below 2^-25 or so of float32, 2^-54 of float64; the script prints what errors they have.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np

from benchmarks.native.remez import Function, minimax

TABLE = Path(__file__).parents[2] / "irc/native/functions/coefficients.py"


class Fit(NamedTuple):
    """One approximation: of ``f`` on an interval, by ``P`` or ``P/Q`` of these degrees, for float32 and for float64.

    Where a degree is None, there is none.
    """

    name: str
    comment: str
    f: Function
    weight: Function
    intervals: Sequence[tuple[Any, Any]]
    degrees: Sequence[int | None]
    below: Sequence[int] = (0, 0)
    middle: float = 0


HALF_LOG_2 = mp.log(2) / 2 * mp.mpf("1.002")  # rounding the multiple of log(2) may go beyond the half
LOW, HIGH = mp.sqrt(mp.mpf(0.5)) * mp.mpf("0.9999") - 1, mp.sqrt(2) * mp.mpf("1.0001") - 1


def _log_rest(f: Any) -> Any:
    return (mp.log1p(f) - f + f * f / 2) / f**3


def _erf_rest(z: Any) -> Any:
    return mp.erf(mp.sqrt(z)) / mp.sqrt(z) - 1


def _erfcx(x: Any) -> Any:
    return mp.exp(x * x) * mp.erfc(x)


def _odd_rest(f: Function) -> Function:
    """Of an odd function with the slope 1 at 0: (f(√z) / √z - 1) / z."""
    return lambda z: (f(mp.sqrt(z)) / mp.sqrt(z) - 1) / z


def _odd_weight(f: Function) -> Function:
    return lambda z: abs(z * mp.sqrt(z) / f(mp.sqrt(z)))


def _log_normal_rest(t: Any) -> Any:
    x = t + 6
    return (mp.log(2 * mp.ncdf(-x)) + mp.sqrt(2 / mp.pi) * x) / x**2


def _log2_rest(z: Any) -> Any:
    return (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2 - 2 * z / 3) / (z * z * mp.log(2))


def _erfc_factor(u: Any) -> Any:
    x = 2.75 * (1 + u) / (1 - u)
    return _erfcx(x) * (1 + 2 * x)


QUARTER = mp.pi / 4 * mp.mpf("1.01")

FITS = [
    Fit(
        "exp2",
        "(2^r - 1) / r on [-½, ½].",
        lambda r: (mp.power(2, r) - 1) / r,
        lambda r: abs(r) / mp.power(2, r),
        [(-0.5001, 0.5001)] * 2,
        (5, 10),
    ),
    Fit(
        "sin",
        "(sin(√z) / √z - 1) / z on [0, (π/4)²].",
        _odd_rest(mp.sin),
        _odd_weight(mp.sin),
        [(0, QUARTER**2)] * 2,
        (2, 5),
    ),
    Fit(
        "cos",
        "(cos(√z) - 1 + z/2) / z² on [0, (π/4)²].",
        lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2,
        lambda z: z * z,
        [(0, QUARTER**2)] * 2,
        (2, 5),
    ),
    Fit(
        "asin",
        "(asin(√z) / √z - 1) / z on [0, ¼].",
        _odd_rest(mp.asin),
        _odd_weight(mp.asin),
        [(0, 0.2501)] * 2,
        (4, 11),
    ),
    Fit(
        "atan",
        "(atan(√z) / √z - 1) / z on [0, tan(π/8)²].",
        _odd_rest(mp.atan),
        _odd_weight(mp.atan),
        [(0, mp.mpf("0.17162"))] * 2,
        (4, 10),
    ),
    Fit(
        "log2",
        "(2 atanh(√z) / √z - 2 - 2z/3) / (z² log(2)) on [0, ((√2 - 1) / (√2 + 1))²].",
        _log2_rest,
        lambda z: z * z,
        [(0, mp.mpf("0.02945"))] * 2,
        (2, 6),
    ),
    Fit(
        "erfc",
        "exp(x²) erfc(x) (1 + 2x), x from 0 to 10.3, 27.6, as a function of (x - 2.75) / (x + 2.75).",
        _erfc_factor,
        lambda u: 1 / _erfc_factor(u),
        [(-1, mp.mpf(10.3 - 2.75) / mp.mpf(10.3 + 2.75)), (-1, mp.mpf(27.6 - 2.75) / mp.mpf(27.6 + 2.75))],
        (10, 23),
    ),
    Fit(
        "exp",
        "(exp(r) - 1 - r) / r² on [-log(2)/2, log(2)/2].",
        lambda r: (mp.exp(r) - 1 - r) / r**2,
        lambda r: r * r / mp.exp(r),
        [(-HALF_LOG_2, HALF_LOG_2)] * 2,
        (4, 9),
    ),
    Fit(
        "log",
        "(log(1 + f) - f + f²/2) / f³ on [√½ - 1, √2 - 1].",
        _log_rest,
        lambda f: abs(f**3 / mp.log1p(f)),
        [(LOW, HIGH)] * 2,
        (7, 17),
    ),
    Fit(
        "erf",
        "erf(√z) / √z - 1 on [0, 1].",
        _erf_rest,
        lambda z: 1 / (1 + _erf_rest(z)),
        [(0, 1)] * 2,
        (6, 11),
    ),
    Fit(
        "tanh",
        "(tanh(√z) / √z - 1) / z on [0, 0.36].",
        lambda z: (mp.tanh(mp.sqrt(z)) / mp.sqrt(z) - 1) / z,
        lambda z: z * mp.sqrt(z) / mp.tanh(mp.sqrt(z)),
        [(0, 0.3601)] * 2,
        (4, 10),
    ),
    Fit(
        "normal",
        "(Φ(√z) - ½) / √z on [0, 1].",
        lambda z: (mp.ncdf(mp.sqrt(z)) - 0.5) / mp.sqrt(z),
        lambda z: mp.sqrt(z) / mp.ncdf(-mp.sqrt(z)),
        [(0, 1)] * 2,
        (4, 9),
    ),
    Fit(
        "log_normal",
        "(log(2 Φ(-x)) + √(2/π) x) / x² at x - 6, on [0, 14.2].",
        _log_normal_rest,
        lambda t: (t + 6) ** 2 * min(1, mp.exp(13 * (7.15 - t))) / (0.6 + (t + 6) ** 2),  # as Gelu's bound
        [(mp.mpf(10) ** -6 - 6, 8.2)] * 2,
        (12, None),
    ),
    Fit(
        "erfcx",
        "exp(x²) erfc(x) on [0, 10.3], [0, 27.6]: numerator, denominator.",
        _erfcx,
        lambda x: 1 / _erfcx(x),
        [(0, 10.3), (0, 27.6)],
        (4, 9),
        (5, 10),
        2,
    ),
]

HEAD = '''\
"""Coefficients of polynomials, lowest power first, of float32 and float64: written by ``benchmarks.native.fit``."""

from __future__ import annotations

# fmt: off
COEFFICIENTS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
'''


def main() -> None:
    lines = [HEAD]
    for fit in FITS:
        p, q = [], []
        for i in range(2):
            degree = fit.degrees[i]
            if degree is None:
                p.append("()")
                continue
            top, bottom, error = minimax(fit.f, *fit.intervals[i], degree, fit.below[i], fit.weight, fit.middle)
            print(f"{fit.name:10} float{32 << i}: error 2^{float(mp.log(error, 2)):.1f}", flush=True)
            p.append(_text(top, i))
            q.append(_text(bottom, i))
        lines.append(f"    # {fit.comment}\n{_entry(fit.name, p)}")
        if any(fit.below):
            lines.append(_entry(f"{fit.name}_below", q))
    TABLE.write_text("".join([*lines, "}\n"]))


def _text(coefficients: Sequence[Any], precision: int) -> str:
    """A tuple of numbers, in the fewest digits that give them in the precision."""
    numbers = [str(np.float32(float(c))) if precision == 0 else repr(float(c)) for c in coefficients]
    return f"({', '.join(numbers)})"


def _entry(name: str, tuples: Sequence[str]) -> str:
    """The lines of an entry of the table."""
    return (
        textwrap.fill(f'"{name}": ({", ".join(tuples)}),', 118, initial_indent=" " * 4, subsequent_indent=" " * 8)
        + "\n"
    )


if __name__ == "__main__":
    main()
