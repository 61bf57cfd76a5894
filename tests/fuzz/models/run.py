"""Trying many mutants: what became of each, by mutation, and those that irc did wrong."""

import math
import multiprocessing
import os
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from irc.passes import registry
from tests.fuzz.models.mutate import mutant
from tests.fuzz.models.mutations import nodes
from tests.fuzz.models.seeds import SEEDS, serialized
from tests.fuzz.models.worker import SECONDS, Answer, serve_irc, serve_onnxruntime

START = 60.0
"""Seconds more for a process that has to start: it imports irc or ONNX Runtime."""

GRACE = 10.0
"""Seconds beyond a run's deadline: for importing and compiling, and for the parts that cannot be interrupted."""

BOUNDED = registry.PIPELINES["default"].replace("inline", "inline{max-nodes=20000}")
"""The default pipeline, as one compiles what nobody vouches for: not too much of it."""

PATIENCE = 20
"""A process that sleeps is given so many times the seconds that one which works is given."""

WRONG = ("exception", "hang", "crash", "memory", "internal error", "differs")
"""Outcomes that must not be."""

INTERNAL = {"IRC309": "internal error", "IRC401": "internal error", "IRC403": "memory"}
"""Codes that say that a kernel failed unforeseen, or that memory was exhausted before the limit was reached."""


class Process:
    """A worker, started anew after it crashed, or was ended because it did not answer."""

    def __init__(self, serve: Callable[[Any, str], None], folder: Path) -> None:
        self._serve = serve
        self._folder = folder
        self._process: Any = None
        self._pipe: Any = None

    def ask(self, request: Any, seconds: float) -> Answer:
        if self._process is None or not self._process.is_alive():
            context = multiprocessing.get_context("spawn")
            self._pipe, other = context.Pipe()
            self._process = context.Process(target=self._serve, args=(other, str(self._folder)), daemon=True)
            self._process.start()
            other.close()
            seconds += START
        try:
            self._pipe.send(request)
            if not self._answers(seconds):
                self.end()
                return Answer("hang", f"no answer within {seconds} s")
            return self._pipe.recv()
        except (EOFError, OSError):
            self._process.join(5)
            code = self._process.exitcode
            self.end()
            return Answer("crash", f"the process ended with {code}")

    def _answers(self, seconds: float) -> bool:
        """Whether there is an answer within ``seconds`` of the process's own time: others may use the machine, too."""
        begin, patience = _processor_seconds(self._process.pid), time.monotonic() + PATIENCE * seconds
        while not self._pipe.poll(0.2):
            if time.monotonic() > patience or _processor_seconds(self._process.pid) - begin > seconds:
                return False
        return True

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


def _processor_seconds(pid: int) -> float:
    """How long a process has run; what has ended has run for ever."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return math.inf
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Outcome:
    """What a fuzzing run did.

    Attributes:
        counts: how often, by mutation and outcome.
        failures: number, model, mutation, outcome and message of what must not be.
        slowest: seconds, and the number of the mutant.
    """

    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    failures: list[tuple[int, str, str, str, str]] = field(default_factory=list)
    slowest: tuple[float, int] = (0.0, -1)

    def total(self, outcome: str) -> int:
        return sum(n for (_, o), n in self.counts.items() if o == outcome)

    def __str__(self) -> str:
        outcomes = sorted({o for _, o in self.counts})
        mutations = sorted({m for m, _ in self.counts})
        rows = [["mutation", *outcomes]]
        rows += [[m, *(str(self.counts[m, o] or "") for o in outcomes)] for m in mutations]
        rows.append(["all", *(str(self.total(o)) for o in outcomes)])
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        return "\n".join("  ".join(cell.rjust(w) for cell, w in zip(row, widths)) for row in rows)


def fuzz(
    numbers: range, start: int, folder: Path, progress: Callable[[int, Outcome], None] = lambda *_: None
) -> Outcome:
    """Try the mutants of these numbers, which ``start`` determines."""
    outcome = Outcome()
    ours, theirs = Process(serve_irc, folder), Process(serve_onnxruntime, folder)
    try:
        for number in numbers:
            seed, mutation, data = mutant([*SEEDS], serialized, number, start)
            answer, what = examine(data, number, ours, theirs)
            outcome.counts[mutation, what] += 1
            outcome.slowest = max(outcome.slowest, (answer.seconds, number))
            if what in WRONG:
                outcome.failures.append((number, seed, mutation, what, answer.message))
            progress(number, outcome)
    finally:
        ours.end()
        theirs.end()
    return outcome


def examine(data: bytes, number: int, ours: Process, theirs: Process) -> tuple[Answer, str]:
    """irc's answer, and in a few words what to think of it."""
    passes = "none" if number % 4 == 0 else BOUNDED
    answer = ours.ask((data, number, passes), SECONDS + GRACE)
    if answer.outcome in INTERNAL:
        return answer, INTERNAL[answer.outcome]
    if answer.outcome in WRONG:
        return answer, answer.outcome
    if answer.outcome != "ran":
        return answer, "limit" if answer.outcome in ("IRC441", "IRC442", "IRC443") else f"{answer.outcome[:4]}xx"
    expected = theirs.ask((data, answer.feeds, [*answer.results]), SECONDS + GRACE)
    if expected.outcome != "ran":
        return answer, "ran, alone"
    difference = differ(answer.results, expected.results)
    if difference is None:
        return answer, "ran, agrees"
    if differ(answer.results, expected.results, finite=True) is None:
        return answer, "ran, agrees but for NaN"
    other = theirs.ask((data, answer.feeds, None), SECONDS + GRACE)
    if other.outcome == "ran" and differ(answer.results, other.results) is None:
        return answer, "ran, agrees with onnx.reference only"
    answer.message = difference
    return answer, "differs" if known_difference(data) is None else "differs as known"


