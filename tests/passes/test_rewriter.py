import numpy as np
import pytest

from irc.alias import analyze
from irc.ir import DType, Graph, Tensor, parse_graph, types
from irc.passes import PassContext, PassManager, Rewriter
from tests.counting import analyses
from tests.graphs import ir, ir_graph, ir_module, typed_ir

FLOAT = types.tensor(DType.FLOAT, (2,))


def setup(text: str, built: bool = True) -> tuple[Graph, Rewriter]:
    graph = parse_graph(text)
    ctx = PassContext()
    if built:
        ctx.alias_db(graph)
    return graph, ctx.rewriter(graph)


def finish(rewriter: Rewriter) -> str:
    """The graph verifies and its alias analysis fits; returns its text."""
    rewriter.graph.verify()
    rewriter.db.check()
    return str(rewriter.graph)


CHAIN = typed_ir("x: Float(2)", "a = Neg(x); b = Neg(a); c = Exp(b); d = Add(b, c)", "d")


@pytest.mark.parametrize("built", [True, False])
def test_replace(built):
    graph, rewriter = setup(CHAIN, built)
    assert rewriter.replace(graph.value("b"), graph.inputs[0])
    assert not rewriter.replace(graph.value("b"), graph.inputs[0])  # nothing left to do
    assert not rewriter.replace(graph.value("c"), graph.value("c"))
    rewriter.erase(graph.value("b").node)
    rewriter.erase(graph.value("a").node)
    assert [repr(node) for node in graph.nodes] == ["%c = onnx::Exp(%x)", "%d = onnx::Add(%x, %c)"]
    finish(rewriter)


def test_an_output_passes_its_name_on():
    graph, rewriter = setup(CHAIN)
    new = rewriter.op("onnx::Sum", graph.value("b"), before=graph.block.return_node, type=FLOAT)
    rewriter.replace(graph.value("d"), new)
    assert graph.outputs == (new,)
    assert new.name == "d"
    finish(rewriter)


@pytest.mark.parametrize("at_once", [True, False])
def test_users_that_go_past_an_identity_are_told_so(at_once):
    graph, rewriter = setup(ir("x: Tensor", "z = clone(x); y = clone(x); v = t(y); w = relu(v)", "y, w"))
    y, v, x, z = (graph.value(name) for name in "yvxz")
    if not at_once:
        v.node.set_inputs([x])
    rewriter.replace(y, x)
    assert rewriter.db.may_alias(v, x)
    finish(rewriter)
    rewriter.replace(graph.outputs[0], z)  # the Identity of %x; who uses %x does so still
    assert rewriter.db.may_alias(v, x)
    assert not rewriter.db.may_alias(v, z)
    finish(rewriter)


def test_users_that_go_past_an_identity_that_is_needed_are_told():
    graph, rewriter = setup(
        ir("""
        x: Tensor -> y, z, w
        a = clone(x); z = clone(x); y = Identity(a); v = t(y); w = relu(v)
    """)
    )
    v, z, a = (graph.value(name) for name in "vza")
    assert rewriter.replace(graph.value("y"), z)
    assert rewriter.db.may_alias(v, z)
    assert not rewriter.db.may_alias(v, a)
    finish(rewriter)


def test_an_output_reaches_an_input_through_an_identity():
    graph, rewriter = setup(CHAIN)
    assert rewriter.replace(graph.value("d"), graph.inputs[0])
    assert graph.outputs[0].name == "d"
    assert graph.outputs[0].node.kind == "onnx::Identity"
    assert graph.outputs[0].node.inputs == graph.inputs
    # The Identity is needed: it is not replaced by another.
    assert not rewriter.replace(graph.outputs[0], graph.inputs[0])
    finish(rewriter)


def test_other_users_of_a_needed_identity_go_past_it():
    graph, rewriter = setup(ir("x: Float(2)", "y: Float(2) = Identity(x); z: Float(2) = Neg(y)", "y, z"))
    assert rewriter.replace(graph.value("y"), graph.inputs[0])
    assert repr(graph.value("z").node) == "%z = onnx::Neg(%x)"
    assert [v.name for v in graph.outputs] == ["y", "z"]
    finish(rewriter)


def test_an_output_for_another_output():
    graph, rewriter = setup(typed_ir("x: Float(2)", "y = Neg(x); z = Neg(x); t = Exp(z)", "y, z, t"))
    assert rewriter.replace_node(graph.value("z").node, [graph.value("y")])
    assert [v.name for v in graph.outputs] == ["y", "z", "t"]
    assert repr(graph.value("z").node) == "%z = onnx::Identity(%y)"
    assert repr(graph.value("t").node) == "%t = onnx::Exp(%y)"
    finish(rewriter)


def test_functions_need_no_names_of_outputs():
    module = ir_module("""
        x: Float(2) -> y
        f: Function = prim.Constant(name="f"); y: Float(2) = prim.CallFunction(f, x)

        f | x: Float(2) -> y
        y: Float(2) = Identity(x)
    """)
    function = module.graphs["f"]
    rewriter = PassContext(module).rewriter(function)
    assert rewriter.replace_node(function.value("y").node, function.inputs)
    assert function.outputs == function.inputs
    finish(rewriter)


def test_copies_of_a_main_graph_keep_output_names():
    module = ir_module("""
        x: Float(2) -> y
        y: Float(2) = Identity(x)

        f | x: Float(2) -> x
    """)
    copy = module.main.copy()
    rewriter = PassContext(module).rewriter(copy)
    assert not rewriter.replace_node(copy.value("y").node, copy.inputs)
    assert copy.outputs[0].name == "y"


