"""Calls of the loops that convolve (`irc.native.convolutions`), and the weights packed for them.

Weights are packed once (`irc.native.packed`). Of those that may change, packing would take as long as what it saves.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.convolution_rows import ConvolutionOfRows, are_few, convolution_of_rows
from irc.native.convolutions import LARGEST, POINTWISE, TILES, WINDOWS, Form, Layout, emit_convolution
from irc.native.inner_loops import CheckedCall, OneCall
from irc.native.kernels import Call
from irc.native.packed import PIECES
from irc.native.packing import TAPS, pack
from irc.native.panels import ALIGNMENT, features_at_once, lanes_of_panel
from irc.native.target import current
from irc.native.windows import ONE_PLACE, are_counted
from irc.runtime.array_memory import ArrayType
from irc.runtime.kernels.windows import Axis

if TYPE_CHECKING:
    from irc.runtime.kernels.windows import Axes

SINGLE = np.dtype(np.float32)

SCRATCH = 1 << 20
"""Bytes of work memory for panels that are packed together, if one does not need more."""

WORTH_PARTS = 6
"""Blocks of features, from which on two threads pack the same panels for half of the features each."""

LEAST_ITEM, MOST_ITEMS = 20_000, 8
"""Nanoseconds of work, by estimate, that positions are cut into, for threads, and into how many parts at most."""

MOST_SCRATCH = 1 << 22
"""Bytes of work memory; where a panel needs more, it is not in the cache."""

LEAST_CHANNELS = 12
"""For F(2x2, 3x3): of fewer, transforms take longer than they save."""

_TRANSFORM = 5.0
"""What it takes to transform a tile for a channel, or for a feature, in products of a vector of tiles."""

_PICOSECONDS, _OF_TILES = 20.0, 14.0
"""For a multiplication, by estimate; with tiles, for one that they save."""

LARGEST_BITS = int(np.float32(LARGEST).view(np.int32))
"""The bits of `LARGEST`."""


class Convolution(NamedTuple):
    """How arrays of some shapes are convolved.

    Attributes:
        form: of the code.
        call: takes the input, packed weights, packed bias, the largest magnitude, the result.
        group: into how many groups channels fall.
    """

    form: Form
    call: Call
    group: int

    @property
    def purpose(self) -> tuple[object, ...]:
        """What else than the weights decides how they are packed."""
        return self.group, self.form

    def packed_form(self, w: Array) -> ArrayType:
        """Of the weights that `packed` makes."""
        return packed_form(w, self.group, self.form)

    def packed(self, w: Array, b: Array | None, weights: Array | None = None) -> tuple[Array, ...] | None:
        """The weights and the bias as code reads them: see below."""
        return packed(w, b, self.group, self.form, weights)

    def compute(self, weights: tuple[Array, ...]) -> OneCall | CheckedCall:
        """What convolves one image with packed weights. Tiles may make of the result what is not finite."""
        if self.form.kind == TILES:
            return CheckedCall(self.call, weights, LARGEST_BITS)
        return OneCall(self.call, (*weights, np.zeros(1, np.int32)))

    def run(self, x: Array, weights: tuple[Array, ...], out: Array) -> bool:
        """Whether ``out`` is the result."""
        return self.compute(weights)(x, out)


def convolution_of(
    x: Array, w: Array, group: int, axes: Axes, out: Array, exact: bool = False
) -> Convolution | ConvolutionOfRows | None:
    """How to convolve arrays like these; None if there is no code for it, or it is not worth it.

    Args:
        x: (N, C, spatial...), of which elements of a row lie side by side.
        w: (O, C / group, kernel...).
        group: into how many groups channels fall.
        axes: the windows.
        out: (N, O, spatial...), in C order.
        exact: whether operands are integers whose sums are exact: then tiles, which halve them, are not.
    """
    height, width = (ONE_PLACE, *axes)[-2:]
    depth, features, channels = math.prod(w.shape[1:]), w.shape[0] // group, w.shape[1]
    at_once = features_at_once(features)
    if at_once is None or not out.size:
        return None
    positions = math.prod(out.shape[2:])
    if group == 1 and (width.stride > 2 or are_few(positions, features)):
        return convolution_of_rows(x, w, axes, positions)
    if len(axes) > 2 or width.stride > 2:
        return None
    is_dense = x.strides[-2] == x.shape[-1] * x.itemsize
    if height.trivial and width.trivial and (is_dense or height.size == 1):  # all of a channel is one row
        size = height.size * width.size
        height, width = ONE_PLACE, width._replace(size=size, out=size)
    if not are_counted(height, width):
        return None
    form, positions, row = _form(height, width, channels, features, at_once, exact)
    summed = channels if form.kind == TILES else depth
    panel = form.panel(summed)
    if panel > MOST_SCRATCH:
        return None
    panels, planes, blocks = -(-positions // form.positions), out.shape[0] * group, -(-features // form.features)
    work = out.size * depth
    nanoseconds = work * (_OF_TILES if form.kind == TILES else _PICOSECONDS) / 1000
    wanted = min(MOST_ITEMS, int(nanoseconds / LEAST_ITEM)) // planes
    groups = max(-(-panels // max(1, SCRATCH // panel)), min(panels, wanted))
    together = -(-panels // groups)
    items = planes * -(-panels // together)
    parts = 2 if items in (1, 3) and blocks >= WORTH_PARTS else 1
    layout = Layout(
        panels=panels,
        at_once=together,
        parts=parts,
        groups=group,
        channels=channels,
        image=x.strides[0],
        channel=x.strides[1],
        row=x.strides[-2] if len(axes) == 2 else 0,
        height=height.size,
        width=width.size,
        kernel_height=height.kernel,
        kernel_width=width.kernel,
        down=height.dilation,
        across=width.dilation,
        stride=height.stride,
        top=height.begin,
        left=width.begin,
        positions=positions,
        row_positions=row,
        features=features,
        result_height=height.out,
        result_width=width.out,
        depth=summed,
        blocks=blocks,
        work=max(1, work // (8 * items * parts)),
    )
    name, memory = "irc.convolution", together * panel + ALIGNMENT
    make = partial(emit_convolution, name, form, current())
    call = Call.of_loops(name, f"{name} {form!r}", make, 6, layout, items * parts, nanoseconds, memory)
    return Convolution(form, call, group)


def _form(height: Axis, width: Axis, channels: int, features: int, at_once: int, exact: bool) -> tuple[Form, int, int]:
    """The code, and how many positions it has, in all and in a row."""
    lanes = lanes_of_panel()
    kind = POINTWISE if height.trivial and width.trivial and height.size == 1 else WINDOWS
    direct = Form(kind, at_once, lanes, width.stride), height.out * width.out, width.out
    is_plain = all(a.kernel == 3 and a.stride == a.dilation == 1 for a in (height, width))
    if exact or not is_plain or min(channels, features) < LEAST_CHANNELS:
        return direct
    row = -(-width.out // 2)
    tiles = -(-height.out // 2) * row
    padded = [-(-n // direct[0].positions) for n in (tiles, direct[1])]
    transformed = padded[0] * (16 * channels * features + 16 * _TRANSFORM * (channels + features))
    if transformed >= padded[1] * 9 * channels * features:
        return direct
    return Form(TILES, at_once, lanes, 1), tiles, row


def packed_form(w: Array, group: int, form: Form) -> ArrayType:
    """Of the weights that `packed` makes: (G × blocks, numbers of tiles, K, features of a block)."""
    blocks = -(-(w.shape[0] // group) // form.features)
    rows = (form.numbers, w.shape[1]) if form.kind == TILES else (math.prod(w.shape[1:]),)
    return ArrayType(SINGLE, (group * blocks, *rows, form.features))


def packed(w: Array, b: Array | None, group: int, form: Form, weights: Array | None = None) -> tuple[Array, ...] | None:
    """Weights, unless they are given, of the form above, and biases, as code reads them.

    None if tiles would make numbers of the weights that overflow.
    """
    features, is_tiled = w.shape[0] // group, form.kind == TILES
    if weights is None:
        shape = packed_form(w, group, form).shape
        weights = PIECES.array(shape, SINGLE)
        largest = pack(np.ascontiguousarray(w).reshape(len(w), shape[-2], *[TAPS] * is_tiled), weights, group)
        if is_tiled and not largest <= LARGEST:  # nor is that so of NaN
            return None
    bias = np.zeros((group, len(weights) // group * form.features), SINGLE)
    if b is not None:
        bias[:, :features] = b.reshape(group, features)
    return weights, bias
