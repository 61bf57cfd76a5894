"""What the runtime's benchmarks of whole models count, on models that take no time."""

import pytest

from benchmarks.runtime import memory, models
from irc.runtime.execution import Counters
from irc.runtime.profile import NodeProfile, Profile


def test_events_of_another_profiler_belong_to_the_run_they_lie_in():
    def node(kind: str, ts: int, dur: int) -> dict[str, object]:
        return {"cat": "Node", "name": f"n{ts}_kernel_time", "ts": ts, "dur": dur, "args": {"op_name": kind}}

    events = [
        {"cat": "Session", "name": "model_run", "ts": 100, "dur": 50},
        {"cat": "Session", "name": "session_initialization", "ts": 0, "dur": 90},
        node("FusedConv", 101, 20),
        node("Conv", 121, 5),
        {"cat": "Node", "name": "fence_before", "ts": 130, "dur": 1, "args": {"op_name": "Conv"}},
        {"cat": "Session", "name": "model_run", "ts": 200, "dur": 50},
        node("Relu", 201, 7),
    ]
    found = models.operators_by_run(events)
    assert found == [{"Conv": pytest.approx(25e-6)}, {"Relu": pytest.approx(7e-6)}]


def test_rows_of_a_model_are_of_whole_runs_and_its_table_by_operator_with_the_peers_beside(capsys):
    profile = Profile(100, 60, 10, [NodeProfile("onnx::Conv", "%y", own=60)], [], [], 7, 0, Counters(), {})
    whole = {"irc": [2.0], "onnxruntime": [1.0]}
    found = models.Comparison("m", whole, {"Conv": 0.06, "Relu": 0.01}, {"Conv": 0.02}, profile)
    rows = {row.name.split(" ")[0]: row for row in models.rows(found)}
    assert rows["m/run/onnxruntime"].ratio == 2
    assert rows["m/peak"].value == 7
    models.show(found)
    lines = {words[0]: words[1:] for line in capsys.readouterr().out.splitlines() if (words := line.split())}
    assert lines["Conv"] == ["60.00", "85.7%", "20.00", "3.00"]
    assert lines["Relu"] == ["10.00", "14.3%"]


def test_what_is_planned_is_not_allocated():
    found = memory.compare("squeezenet")
    rows = {row.name.removeprefix("squeezenet/"): row.value for row in memory.rows(found)}
    assert rows["planned/allocations"] == 1 < rows["unplanned/allocations"]  # the output, which leaves
    assert rows["planned/bound"] <= rows["planned/arena"] <= rows["unplanned/peak"]
    assert rows["planned/peak"] <= rows["planned/arena"] + 4000 + 64
