"""Attention, block by block of the rows of its scores.

``softmax(f(q @ k)) @ v`` of 32 heads and 4,096 positions has 2 GiB of scores. In blocks, all operators work on some
rows of some heads before the next ones, in scratch buffers that stay in the cache; only the result is a whole array.
Several threads may take blocks: each then multiplies on its own, so that the softmax, too, is shared among processors.

Rows are cut in the same way however many threads there are. A product of some rows may add its terms in another order
than one of all rows, so that last digits differ from those of the operators one by one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from irc.runtime.binding import interrupts
from irc.runtime.execution import Frame, Run, Slots, fail
from irc.runtime.fused import cutting, geometry
from irc.runtime.fused.blocks import Operation
from irc.runtime.fused.geometry import Index, Shape
from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import broadcast_shape, check_size
from irc.runtime.threads import blas, workers
from irc.runtime.values import Array, is_array

THREADS = 16
"""No more threads than this by default: between products, they meet at the GIL."""

_BYTE = np.dtype(np.uint8)

_PARTS = 4
"""Into about so many blocks scores are cut at least, if these are not too small for it."""


class Attention:
    """The operators of attention in a group.

    Args:
        slots: the slots of its inputs in the frame. They are the first registers.
        operations: the operators, in order: each but the first reads the result of the one before.
        place: the slot with the array in which the result is to be made; None if there is none.
    """

    def __init__(self, slots: Slots, operations: Sequence[Operation], place: int | None) -> None:
        self.slots = slots
        self.operations = operations
        self._place = place
        self._queries, self._keys = operations[0].ins
        self._values = operations[-1].ins[1]

    def run(self, frame: Frame) -> list[Any] | None:
        """The result, or None, with nothing done, if these inputs are not to be run in blocks."""
        x, y = frame[self.slots[self._queries]], frame[self.slots[self._keys]]
        if not is_array(x) or not is_array(y) or min(x.ndim, y.ndim) < 2:
            return None
        rows = x.size * y.shape[-1]  # not by a function: decoders ask at each step
        if rows * max(x.itemsize, 4) <= cutting.TILE_BYTES * x.shape[-1]:
            return None
        return self._run(frame)

    def _run(self, frame: Frame) -> list[Any] | None:
        run: Run = frame[0]
        inputs = [frame[s] for s in self.slots]
        cut = self._cut(inputs)
        if cut is None:
            return None
        threads = min(run.threads or min(workers.usable_processors(), THREADS), len(cut.blocks))
        if self._place is None:
            check_size(cut.shape, cut.dtypes[-1])
            result = np.empty(cut.shape, cut.dtypes[-1])
        else:
            result = frame[self._place]
        with blas.at_most(1) if threads > 1 else nullcontext():
            workers.share(lambda: self._piece(run, inputs, cut, result), len(cut.blocks), threads)
        counters = run.counters
        counters.kernels += len(self.operations)
        counters.tiled_groups += 1
        counters.tiles += len(cut.blocks)
        counters.tile_bytes = max(counters.tile_bytes, sum(cut.buffers))
        if run.watch is not None:
            run.watch.end_parts(self.operations[-1].node, False)
        return [result]

    def _cut(self, inputs: Sequence[Any]) -> _Cut | None:
        """How the scores are cut; None if they need not be, or cannot: then running the operators will say why."""
        if not all(is_array(x) and not x.dtype.hasobject for x in inputs):
            return None
        scores = self._scores([x.shape for x in inputs])
        dtypes = None if scores is None else self._dtypes(inputs)
        if scores is None or dtypes is None:
            return None
        *lead, rows, columns = scores
        row = columns * max(dtype.itemsize for dtype in dtypes)
        whole = math.prod(lead) * rows * row
        if whole <= cutting.TILE_BYTES:
            return None
        most = max(cutting.TILE_BYTES, min(cutting.SHARED_TILE_BYTES, whole // _PARTS))
        blocks = geometry.blocks((*lead, rows), max(1, most // row))
        return _Cut(blocks, scores, (*lead, rows, inputs[self._values].shape[-1]), dtypes)

    def _scores(self, shapes: Sequence[Shape]) -> Shape | None:
        """The shape of the scores, which all operators up to the last one keep; None if they do not."""
        left, right, values = shapes[self._queries], shapes[self._keys], shapes[self._values]
        if min(len(left), len(right), len(values)) < 2 or left[-1] != right[-2] or values[-2] != right[-1]:
            return None
        try:
            lead = broadcast_shape(left[:-2], right[:-2])
            scores = (*lead, left[-2], right[-1])
            known = [*shapes, scores]
            for operation in self.operations[1:-1]:
                known.append(cutting.result_shape(operation.node.kind, [known[r] for r in operation.ins]))
            kept = all(shape == scores for shape in known[len(shapes) :])
            return scores if kept and broadcast_shape(lead, values[:-2]) == lead else None
        except ValueError:
            return None

    def _dtypes(self, inputs: Sequence[Array]) -> list[np.dtype[Any]] | None:
        """The element types of all results, found by calling the kernels on ones; None if one of them refuses."""
        ones: list[Any] = [np.ones((1,) * x.ndim, x.dtype) for x in inputs]
        for operation in self.operations:
            try:
                ones.append(operation.kernel(*[ones[r] for r in operation.ins]))
            except Exception as error:
                if interrupts(error, operation.node):
                    raise
                return None
        return [x.dtype for x in ones[len(inputs) :]]

    def _piece(self, run: Run, inputs: Sequence[Array], cut: _Cut, result: Array) -> workers.Piece:
        memory = [scratch(f"attention {i}", (size,), _BYTE) for i, size in enumerate(cut.buffers)]
        buffer_of, last = cut.buffer_of, len(self.operations) - 1

        def piece(number: int) -> None:
            block = cut.blocks[number]
            shape = (*geometry.extents(block), cut.scores[-1])
            values: list[Any] = [self._part(i, x, block) for i, x in enumerate(inputs)]
            for i, operation in enumerate(self.operations):
                out = result[block] if i == last else np.ndarray(shape, cut.dtypes[i], memory[buffer_of[i]])
                if run.watch is not None:
                    run.watch.begin_part(operation.node)
                try:
                    operation.kernel(*[values[r] for r in operation.ins], out=out)
                except Exception as error:
                    whole = [*inputs, *(np.broadcast_to(np.empty((), dtype), cut.scores) for dtype in cut.dtypes)]
                    fail(error, operation.node, [whole[r] for r in operation.ins])
                if run.watch is not None:
                    run.watch.end_part(operation.node)
                values.append(out)

        return piece

    def _part(self, register: int, x: Array, block: Index) -> Array:
        """What a block needs of an input: its rows; of what the products multiply with, all rows of its heads."""
        inner = 2 if register in (self._keys, self._values) else 1
        axes = x.ndim - inner
        if axes <= 0:
            return x
        end = len(block) + 1 - inner
        return x[geometry.within(block[end - axes : end], x.shape[:axes])]


class _Cut:
    """Scores and their blocks.

    Attributes:
        blocks: the index of each among the rows: of all axes of the scores but the last.
        scores: the shape of the scores.
        shape: that of the result.
        dtypes: the element types of all operators' results.
        buffer_of: of all operators but the last, the scratch buffer that each writes to: over its operand, or to the
            other one where it changes the element type.
        buffers: the bytes of the buffers.
    """

    def __init__(self, blocks: list[Index], scores: Shape, shape: Shape, dtypes: list[np.dtype[Any]]) -> None:
        self.blocks = blocks
        self.scores = scores
        self.shape = shape
        self.dtypes = dtypes
        inner = dtypes[:-1]
        self.buffer_of = [changes % 2 for changes in accumulate((a != b for a, b in pairwise(inner)), initial=0)]
        size = max(math.prod(geometry.extents(block)) for block in blocks) * scores[-1]
        self.buffers = [
            size * max([dtype.itemsize for dtype, used in zip(inner, self.buffer_of) if used == buffer])
            for buffer in sorted(set(self.buffer_of))
        ]
