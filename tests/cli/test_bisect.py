"""``irc bisect``, and what other commands say and do for those who look for a wrong pass."""

import json
import os
import shlex
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.helpers import Command
from tests.cli.test_wrong_passes import HEAD
from tests.tools.networks import network

WRONG = (
    HEAD
    + """\
        changed = False
        for node in [node for node in graph.nodes if node.kind == "onnx::Sub"]:
            if node.name == "sub_47" and ctx.allow(node):
                node.set_inputs(node.inputs[::-1])
                ctx.alias_db(graph).refresh()
                changed = True
        return changed
"""
)

RAISES = (
    HEAD
    + """\
        raise ValueError("not today")
"""
)


@pytest.fixture(autouse=True)
def registered_for_one_test(own_registries: None) -> None:
    """Passes of files are forgotten."""


def test_the_command_shows_again_what_was_found(irc: Command) -> None:
    irc.write("m.onnx", network(80))
    irc.write("wrong.py", WRONG)
    options = ["--load", "wrong.py", "-p", "unfused,wrong,fuse"]
    failed = irc("compile", "m.onnx", *options, "--check")
    assert failed.status == 1 and "IRC330" in failed.err
    command = failed.err.partition("shows it: ")[2].split("\n")[0]
    assert command == "irc bisect m.onnx -p unfused,wrong,fuse --load wrong.py"
    found = irc(*shlex.split(command)[1:], "--json")
    assert found.status == 0, found.err
    told = json.loads(found.out)
    assert (told["culprit"], told["name"], told["nodes"]) == ("pass", "wrong", 1)
    assert told["rewrite"] == "wrong at %v47 = onnx::Sub 'sub_47'"
    assert told["files"] == ["bisect-m.onnx", "bisect-m.npz", "bisect-m.txt"]
    assert [node.op_type for node in onnx.load("bisect-m.onnx").graph.node] == ["Sub"]
    assert set(np.load("bisect-m.npz")) == {info.name for info in onnx.load("bisect-m.onnx").graph.input}
    os.mkdir("again")
    again = irc(*shlex.split(told["command"])[1:], "-o", "again")
    assert again.status == 0 and "wrong at %v47 = onnx::Sub 'sub_47'" in again.out
    assert Path("again", "bisect-bisect-m.txt").read_text() == again.out
    assert "show irc bisect again/bisect-bisect-m.onnx -p wrong --load wrong.py" in again.out


def test_limits_and_crashes_of_passes_on_the_command_line(irc: Command) -> None:
    irc.write("m.onnx", network(50))
    irc.write("g.ir", irc("print", "m.onnx").out)
    limited = irc("opt", "m.onnx", "-p", "cse", "--opt-limit", "0")
    assert limited.status == 0 and "# 0 transformations; the last: none" in limited.err
    assert irc("compile", "m.onnx", "--opt-limit", "2").err.count("2 transformations; the last: ") == 1
    irc.write("raises.py", RAISES.replace("Wrong", "Raises").replace('"wrong"', '"raises"'))
    failed = irc("opt", "m.onnx", "--load", "raises.py", "-p", "cse,raises", "--crash-reproducer", "crash.ir")
    assert failed.status == 1 and "the graph before it is in crash.ir" in failed.err
    assert Path("crash.ir").read_text().startswith("# irc opt crash.ir -p 'raises'\ngraph(")
    again = irc("opt", "crash.ir", "--load", "raises.py", "-p", "raises")
    assert again.status == 1 and "not today" in again.err


