"""Lowering: from the nodes of a graph to steps over the slots of a frame.

Values get slots, constants go into the frame's template, kernels are bound.
Blocks are lowered last node first, so that each step knows which slots nothing
needs after it and empties them: memory is freed as soon as possible. All blocks
of a graph (If, loops, fusion groups) share one frame, so captured values cost
nothing; only function calls have frames of their own.

A fusion group says that its members *may* be computed as one. Whether that pays is for a backend to say
(`irc.runtime.backends`). Without one, the members are steps of the block around the group, as if nothing had been
fused: their values get slots of that frame, and die there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.alias.classes import ESCAPED
from irc.errors import Error, nonsense
from irc.ir.kinds import CONSTANT, GROUP
from irc.ir.region_flow import inner_graph
from irc.ir.tensor import Tensor
from irc.ir.types import FUNCTION
from irc.ir.verify.operator_rules import check_form
from irc.ops.axes import APPEND, assembled, joined
from irc.ops.layouts import sees_layouts, sees_storage
from irc.ops.opaque import is_opaque
from irc.ops.plugins import fault_of
from irc.ops.pointwise import reads_first
from irc.runtime.arguments import fault_of_form
from irc.runtime.backends import Backend, CompiledGroup, Declined, Unsupported, suits_nothing
from irc.runtime.binding import bind, binder_of_others, interrupts, unsupported, writes_over
from irc.runtime.destinations import (
    Assembly,
    Destination,
    Part,
    array_in,
    delayed,
    form_follows,
    made_for,
    makes_new,
    sources,
    step_around,
    step_into,
)
from irc.runtime.execution import Code, Instruction, call_step, drop, execute, label, may_overwrite, placed_step, put
from irc.runtime.kernels.registry import Kernel, takes_out, takes_outs
from irc.runtime.kernels.support import as_constant, check_size, is_constant, note_origin
from irc.runtime.prepack import Kept, Preparations
from irc.runtime.values import ConstantList, arrays_once, is_array, is_sequence, is_tuple, typed, with_types

if TYPE_CHECKING:
    from irc.ir import Block, Graph, Node, Value
    from irc.runtime.control_flow import Iterate
    from irc.runtime.execution import Frame, Run, Slots, Step
    from irc.runtime.plan import Plan
    from irc.runtime.storage import Storage

Pairs = Sequence[tuple[int, int]]
"""Of a result and an operand, by position."""

Special = Callable[["Lowering", "Node", "Slots", "Slots"], "Step"]
"""Lowers a node that is not a kernel call, from the slots of inputs and outputs; asks `Lowering.emptied` for more."""

_NOWHERE = 0
"""The region of constants, which are never emptied."""

_WRITE_OUT = 1 << 20
"""Splats of up to this many bytes are written out, so that kernels get plain arrays; larger ones stay broadcast."""


class Bound:
    """What lowering makes of single nodes, once for all plans of a graph.

    Args:
        deferred: nodes without kernels; a run that comes to one of them fails.
        backend: what may compile groups; None for the interpreter alone.
        typed: whether lists and dictionaries know their types at run time.

    Attributes:
        backend: as given.
        typed: as given.
        constants: what constants are at run time, as far as they are in memory.
        prepared: what runs have made of them once and for all.
        declined: how many groups the backend does not compile, by its reasons: all of them, or for some operands.
    """

    def __init__(self, deferred: Collection[Node] = (), backend: Backend | None = None, typed: bool = False) -> None:
        self.backend = backend
        self.typed = typed
        self.constants: dict[Node, Any] = {}
        self.prepared = Preparations()
        self._kernels: dict[Node, Kernel] = {}
        self._deferred = deferred
        self.declined: dict[str, int] = {}
        self._groups: dict[Node, CompiledGroup | None] = {}

    def kernel(self, node: Node) -> Kernel:
        """The kernel of ``node``; Error if an attribute has a value that it refuses."""
        if node not in self._kernels:
            try:
                if node in self._deferred:
                    kernel = _refusing(node, self._deferred)
                else:
                    kernel = self.prepared.kernel(node, bind(node))
                    if self.backend is not None and binder_of_others(node) is None:
                        kernel = self.backend.bind(node, kernel)
                self._kernels[node] = with_types(node, kernel) if self.typed else kernel
            except Exception as error:  # an attribute of a type or value that the kernel did not expect
                if interrupts(error, node):
                    raise
                binder = binder_of_others(node)
                known = error if isinstance(error, Error) else fault_of_form(node) if binder is None else None
                if known is not None:
                    raise Error(known.code, known.message, known.where or label(node)) from error
                what = nonsense(error) if binder is None else fault_of(error, binder)
                raise Error("IRC324", f"its attributes make no sense: {what}", label(node)) from error
        return self._kernels[node]

    def compiled(self, group: Node) -> CompiledGroup | None:
        """The kernels of a fusion group; None if its members are steps like all others."""
        if self.backend is None:
            return None
        if group not in self._groups:
            graph = subgraph_of(group)
            others = [node.kind for node in graph.nodes if binder_of_others(node) is not None]
            another = Declined(f"the kernel of {others[0]} is another package's") if others else None
            declined = another or self.backend.refuses(graph)
            self._groups[group] = None if declined else CompiledGroup(self.backend, graph, self._decline)
            if declined:
                self._decline(declined.reason)
        return self._groups[group]

    def _decline(self, reason: str) -> None:
        self.declined[reason] = self.declined.get(reason, 0) + 1


class Lowering:
    """Lowers one graph; made for one use.

    Slots belong to *regions*: a loop body is a region of its own, other blocks
    are part of the one around them. A step may empty only slots of its own
    region: the next iteration needs a loop's captures again.

    Args:
        plan: of the graph; its frame and slots are filled in.
        graph: the graph.
        storage: which values of the graph are one memory.
        specials: how to lower the kinds that are not kernel calls.
        function: what a constant of type Function is at run time, by the function's name.

    Attributes:
        plan: as given.
        bound: what earlier lowerings of the graph have made.
    """

    def __init__(
        self, plan: Plan, graph: Graph, storage: Storage, specials: dict[str, Special], function: Callable[[str], Any]
    ) -> None:
        self.plan = plan
        self.bound = plan.bound
        self._in_order = sees_layouts(graph)
        """Whether something may look at how results lie in memory."""
        self.sees_storage = sees_storage(graph)
        """Whether something may look at where the memory of results begins."""
        self._specials = specials
        self._function = function
        self._slots: dict[Value, int] = {}
        self._storage = storage
        self._storages: list[int] = [ESCAPED]  # by slot
        self._shown: list[frozenset[int]] = [frozenset([ESCAPED])]  # by slot
        self._regions: list[int] = [_NOWHERE]  # by slot
        self._region = _NOWHERE
        self._new_region = count(1).__next__
        self._destinations: dict[int, Destination] = {}
        """By the slot of a result: what it is to be copied to."""
        self._parts: dict[Value, Part] = {}
        """Results that are to be copied to what is assembled of them."""
        self._rows: dict[Value, int] = {}
        """Rows that loops stack -> slots for where they are stacked."""
        self._inside = 0  # of how many groups and branches of Ifs, one inside of the other, code is being lowered
        # The blocks being lowered that are regions of their own.
        self._bodies: list[Block] = []
        # The blocks being lowered, outermost first.
        self._live: list[_LiveSlots] = []

    def region(self, block: Block) -> Code:
        """Lower a block as a region of its own."""
        outer = self._region
        self._region = self._new_region()
        self._bodies.append(block)
        code = self.block(block, {})
        self._bodies.pop()
        self._region = outer
        return code

    def inner(self, blocks: Iterable[Block], given: Mapping[Value, int] | None = None) -> list[Code]:
        """Lower blocks of an If or a fusion group, which run at most once for each run of the code around.

        Args:
            blocks: the blocks; that of a group is another graph's.
            given: slots of a group's inputs, and those for results. A node's result that is not here gets a slot of its
                own.
        """
        self._inside += 1
        codes = [self.block(block, given or {}) for block in blocks]
        self._inside -= 1
        return codes

    def block(self, block: Block, given: Mapping[Value, int]) -> Code:
        """Lower a block that runs at most once for each run of the block around; some slots are ``given``."""
        into = sources(block.nodes)
        nodes = [*delayed(block.nodes, into)]
        code = Code(params=self._define(block.params, given))
        own = set(code.params)
        for node in nodes:
            if node.kind == CONSTANT:
                self._place(node)
            else:
                own.update(self._define(node.outputs, given))
        for node in nodes:
            for value in node.outputs if node in into or self._rows else ():
                self._note_destination(node, value, into.get(node))
        own.difference_update(given.values())  # results of a group belong to the code around it
        code.returns = self.slots(block.returns)
        code.owned = tuple(own.intersection(code.returns))
        live = _LiveSlots(self._shown)
        live.update(code.returns)
        self._live.append(live)
        backwards = [each for n in reversed(nodes) if n.kind != CONSTANT for each in self._lower(n, code)]
        unused = tuple(own.intersection(code.params) - live.slots)
        code.count_units([each.node for each in reversed(backwards) if not each.node.is_return])
        if unused and len(self._live) > 1:  # reported as the block's return node
            backwards.append(drop(block.return_node, unused))
        self._live.pop()
        code.captured = frozenset(live.slots - own)
        if self._live:
            self._live[-1].captured |= code.captured
        return code.with_instructions(backwards[::-1])

    def _lower(self, node: Node, code: Code) -> list[Instruction]:
        """The instructions for ``node``, the last first, which ``code`` counts."""
        ins, outs = self.slots(node.inputs), self.slots(node.outputs)
        live = self._live[-1]
        live.unused = self.dead(outs)
        live.difference_update(outs)
        live.captured = set()
        special = self._special(node)
        if special is not None:
            step = special(self, node, ins, outs)
            found = [Instruction(step, node, ins, outs, self.emptied(ins))]
        elif node.kind == GROUP:
            members = Members(self, node, ins, outs)
            found = members.instructions(self.emptied(ins))[::-1]
            code.kernels += members.code.kernels
            code.in_place += members.code.in_place
        else:
            dead = self.emptied(ins)
            found = [Instruction(self._kernel(node, ins, outs, dead), node, ins, outs, dead)]
            code.kernels += 1
            code.in_place += writes_over(node)
        places = [(slot, self._destinations[slot]) for slot in outs if slot in self._destinations]
        if places and [each.node for each in found] == [node]:
            found = [self._into(found[0], places)]
        live.update([slot for slot in live.captured.union(ins) if self._regions[slot] != _NOWHERE])
        return found

    def row_slots(self, body: Block, rows: Sequence[Value]) -> list[int | None]:
        """Slots for arrays in which an iteration may make ``rows``, which a loop stacks; None for others."""
        for value in rows:
            node = value.node
            if value.is_used_once and node is not None and node.block is body and form_follows(node):
                self._rows[value] = self._new_slot(value, _NOWHERE)
        return list(map(self._rows.get, rows))

    def _note_destination(self, node: Node, value: Value, into: Value | None) -> None:
        """Note that ``node`` may make ``value`` in ``into``, or in a stack's next row, if it reads neither."""
        slot = self._rows.get(value) if into is None else self._slots[into]
        if slot is None or self._is_kept(node):
            return
        shown = frozenset[int]() if into is None else self._shown[slot]
        others = [v for v in node.outputs if v is not value]
        read, held = (
            frozenset[int]().union(*(self._shown[each] for each in self.slots(of))) for of in (node.inputs, others)
        )
        made = self._slots[value]
        if read.isdisjoint(shown) and self._shown[made].isdisjoint(read | shown | held):
            self._destinations[made] = array_in(slot)

    def _is_kept(self, node: Node) -> bool:
        """Whether the kernel of ``node`` keeps its results, or may, so that they lie where it wants."""
        return node in self.bound.prepared.lasting or binder_of_others(node) is not None

    def _into(self, each: Instruction, places: Sequence[tuple[int, Destination]]) -> Instruction:
        """``each``, which makes its results in the arrays of their destinations if it can."""
        step, node, ins, outs, dead = each
        if node.kind == GROUP:
            return each._replace(step=step_into(step, step, ins, places))
        kernel = self.bound.kernel(node)
        if not takes_out(kernel) or (assembled(node) and isinstance(places[0][1], Part)):  # it is in its place already
            return each
        into = placed_step(kernel, ins, outs, dead, directly=False)
        return each._replace(step=step_into(into, step, ins, places))

    def _assembled(self, node: Node, step: Step, ins: Slots, outs: Slots, dead: Slots) -> Step:
        """``step``, which joins tensors, with parts made in the result if nothing needs them afterwards."""
        join = assembled(node)
        if join is None or node.kind == APPEND or self.sees_storage or self._is_kept(node):
            return step
        destination = self._destinations.get(outs[0])
        outer = destination if isinstance(destination, Part) else None
        parts = [(i, value) for i, part in enumerate(join.parts) for value in made_for(part, node.block)]
        parts = [(i, value) for i, value in parts if self._makes_part(value)]
        if not parts and outer is None:
            return step
        whole = Assembly(self._new_slot(node.output, _NOWHERE), outer)
        for i, value in parts:
            self._parts[value] = Part(whole, i)
        self._note_parts([value for _, value in parts])
        return whole.step(step, ins, outs[0], dead, join.axis)

    def _makes_part(self, value: Value) -> bool:
        """Whether ``value`` may be made in memory that is another value's after the node being lowered."""
        node = value.node
        if node is None or self._is_kept(node) or not (form_follows(node) or assembled(node)):
            return False
        return self._is_free(self._storage.of(value)) and makes_new(node)

    def _note_parts(self, values: Iterable[Value]) -> None:
        """Note what ``values`` are made in, of those that have slots: in branches of Ifs, they get them later."""
        for value in values:
            if value in self._parts and value in self._slots:
                self._destinations[self._slots[value]] = self._parts[value]

    def _special(self, node: Node) -> Special | None:
        """How to lower ``node`` if it is neither a kernel call nor a group of ordinary steps; else None."""
        special = self._specials.get(node.kind)
        if special is not None or node.kind == GROUP:
            check_form(node)  # what follows takes it for granted
        if node.kind != GROUP:
            return special
        if (kept := self.bound.prepared.group(node)) is not None:
            return partial(lower_kept, kept=kept)
        compiled = self.bound.compiled(node)
        return None if compiled is None else partial(lower_compiled, compiled=compiled)

    def slots(self, values: Iterable[Value]) -> Slots:
        """The slots of ``values``; Error IRC212 if one is not defined where it is used."""
        try:
            return tuple([self._slots[v] for v in values])
        except KeyError as error:
            raise Error("IRC212", f"%{error.args[0].name} is used where it is not defined") from None

    def _define(self, values: Sequence[Value], given: Mapping[Value, int]) -> Slots:
        """Slots for ``values``, in this region, except for values that have one in ``given``."""
        slots = tuple([given[value] if value in given else self._new_slot(value, self._region) for value in values])
        self._slots.update(zip(values, slots))
        self._note_parts(values if self._parts else ())
        return slots

    def _new_slot(self, value: Value, region: int) -> int:
        self.plan.frame.append(None)
        self._regions.append(region)
        self._storages.append(self._storage.of(value))
        self._shown.append(self._storage.shown(value))
        return len(self.plan.frame) - 1

    def _place(self, node: Node) -> None:
        slot = self._slots[node.output] = self._new_slot(node.output, _NOWHERE)
        if node.outputs[0].type == FUNCTION:
            if node.outputs[0].has_uses:  # inlining leaves functions behind that nothing calls
                self.plan.frame[slot] = self._function(node.attributes.get("name", ""))
            return
        value = node.attributes.get("value")
        if node not in self.bound.constants:
            if isinstance(value, Tensor) and value.can_wait:
                self.plan.unread.append((slot, node))
                return
            constant = runtime_constant(value, self._in_order)
            self.bound.constants[node] = typed(constant, node.outputs[0].type) if self.bound.typed else constant
        self.plan.frame[slot] = self.bound.constants[node]

    def _kernel(self, node: Node, ins: Slots, outs: Slots, dead: Slots) -> Step:
        kernel = self.bound.kernel(node)
        if takes_out(kernel) if len(outs) == 1 else takes_outs(kernel):
            self.may_be_placed(node.outputs, outs)
        may_repeat = reads_first(node.kind)
        step = call_step(node, kernel, ins, outs, dead, lambda n: self.free(ins, n, may_repeat), self.sees_storage)
        join = joined(node)
        ends = [i for i in (0, -1) if join is not None and self._is_free(self._storage.of(join.parts[i]))]
        if join is not None and ends:
            step = step_around(step, ends, ins, outs[0], dead, join.axis, self.sees_storage)
        return self._assembled(node, step, ins, outs, dead)

    def emptied(self, ins: Slots) -> Slots:
        """The slots that the step being lowered, which reads ``ins``, must empty; its blocks come first."""
        live = self._live[-1]
        return (*live.unused, *self.dead(live.captured.union(ins)))

    def may_be_placed(self, values: Sequence[Value], slots: Slots) -> None:
        """Note the ``slots`` of the results of the step being lowered, if that runs at most once a run."""
        if self.runs_once:
            self.plan.slot_of.update(zip(values, slots))

    def loop_step(self, node: Node, body: Code, step_of: Callable[[Iterate | None], Step]) -> Step:
        """The step of a loop, whose body and what makes its step are noted if that runs at most once a run."""
        if self.runs_once:
            self.plan.loops[node] = {value: self._slots[value] for value in node.captures()}, body, step_of
        return step_of(None)

    @property
    def runs_once(self) -> bool:
        """Whether the step being lowered runs at most once a run."""
        return len(self._live) <= self._inside + 1

    def dead(self, slots: Iterable[int]) -> list[int]:
        """Those of ``slots`` that nothing reads after the node being lowered, and which it may empty."""
        return [
            slot
            for slot in slots
            if self._regions[slot] == self._region and not any(slot in live.slots for live in self._live)
        ]

    def free(self, ins: Slots, count: int, may_repeat: bool = False) -> tuple[int, ...]:
        """Positions among the first ``count`` of ``ins`` whose memory is dead after the current node.

        One slot may be there several times if it ``may_repeat``; two slots of one memory are never free.
        """
        storages = [self._storages[s] for s in ins]
        times = Counter(storage for s in (dict.fromkeys(ins) if may_repeat else ins) for storage in self._shown[s])
        return tuple([i for i, s in enumerate(storages[:count]) if times[s] == 1 and self._is_free(s)])

    def read_only_carried(self, body: Block, given: Slots, takers: Sequence[Slots]) -> Slots:
        """The positions of carried values needed elsewhere too, so that no iteration may write them.

        Args:
            body: the loop's body.
            given: the slots that the carried values come from.
            takers: for each of these, the slots that receive it, in the body and after the loop.
        """
        self._bodies.append(body)
        free = self.free(given, len(given))
        self._bodies.pop()
        apart = [{self._storages[t] for t in slots} != {self._storages[s]} for s, slots in zip(given, takers)]
        return tuple([i for i, is_apart in enumerate(apart) if is_apart and i not in free])

    def _is_free(self, storage: int) -> bool:
        """Whether nothing needs the memory class ``storage`` after the node that is being lowered."""
        return (
            storage != ESCAPED
            and not any(live.storages.get(storage) for live in self._live)
            and self._storage.captors(storage).isdisjoint(self._bodies)
        )


