"""Running the command line in process, and models to give it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from irc.cli import main


@dataclass
class Result:
    """What a command did: exit status and what it wrote."""

    status: int
    out: str
    err: str


class Command:
    """Runs commands in a folder of their own."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.capsys = capsys

    def __call__(self, *argv: str | Path) -> Result:
        self.capsys.readouterr()
        try:
            status = main([str(arg) for arg in argv])
        except SystemExit as exit:  # argparse's, for --help and usage errors
            status = cast("int", exit.code)
        captured = self.capsys.readouterr()
        return Result(status, captured.out, captured.err)

    def write(self, name: str, content: bytes | str | onnx.ModelProto | np.ndarray[Any, Any]) -> str:
        """Make a file in the folder; its name."""
        path = self.folder / name
        if isinstance(content, onnx.ModelProto):
            path.write_bytes(content.SerializeToString())
        elif isinstance(content, np.ndarray):
            np.save(path, content)
        elif isinstance(content, str):
            path.write_text(content, "utf-8")
        else:
            path.write_bytes(content)
        return name


Shape = Sequence[int | str | None]


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op, inputs.split(), outputs.split(), **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, Shape],
    outputs: Sequence[str],
    weights: Mapping[str, np.ndarray[Any, Any]] | None = None,
    opset: int = 17,
    ir_version: int = 8,
    **more: Any,
) -> onnx.ModelProto:
    """A model on float32 tensors."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    imports = [helper.make_opsetid("", opset), *more.pop("domains", [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, **more)


def small_model() -> onnx.ModelProto:
    """Relu(x @ w) + b, for x of [batch, 3]."""
    rng = np.random.default_rng(0)
    weights = {"w": rng.normal(size=(3, 8)).astype(np.float32), "b": rng.normal(size=8).astype(np.float32)}
    nodes = [node("MatMul", "x w", "p", name="mm"), node("Relu", "p", "q"), node("Add", "q b", "y")]
    return model(nodes, {"x": ["batch", 3]}, ["y"], weights)


def small_result(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    weights = {t.name: numpy_helper.to_array(t) for t in small_model().graph.initializer}
    return np.maximum(x @ weights["w"], 0) + weights["b"]


GRAPH = """graph(%x : Float(2)):
  %y : Float(2) = onnx::Relu(%x)
  return (%y)
"""
"""A graph as IR text."""
