"""Several threads at one table: the thread of a run, and helpers that take pieces of its calls.

A run's thread makes the calls of a table (`irc.native.tables`) one after the other. A call that is worth it is a *job*:
its range falls into pieces, which the run's thread and its helpers take in turns. To wake a helper takes as long as
many calls, so helpers are woken once a table, and look for the next job without sleeping.

Invariants:

- The run's thread waits for pieces that have been taken, and for no thread: helpers that the operating system does not
  let run cost it nothing.
- The fields of a job change only while all of its pieces are done. The word that holds how many remain changes last,
  and has the job's number, so a thread that takes a piece takes one of the job that it then reads.
- A helper leaves when the table is over, and also after `PATIENCE` looks without a job: it never waits for ever.
- Pieces are the same on any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from irc.ir.tensor import Array
from irc.native.calls import call_of
from irc.native.jit import process_jit
from irc.native.kernels import work_memory
from irc.native.loops import INT, POINTER, VOID, function, number, offset
from irc.native.target import ir
from irc.runtime.array_memory import aligned_bytes
from irc.runtime.bounds import Share

MOST = 16
"""Threads at one table; pieces are too few for more."""

PIECE = 10_000
"""Nanoseconds of work, by estimate, of a piece at least; a call of two such pieces is a job."""

PATIENCE = 20_000
"""How often a helper looks for a job in vain before it leaves; about a millisecond."""

_LOOKS = 64
"""Looks after which a waiting thread lets others run."""

_LEFT, _DONE, _JOB = 0, 8, 16
"""Numbers of a team, in cache lines of their own: 2^32 times the job's number and how many pieces remain, negative
when the table is over; how many are done; the fields of the job, and `MOST_ARRAYS`."""

JOB = ("function", "layout", "arrays", "count", "size", "pieces", "mask")
"""The fields of a job: the loop function, what it gets, how many arrays there are, the end of its range, the number of
pieces, and what is masked out of where they begin."""

_MOST_ARRAYS = _JOB + len(JOB)
"""Where the most arrays of a job of the table stand."""

_SIZE = 32


def help_of(most: int, work: int) -> Callable[[Callable[[Array], bool], Share], bool]:
    """A function that runs a table with helpers.

    Args:
        most: arrays that a job of the table takes.
        work: bytes of work memory that a job needs.

    Returns:
        A function of the table, which takes a team, and of what shares work among threads.
    """
    look = call_of(process_jit().library("irc.help", _emit_help), [None, None], [PATIENCE], 0, releases=True)

    def run(table: Callable[[Array], bool], share: Share) -> bool:
        team = aligned_bytes(8 * _SIZE).view(np.int64)
        team.fill(0)
        team[_MOST_ARRAYS] = most
        fits = False

        def piece(number: int) -> None:
            nonlocal fits
            if number:
                if team[_LEFT] >= 0:
                    look(team, work_memory(work))
                return
            try:
                fits = table(team)
            finally:
                team[_LEFT] = -1

        share(MOST, piece)
        return fits

    return run


def emit_job(builtin: Any, team: Any, job: Any, fields: Mapping[str, Any], memory: Any) -> None:
    """Emit what offers a job to a team's helpers, takes pieces of it, and waits until all are done."""
    builder = builtin.builder
    builder.store(number(0), offset(builder, team, number(8 * _DONE)))
    for i, name in enumerate(JOB):
        builder.store(fields[name], offset(builder, team, number(8 * (_JOB + i))))
    word = builder.or_(builder.shl(job, number(32)), fields["pieces"])
    builtin.needs["irc.take"] = _take
    builtin.call("irc.take", VOID, team, memory, number(0), word)


def _emit_help() -> tuple[str, Mapping[str, Any]]:
    """The loop function of a helper: its arrays are the team and work memory, its layout the patience."""
    made, builder = function("irc.help", [POINTER, POINTER, INT, INT])
    arrays, layout, _, _ = made.args
    team, memory = (builder.load(offset(builder, arrays, number(8 * i)), typ=POINTER) for i in range(2))
    take = ir.Function(made.module, ir.FunctionType(VOID, [POINTER, POINTER, INT, INT]), "irc.take")
    builder.call(take, [team, memory, builder.load(layout, typ=INT), number(0)])
    builder.ret_void()
    return str(made.module), {"irc.take": _take}


