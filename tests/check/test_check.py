"""Checks against oracles: who is asked, what is found."""

import re
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.errors import Error
from irc.ir import Builder, DType, Graph, TensorType, parse_graph, parse_module
from irc.passes.base import PassContext
from irc.runtime.arguments import Argument
from irc.runtime.values import is_array
from irc.tools.check import CheckResult, Tolerance, check_model
from irc.tools.check.oracles import oracles
from irc.tools.check.peers import exact_onnxruntime
from irc.tools.check.votes import AT_ONCE
from irc.tools.random_inputs.draw import MAX_ELEMENTS, assumed_sizes, can_be_made_up, seeded_inputs
from tests.cli.helpers import model, node, small_model


def chain(length: int = 3, wrong_at: int | None = None, opset: int = 17) -> onnx.ModelProto:
    """``length`` additions of 1; one of them subtracts instead, if that is asked for."""
    names = ["x", *(f"v{i}" for i in range(1, length)), "y"]
    nodes = [node("Sub" if i == wrong_at else "Add", f"{a} one", b) for i, (a, b) in enumerate(pairwise(names), 1)]
    return model(nodes, {"x": [2, 3]}, ["y"], {"one": np.ones(1, np.float32)}, opset=opset)


OTHER = "graph(%x : Float(2, 3)):\n  %z : Float(2, 3) = onnx::Relu(%x)\n  return (%z)\n"


def of_rows(body: str) -> onnx.ModelProto:
    """A model of x, [4, 1]."""
    versions = '<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 5]>'
    return onnx.parser.parse_model(f"{versions} g (float[4,1] x) => (float[4,m] y) {{ {body} }}")


VECTORS = (
    'ai.onnx.ml.SVMRegressor<coefficients=[1.0], kernel_params=[1.0, 0.0, 0.0], kernel_type="LINEAR", n_supports=1, '
    'rho=[0.5], support_vectors=[2.0], post_transform="{}">(x)'
)
LINES = 'ai.onnx.ml.LinearRegressor<coefficients={}, intercepts={}, targets={}, post_transform="{}">(x)'
TREES = (
    "ai.onnx.ml.TreeEnsemble<n_targets=2, post_transform={}, nodes_featureids=[0], nodes_splits=float[1]{{0}}, "
    "nodes_modes=uint8[1]{{0}}, nodes_truenodeids=[0], nodes_falsenodeids=[1], nodes_trueleafs=[1], "
    "nodes_falseleafs=[1], tree_roots=[0], leaf_targetids=[0, 1], leaf_weights=float[2]{{0.3, 0.8}}>(x)"
)
BRANCHES = "c = Constant<value=bool{1}>() y = If(c) <then_branch = t () => (float[4,m] z) { z = %s }, "
BRANCHES += "else_branch = e () => (float[4,m] z) { z = Relu(x) }>"


@pytest.fixture
def no_onnxruntime(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # an import of it fails


def test_onnx_runtime_is_asked_first() -> None:
    result = check_model(irc.compile(small_model()), small_model())
    assert result.oracle == "ONNX Runtime"
    assert result.unable == {}
    assert result.sizes == {"batch": 2}
    assert 0 <= result.error < 1e-5


def test_onnx_runtime_is_asked_what_the_nodes_say() -> None:
    # Optimised, it makes one QLinearSoftmax of these, which is off by whole steps of the result.
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Softmax", "d", "p", axis=-1),
        node("QuantizeLinear", "p t u", "r"),
        node("DequantizeLinear", "r t u", "y"),
    ]
    weights = {name: np.float32(value) for name, value in {"s": 0.1, "t": 1 / 255}.items()}
    weights |= {name: np.uint8(value) for name, value in {"z": 128, "u": 0}.items()}
    proto = model(nodes, {"x": [4, "n"]}, ["y"], weights)
    result = check_model(irc.compile(proto), proto, sizes={"n": 64})
    assert result.oracle == "ONNX Runtime" and result.error == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "float8e4m3fn", "float8e5m2", "int4", "uint4", "int2"])
