"""Mutated models, as ``make fuzz-models`` tries them, but few; and that it would notice."""

import random
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx
import pytest

import irc
from tests.effort import slow_if
from tests.fuzz.models import run
from tests.fuzz.models.mutate import BYTES, STRUCTURED, mutant
from tests.fuzz.models.run import Process, differ, examine, fuzz, known_difference
from tests.fuzz.models.seeds import SEEDS, serialized
from tests.fuzz.models.worker import Answer, make_feeds

EACH, PARTS, SEED = 84, 6, 22


@pytest.mark.parametrize("part", slow_if(range(PARTS), range(1, PARTS)))
def test_mutants_are_refused_or_computed(part: int, tmp_path: Path) -> None:
    outcome = fuzz(range(part * EACH, (part + 1) * EACH), SEED, tmp_path)
    assert not outcome.failures, "\n".join(" | ".join(map(str, failure)) for failure in outcome.failures)
    assert outcome.total("ran, agrees") > EACH // 8, f"too few still run:\n{outcome}"


@pytest.mark.parametrize("name", SEEDS)
def test_the_models_run_before_they_are_mutated(name: str) -> None:
    """On some of the inputs that are made up: an index may be out of range, a shape may not fit."""
    compiled = irc.compile(onnx.load_model_from_string(serialized(name)))
    assert any(_runs(compiled, number) for number in range(20))


def _runs(compiled: Any, number: int) -> bool:
    with suppress(irc.Error):
        return bool(compiled.run(make_feeds(compiled, number), limits=irc.Limits(steps=10_000)))
    return False


def test_there_are_enough_models_and_most_mutants_still_parse() -> None:
    assert len(SEEDS) >= 20
    kinds = [mutant([*SEEDS], serialized, number, SEED)[1] for number in range(500)]
    assert sum(kind in STRUCTURED for kind in kinds) > 250
    assert set(kinds) == {*STRUCTURED, *BYTES}


@pytest.mark.parametrize("name", STRUCTURED)
def test_every_mutation_changes_models(name: str) -> None:
    changed = 0
    for number, seed in enumerate(SEEDS):
        model = onnx.load_model_from_string(serialized(seed))
        STRUCTURED[name](model, random.Random(number))
        changed += model.SerializeToString() != serialized(seed)
    assert changed >= 2


# -- what is wrong is noticed ----------------------------------------------------


class Says(Process):
    """Answers as it is told."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)

    def ask(self, request: Any, seconds: float) -> Answer:
        return self.answers.pop(0)


def ran(**results: Any) -> Answer:
    return Answer("ran", results=results)


@pytest.mark.parametrize(
    ("ours", "theirs", "expected"),
    [
        (Answer("IRC125"), [], "IRC1xx"),
        (Answer("IRC442"), [], "limit"),
        (Answer("IRC401"), [], "internal error"),
        (Answer("IRC403"), [], "memory"),
        (Answer("exception"), [], "exception"),
        (Answer("hang"), [], "hang"),
        (Answer("crash"), [], "crash"),
        (ran(y=np.ones(2)), [Answer("refused")], "ran, alone"),
        (ran(y=np.ones(2)), [Answer("crash")], "ran, alone"),
        (ran(y=np.ones(2)), [ran(y=np.ones(2))], "ran, agrees"),
        (ran(y=np.ones(2)), [ran(y=np.zeros(2)), ran(y=np.ones(2))], "ran, agrees with onnx.reference only"),
        (ran(y=np.ones(2)), [ran(y=np.zeros(2)), Answer("refused")], "differs"),
        (ran(y=np.float64([1, np.nan])), [ran(y=np.float64([1, 2]))], "ran, agrees but for NaN"),
        (ran(y=np.float64([1, np.nan])), [ran(y=np.float64([2, 2])), Answer("refused")], "differs"),
    ],
)
def test_what_is_thought_of_answers(ours: Answer, theirs: list[Answer], expected: str) -> None:
    assert examine(b"", 0, Says(ours), Says(*theirs))[1] == expected


def test_known_differences_excuse_no_others() -> None:
    assert not [name for name in SEEDS if known_difference(serialized(name)) is not None]
    model = onnx.load_model_from_string(serialized("scans"))
    body = next(a.g for a in model.graph.node[0].attribute if a.name == "body")
    body.output[0].name = body.input[1].name
    assert known_difference(model.SerializeToString()) is not None
    ours, theirs = Says(ran(y=np.ones(2))), Says(ran(y=np.zeros(2)), Answer("refused"))
    assert examine(model.SerializeToString(), 0, ours, theirs)[1] == "differs as known"


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (np.ones(2), np.ones((2, 1))),
        (np.ones(2), np.ones(2, np.float32)),
        (np.array([1, 2]), np.array([1, 3])),
        (np.array(["a"], object), np.array(["b"], object)),
        (np.array([True]), np.array([False])),
        ([np.ones(2)], [np.ones(2), np.ones(2)]),
        ([np.ones(2)], [np.zeros(2)]),
        (None, np.ones(1)),
        (np.float32([1.0, 2.0]), np.float32([1.0, 2.1])),
    ],
)
def test_differences(a: Any, b: Any) -> None:
    assert differ({"y": a}, {"y": b})
    assert differ({"y": a}, {"y": a}) is None
    assert differ({"y": b}, {"y": b}) is None


def die(pipe: Any, folder: str) -> None:
    import os

    pipe.recv()
    os._exit(7)


def sleep(pipe: Any, folder: str) -> None:
    import time

    pipe.recv()
    time.sleep(1000)


def test_a_process_that_dies_or_hangs_is_noticed(tmp_path: Path) -> None:
    with patch.object(run, "START", 1.0), patch.object(run, "PATIENCE", 1.0):
        hung = Process(sleep, tmp_path)
        assert hung.ask(1, 0.1).outcome == "hang"
    dead = Process(die, tmp_path)
    assert dead.ask(1, 1).outcome == "crash"
    assert dead.ask(1, 1).message.endswith("7")
