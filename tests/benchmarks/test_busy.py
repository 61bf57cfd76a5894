"""Models beside busy processes, which the benchmark ends whatever happens."""

import subprocess
from typing import Any

import pytest

from benchmarks import busy as module
from benchmarks.busy import RUNS, busy, slowdown, times
from benchmarks.race import IRC


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Processes that were started; `kill` and `wait` are noted."""
    found: list[Any] = []

    class Process:
        def __init__(self, command: list[str]) -> None:
            self.did = list[str]()
            found.append(self)

        def kill(self) -> None:
            self.did.append("kill")

        def wait(self) -> None:
            self.did.append("wait")

    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    return found


def test_processes_end_with_the_measurement(started: list[Any]) -> None:
    with busy(3):
        assert [process.did for process in started] == [[]] * 3
    with pytest.raises(KeyboardInterrupt), busy(1):
        raise KeyboardInterrupt
    assert [process.did for process in started] == [["kill", "wait"]] * 4


def test_all_run_on_the_same_inputs_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    calls: list[tuple[str, int]] = []
    found = times({name: lambda x, name=name: calls.append((name, x)) for name in "ab"}, 5, 2)
    assert calls == ([("a", 5)] * (1 + RUNS) + [("b", 5)] * (1 + RUNS)) * 2
    assert found.keys() == {"a", "b"}


def test_slower_is_as_a_multiple_of_the_quiet_time(
    started: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seconds = iter([{IRC: 1.0, module.PEER: 4.0}, {IRC: 6.0, module.PEER: 12.0}])
    monkeypatch.setattr(module, "times", lambda *_: next(seconds))
    monkeypatch.setattr(module, "bundled_model", lambda _: None)
    monkeypatch.setattr(module, "randomize_weights", lambda model, seed: model)
    monkeypatch.setattr(module, "seeded_inputs", lambda model, seed: {})
    monkeypatch.setattr(module.irc, "compile", lambda _: type("Model", (), {"run": None}))
    monkeypatch.setattr(module.peers, "runners", lambda _: {module.PEER: None})
    assert slowdown("m", 1, 2) == 2.0
    assert len(started) == 2 and "6.00 times" in capsys.readouterr().out
