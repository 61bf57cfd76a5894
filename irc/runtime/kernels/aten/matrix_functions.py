"""Exponentials of matrices, least squares, and products of chains of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import FLOAT32, INT64, real_type
from irc.runtime.kernels.aten.linear_algebra import column_major, matrices, solved, square
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.aten.solving import of_many
from irc.runtime.kernels.support import Array, broadcast_shape, check_size

# -- exponentials --------------------------------------------------------------

_PADE = (
    64764752532480000, 32382376266240000, 7771770303897600, 1187353796428800, 129060195264000, 10559470521600,
    670442572800, 33522128640, 1323241920, 40840800, 960960, 16380, 182, 1,
)  # fmt: skip
_REACH = 5.371920351148152
"""Up to this norm the quotient of polynomials with these coefficients is exact to the last digit (Higham, 2005)."""


def _exponential(x: Array) -> Array:
    """Scaled down until the quotient is exact, then squared as often as it was halved."""
    if x.dtype.kind == "V":
        return _exponential(x.astype(FLOAT32)).astype(x.dtype)
    square(x, "an exponential of a matrix")
    if not x.size:
        return x.copy()
    a = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
    norms = np.abs(a).sum(-2).max(-1)
    is_finite = np.isfinite(norms)
    a[~is_finite] = 0
    halvings = np.ceil(np.log2(np.maximum(np.where(is_finite, norms, 0) / _REACH, 1))).astype(np.int64)
    a = a / 2.0 ** halvings[..., None, None]
    even, odd, power = np.zeros_like(a), np.zeros_like(a), np.broadcast_to(np.eye(a.shape[-1]), a.shape)
    for i, coefficient in enumerate(_PADE):
        if i % 2:
            odd = odd + coefficient * power
            power = power @ (a @ a)
        else:
            even = even + coefficient * power
    odd = a @ odd
    found = solved(lambda: np.linalg.solve(even - odd, even + odd))
    with np.errstate(over="ignore", invalid="ignore"):
        for i in range(int(halvings.max(initial=0))):
            found = np.where((i < halvings)[..., None, None], found @ found, found)
        found[~is_finite] = np.nan
        return found.astype(x.dtype)


# -- least squares -------------------------------------------------------------

_DRIVERS = ("gelsy", "gels", "gelsd", "gelss")


def _least_squares(
    a: Array, b: Array, rcond: float | None = None, driver: str | None = None
) -> tuple[Array, Array, Array, Array]:
    """``x`` that makes ``a x - b`` least, what is left of it, the rank of ``a``, and its singular values."""
    driver = driver or "gelsy"
    if driver not in _DRIVERS:
        raise Error("IRC424", f"lstsq's driver is {driver!r}; it must be one of {', '.join(_DRIVERS)}")
    matrices(a, "a least squares problem")
    is_vector = b.ndim == a.ndim - 1
    columns = b[..., None] if is_vector else b
    rows, n = a.shape[-2:]
    if a.dtype != b.dtype or columns.ndim < 2 or columns.shape[-2] != rows:
        shapes = f"{a.dtype.name}{list(a.shape)} and {b.dtype.name}{list(b.shape)}"
        raise Error("IRC421", f"no least squares problem has operands {shapes}")
    try:
        batch = broadcast_shape(a.shape[:-2], columns.shape[:-2])
    except ValueError as error:
        raise Error("IRC421", f"{error}") from None
    check_size((*batch, max(rows, n), columns.shape[-1]), a.dtype)
    left = np.broadcast_to(a, (*batch, rows, n))
    u, s, vh = np.linalg.svd(left, False)
    limit = (np.finfo(a.dtype).eps * max(rows, n) if rcond is None else rcond) * s.max(-1, keepdims=True, initial=0)
    kept = s > (np.zeros_like(limit) if driver == "gels" else limit)
    turned = np.conjugate(np.swapaxes(u, -1, -2)) @ columns
    x = np.conjugate(np.swapaxes(vh, -1, -2)) @ np.where(kept[..., None], turned / np.where(kept, s, 1)[..., None], 0)
    rank = kept.sum(-1)
    residuals = np.empty(0, real_type(a.dtype))
    if rows > n and driver != "gelsy" and (rank == n).all():
        residuals = np.square(np.abs(left @ x - columns)).sum(-2)
    nothing = np.empty(0, INT64)
    values = s if driver in ("gelsd", "gelss") else np.empty(0, s.dtype)
    solution = np.ascontiguousarray(x[..., 0]) if is_vector else column_major(x)
    return solution.astype(a.dtype, copy=False), residuals, nothing if driver == "gels" else np.asarray(rank), values


# -- chains --------------------------------------------------------------------


def _chain(factors: Sequence[Array]) -> Any:
    """The product of one matrix or more."""
    if not factors or any(x.ndim != 2 for x in factors):
        raise Error("IRC421", f"chain_matmul takes matrices, at least one; there are {len(factors)} tensors")
    return factors[0].copy() if len(factors) == 1 else of_many(factors)


table(
    {
        "linalg_matrix_exp": _exponential,
        "linalg_lstsq": _least_squares,
        "chain_matmul": _chain,
    }
)
