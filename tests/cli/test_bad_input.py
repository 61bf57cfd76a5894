"""Bad input: exit status 1, one message that says what, where and what to do, no traceback, nothing written."""

from __future__ import annotations

import os
import pickle
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.helpers import Command, model, node, small_model

Case = Callable[[Command], list[str]]

CASES: dict[str, tuple[str, Case]] = {}
"""Name -> what the message must say, and what makes the files and gives the arguments."""


def case(says: str) -> Callable[[Case], Case]:
    def register(make: Case) -> Case:
        CASES[make.__name__] = (says, make)
        return make

    return register


def listing(command: Command) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(command.folder)): path.read_bytes() if path.is_file() else None
        for path in command.folder.rglob("*")
    }


def assert_refused(command: Command, argv: list[str], says: str) -> None:
    before = listing(command)
    result = command(*argv)
    assert result.status == 1, result
    assert result.out == ""
    assert result.err.startswith("irc: IRC"), result.err
    assert result.err.count("IRC") == 1, f"one message, not several:\n{result.err}"
    assert "Traceback" not in result.err
    assert re.search(says, result.err, re.DOTALL), f"{result.err!r} does not say {says!r}"
    assert listing(command) == before


# -- files that are no models ----------------------------------------------------


@case("nope.onnx: there is no such file")
def missing_file(irc: Command):
    return ["compile", "nope.onnx", "-o", "out.irc"]


@case("folder: this is a folder")
def a_folder(irc: Command):
    (irc.folder / "folder").mkdir()
    return ["compile", "folder", "-o", "out.irc"]


@case("empty.onnx: .*(empty|no ONNX model)")
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
    return ["compile", irc.write("x.onnx", wrong), "-o", "out.irc"]


@case("BatchNormalization.*opset 5.*version_converter")
def opset_5_with_an_operator_that_has_changed_since(irc: Command):
    five = model([node("BatchNormalization", "x s b m v", "y")], {n: [1] for n in "xsbmv"}, ["y"], opset=5)
    return ["compile", irc.write("five.onnx", five), "-o", "out.irc"]


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


@case("out of memory|too large")
def a_result_of_a_huge_size(irc: Command):
    made = model([node("ConstantOfShape", "s", "y")], {}, ["y"], {"s": np.array([2**40, 2**20])})
    return ["run", irc.write("x.onnx", made), "--seed", "0", "-o", "out.npz"]


# -- IR text ---------------------------------------------------------------------

GRAPH = """graph(%x : Float(2)):
  %y : Float(2) = onnx::Relu(%x)
  return (%y)
"""


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


# -- passes ----------------------------------------------------------------------


@case("did you mean 'cse'")
def an_unknown_pass(irc: Command):
    return ["compile", irc.write("m.onnx", small_model()), "-p", "csee,dce", "-o", "out.irc"]


@case(r"expected.*\^")
def a_pipeline_with_a_syntax_error(irc: Command):
    return ["opt", irc.write("x.ir", GRAPH), "-p", "(cse,dce", "-o", "out.ir"]


@case("no option 'max-sise'.*did you mean 'max-size'")
def an_unknown_option_of_a_pass(irc: Command):
    return ["compile", irc.write("m.onnx", small_model()), "-p", "fuse{max-sise=3}"]


@case("did you mean 'timing'")
def an_unknown_instrument(irc: Command):
    return ["opt", irc.write("x.ir", GRAPH), "--instrument", "timings"]


# -- outputs ---------------------------------------------------------------------


@case("no folder 'nowhere'")
def an_output_in_a_folder_that_does_not_exist(irc: Command):
    return ["compile", irc.write("m.onnx", small_model()), "-o", "nowhere/out.irc"]


@case("m.irc: .*folder")
def an_output_that_is_a_folder(irc: Command):
    (irc.folder / "m.irc").mkdir()
    return ["compile", irc.write("m.onnx", small_model()), "-o", "m.irc"]


@case("must end in .irc")
def an_output_with_another_suffix(irc: Command):
    return ["compile", irc.write("m.onnx", small_model()), "-o", "m.onnx"]


