"""Results over operands: where it is right, and each reason why it is not."""

import numpy as np
import pytest
from onnx import parser

import irc
from irc.alias import analyze
from irc.frontend.torchscript import import_torchscript
from irc.ir import Builder, DType, Graph, Node, parse_graph, types
from irc.ops import records, schemas
from irc.ops.pointwise import can_replace_input, inplace_variant_of, result_like
from irc.passes import InPlace, PassContext, PassManager
from irc.passes.in_place import LastUses
from irc.passes.remove_mutation.family import functional_kind
from irc.runtime.plan import without_kernels
from tests.graphs import ir, typed_ir
from tests.operators import POINTWISE
from tests.passes.helpers import (
    assert_becomes,
    assert_same_results,
    assert_unchanged,
    cases,
    kinds,
    run_passes,
    transform,
)

X = np.arange(-4, 4, dtype=np.float32).reshape(2, 4)


def reasons(text: str) -> dict[str, str]:
    """Output name -> why its operator is not in place."""
    graph = parse_graph(text)
    notes = run_passes(graph, "in-place").remarks
    return {note.where.split(" ")[0].lstrip("%"): note.reason for note in notes}


def stays(body: str, why: str) -> None:
    """The in-place pass leaves what makes ``y`` as it is, because of ``why``; a body without inputs has ``x``."""
    text = ir("x: Float(2, 4) " * body.startswith("->") + body)
    assert why in reasons(text)["y"]
    assert not transform(text, "in-place").value("y").node.kind.endswith("_")


# -- where it is right ---------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("onnx::Add(%a, %w)", "onnx::Add_(%a, %w)"),
        ("onnx::Add(%w, %a)", "onnx::Add_(%a, %w)"),  # commutative: the operand that is free
        ("onnx::Mul(%row, %a)", "onnx::Mul_(%a, %row)"),  # and large enough
        ("onnx::Sub(%a, %row)", "onnx::Sub_(%a, %row)"),
        ("onnx::Max(%a, %row, %w)", "onnx::Max_(%a, %row, %w)"),
        ("onnx::Clip(%a, %zero)", "onnx::Clip_(%a, %zero)"),
        ("onnx::Pow(%a, %two)", "onnx::Pow_(%a, %two)"),
        ("irc::slice_scatter[starts=[0, 1], steps=[1, 2]](%a, %part)", None),
        ("onnx::Sub(%w, %a)", ""),  # not commutative
        ("onnx::PRelu(%a, %row)", "onnx::PRelu_(%a, %row)"),
        ("onnx::PRelu(%b, %row)", ""),  # the slope makes the result larger
        ("onnx::Add(%row, %b)", ""),  # the result is larger than either
        ("onnx::Equal(%a, %w)", ""),  # of another type
        ("onnx::Where(%cond, %a, %w)", ""),  # its first input is the condition
    ],
)
def test_which_operand_is_taken(operation, expected):
    text = f"""
graph(%x : Float(2, 4), %cond : Bool(2, 4)):
  %w : Float(2, 4) = prim::Constant[value=tensor([1., 2., 3., 4., 5., 6., 7., 8.])]()
  %row : Float(4) = prim::Constant[value=tensor([1., -2., 3., 4.])]()
  %part : Float(2, 2) = prim::Constant[value=tensor([1., 2., 3., 4.])]()
  %zero : Float() = prim::Constant[value=tensor([0.])]()
  %two : Long() = prim::Constant[value=tensor([2])]()
  %a : Float(2, 4) = onnx::Softmax(%x)
  %b : Float(2, 1) = onnx::ReduceMax(%x, %two)
  %y : Tensor = {operation}
  return (%y)
"""
    expected = operation.replace("](", "](").replace("scatter[", "scatter_[") if expected is None else expected
    assert_becomes(text, "in-place", text.replace(operation, expected or operation))


@pytest.mark.parametrize("type", ["Tensor", "Tensor(2, 4)", "ComplexFloat(2, 4)"])
def test_absolute_values_that_may_be_of_complex_numbers_need_memory_of_their_own(type):
    stays(f"x: {type} -> y\na: {type} = clone(x); y = abs(a)", "may have another shape or element type")


