"""``python -m benchmarks.native.accuracy [NAME ...]``: errors of native functions over many operands.

Of float32 functions of one operand, every 7th number is an operand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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

SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 2.5, -2.5, 3.0, -3.0, np.inf, -np.inf, np.nan)


@dataclass(frozen=True)
class Reference:
    """What a function computes, in extended precision.

    Attributes:
        near: sizes of operands, below each of which many are tried.
        scale: what errors are relative to if larger than the result.
    """

    function: Callable[..., Array]
    arity: int = 1
    near: tuple[float, ...] = (1, 10, 100, 800)
    scale: Callable[..., Any] = field(default=lambda *x: 0)


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
        "log": Reference(np.log),
        "tanh": Reference(np.tanh),
        "erf": Reference(ref.erf),
        "sigmoid": Reference(ref.sigmoid),
        "silu": Reference(ref.swish),
        "softplus": Reference(ref.softplus),
        "mish": Reference(ref.mish),
        "gelu": Reference(ref.gelu),
        "gelu_tanh": Reference(ref.gelu_tanh),
    }


def operands(reference: Reference, dtype: Any, count: int, seed: int = 0) -> list[Array]:
    """Special values, random bit patterns, numbers of each size, and numbers next to 1."""
    rng = np.random.default_rng([seed, reference.arity])
    dtype = np.dtype(dtype)
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
        return [np.concatenate([part[i].astype(dtype) for part in made]) for i in range(reference.arity)]


def errors(name: str, given: Sequence[Array], found: Array) -> Errors:
    """How far results are from the reference, against the bound."""
    reference = references()[name]
    info = np.finfo(found.dtype)
    with np.errstate(all="ignore"):
        exact_operands = [x.astype(L) for x in given]
        wanted = np.asarray(reference.function(*exact_operands))
        scale = np.asarray(reference.scale(*exact_operands))
        beyond = np.ldexp(L(1), info.maxexp)  # where the number after the largest would lie: infinity counts as this
        exact, got = (np.clip(x.astype(L), -beyond, beyond) for x in (wanted, found))
        size = np.clip(np.fmax(np.abs(exact), scale), L(info.tiny), L(info.max))
        ulp = np.abs(exact - got) / np.ldexp(L(1), np.frexp(size)[1] - 1 - info.nmant)
        bound: Any = BOUNDS[name][found.dtype.itemsize == 8]
        if name.startswith("gelu"):
            bound = bound + 2 * exact_operands[0] ** 2
        is_nan = np.isnan(wanted) | np.isnan(found)
        ratio = np.where(is_nan, 0, ulp / bound)
    at = int(ratio.argmax())
    wrong_nans = np.isnan(wanted) != np.isnan(found)
    wrong_signs = ~is_nan & (np.signbit(wanted) != np.signbit(found)) & (scale == 0)
    at_most = 5
    return Errors(
        float(ulp[at]),
        float(ratio[at]),
        tuple(x[at] for x in given),
        found[at],
        [tuple(x[i] for x in given) for i in np.flatnonzero(wrong_nans)[:at_most]],
        [tuple(x[i] for x in given) for i in np.flatnonzero(wrong_signs)[:at_most]],
    )


def main() -> None:
    for name in sys.argv[1:] or FUNCTIONS:
        reference = references()[name]
        for dtype, cpu in product((np.float32, np.float64), (None, PLAIN)):
            function = compiled(FUNCTIONS[name], dtype, reference.arity, cpu=cpu)
            worst: Errors | None = None
            for part in _parts(reference, dtype):
                result = errors(name, part, function(*part))
                if worst is None or (result.wrong_nans, result.wrong_signs, result.ratio) > (
                    worst.wrong_nans,
                    worst.wrong_signs,
                    worst.ratio,
                ):
                    worst = result
            print(f"{name:12} {np.dtype(dtype).name} {cpu or 'this CPU':9} {worst}", flush=True)


def _parts(reference: Reference, dtype: Any) -> Any:
    if dtype is np.float32 and reference.arity == 1:
        for start in range(0, 1 << 32, 7 << 22):
            yield [np.arange(start, min(start + (7 << 22), 1 << 32), 7, dtype=np.uint64).astype(np.uint32).view(dtype)]
    for seed in range(4):
        yield operands(reference, dtype, 1 << 18, seed)


if __name__ == "__main__":
    main()
