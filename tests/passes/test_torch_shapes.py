"""Shape inference on TorchScript's operators. That it is true of runs, tests/programs/test_types.py checks."""

from textwrap import dedent

import numpy as np
import pytest

from irc.ir import Graph, TensorType, parse_graph
from irc.ops import records
from irc.passes.shapes import Inference
from irc.runtime.plan import lower
from tests.graphs import ir, ir_graph, ir_module
from tests.passes.helpers import kinds, transform

INPUTS = """
x: Float(2, 3, 8, 8); i: Long(4, 5); w: Float(6, 3, 3, 3); m: Float(2, 5, 4); h: Half(2, 3); z: Float(); n: Float(4, 7);
v: Float(7, 4); u: Tensor
"""
MADE = """
list: "Tensor[]" = prim.ListConstruct(x, x); pair: "Tensor[]" = prim.ListConstruct(m, n)
v2: Float(2, 4, 2) = prim.Constant(value=splat(1)); query: Float(1, 3, 2, 8) = prim.Constant(value=splat(1))
heads: Float(1, 6, 2, 8) = prim.Constant(value=splat(1)); complex: ComplexDouble() = prim.Constant(value=splat(1))
within: Long(4, 5) = prim.Constant(value=splat(1)); places: "Tensor?[]" = prim.ListConstruct(None, within)
"""


def inferred(body: str, outputs: str = "y", **groups: tuple[str, str, str]) -> Graph:
    """A graph of statements on `INPUTS` and what is `MADE`, after shape inference."""
    graph = parse_graph(ir(INPUTS.strip(), f"{MADE}{dedent(body).strip()}", outputs, **groups))
    Inference(graph).run()
    graph.verify()
    return graph


SAID = [
    ("add(x, x, 1)", "Float(2, 3, 8, 8)"),
    ("add(i, 0.5, 1)", "Float(4, 5)"),
    ("add(h, z, 1)", "Half(2, 3)"),
    ("add(x, u, 1)", "Tensor"),
    ("add(x, complex, 1)", "ComplexFloat(2, 3, 8, 8)"),
    ("div(i, 2)", "Float(4, 5)"),
    ("gt(x, 0)", "Bool(2, 3, 8, 8)"),
    ("sigmoid(i)", "Float(4, 5)"),
    ("leaky_relu(x, 0.5)", "Float(2, 3, 8, 8)"),
    ("conv2d(x, w, None, [2, 2], [1, 1], [1, 1], 1)", "Float(2, 6, 4, 4)"),
    ("max_pool2d(x, [2, 2], [2, 2], 0, 1, False)", "Float(2, 3, 4, 4)"),
    ("matmul(m, n)", "Float(2, 5, 7)"),
    ("linear(m, v, None)", "Float(2, 5, 7)"),
    ("einsum('bij, jk -> bik', pair, None)", "Float(2, 5, 7)"),
    ("einsum('bij, jk -> bik', list, None)", "Tensor"),
    ("sum(i, None)", "Long()"),
    ("nansum(x, [-1, 2], True, None)", "Float(2, 3, 1, 1)"),
    ("rad2deg(i)", "Float(4, 5)"),
    ("signbit(h)", "Bool(2, 3)"),
    ("logaddexp(h, z)", "Half(2, 3)"),
    ("gcd(i, i)", "Long(4, 5)"),
    ("bitwise_not(i)", "Long(4, 5)"),
    ("bitwise_left_shift(i, 2)", "Long(4, 5)"),
    ("fix(h)", "Half(2, 3)"),
    ("hypot(h, z)", "Half(2, 3)"),
    ("copysign(i, 0.5)", "Float(4, 5)"),
    ("xlogy(2, i)", "Float(4, 5)"),
    ("logcumsumexp(x, 1)", "Float(2, 3, 8, 8)"),
    ("flip(i, [0])", "Long(4, 5)"),
    ("special_i1(i)", "Float(4, 5)"),
    ("polygamma(1, i)", "Float(4, 5)"),
    ("argsort(x, 1, False)", "Long(2, 3, 8, 8)"),
    ("xlogy(i, 2)", "Float(4, 5)"),
    ("logsumexp(x, [-1, 2], True)", "Float(2, 3, 1, 1)"),
    ("any(x, 1, False)", "Bool(2, 8, 8)"),
    ("count_nonzero(x, [-1, 2])", "Long(2, 3)"),
    ("gather(i, 0, i)", "Long(4, 5)"),
    ("mT(x)", "Float(2, 3, 8, 8)"),
    ("repeat(i, [2, 2])", "Long(8, 10)"),
    ("pad(x, [2, 2])", "Float(2, 3, 8, 12)"),
    ("view_as_complex(v2)", "ComplexFloat(2, 4)"),
    ("fft_rfft(x)", "ComplexFloat(2, 3, 8, 5)"),
    ("fft_fft(i)", "ComplexFloat(4, 5)"),
    ("glu(x, -1)", "Float(2, 3, 8, 4)"),
    ("pixel_unshuffle(x, 2)", "Float(2, 12, 4, 4)"),
    ("scaled_dot_product_attention(x, x, x)", "Float(2, 3, 8, 8)"),
    ("scaled_dot_product_attention(query, x, x)", "Float(2, 3, 2, 8)"),
    ("scaled_dot_product_attention(heads, x, x, None, 0.5, False, None, True)", "Float(2, 6, 2, 8)"),
    ("new_zeros(i, [2, 2])", "Long(2, 2)"),
    ("linspace(0, 1, 2)", "Float(2)"),
    ("eye(2)", "Float(2, 2)"),
    ("index(x, places)", "Float(2, 4, 5, 8, 8)"),
    ("msort(i)", "Long(4, 5)"),
    ("mean(x, [-1, 2], True, None)", "Float(2, 3, 1, 1)"),
    ("view(x, [2, -1])", "Float(2, 192)"),
    ("transpose(x, 1, 2)", "Float(2, 8, 3, 8)"),
    ("unsqueeze(i, 0)", "Long(1, 4, 5)"),
    ("select(x, 1, 0)", "Float(2, 8, 8)"),
    ("slice(x, 2, 1, None, 2)", "Float(2, 3, 4, 8)"),
    ("cat(list, 1)", "Float(2, 6, 8, 8)"),
    ("stack(list, 0)", "Float(2, 2, 3, 8, 8)"),
    ("matmul(x, w)", "Tensor"),  # does not fit, which is for the run to say
    ("add(x, i, 1)", "Tensor"),
    ("conv_transpose2d(z, z, None, [1, 1], [1, 1], [1, 1], 1, [1, 1])", "Tensor"),
    ("permute(z, [0])", "Tensor"),
]

