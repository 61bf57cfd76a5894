"""What is recorded of a program is found again, and whatever differs from it is said."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irc
from benchmarks.goldens.compare import difference, errors, lines
from benchmarks.goldens.outcome import RUNS, Outcome, outcome
from benchmarks.goldens.programs import digest, generate, named
from benchmarks.goldens.store import Reader, Writer
from irc.ir import parse_graph
from tests.graphs import ir

GRAPH = ir("x: Float(4)", "y: Float(4) = Exp(x)", "y")
INPUT = np.array([-1, 0, 1, 2], np.float32)


def _act(compiled: irc.CompiledModel) -> tuple[Any, list[Any]]:
    return compiled.run({"x": INPUT}), [compiled.counters]


def _kept(folder: Path, found: Outcome, name: str = "set/program|none|run") -> Reader:
    writer = Writer({})
    writer.outcome(name, "inputs", found)
    writer.save(folder / "goldens")
    return Reader(folder / "goldens")


def test_a_program_that_computes_the_same_has_no_difference(tmp_path: Path) -> None:
    graph = parse_graph(GRAPH)
    reader = _kept(tmp_path, outcome(graph, "none", _act))
    again = difference(reader, "set/program|none|run", "inputs", outcome(graph, "none", _act))
    assert not (again.faults or again.errors or again.counters) and not [*lines(again)]
    assert reader.outcomes["set/program|none|run"]["counters"]["kernels"] == 1


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        (INPUT, INPUT * np.float32(1 + 1e-3), "ulp"),
        (INPUT, INPUT[:2], "float32[4], now float32[2]"),
        (INPUT, INPUT.astype(np.float64), "now float64"),
        (INPUT, np.array([np.nan, 0, 1, 2], np.float32), "inf ulp"),
        (np.array([1, 2]), np.array([1, 3]), "1 of 2 elements"),
        (np.array(["a"], object), np.array(["b"], object), "other bits"),
        (3, 4, "3, now 4"),
        (None, INPUT, "None"),
    ],
)
def test_other_results_are_faults(tmp_path: Path, before: Any, after: Any, fault: str) -> None:
    reader = _kept(tmp_path, Outcome({"y": before}))
    found = difference(reader, "set/program|none|run", "inputs", Outcome({"y": after}))
    assert fault in " ".join(found.faults), found


def test_small_errors_are_said_and_no_faults(tmp_path: Path) -> None:
    reader = _kept(tmp_path, Outcome({"y": INPUT}))
    found = difference(reader, "set/program|none|run", "inputs", Outcome({"y": np.nextafter(INPUT, np.float32(9))}))
    assert not found.faults and found.errors["y"][0] == 1
    assert difference(reader, "set/program|none|run", "inputs", Outcome({"y": -INPUT}), 1e9).errors["y"][1] == 2
    assert difference(reader, "set/program|none|run", "others", Outcome({"y": INPUT})).faults
    assert difference(reader, "set/another|none|run", "inputs", Outcome({"y": INPUT})).faults


def test_more_copies_are_a_fault_and_other_counters_are_said(tmp_path: Path) -> None:
    reader = _kept(tmp_path, Outcome(counters={"copies": 1, "kernels": 5}))
    name = "set/program|none|run"
    assert not difference(reader, name, "inputs", Outcome(counters={"copies": 0, "kernels": 7})).faults
    assert difference(reader, name, "inputs", Outcome(counters={"copies": 2})).faults
    found = difference(reader, name, "inputs", Outcome(counters={"copies": 1, "kernels": 7}))
    assert found.counters == {"kernels": (5, 7)} and "5 -> 7" in " ".join(lines(found))


def test_runs_that_give_other_bits_are_a_fault_unless_they_did_before(tmp_path: Path) -> None:
    values = iter(range(2 * RUNS))

    def act(_: irc.CompiledModel) -> tuple[Any, list[Any]]:
        return {"y": np.float32(next(values))}, []

    found = outcome(parse_graph(GRAPH), "none", act)
    assert found.unsteady == ["y"]
    steady = _kept(tmp_path, Outcome({"y": np.asarray(np.float32(0))}))
    assert difference(steady, "set/program|none|run", "inputs", found).faults
    assert not difference(_kept(tmp_path, found), "set/program|none|run", "inputs", found).faults


def test_errors_count_units_in_the_last_place_of_the_type() -> None:
    one = np.ones(1, ml_dtypes.bfloat16)
    assert errors(one, one + ml_dtypes.bfloat16(2**-7)) == (1, 2**-7)
    assert errors(np.zeros(1, np.float16), np.array([2**-24], np.float16))[0] == 1
    assert errors(np.array([np.inf, np.nan]), np.array([np.inf, np.nan])) == (0, 0)
    assert errors(np.array([1 + 1j]), np.array([1 + 1j + 2**-52]))[0] == 1


def test_an_error_is_an_outcome(tmp_path: Path) -> None:
    def act(compiled: irc.CompiledModel) -> tuple[Any, list[Any]]:
        return compiled.run({}), []

    found = outcome(parse_graph(GRAPH), "none", act)
    assert found.error == "IRC410"
    assert difference(_kept(tmp_path, found), "set/program|none|run", "inputs", Outcome({"y": INPUT})).faults


def test_random_programs_are_kept_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.goldens.programs.RANDOM", {"dense": 8})
    writer = Writer({})
    generate(writer)
    writer.save(tmp_path / "goldens")
    reader = Reader(tmp_path / "goldens")
    ran = 0
    for entry in named(["random"], reader):
        program = entry.load()
        before = digest(program.inputs)
        error = outcome(program.model, "default", program.acts["run"]).error
        assert error in ("", "IRC413"), error  # of inputs that disagree about a named size
        ran += not error
        assert digest(program.inputs) == before == digest(entry.load().inputs)
    assert ran and len(reader.programs) == 8
