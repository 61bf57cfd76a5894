"""Control flow: If, loops, scans and what they stack, calls of functions.

Blocks run in the frame of the graph around them. Block parameters and
carried values are moved from slot to slot, never copied. A function has a frame of its own.

``onnx::Scan`` applies a body to slices of tensors, states carried from one slice to the next.
Versions 9 and 11 differ in that 11 allows negative axes. Version 8 has a batch
axis: it is a Scan for each element of the batch, over sequences of their own
lengths (https://onnx.ai/onnx/operators/onnx__Scan.html).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.region_flow import carried, is_batched, scanned_rows
from irc.runtime.execution import Code, Frame, Slots, Step, execute, fail, label, put
from irc.runtime.kernels.support import axis_in, check_size
from irc.runtime.values import Array, describe, is_array, read_only

if TYPE_CHECKING:
    from irc.ir import Node, TensorType
    from irc.runtime.lowering import Lowering
    from irc.runtime.plan import Plan


FIRST_ROWS = 16
"""Rows for which there is room at first."""


class Stack:
    """Collects equally shaped arrays as rows of one.

    Rows are copied when they come, so that later iterations may write where they
    were. The room for them doubles when it is used up.

    Args:
        row: the type of a row, needed if there is no iteration; see `irc.ir.region_flow.row_type`.
        rows: the most rows that can come; None: unknown.
    """

    def __init__(self, row: TensorType, rows: int | None = None) -> None:
        self._row = row
        self._most = rows
        self._buffer: Array | None = None
        self._count = 0
        self._next: Array | None = None

    def place(self) -> Array | None:
        """Where the next row goes, which may be made there, then appended; None if there is no room yet."""
        buffer = self._buffer if self._count else None
        self._next = None if buffer is None or self._count == len(buffer) else buffer[self._count, ...]
        return self._next

    def append(self, row: Any) -> None:
        """Add a copy of ``row``; Error IRC432 if it is not a tensor like the first in type and shape."""
        if row is self._next and row is not None:
            self._count += 1
            return
        if not is_array(row):
            raise Error("IRC432", f"a scan output must be a tensor in each iteration; got {describe(row)}")
        buffer = self._buffer
        if buffer is not None and self._count and (row.shape != buffer.shape[1:] or row.dtype != buffer.dtype):
            first = describe(buffer[0])
            was = f"a scan output was {first} in the first iteration and is {describe(row)} in a later one"
            raise Error("IRC432", was)
        self.buffer_for(1, row.dtype, row.shape)[self._count, ...] = row  # else a string would become an array
        self._count += 1

    def buffer_for(self, count: int, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
        """The rows, of this type, and memory for at least ``count`` more."""
        # One without rows may be of another type: it was for iterations that did not run.
        buffer, needed = self._buffer if self._count else None, self._count + count
        if buffer is None or needed > len(buffer):
            # Doubled, so that n rows cost O(n) copies; the guard of a run with limits is asked for each new buffer.
            rows = max(needed, 2 * self._count or FIRST_ROWS)
            rows = rows if self._most is None else min(self._most, rows)
            larger = np.empty(check_size((rows, *shape), dtype), dtype)
            if buffer is not None:
                larger[: self._count] = buffer[: self._count]
            buffer = self._buffer = larger
        return buffer

    def added(self, count: int) -> None:
        """Note that ``count`` rows have been written to the buffer."""
        self._count += count

    def result(self, axis: int = 0, backwards: bool = False) -> Array:
        """All rows along ``axis`` of the result, the last first if ``backwards``; C order, not shared.

        With no rows, the declared type gives the shape; sizes that it does not state are 0, as in ONNX Runtime.
        """
        if self._buffer is None:
            return self._no_rows(axis)
        rows = self._buffer[: self._count]
        if backwards:
            rows = rows[::-1]
        axis = axis_in(axis, rows.ndim)
        if axis or backwards:
            return np.ascontiguousarray(np.moveaxis(rows, 0, axis))
        return rows if self._count == len(self._buffer) else rows.copy()

    def _no_rows(self, axis: int) -> Array:
        if self._row.dtype is None:
            remedy = "declare it in the body, or inline the function that the loop is in"
            what = "the loop made no iteration, and nothing states the element type of a scan output"
            raise Error("IRC432", f"{what}: {remedy}")
        shape = [d if isinstance(d, int) else 0 for d in self._row.shape or ()]
        shape.insert(axis_in(axis, len(shape) + 1), 0)
        return np.empty(check_size(shape, self._row.dtype.numpy), self._row.dtype.numpy)


Iterate = Callable[[Frame, Sequence[Any], Sequence[Array], "int | None", Sequence[Stack]], "list[Any] | None"]
"""Runs all iterations of a loop at once, of which there is at least one.

