"""irc's analysis against PyTorch's, on random programs that both read."""

import random
from itertools import combinations_with_replacement

from irc.ir import Node
from tests.alias.programs import random_choices
from tests.differential.answers import Answers
from tests.differential.both import Both
from tests.differential.conftest import Report
from tests.differential.programs import program

PROGRAMS, MOVED = 600, 250


def test_sharing_and_writes(report: Report) -> None:
    answers = Answers()
    for seed in range(PROGRAMS):
        both = Both(program(random_choices(seed)))
        pairs = list(combinations_with_replacement(both.values, 2))
        random.Random(seed).shuffle(pairs)
        answers.sharing(both, pairs)
        answers.writes(both)
    report(*answers.report(f"{PROGRAMS} random programs"))
    for query, case in (
        ("sharing", 1),
        ("sharing", 2),
        ("sharing", 4),
        ("sharing", 5),
        ("sharing", 7),
        ("writes", 1),
        ("writes", 3),
    ):
        assert answers.reasons[query, f"case {case}"] >= 10, f"case {case} is hardly ever the reason for {query}"


def test_motion(report: Report) -> None:
    answers = Answers()
    for seed in range(MOVED):
        both = Both(program(random_choices(seed)))
        rng = random.Random(seed)
        for _ in range(12):
            block = rng.choice(list(both.graph.blocks()))
            nodes: list[Node] = list(block.nodes)
            if len(nodes) > 1:
                node, point = rng.sample(nodes, 2)
                answers.motion(both, node, point, before=rng.random() < 0.5)
    report(*answers.report(f"{MOVED} random programs"))
    assert answers.seen["motion", False, False] >= 100
    assert answers.seen["motion", True, True] >= 100
