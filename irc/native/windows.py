"""Loops over sliding windows: depthwise convolution, maximum and average pooling, and im2col.

An image is not copied with its padding. A vector of results that sees nothing but the image is made of plain loads;
any other one of masked loads, which read nothing outside of it and give the identity of the reduction there. Nothing
is loaded of rows that lie outside.

Invariants:

- Nothing outside of the operands is read, and nothing outside of the results' range is written. Within it, a vector
  may be written over what comes later, which is written again.
- Products are added tap by tap, the kernel's rows one after the other, then the bias. Sums of pooling are made of each
  row, then of the rows. So the bits of a result depend neither on its place nor on the number of threads.
- Rows of the input have no gaps between elements; images, channels and rows may have any, and may run backwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import (
    Emitter,
    Lanes,
    computed,
    is_supported,
    joined,
    load,
    load_one,
    memory_type,
    narrowed,
    store,
    widened,
)
from irc.native.loops import (
    INT,
    POINTER,
    finished,
    indices,
    lanes_inside,
    least,
    loop,
    loop_function,
    masked_load,
    masked_store,
    number,
    offset,
)
from irc.native.primitives import PRIMITIVES
from irc.native.target import Target, current, ir
from irc.ops.algebra import BOOL, DOUBLE, SINGLE, AnyDType
from irc.runtime.kernels.windows import Axis

if TYPE_CHECKING:
    from irc.runtime.kernels.windows import Axes

PRODUCTS, MAXIMA, MEANS, COLUMNS = "products", "maxima", "means", "columns"
"""What is computed: of an image and weights (and biases); of an image; of an image and the counts of elements that
windows have along columns and along rows, whose products sums are divided by; of an image, what each tap sees."""


MOST_TAPS = 64
"""Of a kernel: code has them one by one."""

MOST_COLUMNS = 12
"""Taps of a row of a kernel whose columns are made: of more, NumPy copies as fast or, of large ones, in a third of the
time."""

MOST_STRIDE = 8
"""Along rows: a vector is picked from this many."""

_MOST_ROWS = 7
"""Of results that are made at once."""

_MOST_PRODUCTS = 200
"""For those, tap by tap."""

ONE_PLACE = Axis(1, 1, 1, 1, 1, 0, 0)
"""An axis of one position, which windows see as it is: the height of what has a width alone."""

MOST_POSITIONS = 1 << 28
"""Along an axis with its padding: code counts columns in 32 bits."""


class Form(NamedTuple):
    """What the code depends on.

    Attributes:
        work: what is computed.
        dtypes: of the operands and the result.
        kernel: height and width, and so on.
        lanes: of a vector.
        rows: of results, made at once.
        is_narrow: whether a row of results has no more than a vector.
        sharing: how many channels of the result are made of one of the input.
    """

    work: str
    dtypes: tuple[AnyDType, ...]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    lanes: int
    rows: int
    is_narrow: bool
    sharing: int

    @property
    def reach(self) -> int:
        """How many columns the loads for a vector reach over, from the first tap of its first result on."""
        stride = self.strides[1]
        last = (self.kernel[1] - 1) * self.dilations[1]
        return last - last % stride + stride * self.lanes


class Layout(NamedTuple):
    """The numbers that a loop function reads.

    Attributes:
        channels: of the result.
        image: how many bytes it is from one image of the input to the next; likewise of channels and rows.
        height: of the input, in elements, as its width.
        result_height: of the result, likewise.
        top: rows of padding above the input, and columns of padding to its left.
        first: the first column from which on a vector of results sees nothing but the image, and the last one.
        taps: of a row of a kernel of which columns are made.
        down: from one row of such a kernel to the next, and `across` from one column.
    """

    channels: Any
    image: Any
    channel: Any
    row: Any
    height: Any
    width: Any
    result_height: Any
    result_width: Any
    top: Any
    left: Any
    first: Any
    last: Any
    taps: Any = 1
    down: Any = 0
    across: Any = 0


def call_for(work: str, arrays: Sequence[Array], axes: Axes) -> Call | None:
    """A call for arrays that lie like these; None if there is no code for them.

    Args:
        work: what is computed.
        arrays: the operands (see there) and the result; of the first one, elements of a row lie side by side, and the
            others are in C order.
        axes: the windows.
    """
    x, out = arrays[0], arrays[-1]
    height, width = (ONE_PLACE, *axes)[-2:]
    if len(axes) > 2 or x.size == 0 or out.size == 0 or not _fits(work, [a.dtype for a in arrays], height, width):
        return None
    form = _form(work, tuple([a.dtype for a in arrays]), height, width, out.shape[1] // max(1, x.shape[1]))
    layout = Layout(
        channels=out.shape[1],
        image=x.strides[0],
        channel=x.strides[1],
        row=x.strides[-2],
        height=height.size,
        width=width.size,
        result_height=height.out,
        result_width=width.out,
        top=height.begin,
        left=width.begin,
        first=-(-width.begin // width.stride),
        last=(width.size + width.begin - form.reach) // width.stride,
    )
    return _call(form, layout, out.shape[0] * out.shape[1])


def call_for_columns(x: Array, axes: Axes, start: int, out: Array) -> Call | None:
    """A call for the columns of an image: see `irc.runtime.kernels.windows.columns`; None without code.

    Args:
        x: (C, spatial...), of which elements of a row lie side by side.
        axes: the windows.
        start: the row of windows to begin with.
        out: (C, kernel..., rows, windows of a row), in C order.
    """
    height, width = (ONE_PLACE, *axes)[-2:]
    bits = np.dtype(f"u{x.itemsize}") if x.itemsize in (1, 2, 4, 8) else x.dtype
    if len(axes) > 2 or x.size == 0 or out.size == 0 or not _fits(COLUMNS, [bits, bits], height, width):
        return None
    rows = out.shape[-2] if len(axes) == 2 else 1
    first, second = (start, 0) if len(axes) == 2 else (0, start)
    line, place = (
        height._replace(kernel=1, dilation=1, out=rows),
        width._replace(kernel=1, dilation=1, out=out.shape[-1]),
    )
    form = _form(COLUMNS, (bits, bits), line, place, 1)
    layout = Layout(
        channels=height.kernel * width.kernel,
        image=x.strides[0],
        channel=0,
        row=x.strides[-2],
        height=height.size,
        width=width.size,
        result_height=rows,
        result_width=out.shape[-1],
        top=height.begin - first * height.stride,
        left=width.begin - second * width.stride,
        first=0,
        last=0,
        taps=width.kernel,
        down=height.dilation,
        across=width.dilation,
    )
    return _call(form, layout, x.shape[0] * layout.channels)


def _call(form: Form, layout: Layout, planes: int) -> Call:
    """A call of the code for this number of planes of results."""
    rows, name = planes * layout.result_height, "irc.windows"
    taps = form.kernel[0] * form.kernel[1] * form.strides[1]
    work = rows * -(-layout.result_width // form.lanes) * (2 + taps) * 0.3
    make = partial(emit_windows, name, form, current())
    return Call.of_loops(name, f"{name} {form!r}", make, len(form.dtypes), layout, rows, work)


def _fits(work: str, dtypes: Sequence[AnyDType], height: Axis, width: Axis) -> bool:
    """Whether there is code for such windows."""
    if not all(map(is_supported, dtypes)) or dtypes[0] == BOOL or dtypes[0] != dtypes[-1]:
        return False
    inner = computed(dtypes[0])
    if work in (PRODUCTS, MEANS) and (inner not in (SINGLE, DOUBLE) or any(computed(d) != inner for d in dtypes)):
        return False
    is_small = width.kernel <= MOST_COLUMNS if work == COLUMNS else height.kernel * width.kernel <= MOST_TAPS
    return is_small and width.stride <= MOST_STRIDE and are_counted(height, width)


def are_counted(*axes: Axis) -> bool:
    """Whether code can count the positions along ``axes`` with their padding."""
    return all(max(a.size + a.begin + a.end, a.out * a.stride + a.reach) < MOST_POSITIONS for a in axes)


def _rows_at_once(height: Axis, taps: int) -> int:
    """How many rows of results to compute at once, so that input rows are read seldom."""

    def reads(rows: int) -> int:
        of_several, of_one = (rows - 1) * height.stride + height.kernel, height.kernel
        return height.out // rows * of_several + height.out % rows * of_one

    most = max(1, min(_MOST_ROWS, _MOST_PRODUCTS // taps, height.out))
    return min(range(most, most // 2, -1), key=reads)


def _form(work: str, dtypes: tuple[AnyDType, ...], height: Axis, width: Axis, sharing: int) -> Form:
    most = current().vector_bytes // computed(dtypes[0]).itemsize
    lanes = min(most, max(2, 1 << (width.out - 1).bit_length()))
    return Form(
        work,
        dtypes,
        (height.kernel, width.kernel),
        (height.stride, width.stride),
        (height.dilation, width.dilation),
        lanes,
        _rows_at_once(height, height.kernel * width.kernel),
        width.out <= lanes,
        sharing,
    )


def emit_windows(name: str, form: Form, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, whose range is of rows of results, and what it needs."""
    made = loop_function(name, target, form.lanes, len(form.dtypes), len(Layout._fields))
    emitter, arrays, numbers, begin, end = made
    _Windows(form, emitter).emit(arrays, Layout(*numbers), begin, end)
    return finished(emitter)


