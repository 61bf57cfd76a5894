"""`irc.diff`: nothing for equal models, and for others exactly what differs."""

import random
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, helper, numpy_helper

import irc
from irc.ir import parse_module
from tests.cli.helpers import model, node, small_model
from tests.effort import Tune
from tests.graphs import ir

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
each_light = pytest.mark.parametrize("name", ["squeezenet", "shufflenet", "inception_v2", "resnet50"])


def light(name: str) -> ModelProto:
    return onnx.load(LIGHT / f"light_{name}.onnx")


def anonymous(model: ModelProto) -> ModelProto:
    """The model with other names of values inside, and its nodes in another topological order."""
    kept = {value.name for value in (*model.graph.input, *model.graph.output)}
    new: dict[str, str] = {}
    made = ModelProto()
    made.CopyFrom(model)
    for each in made.graph.node:
        each.name = ""
        for names in (each.input, each.output):
            names[:] = [name if name in kept or not name else new.setdefault(name, f"v{len(new)}") for name in names]
    for tensor in made.graph.initializer:
        tensor.name = tensor.name if tensor.name in kept else new.setdefault(tensor.name, f"v{len(new)}")
    nodes, known = list(made.graph.node), {name for each in made.graph.node for name in each.output}
    del made.graph.node[:], made.graph.value_info[:]
    while nodes:
        ready = [each for each in nodes if known.isdisjoint(each.input)]
        chosen = random.Random(len(nodes)).choice(ready)
        nodes.remove(chosen)
        known.difference_update(chosen.output)
        made.graph.node.append(chosen)
    return made


@each_light
def test_a_model_and_itself(name: str) -> None:
    for other in (light(name), anonymous(light(name))):
        found = irc.diff(light(name), other)
        assert not found and str(found) == "" and found.to_dict()["changed"] == []
        assert found.same == len(light(name).graph.node)


def optimised(by: str, model: ModelProto, folder: Path) -> Any:
    """What another program, or irc, makes of a model."""
    if by == "irc.irc":
        irc.compile(model).save(folder / "m.irc")
        return folder / "m.irc"
    if by == "irc":
        irc.export(irc.compile(model), folder / "m.onnx")
        return folder / "m.onnx"
    if find_spec(by) is None:
        pytest.skip(f"{by} is not installed")
    if by == "onnxslim":
        import onnxslim

        return onnxslim.slim(model)
    import onnxsim

    return onnxsim.simplify(model)[0]


@pytest.mark.covering(1)
@each_light
@pytest.mark.parametrize("by", ["irc", "irc.irc", "onnxslim", "onnxsim"])
def test_what_optimising_changes(name: str, by: str, tmp_path: Path) -> None:
    before, other = light(name), optimised(by, light(name), tmp_path)
    found = irc.diff(before, other)
    after = irc.inspect(other).costs.operators
    nodes = sum(cost.nodes for cost in after.values())
    assert len(before.graph.node) == len(found.removed) + len(found.changed) + found.same
    assert nodes == len(found.added) + len(found.changed) + found.same
    assert found.interface == [] and found.versions == {}
    if by != "irc.irc":  # which has operators of its own
        assert found.added == [], "they fold and remove"
    changed = sum(each.operator == "onnx::Conv" for each in found.changed)
    assert changed == after["onnx::Conv"].nodes, "their weights are constants now"
    merged = sum(each.op_type == "Conv" for each in before.graph.node) - changed
    assert sum(each.operator == "onnx::Conv" for each in found.removed) == merged, "equal weights, and equal inputs"


# -- single changes --------------------------------------------------------------


def network() -> ModelProto:
    """Three layers, the first two alike but for their weights, and two branches."""
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=(4, 4)).astype(np.float32) for name in ("w1", "w2", "w3")}
    nodes = [
        node("MatMul", "x w1", "p1", name="l1"),
        node("Relu", "p1", "r1"),
        node("MatMul", "r1 w2", "p2", name="l2"),
        node("Relu", "p2", "r2"),
        node("MatMul", "r2 w3", "p3", name="l3"),
        node("Softmax", "p3", "s", axis=-1),
        node("Add", "s r1", "y"),
    ]
    return model(nodes, {"x": ["n", 4]}, ["y"], weights)


def rewire(model: ModelProto) -> None:
    model.graph.node[6].input[1] = "r2"


def swap_operands(model: ModelProto) -> None:
    model.graph.node[6].input[:] = ["r1", "s"]


def insert(model: ModelProto) -> None:
    model.graph.node.insert(2, node("Dropout", "r1", "d"))
    model.graph.node[3].input[0] = "d"


