"""PyTorch reads what irc prints of ``aten`` and ``prim`` graphs; irc reads the same graph of what PyTorch then prints.

What TorchScript's text has no words for is listed in ``docs/reference/ir-text.md`` and in ``words``:
whether a graph has any of that decides whether PyTorch reads it, both ways.
"""

import copy
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from irc.frontend.torchscript import import_torchscript
from irc.ir import Builder, Graph, ListType, Tensor, Type, parse_graph, structurally_equal, types
from irc.ir.clone import copy_module
from irc.passes import PassManager
from tests.alias.programs import random_choices
from tests.differential.conftest import Report
from tests.differential.dumps import FILE, without_classes
from tests.differential.programs import program
from tests.differential.words import wordless
from tests.differential.zoo import SCRIPTED, TRACED, scripted, traced
from tests.ir import strategies

PROGRAMS = 400
OPTIMISE = "canonicalize,constant-fold,remove-mutation,cse,dce,in-place,shape-inference"
NOTE = re.compile("# : [^#\n]*")
"""Tells types that PyTorch has no words for; like all comments, it is lost there."""


def through_pytorch(graph: Graph) -> Graph | None:
    """What irc reads of what PyTorch prints of what it reads of what irc prints; None if PyTorch refuses."""
    try:
        theirs = torch._C.parse_ir(str(graph))
    except RuntimeError:
        return None
    return parse_graph(str(theirs))


def assert_reads_back(graph: Graph) -> None:
    found = through_pytorch(graph)
    assert found is not None, f"PyTorch refuses this:\n{graph}"
    kept = parse_graph(NOTE.sub("", str(graph)))
    assert structurally_equal(kept, found, names=False) is None  # PyTorch numbers results, and drops comments


def assert_reads_if_it_can_be(graph: Graph) -> None:
    missing = wordless(graph)
    if not missing:
        assert_reads_back(graph)
    elif missing != {"NaN"}:
        found = through_pytorch(graph)
        assert found is None or structurally_equal(graph, found, names=False), f"PyTorch reads what has {missing}"


def lift_tensors(graph: Graph) -> int:
    """Let inputs take the place of tensor constants; how many there were."""
    held = [n for n in graph.walk() if isinstance(n.attributes.get("value"), Tensor)]
    for node in held:
        node.output.replace_all_uses_with(graph.add_input(node.output.type, node.output.name))
        node.erase()
    return len(held)


@pytest.mark.parametrize("passes", ["", OPTIMISE])
def test_random_programs(passes: str, report: Report) -> None:
    kinds = Counter[str]()
    for seed in range(PROGRAMS):
        graph = program(random_choices(seed))
        PassManager(passes).run(graph)
        assert_reads_back(graph)
        kinds.update(node.kind for node in graph.walk())
    what = f"{PROGRAMS} random programs{', optimised' if passes else ''}"
    report(f"{what}: PyTorch reads irc's text of {kinds.total()} nodes of {len(kinds)} kinds")
    assert kinds["prim::Loop"] > PROGRAMS // 5


@pytest.mark.parametrize("passes", ["", OPTIMISE])
def test_scripted_yolov3(passes: str) -> None:
    graph = parse_graph(FILE.read_text())
    without_classes(graph)
    PassManager(passes).run(graph)
    assert sum(1 for _ in graph.walk()) > 1000
    assert_reads_back(graph)


ZOO: dict[str, Callable[[], Any]] = {
    **{f"scripted {name}": partial(scripted, made) for name, (made, _) in SCRIPTED.items()},
    **{f"traced {name}": partial(traced, made, *copy.deepcopy(inputs)) for name, (made, inputs) in TRACED.items()},
}

