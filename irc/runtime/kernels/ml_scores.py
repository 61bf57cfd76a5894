"""Transformations of the scores of classifiers and regressors of ``ai.onnx.ml``."""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.softmax import softmax
from irc.runtime.kernels.support import Array

if TYPE_CHECKING:
    from irc.ir import Node

Transform = Callable[[Array], Array]


def _none(x: Array) -> Array:
    return x


def _logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _softmax(x: Array) -> Array:
    return softmax(x, -1)


def _softmax_zero(x: Array) -> Array:
    """Softmax in which scores of 0 stay 0."""
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    powers = np.exp(x - top)
    np.multiply(x, np.exp(-top), out=powers, where=np.abs(x) <= 1e-7)
    total = np.sum(powers, axis=-1, keepdims=True)
    return np.divide(powers, total, out=powers, where=total != 0)


def _probit(x: Array) -> Array:
    """The quantile of the normal distribution: NaN outside [0, 1]."""
    quantile = NormalDist().inv_cdf
    ends = {0.0: -np.inf, 1.0: np.inf}
    found = [quantile(p) if 0 < p < 1 else ends.get(p, np.nan) for p in x.reshape(-1).tolist()]
    return np.array(found, np.float64).reshape(x.shape)


TRANSFORMS: dict[str, Transform] = {
    "NONE": _none,
    "SOFTMAX": _softmax,
    "LOGISTIC": _logistic,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}
"""In the order of TreeEnsemble's numbers for them."""


def post_transform(node: Node) -> str:
    """The node's ``post_transform`` by name; Error for an unknown name."""
    given: Any = node.attributes.get("post_transform", "NONE")
    name = list(TRANSFORMS)[given] if isinstance(given, int) and 0 <= given < len(TRANSFORMS) else given
    if name not in TRANSFORMS:
        raise Error("IRC320", f"post_transform is {given!r}; it must be one of {', '.join(TRANSFORMS)}")
    return name


def class_labels(node: Node, ints: str) -> Array:
    """The labels of classes, [classes]: the attribute ``ints``, or ``classlabels_strings``."""
    numbers: list[int] = node.attributes.get(ints) or []
    words: list[str] = node.attributes.get("classlabels_strings") or []
    if bool(numbers) == bool(words):
        raise Error("IRC320", f"exactly one of {ints} and classlabels_strings must be given")
    return np.array(numbers, np.int64) if numbers else np.array(words, object)
