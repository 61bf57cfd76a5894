"""Moving operators to where they can run in place: behind the other readers of what they overwrite.

The alias analysis moves them, so no use comes before its definition and no access passes a write to the same memory.
Moves are kept only where more operators run in place and the estimated peak of memory does not rise.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from irc.alias import AliasDb
from irc.alias.classes import ESCAPED, MemoryClasses
from irc.alias.facts import OWN
from irc.alias.location_sets import BigSet, members
from irc.ir import CONSTANT, Block, Graph, Node, Value
from irc.ir.graph import gc_paused
from irc.ir.types import PrimType, TensorType, Type, may_be_equal
from irc.ops.pointwise import inplace_variant_of, overwritable, reads_first
from irc.passes.base import PassContext
from irc.passes.registry import register

# How much memory the values of one block take, and how long: an estimate to compare orders of its nodes by.


_SIZE = 64
"""What a dimension that is not known is taken to be."""


class Peak(NamedTuple):
    """Most bytes at one time.

    Attributes:
        fresh: if every result takes memory of its own.
        reused: if results are written over dead operands wherever nodes can.
    """

    fresh: int = 0
    reused: int = 0

    @staticmethod
    def most(peaks: Iterable[Peak]) -> Peak:
        """The largest of each number."""
        return Peak(*map(max, zip(Peak(), *peaks)))

    def within(self, other: Peak) -> bool:
        """Whether neither number is larger than that of ``other``."""
        return self.fresh <= other.fresh and self.reused <= other.reused


class Moment(NamedTuple):
    """One node at its turn.

    Attributes:
        alive: the bytes alive while it runs.
        takes: 1 if it is the last to use some memory and can take it for its result, else 0.
        takes_input: the same for a graph input, which its caller may donate.
    """

    alive: Peak
    takes: int
    takes_input: int


class BlockMemory:
    """A block's memory: its *storages*, classes of values that may share memory, and who uses them.

    A storage is alive from its first value to its last user. Unknown sizes are guessed: 64 for a dimension, and the
    mean of the others for a value whose type does not tell. Memory of values from outside of the block does not count.
    Nodes are numbers: positions in ``nodes``.

    Args:
        block: the block.
        nodes: its nodes in order, and its return node.
        used: what each of them uses.
        known: of their graph.

    Attributes:
        storage: the storage of a value that the nodes use or make.
        used: for each node, the storages it uses.
        users: storage -> the nodes that use it, in order.
        inputs: the storages of the graph's inputs.
    """

    def __init__(self, block: Block, nodes: Sequence[Node], used: Sequence[Sequence[Value]], known: _Known) -> None:
        self.storage = known.classes.of
        self._owned = known.owned
        self._seen: set[int] = set()  # where values have been so far
        for value in block.params:
            self._come_by(value)
        made: list[list[tuple[Value, int | None]]] = []
        for node, values in zip(nodes, used):
            for value in values:
                self._come_by(value)
            made.append([(value, self._come_by(value)) for value in node.outputs])
        guess = _mean([size for outputs in made for _, size in outputs if size])
        self._made = [[(self.storage(v), guess if n is None else n) for v, n in outputs] for outputs in made]
        self.used = [list(dict.fromkeys(map(self.storage, values))) for values in used]
        self.inputs = {self.storage(v) for v in block.params} if block is block.graph.block else set[int]()
        self.users: dict[int, list[int]] = {}
        for i, storages in enumerate(self.used):
            for storage in storages:
                self.users.setdefault(storage, []).append(i)

    def moments(self, order: Iterable[int], takes: Sequence[Iterable[int]], inside: Sequence[Peak]) -> list[Moment]:
        """What is alive at each node's turn, if the nodes run in ``order``.

        Args:
            order: all nodes.
            takes: for each node, the storages over which it can write its result, if nothing uses them later.
            inside: for each node, the additional memory that it takes while it runs.
        """
        left = {storage: len(users) for storage, users in self.users.items()}
        held: dict[int, int] = {}
        alive = 0
        found: list[Moment] = []
        for i in order:
            new = sum(size for _, size in self._made[i])
            free = [storage for storage in takes[i] if left[storage] == 1]
            own = [storage for storage in free if storage not in self.inputs]
            saved = min(new, held.get(own[0], 0)) if own else 0
            peak = Peak(alive + new + inside[i].fresh, alive + new - saved + inside[i].reused)
            found.append(Moment(peak, bool(own), len(free) > len(own)))
            alive += new
            for storage in self.used[i]:
                left[storage] -= 1
            for storage, size in self._made[i]:
                held[storage] = held.get(storage, 0) + size
            for storage in (*self.used[i], *(storage for storage, _ in self._made[i])):
                if not left.get(storage):
                    alive -= held.pop(storage, 0)
        return found

    def _come_by(self, value: Value) -> int | None:
        """The bytes of memory that ``value`` allocates; None if its type does not tell."""
        reach = self._owned.reach_set(value)
        places = () if isinstance(reach, BigSet) else tuple(members(reach))  # else there are too many to look at
        known = bool(places) and self._seen.issuperset(places)
        self._seen.update(places)
        return 0 if known or value.made_by(CONSTANT) else _bytes(value.type)


def _bytes(type: Type) -> int | None:
    if isinstance(type, PrimType):
        return 0
    if type.shape is None:
        return None
    size = 4 if type.dtype is None else type.dtype.numpy.itemsize
    return size * math.prod(d if isinstance(d, int) else _SIZE for d in type.shape)


def _mean(sizes: Sequence[int]) -> int:
    return sum(sizes) // len(sizes) if sizes else 1


# -- reorder -------------------------------------------------------------------


_FARTHEST = 256
"""Operators and their operands' last readers that are farther apart stay as they are."""


