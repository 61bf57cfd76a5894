"""One model: compiled, exported, checked, run."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx

import irc
from irc.frontend.onnx.types import from_proto
from irc.frontend.onnx_export import export_model
from irc.ir import Module
from irc.ir.types import TensorType, without_shapes
from irc.ops import Effects, effects_of
from irc.tools.check import Tolerance, difference
from tests.exports.runtimes import Unable, results
from tests.exports.suite import Case

SAME, RANDOM = "same", "random"
NOT_RUN, NOT_RIGHT = "does not run the original", "computes something else for the original"
REFUSED = "refused"

IRC = "irc"
"""Who is right: it passes all of the suite."""


class Finding(NamedTuple):
    """What became of a model.

    Attributes:
        verdicts: for each runtime that it computes the same (`SAME`), that both are random and of one type (`RANDOM`),
            why it says nothing (`NOT_RUN`, `NOT_RIGHT`), or what is wrong.
        troubles: what is wrong, in sentences.
    """

    verdicts: dict[str, str]
    troubles: list[str]


def operators(model: onnx.ModelProto) -> set[str]:
    """The operators of a model and of its functions, those nested in others too."""
    found: set[str] = set()
    pending: list[Any] = [model.graph, *model.functions]
    while pending:
        for node in pending.pop().node:
            found.add(f"{node.domain}::{node.op_type}" if node.domain else node.op_type)
            pending += [a.g for a in node.attribute if a.type == a.GRAPH]
    return found


def examine(case: Case, runtimes: Sequence[str], passes: str = "default") -> Finding:
    """Export a model and ask ``runtimes`` what they make of it. `irc.Error` if irc cannot compile it."""
    original, sets = case.load()
    module = irc.compile(original, passes).module
    exported = export_model(module)
    found = Finding({}, [*_check(original, exported), *_interface(original, exported)])
    right = results(IRC, original, sets)
    for runtime in runtimes:
        verdict = _verdict(runtime, original, exported, sets, right, Tolerance(case.rtol), _is_random(module))
        found.verdicts[runtime] = verdict
        if verdict not in (SAME, RANDOM, NOT_RUN, NOT_RIGHT):
            found.troubles.append(f"{runtime}: {verdict}")
    return found


def _check(original: onnx.ModelProto, exported: onnx.ModelProto) -> Iterable[str]:
    complaint = _complaint(exported)
    if complaint and not _complaint(original):
        yield f"the checker: {complaint}"


def _complaint(model: onnx.ModelProto) -> str:
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        return str(error)
    return ""


def _interface(original: onnx.ModelProto, exported: onnx.ModelProto) -> Iterable[str]:
    """Inputs and outputs have the names and types that they had; shapes may have become more exact."""
    weights = {tensor.name for tensor in original.graph.initializer} if original.ir_version < 4 else set()
    for what in ("input", "output"):
        before = [entry for entry in getattr(original.graph, what) if entry.name not in weights]
        after = list(getattr(exported.graph, what))
        if [entry.name for entry in before] != [entry.name for entry in after]:
            yield f"{what}s were {[e.name for e in before]}, are {[e.name for e in after]}"
            continue
        for a, b in zip(before, after, strict=True):
            was, now = from_proto(a.type, a.name), from_proto(b.type, b.name)
            if without_shapes(was) != without_shapes(now) or not _refines(now, was):
                yield f"{what} {a.name!r} was a {was}, is a {now}"


def _refines(type: Any, other: Any) -> bool:
    if not isinstance(type, TensorType) or other.shape is None:
        return True
    sizes = zip(type.shape or (), other.shape, strict=True)
    return all(a == b or (isinstance(a, int) and not isinstance(b, int)) for a, b in sizes)


def _is_random(module: Module) -> bool:
    nodes = (node for graph in module.graphs.values() for node in graph.walk())
    return any(effects_of(node) & Effects.RANDOM for node in nodes)


def _verdict(
    runtime: str,
    original: onnx.ModelProto,
    exported: onnx.ModelProto,
    sets: list[dict[str, Any]],
    right: list[list[Any]],
    tolerance: Tolerance,
    is_random: bool,
) -> str:
    try:
        expected = results(runtime, original, sets)
    except Unable:
        return NOT_RUN
    try:
        found = results(runtime, exported, sets)
    except Unable as error:
        return f"does not run what was exported: {error}"
    if is_random:
        return RANDOM if _types(found) == _types(expected) else "types differ"
    trouble = _difference(found, expected, tolerance)
    if trouble and _difference(expected, right, tolerance):
        return NOT_RIGHT
    return trouble or SAME


def _difference(found: list[list[Any]], expected: list[list[Any]], tolerance: Tolerance) -> str:
    error, right = difference(found, expected, tolerance)
    return "" if right else f"results are off by {error:.1e} of the scale"


def _types(sets: list[list[Any]]) -> list[list[Any]]:
    return [[(np.shape(x), np.asarray(x).dtype) for x in values] for values in sets]
