"""Where results lie in one piece of memory, the *arena*, for runs whose shapes are known.

A watched run tells the shapes. Results whose shapes are decided by the inputs'
shapes (`irc.runtime.memory.fixed_shapes`) then get places in an arena before the
next such run. Two results may share a place if their live ranges do not overlap, and
an in-place operator uses its operand's place. Live ranges are those of storage
classes (`irc.runtime.memory.storage`), so a view keeps the memory it shows alive.
What outputs may show has no place: it must outlive the run.

Places are found largest first, each in the smallest gap that holds it, which
comes close to the lower bound, the most bytes that are alive at one time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.alias.classes import FOREIGN
from irc.ir.functions import inner_graph
from irc.ir.kinds import CONSTANT
from irc.ir.limits import MAX_SIZE
from irc.ir.ops.pointwise import overwritable
from irc.ir.types import TensorType
from irc.runtime.execution import Watch
from irc.runtime.memory.fixed_shapes import fixed_shapes, own_groups
from irc.runtime.memory.raw import aligned
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Value
    from irc.runtime.execution import Frame, Slots
    from irc.runtime.memory.storage import Storage

MOST = 1 << 12
"""Places in one plan, the largest; finding them takes a time that grows with the square of their number."""


class Form(NamedTuple):
    """The properties of an array that its place depends on; a place holds arrays of one form."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Rounded up to the alignment."""
        return aligned(self.exact_bytes)

    @property
    def exact_bytes(self) -> int:
        """What an array's ``nbytes`` says."""
        size = self.dtype.itemsize
        for n in self.shape:
            size *= n
        return size


class FormRecorder(Watch):
    """Watches a run for the forms of the values that it makes.

    Attributes:
        forms: by value; for a block that runs several times, those of its last run.
    """

    def __init__(self) -> None:
        self.forms: dict[Value, Form] = {}

    def after(self, node: Node, frame: Frame, outs: Slots) -> None:
        for value, slot in zip(node.outputs, outs):
            array = frame[slot]
            if is_array(array) and not array.dtype.hasobject:
                self.forms[value] = Form(array.shape, array.dtype)


def stated_forms(graph: Graph) -> dict[Value, Form] | None:
    """The forms of the values of the top block and of its fusion groups by their types.

    None if one is not known, or if they are too large for any run.
    """
    forms: dict[Value, Form] = {}
    blocks = [graph.block, *(group.block for group in own_groups(graph).values())]
    for value in (v for block in blocks for v in (*block.params, *(v for n in block.nodes for v in n.outputs))):
        type = value.type
        if isinstance(type, TensorType):
            if type.dtype is None or type.static_shape is None:
                return None
            if not type.dtype.numpy.hasobject:
                forms[value] = Form(type.static_shape, type.dtype.numpy)
    return forms if sum(form.nbytes for form in forms.values()) <= MAX_SIZE else None


class Place(NamedTuple):
    """Memory for results.

    Attributes:
        form: of the arrays in it.
        offset: where in the arena it begins, in bytes.
        source: the position of the donated input whose memory it is instead, or None.
    """

    form: Form
    offset: int
    source: int | None = None


class _Span(NamedTuple):
    """A place of the arena: the turn of its first value, the bytes of an array in it, and the classes of its values."""

    start: int
    nbytes: int
    classes: set[int]


@dataclass
class Lifetimes:
    """When the places of a plan are in use.

    Attributes:
        turns: when each node of the top block, and each member of its groups, runs.
        last: the turns in which values are read for the last time, or made.
        storage: which values may be one memory.
        spans: the places.
    """

    turns: Mapping[Node, int]
    last: Mapping[Value, int]
    storage: Storage
    spans: Collection[_Span]

    def in_use(self, elsewhere: Container[Value]) -> list[int]:
        """The bytes of results in places that something still needs at each turn, without rounding.

        Args:
            elsewhere: values that a run has found to lie outside of the arena, though they might have been views.
        """
        ends: dict[int, int] = {}
        for value, turn in self.last.items():
            if value not in elsewhere:
                for storage in self.storage.shown(value):
                    ends[storage] = max(turn, ends.get(storage, 0))
        starts = np.array([span.start for span in self.spans], np.int64)
        last = np.array([max([s.start, *(ends.get(c, 0) for c in s.classes)]) for s in self.spans], np.int64)
        sizes = np.array([span.nbytes for span in self.spans], np.int64)
        return _in_use(starts, last, sizes, max([0, *self.turns.values()])).tolist()


