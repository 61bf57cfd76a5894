"""Computing single nodes, as constant folding does."""

import pytest

from irc.errors import Error
from irc.runtime.plan import evaluate
from tests.graphs import ir
from tests.runtime.helpers import boolean, f32, graph_of, i64


def node_of(text: str, kind: str):
    return next(node for node in graph_of(text).walk() if node.kind == kind)


LOOP = ir("""
    m: Long(); c: Bool(); x: Float(1) -> y, z
    w: Float(1) = prim.Constant(value=tensor([3.])); y[Float(1)], z = Loop(m, c, x)
    with block(i=Long(), go=Bool(), v=Float(1)):
        s: Float(1) = prim.If(go)
        with block(): t: Float(1) = Mul(v, w); yield t
        with block(): yield v
        yield go, s, s
""")


def test_blocks_that_capture_constants():
    y, z = evaluate(node_of(LOOP, "onnx::Loop"), [i64(2), boolean(True), f32(1)])
    assert y.tolist() == [9] and z.tolist() == [[3], [9]]


def test_blocks_that_capture_anything_else_cannot_be_computed():
    node = node_of(LOOP.replace("onnx::Mul(%v, %w)", "onnx::Mul(%v, %x)"), "onnx::Loop")
    assert evaluate(node, [i64(2), boolean(True), f32(2)])[0].tolist() == [8]  # %x is an input of the node, too
    captured = LOOP.replace("onnx::Mul(%v, %w)", "onnx::Mul(%v, %n)").replace(
        "  %y :", "  %n : Float(1) = onnx::Neg(%x)\n  %y :"
    )
    with pytest.raises(Error, match="%n"):
        evaluate(node_of(captured, "onnx::Loop"), [i64(2), boolean(True), f32(2)])


def test_the_graph_is_left_alone():
    graph = graph_of(LOOP)
    before = str(graph)
    evaluate(next(n for n in graph.nodes if n.kind == "onnx::Loop"), [i64(2), boolean(True), f32(1)])
    assert str(graph) == before


@pytest.mark.parametrize(
    ("operator", "inputs"),
    [
        ("onnx::Unheard", [f32(1)]),
        ("onnx::Reshape", [f32(1, 2), i64([3])]),
        ("onnx::Neg", []),
        ("onnx::Squeeze", [f32(1, 2), i64([5])]),
    ],
)
def test_what_cannot_be_computed_is_an_error(operator, inputs):
    names = ["%x", "%y"][: max(1, len(inputs))]
    text = f"graph(%x : Tensor, %y : Tensor):\n %z : Tensor = {operator}({', '.join(names)})\n return (%z)"
    with pytest.raises(Error):
        evaluate(node_of(text, operator), inputs)
