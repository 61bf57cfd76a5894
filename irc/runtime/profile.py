"""Where the time and the memory of a run go: the profile, as tables and in a few lines.

The clock is read before and after the work of following a step, so that this
work is in no node's time. A step's *own* time is its time without that of the
steps inside it: for an If, its branch; for a call, the function. Each moment
belongs to the own time of at most one step. A fusion group's time is that of its members.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from irc.ir import CONSTANT, GROUP, Graph, Node, TensorType, Value
from irc.ir.region_flow import inner_graph, with_subgraphs
from irc.ops.signatures import schemas
from irc.runtime.binding import writes_over
from irc.runtime.execution import Counters, Frame, Observer, Slots, label
from irc.runtime.limits import ArrayBytes
from irc.runtime.memory_plan import MemoryPlan
from irc.runtime.values import describe, is_array
from irc.support.formatting import count, milliseconds


@dataclass(eq=False)
class NodeProfile:
    """What all calls of one node took. Times are in nanoseconds.

    Attributes:
        kind: its operator.
        label: operator and name, as in error messages.
        within: the node around it whose step ran it first, or None.
        group: the fusion group it is a member of, or None.
        calls: how often it ran; of a fusion group, how often a member did at most.
        own: time without that of nodes inside it.
        total: time with it. If a call is inside a call of the same node, only the outer one counts.
        allocations: how many of its results took new memory: not views, in-place results or planned memory.
        bytes: how much they took.
        in_place: how often it wrote its result over an operand, or, in planned memory, where an operand lies.
        fresh: how often a result got memory of its own, new or planned. Views are neither.
        inputs: element types and shapes of its inputs at the first call.
        fused: of a fusion group that ran as one step, the kinds of its members, in their order.
    """

    kind: str
    label: str
    within: NodeProfile | None = None
    group: NodeProfile | None = None
    calls: int = 0
    own: int = 0
    total: int = 0
    allocations: int = 0
    bytes: int = 0
    in_place: int = 0
    fresh: int = 0
    inputs: tuple[str, ...] = ()
    fused: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data; nodes around it by their labels."""
        data: dict[str, Any] = {**vars(self), "inputs": list(self.inputs), "fused": list(self.fused)}
        data["within"], data["group"] = self.within and self.within.label, self.group and self.group.label
        for name in ("own", "total"):
            data[f"{name}_ns"] = data.pop(name)
        return data


class OperatorProfile(NamedTuple):
    """All nodes of one kind: how many, and what a `NodeProfile` says, summed up."""

    kind: str
    nodes: int
    calls: int
    own: int
    bytes: int
    in_place: int
    fresh: int


class GroupProfile(NamedTuple):
    """One fusion group: its node, and the members that ran, those that took most first."""

    node: NodeProfile
    members: list[NodeProfile]


