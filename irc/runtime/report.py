"""The report of a compilation as plain data, and the bytes that running takes, from types alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from html import escape
from itertools import accumulate
from textwrap import wrap
from types import UnionType
from typing import Any, NamedTuple, cast, get_args, get_origin, get_type_hints

from irc.alias import AliasDb, Kind
from irc.alias.location_sets import members
from irc.ir import Graph, Node
from irc.ir.kinds import CONSTANT
from irc.ir.limits import MAX_SIZE
from irc.ir.objects import tensors_of
from irc.ir.region_flow import with_subgraphs
from irc.ir.types import PrimType
from irc.ir.value import Value
from irc.support.formatting import amount, count, milliseconds, one_line, printable, scaled, shortened
from irc.support.remarks import NOT_FUSED, PassRun, Remark

MOST_GROUPS = 8
"""How many kinds of fusion groups are listed before the rest is summed up."""


@dataclass
class FusionGroup:
    """A fusion group: its first result's name ("" if it has none) and its operators, in order."""

    result: str
    operators: list[str]


@dataclass
class Memory:
    """Bytes that running the model takes.

    Attributes:
        weights: bytes of all distinct constants; a splat counts as one element.
        peak: most bytes of intermediate values alive at one time, counted once for values that share memory; None
            if shapes are not all known.
        arena: bytes of the memory in which the results get places that runs from the second on need not allocate; None
            if shapes are not all known.
        bound: how much of it is in use at most at one time: no arena could be smaller.
    """

    weights: int = 0
    peak: int | None = None
    arena: int | None = None
    bound: int | None = None


@dataclass
class Totals:
    """What a model takes, before or after compiling.

    Attributes:
        bytes: of its files; None where there are none.
        parameters: elements of all distinct constants.
        macs, flops: multiply-accumulates and operations of a run; `irc.tools.costs` counts them.
        uncounted: how many nodes are missing in these, as the sizes of their results are not known.
    """

    bytes: int | None = None
    parameters: int = 0
    macs: int = 0
    flops: int = 0
    uncounted: int = 0


