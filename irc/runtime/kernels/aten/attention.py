"""Scaled dot-product attention (Vaswani et al., 2017), and what torch builds of it in one piece."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops import algebra
from irc.runtime.kernels.aten.creation import factors
from irc.runtime.kernels.aten.element_types import BOOL, FLOAT32
from irc.runtime.kernels.aten.linear_algebra import linear
from irc.runtime.kernels.aten.normalization import layer_norm
from irc.runtime.kernels.aten.registering import aten
from irc.runtime.kernels.attention import Form, attend, broadcasts_into
from irc.runtime.kernels.expressions import of_expression
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.softmax import softmax
from irc.runtime.kernels.support import Array, broadcast_shape, filled

_GELU = of_expression(algebra.gelu, 1)


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
    *,
    out: Array | None = None,
) -> Array:
    """``softmax(Q K^T * scale + mask) V``: (..., L, E), (..., S, E), (..., S, V) to (..., L, V).

    A mask of bools selects the elements that take part; other masks are added. Rows in which
    no element takes part are zeros.
    """
    if not query.dtype == key.dtype == value.dtype:
        raise Error("IRC423", "query, key and value must have one element type; convert them")
    if mask is not None and mask.dtype not in (BOOL, FLOAT32, query.dtype):
        raise Error("IRC423", f"a mask of {mask.dtype.name} for {query.dtype.name}; convert it to that, or to bools")
    if is_causal and mask is not None:
        raise Error("IRC423", "attention is causal or has a mask, not both")
    if mask is not None:
        _check_mask(mask, query, key, enable_gqa)
    form = Form(
        scale=scale,
        causal="first" if is_causal else "",
        zero_rows="lowest",
        grouped=enable_gqa,
        dropout=partial(factors, p=dropout_p) if dropout_p else None,
    )
    if mask is not None and mask.dtype.kind == "b":
        mask = np.where(mask, FLOAT32.type(0), FLOAT32.type(-np.inf))  # scores that are not numbers stay that
    return attend(query, key, value, mask, out=out, form=form)


def _check_mask(mask: Array, query: Array, key: Array, is_shared: bool) -> None:
    """Raise IRC421 if ``mask`` does not broadcast to the scores, unless other shapes are wrong."""
    try:
        lead = query.shape[:-2] if is_shared else broadcast_shape(query.shape[:-2], key.shape[:-2])
    except ValueError:
        return
    scores = (*lead, *query.shape[-2:-1], *key.shape[-2:-1])
    if not broadcasts_into(mask.shape, scores):
        raise Error("IRC421", f"a mask of shape {list(mask.shape)} for scores of {list(scores)}")


def _excluded(mask: Array, mask_type: int | None, scores: tuple[int, ...]) -> Array:
    """The elements of ``scores`` for which the mask is True, as what broadcasts to them.

    ``mask_type``: 0, the mask is (queries, keys); 1, it is (batch, keys); 2, it has the shape of ``scores``.
    """
    excluded = mask.astype(bool)
    if mask_type == 1:
        return excluded.reshape(mask.shape[0], 1, 1, math.prod(mask.shape[1:]))
    if mask_type == 0:
        return excluded.reshape(1, 1, *mask.shape)
    if mask_type != 2 or mask.shape != scores:
        raise Error("IRC424", f"a mask of shape {list(mask.shape)} and type {mask_type} is not supported")
    return excluded


@aten("_native_multi_head_attention")
def multi_head_attention(
    query: Array, key: Array, value: Array, embed_dim: int, heads: int, *arguments: Any
) -> tuple[Array, Array | None]:
    """Attention of several heads over (batch, length, width), with the linear layers before and after it.

    Further arguments: weights and biases of these layers; a mask, whether to give weights, and their mean; the mask's
    type.

    Returns: the result, and the weights, their mean over the heads if told so.
    """
    qkv_weight, qkv_bias, proj_weight, proj_bias, *options = arguments
    mask, need_weights, average, mask_type = filled(options, None, True, True, None)
    if query.ndim != 3 or heads < 1 or embed_dim % heads or qkv_weight.shape != (3 * embed_dim, embed_dim):
        raise Error("IRC421", f"{heads} heads of a query {list(query.shape)}, weight {list(qkv_weight.shape)}")
    projected = (
        linear(x, qkv_weight[i * embed_dim : (i + 1) * embed_dim], qkv_bias[i * embed_dim : (i + 1) * embed_dim])
        for i, x in enumerate((query, key, value))
    )
    q, k, v = (x.reshape(*x.shape[:2], heads, embed_dim // heads).swapaxes(1, 2) for x in projected)
    excluded = None if mask is None else _excluded(mask, mask_type, (*q.shape[:3], k.shape[2]))
    kept: Array | None = None
    if need_weights:
        scores = np.asarray(matrix_product(q * q.dtype.type(1 / math.sqrt(embed_dim // heads)), np.swapaxes(k, -1, -2)))
        weights = softmax(scores if excluded is None else np.where(excluded, scores.dtype.type(-np.inf), scores), -1)
        found = matrix_product(weights, v)
        kept = weights.sum(1) / heads if average else weights
    else:
        found = attend(q, k, v, mask=None if excluded is None else np.logical_not(excluded))
    return linear(found.swapaxes(1, 2).reshape(query.shape), proj_weight, proj_bias), kept


@aten("_transformer_encoder_layer_fwd")
def encoder_layer(x: Array, embed_dim: int, heads: int, *arguments: Any) -> Array:
    """One layer of a transformer's encoder.

    Further arguments: weights and biases of the linear layers of attention; whether to use GELU, whether to normalise
    first, epsilon; scales and shifts of two normalisations, weights and biases of two linear layers, a mask, its type.
    """
    layers, (use_gelu, norm_first, eps), others = arguments[:4], arguments[4:7], arguments[7:]
    scale1, shift1, scale2, shift2, weight1, bias1, weight2, bias2, *masking = others

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
        return multi_head_attention(y, y, y, embed_dim, heads, *layers, mask, False, True, mask_type)[0]

    if norm_first:
        y = attend(first(x)) + x
        return feed(second(y)) + y
    y = first(attend(x) + x)
    return second(feed(y) + y)