@dataclass
class Profile:
    """What one run did, and for how long. Times are in nanoseconds.

    Attributes:
        elapsed: of the whole run.
        own: time inside of nodes.
        following: part of `elapsed` that was spent on following the run.
        nodes: the nodes that ran, in order of their first calls.
        peak: the most bytes alive at one time, those of nested blocks and planned memory included.
        counters: what the run counted.
        outputs: what the run returned.
    """

    elapsed: int = 0
    own: int = 0
    following: int = 0
    nodes: list[NodeProfile] = field(default_factory=list[NodeProfile])
    peak: int = 0
    counters: Counters = field(default_factory=Counters)
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    @property
    def arena(self) -> int:
        """The size of the planned memory."""
        return self.counters.arena_bytes

    @property
    def between(self) -> int:
        """Time outside of nodes: checks at the boundary, the loop over steps, copies of results."""
        return self.elapsed - self.following - self.own

    @property
    def allocations(self) -> int:
        """How many results took new memory."""
        return sum(node.allocations for node in self.nodes)

    def by_operator(self) -> list[OperatorProfile]:
        """A row for each kind of node, what took most first."""
        kinds: dict[str, list[NodeProfile]] = {}
        for node in self.nodes:
            kinds.setdefault(node.kind, []).append(node)
        summed = OperatorProfile._fields[2:]
        rows = [
            OperatorProfile(kind, len(each), *[sum(getattr(n, name) for n in each) for name in summed])
            for kind, each in kinds.items()
        ]
        return sorted(rows, key=lambda row: (-row.own, row.kind))

    def by_node(self) -> list[NodeProfile]:
        """The nodes, those with most own time first."""
        return sorted(self.nodes, key=lambda node: -node.own)

    def by_group(self) -> list[GroupProfile]:
        """The fusion groups, those that took most first."""
        members: dict[NodeProfile, list[NodeProfile]] = {n: [] for n in self.nodes if n.kind == GROUP}
        for node in self.by_node():
            if node.group is not None:
                members[node.group].append(node)
        return [GroupProfile(n, members[n]) for n in sorted(members, key=lambda node: -node.total)]

    def __str__(self) -> str:
        """The run in a few lines, then a line for each kind of operator."""
        rows = [
            f"{ms(row.own):>12} ms  {row.kind}, {count(row.calls, 'call')}, {row.in_place:,} in place,"
            f" {row.fresh:,} fresh, {count(row.bytes, 'byte')} made"
            for row in self.by_operator()
        ]
        return "\n".join([self.headlines(), *rows])

    def headlines(self) -> str:
        """Where time and memory of the whole run went."""
        counters = self.counters
        return (
            f"{ms(self.elapsed)} ms: {ms(self.own)} in nodes, {ms(self.between)} between them and at the ends,"
            f" {ms(self.following)} for following them\n"
            f"{count(self.peak, 'byte')} alive at the peak, without weights and inputs\n"
            f"{count(self.allocations, 'allocation')}, {count(counters.planned, 'result')}"
            f" in {count(self.arena, 'byte')} of planned memory, at most {counters.arena_bound:,} of it at one time\n"
            f"{count(counters.units, 'unit')}, {count(counters.kernels, 'kernel')}, {counters.in_place:,} in place,"
            f" {count(counters.copies, 'copy', 'copies')} of {count(counters.copied_bytes, 'byte')} at the ends"
        )

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            **{f"{name}_ns": getattr(self, name) for name in ("elapsed", "own", "following", "between")},
            **{f"{name}_bytes": getattr(self, name) for name in ("peak", "arena")},
            "allocations": self.allocations,
            "counters": self.counters.to_dict(),
            "operators": [row._asdict() for row in self.by_operator()],
            "nodes": [node.to_dict() for node in self.by_node()],
        }


@dataclass(eq=False)
class _Call:
    """A call that has not ended.

    Attributes:
        node: what is called.
        busy: the time in all nodes by its beginning.
        alive: the bytes alive then.
        in_place: what the run had counted as such by then.
    """

    node: NodeProfile
    busy: int
    alive: int
    in_place: int


