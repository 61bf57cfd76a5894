"""Losses and distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops.aten.promotion import promote
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import (
    FLOAT64,
    INT64,
    as_float,
    check_kind,
    element_of,
    is_floating,
    is_integral,
    real_type,
    result_type,
    wide,
)
from irc.runtime.kernels.aten.registering import table, two
from irc.runtime.kernels.numerics import at_least
from irc.runtime.kernels.softmax import log_softmax
from irc.runtime.kernels.support import Array, broadcast_shape, check_size, filled, shapes_of
from irc.runtime.values import is_array

_NONE, MEAN, _SUM = range(3)
"""torch's numbers of reductions (aten/src/ATen/core/Reduction.h)."""


def reduced(loss: Array, reduction: int, dtype: Any, operands: Sequence[Array] = ()) -> Array:
    """A loss, its mean or sum, of ``dtype``; an unreduced loss lies as a pointwise result."""
    if reduction == _NONE:
        if not operands:
            return np.asarray(loss).astype(dtype, copy=False)
        out = layout.empty(np.shape(loss), dtype, operands)
        np.copyto(out, loss, casting="unsafe")
        return out
    if reduction not in (MEAN, _SUM):
        raise Error("IRC424", f"reduction {reduction} is none of 0 (none), 1 (mean) and 2 (sum)")
    if is_integral(dtype):
        if reduction == MEAN:
            raise Error("IRC423", f"a loss of {dtype.name} has no mean; convert what it is of")
        return np.asarray(np.sum(loss, dtype=INT64))
    total = np.sum(loss, dtype=np.complex128 if dtype.kind == "c" else np.float64)
    if reduction == MEAN:
        total = total / loss.size if loss.size else np.float64(np.nan)
    return np.asarray(total).astype(dtype)


def _elementwise(
    compute: Callable[..., Any], x: Array, target: Array, reduction: int = MEAN, *parameters: Any
) -> Array:
    """A loss on two tensors that broadcast."""
    dtype = result_type(x, target)
    within = wide(dtype)
    a, b = x.astype(within, copy=False), target.astype(within, copy=False)
    return reduced(np.asarray(compute(a, b, *parameters)), reduction, real_type(dtype), (x, target))


def _smooth_l1(a: Array, b: Array, beta: float = 1.0) -> Any:
    d = np.abs(a - b)
    return d if beta == 0 else np.where(d < beta, d * d * (0.5 / beta), d - 0.5 * beta)


def huber_loss(x: Array, target: Array, reduction: int = MEAN, delta: float = 1.0) -> Array:
    """Of the element type of ``x``, whatever that of the target is."""
    if delta <= 0:
        raise Error("IRC424", f"huber_loss is quadratic up to a distance above 0, not up to {delta}")
    both = result_type(x, target)
    d = np.abs(x.astype(wide(both), copy=False) - target.astype(wide(both), copy=False))
    return reduced(np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta)), reduction, x.dtype, (x, target))


def _kl_div(a: Array, b: Array, log_target: bool = False) -> Any:
    if log_target:
        return np.exp(b) * (b - a)
    return np.where(b == 0, 0, b * np.log(np.where(b == 0, 1, b))) - b * a


def binary_cross_entropy(x: Array, target: Array, weight: Array | None = None, reduction: int = MEAN) -> Array:
    """Cross-entropy of probabilities; logarithms are cut off at -100, as in torch."""
    within = wide(x.dtype)
    p, t = x.astype(within, copy=False), target.astype(within, copy=False)
    if ((p < 0) | (p > 1)).any():
        raise Error("IRC424", "binary_cross_entropy takes probabilities between 0 and 1")
    loss = -(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log1p(-p), -100))
    return reduced(loss if weight is None else loss * weight, reduction, x.dtype)


def binary_cross_entropy_with_logits(x: Array, target: Array, *options: Any) -> Array:
    """``(1 - t) x + (1 + (w - 1) t) log(1 + exp(-x))``, without overflow."""
    weight, positive, reduction = filled(options, None, None, MEAN)
    within = wide(x.dtype)
    v, t = x.astype(within, copy=False), target.astype(within, copy=False)
    factor = 1 if positive is None else 1 + (positive - 1) * t
    loss = (1 - t) * v + factor * (np.log1p(np.exp(-np.abs(v))) + np.maximum(-v, 0))
    dtype = target.dtype if is_floating(target.dtype) else x.dtype
    return reduced(loss if weight is None else loss * weight, reduction, dtype)