@case("must end in .npz")
def outputs_of_a_run_with_another_suffix(irc: Command):
    return ["run", irc.write("m.onnx", small_model()), "--seed", "0", "-o", "m.onnx"]


@case("/dev/null: .*must end in .npz")
def outputs_of_a_run_to_a_device(irc: Command):
    return ["run", irc.write("m.onnx", small_model()), "--seed", "0", "-o", "/dev/null"]


@case("must end in .irc")
def an_output_without_a_name(irc: Command):
    return ["compile", irc.write("m.onnx", small_model()), "-o", ""]


@case("not a regular file")
def a_model_that_is_no_file(irc: Command):
    return ["compile", "/dev/null"]


@case("the model that is read")
def an_output_that_is_the_input(irc: Command):
    irc.write("m.onnx", small_model())
    (irc.folder / "m.irc").symlink_to("m.onnx")
    return ["compile", "m.onnx", "-o", "m.irc"]


@case("may not be written|cannot write")
def an_output_in_a_folder_that_is_read_only(irc: Command):
    folder = irc.folder / "read-only"
    folder.mkdir(mode=0o555)
    if os.access(folder, os.W_OK):  # we are root: then not even root may write here
        folder.rmdir()
        if not os.path.isdir("/proc/self"):
            pytest.skip("no folder is read-only for root")
        return ["compile", irc.write("m.onnx", small_model()), "-o", "/proc/self/m.irc"]
    return ["compile", irc.write("m.onnx", small_model()), "-o", "read-only/m.irc"]


# -- inputs of a run -------------------------------------------------------------


def run(irc: Command, name: str, content: bytes | np.ndarray[Any, Any]) -> list[str]:
    irc.write("m.onnx", small_model())
    return ["run", "m.onnx", "--input", f"{name}={irc.write('x.npy', content)}", "-o", "out.npz"]


@case(r"no value for 'x' \(Float\(batch, 3\)\): give --input")
def a_missing_input(irc: Command):
    return ["run", irc.write("m.onnx", small_model()), "-o", "out.npz"]


@case("input 'x': .*float32.*float64")
def a_wrong_element_type(irc: Command):
    return run(irc, "x", np.zeros((1, 3)))


@case(r"input 'x': .*3.*\[1, 4\]")
def a_wrong_shape(irc: Command):
    return run(irc, "x", np.zeros((1, 4), np.float32))


@case(r"input 'x': .*dimensions.*\[3\]")
def a_wrong_rank(irc: Command):
    return run(irc, "x", np.zeros(3, np.float32))


@case("no input 'z'; it has 'x'")
def an_unknown_input(irc: Command):
    return [*run(irc, "z", np.zeros((1, 3), np.float32)), "--seed", "0"]


@case("given twice")
def an_input_given_twice(irc: Command):
    argv = run(irc, "x", np.zeros((1, 3), np.float32))
    return [*argv, *argv[2:4]]


@case("x.npy: cannot read the file: No such file")
def an_input_file_that_is_not_there(irc: Command):
    return ["run", irc.write("m.onnx", small_model()), "--input", "x=x.npy"]


@case("x.npy: .*not a .npy file")
def an_input_that_is_not_an_array(irc: Command):
    return run(irc, "x", b"1, 2, 3\n")


@case("x.npy: .*not a .npy file")
def an_empty_input_file(irc: Command):
    return run(irc, "x", b"")


@case("x.npy: .*not a .npy file")
def a_pickle(irc: Command):
    return run(irc, "x", pickle.dumps([1, 2, 3]))


@case("x.npy: .*no pickles")
def an_array_of_objects(irc: Command):
    np.save(irc.folder / "objects.npy", np.array([{}, None], object), allow_pickle=True)
    return run(irc, "x", (irc.folder / "objects.npy").read_bytes())


@case("x.npy: .*damaged or truncated")
def a_truncated_array(irc: Command):
    np.save(irc.folder / "whole.npy", np.zeros((1, 3), np.float32))
    return run(irc, "x", (irc.folder / "whole.npy").read_bytes()[:-4])


