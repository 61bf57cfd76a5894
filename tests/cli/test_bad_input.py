"""Options, outputs and inputs that are refused, and wrong usage."""

import io
import os
import pickle
import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.cli.helpers import GRAPH, Command, model, node, small_model
from tests.cli.refusals import Cases, case_of, commands, contents, refusals

ZEROS = np.zeros((1, 3), np.float32)


def stored(array: np.ndarray[Any, Any]) -> bytes:
    """What a .npy file of ``array`` holds."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def archive() -> bytes:
    file = io.BytesIO()
    np.savez(file, x=ZEROS)
    return file.getvalue()


CASES: Cases = commands(
    r"""
an unknown pass | compile m.onnx -p csee,dce -o out.irc | did you mean 'cse'
an unknown pass before the model is read | compile nowhere.onnx -p csee,dce -o out.irc | did you mean 'cse'
a pipeline with a syntax error | opt x.ir -p '(cse,dce' -o out.ir | expected.*\^
an unknown option of a pass | compile m.onnx -p fuse{max-sise=3} | no option 'max-sise'.*did you mean 'max-size'
an unknown instrument | opt x.ir --instrument timings | did you mean 'timing'
an output in a folder that does not exist | compile m.onnx -o nowhere/out.irc | no folder 'nowhere'
an output with another suffix | compile m.onnx -o m.pb | must end in .irc or .onnx
an output over the model | compile m.onnx -o m.onnx | m.onnx: this is the model that is read
outputs of a run with another suffix | run m.onnx --seed 0 -o m.onnx | must end in .npz
outputs of a run to a device | run m.onnx --seed 0 -o /dev/null | /dev/null: .*must end in .npz
an output without a name | compile m.onnx -o '' | must end in .irc
a model that is no file | compile /dev/null | not a regular file
text under a name that no file can have | print 'a\0b.ir' | IRC502: .*null
a compiled model under a name that no file can have | print 'a\0b.irc' | IRC502: .*null
a missing input | run m.onnx -o out.npz | no value for 'x' \(Float\(batch, 3\)\): give --input
an input file that is not there | run m.onnx --input x=x.npy | x.npy: cannot read the file: No such file
made up inputs of a huge size | run m.onnx --seed 0 --dim batch=2000000000 | made up
an unknown dimension | run m.onnx --seed 0 --dim bach=2 | no named dimension 'bach'; did you mean 'batch'
another runtime on IR text | bench x.ir --against onnxruntime | only run ONNX files
""".replace(r"\0", "\0")
)
RUN, FEED = "run m.onnx -o out.npz", "--input x=x.npy"
CASES |= contents(
    "x.npy",
    f"{RUN} {FEED}",
    {
        "a wrong element type": (np.zeros((1, 3)), "input 'x': .*float32.*float64"),
        "elements with names": (np.zeros((1, 3), [("a", np.float32)]), "input 'x': .*float32.*void32"),
        "elements without a type": (np.zeros((1, 3), "V4"), "input 'x': .*float32.*void32"),
        "a wrong shape": (np.zeros((1, 4), np.float32), r"input 'x': .*3.*\[1, 4\]"),
        "a wrong rank": (np.zeros(3, np.float32), r"input 'x': .*dimensions.*\[3\]"),
        "an unknown input": (ZEROS, "no input 'z'; it has 'x'", f"{RUN} --input z=x.npy --seed 0"),
        "an input given twice": (
            ZEROS,
            r"input 'x': this input is given 2 times; it is Float\(batch, 3\)",
            f"{RUN} {FEED} {FEED}",
        ),
        "an input that is not an array": (b"1, 2, 3\n", "x.npy: .*not a .npy file"),
        "an empty input file": (b"", "x.npy: .*not a .npy file"),
        "a pickle": (pickle.dumps([1, 2, 3]), "x.npy: .*not a .npy file"),
        "an array of objects": (stored(np.array([{}, None], object)), "x.npy: .*no pickles"),
        "elements that numpy writes and does not read": (
            np.ones((1, 3), ml_dtypes.float8_e5m2),
            "x.npy: NumPy cannot read such elements back .*<f1.*view",
        ),
        "a truncated array": (stored(ZEROS)[:-4], "x.npy: .*damaged or truncated"),
        "an array that claims a huge size": (
            stored(ZEROS).replace(b"(1, 3), }        ", b"(1, 4294967296), }"),
            "x.npy: .*damaged or truncated",
        ),
        "a header that does not end": (stored(ZEROS).replace(b"}", b"("), "x.npy: .*damaged or truncated"),
        "an archive of arrays": (archive(), "x.npy: .*npz"),
    },
)
CASES |= contents(
    "x.npy",
    "",
    {
        f"the size of a dimension that an array has, in {what}": (
            np.zeros((2, 3), np.float32),
            "IRC311: no input that is made up has the dimension 'batch'",
            f"{command} {FEED} --dim batch=3",
        )
        for what, command in (("a run", f"{RUN} --seed 0"), ("a check", "compile m.onnx --check"))
    },
)
CASES |= contents(
    "g.ir",
    "",
    {
        "operators that ONNX does not have": (
            "graph(%x : Float(2)):\n  %y : Float(2) = aten::relu(%x)\n  return (%y)\n",
            "IRC350: .*aten::relu.*no such operator",
            "compile g.ir -o out.onnx",
        ),
        "an output that ends in a null character": (
            'graph():\n  %y : String(1) = prim::Constant[value=tensor(["a\\u0000"])]()\n  return (%y)\n',
            "output 'y': .npz files lose the null character",
            "run g.ir -o y.npz",
        ),
        "asking why of an unknown value": (
            GRAPH.replace("%y", "%output_1"),
            "no value 'output'; did you mean 'output_1'",
            "alias g.ir --why x output",
        ),
    },
)
case = case_of(CASES)


@case("m.irc: .*folder")
def an_output_that_is_a_folder(irc: Command):
    (irc.folder / "m.irc").mkdir()
    return ["compile", irc.write("m.onnx", small_model()), "-o", "m.irc"]


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


@case("x.npy: .*(folder|directory)")
def a_folder_as_input_file(irc: Command):
    (irc.folder / "x.npy").mkdir()
    return ["run", irc.write("m.onnx", small_model()), "--input", "x=x.npy"]


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
        ["compile", "m.onnx", "-o", "o.irc", "--packed"],
        ["compile", "m.onnx", "--check", "-o", "o.onnx", "--packed"],
        ["compile", "m.onnx", "--check", "--packed"],
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
