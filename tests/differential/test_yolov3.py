"""irc's analysis against PyTorch's, on a scripted YOLOv3 whose boxes are decoded in place."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations_with_replacement

import pytest

from irc.alias.memory_types import has_memory
from irc.ir import Node
from tests.differential.answers import Answers
from tests.differential.both import Both
from tests.differential.conftest import Report
from tests.differential.dumps import file_alone, file_owned


@pytest.mark.parametrize("make", [file_alone, file_owned])
def test_sharing_and_writes(make: Callable[[], Both], report: Report) -> None:
    both = make()
    rng = random.Random(0)
    values = [v for v in both.values if has_memory(v.type)]
    assert len(values) >= 1000
    answers = Answers()
    answers.sharing(both, combinations_with_replacement(rng.sample(values, 700), 2))
    answers.sharing(both, ((a, b) for a in rng.sample(list(both.values), 100) for b in rng.sample(values, 100)))
    answers.writes(both)
    report(*answers.report("scripted YOLOv3, " + make.__name__.removeprefix("file_")))
    assert answers.seen["writes", True, True] >= 50
    if make is file_owned:
        assert answers.denied("sharing") > 0.9


@pytest.mark.parametrize("before", [False, True])
def test_motion(before: bool, report: Report) -> None:
    answers = Answers()
    both = file_alone()
    rng = random.Random(1)
    nodes: list[Node] = list(both.graph.nodes)
    for at in rng.sample(range(len(nodes)), 250):
        other = max(0, min(len(nodes) - 1, at + rng.randrange(-25, 25)))
        if other != at and answers.motion(both, nodes[at], nodes[other], before):
            both = file_alone()
            nodes = list(both.graph.nodes)
    report(*answers.report(f"scripted YOLOv3, moves {'before' if before else 'after'}"))
    assert answers.seen["motion", False, False] >= 20
