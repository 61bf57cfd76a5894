"""Products of one row with constant matrices of floats.

A decoder reads all of its weights for one row, once each: the product takes as long as memory does. Panels
(`irc.native.products.packed_floats`) are read from the first byte to the last, which is the fastest way; OpenBLAS reads
a few rows at a time.

Invariant: a sum's terms are added in `_SUMS` sums of every `_SUMS`th term, whatever the number of threads, which share
the panels, and whether the matrix is packed: where there is no room for that, it is read as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import Lanes, load, load_one, sum_of_parts
from irc.native.loops import (
    finished,
    fold,
    lanes_inside,
    loop_function,
    masked_load,
    number,
    offset,
    paced_loop,
    store_row,
)
from irc.native.panels import SIZE, VECTORS, lanes_of_panel
from irc.native.target import Target, current, ir
from irc.ops.algebra import SINGLE

_SUMS = 4
"""Of each column, side by side: as many as it takes to wait for none, with the vectors of a panel."""

_PICOSECONDS = 50.0
"""For a multiplication, by estimate."""


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of panels of columns.

    Attributes:
        depth: numbers in a sum.
        columns: of the matrix.
        work: what a panel counts between pauses.
    """

    depth: Any
    columns: Any
    work: Any


def call_for_row(depth: int, columns: int, is_packed: bool = True) -> Call:
    """A call that takes a row, a matrix (``depth``, ``columns``) and the result.

    The matrix is packed in panels, or lies in C order.
    """
    positions = VECTORS * lanes_of_panel()
    layout = Layout(depth, columns, max(1, depth * positions // 8))
    nanoseconds = depth * columns * _PICOSECONDS / 1000
    name = "irc.one_row" if is_packed else "irc.one_row_of_c_order"
    make = partial(_emit, name, current(), is_packed)
    return Call.of_loops(name, name, make, 3, layout, -(-columns // positions), nanoseconds)


def _emit(name: str, target: Target, is_packed: bool) -> tuple[str, Mapping[str, Make]]:
    lanes = lanes_of_panel()
    emitter, (row, matrix, result), numbers, begin, end = loop_function(name, target, lanes, 3, len(Layout._fields))
    builder, layout, positions = emitter.builder, Layout(*numbers), VECTORS * lanes
    many = builder.and_(layout.depth, number(-_SUMS))

    def at(pointer: Any, index: Any) -> Any:
        return offset(builder, pointer, builder.mul(index, number(SIZE)))

    with paced_loop(emitter, begin, end, 1, layout.work) as panel:
        first = builder.mul(panel, number(positions))
        own = at(matrix, builder.mul(first, layout.depth) if is_packed else first)
        pitch = number(positions) if is_packed else layout.columns  # from one number of the sums to the next
        places = [builder.add(first, number(v * lanes)) for v in range(VECTORS)]
        masks = [] if is_packed else [lanes_inside(emitter, place, layout.columns) for place in places]

        def vector(some: Any, v: int) -> Lanes:
            place = at(some, number(v * lanes))
            if is_packed:
                return load(emitter, place, SINGLE)
            nothing = ir.Constant(emitter.vector(SINGLE), None)
            return Lanes(emitter, masked_load(emitter, place, masks[v], nothing), SINGLE)

        def add(k: Any, sums: list[Lanes]) -> list[Lanes]:
            """Add products of the ``k``-th number and those behind it, each to sums of its own."""
            found: list[Lanes] = []
            for place in range(0, len(sums), VECTORS):
                index = builder.add(k, number(place // VECTORS))
                factor, some = load_one(emitter, at(row, index), SINGLE), at(own, builder.mul(index, pitch))
                vectors = [vector(some, v) for v in range(VECTORS)]
                found += [factor.fma(x, total) for x, total in zip(vectors, sums[place:])]
            return found

        sums = fold(builder, number(0), many, _SUMS, [emitter.constant(0, SINGLE)] * (VECTORS * _SUMS), add)
        sums[:VECTORS] = fold(builder, many, layout.depth, 1, sums[:VECTORS], add)
        store_row(sum_of_parts(sums, VECTORS), result, first, layout.columns, SINGLE)
    return finished(emitter)
