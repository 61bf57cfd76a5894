"""A short portion of the sweep over all rows; ``make sweep`` runs as much of it as one likes."""

import os
import random
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.differential import sweep
from tests.differential.conftest import Report
from tests.differential.sweep_apart import FAULTLESS, swept_apart, told
from tests.differential.sweep_arguments import arguments
from tests.differential.sweep_exceptions import ungenerated

CALLS, SEED, PARTS = 12, 0, 16


@pytest.mark.filterwarnings("ignore")  # of what PyTorch deprecates
@pytest.mark.parametrize("part", range(PARTS))
def test_rows_agree_with_pytorch(part: int) -> None:
    faults: list[str] = []
    for row in sweep.swept()[part::PARTS]:
        for outcome, given in sweep.sweep(row, CALLS, SEED):
            if outcome.verdict not in FAULTLESS:
                shown = ", ".join(map(sweep.described, given))
                faults.append(f"{sweep.name_of(row)}({shown[:300]}): {outcome.verdict}: {outcome.text}")
    assert not faults, "\n".join(faults)


def test_most_rows_are_swept(report: Report) -> None:
    rows = sweep.rows_with_kernels()
    left_out = [row for row in rows if ungenerated(row)]
    report(f"{len(rows) - len(left_out)} of {len(rows)} rows of aten:: operators with a kernel are swept")
    assert len(rows) - len(left_out) > 1190


@pytest.mark.filterwarnings("ignore")
def test_wrong_kernels_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value off by two units in the last place more than is allowed, a sign of zero, a type, a shape, a refusal."""
    row = next(r for r in sweep.swept() if sweep.name_of(r) == "abs")
    plan = sweep._plan

    def changed(change: Callable[[Any], Any]) -> int:
        class Changed:
            def run(self, given: list[Any]) -> list[Any]:
                return [change(v) for v in plan(row, ("Tensor",)).run(given)]

        monkeypatch.setattr(sweep, "_plan", lambda row, types: Changed())
        verdicts = [outcome.verdict for outcome, _ in sweep.sweep(row, 60, 1)]
        return sum(v not in FAULTLESS for v in verdicts)

    def refused(x: Any) -> Any:
        raise sweep.Error("IRC423", "no")

    assert changed(lambda x: x) == 0
    assert changed(lambda x: (x * (1 + 20 * 2.0**-52)).astype(x.dtype) if x.dtype.name == "float64" else x) > 0
    assert changed(lambda x: np.where(x == 0, -x, x) if x.dtype.kind == "f" else x) > 3
    assert changed(lambda x: x.astype("float64") if x.dtype.name == "float32" else x) > 10
    assert changed(lambda x: x[None]) > 30
    assert changed(refused) > 10


def test_arguments_depend_on_the_seed_alone() -> None:
    rows = [row for row in sweep.swept() if sweep.name_of(row) in ("add.Tensor", "clamp", "gather", "im2col")]
    for row in rows:
        first, again, other = (arguments(row, random.Random(seed)) for seed in (1, 1, 2))
        assert sweep.described(first) == sweep.described(again)
        assert len(first) == len(row.arguments) == len(other)


@pytest.mark.filterwarnings("ignore")
def test_a_call_that_ends_the_process_is_a_fault_of_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in sweep.swept() if sweep.name_of(row) in ("abs", "add.Tensor", "ceil", "floor")]
    called, call = 0, sweep.call

    def crashing(row: Any, given: list[Any]) -> Any:
        nonlocal called
        called += sweep.name_of(row) == "ceil"
        if called == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(row, given)

    monkeypatch.setattr(sweep, "call", crashing)
    found = {sweep.name_of(row): (verdicts, faults) for row, verdicts, faults in swept_apart(rows, 6, 3)}
    assert list(found) == [sweep.name_of(row) for row in rows]
    assert {name for name, (verdicts, _) in found.items() if verdicts["crashes"]} == {"ceil"}
    assert all(verdicts["agree"] for name, (verdicts, _) in found.items() if name != "ceil")
    ((verdict, text, given),) = found["ceil"][1]
    (row,) = [row for row in rows if sweep.name_of(row) == "ceil"]
    rng = random.Random("ceil 3")
    made = [arguments(row, rng) for _ in range(3)]
    assert (verdict, text) == ("crashes", "the process ended: SIGKILL")
    assert given in [told(row, each) for each in made], "arguments that are skipped are not called"
