"""Checks of compiled models: runs on made-up inputs, comparison with an oracle, blame of a pass."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np

from irc.compiler import load_module
from irc.errors import Error
from irc.ir import CALL, CONSTANT, Graph, Module, TensorType, Value, with_subgraphs
from irc.ir.declarations import sizes_text
from irc.ops import Effects, effects_of
from irc.passes import PassManager
from irc.runtime.model import CompiledModel
from irc.runtime.values import Array, describe, is_array, is_mapping, is_sequence
from irc.tools.check import peers
from irc.tools.check.oracles import Feeds, Oracle, Oracles, Tolerance, difference, values_of
from irc.tools.check.votes import PEERS, Vote, votes
from irc.tools.pass_states import run_passes
from irc.tools.random_inputs.draw import Style, given_sizes
from irc.tools.random_inputs.fitting import MOST_WORK, Fitting, Made, make_or_explain
from irc.tools.shrink import Work

# Chooses the runs that a check compares: of which sizes, on which values.


FIRST_SIZES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)
"""Sizes of the first run: no two axes have the same, so that a wrong axis shows; none is 1, which hides reductions."""

OTHER_SIZES = (3, 2, 7, 5, 13, 11, 19, 17, 29, 23)
"""Sizes of other runs."""

TIMES_OF_ONES = 3
"""How much more than a run with all sizes 1 a larger one may compute, if both compute much."""


@dataclass(frozen=True)
class Run:
    """One run of a check.

    Attributes:
        feeds: the inputs by name.
        seed: what they were made up from.
        sizes: named dimensions, and unnamed ones by input and axis (``x[0]``), with their sizes.
        style: which values the inputs have that were made up.
        results: the outputs of the compiled model.
    """

    feeds: Mapping[str, Any]
    seed: int
    sizes: Mapping[str, int]
    style: Style
    results: Mapping[str, Any]

    def __str__(self) -> str:
        edges = "large and tiny numbers" if self.style is Style.EDGES else ""
        return ", ".join(filter(None, (sizes_text(self.sizes), edges))) or f"seed {self.seed}"


class Options(TypedDict, total=False):
    """What a check may be told, see `check_model`."""

    seeds: Sequence[int]
    sizes: Mapping[str, int]
    given: Mapping[str, Array]


def runs(model: CompiledModel, source: Any, **options: Unpack[Options]) -> Iterator[Run]:
    """Run ``model`` for each seed, with other sizes and values each time, and once with all free sizes 1.

    Args:
        model: the compiled model.
        source: what it was compiled from, which says what inputs may be: a wrong pass must not say that.
        options: the seeds (one run alone if nothing is to be made up), sizes that are not chosen, values that are not
            made up.

    Raises:
        Error: IRC102 an input cannot be made up; IRC4xx the model runs on none of the inputs that were tried.
    """
    module, _ = load_module(source)
    PassManager("inline").run(module)  # bodies of functions, in the places of calls
    seeds, given = options.get("seeds", (0, 1)), dict(options.get("given", {}))
    taken = given_sizes(model.inputs, given)
    fitting = Fitting(model, given, {**model.sizes, **taken, **options.get("sizes", {})}, graph=module.main)
    if not fitting.made_up:
        seeds = seeds[:1]
    wanted = _affordable(fitting, FIRST_SIZES)
    made: Made | None = None
    seen: list[tuple[int, ...]] = []
    for seed, style in zip(seeds, (Style.MIXED, *[Style.EDGES] * len(seeds))):
        if made is not None:
            wanted = _others(fitting, made, wanted)
        made = (
            make_or_explain(fitting, seed, wanted, style)
            if made is None
            else _made_again(fitting, seed, wanted, style, made)
        )
        run = _run(model, made, given, seed, style if fitting.made_up else Style.PLAIN, taken)
        if style is Style.EDGES and _says_nothing(run.results):
            made = make_or_explain(fitting, seed, made.sizes, Style.MIXED)
            run = _run(model, made, given, seed, Style.MIXED, taken)
        seen.append(tuple(made.sizes.values()))
        yield run
    ones = dict.fromkeys(fitting.free, 1)
    attempt = fitting.attempt(ones, seeds[0], Style.PLAIN) if fitting.free and len(seeds) else None
    if attempt is not None and attempt.made is not None and tuple(attempt.made.sizes.values()) not in seen:
        yield _run(model, attempt.made, given, seeds[0], Style.PLAIN, taken)


def _affordable(fitting: Fitting, sizes: Sequence[int]) -> dict[str, int]:
    """``sizes`` for the free names in turn; smaller ones if the model computes too much for these."""
    ones = dict.fromkeys(fitting.free, 1)
    most = max(MOST_WORK, TIMES_OF_ONES * fitting.work(ones))
    for choice in (sizes, (2, 3), (2,)):
        wanted = {name: choice[i % len(choice)] for i, name in enumerate(fitting.free)}
        if fitting.work(wanted) <= most:
            return wanted
    return ones


def _others(fitting: Fitting, made: Made, wanted: Mapping[str, int]) -> dict[str, int]:
    """Sizes for a further run: others of those that the model took as ``wanted``, twice what else it took."""
    other = _affordable(fitting, OTHER_SIZES)
    took = {name: made.sizes[name] for name in fitting.free}
    most = max(MOST_WORK, 2 * fitting.work(took))
    doubled = {name: other[name] if took[name] == wanted[name] else 2 * took[name] for name in took}
    kept = {name: other[name] if took[name] == wanted[name] else took[name] for name in took}
    for choice in (doubled, kept, other):
        if fitting.accepts(choice, most):
            return choice
    return took


def _made_again(fitting: Fitting, seed: int, wanted: Mapping[str, int], style: Style, before: Made) -> Made:
    """Inputs for a further run; with the sizes of ``before`` if the model accepts no others tried."""
    try:
        return make_or_explain(fitting, seed, wanted, style)
    except Error:
        return make_or_explain(fitting, seed, before.sizes, style)


def _run(
    model: CompiledModel, made: Made, given: Mapping[str, Any], seed: int, style: Style, taken: Mapping[str, int]
) -> Run:
    feeds = {**made.feeds, **given}
    results = model.run(feeds) if made.results is None else made.results
    return Run(feeds, seed, {**taken, **made.sizes}, style, results)


def _says_nothing(results: Mapping[str, Any]) -> bool:
    """Whether most elements of an output are NaN."""
    floats = [x for x in results.values() if is_array(x) and x.dtype.kind in "fc" and x.size]
    return any(np.isnan(x).mean() > 1 / 2 for x in floats)


@dataclass(frozen=True)
class CheckResult:
    """How far a model is from its oracle.

    Attributes:
        oracle: the name of the oracle.
        error: largest difference to it, relative to the largest element of the output concerned; None if no output
            had elements, so that nothing but types and shapes was compared.
        runs: what was compared: sizes and values of each run, in words.
        sizes: dimensions and the sizes that they had in the first run; unnamed ones by input and axis, ``x[0]``.
        unable: better oracles that could not run the model, and why.
        notes: where ONNX Runtime computes something else, and who agrees with irc there.
    """

    oracle: str
    error: float | None
    runs: tuple[str, ...]
    sizes: dict[str, int]
    unable: dict[str, str]
    notes: tuple[str, ...] = ()

    @property
    def inputs(self) -> int:
        """How many input sets were compared."""
        return len(self.runs)

    def __str__(self) -> str:
        many = f"{len(self.runs)} runs" if len(self.runs) > 1 else "one run"
        told = f"{many} ({'; '.join(self.runs)})"
        others = "".join(f"; not with {name}: {why}" for name, why in self.unable.items())
        notes = "".join(f"; {note}" for note in self.notes)
        if self.error is None:
            return f"nothing was compared but types and shapes, as no output has elements: {self.oracle} in {told}"
        return f"agrees with {self.oracle} in {told}: max error {self.error:.1e} relative to max|ref|{others}{notes}"


class Wanted(NamedTuple):
    """What a right model computes.

    Attributes:
        feeds: the inputs by name.
        outputs: the outputs by name.
        tolerance: how far they may be off.
    """

    feeds: Mapping[str, Any]
    outputs: Mapping[str, Any]
    tolerance: Tolerance


class Mismatch(NamedTuple):
    """The first run in which a compiled model does not compute what its oracle does.

    Attributes:
        error: IRC330: what differs, by how much, and where that begins.
        wanted: the inputs, and what the oracle computes.
    """

    error: Error
    wanted: Wanted


_AMPLIFIED = "the model makes differences in last digits large: each operator agrees on equal operands"

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
    compute the model right; else irc's own plan of the model without any pass. Where ONNX Runtime and irc differ, the
    model is wrong unless a third party says that ONNX Runtime is (`irc.tools.check.votes`).

    Args:
        model: the compiled model.
        source: what it was compiled from.
        seeds: one set of inputs each. Sizes that the model leaves open are different ones above 1, as far as it
            accepts these, and others in each run; one more run has all of them 1.
        sizes: sizes of named dimensions; others are those of ``given``, or chosen.
        given: values of inputs by name; the others are made up.

    Raises:
        Error: IRC330 if an output differs; names the first value that does. IRC332 if the model is random. IRC102 if
            an input cannot be made up, IRC4xx if the model does not run on these inputs, or ``source`` is another one.
    """
    found = compare(model, source, seeds=seeds, sizes=sizes or {}, given=given or {})
    if isinstance(found, Mismatch):
        raise found.error
    return found


