"""Models that are refused: files that are not models, and models that are wrong."""

import os
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.helpers import GRAPH, Command, model, node, small_model
from tests.cli.refusals import Cases, assert_refused, case_of, commands, contents, refusals
from tests.graphs import ir


def with_external_weight(location: str) -> onnx.ModelProto:
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=location)
    made = model([node("Add", "x w", "y")], {"x": [4]}, ["y"])
    made.graph.initializer.append(weight)
    return made


def huge_weight() -> onnx.ModelProto:
    made = model([node("Add", "x w", "y")], {"x": [4]}, ["y"])
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2**31, 2**31], raw_data=bytes(16))
    made.graph.initializer.append(weight)
    return made


def compiled(irc: Command) -> bytes:
    """A good .irc file's bytes; leaves only ``m.onnx`` behind."""
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "-o", "m.irc").status == 0
    path = irc.folder / "m.irc"
    content = path.read_bytes()
    path.unlink()
    return content


def damaged(irc: Command) -> bytes:
    content = bytearray(compiled(irc))
    content[100] ^= 1
    return bytes(content)


def of(*nodes: onnx.NodeProto, x: Any = (1,), **more: Any) -> onnx.ModelProto:
    """A model of ``x`` that gives ``y``."""
    return model(nodes, {"x": x}, ["y"], **more)


RELU = node("Relu", "x", "y")
ACME = [helper.make_opsetid("acme", 1)]
FIVE = model([node("BatchNormalization", "x s b m v", "y")], {n: [1] for n in "xsbmv"}, ["y"], opset=5)
HUGE = model([node("ConstantOfShape", "s", "y")], {}, ["y"], {"s": np.array([2**40, 2**20])})
UNKNOWN = [node("Frobnicate", "x", "a", domain="acme"), node("Wobble", "a", "y")]
LONG_AXIS = [node("LayerNormalization", "x s", "y", axis=2**63 - 1)]
CYCLE = [node("Add", "x b", "a"), node("Relu", "a", "b"), node("Relu", "b", "y")]
TWICE = [node("Relu", "x", "a"), node("Neg", "x", "a"), node("Relu", "a", "y")]
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n"
WITHOUT_WEIGHTS = ir("""
    x: Float(2); w: @Float(2) -> y
    y: Float(2) = Add(x, w)
""")
REFUSE = "compile x.onnx -o out.irc --refuse-unknown"

CASES: Cases = commands("""
a missing file | compile nope.onnx -o out.irc | nope.onnx: there is no such file
""")
CASES |= contents(
    "x.onnx",
    "compile x.onnx -o out.irc",
    {
        "an empty file": (b"", "x.onnx: .*(empty|not an ONNX model)"),
        "not a protobuf": (b"\xff" * 100, "not an ONNX model"),
        "a truncated model": (small_model().SerializeToString()[:-20], "truncated"),
        "a git-lfs pointer": (LFS, "git lfs pull"),
        "unknown operators": (of(*UNKNOWN, domains=ACME), r"Frobnicate.*acme.*Wobble|Wobble.*Frobnicate", REFUSE),
        "an operator that has changed since opset 5": (FIVE, "BatchNormalization.*opset 5.*version_converter", REFUSE),
        "an opset of the future": (of(RELU, opset=99), "opset 99"),
        "an IR version of the future": (of(RELU, ir_version=99), "IR version 99"),
        "a cycle": (of(*CYCLE), "cycle"),
        "duplicate names": (of(*TWICE), "'a' is defined twice"),
        "no outputs": (model([RELU], {"x": [1]}, []), "no outputs"),
        "an undefined value": (of(node("Relu", "nowhere", "y")), "'nowhere' is used but never defined"),
        "an attribute out of range": (
            model(LONG_AXIS, {"x": [2, 3], "s": [3]}, ["y"]),
            "LayerNormalization.*'axis'.*9223372036854775807",
        ),
        "external data that is not there": (with_external_weight("w.bin"), "w.bin"),
        "a weight that claims a huge size": (huge_weight(), "'w': its shape .* is too large"),
        "a result of a huge size": (
            HUGE,
            "out of memory|too large|would take more than 1024 GiB",
            "run x.onnx --seed 0 -o out.npz",
        ),
    },
)
CASES |= contents("x.md", "compile x.md -o out.irc", {"some text": ("# irc\n\nText.\n", "x.md: .*not an ONNX model")})
CASES |= contents(
    "x.ir",
    "opt x.ir -o out.ir",
    {
        "text with a syntax error": (GRAPH.replace("Relu(%x)", "Relu(%x"), r"x.ir:2:\d+: .*\^"),
        "text with an unknown operator": (GRAPH.replace("Relu", "Frob"), "onnx::Frob"),
        "an operator that cannot run": (
            GRAPH.replace("onnx::Relu", "acme::Frob"),
            "Frob: domain acme",
            "compile x.ir -o out.irc",
        ),
        "text with an undefined value": (GRAPH.replace("(%x)", "(%z)"), r"x.ir:2:\d+: .*%z", "print x.ir"),
        "text that is not text": (b"graph(\xff", "UTF-8", "print x.ir"),
        "text without its weights": (
            WITHOUT_WEIGHTS,
            "weight 'w': IR text does not hold the contents",
            "run x.ir --seed 0",
        ),
        "empty text": ("", "x.ir", "print x.ir"),
    },
)
CASES |= contents(
    "x.irc",
    "run x.irc --seed 0",
    {
        "a truncated .irc file": (lambda irc: compiled(irc)[:-10], "x.irc: .*truncated"),
        "a foreign .irc file": (small_model(), "x.irc: .*no .irc file"),
        "an empty .irc file": (b"", "x.irc: .*no .irc file"),
        "an .irc file of the future": (
            lambda irc: compiled(irc)[:8] + b"\x09\0\0\0" + compiled(irc)[12:],
            "format version 9",
        ),
        "a damaged .irc file": (damaged, "damaged"),
        "what is compiled already": (compiled, "compiled already", "compile x.irc -o y.irc"),
    },
)
case = case_of(CASES)


@case("folder: this is a folder")
def a_folder(irc: Command):
    (irc.folder / "folder").mkdir()
    return ["compile", "folder", "-o", "out.irc"]


@case("x.irc: .*(folder|directory)")
def a_folder_as_irc_file(irc: Command):
    (irc.folder / "x.irc").mkdir()
    return ["run", "x.irc", "--seed", "0"]


@case("no such file")
def a_file_name_that_is_not_utf8(irc: Command):
    return ["compile", os.fsdecode(b"\xff\xfe.onnx")]


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


@case("w.*(bytes|short)")
def external_data_that_is_too_short(irc: Command):
    irc.write("w.bin", bytes(15))
    return ["compile", irc.write("x.onnx", with_external_weight("w.bin")), "-o", "out.irc"]


test_bad_models = refusals(CASES)


@pytest.mark.parametrize("cut", range(12))
def test_a_model_truncated_anywhere(cut: int, irc: Command) -> None:
    whole = small_model().SerializeToString()
    irc.write("x.onnx", whole[: len(whole) * cut // 12])
    assert_refused(irc, ["compile", "x.onnx", "-o", "x.irc"], "x.onnx")
