"""Pointwise tails of fusion groups, run block by block.

A chain of elementwise operators on large arrays spends its time on fetching and
storing: each operator reads arrays from memory and writes one. With blocks that fit
into a cache, all operators work on one block before the next is fetched.
Intermediate values are kept in scratch buffers of the size of a block; only the
results of the group are arrays of full size. Blocks are independent, so several
threads may take them, and since every element is computed by the same operations,
results are the same to the last bit, however many threads there are.

The shapes, strides and element types of a run's inputs decide whether and how this
is done, once for each kind of inputs (`Tiling`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irc.runtime.execution import Frame, Run, Slots
from irc.runtime.fused import cutting
from irc.runtime.fused.blocks import Operation, Tiling
from irc.runtime.recurring import Recurring
from irc.runtime.threads import processors
from irc.runtime.values import is_array

WORTH = 1 << 14
"""An operand of fewer elements does not make a group worth a second look: measured on one thread, blocks of arrays of
up to 65,536 gain nothing, and where shapes change from run to run (decoders), finding the blocks costs 100 µs."""

THREADS = 4
"""No more threads than this by default: memory is shared by all of them."""

PARAMETERS = (bool, int, float, complex, str)
"""What operators of TorchScript take beside tensors: numbers, and the names of ways to compute."""

KEPT = 16
"""There is room for so many tilings of a group, for as many kinds of inputs, however many blocks they have."""

BUDGET = 1 << 12
"""Blocks of all tilings that are kept for a group: less than 2 MiB."""

_TILING = 16
"""What else belongs to a tiling takes as much as so many blocks."""


class Tail:
    """The pointwise operators that a group ends with.

    Args:
        slots: the slots of the tail's inputs in the frame. They are the first registers.
        operations: the operators, in order.
        outputs: the registers of the tail's results, each of them made by an operator.
        spare: the registers of inputs whose memory nothing else refers to once the tail runs.
        places: for registers of results, slots with the arrays in which they are to be made.
    """

    def __init__(
        self,
        slots: Slots,
        operations: Sequence[Operation],
        outputs: Slots,
        spare: Slots = (),
        places: Mapping[int, int] | None = None,
    ) -> None:
        self.slots = slots
        self.operations = operations
        self.outputs = outputs
        self.spare = spare
        self.places = places or {}
        self.size = len(slots) + len(operations)
        self._tilings: Recurring[Tiling | None] = Recurring(BUDGET, KEPT)

    def run(self, frame: Frame) -> list[Any] | None:
        """The results, or None, with nothing done, if these inputs are not to be run in blocks."""
        for s in self.slots:
            x = frame[s]
            if isinstance(x, np.ndarray) and x.size >= WORTH:  # not by a function: decoders ask at each step
                return self._run(frame)
        return None

    def _run(self, frame: Frame) -> list[Any] | None:
        run: Run = frame[0]
        inputs = [frame[s] for s in self.slots]
        if not all(x is None or is_array(x) or isinstance(x, PARAMETERS) for x in inputs):
            return None
        threads = run.threads or min(processors.usable_processors(), THREADS)
        kinds = self._kinds(inputs, threads)
        try:
            found = self._tilings.get(kinds, lambda: cutting.find_tiling(self, inputs, threads), cost_of)
        except cutting.KernelError:
            return None
        if found is None:
            return None
        if threads == 1 and len(self.operations) == 1:
            return None  # nothing to keep in the cache for
        made = {r: frame[slot] for r, slot in self.places.items()}
        results = found.run(inputs, threads, run.watch, made)
        counters = run.counters
        counters.kernels += len(self.operations)
        over = [r for r, taken in found.taken.items() if taken is not None and r not in made]
        counters.in_place += len(over)
        counters.tiled_groups += 1
        counters.tiles += len(found.blocks)
        counters.tile_bytes = max(counters.tile_bytes, found.scratch_bytes)
        if run.watch is not None:
            whole = {operation.out for operation in found.before}.union(found.taken)
            for operation in self.operations:
                if operation.out in whole:
                    run.watch.end_parts(operation.node, operation.out in over)
        return results

    def _kinds(self, inputs: Sequence[Any], threads: int) -> Any:
        """All that a tiling depends on."""
        kinds = [(x.shape, x.strides, x.dtype) if is_array(x) else kind_of_parameter(x) for x in inputs]
        writable = [is_array(inputs[r]) and inputs[r].flags.writeable for r in self.spare]
        return tuple(kinds), tuple(writable), threads, cutting.TILE_BYTES


def cost_of(found: Any) -> int:
    """What it costs to keep how something is cut, which has ``blocks``, or that it is not, which is None."""
    return _TILING + (len(found.blocks) if found else 0)


def kind_of_parameter(parameter: object) -> object:
    """What a tiling depends on of an input that is no array: of numbers only the type."""
    return parameter if isinstance(parameter, str) else type(parameter)
