"""What is measured of one model: whether irc is right, how many nodes are left, how long compiling and running take."""

from __future__ import annotations

import contextlib
import io
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx

import irc
from benchmarks import peers
from benchmarks.race import IRC, race
from benchmarks.zoo.models import Entry, feeds
from benchmarks.zoo.packages import model_path
from irc.ops import record
from irc.tools.check.oracles import Tolerance, difference
from irc.tools.check.peers import exact_onnxruntime, onnxruntime_session, run_session

SOURCE = "source"
ONNXRUNTIME = "onnxruntime"
OWN = "rounding"
NUDGES = 3
"""How often weights are moved by their last digits."""
NUDGE = 2.0**-21
"""By how much of themselves: ONNX Runtime's Tanh and Sigmoid are off by about as much."""
EXPORTED = "exported"
SHRINKERS = ("onnxslim", "onnxsim")
"""The peers whose nodes are counted beside irc's."""

Run = Callable[[dict[str, Any]], list[Any]]


@dataclass
class Result:
    """One model's row.

    Attributes:
        name: of the model.
        faults: what is wrong, a line each; none: right in all ways, for all sizes.
        errors: way of running -> largest difference from ONNX Runtime, relative to the largest element of an output;
            `OWN`: how far ONNX Runtime's own results move if it optimises, or weights move by their last digits.
        nodes: contender -> nodes of the model as written to ONNX (see `node_count`).
        compile_seconds: contender -> seconds from the file to something that runs.
        run_seconds: contender -> median seconds of a run with the first sizes.
    """

    name: str
    faults: list[str] = field(default_factory=list[str])
    errors: dict[str, float] = field(default_factory=dict[str, float])
    nodes: dict[str, int] = field(default_factory=dict[str, int])
    compile_seconds: dict[str, float] = field(default_factory=dict[str, float])
    run_seconds: dict[str, float] = field(default_factory=dict[str, float])

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        return asdict(self)


def measure(entry: Entry, turns: int) -> Result:
    """Measure one model, which has been fetched. ``turns``: timed runs of each contender."""
    path, result = model_path(entry), Result(entry.name)
    source = onnx.load(path)
    with tempfile.TemporaryDirectory() as folder:
        try:
            ways = _ways(path, Path(folder))
        except irc.Error as error:
            result.faults.append(f"refused: {error.code}: {error.message}")
            return result
        _judge(entry, path, ways, result)
        written = onnx.load(Path(folder) / "optimised.onnx")
        _count(source, written, result)
    _time(entry, path, turns, result)
    return result


def _ways(path: Path, folder: Path) -> dict[str, Run]:
    """Each way to run a model through irc. Raises what irc does if it refuses the model."""
    plain, optimised = irc.compile(path, passes="none"), irc.compile(path)
    optimised.save(folder / "optimised.irc")
    irc.export(optimised, folder / "optimised.onnx")
    loaded = irc.load(folder / "optimised.irc")
    exported = onnxruntime_session(folder / "optimised.onnx", threads=1)
    return {
        "without passes": lambda given: list(plain.run(given).values()),
        "optimised": lambda given: list(optimised.run(given).values()),
        "loaded": lambda given: list(loaded.run(given).values()),
        EXPORTED: lambda given: run_session(exported, given),
    }


