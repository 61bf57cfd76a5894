"""Loops whose iterations run at once, as one table made from the body.

The body is copied to a graph of its own, whose inputs are the parameters and what the body captures. Its parameters and
results have places in memory of their own. An iteration begins by copying the rows of sequences to their parameters. It
ends by copying its rows to the scan outputs, and carried values over their parameters. So each iteration does the same
work in the same places, and is compiled like other steps of planned runs. A tensor of which the body only takes the row
with the number of the iteration is a sequence, too.

Invariants:

- In the run that was recorded, each value of the body had one form in all iterations, and so had each carried value.
  With initial values or sequences of other forms the loop runs step by step.
- Nothing in the body writes to its operands, and what is carried shares no memory with a parameter.
- Results of TorchScript's operators lie as their operands do: all are in C order, in the run that was recorded, too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from irc.alias import analyze
from irc.ir import Array, Block, Graph, Node, TensorType, Value
from irc.ir.clone import ValueMap, clone_node
from irc.ir.kinds import CONSTANT, GROUP, ONNX_LOOP, PRIM_LOOP, SCAN
from irc.ir.region_flow import carried, is_batched, with_subgraphs
from irc.native.groups import Anchored, Group
from irc.native.tables import CompiledLoop, LoopMoves, loop_of
from irc.runtime.arena import FastSteps, PlannedSteps
from irc.runtime.array_memory import ArrayType, aligned_bytes
from irc.runtime.control_flow import FIRST_ROWS, Iterate, Stack
from irc.runtime.execution import Code, Frame, Run, put
from irc.runtime.kernels.support import axis_in
from irc.runtime.lowering import Bound, Lowering, subgraph_of
from irc.runtime.memory_plan import FormRecorder, Planner, form_of, own_groups, were_steps
from irc.runtime.plan import SPECIAL, Plan
from irc.runtime.storage import Storage
from irc.runtime.values import is_array

Forms = Mapping[Value, ArrayType]


def _results(node: Node) -> list[tuple[Value, Value]]:
    """The results of a fusion group, and what they are inside; none of any other node."""
    return list(zip(node.outputs, subgraph_of(node).outputs)) if node.kind == GROUP else []


def compiled_loop(
    node: Node, plan: Plan, known: FormRecorder, compiled_groups: Mapping[Graph, Group | Anchored]
) -> Iterate | None:
    """What runs all iterations of a loop in runs like the recorded one; None if nothing does.

    Args:
        node: the loop, in the top block or a branch of the graph.
        plan: of the graph.
        known: what was recorded.
        compiled_groups: what has been compiled, by the subgraphs of fusion groups.
    """
    (block,), (slot_of, code, _) = node.blocks, plan.loops[node]
    rows = _rows(block, slot_of) if node.kind != SCAN else {}
    inside = [each for each in block.nodes if each.kind != CONSTANT and each not in rows]
    made = {value for each in inside for value in each.outputs}
    found = {value: form for value, form in known.forms.items() if value not in known.varying}
    for outer, inner in [pair for each in inside for pair in _results(each)]:  # of members that ran one by one
        if inner in found:
            found[outer] = found[inner]
    forms = _forms_of_params(node, found, rows)
    members = with_subgraphs(*[subgraph_of(each) for each in inside if each.kind == GROUP])
    kinds = {each.kind for each in (*inside, *members)}
    is_open = any(form.varies for form in (*forms.values(), *found.values()))
    if not forms or is_open or not made <= found.keys() or not kinds.isdisjoint(SPECIAL):
        return None
    has_torch_s = any(kind.startswith("aten::") for kind in kinds)
    if has_torch_s and not made.isdisjoint(known.strides):
        return None
    copy = _copied(block, list(slot_of), plan.bound, rows)
    storage = Storage(analyze(copy.graph, noalias=copy.graph.inputs))
    if storage.written:
        return None
    given = {value: form for value in slot_of if (form := form_of(value, found)) is not None}
    recorded = FormRecorder()
    recorded.forms = copy.of({**found, **given, **forms})
    recorded.strides, recorded.few = copy.of(known.strides), copy.of(known.few)
    own = Plan(copy.graph.name, copy.graph.inputs, copy.bound)
    own.code = Lowering(own, copy.graph, storage, {}, lambda _: None).region(copy.graph.block)
    taken = [each.output for each in rows]
    params = {copy.values[x]: slot for x, slot in zip((*block.params, *taken), own.code.params) if x in forms}
    of_torch = [each for each in own.code.instructions if each.node.kind.startswith("aten::")]
    own.slot_of.update(pair for each in of_torch for pair in zip(each.node.outputs, each.outs))
    own.slot_of.update(params)
    groups = [group for group in own_groups(copy.graph) if not were_steps(group, recorded.forms)]
    compiled = {group: found for group in groups if (found := copy.bound.compiled(group)) is not None}
    planner = Planner(copy.graph, storage, own.slot_of, compiled, tuple(params))
    memory = planner.plan(recorded.forms)
    fast = FastSteps(own, memory, planner, recorded, aligned_bytes(memory.nbytes))
    to_compile, once = fast.to_compile(own.code), fast.once

    def new_frame() -> Frame:
        frame = PlannedSteps(own, memory, compiled).frame(aligned_bytes(memory.nbytes))
        if node.kind == ONNX_LOOP:
            frame[own.code.params[1]][...] = True  # as the condition is inside of an iteration
        for step in once:
            step(frame)
        return frame

    frame = new_frame()
    moves = None if to_compile is None else _moves(node, copy.graph, own.code, storage, frame, len(rows))
    if to_compile is None or moves is None:
        return None
    counts, steps = to_compile
    function = loop_of(steps, compiled_groups, moves)
    if function is None:
        return None
    counts.units = code.units
    counts.kernels += sum([step.node.kind == GROUP for step in steps]) + len(rows)
    captured = [slot for value, slot in slot_of.items() if not value.made_by(CONSTANT)]
    sliced = [(slot_of[each.inputs[0]], axis) for each, axis in rows.items()]
    return _Iterations(function, moves, frame, new_frame, counts, captured, sliced, has_torch_s)


def _rows(block: Block, captured: Container[Value]) -> dict[Node, int]:
    """The nodes that take row number i of a captured tensor in iteration i, and along which axis."""
    found: dict[Node, int] = {}
    for node in block.params[0].users:
        if node.block is not block or node.inputs[0] not in captured:
            continue
        if node.kind == "onnx::Gather":
            found[node] = int(node.attributes.get("axis", 0))
        elif node.kind == "aten::select" and (axis := node.inputs[1].made_by(CONSTANT)) is not None:
            found[node] = axis.attributes["value"]
    return found


class _Copy(NamedTuple):
    """The body of a loop as a graph.

    Attributes:
        graph: its inputs are the parameters, then rows by number, then what the body captures, but for constants.
        values: the copies of values.
        bound: its kernels, and the constants that the graph around the loop has.
    """

    graph: Graph
    values: ValueMap
    bound: Bound

    def of(self, found: Mapping[Value, Any]) -> dict[Value, Any]:
        """What is known of values, by their copies."""
        return {self.values.get(value, value): each for value, each in found.items()}


def _copied(block: Block, captured: Sequence[Value], bound: Bound, rows: Mapping[Node, int]) -> _Copy:
    copy = _Copy(Graph("body", block.graph.weights, block.graph.module), {}, Bound((), bound.backend, bound.typed))
    copy.bound.constants = dict(bound.constants)
    outside = [node for value in captured if (node := value.made_by(CONSTANT)) is not None]
    taken = [each.output for each in rows]
    for value in (*block.params, *taken, *(value for value in captured if not value.made_by(CONSTANT))):
        copy.values[value] = copy.graph.add_input(value.type, value.name)
    for node in (*outside, *(each for each in block.nodes if each not in rows)):
        made = copy.graph.block.append(clone_node(node, copy.graph, copy.values))
        made.attributes = node.attributes  # of a group, the graph that the backend has compiled
        if node in bound.constants:
            copy.bound.constants[made] = bound.constants[node]
    copy.graph.set_outputs([copy.values[value] for value in block.returns])
    return copy


def _forms_of_params(node: Node, forms: Forms, rows: Mapping[Node, int]) -> dict[Value, ArrayType]:
    """The forms of the parameters of a loop's body and of ``rows``; empty if one is unknown or varies."""
    at, (block,) = carried(node), node.blocks
    found = {each.output: form for each in rows if (form := forms.get(each.output)) is not None}
    if node.kind == ONNX_LOOP:
        for param, kind in zip(block.params, (np.int64, np.bool_)):
            rank = param.type.rank if isinstance(param.type, TensorType) else None
            found[param] = ArrayType(np.dtype(kind), (1,) * (rank or 0))
    axes: Sequence[int] = node.attributes.get("scan_input_axes") or [0] * len(node.inputs)
    for i, (param, value) in enumerate(zip(block.params[at.param :], node.inputs[at.input :])):
        form = form_of(value, forms)
        if form is None:
            return {}
        if is_batched(node):
            form = ArrayType(form.dtype, form.shape[1:])
        if i >= at.many:
            axis = axis_in(axes[i - at.many], len(form.shape))
            form = ArrayType(form.dtype, form.shape[:axis] + form.shape[axis + 1 :])
        found[param] = form
    for param, value in zip(block.params[at.param :][: at.many], block.returns[at.returned :]):
        if found.get(value, forms.get(value)) != found[param]:
            return {}
    is_number = node.kind == PRIM_LOOP and len(block.params[0].uses) > len(rows)
    return {} if is_number or len(found) < len(rows) else found


