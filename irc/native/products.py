"""Products with constant matrices, packed once: of 8-bit integers, exactly, and of floats.

Invariants: those of `irc.native.panels`. Of integers, two or four neighbours along the sum are multiplied at once
(`irc.native.panels.PAIR`, `QUAD`), and added in 32 bits, which wrap: a sum that fits is exact.
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
from irc.native.loops import INT, finished, least, loop, loop_function, number, offset, paced_loop
from irc.native.packed import PIECES
from irc.native.packing import pack
from irc.native.panels import (
    ALIGNMENT,
    FLOAT,
    PAIR,
    QUAD,
    SIZE,
    VECTORS,
    Panels,
    features_at_once,
    integers_at_once,
    lanes_of_panel,
)
from irc.native.target import Target, current, ir
from irc.runtime.array_memory import ArrayType
from irc.runtime.threads import blas_core

SINGLE, INT32 = np.dtype(np.float32), np.dtype(np.int32)
OF_NUMBERS = {2: np.dtype(np.int16), 4: np.dtype(np.int8)}
"""The element type of packed integers, by how many are multiplied at once."""

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
        numbers: what 4 bytes of a factor hold (`irc.native.panels`).
        of_windows: whether rows of the first operand lie scattered, as what windows see, and the result lies the other
            way around.
        has_zero: whether the numbers that sums begin with are to be multiplied with a zero point, a byte.
    """

    features: int
    lanes: int
    numbers: int
    of_windows: bool = False
    has_zero: bool = False

    @property
    def arrays(self) -> int:
        """How many the code takes, with work memory."""
        return 5 + 2 * self.of_windows + self.has_zero


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of panels of columns.

    Attributes:
        rows: of the first operand.
        row: bytes from one of them to the next, unless they lie scattered.
        depth: numbers in a sum, or pairs or quads of them.
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

    It takes the first operand, of elements of 4 bytes, packed panels of the second, numbers that the sums of each
    column begin with, padded to whole panels, the result, and work memory. Where rows lie scattered, the first operand
    is followed by how many bytes behind its beginning each row is, then each number of a row behind that. A zero point
    stands before the result.
    """
    fields = len(Layout._fields)
    emitter, arrays, numbers, begin, end = loop_function(name, target, form.lanes, form.arrays, fields)
    _Product(form, emitter, arrays, Layout(*numbers)).emit(begin, end)
    return finished(emitter)


class _Product(Panels):
    def __init__(self, form: Form, emitter: Emitter, arrays: Any, layout: Layout) -> None:
        super().__init__(emitter, form.features, form.numbers)
        self.first, *others, self.result, work = arrays
        self.zero = others.pop() if form.has_zero else None
        *self.places, self.second, self.begun = others
        self.layout = layout
        self.own = self.aligned(work)
        self.made = self.at(self.own, number(self.positions))
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
                begun = self._begun(column)
                with loop(builder, first, last) as block:
                    row = builder.mul(block, number(self.features))
                    left = least(builder, builder.sub(layout.rows, row), number(self.features))
                    factors = self.at(self.packed, builder.mul(builder.sub(block, first), block_size))
                    self.sums(factors, seen, layout.depth, self.made, count, of_positions=begun)
                    if self.places:
                        to = self.at(self.result, builder.add(builder.mul(column, layout.rows), row))
                        self._keep_turned(to, left, count)
                    else:
                        to = self.at(self.result, builder.add(builder.mul(row, layout.columns), column))
                        self.keep(self.made, to, layout.columns, left, count)

    def _begun(self, column: Any) -> Any:
        """Where the numbers are that the sums of a panel begin with, which is from ``column`` on."""
        begun = self.at(self.begun, column)
        if self.zero is None:
            return begun
        byte = self.builder.load(self.zero, typ=ir.IntType(8), align=1)
        zero = self.emitter.splat(self.builder.zext(byte, ir.IntType(32)), INT32)
        for v in range(VECTORS):
            self.store((self.one_vector(begun, v) * zero).value, self.own, v)
        return self.own

    def _pack(self, block: Any, to: Any) -> None:
        """Pack rows of the first operand number by number; the last row stands for missing ones."""
        builder, layout, kind = self.builder, self.layout, ir.IntType(32)
        last = builder.sub(layout.rows, number(1))
        with loop(builder, number(0), number(self.features)) as m:
            row = least(builder, builder.add(builder.mul(block, number(self.features)), m), last)
            begin = self._place(0, row) if self.places else builder.mul(row, layout.row)
            source = offset(builder, self.first, begin)
            place = self.at(to, m)
            with loop(builder, number(0), layout.depth) as k:
                at = offset(builder, source, self._place(1, k)) if self.places else self.at(source, k)
                value = builder.load(at, typ=kind, align=SIZE)
                builder.store(value, self.at(place, builder.mul(k, number(self.features))), align=SIZE)

    def _place(self, table: int, index: Any) -> Any:
        at = offset(self.builder, self.places[table], self.builder.mul(index, number(8)))
        return self.builder.load(at, typ=INT, align=8)

    def _keep_turned(self, to: Any, rows: Any, columns: Any) -> None:
        """Copy the sums of some rows and columns to a result in which columns are rows."""
        builder = self.builder
        with loop(builder, number(0), rows) as m:
            source = self.at(self.made, builder.mul(m, number(self.positions)))
            place = self.at(to, m)
            with loop(builder, number(0), columns) as column:
                value = builder.load(self.at(source, column), typ=self.vector.element, align=SIZE)
                builder.store(value, self.at(place, builder.mul(column, self.layout.rows)), align=SIZE)


def call_for_product(a: Array, columns: int, numbers: int, has_zero: bool = False) -> Call | None:
    """A call that multiplies ``a`` (M, K), of 4-byte elements, by ``columns`` columns; None without code.

    With a zero point of the first operand, of uint8, it multiplies what sums begin with by that.
    """
    return _call(len(a), a.shape[1], columns, a.strides[0], numbers, has_zero=has_zero)


def call_for_windows(rows: int, depth: int, columns: int) -> Call | None:
    """A call that multiplies scattered rows likewise; the result is (columns, rows)."""
    return _call(rows, depth, columns, 0, FLOAT, of_windows=True)


def _call(
    rows: int, depth: int, columns: int, row: int, numbers: int, of_windows: bool = False, has_zero: bool = False
) -> Call | None:
    features = features_at_once(rows)
    if features is None or not depth or not columns:
        return None
    form = Form(features, lanes_of_panel(), numbers, of_windows, has_zero)
    positions = VECTORS * form.lanes
    panels = -(-columns // positions)
    products = rows * depth * columns
    block = SIZE * features * depth
    at_once = max(1, min(-(-rows // features), PACKED_BYTES // block))
    layout = Layout(rows, row, depth, columns, at_once, max(1, products // (8 * panels)))
    memory = SIZE * (features + 1) * positions + at_once * block + ALIGNMENT
    name, nanoseconds = "irc.product", products * _PICOSECONDS / 1000
    make = partial(emit_product, name, form, current())
    return Call.of_loops(name, f"{name} {form!r}", make, form.arrays, layout, panels, nanoseconds, memory)


class Packed(NamedTuple):
    """The second operand (K, N) as code reads it.

    Attributes:
        panels: (panels, K, positions), and of integers how many are multiplied at once, which K is a multiple of.
        begun: what sums begin with, padded to whole panels: of floats 0; of integers what is to be multiplied with the
            zero point of the first operand.
    """

    panels: Array
    begun: Array


def packed_floats(b: Array, begun: Array | None = None, panels: Array | None = None) -> Packed:
    """``b`` as code reads it, unless that is given; the sums of columns begin with 0 unless given."""
    return Packed(
        _panels(b) if panels is None else panels, _padded(np.zeros(b.shape[1], SINGLE) if begun is None else begun)
    )


def packed_integers(b: Array) -> Packed | None:
    """``b``, floats that are integers, likewise; None if they are none, or sums may not fit."""
    if not (b == np.rint(b)).all():  # but floats of 8 bits
        return None
    wide = b.astype(np.float64)
    sums = 255 * np.abs(wide).sum(0).max(initial=0)
    least, most = wide.min(initial=0), wide.max(initial=0)
    if not -(1 << 15) <= least <= most < 1 << 15 or sums > np.iinfo(INT32).max:
        return None
    numbers = integers_at_once() if -(1 << 7) <= least <= most < 1 << 7 else PAIR
    padded: Array = np.zeros((-(-len(b) // numbers) * numbers, b.shape[1]), OF_NUMBERS[numbers])
    padded[: len(b)] = b
    groups = np.ascontiguousarray(padded.reshape(-1, numbers, b.shape[1]).swapaxes(1, 2)).view(INT32)[..., 0]
    panels = _panels(groups)
    return Packed(panels.view(padded.dtype).reshape(*panels.shape, numbers), _padded(-wide.sum(0).astype(INT32)))


def packed_bytes(depth: int, columns: int) -> int:
    """The most bytes that `packed_floats` or `packed_integers` makes of a matrix of that size."""
    return SIZE * (depth + 1) * _padded_size(columns)


def packed_form(depth: int, columns: int) -> ArrayType:
    """Of the panels that `packed_floats` makes of a matrix of that size."""
    positions = VECTORS * lanes_of_panel()
    return ArrayType(SINGLE, (_padded_size(columns) // positions, depth, positions))


def rows_of_numbers(a: Array, zero: int, numbers: int) -> tuple[Array, int]:
    """The rows of int8 or uint8 ``a`` (..., K) for `call_for_product`, and their zero point.

    Of a `QUAD`, numbers are unsigned: 128 is added to signed ones, and to the zero point.
    """
    depth = a.shape[-1]
    rows = a.reshape(-1, depth)
    if numbers == QUAD:
        if a.dtype.kind == "i":
            rows, zero = np.bitwise_xor(rows.view(np.uint8), np.uint8(128)), zero + 128
        if not depth % QUAD and rows.flags.c_contiguous:
            return rows.view(INT32), zero
    padded: Array = np.empty((len(rows), -(-depth // numbers) * numbers), np.uint8 if numbers == QUAD else np.int16)
    padded[:, :depth] = rows
    padded[:, depth:] = 0
    return padded.view(INT32), zero


def _padded_size(columns: int) -> int:
    positions = VECTORS * lanes_of_panel()
    return -(-columns // positions) * positions


def _padded(row: Array) -> Array:
    """``row``, a number of each column, with 0 up to the end of the last panel."""
    return np.concatenate([row, np.zeros(_padded_size(len(row)) - len(row), row.dtype)])


def _panels(b: Array) -> Array:
    positions = VECTORS * lanes_of_panel()
    made = PIECES.array((_padded_size(b.shape[1]) // positions, len(b), positions), b.dtype)
    if b.dtype == SINGLE and b.T.flags.c_contiguous:
        pack(b.T, made)
        return made
    for index in range(len(made)):
        some = b[:, index * positions : (index + 1) * positions]
        made[index, :, : some.shape[1]] = some
        made[index, :, some.shape[1] :] = 0
    return made
