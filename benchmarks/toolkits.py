"""What tools do with models that are wrong, hostile or unusual: ``python -m benchmarks.toolkits``.

Each case is a small model file. irc and its peers take it on their command lines (ONNX Runtime by a session that writes
the optimised model), each in a process of its own. What happens is kept in ``benchmarks/toolkits.json``, of which the
table in the README is made; a test runs irc, and the peers that are installed in the versions kept, again.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RESULTS = Path(__file__).parent / "toolkits.json"
README = Path(__file__).parent.parent / "README.md"
BEGIN, END = "<!-- by python -m benchmarks.toolkits -->", "<!-- end of it -->"
SECONDS = 20

SESSION = """
import sys
import onnxruntime as ort
options = ort.SessionOptions()
options.log_severity_level = 4
options.optimized_model_filepath = sys.argv[2]
try:
    ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
except Exception as error:
    sys.exit(str(error))
"""
TOOLS = {
    "irc": ("irc", ["-m", "irc", "compile", "{model}", "-o", "{out}"]),
    "onnxsim": ("onnxsim", ["-m", "onnxsim", "{model}", "{out}"]),
    "onnxslim": ("onnxslim", ["-c", "from onnxslim.cli import main; main()", "{model}", "{out}"]),
    "ONNX Runtime": ("onnxruntime", ["-c", SESSION, "{model}", "{out}"]),
}
"""Name of a tool -> its package, and the arguments of Python that run it."""


class Outcome(NamedTuple):
    """What a tool did.

    Attributes:
        status: of its process; below 0 the signal that ended it, None if it took more than `SECONDS`.
        wrote: whether there is an output file.
        traceback: whether it showed where in its own source it failed.
        named: whether it named the node or file that is wrong.
    """

    status: int | None
    wrote: bool
    traceback: bool
    named: bool

    def __str__(self) -> str:
        if self.status is None:
            return f"more than {SECONDS} s"
        if self.status < 0:
            return f"crash ({signal.Signals(-self.status).name})"
        said = "names it" if self.named else "does not name it"
        if self.status:
            return f"error with a traceback, {said}" if self.traceback else f"error, {said}"
        return "writes a model" if self.wrote else "writes nothing, exit status 0"


def _model(*nodes: onnx.NodeProto, **shapes: tuple[int | str, ...]) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes.get(name, (2, 3))) for name in "xy")
    weights = [numpy_helper.from_array(np.ones(3, np.float32), "w")]
    graph = helper.make_graph(list(nodes), "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def _misspelt(folder: Path) -> None:
    onnx.save(_model(helper.make_node("Rleu", ["x"], ["y"], name="the_node")), folder / "m.onnx")


def _undefined(folder: Path) -> None:
    onnx.save(_model(helper.make_node("Add", ["x", "ghost"], ["y"], name="the_node")), folder / "m.onnx")


def _wrong_attribute(folder: Path) -> None:
    node = helper.make_node("LayerNormalization", ["x", "w"], ["y"], name="the_node", axis=2**63 - 1)
    onnx.save(_model(node), folder / "m.onnx")


def _wrong_shapes(folder: Path) -> None:
    onnx.save(_model(helper.make_node("Add", ["x", "w"], ["y"], name="the_node"), x=(2, 5)), folder / "m.onnx")


def _truncated(folder: Path) -> None:
    _wrong_shapes(folder)
    data = (folder / "m.onnx").read_bytes()
    (folder / "m.onnx").write_bytes(data[: len(data) // 2])


def _missing(folder: Path) -> None:
    """No file."""


def _doubling(folder: Path) -> None:
    """Thirty local functions, each of which calls the next one twice: inlined, a billion nodes."""
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("local", 1)]
    functions = []
    for i in range(30):
        kind, domain = (f"f{i + 1}", "local") if i < 29 else ("Relu", "")
        nodes = [helper.make_node(kind, [a], [b], domain=domain) for a, b in ("ab", "bc")]
        functions.append(helper.make_function("local", f"f{i}", ["a"], ["c"], nodes, imports))
    graph = _model(helper.make_node("f0", ["x"], ["y"], domain="local", name="the_node")).graph
    model = helper.make_model(graph, opset_imports=imports, functions=functions, ir_version=10)
    onnx.save(model, folder / "m.onnx")


CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    "an operator that does not exist": (_misspelt, "the_node|Rleu"),
    "a value that nothing defines": (_undefined, "the_node|ghost"),
    "shapes that contradict each other": (_wrong_shapes, "the_node"),
    "an axis of 2⁶³ - 1": (_wrong_attribute, "the_node"),
    "thirty functions that double each other": (_doubling, "f0|the_node|functions"),
    "half of a file": (_truncated, "m.onnx"),
    "no such file": (_missing, "m.onnx"),
}
"""What is wrong -> what makes the file, and what an answer that names it has."""


def outcome(tool: str, case: str) -> Outcome:
    """Run ``tool`` on the model of ``case``."""
    make, names = CASES[case]
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        make(folder)
        paths = {"model": str(folder / "m.onnx"), "out": str(folder / "out.onnx")}
        arguments = [paths.get(each.strip("{}"), each) for each in TOOLS[tool][1]]
        try:
            done = subprocess.run(
                [sys.executable, *arguments], capture_output=True, text=True, check=False, timeout=SECONDS, cwd=folder
            )
        except subprocess.TimeoutExpired:
            return Outcome(None, False, False, False)
        said = done.stdout + done.stderr
        last = [line for line in said.splitlines() if line.strip() and not line.startswith("  File")]
        text = "\n".join(last)
        named = any(name in text for name in names.split("|"))
        return Outcome(done.returncode, (folder / "out.onnx").exists(), "Traceback (most recent" in said, named)


def versions() -> dict[str, str]:
    """The versions of the tools that are installed, but for irc's own."""
    found: dict[str, str] = {}
    for tool, (package, _) in TOOLS.items():
        try:
            found[tool] = version(package)
        except PackageNotFoundError:
            continue
    return {tool: each for tool, each in found.items() if tool != "irc"}


def table(results: dict[str, dict[str, str]], kept: dict[str, str]) -> str:
    """The results as Markdown."""
    tools = list(TOOLS)
    heads = [tool if tool == "irc" else f"{tool} {kept[tool]}" for tool in tools]
    rows = [["a model with", *heads], ["---"] * (len(tools) + 1)]
    rows += [[case, *(results[case][tool] for tool in tools)] for case in CASES]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def shown() -> str:
    """The table that the README has."""
    return README.read_text("utf-8").partition(BEGIN)[2].partition(END)[0].strip()


def main() -> None:
    """Run every tool on every case, keep what happened, and write the table."""
    argparse.ArgumentParser(prog="python -m benchmarks.toolkits", description=__doc__).parse_args()
    results = {case: {tool: str(outcome(tool, case)) for tool in TOOLS} for case in CASES}
    kept = versions()
    RESULTS.write_text(json.dumps({"versions": kept, "results": results}, indent=2, ensure_ascii=False) + "\n", "utf-8")
    before, _, rest = README.read_text("utf-8").partition(BEGIN)
    README.write_text(f"{before}{BEGIN}\n\n{table(results, kept)}\n\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
