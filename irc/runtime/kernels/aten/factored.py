"""Linear algebra that tells whether it succeeded, by Cholesky's factors, and products along one dimension."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import is_integral
from irc.runtime.kernels.aten.linear_algebra import cholesky, column_major, inverse, solve, solved, square
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.support import Array, axis_in, broadcast_shape

# -- with a number that is 0 where all went well ---------------------------------


def _telling(compute: Callable[..., Array]) -> Callable[..., tuple[Array, Array]]:
    """``compute`` without its last argument, whether to check for errors: that is always done."""

    def run(a: Array, *arguments: Any) -> tuple[Array, Array]:
        return compute(a, *arguments[:-1]), np.zeros(a.shape[:-2], np.int32)

    return run


def _cholesky_telling(x: Array, upper: bool = False, check_errors: bool = False) -> tuple[Array, Array]:
    """The factor, and 1 plus the place of the first pivot that is not a number, 0 without one."""
    factor = cholesky(x, upper)
    is_nan = np.isnan(np.diagonal(factor, axis1=-2, axis2=-1))
    place = np.argmax(is_nan, -1) + 1 if is_nan.shape[-1] else np.zeros(is_nan.shape[:-1])
    return factor, np.where(is_nan.any(-1), place, 0).astype(np.int32)


# -- by Cholesky's factors -------------------------------------------------------


def _product_of(factor: Array, upper: bool) -> Array:
    """The matrix whose triangular factor is given."""
    square(factor, "a factor of Cholesky")
    lower = np.conjugate(np.swapaxes(np.triu(factor), -1, -2)) if upper else np.tril(factor)
    return np.asarray(lower @ np.conjugate(np.swapaxes(lower, -1, -2)))


def _solve_by_factor(b: Array, factor: Array, upper: bool = False) -> Array:
    if b.ndim < 2 or b.dtype != factor.dtype or b.shape[-2] != factor.shape[-1]:
        shapes = f"{b.dtype.name}{list(b.shape)} and {factor.dtype.name}{list(factor.shape)}"
        raise Error("IRC421", f"no system of equations has operands {shapes}")
    return column_major(solved(lambda: np.linalg.solve(_product_of(factor, upper), b)))


def _inverse_by_factor(factor: Array, upper: bool = False) -> Array:
    if (np.diagonal(factor, axis1=-2, axis2=-1) == 0).any():
        raise Error("IRC424", "there is no inverse: a factor has a 0 on its diagonal")
    return column_major(solved(lambda: np.linalg.inv(_product_of(factor, upper))))


# -- products --------------------------------------------------------------------


def _together(x: Array, y: Array) -> tuple[Array, Array]:
    if x.dtype != y.dtype:
        raise Error("IRC423", f"a product of {x.dtype.name} and {y.dtype.name}: convert one")
    try:
        shape = broadcast_shape(x.shape, y.shape)
    except ValueError as error:
        raise Error("IRC421", f"{error}") from None
    return np.broadcast_to(x, shape), np.broadcast_to(y, shape)


def _cross(x: Array, y: Array, dim: int = -1) -> Array:
    a, b = _together(x, y)
    axis = axis_in(dim, a.ndim)
    if x.ndim != y.ndim or x.shape[axis] != 3 or y.shape[axis] != 3:
        raise Error("IRC421", f"a cross product is of 3 elements; the shapes are {list(x.shape)} and {list(y.shape)}")
    return np.ascontiguousarray(np.cross(a, b, axis=axis))


def _along(x: Array, y: Array, dim: int = -1) -> Array:
    if is_integral(x.dtype):
        raise Error("IRC423", f"linalg_vecdot is of floats, not of {x.dtype.name}; convert them first")
    a, b = _together(x, y)
    axis = axis_in(dim, max(a.ndim, 1))
    products = np.asarray(np.conjugate(a) * b)
    return np.asarray(products.sum(axis) if a.ndim else products).astype(a.dtype)


table(
    {
        "linalg_cholesky_ex": _cholesky_telling,
        "linalg_inv_ex": _telling(inverse),
        "linalg_solve_ex": _telling(solve),
        "cholesky_solve": _solve_by_factor,
        "cholesky_inverse": _inverse_by_factor,
        "linalg_cross": _cross,
        "linalg_vecdot": _along,
    }
)