It is given the graph's frame, the carried values, which are read only, the sequences whose rows iterations take, the
number of iterations, or the most (None: unknown), and the stacks that collect rows. It returns the carried values at
the end; None if it can do nothing with these operands.
"""


def lower_if(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """``prim::If(cond)`` with blocks then, else; the condition is a bool or a tensor of one element."""
    (condition,) = ins
    branches = lowering.inner(node.blocks)
    dead = lowering.emptied(ins)

    def step_of(then: Code, otherwise: Code) -> Step:
        def step(frame: Frame) -> None:
            code = then if truth(frame[condition]) else otherwise
            execute(code, frame)
            put(frame, outs, code.take_returns(frame), dead)

        return step

    if lowering.runs_once:
        lowering.plan.branches[node] = branches, step_of
    return step_of(*branches)


def lower_prim_loop(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """``prim::Loop(trip_count, cond, carried...)``; body parameters: the iteration, carried values."""
    return _lower_loop(lowering, node, ins, outs, [lambda i: i])


def lower_onnx_loop(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """``onnx::Loop(M?, cond?, carried...)``, with scan outputs after the carried values.

    The body's parameters are iteration number, condition and carried values. The first two are tensors of one element,
    of the rank that the parameters state. (Inside an iteration the condition is always true.)
    """
    params = (param for block in node.blocks for param in block.params)
    trip_rank, condition_rank, *_ = (*(param.type.rank or 0 for param in params), 0, 0)

    number = partial(np.array, dtype=np.int64, ndmin=trip_rank)
    return _lower_loop(lowering, node, ins, outs, [number, lambda i: np.array(True, ndmin=condition_rank)])


def _lower_loop(
    lowering: Lowering, node: Node, ins: Slots, outs: Slots, leading: Sequence[Callable[[int], Any]]
) -> Step:
    """``leading`` makes the values of the parameters before the carried ones."""
    body = Body(lowering, node, ins, outs, leading)
    limit_slot, condition_slot = (*ins, None, None)[:2]
    initial = ins[2:]
    dead = lowering.emptied(ins)
    # The first iteration owns the initial values that nothing else needs: an entry here would keep them alive.
    handed_over = tuple(set(initial).intersection(dead) - body.code.captured)

    def step_of(at_once: Iterate | None) -> Step:
        def step(frame: Frame) -> None:
            limit = None if limit_slot is None else trip_count(frame[limit_slot])
            go_on = condition_slot is None or frame[condition_slot] is None or truth(frame[condition_slot])
            values = [frame[s] for s in initial]
            put(frame, (), (), handed_over)
            try:
                values, stacks = body.iterate(frame, values, (), limit if go_on else 0, at_once)
            except Exception as error:
                fail(error, node, [frame[s] for s in ins if s not in handed_over])  # of the others nothing is known
            put(frame, outs, [*values, *(stack.result() for stack in stacks)], dead)

        return step

    return lowering.loop_step(node, body.code, step_of)


class Body:
    """The lowered body of a loop or scan, and how values are carried into and out of it.

    An iteration may overwrite a carried value that nothing else needs. Any other one enters the body as a read-only
    view (`irc.runtime.storage`).

    Args:
        lowering: of the graph.
        node: the loop.
        ins: the slots of its inputs.
        outs: the slots of its results.
        leading: make the values of the parameters before the carried ones, by the number of the iteration.

    Attributes:
        code: the body's steps.
    """

    def __init__(
        self, lowering: Lowering, node: Node, ins: Slots, outs: Slots, leading: Sequence[Callable[[int], Any]] = ()
    ) -> None:
        at = carried(node)
        (block,) = node.blocks
        self._row_slots = lowering.row_slots(block, block.returns[at.returned + at.many :])
        self._places = tuple([slot for slot in self._row_slots if slot is not None])
        self.code = lowering.region(block)
        self._leading = leading
        self._rows = scanned_rows(node)
        self._returned = slice(at.returned, at.returned + at.many)
        takers = [(param, *outs[i : i + 1]) for i, param in enumerate(self.code.params[at.param :][: at.many])]
        self._read_only_initial = lowering.read_only_carried(block, ins[at.input :][: at.many], takers)
        self._read_only_carried = lowering.read_only_carried(block, self.code.returns[self._returned], takers)

    def iterate(
        self, frame: Frame, values: list[Any], sequences: Sequence[Array], most: int | None, at_once: Iterate | None
    ) -> tuple[list[Any], list[Stack]]:
        """Run all iterations; return the carried values at the end, and the rows of scan outputs.

        Args:
            frame: the graph's.
            values: the initial carried values. The list is emptied: the frame holds whatever is still needed.
            sequences: each iteration takes a row of each of these.
            most: how many iterations there are, or at most if the body returns a condition; None: any number.
            at_once: what may run all iterations at once.
        """
        stacks = [Stack(row, most) for row in self._rows]
        values = _read_only(values, self._read_only_initial)
        if at_once is not None and (most is None or most > 0):
            found = at_once(frame, values, sequences, most, stacks)
            if found is not None:
                return found, stacks
        i, go_on = 0, True
        while go_on and (most is None or i < most):
            go_on, values = self._run(i, frame, values, [sequence[i, ...] for sequence in sequences], stacks)
            i += 1
        put(frame, (), (), self._places)
        return values, stacks

    def _run(
        self, i: int, frame: Frame, values: list[Any], rows: Iterable[Any], stacks: Iterable[Stack]
    ) -> tuple[bool, list[Any]]:
        """Run iteration ``i``; return whether another one may follow, and the carried values."""
        put(frame, self.code.params, [*[make(i) for make in self._leading], *values, *rows])
        values.clear()  # a reference here would keep a value alive that the body could free
        for slot, stack in zip(self._row_slots, stacks):
            if slot is not None:
                frame[slot] = stack.place()
        execute(self.code, frame)
        found = self.code.take_returns(frame)
        for stack, row in zip(stacks, found[self._returned.stop :]):
            stack.append(row)
        go_on = not self._returned.start or truth(found[0])
        return go_on, _read_only(found[self._returned], self._read_only_carried)


def _read_only(values: list[Any], positions: Slots) -> list[Any]:
    """``values``, with what is at ``positions`` made read-only."""
    for i in positions:
        if is_array(values[i]):
            values[i] = read_only(values[i])
    return values


def truth(value: Any) -> bool:
    """A condition as a bool; Error if it is a tensor that does not have exactly one element."""
    return bool(_number(value, "condition"))


def trip_count(value: Any) -> int | None:
    """A loop's maximal number of iterations; None if it has no limit."""
    number = _number(value, "trip count")
    if number is not None and (not isinstance(number, int) or (isinstance(number, bool) and is_array(value))):
        raise Error("IRC430", f"a trip count must be an integer, not {describe(value)}")
    return number


