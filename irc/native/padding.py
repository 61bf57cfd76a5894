"""Arrays with elements added at the ends of axes, row by row.

Where each row of the result comes from, and each element at its ends, are numbers that the call has. What lies between
is a run of elements that is copied as a whole.

Invariant: elements are moved as integers of their size, and no address outside of the arrays is read or written. Where
a run is no multiple of a vector, the last vector overlaps the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Code, Make, process_jit
from irc.native.kernels import Call
from irc.native.llvm import ir
from irc.native.loops import INT, indices, least, loop, loop_function, number, offset
from irc.native.target import current

_SIZES = (1, 2, 4, 8)
"""Of elements that there is code for."""

MOST_ROWS = 1 << 16
"""Of a result, whose places are kept."""

_NOWHERE = -(1 << 63)
"""The place of a row of constants."""

_NANOSECONDS = 0.1
"""For an element, by estimate."""


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of rows of the result. All are in elements.

    Attributes:
        before: how many are added at the beginning of a row.
        kept: how many are copied.
        after: how many are added at the end.
    """

    before: Any
    kept: Any
    after: Any


def call_for_padding(x: Array, sources: Sequence[Array], before: int, out: Array) -> tuple[Call, Array, Array] | None:
    """A call that pads arrays like ``x``, and arrays that it takes besides; None if there is no code for them.

    It takes the operand, the places of rows and of elements at the ends of rows, an array of the element that is
    constant, and the result.

    Args:
        x: of which elements of a row lie side by side.
        sources: for each axis, the index of what stands at each place of the result; -1 for the constant.
        before: how many elements are added at the beginning of a row.
        out: the result, in C order.
    """
    rows = out.size // max(1, out.shape[-1])
    if x.itemsize not in _SIZES or x.dtype.hasobject or rows > MOST_ROWS:
        return None
    places: Array = np.zeros((), np.int64)
    is_nowhere: Array = np.zeros((), np.bool_)
    for source, stride in zip(sources[:-1], x.strides[:-1]):
        places = np.add.outer(places, source * stride)
        is_nowhere = np.logical_or.outer(is_nowhere, source < 0)
    places = np.where(is_nowhere, _NOWHERE, places).reshape(-1)
    *_, last = sources
    after = before + x.shape[-1]
    ends = np.concatenate([last[:before], last[after:]])
    layout = Layout(before, x.shape[-1], len(last) - after)
    call = Call.of(_code(x.itemsize), [None] * 5, layout, rows, out.size * _NANOSECONDS)
    return call, places, ends


@cache
def _code(itemsize: int) -> Code:
    name = "irc.pad"
    return process_jit().load(name, f"{name} {itemsize}", lambda: emit_padding(name, itemsize, current().vector_bytes))


def emit_padding(name: str, itemsize: int, vector_bytes: int) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, which pads rows of elements of ``itemsize`` bytes, and what it needs."""
    made, builder, arrays, numbers, begin, end = loop_function(name, 5, len(Layout._fields))
    (source, places, ends, constant, result), layout = arrays, Layout(*numbers)
    rows = _Rows(builder, itemsize, vector_bytes // itemsize, builder.load(constant, typ=ir.IntType(8 * itemsize)))
    whole = builder.add(layout.before, builder.add(layout.kept, layout.after))
    with loop(builder, begin, end) as i:
        place = builder.load(offset(builder, places, builder.mul(i, number(8))), typ=INT)
        to = rows.at(result, builder.mul(i, whole))
        is_nowhere = builder.icmp_signed("==", place, number(_NOWHERE))
        with builder.if_else(is_nowhere) as (nowhere, somewhere):
            with nowhere:
                rows.fill(to, whole)
            with somewhere:
                row = offset(builder, source, place)
                rows.pick(to, row, ends, layout.before)
                to = rows.at(to, layout.before)
                rows.copy(to, row, layout.kept)
                rows.pick(
                    rows.at(to, layout.kept),
                    row,
                    offset(builder, ends, builder.mul(layout.before, number(8))),
                    layout.after,
                )
    builder.ret_void()
    return str(made.module), {}


class _Rows:
    """Emits what makes parts of rows."""

    def __init__(self, builder: Any, itemsize: int, lanes: int, constant: Any) -> None:
        self._builder, self._itemsize, self._lanes, self._constant = builder, itemsize, lanes, constant
        self._kind = ir.IntType(8 * itemsize)
        self._vector = ir.VectorType(self._kind, lanes)
        undefined = ir.Constant(self._vector, ir.Undefined)
        one = builder.insert_element(undefined, constant, ir.Constant(ir.IntType(32), 0))
        self._constants = builder.shuffle_vector(one, undefined, indices([0] * lanes))

    def at(self, pointer: Any, index: Any) -> Any:
        """Where so many elements behind ``pointer`` are."""
        return offset(self._builder, pointer, self._builder.mul(index, number(self._itemsize)))

    def _runs(self, count: Any, make: Callable[[Any, Any], None]) -> None:
        """``make`` so many elements: given the index of the first and the type, a vector's or that of one element."""
        builder = self._builder
        is_long = builder.icmp_signed(">=", count, number(self._lanes))
        with builder.if_else(is_long) as (long, short):
            with long:
                last = builder.sub(count, number(self._lanes))
                with loop(builder, number(0), count, self._lanes) as i:
                    make(least(builder, i, last), self._vector)
            with short, loop(builder, number(0), count) as i:
                make(i, self._kind)

    def fill(self, to: Any, count: Any) -> None:
        """Make ``count`` elements the constant."""

        def make(i: Any, kind: Any) -> None:
            value = self._constant if kind is self._kind else self._constants
            self._builder.store(value, self.at(to, i), align=self._itemsize)

        self._runs(count, make)

    def copy(self, to: Any, source: Any, count: Any) -> None:
        """Copy ``count`` elements."""

        def make(i: Any, kind: Any) -> None:
            value = self._builder.load(self.at(source, i), typ=kind, align=self._itemsize)
            self._builder.store(value, self.at(to, i), align=self._itemsize)

        self._runs(count, make)

    def pick(self, to: Any, row: Any, ends: Any, count: Any) -> None:
        """Copy ``count`` elements whose places in the row ``ends`` has, or the constant."""
        builder = self._builder
        with loop(builder, number(0), count) as i:
            place = builder.load(offset(builder, ends, builder.mul(i, number(8))), typ=INT)
            before = builder.block
            is_there = builder.icmp_signed(">=", place, number(0))
            with builder.if_then(is_there):
                found = builder.load(self.at(row, place), typ=self._kind, align=self._itemsize)
                inside = builder.block
            value = builder.phi(self._kind)
            value.add_incoming(self._constant, before)
            value.add_incoming(found, inside)
            builder.store(value, self.at(to, i), align=self._itemsize)
