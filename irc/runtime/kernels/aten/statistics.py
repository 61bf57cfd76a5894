"""Covariance, integrals by trapezoids, products and choices of elements, and spectra over time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, combinations, combinations_with_replacement
from math import comb
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import FLOAT64, INT64, as_float, is_integral, result_type
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.aten.views import part
from irc.runtime.kernels.support import Array, axis_in, broadcast_shape, check_size, is_half, shapes_differ
from irc.runtime.values import is_array


def _products(vectors: Sequence[Array]) -> Array:
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


def _trapezoids(y: Array, x: Any = 1, dim: int = -1) -> Array:
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
    try:
        broadcast_shape(pairs.shape, steps.shape)
    except ValueError as error:
        raise shapes_differ(error, pairs, steps) from None
    dtype = as_float(result_type(y, x))
    return np.asarray((pairs * steps).sum(axis) / dtype.type(2)).astype(dtype, "C")


def _powers(x: Array, n: int | None = None, increasing: bool = False) -> Array:
    """Vandermonde's matrix: a row of powers of each element."""
    if x.ndim != 1 or (n is not None and n < 0):
        raise Error("IRC421", f"vander needs a vector and a number of powers; the shape is {list(x.shape)}")
    dtype = INT64 if is_integral(x.dtype) else x.dtype
    size = x.size if n is None else n
    check_size((x.size, size), dtype)
    within = FLOAT64 if is_half(dtype) else dtype
    return np.vander(x.astype(within), size, increasing).astype(dtype, "C")


def _covariance(x: Array, correction: int = 1, counts: Array | None = None, weights: Array | None = None) -> Array:
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


def _correlation(x: Array) -> Array:
    """Of variables in rows, between -1 and 1."""
    found = _covariance(x)
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
    {
        "cartesian_prod": _products,
        "combinations": _choices,
        "trapezoid": _trapezoids,
        "trapz": _trapezoids,
        "vander": _powers,
        "cov": _covariance,
        "corrcoef": _correlation,
    }
)