def known_difference(data: bytes) -> str | None:
    """Why ONNX Runtime may be wrong about a model, or None."""
    model = onnx.load_model_from_string(data)
    values = {tensor.name: tensor for tensor in model.graph.initializer}
    if any(node.op_type == "NonZero" and rank == 0 for node in nodes(model) for rank in _ranks(model, node)):
        return "the standard has (0, N) for NonZero of a scalar, not NumPy's (1, N)"
    for node in nodes(model):
        grid = values.get(node.input[1]) if node.op_type == "GridSample" else None
        if grid is not None and not np.isfinite(onnx.numpy_helper.to_array(grid)).all():
            return "a coordinate that is infinite is cast to an integer, which C++ leaves undefined"
        for a in node.attribute:
            if node.op_type in ("Loop", "Scan") and a.name == "body":
                given, made = {i.name for i in a.g.input}, [o.name for o in a.g.output]
                if given.intersection(made) or len(set(made)) < len(made):
                    return "what a body hands on as it is may be overwritten, or be what an earlier iteration left"
            if a.name == "softcap" and not a.f >= 0:
                return "a negative cap is taken for none, where the function body applies it"
            if a.name == "sampling_ratio" and a.i > 100:
                return "the sum of thousands of samples of one bin, in float32, has lost digits"
            if a.name in ("saturate", "keepdims", "sorted") and a.i not in (0, 1):
                return "what is neither 0 nor 1 is taken for either of them, or makes integers 0"
    return None


def _ranks(model: onnx.ModelProto, node: onnx.NodeProto) -> list[int]:
    """Those of the node's inputs that onnx can infer."""
    graph = onnx.shape_inference.infer_shapes(model).graph
    known = {v.name: v.type.tensor_type for v in (*graph.value_info, *graph.input, *graph.output)}
    return [len(known[x].shape.dim) for x in node.input if x in known and known[x].HasField("shape")]


def differ(ours: dict[str, Any], theirs: dict[str, Any], finite: bool = False) -> str | None:
    """Where results differ, or None; ``finite``: compare only elements that are numbers in both.

    ONNX does not say what comparisons make of NaN: ONNX Runtime's activations and pools drop some.
    """
    for name, value in ours.items():
        if (why := _differ(value, theirs[name], finite)) is not None:
            return f"{name}: {why}"
    return None


def _differ(ours: Any, theirs: Any, only_finite: bool) -> str | None:
    if isinstance(theirs, list):
        if not isinstance(ours, list) or len(ours) != len(theirs):
            return f"{ours!r:.300} instead of {theirs!r:.300}"
        return next((why for a, b in zip(ours, theirs) if (why := _differ(a, b, only_finite)) is not None), None)
    if ours is None or theirs is None:
        return None if ours is theirs else f"{ours!r:.300} instead of {theirs!r:.300}"
    a, b = np.asarray(ours), np.asarray(theirs)
    if a.size == b.size == 0:
        return None  # sizes beside the 0 that no type states are 0, where ONNX Runtime infers more
    if a.shape != b.shape or (a.dtype != b.dtype and b.dtype.kind not in "OUS"):
        return f"{a.dtype}{list(a.shape)} instead of {b.dtype}{list(b.shape)}"
    if a.dtype.kind in "OUSb":
        same = a.tolist() == b.tolist()
    elif a.dtype.kind in "iu":
        slack = 1 if a.dtype.itemsize == 1 else 0
        same = bool((np.abs(a.astype(np.float64) - b.astype(np.float64)) <= slack).all())
    else:
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        if only_finite:
            both = np.isfinite(x) & np.isfinite(y)
            x, y = x[both], y[both]
        finite = np.abs(y[np.isfinite(y)])
        scale = float(finite.max()) if finite.size else 0.0
        same = np.allclose(x, y, rtol=2e-3, atol=1e-4 * max(scale, 1e-3), equal_nan=True)
    return (
        None
        if same
        else f"{a.dtype}{list(a.shape)} {a.reshape(-1)[:8].tolist()} instead of {b.reshape(-1)[:8].tolist()}"
    )