def test_onnx_runtime_is_asked_about_types_that_numpy_has_no_names_for(dtype: str) -> None:
    proto = onnx.parser.parse_model(f"""
        <ir_version: 13, opset_import: ["" : 25]>
        g ({dtype}[3,5] x) => ({dtype}[5,3] y, float[5,3] z) {{ y = Transpose(x) z = Cast<to=1>(y) }}
    """)
    result = check_model(irc.compile(proto), proto)
    assert (result.oracle, result.unable, result.error) == ("ONNX Runtime", {}, 0)


def test_results_in_float8_are_no_bytes() -> None:
    header = '<ir_version: 10, opset_import: ["" : 21]>'
    proto = onnx.parser.parse_model(f"{header} g (float[3] x) => (float8e4m3fn[3] y) {{ y = Cast<to=17>(x) }}")
    result = check_model(irc.compile(proto), proto)
    assert (result.oracle, result.error) == ("ONNX Runtime", 0)


@pytest.mark.parametrize("output", ["q", "y"])
@pytest.mark.parametrize("dtype", ["float8e4m3fn", "float8e5m2"])
def test_numbers_in_float8_may_be_one_place_off(dtype: str, output: str) -> None:
    """The sums before them differ in the last digits."""
    type = dtype if output == "q" else "float"
    proto = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 21]>
        g (float[300,1000] x, float[1000,1000] w) => ({type}[300,1000] {output})
        <float s = {{0.03}}, {dtype} z = {{0}}> {{
            p = MatMul(x, w) q = QuantizeLinear(p, s, z) y = DequantizeLinear(q, s, z)
        }}
    """)
    compiled = irc.compile(proto)
    feeds = seeded_inputs(compiled.inputs, 0)
    (theirs,) = exact_onnxruntime(proto, "")(feeds, [output])
    assert not np.array_equal(compiled.run(feeds)[output], theirs), "nothing is rounded otherwise"
    assert check_model(compiled, proto, seeds=[0]).error < (0.1 if output == "q" else 1e-5)


def rounding(dtype: type, output: str = "y", step: float = 0.02, op_type: str = "Add") -> onnx.ModelProto:
    """What interpolation of quantized numbers makes often lies in the middle of two, and is one of them then."""
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("DequantizeLinear", "q s z", "d"),
        node("Resize", "d none r", "p", mode="linear"),
        node("QuantizeLinear", "p t z", "v"),
        node("DequantizeLinear", "v s z", "w"),
        node(op_type, "w w", "u"),
        node("MatMul", "u m", "y"),
    ]
    zero = dtype(0 if np.iinfo(dtype).min else 128)
    weights = {"s": np.float32(0.02), "t": np.float32(step), "z": zero, "r": np.array([1, 1, 2, 2], np.float32)}
    weights["m"] = np.random.default_rng(0).standard_normal((16, 4)).astype(np.float32)
    weights["none"] = np.zeros(0, np.float32)
    proto = model(nodes, {"x": [1, 8, 8, 8]}, [output], weights, opset=21)
    if output == "v":
        proto.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return proto


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("output", ["v", "w", "y"])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
def test_quantized_numbers_may_be_one_place_off(dtype: type, output: str, passes: str) -> None:
    proto = rounding(dtype, output)
    compiled = irc.compile(proto, passes)
    feeds = seeded_inputs(compiled.inputs, 0)
    (theirs,) = exact_onnxruntime(proto, "")(feeds, [output])
    assert not np.array_equal(compiled.run(feeds)[output], theirs), "nothing is rounded otherwise"
    assert check_model(compiled, proto).error < 1e-5 + (output == "v")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
@pytest.mark.parametrize(
    ("wrong", "named"), [({"op_type": "Sub"}, "%u, of onnx::Sub"), ({"step": 0.018}, "%v, of onnx::QuantizeLinear")]
)
def test_what_is_wrong_besides_is_found(dtype: type, wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(Error, match="compared with ONNX Runtime; the first value that differs is") as caught:
        check_model(irc.compile(rounding(dtype, **wrong), "none"), rounding(dtype))
    assert caught.value.code == "IRC330" and named in str(caught.value)


@pytest.mark.usefixtures("no_onnxruntime")
def test_then_onnx_reference() -> None:
    result = check_model(irc.compile(small_model()), small_model())
    assert result.oracle == "onnx.reference"
    assert list(result.unable) == ["ONNX Runtime"]


@pytest.mark.usefixtures("no_onnxruntime")
@pytest.mark.parametrize(
    ("proto", "why"),
    [
        (chain(opset=13), "not right for opset 13"),
        (model([node("LRN", "x", "y", size=3)], {"x": [2, 4, 3]}, ["y"]), "not known to be right for LRN"),
        (of_rows(BRANCHES % "LRN<size=1>(x)"), "not known to be right for LRN"),
    ],
)
def test_then_irc_itself(proto: onnx.ModelProto, why: str) -> None:
    result = check_model(irc.compile(proto), proto)
    assert result.oracle == "irc without passes"
    assert why in result.unable["onnx.reference"]
    assert re.match(
        r"agrees with irc without passes in 2 runs \(.*\): max error .* relative to max\|ref\|", str(result)
    )
    assert "; not with ONNX Runtime: " in str(result)


@pytest.mark.parametrize(
    "body",
    [
        f"y = {VECTORS.format('LOGISTIC')}",
        f"y = {LINES.format([1.0], [0.0], 1, 'SOFTMAX')}",
        f"y = {LINES.format([1.0, 2.0], [0.0, 1.0], 2, 'PROBIT')}",
        f"y = {TREES.format(1)}",
        BRANCHES % VECTORS.format("SOFTMAX_ZERO"),
    ],
)
def test_onnx_runtime_is_not_asked_for_scores_that_it_does_not_transform(body: str) -> None:
    proto = of_rows(body)
    result = check_model(irc.compile(proto), proto)
    assert "that transforms scores" in result.unable["ONNX Runtime"]
    assert result.oracle == "irc without passes"


@pytest.mark.parametrize(
    "body",
    [
        f"y = {VECTORS.format('NONE')}",
        f"y = {LINES.format([1.0, 2.0], [0.0, 1.0], 2, 'LOGISTIC')}",
        f"y = {TREES.format(0)}",
    ],
)
def test_it_is_for_others(body: str) -> None:
    assert check_model(irc.compile(of_rows(body)), of_rows(body)).oracle == "ONNX Runtime"


def test_graphs_and_modules_are_compared_with_their_own_plan() -> None:
    module = irc.compile(chain()).module
    assert check_model(irc.compile(module), module).oracle == "irc without passes"
    graph: Graph = module.main
    assert irc.compile(graph, check=True).report.notes[-1].startswith("agrees with irc without passes")


@pytest.mark.parametrize("length", [3, 2 * AT_ONCE + 5])
@pytest.mark.parametrize("oracle", ["ONNX Runtime", "onnx.reference"])
def test_the_first_value_that_differs_is_named(length: int, oracle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if oracle != "ONNX Runtime":
        monkeypatch.setitem(sys.modules, "onnxruntime", None)
    wrong = irc.compile(chain(length, wrong_at=length - 1), passes="none")
    with pytest.raises(Error) as caught:
        check_model(wrong, chain(length))
    assert caught.value.code == "IRC330"
    assert caught.value.where == "output 'y'"
    assert f"compared with {oracle}; the first value that differs is %v{length - 1}, of onnx::Sub" in str(caught.value)


def test_other_small_integers_are_not_quantized_numbers() -> None:
    def masked(number: int) -> onnx.ModelProto:
        nodes = [
            node("Cast", "x", "q", to=TensorProto.UINT8),
            node("Add", "q n", "v"),
            node("Cast", "v", "y", to=TensorProto.FLOAT),
        ]
        return model(nodes, {"x": [2, 3]}, ["y"], {"n": np.uint8(number)})

    with pytest.raises(Error, match="IRC330"):
        check_model(irc.compile(masked(3)), masked(2))


def test_every_oracle_tells_values_on_the_way() -> None:
    x = np.zeros((2, 3), np.float32)
    asked = list(oracles(chain()))
    for oracle in asked:
        found = oracle.run({"x": x}, ["v1", "v2", "y"])
        assert [found[name][0, 0] for name in ("v1", "v2", "y")] == [1, 2, 3]
    assert [oracle.name for oracle in asked] == ["ONNX Runtime", "onnx.reference", "irc without passes"]


def half(weights: DType, computed: DType, scale: float = 1.0) -> onnx.ModelProto:
    """Two layers of ``tanh(x W)``, whose weights are of one type, and cast to the one that is computed in."""
    rng = np.random.default_rng(0)
    nodes = [node("Cast", "x", "h0", to=computed.onnx)]
    held: dict[str, np.ndarray[Any, Any]] = {}
    for i in range(2):
        held[f"c{i}"] = (scale * rng.standard_normal((64, 64)) / 8).astype(weights.numpy)
        nodes += [
            node("Cast", f"c{i}", f"w{i}", to=computed.onnx),
            node("MatMul", f"h{i} w{i}", f"m{i}"),
            node("Tanh", f"m{i}", f"h{i + 1}"),
        ]
    return model([*nodes, node("Cast", "h2", "y", to=TensorProto.FLOAT)], {"x": [4, 64]}, ["y"], held)


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
@pytest.mark.parametrize("passes", ["none", "default"])
def test_half_precision_rounds_in_the_last_places(dtype: DType, passes: str) -> None:
    proto = half(dtype, dtype)
    error = check_model(irc.compile(proto, passes), proto).error
    assert error is not None and error < 4 * float(ml_dtypes.finfo(dtype.numpy).eps)
    with pytest.raises(Error, match="the compiled model is wrong"):
        check_model(irc.compile(half(dtype, dtype, scale=1.1), passes), proto)


def test_weights_in_half_precision_make_no_results_less_precise() -> None:
    assert Tolerance.of(half(DType.FLOAT16, DType.FLOAT)) == Tolerance()


def test_what_passes_round_is_not_what_the_model_rounds() -> None:
    @dataclass(frozen=True)
    class Rounds:
        name: ClassVar[str] = "rounds"

        def run(self, graph: Graph, ctx: PassContext) -> bool:
            (node,) = [n for n in graph.nodes if n.kind == "onnx::Sigmoid"]
            b = Builder(graph, before=node)
            narrow = b.op("onnx::Cast", node.inputs[0], attributes={"to": DType.BFLOAT16.onnx}, version=13)
            node.replace_input(0, b.op("onnx::Cast", narrow, attributes={"to": DType.FLOAT.onnx}, version=13))
            ctx.alias_db(graph).refresh()
            return True

    proto = model([node("Sigmoid", "x", "s"), node("Neg", "s", "y")], {"x": [9, 100]}, ["y"])
    with pytest.raises(Error, match="the compiled model is wrong"):
        check_model(irc.compile(proto, [Rounds()]), proto)


@pytest.mark.usefixtures("no_onnxruntime")
def test_branches_that_are_not_taken_need_not_fit() -> None:
    then = helper.make_graph(
        [node("Add", "x z", "a")], "t", [], [helper.make_tensor_value_info("a", TensorProto.FLOAT, None)]
    )
    other = helper.make_graph(
        [node("Relu", "x", "b")], "e", [], [helper.make_tensor_value_info("b", TensorProto.FLOAT, None)]
    )
    branches = node("If", "c", "y", then_branch=then, else_branch=other)
    proto = model([branches], {"x": [2, 3], "z": [4, 5]}, ["y"], {"c": np.array(False)})
    assert check_model(irc.compile(proto, "none"), proto).error == 0


@pytest.mark.parametrize("other", [model([node("Relu", "x", "z")], {"x": [2, 3]}, ["z"]), parse_graph(OTHER)])
def test_the_source_of_another_model_is_refused(other: onnx.ModelProto | Graph) -> None:
    with pytest.raises(Error, match=r"IRC411: .*no value 'y': give what the model was compiled from"):
        check_model(irc.compile(chain()), other)


def test_another_shape_or_type_is_said_so() -> None:
    transposed = model([node("Transpose", "x", "y")], {"x": [2, 3]}, ["y"])
    same = model([node("Identity", "x", "y")], {"x": [2, 3]}, ["y"])
    with pytest.raises(Error, match=r"is float32\[3, 2\] instead of float32\[2, 3\]"):
        check_model(irc.compile(transposed), same)


def test_random_models_cannot_be_checked_whatever_runs_the_operator() -> None:
    module = parse_module("""
