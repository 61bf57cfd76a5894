"""``aten::scaled_dot_product_attention`` on large operands: some rows of some heads after the other.

Its kernel makes all scores at once. Called for some rows at a time, on several threads, it makes small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.runtime.execution import Frame, Run, Slots, Step, put
from irc.runtime.fused import cutting, geometry
from irc.runtime.fused.attention import LEAST, blocks_of, part_of, share
from irc.runtime.fused.geometry import Shape
from irc.runtime.kernels.support import check_size
from irc.runtime.steps import kernel_step
from irc.runtime.values import Array, is_array

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.kernels.registry import Kernel

KIND = "aten::scaled_dot_product_attention"

_DEFAULTS = (None, 0.0, False, None)
"""Of the arguments behind query, key and value."""


def heads_step(node: Node, kernel: Kernel, ins: Slots, outs: Slots) -> Callable[[Slots], Step] | None:
    """A maker of a step that calls ``kernel`` on blocks of rows where there are many; None for other operators."""
    if node.kind != KIND:
        return None

    query, key = ins[:2]

    def fill_in(dead: Slots) -> Step:
        whole = kernel_step(kernel, ins, outs, dead)

        def step(frame: Frame) -> None:
            x, y = frame[query], frame[key]
            try:  # not by functions: decoders ask at each step
                is_small = 0 < x.size * y.shape[-2] * max(x.itemsize, LEAST) <= cutting.TILE_BYTES * x.shape[-1]
            except (AttributeError, IndexError):  # they are no matrices
                is_small = True
            result = None if is_small else _in_blocks(frame[0], kernel, [frame[s] for s in ins])
            if result is None:
                whole(frame)
            else:
                put(frame, outs, [result], dead)

        return step

    return fill_in


def _in_blocks(run: Run, kernel: Kernel, inputs: Sequence[Any]) -> Array | None:
    """The result, or None, with nothing done, if the rows are too few, or cannot be cut."""
    given: list[Any] = [*inputs, *_DEFAULTS[len(inputs) - 3 :]]
    query, key, value, mask, dropout, is_causal, scale = given[:7]
    matrices = query, key, value
    if dropout or not all(is_array(x) and x.ndim > 2 and x.shape[:-2] == query.shape[:-2] for x in matrices):
        return None
    *lead, rows, _ = query.shape
    row = key.shape[-2] * max(query.itemsize, LEAST)
    scores = (*lead, rows, key.shape[-2])
    if mask is not None and (is_causal or not _broadcasts(mask, scores)):
        return None
    blocks = blocks_of(scores[:-1], row, rows)
    if blocks is None or key.shape[-2] != value.shape[-2] or query.shape[-1] != key.shape[-1]:
        return None
    shape = (*lead, rows, value.shape[-1])
    check_size(shape, query.dtype)
    result = np.empty(shape, query.dtype)

    def piece(number: int) -> None:
        block = blocks[number]
        heads = block[: len(lead)]
        operands = query[block], key[heads], value[heads], None if mask is None else part_of(mask, block)
        result[block] = kernel(*operands, 0.0, is_causal, scale, False, block[-1].start)

    share(run, lambda: piece, len(blocks))
    return result


def _broadcasts(mask: Any, scores: Shape) -> bool:
    """Whether ``mask`` has an element for each of the ``scores``, and no more."""
    return is_array(mask) and mask.ndim > 1 and geometry.broadcasts_into(mask.shape, scores)