def _judge(entry: Entry, path: Path, ways: dict[str, Run], result: Result) -> None:
    """Compare each way with ONNX Runtime, for all sizes of the manifest.

    irc's results are compared with those of ONNX Runtime without optimisations. They are right within the tolerance of
    ``irc compile --check``, and within twice of what rounding does to ONNX Runtime's own results (`OWN`): quantized
    layers magnify last digits where these decide how a number is rounded. What was exported is compared with the
    source, both in ONNX Runtime as it optimises them.
    """
    session = onnxruntime_session(path, threads=1)
    source = onnx.load(path)
    exact = exact_onnxruntime(source, "")
    nudged = [exact_onnxruntime(_nudged(source, seed), "") for seed in range(NUDGES)]
    tolerance = Tolerance.of(path)
    for sizes in entry.sizes:
        given = feeds(entry, session, sizes)
        expected, optimised = exact(given, None), run_session(session, given)
        others = (optimised, *(run(given, None) for run in nudged))
        spread = max(difference(found, expected, tolerance)[0] for found in others)
        result.errors[OWN] = max(spread, result.errors.get(OWN, 0.0))
        for way, run in ways.items():
            try:
                found = run(dict(given))
            except Exception as error:  # of irc or of ONNX Runtime: each is a fault to report
                result.faults.append(f"{way}, {sizes}: {type(error).__name__}: {str(error)[:200]}")
                continue
            off, right = difference(found, optimised if way == EXPORTED else expected, tolerance)
            result.errors[way] = max(off, result.errors.get(way, 0.0))
            if not right and off > 2 * spread:  # each of the two results may be off by as much
                result.faults.append(f"{way}, {sizes}: max error {off:.2g} relative to max|ref|")


def _nudged(source: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """A copy of the model in which weights that are floats are larger or smaller, at random, by `NUDGE`."""
    rng = np.random.default_rng(seed)
    copy = onnx.ModelProto()
    copy.CopyFrom(source)
    sizes = {
        node.input[i]
        for node in source.graph.node
        for i in record(f"onnx::{node.op_type}").value_operands or ()
        if i < len(node.input)
    }  # the scales of a Resize, say: another size is no rounding
    for tensor in copy.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype.kind == "f" and tensor.name not in sizes:
            moved = array * (1 + NUDGE * rng.choice([-1, 0, 1], array.shape))
            tensor.CopyFrom(onnx.numpy_helper.from_array(np.asarray(moved, array.dtype), tensor.name))
    return copy


def node_count(model: onnx.ModelProto) -> int:
    """Nodes that compute something: constants left out, nested graphs and the body of each called function counted."""
    bodies = {(function.domain, function.name): function.node for function in model.functions}

    def count(nodes: Iterable[onnx.NodeProto]) -> int:
        total = 0
        for node in nodes:
            if node.op_type == "Constant":
                continue
            body = bodies.get((node.domain, node.op_type))
            total += 1 if body is None else count(body)
            graphs = [a.g for a in node.attribute if a.HasField("g")] + [g for a in node.attribute for g in a.graphs]
            total += sum(count(graph.node) for graph in graphs)
        return total

    return count(model.graph.node)


def _count(source: onnx.ModelProto, written: onnx.ModelProto, result: Result) -> None:
    result.nodes = {SOURCE: node_count(source), IRC: node_count(written)}
    for name in SHRINKERS:
        if peers.is_installed(name):
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    result.nodes[name] = node_count(peers.OPTIMIZERS[name](source))
            except Exception as error:  # whatever it raises, there is no number
                print(f"{result.name}: {name} fails: {type(error).__name__}: {str(error)[:200]}")
    known, used = ({node.domain or "ai.onnx" for node in model.graph.node} for model in (source, written))
    called = {function.domain for function in written.functions}
    if added := used - known - called - {"ai.onnx"}:
        result.faults.append(f"exported: needs {', '.join(sorted(added))}, which the model does not use")


def _time(entry: Entry, path: Path, turns: int, result: Result) -> None:
    makers: dict[str, Callable[[], Any]] = {
        IRC: lambda: irc.compile(path),
        ONNXRUNTIME: lambda: onnxruntime_session(path),
    }
    ready: dict[str, Any] = {}
    for name, make in makers.items():
        taken: list[float] = []
        for _ in range(3):
            start = time.perf_counter()
            ready[name] = make()
            taken.append(time.perf_counter() - start)
        result.compile_seconds[name] = median(taken)
    session = ready[ONNXRUNTIME]
    given = feeds(entry, session, entry.sizes[0])
    runs = {IRC: lambda feed: ready[IRC].run(feed), ONNXRUNTIME: lambda feed: session.run(None, feed)}
    try:
        samples, _ = race(runs, lambda _: dict(given), turns, warm=True)
    except irc.Error:
        return  # said already among the faults
    result.run_seconds = {name: median(taken) for name, taken in samples.items()}
