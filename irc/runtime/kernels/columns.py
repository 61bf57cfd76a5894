"""Columns of an image: what each window of a convolution sees, side by side for a matrix product.

The image is stored with its padding, so that all windows are one strided view of
it, and copied from there at once. Where windows overlap, each number is read by
several taps of the kernel; if the windows also have a stride, the image is stored by
its *phases*, the positions that are equal modulo the stride: then a tap reads
neighbours, whatever the stride and dilation, and the stride is dealt with once.
Machine code needs neither.
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from irc.runtime.array_memory import c_strides
from irc.runtime.bounds import CURRENT, pace
from irc.runtime.kernels.support import Array, scratch
from irc.runtime.kernels.windows import Axes, Axis, Sizes, outputs, pairing

PACE_ELEMENTS = 1 << 23
"""Of more columns than this, those of each tap are copied by themselves: a run under limits looks at the clock between
them."""

WORTH_PHASES = 1 << 16
"""Of fewer columns, phases are not worth the calls that make them; measured."""

MOST_PHASES = 8
"""Along an axis; with a larger stride, the numbers that a tap reads lie in cache lines of their own anyhow."""

Index = tuple[slice, ...]


class Part(NamedTuple):
    """One phase, and what the windows see of it."""

    filled: Index
    """where in the phase the image is"""
    source: Index
    """which part of the image this is"""
    which: Index
    """where the taps that see the phase are in the columns"""
    shape: Sizes
    """of what they see: (C, taps..., outputs...)"""
    offset: int
    """where that begins in what is stored, in bytes"""
    strides: Sizes


class Storage(NamedTuple):
    """How an image (C, spatial...) is stored for some rows of outputs."""

    shape: Sizes | None
    """(phases, C, positions...); None if the windows are those of the image as it is"""
    is_padded: bool
    parts: tuple[Part, ...]
    columns: Sizes
    """(C, kernel..., outputs...)"""


def columns(x: Array, axes: Axes, start: int, count: int) -> Array:
    """What the windows see of ``x`` (C, spatial...), in C order, at ``count`` rows of outputs, from ``start`` on.

    Returns (C, kernel..., count, outputs...), in scratch memory.
    """
    how = storage(axes, start, count, x.shape[0], x.itemsize)
    made = scratch("columns", how.columns, x.dtype)
    if CURRENT.scope.loops.columns(x, axes, start, made):
        return made
    stored = x if how.shape is None else _stored(x, how.shape, how)
    for part in how.parts:
        seen = np.ndarray(part.shape, x.dtype, stored, part.offset, part.strides)
        target = made[part.which]
        if made.size <= PACE_ELEMENTS:
            np.copyto(target, seen)
            continue
        for tap in np.ndindex(*seen.shape[1 : len(axes) + 1]):
            pace()
            np.copyto(target[(slice(None), *tap)], seen[(slice(None), *tap)])
    return made


def _stored(x: Array, shape: Sizes, how: Storage) -> Array:
    """``x`` (C, spatial...) by phases, in scratch memory."""
    stored = scratch("stored", shape, x.dtype)
    if how.is_padded:
        stored.fill(0)
    for part, phase in zip(how.parts, stored):
        np.copyto(phase[part.filled], x[part.source])
    return stored


@lru_cache(maxsize=1024)
def storage(axes: Axes, start: int, count: int, channels: int, itemsize: int) -> Storage:
    """How ``channels`` of an image are stored for ``count`` rows of outputs, from ``start`` on."""
    counts = (count, *outputs(axes[1:]))
    made = (channels, *[a.kernel for a in axes], *counts)
    is_worth = math.prod(made) > WORTH_PHASES and any(_has_phases(a) for a in axes)
    sides = [_side(a, at, n, is_worth) for a, at, n in zip(axes, (start, *[0] * len(axes)), counts)]
    phases = list(itertools.product(*[_taps(a, side.pitch) for a, side in zip(axes, sides)]))
    filled = [
        [pairing(s.begin + t.phase, s.pitch, s.size, a.size) for t, s, a in zip(taps, sides, axes)] for taps in phases
    ]
    is_padded = any(f.stop - f.start < s.size for of_phase in filled for (f, _), s in zip(of_phase, sides))
    if is_padded or any(side.pitch > 1 for side in sides):
        shape, base = (len(phases), channels, *[side.size for side in sides]), 0
        by_phase, *strides = c_strides(shape, itemsize)
    else:
        shape, by_phase, strides = None, 0, [*c_strides((channels, *[a.size for a in axes]), itemsize)]
        base = sum([side.begin * s for side, s in zip(sides, strides[1:])])
    by_position = strides[1:]
    steps = [side.step for side in sides]
    parts = [
        Part(
            filled=(slice(None), *[target for target, _ in of_phase]),
            source=(slice(None), *[source for _, source in of_phase]),
            which=(slice(None), *[t.which for t in taps]),
            shape=(channels, *[t.number for t in taps], *counts),
            offset=base + number * by_phase + sum([t.first * s for t, s in zip(taps, by_position)]),
            strides=tuple(n * s for n, s in zip((1, *[t.step for t in taps], *steps), (*strides, *by_position))),
        )
        for number, (taps, of_phase) in enumerate(zip(phases, filled))
    ]
    return Storage(shape, is_padded, tuple(parts), made)


class _Side(NamedTuple):
    """How one axis of an image is stored."""

    begin: int
    """the position of the image, or of its padding, where the first window begins"""
    pitch: int
    """of the positions that are equal modulo this, each phase has some"""
    step: int
    """from a window to the next, in positions of a phase"""
    size: int
    """positions of a phase that windows see"""


def _side(axis: Axis, start: int, count: int, is_worth: bool) -> _Side:
    """How ``axis`` is stored for ``count`` outputs, from ``start`` on, if phases are worth it, or not."""
    pitch = axis.stride if is_worth and (_has_phases(axis) or axis.kernel == 1) else 1
    step = axis.stride // pitch
    size = (count - 1) * step + (axis.reach - 1) // pitch + 1
    return _Side(start * axis.stride - axis.begin, pitch, step, size)


def _has_phases(axis: Axis) -> bool:
    return 1 < axis.stride < axis.reach and axis.stride <= MOST_PHASES


class _Taps(NamedTuple):
    """The taps of a kernel, on one axis, that see positions of one phase."""

    phase: int
    which: slice
    first: int
    """the position that the first of them sees at the first output"""
    step: int
    """from one of them to the next, in positions"""
    number: int


def _taps(axis: Axis, pitch: int) -> list[_Taps]:
    """Those on one axis for each phase that they see, of the positions that are equal modulo ``pitch``."""
    common = math.gcd(pitch, axis.dilation)
    found: list[_Taps] = []
    for tap in range(min(pitch // common, axis.kernel)):
        which = slice(tap, None, pitch // common)
        first, phase = divmod(tap * axis.dilation, pitch)
        found.append(_Taps(phase, which, first, axis.dilation // common, len(range(axis.kernel)[which])))
    return found
