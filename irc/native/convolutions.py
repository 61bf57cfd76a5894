"""Convolutions: packed weights times panels of columns, or transformed tiles (Winograd F(2x2, 3x3)).

A *panel* is a few vectors of positions of the result: of pixels, or of tiles of 2x2 pixels. For each panel, what its
positions see of the input is packed, number by number of the sums, into memory that stays in the cache; then a few
features of all of its positions at a time are summed in registers.

F(2x2, 3x3) makes the 4 results of a tile of 16 products instead of 36. Of a tile of 4x4 of the input, ``B^T d B`` makes
16 numbers, from each filter ``G g G^T`` as many; their products, summed over channels, make 2x2 results as ``A^T m A``
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015).

Invariants:

- Nothing outside of the operands is read: loads are masked at the edges of rows. Nothing outside of the results' range
  is written. In the work memory, a vector may be written over what comes later, which is written again.
- A result's terms are added in the order of the weights, whatever its place: bits depend on no number of threads.
- Rows of the input have no gaps between elements; images, channels and rows may have any, and may run backwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from irc.native.jit import Make
from irc.native.lanes import Emitter, Lanes
from irc.native.loops import (
    INT,
    Largest,
    copy_floats,
    finished,
    indices,
    lanes_inside,
    least,
    loop,
    loop_function,
    number,
    offset,
    paced_loop,
)
from irc.native.panels import SIZE, VECTORS, Panels
from irc.native.target import Target
from irc.ops.algebra import SINGLE

LARGEST = 2.0**48
"""The magnitude of inputs and weights up to which nothing that F(2x2, 3x3) makes of them overflows: transforms make
inputs 4 times as large and weights 9/4, and a result is a sum of 9 sums over channels, of which 2^20 would fit."""

POINTWISE, WINDOWS, TILES = "pointwise", "windows", "tiles"
"""What positions see: one element of each channel, all of which are one row; windows; tiles, which are transformed."""

_SEGMENTS = 4096
"""Bytes for the segments of a panel."""


class Form(NamedTuple):
    """What the code depends on.

    Attributes:
        kind: what positions see.
        features: how many are summed at a time.
        lanes: of a vector.
        stride: along rows, 1 or 2.
    """

    kind: str
    features: int
    lanes: int
    stride: int

    @property
    def positions(self) -> int:
        """Of a panel."""
        return VECTORS * self.lanes

    @property
    def numbers(self) -> int:
        """That products are summed of, for each position and feature."""
        return 16 if self.kind == TILES else 1

    def pitch(self, depth: int) -> int:
        """Elements packed for each of the `numbers` of a panel."""
        return depth * self.positions + self.lanes

    def panel(self, depth: int) -> int:
        """Bytes of work memory for a panel: its segments, what is packed, and sums."""
        return _SEGMENTS + SIZE * self.numbers * (self.pitch(depth) + self.features * self.positions)


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of parts of groups of panels, plane by plane.

    A plane is a group of channels of an image.

    Attributes:
        panels: of a plane.
        at_once: panels of a group, which are packed before features are summed.
        parts: into which the features of a plane fall.
        groups: of the channels of an image.
        channels: of a plane of the input.
        image: how many bytes it is from one image of the input to the next; likewise of channels and rows.
        height: of the input, in elements, as its width.
        kernel_height: rows of a filter; likewise its columns.
        down: from a row of a filter to the next, as `across` from a column.
        stride: along columns of the input.
        top: rows of padding above the input, and columns of padding to its left.
        positions: of a plane.
        row_positions: of a row of it.
        features: of a plane of the result.
        result_height: of the result, in elements, as its width.
        depth: numbers in a sum.
        blocks: of features.
        work: what a panel counts between pauses.
    """

    panels: Any
    at_once: Any
    parts: Any
    groups: Any
    channels: Any
    image: Any
    channel: Any
    row: Any
    height: Any
    width: Any
    kernel_height: Any
    kernel_width: Any
    down: Any
    across: Any
    stride: Any
    top: Any
    left: Any
    positions: Any
    row_positions: Any
    features: Any
    result_height: Any
    result_width: Any
    depth: Any
    blocks: Any
    work: Any


