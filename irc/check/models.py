"""Whether a compiled model is right: it is run on seeded inputs and compared with an oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from irc.check.oracles import Feeds, Oracle, Unable, ask, values_of
from irc.check.tolerance import Tolerance, difference
from irc.errors import Error
from irc.ir import Graph, Module
from irc.ir.fixed_sizes import sizes_text
from irc.ir.functions import with_subgraphs
from irc.ir.kinds import CALL, CONSTANT
from irc.ir.ops import Effects, effects_of
from irc.ir.types import TensorType
from irc.runtime.model import CompiledModel
from irc.runtime.values import Array, describe, is_array, is_mapping, is_sequence
from irc.seeded import assumed_sizes, assumption, given_sizes, seeded_inputs

if TYPE_CHECKING:
    from irc.ir import Value

AT_ONCE = 32
"""How many intermediate values are compared at once: all of them may not fit in memory."""


@dataclass(frozen=True)
class CheckResult:
    """How far a model is from its oracle.

    Attributes:
        oracle: the name of the oracle.
        error: largest difference to it, relative to the largest element of the output concerned; None if no output
            had elements, so that nothing but types and shapes was compared.
        inputs: how many input sets were compared.
        sizes: named dimensions and the sizes that they had.
        unable: better oracles that could not run the model, and why.
    """

    oracle: str
    error: float | None
    inputs: int
    sizes: dict[str, int]
    unable: dict[str, str]

    def __str__(self) -> str:
        having = f" (with {sizes_text(self.sizes)})" if self.sizes else ""
        others = "".join(f"; not with {name}: {why}" for name, why in self.unable.items())
        many = f"{self.inputs} sets of inputs" if self.inputs > 1 else "one set of inputs"
        if self.error is None:
            return (
                f"nothing was compared but types and shapes, as no output has elements: {self.oracle} on {many}{having}"
            )
        return f"agrees with {self.oracle} on {many}{having}, off by {self.error:.1e} of the scale{others}"


_EXACT = Tolerance(0.0, 0.0, 0)
_QUANTISED = Tolerance(rounded=16)

_QUANTISERS = {
    "onnx::QuantizeLinear": 16,
    **dict.fromkeys(("onnx::DynamicQuantizeLinear", "onnx::QLinearConv", "onnx::QLinearMatMul", CALL), 8),
}
"""What rounds real numbers to integers, and how many bits these have at most. (Others of the kind are calls.)"""

_SMALL_FLOAT = 8
"""Bits of floats that are quantised numbers, too, whatever rounds to them."""


def check_model(
    model: CompiledModel,
    source: Any,
    *,
    seeds: Sequence[int] = (0, 1),
    sizes: Mapping[str, int] | None = None,
    given: Mapping[str, Array] | None = None,
) -> CheckResult:
    """Compare ``model`` with an oracle.

    The oracle is ONNX Runtime if it is installed and can run the model; else ``onnx.reference`` if it is known to
    compute the model right; else irc's own plan of the model without any pass.

    Args:
        model: the compiled model.
        source: what it was compiled from.
        seeds: one set of inputs each.
        sizes: sizes of named dimensions; others are those of ``given``, or as `assumed_sizes` says.
        given: values of inputs by name; the others are made up.

    Raises:
        Error: IRC330 if an output differs; names the first value that does. IRC332 if the model is random. IRC102 if
            an input cannot be made up, IRC4xx if the model does not run on these inputs, or ``source`` is another one.
    """
    _refuse_random(model.module)
    tolerance = Tolerance.of(source)
    fixed = dict(given or {})
    made_up = [argument for argument in model.inputs if argument.name not in fixed]
    if not any(not argument.optional for argument in made_up):
        seeds = seeds[:1]
    taken = given_sizes(model.inputs, fixed)
    known = {**model.sizes, **taken, **(sizes or {})}
    feeds = [{**seeded_inputs(made_up, seed, known), **fixed} for seed in seeds]
    assumed = assumed_sizes(made_up, known)
    assuming = assumption({name: size for name, size in assumed.items() if name not in taken})
    found = [_run(model, feed, assuming) for feed in feeds]
    wanted = [output.name for output in model.outputs]
    oracle, expected, unable = ask(source, feeds, wanted)
    worst = 0.0
    for seed, feed, ours, theirs in zip(seeds, feeds, found, expected, strict=True):
        error, wrong = _compared(ours, theirs, dict.fromkeys(wanted, tolerance))
        rounded = _rounded(model.graph, oracle, feed, ours) if wrong else {}
        closer = _error_after(rounded, oracle, feed, ours, tolerance) if rounded else None
        if wrong and closer is None:
            how = _how(ours[wrong], theirs[wrong], tolerance)
            first = _first_difference(model.graph, oracle, feed, tolerance, rounded)
            message = f"the compiled model is wrong: for seed {seed} this output {how}, compared with {oracle.name}"
            raise Error("IRC330", f"{message}; {first}", f"output {wrong!r}")
        worst = max(worst, error if closer is None else closer)
    is_empty = all(_is_empty(outputs[name]) for outputs in expected for name in wanted)
    return CheckResult(oracle.name, None if is_empty else worst, len(feeds), assumed, unable)


def _is_empty(value: Any) -> bool:
    """Whether ``value`` is an array without elements, or has no other arrays in it."""
    if is_sequence(value) or is_mapping(value):
        return all(map(_is_empty, value.values() if is_mapping(value) else value))
    return is_array(value) and not value.size


def _run(model: CompiledModel, feed: Feeds, assumed: str) -> dict[str, Any]:
    """The outputs. An error mentions the sizes assumed, as a correct model may refuse inputs of such sizes."""
    try:
        return model.run(feed)
    except Error as error:
        message = f"{error.message}; {assumed}" if assumed else error.message
        raise Error(error.code, message, error.where) from error


def _compared(found: Feeds, expected: Feeds, tolerances: Mapping[str, Tolerance]) -> tuple[float, str]:
    """The largest difference, and the first name of values that differ; "" if none do."""
    pairs = {name: difference(found[name], expected[name], allowed) for name, allowed in tolerances.items()}
    return max((error for error, _ in pairs.values()), default=0.0), next((n for n, p in pairs.items() if not p[1]), "")


def _rounded(graph: Graph, oracle: Oracle, feeds: Feeds, ours: Feeds) -> dict[str, Array]:
    """The quantised numbers of the model that differ by one place because a real number is midway between two.

    Empty unless the model returns ``ours`` again, to the last bit, when it computes these numbers as well.
    """
    known = set(oracle.values)
    names = [value.name for value in comparable(graph) if value.name in known and _is_quantised(value)]
    if not names:
        return {}
    found = values_of(graph, feeds, list(dict.fromkeys((*names, *ours))))
    _, changed = _compared(found, ours, dict.fromkeys(ours, _EXACT))
    return {} if changed else {name: found[name] for name in names}


def _is_quantised(value: Value) -> bool:
    dtype, node = value.type.dtype, value.node
    if dtype is None or node is None:
        return False
    if dtype.is_float:
        return dtype.bits <= _SMALL_FLOAT
    return dtype.is_integer and dtype.bits <= _QUANTISERS.get(node.kind, 0)


def _error_after(rounded: Feeds, oracle: Oracle, feeds: Feeds, ours: Feeds, tolerance: Tolerance) -> float | None:
    """How far off ``ours`` is if the oracle continues from the quantised numbers of the model.

    None if that is too far, or one of these numbers is more than a place off what the oracle computes from earlier
    ones.
    """
    try:
        expected = oracle.run(feeds, list(dict.fromkeys((*rounded, *ours))), rounded)
    except Unable:
        return None
    _, wrong = _compared(rounded, expected, dict.fromkeys(rounded, _QUANTISED))
    allowed = {name: _QUANTISED if name in rounded else tolerance for name in ours}
    error, wrong_output = _compared(ours, expected, allowed)
    return None if wrong or wrong_output else error


def comparable(graph: Graph) -> list[Value]:
    """The tensors computed and used in the top block, in order. (Runtimes may leave out unused ones.)"""
    return [
        value
        for node in graph.nodes
        if node.kind != CONSTANT
        for value in node.outputs
        if isinstance(value.type, TensorType) and value.has_uses
    ]


def _refuse_random(module: Module) -> None:
    for node in with_subgraphs(*module.graphs.values()):
        if effects_of(node) & Effects.RANDOM:
            name = f"%{node.outputs[0].name}" if node.outputs else node.kind
            raise Error("IRC332", f"the model cannot be checked: {node.kind} gives other results in every run", name)


def _how(found: Any, expected: Any, tolerance: Tolerance) -> str:
    if is_array(found) and is_array(expected) and (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"is {describe(found)} instead of {describe(expected)}"
    return f"is off by {difference(found, expected, tolerance)[0]:.1e} of its scale"


def _first_difference(graph: Graph, oracle: Oracle, feeds: Feeds, tolerance: Tolerance, rounded: Feeds) -> str:
    """The first value of both sides that differs, if the oracle continues from the values in ``rounded``."""
    for value, found, expected in _both(graph, oracle, feeds, rounded):
        allowed = _QUANTISED if value.name in rounded else tolerance
        if not difference(found, expected, allowed)[1]:
            kind = value.node.kind if value.node else "input"
            return f"the first value that differs is %{value.name}, of {kind}: it {_how(found, expected, allowed)}"
    return "no intermediate value that both sides have differs"


def _both(graph: Graph, oracle: Oracle, feeds: Feeds, rounded: Feeds) -> Iterator[tuple[Value, Any, Any]]:
    """The values that both sides have, in the order in which they are computed."""
    known = set(oracle.values)
    shared = [value for value in comparable(graph) if value.name in known]
    for start in range(0, len(shared), AT_ONCE):
        values = shared[start : start + AT_ONCE]
        names = [value.name for value in values]
        try:
            expected = oracle.run(feeds, names, rounded)
        except Unable:  # it does not give some of these: look on among the others
            continue
        found = values_of(graph, feeds, names)
        yield from ((value, found[value.name], expected[value.name]) for value in values)
