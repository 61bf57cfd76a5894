"""Softmax and normalisations on large arrays, block by block of rows.

They work on rows, the axes from one on, each by itself, so several threads may
take blocks of rows, and what lies between the passes over them is never of full
size. The result of a row is the same to the last bit, whichever rows are
computed with it. (On one thread it does not pay: results are copied.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.runtime import tiles, workers
from irc.runtime.execution import Frame, Run, Slots, Step
from irc.runtime.values import Array, is_array

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.kernels.registry import Kernel

ROWWISE = {
    "onnx::Softmax": 13,
    "onnx::LogSoftmax": 13,
    "onnx::LayerNormalization": 17,
    "onnx::RMSNormalization": 23,
}
"""Operators that compute every row by itself, and the version since which ``axis``, -1 by default, is a row's first."""

WORTH_BYTES = 1 << 20
"""A smaller operand is not cut."""


def rows_step(node: Node, kernel: Kernel, ins: Slots, outs: Slots) -> Callable[[Slots], Step] | None:
    """A maker of a step that calls ``kernel`` on blocks of rows if the operand is large; None if it has no rows."""
    since = ROWWISE.get(node.kind)
    if since is None or (node.version is not None and node.version < since):
        return None
    axis = int(node.attributes.get("axis", -1))

    def fill_in(dead: Slots) -> Step:
        def step(frame: Frame) -> None:
            inputs = [frame[s] for s in ins]
            results = _in_blocks(kernel, inputs, axis, frame[0])
            if results is None:
                results = kernel(*inputs)
                results = (results,) if len(outs) == 1 else results
            for s, value in zip(outs, results, strict=True):
                frame[s] = value
            for s in dead:
                frame[s] = None

        return step

    return fill_in


def _in_blocks(kernel: Kernel, inputs: Sequence[Any], axis: int, run: Run) -> list[Array] | None:
    """The results of ``kernel``; None if the operand is not for blocks: then nothing was done."""
    x, others = inputs[0], inputs[1:]
    if not is_array(x) or x.nbytes < WORTH_BYTES or not x.flags.c_contiguous or not -x.ndim <= axis < x.ndim:
        return None
    threads = run.threads or min(workers.usable_processors(), tiles.THREADS)
    if threads == 1:
        return None
    first = axis % x.ndim
    if any(is_array(y) and y.ndim > x.ndim - first for y in others):
        return None  # they may differ from row to row
    lead, row = x.shape[:first], x.shape[first:]
    count, size = math.prod(lead), math.prod(row) * x.itemsize
    blocks = min(count, x.nbytes // max(1, tiles.TILE_BYTES, size))
    if blocks < 2:
        return None
    rows = x.reshape(count, *(1,) * (first - 1), *row)  # of as many axes, for the kernel counts them
    ends = [count * i // blocks for i in range(blocks + 1)]
    parts = _results(kernel(rows[: ends[1]], *others))
    results = [np.empty((count, *part.shape[1:]), part.dtype) for part in parts]

    def put(number: int, parts: Sequence[Array]) -> None:
        for result, part in zip(results, parts, strict=True):
            result[ends[number] : ends[number + 1]] = part

    def piece(number: int) -> None:
        put(number + 1, _results(kernel(rows[ends[number + 1] : ends[number + 2]], *others)))

    put(0, parts)
    workers.share(lambda: piece, blocks - 1, threads)
    run.counters.tiles += blocks
    return [result.reshape(lead + result.shape[first:]) for result in results]


def _results(found: Any) -> Sequence[Array]:
    return (found,) if is_array(found) else found
