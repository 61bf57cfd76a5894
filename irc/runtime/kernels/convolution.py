"""Conv, ConvTranspose and Col2Im.

A pointwise convolution (1×1, stride 1, no padding) is a matrix product on the
input itself. For every other one the input is gathered into columns, a block of
output rows at a time so that the columns stay in cache, and multiplied with the
weights; groups are a batch of matrix products. Where a group has one filter, as in
depthwise convolution, that would be the product of a vector with many columns: then
the taps of one row of the kernel alone are gathered, and multiplied with all rows of
it; the products are added where they belong. (As shifted multiply-adds on NumPy, depthwise
convolution was measured no faster than with columns.) Machine code for it makes neither.

A transposed convolution is cut into phases, the positions of the result modulo the strides: each of
them is a convolution with some of the taps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.runtime.bounds import CURRENT, check_bytes, check_work, pace
from irc.runtime.kernels.numerics import narrowed, product, widened
from irc.runtime.kernels.registry import PREPARES, Kernel, computes, kernel
from irc.runtime.kernels.support import Array, check_size, in_c_order, ints, is_half, scratch, shapes_of
from irc.runtime.kernels.windows import (
    PACE_ELEMENTS,
    Axes,
    Axis,
    Sizes,
    Window,
    columns,
    outputs,
    pairing,
    resolver,
    split_padding,
)
from irc.runtime.values import is_array

COLUMN_ELEMENTS = 1 << 19
"""Size of a block of columns: small enough for the cache, large enough for the matrix product to be efficient."""

TAP_BYTES = 256
"""What is kept for one tap along the first axis of a kernel, at most."""

COLUMNS = 512
"""Least number of columns in a block: with fewer, reading the weights once a block would cost too much."""

WORTH_ROWS = 1 << 15
"""Of fewer columns, to make those of all taps at once is faster for depthwise convolution, too; measured."""


def check_operands(x: Array, w: Array, b: Array | None, group: int, *, transposed: bool = False) -> None:
    """Error unless weights (O, C / group, ...), or transposed (C, O / group, ...), fit input and bias."""
    if x.ndim < 3 or w.ndim != x.ndim:
        wanted = "both must have the same number of dimensions, at least 3 (batch, channels, spatial axes)"
        raise Error("IRC421", f"the input and the weights have shapes {shapes_of(x, w)}: {wanted}")
    channels, features = w.shape[1] * group, w.shape[0]
    if transposed:
        channels, features = features, channels
    if group < 1 or x.shape[1] != channels or channels % group or features % group:
        taken = f"weights of shape {list(w.shape)} in {group} groups take {channels} channels to {features}"
        raise Error("IRC421", f"{taken}: the input has {x.shape[1]} channels, and {group} must divide both numbers")
    if b is not None and b.shape != (features,):
        raise Error("IRC421", f"the bias has shape {list(b.shape)}, expected [{features}]")


@computes("onnx::Conv", resolve=resolver)
def conv(
    x: Array, w: Array, b: Array | None = None, out: Array | None = None, *, resolve: Any, group: int = 1
) -> Array:
    return convolve(x, w, b, group, resolve(x.shape[2:], w.shape[2:]), out)


def convolve(
    x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array | None = None, exact: bool = False
) -> Array:
    """Cross-correlation of ``x`` (N, C, spatial...) with ``w`` (O, C / group, kernel...), plus ``b`` (O).

    Returns (N, O, out...) of x's dtype, in ``out`` if given: in C order, sharing with no operand.
    float16 and smaller floats are computed in float32, as which weights and bias may be given, too. Where operands are
    integers whose sums are ``exact`` in any order, so are the results.
    """
    check_operands(x, w, b, group)
    if out is None:
        out = np.empty(check_size((x.shape[0], w.shape[0], *outputs(axes)), x.dtype), x.dtype)
    check_work(out.size * math.prod(w.shape[1:]))
    x = in_c_order(x)
    if w.shape[1] == 1 and out.size and CURRENT.scope.loops.depthwise(x, w, b, axes, out):
        return out
    if is_half(x.dtype):
        bias = None if b is None else widened(b)
        narrowed(convolve(widened(x), widened(w), bias, group, axes), x.dtype, out)
    elif group == 1 and repeats_one_filter(w):
        # As in test models without real weights: all features are the same to the last bit, so that none wins.
        bias = 0 if b is None else b.reshape(-1, *[1] * len(axes))
        np.add(convolve(x, w[:1], None, group, axes), bias, out=out, dtype=x.dtype)
    elif CURRENT.scope.loops.convolution(x, w, b, group, axes, out, exact):
        pass
    elif all(a.trivial for a in axes):
        _pointwise(x, w, b, group, out)
    elif w.shape[0] == group and w[0].size * out.size >= WORTH_ROWS and _has_rows(w, axes[0]):
        _by_rows(x, w, b, group, axes, out)
    else:
        _columns(x, w, b, group, axes, out)
    return out


def repeats_one_filter(w: Array) -> bool:
    """Whether ``w`` (O, C / group, ...) is several equal filters; for most others, two numbers tell."""
    if w.shape[0] < 2 or not w.size:
        return False
    return w.strides[0] == 0 or (w.item(0) == w.item(w.size - w.size // w.shape[0]) and bool((w == w[:1]).all()))


def _has_rows(w: Array, first: Axis) -> bool:
    """Whether filters have rows of several numbers that mostly read within one row of the image."""
    return (
        w.size > w.shape[0] * first.kernel and first.stride < first.kernel and first.reach <= first.out * first.stride
    )


def _pointwise(x: Array, w: Array, b: Array | None, group: int, out: Array) -> None:
    images, channels, features = x.shape[0], x.shape[1], w.shape[0]
    length = math.prod(x.shape[2:])
    source = x.reshape(images, group, channels // group, length)
    weights = w.reshape(group, features // group, channels // group)
    result = out.reshape(images, group, features // group, length)
    bias = None if b is None else b.reshape(group, features // group, 1)
    # In blocks, so that the bias is added while the result is still in cache.
    step = length if bias is None else share(length, COLUMN_ELEMENTS // max(1, features))
    for start in range(0, length, max(1, step)):
        block = result[..., start : start + step]
        product(weights, source[..., start : start + step], block)
        if bias is not None:
            block += bias


def _columns(x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array) -> None:
    """Convolution by columns, in blocks of images, groups or output rows as memory allows."""
    images, channels, features = x.shape[0], x.shape[1], w.shape[0]
    rows, *inner = outputs(axes)
    width = math.prod(inner)
    depth = channels * math.prod([a.kernel for a in axes])
    weights = w.reshape(group, features // group, depth // group)
    bias = None if b is None else b.reshape(group, features // group, 1)
    step = share(rows, max(COLUMN_ELEMENTS // max(1, depth), COLUMNS) // max(1, width))
    most = PACE_ELEMENTS // max(1, depth // group * min(step, rows) * width)
    groups = min(group, max(1, most))
    several = share(images, COLUMN_ELEMENTS // max(1, depth * rows * width)) if groups == group and step == rows else 1
    source = x.reshape(images, group, channels // group, *x.shape[2:])
    results = out.reshape(images, group, features // group, rows * width)
    for image in range(0, images, several):
        for first in range(0, group, groups):
            block = slice(image, image + several), slice(first, first + groups)
            filters, shift, target = weights[block[1]], None if bias is None else bias[block[1]], results[block]
            channels_of_all = _planes(source[block])
            for start in range(0, rows, step):
                count = min(step, rows - start)
                pace()
                seen = columns(channels_of_all, axes, start, count)
                result = target[..., start * width : (start + count) * width]
                product(filters, seen.reshape(*target.shape[:2], depth // group, count * width), result)
                if shift is not None:
                    result += shift


def _by_rows(x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array) -> None:
    """One filter a group: `_columns` of the taps of a single row of the kernel, at all rows of the image.

    One product makes the sums of every row of the kernel of them, which are added where they belong. The rows of the
    image lie by phases, each with its rows of the kernel.
    """
    first, channels = axes[0], x.shape[1] // group
    check_bytes(TAP_BYTES * first.kernel)
    rows, *inner = outputs(axes)
    width, depth = math.prod(inner), w.size // (group * first.kernel)
    weights = w.reshape(group, channels, first.kernel, -1).swapaxes(1, 2).reshape(group, first.kernel, depth)
    steps = [divmod(t * first.dilation, first.stride) for t in range(first.kernel)]
    parts: list[tuple[Axes, Array, list[int]]] = []
    for phase in sorted({p for _, p in steps}):
        lines = (first._replace(kernel=1, begin=first.begin - phase), *axes[1:])
        parts.append((lines, weights[:, [p == phase for _, p in steps]], [o for o, p in steps if p == phase]))
    bias = None if b is None else b.reshape(group, 1, 1)
    images = x.shape[0]
    results = out.reshape(images, group, rows, width)
    size = max(1, (depth + first.kernel) * width)  # of columns and sums, for one row of a group
    margin = first.reach // first.stride  # rows of the image beyond those of the output
    step = share(rows, max(margin, COLUMN_ELEMENTS // size - margin))
    groups = max(1, COLUMN_ELEMENTS // (size * (step + margin)))
    several = share(images, groups // group) if groups >= group and step == rows else 1
    source = x.reshape(images, group, channels, *x.shape[2:])
    blocks = itertools.product(range(0, images, several), range(0, rows, step), range(0, group, groups))
    for image, start, number in blocks:
        pace()
        which = slice(image, image + several), slice(number, number + groups)
        block = results[which][:, :, start : start + step]
        np.copyto(block, 0 if bias is None else bias[which[1]])
        seen = _planes(source[which])
        for lines, filters, offsets in parts:
            count = block.shape[2] + offsets[-1]
            taps = columns(seen, lines, start, count).reshape(*block.shape[:2], depth, count * width)
            sums = scratch("sums", (*block.shape[:2], len(offsets), count, width), x.dtype)
            np.matmul(filters[which[1]], taps, out=sums.reshape(*block.shape[:2], len(offsets), count * width))
            for i, offset in enumerate(offsets):
                block += sums[:, :, i, offset : offset + block.shape[2]]


def _planes(x: Array) -> Array:
    """``x`` (N, G, C, spatial...) as (N G C, spatial...)."""
    return x.reshape(math.prod(x.shape[:3]), *x.shape[3:])


def share(total: int, most: int) -> int:
    """The size of equal parts of ``total``, each at most ``most`` (at least 1)."""
    parts = -(-total // max(1, most))
    return max(1, -(-total // max(1, parts)))


# -- ConvTranspose -------------------------------------------------------------


@kernel("onnx::ConvTranspose")
def conv_transpose(node: Node) -> Kernel:
    window, group = Window.of(node), int(node.attributes.get("group", 1))
    adjust, wanted = (tuple(node.attributes.get(name) or ()) for name in ("output_padding", "output_shape"))

    def run(x: Array, w: Array | Sequence[Array], b: Array | None = None, out: Array | None = None) -> Array:
        weights, *filters = [w] if is_array(w) else w
        check_operands(x, weights, b, group, transposed=True)
        axes = transposed_axes(window, x.shape[2:], weights.shape[2:], adjust, wanted)
        return transpose_convolve(x, weights, b, group, axes, filters, out)

    def prepare(w: Array, b: Array | None = None) -> list[Array]:
        rank = w.ndim - 2
        if rank < 1 or len(w) % max(1, group) or (b is not None and b.shape != (w.shape[1] * group,)):
            return [w]  # `run` says what is wrong
        _, strides, dilations, _ = window.parameters(rank, w.shape[2:])
        return [w, *_filters_by_phase(w, b, group, list(zip(w.shape[2:], strides, dilations)))]

    setattr(run, PREPARES, ((1, 2), prepare))
    return run


def transposed_axes(window: Window, sizes: Sizes, kernel: Sizes, adjust: Sizes, wanted: Sizes) -> Axes:
    """The axes of the transposed convolution: of each, ``out`` is the larger side, the result.

    ``wanted`` is the attribute ``output_shape``: of the spatial axes, or of all.
    """
    rank = len(sizes)
    shape, strides, dilations, pads = window.parameters(rank, kernel)
    adjust = adjust or (0,) * rank
    if len(adjust) != rank or min(adjust) < 0:
        raise Error("IRC421", f"output_padding is {list(adjust)}: it needs {rank} entries, none negative")
    if wanted and len(wanted) not in (rank, rank + 2):
        raise Error("IRC421", f"output_shape is {list(wanted)}: the input has {rank} spatial axes")
    targets: tuple[int | None, ...] = wanted[-rank:] if wanted else (None,) * rank
    axes: list[Axis] = []
    for i, (size, k, s, d, target) in enumerate(zip(sizes, shape, strides, dilations, targets, strict=True)):
        full = (size - 1) * s + (k - 1) * d + 1 + adjust[i]
        begin, end = pads[i], pads[rank + i]
        if target is None and window.auto_pad.startswith("SAME"):
            target = size * s
        if target is not None:
            begin, end = split_padding(max(0, full - target), window.auto_pad)
        out = full - begin - end if target is None else target
        axes.append(Axis(size, out, k, s, d, begin, end))
    return tuple(axes)


class _Taps(NamedTuple):
    """Taps of a kernel along an axis that are convolved with stride 1.

    Attributes:
        number: of taps.
        first: how many positions before its own the first of them reads.
        step: how many further each next one does.
    """

    number: int
    first: int
    step: int

    def source(self, axis: Axis) -> tuple[slice, Axis]:
        """The part of the input along ``axis`` that is convolved for phases with these taps, and how."""
        before, reach = axis.begin // axis.stride, (self.number - 1) * self.step
        out, begin = (axis.begin + axis.out - 1) // axis.stride + 1 - before, self.first + reach - before
        part = slice(max(0, -begin), None)
        size, begin = max(0, axis.size - part.start), max(0, begin)
        return part, Axis(size, out, self.number, 1, self.step, begin, max(0, out + reach - begin - size))


def _taps_by_phase(kernel: int, stride: int, dilation: int) -> dict[_Taps, list[tuple[int, list[int]]]]:
    """The phases of the result along an axis, each with its taps, by how these are convolved.

    Tap t of input i adds to i * stride + t * dilation. So each phase, a position modulo the stride, has taps of its
    own, and is a convolution with them.
    """
    phases: dict[int, list[int]] = {}
    for tap in range(kernel):
        phases.setdefault(tap * dilation % stride, []).append(tap)
    found: dict[_Taps, list[tuple[int, list[int]]]] = {}
    for phase, taps in phases.items():
        first, *others = [tap * dilation // stride for tap in taps]
        step = others[0] - first if others else 1
        found.setdefault(_Taps(len(taps), first, step), []).append((phase, taps))
    return found


def _filters_by_phase(w: Array, b: Array | None, group: int, axes: Sequence[tuple[int, int, int]]) -> list[Array]:
    """Filters, and perhaps biases, for phases with the same `_Taps` (kernel, stride, dilation).

    The filters are (O phases, C / group, taps...), as `convolve` takes them.
    """
    found: list[Array] = []
    wide = widened(w)
    for phases in itertools.product(*[_taps_by_phase(*axis).values() for axis in axes]):
        parts = [wide[(..., *np.ix_(*[taps[::-1] for _, taps in each]))] for each in itertools.product(*phases)]
        depth, features, taps = len(w) // group, w.shape[1] * len(parts), parts[0].shape[2:]
        of_groups = np.stack(parts, axis=2).reshape(group, depth, features, *taps)
        filters = np.moveaxis(of_groups, 1, 2).reshape(group * features, depth, *taps)
        found += [filters] if b is None else [filters, np.repeat(widened(b), len(parts))]
    return found


def transpose_convolve(
    x: Array,
    w: Array,
    b: Array | None,
    group: int,
    axes: Axes,
    filters: Sequence[Array] = (),
    out: Array | None = None,
) -> Array:
    """Transposed convolution of ``x`` (N, C, spatial...) with ``w`` (C, O / group, ...), plus ``b``.

    float16 and smaller floats are computed in float32.

    Args:
        x: the input.
        w: the filters.
        b: the biases.
        group: into how many groups channels fall.
        axes: see `transposed_axes`.
        filters: those of all phases, and biases, if they are known.
        out: for the result; a new array by default.
    """
    shape = check_size((len(x), w.shape[1] * group, *outputs(axes)), x.dtype)
    check_bytes(TAP_BYTES * math.prod(a.kernel for a in axes))
    kernels = [(a.kernel, a.stride, a.dilation) for a in axes]
    found = [_taps_by_phase(*each) for each in kernels]
    sources = [{taps: taps.source(a) for taps in each} for a, each in zip(axes, found, strict=True)]
    has_all = all(sum(map(len, each.values())) == a.stride for a, each in zip(axes, found, strict=True))
    result = np.empty(shape, x.dtype) if out is None else out
    if not (x.size and has_all and all(a.size for each in sources for _, a in each.values())):
        result[...] = 0 if b is None else b.reshape(-1, *(1,) * len(axes))
    wide = widened(x)
    given = iter(filters or _filters_by_phase(w, b, group, kernels))
    for members in itertools.product(*[each.items() for each in found]):
        weights, bias = next(given), None if b is None else next(given)
        parts, source = zip(*[each[taps] for each, (taps, _) in zip(sources, members, strict=True)], strict=True)
        if not x.size or not result.size or not all(a.size for a in source):
            continue  # sums of nothing
        is_whole = all(a.stride == 1 for a in axes)
        made = convolve(
            wide[(..., *parts)], weights, bias, group, source, result if is_whole and wide.dtype == x.dtype else None
        )
        phases = list(itertools.product(*[[phase for phase, _ in each] for _, each in members]))
        if is_whole:
            return narrowed(made, x.dtype, result)
        made = made.reshape(*shape[:2], len(phases), *made.shape[2:])
        for number, phase in enumerate(phases):
            pace()
            places = [
                pairing(p - a.begin % a.stride, a.stride, n.out, a.out)
                for a, n, p in zip(axes, source, phase, strict=True)
            ]
            result[(..., *[to for _, to in places])] = made[:, :, number][(..., *[of for of, _ in places])]
    return result


# -- Col2Im --------------------------------------------------------------------


@computes("onnx::Col2Im")
def col2im(
    x: Array, image: Array, block: Array, *, dilations: Any = None, strides: Any = None, pads: Any = None
) -> Array:
    """Of blocks [n, c * elements of a block, blocks] the sums where they overlap, [n, c, *image]."""
    sizes, kernel_sizes = ints(image), ints(block)
    rank = len(sizes)
    dilations, strides, pads = dilations or [1] * rank, strides or [1] * rank, pads or [0] * (2 * rank)
    lengths = (len(kernel_sizes), len(dilations), len(strides), len(pads))
    if lengths != (rank, rank, rank, 2 * rank) or not rank or min(*dilations, *strides) < 1 or min(pads) < 0:
        given = f"dilations {dilations}, strides {strides} and pads {pads}"
        raise Error("IRC421", f"block_shape {kernel_sizes}, {given} do not fit an image of shape {sizes}")
    if min(kernel_sizes) < 1 or min(sizes) < 1:
        raise Error("IRC422", f"an image of shape {sizes} has no blocks of shape {kernel_sizes}")
    padded = [s + pads[i] + pads[i + rank] for i, s in enumerate(sizes)]
    sides = zip(padded, kernel_sizes, dilations, strides, strict=True)
    blocks = [(size - (k - 1) * d - 1) // s + 1 for size, k, d, s in sides]
    taps = math.prod(kernel_sizes)
    if x.ndim != 3 or x.shape[1] % taps or x.shape[2] != math.prod(blocks) or min(blocks) < 1:
        wanted = f"[n, a multiple of {taps}, {math.prod(blocks) if min(blocks) > 0 else 'a number of blocks'}]"
        raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be {wanted}")
    axes = zip(sizes, blocks, kernel_sizes, strides, dilations, pads[:rank], pads[rank:], strict=True)
    return from_columns(x, tuple([Axis(*axis) for axis in axes]))


def taps_of(axes: Axes) -> Iterator[tuple[int, list[slice], list[slice]]]:
    """Yield each tap's number, the outputs for which it falls inside the input, and where it reads."""
    for number, tap in enumerate(np.ndindex(*[a.kernel for a in axes])):
        pairs = [a.reads(t) for a, t in zip(axes, tap, strict=True)]
        yield number, [to for to, _ in pairs], [of for _, of in pairs]
        pace()


def from_columns(x: Array, axes: Axes) -> Array:
    """Images (N, C, spatial...) of the columns of their windows (N, C taps, outputs), added up."""
    taps = math.prod([a.kernel for a in axes])
    columns = x.reshape(len(x), x.shape[1] // taps, taps, *outputs(axes))
    sums = np.zeros(check_size((*columns.shape[:2], *(a.size for a in axes)), x.dtype), x.dtype)
    for number, to, of in taps_of(axes):
        sums[(..., *of)] += columns[(slice(None), slice(None), number, *to)]
    return sums
