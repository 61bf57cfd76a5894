"""Sums of products over panels, in registers: the inner loops of matrix products and convolutions.

A *panel* is a few vectors of positions (columns of a result). What is multiplied there is packed number by number of
the sums; so are the other factors, for a few *features* (rows of the result) at a time. All sums of some features at
all positions of a panel stay in registers.

Invariants:

- A sum's terms are added in the order of its numbers, `_DEPTH` of them by themselves at a time: bits depend neither on
  the place of a result nor on the number of threads.
- In work memory, a vector may be written over what comes later, which is written again. Nothing behind a result's
  last position is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irc.native.lanes import INT32, Emitter, Lanes
from irc.native.loops import INT, POINTER, VOID, copy_floats, fold, least, loop, masked_load, number, offset
from irc.native.target import current, ir
from irc.ops.algebra import SINGLE

VECTORS = 2
"""Of a panel."""

ALIGNMENT = 64
"""Bytes that packed memory begins at a multiple of."""

SIZE = 4
"""Bytes of what is packed for one number: a float, or a pair of integers."""

MOST_FEATURES = {64: 14, 32: 6}
"""That are summed at a time, by the bytes of a register: two vectors of sums for each, and few more, fit into 32 or 16
of these."""


def lanes_of_panel() -> int:
    """The elements of one of its vectors."""
    return current().vector_bytes // SIZE


def features_at_once(count: int) -> int | None:
    """How many of ``count`` features to sum at a time, evenly; None for none, or without code."""
    most = MOST_FEATURES.get(current().vector_bytes)
    return -(-count // -(-count // most)) if most and count else None


_DEPTH = 128
"""Numbers that are summed by themselves: sums of many terms have smaller errors."""

_AHEAD = 2048
"""Bytes of weights that are asked for before they are read: of large ones, the processor stops at each page."""


FLOAT, PAIR, QUAD = 1, 2, 4
"""What 4 bytes of a factor hold, by the count of numbers: a float, two integers of 16 bits, four of 8 bits."""


def integers_at_once() -> int:
    """How many products of small integers the processor adds up in one instruction: `QUAD` or `PAIR`."""
    return QUAD if current().has_byte_products else PAIR


def add_products(total: Lanes, unsigned: Lanes, signed: Lanes, numbers: int) -> Lanes:
    """``total`` plus the products of the ``numbers`` in each lane of one register.

    Sums of integers have 32 bits, and wrap. The names of the operands say how a `QUAD` is read; of other numbers both
    are read alike.
    """
    if numbers == FLOAT:
        return unsigned.fma(signed, total)
    emitter, vector = total.emitter, total.value.type
    if numbers == QUAD:
        name = f"llvm.x86.avx512.vpdpbusd.{32 * emitter.count}"
        return total.made(emitter.call(name, vector, [total.value, unsigned.value, signed.value]))
    name = {16: "avx512.pmaddw.d.512", 8: "avx2.pmadd.wd", 4: "sse2.pmadd.wd"}[emitter.count]
    pairs = ir.VectorType(ir.IntType(16), 2 * emitter.count)
    both = [emitter.builder.bitcast(each.value, pairs) for each in (unsigned, signed)]
    return total + total.made(emitter.call(f"llvm.x86.{name}", vector, both))


class Panels:
    """Emits sums of products.

    Args:
        emitter: of one register.
        features: how many are summed at a time.
        numbers: what 4 bytes of a factor hold.
    """

    def __init__(self, emitter: Emitter, features: int, numbers: int = FLOAT) -> None:
        self.emitter, self.builder, self.features, self.numbers = emitter, emitter.builder, features, numbers
        self.lanes = emitter.count
        self.positions = VECTORS * self.lanes
        self.dtype = SINGLE if numbers == FLOAT else INT32
        self.vector = emitter.vector(self.dtype)

    def at(self, pointer: Any, index: Any) -> Any:
        """``pointer`` plus an offset in elements."""
        return offset(self.builder, pointer, self.builder.mul(index, number(SIZE)))

    def aligned(self, pointer: Any) -> Any:
        """The first place from ``pointer`` on where packed memory may begin."""
        builder = self.builder
        begin = builder.and_(builder.add(builder.ptrtoint(pointer, INT), number(ALIGNMENT - 1)), number(-ALIGNMENT))
        return builder.inttoptr(begin, POINTER)

    def load(self, at: Any, mask: Lanes | None = None) -> Any:
        """A vector; 0 where the mask is not set."""
        if mask is None:
            return self.builder.load(at, typ=self.vector, align=SIZE)
        return masked_load(self.emitter, at, mask, ir.Constant(self.vector, None))

    def store(self, value: Any, to: Any, vector: int) -> None:
        """Write a vector of an array that begins at ``to``."""
        self.builder.store(value, self.at(to, number(vector * self.lanes)), align=SIZE)

    def one(self, start: Any, index: int) -> Lanes:
        """One element in all lanes."""
        scalar = self.builder.load(self.at(start, number(index)), typ=self.vector.element, align=SIZE)
        return self.emitter.splat(scalar, self.dtype)

    def one_vector(self, start: Any, index: int) -> Lanes:
        """A vector of an array that begins at ``start``."""
        return Lanes(self.emitter, self.load(self.at(start, number(index * self.lanes))), self.dtype)

    def sums(
        self,
        weights: Any,
        packed: Any,
        depth: Any,
        to: Any,
        count: Any,
        *,
        of_features: Any | None = None,
        of_positions: Any | None = None,
    ) -> None:
        """Write the sums of ``depth`` products of some features at ``count`` positions of a panel.

        They begin with numbers ``of_features`` or ``of_positions``, if there are any.
        """

        def begun(m: int, v: int) -> Lanes:
            if of_features is not None:
                return self.one(of_features, m)
            if of_positions is not None:
                return self.one_vector(of_positions, v)
            return self.emitter.constant(0, self.dtype)

        with self.builder.if_else(self.builder.icmp_signed(">", count, number(self.lanes))) as (several, one):
            with several:
                self._sums(weights, packed, depth, to, begun, VECTORS)
            with one:
                self._sums(weights, packed, depth, to, begun, 1)

    def _sums(
        self, weights: Any, packed: Any, depth: Any, to: Any, begun: Callable[[int, int], Lanes], vectors: int
    ) -> None:
        """As `sums`, at the positions of the first ``vectors`` of the panel."""
        builder = self.builder
        places = [(m, v) for m in range(self.features) for v in range(vectors)]
        zero = self.emitter.constant(0, self.dtype)

        def step(k: Any, sums: list[Lanes]) -> list[Lanes]:
            column = self.at(packed, builder.mul(k, number(self.positions)))
            row = self.at(weights, builder.mul(k, number(self.features)))
            seen = [self.one_vector(column, v) for v in range(vectors)]
            self._prefetch(offset(builder, row, number(_AHEAD)))
            totals: list[Lanes] = []
            for m in range(self.features):
                factor = self.one(row, m)
                totals += [add_products(total, factor, x, self.numbers) for x, total in zip(seen, sums[m * vectors :])]
            return totals

        with loop(builder, number(0), depth, _DEPTH) as first:
            last = least(builder, depth, builder.add(first, number(_DEPTH)))
            is_first = builder.icmp_signed("==", first, number(0))
            first_sums = [zero.made(builder.select(is_first, begun(m, v).value, zero.value)) for m, v in places]
            totals = fold(builder, first, last, 1, first_sums, step)
            with builder.if_else(is_first) as (only, later):
                with only:
                    for (m, v), total in zip(places, totals):
                        self.store(total.value, to, VECTORS * m + v)
                with later:
                    for (m, v), total in zip(places, totals):
                        self.store((self.one_vector(to, VECTORS * m + v) + total).value, to, VECTORS * m + v)

    def _prefetch(self, at: Any) -> None:
        """Prefetch memory that may lie behind the weights: a prefetch is not an access."""
        kind = ir.IntType(32)
        operands = [at, *[ir.Constant(kind, n) for n in (0, 3, 1)]]  # to read, into all caches, of data
        self.emitter.call("llvm.prefetch.p0", VOID, operands)

    def keep(self, sums: Any, to: Any, pitch: Any, features: Any, count: Any) -> None:
        """Copy the sums of features at positions to a result whose rows are ``pitch`` elements."""
        builder = self.builder
        is_full = builder.icmp_signed("==", count, number(self.positions))
        with loop(builder, number(0), features) as m:
            row = self.at(sums, builder.mul(m, number(self.positions)))
            place = self.at(to, builder.mul(pitch, m))
            with builder.if_else(is_full) as (full, part):
                with full:
                    for v in range(VECTORS):
                        self.store(self.one_vector(row, v).value, place, v)
                with part:
                    copy_floats(self.emitter, place, row, count)
