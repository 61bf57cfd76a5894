"""Einstein's summation convention, contracted as torch does it, whose order of steps decides how the result lies.

Every operand is brought into one order of axes: those of the result, then those that are summed over. Operands are
contracted from left to right, by a batch of matrix products where both have an axis that no later one has, else
elementwise. Source: ``einsum`` and ``sumproduct_pair``, aten/src/ATen/native/Linear.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops.einsum import Axis, is_equation
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import INT64, is_integral, result_type, wide
from irc.runtime.kernels.aten.operand_kinds import check_kind
from irc.runtime.kernels.aten.registering import aten
from irc.runtime.kernels.matmul import einsum_axes, matrix_product
from irc.runtime.kernels.support import Array, broadcast_shape


@aten("einsum")
def einsum(equation: str, tensors: Sequence[Array], path: Any = None) -> Array:
    """Of one tensor it may be a view. A result is the same by any path."""
    formula = equation.replace(" ", "")
    if not is_equation(formula):
        raise Error("IRC423", f"{equation!r} is not an equation of letters, commas, one '...' a term, and '->'")
    steps = max(2 * (len(tensors) - 1), 1)
    if path is not None and len(path) != steps:
        raise Error("IRC421", f"a path of {len(path)} numbers, but there must be {steps}: two for each product")
    terms, result, sizes = einsum_axes(formula, tensors, sums_ellipsis=True)
    summed = sorted(sizes.keys() - set(result), key=str)
    operands = [_in_order(x, term, [*result, *summed]) for x, term in zip(tensors, terms, strict=True)]
    dtype = result_type(*tensors)
    rank = len(result)
    if len(operands) > 1:
        if summed:
            check_kind("einsum", dtype, "bmm")
        found = _contracted([x.astype(wide(dtype), copy=False) for x in operands], rank)
        return found.reshape(found.shape[:rank]).astype(dtype, copy=False)
    (only,) = operands
    if not summed:
        return only
    dtype = INT64 if is_integral(dtype) else dtype
    found = _sum(only.astype(wide(dtype), copy=False), range(rank, only.ndim))
    return found.reshape(only.shape[:rank]).astype(dtype, copy=False)


def _in_order(x: Array, axes: Sequence[Axis], order: Sequence[Axis]) -> Array:
    """A view of ``x`` with axes in ``order``, of size 1 where it has none; of one that it has twice, the diagonal."""
    once = list(dict.fromkeys(axes))
    if len(once) < len(axes):
        number = {axis: i for i, axis in enumerate(once)}
        x = np.asarray(np.einsum(x, [number[axis] for axis in axes], list(range(len(once)))))
    view = x.transpose([once.index(axis) for axis in order if axis in once])
    return np.asarray(view[(*[slice(None) if axis in once else None for axis in order], ...)])


def _contracted(operands: Sequence[Array], rank: int) -> Array:
    """The product of ``operands``, summed over all axes from ``rank`` on, which are then 1."""
    left, *others = operands
    summed = range(rank, left.ndim)
    left_to_go = {axis: sum(x.shape[axis] != 1 for x in operands) for axis in summed}
    for right in others:
        shared, of_left, of_right = list[int](), list[int](), list[int]()
        for axis in summed:
            has = left.shape[axis] != 1, right.shape[axis] != 1
            if all(has):
                left_to_go[axis] -= 1
            if left_to_go[axis] == 1 and any(has):
                (shared if all(has) else of_left if has[0] else of_right).append(axis)
                left_to_go[axis] = 0
        left = _product(_sum(left, of_left), _sum(right, of_right), shared)
    return left


def _sum(x: Array, axes: Sequence[int]) -> Array:
    return np.asarray(np.add.reduce(x, tuple(axes), keepdims=True), order="C") if axes else x


def _product(a: Array, b: Array, summed: list[int]) -> Array:
    """``a * b``, summed over axes that both have."""
    if not summed:
        out = layout.empty(broadcast_shape(a.shape, b.shape), a.dtype, (a, b))
        return np.multiply(a, b, out=out)
    free = [axis for axis in range(a.ndim) if axis not in summed]
    both = [axis for axis in free if a.shape[axis] != 1 and b.shape[axis] != 1]
    of_a = [axis for axis in free if axis not in both and a.shape[axis] != 1]
    of_b = [axis for axis in free if axis not in both and a.shape[axis] == 1]
    if of_a and of_b and of_b[-1] < of_a[0]:
        a, b, of_a, of_b = b, a, of_b, of_a
    batch, rows, inner = (math.prod(a.shape[axis] for axis in axes) for axes in (both, of_a, summed))
    columns = math.prod(b.shape[axis] for axis in of_b)
    found = matrix_product(
        a.transpose([*both, *of_a, *summed, *of_b]).reshape(batch, rows, inner),
        b.transpose([*both, *summed, *of_b, *of_a]).reshape(batch, inner, columns),
    )
    order = [*both, *of_a, *summed, *of_b]
    shape = [1 if axis in summed else max(a.shape[axis], b.shape[axis], key=lambda n: n != 1) for axis in order]
    return found.reshape(shape).transpose(np.argsort(order))
