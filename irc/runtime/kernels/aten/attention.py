"""Scaled dot-product attention (Vaswani et al., 2017), and what torch builds of it in one piece."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels import numerics
from irc.runtime.kernels.aten.dropout import factors
from irc.runtime.kernels.aten.element_types import BOOL, FLOAT32, wide
from irc.runtime.kernels.aten.matmul import linear
from irc.runtime.kernels.aten.normalization import layer_norm
from irc.runtime.kernels.aten.registering import aten
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.pointwise import of_function
from irc.runtime.kernels.softmax import softmax
from irc.runtime.kernels.support import Array, counting

_GELU = of_function(numerics.gelu)


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
    first: int = 0,
) -> Array:
    """``softmax(Q K^T * scale + mask) V``: (..., L, E), (..., S, E), (..., S, V) to (..., L, V).

    A mask of bools selects the elements that take part; other masks are added. Rows in which
    no element takes part are zeros. ``first`` is the number of the query's first row, where it has some of all rows.
    """
    if min(query.ndim, key.ndim, value.ndim) < 2:
        raise Error("IRC421", f"query, key and value need 2 dimensions; the query has shape {list(query.shape)}")
    if not query.dtype == key.dtype == value.dtype:
        raise Error("IRC423", "query, key and value must have one element type; convert them")
    if mask is not None and mask.dtype not in (BOOL, FLOAT32, query.dtype):
        raise Error("IRC423", f"a mask of {mask.dtype.name} for {query.dtype.name}; convert it to that, or to bools")
    if is_causal and mask is not None:
        raise Error("IRC423", "attention is causal or has a mask, not both")
    dtype = wide(query.dtype)
    q, k, v = (x.astype(dtype, copy=False) for x in (query, key, value))
    if enable_gqa:
        k, v = (_for_heads_of(q, x) for x in (k, v))
    factor = 1 / math.sqrt(q.shape[-1] or 1) if scale is None else scale
    scores = np.asarray(matrix_product(q * dtype.type(factor), np.swapaxes(k, -1, -2)))
    if is_causal:
        rows, columns = scores.shape[-2:]
        np.copyto(scores, -np.inf, where=np.greater(counting(columns), counting(first + rows)[first:, None]))
    if mask is not None:
        added: Array = np.where(mask, 0, -np.inf).astype(dtype) if mask.dtype.kind == "b" else mask.astype(dtype)
        try:
            scores += added
        except ValueError:
            raise Error("IRC421", f"a mask of shape {list(mask.shape)} for scores of {list(scores.shape)}") from None
    weights: Array = softmax(scores, -1)
    if np.isnan(weights[..., :1]).any():  # so are all of the row, whether nothing takes part or a score is NaN
        np.copyto(weights, 0, where=np.isneginf(np.maximum.reduce(scores, -1, keepdims=True, initial=-np.inf)))
    if dropout_p:
        weights *= factors(weights, dropout_p)
    return matrix_product(weights, v).astype(query.dtype, copy=False)


def _for_heads_of(query: Array, x: Array) -> Array:
    """``x`` with each of its heads repeated for the query's that share it."""
    heads, shared = query.shape[-3:-2], x.shape[-3:-2]
    if not heads or not shared or (heads[0] % shared[0] if shared[0] else heads[0]):
        raise Error("IRC421", f"heads of a query {list(query.shape)} cannot share those of {list(x.shape)}")
    return x if heads == shared else np.repeat(x, heads[0] // shared[0], -3)


def _masked_softmax(scores: Array, mask: Array | None, mask_type: int | None) -> Array:
    """Softmax without the elements for which the mask is True.

    ``mask_type``: 0, the mask is (queries, keys); 1, it is (batch, keys); 2, it has the shape of ``scores``.
    """
    if mask is None:
        return softmax(scores, -1)
    excluded = mask.astype(bool)
    if mask_type == 1:
        excluded = excluded.reshape(mask.shape[0], 1, 1, math.prod(mask.shape[1:]))
    elif mask_type == 0:
        excluded = excluded.reshape(1, 1, *mask.shape)
    elif mask_type != 2 or mask.shape != scores.shape:
        raise Error("IRC424", f"a mask of shape {list(mask.shape)} and type {mask_type} is not supported")
    weights: Array = softmax(np.where(excluded, scores.dtype.type(-np.inf), scores), -1)
    return weights


@aten("_native_multi_head_attention")
def multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    embed_dim: int,
    heads: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    mask: Array | None = None,
    need_weights: bool = True,
    average: bool = True,
    mask_type: int | None = None,
) -> tuple[Array, Array | None]:
    """Attention of several heads over (batch, length, width), with the linear layers before and after it.

    Returns: the result, and the weights, their mean over the heads if ``average``.
    """
    if query.ndim != 3 or heads < 1 or embed_dim % heads or qkv_weight.shape != (3 * embed_dim, embed_dim):
        raise Error("IRC421", f"{heads} heads of a query {list(query.shape)}, weight {list(qkv_weight.shape)}")
    projected = (
        linear(x, qkv_weight[i * embed_dim : (i + 1) * embed_dim], qkv_bias[i * embed_dim : (i + 1) * embed_dim])
        for i, x in enumerate((query, key, value))
    )
    q, k, v = (x.reshape(*x.shape[:2], heads, embed_dim // heads).swapaxes(1, 2) for x in projected)
    scores = matrix_product(q * q.dtype.type(1 / math.sqrt(embed_dim // heads)), np.swapaxes(k, -1, -2))
    weights = _masked_softmax(np.asarray(scores), mask, mask_type)
    found = matrix_product(weights, v).swapaxes(1, 2).reshape(query.shape)
    kept = None if not need_weights else weights.sum(1) / heads if average else weights
    return linear(found, proj_weight, proj_bias), kept


@aten("_transformer_encoder_layer_fwd")
def encoder_layer(
    x: Array,
    embed_dim: int,
    heads: int,
    qkv_weight: Array,
    qkv_bias: Array,
    proj_weight: Array,
    proj_bias: Array,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    *arguments: Any,
) -> Array:
    """One layer of a transformer's encoder.

    Further arguments: scales and shifts of two normalisations, weights and biases of two linear layers, a mask, its
    type.
    """
    scale1, shift1, scale2, shift2, weight1, bias1, weight2, bias2, *masking = arguments

    def first(y: Array) -> Array:
        return layer_norm(y, (embed_dim,), scale1, shift1, eps)

    def second(y: Array) -> Array:
        return layer_norm(y, (embed_dim,), scale2, shift2, eps)

    def feed(y: Array) -> Array:
        y = linear(y, weight1, bias1)
        y = _GELU(y) if use_gelu else np.maximum(y, 0)
        return linear(y, weight2, bias2)

    def attend(y: Array) -> Array:
        mask, mask_type = (*masking, None, None)[:2]
        layers = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(y, y, y, embed_dim, heads, *layers, mask, False, True, mask_type)[0]

    if norm_first:
        y = attend(first(x)) + x
        return feed(second(y)) + y
    y = first(attend(x) + x)
    return second(feed(y) + y)
