"""``python -m benchmarks.native.accuracy [NAME ...] [STEP]``: errors of native functions over many operands.

Of float32 functions of one operand that do not cancel, every 7th number is an operand, or every STEP-th.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from benchmarks.goldens import references as ref
from benchmarks.goldens.references import L
from benchmarks.native.harness import PLAIN, compiled
from irc.native.functions import BOUNDS, FUNCTIONS

Array = np.ndarray[Any, Any]
WIDE = np.finfo(L).nmant > 60
"""Whether extended precision says something of float64."""

_WHOLE = (2.0**23 + 1, 2.0**24 - 1, 2.0**52 + 1, 2.0**53 - 1)  # odd numbers with no bits to spare
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 2.5, -2.5, 3.0, -3.0, *_WHOLE, np.inf, -np.inf, np.nan)


@dataclass(frozen=True)
class Reference:
    """What a function computes, in extended precision.

    Attributes:
        near: sizes of operands, below each of which many are tried.
        domain: brings any numbers to where the function is defined.
        share: of how many operands one is tried, as the reference is slow.
    """

    function: Callable[..., Array]
    arity: int = 1
    near: tuple[float, ...] = (1, 10, 100, 800)
    share: int = 1
    domain: Callable[[Array], Array] = lambda x: x


class Errors(NamedTuple):
    """The largest error, its share of the bound, where, and the numbers of NaN and signs that are wrong."""

    ulp: float
    ratio: float
    operands: tuple[Any, ...]
    found: Any
    wrong_nans: list[Any]
    wrong_signs: list[Any]


@cache
def references() -> dict[str, Reference]:
    """The reference of each function."""
    return {
        "exp": Reference(np.exp),
        "exp_of_negative": Reference(np.exp, domain=lambda x: -np.abs(x)),
        "exp2": Reference(np.exp2, near=(1, 200, 1100)),
        "expm1": Reference(np.expm1),
        "log": Reference(np.log),
        "log2": Reference(np.log2),
        "log10": Reference(np.log10),
        "log1p": Reference(np.log1p),
        "tanh": Reference(np.tanh),
        "sin": Reference(np.sin, near=(1, 10, 100, 3000, 1e5, 2e6)),
        "cos": Reference(np.cos, near=(1, 10, 100, 3000, 1e5, 2e6)),
        "asin": Reference(np.arcsin),
        "acos": Reference(np.arccos),
        "atan": Reference(np.arctan),
        "power": Reference(np.power, 2, near=(2, 10, 100)),
        "erfc": Reference(ref.erfc, near=(1, 10, 28), share=2),
        "erf": Reference(ref.erf, share=2),
        "sigmoid": Reference(ref.sigmoid),
        "silu": Reference(ref.swish),
        "softplus": Reference(ref.softplus),
        "mish": Reference(ref.mish),
        "gelu": Reference(ref.gelu, share=2),
        "gelu_tanh": Reference(ref.gelu_tanh),
    }


def operands(reference: Reference, dtype: Any, count: int, seed: int = 0) -> list[Array]:
    """Special values, random bit patterns, numbers of each size, and numbers next to 1."""
    rng = np.random.default_rng([seed, reference.arity])
    dtype, count = np.dtype(dtype), count // reference.share
    info = np.finfo(dtype)
    special = (*SPECIAL, info.tiny, -info.tiny, info.smallest_subnormal, -info.smallest_subnormal, info.max, info.min)
    made: list[list[Array]] = [list(map(np.array, zip(*product(special, repeat=reference.arity))))]
    for _ in range(2):
        made.append([np.frombuffer(rng.bytes(count * dtype.itemsize), dtype) for _ in range(reference.arity)])
    for size in reference.near:
        made.append([rng.uniform(-size, size, count) for _ in range(reference.arity)])
    made.append([np.exp(rng.uniform(-20, 5, count)) for _ in range(reference.arity)])
    made.append([rng.uniform(0.95, 1.05, count) for _ in range(reference.arity)])
    with np.errstate(all="ignore"):
        return [reference.domain(np.concatenate([p[i].astype(dtype) for p in made])) for i in range(reference.arity)]


def expected(name: str, given: Sequence[Array]) -> Array:
    """The exact results."""
    with np.errstate(all="ignore"):
        return np.asarray(references()[name].function(*[x.astype(L) for x in given]))


def errors(name: str, given: Sequence[Array], found: Array, wanted: Array) -> Errors:
    """How far results are from those that `expected` gives, against the bound."""
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        beyond = np.ldexp(L(1), info.maxexp)  # where the number after the largest would lie: infinity counts as this
        exact, got = (np.clip(x.astype(L), -beyond, beyond) for x in (wanted, found))
        size = np.clip(np.abs(exact), L(info.tiny), L(info.max))
        ulp = np.abs(exact - got) / np.ldexp(L(1), np.frexp(size)[1] - 1 - info.nmant)
        bound: Any = BOUNDS[name]
        if name.startswith("gelu"):
            bound = bound + 2 * given[0].astype(L) ** 2
        is_nan = np.isnan(wanted) | np.isnan(found)
        ratio = np.where(is_nan, 0, ulp / bound)
    at = int(ratio.argmax())
    wrong_nans = np.isnan(wanted) != np.isnan(found)
    wrong_signs = ~is_nan & (np.signbit(wanted) != np.signbit(found))
    at_most = 5
    return Errors(
        float(ulp[at]),
        float(ratio[at]),
        tuple(x[at] for x in given),
        found[at],
        [tuple(x[i] for x in given) for i in np.flatnonzero(wrong_nans)[:at_most]],
        [tuple(x[i] for x in given) for i in np.flatnonzero(wrong_signs)[:at_most]],
    )


def exhaustive(name: str, cpu: str | None, step: int) -> tuple[float, float]:
    """The share of the bound, and where, that float32 results take, of every ``step``-th number.

    The reference is the native function of float64, which is measured by itself.
    """
    single, double = (compiled(FUNCTIONS[name], dtype, cpu=c) for dtype, c in ((np.float32, cpu), (np.float64, None)))
    bound: Any = BOUNDS[name]
    worst, where = 0.0, 0.0
    for start in range(0, 1 << 32, step << 20):
        bits = np.arange(start, min(start + (step << 20), 1 << 32), step, dtype=np.uint32)
        x = references()[name].domain(bits.view(np.float32))
        with np.errstate(all="ignore"):
            wanted, found = double(x.astype(np.float64)), single(x).astype(np.float64)
            if (np.isnan(wanted) != np.isnan(found)).any():
                return np.inf, float(x[np.isnan(wanted) != np.isnan(found)][0])
            wanted, found = np.clip(wanted, -(2.0**128), 2.0**128), np.clip(found, -(2.0**128), 2.0**128)
            exponent = np.maximum(wanted.view(np.int64) >> 52 & 0x7FF, 1023 - 126)
            ulp = (exponent - 23 << 52).view(np.float64)
            limit = bound + 2 * x.astype(np.float64) ** 2 if name.startswith("gelu") else bound
            ratio = np.abs(wanted - found) / ulp / limit
        at = int(np.nanargmax(ratio)) if not np.isnan(ratio).all() else 0
        if ratio[at] > worst:
            worst, where = float(ratio[at]), float(x[at])
    return worst, where


def main() -> None:
    names = [x for x in sys.argv[1:] if not x.isdigit()] or list(FUNCTIONS)
    step = next((int(x) for x in sys.argv[1:] if x.isdigit()), 7)
    for name, dtype in product(names, (np.float32, np.float64)):
        reference = references()[name]
        functions = {cpu: compiled(FUNCTIONS[name], dtype, reference.arity, cpu=cpu) for cpu in (None, PLAIN)}
        found: dict[str | None, list[Errors]] = {cpu: [] for cpu in functions}
        for seed in range(4):
            given = operands(reference, dtype, 1 << 16, seed)
            exact = expected(name, given)
            for cpu, function in functions.items():
                found[cpu].append(errors(name, given, function(*given), exact))
        for cpu, results in found.items():
            worst = max(results, key=lambda e: (len(e.wrong_nans), len(e.wrong_signs), e.ratio))
            more = ""
            if dtype is np.float32 and reference.arity == 1 and not reference.scale:
                ratio, where = exhaustive(name, cpu, step)
                more = f"; of every {step}th number {ratio:.3f} at {where!r}"
            wrong = (
                f", NaN {worst.wrong_nans}, signs {worst.wrong_signs}" if worst.wrong_nans or worst.wrong_signs else ""
            )
            print(
                f"{name:11} {np.dtype(dtype).name} {cpu or 'this CPU':8} {worst.ulp:.2f} ulp, of the bound "
                f"{worst.ratio:.3f} at {tuple(map(float, worst.operands))}{wrong}{more}",
                flush=True,
            )


if __name__ == "__main__":
    main()