def remove(model: ModelProto) -> None:
    del model.graph.node[3]
    model.graph.node[3].input[0] = "p2"


def replace(model: ModelProto) -> None:
    model.graph.node[3].op_type = "Sigmoid"


def change_attribute(model: ModelProto) -> None:
    model.graph.node[5].attribute[0].i = 0


def change_weight(model: ModelProto) -> None:
    array = numpy_helper.to_array(model.graph.initializer[1]).copy()
    array[2, 3] += 0.5
    model.graph.initializer[1].CopyFrom(numpy_helper.from_array(array, "w2"))


def rename_input(model: ModelProto) -> None:
    model.graph.input[0].name = model.graph.node[0].input[0] = "tokens"


def change_input(model: ModelProto) -> None:
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 7


def change_output(model: ModelProto) -> None:
    model.graph.output[0].name = model.graph.node[6].output[0] = "z"
    model.graph.output.append(helper.make_tensor_value_info("r1", 1, None))


def raise_opset(model: ModelProto) -> None:
    model.opset_import[0].version = 12


CHANGES: dict[Callable[[ModelProto], None], list[str]] = {
    rewire: ["~ %y = onnx::Add: input 1 %r1 -> %r2"],
    swap_operands: ["~ %y = onnx::Add: input 0 %s -> %r1; input 1 %r1 -> %s"],
    insert: ["+ %d = onnx::Dropout(%r1)", "~ %p2 = onnx::MatMul: input 0 %r1 -> %d (added)"],
    remove: ["- %r2 = onnx::Relu(%p2)", "~ %p3 = onnx::MatMul: input 0 %r2 (removed) -> %p2"],
    replace: ["~ %r2 = onnx::Relu -> onnx::Sigmoid: operator onnx::Relu -> onnx::Sigmoid"],
    change_attribute: ["~ %s = onnx::Softmax: axis -1 -> 0"],
    rename_input: ["~ input %x is called %tokens"],
    change_input: ["~ input %x : Float(n, 4) -> Float(7, 4)"],
    change_output: ["+ output %r1 : Float", "~ output %y is called %z"],
    raise_opset: [
        "operator set ai.onnx: 17 -> 12",
        "version of onnx::MatMul: 13 -> 9",
        "version of onnx::Softmax: 13 -> 11",
        "version of onnx::Add: 14 -> 7",
        "version of onnx::Relu: 14 -> 6",
    ],
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("rename", [False, True])
def test_one_change(change: Callable[[ModelProto], None], rename: bool) -> None:
    before, after = network(), network()
    change(after)
    found = irc.diff(before, anonymous(after) if rename else after)
    assert found
    if rename:
        assert len(str(found).splitlines()) == 3 + len(CHANGES[change]), str(found)
    else:
        assert sorted(str(found).splitlines()[3:]) == sorted(CHANGES[change])


def test_a_weight_that_differs() -> None:
    after = network()
    change_weight(after)
    found = irc.diff(network(), after)
    (weight,) = found.weights
    before = numpy_helper.to_array(network().graph.initializer[1])
    assert (weight.before, weight.after, weight.node, weight.input, weight.differing) == ("w2", "w2", "p2", 1, 1)
    assert weight.max_error == pytest.approx(0.5, rel=1e-6) and weight.mean_error == pytest.approx(0.5 / 16, rel=1e-6)
    assert weight.relative_error == pytest.approx(0.5 / np.abs(before).max(), rel=1e-6)
    assert str(found).splitlines()[2] == "nodes: 0 removed, 0 added, 0 changed, 7 the same; 1 weight changed"
    assert "Float(4, 4), 1 element differ" in str(found)


def test_weights_that_were_zero_or_are_no_numbers() -> None:
    def scaled(*factors: float) -> ModelProto:
        return model([node("Mul", "x w", "y")], {"x": [2]}, ["y"], {"w": np.array(factors, np.float32)})

    assert "max error 1, mean 0.5" in str(irc.diff(scaled(0, 0), scaled(0, 1)))
    assert "other contents" in str(irc.diff(scaled(1, np.nan), scaled(2, np.nan)))
    assert not irc.diff(scaled(1, np.nan), scaled(1, np.nan))
    assert irc.diff(scaled(1, 2), scaled(1, np.inf)).weights[0].max_error is None
    assert irc.diff(scaled(0.0, 1), scaled(-0.0, 1)), "bit for bit"


def test_weights_are_compared_piece_by_piece(tune: Tune) -> None:
    """And those whose elements are all equal without being spread out."""
    text = ir("""
        x: Float(1000, 1000, 1000, 1000) -> y
        w: Float(1000, 1000, 1000, 1000) = prim.Constant(value=splat(2.)); y: Float(1000, 1000, 1000, 1000) = Mul(x, w)
    """)
    (weight,) = irc.diff(parse_module(text), parse_module(text.replace("2.", "3."))).weights
    assert (weight.differing, weight.max_error, weight.mean_error, weight.relative_error) == (10**12, 1.0, 1.0, 0.5)
    tune("irc.tools.comparison._PIECE", 3)
    before, after = network(), network()
    change_weight(after)
    pieces = irc.diff(before, after).weights[0]
    assert pieces.max_error == pytest.approx(0.5, rel=1e-6) and pieces.differing == 1
    assert pieces.mean_error == pytest.approx(0.5 / 16, rel=1e-6)


def quantised(dtype: Any, per_channel: bool) -> ModelProto:
    """A product with weights of 8 bits: one scale, or one a channel."""
    scale = np.full(4, 0.5, np.float32) if per_channel else np.float32(0.5)
    zero = np.zeros(4, dtype) if per_channel else np.zeros((), dtype)
    weights = {"q": np.arange(16, dtype=dtype).reshape(4, 4), "scale": np.asarray(scale), "zero": zero}
    nodes = [node("DequantizeLinear", "q scale zero", "w", axis=1), node("MatMul", "x w", "y")]
    return model(nodes, {"x": [2, 4]}, ["y"], weights)


def test_two_quantised_variants() -> None:
    found = irc.diff(quantised(np.int8, False), quantised(np.uint8, True))
    assert (found.same, found.removed, found.added, found.changed) == (2, [], [], [])
    assert {weight.after: weight.types for weight in found.weights} == {
        "q": ["Char(4, 4)", "Byte(4, 4)"],
        "scale": ["Float()", "Float(4)"],
        "zero": ["Char()", "Byte(4)"],
    }
    assert not irc.diff(quantised(np.int8, True), quantised(np.int8, True))


def test_what_lies_in_blocks_and_functions() -> None:
    text = ir("""
        x: Float(2); c: Bool() -> z
        f: Function = prim.Constant(name="half"); y: Float(2) = prim.If(c)
        with block(): a: Float(2) = Relu(x); yield a
        with block(): b: Float(2) = prim.CallFunction(f, x); yield b
        z: Float(2) = Neg(y)

        half | v: Float(2) -> h
        h: Float(2) = Sqrt(v)
    """)
    same = text.replace("%a", "%other").replace("half", "part")
    assert not irc.diff(parse_module(text), parse_module(same))
    found = irc.diff(parse_module(text), parse_module(text.replace("onnx::Sqrt", "onnx::Exp")))
    assert [each.operator for each in found.changed] == ["onnx::Sqrt -> onnx::Exp"]
    found = irc.diff(parse_module(text), parse_module(text.replace("-> (%a)", "-> (%x)")))
    assert [each.changes for each in found.changed] == [["what a block returns %a -> %x"]]


def test_any_change_is_seen() -> None:
    """Of one node in each place of a model with many that are alike."""
    before = light("squeezenet")
    rng = random.Random(0)
    for at in rng.sample(range(len(before.graph.node)), 30):
        after = light("squeezenet")
        changed = after.graph.node[at]
        earlier = [name for each in after.graph.node[:at] for name in each.output if name not in changed.input]
        if changed.op_type in ("Conv", "Relu", "Concat") and earlier and rng.random() < 0.5:
            changed.input[0] = rng.choice(earlier)
        elif changed.op_type == "ConstantOfShape":
            changed.attribute[0].t.CopyFrom(numpy_helper.from_array(np.array([2], np.float32)))
        elif changed.op_type == "Conv":
            changed.attribute.append(helper.make_attribute("dilations", [2, 2]))
        else:
            changed.op_type = "Identity"
            del changed.attribute[:], changed.input[1:], changed.output[1:]
        try:
            found = irc.diff(before, after)
        except irc.Error:  # no model any more
            continue
        assert found, at


def test_default_attributes_make_no_difference() -> None:
    with_defaults = model([node("Gemm", "x x", "y", alpha=1.0, transB=0)], {"x": [3, 3]}, ["y"])
    without = model([node("Gemm", "x x", "y")], {"x": [3, 3]}, ["y"])
    assert not irc.diff(with_defaults, without)
    assert irc.diff(with_defaults, model([node("Gemm", "x x", "y", transB=1)], {"x": [3, 3]}, ["y"]))


def test_a_compiled_model() -> None:
    assert not irc.diff(irc.compile(small_model(), "none"), small_model())
    assert not irc.diff(irc.compile(small_model(), "fuse"), small_model()), "groups are no operators"