def test_keep_name():
    graph, rewriter = setup(CHAIN)
    new = rewriter.op("onnx::Abs", graph.inputs[0], before=graph.value("a").node, type=FLOAT, name="n")
    rewriter.replace(graph.value("b"), new, keep_name=True)
    assert new.name == "b"
    assert rewriter.replace(graph.value("c"), graph.inputs[0], keep_name=True)
    assert graph.inputs[0].name == "x"  # inputs keep theirs


def test_types_are_refined_but_not_those_of_parameters():
    graph, rewriter = setup(
        ir("""
        x: Tensor -> e
        a = Neg(x); b: Float(N, 3) = Neg(x); c: Float(2, 3) = Identity(b); d: "Float(2, *)" = Identity(x)
        e: Float(2, 3) = Sum(a, c, d)
    """)
    )
    rewriter.replace(graph.value("b"), graph.value("a"))
    assert str(graph.value("a").type) == "Float(N, 3)"
    rewriter.replace(graph.value("c"), graph.value("a"))
    assert str(graph.value("a").type) == "Float(2, 3)"
    rewriter.replace(graph.value("d"), graph.inputs[0])
    assert str(graph.inputs[0].type) == "Tensor"


def test_constants():
    graph, rewriter = setup(CHAIN)
    at = graph.block.return_node
    big = rewriter.constant(np.arange(17), before=at, name="big")
    assert graph.weights["big"] is big.node.attributes["value"]
    assert rewriter.constant(np.arange(16), before=at).node.attributes["value"].name == ""
    assert rewriter.constant(np.ones((100, 100)), before=at).node.attributes["value"].is_splat
    assert str(rewriter.constant(None, before=at).type) == "NoneType"
    assert str(rewriter.constant([1, 2], before=at).type) == "int[]"
    assert str(rewriter.constant(1.5, before=at).type) == "float"
    named = rewriter.weight(Tensor.of(np.arange(18)), "big")
    assert named.name == "big.1"
    assert rewriter.weight(named, "other") is named
    finish(rewriter)


def test_erase_with_constants():
    graph, rewriter = setup(
        typed_ir("""
        x: Float(2) -> y
        b: Float(2) = prim.Constant(value=tensor([3., 2.])); c = Sum([1.0, 2.0], [1.0, 2.0], b); y = Add(x, b)
    """)
    )
    rewriter.erase_with_constants(graph.value("c").node)
    assert [v.name for v in graph.values()] == ["x", "b", "y"]
    finish(rewriter)


@pytest.mark.parametrize(
    ("a", "b", "shared"), [("p", "q", True), ("p", "w", False), ("w", "v", True), ("u", "x", False), ("p", "x", True)]
)
def test_can_share(a, b, shared):
    graph, rewriter = setup(
        ir("""
        x: Tensor -> p, q, r, s
        p = neg(x); q = neg(x); w = exp(x); v = t(w); r = relu_(v); u = abs(x); s = relu_(u)
    """)
    )
    assert rewriter.can_share(graph.value(a), graph.value(b)) is shared
    assert rewriter.can_share(graph.value(b), graph.value(a)) is shared


def test_a_built_analysis_is_never_built_again():
    graph, rewriter = setup(CHAIN)
    db = rewriter.db
    with analyses() as built:
        rewriter.replace(graph.value("b"), graph.inputs[0])
        rewriter.erase(graph.value("b").node)
        assert db.may_alias(graph.value("c"), graph.value("c"))
    assert not built.called
    assert rewriter.db is db
    assert db.solves == 1
    assert not rewriter.db.may_alias(graph.value("c"), graph.inputs[0])
    assert analyze(graph).may_alias(graph.inputs[0], graph.inputs[0])


def test_nodes_are_hoisted_all_at_once() -> None:
    graph = ir_graph("""
        x: Tensor; n: int -> r
        t: bool = prim.Constant(value=1); r = prim.Loop(n, t, x)
        with block(i=int, u=Tensor): a = neg(x); w = relu_(a); b = exp(w); v = add_(u, b); yield t, v
    """)
    ctx = PassContext()
    db, loop = ctx.alias_db(graph), graph.value("r").node
    inside = [graph.value(name).node for name in "awb"]
    assert not db.move_before(inside[0], loop), "another block"
    assert db.writes_to_alias(loop, [graph.value("a")])
    ctx.rewriter(graph).hoist(inside, loop)
    assert [node.kind for node in loop.blocks[0].nodes] == ["aten::add_"]
    assert not db.writes_to_alias(loop, [graph.value("a")])
    graph.verify()
    db.check()


@pytest.mark.parametrize("type", ["int", "bool"])
def test_two_equal_outputs_that_are_no_tensors_keep_their_names(type: str) -> None:
    kind = {"int": "aten::add", "bool": "aten::__and__"}[type]
    text = f"""graph(%x : {type}, %y : {type}):
  %a : {type} = {kind}(%x, %y)
  %b : {type} = {kind}(%x, %y)
  return (%a, %b)
"""
    graph = parse_graph(text)
    PassManager("default", ["verify-each"]).run(graph)
    assert [v.name for v in graph.outputs] == ["a", "b"]
    assert str(parse_graph(str(graph))) == str(graph)
