"""Products of one row with constant matrices of 4-bit codes in scaled blocks, unpacked in registers.

Invariants:

- A matrix is read so only if it is, to the bit, what the codes, scales and zero points make that it was made of.
- A sum's terms are added block by block, whatever the number of threads, which share the panels of columns. The sum of
  a block is scaled as a whole, but where that overflows, each code.
- Of a panel's columns, those behind the matrix's last one have codes, but are not written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import INT32, Lanes, load, load_one, to_float
from irc.native.loops import finished, fold, loop_function, number, offset, paced_loop, store_row
from irc.native.packed import PIECES
from irc.native.panels import MOST_FEATURES, lanes_of_panel
from irc.native.target import Target, current, ir
from irc.ops.algebra import SINGLE

VECTORS = 4
"""Of a panel: as many sums at once as it takes to wait for none."""

_CODES = 8
"""In a word of 4 bytes, the first one in its lowest bits: each less 8, with a sign."""

_SIZE = 4
"""Bytes of a word, a scale, a zero point."""

_LOOKED_AT = 1 << 16
"""Numbers of a matrix at a time, to see whether codes make them."""

_PICOSECONDS = 60.0
"""For a multiplication, by estimate."""


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of panels of columns.

    Attributes:
        words: of a block.
        blocks: of a column.
        columns: how many there are.
        work: what a panel counts between pauses.
    """

    words: Any
    blocks: Any
    columns: Any
    work: Any


