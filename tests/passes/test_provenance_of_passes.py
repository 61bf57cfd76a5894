"""Every pass that rewrites says of what it makes from which nodes of the model that comes."""

import numpy as np
import pytest

from irc.ir import Graph, Module, Node, parse_module
from irc.ir.kinds import CONSTANT, GROUP
from irc.ir.metadata import SOURCE, sources
from irc.ir.objects import Object
from irc.ir.types import ClassType
from irc.passes import PassManager, registry
from irc.passes.dce import Dce
from tests.passes.rewrite_cases import APPLIES
from tests.passes.test_canonicalize import graph_of
from tests.passes.test_kv_cache import BRANCH, CACHE
from tests.passes.test_kv_cache import LOOP as GROWING
from tests.passes.test_provenance import CONV

LOOP = """graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=1]()
  %o : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = prim::Loop(%n, %t, %a)
    block0(%i : int, %c : Tensor):
      %v : Tensor = aten::select(%c, %o, %o)
      %w : Tensor = aten::add_(%v, %o, %o)
      %d : Tensor = aten::exp(%c)
      -> (%t, %d)
  return (%b)
"""

VIEWS = """graph(%x : Float(2, 3)):
  %z : int = prim::Constant[value=0]()
  %o : int = prim::Constant[value=1]()
  %a : Float(2, 3) = aten::exp(%x)
  %t : Float(3, 2) = aten::t(%a)
  %s : Float(2) = aten::select(%t, %z, %z)
  %w : Float(2) = aten::relu_(%s)
  %l : Tensor[] = aten::split(%a, %o, %z)
  %e : Tensor = aten::__getitem__(%l, %z)
  %m : Tensor = aten::mul_(%e, %o)
  %y : Float(2, 3) = aten::neg(%a)
  return (%y)
"""

TWICE = """graph(%x : Float(2, 3)):
  %a : Float(2, 3) = onnx::Exp(%x) # first
  %b : Float(2, 3) = onnx::Exp(%x) # second
  %c : Float(2, 3) = onnx::Mul(%a, %b)
  %d : Float(2, 3) = onnx::Tanh(%c)
  %u : Float(2, 3) = onnx::Sin(%d)
  %e : Float(2, 3) = onnx::Add(%d, %a)
  return (%e)
"""

CALLS = """graph(%x : Float(2)):
  %f : Function = prim::Constant[name="f"]()
  %a : Float(2) = prim::CallFunction(%f, %x)
  %b : Float(2) = onnx::Exp(%a)
  return (%b)

graph f(%p : Float(2)):
  %q : Float(2) = onnx::Neg(%p)
  %r : Float(2) = onnx::Abs(%q)
  return (%r)
"""

CONSTANTS = """graph(%x : Float(2), %n : Long()):
  %k : Float(2) = prim::Constant[value=tensor([1., 2.])]()
  %l : Float(2) = prim::Constant[value=tensor([1., 2.])]()
  %go : Bool() = prim::Constant[value={1}]()
  %e : Float(2) = onnx::Exp(%k)
  %y : Float(2) = prim::If(%go)
    block0():
      %m : Float(2) = onnx::Add(%x, %e)
      -> (%m)
    block1():
      -> (%x)
  %z : Float(2) = onnx::Mul(%y, %l)
  return (%z)
"""

SIZES = """graph(%x : Float(n, 4)):
  %s : Long(2) = onnx::Shape(%x)
  %r : Float(*, *) = onnx::Reshape(%x, %s)
  %y : Float(n, 4) = onnx::Relu(%r)
  return (%y)
"""

OBJECT = """graph(%self : __torch__.M, %x : Tensor):
  %k : int = prim::GetAttr[name="k"](%self)
  %y : Tensor = aten::add(%x, %k, %k)
  return (%y)
"""

CASES: list[tuple[str, str]] = [
    ("inline", CALLS),
    ("freeze", OBJECT),
    ("canonicalize", SIZES),
    ("constant-fold", CONSTANTS),
    ("conv-bn-fold", CONV),
    ("cse", TWICE),
    ("dce", TWICE),
    ("constant-pool", CONSTANTS),
    ("growable", CACHE),
    ("growable", GROWING),
    ("growable", BRANCH),
    ("fuse", TWICE),
    ('fix-sizes{sizes="n=3"}', SIZES),
    ("in-place", TWICE),
    ("reorder", TWICE),
    ("remove-mutation", VIEWS),
    ("remove-mutation", LOOP),
    ("shape-inference", SIZES),
]

_NAMELESS = {GROUP, "onnx::Identity"}
"""What keeps the name of an output, or holds others, stands for no operator by itself."""


def module_of(text: str) -> Module:
    weights = {"w": np.ones((2, 1, 3, 3), np.float32)} if '@"w"' in text else None
    module = parse_module(text, weights)
    if "%self" in text:
        module.objects["self"] = Object(ClassType("__torch__.M"), {"k": 2})
    return module


def everything(module: Module) -> list[Node]:
    """All nodes but constants, those in groups too."""
    inside = [n.attributes["Subgraph"] for g in module.graphs.values() for n in g.walk() if "Subgraph" in n.attributes]
    graphs: list[Graph] = [*module.graphs.values(), *inside]
    return [node for graph in graphs for node in graph.walk() if node.kind not in (CONSTANT, *_NAMELESS)]


def check(module: Module, pipeline: str) -> None:
    """Run ``pipeline``; whatever is there afterwards names nodes that were there before, and has their metadata."""
    known: dict[str, str] = {}
    for i, node in enumerate(everything(module)):
        node.metadata = {"own": f"<{i}>"}
        known |= dict.fromkeys(sources(node), f"<{i}>")
    before = set(everything(module))
    PassManager(pipeline).run(module)
    for node in everything(module):
        assert node.metadata.get("own"), f"{node}: it does not say what it stands for\n{module}"
        if node not in before:
            names = sources(node)
            assert names and known.keys() >= set(names), f"{node}: {names}\n{module}"
            assert all(known[name] in node.metadata["own"] for name in names), f"{node}: {node.metadata}"
            assert SOURCE in node.metadata or len(names) == 1


@pytest.mark.parametrize(("pipeline", "text"), CASES)
def test_what_a_pass_makes_says_what_it_stands_for(pipeline: str, text: str) -> None:
    module = module_of(text)
    printed = str(module)
    check(module, pipeline)
    assert str(module) != printed, "the pass has done something"


def test_every_pass_is_tested() -> None:
    ours = {name for name in registry.names() if registry.create(name).__class__.__module__.startswith("irc.")}
    assert {pipeline.partition("{")[0] for pipeline, _ in CASES} == ours
    assert Dce.name in ours


@pytest.mark.parametrize(("rule", "body"), [case[:2] for case in APPLIES])
def test_what_a_rule_makes_says_what_it_stands_for(rule: str, body: str) -> None:
    check(Module(graph_of(body)), "canonicalize")