def _take() -> tuple[str, Mapping[str, Any]]:
    """The function ``irc.take(ptr team, ptr memory, i64 patience, i64 word)``, which takes pieces of jobs.

    A helper has patience, and no word: it leaves when it has looked in vain so many times, or the table is over. The
    run's thread has none, and offers a job with the word; it leaves when all pieces of this are done.
    """
    places = {name: 8 * (_JOB + i) for i, name in enumerate(JOB)}
    text = f"""
    declare void @llvm.x86.sse2.pause()
    declare i32 @sched_yield()

    define void @irc.take(ptr %team, ptr %memory, i64 %patience, i64 %word) {{
      %most.at = getelementptr i8, ptr %team, i64 {8 * _MOST_ARRAYS}
      %most = load i64, ptr %most.at
      %entries = add i64 %most, 1
      %own = alloca ptr, i64 %entries
      %done = getelementptr i8, ptr %team, i64 {8 * _DONE}
      %is.helper = icmp eq i64 %word, 0
      br i1 %is.helper, label %look, label %offer

    offer:
      store atomic i64 %word, ptr %team release, align 8
      br label %look

    look:
      %looks = phi i64 [0, %0], [0, %offer], [%looks.on, %rested], [0, %worked], [%looks, %claim]
      %left = load atomic i64, ptr %team acquire, align 8
      %is.over = icmp slt i64 %left, 0
      br i1 %is.over, label %leave, label %count

    count:
      %remain = and i64 %left, 4294967295
      %is.none = icmp eq i64 %remain, 0
      br i1 %is.none, label %none, label %claim

    claim:
      %less = sub i64 %left, 1
      %pair = cmpxchg ptr %team, i64 %left, i64 %less acq_rel monotonic
      %is.mine = extractvalue {{i64, i1}} %pair, 1
      br i1 %is.mine, label %work, label %look

    work:
      {_reads(places)}
      br label %copy

    copy:
      %i = phi i64 [0, %work], [%next, %copied]
      %is.copied = icmp eq i64 %i, %count.arrays
      br i1 %is.copied, label %call, label %copied

    copied:
      %from = getelementptr ptr, ptr %arrays, i64 %i
      %array = load ptr, ptr %from
      %to = getelementptr ptr, ptr %own, i64 %i
      store ptr %array, ptr %to
      %next = add i64 %i, 1
      br label %copy

    call:
      %last = getelementptr ptr, ptr %own, i64 %count.arrays
      store ptr %memory, ptr %last
      %piece = sub i64 %remain, 1
      %begin.scaled = mul i64 %size, %piece
      %begin.exact = sdiv i64 %begin.scaled, %pieces
      %begin = and i64 %begin.exact, %mask
      %end.scaled = mul i64 %size, %remain
      %end.exact = sdiv i64 %end.scaled, %pieces
      %end.inside = and i64 %end.exact, %mask
      %is.last = icmp eq i64 %remain, %pieces
      %end = select i1 %is.last, i64 %size, i64 %end.inside
      call void %function(ptr %own, ptr %layout, i64 %begin, i64 %end)
      br label %worked

    worked:
      %before = atomicrmw add ptr %done, i64 1 release
      br label %look

    none:
      br i1 %is.helper, label %wait, label %await

    wait:
      %is.tired = icmp uge i64 %looks, %patience
      br i1 %is.tired, label %leave, label %rest

    await:
      %finished = load atomic i64, ptr %done acquire, align 8
      %pieces.at = getelementptr i8, ptr %team, i64 {places["pieces"]}
      %all = load i64, ptr %pieces.at
      %is.finished = icmp eq i64 %finished, %all
      br i1 %is.finished, label %leave, label %rest

    rest:
      call void @llvm.x86.sse2.pause()
      %looks.on = add i64 %looks, 1
      %often = and i64 %looks.on, {_LOOKS - 1}
      %is.long = icmp eq i64 %often, 0
      br i1 %is.long, label %yield, label %rested

    yield:
      %yielded = call i32 @sched_yield()
      br label %rested

    rested:
      br label %look

    leave:
      ret void
    }}
    """
    return text, {}


def _reads(places: Mapping[str, int]) -> str:
    """What reads the fields of a job, at these offsets, into values of their names."""
    lines: list[str] = []
    for name, place in places.items():
        value, kind = name if name != "count" else "count.arrays", "ptr" if name in JOB[:3] else "i64"
        lines.append(f"%{name}.field = getelementptr i8, ptr %team, i64 {place}")
        lines.append(f"%{value} = load {kind}, ptr %{name}.field")
    return "\n      ".join(lines)