def call_for_row(words: int, blocks: int, columns: int, has_zeros: bool) -> Call:
    """A call that takes a row, what `packed` makes, and the result."""
    panels = -(-columns // (VECTORS * lanes_of_panel()))
    products = _CODES * words * blocks * columns
    layout = Layout(words, blocks, columns, max(1, products // (8 * panels)))
    name, arrays = "irc.few_bits", 4 + has_zeros
    make = partial(_emit, name, arrays, current())
    return Call.of_loops(name, f"{name} {arrays}", make, arrays, layout, panels, products * _PICOSECONDS / 1000)


def _emit(name: str, count: int, target: Target) -> tuple[str, Mapping[str, Make]]:
    lanes = target.vector_bytes // _SIZE
    emitter, arrays, numbers, begin, end = loop_function(name, target, lanes, count, len(Layout._fields))
    builder, layout, positions = emitter.builder, Layout(*numbers), VECTORS * lanes
    row, words, scales, *zeros, result = arrays
    nothing = [emitter.constant(0, SINGLE)] * VECTORS

    def at(pointer: Any, index: Any) -> Any:
        return offset(builder, pointer, builder.mul(index, number(_SIZE)))

    def vectors(pointer: Any, index: Any, dtype: Any = SINGLE) -> list[Lanes]:
        first = at(pointer, builder.mul(index, number(positions)))
        return [load(emitter, at(first, number(v * lanes)), dtype) for v in range(VECTORS)]

    with paced_loop(emitter, begin, end, 1, layout.work) as panel:
        first = builder.mul(panel, number(positions))

        def write(is_scaled: bool) -> Any:
            """Emit the results, of codes scaled before they are added or after; whether these are finite."""

            def add_block(index: Any, totals: list[Lanes]) -> list[Lanes]:
                block = builder.add(builder.mul(panel, layout.blocks), index)
                less, factors = [vectors(each, block) for each in zeros], vectors(scales, block)

                def add_words(k: Any, sums: list[Lanes]) -> list[Lanes]:
                    codes = vectors(words, builder.add(builder.mul(block, layout.words), k), INT32)
                    some = at(row, builder.mul(builder.add(builder.mul(index, layout.words), k), number(_CODES)))
                    for place in range(_CODES):
                        own = load_one(emitter, at(some, number(place)), SINGLE)
                        parts = [to_float((x << 28 - 4 * place) >> 28, SINGLE) for x in codes]
                        for each in less:
                            parts = [x - y for x, y in zip(parts, each)]
                        if is_scaled:
                            parts = [x * y for x, y in zip(parts, factors)]
                        sums = [own.fma(x, total) for x, total in zip(parts, sums)]
                    return sums

                if is_scaled:
                    return fold(builder, number(0), layout.words, 1, totals, add_words)
                sums = fold(builder, number(0), layout.words, 1, nothing, add_words)
                return [x.fma(y, total) for x, y, total in zip(sums, factors, totals)]

            totals = fold(builder, number(0), layout.blocks, 1, nothing, add_block)
            store_row(totals, result, first, layout.columns, SINGLE)
            return reduce(Lanes.__and__, [(total * 0).equals(0) for total in totals])

        are_finite = builder.bitcast(write(is_scaled=False).value, ir.IntType(lanes))
        with builder.if_then(builder.icmp_signed("!=", are_finite, ir.Constant(are_finite.type, -1)), likely=False):
            write(is_scaled=True)
    return finished(emitter)


def packed(w: Array, made_of: Sequence[Array]) -> tuple[Array, ...] | None:
    """Words, scales and maybe zero points of ``w`` (K, N) as code reads them; None if it has no such.

    Words are (panels, K / 8, positions), others (panels, blocks, positions).

    Args:
        w: of float32.
        made_of: the arrays that it was made of.
    """
    depth, columns = w.shape
    floats = [x for x in made_of if x.dtype == SINGLE and (x.size == 1 or not x.size % columns)]
    pairs = next((found for x in made_of if (found := _pairs(x, w.size)) is not None), None)
    if current().vector_bytes not in MOST_FEATURES or pairs is None:
        return None
    for scales, zeros in permutations([*floats, np.zeros(1, SINGLE)], 2):
        blocks = scales.size // columns
        if not blocks or depth % (2 * _CODES * blocks) or zeros.size not in (1, scales.size):
            continue
        pairs, scales = pairs.reshape(columns, blocks, -1), scales.reshape(columns, blocks)
        zeros = np.broadcast_to(zeros.reshape(-1, blocks if zeros.size > 1 else 1), scales.shape)
        if _make(pairs, scales, zeros, w.T) and (zeros == np.rint(zeros)).all():
            words = (pairs ^ 0x88).reshape(columns, -1).view("<i4")  # the bits of codes less 8, with a sign
            return tuple(map(_panels, [words, scales, zeros - 8] if (zeros != 8).any() else [words, scales]))
    return None


def _make(pairs: Array, scales: Array, zeros: Array, made: Array) -> bool:
    """Whether codes, scales and zero points make the rows ``made``, of which some are in the cache."""
    rows = max(1, _LOOKED_AT // made.shape[1])
    for some in (slice(first, first + rows) for first in range(0, len(made), rows)):
        codes = np.stack([pairs[some] & 15, pairs[some] >> 4], -1).reshape(*pairs[some].shape[:2], -1)
        found = (codes - zeros[some, :, None]) * scales[some, :, None]
        if not np.array_equal(found.reshape(len(found), -1), made[some]):
            return False
    return True


def _pairs(x: Array, count: int) -> Array | None:
    """Bytes of two codes each, the first in the lower bits, if ``x`` is ``count`` codes, or such bytes."""
    if x.dtype != np.uint8 or x.size not in (count, count // 2):
        return None
    flat = np.ascontiguousarray(x).reshape(-1)
    if 2 * x.size == count:
        return flat
    return flat[::2] | flat[1::2] << 4 if flat.max() < 16 else None


def packed_bytes(depth: int, columns: int) -> int:
    """The most bytes that `packed` makes of a matrix (K, N) in blocks of 16 or more."""
    positions = VECTORS * lanes_of_panel()
    return -(-columns // positions) * positions * depth


def _panels(x: Array) -> Array:
    """Of x (N, ...) the panels (panels, ..., positions), with zeros behind the last column."""
    positions = VECTORS * lanes_of_panel()
    padded = np.zeros((-(-len(x) // positions), positions, x.shape[1]), x.dtype)
    padded.reshape(-1, x.shape[1])[: len(x)] = x
    return PIECES.copy(padded.swapaxes(1, 2))
