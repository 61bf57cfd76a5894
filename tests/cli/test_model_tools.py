"""``irc inspect``, ``irc extract``, ``irc diff``."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc as package
from tests.cli.helpers import GRAPH, Command, model, node, small_model
from tests.cli.refusals import commands, contents, refusals

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


def chain() -> onnx.ModelProto:
    """Gemm, a scaled copy (by a function), an If that reads both, a large weight; names, metadata, declared types."""
    weight = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    branch = helper.make_graph([node("Add", "g s", "t")], "then", [], [helper.make_tensor_value_info("t", 1, None)])
    other = helper.make_graph([node("Sub", "g s", "e")], "else", [], [helper.make_tensor_value_info("e", 1, None)])
    nodes = [
        node("MatMul", "x w", "g", name="product"),
        node("Scaled", "g", "s", name="scaled", domain="own", by=2.0),
        node("If", "c", "i", name="choice", then_branch=branch, else_branch=other),
        node("Relu", "i", "r", name="last"),
        node("Neg", "x", "unused"),
        node("Add", "r b", "y"),
    ]
    by = helper.make_node("Constant", [], ["k"])
    by.attribute.add(name="value_float", ref_attr_name="by", type=onnx.AttributeProto.FLOAT)
    opsets = [helper.make_opsetid("", 17)]
    scaled = helper.make_function("own", "Scaled", ["a"], ["o"], [by, node("Mul", "a k", "o")], opsets, ["by"])
    own, weights = [helper.make_opsetid("own", 1)], {"w": weight, "b": weight[0]}
    made = model(nodes, {"x": ["n", 64]}, ["y", "unused"], weights, domains=own)
    made.graph.initializer.append(numpy_helper.from_array(np.array(True), "c"))
    made.graph.value_info.append(helper.make_tensor_value_info("g", TensorProto.FLOAT, ["n", 64], "said of g"))
    made.functions.append(scaled)
    made.graph.node[0].metadata_props.add(key="layer", value="encoder.0")
    made.metadata_props.add(key="licence", value="MIT")
    return made


# -- inspect ---------------------------------------------------------------------


def test_what_a_model_is(irc: Command) -> None:
    irc.write("m.onnx", chain())
    text = irc("inspect", "m.onnx", "--dim", "n=3")
    assert text.status == 0 and text.err == ""
    assert "inputs         %x : Float(n, 64)\n" in text.out and "open sizes     n: x[0], " in text.out
    assert f"a run          {3 * 64 * 64:,} MACs" in text.out and "FLOPs for n=3" in text.out
    found = json.loads(irc("inspect", "m.onnx", "--json").out)
    assert found["costs"]["macs"] == 64 * 64 and found["costs"]["sizes"] == {"n": 1}
    assert found["costs"]["parameters"] == 64 * 64 + 64 + 2 and found["functions"] == {"own.Scaled": 1}
    assert found["opsets"] == {"ai.onnx": 17, "own": 1} and found["bytes"] == Path("m.onnx").stat().st_size
    assert {kind: cost["nodes"] for kind, cost in found["costs"]["operators"].items()}["prim::If"] == 1


def test_what_irc_cannot_run(irc: Command) -> None:
    nodes = [node("Odd", "x", "p", domain="acme"), node("Det", "q", "y"), node("Unsqueeze", "x a", "q")]
    made = model(nodes, {"x": [2, 2]}, ["y", "p"], {"a": np.array([0])}, domains=[helper.make_opsetid("acme", 3)])
    irc.write("m.onnx", made)
    irc.write("x.ir", "graph(%x : Tensor):\n  %y : Tensor = acme::odd(%x)\n  return (%y)\n")
    assert package.inspect("m.onnx").unknown == {"Odd (domain acme, opset 3)": 1}
    assert "cannot run  acme::odd: 1 node" in irc("inspect", "x.ir").out


def test_what_is_given_in_python(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    compiled = package.compile("m.onnx")
    compiled.save("m.irc")
    found = [package.inspect(each) for each in ("m.onnx", small_model(), compiled, compiled.graph, "m.irc")]
    assert {each.costs.macs for each in found} == {24}
    assert {tuple(each.dynamic) for each in found} == {("batch",)}


# -- extract ---------------------------------------------------------------------


@pytest.mark.parametrize("inside", [True, False])
def test_a_part_has_the_nodes_of_the_file(inside: bool, irc: Command) -> None:
    whole = chain()
    irc.write("m.onnx", whole)
    beside = [] if inside else ["--external-data", "1K"]
    told = irc("extract", "m.onnx", "--from", "g", "--to", "i,g", "-o", "part.onnx", *beside)
    assert told.out == f"part.onnx: 2 nodes of 6, {Path('part.onnx').stat().st_size:,} bytes\n" + (
        "  input   %g : Float(n, 64)\n  output  %i : Float(n, 64)\n  output  %g : Float(n, 64)\n"
    )
    part = onnx.load("part.onnx")
    onnx.checker.check_model(part, full_check=True)
    assert list(part.graph.node) == list(whole.graph.node)[1:3] and list(part.functions) == list(whole.functions)
    assert part.graph.input[0] == whole.graph.value_info[0], "doc string and all"
    assert [t.name for t in part.graph.initializer] == ["c"] and list(part.metadata_props) == list(whole.metadata_props)
    assert list(part.opset_import) == list(whole.opset_import) and part.ir_version == whole.ir_version
    assert irc("extract", "m.onnx", "--to", "g", "-o", "first.onnx", *beside).status == 0
    assert Path("first.onnx.data").exists() is not inside
    first = onnx.load("first.onnx")
    assert list(first.graph.node) == list(whole.graph.node)[:1]
    assert [value.name for value in first.graph.input] == ["x"]
    (weight,) = first.graph.initializer
    assert (
        weight.name == "w"
        and (numpy_helper.to_array(weight) == numpy_helper.to_array(whole.graph.initializer[0])).all()
    )
    x = np.ones((2, 64), np.float32)
    g = package.compile("first.onnx").run({"x": x})["g"]
    assert irc("extract", "m.onnx", "--from", "i", "--to", "y", "-o", "last.irc").status == 0
    i = package.compile("part.onnx").run({"g": g})["i"]
    np.testing.assert_array_equal(
        package.load("last.irc").run({"i": i})["y"], package.compile(whole, "none").run({"x": x})["y"]
    )


def test_parts_of_models_of_other_kinds(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "-o", "m.irc").status == 0
    for name, target in (("m.irc", "p.onnx"), ("m.onnx", "p.ir"), ("m.irc", "p.irc")):
        told = irc("extract", name, "--to", "y", "-o", target, "--json")
        found = json.loads(told.out)
        assert (
            found["inputs"] == [{"name": "x", "type": "Float(batch, 3)", "optional": False}] and found["path"] == target
        ), told
    assert package.extract("m.onnx", ["q"], ["y"]).main.inputs[0].name == "q"


def test_old_models_keep_their_weights_among_the_inputs(irc: Command) -> None:
    assert irc("extract", LIGHT / "light_squeezenet.onnx", "--from", "r2", "--to", "r17", "-o", "p.onnx").status == 0
    part = onnx.load("p.onnx")
    onnx.checker.check_model(part, full_check=True)
    weights = {tensor.name for tensor in part.graph.initializer}
    assert {value.name for value in part.graph.input} == {"r2", *weights} and part.ir_version == 3


# -- diff ------------------------------------------------------------------------


def test_two_models(irc: Command) -> None:
    irc.write("a.onnx", small_model())
    other = small_model()
    other.graph.node[1].op_type = "Tanh"
    irc.write("b.onnx", other)
    same = irc("diff", "a.onnx", "a.onnx")
    assert (same.status, same.out, same.err) == (0, "", "")
    told = irc("diff", "a.onnx", "b.onnx")
    assert told.status == 1 and told.err == ""
    assert told.out == (
        "--- a.onnx\n+++ b.onnx\nnodes: 0 removed, 0 added, 1 changed, 2 the same; 0 weights changed\n"
        "~ %q = onnx::Relu -> onnx::Tanh: operator onnx::Relu -> onnx::Tanh\n"
    )
    found = json.loads(irc("diff", "a.onnx", "b.onnx", "--json").out)
    assert (found["same"], found["changed"][0]["after"]) == (2, "q")
    assert json.loads(irc("diff", "b.onnx", "b.onnx", "--json").out)["changed"] == []


# -- bad input -------------------------------------------------------------------


CASES = commands(r"""
a start that does not lead to the end | extract m.onnx --from x,q --to p -o p.onnx | IRC360: .*does not lead to %p
a part in a folder that is not there | extract m.onnx --to q -o nowhere/p.onnx | no folder 'nowhere'
a part in place of the model | extract m.onnx --to q -o m.onnx | IRC503: m.onnx: this is the model that is read
a part of another kind | extract m.onnx --to q -o m.npz | must end in .onnx or .irc
a second model that is not there | diff m.onnx nowhere.onnx | IRC120: nowhere.onnx
a size that is not open | inspect m.onnx --dim bach=2 | IRC311: .*did you mean 'batch'
""")
TORCH = "graph(%x : Float(2)):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n"
CASES |= contents("m.ir", "extract m.ir --to y -o p.onnx", {"a part that ONNX cannot express": (TORCH, "IRC350")})
CASES |= contents(
    "m.onnx",
    "extract m.onnx --to unusd -o p.onnx",
    {"an end that is not there": (lambda irc: chain().SerializeToString(), "IRC360: .*did you mean")},
)
test_bad_input_is_refused = refusals(CASES)


@pytest.mark.parametrize(
    "argv",
    [
        "extract m.ir -o p.onnx",
        "extract m.ir --to y",
        "extract m.ir --to y -o p.ir --external-data 1K",
        "inspect",
        "diff m.ir",
        "inspect m.ir --dim n",
    ],
)
def test_wrong_usage(argv: str, irc: Command) -> None:
    irc.write("m.ir", GRAPH)
    assert irc(*argv.split()).status == 2