def test_donated_inputs_are_written():
    text = ir("x, kept: Float(2, 4)", "a: Float(2, 4) = Add(kept, x); b: Float(2, 4) = Relu(kept)", "a, b")
    graph = parse_graph(text)
    ctx = PassContext()
    ctx.analyses._dbs[graph] = analyze(graph, noalias=["x"])
    assert InPlace().run(graph, ctx)
    assert kinds(graph) == ["Add_", "Relu"]
    assert graph.value("a").node.inputs == (graph.value("x"), graph.value("kept"))


# -- where it is not -----------------------------------------------------------


STAYS = """
== constants and inputs are not written | %x may be an input that the caller keeps
-> y
y: Float(2, 4) = Relu(x)

== constants and inputs are not written, once more | %w may be a constant
-> y
w: Float(1) = prim.Constant(value=tensor([1.])); y: Float(1) = Relu(w)

== while another reader is to come | %a is used later
-> z
a: Float(2, 4) = Softmax(x); y: Float(2, 4) = Relu(a); z: Float(2, 4) = Sub(a, y)

== what the graph returns | %a is used later
-> a, y
a: Float(2, 4) = Softmax(x); y: Float(2, 4) = Relu(a)

== while a view is to be read | %v is used later
-> v, y
a: Float(2, 4) = Softmax(x); v: Float(4, 2) = Transpose(a); y: Float(2, 4) = Relu(a)

== while a container holds it | %l is used later
-> y, z
a: Float(2, 4) = Softmax(x); l: "Tensor[]" = prim.ListConstruct(a); y: Float(2, 4) = Relu(a); z = cat(l, 0)

== what the caller holds | %a may have escaped to unknown code
x: Float(2, 4); l: Tensor[] -> y
a: Float(2, 4) = Softmax(x); m: "Tensor[]" = append(l, a); y: Float(2, 4) = Relu(a)

== what unknown code may hold | %a may have escaped to unknown code
-> y
a: Float(2, 4) = Softmax(x); n: int = my.keep(a); y: Float(2, 4) = Relu(a)

== in a loop what the next iteration reads | %a is used later
x: Float(2, 4); n: int -> l
a: Float(2, 4) = Softmax(x); l: Float(2, 4) = prim.Loop(n, True, x)
with block(i=int, p=Float(2, 4)): y: Float(2, 4) = Relu(a); yield True, y

== a view of what a loop carries and reads later | %p is used later
x: Float(2, 4); n: Long() -> r
a: Float(2, 4) = Softmax(x); r: Float(2, 4) = Loop(n, True, a)
with block(i=Long(), c=Bool(), p=Float(2, 4)):
    v: Float(2, 4) = Reshape(p, [2, 4]); y: Float(2, 4) = Relu(v); s: Float(2, 4) = Sub(p, y); yield c, s

== what a branch may have given and is read later | %c is used later
x: Float(2, 4); q: Bool() -> z
a: Float(2, 4) = Softmax(x); b: Float(2, 4) = Exp(x); c: Float(2, 4) = a if q else b; y: Float(2, 4) = Relu(a)
z: Float(2, 4) = Sub(c, y)

== a view of what was made in place and is read later | %b is used later
-> z
a: Float(2, 4) = Softmax(x); b: Float(2, 4) = Relu(a); v: Float(2, 4) = Reshape(b, [2, 4]); y: Float(2, 4) = Exp(v)
z: Float(2, 4) = Sub(b, y)

== a carried value that an earlier one still is | %p is used later
# %q of one iteration is %p of the next, which is read after %q is made.
x: Float(2, 4); n: int -> l, m
a: Float(2, 4) = Softmax(x); b: Float(2, 4) = LogSoftmax(x)
l[Float(2, 4)], m[Float(2, 4)] = prim.Loop(n, True, a, b)
with block(i=int, p=Float(2, 4), q=Float(2, 4)):
    y: Float(2, 4) = Relu(p); z: Float(2, 4) = Sub(q, p); yield True, y, z
"""


@pytest.mark.parametrize(("body", "why"), cases(STAYS, ""))
def test_operators_stay(body, why):
    stays(body, why)


def test_not_what_an_attribute_of_the_model_holds() -> None:
    """It lasts until the next run."""
    text = ir("""
        self: __torch__.Kept; x: Float(2) -> y
        a: Float(2) = exp(x); prim.SetAttr(self, a, name="kept"); y: Float(2) = neg(a)
    """)
    model = irc.compile(import_torchscript(text, {"kept": np.zeros(2, np.float32)}), "in-place")
    assert "the caller may know it through %self" in {
        r.reason.removeprefix("not in place: ") for r in model.report.remarks
    }
    assert not model.graph.value("y").node.kind.endswith("_")


