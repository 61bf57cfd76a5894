"""Chooses sizes and values of inputs that a model accepts.

Sizes that a model leaves open rarely are free: shape arithmetic wants them equal, divisible, large enough for windows.
So sizes are tried. An attempt infers all types with the sizes as numbers, which finds most contradictions without
computing anything, and then runs the model. An attempt that fails counts how far it came; the search changes one size,
or those of one input together, to whatever comes farthest, until the model runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from irc.errors import Error
from irc.ir import CONSTANT, Graph, Node, TensorType, Type, Value
from irc.ops import record
from irc.passes.shapes import Inference
from irc.runtime.arena import GrowingKeys
from irc.runtime.arguments import Argument
from irc.runtime.boundary import Held
from irc.runtime.execution import Counters, Frame, Observer, Slots
from irc.runtime.limits import LIMIT_CODES, Limits
from irc.runtime.model import CompiledModel
from irc.runtime.profile import Profiler
from irc.tools.random_inputs.draw import (
    MAX_ELEMENTS,
    Domain,
    Style,
    assumed_sizes,
    assumption,
    free_names,
    seeded_inputs,
    with_named_sizes,
)
from irc.tools.random_inputs.readers import domains

Sizes = Mapping[str, int]

FIRST = (2, 3, 4, 5, 6, 7, 8, 16, 32, 1, 64, 128, 256, 512, 1024, 2048)
"""Sizes that are tried first: 1 is not among the very first, as what broadcasts hides what is wrong."""

COMMON = tuple(
    map(
        int,
        "9 10 12 20 24 40 48 80 96 100 160 192 224 320 384 400 416 480 576 640 768 1280 1536 4096 8192 16000 16384 "
        "32000".split(),
    )
)
"""Others: those of windows, images, sequences and samples of sound."""

MOST_ELEMENTS = 2**24
"""Elements of inputs whose sizes are tried."""

MOST_WORK = 2**31
"""Products and elements that one attempt may compute, about; more is only done where nothing smaller is possible."""

_INFERENCES = 200_000
"""Nodes whose types all attempts together may infer, about."""

_RUNS = 80
"""Attempts that may run the model."""


class Made(NamedTuple):
    """Inputs that a model accepts.

    Attributes:
        feeds: the values that were made up, by name.
        sizes: the sizes of named dimensions, and of unnamed ones by input and axis: ``x[0]``.
        results: what the model returned for them; None if it was not run, as there was nothing to choose.
    """

    feeds: dict[str, Any]
    sizes: dict[str, int]
    results: dict[str, Any] | None


class _Steps(Profiler):
    """Counts how many nodes of the top block have run; it measures nothing."""

    use_arena, retain, enter, before = Observer.use_arena, Observer.retain, Observer.enter, Observer.before

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self.positions = {node: i for i, node in enumerate(graph.nodes, 1)}
        self.reached = 0

    def start(self, graph: Graph, inputs: Iterable[Any], counters: Counters) -> None:
        """The run begins."""

    def after(self, node: Node, frame: Frame, outs: Slots) -> None:
        """Note that ``node`` has run."""
        self.reached = max(self.reached, self.positions.get(node, 0))


@dataclass
class Attempt:
    """One choice of sizes.

    Attributes:
        sizes: of all names.
        progress: first, whether types were inferred (1) and the model ran (2); then how many nodes that reached.
        error: why it failed; None if the model ran.
        made: the inputs, if it ran.
        work: how many products and elements it takes to compute, about; 0 if types contradict each other.
    """

    sizes: dict[str, int]
    progress: tuple[int, int] = (0, 0)
    error: Error | None = None
    made: Made | None = None
    work: int = 0
    domains: dict[str, Domain] = field(default_factory=dict[str, Domain])


class Fitting:
    """Makes up inputs of one model.

    Args:
        model: the model.
        given: values of some inputs, by name; the others are made up.
        stated: sizes that are not to be chosen, by name.
        limits: of each run of the model.
        graph: where to look for who reads inputs, if not in the model's own graph: what it was compiled from.
    """

    def __init__(
        self,
        model: CompiledModel,
        given: Mapping[str, Any],
        stated: Sizes,
        limits: Limits | None = None,
        graph: Graph | None = None,
    ) -> None:
        self.model, self.given, self.limits = model, dict(given), limits
        named = with_named_sizes(model.inputs)
        self.made_up = [a for a in named if a.name not in given and not a.optional]
        self.stated = dict(stated)
        self.free = free_names(self.made_up, self.stated)
        self._graph = _Retyped(graph or model.graph, named)
        self._inferences = max(30, _INFERENCES // max(1, self._graph.size))
        self._runs = _RUNS
        self._tried: dict[tuple[int, ...], Attempt] = {}

    def make(self, seed: int, wanted: Sizes, style: Style = Style.PLAIN) -> Made:
        """Inputs that the model accepts, of sizes as near to the ``wanted`` ones as is found.

        Args:
            seed: the same seed gives the same values.
            wanted: sizes of all free names.
            style: which values are drawn.

        Raises:
            Error: IRC102 an input cannot be made up; else what the model says of inputs of the sizes wanted.
        """
        if not self.free:
            return self._unchosen(seed, style)
        self._runs = _RUNS
        best = first = self.attempt(wanted, seed, style)
        while best.made is None:
            better = self._better(best, seed, style)
            if better is None:
                assert first.error is not None
                raise first.error
            best = better
        return self._nearer(best, wanted, seed, style).made or best.made

    def _nearer(self, attempt: Attempt, wanted: Sizes, seed: int, style: Style) -> Attempt:
        """``attempt`` with ``wanted`` sizes where it need not differ, and equal sizes distinct if possible."""
        for name in self.free:
            sizes = {n: attempt.sizes[n] for n in self.free}
            others = [sizes[n] for n in self.free if n != name]
            choices = [wanted[name]] if sizes[name] != wanted[name] else []
            choices += [2 * sizes[name]] if sizes[name] in others and wanted[name] > 1 else []
            for size in choices:
                chosen = {**sizes, name: size}
                if size == sizes[name] or self._too_large(chosen) or (seed, *chosen.values()) in self._tried:
                    continue
                found = self.attempt(chosen, seed, style, MOST_WORK)
                if found.made is not None:
                    attempt = found
                    break
        return attempt

    def _unchosen(self, seed: int, style: Style) -> Made:
        """Inputs of the only sizes that there are; whoever runs the model on them is told what is wrong."""
        attempt = self._inferred({})
        feeds = seeded_inputs(self.made_up, seed, attempt.sizes, attempt.domains, style)
        return Made(feeds, attempt.sizes, None)

    def work(self, sizes: Sizes) -> int:
        """How many products and elements the model computes at these sizes of free names, about."""
        return self._inferred(sizes).work

    def accepts(self, chosen: Sizes, most: float) -> bool:
        """Whether types agree at these sizes of free names, and at most ``most`` is computed."""
        if self._too_large(chosen):
            return False
        attempt = self._inferred(chosen)
        return attempt.progress[0] > 0 and attempt.work <= most

    def _all(self, chosen: Sizes) -> dict[str, int]:
        return assumed_sizes(self.made_up, {**self.stated, **chosen})

    def _inferred(self, chosen: Sizes) -> Attempt:
        """An attempt that is not run."""
        attempt = Attempt(sizes := self._all(chosen))
        for argument in self.made_up:
            if _elements(argument.type, sizes) > MAX_ELEMENTS:
                message = f"a tensor of type {argument.type} is too large to be made up"
                attempt.error = Error("IRC102", message, argument.where)
                return attempt
        self._graph.infer(attempt, {**self.stated, **sizes})
        return attempt

    def attempt(self, chosen: Sizes, seed: int, style: Style, limit: float = math.inf) -> Attempt:
        """Try one choice of sizes; it is not run if that takes more work than ``limit``."""
        attempt = self._inferred(chosen)
        if attempt.error is not None and attempt.error.code == "IRC102":
            seeded_inputs(self.made_up, seed, attempt.sizes)  # says it better, if it cannot be made up at all
        if attempt.progress[0] > 0 and attempt.work <= limit:
            self._run(attempt, seed, style)
        return attempt

    def _run(self, attempt: Attempt, seed: int, style: Style) -> None:
        """Run the model on inputs of these sizes."""
        feeds = seeded_inputs(self.made_up, seed, attempt.sizes, attempt.domains, style)
        keeps_state = self.model.state.changes
        model = CompiledModel(self.model.module) if keeps_state else self.model
        results = None
        try:
            results = model.run({**feeds, **self.given}, limits=self.limits)
        except Error as error:
            if error.code not in LIMIT_CODES:
                attempt.error, attempt.progress = error, (1, 0 if keeps_state else self._reached(feeds))
                return
        attempt.error, attempt.progress = None, (2, 0)
        attempt.made = Made(feeds, attempt.sizes, None if keeps_state else results)

    def _reached(self, feeds: Mapping[str, Any]) -> int:
        """How many nodes run on inputs that the model does not accept."""
        if self.limits is not None:  # a run has one observer
            return 0
        steps = _Steps(self.model.graph)
        with suppress(Error):
            self.model.execute({**feeds, **self.given}, profiler=steps, held=Held(keys=GrowingKeys()))
        return steps.reached

    def _better(self, attempt: Attempt, seed: int, style: Style) -> Attempt | None:
        """An attempt that comes farther than ``attempt``: the first that succeeds, else the farthest."""
        best: Attempt | None = None
        for chosen in self._moves({name: attempt.sizes[name] for name in self.free}):
            key = (seed, *chosen.values())
            if key in self._tried or self._too_large(chosen):
                continue
            if self._inferences <= 0 or self._runs <= 0:
                break
            self._inferences -= 1
            limit = MOST_WORK if best is not None or attempt.progress[0] else 4 * MOST_WORK
            found = self.attempt(chosen, seed, style, limit)
            self._runs -= found.progress[0] > 0
            self._tried[key] = found
            if found.made is not None:
                return found
            if found.progress > (best or attempt).progress:
                best = found
        return best

    def _moves(self, sizes: dict[str, int]) -> Iterator[dict[str, int]]:
        """Other sizes: of single names, of the names of one input together, of all; likely ones first."""
        sums = {a + b for a in sizes.values() for b in sizes.values()}
        order = (*dict.fromkeys(sizes.values()), *FIRST, *self._graph.numbers, *sorted(sums), *COMMON)
        groups = self._groups()
        for size in dict.fromkeys(order):
            for group in groups:
                moved = {**sizes, **dict.fromkeys(group, size)}
                if moved != sizes:
                    yield moved

    def _too_large(self, chosen: Sizes) -> bool:
        sizes = self._all(chosen)
        return any(_elements(argument.type, sizes) > MOST_ELEMENTS for argument in self.made_up)

    def _groups(self) -> list[tuple[str, ...]]:
        free = frozenset(self.free)
        groups: dict[tuple[str, ...], None] = dict.fromkeys((name,) for name in self.free)
        for argument in self.made_up:
            shape = argument.type.shape or ()
            names = [d for d in shape if isinstance(d, str) and d in free]
            groups.setdefault(tuple(d for d in shape[1:] if isinstance(d, str) and d in free))
            groups.setdefault(tuple(names))
        groups.setdefault(tuple(self.free))
        return [group for group in groups if group]


def make_or_explain(fitting: Fitting, seed: int, wanted: Sizes, style: Style) -> Made:
    """What `Fitting.make` makes of sizes for all names; its errors say what was assumed and what helps."""
    chosen = {name: wanted[name] for name in fitting.free}
    try:
        return fitting.make(seed, chosen, style)
    except Error as error:
        if error.code == "IRC102" or not chosen:
            raise
        tried = f"{assumption(chosen)}: no other sizes that were tried are accepted, give --dim, --shape or --input"
        raise Error(error.code, f"{error.message}; {tried}", error.where) from error


class _Retyped:
    """A copy of a graph whose types are inferred for other sizes again and again."""

    def __init__(self, graph: Graph, inputs: Iterable[Argument]) -> None:
        self.graph = graph.copy()
        types = {argument.name: argument.type for argument in inputs}
        for value in self.graph.inputs:
            value.type = types.get(value.name, value.type)
        self._before: list[tuple[Value, Type]] = [(value, value.type) for value in self.graph.values()]
        self.size = sum(1 for _ in self.graph.walk())
        self.numbers = _sizes_of_weights(self.graph)

    def infer(self, attempt: Attempt, sizes: Sizes) -> None:
        """Infer types with ``sizes``; note in ``attempt`` how far that came, input domains and work."""
        for value, type in self._before:
            value.type = _with_sizes(type, sizes)
        inference = Inference(self.graph)
        reached = 0
        try:
            for node in self.graph.nodes:
                inference.infer_node(node)
                reached += 1
        except Error as error:
            attempt.error, attempt.progress = error, (0, reached)
            return
        attempt.progress, attempt.domains = (1, 0), domains(self.graph)
        attempt.work = sum(map(_work, self.graph.walk()))


def _with_sizes(type: Type, sizes: Sizes) -> Type:
    """``type``, if it is that of a tensor, with numbers for names."""
    if not isinstance(type, TensorType) or not type.shape or not any(isinstance(d, str) for d in type.shape):
        return type
    return TensorType(type.dtype, tuple(sizes.get(d, d) if isinstance(d, str) else d for d in type.shape))


def _elements(type: Type, sizes: Sizes) -> int:
    shape = type.shape or ()
    return math.prod(d if isinstance(d, int) else sizes.get(d, 1) if isinstance(d, str) else 1 for d in shape)


def _work(node: Node) -> int:
    """How many products and elements ``node`` computes, about; unknown sizes count 1."""
    if node.kind == CONSTANT:
        return 0
    made = sum(_elements(value.type, {}) for value in node.outputs)
    if record(node.kind).macs is None or len(node.inputs) < 2:
        return made
    operand = node.inputs[1].type.shape or ()
    known = [d for d in operand if isinstance(d, int)]
    if "auto_pad" in record(node.kind).attributes:  # windows
        return made * math.prod(known[1:])
    return made * (known[-2] if len(known) > 1 else 1)


def _sizes_of_weights(graph: Graph, most: int = 24) -> list[int]:
    """Sizes of constants and of declared inputs: an open size often has to be one of them."""
    values = [*graph.inputs, *(value for node in graph.nodes if node.kind == CONSTANT for value in node.outputs)]
    found = {d for value in values for d in value.type.shape or () if isinstance(d, int) and 1 < d < 2**16}
    return sorted(found)[:most]
