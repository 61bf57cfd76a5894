"""Pseudoinverses, equations with triangular matrices, eigenvalues, and products of many matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import wide
from irc.runtime.kernels.aten.linear_algebra import column_major, matrices, solved, square
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.support import Array, broadcast_shape, check_size
from irc.runtime.values import is_array


def _eigenvalues(x: Array) -> Array:
    found = solved(lambda: np.linalg.eigvals(square(x, "an eigenvalue")))
    return found.astype(np.result_type(x.dtype, np.complex64))


def of_many(factors: Sequence[Array]) -> Array:
    """The product of several matrices in the cheapest order; the first may be a row, the last a column."""
    if len(factors) < 2:
        raise Error("IRC421", f"multi_dot takes two tensors or more, not {len(factors)}")
    shapes = ", ".join(str(list(x.shape)) for x in factors[:8])
    if any(x.dtype != factors[0].dtype for x in factors):
        raise Error("IRC423", "multi_dot takes tensors of one element type; convert them")
    if any(x.ndim != 2 for x in factors[1:-1]) or not {factors[0].ndim, factors[-1].ndim} <= {1, 2}:
        raise Error("IRC421", f"multi_dot takes matrices, and vectors at its ends; the shapes are {shapes}")
    if any(a.shape[-1] != b.shape[0] for a, b in pairwise(factors)):
        raise Error("IRC421", f"tensors of shapes {shapes} cannot be multiplied")
    dtype = factors[0].dtype
    check_size((*factors[0].shape[:-1], *factors[-1].shape[1:]), dtype)
    found = np.linalg.multi_dot([x.astype(wide(dtype), copy=False) for x in factors])
    return np.asarray(found, order="C").astype(dtype, copy=False)


# -- triangular matrices -------------------------------------------------------


def _solve_triangular(a: Array, b: Array, upper: bool, left: bool = True, unitriangular: bool = False) -> Array:
    """``x`` in ``a x = b``, or in ``x a = b``, of the element type of ``a``.

    Only one triangle of ``a`` is read, perhaps without its diagonal. Singular matrices give infinities and NaNs.
    """
    square(a, "a system of equations")
    if b.ndim < 2 or b.shape[-2 if left else -1] != a.shape[-1]:
        raise Error("IRC421", f"no system of equations has the shapes {list(a.shape)} and {list(b.shape)}")
    if left:
        return column_major(_substituted(a, b, upper, unitriangular))
    turned = _substituted(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not upper, unitriangular)
    return column_major(np.swapaxes(turned, -1, -2))


def _substituted(a: Array, b: Array, upper: bool, unitriangular: bool) -> Array:
    try:
        batch = broadcast_shape(a.shape[:-2], b.shape[:-2])
    except ValueError as error:
        raise Error("IRC421", f"{error}") from None
    x = np.empty(check_size((*batch, *b.shape[-2:]), a.dtype), a.dtype)
    np.copyto(x, b.real if b.dtype.kind == "c" != a.dtype.kind else b, casting="unsafe")
    n = a.shape[-1]
    for i in reversed(range(n)) if upper else range(n):
        known = slice(i + 1, None) if upper else slice(None, i)
        x[..., i : i + 1, :] -= a[..., i : i + 1, known] @ x[..., known, :]
        if not unitriangular:
            x[..., i, :] /= a[..., i, i, None]
    return x


def _triangular_solve(
    b: Array, a: Array, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> tuple[Array, Array]:
    if a.dtype != b.dtype:
        raise Error("IRC423", f"a system of equations of {a.dtype.name} and {b.dtype.name}: convert one")
    square(a, "a system of equations")
    turned = np.swapaxes(a, -1, -2) if transpose else a
    solution = _solve_triangular(turned, b, upper != transpose, True, unitriangular)
    return solution, column_major(np.broadcast_to(a, (*solution.shape[:-2], *a.shape[-2:])).copy())


# -- pseudoinverses ------------------------------------------------------------


def _pseudo_inverse(x: Array, *given: Any) -> Array:
    """``linalg_pinv(x, rcond, hermitian)`` or ``linalg_pinv(x, atol, rtol, hermitian)``."""
    tolerances = [v for v in given if not isinstance(v, bool)]
    atol, rtol = tolerances if len(tolerances) == 2 else (0.0, *tolerances) if tolerances else (None, None)
    is_hermitian = len(given) > len(tolerances) and bool(given[-1])
    matrices(x, "a pseudoinverse")
    rows, columns = x.shape[-2:]
    if is_hermitian:
        square(x, "a pseudoinverse of a Hermitian matrix")
    if not x.size:
        return np.empty((*x.shape[:-2], columns, rows), x.dtype)
    if rtol is None:
        least = np.finfo(x.dtype).eps * max(rows, columns)
        rtol = least if atol is None else np.where(np.greater(atol, 0), 0, least)
    if is_hermitian:
        values, right = np.linalg.eigh(x)
        left = np.conjugate(np.swapaxes(right, -1, -2))
    else:
        u, values, vh = _decomposed(x)
        left, right = np.conjugate(np.swapaxes(u, -1, -2)), np.conjugate(np.swapaxes(vh, -1, -2))
    sizes = np.abs(values)
    limit = np.maximum(_column(0.0 if atol is None else atol), _column(rtol) * sizes.max(-1, keepdims=True))
    inverted = np.where(sizes > limit, 1 / values, 0).astype(values.dtype)
    return np.asarray((right * inverted[..., None, :]) @ left, order="C")


def _decomposed(x: Array) -> tuple[Array, Array, Array]:
    try:
        u, s, vh = np.linalg.svd(x, False)
    except np.linalg.LinAlgError as error:
        raise Error("IRC424", f"there is no result: {error}".lower()) from None
    return u, s, vh


def _column(tolerance: Any) -> Any:
    """A tolerance for each matrix, as it goes with a row of values for each."""
    return tolerance[..., None] if is_array(tolerance) else tolerance


def _pseudo_inverse_by_ratio(x: Array, rcond: float = 1e-15) -> Array:
    return _pseudo_inverse(x, rcond, False)


table(
    {
        "linalg_eigvals": _eigenvalues,
        "linalg_multi_dot": of_many,
        "linalg_solve_triangular": _solve_triangular,
        "triangular_solve": _triangular_solve,
        "linalg_pinv": _pseudo_inverse,
        "pinverse": _pseudo_inverse_by_ratio,
    }
)