class _LiveSlots:
    """The live slots of a block, lowered from its end, and how many of them show each storage class.

    Attributes:
        unused: slots of results of the current node that nothing reads.
        captured: slots that the current node's blocks capture.
    """

    __slots__ = ("_shown", "captured", "slots", "storages", "unused")

    def __init__(self, shown: list[frozenset[int]]) -> None:
        self._shown = shown
        self.slots: set[int] = set()
        self.storages: Counter[int] = Counter()
        self.unused: list[int] = []
        self.captured: set[int] = set()

    def update(self, slots: Iterable[int]) -> None:
        new = set(slots) - self.slots
        self.slots |= new
        self.storages.update(chain.from_iterable([self._shown[slot] for slot in new]))

    def difference_update(self, slots: Iterable[int]) -> None:
        gone = self.slots.intersection(slots)
        self.slots -= gone
        self.storages.subtract(chain.from_iterable([self._shown[slot] for slot in gone]))


def runtime_constant(value: Any, in_order: bool = False) -> Any:
    """A constant's value at run time: read-only arrays for tensors, immutable lists for lists.

    Large splats stay broadcast, unless all constants must lie ``in_order``, because something may look at strides.

    A tensor with a name is the same memory in all nodes; one without a name is memory of its node alone, even if
    another node's tensor is equal.
    """
    if isinstance(value, Tensor):
        is_large = value.is_splat and value.nbytes > _WRITE_OUT
        if is_large and in_order:
            check_size(value.shape, value.dtype.numpy)
            is_large = False
        if value.name:
            return as_constant(value.numpy() if is_large else value.written_out())
        if is_large:
            return np.broadcast_to(value.scalar.copy(), value.shape)
        array = np.array(value.numpy(), order="C")
        array.flags.writeable = False
        return as_constant(array)
    if is_sequence(value):
        items = [runtime_constant(item, in_order) for item in value]
        return tuple(items) if is_tuple(value) else ConstantList(items)
    return value