def compare(model: CompiledModel, source: Any, **options: Unpack[Options]) -> CheckResult | Mismatch:
    """As `check_model`, but returns what differs."""
    refuse_random(model.module)
    tolerance = Tolerance.of(source)
    wanted = [output.name for output in model.outputs]
    asked = Oracles(source)
    done: list[Run] = []
    notes: dict[str, None] = {}
    worst, is_empty = 0.0, True
    for run in runs(model, source, **options):
        oracle, expected = asked.ask(run.feeds, wanted)
        error, wrong = _compared(run.results, expected, dict.fromkeys(wanted, tolerance))
        if wrong:
            verdict = _Verdict(model.graph, source, oracle, run, tolerance, expected)
            explained = verdict.explanation()
            if explained is None:
                return verdict.mismatch(wrong)
            error = explained
            notes |= dict.fromkeys(verdict.notes)
        worst = max(worst, error)
        is_empty = is_empty and all(_is_empty(expected[name]) for name in wanted)
        done.append(run)
    first = asked.used[0]
    return CheckResult(
        first.name, None if is_empty else worst, tuple(map(str, done)), dict(done[0].sizes), asked.unable, tuple(notes)
    )


class _Verdict:
    """Why the outputs of one run differ from the oracle's.

    Two questions are asked. Did passes change the model? Each value that the compiled graph keeps is compared with what
    irc computes without passes from those before it, which are given as the compiled model has them: so differences do
    not grow from value to value, and numbers in the middle of two quantised ones may become either. Do operators
    compute something else? That, `votes` tell.
    """

    def __init__(
        self, graph: Graph, source: Any, oracle: Oracle, run: Run, tolerance: Tolerance, expected: Mapping[str, Any]
    ) -> None:
        self.graph, self.source, self.oracle, self.run = graph, source, oracle, run
        self.tolerance, self.expected = tolerance, expected
        self.notes: list[str] = []
        self.where = ""

    def explanation(self) -> float | None:
        """How far values are off if nobody but the oracle is to blame; None if irc is, and `where` says where."""
        error, self.where = self._of_passes()
        if self.where:
            return None
        found = self._votes()
        against = [vote for vote in found if not vote.irc_is_right]
        if against:
            self.where = f"the first value that differs is {_first_words(against[0])}"
            return None
        self.notes += map(str, found) if found else [f"{_AMPLIFIED} ({self.run})"]
        return error

    def mismatch(self, output: str) -> Mismatch:
        """That ``output`` differs, after `explanation` has found none."""
        how = how_it_differs(self.run.results[output], self.expected[output], self.tolerance)
        of = f"for seed {self.run.seed}" + (f" ({self.run})" if self.run.sizes else "")
        message = f"the compiled model is wrong: {of} this output {how}, compared with {self.oracle.name}; {self.where}"
        error = Error("IRC330", message, f"output {output!r}")
        return Mismatch(error, Wanted(self.run.feeds, self.expected, self.tolerance))

    def _of_passes(self) -> tuple[float, str]:
        """The largest difference to irc without passes, and which value is wrong; "" if none is."""
        plain, ours = load_module(self.source)[0].main, self.run.results
        known = {value.name for node in plain.nodes for value in node.outputs}
        shared = [value for value in comparable(self.graph) if value.name in known]
        names = [value.name for value in shared]
        wanted = list(dict.fromkeys((*names, *ours)))
        kept = values_of(self.graph, self.run.feeds, wanted)
        expected = values_of(plain, self.run.feeds, wanted, {n: kept[n] for n in names})
        strict, worst = self.tolerance.strict(), 0.0
        for value in shared:
            allowed = _QUANTISED if _is_quantised(value) else strict
            error, same = difference(kept[value.name], expected[value.name], allowed)
            worst = max(worst, error)
            if not same:
                kind = value.node.kind if value.node else "input"
                how = how_it_differs(kept[value.name], expected[value.name], allowed)
                return error, f"the first value that differs is %{value.name}, of {kind}: it {how}"
        error, wrong = _compared(ours, expected, dict.fromkeys(ours, strict))
        _, changed = _compared(kept, ours, dict.fromkeys(ours, strict))
        if wrong or changed:
            return error, "no intermediate value that both sides have differs"
        return max(worst, error), ""

    def _votes(self) -> list[Vote]:
        """The votes on operators; none if the oracle is irc itself."""
        if isinstance(self.source, Module | Graph) or self.oracle.name not in PEERS:
            return []
        return votes(*peers.read(self.source), self.run.feeds, self.tolerance, self.oracle.name)