def test_wrong_requests(irc: Command) -> None:
    irc.write("m.onnx", network(50))
    Path("file").touch()
    for argv, status, message in (
        (["bisect", "m.onnx"], 1, "IRC333: m.onnx: nothing is wrong: on 3 sets of inputs"),
        (["bisect", "m.onnx", "-o", "nowhere"], 1, "IRC501: nowhere: there is no such folder: make it first"),
        (["bisect", "m.onnx", "-o", "file"], 1, "IRC501: file: there is no such folder: make it first"),
        (["bisect", "m.onnx", "-o", "a\0b"], 1, "IRC501"),
        (["bisect", "none.onnx"], 1, "IRC120: none.onnx"),
        (["bisect", "m.onnx", "-p", "csse"], 1, "IRC301"),
        (["bisect", "m.onnx", "-i", "y=y.npy"], 1, "IRC410: the model has no input 'y'"),
        (["bisect", "m.onnx", "-i", "file.npz"], 1, "IRC502: file.npz"),
        (["bisect", "m.onnx", "--seed", "x"], 2, "--seed"),
        (["compile", "m.onnx", "--opt-limit", "-1"], 2, "--opt-limit"),
        (["compile", "m.onnx", "--crash-reproducer", "nowhere/crash.ir"], 1, "there is no folder 'nowhere'"),
        (["opt", "m.onnx", "--crash-reproducer", "crash.onnx"], 1, "must end in .ir or .txt"),
    ):
        result = irc(*argv)
        assert (result.status, result.out) == (status, "") and message in result.err, (argv, result.err)
    assert sorted(os.listdir()) == ["file", "m.onnx"]


READER = """\
import sys

import numpy as np

feeds = np.load(sys.argv[2])
text = open(sys.argv[1], "rb").read()
sys.exit(0 if feeds and all(array.shape == (3, 8) for array in feeds.values()) and b"Clip" in text else 1)
"""


def test_a_model_is_reduced_for_a_command(irc: Command) -> None:
    irc.write("m.onnx", network(200))
    found = irc("reduce", "m.onnx", "--command", "grep -qa Clip {} && grep -qa Neg {}", "--json")
    assert found.status == 0, found.err
    told = json.loads(found.out)
    assert (told["path"], told["inputs"], told["nodes_before"], told["nodes"]) == ("reduced-m.onnx", "", 201, 2)
    assert sorted(node.op_type for node in onnx.load("reduced-m.onnx").graph.node) == ["Clip", "Neg"]


def test_a_command_reads_the_inputs_of_parts(irc: Command) -> None:
    irc.write("m.onnx", network(50))
    irc.write("reader.py", READER)
    command = f"{shlex.quote(sys.executable)} reader.py {{}} {{inputs}}"
    found = irc("reduce", "m.onnx", "--command", command, "-o", "small.onnx", "--dim", "n=3")
    assert found.status == 0 and found.out.startswith("small.onnx, small.npz: 1 operator of 51 after "), found.err
    left = onnx.load("small.onnx")
    onnx.checker.check_model(left, full_check=True)
    assert [node.op_type for node in left.graph.node] == ["Clip"]
    assert [info.name for info in left.graph.input] == list(np.load("small.npz"))


def test_commands_that_tell_nothing(irc: Command) -> None:
    irc.write("m.onnx", network(50))
    for argv, status, message in (
        (["--command", "true"], 1, "IRC335: true: the command ends with status 0 for any model"),
        (["--command", "false"], 1, "must end with status 0 for the model itself: it ended with status 1"),
        (["--command", "echo why {}; exit 3"], 1, "it ended with status 3\n  why /"),
        (["--command", "sleep 9; {}", "--timeout", "0.1"], 1, "it was ended after 0.1 s"),
        (["--command", "no-such-program"], 1, "it ended with status 127"),
        (["--command", "true", "-o", "nowhere/x.onnx"], 1, "there is no folder 'nowhere'"),
        (["--command", "true", "-o", "x.irc"], 1, "must end in .onnx"),
        (["--command", "true", "--dim", "n=1"], 2, "are for a command with {inputs}"),
        ([], 2, "--command"),
    ):
        result = irc("reduce", "m.onnx", *argv)
        assert (result.status, result.out) == (status, "") and message in result.err, (argv, result.err)
    assert os.listdir() == ["m.onnx"]