def emit_convolution(name: str, form: Form, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, and what it needs.

    It takes the input, packed weights, a bias for each packed feature, one int32 that becomes the bits of the largest
    magnitude that it has met, and the result.
    """
    emitter, arrays, numbers, begin, end = loop_function(name, target, form.lanes, 6, len(Layout._fields))
    _Convolution(form, emitter, arrays, Layout(*numbers)).emit(begin, end)
    return finished(emitter)


class _Convolution(Panels):
    def __init__(self, form: Form, emitter: Emitter, arrays: Sequence[Any], layout: Layout) -> None:
        super().__init__(emitter, form.features)
        self.form, self.layout = form, layout
        self.source, self.weights, self.bias, largest, self.result, work = arrays
        builder = self.builder
        self.work = self.aligned(work)
        self.pitch = builder.add(builder.mul(layout.depth, number(form.positions)), number(form.lanes))
        sums = number(_SEGMENTS + SIZE * form.numbers * form.features * form.positions)
        self.panel = builder.add(builder.mul(self.pitch, number(SIZE * form.numbers)), sums)
        self.plane_size = builder.mul(layout.result_height, layout.result_width)
        self.largest, self.largest_at = Largest(emitter), largest
        self.lane_at, self.segments_at = builder.alloca(INT), builder.alloca(INT)
        self.line = builder.alloca(self.vector, 4 * VECTORS)

    def emit(self, begin: Any, end: Any) -> None:
        with paced_loop(self.emitter, begin, end, 1, self.layout.work) as item:
            self._item(item)
        if self.form.kind == TILES:
            self.largest.keep(self.largest_at)

    def _item(self, item: Any) -> None:
        """A part of the features of a group of panels."""
        builder, layout, form = self.builder, self.layout, self.form
        groups = builder.udiv(builder.add(layout.panels, builder.sub(layout.at_once, number(1))), layout.at_once)
        part, whole = builder.urem(item, layout.parts), builder.udiv(item, layout.parts)
        plane, first = builder.udiv(whole, groups), builder.mul(builder.urem(whole, groups), layout.at_once)
        panels = least(builder, builder.sub(layout.panels, first), layout.at_once)
        image, group = builder.udiv(plane, layout.groups), builder.urem(plane, layout.groups)
        channels = builder.mul(builder.mul(group, layout.channels), layout.channel)
        source = offset(builder, self.source, builder.add(builder.mul(image, layout.image), channels))
        with loop(builder, number(0), panels) as panel:
            begin = builder.mul(builder.add(first, panel), number(form.positions))
            self._pack(source, begin, self._work(panel))
        filters = builder.mul(builder.mul(layout.blocks, layout.depth), number(form.features))
        weights = self.at(self.weights, builder.mul(group, builder.mul(filters, number(form.numbers))))
        bias = self.at(self.bias, builder.mul(group, builder.mul(layout.blocks, number(form.features))))
        result = self.at(self.result, builder.mul(plane, builder.mul(layout.features, self.plane_size)))
        blocks = [
            builder.udiv(builder.mul(layout.blocks, each), layout.parts)
            for each in (part, builder.add(part, number(1)))
        ]
        products = builder.mul(
            layout.depth, builder.mul(panels, number(form.numbers * form.features * form.lanes // 4))
        )
        with paced_loop(self.emitter, blocks[0], blocks[1], 1, products) as block:
            feature = builder.mul(block, number(form.features))
            left = least(builder, builder.sub(layout.features, feature), number(form.features))
            filters = builder.mul(layout.depth, number(form.features))
            rows = self.at(weights, builder.mul(builder.mul(block, number(form.numbers)), filters))
            biases = self.at(bias, feature)
            with loop(builder, number(0), number(form.numbers)) as k:
                of_number = self.at(rows, builder.mul(k, filters))
                with loop(builder, number(0), panels) as panel:
                    work = self._work(panel)
                    place = number(form.features * form.positions)
                    made = self.at(self._made(work), builder.mul(k, place))
                    added = None if form.kind == TILES else biases
                    count = self._count(first, panel)
                    self.sums(of_number, self._packed(work, k), layout.depth, made, count, of_features=added)
            to = self.at(result, builder.mul(feature, self.plane_size))
            with loop(builder, number(0), panels) as panel:
                begin = builder.mul(builder.add(first, panel), number(form.positions))
                if form.kind == TILES:
                    self._keep_tiles(self._work(panel), to, biases, left)
                else:
                    made = self._made(self._work(panel))
                    self.keep(made, self.at(to, begin), self.plane_size, left, self._count(first, panel))

    def _count(self, first: Any, panel: Any) -> Any:
        """The positions of a panel, of a group whose first panel is given."""
        builder, most = self.builder, number(self.form.positions)
        begin = builder.mul(builder.add(first, panel), most)
        return least(builder, builder.sub(self.layout.positions, begin), most)

    def _work(self, panel: Any) -> Any:
        """The work memory of a panel: its segments, sums, and what is packed."""
        return offset(self.builder, self.work, self.builder.mul(panel, self.panel))

    def _made(self, work: Any) -> Any:
        return offset(self.builder, work, number(_SEGMENTS))

    def _packed(self, work: Any, k: Any) -> Any:
        """Where numbers ``k`` of what is packed are."""
        form = self.form
        first = self.at(self._made(work), number(form.numbers * form.features * form.positions))
        return self.at(first, self.builder.mul(k, self.pitch))

    # -- what positions see ---------------------------------------------------------

    def _pack(self, source: Any, first: Any, work: Any) -> None:
        """Pack what the positions of a panel see, from the position ``first`` on."""
        builder, form = self.builder, self.form
        count = least(builder, builder.sub(self.layout.positions, first), number(form.positions))
        if form.kind == POINTWISE:
            self._pack_row(source, first, self._packed(work, number(0)))
            return
        segments = self._split(first, count, work)
        if form.kind == TILES:
            self._transform(source, segments, work)
        else:
            self._pack_windows(source, segments, work)

    def _pack_row(self, source: Any, first: Any, to: Any) -> None:
        """Pack elements of each channel, all of which are one row."""
        builder, layout, form = self.builder, self.layout, self.form
        starts = [builder.add(first, number(v * form.lanes)) for v in range(VECTORS)]
        is_full = builder.icmp_signed("<=", builder.add(first, number(form.positions)), layout.width)
        with builder.if_else(is_full) as (full, part):
            for case, mask in ((full, False), (part, True)):
                with case:
                    masks = [lanes_inside(self.emitter, start, layout.width) if mask else None for start in starts]
                    with loop(builder, number(0), layout.depth) as k:
                        row = offset(builder, source, builder.mul(k, layout.channel))
                        place = self.at(to, builder.mul(k, number(form.positions)))
                        for v, start in enumerate(starts):
                            self.store(self.load(self.at(row, start), masks[v]), place, v)

    def _split(self, first: Any, count: Any, work: Any) -> Any:
        """Write the panel's *segments*, its parts of rows of positions; how many there are is the result.

        Of each, the lane, the row and the column where it begins, and its length.
        """
        builder, layout = self.builder, self.layout
        builder.store(number(0), self.segments_at)
        builder.store(number(0), self.lane_at)
        head, body, after = (builder.append_basic_block() for _ in range(3))
        builder.branch(head)
        builder.position_at_end(head)
        lane = builder.load(self.lane_at, typ=INT)
        builder.cbranch(builder.icmp_signed("<", lane, count), body, after)
        builder.position_at_end(body)
        position = builder.add(first, lane)
        row, column = builder.udiv(position, layout.row_positions), builder.urem(position, layout.row_positions)
        length = least(builder, builder.sub(layout.row_positions, column), builder.sub(count, lane))
        index = builder.load(self.segments_at, typ=INT)
        entry = offset(builder, work, builder.add(builder.mul(index, number(32)), number(32)))
        for k, value in enumerate((lane, row, column, length)):
            builder.store(value, offset(builder, entry, number(8 * k)))
        builder.store(builder.add(index, number(1)), self.segments_at)
        builder.store(builder.add(lane, length), self.lane_at)
        builder.branch(head)
        builder.position_at_end(after)
        found = builder.load(self.segments_at, typ=INT)
        builder.store(found, work)
        return found

    def _segment(self, work: Any, index: Any) -> list[Any]:
        builder = self.builder
        entry = offset(builder, work, builder.add(builder.mul(index, number(32)), number(32)))
        return [builder.load(offset(builder, entry, number(8 * k)), typ=INT) for k in range(4)]

    def _pack_windows(self, source: Any, segments: Any, work: Any) -> None:
        """Pack what each tap of a filter sees of each channel."""
        builder, layout, form = self.builder, self.layout, self.form
        height, width = layout.kernel_height, layout.kernel_width
        line = builder.mul(width, number(form.positions))
        with loop(builder, number(0), layout.channels) as channel:
            image = offset(builder, source, builder.mul(channel, layout.channel))
            with loop(builder, number(0), height) as i:
                k = builder.add(builder.mul(channel, height), i)
                to = self.at(self._packed(work, number(0)), builder.mul(k, line))
                with loop(builder, number(0), width) as j:
                    place = self.at(to, builder.mul(j, number(form.positions)))
                    with loop(builder, number(0), segments) as index:
                        lane, row, column, length = self._segment(work, index)
                        y = builder.add(builder.mul(row, layout.stride), builder.mul(i, layout.down))
                        y = builder.sub(y, layout.top)
                        x = builder.add(builder.mul(column, number(form.stride)), builder.mul(j, layout.across))
                        x = builder.sub(x, layout.left)
                        at = offset(builder, image, builder.mul(y, layout.row))
                        is_inside = builder.icmp_unsigned("<", y, layout.height)
                        size = builder.select(is_inside, layout.width, number(0))
                        with loop(builder, number(0), length, form.lanes) as first:
                            begin = builder.add(x, builder.mul(first, number(form.stride)))
                            begins = [builder.add(begin, number(n * form.lanes)) for n in range(form.stride)]
                            loaded = [self.load(self.at(at, b), lanes_inside(self.emitter, b, size)) for b in begins]
                            found = loaded[0]
                            if form.stride == 2:
                                found = builder.shuffle_vector(*loaded, indices(range(0, 2 * form.lanes, 2)))
                            self.store(found, self.at(place, builder.add(lane, first)), 0)

    def _transform(self, source: Any, segments: Any, work: Any) -> None:
        """Pack what F(2x2, 3x3) makes of each tile."""
        builder, layout, form = self.builder, self.layout, self.form
        even, odd = (indices(range(k, 2 * form.lanes, 2)) for k in (0, 1))
        with loop(builder, number(0), layout.channels) as channel:
            image = offset(builder, source, builder.mul(channel, layout.channel))
            to = self.at(self._packed(work, number(0)), builder.mul(channel, number(form.positions)))
            with loop(builder, number(0), segments) as index:
                lane, row, column, length = self._segment(work, index)
                y = builder.sub(builder.mul(row, number(2)), layout.top)
                with loop(builder, number(0), length, form.lanes) as i:
                    x = builder.sub(builder.mul(builder.add(column, i), number(2)), layout.left)
                    begins = [builder.add(x, number(n)) for k in (0, 2) for n in (k, form.lanes + k)]
                    rows: list[list[Lanes]] = []
                    for k in range(4):
                        line = builder.add(y, number(k))
                        at = offset(builder, image, builder.mul(line, layout.row))
                        is_inside = builder.icmp_unsigned("<", line, layout.height)
                        size = builder.select(is_inside, layout.width, number(0))
                        masks = [lanes_inside(self.emitter, begin, size) for begin in begins]
                        a, b, c, d = (self.load(self.at(at, each), mask) for each, mask in zip(begins, masks))
                        self.largest.see(a, b, d)
                        seen = [
                            builder.shuffle_vector(*both, which) for both in ((a, b), (c, d)) for which in (even, odd)
                        ]
                        rows.append(_input_transform([Lanes(self.emitter, value, SINGLE) for value in seen]))
                    numbers = [_input_transform([row[k] for row in rows]) for k in range(4)]
                    place = self.at(to, builder.add(lane, i))
                    for k in range(form.numbers):
                        self.store(numbers[k % 4][k // 4].value, self.at(place, builder.mul(self.pitch, number(k))), 0)

    # -- results --------------------------------------------------------------------

    def _keep_tiles(self, work: Any, to: Any, bias: Any, features: Any) -> None:
        """Write the results of a block of features that sums of products of tiles' numbers make."""
        builder, form = self.builder, self.form
        segments = builder.load(work, typ=INT)
        with loop(builder, number(0), features) as m:
            place = self.at(self._made(work), builder.mul(m, number(form.positions)))
            added = self.one(self.at(bias, m), 0)
            for v in range(VECTORS):
                self._inverse(self.at(place, number(v * form.lanes)), added, v)
            plane = self.at(to, builder.mul(self.plane_size, m))
            with loop(builder, number(0), segments) as index:
                self._tiles(plane, *self._segment(work, index))

    def _inverse(self, place: Any, bias: Lanes, vector: int) -> None:
        """Write the two rows of results of a vector of tiles to `line`."""
        builder, form = self.builder, self.form
        apart = form.features * form.positions
        numbers = [self.one_vector(self.at(place, number(k * apart)), 0) for k in range(form.numbers)]
        columns = [_output_transform([numbers[4 * i + j] for i in range(4)]) for j in range(4)]
        for r in range(2):
            left, right = _output_transform([column[r] for column in columns])
            left, right = left + bias, right + bias
            for half in range(2):
                which = [n for k in range(form.lanes // 2) for n in (k, form.lanes + k)]
                shift = half * form.lanes // 2
                mixed = builder.shuffle_vector(left.value, right.value, indices([n + shift for n in which]))
                at = (r * 2 * VECTORS + 2 * vector + half) * form.lanes
                self.store(mixed, self.at(self.line, number(at)), 0)

    def _tiles(self, plane: Any, lane: Any, row: Any, column: Any, length: Any) -> None:
        """Copy the results of a segment of tiles from `line` to the plane of the result."""
        builder, layout, form = self.builder, self.layout, self.form
        x = builder.mul(column, number(2))
        count = least(builder, builder.mul(length, number(2)), builder.sub(layout.result_width, x))
        for r in range(2):
            y = builder.add(builder.mul(row, number(2)), number(r))
            with builder.if_then(builder.icmp_signed("<", y, layout.result_height)):
                to = self.at(plane, builder.add(builder.mul(y, layout.result_width), x))
                first = builder.add(builder.mul(lane, number(2)), number(r * 2 * form.positions))
                copy_floats(self.emitter, to, self.at(self.line, first), count)


def _input_transform(d: Sequence[Lanes]) -> list[Lanes]:
    """``B^T d``."""
    return [d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]]


def _output_transform(m: Sequence[Lanes]) -> list[Lanes]:
    """``A^T m``."""
    return [m[0] + m[1] + m[2], m[1] - m[2] - m[3]]
