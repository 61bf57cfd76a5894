"""Running a plan: steps that call kernels, the loop that runs steps, and what an error says.

A *frame* is a list: slot 0 holds the `Run`, every other slot the current value
of one IR value, or None. A *step* is a function of the frame.
Which slots it reads and writes is fixed when the graph is lowered, so running
looks nothing up by name. Each kind of step is a closure of its own: measured,
a call of it costs a third of a loop over tuples of slot numbers.

A step may write its result into an input that nothing needs any more. A chain such as Conv, Add, Relu then needs one
array of full size, not three. What may be overwritten is decided when the graph is lowered; that shapes and element
types agree, that the array is not read-only (somebody else's) nor in planned memory, and that its elements lie in C
order, as those of results do, is looked at in each run, because a model's own type annotations may be wrong, and
strides are known only there. A result without a place may leave the run, so it is never made in planned memory.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from irc.errors import Error
from irc.ir.kinds import CONTROL_FLOW
from irc.ops.plugins import fault_of
from irc.ops.pointwise import keeps_float_type, overwritable, result_like
from irc.ops.registry import record
from irc.runtime.arguments import what_is_wrong
from irc.runtime.array_memory import lies_as_new
from irc.runtime.binding import binder_of_others, fits, interrupts
from irc.runtime.kernels.primitives import ufunc_of
from irc.runtime.kernels.registry import Kernel, takes_out
from irc.runtime.values import Array, describe, is_array

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.memory_plan import MemoryPlan

Frame = list[Any]
Slots = tuple[int, ...]
Step = Callable[[Frame], None]
Free = Callable[[int], Collection[int]]


class Counters:
    """What one run did.

    Attributes:
        units: bulks of operators dispatched, on any thread; a loop body counts once an iteration.
        kernels: kernel calls, including those inside fusion groups.
        compiled: calls of kernels that a backend compiled from a fusion group, several steps or a loop.
        in_place: kernels that wrote their result over an input: a dead one or, for in-place operators
            (``onnx::Add_``), the first. Also results made where they were to be copied to, and Concats that copied
            nothing: their inputs were made where the result is.
        copies: arrays copied at the boundary, because a result would have shared memory with something the caller,
            the model or another result keeps, or would have kept a much larger array alive, or because the plan writes
            into an input; also arrays moved to where they can grow, but not operands joined by a Concat.
        copied_bytes: bytes in those copies.
        planned: results with a place in planned memory, including those of branches not taken.
        arena_bytes: the size of that memory, the arena.
        arena_bound: the peak of bytes in use in the arena: a lower bound on the size of any arena for these results in
            this order.
    """

    # Zeros are of the class: each run makes one, and sets but a few.
    units: int = 0
    kernels: int = 0
    compiled: int = 0
    in_place: int = 0
    copies: int = 0
    copied_bytes: int = 0
    planned: int = 0
    arena_bytes: int = 0
    arena_bound: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Counters.__annotations__}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counters) and self.to_dict() == other.to_dict()

    def __repr__(self) -> str:
        return f"Counters({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"


class Observer:
    """Callbacks for each step of a run: a base class whose methods do nothing.

    Steps of nested blocks and called functions come between the `before` and `after` of the step that runs them.
    Members of fusion groups are steps of the block around the group. An exception from a callback ends the run.

    Attributes:
        in_arena: whether an observed run may use planned memory; if not, each result has memory of its own.
    """

    in_arena = False

    def use_arena(self, memory: Any, plan: MemoryPlan) -> None:
        """The run writes the results that ``plan`` names into ``memory``, which outlives the run."""

    def retain(self, made: Any) -> None:
        """The run has computed ``made``, and the model keeps it for later runs."""

    def enter(self) -> None:
        """A block is about to run: a graph's, a branch, or a loop body for one iteration."""

    def before(self, node: Node, frame: Frame, ins: Slots) -> None:
        """``node`` is about to run on the values in ``ins``."""

    def after(self, node: Node, frame: Frame, outs: Slots) -> None:
        """``node`` has run; those of its results that nothing reads are no longer in ``outs``."""