def _first_words(vote: Vote) -> str:
    by = f"{vote.by} agrees with {vote.oracle}" if vote.by else "nobody else could decide"
    return f"%{vote.value}, of {vote.operator}: max error {vote.error:.1e} relative to max|ref|; {by}"


def _is_empty(value: Any) -> bool:
    """Whether ``value`` is an array without elements, or has no other arrays in it."""
    if is_sequence(value) or is_mapping(value):
        return all(map(_is_empty, value.values() if is_mapping(value) else value))
    return is_array(value) and not value.size


def _compared(found: Feeds, expected: Feeds, tolerances: Mapping[str, Tolerance]) -> tuple[float, str]:
    """The largest difference, and the first name of values that differ; "" if none do."""
    pairs = {name: difference(found[name], expected[name], allowed) for name, allowed in tolerances.items()}
    return max((error for error, _ in pairs.values()), default=0.0), next((n for n, p in pairs.items() if not p[1]), "")


def _is_quantised(value: Value) -> bool:
    dtype, node = value.type.dtype, value.node
    if dtype is None or node is None:
        return False
    if dtype.is_float:
        return dtype.bits <= _SMALL_FLOAT
    return dtype.is_integer and dtype.bits <= _QUANTISERS.get(node.kind, 0)


def comparable(graph: Graph) -> list[Value]:
    """The tensors computed and used in the top block, in order. (Runtimes may leave out unused ones.)"""
    return [
        value
        for node in graph.nodes
        if node.kind != CONSTANT
        for value in node.outputs
        if isinstance(value.type, TensorType) and value.has_uses
    ]


