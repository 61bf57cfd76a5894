"""Convolutions as products of what each window sees with the weights, features side by side.

For a few positions of the result, and where windows are further apart than vectors reach (`irc.native.convolutions`
has positions side by side). Numbers that a window sees are read from where they lie, of an image with its padding: each
at the place of the window plus its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.inner_loops import OneCall
from irc.native.kernels import Call
from irc.native.moves import call_for_rows
from irc.native.panels import SIZE, lanes_of_panel
from irc.native.products import call_for_windows, packed_floats, packed_form
from irc.runtime.array_memory import ArrayType
from irc.runtime.kernels.support import check_size, scratch
from irc.runtime.kernels.windows import Storage, outputs, storage

if TYPE_CHECKING:
    from irc.runtime.kernels.windows import Axes

_GATHERED = 3
"""What it takes to read a number by its place, in products of a vector."""

MOST_PLACES = 1 << 18
"""Positions, or numbers that a window sees, whose places are kept."""

MOST_STORED = 1 << 20
"""Elements of an image with its padding: of more, the copy is not in the cache."""


class ConvolutionOfRows(NamedTuple):
    """How images of some shape are convolved.

    Attributes:
        call: takes an image, both tables of places, packed weights, packed bias, the result.
        stored: how an image is stored.
        places: of the windows, then of what one sees, in bytes.
        row: bytes of a row of an image.
    """

    call: Call
    stored: Storage
    places: tuple[Array, Array]
    row: int

    @property
    def purpose(self) -> str:
        """What else than the weights decides how they are packed."""
        return "rows"

    def packed_form(self, w: Array) -> ArrayType:
        """Of the weights that `packed` makes."""
        return packed_form(w[0].size, len(w))

    def packed(self, w: Array, b: Array | None, weights: Array | None = None) -> tuple[Array, ...]:
        """The weights, unless they are given, and the bias as code reads them."""
        return packed_floats(w.reshape(len(w), -1).T, b, weights)

    def compute(self, weights: tuple[Array, ...]) -> OneCall | None:
        """What convolves one image with packed weights; None if images are stored with their padding."""
        return OneCall(self.call, self.of_stored(weights)) if self.stored.shape is None else None

    def of_stored(self, weights: tuple[Array, ...]) -> tuple[Array, ...]:
        """What `call` takes besides an image with its padding and the result."""
        return *self.places, *weights

    def padding(self) -> tuple[Call, int] | None:
        """The call that stores an image with padding, and its bytes; None if only rows' ends are padded."""
        how = self.stored
        if how.shape is None or len(how.shape) != 2:
            return None
        rows, size = how.shape[0], how.shape[-1]
        filled, source = how.filled[1], how.source[1]
        if source.start:
            return None
        width, whole = (SIZE * (filled.stop - filled.start), SIZE * size)
        return call_for_rows(rows, width, whole, SIZE * filled.start, self.row, fills=True), rows * whole

    def run(self, x: Array, weights: tuple[Array, ...], out: Array) -> bool:
        """Whether ``out`` is the result."""
        run, constants = self.call.run, self.of_stored(weights)
        return all(run((self._image(image), *constants, result)) for image, result in zip(x, out))

    def _image(self, x: Array) -> Array:
        how = self.stored
        if how.shape is None:
            return np.ascontiguousarray(x)
        made = scratch("stored", how.shape, x.dtype)
        made.fill(0)
        np.copyto(made[how.filled], x[how.source])
        return made


def are_few(positions: int, features: int) -> bool:
    """Whether to have features side by side is less work than to have positions so."""
    lanes = lanes_of_panel()
    return (-(-features // lanes) + _GATHERED) * positions < -(-positions // lanes) * features


def convolution_of_rows(x: Array, w: Array, axes: Axes, positions: int) -> ConvolutionOfRows | None:
    """How to convolve ``x`` (N, C, ...) with ``w`` (O, C, ...) by rows; None if images are large."""
    depth = w[0].size
    call = call_for_windows(positions, depth, len(w))
    how = storage(axes, 0, axes[0].out, x.shape[1], x.itemsize)
    if call is None or max(positions, depth) > MOST_PLACES:
        return None
    if how.shape is not None:
        if np.prod(how.shape, dtype=np.float64) > MOST_STORED:
            return None
        check_size(how.shape, x.dtype)
    kernel, rank = how.columns[: len(axes) + 1], len(axes) + 1
    seen = _places(kernel, how.strides[:rank], 0)
    windows = _places(outputs(axes), how.strides[rank:], how.offset)
    return ConvolutionOfRows(call, how, (windows, seen), SIZE * x.shape[-1])


def _places(shape: Sequence[int], strides: Sequence[int], first: int) -> Array:
    """Bytes from the beginning to each element of an array with these strides, in C order."""
    made: Array = np.full((), first, np.int64)
    for size, stride in zip(shape, strides):
        made = np.add.outer(made, np.arange(size) * stride)
    return made.reshape(-1)
