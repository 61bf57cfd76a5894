"""Data movement: copies with permuted axes, and with elements added at the ends of axes.

Permuted arrays are copied by square tiles, which are transposed in registers: NumPy copies them element by element,
each from another cache line. Where rows of the result are rows of the operand, it copies these as a whole, and there is
nothing to gain. Padded arrays are made row by row: where each row of the result comes from, and each element at its
ends, are numbers that the call has; what lies between is copied as a whole.

Invariant: elements are moved as integers of their size, and no address outside of the arrays is read or written. Where
a side is not a multiple of a tile's, the last tile overlaps the one before.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from irc.ir.tensor import Array
from irc.native.inner_loops import NOWHERE
from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import joined
from irc.native.loops import (
    INT,
    POINTER,
    VOID,
    finished,
    least,
    loop,
    loop_function,
    number,
    offset,
    paced_loop,
    space_of,
    transposed,
)
from irc.native.target import current, ir

_SIZES = (1, 2, 4, 8)
"""Of elements that there is code for."""

_MOST_SIDE = 16
"""Of a tile: code has its elements one by one."""

_NANOSECONDS, _NANOSECONDS_TO_PAD = 0.4, 0.1
"""For an element, by estimate."""

MOST_ROWS = 1 << 16
"""Of a padded result, whose places are kept."""


class Transposition(NamedTuple):
    """The numbers that a loop function reads; its range is of rows of tiles, plane after plane.

    Planes are two axes of the arrays; in each, elements of a line lie side by side in the operand, and elements of
    different lines do in the result. Strides are in bytes.
    """

    inner_planes: Any
    outer_from: Any
    outer_to: Any
    inner_from: Any
    inner_to: Any
    lines: Any
    elements: Any
    line_from: Any
    element_to: Any
    bands: Any


def call_for_copy(x: Array, out: Array) -> Call | None:
    """A call that copies arrays like ``x`` to arrays in C order; None if NumPy does as well."""
    if x.itemsize not in _SIZES or x.dtype.hasobject or not out.size:
        return None
    sizes, (source, target) = space_of(x.shape, [(x.shape, x.strides), (out.shape, out.strides)])
    rank = len(sizes)
    sides = [axis for axis in range(rank - 1) if source[axis] == x.itemsize]
    if not sides or rank > 4:
        return None
    side = max(sides, key=lambda axis: sizes[axis])
    tile = _side(x.itemsize)
    if sizes[side] < min(tile, sizes[-1]):
        return None  # element by element, NumPy goes along the result
    planes = [axis for axis in range(rank - 1) if axis != side]
    outer, inner = ([(1, 0, 0)] * 2 + [(sizes[i], source[i], target[i]) for i in planes])[-2:]
    bands = -(-sizes[-1] // tile) if sizes[-1] >= tile else 1
    layout = Transposition(
        inner_planes=inner[0],
        outer_from=outer[1],
        outer_to=outer[2],
        inner_from=inner[1],
        inner_to=inner[2],
        lines=sizes[-1],
        elements=sizes[side],
        line_from=source[-1],
        element_to=target[side],
        bands=bands,
    )
    name, size = "irc.transpose", outer[0] * inner[0] * bands
    make = partial(emit_transpose, name, x.itemsize, tile)
    return Call.of_loops(name, f"{name} {x.itemsize}", make, 2, layout, size, x.size * _NANOSECONDS)


def _side(itemsize: int) -> int:
    """Elements along one side of a tile."""
    return min(_MOST_SIDE, current().vector_bytes // itemsize)


def emit_transpose(name: str, itemsize: int, side: int) -> tuple[str, Mapping[str, Make]]:
    """The function ``name`` that transposes elements of ``itemsize`` bytes by tiles, and its needs."""
    emitter, (source, target), numbers, begin, end = loop_function(name, current(), side, 2, len(Transposition._fields))
    builder = emitter.builder
    layout = Transposition(*numbers)
    kind, size = ir.IntType(8 * itemsize), number(itemsize)
    row = ir.VectorType(kind, side)
    is_tiled = builder.and_(
        builder.icmp_signed(">=", layout.lines, number(side)), builder.icmp_signed(">=", layout.elements, number(side))
    )
    with loop(builder, begin, end) as i:
        plane, band = builder.sdiv(i, layout.bands), builder.srem(i, layout.bands)
        outer, inner = builder.sdiv(plane, layout.inner_planes), builder.srem(plane, layout.inner_planes)
        at, to = source, target
        for index, (step_from, step_to) in (
            (outer, (layout.outer_from, layout.outer_to)),
            (inner, (layout.inner_from, layout.inner_to)),
        ):
            at = offset(builder, at, builder.mul(index, step_from))
            to = offset(builder, to, builder.mul(index, step_to))
        with builder.if_else(is_tiled) as (tiled, single):
            with tiled:
                line = least(builder, builder.mul(band, number(side)), builder.sub(layout.lines, number(side)))
                at_line = offset(builder, at, builder.mul(line, layout.line_from))
                to_line = offset(builder, to, builder.mul(line, size))
                last = builder.sub(layout.elements, number(side))
                with loop(builder, number(0), layout.elements, side) as j:
                    element = least(builder, j, last)
                    place = offset(builder, at_line, builder.mul(element, size))
                    rows: list[Any] = []
                    for _ in range(side):
                        rows.append(builder.load(place, typ=row, align=itemsize))
                        place = offset(builder, place, layout.line_from)
                    place = offset(builder, to_line, builder.mul(element, layout.element_to))
                    for column in transposed(builder, rows):
                        builder.store(column, place, align=itemsize)
                        place = offset(builder, place, layout.element_to)
            with single, loop(builder, number(0), layout.lines) as line:  # there are few
                at_line = offset(builder, at, builder.mul(line, layout.line_from))
                to_line = offset(builder, to, builder.mul(line, size))
                with loop(builder, number(0), layout.elements) as element:
                    found = builder.load(offset(builder, at_line, builder.mul(element, size)), typ=kind, align=itemsize)
                    place = offset(builder, to_line, builder.mul(element, layout.element_to))
                    builder.store(found, place, align=itemsize)
    return finished(emitter)


class Padding(NamedTuple):
    """The numbers that a loop function reads; its range is of rows of the result. All are in elements.

    Attributes:
        before: how many are added at the beginning of a row.
        kept: how many are copied.
        after: how many are added at the end.
    """

    before: Any
    kept: Any
    after: Any


def call_for_padding(x: Array, before: int, out: Array) -> Call | None:
    """A call that pads arrays like ``x`` to arrays like ``out``, in C order; None if there is no code.

    Elements of a row of ``x`` lie side by side, and ``before`` are added at the beginning of each. The call takes the
    operand, the places of rows (`irc.native.inner_loops.places_of`), the places in a row of the elements at its ends, a
    row of constants, and the result.
    """
    rows = out.size // max(1, out.shape[-1])
    if x.itemsize not in _SIZES or x.dtype.hasobject or rows > MOST_ROWS:
        return None
    layout = Padding(before, x.shape[-1], out.shape[-1] - before - x.shape[-1])
    name, work = "irc.pad", out.size * _NANOSECONDS_TO_PAD
    make = partial(emit_padding, name, x.itemsize)
    return Call.of_loops(name, f"{name} {x.itemsize}", make, 5, layout, rows, work)


def emit_padding(name: str, itemsize: int) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, which pads rows of elements of ``itemsize`` bytes, and what it needs."""
    emitter, arrays, numbers, begin, end = loop_function(name, current(), 1, 5, len(Padding._fields))
    (source, places, ends, constants, result), layout, builder = arrays, Padding(*numbers), emitter.builder
    kind, no = ir.IntType(8 * itemsize), ir.Constant(ir.IntType(1), 0)
    constant = builder.load(constants, typ=kind, align=itemsize)

    def at(pointer: Any, index: Any, size: int = itemsize) -> Any:
        return offset(builder, pointer, builder.mul(index, number(size)))

    def copy(to: Any, row: Any, count: Any) -> None:
        emitter.call("llvm.memcpy.p0.p0.i64", VOID, [to, row, builder.mul(count, number(itemsize)), no])

    def pick(to: Any, row: Any, ends: Any, count: Any) -> None:
        """Copy ``count`` elements whose places in the row ``ends`` has, or the constant."""
        with loop(builder, number(0), count) as i:
            place = builder.load(at(ends, i, 8), typ=INT)
            before = builder.block
            with builder.if_then(builder.icmp_signed(">=", place, number(0))):
                found = builder.load(at(row, place), typ=kind, align=itemsize)
                inside = builder.block
            value = joined(builder, (constant, before), (found, inside))
            builder.store(value, at(to, i), align=itemsize)

    whole = builder.add(layout.before, builder.add(layout.kept, layout.after))
    with loop(builder, begin, end) as i:
        place, to = builder.load(at(places, i, 8), typ=INT), at(result, builder.mul(i, whole))
        with builder.if_else(builder.icmp_signed("==", place, number(NOWHERE))) as (nowhere, somewhere):
            with nowhere:
                copy(to, constants, whole)
            with somewhere:
                row, middle = offset(builder, source, place), at(to, layout.before)
                pick(to, row, ends, layout.before)
                copy(middle, row, layout.kept)
                pick(at(middle, layout.kept), row, at(ends, layout.before, 8), layout.after)
    return finished(emitter)


