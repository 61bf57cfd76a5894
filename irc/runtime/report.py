"""The report of a compilation as plain data, and the bytes that running takes, from types alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from itertools import accumulate
from types import UnionType
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args, get_origin, get_type_hints

from irc.alias import AliasDb, Kind
from irc.alias.location_sets import members
from irc.ir import CONSTANT, MAX_SIZE, Graph, Node, Value
from irc.ir.types import PrimType
from irc.support.lazy import provided
from irc.support.remarks import PassRun, Remark


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
        self._deferred: dict[str, Callable[[Report], None]] = {}

    def defer(self, fill: Callable[[Report], None], *names: str) -> None:
        """Let ``fill`` set the attributes ``names`` when one of them is first read: most are never.

        Until then, the report keeps alive what ``fill`` refers to.
        """
        for name in names:
            del self.__dict__[name]
            self._deferred[name] = fill

    def __getstate__(self) -> dict[str, Any]:
        for name in list(self._deferred):  # a copy does not compute what only the original was to
            getattr(self, name)
        return {**self.__dict__, "_deferred": {}}

    if not TYPE_CHECKING:  # it would have any attribute

        def __getattr__(self, name: str) -> Any:
            fill = self.__dict__.get("_deferred", {}).get(name)
            if fill is not None:
                fill(self)
                for each in [each for each, other in list(self._deferred.items()) if other is fill]:
                    self._deferred.pop(each, None)  # with the graphs that it refers to
            if name not in self.__dict__:  # nor has another thread filled it meanwhile
                raise AttributeError(f"a report has no {name}")
            return self.__dict__[name]

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists, strings and numbers, ready for JSON."""
        return asdict(self)

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

    def _repr_html_(self) -> str:
        return provided("report-text").html(self)

    def __str__(self) -> str:
        return provided("report-text").at_a_glance(self)


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
            locations = members(self._db.location_set(value))
            if any(map(self._places, locations)):  # it may be somewhere other than in anonymous unknown memory
                places = [place for location in new(value) for place in self._places(location)]
            else:
                places = [x for x in locations if self._db.describe(x).kind is not Kind.CONSTANT]
            for place in places:
                found.setdefault(place, value)
        return found

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
