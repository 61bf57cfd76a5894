"""Options, outputs and inputs that are refused, and wrong usage."""

from __future__ import annotations

import os
import pickle
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.cli.helpers import GRAPH, Command, model, node, small_model
from tests.cli.refusals import Cases, case_of, refusals

CASES: Cases = {}
case = case_of(CASES)


# -- passes ----------------------------------------------------------------------


@case("did you mean 'cse'")
def an_unknown_pass(irc: Command):
    return ["compile", irc.write("m.onnx", small_model()), "-p", "csee,dce", "-o", "out.irc"]


@case("did you mean 'cse'")
def an_unknown_pass_before_the_model_is_read(irc: Command):
    return ["compile", "nowhere.onnx", "-p", "csee,dce", "-o", "out.irc"]


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


@case("must end in .irc or .onnx")
def an_output_with_another_suffix(irc: Command):
    return ["compile", irc.write("m.onnx", small_model()), "-o", "m.pb"]


@case("m.onnx: this is the model that is read")
def an_output_over_the_model(irc: Command):
    return ["compile", irc.write("m.onnx", small_model()), "-o", "m.onnx"]


@case("IRC350: .*aten::relu.*no such operator")
def operators_that_onnx_does_not_have(irc: Command):
    text = "graph(%x : Float(2)):\n  %y : Float(2) = aten::relu(%x)\n  return (%y)\n"
    return ["compile", irc.write("m.ir", text.encode()), "-o", "out.onnx"]


@case("IRC502: .*null")
def text_under_a_name_that_no_file_can_have(irc: Command):
    return ["print", "a\0b.ir"]


@case("IRC502: .*null")
def a_compiled_model_under_a_name_that_no_file_can_have(irc: Command):
    return ["print", "a\0b.irc"]


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


@case(r"input 'x': .*float32.*void32")
def elements_with_names_that_take_as_many_bytes(irc: Command):
    return run(irc, "x", np.zeros((1, 3), [("a", np.float32)]))


@case(r"input 'x': .*float32.*void32")
def elements_without_a_type_that_take_as_many_bytes(irc: Command):
    return run(irc, "x", np.zeros((1, 3), "V4"))


@case(r"input 'x': .*3.*\[1, 4\]")
def a_wrong_shape(irc: Command):
    return run(irc, "x", np.zeros((1, 4), np.float32))


@case(r"input 'x': .*dimensions.*\[3\]")
def a_wrong_rank(irc: Command):
    return run(irc, "x", np.zeros(3, np.float32))


@case("no input 'z'; it has 'x'")
def an_unknown_input(irc: Command):
    return [*run(irc, "z", np.zeros((1, 3), np.float32)), "--seed", "0"]


@case(r"input 'x': this input is given 2 times; it is Float\(batch, 3\)")
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


@case("x.npy: NumPy cannot read such elements back .*<f1.*view")
def elements_that_numpy_writes_and_does_not_read(irc: Command):
    return run(irc, "x", np.ones((1, 3), ml_dtypes.float8_e5m2))


@case("output 'y': .npz files lose the null character")
def an_output_that_ends_in_a_null_character(irc: Command):
    text = 'graph():\n  %y : String(1) = prim::Constant[value=tensor(["a\\u0000"])]()\n  return (%y)\n'
    return ["run", irc.write("s.ir", text), "-o", "y.npz"]


@case("x.npy: .*damaged or truncated")
def a_truncated_array(irc: Command):
    np.save(irc.folder / "whole.npy", np.zeros((1, 3), np.float32))
    return run(irc, "x", (irc.folder / "whole.npy").read_bytes()[:-4])


@case("x.npy: .*damaged or truncated")
def an_array_that_claims_a_huge_size(irc: Command):
    np.save(irc.folder / "small.npy", np.zeros((1, 3), np.float32))
    content = (irc.folder / "small.npy").read_bytes()
    return run(irc, "x", content.replace(b"(1, 3), }        ", b"(1, 4294967296), }"))