def nll_loss(x: Array, target: Array, weight: Array | None = None, *options: Any) -> Array:
    """Loss of log-probabilities (N, C, ...) and classes (N, ...), or of one sample (C) and its class."""
    reduction, ignore_index = filled(options, MEAN, -100)
    if x.ndim == 1:
        found = nll_loss(x[None], target.reshape(1), weight, reduction, ignore_index)
        return found.reshape(())
    if target.shape != (x.shape[0], *x.shape[2:]):
        raise Error("IRC421", f"classes of shape {list(target.shape)} do not fit an input of {list(x.shape)}")
    counted = target != ignore_index
    safe = np.where(counted, target, 0)
    if safe.size and (safe.min() < 0 or safe.max() >= x.shape[1]):
        raise Error("IRC420", f"a class is not below {x.shape[1]}")
    factors = (np.ones(x.shape[1]) if weight is None else weight.astype(np.float64))[safe] * counted
    chosen = np.take_along_axis(x, np.expand_dims(safe, 1), 1)[:, 0].astype(np.float64)
    loss = np.where(counted, -chosen * factors, 0)
    if reduction == MEAN:
        return np.asarray(loss.sum() / factors.sum()).astype(x.dtype)
    return reduced(loss, reduction, x.dtype)


def cross_entropy_loss(x: Array, target: Array, weight: Array | None = None, *options: Any) -> Array:
    """Cross-entropy of logits, with classes or their probabilities."""
    reduction, ignore_index, label_smoothing = filled(options, MEAN, -100, 0.0)
    check_kind("cross_entropy_loss", x.dtype, "_log_softmax")
    axis = 1 if x.ndim > 1 else 0
    logs = log_softmax(np.ascontiguousarray(x, wide(x.dtype)), axis)
    classes = x.shape[axis]
    factors = np.ones(classes) if weight is None else weight.astype(np.float64)
    column = factors.reshape(-1, *(1,) * (x.ndim - 1 - axis))
    if target.shape == x.shape and is_floating(target.dtype):
        smooth = target * (1 - label_smoothing) + label_smoothing / classes
        loss = -(logs * smooth * column).sum(axis)
        return reduced(loss, reduction, result_type(x, target, *(() if weight is None else (weight,))))
    plain = nll_loss(logs, target, weight, reduction, ignore_index)
    if not label_smoothing:
        return plain.astype(x.dtype, copy=False)
    counted = target != ignore_index
    even = np.where(counted, -(logs * column).sum(axis), 0)
    if reduction == MEAN:
        safe = np.where(counted, target, 0)
        even = np.asarray(even.sum() / (factors[safe] * counted).sum())
    elif reduction == _SUM:
        even = np.asarray(even.sum())
    return np.asarray(plain * (1 - label_smoothing) + even * (label_smoothing / classes)).astype(x.dtype)


# -- distances -----------------------------------------------------------------


def cosine_similarity(x: Array, y: Array, dim: int = 1, eps: float = 1e-8) -> Array:
    dtype = as_float(result_type(x, y))
    shape = broadcast_shape(x.shape, y.shape)
    a, b = (np.broadcast_to(v.astype(wide(dtype)), shape) for v in (x, y))
    if not eps >= 0:
        raise Error("IRC424", f"the least length is {eps}; it must not be negative")
    double = np.dtype(np.complex128) if dtype.kind == "c" else FLOAT64  # in which squares do not overflow
    sizes = [np.maximum(np.sqrt(np.sum(np.square(v.astype(double)), dim, keepdims=True)), eps) for v in (a, b)]
    return np.asarray(np.sum(a / sizes[0] * (b / sizes[1]), dim)).astype(dtype)


def _lengths(difference: Array, p: float, keepdim: bool = False) -> Array:
    size = np.abs(difference).astype(np.float64)
    if math.isinf(p):
        return np.max(size, -1, keepdims=keepdim, initial=0)
    if p == 0:
        return np.count_nonzero(size, -1, keepdims=keepdim).astype(np.float64)
    return np.sum(size**p, -1, keepdims=keepdim) ** (1 / p)