def _number(value: Any, what: str) -> Any:
    if is_array(value):
        if value.size != 1:
            raise Error("IRC430", f"a {what} must have exactly one element; its shape is {list(value.shape)}")
        return value.item()
    return value


def lower_scan(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """Lower a Scan of any version."""
    scan = _Scan(Body(lowering, node, ins, outs), node)
    run = scan.run_batches if is_batched(node) else scan.run
    dead = lowering.emptied(ins)

    def step_of(at_once: Iterate | None) -> Step:
        def step(frame: Frame) -> None:
            put(frame, outs, run(frame, [frame[s] for s in ins], at_once), dead)

        return step

    return lowering.loop_step(node, scan.body.code, step_of)


class _Scan:
    def __init__(self, body: Body, node: Node) -> None:
        self.body = body
        scanned = node.attributes["num_scan_inputs"]
        self.states = len(body.code.params) - scanned
        stacked = len(body.code.returns) - self.states

        def option(name: str, count: int) -> list[int]:
            return node.attributes.get(name) or [0] * count

        def directions(name: str, count: int) -> list[int]:
            given = option(name, count)
            if not {0, 1}.issuperset(given):
                raise Error("IRC320", f"{name} is {given}; 0 is forward, 1 is backward", label(node))
            return given

        self.backwards = directions("directions" if is_batched(node) else "scan_input_directions", scanned)
        self.axes = option("scan_input_axes", scanned)
        self.out_backwards = directions("scan_output_directions", stacked)
        self.out_axes = option("scan_output_axes", stacked)

    def run(self, frame: Frame, inputs: Sequence[Any], at_once: Iterate | None) -> list[Any]:
        """Final states, then stacked outputs."""
        sequences = [np.moveaxis(x, axis_in(a, x.ndim), 0) for x, a in zip(inputs[self.states :], self.axes)]
        states, stacks = self._scan(frame, list(inputs[: self.states]), sequences, at_once)
        return states + [s.result(a, bool(b)) for s, a, b in zip(stacks, self.out_axes, self.out_backwards)]

    def run_batches(self, frame: Frame, inputs: Sequence[Any], at_once: Iterate | None) -> list[Any]:
        """As `run`, for inputs [lengths of the sequences?, states..., sequences...] with the batch as axis 0.

        Stacked outputs of sequences shorter than the longest end in zeros.
        """
        lengths, *batched = inputs
        sequences = batched[self.states :]
        ranks = [x.ndim for x in batched]
        if 0 in ranks or 1 in ranks[self.states :]:
            needs = "states have a batch axis, sequences then one of time"
            raise Error("IRC433", f"the inputs of Scan, without lengths, are of ranks {ranks}: {needs}")
        batch, longest = sequences[0].shape[:2]
        if any(x.shape[0] != batch for x in batched) or any(x.shape[1] != longest for x in sequences):
            raise Error("IRC433", "the inputs of Scan have different batch sizes or sequence lengths")
        sizes: list[int] = [longest] * batch if lengths is None else lengths.tolist()
        if np.shape(sizes) != (batch,) or any(not 0 <= n <= longest for n in sizes):
            raise Error("IRC433", f"sequence_lens is {sizes}; it needs {batch} lengths from 0 to {longest}")
        results: list[list[Any]] = []
        for b, size in enumerate(sizes):
            initial = [x[b, ...] for x in batched[: self.states]]
            states, stacks = self._scan(frame, initial, [x[b, :size] for x in sequences], at_once)
            results.append(states + [_padded(stack.result(), longest) for stack in stacks])
        if not results:
            raise Error("IRC433", "Scan of version 8 needs a batch of at least one")
        return [np.stack(column) for column in zip(*results)]

    def _scan(
        self, frame: Frame, states: list[Any], sequences: Sequence[Array], at_once: Iterate | None
    ) -> tuple[list[Any], list[Stack]]:
        iterations = len(sequences[0])
        if any(len(s) != iterations for s in sequences):
            raise Error("IRC433", f"the inputs of Scan have different lengths {[len(s) for s in sequences]}")
        sequences = [s[::-1] if backwards else s for s, backwards in zip(sequences, self.backwards)]
        return self.body.iterate(frame, states, sequences, iterations, at_once)


def _padded(rows: Array, length: int) -> Array:
    widths = [(0, length - len(rows)), *[(0, 0)] * (rows.ndim - 1)]
    return np.pad(rows, widths, constant_values="" if rows.dtype.hasobject else 0)


def lower_call(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """``prim::CallFunction(function, arguments...)``.

    At run time a value of type Function is the plan of that function, so
    functions may also be chosen by control flow.
    """
    function, *arguments = ins

    dead = lowering.emptied(ins)

    def step(frame: Frame) -> None:
        plan: Plan = frame[function]
        results = plan.call([frame[s] for s in arguments], frame[0])
        if len(results) != len(outs):
            raise Error("IRC434", f"{plan.name} returns {len(results)} values, not {len(outs)}")
        put(frame, outs, results, dead)

    return step
