"""Losses of classes by margins, and of sequences of classes that are not aligned with their scores (CTC)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import INT64
from irc.runtime.kernels.aten.losses import MEAN, reduced
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.support import Array
from irc.runtime.values import is_array


def _multi_margin(
    x: Array, target: Array, p: Any = 1, margin: Any = 1, weight: Array | None = None, reduction: int = MEAN
) -> Array:
    """``sum max(0, margin - x[target] + x[other])^p`` over other classes, divided by their number."""
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


def _multi_label_margin(x: Array, target: Array, reduction: int = MEAN) -> Array:
    """``sum max(0, 1 - x[label] + x[other])`` over labels, those before -1, and other classes, divided by all."""
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


def _ctc(
    logs: Array,
    targets: Array,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = MEAN,
    zero_infinity: bool = False,
) -> Array:
    """``-log`` of the chance of each sequence, blanks and repetitions left out.

    Scores are (steps, N, classes), or (steps, classes) of one sequence; targets are (N, most), or one after the other.
    """
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
    """The logarithm of the sum over all ways to say ``word``, with blanks before, between and after its classes."""
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


table({"multi_margin_loss": _multi_margin, "multilabel_margin_loss": _multi_label_margin, "ctc_loss": _ctc})