def call_for_rows(
    rows: int,
    width: int,
    whole: int,
    place: int,
    step: int | None = None,
    fills: bool = False,
    inner: Sequence[Axis] = (),
) -> Call:
    """A call that copies rows of ``width`` bytes to ``place`` in rows of ``whole`` bytes.

    Args:
        rows: how many, or how many times those that the ``inner`` axes number.
        width: of a row.
        whole: of a row of the result.
        place: in that.
        step: bytes from one row to the next; None: they lie side by side.
        fills: whether the rest of the result's rows is to be 0.
        inner: up to two axes, the outer first, each with its size and the bytes from one row to the next.
    """
    (middle, middle_step), (last, last_step) = [*[(1, 0)] * (2 - len(inner)), *inner]
    each = middle * last
    nanoseconds = rows * each * (_ROW + whole / _BYTES)
    layout = [width, whole, place, fills, width if step is None else step, middle, middle_step, last, last_step]
    return Call.of_loops("irc.rows", "irc.rows", _emit_rows, 2, layout, rows, nanoseconds)


Axis = tuple[int, int]
"""Size and stride in bytes."""

_ROW, _BYTES = 5.0, 20.0
"""Nanoseconds for a row, by estimate, and bytes for a nanosecond."""


def _emit_rows() -> tuple[str, Mapping[str, Make]]:
    """The loop function ``irc.rows``; its range is of the outermost axis of rows."""
    emitter, (source, target), numbers, begin, end = loop_function("irc.rows", current(), 4, 2, 9)
    builder, (width, whole, place, fills, step, middle, middle_step, last, last_step) = emitter.builder, numbers

    def at(base: Any, index: Any, stride: Any) -> Any:
        return offset(builder, base, builder.mul(index, stride))

    with loop(builder, begin, end) as i, loop(builder, number(0), middle) as j:
        first = builder.mul(builder.add(builder.mul(i, middle), j), last)
        outer = at(at(source, i, step), j, middle_step)
        with loop(builder, number(0), last) as k:
            to = at(target, builder.add(first, k), whole)
            with builder.if_then(builder.icmp_signed("!=", fills, number(0))):
                emitter.call("memset", POINTER, [to, ir.Constant(ir.IntType(32), 0), whole])
            emitter.call("memcpy", POINTER, [offset(builder, to, place), at(outer, k, last_step), width])
    return finished(emitter)