@dataclass
class MemoryPlan:
    """The places of one kind of run.

    Attributes:
        places: in no special order.
        place_of: for each value that has one, its index.
        nbytes: the size of the arena.
        bound: the most bytes in places that are in use at one time; no arena can be smaller.
        over: the values that are made over an operand.
        lifetimes: when the places are in use.
    """

    places: list[Place]
    place_of: dict[Value, int]
    nbytes: int
    bound: int
    over: frozenset[Value]
    lifetimes: Lifetimes | None = None


class _Buffer:
    """Memory for a chain of values, each made in place over the one before.

    Attributes:
        form: the form of all of them.
        latest: the value that is in it.
        start: the turn of the first.
        end: the last turn in which one is in use.
        source: as of a `Place`.
    """

    __slots__ = ("end", "form", "latest", "source", "start")

    def __init__(self, form: Form, first: Value, start: int, end: int, source: int | None = None) -> None:
        self.form = form
        self.latest = first
        self.start = start
        self.end = end
        self.source = source


class Planner:
    """Plans the memory of runs of one graph.

    Args:
        graph: the graph.
        storage: which of its values are one memory.
        placeable: the results whose kernels can be given the arrays for them.
        compiled: the fusion groups that are one kernel. The members of others are steps like all others.

    Attributes:
        fixed: the values whose shapes the shapes of the inputs decide.
    """

    def __init__(
        self, graph: Graph, storage: Storage, placeable: Container[Value], compiled: Collection[Node] = ()
    ) -> None:
        self._storage = storage
        self._inputs = graph.inputs
        self._placeable = placeable
        groups = own_groups(graph)
        self.fixed = fixed_shapes(graph, groups, storage.written)
        self._groups = {node: group for node, group in groups.items() if node not in compiled}
        self._nodes = list(self._in_order(graph))  # a node's turn is its index, from 1 on
        lasting = [value for node in storage.lasting for value in node.outputs]
        self._kept = {FOREIGN, *map(storage.of, lasting)}.union(*map(storage.shown, graph.outputs))
        self._same: dict[Value, Value] = {}  # inner and outer values of groups
        for node, group in self._groups.items():
            self._same.update(zip(group.inputs, node.inputs))
            self._same.update(zip(node.outputs, group.outputs))
        self._last: dict[int, int] = {}  # class -> the turn of its last use
        self._last_turns: dict[Value, int] = {}
        for turn, node in enumerate(self._nodes, 1):
            for value in self._touched(node):
                self._last.update(dict.fromkeys(storage.shown(value), turn))
                self._last_turns[self._resolved(value)] = turn

    def plan(self, forms: Mapping[Value, Form], donated: Collection[int] = ()) -> MemoryPlan:
        """The plan for runs in which values have ``forms``.

        Args:
            forms: of all values that may get a place.
            donated: positions of inputs whose memory may be taken.
        """
        of = self._donated(forms, donated)
        made: dict[Value, _Buffer] = {}
        for turn, node in enumerate(self._nodes, 1):
            read: defaultdict[Form, list[Value]] = defaultdict(list)
            for value in self._read_last(node, turn, of):
                read[of[value].form].append(value)
            form = self._form(node, forms)
            if form is None:
                continue
            value = node.output
            buffer = self._dying(node, read[form], of)
            if buffer is None:
                buffer = _Buffer(form, value, turn, turn)
            else:
                buffer.latest = value
            buffer.end = self._last[self._storage.of(value)]
            made[value] = of[value] = buffer
        plan = _pack(made)
        spans: dict[int, _Span] = {}
        for value, number in plan.place_of.items():
            place = plan.places[number]
            if place.source is None:
                span = spans.setdefault(number, _Span(made[value].start, place.form.exact_bytes, set()))
                span.classes.add(self._storage.of(value))
        turns = {node: turn for turn, node in enumerate(self._nodes, 1) if node not in self._groups}
        plan.lifetimes = Lifetimes(turns, self._last_turns, self._storage, spans.values())
        return plan

    def _donated(self, forms: Mapping[Value, Form], donated: Collection[int]) -> dict[Value, _Buffer]:
        """The buffers that the inputs at the positions ``donated`` bring."""
        values = {self._inputs[i]: i for i in donated}
        free = [v for v in values if v in forms and self._storage.of(v) not in self._kept]
        return {value: _Buffer(forms[value], value, 0, 0, values[value]) for value in free}

    def _read_last(self, node: Node, turn: int, of: Mapping[Value, _Buffer]) -> Iterator[Value]:
        """What is in a buffer and ``node`` reads for the last time, and may write over; the first operand last."""
        for value in map(self._resolved, reversed(node.inputs[: overwritable(node)])):
            if value in of and self._last[self._storage.of(value)] <= turn:
                yield value

    def _in_order(self, graph: Graph) -> Iterator[Node]:
        """The nodes of the top block in the order in which they run; members of a group, then the group."""
        for node in graph.block.nodes:
            if node in self._groups:
                yield from (n for n in self._groups[node].block.nodes if n.kind != CONSTANT)
            yield node

    def _touched(self, node: Node) -> Iterator[Value]:
        """What ``node`` and the nodes inside it read and make; of a group only the results: its nodes have turns."""
        yield from node.outputs
        if node in self._groups:
            return
        pending = [node]
        while pending:
            current = pending.pop()
            yield from current.inputs
            yield from current.outputs
            for block in current.blocks:
                yield from (*block.params, *block.returns)
                pending.extend(block.nodes)
            group = inner_graph(current)
            if group is not None:
                yield from group.inputs
                pending.extend(group.block.nodes)

    def _form(self, node: Node, forms: Mapping[Value, Form]) -> Form | None:
        """The form of the place for the result of ``node``; None if it is to have none."""
        if node in self._groups or len(node.outputs) != 1:
            return None
        if node.output not in self.fixed or node.output not in self._placeable:
            return None
        form = forms.get(node.output)
        if form is None or self._storage.of(node.output) in self._kept:
            return None
        return form

    def _dying(self, node: Node, read: list[Value], of: Mapping[Value, _Buffer]) -> _Buffer | None:
        """The buffer, of the last fit value in ``read``, that the result may overwrite; ``read`` is of one form."""
        if not overwritable(node):
            return None
        while read and of[read[-1]].latest is not read[-1]:
            read.pop()  # another result has been written over it
        classes = [c for v in node.inputs for c in self._storage.shown(v)]
        for value in reversed(read):
            if of[value].latest is value and classes.count(self._storage.of(value)) <= 1:
                return of[value]
        return None

    def _resolved(self, value: Value) -> Value:
        """The value that ``value`` stands for across the boundary of a group."""
        while value in self._same:
            value = self._same[value]
        return value