@dataclass
class Report:
    """What compiling a model did.

    Attributes:
        name: the file or graph compiled.
        pipeline: the pass pipeline, as text.
        seconds: wall-clock seconds by stage: import, passes, lower, report.
        nodes_before, nodes_after: operators in the main graph's top block; a fusion group counts one, constants none.
        operators_before, operators_after: how often each operator occurs, nested blocks and groups' insides included.
            What is ``after`` is what was compiled; once ``irc compile`` has written an ONNX file, what that holds.
        before, after: files, parameters and operations, of the same models.
        sizes: named dimensions, and the sizes that operations are counted for.
        inputs, outputs: name and type of each.
        passes: the runs of passes, in order.
        stats: how often each pass did what, by ``"pass.key"``.
        groups: fusion groups.
        remarks: what passes left as it was, and why; `CompiledModel.remarks` has more.
        backend: what was asked for to compute fusion groups, where this was compiled; files do not say it.
        declined: fusion groups that run operator by operator, by the backend's reasons, and how many they are. What a
            backend only finds out in a run is added then.
        alias: facts of the alias analysis of the optimised graph.
        memory: bytes.
        fallbacks: operators that run on ``onnx.reference`` for want of a kernel of irc's own.
        notes: remarks for the user.
        count_costs: fills in ``before``, ``after`` and ``sizes``; called when they are first needed.
    """

    name: str = ""
    pipeline: str = ""
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    nodes_before: int = 0
    nodes_after: int = 0
    operators_before: dict[str, int] = field(default_factory=dict[str, int])
    operators_after: dict[str, int] = field(default_factory=dict[str, int])
    before: Totals = field(default_factory=Totals)
    after: Totals = field(default_factory=Totals)
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    inputs: list[str] = field(default_factory=list[str])
    outputs: list[str] = field(default_factory=list[str])
    passes: list[PassRun] = field(default_factory=list[PassRun])
    stats: dict[str, int] = field(default_factory=dict[str, int])
    groups: list[FusionGroup] = field(default_factory=list[FusionGroup])
    remarks: list[Remark] = field(default_factory=list[Remark])
    backend: str = ""
    declined: dict[str, int] = field(default_factory=dict[str, int])
    alias: dict[str, int] = field(default_factory=dict[str, int])
    memory: Memory = field(default_factory=Memory)
    fallbacks: dict[str, int] = field(default_factory=dict[str, int])
    notes: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.count_costs: Callable[[Report], None] | None = None

    def complete(self) -> Report:
        """The report itself, with what is only counted when it is needed."""
        counting, self.count_costs = self.count_costs, None
        if counting is not None:
            counting(self)
        return self

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers, ready for JSON."""
        return asdict(self.complete())

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Report:
        """The report that `to_dict` turned into ``data``; TypeError if ``data`` is not that of a report."""
        if isinstance(data, dict) and "refusals" in data:  # type: ignore[reportUnnecessaryIsInstance]  # older files
            data = {**data, "remarks": data["refusals"]}
        return _read(Report, data, "report")

    @property
    def refusals(self) -> list[Remark]:
        """The remarks, by their earlier name."""
        return self.remarks

    def rows(self) -> list[tuple[str, str]]:
        """The report as label and text, for people to read."""
        before, after = sum(self.operators_before.values()), sum(self.operators_after.values())
        runs = [
            f"{run.name} {milliseconds(run.seconds)} ms{'' if run.changed else ' (no change)'}" for run in self.passes
        ]
        rows = [
            ("model", self.name),
            ("operators", f"{before:,} before, {after:,} after"),
            ("nodes", f"{self.nodes_before:,} before, {self.nodes_after:,} after (a fusion group counts one)"),
            ("time", ", ".join(f"{stage} {milliseconds(seconds)} ms" for stage, seconds in self.seconds.items())),
            ("passes", "\n".join(runs)),
            ("fusion", self.fusion_text()),
            ("backend", self.backend_text()),
            ("memory", self.memory_text()),
            ("aliasing", self.alias_text()),
        ]
        if self.fallbacks:
            kinds = ", ".join(f"{kind} ({n})" for kind, n in self.fallbacks.items())
            rows.append(("slow", f"no kernel of irc's own, so onnx.reference computes them: {kinds}"))
        rows.append(("notes", "\n".join(self.notes)))
        return [(label, text) for label, text in rows if text]

    def backend_text(self) -> str:
        """What computes fusion groups, and why not where it does not."""
        reasons = [f"{count(n, 'group')} left to NumPy: {reason}" for reason, n in self.declined.items()]
        return "\n".join([self.backend, *reasons]) if self.backend else ""

    def fusion_text(self) -> str:
        """How much was fused, in a line, and a line for each of the most frequent kinds of groups."""
        inside = sum(len(group.operators) for group in self.groups)
        groups, operators = count(len(self.groups), "group"), count(inside, "operator")
        kinds = Counter(" ".join(op.partition("::")[2] for op in group.operators) for group in self.groups)
        lines = [f"{n:>5,} x {operators}" for operators, n in kinds.most_common(MOST_GROUPS)]
        if len(kinds) > MOST_GROUPS:
            lines.append(f"      and {count(len(kinds) - MOST_GROUPS, 'other kind')}")
        return "\n".join([f"{groups} with {operators}; {count(self._rejected(), 'fusion')} rejected", *lines])

    def memory_text(self) -> str:
        """What running takes, in a line, and one for planned memory if that is known."""
        peak = self.memory.peak
        values = "of unknown size: not all shapes are known" if peak is None else f"at most {peak / 1e6:,.1f} MB"
        text = f"weights {self.memory.weights / 1e6:,.1f} MB, intermediate values {values}"
        arena, bound = self.memory.arena, self.memory.bound
        if arena is None or bound is None:
            return text
        return f"{text}\nplanned: {arena / 1e6:,.1f} MB for results, of which at least {bound / 1e6:,.1f} MB are needed"

    def alias_text(self) -> str:
        """Facts of the alias analysis, in a line."""
        return ", ".join(count(n, what.removesuffix("s")) for what, n in self.alias.items())

    def _repr_html_(self) -> str:
        rows = ((label, escape(printable(text)).replace("\n", "<br/>")) for label, text in self.rows())
        cells = "".join(f'<tr><th>{label}</th><td style="text-align:left">{text}</td></tr>' for label, text in rows)
        return f"<table>{cells}</table>"

    def _rejected(self) -> int:
        return sum(remark.what == NOT_FUSED for remark in self.remarks)

    def __str__(self) -> str:
        return self.at_a_glance()

    def at_a_glance(self, width: int = 80) -> str:
        """The report in at most 25 lines of ``width`` characters, at least 40; `rows` has the rest."""
        return "\n".join(_Glance(self.complete(), width).lines())


HEIGHT = 25
"""Lines of a report at a glance."""

MOST_LISTED = 3
"""How many inputs it names, and outputs; if there are more, one less."""

MOST_NOTES = 4
"""How many lines of notes it has."""


class _Glance:
    """A report at a glance: what changed from before to after, what goes in and out, and the main facts."""

    def __init__(self, report: Report, width: int) -> None:
        self._report = report
        self._width = width
        self._label = min(20, width - 26)

    def lines(self) -> list[str]:
        """At most `HEIGHT` lines: operators that changed take those that nothing else needs."""
        above, below = self._above(), self._below()
        return [*above, *self._changed(HEIGHT - len(above) - len(below)), *below]

    def _above(self) -> list[str]:
        report, before, after = self._report, self._report.before, self._report.after
        lines = [self._line("model", report.name), self._compared("", ["before", "after"])]
        if before.bytes is not None or after.bytes is not None:
            lines.append(
                self._compared("files", ["-" if t.bytes is None else amount(t.bytes) for t in (before, after)])
            )
        lines.append(self._compared("parameters", [_digits(t.parameters) for t in (before, after)]))
        notes = ["at least"] if before.uncounted or after.uncounted else []
        notes += [f"{name}={size}" for name, size in report.sizes.items()]
        lines.append(self._compared("FLOPs", [scaled(t.flops) for t in (before, after)], ", ".join(notes)))
        counts = report.operators_before, report.operators_after
        return [*lines, self._compared("operators", [_digits(sum(each.values())) for each in counts])]

    def _changed(self, most: int) -> list[str]:
        """A line for each operator whose number changed, and one for all others."""
        before, after = Counter(self._report.operators_before), Counter(self._report.operators_after)
        kinds = sorted(before | after, key=lambda kind: (-abs(before[kind] - after[kind]), kind))
        named = [kind for kind in kinds if before[kind] != after[kind]][: most - 1]
        rows = [(kind.removeprefix("onnx::"), [kind]) for kind in named]
        if rest := kinds[len(named) :]:
            rows.append((count(len(rest), "other kind"), rest))
        sums = ([sum(counts[kind] for kind in each) for counts in (before, after)] for _, each in rows)
        return [self._compared(f"  {label}", [*map(_digits, each)]) for (label, _), each in zip(rows, sums)]

    def _below(self) -> list[str]:
        report = self._report
        nodes = [_digits(n) for n in (report.nodes_before, report.nodes_after)]
        lines = [self._compared("nodes", nodes, "a fusion group counts as one" if report.groups else "")]
        for label, names in (("inputs", report.inputs), ("outputs", report.outputs)):
            shown = names if len(names) <= MOST_LISTED else [*names[: MOST_LISTED - 1], f"... {len(names)} in all"]
            lines += self._labelled(label, shown)
        rejected = " rejected (see --explain)" if any(r.what == NOT_FUSED for r in report.remarks) else " rejected"
        fusion = report.fusion_text().split("\n")[0].partition(" fusion")[0] + rejected
        seconds = ", ".join(f"{stage} {milliseconds(s)} ms" for stage, s in report.seconds.items())
        slow = f"onnx.reference computes {', '.join(report.fallbacks)}" if report.fallbacks else ""
        for label, text in (("fusion", fusion), ("memory", self._memory()), ("time", seconds), ("slow", slow)):
            lines += self._labelled(label, [text] if text else [])
        notes = [line for note in report.notes for line in wrap(one_line(note), self._width - self._label)]
        if len(notes) > MOST_NOTES:  # the last ones say what was checked and written
            left = len(report.notes) - MOST_NOTES
            notes = [f"... {left + 1} others", *report.notes[1 - MOST_NOTES :]] if left > 0 else report.notes
        return [*lines, *self._labelled("notes", notes)]

    def _memory(self) -> str:
        memory = self._report.memory
        values = "of unknown size" if memory.peak is None else f"at most {amount(memory.peak)}"
        planned = "" if memory.arena is None else f", planned {amount(memory.arena)}"
        return f"weights {amount(memory.weights)}, values {values}{planned}"

    def _labelled(self, label: str, texts: Sequence[str]) -> list[str]:
        return [self._line("" if i else label, text) for i, text in enumerate(texts)]

    def _line(self, label: str, text: str) -> str:
        return shortened(f"{label:<{self._label}}{one_line(text)}".rstrip(), self._width)

    def _compared(self, label: str, numbers: Sequence[str], more: str = "") -> str:
        columns = "".join(f"{number:>13}" for number in numbers)
        name = shortened(one_line(label), self._label)
        return shortened(f"{name:<{self._label}}{columns}{f'  ({one_line(more)})' if more else ''}", self._width)


def _digits(n: int) -> str:
    return f"{n:,}" if n < 10**9 else scaled(n)


def _read(type: Any, data: Any, where: str) -> Any:
    """JSON ``data`` as a value of ``type``: a dataclass, dict, list, scalar or union.

    Raises:
        TypeError: ``data`` is not of that type.
    """
    parameters = get_args(type)
    kind = get_origin(type) or type
    if kind is UnionType:
        type = kind = data.__class__ if data.__class__ in parameters else parameters[0]
    if is_dataclass(type) and isinstance(data, dict):
        known = get_type_hints(kind).items()  # other versions of irc may report other things
        return kind(**{name: _read(of, data[name], f"{where}.{name}") for name, of in known if name in data})
    if kind is dict and isinstance(data, dict):
        items = cast("dict[str, Any]", data).items()
        return {key: _read(parameters[1], value, f"{where}[{key!r}]") for key, value in items}
    if kind is list and isinstance(data, list):
        return [_read(parameters[0], item, f"{where}[{i}]") for i, item in enumerate(cast("list[Any]", data))]
    fits = data.__class__ is kind or (kind is float and data.__class__ is int)
    if not fits or (data.__class__ is int and not -(2**63) <= data < 2**63):
        raise TypeError(f"{where} is not of type {kind.__name__}")
    return data


def weight_bytes(graph: Graph) -> int:
    """Bytes of the distinct constant tensors in ``graph``, nested blocks and fusion groups included."""
    tensors = {id(tensor): tensor for node in with_subgraphs(graph) for tensor in tensors_of(node)}
    return sum(t.dtype.numpy.itemsize if t.is_splat else t.nbytes for t in tensors.values())


def peak_bytes(graph: Graph, db: AliasDb) -> int | None:
    """Peak bytes between two nodes of the top block; None if a shape is unknown."""
    peak = memory_peak(graph, db)
    return None if peak is None else peak.bytes


class Peak(NamedTuple):
    """Where most memory is in use.

    Attributes:
        bytes: of the values alive there.
        node: the first node that runs with so many; the return node if there is no other.
        alive: a value for each piece of memory in use, and its bytes.
    """

    bytes: int
    node: Node
    alive: list[tuple[Value, int]]


def memory_peak(graph: Graph, db: AliasDb) -> Peak | None:
    """Where most bytes are alive between two nodes of the top block; None if a shape is unknown.

    Storage is counted by memory location: views are free, and a location lives
    as long as any value that may denote it. Constants are not counted, and
    neither is what nested blocks and kernels need while they run.
    """
    nodes = [*graph.nodes, graph.block.return_node]
    positions = {node: i for i, node in enumerate(nodes, 1)}
    lives: dict[Value, tuple[int, int, int]] = {}  # the turns at which it begins and ends, and the size
    for value in [*graph.inputs, *(v for node in nodes for v in node.outputs)]:
        if value.made_by(CONSTANT):
            continue
        born = 0 if value.node is None else positions[value.node]
        users = (user.ancestor_in(graph.block) for user in value.iter_users())
        died = max((positions[user] for user in users if user is not None), default=born)
        size = value_bytes(value)
        if size is None:
            return None
        lives[value] = born, died, size
    memory = _Memory(graph, db)
    first = memory.first_of_each(lives)
    last = memory.first_of_each(sorted(lives, key=lambda v: -lives[v][1]))
    largest = memory.first_of_each(sorted(lives, key=lambda v: -lives[v][2]))
    spans = [(lives[first[x]][0], lives[last[x]][1], value) for x, value in largest.items()]
    change = [0] * (len(nodes) + 2)
    for born, died, value in spans:
        change[born] += lives[value][2]
        change[died + 1] -= lives[value][2]
    totals = [*accumulate(change)]
    most = max(totals)
    turn = max(1, min(totals.index(most), len(nodes)))
    alive = [(value, lives[value][2]) for born, died, value in spans if born <= turn <= died and lives[value][2]]
    return Peak(most, nodes[turn - 1], alive) if most <= MAX_SIZE else None


class _Memory:
    """Which memory of a value counts: no constants; unknown memory only if there is no other.

    A borrowed input counts as a place of its own, though it is in unknown memory.
    """

    def __init__(self, graph: Graph, db: AliasDb) -> None:
        self._db = db
        self._borrowed: dict[int, list[Value]] = {}
        for value in graph.inputs:
            for x in members(db.location_set(value)):
                if db.is_unknown(x):
                    self._borrowed.setdefault(x, []).append(value)

    def first_of_each(self, values: Iterable[Value]) -> dict[int | Value, Value]:
        """Location, or borrowed input -> the first value that may be there."""
        found: dict[int | Value, Value] = {}
        new = self._db.sweep(contained=False)
        for value in values:
            if self._is_known(value):
                for location in new(value):
                    for place in self._places(location):
                        found.setdefault(place, value)
            else:
                for location in members(self._db.location_set(value)):
                    if self._db.describe(location).kind is not Kind.CONSTANT:
                        found.setdefault(location, value)
        return found

    def _is_known(self, value: Value) -> bool:
        """Whether ``value`` may be somewhere other than in anonymous unknown memory."""
        return any(self._places(x) for x in members(self._db.location_set(value)))

    def _places(self, location: int) -> Sequence[int | Value]:
        """The places that ``location`` stands for when the value is known."""
        kind = self._db.describe(location).kind
        if kind is Kind.UNKNOWN:
            return self._borrowed.get(location, ())
        return () if kind is Kind.CONSTANT else (location,)


def value_bytes(value: Value) -> int | None:
    """Bytes of a tensor value; 0 for numbers and strings, None if its shape or type is not known."""
    if isinstance(value.type, PrimType):
        return 0
    if value.type.dtype is None or value.type.static_shape is None:
        return None
    return math.prod(value.type.static_shape) * value.type.dtype.numpy.itemsize