def _moves(node: Node, graph: Graph, code: Code, storage: Storage, frame: Frame, rows: int) -> LoopMoves | None:
    """What iterations move from slot to slot; None if they do not run at once.

    Args:
        node: the loop.
        graph: of its body.
        code: of that.
        storage: of that.
        frame: the arrays that iterations work on.
        rows: how many parameters follow those of the loop.
    """
    at = carried(node)
    found: list[Any] = [frame[s] for s in code.returns]
    can_be_copied = [is_array(x) and x.flags.c_contiguous and not x.dtype.hasobject for x in found]
    if not all(can_be_copied[at.returned :]):
        return None
    returned = list(zip(graph.outputs, code.returns))[at.returned :]
    shown = {storage.of(param) for param in graph.inputs}
    is_true = [x is True for x in found]
    goes_on = at.returned == 0 or is_true[0] or (node.kind == ONNX_LOOP and graph.outputs[0] is graph.inputs[1])
    if not goes_on:
        is_flag = can_be_copied[0] and found[0].dtype == np.bool_ and found[0].size == 1
        if not is_flag or storage.of(graph.outputs[0]) in shown:
            return None
    over: list[tuple[int, int, int]] = []
    for param, slot, (value, source) in zip(graph.inputs[at.param :], code.params[at.param :], returned[: at.many]):
        if value is param:
            continue
        if storage.of(value) in shown:
            return None
        over.append((source, slot, frame[slot].nbytes))
    scanned = code.params[at.param + at.many : len(node.blocks[0].params) + rows]
    return LoopMoves(
        number=code.params[0] if node.kind == ONNX_LOOP and graph.inputs[0].has_uses else None,
        taken=[(slot, frame[slot].nbytes) for slot in scanned],
        given=[(slot, frame[slot].nbytes) for _, slot in returned[at.many :]],
        carried=over,
        params=code.params[at.param :][: at.many],
        condition=None if goes_on else code.returns[0],
    )


