"""Linear models of ``ai.onnx.ml``.

What the specification leaves open, the scores of a classifier with one row of
coefficients for two classes, is as in ONNX Runtime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.ir.limits import MAX_ELEMENTS
from irc.runtime.kernels.ml_features import as_rows
from irc.runtime.kernels.ml_scores import TRANSFORMS, class_labels, post_transform
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array

if TYPE_CHECKING:
    from irc.ir import Node


def floats(node: Node, name: str) -> Array:
    """An attribute's numbers; none if it is absent."""
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
    if targets > MAX_ELEMENTS:  # which go with no coefficients at all
        raise Error("IRC324", f"a number is too large, that of targets: {targets}")
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
    coefficients, intercepts, name = floats(node, "coefficients"), floats(node, "intercepts"), post_transform(node)
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
        # A class is chosen by the scores as they are returned: of two that are equal then, the first.
        scores = (scores + intercepts if intercepts.size else scores).astype(np.float32).astype(np.float64)
        if not single:
            return labels[np.argmax(scores, axis=1)], transform(scores).astype(np.float32, order="C")
        if name == "PROBIT":
            raise Error("IRC320", "the scores of two classes by one row of coefficients have no PROBIT")
        score = scores[:, 0]
        best = labels[(score > 0).astype(np.int64)]
        pair = (logistic(-score), logistic(score)) if name == "LOGISTIC" else (1 - score, score)
        return best, np.stack(pair, axis=1).astype(np.float32)

    return run