def _pack(made: Mapping[Value, _Buffer]) -> MemoryPlan:
    """Place the buffers in one arena, the largest first; of equally large ones, those alive longest first.

    Values are in the order in which they are made.
    """
    buffers = list(dict.fromkeys(made.values()))
    own = sorted((b for b in buffers if b.source is None), key=lambda b: (-b.form.nbytes, b.start - b.end))[:MOST]
    starts = np.array([b.start for b in own], np.int64)
    ends = np.array([b.end for b in own], np.int64)
    sizes = np.array([b.form.nbytes for b in own], np.int64)
    offsets = np.zeros(len(own), np.int64)
    for i in range(len(own)):
        at_once = np.flatnonzero((starts[:i] <= ends[i]) & (ends[:i] >= starts[i]))
        offsets[i] = _best_fit(offsets[at_once], sizes[at_once], sizes[i])
    index = {b: i for i, b in enumerate(own)}
    places = [Place(b.form, int(offset)) for b, offset in zip(own, offsets)]
    for b in buffers:
        if b.source is not None:
            index[b] = len(places)
            places.append(Place(b.form, 0, b.source))
    place_of = {v: index[b] for v, b in made.items() if b in index}
    begun = {index[b] for b in buffers if b.source is not None}
    over = frozenset([v for v, n in place_of.items() if n in begun or begun.add(n)])
    return MemoryPlan(
        places=places,
        place_of=place_of,
        nbytes=int((offsets + sizes).max(initial=0)),
        bound=int(_in_use(starts, ends, sizes, 0).max()),
        over=over,
    )


def _best_fit(offsets: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any], size: int) -> int:
    """The offset of the smallest gap that holds ``size`` between the buffers placed at ``offsets``."""
    order = np.argsort(offsets, kind="stable")
    begins, reached = offsets[order], np.maximum.accumulate((offsets + sizes)[order])
    gap_starts = np.concatenate([[0], reached])
    gaps = np.append(begins, np.iinfo(np.int64).max) - gap_starts
    gaps[gaps < size] = np.iinfo(np.int64).max
    return int(gap_starts[np.argmin(gaps)])


def _in_use(
    starts: np.ndarray[Any, Any], ends: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any], last: int
) -> np.ndarray[Any, Any]:
    """The bytes in use at each turn, up to the ``last`` at least."""
    turns = np.zeros(max(last, int(ends.max(initial=0))) + 2, np.int64)
    np.add.at(turns, starts, sizes)
    np.subtract.at(turns, ends + 1, sizes)
    return np.cumsum(turns)
