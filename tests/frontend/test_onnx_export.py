"""Modules to ONNX models: what is written, and that it computes the same. `tests/exports` has real models."""

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper, parser

import irc
from irc.frontend.onnx import import_model
from irc.frontend.onnx.opsets import LOWEST_OPSET
from irc.frontend.onnx_export import export_model
from irc.frontend.onnx_export.decompositions import FOREVER, last_alike
from irc.ir import Module, parse_graph, parse_module, structurally_equal
from irc.ops.onnx_signatures import newest_opset
from irc.passes import PassManager
from irc.runtime.kernels.registry import find_binder
from tests.effort import examples
from tests.elsewhere import run_onnxruntime
from tests.frontend.helpers import from_nodes, model
from tests.frontend.test_functions import with_functions
from tests.graphs import ir_module
from tests.passes.helpers import cases

X = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)


def exported(source: Any, passes: str = "default") -> onnx.ModelProto:
    """``source`` compiled, exported, and checked."""
    proto = export_model(irc.compile(source, passes).module)
    onnx.checker.check_model(proto, full_check=True)
    return proto


def run(proto: onnx.ModelProto, **feeds: Any) -> list[Any]:
    return run_onnxruntime(proto, feeds)


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, **feeds: Any) -> None:
    for wanted, found in zip(run(before, **feeds), run(after, **feeds), strict=True):
        np.testing.assert_array_equal(found, wanted)


def kinds(proto: onnx.ModelProto) -> list[str]:
    return [node.op_type for node in proto.graph.node]


def refused(code: str, module: Module, *words: str) -> None:
    before = str(module)
    with pytest.raises(irc.Error) as raised:
        export_model(module)
    assert raised.value.code == code
    for word in words:
        assert word in str(raised.value)
    assert str(module) == before


# -- what passes made ----------------------------------------------------------

CHAIN = "t = Relu(x) u = Neg(t) v = Add(u, x) w = MatMul(v, v) y = Sigmoid(w)"


def test_groups_are_taken_apart() -> None:
    before = model(CHAIN, "float[3,3] x", "float[3,3] y")
    compiled = irc.compile(before)
    assert compiled.report.groups
    text = str(compiled.graph)
    after = export_model(compiled.module)
    assert str(compiled.graph) == text  # which is not changed
    assert kinds(after) == ["Relu", "Neg", "Add", "MatMul", "Sigmoid"]
    assert_same(before, after, x=np.arange(9, dtype=np.float32).reshape(3, 3))


def test_groups_in_groups_are_taken_apart() -> None:
    graph = parse_graph("""graph(%x : Float(3)):
  %y : Float(3) = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Float(3)):
  %a : Float(3) = onnx::Neg(%x)
  %y : Float(3) = prim::FusionGroup_0(%a)
  return (%y)
with prim::FusionGroup_0 = graph(%x : Float(3)):
  %y : Float(3) = onnx::Exp(%x)
  return (%y)
""")
    assert kinds(export_model(Module(graph))) == ["Neg", "Exp"]


def test_in_place_operators_become_functional() -> None:
    before = model(CHAIN, "float[3,3] x", "float[3,3] y")
    compiled = irc.compile(before, "canonicalize,in-place")
    assert any(node.kind.endswith("_") for node in compiled.graph.walk())
    after = export_model(compiled.module)
    assert sorted(kinds(after)) == ["Add", "MatMul", "Neg", "Relu", "Sigmoid"]
    assert_same(before, after, x=np.arange(9, dtype=np.float32).reshape(3, 3))


@st.composite
def _boxes(draw: st.DrawFn) -> tuple[list[int], list[int], list[int], list[int]]:
    """Shape, starts, counts, steps."""
    shape = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    starts, counts, steps = [], [], []
    for size in shape:
        starts.append(start := draw(st.integers(0, size - 1)))
        steps.append(step := draw(st.integers(1, 3)))
        counts.append(draw(st.integers(0, (size - 1 - start) // step + 1)))
    return shape, starts, counts, steps


@examples(80)
@given(_boxes())
def test_slice_scatter_is_spelt_out(box: tuple[list[int], list[int], list[int], list[int]]) -> None:
    shape, starts, counts, steps = box
    of = [", ".join(map(str, sizes)) for sizes in (shape, counts, shape)]
    module = parse_module(
        f"graph(%x : Float({of[0]}), %s : Float({of[1]})):\n"
        f"  %y : Float({of[2]}) = irc::slice_scatter[starts={starts}, steps={steps}](%x, %s)\n"
        f"  return (%y)\n"
    )
    proto = export_model(module)
    onnx.checker.check_model(proto, full_check=True)
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    s = -1 - np.arange(np.prod(counts), dtype=np.float32).reshape(counts)
    wanted = x.copy()
    wanted[tuple(slice(a, a + n * k, k) for a, n, k in zip(starts, counts, steps, strict=True))] = s
    (found,) = run(proto, x=x, s=s)
    np.testing.assert_array_equal(found, wanted)


# -- inputs, outputs and names -------------------------------------------------


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize(
    ("body", "outputs"),
    [
        ("y = Identity(x)", "float[2,3] y"),
        ("y = Identity(x) z = Identity(y)", "float[2,3] y, float[2,3] z"),
        ("y = Constant<value = float[2] {1, 2}>() z = Add(x, x)", "float[2] y, float[2,3] z"),
        ("c = Constant<value = float {1}>() y = Add(x, c) z = Identity(c)", "float[2,3] y, float z"),
        ("y = Relu(x) z = Relu(x)", "float[2,3] y, float[2,3] z"),
        ("z = Relu(x) y = Neg(z)", "float[2,3] z, float[2,3] y"),
    ],
)
def test_outputs_of_all_sorts(body: str, outputs: str, passes: str) -> None:
    before = model(body, outputs=outputs)
    after = exported(before, passes)
    assert [(o.name, o.type) for o in after.graph.output] == [(o.name, o.type) for o in before.graph.output]
    assert_same(before, after, x=X)


def test_names_that_are_no_identifiers() -> None:
    before = from_nodes(
        [helper.make_node("Relu", ["a/b:0"], ["1"]), helper.make_node("Neg", ["1"], ["é y"])], ["a/b:0"], ["é y"]
    )
    after = exported(before)
    assert [v.name for v in (*after.graph.input, *after.graph.output)] == ["a/b:0", "é y"]


def test_inputs_with_defaults_may_still_be_left_out() -> None:
    before = model("y = Add(x, w)", "float[2,3] x, float[3] w")
    before.graph.initializer.append(numpy_helper.from_array(np.array([1, 2, 3], np.float32), "w"))
    after = exported(before)
    assert [i.name for i in after.graph.input] == ["x", "w"]
    assert_same(before, after, x=X)
    assert_same(before, after, x=X, w=np.ones(3, np.float32))


def test_what_the_model_says_of_itself_stays() -> None:
    before = model("y = Relu(x)")
    before.producer_name, before.producer_version, before.model_version = "maker", "2", 7
    before.domain, before.doc_string, before.graph.doc_string = "d", "about", "of the graph"
    before.metadata_props.add(key="author", value="somebody")
    after = export_model(irc.compile(before).module, {"noted": "n"})
    assert (after.domain, after.doc_string, after.model_version) == ("d", "about", 7)
    assert (after.graph.name, after.graph.doc_string) == ("g", "of the graph")
    assert after.producer_name == "irc"
    found = {prop.key: prop.value for prop in after.metadata_props}
    assert found == {
        "author": "somebody",
        "irc.source": "maker 2",
        "irc.version": irc.__version__,
        "irc.pipeline": str(PassManager("default")),
        "noted": "n",
    }
    again = export_model(irc.compile(after).module)
    assert {prop.key: prop.value for prop in again.metadata_props} == found


# -- operators -----------------------------------------------------------------


@pytest.mark.parametrize("opset", [7, 8, 9])
def test_returned_constants_of_types_that_old_constants_do_not_give(opset: int) -> None:
    before = parser.parse_model(
        f"""<ir_version: 4, opset_import: ["": {opset}]>
        g (float[2] x) => (int64[1] y, int64[1] same, float[1] f, float[2] z) <float[3] w = {{1,5,2}}> {{
          y = ArgMax <axis = 0> (w)  same = Identity (y)  f = ReduceMax (w)  z = Relu(x) }}"""
    )
    after = exported(before)
    assert [o.version for o in after.opset_import] == [opset]
    assert_same(before, after, x=np.array([-1, 2], np.float32))


@pytest.mark.parametrize(
    ("node", "opset"),
    [
        ("onnx::Neg[since_version=13](%x)", 17),
        ("onnx::Identity[since_version=25](%x)", 17),
        ("onnx::Transpose[since_version=25, perm=[0]](%x)", 17),
        ("onnx::Cast[since_version=25, to=1](%x)", 17),
        ("onnx::Pad[since_version=24](%x, %i)", 17),
        ('onnx::Pad[since_version=24, mode="wrap"](%x, %i)', None),
        ('onnx::Cast[since_version=25, to=1, round_mode="up"](%x)', None),
        ("onnx::Pad[since_version=24](%x, %i, %none, %i)", None),
    ],
)
def test_newer_versions_that_are_given_nothing_new_may_be_older_ones(node: str, opset: int | None) -> None:
    module = parse_module(
        "graph(%x : Float(2), %i : Long(2)):\n"
        "  %none : NoneType = prim::Constant()\n"
        f"  %n : Float(2) = {node}\n"
        "  %y : Float(2) = onnx::Split[since_version=13](%n)\n"
        "  return (%y)\n"
    )
    if opset is None:
        refused("IRC351", module, "onnx::Split", "up to version 17")
    else:
        after = export_model(module)
        onnx.checker.check_model(after, full_check=True)
        assert [o.version for o in after.opset_import] == [opset]


@pytest.mark.parametrize("operator", ["LayerNormalization(x, w)", "Gelu(x)", "Trilu(x)", "Mish(x)", "HardSwish(x)"])
@pytest.mark.parametrize("loss", ["SoftmaxCrossEntropyLoss(x, t)", "NegativeLogLikelihoodLoss(x, t)"])
def test_operators_beside_what_a_function_body_of_an_older_opset_made(operator: str, loss: str) -> None:
    before = parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21]>
        g (float[2,3] x, int64[2] t, float[3] w) => (float loss, float[2,3] y) {{ loss = {loss}  y = {operator} }}"""
    )
    x, w = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(3, np.float32)
    assert_same(before, exported(before), x=x, w=w, t=np.array([0, 2]))


@pytest.mark.parametrize(
    ("old", "since", "shape"),
    [
        ("ReduceMean[since_version=13, axes=[-1], keepdims=0]", 18, "2"),
        ("ReduceMax[since_version=13]", 18, "1, 1"),
        ("ReduceLogSum[since_version=1, axes=[0]]", 18, "1, 3"),
        ("ReduceSum[since_version=11, axes=[1]]", 13, "2, 1"),
        ("Unsqueeze[since_version=11, axes=[0, 3]]", 13, "1, 2, 3, 1"),
    ],
)
def test_axes_that_became_an_input(old: str, since: int, shape: str) -> None:
    newer = "onnx::Mish[since_version=18]" if since == 18 else "onnx::Neg[since_version=13]"
    module = parse_module(
        "graph(%x : Float(2, 3)):\n"
        f"  %n : Float(2, 3) = {newer}(%x)\n"
        f"  %y : Float({shape}) = onnx::{old}(%n) # sum\n"
        "  return (%y)\n"
    )
    x = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    (expected,) = irc.compile(module.copy(), "none").run({"x": x}).values()
    after = export_model(module)
    onnx.checker.check_model(after, full_check=True)
    assert after.opset_import[0].version >= since
    assert after.graph.node[-1].name == "sum"
    (found,) = irc.compile(after).run({"x": x}).values()
    np.testing.assert_array_equal(found, expected)


def test_versions_that_are_alike_are_so_for_the_kernels() -> None:
    """Newer versions have all types and attributes of older ones, and one kernel computes both."""
    alike = 0
    for schema in onnx.defs.get_all_schemas_with_history():
        kind, version = f"onnx::{schema.name}", schema.since_version
        if schema.domain or schema.deprecated or version < LOWEST_OPSET:
            continue
        last = last_alike(kind, version)
        newer = onnx.defs.get_schema(schema.name, min(last, newest_opset("")))
        if newer.since_version == version:
            continue
        alike += 1
        assert find_binder(kind, version) is find_binder(kind, newer.since_version), (kind, version)
        pairs = [*zip(schema.inputs, newer.inputs), *zip(schema.outputs, newer.outputs, strict=True)]
        for before, after in pairs:
            assert (before.name, before.option) == (after.name, after.option), (kind, version)
            assert before.types <= after.types, (kind, version)
        assert schema.attributes.keys() <= newer.attributes.keys(), (kind, version)
        assert (schema.min_input, len(schema.outputs)) == (newer.min_input, len(newer.outputs)), (kind, version)
    assert alike > 150
    assert (last_alike("onnx::Softmax", 1), last_alike("onnx::Clip", 6)) == (12, 10)
    assert [last_alike(f"onnx::{name}", 6) for name in ("PRelu", "Relu")] == [6, FOREVER]
    assert last_alike("onnx::Cast", 13) == last_alike("onnx::Pad", 13) == FOREVER
    assert [last_alike(f"onnx::{name}", 13) for name in ("RoiAlign", "Split", "Resize")] == [15, 17, 18]


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("opset", [19, 21, newest_opset("")])
@pytest.mark.parametrize(
    ("body", "inputs", "output"),
    [
        ("w = HannWindow(n)  z = Mul(w, x)  y = Cast<to = 10>(z)", "int64 n, float[8] x", "float16[N] y"),
        ("z = NegativeLogLikelihoodLoss(p, t)  y = Identity(z)", "float[3,5] p, int64[3] t", "float y"),
        ("z = SoftmaxCrossEntropyLoss(p, t)  y = Identity(z)", "float[3,5] p, int64[3] t", "float y"),
    ],
)
def test_operators_that_were_expanded_by_older_bodies(
    body: str, inputs: str, output: str, opset: int, passes: str
) -> None:
    """The body of HannWindow is of opset 17, where Cast had no attribute `saturate`."""
    before = model(body, inputs, output, opset)
    feeds = {
        "n": np.array(8),
        "x": np.ones(8, np.float32),
        "p": np.linspace(-1, 1, 15, dtype=np.float32).reshape(3, 5),
        "t": np.array([0, 2, 4]),
    }
    feeds = {name: feeds[name] for name in (info.name for info in before.graph.input)}
    after = exported(before, passes)
    found = irc.compile(after).run(feeds)["y"]
    np.testing.assert_array_equal(found, irc.compile(before).run(feeds)["y"])


@pytest.mark.parametrize("passes", ["none", "default"])
def test_functions(passes: str) -> None:
    before = with_functions(
        "t = local.F(x) u = local.G(t) y = Add(u, t)",
        "F (a) => (b) { c = Constant<value = float {2}>() t = Mul(a, c) b = Neg(t) }",
        "G (a) => (b) { t = local.F(a) b = Relu(t) }",
    )
    after = exported(before, passes)
    assert len(after.functions) == (2 if passes == "none" else 0)
    assert_same(before, after, x=X)
    again = exported(after, "none")
    assert [f.name for f in again.functions] == [f.name for f in after.functions]


PIPELINES = ("none", "default", "default,in-place", "cse,dce,reorder,in-place", "canonicalize,growable,fuse,in-place")


def test_functions_that_call_themselves() -> None:
    module = ir_module("""
            x: Float(2) -> y
            f: Function = prim.Constant(name="f"); y: Float(2) = prim.CallFunction(f, x)

            f | a: Float(2) -> b
            g: Function = prim.Constant(name="f"); b: Float(2) = prim.CallFunction(g, a)
        """)
    refused("IRC350", module, "f -> f")


def test_calls_name_the_arguments_that_are_absent() -> None:
    """ONNX Runtime would take them as absent anyhow, onnx.reference would not."""
    before = with_functions("y = local.F(x)", "F (a, lo, hi) => (b) { b = Clip(a, lo, hi) }")
    after = exported(before, "none")
    assert list(after.graph.node[0].input) == ["x", "", ""]
    assert_same(before, after, x=X)


LOOP = """
    n = Constant<value = int64 {3}>() k = Constant<value = bool {1}>()
    y, z = Loop(n, k, x) <body = b (int64 i, bool c, float[2,3] s) => (bool d, float[2,3] r, float[2,3] p) {
        d = Identity(c)  r = Add(s, x)  p = Identity(s)
    }>
"""
BRANCHES = """
    q = ReduceSum<keepdims = 0>(x)  zero = Constant<value = float {0}>()  g = Greater(q, zero)
    y = If(g) <then_branch = a () => (t) { t = Relu(x) }, else_branch = b () => (e) { e = Identity(zero) }>
"""
NESTED = """
    n = Constant<value = int64 {2}>() k = Constant<value = bool {1}>()
    y = Loop(n, k, x) <body = b (int64 i, bool c, float[2,3] s) => (bool c2, float[2,3] r) {
        c2 = Identity(c)
        one = Constant<value = int64 {1}>()  last = Equal(i, one)
        r = If(last) <then_branch = a () => (t) { t = Add(s, x) }, else_branch = e () => (u) { u = Identity(s) }>
    }>
"""
SCAN = """
    y, z = Scan<num_scan_inputs = 1, body = b (float[3] s, float[3] e) => (float[3] r, float[3] p) {
        r = Add(s, e)  p = Neg(r)
    }>(w, x)
"""


@pytest.mark.parametrize(
    "passes", ["none", "default", "default,in-place", "(canonicalize,cse,dce)*2,reorder,growable,in-place"]
)
@pytest.mark.parametrize(
    ("body", "inputs", "outputs"),
    [
        (LOOP, "float[2,3] x", "float[2,3] y, float[3,2,3] z"),
        (BRANCHES, "float[2,3] x", "float[A,B] y"),
        (NESTED, "float[2,3] x", "float[2,3] y"),
        (SCAN, "float[3] w, float[2,3] x", "float[3] y, float[2,3] z"),
    ],
    ids=["loop", "branches", "nested", "scan"],
)
def test_control_flow(body: str, inputs: str, outputs: str, passes: str) -> None:
    before = model(body, inputs, outputs, 17)
    after = exported(before, passes)
    feeds = {"x": X} if "w" not in inputs else {"x": X, "w": np.ones(3, np.float32)}
    assert_same(before, after, **feeds)
    if "w" not in inputs:
        assert_same(before, after, x=-X)


def test_a_loop_of_old_keeps_a_carried_value_as_it_had_to_have_one() -> None:
    before = model(
        """last, y = Loop(m, , x) <body = b (int64 i, bool c, float[2] a) => (bool d, float[2] r, float[2] s) {
            d = Identity(c)  r = Identity(a)  s = Mul(x, x)
        }>""",
        "int64 m, float[2] x",
        "float[N,2] y",
        9,
    )
    (loop,) = exported(before).graph.node
    assert len(loop.input) == 3
    before.opset_import[0].version = 11
    (loop,) = exported(before).graph.node
    assert len(loop.input) == 2


@pytest.mark.parametrize("passes", ["none", "default"])
def test_what_a_scan_carries_and_scans_keeps_its_declared_rank(passes: str) -> None:
    """ONNX Runtime refuses states of unknown rank."""
    before = model(
        """f, y = Scan<num_scan_inputs = 1, body = b (float[N] s, float[M] e) => (float r, float p) {
            r = Add(s, e)  p = Neg(r)
        }>(w, x)""",
        "float[N] w, float[N, M] x",
        "float[N] f, float[N, M] y",
    )
    nested = before.graph.node[0].attribute[1].g
    for info in (*before.graph.input, *before.graph.output, *nested.output):
        info.type.tensor_type.ClearField("shape")
    after = export_model(irc.compile(before, passes).module)
    assert_same(before, after, w=np.ones(3, np.float32), x=X)


STACKS = """{} = Loop(n, k, s) <body = b{} (int64 i, bool c, optional(seq(float[2])) t) => (bool d, seq(float[2]) u) {{
    d = Identity(c)  u = SequenceConstruct(x)
}}>"""


@pytest.mark.parametrize(
    ("body", "output"),
    [
        (STACKS.format("r", ""), "seq(float[2]) r"),
        (
            f"""r = If(q) <then_branch = t () => (seq(float[2]) f) {{ {STACKS.format("f", 0)} }},
            else_branch = e () => (seq(float[2]) g) {{
                g = If(k) <then_branch = v () => (seq(float[2]) h) {{ {STACKS.format("h", 1)} }},
                else_branch = w () => (seq(float[2]) o) {{ o = SequenceConstruct(x, x) }}>
            }}>""",
            "seq(float[2]) r",
        ),
        (
            """r = If(q) <then_branch = a () => (optional(seq(float[2])) t) { t = Optional<type = seq(float[2])>() },
            else_branch = b () => (optional(seq(float[2])) e) { l = SequenceConstruct(x)  e = Optional(l) }>""",
            "optional(seq(float[2])) r",
        ),
    ],
    ids=["carried by a loop", "of a loop in a branch", "empty"],
)
def test_optionals_have_the_types_that_bodies_return(body: str, output: str) -> None:
    before = model(body, "bool q, int64 n, bool k, float[2] x, optional(seq(float[2])) s", output)
    assert exported(before).graph.output[0].type == before.graph.output[0].type


# -- constants -----------------------------------------------------------------

DTYPES = [
    number for name, number in TensorProto.DataType.items() if number not in (TensorProto.UNDEFINED, TensorProto.STRING)
]


@pytest.mark.parametrize("dtype", DTYPES, ids=TensorProto.DataType.Name)
@pytest.mark.parametrize("count", [1, 3, 40])
def test_weights_of_every_type(dtype: int, count: int) -> None:
    array = np.arange(count).astype(helper.tensor_dtype_to_np_dtype(dtype))
    tensor = numpy_helper.from_array(array, "w")
    assert tensor.data_type == dtype
    graph = helper.make_graph(
        [],  # no operator takes the newest types
        "g",
        [],
        [helper.make_tensor_value_info("w", dtype, [count])],
        [tensor],
    )
    before = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    after = export_model(import_model(before))
    onnx.checker.check_model(after)  # not fully: Constant does not give the newest types
    (found,) = after.graph.initializer or [after.graph.node[0].attribute[0].t]
    assert found.data_type == dtype
    assert numpy_helper.to_array(found).tobytes() == array.tobytes()


# -- what ONNX has nothing for -------------------------------------------------


REFUSED = r"""
== slice scatter of unknown shape | %x : Float(n), %s : Float(2) | IRC350 | irc::slice_scatter; known shapes; %y
%y : Float(n) = irc::slice_scatter[starts=[0], steps=[1]](%x, %s)
return (%y)

== versions of no one set | %x : Float(2, 3) | IRC351 | onnx::Softmax; up to version 12; from version 13; %t; %y
%t : Float(2, 3) = onnx::Softmax[since_version=1](%x)
%y : Float(2, 3) = onnx::Softmax[since_version=13](%t)
return (%y)

== element types that older versions do not have | %x : Float(2) | IRC351 | onnx::Cast; from version 25
%n : UInt2(2) = onnx::Cast[since_version=25, to=25](%x)
%y : Float(2) = onnx::Split[since_version=13](%x)
return (%y, %n)

== all other operators | %x : Float(2) | IRC350 | aten::relu; 2 nodes, first %a; aten::neg; 1 node, first %y; int[]
%a : Float(2) = aten::relu(%x)
%b : Float(2) = aten::relu(%a)
%c : int[] = prim::Constant[value=[1, 2]]()
%y : Float(2) = aten::neg(%b)
return (%y)

== writes that cannot be made functional | %x : Float(2) | IRC350 | onnx::Relu_; writes into memory
%y : Float(2) = onnx::Relu_(%x)
return (%y)

== types that onnx does not have | %x : Float(2), %n : int | IRC350 | int; %n
%y : Float(2) = onnx::Relu(%x)
return (%y)

== types that are not known | %x : Tensor | IRC350 | element type; %x
%y : Tensor = onnx::Relu(%x)
return (%y)

== functions that are not there | %x : Float(2) | IRC350 | can only call its own functions; %f
%f : Function = prim::Constant[name="g"]()
%y : Float(2) = prim::CallFunction(%f, %x)
return (%y)

== versions of the future | %x : Float(2) | IRC351 | 99; %y
%y : Float(2) = onnx::Relu[since_version=99](%x)
return (%y)

== names that are not text | %x : Float(2) | IRC350 | UTF-8
%"y\ud800" : Float(2) = onnx::Relu(%x)
return (%"y\ud800")
"""


@pytest.mark.parametrize(("body", "inputs", "code", "words"), cases(REFUSED))
def test_what_cannot_be_written_is_refused(body: str, inputs: str, code: str, words: str) -> None:
    lines = "".join(f"  {line}\n" for line in body.split("\n"))
    refused(code, parse_module(f"graph({inputs}):\n{lines}"), *words.split("; "))


@pytest.mark.parametrize("value", ['"s"', "[1, 2]"])
def test_attributes_that_the_operator_does_not_have_so(value: str) -> None:
    module = parse_module(
        f"graph(%x : Float(2)):\n  %y : Float(2) = onnx::LeakyRelu[alpha={value}](%x)\n  return (%y)\n"
    )
    refused("IRC350", module, "'alpha'", "%y")


# -- any model -----------------------------------------------------------------

UNARY, BINARY = ("Relu", "Neg", "Abs", "Identity", "Floor"), ("Add", "Sub", "Max", "Min", "Mul")


@st.composite
def _models(draw: st.DrawFn) -> onnx.ModelProto:
    """Graphs over float[2], with branches that see what is around them."""
    names = ["x", "c"]

    def nodes(count: int, scope: list[str], prefix: str, depth: int) -> list[onnx.NodeProto]:
        made = []
        for number in range(count):
            out = f"{prefix}{number}"
            pick = st.sampled_from(scope)
            op = draw(st.sampled_from([*UNARY, *BINARY, *(["If"] * 3 if depth < 2 else [])]))
            if op == "If":
                branches = {}
                for branch in ("then_branch", "else_branch"):
                    inner = list(scope)
                    body = nodes(draw(st.integers(1, 3)), inner, f"{out}{branch[0]}", depth + 1)
                    result = helper.make_tensor_value_info(body[-1].output[0], TensorProto.FLOAT, [2])
                    branches[branch] = helper.make_graph(body, branch, [], [result])
                made.append(helper.make_node("If", ["q"], [out], **branches))
            else:
                made.append(helper.make_node(op, [draw(pick) for _ in range(1 + (op in BINARY))], [out]))
            scope.append(out)
        return made

    made = nodes(draw(st.integers(1, 8)), names, "v", 0)
    outputs = draw(st.lists(st.sampled_from(names[2:]), min_size=1, max_size=3, unique=True))
    proto = from_nodes(made, ["x"], outputs, [numpy_helper.from_array(np.array([1, -2], np.float32), "c")], opset=17)
    proto.graph.input.append(helper.make_tensor_value_info("q", TensorProto.BOOL, []))
    return proto


@examples(100)
@given(_models(), st.sampled_from(PIPELINES))
def test_any_model(before: onnx.ModelProto, passes: str) -> None:
    module = irc.compile(before, passes).module
    after = export_model(module)
    onnx.checker.check_model(after, full_check=True)
    for question in (False, True):
        assert_same(before, after, x=np.array([3, -1], np.float32), q=np.array(question))
    again = import_model(export_model(import_model(after)))
    assert structurally_equal(again, import_model(after)) is None


@pytest.mark.parametrize(
    ("shape", "target", "written"),
    [
        (["B", "S", 64], [0, 0, 4, -1], [0, 0, 4, 16]),
        (["B", "S", 4, 16], [0, 0, -1], [0, 0, 64]),
        (["B", 4, "S"], [0, -1, 0, 2], [0, 2, 0, 2]),
        (["B", "S", 6], [0, -1, 2, 3], [0, 0, 2, 3]),
        (["B", "S", 6], [0, 2, -1, 3], [0, 2, -1, 3]),
        (["B", 6, "S"], [0, 2, -1], [0, 2, -1]),
        (["B", 6], [-1, 3, 2], [-1, 3, 2]),
        (["B", 0, 2], [0, -1], [0, -1]),
    ],
)
def test_sizes_beside_copied_ones_are_stated(shape: list[Any], target: list[int], written: list[int]) -> None:
    weights = [numpy_helper.from_array(np.array(target), "t")]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    nodes = [helper.make_node("Reshape", ["x", "t"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    proto = exported(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9))
    (kept,) = proto.graph.initializer
    assert numpy_helper.to_array(kept).tolist() == written
    if written != target:
        sizes = {"B": 0, "S": 3}
        empty = np.zeros([sizes.get(n, n) for n in shape], np.float32)
        found = irc.compile(proto).run({"x": empty})["y"]
        (other,) = run(proto, x=empty)
        assert other.shape == found.shape
