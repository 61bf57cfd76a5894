"""Real models: irc against other optimisers of ONNX models, and against other ways to run one.

Up to four comparisons a model: optimising it, making it ready to run, running it, and compiling its file as a process.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx

import irc
from benchmarks import peers
from benchmarks.race import IRC, race
from benchmarks.results import Row, against_peers, show
from benchmarks.yolov3 import build
from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs

NAMES = ("yolov3", *BUNDLED)
DEFAULT = ("yolov3", "squeezenet", "resnet50")


def measure(name: str, turns: int) -> list[Row]:
    """Measure one model, print its rows, and return them."""
    model = build() if name == "yolov3" else randomize_weights(bundled_model(name), seed=0)
    print(f"\n{name}: {peers.computing_nodes(model):,} nodes, {model.ByteSize() / 1e6:,.0f} MB")
    rows, compiled = _compiling(name, model, turns)
    rows += _running(name, model, compiled, turns)
    rows += _processes(name, model, turns)
    show(rows)
    return rows


def _compiling(name: str, model: onnx.ModelProto, turns: int) -> tuple[list[Row], Any]:
    sessions = peers.installed(peers.SESSIONS)
    contenders = {IRC: irc.compile, **peers.installed(peers.OPTIMIZERS), **sessions}
    samples, results = race(contenders, lambda _: _copy(model), turns)  # some tools change their argument
    compiled = results.pop(IRC)
    nodes = {IRC: sum(node.kind != "prim::Constant" for node in compiled.graph.nodes)}  # a fusion group counts one
    for tool, result in results.items():
        nodes[tool] = peers.computing_nodes(peers.session_model(model) if tool in sessions else result)
    rows = against_peers(f"{name}/compile", samples, "s")
    rows += against_peers(f"{name}/nodes", {tool: [count] for tool, count in nodes.items()}, "nodes")
    return rows, compiled


def _running(name: str, model: onnx.ModelProto, compiled: irc.CompiledModel, turns: int) -> list[Row]:
    feeds = seeded_inputs(model, seed=1)
    samples, _ = race({IRC: compiled.run, **peers.runners(model)}, lambda _: feeds, turns, warm=True)
    return against_peers(f"{name}/run", samples, "s")


def _processes(name: str, model: onnx.ModelProto, turns: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = str(Path(folder) / "model.onnx"), str(Path(folder) / "out.onnx")
        onnx.save(model, source)
        commands = {IRC: [sys.executable, "-m", "irc", "compile", source]}
        for tool, program in peers.installed(peers.PROGRAMS).items():
            found = shutil.which(program, path=str(Path(sys.executable).parent))
            if found is not None:
                commands[tool] = [found, source, target]
        samples, _ = race({tool: _starter(command) for tool, command in commands.items()}, lambda _: None, turns)
    return against_peers(f"{name}/process", samples, "s")


def _starter(command: list[str]) -> Callable[[None], Any]:
    return lambda _: subprocess.run(command, capture_output=True, check=True)


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy
