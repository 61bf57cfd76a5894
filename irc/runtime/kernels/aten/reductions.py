"""Sums, means, extremes, norms, running totals, Einstein's summation, statistics.

Every operand is brought into one order of axes: those of the result, then those that are summed over. Operands are
contracted from left to right, by a batch of matrix products where both have an axis that no later one has, else
elementwise. Source: ``einsum`` and ``sumproduct_pair``, aten/src/ATen/native/Linear.cpp.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, combinations, combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops.shape_rules import Axis, is_equation
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.arithmetic import complex_log_of_sum, wrapped
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    FLOAT64,
    INT64,
    as_float,
    check_kind,
    dtype_of,
    is_integral,
    overwrite,
    real_type,
    result_type,
    wide,
)
from irc.runtime.kernels.aten.pointwise import of_two, run
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.aten.views import part, sizes_of
from irc.runtime.kernels.matmul import einsum_axes, matrix_product
from irc.runtime.kernels.numerics import accumulate, add_reduce, extreme_reduce
from irc.runtime.kernels.reduce import log_sum_exp
from irc.runtime.kernels.registry import bound
from irc.runtime.kernels.support import (
    AnyDType,
    Array,
    axes_in,
    axis_in,
    broadcast_shape,
    check_size,
    common_shape,
    counting,
    filled,
    is_half,
)
from irc.runtime.values import is_array, is_sequence

Axes = tuple[int, ...]
Reduce = Callable[[Array, Axes], Any]
"""``(x, axes)``: reduces over axes, which stay as dimensions of 1."""


def axes_of(x: Array, dim: Any) -> Axes:
    """The axes to reduce over: all of them for None and for an empty list."""
    given = [] if dim is None else sizes_of(dim)
    if not given:
        return tuple(range(x.ndim))
    axes = axes_in(given, max(x.ndim, 1))
    return axes if x.ndim else ()


def reduced(x: Array, dim: Any, keepdim: bool, dtype: AnyDType, reduce: Reduce) -> Array:
    """``reduce`` of ``x`` over ``dim``, as a C-ordered array of ``dtype``."""
    axes = axes_of(x, dim)
    found = np.asarray(reduce(x, axes)).astype(dtype, order="C", copy=False)
    return found.reshape([1 if i in axes else n for i, n in enumerate(x.shape) if keepdim or i not in axes])


def _arguments(arguments: tuple[Any, ...]) -> tuple[Any, bool, Any]:
    """Of ``(dtype)`` or ``(dim, keepdim, dtype)``: dim, keepdim, dtype."""
    if len(arguments) < 2 and not (arguments and is_sequence(arguments[0])):
        return None, False, arguments[0] if arguments else None
    dim, keepdim, dtype = filled(arguments, None, False, None)
    return dim, bool(keepdim), dtype


def _sum_type(x: Array, dtype: int | None) -> AnyDType:
    return dtype_of(dtype, INT64 if is_integral(x.dtype) else x.dtype)


@aten("sum")
def sum_(x: Any, *arguments: Any) -> Any:
    """``sum(x, dtype=None)`` or ``sum(x, dim, keepdim=False, dtype=None)``; of a list, a number."""
    if not is_array(x):
        return wrapped(sum(x))
    dim, keepdim, dtype = _arguments(arguments)
    element = _sum_type(x, dtype)
    within = wide(element)
    return reduced(x, dim, keepdim, element, lambda v, axes: add_reduce(v, axes, True, within))


def prod(x: Array, *arguments: Any) -> Array:
    """``prod(x, dtype=None)`` or ``prod(x, dim: int, keepdim=False, dtype=None)``."""
    if len(arguments) < 2:
        arguments = (None, False, *arguments)
    dim, keepdim, dtype = filled(arguments, None, False, None)
    element = _sum_type(x, dtype)
    return reduced(x, dim, keepdim, element, partial(np.multiply.reduce, dtype=wide(element), keepdims=True))


def _mean_reduce(x: Array, axes: Axes) -> Any:
    count = math.prod(x.shape[a] for a in axes)
    dtype = x.dtype if x.dtype.kind == "c" else wide(x.dtype)
    return add_reduce(x, axes, True, dtype) / dtype.type(count)


def mean(x: Array, *arguments: Any) -> Array:
    """As `sum_`, of floats only."""
    dim, keepdim, dtype = _arguments(arguments)
    element = dtype_of(dtype, x.dtype)
    if is_integral(element):
        raise Error("IRC423", f"the mean of elements of type {element.name} needs a floating-point dtype")
    return reduced(x.astype(element, copy=False), dim, keepdim, element, _mean_reduce)


# -- spread --------------------------------------------------------------------


def _spread(x: Array, axes: Axes, correction: float, root: bool) -> Any:
    double = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    count = math.prod(x.shape[a] for a in axes)
    middle = add_reduce(double, axes, True) / count
    squares = add_reduce(np.square(np.abs(double - middle)), axes, True)
    variance = squares / np.float64(max(count - correction, 0) if count else 0)
    return np.sqrt(variance) if root else variance


def _spread_arguments(arguments: tuple[Any, ...]) -> tuple[Any, float, bool]:
    """dim, correction, keepdim of ``(unbiased)``, ``(dim, unbiased|correction, keepdim)``."""
    if arguments and isinstance(arguments[0], bool):
        return None, float(arguments[0]), False
    dim, correction, keepdim = filled(arguments, None, None, False)
    return dim, 1.0 if correction is None else float(correction), bool(keepdim)


def _deviation(x: Array, *arguments: Any, root: bool) -> Array:
    dim, correction, keepdim = _spread_arguments(arguments)
    return reduced(x, dim, keepdim, real_type(x.dtype), lambda v, axes: _spread(v, axes, correction, root))


def _with_mean(x: Array, *arguments: Any, root: bool) -> tuple[Array, Array]:
    dim, _, keepdim = _spread_arguments(arguments)
    return _deviation(x, *arguments, root=root), reduced(x, dim, keepdim, x.dtype, _mean_reduce)


# -- extremes ------------------------------------------------------------------


def _extreme(ufunc: np.ufunc, x: Array, axes: Axes) -> Any:
    if not math.prod(x.shape[a] for a in axes):
        raise Error("IRC422", f"the shape {list(x.shape)} has no extreme element: it is empty")
    return extreme_reduce(ufunc, x, axes, True)


_LEAST, _GREATEST = partial(_extreme, np.minimum), partial(_extreme, np.maximum)


def _over_dims(x: Array, dim: Any = (), keepdim: bool = False, *, reduce: Reduce) -> Array:
    return reduced(x, dim, keepdim, x.dtype, reduce)


def aminmax(x: Array, dim: int | None = None, keepdim: bool = False) -> tuple[Array, Array]:
    return reduced(x, dim, keepdim, x.dtype, _LEAST), reduced(x, dim, keepdim, x.dtype, _GREATEST)


def extreme_index(x: Array, axis: int, largest: bool) -> Array:
    """The index of the first extreme element along an axis, kept as size 1; NaN wins."""
    if x.shape[axis] == 0:
        raise Error("IRC422", f"axis {axis} of the shape {list(x.shape)} is empty: it has no extreme element")
    return np.asarray((np.argmax if largest else np.argmin)(x, axis, keepdims=True))


def _along(x: Array, *arguments: Any, largest: bool) -> Any:
    """``max(x)``, ``max(x, dim, keepdim=False) -> (values, indices)`` or ``max(x, other)``."""
    if not arguments:
        return reduced(x, None, False, x.dtype, _GREATEST if largest else _LEAST)
    if is_array(arguments[0]):
        return run(of_two(np.maximum if largest else np.minimum)(x, arguments[0]))
    dim, keepdim = (*arguments, False)[:2]
    return extremes(x, dim, keepdim, largest)


def extremes(x: Array, dim: int, keepdim: bool, largest: bool) -> tuple[Array, Array]:
    """The extreme elements along a dimension, and where the first of each is."""
    axis = axis_in(dim, max(x.ndim, 1))
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    index = extreme_index(x, axis, largest)
    values = np.take_along_axis(x, index, axis)
    shape = [n for i, n in enumerate(index.shape) if keepdim or i != axis]
    return np.ascontiguousarray(values).reshape(shape), np.ascontiguousarray(index).reshape(shape)


def _arg(x: Array, dim: int | None = None, keepdim: bool = False, *, largest: bool) -> Array:
    axis = None if dim is None else axis_in(dim, max(x.ndim, 1))
    if axis is None or not x.ndim:
        index = extreme_index(x.reshape(-1), 0, largest)
        return index.reshape((1,) * x.ndim if keepdim else ())
    return reduced(x, axis, keepdim, INT64, lambda v, axes: extreme_index(v, axis, largest))


# -- truth ---------------------------------------------------------------------


def _truth(ufunc: np.ufunc, of_list: Callable[[Any], bool], x: Any, *arguments: Any) -> Any:
    """``any(x)`` or ``any(x, dim, keepdim=False)``; of a list a bool. Of bytes, torch gives bytes."""
    if not is_array(x):
        return of_list(x)
    dim, keepdim = filled(arguments, None, False)
    dtype = x.dtype if x.dtype == np.uint8 else BOOL
    if is_sequence(dim) and not dim:  # here, unlike elsewhere, an empty list means no dimension
        return x.astype(bool).astype(dtype)
    return reduced(x.astype(bool), dim, bool(keepdim), dtype, partial(ufunc.reduce, keepdims=True))


def count_nonzero(x: Array, dim: Any = None, keepdim: bool = False) -> Array:
    return reduced(x, dim, keepdim, INT64, partial(np.count_nonzero, keepdims=True))


# -- norms ---------------------------------------------------------------------


def _norm_reduce(x: Array, axes: Axes, *, p: float) -> Any:
    size = np.abs(x).astype(np.float64)
    if math.isinf(p):
        return extreme_reduce(np.maximum if p > 0 else np.minimum, size, axes, True)
    if p == 0:
        return np.count_nonzero(size, axes, keepdims=True)
    if p == 2:
        return np.sqrt(add_reduce(np.square(size), axes, True))
    return add_reduce(size**p, axes, True) ** (1 / p)


def norm(x: Array, p: Any = 2, *arguments: Any) -> Array:
    """``norm(x, p)``, ``(x, p, dim, keepdim)``, ``(x, p, dim, keepdim, dtype)`` or ``(x, p, dtype)``."""
    dtype = arguments[0] if len(arguments) == 1 and isinstance(arguments[0], int) else (*arguments, *[None] * 3)[2]
    dim, keepdim = (
        (None, False) if len(arguments) < 2 and not any(map(is_sequence, arguments)) else (*arguments, False)[:2]
    )
    return vector_norm(x, 2 if p is None else p, dim, keepdim, dtype)


@aten("linalg_vector_norm")
def vector_norm(x: Array, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: int | None = None) -> Array:
    """``(sum |x|^ord)^(1/ord)``."""
    return reduced(x, dim, keepdim, real_type(dtype_of(dtype, x.dtype)), partial(_norm_reduce, p=float(ord)))


def renorm(x: Array, p: Any, dim: int, maxnorm: Any) -> Array:
    """Slices along a dimension, scaled down to ``maxnorm`` if their norm is larger."""
    if x.ndim < 2 or isinstance(p, complex) or isinstance(maxnorm, complex) or p <= 0 or maxnorm < 0:
        given = f"p = {p}, maxnorm = {maxnorm} and the shape {list(x.shape)}"
        raise Error("IRC421", f"renorm takes at least 2 dimensions and norms that are positive, not {given}")
    axis = axis_in(dim, x.ndim)
    within = x.astype(wide(x.dtype), copy=False)
    norms = vector_norm(within, p, [i for i in range(x.ndim) if i != axis], True)
    with_room = np.where(norms > maxnorm, maxnorm / (norms + 1e-7), 1).astype(norms.dtype)
    return np.asarray(within * with_room, order="C").astype(x.dtype, copy=False)


def dist(x: Array, y: Array, p: Any = 2) -> Array:
    return vector_norm(run(_DIFFERENCE(x, y)), p)


_DIFFERENCE = of_two(np.subtract)


def logsumexp(x: Array, dim: Any, keepdim: bool = False) -> Array:
    double = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    return reduced(double, dim, keepdim, as_float(x.dtype), lambda v, axes: log_sum_exp(v, axes, True))


# -- running totals ------------------------------------------------------------


def _running(ufunc: np.ufunc, x: Array, dim: int, dtype: int | None = None) -> Array:
    element = _sum_type(x, dtype)
    axis = axis_in(dim, max(x.ndim, 1))
    if not x.ndim:
        return x.astype(element)
    found = np.empty(x.shape, wide(element))
    accumulate(ufunc, x, axis, found)
    return found.astype(element, copy=False)


def _running_in_place(ufunc: np.ufunc, x: Array, dim: int, dtype: int | None = None) -> Array:
    element = dtype_of(dtype, x.dtype)
    if element != x.dtype:
        raise Error("IRC423", f"a tensor of {x.dtype.name} cannot hold running totals of {element.name}")
    return overwrite(x, _running(ufunc, x, dim, dtype))


def _running_extreme(ufunc: np.ufunc, x: Array, dim: int) -> tuple[Array, Array]:
    """The extreme of what came so far, and where its last one was; not-a-number stays."""
    axis = axis_in(dim, max(x.ndim, 1))
    if not x.ndim:
        return x.copy(), np.zeros((), np.int64)
    values: Array = ufunc.accumulate(x, axis)
    place = counting(x.shape[axis]).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    last = np.where((x == values) | (x != x), place, 0)
    return np.ascontiguousarray(values), np.ascontiguousarray(np.maximum.accumulate(last, axis))


def logcumsumexp(x: Array, dim: int) -> Array:
    axis = axis_in(dim, max(x.ndim, 1))
    if x.dtype.kind == "c" and x.ndim:
        sums = np.moveaxis(np.array(x, np.complex128, order="C"), axis, 0)
        for i in range(1, len(sums)):
            sums[i] = complex_log_of_sum(sums[i - 1], sums[i])
        return np.array(np.moveaxis(sums, 0, axis), x.dtype, order="C")
    found = np.logaddexp.accumulate(x.astype(np.float64), axis) if x.ndim else x
    return np.array(found, x.dtype, order="C")


# -- without what is not a number ----------------------------------------------


def _numbers(x: Array) -> Array:
    return x if is_integral(x.dtype) else np.where(np.isnan(x), x.dtype.type(0), x)


def nansum(x: Array, *arguments: Any) -> Array:
    return sum_(_numbers(x), *arguments)


def nanmean(x: Array, dim: Any = None, keepdim: bool = False, dtype: int | None = None) -> Array:
    if is_integral(dtype_of(dtype, x.dtype)):
        raise Error("IRC423", f"a mean is a float, not of {dtype_of(dtype, x.dtype).name}")
    total = sum_(_numbers(x), dim, keepdim, dtype)
    return np.asarray(np.divide(total, count_nonzero(~np.isnan(x), dim, keepdim)), total.dtype)


def trace(x: Array) -> Array:
    if x.ndim != 2:
        raise Error("IRC421", f"a trace needs 2 dimensions; the shape is {list(x.shape)}")
    return np.asarray(np.trace(x, dtype=_sum_type(x, None)))


# -- Einstein's summation convention -------------------------------------------


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
    """A view of ``x`` with axes in ``order``: absent ones of size 1, repeated ones as the diagonal."""
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
        left = _contraction(_sum(left, of_left), _sum(right, of_right), shared)
    return left


def _sum(x: Array, axes: Sequence[int]) -> Array:
    return np.asarray(np.add.reduce(x, tuple(axes), keepdims=True), order="C") if axes else x


def _contraction(a: Array, b: Array, summed: list[int]) -> Array:
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


# -- covariance, integrals, products of elements -------------------------------


def cartesian_prod(vectors: Sequence[Array]) -> Array:
    """Each choice of one element from every vector, a row each; of one vector, itself."""
    if not vectors or any(v.ndim != 1 for v in vectors) or len({v.dtype for v in vectors}) > 1:
        raise Error("IRC421", "cartesian_prod takes vectors of one element type")
    if len(vectors) == 1:
        return vectors[0]
    check_size([*(v.size for v in vectors), len(vectors)], vectors[0].dtype)
    columns = np.meshgrid(*vectors, indexing="ij")
    return np.stack([c.reshape(-1) for c in columns], 1)


def _choices(x: Array, r: int = 2, with_replacement: bool = False) -> Array:
    """Each choice of ``r`` elements, in their order, a row each."""
    if x.ndim != 1 or r < 0:
        raise Error("IRC421", f"no choices of {r} from a tensor of shape {list(x.shape)}")
    if r == 0:
        return np.empty(0, x.dtype)
    n = x.size + r - 1 if with_replacement and x.size else x.size
    rows, _ = check_size((comb(n, r), r), INT64)
    choose = combinations_with_replacement if with_replacement else combinations
    places = np.fromiter(chain.from_iterable(choose(range(x.size), r)), np.int64, rows * r).reshape(rows, r)
    return x[places]


def trapezoid(y: Array, x: Any = 1, dim: int = -1) -> Array:
    """``x`` are the places of the values, or the one distance between neighbours."""
    axis = axis_in(dim, y.ndim)
    if y.dtype.kind == "b" or (is_array(x) and x.dtype.kind == "b"):
        raise Error("IRC423", "there is no integral of bools; convert them first")
    pairs = part(y, axis, 1, None) + part(y, axis, 0, -1)
    if not is_array(x):
        dtype = as_float(result_type(y, x))
        if is_integral(y.dtype) and y.shape[axis]:  # whose sum is of int64; only the two ends may wrap around
            ends = part(y, axis, 0, 1) + part(y, axis, -1, None)
            return np.asarray((y.sum(axis) - ends.squeeze(axis) * 0.5) * x).astype(dtype, "C")
        return np.asarray(pairs.sum(axis) * dtype.type(x) / dtype.type(2)).astype(dtype, "C")
    if x.ndim == 1 and x.size != y.shape[axis]:
        raise Error("IRC421", f"{x.size} places are given for {y.shape[axis]} values")
    places = x.reshape(-1, *(1,) * (y.ndim - axis - 1)) if x.ndim == 1 else x
    if places.ndim < y.ndim - axis:
        places = places.reshape((1,) * (y.ndim - places.ndim) + places.shape)
    steps = np.diff(places, axis=axis if places.ndim > y.ndim else axis - y.ndim)
    common_shape(pairs.shape, steps.shape)
    dtype = as_float(result_type(y, x))
    return np.asarray((pairs * steps).sum(axis) / dtype.type(2)).astype(dtype, "C")


def vander(x: Array, n: int | None = None, increasing: bool = False) -> Array:
    """Vandermonde's matrix: a row of powers of each element."""
    if x.ndim != 1 or (n is not None and n < 0):
        raise Error("IRC421", f"vander needs a vector and a number of powers; the shape is {list(x.shape)}")
    dtype = INT64 if is_integral(x.dtype) else x.dtype
    size = x.size if n is None else n
    check_size((x.size, size), dtype)
    within = FLOAT64 if is_half(dtype) else dtype
    return np.vander(x.astype(within), size, increasing).astype(dtype, "C")


def cov(x: Array, correction: int = 1, counts: Array | None = None, weights: Array | None = None) -> Array:
    """Of variables in rows, whose observations may count several times or have weights."""
    if x.ndim > 2 or x.dtype.kind == "b":
        raise Error("IRC421", f"no covariance of {x.dtype.name} elements of shape {list(x.shape)}")
    for w in (counts, weights):
        if w is not None and (w.ndim != 1 or w.size != (x.shape[-1] if x.ndim else 1) or (w < 0).any()):
            raise Error("IRC421", "an observation counts once or several times: one number for each, none negative")
    dtype = as_float(x.dtype)
    wide = np.atleast_2d(x).astype(np.complex128 if dtype.kind == "c" else np.float64)
    check_size((len(wide), len(wide)), wide.dtype)
    share = np.ones(wide.shape[1]) if weights is None else weights.astype(np.float64)
    share = share if counts is None else share * counts
    total = share.sum()
    centred = wide - (wide * share).sum(1, keepdims=True) / total
    lost = correction if weights is None else correction * (share * weights).sum() / total
    found = (centred * share) @ np.conjugate(centred.T) / np.maximum(total - lost, 0)
    return np.asarray(np.squeeze(found)).astype(dtype)


def corrcoef(x: Array) -> Array:
    """Of variables in rows, between -1 and 1."""
    found = cov(x)
    if not found.ndim:
        return np.asarray(found / found)
    within: Array = found.astype(FLOAT64, copy=False) if is_half(found.dtype) else found
    deviations = np.sqrt(np.real(np.diagonal(within)))
    quotient: Array = np.asarray(within / deviations[:, None] / deviations)
    if found.dtype.kind != "c":
        return np.asarray(np.clip(quotient, -1, 1)).astype(found.dtype, copy=False)
    parts = np.clip(np.real(quotient), -1, 1) + 1j * np.clip(np.imag(quotient), -1, 1)
    return np.asarray(parts).astype(found.dtype)


table(
    std=bound(_deviation, root=True),
    var=bound(_deviation, root=False),
    std_mean=bound(_with_mean, root=True),
    var_mean=bound(_with_mean, root=False),
    amax=bound(_over_dims, reduce=_GREATEST),
    amin=bound(_over_dims, reduce=_LEAST),
    max=bound(_along, largest=True),
    min=bound(_along, largest=False),
    argmax=bound(_arg, largest=True),
    argmin=bound(_arg, largest=False),
    any=partial(_truth, np.logical_or, any),
    all=partial(_truth, np.logical_and, all),
    cumsum=partial(_running, np.add),
    cumsum_=partial(_running_in_place, np.add),
    cumprod=partial(_running, np.multiply),
    cumprod_=partial(_running_in_place, np.multiply),
    cummax=partial(_running_extreme, np.maximum),
    cummin=partial(_running_extreme, np.minimum),
    combinations=_choices,
    trapz=trapezoid,
)
