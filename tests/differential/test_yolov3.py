"""irc's analysis against PyTorch's, on a scripted YOLOv3 whose boxes are decoded in place."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irc.alias import analyze
from irc.alias.memory_types import has_memory
from irc.frontend.torchscript import import_torchscript
from irc.ir import Graph, Node, Value, parse_graph
from irc.ir.types import ClassType
from tests.differential.answers import Answers
from tests.differential.both import Both
from tests.differential.conftest import report

DUMP = Path(__file__).parent.parent / "data" / "yolov3_torchscript.ir"


def without_classes(graph: Graph) -> dict[Value, Value]:
    """Let inputs take the place of attributes, one of each: PyTorch reads no class types.

    Returns: what was read of an attribute -> the input that took its place.
    """
    inputs: dict[tuple[str, ...], Value] = {}
    found: dict[Value, Value] = {}
    path: dict[Value, tuple[str, ...]] = {v: (v.name,) for v in graph.inputs if isinstance(v.type, ClassType)}
    reads = [n for n in graph.walk() if n.kind == "prim::GetAttr"]
    for node in reads:
        attribute = path[node.output] = (*path[node.inputs[0]], str(node.attributes["name"]))
        if not isinstance(node.output.type, ClassType):
            if attribute not in inputs:
                inputs[attribute] = graph.add_input(node.output.type, ".".join(attribute))
            found[node.output] = inputs[attribute]
            node.output.replace_all_uses_with(inputs[attribute])
    for node in reversed(reads):
        node.erase()
    for value in [v for v in graph.inputs if isinstance(v.type, ClassType)]:
        graph.block.erase_param(value.index)
    return found


def as_dumped() -> Both:
    """irc and PyTorch know the same: attributes may be anything."""
    graph = parse_graph(DUMP.read_text())
    without_classes(graph)
    return Both(graph)


class _AnyWeights(dict[str, Any]):
    """Memory of its own for whatever is asked for."""

    def __missing__(self, path: str) -> Any:
        return 1 if path.rpartition(".")[2] in ("stride", "no", "na") else np.zeros(1, np.float32)


def with_attributes() -> Both:
    """irc knows what the model's attributes are: each memory of its own. PyTorch does not, frozen or not."""
    text = DUMP.read_text()
    module = import_torchscript(text, _AnyWeights())
    both = as_dumped()
    lowered = parse_graph(text)
    inputs = {read.name: value.name for read, value in without_classes(lowered).items()}
    both.values = {
        value: both.values[both[inputs.get(value.name, value.name)]]
        for value in module.main.values()
        if value.name in inputs or both.graph.has_value(value.name)
    }
    both.graph, both.db = module.main, analyze(module.main)
    return both


@pytest.mark.parametrize("make", [as_dumped, with_attributes])
def test_sharing_and_writes(make: Callable[[], Both]) -> None:
    both = make()
    rng = random.Random(0)
    values = [v for v in both.values if has_memory(v.type)]
    assert len(values) >= 1000
    answers = Answers()
    answers.sharing(both, combinations_with_replacement(rng.sample(values, 700), 2))
    answers.sharing(both, ((a, b) for a in rng.sample(list(both.values), 100) for b in rng.sample(values, 100)))
    answers.writes(both)
    report(*answers.report(f"scripted YOLOv3 {make.__name__.replace('_', ' ')}"))
    assert answers.seen["writes", True, True] >= 50
    if make is with_attributes:
        assert answers.denied("sharing") > 0.9


@pytest.mark.parametrize("before", [False, True])
def test_motion(before: bool) -> None:
    answers = Answers()
    both = as_dumped()
    rng = random.Random(1)
    nodes: list[Node] = list(both.graph.nodes)
    for at in rng.sample(range(len(nodes)), 250):
        other = max(0, min(len(nodes) - 1, at + rng.randrange(-25, 25)))
        if other != at and answers.motion(both, nodes[at], nodes[other], before):
            both = as_dumped()
            nodes = list(both.graph.nodes)
    report(*answers.report(f"scripted YOLOv3, moves {'before' if before else 'after'}"))
    assert answers.seen["motion", False, False] >= 20
