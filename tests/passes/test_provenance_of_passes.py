"""Every pass that rewrites says of what it makes from which nodes of the model that comes."""

import numpy as np
import pytest

from irc.ir import CONSTANT, GROUP, Graph, Module, Node, parse_module
from irc.ir.metadata import SOURCE, sources
from irc.ir.objects import Object
from irc.ir.types import ClassType
from irc.passes import PassManager, registry
from irc.passes.dce import Dce
from tests.graphs import ir, typed_ir
from tests.passes.rewrite_cases import APPLIES
from tests.passes.test_canonicalize import graph_of
from tests.passes.test_kv_cache import BRANCH, CACHE
from tests.passes.test_kv_cache import LOOP as GROWING
from tests.passes.test_provenance import CONV

LOOP = ir("""
    x: Tensor; n: int -> b
    t: bool = prim.Constant(value=1); o: int = prim.Constant(value=1); a = relu(x); b = prim.Loop(n, t, a)
    with block(i=int, c=Tensor): w = add_(select(c, o, o), o, o); d = exp(c); yield t, d
""")

VIEWS = ir("""
    x: Float(2, 3) -> y
    z: int = prim.Constant(value=0); o: int = prim.Constant(value=1); a: Float(2, 3) = exp(x); t: Float(3, 2) = t(a)
    s: Float(2) = select(t, z, z); w: Float(2) = relu_(s); l = split(a, o, z); e = __getitem__(l, z); m = mul_(e, o)
    y: Float(2, 3) = neg(a)
""")

TWICE = """graph(%x : Float(2, 3)):
  %a : Float(2, 3) = onnx::Exp(%x) # first
  %b : Float(2, 3) = onnx::Exp(%x) # second
  %c : Float(2, 3) = onnx::Mul(%a, %b)
  %d : Float(2, 3) = onnx::Tanh(%c)
  %u : Float(2, 3) = onnx::Sin(%d)
  %e : Float(2, 3) = onnx::Add(%d, %a)
  return (%e)
"""

CALLS = ir("""
    x: Float(2) -> b
    f: Function = prim.Constant(name="f"); a: Float(2) = prim.CallFunction(f, x); b: Float(2) = Exp(a)

    f | p: Float(2) -> r
    q: Float(2) = Neg(p); r: Float(2) = Abs(q)
""")

CONSTANTS = ir("""
    x: Float(2); n: Long() -> z
    k: Float(2) = prim.Constant(value=tensor([1., 2.])); l: Float(2) = prim.Constant(value=tensor([1., 2.]))
    go: Bool() = prim.Constant(value={1}); e: Float(2) = Exp(k); y: Float(2) = prim.If(go)
    with block(): m: Float(2) = Add(x, e); yield m
    with block(): yield x
    z: Float(2) = Mul(y, l)
""")

CONCATS = typed_ir("x, y: Float(1, 4)", "a = Concat(x, y, axis=1); b = Concat(x, y, a, axis=1)", "a, b")

SIZES = ir("x: Float(n, 4)", 's: Long(2) = Shape(x); r: "Float(*, *)" = Reshape(x, s); y: Float(n, 4) = Relu(r)', "y")

OBJECT = ir("self: __torch__.M; x: Tensor", 'k: int = prim.GetAttr(self, name="k"); y = add(x, k, k)', "y")

CASES: list[tuple[str, str]] = [
    ("inline", CALLS),
    ("freeze", OBJECT),
    ("canonicalize", SIZES),
    ("constant-fold", CONSTANTS),
    ("conv-bn-fold", CONV),
    ("cse", TWICE),
    ("dce", TWICE),
    ("constant-pool", CONSTANTS),
    ("nest-concats", CONCATS),
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
