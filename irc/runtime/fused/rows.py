"""Softmax and normalisations on large arrays, block by block of rows.

They work on rows, the axes from one on, each by itself, so several threads may
take blocks of rows, and what lies between the passes over them is never of full
size. The result of a row is the same to the last bit, whichever rows are
computed with it. (On one thread it does not pay: results are copied.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir.kinds import MASKED_SOFTMAX
from irc.runtime.binding import binder_of_others
from irc.runtime.execution import Frame, Run, Slots, Step, put
from irc.runtime.fused import cutting, tiles
from irc.runtime.steps import kernel_step, placed_step
from irc.runtime.threads import processors, workers
from irc.runtime.values import Array, is_array

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.kernels.registry import Kernel

ROWWISE = {
    "onnx::Softmax": 13,
    "onnx::LogSoftmax": 13,
    MASKED_SOFTMAX: 1,
    "onnx::LayerNormalization": 17,
    "onnx::RMSNormalization": 23,
}
"""Operators that compute every row by itself, and the version since which ``axis``, -1 by default, is a row's first."""

WORTH_BYTES = 1 << 20
"""A smaller operand is not cut."""


def rows_step(
    node: Node, kernel: Kernel, ins: Slots, outs: Slots, placed: bool = False
) -> Callable[[Slots], Step] | None:
    """A maker of a step that calls ``kernel`` on blocks of rows if the operand is large; None if it has no rows.

    Args:
        node: the operator.
        kernel: its kernel.
        ins: the slots of its inputs.
        outs: the slots of its results.
        placed: whether its one result is to be made in the array that is in its slot.
    """
    since = ROWWISE.get(node.kind)
    if since is None or (node.version is not None and node.version < since):
        return None
    if binder_of_others(node) is not None:  # it may need rows as they are, or be none for several threads
        return None
    axis = int(node.attributes.get("axis", -1))
    operand = ins[0]

    def fill_in(dead: Slots) -> Step:
        whole = placed_step(kernel, ins, outs[0], dead) if placed else kernel_step(kernel, ins, outs, dead)

        def step(frame: Frame) -> None:
            x = frame[operand]
            blocks = None
            if is_array(x) and x.nbytes >= WORTH_BYTES:
                blocks = _blocks([frame[s] for s in ins], axis, frame[0])
            if blocks is None:
                whole(frame)
            elif placed:
                blocks.fill(kernel, frame[outs[0]])
                put(frame, (), (), dead)
            else:
                put(frame, outs, blocks.results(kernel), dead)

        return step

    return fill_in


@dataclass(frozen=True)
class _Blocks:
    """Blocks of rows of an operand.

    Attributes:
        rows: the operand with the axes before a row merged into one, followed by axes of size 1 that keep the rank
            (kernels count axes), then the axes of a row.
        lead: the shape of all axes before a row.
        others: the other inputs, the same for every row.
        ends: where blocks begin and end.
        threads: how many threads may take blocks.
    """

    rows: Array
    lead: tuple[int, ...]
    others: Sequence[Any]
    ends: Sequence[int]
    threads: int

    def fill(self, kernel: Kernel, out: Array) -> None:
        """Write the result to ``out``."""
        target = out.reshape(self.rows.shape)

        def piece(number: int) -> None:
            block = slice(self.ends[number], self.ends[number + 1])
            kernel(self.rows[block], *self.others, out=target[block])

        workers.share(lambda: piece, len(self.ends) - 1, self.threads)

    def results(self, kernel: Kernel) -> list[Array]:
        """The results; their types and the shapes of their rows are taken from the first block's."""
        first = _several(kernel(self.rows[: self.ends[1]], *self.others))
        whole = [np.empty((len(self.rows), *part.shape[1:]), part.dtype) for part in first]

        def fill(number: int, parts: Sequence[Array]) -> None:
            for result, part in zip(whole, parts, strict=True):
                result[self.ends[number] : self.ends[number + 1]] = part

        def piece(number: int) -> None:
            block = slice(self.ends[number + 1], self.ends[number + 2])
            fill(number + 1, _several(kernel(self.rows[block], *self.others)))

        fill(0, first)
        workers.share(lambda: piece, len(self.ends) - 2, self.threads)
        return [result.reshape(self.lead + result.shape[len(self.lead) :]) for result in whole]


def _blocks(inputs: Sequence[Any], axis: int, run: Run) -> _Blocks | None:
    """The blocks of the first of ``inputs``; None if it is not worth cutting or cannot be cut into rows."""
    x, others = inputs[0], inputs[1:]
    if not x.flags.c_contiguous or not -x.ndim <= axis < x.ndim:
        return None
    threads = run.threads or min(processors.usable_processors(), tiles.THREADS)
    if threads == 1:
        return None
    first = axis % x.ndim
    if any(is_array(y) and y.ndim > x.ndim - first for y in others):
        return None  # they may differ from row to row
    lead, row = x.shape[:first], x.shape[first:]
    count, size = math.prod(lead), math.prod(row) * x.itemsize
    blocks = min(count, x.nbytes // max(cutting.tile_bytes(x.nbytes, threads), size))
    if blocks < 2:
        return None
    run.counters.tiles += blocks
    ends = [count * i // blocks for i in range(blocks + 1)]
    return _Blocks(x.reshape(count, *(1,) * (first - 1), *row), lead, others, ends, threads)


def _several(found: Any) -> Sequence[Array]:
    return (found,) if is_array(found) else found