class _Windows:
    def __init__(self, form: Form, emitter: Emitter) -> None:
        self.form, self.emitter, self.builder = form, emitter, emitter.builder
        self.dtype = form.dtypes[0]
        self.fill = _identity(form.work, self.dtype)
        height, width = form.kernel
        self.columns = [tap * form.dilations[1] for tap in range(width)]
        self.lines = [tap * form.dilations[0] for tap in range(height)]

    def emit(self, arrays: Sequence[Any], layout: Layout, begin: Any, end: Any) -> None:
        builder, form = self.builder, self.form
        channel_at, image_at = builder.alloca(INT), builder.alloca(POINTER)
        self.hidden = builder.alloca(INT)
        source, *self.others, result = arrays
        self.layout = layout
        self.pitch = builder.mul(layout.result_width, number(form.dtypes[-1].itemsize))
        self.stop = offset(builder, result, builder.mul(end, self.pitch))
        if form.work != COLUMNS:
            self.top, self.left, self.first, self.last = layout.top, layout.left, layout.first, layout.last
            self._make_masks()
        height = layout.result_height
        first = builder.sdiv(begin, height)
        last = builder.sdiv(builder.add(end, builder.sub(height, number(1))), height)
        # Both are counted from plane to plane: a division takes as long as some rows.
        builder.store(builder.srem(first, layout.channels), channel_at)
        image = builder.mul(builder.sdiv(first, layout.channels), layout.image)
        builder.store(offset(builder, source, image), image_at)
        with loop(builder, first, last) as plane:
            channel, image = builder.load(channel_at), builder.load(image_at)
            shared = builder.udiv(channel, number(form.sharing))
            self.source = offset(builder, image, builder.mul(shared, layout.channel))
            before = builder.mul(plane, height)
            self.result = offset(builder, result, builder.mul(before, self.pitch))
            rows = least(builder, builder.sub(end, before), height)
            self._plane(channel, _most(builder, builder.sub(begin, before), number(0)), rows)
            after = builder.add(channel, number(1))
            is_last = builder.icmp_signed("==", after, layout.channels)
            builder.store(builder.select(is_last, number(0), after), channel_at)
            builder.store(builder.select(is_last, offset(builder, image, layout.image), image), image_at)

    def _plane(self, channel: Any, begin: Any, end: Any) -> None:
        """Rows of a channel of an image."""
        builder, form = self.builder, self.form
        if form.work == PRODUCTS:
            self._read_weights(channel)
        elif form.work == COLUMNS:
            self._look_from(channel)
        whole = builder.sub(builder.sub(end, begin), builder.srem(builder.sub(end, begin), number(form.rows)))
        middle = builder.add(begin, whole)
        with loop(builder, begin, middle, form.rows) as row:
            self._rows(row, form.rows)
        if form.rows > 1:
            with loop(builder, middle, end) as row:
                self._rows(row, 1)

    def _look_from(self, tap: Any) -> None:
        """Place the windows of one kernel tap whose columns are made, as those of a kernel of one tap."""
        builder, layout, form = self.builder, self.layout, self.form
        line, place = builder.udiv(tap, layout.taps), builder.urem(tap, layout.taps)
        self.top = builder.sub(layout.top, builder.mul(line, layout.down))
        self.left = builder.sub(layout.left, builder.mul(place, layout.across))
        stride = number(form.strides[1])
        hidden = _most(builder, self.left, number(0))
        self.first = builder.udiv(builder.add(hidden, number(form.strides[1] - 1)), stride)
        room = builder.add(self.left, builder.sub(layout.width, number(form.reach)))
        is_wide = builder.icmp_signed(">=", room, number(0))
        self.last = builder.select(is_wide, builder.sdiv(room, stride), number(-1))
        self._make_masks()

    def _make_masks(self) -> None:
        """Make the masks of rows that have no more than a vector."""
        self.masks = self._masks(self.builder.neg(self.left)) if self.form.is_narrow else {}

    def _read_weights(self, channel: Any) -> None:
        builder, (height, width), dtype = self.builder, self.form.kernel, self.form.dtypes[1]
        at = offset(builder, self.others[0], builder.mul(channel, number(height * width * dtype.itemsize)))
        taps = [offset(builder, at, number(i * dtype.itemsize)) for i in range(height * width)]
        self.weights = [load_one(self.emitter, tap, dtype) for tap in taps]
        if len(self.others) > 1:
            dtype = self.form.dtypes[2]
            bias = offset(builder, self.others[1], builder.mul(channel, number(dtype.itemsize)))
            self.bias = load_one(self.emitter, bias, dtype)

    def _rows(self, row: Any, count: int) -> None:
        """``count`` rows of results, from ``row`` on."""
        builder, layout, form = self.builder, self.layout, self.form
        row = self._hidden(row)
        if form.is_narrow:
            self._vectors(row, count, number(0), self.masks)
            return
        vectors = builder.sdiv(builder.add(layout.result_width, number(form.lanes - 1)), number(form.lanes))
        last = builder.sub(layout.result_width, number(form.lanes))
        with loop(builder, number(0), vectors) as i:
            column = least(builder, builder.mul(i, number(form.lanes)), last)  # the last one overlaps the one before
            column = self._hidden(column)
            is_after = builder.icmp_signed(">=", column, self.first)
            is_inside = builder.and_(is_after, builder.icmp_signed("<=", column, self.last))
            with builder.if_else(is_inside) as (inside, outside):
                with inside:
                    self._vectors(row, count, column, None)
                with outside:
                    seen = builder.sub(builder.mul(column, number(form.strides[1])), self.left)
                    self._vectors(row, count, column, self._masks(seen))

    def _hidden(self, value: Any) -> Any:
        """``value`` by way of memory: else LLVM keeps each line's address in a register."""
        self.builder.store(value, self.hidden)
        return self.builder.load(self.hidden)

    def _masks(self, column: Any) -> dict[int, Lanes]:
        """Which lanes of loaded vectors are inside, if the first result's first tap sees ``column``.

        By the distance from there.
        """
        reached = sorted({each for tap in self.columns for each in self._loads(tap)})
        width = self.layout.width
        return {at: lanes_inside(self.emitter, self.builder.add(column, number(at)), width) for at in reached}

    def _loads(self, tap: int) -> list[int]:
        """Where the vectors begin that hold what a tap sees."""
        stride = self.form.strides[1]
        return [tap - tap % stride + i * self.form.lanes for i in range(stride)]

    def _vectors(self, row: Any, count: int, column: Any, masks: dict[int, Lanes] | None) -> None:
        """A vector of results of ``count`` rows from ``row`` on; without ``masks``, all they see is inside."""
        builder, layout, form = self.builder, self.layout, self.form
        first = builder.sub(builder.mul(row, number(form.strides[0])), self.top)
        seen = builder.sub(builder.mul(column, number(form.strides[1])), self.left)
        at = offset(builder, self.source, builder.mul(seen, number(self.dtype.itemsize)))
        at = offset(builder, at, builder.mul(first, layout.row))
        results = [self.emitter.constant(self.fill, computed(self.dtype)) for _ in range(count)]
        readers: dict[int, list[tuple[int, int]]] = {}
        for j in range(count):
            for tap, line in enumerate(self.lines):
                readers.setdefault(j * form.strides[0] + line, []).append((j, tap))
        done = 0
        for line in sorted(readers):
            at, done = offset(builder, at, builder.mul(layout.row, number(line - done))), line
            y = builder.add(first, number(line))
            is_inside = builder.icmp_unsigned("<", y, layout.height)
            with builder.if_else(is_inside) as (inside, outside):
                with inside:
                    changed = self._line(at, masks, readers[line], results)
                    inside = builder.block
                with outside:
                    padding = self._padding(readers[line], results)
                    outside = builder.block
            for j, value in changed.items():
                results[j] = value.made(joined(builder, (value.value, inside), (padding[j].value, outside)))
        place = offset(builder, self.result, builder.mul(row, self.pitch))
        for j, value in enumerate(results):
            self._store(self._finished(value, builder.add(row, number(j)), column), place, column)
            place = offset(builder, place, self.pitch)

    def _line(
        self, at: Any, masks: dict[int, Lanes] | None, readers: Sequence[tuple[int, int]], results: Sequence[Lanes]
    ) -> dict[int, Lanes]:
        """The contributions of the input row at ``at``: by number, results of the rows that see it."""
        loaded: dict[int, Any] = {}
        seen = [self._seen(at, masks, tap, loaded) for tap in self.columns]
        if self.form.work == PRODUCTS:
            return self._products(seen, readers, results)
        if self.form.work == COLUMNS:
            return {j: seen[0] for j, _ in readers}
        combine = PRIMITIVES["maximum" if self.form.work == MAXIMA else "add"]
        whole = reduce(combine, seen)
        return {j: combine(whole, results[j]) for j, _ in readers}

    def _padding(self, readers: Sequence[tuple[int, int]], results: Sequence[Lanes]) -> dict[int, Lanes]:
        """As `_line`, of a row outside of the input: 0 times a weight that is not finite is NaN."""
        if self.form.work != PRODUCTS:
            return {j: results[j] for j, _ in readers}
        zero = self.emitter.constant(0, computed(self.dtype))
        return self._products([zero] * len(self.columns), readers, results)

    def _products(
        self, seen: Sequence[Lanes], readers: Sequence[tuple[int, int]], results: Sequence[Lanes]
    ) -> dict[int, Lanes]:
        width = len(seen)
        return {
            j: reduce(lambda y, k: seen[k].fma(self.weights[tap * width + k], y), range(width), results[j])
            for j, tap in readers
        }

    def _seen(self, at: Any, masks: dict[int, Lanes] | None, tap: int, loaded: dict[int, Any]) -> Lanes:
        """What a tap of a kernel sees of a row."""
        builder, lanes, stride = self.builder, self.form.lanes, self.form.strides[1]
        kind = ir.VectorType(memory_type(self.dtype), lanes)
        for begin in self._loads(tap):
            if begin not in loaded:
                place = offset(builder, at, number(begin * self.dtype.itemsize))
                loaded[begin] = self._load(place, kind, None if masks is None else masks[begin])
        found, *rest = [loaded[begin] for begin in self._loads(tap)]
        places = [tap % stride + i * stride for i in range(lanes)]
        for k, more in enumerate(rest, 1):
            kept = places if k == 1 else range(lanes)  # after that, what is found stays where it is
            which = [lanes + p % lanes if p // lanes == k else at % lanes for p, at in zip(places, kept)]
            found = builder.shuffle_vector(found, more, indices(which))
        return widened(self.emitter, found, self.dtype)

    def _load(self, at: Any, kind: Any, mask: Lanes | None) -> Any:
        if mask is None:
            return self.builder.load(at, typ=kind, align=self.dtype.itemsize)
        filled = narrowed(self.emitter.constant(self.fill, computed(self.dtype)), self.dtype)
        return masked_load(self.emitter, at, mask, filled)

    def _finished(self, value: Lanes, row: Any, column: Any) -> Lanes:
        builder, form = self.builder, self.form
        if form.work == PRODUCTS:
            return value + self.bias if len(self.others) > 1 else value
        if form.work == MEANS:
            size = value.dtype.itemsize
            height = load_one(
                self.emitter, offset(builder, self.others[0], builder.mul(row, number(size))), value.dtype
            )
            width = load(self.emitter, offset(builder, self.others[1], builder.mul(column, number(size))), value.dtype)
            return value / (height * width)
        return value

    def _store(self, value: Lanes, at: Any, column: Any) -> None:
        """Write to the row of results that begins at ``at``."""
        builder, dtype = self.builder, self.form.dtypes[-1]
        if not self.form.is_narrow:
            store(value, offset(builder, at, builder.mul(column, number(dtype.itemsize))), dtype)
            return
        after = offset(builder, at, number(self.form.lanes * dtype.itemsize))
        with builder.if_else(builder.icmp_unsigned("<=", after, self.stop)) as (whole, part):
            with whole:  # what this is too much is in the next row, which comes later
                store(value, at, dtype)
            with part:
                mask = lanes_inside(self.emitter, number(0), self.layout.result_width)
                masked_store(self.emitter, narrowed(value, dtype), at, mask)


def _identity(work: str, dtype: AnyDType) -> Any:
    if work != MAXIMA:
        return 0  # of columns, too: what is in the padding
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _most(builder: Any, x: Any, y: Any) -> Any:
    return builder.select(builder.icmp_signed(">", x, y), x, y)
