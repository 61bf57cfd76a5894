"""Products of matrices with constant ones, which are packed once: of 8-bit integers, with exact sums, and of floats.

Invariants: those of `irc.native.panels`. Of integers, two neighbours along the sum are multiplied at once, as numbers
of 16 bits, and added in 32 bits, which wrap.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import Emitter
from irc.native.loops import finished, least, loop, loop_function, number, offset, paced_loop
from irc.native.panels import ALIGNMENT, SIZE, VECTORS, Panels, features_at_once, lanes_of_panel
from irc.native.target import Target, current, ir
from irc.runtime.threads import blas_core

SINGLE, INT16 = np.dtype(np.float32), np.dtype(np.int16)

PACKED_BYTES = 1 << 19
"""Of rows that are packed at once: they stay in the cache beside a panel."""

_PICOSECONDS = 6.0
"""For a multiplication of floats, by estimate; a pair of integers takes as long."""


@cache
def is_blas_behind() -> bool:
    """Whether NumPy's BLAS leaves half of the registers unused.

    OpenBLAS knows processors by number, and takes what is newer than itself for an older one.
    """
    return current().vector_bytes == 64 and blas_core() in ("Haswell", "Zen")


class Form(NamedTuple):
    """What the code depends on.

    Attributes:
        features: rows of the result that are summed at a time.
        lanes: of a vector.
        of_integers: whether pairs of integers are multiplied.
    """

    features: int
    lanes: int
    of_integers: bool


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of panels of columns.

    Attributes:
        rows: of the first operand.
        row: bytes from one of them to the next.
        depth: numbers in a sum, or pairs.
        columns: of the result.
        at_once: blocks of rows that are packed before panels are looked at.
        work: what a panel counts between pauses.
    """

    rows: Any
    row: Any
    depth: Any
    columns: Any
    at_once: Any
    work: Any


def emit_product(name: str, form: Form, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, and what it needs.

    It takes the first operand, of elements of 4 bytes, packed panels of the second, the result, and work memory.
    """
    emitter, arrays, numbers, begin, end = loop_function(name, target, form.lanes, 4, len(Layout._fields))
    _Product(form, emitter, arrays, Layout(*numbers)).emit(begin, end)
    return finished(emitter)


class _Product(Panels):
    def __init__(self, form: Form, emitter: Emitter, arrays: Any, layout: Layout) -> None:
        super().__init__(emitter, form.features, form.of_integers)
        self.first, self.second, self.result, work = arrays
        self.layout = layout
        self.made = self.aligned(work)
        self.packed = self.at(self.made, number(form.features * self.positions))

    def emit(self, begin: Any, end: Any) -> None:
        builder, layout = self.builder, self.layout
        block_size = builder.mul(layout.depth, number(self.features))
        blocks = builder.udiv(builder.add(layout.rows, number(self.features - 1)), number(self.features))
        groups = builder.udiv(builder.add(blocks, builder.sub(layout.at_once, number(1))), layout.at_once)
        work = builder.udiv(builder.mul(layout.work, builder.sub(end, begin)), groups)
        with paced_loop(self.emitter, number(0), groups, 1, builder.add(work, number(1))) as group:
            first = builder.mul(group, layout.at_once)
            last = least(builder, builder.add(first, layout.at_once), blocks)
            with loop(builder, first, last) as block:
                place = builder.mul(builder.sub(block, first), block_size)
                self._pack(block, self.at(self.packed, place))
            with paced_loop(self.emitter, begin, end, 1, layout.work) as panel:
                column = builder.mul(panel, number(self.positions))
                count = least(builder, builder.sub(layout.columns, column), number(self.positions))
                seen = self.at(self.second, builder.mul(column, layout.depth))
                with loop(builder, first, last) as block:
                    row = builder.mul(block, number(self.features))
                    left = least(builder, builder.sub(layout.rows, row), number(self.features))
                    factors = self.at(self.packed, builder.mul(builder.sub(block, first), block_size))
                    self.sums(factors, seen, layout.depth, self.made, None, count)
                    to = self.at(self.result, builder.add(builder.mul(row, layout.columns), column))
                    self.keep(self.made, to, layout.columns, left, count)

    def _pack(self, block: Any, to: Any) -> None:
        """Pack some rows of the first operand, number by number of the sums; the last one stands for missing ones."""
        builder, layout, kind = self.builder, self.layout, ir.IntType(32)
        last = builder.sub(layout.rows, number(1))
        with loop(builder, number(0), number(self.features)) as m:
            row = least(builder, builder.add(builder.mul(block, number(self.features)), m), last)
            source = offset(builder, self.first, builder.mul(row, layout.row))
            place = self.at(to, m)
            with loop(builder, number(0), layout.depth) as k:
                value = builder.load(self.at(source, k), typ=kind, align=SIZE)
                builder.store(value, self.at(place, builder.mul(k, number(self.features))), align=SIZE)


def call_for_product(a: Array, columns: int, of_integers: bool) -> Call | None:
    """A call that multiplies ``a`` (M, numbers or pairs) of 4 bytes with so many ``columns``; None without code."""
    features = features_at_once(len(a))
    if features is None or not a.size or not columns:
        return None
    rows, depth = a.shape
    form = Form(features, lanes_of_panel(), of_integers)
    positions = VECTORS * form.lanes
    panels = -(-columns // positions)
    products = rows * depth * columns
    block = SIZE * features * depth
    at_once = max(1, min(-(-rows // features), PACKED_BYTES // block))
    layout = Layout(rows, a.strides[0], depth, columns, at_once, max(1, products // (8 * panels)))
    memory = SIZE * features * positions + at_once * block + ALIGNMENT
    name, nanoseconds = "irc.product", products * _PICOSECONDS / 1000
    make = partial(emit_product, name, form, current())
    return Call.of_loops(name, f"{name} {form!r}", make, 4, layout, panels, nanoseconds, memory)


def packed_floats(b: Array) -> tuple[Array]:
    """``b`` (K, N) as code reads it: (panels, K, positions)."""
    return (_panels(b, SINGLE),)


def packed_integers(b: Array) -> tuple[Array] | None:
    """``b`` (K, N) likewise: (panels, pairs, positions, 2); None if they are no integers, or sums may not fit."""
    if not (b == np.rint(b)).all():  # but floats of 8 bits
        return None
    magnitudes = np.abs(b)
    sums = 255 * magnitudes.sum(0, dtype=np.float64).max(initial=0)
    if magnitudes.max(initial=0) > np.iinfo(INT16).max or sums > np.iinfo(np.int32).max:
        return None
    padded: Array = np.zeros((len(b) + len(b) % 2, b.shape[1]), INT16)
    padded[: len(b)] = b
    pairs = np.ascontiguousarray(padded.reshape(-1, 2, b.shape[1]).swapaxes(1, 2)).view(np.int32)[..., 0]
    return (_panels(pairs, np.dtype(np.int32)),)


def packed_bytes(b: Array) -> int:
    """At the most, of what `packed_floats` or `packed_integers` makes."""
    positions = VECTORS * lanes_of_panel()
    return SIZE * len(b) * -(-b.shape[1] // positions) * positions


def _panels(b: Array, dtype: np.dtype[Any]) -> Array:
    positions = VECTORS * lanes_of_panel()
    panels = -(-b.shape[1] // positions)
    made: Array = np.zeros((panels, len(b), positions), dtype)
    for index in range(panels):
        some = b[:, index * positions : (index + 1) * positions]
        made[index, :, : some.shape[1]] = some
    return made