def _refusing(node: Node, deferred: Iterable[Node]) -> Kernel:
    def run(*inputs: Any) -> Any:
        raise unsupported([other for other in deferred if is_opaque(other.kind)] if is_opaque(node.kind) else [node])

    return run


def subgraph_of(node: Node) -> Graph:
    """The graph of a fusion group; Error IRC215 if there is none."""
    graph = inner_graph(node)
    if graph is None:
        raise Error("IRC215", "a fusion group needs its graph as the attribute Subgraph", label(node))
    return graph


class Members:
    """The members of a fusion group, lowered to code on slots of the block around the group.

    Args:
        lowering: of that block.
        group: the node.
        ins: the slots that it reads.
        outs: the slots that it writes.

    Attributes:
        code: the steps.
    """

    def __init__(self, lowering: Lowering, group: Node, ins: Slots, outs: Slots) -> None:
        graph = subgraph_of(group)
        # Members make results where they belong, but for inputs, constants, and the second of two equal ones.
        results = reversed([*zip(graph.outputs, outs)])
        given = {value: slot for value, slot in results if value.node is not None and value.node.kind != CONSTANT}
        (self.code,) = lowering.inner([graph.block], {**dict(zip(graph.inputs, ins)), **given})
        self.code.units = 0  # the group is part of a unit, which the code around it counts
        moves = [(result, out) for result, out in zip(self.code.returns, outs) if result != out]
        self._results, self._outs = tuple([result for result, _ in moves]), tuple([out for _, out in moves])
        self._end = graph.block.return_node

    def instructions(self, dead: Slots) -> list[Instruction]:
        """The members, in order, and what is to be done after them; all together empty ``dead``, too."""
        results, outs = self._results, self._outs
        emptied = self.code.captured.difference(self.code.returns)
        left = tuple([s for s in dead if s not in emptied])

        def end(frame: Frame) -> None:
            put(frame, outs, [frame[s] for s in results], left)

        after = [Instruction(end, self._end, results, outs, left)] if outs or left else []
        return [*self.code.instructions, *after]

    def step(self, dead: Slots) -> Step:
        """A step that runs the members, and empties ``dead``."""
        return partial(execute, self.code.with_instructions(self.instructions(dead)))