class Profiler(Observer):
    """Follows one run.

    The time between two events, which are beginnings and ends of calls, is own time of the innermost call that is going
    on. The time from an event to the end of the work that is done here goes to no node.

    Args:
        clock: nanoseconds from any start.
    """

    in_arena = True

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns) -> None:
        self._clock = clock
        self._live = ArrayBytes()
        self._found = Profile()
        self._nodes: dict[Node, NodeProfile] = {}
        self._passing: set[str] = set()  # kinds whose lists hold what was there
        self._groups: dict[Graph, Node] = {}  # the fusion groups of the graph, by their subgraphs
        self._stack: list[_Call] = []
        self._latest: _Call | None = None  # the last that began
        self._placed: Container[Value] = ()  # the results that have places in planned memory
        self._over: frozenset[Value] = frozenset()  # those of them that are written over an operand
        self._start = self._left = clock()  # when the run began, and when the last event had been followed

    def start(self, graph: Graph, inputs: Iterable[Any], counters: Counters) -> None:
        """Begin a run of ``graph`` on ``inputs``, whose memory does not count; count in ``counters``."""
        groups = (node for node in with_subgraphs(graph) if node.kind == GROUP)
        self._groups = {inner: node for node in groups if (inner := inner_graph(node)) is not None}
        self._live.disown(inputs)
        self._found.counters = counters

    def use_arena(self, memory: Any, plan: MemoryPlan) -> None:
        """Planned memory is alive from now on, and counts for no result."""
        self._placed, self._over = plan.place_of, plan.over
        self._live.count([memory])
        self._note_peak()

    def before(self, node: Node, frame: Frame, ins: Slots) -> None:
        """Begin a call."""
        if node.is_return:  # gives back what a block was given and does not use: part of running the block
            return
        now = self._account()
        row = self._nodes.get(node) or self._add(node)
        if not row.inputs:
            row.inputs = tuple([describe(frame[s]) for s in ins])
        self._latest = _Call(row, self._found.own, self._live.now, self._found.counters.in_place)
        self._stack.append(self._latest)
        self._note_peak()
        self._left = self._clock()
        self._found.following += self._left - now

    def after(self, node: Node, frame: Frame, outs: Slots) -> None:
        """End the call."""
        if node.is_return:
            return
        now = self._account()
        call = self._stack.pop()
        row, has_calls_inside = call.node, self._latest is not call
        results = [frame[s] for s in outs]
        known = self._live.arrays
        made = self._live.count(filter(is_array, results) if node.kind in self._passing else results)
        new = self._live.arrays - known
        row.calls += 1
        if all(other.node is not row for other in self._stack):
            row.total += self._found.own - call.busy
        row.allocations += new
        row.bytes += made
        over = writes_over(node) or (not has_calls_inside and self._found.counters.in_place > call.in_place)
        self._note_place(node, row, over, new > 0)
        # A dead operand is given back by the step that reads it, but only once the result is there.
        self._note_peak(0 if has_calls_inside else call.alive + made)
        self._left = self._clock()
        self._found.following += self._left - now

    def finish(self, outputs: Mapping[str, Any]) -> Profile:
        """The profile of the run, which has ended."""
        found = self._found
        found.elapsed = self._clock() - self._start
        self._sum_up_groups()
        found.nodes = [node for node in self._nodes.values() if node.calls]
        found.outputs = outputs
        return found

    def _account(self) -> int:
        """Give the time since the last event to the innermost call. Returns what time it is."""
        now = self._clock()
        if self._stack:
            self._stack[-1].node.own += now - self._left
            self._found.own += now - self._left
        return now

    def _add(self, node: Node) -> NodeProfile:
        around = self._stack[-1].node if self._stack else None
        group = self._group_of(node, around)
        within = around if group is None or (around is not None and around.group is group) else group
        found = self._nodes[node] = NodeProfile(node.kind, label(node), within, group)
        if _passes_on(node):
            self._passing.add(node.kind)
        return found

    def _group_of(self, node: Node, around: NodeProfile | None) -> NodeProfile | None:
        """The row of the fusion group that ``node`` is a member of."""
        group = self._groups.get(node.graph)
        if group is not None and group not in self._nodes:
            outer = self._group_of(group, around)
            self._nodes[group] = NodeProfile(GROUP, label(group), outer or around, outer)
        return None if group is None else self._nodes[group]

    def _sum_up_groups(self) -> None:
        """Fill in the rows of groups that had no steps of their own, the inner ones first."""
        rows = list(self._nodes.values())
        have_members = {row.group for row in rows}
        for graph, node in self._groups.items():
            row = self._nodes.get(node)
            if row is not None and row not in have_members:
                row.fused = tuple([member.kind for member in graph.nodes if member.kind != CONSTANT])
        for group in reversed([row for row in rows if row.kind == GROUP and not row.calls]):
            members = [row for row in rows if row.within is group]
            group.total = sum(member.total for member in members)
            group.calls = max(member.calls for member in members)

    def _note_place(self, node: Node, row: NodeProfile, over: bool, new: bool) -> None:
        planned = [v for v in node.outputs if v in self._placed]
        if over or not self._over.isdisjoint(planned):
            row.in_place += 1
        elif new or planned:
            row.fresh += 1

    def _note_peak(self, alive: int = 0) -> None:
        self._found.peak = max(self._found.peak, self._live.now, alive)


def _passes_on(node: Node) -> bool:
    """Whether lists that ``node`` returns hold earlier values, so that they are not counted again."""
    results = [result for row in schemas(node.kind) for result in row.returns]
    shares = any(result.alias is not None and not isinstance(result.type, TensorType) for result in results)
    return shares or bool(node.blocks) or node.kind.startswith("prim::")


def ms(nanoseconds: int) -> str:
    """A time of a profile in milliseconds; below one, to the microsecond."""
    return f"{nanoseconds / 1e6:.3f}" if 0 < nanoseconds < 1e6 else milliseconds(nanoseconds / 1e9)
