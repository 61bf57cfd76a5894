"""The rows that hold the default pipeline to what runs take and do without passes."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import irc
from benchmarks.runtime import chain, decoder, kernels, passes
from benchmarks.runtime.passes import COUNTED, Ready, Subject


def test_rows_of_a_chain_and_of_a_decoder(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    tiny = decoder.Size(layers=1, hidden=32, heads=2, vocabulary=1000)
    monkeypatch.setattr(passes, "PAUSE", 0.0)
    found = {subject.name for subject in passes.subjects()}
    assert {"chain of 40 on 8", "decoder", "larger decoder", "squeezenet", "yolov3"} <= found
    monkeypatch.setattr(
        passes,
        "subjects",
        lambda: [Subject("chain", partial(passes._of_chain, 8)), Subject("decoder", partial(passes._of_decoder, tiny))],
    )
    rows = passes.measure(["chain", "decoder"])
    assert len(rows) == 2 * (2 + len(COUNTED)) and len(passes.measure(["cha"])) == 2 + len(COUNTED)
    assert all(row.value > 0 and row.limit == passes.LIMIT for row in rows if row.unit == "times")
    assert not any(row.exceeds for row in rows if row.unit in COUNTED)
    assert "chain" in capsys.readouterr().out


def test_who_takes_longer_and_does_more_exceeds_the_limits() -> None:
    def slow_with_passes(compiled: irc.CompiledModel) -> Ready:
        work = 40_000 if compiled.report.pipeline else 4_000
        return Ready(lambda: sum(range(work)), lambda: dict.fromkeys(COUNTED, work))

    slow = Subject("slow", lambda: (chain.model(4, (8,)), slow_with_passes))
    assert all(row.exceeds for row in passes.compare(slow, pairs=5))


def test_the_first_of_each_pair_alternates() -> None:
    order: list[str] = []

    def sample(run: Any, count: int) -> float:
        order.append(run())
        return 1.0

    passes._pairs({"a": lambda: "a", "b": lambda: "b"}, sample, 3)
    assert order == ["b", "a", "a", "b", "b", "a"]


def test_operators_by_hand_are_the_models() -> None:
    given = {"x": np.linspace(-1, 1, 4, dtype=np.float32), "c": np.linspace(0.5, 1.5, 4, dtype=np.float32)}
    before = given["x"].copy()
    for operators in (12, 36):
        expected = irc.compile(kernels.model(operators), "none").run(given)["y"]
        np.testing.assert_allclose(kernels.by_hand(operators)(given), expected, rtol=1e-5)
    assert (given["x"] == before).all()
    assert irc.compile(kernels.one_relu()).run({"x": np.float32([-1, 2, 0, 0, 0, 0, 0, 0])})["y"][1] == 2
