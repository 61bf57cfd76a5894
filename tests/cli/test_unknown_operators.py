"""Commands on models with operators that irc does not know."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.conftest import Command


@pytest.fixture
def path(irc: Command) -> str:
    nodes = [
        helper.make_node("Identity", ["x"], ["a"]),
        helper.make_node("MyOp", ["a"], ["b"], domain="acme", k=3),
        helper.make_node("Relu", ["b"], ["y"]),
        helper.make_node("Neg", ["a"], ["z"]),
    ]
    x, y, z = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xyz")
    graph = helper.make_graph(nodes, "g", [x], [y, z])
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("acme", 2)]
    return irc.write("m.onnx", helper.make_model(graph, opset_imports=imports, ir_version=8))


NOTE = "irc does not know these operators, and passes them through: MyOp (domain acme, opset 2)"


def test_they_are_kept(irc: Command, path: str) -> None:
    assert irc("compile", path, "-o", "out.onnx").status == 0
    written = onnx.load(Path(irc.folder) / "out.onnx")
    assert [node.op_type for node in written.graph.node] == ["MyOp", "Relu", "Neg"]
    result = irc("compile", path, "-o", "out.irc")
    assert result.status == 0 and "MyOp (domain acme" in " ".join(result.err.split())
    for command in (["print", "out.irc"], ["alias", "out.irc"], ["opt", path, "-p", "default"]):
        result = irc(*command)
        assert result.status == 0 and "opaque.acme::MyOp" in result.out and NOTE in result.err


@pytest.mark.parametrize("file", ["m.onnx", "m.irc", "m.ir"])
@pytest.mark.parametrize("command", [["print"], ["alias"], ["opt"], ["run", "--seed", "0"], ["bench", "--runs", "1"]])
def test_they_are_refused_on_request(irc: Command, path: str, command: list[str], file: str) -> None:
    assert irc("compile", path, "-o", "m.irc").status == 0
    (Path(irc.folder) / "m.ir").write_text(irc("print", path).out)
    result = irc(*command, file, "--refuse-unknown")
    assert result.status == 1 and "IRC123" in result.err and "MyOp (domain acme, opset 2)" in result.err
    assert result.out == ""


def test_runs_fail(irc: Command, path: str) -> None:
    result = irc("run", path, "--seed", "0")
    assert result.status == 1
    assert "IRC323" in result.err and "MyOp: domain acme, version 2" in result.err
    result = irc("compile", path, "--check", "-o", "out.irc")
    assert result.status == 1 and "IRC323" in result.err
    assert not (Path(irc.folder) / "out.irc").exists()
    assert irc("alias", path, "--strict").status == 1
