"""Packs weights by loops: numbers of a few features side by side, block by block.

A first run packs all weights of a model. NumPy copies them element by element, and transforms filters by products of
tiny matrices, on one thread; loops take a third of that, and threads share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Code, Make, process_jit
from irc.native.kernels import Call
from irc.native.lanes import INT32, INT64, Lanes, to_float, to_integer
from irc.native.loops import (
    INT,
    Largest,
    finished,
    indices,
    lanes_inside,
    least,
    loop,
    loop_function,
    masked_gather,
    masked_store,
    number,
    offset,
    paced_loop,
)
from irc.native.panels import SIZE, lanes_of_panel
from irc.native.target import Target, current
from irc.ops.algebra import DOUBLE, SINGLE

TAPS, TILE = 9, 16
"""Numbers of a filter of 3 × 3, and of the tile that Winograd's F(2x2, 3x3) makes of it."""

_PICOSECONDS = 200.0
"""For a number that is written, by estimate."""


class Form(NamedTuple):
    """What the code depends on.

    Attributes:
        features: of a block.
        is_tiled: whether it makes tiles of filters.
    """

    features: int
    is_tiled: bool


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of blocks.

    Attributes:
        features: of a group.
        blocks: of a group.
        depth: numbers, or filters, of a feature.
    """

    features: Any
    blocks: Any
    depth: Any


def pack(weights: Array, packed: Array, groups: int = 1) -> float:
    """Write float32 ``weights`` (O, K), or filters (O, K, 9), in C order, to ``packed``: the largest magnitude, or NaN.

    Args:
        weights: of all groups, one after the other.
        packed: (groups × blocks, K, features of a block), or of tiles (groups × blocks, 16, K, features); 0 for
            features that are missing in the last block of a group.
        groups: how many there are.
    """
    blocks, *_, depth, features = packed.shape
    layout = Layout(len(weights) // groups, blocks // groups, depth)
    code = _code(Form(features, weights.ndim == 3))
    call = Call.of(code, [None] * 3, layout, blocks, packed.size * _PICOSECONDS / 1000)
    largest = np.zeros(1, SINGLE)
    assert call.run((weights, packed, largest)), "none is of a subclass, which calls refuse"
    return float(largest[0])


@cache
def _code(form: Form) -> Code:
    return process_jit().load("irc.pack", f"irc.pack {form!r}", partial(_emit, "irc.pack", form, current()))


def _emit(name: str, form: Form, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, and what it needs."""
    lanes, (taps, numbers) = lanes_of_panel(), (TAPS, TILE) if form.is_tiled else (1, 1)
    emitter, arrays, given, begin, end = loop_function(name, target, lanes, 3, len(Layout._fields))
    (weights, packed, largest_at), builder, layout = arrays, emitter.builder, Layout(*given)
    largest = Largest(emitter)
    feature = builder.mul(layout.depth, number(SIZE * taps))  # the bytes of one
    plane = builder.mul(layout.depth, number(SIZE * form.features))

    with paced_loop(emitter, begin, end, 1, builder.mul(layout.depth, number(numbers * form.features))) as block:
        group, own = builder.sdiv(block, layout.blocks), builder.srem(block, layout.blocks)
        first = builder.mul(own, number(form.features))
        count = least(builder, builder.sub(layout.features, first), number(form.features))
        begins = builder.mul(builder.add(builder.mul(group, layout.features), first), feature)
        source = emitter.splat(builder.add(builder.ptrtoint(weights, INT), begins), INT64)
        into = offset(builder, packed, builder.mul(block, builder.mul(plane, number(numbers))))
        for v in range(0, form.features, lanes):
            some = to_integer(Lanes(emitter, indices(range(v, v + lanes)), INT32), INT64)
            rows = source + some * emitter.splat(feature, INT64)
            is_there, is_kept = (lanes_inside(emitter, number(v), end) for end in (count, number(form.features)))
            with loop(builder, number(0), layout.depth) as k:
                at = rows + emitter.splat(builder.mul(k, number(SIZE * taps)), INT64)
                found = [masked_gather(emitter, at + SIZE * t, is_there, SINGLE) for t in range(taps)]
                largest.see(*[x.value for x in found])
                place = offset(builder, into, builder.mul(k, number(SIZE * form.features)))
                for i, x in enumerate(_tile(found) if form.is_tiled else found):
                    to = offset(builder, place, builder.add(builder.mul(plane, number(i)), number(SIZE * v)))
                    masked_store(emitter, x.value, to, is_kept)
    largest.keep(largest_at)
    return finished(emitter)


def _tile(taps: Sequence[Lanes]) -> list[Lanes]:
    """The numbers of a tile, row by row, each rounded once from float64."""
    wide = [to_float(x, DOUBLE) for x in taps]
    rows = zip(*[_filtered(wide[column::3]) for column in range(3)])
    return [to_float(x, SINGLE) for row in rows for x in _filtered(row)]


def _filtered(taps: Sequence[Lanes]) -> tuple[Lanes, ...]:
    """``G`` of F(2, 3) times three numbers."""
    a, b, c = taps
    return a, (a + b + c) * 0.5, (a - b + c) * 0.5, c
