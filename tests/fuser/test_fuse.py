"""What fuses, what does not and why, and what the groups look like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irc.alias import analyze
from irc.fuser.subgraph import dissolve, make_group, subgraph_of
from irc.ir import parse_graph, structurally_equal
from irc.runtime.plan import lower
from tests.effort import examples
from tests.fuser.helpers import fuse, kinds, the_group
from tests.graphs import ir, typed_ir
from tests.passes.helpers import cases
from tests.tables import with_constants

T = "Float(2, 3)"


def graph(body: str, inputs: str = f"%x : {T}, %y : {T}") -> str:
    """IR text; types are left out of ``body``: every result is a tensor."""
    lines = [line.strip().replace(" =", " : Tensor =") for line in body.strip().splitlines()]
    return with_constants("\n  ".join([f"graph({inputs}):", *lines[:-1], f"return ({lines[-1]})"]))


# -- what fuses ----------------------------------------------------------------


def test_a_chain_becomes_one_group() -> None:
    g, report = fuse(graph("%a = onnx::Relu(%x)\n %b = onnx::Neg(%a)\n %c = onnx::Exp(%b)\n %c"))
    assert kinds(g) == ["[Relu Neg Exp]"]
    assert report.stats["fuse.merged"] == 2
    assert [v.name for v in the_group(g).inputs] == ["x"]
    assert [v.name for v in g.outputs] == ["c"]


FUSES = """
== a tree that shares a value is not computed twice | [relu neg mul]
-> c
a = relu(x); c = mul(a, neg(a))

== a write in between splits a chain: the example of PyTorch's fuser tests | [mul mul] add_ [mul add]
-> e
d = mul(add_(mul(mul(x, y), y), x, 1), y); e = add(d, x, 1)

== what writes into what it is given is not fused, though others of its kind are | [exp neg] add [exp mul]
-> t
o = exp(x); before = neg(o); t = mul(before, exp(add(x, y, 1, o)))

== what depends on a producer goes behind the whole group, wherever the producer joins | [Relu Neg Exp Add] Softmax
-> d, s
a = Relu(x); s = Softmax(a); d = Add(Exp(Neg(y)), a)

== what stands in the way joins first | [Relu Neg Add] | no remarks
-> c
a = Relu(x); c = Add(Neg(a), a)

== groups merge in a later scan: the first leaves %b behind the group that makes %a | [Relu Exp Abs Neg]
-> d, b
a = Relu(x); b = Neg(a); d = Abs(Exp(a))

== results nobody uses do not start a group | Relu Neg
-> x
b = Neg(Relu(x))

== a group has one convolution | Conv [Conv Add] | already
x: Float(1, 2, 4, 4); w: Float(2, 2, 1, 1) -> c
a: Float(1, 2, 4, 4) = Conv(x, w); b: Float(1, 2, 4, 4) = Conv(x, w); c: Float(1, 2, 4, 4) = Add(a, b)

== the epilogue of one convolution stays with it | [Conv Relu] [Conv Relu Add]
x: Float(1, 2, 4, 4); w: Float(2, 2, 1, 1) -> c
a: Float(1, 2, 4, 4) = Conv(x, w); ra: Float(1, 2, 4, 4) = Relu(a); b: Float(1, 2, 4, 4) = Conv(ra, w)
rb: Float(1, 2, 4, 4) = Relu(b); c: Float(1, 2, 4, 4) = Add(ra, rb)

