"""Linear models and the regressor by support vectors, of ``ai.onnx.ml``.

What the specification leaves open, the scores of a classifier with one row of
coefficients for two classes, is as in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.guards.bounds import check_work
from irc.runtime.kernels.ml_features import as_rows
from irc.runtime.kernels.ml_scores import TRANSFORMS, class_labels, post_transform
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, check_size

if TYPE_CHECKING:
    from irc.ir import Node


def _floats(node: Node, name: str) -> Array:
    return np.array(node.attributes.get(name) or [], np.float64)


@kernel("ai.onnx.ml::LinearRegressor")
def linear_regressor(node: Node) -> Kernel:
    """Of x [n, features] the transformed ``x @ coefficients + intercepts``, [n, targets], as float32."""
    targets: int = node.attributes.get("targets", 1)
    coefficients = np.array(node.attributes.get("coefficients", []), np.float64)
    intercepts = np.array(node.attributes.get("intercepts") or [0.0], np.float64)
    if targets < 1 or coefficients.size % targets or intercepts.size not in (1, targets):
        given = f"{coefficients.size} coefficients and {intercepts.size} intercepts"
        raise Error("IRC320", f"{given} do not fit {targets} targets")
    weights = coefficients.reshape(targets, -1).T
    transform = TRANSFORMS[post_transform(node)]

    def run(x: Array) -> Array:
        rows = as_rows(x)
        if rows.shape[1] != len(weights):
            raise Error(
                "IRC421", f"an input of shape {list(x.shape)} does not fit {len(weights)} coefficients a target"
            )
        return transform(rows.astype(np.float64) @ weights + intercepts).astype(np.float32, order="C")

    return run


@kernel("ai.onnx.ml::LinearClassifier")
def linear_classifier(node: Node) -> Kernel:
    """Of x [n, features] the best class of each row, [n], and the transformed scores, [n, classes]."""
    labels = class_labels(node, "classlabels_ints")
    coefficients, intercepts, name = _floats(node, "coefficients"), _floats(node, "intercepts"), post_transform(node)
    classes = len(labels)
    # One row of coefficients tells two classes apart; without intercepts the number of features decides.
    transform, logistic = TRANSFORMS[name], TRANSFORMS["LOGISTIC"]

    def run(x: Array) -> tuple[Array, Array]:
        rows = as_rows(x)
        features = rows.shape[1]
        single = classes == 2 and coefficients.size == features
        models = 1 if single else classes
        if coefficients.size != models * features or intercepts.size not in (0, models):
            given = f"{coefficients.size} coefficients and {intercepts.size} intercepts"
            raise Error("IRC421", f"{given} do not fit {classes} classes and an input of shape {list(x.shape)}")
        scores = rows.astype(np.float64) @ coefficients.reshape(models, -1).T
        scores = scores + intercepts if intercepts.size else scores
        if not single:
            return labels[np.argmax(scores, axis=1)], transform(scores).astype(np.float32, order="C")
        if name == "PROBIT":
            raise Error("IRC320", "the scores of two classes by one row of coefficients have no PROBIT")
        score = scores[:, 0]
        best = labels[(score > 0).astype(np.int64)]
        pair = (logistic(-score), logistic(score)) if name == "LOGISTIC" else (1 - score, score)
        return best, np.stack(pair, axis=1).astype(np.float32)

    return run


KERNELS: dict[str, Callable[[Array, Array, float, float, float], Array]] = {
    "LINEAR": lambda x, v, gamma, shift, degree: x @ v.T,
    "POLY": lambda x, v, gamma, shift, degree: (gamma * (x @ v.T) + shift) ** degree,
    "SIGMOID": lambda x, v, gamma, shift, degree: np.tanh(gamma * (x @ v.T) + shift),
    "RBF": lambda x, v, gamma, shift, degree: np.exp(-gamma * _squared_distances(x, v)),
}
"""Of x [n, features] and v [vectors, features] the similarities, [n, vectors]."""


def _squared_distances(x: Array, v: Array) -> Array:
    found = np.zeros((len(x), len(v)))
    for a, b in zip(x.T, v.T, strict=True):  # by feature: differences of large numbers are exact, their squares are not
        found += np.square(a[:, None] - b)
    return found


@kernel("ai.onnx.ml::SVMRegressor")
def svm_regressor(node: Node) -> Kernel:
    """Of x [n, features] the weighted similarities to support vectors plus rho, [n, 1]; of one class, 1 or -1."""
    coefficients, rho = _floats(node, "coefficients"), _floats(node, "rho")
    count: int = node.attributes.get("n_supports", 0)
    vectors, (gamma, shift, degree) = _floats(node, "support_vectors"), _parameters(node)
    kind = node.attributes.get("kernel_type", "LINEAR") if count else "LINEAR"
    if kind not in KERNELS:
        raise Error("IRC320", f"kernel_type is {kind!r}; it must be one of {', '.join(KERNELS)}")
    if rho.size != 1 or count < 0 or (count and (coefficients.size != count or vectors.size % count)):
        given = f"{coefficients.size} coefficients, {vectors.size} numbers in vectors and {rho.size} of rho"
        raise Error("IRC320", f"{given} do not fit {count} support vectors")
    similar, transform = KERNELS[kind], TRANSFORMS[post_transform(node)]
    one_class = bool(node.attributes.get("one_class", 0))
    basis = vectors.reshape(count, -1) if count else coefficients.reshape(1, -1)
    factors = coefficients if count else np.ones(1)

    def run(x: Array) -> Array:
        rows = as_rows(x).astype(np.float64)
        if rows.shape[1] != basis.shape[1]:
            raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [n, {basis.shape[1]}]")
        check_size((len(rows), len(basis)), rows.dtype)
        check_work(rows.size * len(basis))
        score = (similar(rows, basis, gamma, shift, degree) @ factors + rho)[:, None]
        found = np.where(score > 0, 1, -1) if one_class else transform(score)
        return found.astype(np.float32)

    return run


def _parameters(node: Node) -> tuple[float, float, float]:
    """gamma, coef0 and degree."""
    given: list[float] = node.attributes.get("kernel_params") or [0.0, 0.0, 0.0]
    if len(given) != 3:
        raise Error("IRC320", f"kernel_params has {len(given)} values; it must have 3: gamma, coef0 and degree")
    return given[0], given[1], given[2]
