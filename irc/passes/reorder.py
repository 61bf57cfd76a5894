"""Moving operators to where they can run in place: behind the other readers of what they overwrite."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from irc.ir import Block, Graph, Node, Value
from irc.ir.graph import gc_paused
from irc.ir.types import TensorType, may_be_equal
from irc.ops.pointwise import overwritable
from irc.ops.twins import reads_first, twin_of
from irc.passes.block_memory import BlockMemory, GraphMemory, Moment, Peak
from irc.passes.dependencies import Dependencies, captures, operands
from irc.passes.registry import register

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from irc.alias import AliasDb
    from irc.passes.base import PassContext

_EFFORT = 256
"""Steps to find out whether a reader depends on an operator. What is farther apart stays as it is."""


@register
@dataclass(frozen=True)
class Reorder:
    """Let operators that can write over an operand run after the other readers of that operand.

    For each memory that is still read after the last operator that could overwrite
    it, one such operator is chosen that no later reader depends on; it is to
    run after all of them. (rten's planner postpones every such operator
    as long as anything else can run.) Next is then always the first node that
    waits for nothing. Moves are kept, stretch by stretch, if they let
    more operators run in place and do not increase the most bytes alive in the block,
    as far as types tell. Nested blocks are ordered each by itself, inner
    ones first.
    """

    name: ClassVar[str] = "reorder"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Order each block until no order of it is better: one move may make way for another."""
        known = _Known(ctx.alias_db(graph), captures(graph), GraphMemory(ctx.donated_db(graph)), {})
        changed = False
        with gc_paused():
            for block in reversed(list(graph.blocks())):
                changed |= _sort(block, known, ctx)
        return changed


class _Known(NamedTuple):
    """What is known of a graph; no move changes it.

    Attributes:
        db: its alias analysis.
        captured: for every node with blocks, the outer values used inside of it.
        memory: where its values may be.
        peaks: for nodes whose blocks are in order, the additional memory they take while they run.
    """

    db: AliasDb
    captured: dict[Node, list[Value]]
    memory: GraphMemory
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
        self._db = known.db
        self._nodes = [*block.unchanging_nodes(), block.return_node]
        self._used = [operands(node, known.captured) for node in self._nodes]
        self._memory = BlockMemory(block, self._nodes, self._used, known.memory)
        self._takes = [self._takeable(node) for node in self._nodes]
        self._inside = [known.peaks.get(node, Peak()) for node in self._nodes]
        self._plain = self._memory.moments(range(len(self._nodes)), self._takes, self._inside)
        self.peak = _peak(self._plain)

    def run(self, ctx: PassContext) -> bool:
        """Change the order where that is better; returns whether it changed."""
        nodes = self._nodes[:-1]  # the return node stays where it is
        dependencies = cache(lambda: Dependencies(nodes, self._used, self._db))
        wishes = self._wishes(dependencies)
        if not wishes:
            return False
        order = [*dependencies().order(wishes), len(nodes)]
        moments = self._memory.moments(order, self._takes, self._inside)
        changed = False
        for start, end in _stretches(order):
            new, old = moments[start:end], self._plain[start:end]
            own = sum(m.takes for m in new) - sum(m.takes for m in old)
            inputs = sum(m.takes_input for m in new) - sum(m.takes_input for m in old)
            first = self._nodes[order[start]]
            if own + inputs <= 0:
                continue
            if not _peak(new).within(self.peak):
                ctx.note(first, "to run it earlier would let others run in place, but take more memory")
            elif ctx.allow(first):
                for i in order[start:end]:
                    self._nodes[i].move_before(self._nodes[end])
                ctx.count("in_place", own)
                ctx.count("in_place_if_donated", inputs)
                changed = True
        return changed

    def _takeable(self, node: Node) -> list[int]:
        """The storages over which ``node`` can write its result as soon as nothing else uses them."""
        found: list[int] = []
        storages = [self._memory.storage(v) for v in node.inputs]
        times = Counter(storages)
        repeated = Counter(node.inputs) if reads_first(node.kind) else Counter[Value]()
        for value, storage in dict(zip(node.inputs, storages)).items():
            once = times[storage] == max(1, repeated[value])  # or it is one tensor that is read before it is written
            if once and self._memory.may_be_taken(storage) and _can_take(node, value):
                found.append(storage)
        return found

    def _wishes(self, needed: Callable[[], Dependencies]) -> dict[int, list[int]]:
        """For each operator that is to take memory, the other readers of it; empty if no operator is new among them."""
        memory, takes, end = self._memory, self._takes, len(self._nodes) - 1
        wishes: dict[int, list[int]] = {}
        served: set[tuple[int, bool]] = set()  # those that take own memory, or an input
        late: list[int] = []
        for storage, users in memory.users.items():
            if storage in takes[users[-1]]:  # it does already, and is to go on
                wishes.setdefault(users[-1], []).extend(users[:-1])
                served.add((users[-1], storage in memory.inputs))
            elif users[-1] != end:
                late.append(storage)
        found = False
        for storage in late:
            users, is_input = memory.users[storage], storage in memory.inputs
            able = (at for at, i in enumerate(users) if storage in takes[i] and (i, is_input) not in served)
            at = max(able, default=None)
            if at is not None and not needed().leads_to(users[at], users[at + 1 :], _EFFORT):
                wishes.setdefault(users[at], []).extend(users[:at] + users[at + 1 :])
                served.add((users[at], is_input))
                found = True
        return wishes if found else {}


def _can_take(node: Node, value: Value) -> bool:
    """Whether ``node`` can write its result over ``value``, as far as types tell; shapes at run time may rule it out.

    The runtime writes over what is `overwritable`, in-place twins over their first operand.
    """
    count = overwritable(node) or (0 if twin_of(node) is None else 1)
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