== numbers and lists do not fuse | add mul add add
i: int; l: int[] -> b, n
a: int = add(i, i); b: int = mul(a, i); m: "int[]" = add(l, l); n: "int[]" = add(m, l)
"""


@pytest.mark.parametrize(("body", "groups", "why"), cases(FUSES, "", ""))
def test_what_fuses(body: str, groups: str, why: str) -> None:
    g, report = fuse(ir("x, y: Float(2, 3) " * body.startswith("->") + body))
    assert " ".join(kinds(g)) == groups
    assert report.stats["alias.built"] == 1
    if why:
        reasons = [note.reason for note in report.remarks] or ["no remarks"]
        assert any(why in reason for reason in reasons), reasons


def test_a_read_does_not_pass_a_write_through_a_view() -> None:
    body = """%a = aten::neg(%x)
        %v = aten::t(%a)
        %b = aten::relu(%a)
        %w = aten::add_(%v, %y, %one)
        %c = aten::mul(%b, %w)
        %c"""
    g, report = fuse(graph(body, f"%x : {T}, %y : {T}, %one : int"))
    assert kinds(g) == ["[neg relu]", "t", "add_", "mul"]
    (note,) = report.remarks
    assert "%w = aten::add_ in between writes memory" in note.reason
    assert note.blocker == "w"
    assert note.aliasing[-1].startswith("%v may be %a    by")


def test_nested_blocks_fuse_too() -> None:
    text = ir("""
        x: Float(2, 3); c: bool -> r
        r: Float(2, 3) = prim.If(c)
        with block(): a: Float(2, 3) = Relu(x); b: Float(2, 3) = Neg(a); yield b
        with block(): yield x
    """)
    g, _ = fuse(text)
    group = the_group(g)
    assert group.block is g.value("r").node.blocks[0]
    assert kinds(subgraph_of(group)) == ["Relu", "Neg"]


# -- groups --------------------------------------------------------------------


def test_constants_come_along_once_and_zeros_keep_their_signs() -> None:
    text = typed_ir("""
        x: Float(2, 3) -> c
        p: float = prim.Constant(value=0.); q: float = prim.Constant(value=-0.); r: float = prim.Constant(value=0.)
        one: int = prim.Constant(value=1); a = mul(x, p); b = mul(a, q); c = add(b, r, one)
    """)
    g, _ = fuse(text)
    inside = subgraph_of(the_group(g))
    constants = [node.attributes["value"] for node in inside.nodes if node.kind == "prim::Constant"]
    assert sorted(map(repr, constants)) == ["-0.0", "0.0", "1"]
    assert [v.name for v in the_group(g).inputs] == ["x"]
    first_operator = next(i for i, node in enumerate(inside.nodes) if node.kind != "prim::Constant")
    assert first_operator == len(constants)


def test_the_analysis_refers_to_nothing_that_a_group_has_done_without() -> None:
    g = parse_graph(f"""graph(%x : {T}):
  %one : int = prim::Constant[value=1]()
  %again : int = prim::Constant[value=1]()
  %half : Float() = prim::Constant[value=tensor<Float()>([0.5])]()
  %a : {T} = aten::add(%x, %x, %one)
  %b : {T} = aten::add(%a, %half, %again)
  %w : {T} = aten::relu_(%b)
  return (%w)""")
    db = analyze(g)
    for value in db.values_in_order():
        db.locations(value)
    with db.rewrite():
        group = make_group([*g.nodes][:-1], db)
    inside = subgraph_of(group)
    assert kinds(g) == ["[add add]", "relu_"]
    assert len([node for node in inside.nodes if node.kind == "prim::Constant"]) == 2
    here = {*g.inputs, *(v for node in (*g.walk(), *inside.walk()) for v in node.outputs)}
    assert here.issuperset(db.known_values())
    db.check()


def test_merging_groups_merges_their_equal_constants() -> None:
    text = typed_ir("""
        x: Float(2, 3) -> d
        two: float = prim.Constant(value=2.); a = mul(x, two); b = neg(a); c = mul(b, two); d = neg(c)
    """)
    g = parse_graph(text)
    db = analyze(g)
    _, a, b, c, d = g.nodes
    with db.rewrite():
        groups = [make_group([a, b], db), make_group([c, d], db)]
        nodes = [node for group in groups for node in dissolve(group, db)]
        make_group(nodes, db)
    db.check()
    g.verify()
    assert kinds(g) == ["[mul neg mul neg]"]
    assert str(subgraph_of(the_group(g))).count("prim::Constant") == 1


BY_OTHERS = {
    "writes": "%w = aten::relu_(%p)\n %e = onnx::Abs(%p)\n %f = onnx::Sin(%e)\n %e, %f",
    "writes what it makes": "%e = onnx::Neg(%p)\n %w = aten::relu_(%e)\n %f = onnx::Abs(%e)\n %e, %f",
    "has views": "%e = onnx::Neg(%p)\n %v = aten::t(%e)\n %f = onnx::Abs(%v)\n %g = aten::t(%f)\n %e, %g",
    "has a branch": """%yes = prim::Constant[value=tensor<Bool()>([True])]()
        %e = prim::If(%yes)
        block0():
          %a = onnx::Abs(%p)
          -> (%a)
        block1():
          -> (%p)
        %f = onnx::Abs(%e)
        %e, %f""",
    "has a group": "%e = prim::FusionGroup_1(%p)\n %f = onnx::Abs(%e)\n %e, %f",
    "gives one value twice": "%e = onnx::Abs(%p)\n %e, %e",
    "gives what it is given": "%e = onnx::Abs(%p)\n %e, %p",
    "gives a constant": f"%e = onnx::Abs(%p)\n %k = prim::Constant[value=splat<{T}>(1.)]()\n %e, %k",
}
"""What fusion groups may be like that the fuser did not make."""


@pytest.mark.parametrize("what", BY_OTHERS)
def test_groups_of_others_that_are_not_like_its_own_stay_as_they_are(what: str) -> None:
    outer = graph(
        """%a = onnx::Neg(%x)
        %b : Tensor, %c = prim::FusionGroup_0(%a)
        %d = onnx::Exp(%b)
        %e = onnx::Add(%d, %c)
        %f = onnx::Tan(%c)
        %e, %f, %a"""
    )
    inside = [graph(BY_OTHERS[what], f"%p : {T}")]
    if what == "has a group":
        inside.append(graph("%e = onnx::Neg(%p)\n %e", f"%p : {T}"))
    text = "\n".join([outer, *(f"with prim::FusionGroup_{i} = {graph}" for i, graph in enumerate(inside))])
    plain, (g, _) = parse_graph(text), fuse(text)
    groups = [p.value("b").node for p in (plain, g)]
    first, second = (subgraph_of(group) for group in groups if group is not None)
    assert structurally_equal(first, second) is None
    x = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
    for a, b in zip(lower(g).run([x.copy(), x]), lower(plain).run([x.copy(), x]), strict=True):
        np.testing.assert_array_equal(a, b)


def test_groups_of_others_that_are_like_its_own_grow() -> None:
    text = graph("%a = onnx::Neg(%x)\n %b = prim::FusionGroup_0(%a, %y)\n %c = aten::exp(%b)\n %c")
    inside = graph("%s = aten::mul(%p, %q)\n %t = onnx::Abs(%s)\n %t", f"%p : {T}, %q : {T}")
    g, _ = fuse(f"{text}\nwith prim::FusionGroup_0 = {inside}\n")
    assert kinds(g) == ["[Neg mul Abs exp]"]


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Pointwise operators, views, writes and operators that do not fuse, on square matrices."""
    values = ["x", "y"]
    lines: list[str] = []
    for i in range(draw(st.integers(1, 14))):
        kind = draw(st.sampled_from(["aten::relu", "aten::neg", "aten::mul", "onnx::Softmax", "aten::t", "aten::neg_"]))
        if kind == "aten::neg_" and len(values) == 2:
            continue  # the inputs are the caller's
        operands = [draw(st.sampled_from(values)) for _ in range(1 + (kind == "aten::mul"))]
        if kind == "aten::neg_" and operands[0] in ("x", "y"):
            operands = [values[-1]]
        if kind == "aten::t" and operands[0] in ("x", "y"):
            continue
        values.append(f"v{i}")
        lines.append(f"%v{i} = {kind}({', '.join(f'%{v}' for v in operands)})")
    returned = draw(st.lists(st.sampled_from(values), min_size=1, max_size=3, unique=True))
    return graph("\n".join([*lines, ", ".join(f"%{v}" for v in returned)]), "%x : Float(3, 3), %y : Float(3, 3)")


@examples(60)
@given(programs())
def test_fusing_changes_no_result(text: str) -> None:
    g, _ = fuse(text)
    rng = np.random.default_rng(0)
    x, y = rng.integers(-3, 4, (2, 3, 3)).astype(np.float32)
    expected = lower(parse_graph(text)).run([x.copy(), y.copy()])
    for a, b in zip(lower(g).run([x, y]), expected, strict=True):
        np.testing.assert_array_equal(a, b)
