"""Where the time and the memory of a run go: the profile, as text, and as a trace file.

The clock is read before and after the work of following a step, so that this
work is in no node's time. A step's *own* time is its time without that of the
steps inside it: for an If, its branch; for a call, the function. Each moment
belongs to the own time of at most one step. A fusion group's time is that of its members.

Traces are files that Chrome (``chrome://tracing``), Perfetto and Speedscope show.
Format: "Trace Event Format", Google, 2016: complete events (``X``), counters
(``C``) and names of threads (``M``). Times are in microseconds.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

from irc.ir import CONSTANT, GROUP, Graph, Node, TensorType
from irc.ir.region_flow import inner_graph, with_subgraphs
from irc.ops.signatures import schemas
from irc.runtime.binding import writes_over
from irc.runtime.execution import Counters, Frame, Observer, Slots, label
from irc.runtime.limits import ArrayBytes
from irc.runtime.memory_plan import MemoryPlan
from irc.runtime.values import describe, is_array
from irc.support.files import replacing
from irc.support.formatting import count, milliseconds

MOST_EVENTS = 200_000
"""Single calls, and changes of memory, that one profile keeps; tables count all. A loop may make millions."""


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


class Event(NamedTuple):
    """One call of a node, and from when to when it lasted, in nanoseconds from the start of the run."""

    node: NodeProfile
    start: int
    end: int


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
        events: single calls, in order of their ends.
        memory: (time, bytes of intermediate values and results alive) wherever that changed.
        peak: the most bytes alive at one time, those of nested blocks and planned memory included.
        least: the most bytes of results alive at one time, planned and unplanned alike: `peak`, if of planned memory
            only that counts which something may still need at that time.
        dropped: how many events and changes of memory were left out because there were more than `MOST_EVENTS`.
        counters: what the run counted.
        outputs: what the run returned.
    """

    elapsed: int = 0
    own: int = 0
    following: int = 0
    nodes: list[NodeProfile] = field(default_factory=list[NodeProfile])
    events: list[Event] = field(default_factory=list[Event])
    memory: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    peak: int = 0
    dropped: int = 0
    counters: Counters = field(default_factory=Counters)
    outputs: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    least: int = 0

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

    def save_trace(self, path: str | PathLike[str]) -> None:
        """Write the single calls, and the memory alive, to a file that Chrome, Perfetto and Speedscope show.

        Raises:
            Error: IRC501 if the file cannot be written; what was there before stays.
        """
        content = {"traceEvents": list(trace_events(self)), "displayTimeUnit": "ms"}
        with replacing(path) as file:
            file.write(json.dumps(content).encode("ascii"))

    def __str__(self) -> str:
        """The run in a few lines, then a line for each kind of operator that took most."""
        rows = [
            f"{ms(row.own):>12} ms  {row.kind}, {count(row.calls, 'call')}, {row.in_place:,} in place,"
            f" {row.fresh:,} fresh, {count(row.bytes, 'byte')} made"
            for row in self.by_operator()
        ]
        others = self.by_operator()[MOST_KINDS:]
        rest = [f"{ms(sum(row.own for row in others)):>12} ms  {count(len(others), 'other kind')}"] if others else []
        return "\n".join([headlines(self), *rows[:MOST_KINDS], *rest])

    def to_dict(self) -> dict[str, Any]:
        """Tables as plain data; without the single calls, which the trace has."""
        return {
            **{f"{name}_ns": getattr(self, name) for name in ("elapsed", "own", "following", "between")},
            **{f"{name}_bytes": getattr(self, name) for name in ("peak", "arena", "least")},
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
        began: when it began, once that is known.
    """

    node: NodeProfile
    busy: int
    alive: int
    in_place: int
    began: int = 0


class Profiler(Observer):
    """Follows one run.

    The time between two events, which are beginnings and ends of calls, is own time of the innermost call that is going
    on. The time from an event to the end of the work that is done here goes to no node.

    Args:
        clock: nanoseconds from any start.
        most_events: how many single calls and changes of memory to keep.
    """

    in_arena = True

    def __init__(self, clock: Callable[[], int] = time.perf_counter_ns, most_events: int = MOST_EVENTS) -> None:
        self._clock = clock
        self._most = most_events
        self._live = ArrayBytes()
        self._found = Profile()
        self._nodes: dict[Node, NodeProfile] = {}
        self._passing: set[str] = set()  # kinds whose lists hold what was there
        self._groups: dict[Graph, Node] = {}  # the fusion groups of the graph, by their subgraphs
        self._stack: list[_Call] = []
        self._latest: _Call | None = None  # the last that began
        self._plan = MemoryPlan({}, 0, 0, frozenset(), {}, [])  # of no results, until there is another
        self._arena_bytes = 0  # bytes of planned memory
        self._turn = 0  # of the plan
        self._beside: defaultdict[int, int] = defaultdict(int)  # by turns: most bytes alive outside of planned memory
        self._start = self._left = clock()  # when the run began, and when the last event had been followed

    def start(self, graph: Graph, inputs: Iterable[Any], counters: Counters) -> None:
        """Begin a run of ``graph`` on ``inputs``, whose memory does not count; count in ``counters``."""
        groups = (node for node in with_subgraphs(graph) if node.kind == GROUP)
        self._groups = {inner: node for node in groups if (inner := inner_graph(node)) is not None}
        self._live.disown(inputs)
        self._found.counters = counters

    def use_arena(self, memory: Any, plan: MemoryPlan) -> None:
        """Planned memory is alive from now on, and counts for no result."""
        self._plan = plan
        self._arena_bytes = self._live.count([memory])
        self._note_memory(self._clock(), self._live.now)

    def before(self, node: Node, frame: Frame, ins: Slots) -> None:
        """Begin a call."""
        if node.is_return:  # gives back what a block was given and does not use: part of running the block
            return
        now = self._account()
        row = self._nodes.get(node) or self._add(node)
        if not row.inputs:
            row.inputs = tuple([describe(frame[s]) for s in ins])
        call = self._latest = _Call(row, self._found.own, self._live.now, self._found.counters.in_place)
        self._turn = self._plan.turns.get(node, self._turn)
        self._note_memory(now, self._live.now)
        self._stack.append(call)
        call.began = self._left = self._clock()
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
        counted = 0 if has_calls_inside else self._found.counters.in_place - call.in_place
        self._note_places(node, row, max(counted, writes_over(node)), new > 0)
        # A dead operand is given back by the step that reads it, but only once the result is there.
        self._note_memory(now, max(self._live.now, 0 if has_calls_inside else call.alive + made))
        if len(self._found.events) < self._most:
            self._found.events.append(Event(row, call.began - self._start, now - self._start))
        else:
            self._found.dropped += 1
        self._left = self._clock()
        self._note_memory(self._left, self._live.now)
        self._found.following += self._left - now

    def finish(self, outputs: Mapping[str, Any]) -> Profile:
        """The profile of the run, which has ended."""
        found = self._found
        found.elapsed = self._clock() - self._start
        self._sum_up_groups()
        found.nodes = [node for node in self._nodes.values() if node.calls]
        found.least, found.outputs = self._least(), outputs
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

    def _note_places(self, node: Node, row: NodeProfile, over: int, new: bool) -> None:
        planned = [v for v in node.outputs if v in self._plan.place_of]
        over = max(over, len(self._plan.over.intersection(planned)))
        row.in_place += over
        if not over and (new or planned):
            row.fresh += 1

    def _least(self) -> int:
        used = [self._beside[turn] + planned for turn, planned in enumerate(self._plan.in_use)]
        return max([*used, *self._beside.values(), 0])

    def _note_memory(self, when: int, alive: int) -> None:
        self._found.peak = max(self._found.peak, alive)
        self._beside[self._turn] = max(self._beside[self._turn], alive - self._arena_bytes)
        if self._found.memory[-1][1] == alive:
            return
        if len(self._found.memory) < self._most:
            self._found.memory.append((when - self._start, alive))
        else:
            self._found.dropped += 1


def _passes_on(node: Node) -> bool:
    """Whether lists that ``node`` returns hold earlier values, so that they are not counted again."""
    results = [result for row in schemas(node.kind) for result in row.returns]
    shares = any(result.alias is not None and not isinstance(result.type, TensorType) for result in results)
    return shares or bool(node.blocks) or node.kind.startswith("prim::")


MOST_KINDS = 8
"""How many kinds of operators are listed, those that took most."""


def headlines(profile: Profile) -> str:
    """Where time and memory of the whole run went."""
    counters = profile.counters
    lines = [
        f"{ms(profile.elapsed)} ms: {ms(profile.own)} in nodes, {ms(profile.between)} between them and at the ends,"
        f" {ms(profile.following)} for following them",
        f"{count(profile.peak, 'byte')} alive at the peak, without weights and inputs; results alive at one time need"
        f" {profile.least:,}",
        f"{count(profile.allocations, 'allocation')}, {count(counters.planned, 'result')}"
        f" in {count(profile.arena, 'byte')} of planned memory, at most {counters.arena_bound:,} of it at one time",
        f"{count(counters.units, 'unit')}, {count(counters.kernels, 'kernel')}, {counters.in_place:,} in place,"
        f" {count(counters.copies, 'copy', 'copies')} of {count(counters.copied_bytes, 'byte')} at the ends",
    ]
    if profile.dropped:
        lines.append(f"{count(profile.dropped, 'event')} in the tables, but not in the trace: there are too many")
    return "\n".join(lines)


def ms(nanoseconds: int) -> str:
    """A time of a profile in milliseconds; below one, to the microsecond."""
    return f"{nanoseconds / 1e6:.3f}" if 0 < nanoseconds < 1e6 else milliseconds(nanoseconds / 1e9)


_PROCESS = 1


def trace_events(profile: Profile) -> Iterator[dict[str, Any]]:
    """The events of a profile: calls, and the memory that is alive."""
    yield {"ph": "M", "name": "thread_name", "pid": _PROCESS, "tid": 0, "args": {"name": "run"}}
    # A viewer nests what lies within: the outer one of two that begin at once has to come first.
    for event in sorted(profile.events, key=lambda e: (e.start, -e.end)):
        yield _call(event)
    for when, alive in profile.memory:
        counter = {"ph": "C", "name": "memory", "pid": _PROCESS, "tid": 0, "ts": when / 1e3}
        yield {**counter, "args": {"bytes alive": alive}}


def _call(event: Event) -> dict[str, Any]:
    node = event.node
    arguments = {"node": node.label, "inputs at the first call": ", ".join(node.inputs)}
    if node.within is not None:
        arguments["within"] = node.within.label
    if node.fused:
        arguments["fused"] = ", ".join(node.fused)
    return {
        "ph": "X",
        "name": node.kind.removeprefix("onnx::"),
        "cat": "member" if node.group is not None else "node",
        "pid": _PROCESS,
        "tid": 0,
        "ts": event.start / 1e3,
        "dur": (event.end - event.start) / 1e3,
        "args": arguments,
    }
