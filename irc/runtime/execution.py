"""Running a plan: steps, the loop that runs them, and what an error says.

A *frame* is a list: slot 0 holds the `Run`, every other slot the current value
of one IR value, or None. A *step* is a function of the frame.
Which slots it reads and writes is fixed when the graph is lowered, so running
looks nothing up by name. Each kind of step is a closure of its own: measured,
a call of it costs a third of a loop over tuples of slot numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from irc.errors import Error
from irc.ir.kinds import CONTROL_FLOW
from irc.ops.plugins import fault_of
from irc.runtime.binding import binder_of_others, interrupts
from irc.runtime.kernel_checks import what_is_wrong
from irc.runtime.values import describe

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.memory_plan import MemoryPlan

Frame = list[Any]
Slots = tuple[int, ...]
Step = Callable[[Frame], None]


NOWHERE = object()
"""Owns no memory."""


class Counters:
    """What one run did.

    Attributes:
        units: bulks of operators dispatched, on any thread; a loop body counts once an iteration.
        breaks: why a bulk ended before the last operator of its block -> how often.
        kernels: kernel calls, including those inside fusion groups.
        compiled: calls of kernels that a backend compiled from a fusion group, several steps or a loop.
        in_place: kernels that wrote their result over an input: a dead one or, for in-place operators
            (``onnx::Add_``), the first. Also Concats that copied nothing: their inputs were made where the result is.
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
    breaks: Mapping[str, int] = MappingProxyType({})
    kernels: int = 0
    compiled: int = 0
    in_place: int = 0
    copies: int = 0
    copied_bytes: int = 0
    planned: int = 0
    arena_bytes: int = 0
    arena_bound: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in Counters.__annotations__} | {"breaks": dict(self.breaks)}

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
        arena: the owner of the planned memory; only results with a place in the plan may lie there.
        again: whether what it appends to will be appended to again, in the next step of a session.
    """

    observer: Observer | None = None
    arena: Any = NOWHERE
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
        breaks: the reasons why there are not fewer units, with how often each applies.
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
    breaks: Mapping[str, int] = field(default_factory=dict[str, int])

    def with_instructions(self, instructions: list[Instruction]) -> Code:
        """This code with other instructions."""
        return replace(self, instructions=instructions, steps=[each.step for each in instructions])

    def count_units(self, nodes: Iterable[Node], most: int | None) -> None:
        """Set `units` and `breaks` for steps of ``nodes``, in order.

        A unit is a sequence of operators in program order. It ends at control flow, or once it holds ``most`` operators
        (None: any number). Operators that read inputs, weights or outputs of the graph are in units like all others.
        (The idea is MXNet's, pull request 13890; there, operators on inputs and outputs mostly stay out.)
        """
        breaks: Counter[str] = Counter()
        size, after_control = 0, False  # of the unit so far; whether it is control flow
        for node in nodes:
            control = node.kind in CONTROL_FLOW
            cause = "control flow" if control or after_control else "size" if size == most else None
            if size and cause is not None:
                breaks[cause] += 1
                size = 0
            size, after_control = size + 1, control
        self.units, self.breaks = breaks.total() + min(size, 1), breaks

    def take_returns(self, frame: Frame) -> list[Any]:
        """The returned values; the frame keeps none that only this block held."""
        values = [frame[s] for s in self.returns]
        for s in self.owned:
            frame[s] = None
        return values


def put(frame: Frame, slots: Slots, values: Iterable[Any], dead: Slots = ()) -> None:
    """Put ``values``, as many as there are ``slots``, into these, then empty ``dead``."""
    for s, value in zip(slots, values, strict=True):
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
    if code.breaks:
        run.breaks = Counter(run.breaks) + Counter(code.breaks)
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
        if step is None or is_located(error):
            raise
        _, node, ins, *_ = code.instructions[code.steps.index(step)]
        fail(error, node, [frame[s] for s in ins])


def is_located(error: Exception) -> bool:
    """Whether ``error`` already names its place, which is in an inner block."""
    return isinstance(error, Error) and bool(error.where)


def fail(error: Exception, node: Node, inputs: Sequence[Any]) -> NoReturn:
    """Raise ``error`` located at ``node``, with its inputs' types and shapes; interrupts stay unchanged.

    Signal handlers end what takes too long with an exception, and servers catch it by its class.
    """
    if interrupts(error, node):
        raise error
    raise _located(error, node, inputs) from error


def _located(error: Exception, node: Node, inputs: Sequence[Any]) -> Error:
    if isinstance(error, Error):
        code, message = error.code, error.message
    elif isinstance(error, RecursionError):
        code, message = "IRC402", "blocks or calls are nested too deeply to run"
    elif isinstance(error, MemoryError):
        code, message = "IRC403", f"out of memory: {error}"
    elif (wrong := what_is_wrong(node, inputs)) is not None:
        code, message = wrong.code, wrong.message
    else:
        binder = binder_of_others(node)
        what = f"{type(error).__name__}: {error}" if binder is None else fault_of(error, binder)
        code, message = "IRC401", what
    if inputs:
        message += f"; inputs: {', '.join(map(describe, inputs[:8]))}{', ...' if len(inputs) > 8 else ''}"
    return Error(code, message, label(node))


def label(node: Node) -> str:
    """How messages name a node: operator and node name, or the first output if it has no name.

    The return of a block is named after the node that the block belongs to.
    """
    if node.is_return:
        node = node.outer or node
    name = node.name or next((f"%{v.name}" for v in node.outputs), "")
    return f"{node.kind} {name!r}" if name else node.kind
