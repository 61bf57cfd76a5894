"""Where results lie in one piece of memory, the *arena*, for runs whose shapes are known.

A watched run tells the shapes. Results whose shapes are decided by the inputs'
shapes (`static_shapes`) then get places in an arena before the
next such run. Two results may share a place if their live ranges do not overlap, and
an in-place operator uses its operand's place. Live ranges are those of storage
classes (`irc.runtime.storage`), so a view keeps the memory it shows alive.
What outputs may show has no place: it must outlive the run.

Places are found largest first, each in the smallest gap that holds it, which
comes close to the lower bound, the most bytes that are alive at one time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.alias.classes import FOREIGN
from irc.ir.functions import inner_graph
from irc.ir.graph import Graph
from irc.ir.kinds import CONSTANT
from irc.ir.limits import MAX_SIZE
from irc.ir.types import TensorType
from irc.ops.pointwise import overwritable
from irc.ops.shape_operands import NOT_DETERMINED, ONLY_SHAPES, shape_operands
from irc.runtime.array_memory import aligned
from irc.runtime.execution import Watch
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Value
    from irc.runtime.execution import Frame, Slots
    from irc.runtime.storage import Storage


def own_groups(graph: Graph) -> dict[Node, Graph]:
    """The fusion groups in the top block of ``graph`` that share their subgraph with no other node."""
    users = Counter(map(inner_graph, graph.walk()))
    groups = ((node, inner_graph(node)) for node in graph.block.nodes)
    return {node: group for node, group in groups if group is not None and users[group] == 1}


def static_shapes(graph: Graph, groups: Mapping[Node, Graph], written: Container[Value]) -> set[Value]:
    """The values of the top block of ``graph`` and of its ``groups`` whose shapes the shapes of its inputs decide.

    Args:
        graph: the graph.
        groups: fusion groups of its top block, with their subgraphs.
        written: values whose contents something may change.
    """
    shapes: set[Value] = set(graph.inputs)  # the values of which these are decided
    contents: set[Value] = set()

    def are_decided(values: Iterable[Value]) -> bool:
        return all(value in contents and value not in written for value in values)

    def follow(inner: Graph) -> None:
        for node in inner.block.nodes:
            deciding = shape_operands(node.kind)
            if node in groups:
                group = groups[node]
                for known in (shapes, contents):
                    known.update(inside for given, inside in zip(node.inputs, group.inputs) if given in known)
                follow(group)
                for known in (shapes, contents):
                    known.update(result for result, inside in zip(node.outputs, group.outputs) if inside in known)
            elif node.kind == CONSTANT:
                shapes.update(node.outputs)
                contents.update(node.outputs)
            elif deciding is not None and shapes.issuperset(node.inputs):
                if not are_decided(value for i, value in enumerate(node.inputs) if i in deciding):
                    continue
                shapes.update(node.outputs)
                if node.kind in ONLY_SHAPES or (node.kind not in NOT_DETERMINED and are_decided(node.inputs)):
                    contents.update(node.outputs)

    follow(graph)
    return shapes


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
        return math.prod(self.shape) * self.dtype.itemsize


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


@dataclass
class MemoryPlan:
    """The places of one kind of run.

    Attributes:
        places: in no special order.
        place_of: for each value that has one, its index.
        nbytes: the size of the arena.
        bound: the most bytes in places that are in use at one time; no arena can be smaller.
        over: the values that are made over an operand.
        turns: when each node of the top block, and each member of its groups, runs.
        in_use: the bytes of results in places that are in use at each turn, without rounding.
    """

    places: list[Place]
    place_of: dict[Value, int]
    nbytes: int
    bound: int
    over: frozenset[Value]
    turns: Mapping[Node, int]
    in_use: list[int]


@dataclass(eq=False, slots=True)
class _Buffer:
    """Memory for a chain of values, each made in place over the one before.

    Attributes:
        form: the form of all of them.
        latest: the value that is in it.
        start: the turn of the first.
        end: the last turn in which one is in use.
        source: as of a `Place`.
    """

    form: Form
    latest: Value
    start: int
    end: int
    source: int | None = None


class Planner:
    """Plans the memory of runs of one graph.

    Args:
        graph: the graph.
        storage: which of its values are one memory.
        placeable: the results whose kernels can be given the arrays for them.
        compiled: the fusion groups that are one kernel. The members of others are steps like all others.

    Attributes:
        static: the values whose shapes the shapes of the inputs decide.
    """

    def __init__(
        self, graph: Graph, storage: Storage, placeable: Container[Value], compiled: Collection[Node] = ()
    ) -> None:
        self._storage = storage
        self._inputs = graph.inputs
        groups = own_groups(graph)
        self.static = static_shapes(graph, groups, storage.written)
        self._groups = {node: group for node, group in groups.items() if node not in compiled}
        order = list(enumerate(self._in_order(graph), 1))
        self._turns = {node: turn for turn, node in order if node not in self._groups}
        lasting = [value for node in storage.lasting for value in node.outputs]
        self._kept = {FOREIGN, *map(storage.of, lasting)}.union(*map(storage.shown, graph.outputs))
        self._same: dict[Value, Value] = {}  # inner and outer values of groups
        for node, group in self._groups.items():
            self._same.update(zip(group.inputs, node.inputs))
            self._same.update(zip(node.outputs, group.outputs))
        self._last: dict[int, int] = {}  # class -> the turn of its last use
        for turn, node in order:
            for value in self._touched(node):
                self._last.update(dict.fromkeys(storage.shown(value), turn))
        self._placeable = [
            (turn, node, value)
            for node, turn in self._turns.items()
            for value in node.outputs
            if value in self.static and value in placeable and storage.of(value) not in self._kept
        ]

    def plan(self, forms: Mapping[Value, Form], donated: Collection[int] = ()) -> MemoryPlan:
        """The plan for runs in which values have ``forms``.

        Args:
            forms: of all values that may get a place.
            donated: positions of inputs whose memory may be taken.
        """
        made: dict[Value, _Buffer] = {}
        over: list[Value] = []
        held = self._donated(forms, donated)  # what is in a buffer
        for turn, node, value in self._placeable:
            form = forms.get(value)
            if form is None:
                continue
            buffer = self._dying(node, form, turn, held)
            if buffer is None:
                buffer = _Buffer(form, value, turn, turn)
            else:
                over.append(value)
            buffer.latest, buffer.end = value, self._last[self._storage.of(value)]
            made[value] = held[value] = buffer
        return _pack(made, over, self._turns)

    def _donated(self, forms: Mapping[Value, Form], donated: Collection[int]) -> dict[Value, _Buffer]:
        """The buffers that the inputs at the positions ``donated`` bring."""
        values = {self._inputs[i]: i for i in donated}
        free = [v for v in values if v in forms and self._storage.of(v) not in self._kept]
        return {value: _Buffer(forms[value], value, 0, 0, values[value]) for value in free}

    def _dying(self, node: Node, form: Form, turn: int, held: Mapping[Value, _Buffer]) -> _Buffer | None:
        """The buffer that ``node`` may write its result over: of the first operand that it is the last to read."""
        count = overwritable(node)
        shown = [c for v in node.inputs for c in self._storage.shown(v)] if count else []
        for value in map(self._resolved, node.inputs[:count]):
            buffer, storage = held.get(value), self._storage.of(value)
            if buffer is None or buffer.form != form or buffer.latest is not value:
                continue  # in none, or another result has been written over it
            if self._last[storage] <= turn and shown.count(storage) <= 1:
                return buffer
        return None

    def _in_order(self, graph: Graph) -> Iterator[Node]:
        """The nodes of the top block in the order in which they run; members of a group, then the group."""
        for node in graph.block.nodes:
            if node in self._groups:
                yield from (n for n in self._groups[node].block.nodes if n.kind != CONSTANT)
            yield node

    def _touched(self, node: Node) -> Iterable[Value]:
        """What ``node`` makes, and what it and its blocks read; of a group only the results, as members have turns."""
        return node.outputs if node in self._groups else (*node.outputs, *node.inputs, *node.captures())

    def _resolved(self, value: Value) -> Value:
        """The value that ``value`` stands for across the boundary of a group."""
        while value in self._same:
            value = self._same[value]
        return value


def _pack(made: Mapping[Value, _Buffer], over: Iterable[Value], turns: Mapping[Node, int]) -> MemoryPlan:
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
    taken = [b for b in buffers if b.source is not None]
    index = {b: i for i, b in enumerate([*own, *taken])}
    places = [
        Place(b.form, int(offset), b.source) for b, offset in zip([*own, *taken], [*offsets, *(0 for _ in taken)])
    ]
    place_of = {v: index[b] for v, b in made.items() if b in index}
    return MemoryPlan(
        places=places,
        place_of=place_of,
        nbytes=int((offsets + sizes).max(initial=0)),
        bound=int(_in_use(starts, ends, sizes).max()),
        over=frozenset(place_of.keys() & over),
        turns=turns,
        in_use=_in_use(starts, ends, np.array([b.form.exact_bytes for b in own], np.int64)).tolist(),
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
    starts: np.ndarray[Any, Any], ends: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any]
) -> np.ndarray[Any, Any]:
    """The bytes in use at each turn, from 0 on."""
    change = np.zeros(int(ends.max(initial=0)) + 2, np.int64)
    np.add.at(change, starts, sizes)
    np.subtract.at(change, ends + 1, sizes)
    return np.cumsum(change)
