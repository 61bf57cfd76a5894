"""Tables: consecutive steps of a run in planned memory, as one call of machine code.

A *table* is an array of int64 that lists calls of loop functions. A builtin function whose ``self`` is the table takes
the frame of a run, a list, and makes all of these calls. An operator then costs 10 to 20 ns besides its loop.

Invariants:

- Arrays are found in the frame by their slots, whenever the table runs. The frame, which the run owns, keeps them
  alive. Only constants are in the table by address, and what holds the table holds them.
- An array that no call of the table has made is checked before the first call: another element type, shape or order
  than C's makes the table refuse, before anything is written.
- Calls that are worth several threads are in no table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir.tensor import Array
from irc.native.calls import Builtin, Expected, builtin_of, loop_function_at
from irc.native.groups import Anchored, Group
from irc.native.kernels import RELEASED
from irc.native.loops import POINTER, loop, number, offset
from irc.native.step_calls import StepReader, TableCall, Temporary, expected_of
from irc.runtime.array_memory import aligned
from irc.runtime.backends import CompiledSteps, PlannedStep, Unsupported
from irc.runtime.execution import Frame

if TYPE_CHECKING:
    from irc.ir import Graph

FIELDS = 6
"""The number of arrays that are checked, the number of calls, the most arrays of a call, the bytes of temporary memory
that steps share, the bytes of that and of scratch memory of calls, whether to release the lock. Then come, for each
array, its slot and what is expected of it; and for each call `_CALL` numbers, where its arrays are, and its layout."""

_CALL = 4
"""The code's address, the end of its range, the number of arrays, that of the layout's numbers."""

_ITEMS = 24
"""The offset of the pointer to its items in a list of Python."""

_TEMPORARY = 1 << 62
"""Stands for the begin of temporary memory, in place of a slot. (A constant is the complement of its address.)"""

_METH_O = 8

MOST_WORK = 10_000_000
"""Nanoseconds of work of one table, by estimate: signals wait for its end."""


FEWEST = 2
"""Steps that are worth a table."""


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


def _table(steps: Sequence[tuple[PlannedStep, Sequence[TableCall]]]) -> Callable[[Frame], bool]:
    """A function of the frame that does what ``steps`` do, or refuses its arrays."""
    expected: dict[int, Expected] = {}
    made: set[int] = set()
    for step, _ in steps:
        expected.update((x.slot, expected_of(x)) for x in step.operands if x is not None and x.slot not in made)
        made.update(step.outs)
    return table_of([call for _, calls in steps for call in calls], expected)


def table_of(calls: Sequence[TableCall], expected: Mapping[int, Expected]) -> Callable[[Frame], bool]:
    """A function of the frame that makes ``calls``; it returns False, unchanged, if arrays do not fit.

    Args:
        calls: in order.
        expected: by slot, of the arrays that are checked.
    """
    numbers: list[int] = []
    constants: list[Array] = []
    temporary = 0
    for slot, each in expected.items():
        numbers += [slot, *each.record]
    for call, arrays in calls:
        numbers += [call.code.address, call.size, len(arrays), len(call.layout)]
        for array in arrays:
            if isinstance(array, int):
                numbers.append(array)
            elif isinstance(array, Temporary):
                temporary = max(temporary, aligned(array.begin + array.nbytes))
                numbers.append(_TEMPORARY + array.begin)
            else:
                constants.append(array)
                numbers.append(~array.ctypes.data)
        numbers += call.layout
    most = max([len(arrays) for _, arrays in calls], default=0)
    scratch = max([max(call.scratch, call.work) for call, _ in calls], default=0)
    releases = sum(call.nanoseconds for call, _ in calls) > RELEASED
    sizes = temporary, temporary + scratch
    record = np.array([len(expected), len(calls), most, *sizes, releases, *numbers], np.int64)
    run = builtin_of("irc.table", _emit, _METH_O, record)
    codes = [call.code for call, _ in calls]

    def table(frame: Frame) -> bool:
        return run(frame)

    table.holds = codes, constants  # type: ignore[attr-defined]
    return table


def _emit() -> tuple[str, Mapping[str, Any]]:
    """The builtin: ``PyObject *table(PyObject *self, PyObject *frame)``."""
    builtin = Builtin("irc.table", [POINTER])
    builder, (frame,) = builtin.builder, builtin.given
    checked, calls, most, temporary, whole, releases = (builtin.read(builtin.record, 8 * i) for i in range(FIELDS))
    items = builtin.read(frame, _ITEMS, POINTER)

    def item(slot: Any) -> Any:
        return builtin.read(items, builder.shl(slot, number(3)), POINTER)

    at = builder.alloca(POINTER)
    pointers = builder.alloca(POINTER, builder.add(most, number(1)))
    builder.store(offset(builder, builtin.record, number(8 * FIELDS)), at)
    with loop(builder, number(0), checked):
        slot = builtin.read(builder.load(at), 0)
        builder.store(offset(builder, builder.load(at), number(8)), at)
        builtin.check(item(slot), at)
    with builtin.scratch(whole) as memory, builtin.released(releases), loop(builder, number(0), calls):
        fields = builder.load(at)
        address, end, count, length = (builtin.read(fields, 8 * i) for i in range(_CALL))
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
                            builder.store(builtin.elements(item(word)), to)
                        with shared:
                            place = builder.sub(word, number(_TEMPORARY))
                            builder.store(offset(builder, memory, place), to)
        behind = builder.shl(count, number(3))
        builder.store(offset(builder, memory, temporary), offset(builder, pointers, behind))
        layout = offset(builder, arrays, behind)
        builder.store(offset(builder, layout, builder.shl(length, number(3))), at)
        builder.call(loop_function_at(builder, address), [pointers, layout, number(0), end])
    builtin.raise_if_any()
    return builtin.finish()
