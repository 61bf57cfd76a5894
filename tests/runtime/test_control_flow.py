"""If and the loops: iterations, carried values, scan outputs, captures, nesting."""

import gc
from weakref import ref

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import parse_graph
from irc.runtime.plan import lower
from tests.graphs import ir, typed_ir
from tests.runtime.helpers import boolean, f32, graph_of, i64, run

IF = typed_ir("""
    c: Bool(); x: Float(2) -> sum, y
    big = Exp(x); y, z = prim.If(c)
    with block(): a = Neg(big); yield a, x
    with block(): yield x, x
    sum = Add(y, z)
""")


def test_a_condition_of_several_elements_is_refused():
    with pytest.raises(Error, match="exactly one element"):
        run(IF, np.array([True, False]), f32(0, 1))


GATHER = "a = Gather(Neg(Add(x, x)), i); y = Add(a, a)"


@pytest.mark.parametrize(
    "body", [f"{GATHER}; r = Exp(y)", f"r = prim.If(c)\nwith block(): {GATHER}; yield y\nwith block(): yield x"]
)
@pytest.mark.parametrize("backend", ["auto", "numpy"])
def test_an_error_is_in_no_cycle(backend, body):
    model = irc.compile(
        parse_graph(typed_ir(f"x: Float(3); c: Bool(); i: Long(3) -> z\n{body}\nz = Neg(r)")), backend=backend
    )
    gc.collect()
    gc.disable()
    try:
        for number in (0, 1, 2, 9):
            x = f32(1, 2, 3)
            feeds = {"x": x, "c": np.array(True), "i": i64([number, 0, 0])}
            if number < 3:
                model.run(feeds)
                continue
            with pytest.raises(Error, match="out of range"):
                model.run(feeds)
        alive = ref(x)
        del x, feeds
        assert alive() is None
    finally:
        gc.enable()


LOOP = typed_ir("""
    m: Long(); c: Bool(); x, step: Float(2) -> last, squares
    last, squares = Loop(m, c, x)
    with block(i=Long(), go=Bool(), v=Float(2)): n = Add(v, step); s = Mul(n, n); yield go, n, s
""")


def test_scan_outputs_must_agree_in_shape():
    text = ir("""
        m: Long(); x: Float(*) -> v, out
        yes: Bool() = prim.Constant(value={True}); v["Float(*)"], out = Loop(m, yes, x)
        with block(i=Long(), go=Bool(), carried="Float(*)"): n: "Float(*)" = Concat(carried, x, axis=0); yield go, n, n
    """)
    with pytest.raises(Error, match=r"float32\[2\] in the first iteration and is float32\[3\]"):
        run(text, i64(2), f32(1))


def test_scan_outputs_must_agree_in_element_type():
    text = ir("""
        m: Long(); x: Float(1) -> v, out
        yes: Bool() = prim.Constant(value={True}); v[Float(1)], out = Loop(m, yes, x)
        with block(i=Long(), go=Bool(), carried=Float(1)):
            first: Bool() = Equal(i, 0); n = prim.If(first)
            with block(): yield carried
            with block(): d: Double(1) = Cast(carried, to=11); yield d
            yield go, carried, n
    """)
    assert run(text, i64(1), f32(1))[1].tolist() == [[1]]
    with pytest.raises(Error, match=r"float32\[1\] in the first iteration and is float64\[1\]"):
        run(text, i64(2), f32(1))


def test_prim_loop_has_python_counters():
    text = typed_ir("""
        n: int; x: Float(1) -> sum, y
        sum, y = prim.Loop(n, True, 1, x)
        with block(i=int, s=int, v=Float(1)):
            t: int = add(s, i, 1); w = Add(v, v); go: bool = lt(t, 5); yield go, t, w
    """)
    assert [run(text, n, f32(1))[0] for n in (0, 1, 2, 3, 9)] == [1, 1, 2, 4, 7]
    assert run(text, 9, f32(1))[1].tolist() == [16]


def test_errors_inside_blocks_name_the_inner_node():
    text = """
    graph(%m : Long(), %x : Float(2)):
      %yes : Bool() = prim::Constant[value=tensor<Bool()>([True])]()
      %v : Tensor = onnx::Loop(%m, %yes, %x)
        block0(%i : Long(), %go : Bool(), %p : Tensor):
          %c : Bool() = onnx::Equal(%i, %i)
          %r : Tensor = prim::If(%c)
            block0():
              %shape : Long(2) = prim::Constant[value=tensor<Long(2)>([3, 5])]()
              %q : Tensor = onnx::Reshape(%p, %shape) # culprit
              -> (%q)
            block1():
              -> (%p)
          -> (%go, %r)
      return (%v)
    """
    plan = lower(graph_of(text))
    with pytest.raises(Error) as caught:
        plan.run([i64(2), f32(1, 2)])
    assert "culprit" in caught.value.where
    assert "float32[2]" in caught.value.message
    assert plan.run([i64(0), f32(1, 2)])[0].tolist() == [1, 2]


def test_deep_nesting_is_an_error_not_a_crash():
    depth = 5000
    from irc.ir import Builder, Graph, types

    graph = Graph()
    c = graph.add_input(types.BOOL, "c")
    block = graph.block
    nodes = []
    for _ in range(depth):
        node = Builder.at_end(block).node("prim::If", [c], [types.BOOL])
        other = node.add_block()
        other.set_returns([c])
        nodes.append((block, node))
        block = node.add_block()
    block.set_returns([c])
    for outer, node in reversed(nodes):
        outer.set_returns([node.output])
    with pytest.raises(Error, match="nested too deeply"):
        lower(graph)


def test_what_a_loop_has_handed_over_is_not_called_absent():
    text = ir("""
        m: Long(); c: Bool(); x: Float(3) -> y
        h: Float(3) = Neg(x); y: Float(3) = Loop(m, c, h)
        with block(i=Long(), go=Bool(), v=Float(3)): w: Float(3) = Exp(v); on = Less(v, v); yield on, w
    """)
    with pytest.raises(Error, match=r"its shape is \[3\]; inputs: int64\[\], bool\[\]$"):
        run(text, i64(3), boolean(True), f32(1, 2, 3))