ITSELF = ["onnx::Add(%a, %b)", "onnx::Sub(%a, %b)", "onnx::Mul(%a, %b)", "onnx::Div(%a, %b)"]
ITSELF += [
    f"aten::{name}(%a, %b{more})" for name, more in (("add", ", %two"), ("sub", ", %two"), ("mul", ""), ("div", ""))
]


@pytest.mark.parametrize("same", ["%a", "aten::positive(%a)", "onnx::Identity(%a)"])
@pytest.mark.parametrize("operation", ITSELF)
def test_a_tensor_with_itself(operation: str, same: str) -> None:
    given = "" if same == "%a" else f"  %b : Float(n, 257) = {same}\n"
    text = f"""
graph(%x : Float(n, 257)):
  %two : int = prim::Constant[value=2]()
  %a : Float(n, 257) = aten::exp(%x)
{given}  %y : Float(n, 257) = {operation if given else operation.replace("%b", "%a")}
  %z : Float(n, 257) = onnx::Tanh(%y)
  return (%z)
"""
    graph = transform(text, "in-place")
    node = graph.value("y").node
    assert node is not None
    assert node.kind == operation.partition("(")[0] + "_" and node.inputs[0].name in "ab"
    x = np.linspace(-2, 2, 300 * 257, dtype=np.float32).reshape(300, 257)
    plain, *others = (
        irc.compile(parse_graph(text), passes=passes).run({"x": x})["z"]
        for passes in ("", "in-place", "default", "fuse,in-place", "in-place,fuse")
    )
    for found in others:
        np.testing.assert_allclose(found, plain, rtol=2e-6)


def test_not_the_same_memory_twice():
    for operation in ("Max(a, a)", "Sum(a, a, a)", "Pow(a, a)"):
        stays(f"-> y\na: Float(2, 4) = Softmax(x); y: Float(2, 4) = {operation}", "another operand")
    square = "a: Float(4, 4) = MatMul(x, x); v: Float(4, 4) = Transpose(a); y: Float(4, 4) = Add(a, v)"
    stays(f"x: Float(4, 4) -> y\n{square}", "another operand")


@pytest.mark.parametrize(
    "view",
    [
        "v: Float(2, 4) = Expand(a, [2, 4])",
        "v: Float(2, 4) = expand(a, [2, 4])",
        "v: Float(2, 4) = Transpose(a)",
        "v[Float(2, 4)], rest[Float(2, 4)] = Split(a)",
        "v: Float(2, 4) = select(a, 0, 0)",
    ],
)
def test_not_what_is_less_or_more_than_its_memory(view):
    why = "may be a part of something larger, out of order, or repeat elements"
    stays(f"-> y\na = Softmax(x); {view}; y: Float(2, 4) = Relu(v)", why)


def test_not_in_one_branch_what_a_loop_around_reads_in_the_other():
    text = ir("""
        x: Float(2, 4); n: int; c: bool -> l
        a: Float(2, 4) = Softmax(x); l: Float(2, 4) = prim.Loop(n, True, x)
        with block(i=int, p=Float(2, 4)):
            b: bool = gt(i, i); o: Float(2, 4) = prim.If(b)
            with block(): y: Float(2, 4) = Relu(a); yield y
            with block(): z: Float(2, 4) = Mul(p, a); yield z
            yield True, o
    """)
    assert_unchanged(text, "in-place")


def test_not_a_slice_that_scan_may_read_again():
    text = typed_ir("""
        x: Float(2, 4) -> s, u
        zero: Float(4) = prim.Constant(value=tensor([0., 0., 0., 0.])); a = Softmax(x)
        s, u = Scan(zero, a, a, num_scan_inputs=2, scan_input_directions=[0, 1])
        with block(state=Float(4), p=Float(4), q=Float(4)): z = Add(Exp(p), q); yield zero, z
    """)
    before, graph = parse_graph(text), transform(text, "in-place")
    assert kinds(graph) == ["Softmax", "Scan", "Exp", "Add_"]
    assert_same_results(before, graph, X)


