"""How a broadcasting, pointwise computation is cut into blocks that fit into a cache.

This is only the arithmetic: which axes can be merged, and where the blocks lie.
It works on shapes, strides and positions, not on arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product
from typing import NamedTuple

Shape = tuple[int, ...]
Index = tuple[slice, ...]


class Layout(NamedTuple):
    """An operand in an iteration space: its strides there, in bytes (0 for broadcast axes), and its element size."""

    strides: Shape
    itemsize: int


def layout(shape: Shape, strides: Shape, itemsize: int, space: Shape) -> Layout:
    """The layout of an operand that broadcasts to ``space``."""
    missing = len(space) - len(shape)
    found = [0 if n == 1 else stride for n, stride in zip(shape, strides)]
    return Layout((*(0,) * missing, *found), itemsize)


def merge_axes(space: Shape, operands: Sequence[Layout]) -> tuple[Shape, list[Shape]] | None:
    """Merge neighbouring axes where every operand allows it.

    Returns:
        The merged space, and for each operand its shape in it, with 1 for broadcast axes. None if the elements of
        some operand are not contiguous along the last axis, so that blocks of it would be slow to read.
    """
    # From the last axis to the first: [size, strides of the operands].
    axes: list[tuple[int, list[int]]] = []
    for axis in reversed(range(len(space))):
        n = space[axis]
        if n == 1:
            continue
        strides = [operand.strides[axis] for operand in operands]
        if axes and all(s == inner * axes[-1][0] for s, inner in zip(strides, axes[-1][1])):
            axes[-1] = (n * axes[-1][0], axes[-1][1])
        else:
            axes.append((n, strides))
    if not axes:
        return None
    if any(stride not in (0, operand.itemsize) for stride, operand in zip(axes[0][1], operands)):
        return None
    axes.reverse()
    merged = tuple(n for n, _ in axes)
    shapes = [tuple(n if strides[i] else 1 for n, strides in axes) for i in range(len(operands))]
    return merged, shapes


def broadcasts_into(shape: Shape, space: Shape) -> bool:
    """Whether an operand of ``shape`` has, or is repeated to have, an element for each of ``space``, and no more."""
    return len(shape) <= len(space) and all(n in (1, size) for n, size in zip(shape[::-1], space[::-1]))


def blocks(space: Shape, most: int) -> list[Index]:
    """Cut ``space`` into blocks of about equal size of up to ``most`` elements, in C order.

    As many inner axes as fit stay whole. The axis before them is cut into runs; along each axis before that, a block
    has a single index.
    """
    inner, axis = 1, len(space) - 1
    while axis > 0 and inner * space[axis] <= most:
        inner *= space[axis]
        axis -= 1
    parts = -(-space[axis] // max(1, most // inner))
    ends = [space[axis] * i // parts for i in range(parts + 1)]
    runs = [slice(a, b) for a, b in pairwise(ends)]
    outer = [[slice(i, i + 1) for i in range(n)] for n in space[:axis]]
    whole = tuple(slice(0, n) for n in space[axis + 1 :])
    return [(*index, *whole) for index in product(*outer, runs)]


def extents(index: Index) -> Shape:
    """The shape of a block."""
    return tuple(s.stop - s.start for s in index)


def within(index: Index, shape: Shape) -> Index:
    """The part of an operand of ``shape`` that belongs to the block at ``index``."""
    return tuple(slice(0, 1) if n == 1 else s for s, n in zip(index, shape))