def refuse_random(module: Module) -> None:
    """Raise IRC332 if ``module`` has random operators."""
    for node in with_subgraphs(*module.graphs.values()):
        if effects_of(node) & Effects.RANDOM:
            name = f"%{node.outputs[0].name}" if node.outputs else node.kind
            raise Error("IRC332", f"the model cannot be checked: {node.kind} gives other results in every run", name)


def how_it_differs(found: Any, expected: Any, tolerance: Tolerance) -> str:
    """In which type or shape, or by how much, an output differs from the one expected."""
    if is_array(found) and is_array(expected) and (found.shape, found.dtype) != (expected.shape, expected.dtype):
        return f"is {describe(found)} instead of {describe(expected)}"
    return f"has max error {difference(found, expected, tolerance)[0]:.1e} relative to max|ref|"


# After which pass a compiled model is wrong: the pipeline runs again.


def check_compiled(model: CompiledModel, source: Any, manager: PassManager, **options: Unpack[Options]) -> CheckResult:
    """As `irc.check.check_model` with these ``options``; an error also names the pass to blame.

    Args:
        model: what ``manager`` made of ``source``.
        source: as `irc.compile` takes it.
        manager: the pipeline.
        options: of `irc.check.check_model`.
    """
    try:
        found = compare(model, source, **options)
    except Error as error:
        wanted = _failing(model, source, options) if error.code.startswith("IRC4") else None
        if wanted is None:
            raise
        raise Error(error.code, f"{error.message}; {blame(wanted, source, manager)}", error.where) from error
    if isinstance(found, CheckResult):
        return found
    error = found.error
    raise Error(error.code, f"{error.message}; {blame(found.wanted, source, manager)}", error.where)


