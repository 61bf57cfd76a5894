"""``python -m benchmarks.goldens.ulp``: measure the error of every pointwise kernel, and write the table ``ulp.md``.

The reference is extended precision (64 bits of mantissa), so results of float64 are measured too; where NumPy's
``longdouble`` is no wider than float64, these are left out. Of float16 and bfloat16 every number is an operand of
each function of one; of others, numbers of all magnitudes, numbers near 0, and special ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import irc
from benchmarks.goldens.pointwise import CONDITION, OPERATORS, Operator
from benchmarks.goldens.references import L
from irc.ir import parse_graph

TABLE = Path(__file__).parent / "ulp.md"
DTYPES: dict[str, Any] = {
    "Half": np.float16,
    "BFloat16": ml_dtypes.bfloat16,
    "Float": np.float32,
    "Double": np.float64,
}
"""Name in IR text -> element type."""

WIDE = np.finfo(L).nmant > 60
"""Whether extended precision says something of float64."""

SIZE = 1 << 16
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, 3.0, np.inf, -np.inf, np.nan)

Array = np.ndarray[Any, Any]


class Error(NamedTuple):
    """The largest error of a kernel in ulp, the operands there, and the number of results that alone are NaN or not."""

    ulp: float
    operands: tuple[Any, ...]
    wrong_nans: int

    def __str__(self) -> str:
        return f"{self.ulp:.3g}" + (f" (NaN: {self.wrong_nans})" if self.wrong_nans else "")


def operands(names: Iterable[str], dtype: Any, size: int = SIZE, seed: int = 0) -> dict[str, Array]:
    """Operands for a measurement: one of 16 bits alone has every number, others have ``size``."""
    names = list(names)
    dtype = np.dtype(dtype)
    rng = np.random.default_rng([seed, len(names), dtype.itemsize])
    floats = [name for name in names if name != CONDITION]
    with np.errstate(all="ignore"):
        if len(floats) == 1 and dtype.itemsize == 2 and size >= SIZE:
            made = [np.arange(SIZE, dtype=np.uint16).view(dtype)]
        else:
            special = np.array(list(product(SPECIAL, repeat=len(floats)))).T
            parts = [special[i].astype(dtype) for i in range(len(floats))]
            quarter = (size - len(special[0])) // 4
            made = [np.concatenate((parts[i], *_numbers(rng, dtype, quarter))) for i in range(len(floats))]
    found = dict(zip(floats, made))
    if CONDITION in names:
        found[CONDITION] = rng.random(len(made[0])) < 0.5
    return found


def _numbers(rng: np.random.Generator, dtype: np.dtype[Any], count: int) -> list[Array]:
    """Of all magnitudes, below 1, below 10, below 100."""
    bits = rng.bytes(count * dtype.itemsize)
    even = [rng.uniform(-limit, limit, count).astype(dtype) for limit in (1, 10, 100)]
    return [np.frombuffer(bits, dtype), *even]


def measure(operator: Operator, element: str, size: int = SIZE, seed: int = 0) -> Error:
    """The largest error of a kernel for one element type.

    Raises:
        irc.Error: whatever irc does not take.
    """
    given = operands(operator.operands, DTYPES[element], size, seed)
    if operator.limit < np.inf:
        limit = DTYPES[element](min(operator.limit, float(ml_dtypes.finfo(DTYPES[element]).max) / 16))
        with np.errstate(invalid="ignore"):
            given = {name: np.clip(x, -limit, limit).astype(x.dtype) for name, x in given.items()}
    model = irc.compile(parse_graph(operator.text(element)), "none", backend="numpy")
    found = model.run(given)["r"]
    with np.errstate(all="ignore"):
        exact = [given[name] if name == CONDITION else given[name].astype(L) for name in operator.operands]
        wanted = np.asarray(operator.reference(*exact))
        scale = operator.scale(*exact) if operator.scale else L(0)
        at, ulp, nans = _largest_error(wanted, found, scale)
    return Error(ulp, tuple(given[name][at] for name in operator.operands), nans)


def _largest_error(wanted: Array, found: Array, scale: Array) -> tuple[int, float, int]:
    if found.dtype == bool:
        wrong = wanted.astype(bool) != found
        return int(wrong.argmax()), float(np.inf if wrong.any() else 0), 0
    info = ml_dtypes.finfo(found.dtype)
    beyond = np.ldexp(L(1), info.maxexp)  # where the number after the largest would lie: infinity counts as this
    exact, got = (np.clip(x.astype(L), -beyond, beyond) for x in (wanted, found))
    size = np.clip(np.fmax(np.abs(exact), scale), L(info.tiny), L(info.max))
    ulp = np.ldexp(L(1), np.frexp(size)[1] - 1 - info.nmant)
    is_nan = np.isnan(exact) | np.isnan(got)
    errors = np.where(is_nan, 0, np.abs(exact - got) / ulp)
    at = int(errors.argmax())
    return at, float(errors[at]), int(np.count_nonzero(np.isnan(exact) != np.isnan(got)))


HEAD = """\
# Errors of pointwise kernels

Written by `python -m benchmarks.goldens.ulp`. The largest error that was found, in units in the last place (ulp) of the
result in extended precision; 0.5 is correctly rounded. Operators that cancel, or whose results underflow, are marked
with `*`: their errors are in ulp of the result or of their terms (of functions of one operand: 1), whichever is larger.
"NaN: n": so many results are NaN where the reference is not, or the other way round. Rounding to decimals is left out,
as are results that are integers.

| operator | float16 | bfloat16 | float32 | float64 |
|---|---|---|---|---|
"""


def read(path: Path = TABLE) -> dict[tuple[str, str], tuple[float, int]]:
    """The table: (operator, element type as IR text calls it) -> largest error in ulp, and how many NaN are wrong."""
    found: dict[tuple[str, str], tuple[float, int]] = {}
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `") and len(cells) == 1 + len(DTYPES):
            name = cells[0].rstrip("*").strip("`")
            for element, cell in zip(DTYPES, cells[1:]):
                ulp, _, nans = cell.rstrip(")").partition(" (NaN: ")
                if ulp != "-":
                    found[name, element] = float(ulp), int(nans or 0)
    return found


def write(rows: Mapping[str, Mapping[str, Error]], path: Path = TABLE) -> None:
    """Write the table."""
    lines = [HEAD]
    for operator in OPERATORS:
        cells = [f"`{operator.name}`" + "*" * (operator.scale is not None)]
        cells += [str(rows[operator.name].get(element, "-")) for element in DTYPES]
        lines.append(f"| {' | '.join(cells)} |\n")
    path.write_text("".join(lines))


def main() -> None:
    rows: dict[str, dict[str, Error]] = {}
    for operator in OPERATORS:
        row = rows[operator.name] = {}
        for element in DTYPES:
            if element == "Double" and not WIDE:
                continue
            try:
                row[element] = measure(operator, element)
            except irc.Error as error:
                print(f"{operator.name} of {element}: {error.code} {error.message[:150]}")
        worst = max(row.values(), key=lambda e: (e.wrong_nans, e.ulp), default=None)
        shown = ", ".join(f"{element} {error}" for element, error in row.items())
        print(f"{operator.name:36} {shown}   at {worst.operands if worst else ''}", flush=True)
    write(rows)


if __name__ == "__main__":
    main()