class _Iterations:
    """Runs the iterations of a loop: see `irc.runtime.control_flow.Iterate`.

    Args:
        compiled: of the body.
        moves: what iterations move.
        frame: for one run at a time.
        new_frame: makes another one.
        counts: what an iteration counts.
        captured: the slots of what the body captures, in the frame of the graph around the loop.
        sliced: those of it whose rows iterations take, and along which axis.
        in_order: whether what is carried, and what rows are of, have to lie in C order.
    """

    def __init__(
        self,
        compiled: CompiledLoop,
        moves: LoopMoves,
        frame: Frame,
        new_frame: Callable[[], Frame],
        counts: Code,
        captured: Sequence[int],
        sliced: Sequence[tuple[int, int]],
        in_order: bool,
    ) -> None:
        self._compiled, self._moves, self._counts = compiled, moves, counts
        self._frames, self._new_frame = [frame], new_frame
        self._captured, self._sliced, self._in_order = captured, sliced, in_order
        first = len(counts.params) - len(captured)
        self._places = counts.params[first:]
        self._given = [ArrayType.of(frame[s]) for s in moves.params]
        self._taken = [ArrayType.of(frame[s]) for s, _ in moves.taken]
        self._rows = [ArrayType.of(frame[s]) for s, _ in moves.given]

    def __call__(
        self,
        frame: Frame,
        values: Sequence[Any],
        sequences: Sequence[Array],
        most: int | None,
        stacks: Sequence[Stack],
    ) -> list[Any] | None:
        if not all(is_array(x) and ArrayType.of(x) == form for x, form in zip(values, self._given, strict=True)):
            return None
        whole = [(frame[s], axis) for s, axis in self._sliced]
        if not all(is_array(x) and -x.ndim <= axis < x.ndim and most is not None for x, axis in whole):
            return None
        if self._in_order and not all(x.flags.c_contiguous for x in (*values, *sequences, *[x for x, _ in whole])):
            return None
        sequences = [*sequences, *(np.moveaxis(x, axis, 0) for x, axis in whole)]
        if most is not None and any(len(x) < most for x in sequences):
            return None
        if [ArrayType(x.dtype, x.shape[1:]) for x in sequences] != self._taken:
            return None
        try:
            own = self._frames.pop()
        except IndexError:
            own = self._new_frame()
        try:
            put(own, self._places, [frame[s] for s in self._captured])
            for s, x in zip(self._moves.params, values):
                own[s][...] = x
            if not self._run(own, frame[0], [*map(np.ascontiguousarray, sequences)], most, stacks):
                return None
            moved = {slot for _, slot, _ in self._moves.carried}  # what the body passes on stays the memory that it is
            return [own[s].copy() if s in moved else x for s, x in zip(self._moves.params, values)]
        finally:
            put(own, (), (), self._places)
            self._frames.append(own)

    def _run(self, own: Frame, run: Run, rows: list[Array], most: int | None, stacks: Sequence[Stack]) -> bool:
        """Run iterations until the loop ends; False if the code refuses what it is given, before the first."""
        counts, condition, done, goes_on = self._counts, self._moves.condition, 0, True
        while goes_on and (most is None or done < most):
            count = self._compiled.most if most is None else min(self._compiled.most, most - done)
            if condition is not None and stacks:
                count = min(count, max(done, FIRST_ROWS))  # nobody knows how many rows there will be
            buffers = [stack.buffer_for(count, *form) for stack, form in zip(stacks, self._rows)]
            end = self._compiled.function(own, [*rows, *buffers], done, done + count)
            if not end:
                return False
            made, done = end - done, end
            for stack in stacks:
                stack.added(made)
            run.units += made * counts.units
            run.kernels += made * counts.kernels
            run.in_place += made * counts.in_place
            goes_on = condition is None or own[condition].item()
        return True
