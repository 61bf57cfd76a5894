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
from irc.native.lanes import Emitter, Lanes, load, select, to_float
from irc.native.loops import (
    Largest,
    finished,
    lanes_inside,
    least,
    loop,
    loop_function,
    masked_load,
    masked_store,
    number,
    offset,
    paced_loop,
    transposed,
)
from irc.native.panels import SIZE, lanes_of_panel
from irc.native.target import Target, current, ir
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
    """Write float32 ``weights`` (O, K), or filters (O, K, 9), in C order, to ``packed``.

    Args:
        weights: of all groups, one after the other.
        packed: (groups × blocks, K, features of a block), or of tiles (groups × blocks, 16, K, features); 0 for
            features that are missing in the last block of a group.
        groups: how many there are.

    Returns:
        The largest magnitude; NaN if there is one.
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
    """The function ``name``, and what it needs.

    Weights are transposed in registers, a square at a time: to gather them number by number takes twice as long.
    """
    lanes, (taps, numbers) = lanes_of_panel(), (TAPS, TILE) if form.is_tiled else (1, 1)
    emitter, arrays, given, begin, end = loop_function(name, target, lanes, 3, len(Layout._fields))
    (weights, packed, largest_at), builder, layout = arrays, emitter.builder, Layout(*given)
    columns = builder.alloca(emitter.vector(SINGLE), taps * lanes)
    largest = Largest(emitter)
    length = builder.mul(layout.depth, number(taps))  # of one feature
    plane = builder.mul(layout.depth, number(SIZE * form.features))

    with paced_loop(emitter, begin, end, 1, builder.mul(layout.depth, number(numbers * form.features))) as block:
        group, own = builder.sdiv(block, layout.blocks), builder.srem(block, layout.blocks)
        first = builder.mul(own, number(form.features))
        count = least(builder, builder.sub(layout.features, first), number(form.features))
        feature = builder.add(builder.mul(group, layout.features), first)
        into = offset(builder, packed, builder.mul(block, builder.mul(plane, number(numbers))))
        for v in range(0, form.features, lanes):
            rows: list[Any] = []
            for m in range(v, min(v + lanes, form.features)):  # behind the last feature, the last one again
                row = builder.add(feature, least(builder, number(m), builder.sub(count, number(1))))
                rows.append(offset(builder, weights, builder.mul(row, builder.mul(length, number(SIZE)))))
            is_there, is_kept = (lanes_inside(emitter, number(v), end) for end in (count, number(form.features)))
            with loop(builder, number(0), layout.depth, lanes) as begun:
                for t in range(taps):
                    column = builder.add(builder.mul(begun, number(taps)), number(t * lanes))
                    _transpose(emitter, rows, column, length, offset(builder, columns, number(SIZE * t * lanes**2)))
                with loop(builder, number(0), least(builder, builder.sub(layout.depth, begun), number(lanes))) as k:
                    at = offset(builder, columns, builder.mul(k, number(SIZE * taps * lanes)))
                    seen = [load(emitter, offset(builder, at, number(SIZE * lanes * t)), SINGLE) for t in range(taps)]
                    found = [select(is_there, x, 0.0) for x in seen]
                    largest.see(*[x.value for x in found])
                    place = builder.mul(builder.add(begun, k), number(SIZE * form.features))
                    to = offset(builder, into, builder.add(place, number(SIZE * v)))
                    for x in _tile(found) if form.is_tiled else found:
                        masked_store(emitter, x.value, to, is_kept)
                        to = offset(builder, to, plane)
    largest.keep(largest_at)
    return finished(emitter)


def _transpose(emitter: Emitter, rows: Sequence[Any], first: Any, length: Any, to: Any) -> None:
    """Write columns of rows of ``length`` numbers, from the ``first`` one on, as many as there are lanes."""
    builder, zero = emitter.builder, ir.Constant(emitter.vector(SINGLE), None)
    is_inside, at = lanes_inside(emitter, first, length), builder.mul(first, number(SIZE))
    square = [masked_load(emitter, offset(builder, row, at), is_inside, zero) for row in rows]
    for column in transposed(builder, [*square, *[zero] * (emitter.count - len(rows))]):
        builder.store(column, to, align=SIZE)
        to = offset(builder, to, number(SIZE * emitter.count))


def _tile(taps: Sequence[Lanes]) -> list[Lanes]:
    """The numbers of a tile, row by row, each rounded once from float64."""
    wide = [to_float(x, DOUBLE) for x in taps]
    rows = zip(*[_filtered(wide[column::3]) for column in range(3)])
    return [to_float(x, SINGLE) for row in rows for x in _filtered(row)]


def _filtered(taps: Sequence[Lanes]) -> tuple[Lanes, ...]:
    """``G`` of F(2, 3) times three numbers."""
    a, b, c = taps
    return a, (a + b + c) * 0.5, (a - b + c) * 0.5, c