@register
@dataclass(frozen=True)
class Reorder:
    """Let operators that can write over an operand run after the other readers of that operand.

    For each memory that is still read after the last operator that could overwrite it, that operator moves behind its
    last reader, and what depends on it with it (rten's planner postpones every such operator as long as anything else
    can run). Moves are kept, stretch by stretch, if they let more operators run in place and do not increase the most
    bytes alive in the block, as far as types tell. Nested blocks are ordered each by itself, inner ones first.
    """

    name: ClassVar[str] = "reorder"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Order each block until no order of it is better: one move may make way for another."""
        owned, classes = ctx.donated_db(graph), MemoryClasses(OWN)
        classes.add(owned)
        known = _Known(ctx.alias_db(graph), owned, classes, {})
        changed = False
        with gc_paused():
            for block in reversed(list(graph.blocks())):
                changed |= _sort(block, known, ctx)
        return changed


class _Known(NamedTuple):
    """What is known of a graph; no move changes it.

    Attributes:
        db: its alias analysis.
        owned: that with its inputs donated: these are the only inputs whose memory the runtime takes, and it makes sure
            that they share memory with nothing.
        classes: classes of the memory of its values, by ``owned``.
        peaks: for nodes whose blocks are in order, the additional memory they take while they run.
    """

    db: AliasDb
    owned: AliasDb
    classes: MemoryClasses
    peaks: dict[Node, Peak]


def _sort(block: Block, known: _Known, ctx: PassContext) -> bool:
    """Order the block better if possible, and note its peak in ``known``. Returns whether it changed."""
    sorter, changed = _Sorter(block, known), False
    while sorter.run(ctx):
        sorter, changed = _Sorter(block, known), True
    if block.node is not None:
        known.peaks[block.node] = Peak.most([known.peaks.get(block.node, Peak()), sorter.peak])
    return changed


class _Sorter:
    """One attempt at a better order of one block.

    Attributes:
        peak: most bytes alive in the order that the block had.
    """

    def __init__(self, block: Block, known: _Known) -> None:
        self._db, self._block = known.db, block
        self._nodes = [*block.unchanging_nodes(), block.return_node]
        self._used = [list(dict.fromkeys((*node.inputs, *node.captures()))) for node in self._nodes]
        self._memory = BlockMemory(block, self._nodes, self._used, known)
        self._takes = [self._takeable(node) for node in self._nodes]
        self._inside = [known.peaks.get(node, Peak()) for node in self._nodes]
        self._plain = self._memory.moments(range(len(self._nodes)), self._takes, self._inside)
        self.peak = _peak(self._plain)

    def run(self, ctx: PassContext) -> bool:
        """Change the order where that is better; returns whether it changed."""
        if not self._postpone():
            return False
        numbers = {node: i for i, node in enumerate(self._nodes)}
        order = [numbers[node] for node in (*self._block.nodes, self._block.return_node)]
        moments = self._memory.moments(order, self._takes, self._inside)
        changed = False
        for start, end in _stretches(order):
            new, old = moments[start:end], self._plain[start:end]
            own = sum(m.takes for m in new) - sum(m.takes for m in old)
            inputs = sum(m.takes_input for m in new) - sum(m.takes_input for m in old)
            first, fits = self._nodes[order[start]], _peak(new).within(self.peak)
            if own + inputs > 0 and fits and ctx.allow(first):
                ctx.count("in_place", own)
                ctx.count("in_place_if_donated", inputs)
                changed = True
                continue
            if own + inputs > 0 and not fits:
                ctx.note(first, "to run it earlier would let others run in place, but take more memory")
            for node in self._nodes[start:end]:
                node.move_before(self._nodes[order[end]])
        return changed

    def _postpone(self) -> bool:
        """Move operators behind the last readers of memory that they can take; returns whether any moved."""
        memory, nodes, takes = self._memory, self._nodes, self._takes
        served = {
            (users[-1], storage in memory.inputs)
            for storage, users in memory.users.items()
            if storage in takes[users[-1]]
        }
        moved = False
        for storage, users in memory.users.items():
            is_input = storage in memory.inputs
            *earlier, last = sorted(users, key=lambda i: nodes[i].order)
            able = [i for i in earlier if storage in takes[i] and (i, is_input) not in served]
            if storage in takes[last] or not able or nodes[last].is_return or last - able[-1] > _FARTHEST:
                continue
            if self._db.move_after(nodes[able[-1]], nodes[last]):
                served.add((able[-1], is_input))
                moved = True
        return moved

    def _takeable(self, node: Node) -> list[int]:
        """The storages over which ``node`` can write its result as soon as nothing else uses them."""
        found: list[int] = []
        storages = [self._memory.storage(v) for v in node.inputs]
        times = Counter(storages)
        repeated = Counter(node.inputs) if reads_first(node.kind) else Counter[Value]()
        for value, storage in dict(zip(node.inputs, storages)).items():
            once = times[storage] == max(1, repeated[value])  # or it is one tensor that is read before it is written
            if once and storage != ESCAPED and _can_take(node, value):
                found.append(storage)
        return found


def _can_take(node: Node, value: Value) -> bool:
    """Whether ``node`` can write its result over ``value``, as far as types tell; shapes may differ.

    The runtime writes over `overwritable` operands, in-place variants over their first.
    """
    count = overwritable(node) or (0 if inplace_variant_of(node) is None else 1)
    if value not in node.inputs[:count] or len(node.outputs) != 1:
        return False
    a, b = value.type, node.output.type
    return isinstance(a, TensorType) and isinstance(b, TensorType) and may_be_equal(a, b)


def _stretches(order: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The shortest parts of ``order``, as start and end, that rearrange what the plain order has there."""
    start = reached = 0
    for at, node in enumerate(order):
        reached = max(reached, node)
        if reached == at:
            if at > start:
                yield start, at + 1
            start = at + 1


def _peak(moments: Iterable[Moment]) -> Peak:
    return Peak.most(moment.alive for moment in moments)