VIEWS = {each.kind for each in records("aten") if each.copied}
COPIES = [(said.replace("(", "_copy(", 1), type) for said, type in SAID if f"aten::{said.partition('(')[0]}" in VIEWS]


@pytest.mark.parametrize(("operation", "expected"), [*SAID, *COPIES])
def test_what_is_said(operation, expected):
    graph = inferred(f"y = {operation}")
    said = graph.outputs[0].type
    assert str(said) == expected
    if said == TensorType():
        return
    shapes = [v.type for v in graph.inputs if isinstance(v.type, TensorType)]
    arrays = [np.ones(t.static_shape or (), t.dtype.numpy if t.dtype else np.float32) for t in shapes]
    (found,) = lower(graph).run(arrays)
    assert (found.dtype, found.shape) == (said.dtype.numpy, said.shape)


@pytest.mark.parametrize(
    ("other", "type"), [("u", "Float(2, 3, 8, 8)"), ("n", "Float"), ("h", "Tensor"), ("w", "Float(*, 3, *, *)")]
)
def test_conditions_on_the_rank_choose_the_branch(other, type):
    """If what the other gives may be of that type, too: a graph must not contradict itself."""
    graph = inferred(f"""
        rank: int = dim(x); is4: bool = eq(rank, 4); y = prim.If(is4)
        with block(): a = relu(x); yield a
        with block(): yield {other}
    """)
    assert str(graph.outputs[0].type) == type


@pytest.mark.parametrize(
    ("operation", "type"),
    [
        ("sigmoid(any)", "Tensor"),
        ("signbit(any)", "Bool"),
        ("hypot(any, x)", "Tensor"),
        ("logical_xor(x, any)", "Bool"),
        ("clamp(x, bound)", "Tensor"),
        ("clamp(x, limit)", "Tensor(2, 3)"),
    ],
)
def test_operands_that_may_be_larger_tensors_leave_the_shape_open(operation, type):
    graph = ir_graph("x: Float(2, 3); any: Any; bound: Tensor?; limit: float?", f"y = {operation}", "y")
    Inference(graph).run()
    assert str(graph.outputs[0].type) == type


