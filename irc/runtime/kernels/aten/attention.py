"""Scaled dot-product attention (Vaswani et al., 2017)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import wide
from irc.runtime.kernels.aten.registering import aten
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.softmax import softmax
from irc.runtime.kernels.support import Array, counting

_RANDOM: Any = np.random.default_rng()


@aten("scaled_dot_product_attention")
def attention(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """``softmax(Q K^T * scale + mask) V``: (..., L, E), (..., S, E), (..., S, V) to (..., L, V).

    A mask of bools says what takes part, others are added. Rows of which
    nothing takes part are zeros.
    """
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise Error("IRC421", f"query, key and value need 2 dimensions; the query has shape {list(query.shape)}")
    dtype = wide(query.dtype)
    q, k, v = (x.astype(dtype, copy=False) for x in (query, key, value))
    if enable_gqa:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    factor = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = matrix_product(q * dtype.type(factor), np.swapaxes(k, -1, -2))
    if is_causal:
        rows, columns = scores.shape[-2:]
        scores[..., np.greater(counting(columns), counting(rows)[:, None])] = -np.inf
    if mask is not None:
        added: Array = np.where(mask, 0, -np.inf).astype(dtype) if mask.dtype.kind == "b" else mask.astype(dtype)
        scores = np.add(scores, added)
    weights: Array = softmax(np.asarray(scores), -1)
    if mask is not None:
        weights[np.isnan(weights)] = 0
    if dropout_p:
        weights *= (_RANDOM.random(weights.shape) >= dropout_p) / (1 - dropout_p)
    return matrix_product(weights, v).astype(query.dtype, copy=False)