def test_variants_only_where_operators_are_pointwise_in_their_version():
    """Before version 7 the second operand of Add was aligned by attributes."""
    text = typed_ir("x: Float(2, 4)", "b = Add(Softmax(x), x, broadcast=1, since_version=6)", "b")
    assert_unchanged(text, "in-place")


# -- tables and cost -----------------------------------------------------------


def test_every_variant_has_a_kernel_and_a_way_back():
    graph = Graph()
    x = graph.add_input(types.tensor(DType.FLOAT, (2,)))
    for kind in sorted(POINTWISE | {each.kind for each in records() if each.keeps_type}):
        inplace_variant = inplace_variant_of(Node(graph, kind))
        if inplace_variant is None:
            assert result_like(kind) != 0, "only where the result is of another type than the first input"
            continue
        assert not without_kernels(one_node(inplace_variant)), inplace_variant
        row = next((row for row in schemas(inplace_variant) if kind.startswith("aten::")), None)
        needed = [] if row is None else [a.type for a in row.arguments[1:] if not a.has_default]
        others = [x if type == types.TENSOR else graph.add_input(types.FLOAT) for type in needed]
        assert functional_kind(Node(graph, inplace_variant, [x, *others])) == kind


def one_node(kind: str) -> Graph:
    graph = Graph()
    graph.block.append(Node(graph, kind))
    return graph


def test_an_operand_surely_takes_the_result_only_if_types_say_so():
    graph = Graph()
    whole = graph.add_input(types.tensor(DType.FLOAT, (2, 4)))
    unknown = graph.add_input(types.tensor(DType.FLOAT))
    number = graph.add_input(types.tensor(DType.FLOAT, ()))
    assert can_replace_input(Node(graph, "onnx::Add", [whole, number]), 0)
    assert can_replace_input(Node(graph, "onnx::Add", [unknown, number]), 0)
    assert not can_replace_input(Node(graph, "onnx::Add", [whole, unknown]), 0)
    assert not can_replace_input(Node(graph, "onnx::Add", [unknown, whole]), 0)
    assert not can_replace_input(Node(graph, "onnx::Add", [number, whole]), 0)
    assert can_replace_input(Node(graph, "onnx::Add", [number, whole]), 1)
    assert not can_replace_input(Node(graph, "onnx::Sub", [number, whole]), 1)


def test_long_chains_are_linear(spy):
    """Each operator asks who holds the one array; those that are done with it must not be asked again."""
    graph = Graph()
    b = Builder(graph)
    x = graph.add_input(types.tensor(DType.FLOAT, (2,)))
    value = b.op("onnx::Softmax", x, type=x.type)
    for _ in range(500):
        value = b.op("onnx::Neg", value, type=x.type)
    graph.set_outputs([value])
    asked = spy(LastUses, "may_be_used_after")
    report = PassManager("in-place").run(graph)
    assert report.stats["in-place.in_place"] == 500
    assert asked.call_count <= 5 * 500


def test_less_memory_at_the_peak():
    text = typed_ir("x: Float(2, 4)", "c = Exp(Relu(Concat(x, x, axis=0)))", "c")
    plain, written = (irc.compile(parse_graph(text), passes=p) for p in ("none", "in-place"))
    assert plain.report.memory.peak == 64 + 64
    assert written.report.memory.peak == 32 + 64
    np.testing.assert_array_equal(plain.run({"x": X})["c"], written.run({"x": X})["c"])


@pytest.mark.parametrize(
    ("operator", "shape"),
    [
        ('Pad <mode = "edge"> (x, pads)', (0,)),
        ('Einsum <equation = "a->a"> (x)', (0,)),
        ('Einsum <equation = "ab"> (x)', (0, 3)),
        ("Tile (x, repeats)", (0, 3)),
        ("Reshape (x, same)", (0, 3)),
    ],
)
def test_results_without_elements_may_be_written_over(operator, shape):
    """NumPy says of arrays without elements that they share nothing, though one may be a read-only view of another."""
    dims = ",".join(f"d{i}" for i in range(len(shape)))
    proto = parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18]>
        g (float[{dims}] x) => (float[{dims}] y)
          <int64[2] pads = {{0, 0}}, int64[2] repeats = {{2, 1}}, int64[2] same = {{0, 0}}>
          {{ p = {operator}  y = Neg(p) }}"""
    )
    found = irc.compile(proto, "default,in-place").run({"x": np.zeros(shape, np.float32)})["y"]
    assert found.shape == shape
