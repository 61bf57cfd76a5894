"""Models that are refused: files that are not models, and models that are wrong."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.helpers import GRAPH, Command, model, node, small_model
from tests.cli.refusals import Cases, assert_refused, case_of, refusals

CASES: Cases = {}
case = case_of(CASES)


# -- files that are not models ----------------------------------------------------


@case("nope.onnx: there is no such file")
def missing_file(irc: Command):
    return ["compile", "nope.onnx", "-o", "out.irc"]


@case("folder: this is a folder")
def a_folder(irc: Command):
    (irc.folder / "folder").mkdir()
    return ["compile", "folder", "-o", "out.irc"]


@case("empty.onnx: .*(empty|not an ONNX model)")
def an_empty_file(irc: Command):
    return ["compile", irc.write("empty.onnx", b""), "-o", "out.irc"]


@case("not an ONNX model")
def not_a_protobuf(irc: Command):
    return ["compile", irc.write("x.onnx", b"\xff" * 100), "-o", "out.irc"]


@case("x.md: .*not an ONNX model")
def some_text(irc: Command):
    return ["compile", irc.write("x.md", "# irc\n\nirc compiles ML graphs.\n"), "-o", "out.irc"]


@case("truncated")
def a_truncated_model(irc: Command):
    return ["compile", irc.write("x.onnx", small_model().SerializeToString()[:-20]), "-o", "out.irc"]


@case("git lfs pull")
def a_git_lfs_pointer(irc: Command):
    return ["compile", irc.write("x.onnx", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n")]


@case("no such file")
def a_file_name_that_is_not_utf8(irc: Command):
    return ["compile", os.fsdecode(b"\xff\xfe.onnx")]


# -- models that are wrong -------------------------------------------------------


@case(r"Frobnicate.*acme.*Wobble|Wobble.*Frobnicate")
def unknown_operators(irc: Command):
    nodes = [node("Frobnicate", "x", "a", domain="acme"), node("Wobble", "a", "y")]
    wrong = model(nodes, {"x": [1]}, ["y"], domains=[helper.make_opsetid("acme", 1)])
    return ["compile", irc.write("x.onnx", wrong), "-o", "out.irc", "--refuse-unknown"]


@case("BatchNormalization.*opset 5.*version_converter")
def opset_5_with_an_operator_that_has_changed_since(irc: Command):
    five = model([node("BatchNormalization", "x s b m v", "y")], {n: [1] for n in "xsbmv"}, ["y"], opset=5)
    return ["compile", irc.write("five.onnx", five), "-o", "out.irc", "--refuse-unknown"]


@case("opset 99")
def an_opset_of_the_future(irc: Command):
    return ["compile", irc.write("x.onnx", model([node("Relu", "x", "y")], {"x": [1]}, ["y"], opset=99))]


@case("IR version 99")
def an_ir_version_of_the_future(irc: Command):
    return ["compile", irc.write("x.onnx", model([node("Relu", "x", "y")], {"x": [1]}, ["y"], ir_version=99))]


@case("cycle")
def a_cycle(irc: Command):
    nodes = [node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")]
    return ["compile", irc.write("x.onnx", model(nodes, {"x": [1]}, ["y"])), "-o", "out.irc"]


@case("'a' is defined twice")
def duplicate_names(irc: Command):
    nodes = [node("Relu", "x", "a"), node("Neg", "x", "a"), node("Relu", "a", "y")]
    return ["compile", irc.write("x.onnx", model(nodes, {"x": [1]}, ["y"])), "-o", "out.irc"]


@case("no outputs")
def a_model_without_outputs(irc: Command):
    return ["compile", irc.write("x.onnx", model([node("Relu", "x", "y")], {"x": [1]}, [])), "-o", "out.irc"]


@case("'nowhere' is used but never defined")
def an_undefined_value(irc: Command):
    return ["compile", irc.write("x.onnx", model([node("Relu", "nowhere", "y")], {"x": [1]}, ["y"]))]


@case("LayerNormalization.*'axis'.*9223372036854775807")
def an_attribute_out_of_range(irc: Command):
    nodes = [node("LayerNormalization", "x s", "y", axis=2**63 - 1)]
    return ["compile", irc.write("x.onnx", model(nodes, {"x": [2, 3], "s": [3]}, ["y"])), "-o", "out.irc"]


@case("2147483647 nodes.*the limit is 1000000")
def thirty_functions_that_double_each_other(irc: Command):
    opset = [helper.make_opsetid("", 17), helper.make_opsetid("f", 1)]

    def body(i: int) -> list[onnx.NodeProto]:
        if i == 0:
            return [node("Relu", "x", "y")]
        return [node(f"F{i - 1}", "x", "a", domain="f"), node(f"F{i - 1}", "a", "y", domain="f")]

    functions = [helper.make_function("f", f"F{i}", ["x"], ["y"], body(i), opset) for i in range(30)]
    doubling = model(
        [node("F29", "x", "y", domain="f")],
        {"x": [1]},
        ["y"],
        domains=[helper.make_opsetid("f", 1)],
        functions=functions,
    )
    return ["compile", irc.write("x.onnx", doubling), "-o", "out.irc"]


def with_external_weight(location: str) -> onnx.ModelProto:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=location)
    made = model([node("Add", "x w", "y")], {"x": [4]}, ["y"])
    made.graph.initializer.append(weight)
    return made


@case("must lie in the model's folder")
def external_data_outside_the_folder(irc: Command):
    irc.write("secret.bin", bytes(16))
    (irc.folder / "models").mkdir()
    return ["compile", irc.write("models/x.onnx", with_external_weight("../secret.bin")), "-o", "out.irc"]


@case("must lie in the model's folder.*link")
def external_data_behind_a_link(irc: Command):
    irc.write("secret.bin", bytes(16))
    (irc.folder / "models").mkdir()
    (irc.folder / "models" / "w.bin").symlink_to(irc.folder / "secret.bin")
    return ["compile", irc.write("models/x.onnx", with_external_weight("w.bin")), "-o", "out.irc"]


@case("w.bin")
def external_data_that_is_not_there(irc: Command):
    return ["compile", irc.write("x.onnx", with_external_weight("w.bin")), "-o", "out.irc"]


@case("w.*(bytes|short)")
def external_data_that_is_too_short(irc: Command):
    irc.write("w.bin", bytes(15))
    return ["compile", irc.write("x.onnx", with_external_weight("w.bin")), "-o", "out.irc"]


@case("'w': its shape .* is too large")
def a_weight_that_claims_a_huge_size(irc: Command):
    made = model([node("Add", "x w", "y")], {"x": [4]}, ["y"])
    made.graph.initializer.append(
        TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**31, 2**31], raw_data=bytes(16))
    )
    return ["compile", irc.write("x.onnx", made), "-o", "out.irc"]


@case("out of memory|too large|would take more than 1024 GiB")
def a_result_of_a_huge_size(irc: Command):
    made = model([node("ConstantOfShape", "s", "y")], {}, ["y"], {"s": np.array([2**40, 2**20])})
    return ["run", irc.write("x.onnx", made), "--seed", "0", "-o", "out.npz"]


# -- IR text ---------------------------------------------------------------------


@case(r"x.ir:2:\d+: .*\^")
def ir_text_with_a_syntax_error(irc: Command):
    return ["opt", irc.write("x.ir", GRAPH.replace("Relu(%x)", "Relu(%x")), "-o", "out.ir"]


@case("onnx::Frob")
def ir_text_with_an_unknown_operator(irc: Command):
    return ["opt", irc.write("x.ir", GRAPH.replace("Relu", "Frob")), "-o", "out.ir"]


@case("Frob: domain acme")
def an_operator_that_cannot_run(irc: Command):
    return ["compile", irc.write("x.ir", GRAPH.replace("onnx::Relu", "acme::Frob")), "-o", "out.irc"]


@case(r"x.ir:2:\d+: .*%z")
def ir_text_with_an_undefined_value(irc: Command):
    return ["print", irc.write("x.ir", GRAPH.replace("(%x)", "(%z)"))]


@case("UTF-8")
def ir_text_that_is_not_text(irc: Command):
    return ["print", irc.write("x.ir", b"graph(\xff")]


@case("weight 'w': IR text does not hold the contents")
def ir_text_without_its_weights(irc: Command):
    text = 'graph(%x : Float(2)):\n  %w : Float(2) = prim::Constant[value=@"w"]()\n'
    text += "  %y : Float(2) = onnx::Add(%x, %w)\n  return (%y)\n"
    return ["run", irc.write("x.ir", text), "--seed", "0"]


@case("empty.ir")
def empty_ir_text(irc: Command):
    return ["print", irc.write("empty.ir", "")]


# -- .irc files ------------------------------------------------------------------


def compiled(irc: Command) -> bytes:
    """A good .irc file's bytes; leaves only ``m.onnx`` behind."""
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "-o", "m.irc").status == 0
    path = irc.folder / "m.irc"
    content = path.read_bytes()
    path.unlink()
    return content


