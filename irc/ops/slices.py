"""Lengths of slices and ranges, and what the bounds of ONNX's Slice mean."""

from __future__ import annotations

import math

from irc.ir.polynomials import is_positive, is_size, minus, plus, times
from irc.ir.types import Dim


def bounds(start: int, end: int, step: int, size: int) -> slice:
    """Python's slice of ``size`` elements that is equal to Slice with these bounds (any ``step`` but 0).

    There is one difference: backwards from a start before the first element, Python returns nothing; Slice starts at
    the first element, as it clamps a start to ``[0, size - 1]`` (Slice-13; ONNX Runtime does so in all versions).
    """
    return slice(max(start, -size) if step < 0 else start, end, step)


def range_length(start: float, limit: float, step: float) -> int:
    """The count of numbers from ``start`` up to, excluding, ``limit``: exact for integers."""
    if isinstance(start, int) and isinstance(limit, int) and isinstance(step, int):
        return max(0, -((start - limit) // step))
    return max(0, math.ceil((limit - start) / step))


def sliced(whole: Dim, start: Dim, end: Dim, step: int) -> Dim:
    """Length of ``start:end:step`` on an axis of size ``whole``; an end of 2**31 or more means the axis's end."""
    if isinstance(whole, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(*bounds(start, end, step, whole).indices(whole)))
    if step != 1:
        return None
    first, last = _position(whole, start), whole if isinstance(end, int) and end >= 1 << 31 else _position(whole, end)
    count = minus(last, first)
    return count if is_size(count) else 0 if is_size(times(count, -1)) else None


def _position(whole: Dim, at: Dim) -> Dim:
    """The position that ``at``, the start or end of a slice, means on an axis of size ``whole``; None if unknown."""
    if is_positive(times(at, -1)):
        at = plus(whole, at)
        return at if is_size(at) else 0 if is_size(times(at, -1)) else None
    if not is_size(at):
        return None
    return at if is_size(minus(whole, at)) else whole if is_size(minus(at, whole)) else None