def lower_kept(lowering: Lowering, node: Node, ins: Slots, outs: Slots, kept: Kept) -> Step:
    """Lower a group whose results, which are made of constants alone, are ``kept`` from run to run."""
    members = Members(lowering, node, ins, outs).step(())
    dead = lowering.emptied(ins)
    values = [each.attributes.get("value") for each in subgraph_of(node).nodes if each.kind == CONSTANT]
    tensors = [value for value in values if isinstance(value, Tensor)]

    def step(frame: Frame) -> None:
        if kept.made is not None:
            put(frame, outs, kept.made, dead)
            return
        operands, observer = [frame[s] for s in ins], frame[0].observer
        members(frame)
        made = [frame[s] for s in outs]
        put(frame, (), (), dead)
        if kept.keep(made):
            for array in arrays_once(made):
                note_origin(array, [*filter(is_constant, operands), *[tensor.numpy() for tensor in tensors]])
                if observer is not None:
                    observer.retain(array)

    return step


def _place_over(results: list[Any], operands: Sequence[Any], pairs: Pairs, arena: Any, must_own_storage: bool) -> int:
    """Put operands that may be written over where results have no place yet; how many."""
    count = 0
    for result, i in pairs:
        x = operands[i]
        if results[result] is None and is_array(x) and x.flags.carray and may_overwrite(x, arena, must_own_storage):
            for y in results:  # a loop: small groups take no longer than the search for a place does
                if x is y:
                    break  # it is the place of another result, or was donated as one
            else:
                results[result] = x
                count += 1
    return count


