"""Units on threads: a unit begins when all units that it needs have run.

A unit has a frame of its own. Values that it needs from others are put into the frame
first; values that others need are taken from it at its end, under a lock. So no step
that empties a slot, and no counter, interferes with another thread. After a
failure no further unit begins, and the thread that called for the run raises the
failure once, when no other thread works for the run any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.runtime.binding import writes_over
from irc.runtime.execution import Code, Counters, Frame, Run, Slots, execute
from irc.runtime.threads import workers

if TYPE_CHECKING:
    from irc.runtime.threads.units import Schedule


class UnitCode:
    """A unit, lowered.

    Attributes:
        code: its steps.
        imports: the slots that it reads and that other units, or the caller of the run, fill.
        exports: the slots that it fills and that other units, or the caller, read.
        users: the units that need it.
        needs: how many units it needs.
    """

    __slots__ = ("code", "exports", "imports", "needs", "users")

    def __init__(self, code: Code, needs: int) -> None:
        self.code = code
        self.imports: tuple[int, ...] = ()
        self.exports: tuple[int, ...] = ()
        self.users: list[int] = []
        self.needs = needs


class UnitPlan:
    """The top block of a graph, to be run unit by unit.

    Args:
        name: the graph's, for messages.
        code: the block.
        schedule: its units.
        reads: for each step the slots that it reads.
        constants: the slots that a run's template fills.
        kernels: for each step whether it calls a kernel.

    Attributes:
        is_parallel: whether two of the units are worth threads of their own.
    """

    def __init__(
        self,
        name: str,
        code: Code,
        schedule: Schedule,
        reads: Sequence[frozenset[int]],
        constants: frozenset[int],
        kernels: Sequence[bool],
    ) -> None:
        self.name = name
        self.params = code.params
        self.returns = code.returns
        self.returned = frozenset(code.returns)
        self.breaks = schedule.breaks
        self.is_parallel = schedule.is_parallel
        self.units: list[UnitCode] = []
        self.readers: dict[int, int] = {}  # slot -> how many units import it
        made: list[set[int]] = []
        for number, unit in enumerate(schedule.units):
            part = Code()
            part.steps = [code.steps[i] for i in unit.members]
            part.nodes = [code.nodes[i] for i in unit.members]
            part.kernels = sum(kernels[i] for i in unit.members)
            part.in_place = sum(writes_over(node) for node, _, _ in part.nodes)
            part.units = 1
            lowered = UnitCode(part, len(unit.needs))
            made.append({slot for _, _, outs in part.nodes for slot in outs})
            wanted: set[int] = set()
            for i in unit.members:
                wanted |= reads[i]
            lowered.imports = tuple(sorted(wanted - made[-1] - constants))
            for slot in lowered.imports:
                self.readers[slot] = self.readers.get(slot, 0) + 1
            for need in unit.needs:
                self.units[need].users.append(number)
            self.units.append(lowered)
        outside = frozenset(self.readers).union(code.returns)
        for lowered, slots in zip(self.units, made, strict=True):
            lowered.exports = tuple(sorted(slots & outside))

    def call(self, inputs: Sequence[Any], run: Run, template: Frame, threads: int) -> list[Any]:
        """The graph's outputs, in order; as `irc.runtime.plan.Plan.call`.

        Args:
            inputs: one value for each input.
            run: the run; it is not watched.
            template: constants in their slots.
            threads: how many threads may take part, this one included.
        """
        if len(inputs) != len(self.params):
            raise Error("IRC434", f"{self.name} takes {len(self.params)} values, not {len(inputs)}")
        frame = template.copy()
        for slot, value in zip(self.params, inputs, strict=True):
            frame[slot] = value
        _Dispatch(self, frame, template, run).run(min(threads, len(self.units)))
        run.counters.add_breaks(self.breaks)
        return [frame[slot] for slot in self.returns]


class _Dispatch:
    """One run of a plan's units."""

    def __init__(self, plan: UnitPlan, frame: Frame, template: Frame, run: Run) -> None:
        self._plan = plan
        self._frame = frame
        self._template = template
        self._run = run
        self._crew = workers.Crew()
        self._ready = deque(number for number, unit in enumerate(plan.units) if not unit.needs)
        self._missing = [unit.needs for unit in plan.units]
        self._readers = dict(plan.readers)
        self._left = len(plan.units)
        self._running = 0

    def run(self, threads: int) -> None:
        """Run all units; raise what the first that fails has raised."""
        self._crew.run(self._work, threads)

    def _work(self) -> None:
        """Run units as they become ready, until none is left or one has failed."""
        while (number := self._next()) is not None:
            counters = Counters()
            try:
                local = self._begin(number, counters)
                execute(self._plan.units[number].code, local)
                self._end(number, local, counters)
            except BaseException as error:  # an interrupt too; known before any thread looks for the next unit
                self._crew.fail(error)
            finally:
                with self._crew.lock:
                    self._running -= 1
                    self._crew.wake()

    def _next(self) -> int | None:
        while True:
            with self._crew.lock:
                if self._crew.failure is not None or not self._left:
                    return None
                if self._ready:
                    self._run.counters.overlaps += self._running > 0
                    self._running += 1
                    return self._ready.popleft()
                gate = self._crew.gate()
            gate.acquire()

    def _begin(self, number: int, counters: Counters) -> Frame:
        """The frame of a unit. The run's frame drops values that no other unit imports any more."""
        local = self._template.copy()
        local[0] = Run(counters, threads=self._run.threads)
        with self._crew.lock:
            self._import(self._plan.units[number].imports, local)
        return local

    def _import(self, slots: Slots, local: Frame) -> None:
        for slot in slots:
            local[slot] = self._frame[slot]
            self._readers[slot] -= 1
            if not self._readers[slot] and slot not in self._plan.returned:
                self._frame[slot] = None

    def _end(self, number: int, local: Frame, counters: Counters) -> None:
        with self._crew.lock:
            self._run.counters.add(counters)
            self._export(self._plan.units[number], local)

    def _export(self, unit: UnitCode, local: Frame) -> None:
        for slot in unit.exports:
            self._frame[slot] = local[slot]
        self._left -= 1
        for user in unit.users:
            self._missing[user] -= 1
            if not self._missing[user]:
                self._ready.append(user)