def pairwise_distance(x: Array, y: Array, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Array:
    within = wide(result_type(x, y))
    dtype = as_float(result_type(x, y))
    if within.kind == "b":
        raise Error("IRC423", "bools have no difference; convert them first")
    difference = (x.astype(within) - y.astype(within)).astype(wide(dtype), copy=False) + wide(dtype).type(eps)
    return np.asarray(_lengths(difference, p, keepdim)).astype(real_type(dtype))


def cdist(x: Array, y: Array, p: float = 2.0, compute_mode: int | None = None) -> Array:
    """(..., P, M) and (..., R, M) to (..., P, R)."""
    if compute_mode not in (None, 0, 1, 2):
        raise Error("IRC424", f"cdist has no mode {compute_mode}, only 0, 1 and 2")
    if x.shape[-1] != y.shape[-1]:
        raise Error("IRC421", f"points of {x.shape[-1]} and {y.shape[-1]} coordinates have no distance")
    dtype = result_type(x, y)
    check_size((*broadcast_shape(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-2], x.shape[-1]), FLOAT64)
    difference = x[..., :, None, :].astype(np.float64) - y[..., None, :, :]
    return _lengths(difference, p).astype(dtype, "C")


def pdist(x: Array, p: float = 2.0) -> Array:
    """Distances of each row to all rows after it."""
    if x.ndim != 2 or not p >= 0:
        raise Error("IRC421", f"no distances by p = {p} among rows of a tensor of shape {list(x.shape)}")
    n, width = x.shape
    check_size((n * (n - 1) // 2, width), np.dtype(np.float64))
    first, second = np.triu_indices(n, 1)
    return _lengths(x.astype(np.float64)[first] - x[second], p).astype(x.dtype)


# -- losses of pairs and margins -------------------------------------------------


def _floats(*operands: Array) -> tuple[Any, list[Array]]:
    """The type of a loss of ``operands``, a float one, and those in the type to compute in."""
    dtype = as_float(result_type(*operands))
    return dtype, [x.astype(wide(dtype), copy=False) for x in operands]


def margin_ranking_loss(x: Array, y: Array, target: Array, margin: float = 0.0, reduction: int = MEAN) -> Array:
    dtype = as_float(result_type(x, y, target))
    if is_integral(result_type(x, y, target)):  # whose differences are integers, which may wrap around
        gain = np.asarray(-target * np.subtract(x, y, dtype=result_type(x, y)))
    else:
        _, (a, b, t) = _floats(x, y, target)
        gain = -t * (a - b)
    loss = at_least(gain + wide(dtype).type(margin), np.zeros((), wide(dtype)))
    return reduced(loss, reduction, dtype, (target, x, y))


def hinge_embedding_loss(x: Array, target: Array, margin: float = 1.0, reduction: int = MEAN) -> Array:
    """Of the element type of ``x``, in which the margin is taken."""
    a = x.astype(wide(x.dtype), copy=False)
    apart = at_least(element_of(margin, a.dtype) - a, np.zeros((), a.dtype))
    loss = np.where(target != 1, apart, a.dtype.type(0)) + np.where(target != -1, a, a.dtype.type(0))
    return reduced(loss, reduction, x.dtype)


def soft_margin_loss(x: Array, target: Array, reduction: int = MEAN) -> Array:
    dtype, (a, t) = _floats(x, target)
    if dtype.kind == "c":
        return reduced(np.log(1 + np.exp(-t * a)), reduction, dtype)
    return reduced(np.logaddexp(0, -t * a), reduction, x.dtype)


def poisson_nll_loss(x: Array, target: Array, log_input: bool, full: bool, eps: float, reduction: int) -> Array:
    dtype, (a, t) = _floats(x, target)
    loss = np.exp(a) - t * a if log_input else a - t * np.log(a + eps)
    if full:  # Stirling's formula for the logarithm of the factorial
        large = np.where(t > 1, t, 2)
        loss = loss + np.where(t > 1, t * np.log(large) - t + 0.5 * np.log(2 * np.pi * large), 0)
    return reduced(loss, reduction, dtype)


def triplet_margin_loss(anchor: Array, positive: Array, negative: Array, *options: Any) -> Array:
    margin, p, eps, swap, reduction = filled(options, 1.0, 2.0, 1e-6, False, MEAN)
    dtype, a, near, far = as_float(result_type(anchor, positive, negative)), anchor, positive, negative
    if not a.ndim == near.ndim == far.ndim:
        raise Error("IRC421", f"the triplets have {a.ndim}, {near.ndim} and {far.ndim} dimensions; they must be alike")
    close, distant = pairwise_distance(a, near, p, eps), pairwise_distance(a, far, p, eps)
    if swap:
        distant = np.minimum(distant, pairwise_distance(near, far, p, eps))
    return reduced(np.maximum(margin + close - distant, 0), reduction, dtype)


def cosine_embedding_loss(x: Array, y: Array, target: Array, margin: float = 0.0, reduction: int = MEAN) -> Array:
    if target.ndim + 1 != x.ndim or x.ndim != y.ndim or x.ndim not in (1, 2):
        raise Error("IRC421", f"pairs of vectors need one target each; the shapes are {shapes_of(x, y, target)}")
    dtype = promote(as_float(x.dtype), as_float(y.dtype))

    def summed(a: Array, b: Array) -> Array:
        """Products of integers are integers, which wrap around."""
        own = result_type(a, b)
        a, b = a.astype(wide(own), copy=False), b.astype(wide(own), copy=False)
        return np.sum(a * b, -1).astype(wide(dtype), copy=False)

    sizes = (summed(x, x) + 1e-12) * (summed(y, y) + 1e-12)
    cosine = summed(x, y) / np.sqrt(sizes)
    loss = np.where(target == 1, 1 - cosine, 0) + np.where(target == -1, np.maximum(cosine - margin, 0), 0)
    return reduced(loss, reduction, dtype)


# -- losses of classes by margins ----------------------------------------------


def multi_margin_loss(x: Array, target: Array, *options: Any) -> Array:
    """``sum max(0, margin - x[target] + x[other])^p`` over other classes, divided by their number."""
    p, margin, weight, reduction = filled(options, 1, 1, None, MEAN)
    scores = np.atleast_2d(x)
    if x.ndim > 2 or not scores.shape[1] or target.ndim > 1 or target.size != scores.shape[0]:
        raise Error("IRC421", f"classes of shape {list(target.shape)} do not fit scores of shape {list(x.shape)}")
    if target.dtype != INT64 or p not in (1, 2):
        raise Error("IRC424", f"multi_margin_loss takes classes of int64 and p = 1 or 2, not {target.dtype.name}, {p}")
    if weight is not None and (weight.dtype != x.dtype or weight.shape != scores.shape[1:]):
        raise Error("IRC421", f"{scores.shape[1]} classes need a weight of {x.dtype.name} each")
    classes = target.reshape(-1)
    if classes.size and not 0 <= classes.min() <= classes.max() < scores.shape[1]:
        raise Error("IRC420", f"a class is not below {scores.shape[1]}")
    own = scores.astype(np.float64)[np.arange(len(classes)), classes]
    beyond = np.maximum(margin - own[:, None] + scores, 0) ** p
    beyond[np.arange(len(classes)), classes] = 0
    if weight is not None:
        beyond *= weight[classes, None]
    loss = beyond.sum(1) / scores.shape[1]
    return reduced(loss.reshape(target.shape), reduction, x.dtype)


def multilabel_margin_loss(x: Array, target: Array, reduction: int = MEAN) -> Array:
    """``sum max(0, 1 - x[label] + x[other])`` over labels before -1 and other classes, over all."""
    scores, labels = np.atleast_2d(x).astype(np.float64), np.atleast_2d(target)
    if x.ndim > 2 or target.shape != x.shape or not scores.shape[1] or target.dtype != INT64:
        raise Error("IRC421", f"labels {target.dtype.name}{list(target.shape)} do not fit scores {list(x.shape)}")
    if labels.size and not -1 <= labels.min() <= labels.max() < scores.shape[1]:
        raise Error("IRC420", f"a class is not below {scores.shape[1]}")
    loss: Array = np.zeros(len(scores))
    for i, (row, given) in enumerate(zip(scores, labels)):
        own = given[: int(np.argmin(np.append(given, -1)))]
        others = np.delete(row, own)
        loss[i] = np.maximum(0, 1 - row[own][:, None] + others).sum() / len(row)
    return reduced(loss.reshape(x.shape[:-1]), reduction, x.dtype)


def ctc_loss(logs: Array, targets: Array, input_lengths: Any, target_lengths: Any, *options: Any) -> Array:
    """``-log`` of the chance of each sequence, blanks and repetitions left out.

    Scores are (steps, N, classes), or (steps, classes) of one sequence; targets are (N, most), or one after the other.
    """
    blank, reduction, zero_infinity = filled(options, 0, MEAN, False)
    scores = logs[:, None] if logs.ndim == 2 else logs
    steps, lengths = _numbers(input_lengths), _numbers(target_lengths)
    if scores.ndim != 3 or not scores.size or not len(steps) == len(lengths) == scores.shape[1]:
        given = f"{len(steps)} and {len(lengths)} lengths are given"
        raise Error("IRC421", f"ctc_loss takes lengths for each sequence: {given} for {list(logs.shape)}")
    if min(*steps, *lengths) < 0 or max(steps) > scores.shape[0]:
        raise Error("IRC424", f"lengths of inputs are from 0 to {scores.shape[0]}, those of targets not negative")
    if not 0 <= blank < scores.shape[2]:
        raise Error("IRC424", f"the blank is class {blank} of {scores.shape[2]}")
    words = _sequences(targets, lengths)
    if any(w.size and not 0 <= w.min() <= w.max() < scores.shape[2] for w in words):
        raise Error("IRC420", f"a class is not below {scores.shape[2]}")
    wide = scores.astype(np.float64)
    loss = np.array([-_chance(wide[:n, i], w, blank) for i, (n, w) in enumerate(zip(steps, words, strict=True))])
    if zero_infinity:
        loss[np.isinf(loss)] = 0
    if reduction == MEAN:
        loss = loss / np.maximum(lengths, 1)
    return reduced(loss if logs.ndim == 3 else loss.reshape(()), reduction, logs.dtype)


def _numbers(lengths: Any) -> list[int]:
    if not is_array(lengths):
        return list(lengths)
    if lengths.dtype.kind not in "iu":
        raise Error("IRC423", f"lengths are integers, not {lengths.dtype.name}")
    return [int(n) for n in lengths.reshape(-1)]


def _sequences(targets: Array, lengths: Sequence[int]) -> list[Array]:
    targets = targets.real.astype(np.int64)
    if targets.ndim == 1 and targets.size == sum(lengths):
        ends = np.cumsum(lengths)
        return [targets[end - n : end] for n, end in zip(lengths, ends, strict=True)]
    if targets.ndim != 2 or targets.shape[0] != len(lengths) or targets.shape[1] < max(lengths):
        raise Error("IRC421", f"targets of shape {list(targets.shape)} do not fit lengths {list(lengths)[:8]}")
    return [row[:n] for row, n in zip(targets, lengths, strict=True)]


def _chance(logs: Array, word: Array, blank: int) -> Any:
    """The log of the sum over all alignments of ``word`` with blanks before, between and after."""
    said = np.full(2 * word.size + 1, blank, np.int64)
    said[1::2] = word
    if not len(logs):
        return -np.inf if word.size else 0.0
    ways = np.full(said.size, -np.inf)
    ways[:2] = logs[0, said[:2]]
    differs = said[2:] != said[:-2]
    for step in logs[1:]:
        before = ways
        ways = before.copy()
        ways[1:] = np.logaddexp(ways[1:], before[:-1])
        ways[2:] = np.where(differs, np.logaddexp(ways[2:], before[:-2]), ways[2:])
        ways += step[said]
    return np.logaddexp.reduce(ways[-2:])


table(
    mse_loss=partial(_elementwise, two(lambda a, b: np.square(a - b))),
    l1_loss=partial(_elementwise, two(lambda a, b: np.abs(a - b))),
    smooth_l1_loss=partial(_elementwise, _smooth_l1),
    kl_div=partial(_elementwise, _kl_div),
    nll_loss_nd=nll_loss,
)
