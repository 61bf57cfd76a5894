"""Python's copying and pickling of what holds graphs."""

import copy
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import Builder, DType, Graph, Module, parse_graph, structurally_equal, types

DEPTH = 2000
CHAIN = "".join(f"  %x{i + 1} : Float(4) = onnx::Neg[since_version=13](%x{i})\n" for i in range(DEPTH))
TEXT = f"graph(%x0 : Float(4)):\n{CHAIN}  return (%x{DEPTH})\n"


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy])
def test_copies_of_graphs_and_modules_are_those_of_their_methods(duplicate: Callable[[Any], Any]) -> None:
    graph = parse_graph(TEXT)
    for original in (graph, Module(graph)):
        made = duplicate(original)
        assert made is not original and structurally_equal(made, original) is None
        made.verify()
        (made if isinstance(made, Graph) else made.main).value("x1").node.name = "changed"
        assert not graph.value("x1").node.name
        original.verify()


def test_a_graph_in_a_structure_is_copied_once() -> None:
    graph = parse_graph(TEXT)
    first, second = copy.deepcopy([graph, graph])
    assert first is second is not graph


def test_pickling_says_what_to_do_instead() -> None:
    graph = parse_graph(TEXT)
    model = irc.compile(graph)
    for what in (graph, Module(graph), model):
        with pytest.raises(TypeError, match=r"irc\.load"):
            pickle.dumps(what)
    for duplicate in (copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            duplicate(model)
    x = np.ones(4, np.float32)
    assert model.run({"x0": x})[f"x{DEPTH}"].tolist() == x.tolist()


def out_of_order(graph: Graph) -> None:
    node = graph.value("x1").node
    assert node is not None
    node.set_inputs([graph.value("x2")])


def elsewhere(graph: Graph) -> None:
    graph.set_outputs([Graph().add_input(types.tensor(DType.FLOAT, (4,)), "far")])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [(out_of_order, "%x2 is used before it is defined"), (elsewhere, "%far belongs to another graph")],
)
def test_broken_graphs_are_refused_before_they_are_copied(
    spoil: Callable[[Graph], None], says: str, tmp_path: Path
) -> None:
    graph = Graph()
    b = Builder(graph)
    first = b.op("onnx::Neg", graph.add_input(types.tensor(DType.FLOAT, (4,)), "x0"), name="x1", version=13)
    graph.set_outputs([b.op("onnx::Neg", first, name="x2", version=13)])
    module = Module(graph)
    spoil(graph)
    for given in (graph, module):
        for use in (irc.compile, partial(irc.export, path=tmp_path / "m.onnx"), lambda model: model.verify()):
            with pytest.raises(irc.Error, match=f"IRC212: .*{says}"):  # each time: no copy uses what the graph has
                use(given)