@case("x.irc: .*truncated")
def a_truncated_irc_file(irc: Command):
    return ["run", irc.write("x.irc", compiled(irc)[:-10]), "--seed", "0"]


@case("x.irc: .*no .irc file")
def a_foreign_irc_file(irc: Command):
    return ["run", irc.write("x.irc", small_model()), "--seed", "0"]


@case("x.irc: .*no .irc file")
def an_empty_irc_file(irc: Command):
    return ["run", irc.write("x.irc", b""), "--seed", "0"]


@case("x.irc: .*(folder|directory)")
def a_folder_as_irc_file(irc: Command):
    (irc.folder / "x.irc").mkdir()
    return ["run", "x.irc", "--seed", "0"]


@case("format version 9")
def an_irc_file_of_the_future(irc: Command):
    content = compiled(irc)
    return ["run", irc.write("x.irc", content[:8] + b"\x09\0\0\0" + content[12:]), "--seed", "0"]


@case("damaged")
def a_damaged_irc_file(irc: Command):
    content = bytearray(compiled(irc))
    content[100] ^= 1
    return ["run", irc.write("x.irc", bytes(content)), "--seed", "0"]


@case("compiled already")
def compiling_what_is_compiled(irc: Command):
    return ["compile", irc.write("x.irc", compiled(irc)), "-o", "y.irc"]


test_bad_models = refusals(CASES)


@pytest.mark.parametrize("cut", range(12))
def test_a_model_truncated_anywhere(cut: int, irc: Command) -> None:
    whole = small_model().SerializeToString()
    irc.write("x.onnx", whole[: len(whole) * cut // 12])
    assert_refused(irc, ["compile", "x.onnx", "-o", "x.irc"], "x.onnx")
