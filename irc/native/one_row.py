"""Products of one row with constant matrices of floats.

A decoder reads all of its weights for one row, once each: the product takes as long as memory does. Panels
(`irc.native.products.packed_floats`) are read from the first byte to the last, which is the fastest way; OpenBLAS reads
a few rows at a time.

Invariant: a sum's terms are added in `_SUMS` sums of every `_SUMS`th term, whatever the number of threads, which share
the panels.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import Lanes, load, load_one, sum_of_parts
from irc.native.loops import finished, fold, loop_function, number, offset, paced_loop, store_row
from irc.native.panels import SIZE, VECTORS, lanes_of_panel
from irc.native.target import Target, current
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


def call_for_row(depth: int, columns: int) -> Call:
    """A call that takes a row, packed panels of a matrix (``depth``, ``columns``), and the result."""
    positions = VECTORS * lanes_of_panel()
    layout = Layout(depth, columns, max(1, depth * positions // 8))
    nanoseconds = depth * columns * _PICOSECONDS / 1000
    make = partial(_emit, "irc.one_row", current())
    return Call.of_loops("irc.one_row", "irc.one_row", make, 3, layout, -(-columns // positions), nanoseconds)


def _emit(name: str, target: Target) -> tuple[str, Mapping[str, Make]]:
    lanes = lanes_of_panel()
    emitter, (row, panels, result), numbers, begin, end = loop_function(name, target, lanes, 3, len(Layout._fields))
    builder, layout, positions = emitter.builder, Layout(*numbers), VECTORS * lanes
    many = builder.and_(layout.depth, number(-_SUMS))

    def at(pointer: Any, index: Any) -> Any:
        return offset(builder, pointer, builder.mul(index, number(SIZE)))

    with paced_loop(emitter, begin, end, 1, layout.work) as panel:
        first = builder.mul(panel, number(positions))
        own = at(panels, builder.mul(first, layout.depth))

        def add(k: Any, sums: list[Lanes]) -> list[Lanes]:
            """Add products of the ``k``-th number and those behind it, each to sums of its own."""
            found: list[Lanes] = []
            for place in range(0, len(sums), VECTORS):
                index = builder.add(k, number(place // VECTORS))
                factor, some = load_one(emitter, at(row, index), SINGLE), at(own, builder.mul(index, number(positions)))
                vectors = [load(emitter, at(some, number(v * lanes)), SINGLE) for v in range(VECTORS)]
                found += [factor.fma(x, total) for x, total in zip(vectors, sums[place:])]
            return found

        sums = fold(builder, number(0), many, _SUMS, [emitter.constant(0, SINGLE)] * (VECTORS * _SUMS), add)
        sums[:VECTORS] = fold(builder, many, layout.depth, 1, sums[:VECTORS], add)
        store_row(sum_of_parts(sums, VECTORS), result, first, layout.columns, SINGLE)
    return finished(emitter)
