"""irc's analysis against PyTorch's, on a scripted YOLOv3 whose boxes are decoded in place."""

import random
from itertools import combinations_with_replacement

import pytest

from irc.alias.memory_types import has_memory
from irc.ir import Node
from tests.differential.answers import Answers
from tests.differential.both import Both
from tests.differential.conftest import Report
from tests.differential.dumps import file_alone, file_owned


@pytest.fixture(scope="module")
def alone() -> Both:
    return file_alone()


@pytest.fixture(scope="module")
def owned() -> Both:
    return file_owned()


@pytest.mark.parametrize("known", ["alone", "owned"])
def test_sharing_and_writes(known: str, request: pytest.FixtureRequest, report: Report) -> None:
    both: Both = request.getfixturevalue(known)
    rng = random.Random(0)
    values = [v for v in both.values if has_memory(v.type)]
    assert len(values) >= 1000
    answers = Answers()
    answers.sharing(both, combinations_with_replacement(rng.sample(values, 700), 2))
    answers.sharing(both, ((a, b) for a in rng.sample(list(both.values), 100) for b in rng.sample(values, 100)))
    answers.writes(both)
    report(*answers.report(f"scripted YOLOv3, {known}"))
    assert answers.seen["writes", True, True] >= 50
    if known == "owned":
        assert answers.denied("sharing") > 0.9


@pytest.mark.parametrize("before", [False, True])
def test_motion(alone: Both, before: bool, report: Report) -> None:
    answers = Answers()
    rng = random.Random(1)
    was = str(alone.theirs)
    nodes: list[Node] = list(alone.graph.nodes)
    for at in rng.sample(range(len(nodes)), 250):
        other = max(0, min(len(nodes) - 1, at + rng.randrange(-25, 25)))
        if other != at:
            answers.motion(alone, nodes[at], nodes[other], before)
    assert str(alone.theirs) == was, "moves are taken back"
    report(*answers.report(f"scripted YOLOv3, moves {'before' if before else 'after'}"))
    assert answers.seen["motion", False, False] >= 20
