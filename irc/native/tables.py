"""Tables: consecutive steps of a run in planned memory, or iterations of a loop, as one call.

A *table* is an array of int64 that lists calls of loop functions. A builtin function whose ``self`` is the table takes
the frame of a run, a list, and makes all of these calls. An operator then costs 10 to 20 ns besides its loop. For
iterations, it takes the arrays whose rows they take and make, and the range of their numbers, too.

Invariants:

- Arrays are found in the frame by their slots, whenever the table runs. The frame, which the run owns, keeps them
  alive. Only constants are in the table by address, and what holds the table holds them.
- An array that no call of the table has made is checked before the first call: another element type, shape or order
  than C's makes the table refuse, before anything is written.
- Where a run may use several threads, they share calls that are worth it (`irc.native.team`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native import team
from irc.native.calls import METH_FASTCALL, SIZES, Builtin, Expected, builtin_of, loop_function_at
from irc.native.groups import Anchored, Group
from irc.native.inner_loops import LANES
from irc.native.kernels import RELEASED, SHARED, bounds_mask
from irc.native.loops import BYTE, INT, POINTER, loop, number, offset
from irc.native.step_calls import ArrayNumber, GrowingTemporary, StepReader, TableCall, Temporary, expected_of
from irc.native.target import ir
from irc.runtime.array_memory import aligned
from irc.runtime.backends import CompiledSteps, PlannedStep, Unsupported
from irc.runtime.bounds import CURRENT, in_turn

if TYPE_CHECKING:
    from irc.ir import Graph
    from irc.runtime.execution import Frame, Slots

FIELDS = 12
"""The number of arrays that are checked, of pairs of sizes that are, of calls, the most arrays of a call; the bytes of
temporary memory that steps share, the bytes of that and of scratch memory of calls, the bytes more for each of the
sizes that are not the same in all runs, by the largest of these; whether to release the lock; of iterations, the slots
of their number and of the condition, or -1, and how many moves come before the calls, and after them. Then come, for
each array, its slot and what is expected of it; for each pair, slot and offset of either size; the moves before,
`_MOVE` numbers each; for each call `_CALL` numbers, where its arrays are, and its layout; the moves after."""

_MOVE = 3
"""Where from, where to, and how many bytes. A slot, or the complement of the position of an array that has rows."""

_CALL = 8
"""The code's address, the end of its range, the number of arrays, that of the layout's numbers, the pieces that threads
share, the mask of where they begin; and for a call that may fail, the most that it gives if it has not, and the
address of the function of Python that makes the result then, else 0."""

_ITEMS = 24
"""The offset of the pointer to its items in a list of Python."""

_TEMPORARY = 1 << 62
"""Stands for the begin of temporary memory, in place of a slot. (A constant is the complement of its address.)"""

_FIELD, _OFFSET = 48, 32
"""The bits from which on a place is that of numbers of an array: which ones (`SIZES`, `STRIDES`), how many bytes behind
the first."""

_BIT, _INT32 = ir.IntType(1), ir.IntType(32)

MOST_WORK = 10_000_000
"""Nanoseconds of work of one table, by estimate: signals wait for its end."""

LOOP_WORK = 30
"""Nanoseconds that an iteration takes besides its steps."""

FEWEST = 2
"""Steps that are worth a table."""


class LoopMoves(NamedTuple):
    """What an iteration of a loop moves, in slots of the frame, besides its steps.

    Attributes:
        number: where the number of the iteration goes, an array of int64.
        taken: before the steps, for each sequence: where a row of it goes, and its bytes.
        given: after the steps, for each scan output: where a row of it comes from, and its bytes.
        carried: after that: where a carried value comes from, where it goes, and its bytes.
        params: where all carried values are when an iteration begins.
        condition: where an array of one bool says whether there is another iteration; None: there is.
    """

    number: int | None
    taken: Sequence[tuple[int, int]]
    given: Sequence[tuple[int, int]]
    carried: Sequence[tuple[int, int, int]]
    params: Slots
    condition: int | None


class CompiledLoop(NamedTuple):
    """What a backend makes of the iterations of a loop.

    Attributes:
        function: of the frame, sequences and scan outputs in C order, the numbers of the first iteration and of the
            last one plus 1. It returns the number of the last that it ran plus 1, or 0, if it refuses what it is given,
            before it writes anything.
        most: how many iterations one call may run.
    """

    function: Callable[[Frame, Sequence[Array], int, int], int]
    most: int


def tables_of(steps: Sequence[PlannedStep], groups: Mapping[Graph, Group | Anchored]) -> list[CompiledSteps]:
    """Tables of consecutive ``steps``, as `irc.runtime.backends.Backend.compile_steps` gives them.

    Args:
        steps: in order.
        groups: what has been compiled, by the subgraphs of fusion groups.
    """
    found: list[CompiledSteps] = []
    part: list[tuple[PlannedStep, Sequence[TableCall]]] = []
    reader = StepReader(groups)

    def finish() -> None:
        if part:
            found.append(CompiledSteps(len(part), _table(part) if len(part) >= FEWEST else None))
            part.clear()

    work = 0.0
    for step in steps:
        try:
            calls = reader.read(step)
        except Unsupported:
            finish()
            found.append(CompiledSteps(1, None))
            continue
        nanoseconds = sum([each.call.nanoseconds for each in calls])
        if not part or work + nanoseconds > MOST_WORK:
            finish()
            work = 0.0
        work += nanoseconds
        part.append((step, calls))
    finish()
    return found


def loop_of(
    steps: Sequence[PlannedStep], groups: Mapping[Graph, Group | Anchored], moves: LoopMoves
) -> CompiledLoop | None:
    """What runs iterations of ``steps``, in order, with these ``moves``; None if they run step by step."""
    reader = StepReader(groups)
    try:
        read = [(step, reader.read(step)) for step in steps]
    except Unsupported:
        return None
    work = LOOP_WORK + sum([each.call.nanoseconds for _, calls in read for each in calls])
    return CompiledLoop(_table(read, moves), int(MOST_WORK / work)) if work < MOST_WORK else None


def _table(
    steps: Sequence[tuple[PlannedStep, Sequence[TableCall]]], moves: LoopMoves | None = None
) -> Callable[..., int]:
    """A function of the frame that does what ``steps`` do, or refuses its arrays: see `table_of`."""
    expected: dict[int, Expected] = {}
    made: set[int] = set()
    for step, _ in steps:
        expected.update((x.slot, expected_of(x)) for x in step.operands if x is not None and x.slot not in made)
        made.update(step.outs)
    return table_of([call for _, calls in steps for call in calls], expected, moves)


def table_of(
    calls: Sequence[TableCall], expected: Mapping[int, Expected], moves: LoopMoves | None = None
) -> Callable[..., int]:
    """A function of the frame that makes ``calls``; it returns 0, unchanged, if arrays do not fit.

    Args:
        calls: in order.
        expected: by slot, of the arrays that are checked.
        moves: those of iterations, of which it takes more (`CompiledLoop`).
    """
    before, after, places = (), (), (-1, -1)
    if moves is not None:
        before = [(~i, *move) for i, move in enumerate(moves.taken)]
        after = [(slot, ~i, nbytes) for i, (slot, nbytes) in enumerate(moves.given, len(before))]
        after += moves.carried
        places = [-1 if s is None else s for s in (moves.number, moves.condition)]
    numbers: list[int] = []
    constants: list[Array] = []
    shared = 0.0
    most = max([len(arrays) for _, arrays, *_ in calls], default=0)
    scratch = max([max(call.scratch, call.work) for call, *_ in calls], default=0)
    used = [x for _, arrays, *_ in calls for x in arrays]
    temporary = max([aligned(x.begin + x.nbytes) for x in used if isinstance(x, Temporary)], default=0)
    growing = max([x.nbytes for x in used if isinstance(x, GrowingTemporary)], default=0)
    for slot, each in expected.items():
        numbers += [slot, *each.record]
    pairs = [pair for each in calls for pair in each.same]
    numbers += [n for pair in pairs for size in pair for n in (size.slot, 8 * size.position)]
    numbers += [n for move in before for n in move]
    for call, arrays, check, _ in calls:
        pieces = min(int(call.nanoseconds) // team.PIECE, call.size)
        mask = bounds_mask(call.size, pieces)
        numbers += [call.code.address, call.size, len(arrays), len(call.layout), pieces, mask]
        numbers += [0, 0] if check is None else [check.most, id(check.otherwise)]
        shared += call.nanoseconds if pieces > 1 else 0
        for array in arrays:
            if isinstance(array, int):
                numbers.append(array)
            elif isinstance(array, Temporary):
                numbers.append(_TEMPORARY + array.begin)
            elif isinstance(array, GrowingTemporary):
                numbers.append(_TEMPORARY + aligned(temporary + scratch))
            elif isinstance(array, ArrayNumber):
                numbers.append(array.slot | 8 * array.position << _OFFSET | array.field << _FIELD)
            else:
                constants.append(array)
                numbers.append(~array.ctypes.data)
        numbers += call.layout
    numbers += [n for move in after for n in move]
    releases = moves is not None or sum(call.nanoseconds for call, *_ in calls) > RELEASED
    sizes = temporary, aligned(temporary + scratch), growing
    fields = len(expected), len(pairs), len(calls), most, *sizes, releases, *places, len(before), len(after)
    run = builtin_of("irc.table", _emit, METH_FASTCALL, np.array([*fields, *numbers], np.int64))
    has_help = moves is None and shared >= SHARED
    with_helpers = team.help_of(most, scratch) if has_help else None

    def table(*given: Any) -> int:
        if with_helpers is None or (share := CURRENT.scope.share) is in_turn:
            return run(*given)
        return with_helpers(partial(run, *given), share)

    table.holds = [(each.call.code, each.check) for each in calls], constants  # type: ignore[attr-defined]
    return table


def _emit() -> tuple[str, Mapping[str, Any]]:
    """The builtin: ``PyObject *table(PyObject *self, PyObject *const *args, Py_ssize_t nargs)``.

    It takes the frame, and a team if there are helpers; or for iterations, what `CompiledLoop` says.
    """
    builtin = Builtin("irc.table", [POINTER, INT])
    builder, (arguments, given) = builtin.builder, builtin.given
    frame, helpers = builtin.read(arguments, 0, POINTER), builder.alloca(POINTER)
    has_team = builder.icmp_unsigned("==", given, number(2))
    with builder.if_then(has_team):
        builder.store(builtin.elements(builtin.read(arguments, 8, POINTER)), helpers)
    fields = [builtin.read(builtin.record, 8 * i) for i in range(FIELDS)]
    checked, pairs, calls, most, temporary, whole, growing, releases, numbered, condition, before, after = fields
    items, rows = (builder.alloca(POINTER) for _ in range(2))
    begin, end, done = (builder.alloca(INT) for _ in range(3))
    for i, into in enumerate((items, rows)):
        with builder.if_then(builder.icmp_unsigned(">", given, number(i))):
            builder.store(builtin.read(builtin.read(arguments, 8 * i, POINTER), _ITEMS, POINTER), into)
    for i, into in enumerate((begin, end)):
        builder.store(number(i), into)
        with builder.if_then(builder.icmp_unsigned(">", given, number(i + 2))):
            builder.store(builtin.call("PyLong_AsLongLong", INT, builtin.read(arguments, 8 * (i + 2), POINTER)), into)
    items = builder.load(items)

    def item(slot: Any, within: Any = items) -> Any:
        return builtin.read(within, builder.shl(slot, number(3)), POINTER)

    at, goes_on, largest = builder.alloca(POINTER), builder.alloca(_BIT), builder.alloca(INT)
    builder.store(_BIT(1), goes_on)
    builder.store(number(0), largest)
    pointers = builder.alloca(POINTER, builder.add(most, number(1)))
    builder.store(offset(builder, builtin.record, number(8 * FIELDS)), at)
    with loop(builder, number(0), checked):
        slot = builtin.read(builder.load(at), 0)
        builder.store(offset(builder, builder.load(at), number(8)), at)
        builtin.check(item(slot), at, largest)
    with loop(builder, number(0), pairs):
        slots = [builtin.read(builder.load(at), 8 * i) for i in range(4)]
        sizes = [builtin.read(builtin.numbers(item(slots[i]), SIZES), slots[i + 1]) for i in (0, 2)]
        builtin.refuse_unless(builder.icmp_signed("==", *sizes))
        builder.store(offset(builder, builder.load(at), number(32)), at)
    more = builder.mul(growing, builder.add(builder.load(largest), number(LANES)))
    whole = builder.add(whole, more)
    listed, ended = builder.load(at), builder.append_basic_block()

    def move(count: Any, iteration: Any) -> None:
        with loop(builder, number(0), count):
            *places, nbytes = (builtin.read(builder.load(at), 8 * i) for i in range(_MOVE))
            source, target = (address(place, builder.mul(iteration, nbytes)) for place in places)
            builtin.call("memcpy", POINTER, target, source, nbytes)
            builder.store(offset(builder, builder.load(at), number(8 * _MOVE)), at)

    def address(place: Any, row: Any) -> Any:
        is_row = builder.icmp_signed("<", place, number(0))
        slot = builder.select(is_row, builder.not_(place), place)
        array = item(slot, builder.select(is_row, builder.load(rows), items))
        return offset(builder, builtin.elements(array), builder.select(is_row, row, number(0)))

    with builtin.scratch(whole) as memory, builtin.released(releases):
        run = _Run(builtin, frame, item, pointers, memory, temporary, has_team, helpers, goes_on)
        with loop(builder, builder.load(begin), builder.load(end)) as iteration:
            builder.store(listed, at)
            with builder.if_then(builder.icmp_signed(">=", numbered, number(0))):
                builder.store(iteration, builtin.elements(item(numbered)))
            move(before, iteration)
            with loop(builder, number(0), calls) as job:
                _emit_call(run, at, job)
            with builder.if_then(builder.not_(builder.load(goes_on)), likely=False):
                builder.branch(ended)
            move(after, iteration)
            builder.store(builder.add(iteration, number(1)), done)
            with builder.if_then(builder.icmp_signed(">=", condition, number(0))):
                is_last = builder.not_(builtin.is_set(builtin.read(builtin.elements(item(condition)), 0, BYTE)))
                with builder.if_then(is_last):
                    builder.branch(ended)
        builder.branch(ended)
        builder.position_at_end(ended)
    builtin.raise_if_any()
    return builtin.finish(builtin.call("PyLong_FromLongLong", POINTER, builder.load(done)))


class _Run(NamedTuple):
    """What calls of a table are emitted with.

    Attributes:
        builtin: the function.
        frame: of the run.
        item: the array in a slot of it.
        pointers: a place for where the arrays of a call begin.
        memory: temporary memory, and work memory behind it.
        temporary: the bytes of the first.
        has_team: whether there are helpers.
        helpers: a place for their team.
        goes_on: a place for whether no call has raised.
    """

    builtin: Builtin
    frame: Any
    item: Callable[[Any], Any]
    pointers: Any
    memory: Any
    temporary: Any
    has_team: Any
    helpers: Any
    goes_on: Any


def _emit_call(run: _Run, at: Any, job: Any) -> None:
    """Emit the call that ``at`` points to, maybe as a job of this number; ``at`` then points behind it."""
    builtin, pointers = run.builtin, run.pointers
    builder = builtin.builder
    fields = builder.load(at)
    address, end, count, length, pieces, mask, right, otherwise = (builtin.read(fields, 8 * i) for i in range(_CALL))
    arrays = offset(builder, fields, number(8 * _CALL))
    with loop(builder, number(0), count) as i:
        place = builder.shl(i, number(3))
        word = builtin.read(arrays, place)
        to = offset(builder, pointers, place)
        is_constant = builder.icmp_signed("<", word, number(0))
        with builder.if_else(is_constant) as (constant, slot):
            with constant:
                builder.store(builder.inttoptr(builder.not_(word), POINTER), to)
            with slot:
                is_slot = builder.icmp_signed("<", word, number(_TEMPORARY))
                with builder.if_else(is_slot) as (in_frame, shared):
                    with in_frame:
                        array = run.item(builder.and_(word, number((1 << _OFFSET) - 1)))
                        field = builder.lshr(word, number(_FIELD))
                        with builder.if_else(builtin.is_set(field)) as (numbers, elements):
                            with elements:
                                builder.store(builtin.elements(array), to)
                            with numbers:
                                behind = builder.and_(builder.lshr(word, number(_OFFSET)), number((1 << 16) - 1))
                                builder.store(offset(builder, builtin.numbers(array, field), behind), to)
                    with shared:
                        place = builder.sub(word, number(_TEMPORARY))
                        builder.store(offset(builder, run.memory, place), to)
    behind = builder.shl(count, number(3))
    own = offset(builder, run.memory, run.temporary)
    builder.store(own, offset(builder, pointers, behind))
    layout = offset(builder, arrays, behind)
    builder.store(offset(builder, layout, builder.shl(length, number(3))), at)
    with builder.if_then(builder.load(run.goes_on)):
        may_fail = builtin.is_set(otherwise)
        met = offset(builder, pointers, builder.sub(behind, number(16)))
        with builder.if_then(may_fail):
            builder.store(_INT32(0), builder.load(met, typ=POINTER))
        is_shared = builder.and_(run.has_team, builder.icmp_signed(">", pieces, number(1)))
        with builder.if_else(is_shared) as (several, one):
            with several:
                given = builder.inttoptr(address, POINTER), layout, pointers, count, end, pieces, mask
                team.emit_job(builtin, builder.load(run.helpers), job, dict(zip(team.JOB, given)), own)
            with one:
                builder.call(loop_function_at(builder, address), [pointers, layout, number(0), end])
        with builder.if_then(may_fail):
            found = builder.zext(builder.load(builder.load(met, typ=POINTER), typ=_INT32), INT)
            with builder.if_then(builder.icmp_signed(">", found, right), likely=False):
                has_returned = builtin.call_python(builder.inttoptr(otherwise, POINTER), run.frame)
                builder.store(has_returned, run.goes_on)