def _failing(model: CompiledModel, source: Any, options: Options) -> Wanted | None:
    """Inputs on which ``model`` fails but irc without passes does not, and its results; or None."""
    with suppress(Error):
        for run in runs(CompiledModel(load_module(source)[0]), source, **options):
            try:
                model.run(run.feeds)
            except Error:
                return Wanted(run.feeds, run.results, Tolerance.of(source))
    return None


def blame(wanted: Wanted, source: Any, manager: PassManager) -> str:
    """The pass after which a model is wrong, in words.

    Args:
        wanted: what the model, as ``manager`` makes it of ``source``, does not compute.
        source: as `irc.compile` takes it.
        manager: the pipeline.
    """
    try:
        module, _ = load_module(source)
        # Without the instruments: these may write, and count, a second time.
        passed = run_passes(module, manager.pipeline, Work())
        if passed.failure is not None:
            return f"{_UNKNOWN}: {passed.failure.code}: {passed.failure.message}"
        states = [module, *(state.module for state in passed.states)]
        if not _agrees(states[0], wanted):  # other oracles may round otherwise: did passes change what irc computes?
            wanted = wanted._replace(outputs=CompiledModel(states[0].copy()).run(wanted.feeds))
            if _agrees(states[-1], wanted):
                return "it is so without any pass, too"
        elif _agrees(states[-1], wanted):
            return "compiled again, it is right: a pass or an instrument does not do the same each time"
        at = first_wrong(len(passed.states), lambda count: not _agrees(states[count], wanted))
    except Error as error:
        return f"{_UNKNOWN}: {error}"
    return f"it is right before pass {passed.states[at - 1].words}, and wrong after it"


_UNKNOWN = "the pass that made it so is not known, as compiling it again fails"


def first_wrong(count: int, is_wrong: Callable[[int], bool]) -> int:
    """The least number up to ``count`` that is wrong, if wrongness is monotonic and ``count`` is wrong."""
    return 1 + bisect_left(range(1, count), True, key=is_wrong)


def _agrees(module: Module, wanted: Wanted) -> bool:
    """Whether ``module`` computes what is wanted; one that cannot run does not."""
    try:
        found = CompiledModel(module.copy()).run(wanted.feeds)
    except Error:
        return False
    return all(difference(found[name], value, wanted.tolerance)[1] for name, value in wanted.outputs.items())