def lower_compiled(lowering: Lowering, node: Node, ins: Slots, outs: Slots, compiled: CompiledGroup) -> Step:
    """Lower a group that a backend may compile: a kernel if it has one for the operands, else its members."""
    inside = lowering.plan.groups[node] = Members(lowering, node, ins, outs)
    dead = lowering.emptied(ins)
    members = inside.step(dead)
    lowering.may_be_placed(node.outputs, outs)
    out = outs[0] if len(outs) == 1 else None
    free = frozenset([i for i in lowering.free(ins, len(ins)) if ins[i] in dead])
    must_own_storage = lowering.sees_storage

    latest: tuple[Kernel, Pairs] = suits_nothing, ()

    def step(frame: Frame) -> None:
        nonlocal latest
        run: Run = frame[0]
        operands, given = [frame[s] for s in ins], [frame[s] for s in outs]
        kernel, pairs = latest
        placed = _place_over(given, operands, pairs, run.arena, must_own_storage) if pairs else 0
        try:
            made = kernel(*operands, out=given if out is None else given[0])
            if made is NotImplemented and (found := compiled.kernel(operands)) is not None:
                kernel, pairs = found.kernel, [pair for pair in found.over if pair[1] in free]
                if compiled.checks:
                    latest = kernel, pairs
                given = [frame[s] for s in outs]
                placed = _place_over(given, operands, pairs, run.arena, must_own_storage)
                made = kernel(*operands, out=given if out is None else given[0])
        except Unsupported as error:
            compiled.decline(str(error))
            made = NotImplemented
        if made is NotImplemented:
            del operands, given  # what is counted by references is for the members to write over
            places = [(s, x) for s in outs if is_array(x := frame[s]) and x.base is not None and x.base is run.arena]
            members(frame)
            for s, place in places:
                if frame[s] is not None:  # it may be read where it lies: as a part of a Concat's result
                    np.copyto(place, frame[s])
                    frame[s] = place
            return
        run.in_place += placed
        run.kernels += 1
        run.compiled += 1
        put(frame, outs, made if out is None else (made,), dead)

    return step