@case("x.npy: .*damaged or truncated")
def an_array_with_a_header_that_does_not_end(irc: Command):
    np.save(irc.folder / "whole.npy", np.zeros((1, 3), np.float32))
    return run(irc, "x", (irc.folder / "whole.npy").read_bytes().replace(b"}", b"("))


@case("x.npy: .*npz")
def an_archive_of_arrays(irc: Command):
    np.savez(irc.folder / "x.npz", x=np.zeros((1, 3), np.float32))
    return run(irc, "x", (irc.folder / "x.npz").read_bytes())


@case("x.npy: .*(folder|directory)")
def a_folder_as_input_file(irc: Command):
    (irc.folder / "x.npy").mkdir()
    return ["run", irc.write("m.onnx", small_model()), "--input", "x=x.npy"]


@case("made up")
def made_up_inputs_of_a_huge_size(irc: Command):
    return ["run", irc.write("m.onnx", small_model()), "--seed", "0", "--dim", "batch=2000000000"]


@case("IRC311: no input that is made up has the dimension 'batch'")
def the_size_of_a_dimension_that_an_array_has(irc: Command):
    return [*run(irc, "x", np.zeros((2, 3), np.float32)), "--seed", "0", "--dim", "batch=3"]


@case("IRC311: no input that is made up has the dimension 'batch'")
def the_size_of_a_dimension_that_an_array_has_in_a_check(irc: Command):
    irc.write("x.npy", np.zeros((2, 3), np.float32))
    return ["compile", irc.write("m.onnx", small_model()), "--check", "--input", "x=x.npy", "--dim", "batch=3"]


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


test_bad_input = refusals(CASES)


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
        ["compile", "m.onnx", "-o", "o.onnx", "--external-data", "-5"],
        ["compile", "m.onnx", "-o", "o.onnx", "--external-data", "many"],
        ["run", "m.irc", "--seed", "0", "-p", "none"],
        ["bench", "m.irc", "--passes", "csee"],
        ["run", "m.onnx", "--dim", "batch"],
        ["run", "m.onnx", "--dim", "batch=-1"],
        ["run", "m.onnx", "--dim", "batch=99999999999999999999"],
        ["run", "m.onnx", "--dim", "batch=2"],
        ["run", "m.onnx", "--dim", "batch=2", "--input", "x=x.npy"],
        ["run", "m.onnx", "--seed", "0", "--dim", "batch=2", "--dim", "batch=3"],
        ["bench", "m.onnx", "--dim", "batch=2", "--dim", "batch=2"],
        ["compile", "m.onnx", "--check", "--dim", "batch=2", "--dim", "batch=2"],
        ["run", "m.onnx", "--input", "x.npy"],
        ["run", "m.onnx", "--seed", "-1"],
        ["alias", "m.onnx", "--why", "x", "y", "--format", "dot"],
    ],
)
def test_wrong_usage(argv: list[str], irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc(*argv)
    assert result.status == 2
    assert result.out == ""
    assert result.err.startswith("usage: irc")
    assert "irc" in result.err.splitlines()[-1] and "error: " in result.err.splitlines()[-1]


def test_an_option_of_another_command_is_answered_by_the_command_that_was_given_it(irc: Command) -> None:
    result = irc("compile", "m.onnx", "--max-bytes", "3")
    assert result.status == 2
    assert result.err.startswith("usage: irc compile")
    assert result.err.endswith("irc compile: error: unrecognized arguments: --max-bytes 3\n")


def test_sizes_have_a_limit_that_is_named(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc("run", "m.onnx", "--seed", "0", "--dim", "batch=99999999999")
    assert result.status == 2 and "expected NAME=SIZE with an integer below 2**31, not" in result.err


@pytest.mark.parametrize("option", ["--max-steps", "--max-bytes", "--threads", "--seed", "--dim"])
def test_numbers_of_thousands_of_digits(option: str, irc: Command) -> None:
    """Python refuses to read them, with an error that argparse words by the name of a function."""
    irc.write("m.onnx", small_model())
    digits = "9" * 5000
    result = irc("run", "m.onnx", "--seed", "0", option, f"batch={digits}" if option == "--dim" else digits)
    assert result.status == 2 and "error: " in result.err and "expected " in result.err.splitlines()[-1]


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