@case("x.npy: .*damaged or truncated")
def an_array_that_claims_a_huge_size(irc: Command):
    np.save(irc.folder / "small.npy", np.zeros((1, 3), np.float32))
    content = (irc.folder / "small.npy").read_bytes()
    return run(irc, "x", content.replace(b"(1, 3), }        ", b"(1, 4294967296), }"))


@case("x.npy: .*npz")
def an_archive_of_arrays(irc: Command):
    np.savez(irc.folder / "x.npz", x=np.zeros((1, 3), np.float32))
    return run(irc, "x", (irc.folder / "x.npz").read_bytes())


@case("x.npy: .*directory")
def a_folder_as_input_file(irc: Command):
    (irc.folder / "x.npy").mkdir()
    return ["run", irc.write("m.onnx", small_model()), "--input", "x=x.npy"]


@case("made up")
def made_up_inputs_of_a_huge_size(irc: Command):
    return ["run", irc.write("m.onnx", small_model()), "--seed", "0", "--dim", "batch=2000000000"]


@case("no named dimension 'bach'; did you mean 'batch'")
def an_unknown_dimension(irc: Command):
    return ["run", irc.write("m.onnx", small_model()), "--seed", "0", "--dim", "bach=2"]


# -- others ----------------------------------------------------------------------


@case("no value 'output'; did you mean 'output_1'")
def asking_why_of_an_unknown_value(irc: Command):
    return ["alias", irc.write("x.ir", GRAPH.replace("%y", "%output_1")), "--why", "x", "output"]


@case("only run ONNX files")
def another_runtime_on_ir_text(irc: Command):
    return ["bench", irc.write("x.ir", GRAPH), "--against", "onnxruntime"]


@pytest.mark.parametrize("name", CASES)
def test_bad_input(name: str, irc: Command) -> None:
    says, make = CASES[name]
    assert_refused(irc, make(irc), says)


@pytest.mark.parametrize("cut", range(12))
def test_a_model_truncated_anywhere(cut: int, irc: Command) -> None:
    whole = small_model().SerializeToString()
    irc.write("x.onnx", whole[: len(whole) * cut // 12])
    assert_refused(irc, ["compile", "x.onnx", "-o", "x.irc"], "x.onnx")


@pytest.mark.parametrize(
    "argv",
    [
        [],
        ["frobnicate"],
        ["compile"],
        ["compile", "m.onnx", "--frobnicate"],
        ["bench", "m.onnx", "--runs", "0"],
        ["bench", "m.onnx", "--runs", "many"],
        ["bench", "m.onnx", "--against", "tensorflow"],
        ["compile", "m.onnx", "--dim", "batch=2"],
        ["compile", "m.onnx", "--input", "x=x.npy"],
        ["run", "m.onnx", "--dim", "batch"],
        ["run", "m.onnx", "--dim", "batch=-1"],
        ["run", "m.onnx", "--dim", "batch=99999999999999999999"],
        ["run", "m.onnx", "--input", "x.npy"],
        ["run", "m.onnx", "--seed", "-1"],
    ],
)
def test_wrong_usage(argv: list[str], irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc(*argv)
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith("usage: irc")
    assert "irc" in result.err.splitlines()[-1] and "error: " in result.err.splitlines()[-1]


def test_control_characters_in_names_do_not_reach_the_terminal(irc: Command) -> None:
    evil = "x\x1b]0;owned\x07\x1b[2J"
    irc.write("x.onnx", model([node("Relu", "nowhere", "y", name=evil)], {"x": [1]}, ["y"]))
    result = irc("compile", "x.onnx")
    assert result.status == 1
    assert "\x1b" not in result.err and "\x07" not in result.err
    assert "owned" in result.err


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems refuse such names themselves")
def test_a_model_whose_file_name_is_not_utf8(irc: Command) -> None:
    name = os.fsdecode(b"\xff.onnx")
    (irc.folder / name).write_bytes(small_model().SerializeToString())
    assert irc("compile", name, "-o", os.fsdecode(b"\xfe.irc")).status == 0
    assert irc("run", os.fsdecode(b"\xfe.irc"), "--seed", "0").out.startswith("y: float32 [1, 8]")
    assert irc("compile", name, "--json").status == 0