class Gathering(NamedTuple):
    """The numbers that a loop function reads; its range is of rows of the result.

    Attributes:
        count: of indices.
        size: along the axis.
        width: bytes of a row, which is all behind the axis.
    """

    count: Any
    size: Any
    width: Any


def call_for_gather(x: Array, count: int, axis: int) -> Call:
    """A call that gathers along an axis of arrays like ``x``, in C order, which have no objects.

    It takes the array, ``count`` indices (int64), an int32, in which it puts 1 if an index is out of range, and the
    result.
    """
    width = x.itemsize * math.prod(x.shape[axis + 1 :])
    rows = math.prod(x.shape[:axis]) * count
    layout = Gathering(count, x.shape[axis], width)
    nanoseconds = rows * (_ROW + width / _BYTES)
    return Call.of_loops("irc.gather", "irc.gather", _emit_gather, 4, layout, rows, nanoseconds)


def _emit_gather() -> tuple[str, Mapping[str, Make]]:
    """The loop function ``irc.gather``."""
    emitter, arrays, numbers, begin, end = loop_function("irc.gather", current(), 1, 4, len(Gathering._fields))
    (source, places, met, target), layout, builder = arrays, Gathering(*numbers), emitter.builder
    with paced_loop(emitter, begin, end, 1, layout.width) as row:
        outer, own = builder.sdiv(row, layout.count), builder.srem(row, layout.count)
        given = builder.load(offset(builder, places, builder.mul(own, number(8))), typ=INT, align=8)
        from_end = builder.add(given, layout.size)
        index = builder.select(builder.icmp_signed("<", given, number(0)), from_end, given)
        is_inside = builder.icmp_unsigned("<", index, layout.size)
        with builder.if_else(is_inside) as (inside, outside):
            with inside:
                place = builder.add(builder.mul(outer, layout.size), index)
                at, to = (builder.mul(each, layout.width) for each in (place, row))
                pointers = offset(builder, target, to), offset(builder, source, at)
                emitter.call("memcpy", POINTER, [*pointers, layout.width])
            with outside:
                builder.store(ir.Constant(ir.IntType(32), 1), met, align=4)
    return finished(emitter)