class Run(Counters):
    """One run of a plan: what it has done so far, and what its steps may ask for.

    Attributes:
        observer: is told of each step; or None.
        arena: the owner of the planned memory, or None; only results with a place in the plan may lie there.
        again: whether what it appends to will be appended to again, in the next step of a session.
    """

    observer: Observer | None = None
    arena: Any = None
    again: bool = False


class Instruction(NamedTuple):
    """One step of a block, and what messages, observers and backends need to know of it.

    Attributes:
        step: what it does.
        node: the node that it comes from.
        ins: the slots that it reads.
        outs: the slots of its results.
        dead: the slots that it empties at its end.
    """

    step: Step
    node: Node
    ins: Slots
    outs: Slots
    dead: Slots = ()


@dataclass(eq=False, slots=True)
class Code:
    """The steps of one block.

    Attributes:
        instructions: what to run, in order.
        steps: their steps alone.
        params: slots of the block's parameters.
        returns: slots of the block's returns.
        owned: the slots in `returns` that no other code reads: to be emptied once the returns are taken.
        captured: slots of the outer values that the steps or the returns read.
        kernels: how many steps are kernels (the others run blocks or functions).
        in_place: how many of these always write their result over an input.
        units: how many dispatches one execution counts.
    """

    instructions: list[Instruction] = field(default_factory=list[Instruction])
    steps: list[Step] = field(default_factory=list[Step])
    params: Slots = ()
    returns: Slots = ()
    owned: Slots = ()
    captured: frozenset[int] = frozenset()
    kernels: int = 0
    in_place: int = 0
    units: int = 0

    def with_instructions(self, instructions: list[Instruction]) -> Code:
        """This code with other instructions."""
        return replace(self, instructions=instructions, steps=[each.step for each in instructions])

    def count_units(self, nodes: Iterable[Node]) -> None:
        """Set `units` for steps of ``nodes``, in order.

        A unit is a sequence of operators in program order; control flow is a unit of its own. Operators that read
        inputs, weights or outputs of the graph are in units like all others.
        (The idea is MXNet's, pull request 13890; there, operators on inputs and outputs mostly stay out.)
        """
        units = groupby(nodes, lambda node: node.kind in CONTROL_FLOW)
        self.units = sum([len([*each]) if is_control else 1 for is_control, each in units])

    def take_returns(self, frame: Frame) -> list[Any]:
        """The returned values; the frame keeps none that only this block held."""
        values = [frame[s] for s in self.returns]
        for s in self.owned:
            frame[s] = None
        return values


def put(frame: Frame, slots: Slots, values: Iterable[Any], dead: Slots = ()) -> None:
    """Put ``values`` into ``slots``, then empty ``dead``."""
    for s, value in zip(slots, values):
        frame[s] = value
    for s in dead:
        frame[s] = None


def execute(code: Code, frame: Frame) -> None:
    """Run all steps of ``code``.

    Raises:
        Error: whatever a kernel raises, with the node, its inputs' types and shapes (IRC401 unless the kernel
            gave a code).
        Exception: what is not of a kernel (`irc.runtime.binding.interrupts`), as it is.
    """
    run: Run = frame[0]
    run.units += code.units
    run.kernels += code.kernels
    if code.in_place:
        run.in_place += code.in_place
    step = None
    try:
        if run.observer is None:
            for step in code.steps:
                step(frame)
        else:
            run.observer.enter()
            for step, node, ins, outs, _ in code.instructions:
                run.observer.before(node, frame, ins)
                step(frame)
                run.observer.after(node, frame, outs)
    except Exception as error:
        if step is None:
            raise
        _, node, ins, *_ = code.instructions[code.steps.index(step)]
        fail(error, node, [frame[s] for s in ins])


