"""Attention, block by block of the rows of its scores.

``softmax(f(q @ k)) @ v`` of 32 heads and 4,096 positions has 2 GiB of scores. In blocks, all operators work on some
rows of some heads before the next ones, in scratch buffers that stay in the cache; only the result is a whole array.
Several threads may take blocks: each then multiplies on its own, so that the softmax, too, is shared among processors.

Rows are cut in the same way however many threads there are. A product of some rows may add its terms in another order
than one of all rows, so that last digits differ from those of the operators one by one.

Where heads share keys and values, their queries are the rows of one product. A Reshape then gives each head rows of
its own, and another one takes them together again. In blocks, there is an axis for these heads instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from irc.ir.kinds import RESHAPE
from irc.ir.ops.attention import SOFTMAX, softmax_axis
from irc.runtime.execution import Frame, Run, Slots, Watch, fail
from irc.runtime.fused import cutting, geometry, tiles
from irc.runtime.fused.blocks import Operation
from irc.runtime.fused.geometry import Index, Shape
from irc.runtime.fused.scores import Scores, scores_of
from irc.runtime.kernels.registry import takes_out
from irc.runtime.kernels.scratch import scratch
from irc.runtime.kernels.support import broadcast_shape, check_size
from irc.runtime.recurring import Recurring
from irc.runtime.threads import blas, processors, workers
from irc.runtime.values import Array, is_array

THREADS = 16
"""No more threads than this by default: between products, they meet at the GIL."""

LEAST = 4
"""Bytes of a score: narrower ones are made as float32, or may become that."""

_PARTS = 4
"""Into about so many blocks scores are cut at least, if these are not too small for it."""

ROWS = 64
"""A block has at least so many rows of one product, if that has as many: each block reads all keys and values of its
heads. Measured on one thread, rows of 4 to 512 KiB: 32 take up to a fifth longer, 1 four times as long; 128 are as
fast, but for a seventh at the shortest of these."""

_BYTE = np.dtype(np.uint8)
_NOTHING = np.dtype("V0")  # arrays of it have a shape, and take no memory


def blocks_of(rows: Shape, row: int, of_product: int) -> list[Index] | None:
    """The blocks of the ``rows`` of scores; None if these are too small to be cut.

    Args:
        rows: the shape of the scores without their last axis.
        row: the bytes of each row.
        of_product: how many rows one product has.
    """
    whole = math.prod(rows) * row
    if whole <= cutting.TILE_BYTES:
        return None
    most = max(cutting.TILE_BYTES, min(cutting.SHARED_TILE_BYTES, whole // _PARTS))
    return geometry.blocks(rows, max(most // row, min(ROWS, of_product)))


def share(run: Run, start: Callable[[], workers.Piece], blocks: int) -> None:
    """Compute so many ``blocks``, with matrix products in them, on the threads of ``run``, as `workers.share` does."""
    run.counters.tiles += blocks
    threads = min(run.threads or min(processors.usable_processors(), THREADS), blocks)
    blas.one_thread().call(workers.share, start, blocks, threads)


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
        self._take_out = [takes_out(kernel) for _, kernel, *_ in operations]
        self._axis = next(softmax_axis(node) for node, *_ in operations if node.kind in SOFTMAX)
        self._scores = scores_of(operations)
        self._targets = {operation.ins[1] for operation in operations if operation.node.kind == RESHAPE}
        self._at_once = None if self._targets else self._scores
        self._cuts: Recurring[_Cut | None] = Recurring(tiles.BUDGET, tiles.KEPT)

    def run(self, frame: Frame) -> list[Any] | None:
        """The result, or None, with nothing done, if these inputs are not to be run in blocks."""
        x, y = frame[self.slots[self._queries]], frame[self.slots[self._keys]]
        try:  # not by functions: decoders ask at each step
            size = x.size * y.shape[-1] * max(x.itemsize, LEAST)
            is_small = size <= cutting.TILE_BYTES * x.shape[-1]
        except (AttributeError, IndexError):  # they are no matrices
            return None
        if not is_small:
            return self._run(frame)
        return None if self._at_once is None else self._run_at_once(frame, self._at_once)

    def _run(self, frame: Frame) -> list[Any] | None:
        run: Run = frame[0]
        inputs = [frame[s] for s in self.slots]
        cut = self._find_cut(inputs)
        if cut is None:
            return None
        views = inputs if cut.heads is None else self._apart(inputs, cut.heads, cut.scores[-2])
        if self._place is None:
            check_size(cut.shape, cut.dtypes[-1])
            result = np.empty(cut.shape, cut.dtypes[-1])
        else:
            result = frame[self._place]
        target = result.reshape(*cut.scores[:-1], cut.shape[-1])
        share(run, lambda: self._piece(cut, views, target, run.watch), len(cut.blocks))
        counters = run.counters
        counters.kernels += len(self.operations)
        counters.tiled_groups += 1
        counters.tile_bytes = max(counters.tile_bytes, sum(cut.buffers))
        if run.watch is not None:
            run.watch.end_parts(self.operations[-1].node, False)
        return [result]

    def _run_at_once(self, frame: Frame, scores: Scores) -> list[Any] | None:
        """The result, without blocks: of queries that each have keys and values of their own; else None."""
        inputs = [frame[s] for s in self.slots]
        queries, keys, values = inputs[self._queries], inputs[self._keys], inputs[self._values]
        shape, others = queries.shape, keys.shape
        lead = others[:-2]
        if len(shape) < 2 or len(others) < 2:
            return None
        if shape[:-2] != lead or shape[-1] != others[-2] or (self._axis != -1 and self._axis != len(shape) - 1):
            return None
        if not is_array(values) or values.shape[:-1] != (*lead, others[-1]) or not (keys.size and values.size):
            return None
        if not scores.suit(inputs) or not scores.fit(inputs, (*shape[:-1], others[-1])):
            return None
        run: Run = frame[0]
        result = scores.compute(inputs, None, None if self._place is None else frame[self._place], run.watch)
        run.counters.kernels += len(self.operations)
        if run.watch is not None:
            run.watch.end_parts(self.operations[-1].node, False)
        return [result]

    def _find_cut(self, inputs: Sequence[Any]) -> _Cut | None:
        """What `_cut` says of inputs of these kinds, which is kept for other runs."""
        if not all(
            not x.dtype.hasobject if is_array(x) else x is None or isinstance(x, tiles.PARAMETERS) for x in inputs
        ):
            return None
        kinds = tuple([self._kind(register, x) for register, x in enumerate(inputs)])
        try:
            return self._cuts.get(kinds, lambda: self._cut(inputs), tiles.cost_of)
        except cutting.KernelError:
            return None

    def _kind(self, register: int, x: Any) -> object:
        """What a cut depends on of an input."""
        if not is_array(x):
            return tiles.kind_of_parameter(x)
        return x.shape, x.dtype, x.tobytes() if register in self._targets else b""

    def _cut(self, inputs: Sequence[Any]) -> _Cut | None:
        """How the scores are cut; None if they need not be, or cannot: then running the operators will say why.

        `KernelError` if an operator refuses the inputs.
        """
        try:
            shapes = self._shapes(inputs)
        except ValueError:
            shapes = None
        dtypes = self._dtypes(inputs)
        if shapes is None or any(dtype.hasobject for dtype in dtypes):
            return None
        product, scores = shapes
        heads = None if scores == product else _heads(product, scores)
        if self._axis != -1 and (heads is not None or self._axis != len(scores) - 1):
            return None  # it is not the last axis: there will be another one, or stated types are wrong
        space = scores if heads is None else (*scores[:-3], *heads, *scores[-2:])
        blocks = blocks_of(space[:-1], space[-1] * max([dtype.itemsize for dtype in dtypes]), product[-2])
        if blocks is None:
            return None
        return _Cut(blocks, heads, space, (*product[:-1], inputs[self._values].shape[-1]), dtypes)

    def _shapes(self, inputs: Sequence[Any]) -> tuple[Shape, Shape] | None:
        """The shape of the first product, and that of the scores: another one if heads share keys, and if it matters.

        None if an operator makes any other shape. ValueError if shapes do not fit.
        """
        if not is_array(inputs[self._values]):
            return None
        queries, keys, values = (inputs[r].shape for r in (self._queries, self._keys, self._values))
        if min(len(queries), len(keys), len(values)) < 2 or queries[-1] != keys[-2] or values[-2] != keys[-1]:
            return None
        lead = broadcast_shape(queries[:-2], keys[:-2])
        shape = scores = product = (*lead, queries[-2], keys[-1])
        for operation in self.operations[1:-1]:
            kind, ins = operation.node.kind, operation.ins
            others = [inputs[r] for r in ins if r < len(inputs)]
            if kind == RESHAPE:
                shape = cutting.asked(operation, [np.empty(shape, _NOTHING), *others]).shape
                if shape != product and _heads(product, shape) is None:
                    return None
            else:
                known = [shape if r >= len(inputs) else _shape(inputs[r]) for r in ins]
                if cutting.result_shape(kind, known) != shape:
                    return None
                if any(is_array(x) and x.size != 1 for x in others):
                    scores = shape  # of all of them: every Reshape stands next to a product
        if shape != product or broadcast_shape(lead, values[:-2]) != lead:
            return None
        return product, scores

    def _dtypes(self, inputs: Sequence[Any]) -> list[np.dtype[Any]]:
        """The element types of all results, found by calling the kernels on a few ones."""
        ones = cutting.few_ones(inputs)
        for operation in self.operations:
            operands = [ones[r] for r in operation.ins]
            ones.append(operands[0] if operation.node.kind == RESHAPE else cutting.asked(operation, operands))
        return [x.dtype for x in ones[len(inputs) :]]

    def _apart(self, inputs: Sequence[Any], heads: tuple[int, int], rows: int) -> list[Any]:
        """The inputs with two axes for ``heads``: those that are shared, and those that share one, each of ``rows``."""

        def apart(register: int, x: Any) -> Any:
            if register == self._queries:
                return x.reshape(*x.shape[:-2], heads[1], rows, x.shape[-1])
            if not is_array(x) or x.ndim < 3:
                return x
            if register in (self._keys, self._values):
                return x[..., None, :, :]
            return x.reshape(*x.shape[:-3], *((1, 1) if x.shape[-3] == 1 else heads), *x.shape[-2:])

        return [apart(register, x) for register, x in enumerate(inputs)]

    def _piece(self, cut: _Cut, views: Sequence[Any], target: Array, watch: Watch | None) -> workers.Piece:
        memory = [scratch(f"attention {i}", (size,), _BYTE) for i, size in enumerate(cut.buffers)]
        last = len(self.operations) - 1
        scores = self._scores
        if scores is not None and not scores.suit(views):
            scores = None

        def piece(number: int) -> None:
            block = cut.blocks[number]
            shape = (*geometry.extents(block), cut.scores[-1])
            values: list[Any] = [self._part(i, x, block) for i, x in enumerate(views)]
            if scores is not None:
                scores.compute(values, np.ndarray(shape, cut.dtypes[0], memory[0]), target[block], watch, views)
                return
            for i, operation in enumerate(self.operations):
                if operation.node.kind == RESHAPE:
                    values.append(values[-1])
                    continue
                operands = [values[r] for r in operation.ins]
                out = target[block] if i == last else np.ndarray(shape, cut.dtypes[i], memory[cut.buffer_of[i]])
                if watch is not None:
                    watch.begin_part(operation.node)
                try:
                    if self._take_out[i]:
                        operation.kernel(*operands, out=out)
                    else:
                        np.copyto(out, operation.kernel(*operands))
                except Exception as error:
                    whole = [*views, *(np.broadcast_to(np.empty((), dtype), cut.scores) for dtype in cut.dtypes)]
                    fail(error, operation.node, [whole[r] for r in operation.ins])
                if watch is not None:
                    watch.end_part(operation.node)
                values.append(out)

        return piece

    def _part(self, register: int, x: Any, block: Index) -> Any:
        """What a block needs of an input: its rows; of what the products multiply with, all rows of its heads."""
        is_matrix = register in (self._keys, self._values)
        return part_of(x, block, 2 if is_matrix else 1) if is_array(x) else x


def part_of(x: Array, block: Index, whole: int = 1) -> Array:
    """What the ``block`` of rows needs of ``x``, which broadcasts to the scores but for its last ``whole`` axes."""
    axes = x.ndim - whole
    if axes <= 0:
        return x
    end = len(block) + 1 - whole
    return x[geometry.within(block[end - axes : end], x.shape[:axes])]


class _Cut:
    """Scores and their blocks.

    Attributes:
        blocks: the index of each among the rows: of all axes of the scores but the last.
        heads: how many heads there are that others share, and how many share each, if these have an axis of their own.
        scores: the shape of the scores.
        shape: that of the result.
        dtypes: the element types of all operators' results.
        buffer_of: of all operators but the last, the scratch buffer that each writes to: over its operand, or to the
            other one where it changes the element type.
        buffers: the bytes of the buffers.
    """

    def __init__(
        self,
        blocks: list[Index],
        heads: tuple[int, int] | None,
        scores: Shape,
        shape: Shape,
        dtypes: list[np.dtype[Any]],
    ) -> None:
        self.blocks = blocks
        self.heads = heads
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


def _shape(x: Any) -> Shape | None:
    return x.shape if is_array(x) else None


def _heads(product: Shape, scores: Shape) -> tuple[int, int] | None:
    """How many heads there are that others share, and how many share each; None if ``scores`` mean anything else.

    The ``product`` has the rows of all that share one; the scores have them apart.
    """
    if not len(product) == len(scores) > 2 or (product[:-3], product[-1]) != (scores[:-3], scores[-1]):
        return None
    shared, heads = product[-3], scores[-3]
    group = heads // shared if shared else 0
    fits = shared * group == heads and group * scores[-2] == product[-2]
    return (shared, group) if fits else None