WORDLESS = {
    **{f"scripted {name}": {"class type"} for name in ("cache", "counter", "instances", "objects", "made when called")},
    "scripted lists that become one": {"class type"},
    "scripted texts": {"tuple or dictionary"},
}
"""Modules that set attributes, make objects, or hold constants that have no words."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ZOO)
def test_modules(name: str) -> None:
    """Weights frozen into constants, then inputs: their contents have no words."""
    module = import_torchscript(ZOO[name]())
    for passes in ("freeze,inline,dce", OPTIMISE):
        PassManager(passes).run(module)
        graph = copy_module(module).main
        lift_tensors(graph)
        if all(n.kind not in ("prim::SetAttr", "prim::CreateObject") for n in graph.walk()):
            without_classes(graph)
        assert wordless(graph) <= WORDLESS.get(name, set())
        assert_reads_if_it_can_be(graph)


def is_normal(t: Type, in_dict: bool = False) -> bool:
    """Whether PyTorch keeps ``t``: it reads an optional optional as an optional, sorts unions, and prints all tensors
    in dictionaries as ``Tensor``.
    """
    match t:
        case types.TensorType():
            return not in_dict or t.dtype is None or t.shape is None
        case types.OptionalType(elem=elem):
            is_merged = isinstance(elem, types.OptionalType) or elem in (types.NONE, types.ANY)
            return is_normal(elem, in_dict) and not is_merged
        case types.UnionType(members=members):
            return members == (types.INT, types.STR)
        case types.ListType(elem=elem) | types.FutureType(elem=elem):
            return is_normal(elem, in_dict)
        case types.DictType(key=key, value=value):
            return key in (types.INT, types.FLOAT, types.STR, types.TENSOR) and is_normal(value, True)
        case types.TupleType(elems=elems):
            return all(is_normal(elem, in_dict) for elem in elems)
        case types.PrimType(name="Generator"):
            return False
        case _:
            return True


@settings(deadline=None, max_examples=300)
@given(strategies.all_types.filter(is_normal))
@example(types.TensorType(None, (2, None)))
@example(types.UnionType((types.INT, types.STR)))
@example(types.PrimType("True"))
@example(types.ListType(types.tensor(types.DType.FLOAT, ("SS(-1)", None, 3))))
def test_types(of_type: Type) -> None:
    graph = Graph()
    b = Builder(graph)
    node = b.node("prim::TupleConstruct", [graph.add_input(of_type, "x")], [types.TupleType((of_type,))])
    b.node("aten::relu", [graph.add_input(types.TENSOR)], [types.TENSOR])
    graph.set_outputs(node.outputs)
    assert_reads_if_it_can_be(graph)


CONSTANTS = st.one_of(
    st.tuples(strategies.ints, st.just(types.INT)),
    st.tuples(strategies.floats, st.just(types.FLOAT)),
    st.tuples(strategies.complexes, st.just(types.COMPLEX)),
    st.tuples(st.booleans(), st.just(types.BOOL)),
    st.tuples(strategies.texts, st.sampled_from([types.STR, types.DEVICE])),
    st.tuples(st.none(), st.sampled_from([types.NONE, types.OptionalType(types.TENSOR)])),
    st.tuples(st.lists(strategies.ints, max_size=3), st.just(ListType(types.INT))),
    st.tuples(st.lists(strategies.floats, max_size=3), st.just(ListType(types.FLOAT))),
    st.tuples(st.lists(st.booleans(), max_size=3), st.just(ListType(types.BOOL))),
    st.tuples(st.lists(strategies.texts, max_size=3), st.just(ListType(types.STR))),
    st.tuples(st.lists(st.lists(strategies.ints, max_size=2), max_size=2), st.just(ListType(ListType(types.INT)))),
    st.tuples(st.tuples(strategies.ints, strategies.texts), st.just(types.TupleType((types.INT, types.STR)))),
)


@settings(deadline=None, max_examples=300)
@given(CONSTANTS)
@example((complex(0.0, 5e-324), types.COMPLEX))
@example(([float("-inf"), -0.0], ListType(types.FLOAT)))
def test_constants(constant: tuple[object, Type]) -> None:
    value, of_type = constant
    graph = Graph()
    graph.set_outputs([Builder(graph).constant(value, type=of_type)])
    assert_reads_if_it_can_be(graph)


def test_nan_is_a_type_there() -> None:
    """So it prints the same, and means something else."""
    (node,) = torch._C.parse_ir("graph():\n  %c : float = prim::Constant[value=nan]()\n  return (%c)\n").nodes()
    assert node.kindOf("value") == "ty"


@settings(deadline=None, max_examples=300)
@given(strategies.identifiers | strategies.odd_names, strategies.texts, strategies.texts)
@example("x.if", "", "")
@example("x", ": int", ": int")
@example("layers.0.weight", "a # b", "\r")
def test_names_and_notes(name: str, source: str, scope: str) -> None:
    graph = Graph()
    x = graph.add_input(types.TENSOR, name)
    node = Builder(graph).node("aten::relu", [x], [types.TENSOR], names=["y"])
    node.name, node.scope = source, scope
    graph.set_outputs(node.outputs)
    assert_reads_if_it_can_be(graph)