def fail(error: Exception, node: Node, inputs: Sequence[Any]) -> NoReturn:
    """Raise ``error`` located at ``node``, with its inputs' types and shapes; interrupts stay unchanged.

    Signal handlers end what takes too long with an exception, and servers catch it by its class. An error that names
    its place already, which is in an inner block, stays as it is, too.
    """
    try:
        if interrupts(error, node) or (isinstance(error, Error) and error.where):
            raise error
        raise _located(error, node, inputs) from error
    finally:
        del error  # of whose traceback this frame is a part: the cycle would keep all arrays of the run


def _located(error: Exception, node: Node, inputs: Sequence[Any]) -> Error:
    if isinstance(error, Error):
        found = error
    elif isinstance(error, RecursionError):
        found = Error("IRC402", "blocks or calls are nested too deeply to run")
    elif isinstance(error, MemoryError):
        found = Error("IRC403", f"out of memory: {error}")
    else:
        binder = binder_of_others(node)
        what = f"{type(error).__name__}: {error}" if binder is None else fault_of(error, binder)
        found = what_is_wrong(node, inputs) or Error("IRC401", what)
    given = f"; inputs: {', '.join(map(describe, inputs[:8]))}{', ...' if len(inputs) > 8 else ''}" if inputs else ""
    return Error(found.code, found.message + given, label(node))


def label(node: Node) -> str:
    """How messages name a node: operator and node name, or the first output if it has no name.

    The return of a block is named after the node that the block belongs to.
    """
    if node.is_return:
        node = node.outer or node
    name = node.name or next((f"%{v.name}" for v in node.outputs), "")
    return f"{node.kind} {name!r}" if name else node.kind


def kernel_step(kernel: Kernel, ins: Slots, outs: Slots, dead: Slots) -> Step:
    """A step that calls ``kernel`` on ``ins``, stores its results in ``outs`` and empties ``dead``.

    Without ``outs`` the kernel is called for its effects: `aten::append` returns the list, which nobody need use.
    """
    operands = operands_in(ins)
    if len(outs) != 1:

        def several(frame: Frame) -> None:
            results = kernel(*operands(frame))
            for s, value in zip(outs, results, strict=True) if outs else ():
                frame[s] = value
            put(frame, (), (), dead)

        return several

    (out,) = outs

    def step(frame: Frame) -> None:
        frame[out] = kernel(*operands(frame))
        for s in dead:
            frame[s] = None

    return step


def operands_in(ins: Slots) -> Callable[[Frame], Sequence[Any]]:
    """A function from a frame to the values in slots ``ins``, made in C as comprehensions are calls."""
    if len(ins) > 1:
        return itemgetter(*ins)
    return itemgetter(slice(ins[0], ins[0] + 1) if ins else slice(0))  # of one slot, `itemgetter` gives no sequence


def placed_step(kernel: Kernel, ins: Slots, outs: Slots, dead: Slots, directly: bool) -> Step:
    """As `kernel_step`, for results that are made in the arrays that the slots ``outs`` hold.

    If the kernel is a ufunc, it is called ``directly``, or through the kernel, which chooses what suits its operands.
    """
    operands = operands_in(ins)
    if len(outs) != 1:
        results = operands_in(outs)

        def several(frame: Frame) -> None:
            kernel(*operands(frame), outs=results(frame))
            put(frame, (), (), dead)

        return several

    out = outs[0]
    ufunc = ufunc_of(kernel) if directly else None
    if ufunc is not None and not dead and len(ins) == 1:
        (x,) = ins

        def unary(frame: Frame) -> None:
            ufunc(frame[x], frame[out])

        return unary

    if ufunc is not None and not dead and len(ins) == 2:
        x, y = ins

        def binary(frame: Frame) -> None:
            ufunc(frame[x], frame[y], frame[out])

        return binary

    def step(frame: Frame) -> None:
        kernel(*operands(frame), out=frame[out])
        for s in dead:
            frame[s] = None

    return step


