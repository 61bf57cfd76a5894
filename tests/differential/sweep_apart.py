"""The sweep in a process of its own: where PyTorch ends that, it is a fault of the row, and the rest goes on."""

import random
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from irc.ir.schema import Schema
from tests.differential import sweep
from tests.differential.sweep_arguments import arguments

FAULTLESS = ("agree", "refused", "skipped", "excused")
MOST_TOLD = 3
"""Faults of one kind and row of which the arguments are told."""

_FORK = get_context("fork")  # what is imported is imported once


class Swept(NamedTuple):
    """What calls of one row gave.

    Attributes:
        row: the row.
        verdicts: how often each outcome was found.
        faults: of some that are none of `FAULTLESS`, the verdict, what is wrong, and the arguments.
    """

    row: Schema
    verdicts: Counter[str]
    faults: list[tuple[str, str, str]]


def swept_apart(rows: Sequence[Schema], most: int, seed: int) -> Iterator[Swept]:
    """Up to ``most`` calls of each row, as of `sweep.sweep`. A call that ends the process has the verdict "crashes"."""
    rows = list(rows)
    while rows:
        done = 0
        ours, theirs = _FORK.Pipe(duplex=False)
        made = _FORK.Value("q", 0)
        process = _FORK.Process(target=_sweep, args=(theirs, made, rows, most, seed), daemon=True)
        process.start()
        theirs.close()
        try:
            while done < len(rows):
                yield Swept(rows[done], *ours.recv())
                done += 1
        except EOFError:
            pass
        process.join()
        if done < len(rows):
            yield _crash(rows[done], made.value, seed, process.exitcode)
            done += 1
        rows = rows[done:]


def _sweep(to: Connection, made: Any, rows: Sequence[Schema], most: int, seed: int) -> None:
    for row in rows:
        verdicts, faults = Counter[str](), list[tuple[str, str, str]]()
        for outcome, given in sweep.sweep(row, most, seed, made):
            verdicts[outcome.verdict] += 1
            if outcome.verdict not in FAULTLESS and verdicts[outcome.verdict] <= MOST_TOLD:
                faults.append((outcome.verdict, outcome.text, told(row, given)))
        to.send((verdicts, faults))


def _crash(row: Schema, made: int, seed: int, exit_code: int | None) -> Swept:
    """What is told of a row whose ``made``-th arguments ended the process."""
    rng = random.Random(f"{sweep.name_of(row)} {seed}")
    given: list[Any] = []
    for _ in range(made):
        given = arguments(row, rng)
    how = signal.Signals(-exit_code).name if exit_code is not None and exit_code < 0 else f"status {exit_code}"
    return Swept(row, Counter(crashes=1), [("crashes", f"the process ended: {how}", told(row, given))])


def told(row: Schema, given: Sequence[Any]) -> str:
    """The arguments of a call in one line."""
    return ", ".join(f"{a.name}={sweep.described(v)}" for a, v in zip(row.arguments, given))[:600]


def main(most: int, seed: int, pattern: str = "") -> int:
    """Print the faults of all rows whose names match ``pattern``, and what was swept; 1 if there are faults."""
    counts, empty = Counter[str](), list[str]()
    chosen = [row for row in sweep.swept() if sweep.matches(row, pattern)]
    for row, verdicts, faults in swept_apart(chosen, most, seed):
        for verdict, text, given in faults:
            print(f"{sweep.name_of(row)}: {verdict}: {text}\n    {given}", flush=True)
        counts += verdicts
        if not verdicts["agree"]:
            empty.append(sweep.name_of(row))
    wrong = {verdict: n for verdict, n in counts.items() if verdict not in FAULTLESS}
    print(f"{len(chosen)} of {len(sweep.rows_with_kernels())} rows with a kernel; {dict(counts)}; faults {wrong}")
    print(f"never computed: {' '.join(empty) or 'none'}")
    return int(bool(wrong))