@pytest.mark.parametrize("wide", ["Union(Tensor, Tensor[])", "Any"])
@pytest.mark.parametrize("condition", ["is_floating_point(u)", "eq(1, 2)"])
def test_what_may_be_of_two_kinds_stays_a_union_or_any(wide, condition):
    graph = inferred(
        f"""
        is1: bool = {condition}; y: "{wide}" = x if is1 else list; r: "{wide}" = prim.Loop(2, True, x)
        with block(trip=int, p="{wide}"): yield True, list
        """,
        "y, r",
    )
    assert [str(v.type) for v in (*graph.outputs, graph.value("p"))] == [wide] * 3


def test_a_list_that_grows_later_tells_nothing():
    graph = inferred('sizes = prim.ListConstruct(2, 1); more: "int[]" = append(sizes, 1); y = view(u, sizes)')
    assert str(graph.outputs[0].type) == "Tensor"


@pytest.mark.parametrize("change", ["squeeze_(a)", "resize_(a, [1, 1], None)"])
def test_nothing_is_said_where_tensors_change_shape(change):
    graph = inferred(f"a = clone(x, None); c = {change}; y = relu(a)")
    assert str(graph.outputs[0].type) == "Tensor"


@pytest.mark.parametrize(("body", "told"), [("relu_(p)", "Float(2, 3, 8, 8)"), ("resize_(p, [1, 1], None)", "Tensor")])
def test_functions_that_are_called_may_change_shapes_or_not(body, told):
    module = ir_module(f"""
        x: Float(2, 3, 8, 8) -> y
        a = clone(x, None); f: Function = prim.Constant(name="called"); c = prim.CallFunction(f, a); y = relu(a)

        called | p: Tensor -> q
        q = {body}
    """)
    Inference(module.main).run()
    assert str(module.main.outputs[0].type) == told


@pytest.mark.parametrize(("body", "told"), [("relu_(p)", "Float(2, 3, 8, 8)"), ("t_(p)", "Tensor")])
def test_so_may_groups(body, told):
    group = ("p: Tensor", f"q = {body}", "q")
    graph = inferred("a = clone(x, None); c = FusionGroup_0(a); y = relu(a)", FusionGroup_0=group)
    assert str(graph.outputs[0].type) == told


def test_types_let_operators_write_in_place():
    convolved = "conv2d(x, w, None, [2, 2], [1, 1], [1, 1], 1)"
    text = ir(INPUTS.strip(), f"b = leaky_relu({convolved}, 0.5); c = {convolved}; d = add(b, c, 1)", "d")
    found = kinds(transform(text, "shape-inference,in-place"))
    assert found == ["conv2d", "leaky_relu_", "conv2d", "add_"]


@pytest.mark.parametrize("where", ["first", "within", "last"])
@pytest.mark.parametrize("pipeline", ["shape-inference,cse,dce,fuse", "canonicalize,cse"])
def test_no_analysis_is_made_of_types_in_between(where: str, pipeline: str) -> None:
    """What a loop carries is None at first, which has no memory; what it becomes is written."""
    split = {
        place: f"s_{place} = split(a, one, zero)" if place == where else "pass" for place in ("first", "within", "last")
    }
    text = ir(f"""
        x: Tensor; count: int -> y, z, a, r
        none: NoneType = prim.Constant(); two: float = prim.Constant(value=2.0); true: bool = prim.Constant(value=1)
        one: int = prim.Constant(value=1); zero: int = prim.Constant(value=0); a = mul(x, two); y0 = mul(a, two)
        y, z, op["Tensor?"] = prim.Loop(count, true, y0, y0, none)
        with block(i=int, p=Tensor, q=Tensor, o="Tensor?"):
            {split["first"]}
            u = mul(a, two); is_there: bool = __isnot__(o, none); o2: "Tensor?" = prim.If(is_there)
            with block():
                t = prim.unchecked_cast(o); w = add_(t, one, one)
                {split["within"]}
                yield t
            with block(): yield o
            {split["last"]}
            v = mul(a, two); yield true, u, v, a
        r = mul(a, two)
    """)
    before, after = parse_graph(text), transform(text, pipeline)
    given = np.zeros((2, 2), np.float32), 3
    for found, expected in zip(lower(after).run(given), lower(before).run(given), strict=True):
        np.testing.assert_array_equal(found, expected)