class Append(NamedTuple):
    """The numbers that a loop function reads; sequences of rows lie along two axes. Strides are in bytes.

    Attributes:
        inner: the size of the inner axis.
        outer_from: from one sequence to the next along the outer axis, where rows come from.
        inner_from: likewise along the inner axis.
        row_from: from one row to the next.
        rows: of each sequence.
        width: of a row, whose bytes lie side by side.
    """

    inner: Any
    outer_from: Any
    inner_from: Any
    row_from: Any
    rows: Any
    width: Any


def call_for_append(sequences: int, layout: Append) -> Call:
    """A call that copies rows to the ends of ``sequences`` that are longer.

    It takes the rows, the sequences, how many rows these have, and their strides along the outer and the inner axis.
    """
    nanoseconds = sequences * layout.rows * (_ROW + layout.width / _BYTES)
    return Call.of_loops("irc.append", "irc.append", _emit_append, 5, layout, sequences, nanoseconds)


def _emit_append() -> tuple[str, Mapping[str, Make]]:
    """The loop function ``irc.append``; its range is of sequences."""
    emitter, arrays, numbers, begin, end = loop_function("irc.append", current(), 1, 5, len(Append._fields))
    (source, target, *places), layout, builder = arrays, Append(*numbers), emitter.builder
    length, outer_to, inner_to = (builder.load(place, typ=INT, align=8) for place in places)

    def moved(pointer: Any, *steps: tuple[Any, Any]) -> Any:
        for index, stride in steps:
            pointer = offset(builder, pointer, builder.mul(index, stride))
        return pointer

    behind = builder.mul(builder.sub(length, layout.rows), layout.width)
    with loop(builder, begin, end) as i:
        outer, inner = builder.sdiv(i, layout.inner), builder.srem(i, layout.inner)
        at = moved(source, (outer, layout.outer_from), (inner, layout.inner_from))
        to = offset(builder, moved(target, (outer, outer_to), (inner, inner_to)), behind)
        with loop(builder, number(0), layout.rows) as row:
            row_at, row_to = moved(at, (row, layout.row_from)), moved(to, (row, layout.width))
            emitter.call("memcpy", POINTER, [row_to, row_at, layout.width])
    return finished(emitter)
