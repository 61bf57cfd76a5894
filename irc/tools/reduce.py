"""`reduce`: the smallest part of a model for which a command still ends with status 0.

Operators and outputs are left out as long as that holds (`irc.tools.shrink`). Where the model is cut, values become
inputs and outputs. What is left is as the model's file has it, operator by operator.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from irc.compiler import count_nodes, write_onnx
from irc.errors import Error
from irc.frontend.onnx.files import Source, read_file
from irc.runtime.file import is_saved
from irc.support.formatting import count
from irc.tools.archives import as_entries, write_archive
from irc.tools.extract import typed, write_part
from irc.tools.inspection import module_in
from irc.tools.shrink import Part, Parts, Work, fewest

MODEL, INPUTS = "{}", "{inputs}"
"""What stands in a command for the path of the model, and for that of an archive of its inputs."""

_LAST_LINES = 3
"""The most lines of a command's output in a message."""


@dataclass(frozen=True)
class Reduction:
    """What is left of a model.

    Attributes:
        path: the file that was written.
        inputs: the archive with the inputs of the part; "" if the command does not read them.
        nodes_before: operators of the model.
        nodes: operators of the part.
        runs: how often the command ran.
        seconds: how long that took.
    """

    path: str
    inputs: str
    nodes_before: int
    nodes: int
    runs: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)

    def __str__(self) -> str:
        beside = f", {self.inputs}" if self.inputs else ""
        left = f"{count(self.nodes, 'operator')} of {self.nodes_before:,}"
        return f"{self.path}{beside}: {left} after {count(self.runs, 'run')} of the command, {self.seconds:.1f} s"


class Command:
    """A command of the shell that tells by its exit status whether a model shows something.

    Args:
        text: ``{}`` in it stands for the path of the model, which follows the text if there is none; ``{inputs}`` for
            the path of an archive of its inputs.
        timeout: seconds after which it is ended, and shows nothing; None: never.
    """

    def __init__(self, text: str, timeout: float | None = None) -> None:
        self.text = text if MODEL in text else f"{text} {MODEL}"
        self.timeout = timeout
        self.runs = 0
        self.how = ""

    @property
    def reads_inputs(self) -> bool:
        """Whether it wants inputs."""
        return INPUTS in self.text

    def shows(self, model: str, inputs: str) -> bool:
        """Whether the command ends with status 0; ``how`` says how it ended."""
        self.runs += 1
        text = self.text.replace(INPUTS, shlex.quote(inputs)).replace(MODEL, shlex.quote(model))
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(
                text, shell=True, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
            try:
                status = child.wait(self.timeout)
            except subprocess.TimeoutExpired:
                self.how = f"it was ended after {self.timeout} s"
                return False
            finally:
                _end(child)
            output.seek(0)
            said = output.read().decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
        self.how = "".join([f"it ended with status {status}", *(f"\n  {line}" for line in said)])
        return status == 0


def _end(child: subprocess.Popen[bytes]) -> None:
    """End what a command has started."""
    if child.poll() is None:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError):  # Windows has no groups
            child.kill()
        child.wait()


def reduce(
    model: Any,
    command: str,
    output: str,
    *,
    timeout: float | None = None,
    feeds: Mapping[str, Any] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Reduction:
    """Write the smallest part of a model for which a command still ends with status 0.

    Args:
        model: the path of an ONNX file, whose operators stay as they are; or whatever else `irc.compile` takes or
            gives. It is not changed.
        command: of the shell; see `Command`.
        output: where to write the part, as ONNX; with ``{inputs}`` in the command, its inputs go beside it as ``.npz``.
        timeout: seconds after which the command is ended, and taken to show nothing.
        feeds: inputs of the model, for a command with ``{inputs}``: irc computes the values where the model is cut.
        progress: called with a few words before each run.

    Raises:
        Error: IRC335 the command does not end with status 0 for the model itself, or does so for a model that can show
            nothing; IRC501 the part cannot be written; IRC1xx the model cannot be imported.
    """
    start, asked = time.perf_counter(), Command(command, timeout)
    module, name = module_in(model)
    module = typed(module)
    source = read_file(name) if isinstance(model, str | os.PathLike) and not is_saved(name) else None
    parts = Parts(module, dict(feeds or {}) if asked.reads_inputs else None, Work())
    left = ""
    with tempfile.TemporaryDirectory() as folder:
        target, inputs = str(Path(folder, "model.onnx")), str(Path(folder, "inputs.npz"))

        def shows(part: Part) -> bool:
            nonlocal left
            size = count(count_nodes(part.module.main), "operator")
            if progress is not None:
                progress(f"{left or size} left after {count(asked.runs, 'run')} of the command")
            try:
                _write(source, part, target, inputs)
            except Error:  # ONNX cannot express it
                return False
            is_shown = asked.shows(target, inputs)
            left = size if is_shown else left
            return is_shown

        whole = parts.of(parts.nodes, [value.name for value in module.main.outputs])
        if whole is None:
            raise Error("IRC335", "the model has no operators, or outputs that no operator computes", name)
        _write(source, whole, target, inputs)
        if not shows(whole):
            raise Error("IRC335", f"the command must end with status 0 for the model itself: {asked.how}", name)
        _write_trivial(target, inputs)
        if asked.shows(target, inputs):
            message = "the command ends with status 0 for any model, even one that only returns its input"
            raise Error("IRC335", f"{message}: it must tell models apart", command)
        smallest = fewest(whole, parts, shows, most=None)
    beside = f"{Path(output).with_suffix('')}.npz" if asked.reads_inputs else ""
    _write(source, smallest, output, beside)
    sizes = count_nodes(module.main), count_nodes(smallest.module.main)
    return Reduction(output, beside, *sizes, asked.runs, time.perf_counter() - start)


def _write(source: Source | None, part: Part, model: str, inputs: str) -> None:
    """Write a part, and its inputs if they are recorded."""
    if source is None:
        write_onnx(part.module, model)
    else:
        write_part(source, part.module, model)
    if inputs and part.feeds is not None:
        write_archive(inputs, as_entries(part.feeds))


def _write_trivial(model: str, inputs: str) -> None:
    """Write a model that returns its input."""
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "trivial", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 13)]
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    Path(model).write_bytes(proto.SerializeToString())
    write_archive(inputs, {"x": np.ones(1, np.float32)})