graph(%x : Float(3)):
  %y : Float(3) = prim::FusionGroup_0(%x)
  return (%y)
with prim::FusionGroup_0 = graph(%a : Float(3)):
  %r : Float(3) = onnx::RandomNormalLike(%a)
  return (%r)
""")
    with pytest.raises(Error, match=r"IRC332: %r: .*onnx::RandomNormalLike"):
        check_model(irc.compile(module, "none"), module)


def test_random_models_cannot_be_checked() -> None:
    proto = model([node("RandomNormalLike", "x", "r"), node("Add", "x r", "y")], {"x": [3]}, ["y"])
    with pytest.raises(Error, match=r"IRC332: %r: .*onnx::RandomNormalLike"):
        check_model(irc.compile(proto), proto)


def test_given_inputs_are_used() -> None:
    proto = model([node("Gather", "x i", "y")], {"x": [3]}, ["y"])
    proto.graph.input.append(helper.make_tensor_value_info("i", TensorProto.INT64, [20]))
    compiled = irc.compile(proto)
    with pytest.raises(Error, match="IRC4"):
        check_model(compiled, proto, given={"i": np.full(20, 3)})
    result = check_model(compiled, proto, given={"i": np.zeros(20, np.int64)})
    assert result.oracle == "ONNX Runtime"


def test_external_data(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save_model(small_model(), str(path), save_as_external_data=True, size_threshold=0, location="w.bin")
    assert check_model(irc.compile(path), path).oracle == "ONNX Runtime"
    assert check_model(irc.compile(str(path)), str(path)).oracle == "ONNX Runtime"


@pytest.mark.usefixtures("no_onnxruntime")
def test_external_data_for_the_reference(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    onnx.save_model(small_model(), str(path), save_as_external_data=True, size_threshold=0, location="w.bin")
    assert check_model(irc.compile(path), path).oracle == "onnx.reference"


def test_results_read_well() -> None:
    assert str(CheckResult("X", 1.5e-7, ("n=2", "n=1"), {"n": 2}, {})) == (
        "agrees with X in 2 runs (n=2; n=1): max error 1.5e-07 relative to max|ref|"
    )
    assert str(CheckResult("X", 0.0, ('"past + new"=4',), {"past + new": 4}, {"Y": "too old"}, ("a note",))) == (
        'agrees with X in one run ("past + new"=4): max error 0.0e+00 relative to max|ref|; not with Y: too old; a note'
    )


# -- inputs that are made up -----------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("past + new", 7),
        (" past+new", 7),
        ("2*past", 10),
        ("past / 2", 2),
        ("past // 2 - 1", 1),
        ("20 - past // 2 * 3 - new", 12),
        ("past*new*0", 0),
        ("past", 5),
        ("other", 1),
        ("past + other", 1),
        ("past +", 1),
        ("-past", 1),
        ("(past + new)", 1),
        ("past ** 2", 1),
        ("past / 0", 1),
        ("new - past", 1),
        ("*".join(["9" * 19] * 9), 1),
        ("9" * 5000 + " * 1", 1),
        ("__import__('os')", 1),
    ],
)
def test_dimensions_that_are_named_after_others_are_what_these_come_to(name: str, size: int) -> None:
    arguments = [
        Argument("x", TensorType(DType.FLOAT, ("past", "new"))),
        Argument("y", TensorType(DType.FLOAT, (name,))),
    ]
    assert assumed_sizes(arguments, {"past": 5, "new": 2})[name] == size
    assert assumed_sizes(arguments, {"past": 5, "new": 2, name: 3})[name] == 3
    if size < MAX_ELEMENTS:
        assert seeded_inputs(arguments, 0, {"past": 5, "new": 2})["y"].shape == (size,)


def test_errors_of_runs_on_inputs_that_are_made_up_say_what_was_assumed() -> None:
    nodes = [node("Shape", "x", "n"), node("Gather", "y n", "z")]  # y must have more elements than x
    proto = model(nodes, {"x": ["n"], "y": ["m"]}, ["z"])
    compiled = irc.compile(proto)
    with pytest.raises(
        Error, match=r"IRC423: .*Gather.*; assumed m=2 \(--dim changes that\): no other sizes.*--input$"
    ):
        check_model(compiled, proto, given={"x": np.zeros(2**25, np.float32)})
    assert check_model(compiled, proto, sizes={"m": 2}).sizes == {"n": 1, "m": 2}
    fixed = irc.compile(model(nodes, {"x": [1], "y": [1]}, ["z"]))
    with pytest.raises(Error, match=r"IRC423: (?!.*assumed)"):
        check_model(fixed, fixed.module)


def test_inputs_that_are_too_large_are_refused() -> None:
    compiled = irc.compile(model([node("Relu", "x", "y")], {"x": ["n", "m"]}, ["y"]))
    with pytest.raises(Error, match=r"IRC102.*elements"):
        seeded_inputs(compiled.inputs, 0, {"n": MAX_ELEMENTS, "m": 2})
    assert assumed_sizes(compiled.inputs, {"n": 3}) == {"n": 3, "m": 1}


def test_numbers_that_are_no_tensors_are_made_up() -> None:
    compiled = irc.compile(parse_graph("graph(%n : int, %f : float, %b : bool):\n  return (%n, %f, %b)\n"))
    made = [seeded_inputs(compiled.inputs, seed) for seed in range(20)]
    assert {type(value) for feeds in made for value in feeds.values()} == {int, float, bool}
    assert {feeds["b"] for feeds in made} == {True, False} and len({feeds["f"] for feeds in made}) == 20
    assert len({compiled.run(feeds)["n"] for feeds in made}) > 3


@pytest.mark.parametrize(
    ("what", "shown"),
    [
        ("str", "str"),
        ("String(2, n)", "String(2, 3)"),
        ("complex", "complex"),
        ("ComplexFloat(2)", "ComplexFloat(2)"),
        ("int[]", "[int, int]"),
        ("Float(n, 2)[]", "[Float(3, 2), Float(3, 2)]"),
        ("String()[][]", "[[String()], [String()]]"),
        ("Float(*)[][]?", "[[Float(1)], [Float(1)]]"),
        ("(Long(n), float[], Bool()?)", "(Long(3), [float], Bool())"),
    ],
)
def test_whatever_holds_numbers_and_strings_is_made_up(what: str, shown: str) -> None:
    compiled = irc.compile(parse_graph(f"graph(%x : {what}):\n  return (%x)\n"))
    made = [seeded_inputs(compiled.inputs, seed, {"n": 3}) for seed in range(20)]
    assert {_form(feeds["x"]) for feeds in made} == {shown}
    assert len({repr(feeds["x"]) for feeds in made}) > 5
    assert _form(compiled.run(made[0])["x"]) == shown


def _form(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_form, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(_form, value))})"
    return str(TensorType(DType.from_numpy(value.dtype), value.shape)) if is_array(value) else type(value).__name__


@pytest.mark.parametrize("what", ["Tensor", "Tensor[]", "Dict(str, Float(2))", "(int, Tensor)", "Device"])
def test_what_cannot_be_made_up_is_refused(what: str) -> None:
    arguments = [Argument("x", parse_graph(f"graph(%x : {what}):\n  return (%x)\n").inputs[0].type)]
    assert not can_be_made_up(arguments[0].type)
    with pytest.raises(Error, match=r"IRC102: input 'x': only numbers, strings, tensors of them.*: not "):
        seeded_inputs(arguments, 0)


def test_powers_of_two_that_are_made_up_are_numbers() -> None:
    made = seeded_inputs([Argument("x", TensorType(DType.FLOAT8E8M0, (100,)))], 0)["x"]
    assert not np.isnan(made.astype(np.float32)).any()


def test_inputs_of_more_dimensions_than_numpy_has_are_refused() -> None:
    compiled = irc.compile(model([node("Relu", "x", "y")], {"x": [1] * 65}, ["y"]))
    with pytest.raises(Error, match=r"IRC102: input 'x': .*65 dimensions; at most 64"):
        seeded_inputs(compiled.inputs, 0)