def drop(node: Node, dead: Slots) -> Instruction:
    """An instruction, reported as ``node``, that only empties ``dead``."""
    return Instruction(partial(put, slots=(), values=(), dead=dead), node, (), (), dead)


MIN_ELEMENTS = 1 << 17
"""Of an array that TorchScript's operators write over. To find out whether they may takes 5 microseconds, longer than
to get memory for less."""


def call_step(
    node: Node, kernel: Kernel, ins: Slots, outs: Slots, dead: Slots, free: Free, must_own_storage: bool
) -> Step:
    """A step that calls ``kernel``, with the result over a dead input if it fits, and empties ``dead``.

    Args:
        free: given n, which of the first n inputs hold memory that nothing needs once the node has run.
        must_own_storage: as for `may_overwrite`.
    """
    of_torch = keeps_float_type(node)
    count = 0 if len(outs) != 1 or not takes_out(kernel) else len(ins) if of_torch else overwritable(node)
    candidates = tuple([i for i in free(count) if ins[i] in dead]) if count else ()
    if not candidates:
        return kernel_step(kernel, ins, outs, dead)
    like = result_like(node.kind)
    scatters = record(node.kind).scatters
    shaping = 1 if scatters else len(ins)
    must_lie_as_new = scatters and node.kind.startswith("aten::")  # else torch's result would lie in another way

    def has_form_of_result(x: Array, inputs: Sequence[Any]) -> bool:
        return x.flags.carray and fits(x, inputs[:shaping], like) and (not must_lie_as_new or lies_as_new(x))

    may_be_result = _has_form_of_torch_result if of_torch else has_form_of_result
    out, operands = outs[0], operands_in(ins)

    def step(frame: Frame) -> None:
        inputs = operands(frame)
        for i in candidates:
            if may_be_result(inputs[i], inputs) and may_overwrite(inputs[i], frame[0].arena, must_own_storage):
                frame[out] = kernel(*inputs, out=inputs[i])
                frame[0].in_place += 1
                break
        else:
            frame[out] = kernel(*inputs)
        for s in dead:
            frame[s] = None

    if of_torch or like != 0 or len(ins) > 1:
        return step
    a = ins[candidates[0]]

    def over(frame: Frame) -> None:  # in two thirds of the time of `step`, which loops notice
        x = frame[a]
        if x.flags.carray and may_overwrite(x, frame[0].arena, must_own_storage):
            frame[out] = kernel(x, out=x)
            frame[0].in_place += 1
        else:
            frame[out] = kernel(x)
        for s in dead:
            frame[s] = None

    return over


def may_overwrite(x: Array, arena: Any, must_own_storage: bool) -> bool:
    """Whether a result may be written into ``x``: outside ``arena`` and, if it must, owning its memory.

    An array whose base is not an array (`as_strided`) may not be overwritten: the owner of its memory is unknown.

    Args:
        x: a dead operand.
        arena: the owner of the run's planned memory, which later results use.
        must_own_storage: whether the graph can observe storage sizes and offsets, so that the result must not be a view
            of a part of something larger.
    """
    base: Any = x.base
    if base is None:
        return True
    return isinstance(base, np.ndarray) and base is not arena and (not must_own_storage or base.nbytes == x.nbytes)


def _has_form_of_torch_result(x: Any, inputs: Sequence[Any]) -> bool:
    """Whether a TorchScript operator's result has the form of ``x``, which is one of its ``inputs``.

    If all are floats of one type, and numbers, and lie in order, it has: else several rules decide what type it is of,
    and how it lies.
    """
    if not is_array(x) or x.size < MIN_ELEMENTS:
        return False
    if x.dtype.kind != "f" or not x.ndim or not x.flags.carray or not lies_as_new(x):
        return False
    arrays = [y for y in inputs if is_array(y)]
    return (
        all(y.dtype == x.dtype and y.flags.c_contiguous for y in arrays)
        and not any(isinstance(y, complex) for y in inputs)
        and fits(x, arrays, 0)
    )
