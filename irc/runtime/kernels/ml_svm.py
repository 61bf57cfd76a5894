"""Support vector machines of ``ai.onnx.ml``.

What the specification leaves open, the order of the pairs' scores and what
becomes of them, is as in ONNX Runtime, and before that in LIBSVM (Chang and
Lin, "LIBSVM: a library for support vector machines", 2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import check_work, pace
from irc.runtime.kernels.elementwise import power
from irc.runtime.kernels.ml import TRANSFORMS, as_rows, class_labels, floats, post_transform
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, check_size

if TYPE_CHECKING:
    from irc.ir import Node

KERNELS: dict[str, Callable[[Array, Array, float, float, float], Array]] = {
    "LINEAR": lambda x, v, gamma, shift, degree: x @ v.T,
    "POLY": lambda x, v, gamma, shift, degree: power(gamma * (x @ v.T) + shift, np.array(degree, x.dtype)),
    "SIGMOID": lambda x, v, gamma, shift, degree: np.tanh(gamma * (x @ v.T) + shift),
    "RBF": lambda x, v, gamma, shift, degree: np.exp(-gamma * _squared_distances(x, v)),
}
"""Of x [n, features] and v [vectors, features] the similarities, [n, vectors]."""


def _squared_distances(x: Array, v: Array) -> Array:
    found = np.zeros((len(x), len(v)))
    for a, b in zip(x.T, v.T, strict=True):  # by feature: differences of large numbers are exact, their squares are not
        found += np.square(a[:, None] - b)
    return found


Similarity = Callable[[Array], Array]


def _similarity(node: Node, basis: Array, kind: str) -> Similarity:
    """Of x [n, features] the similarities to each vector in ``basis``, [n, vectors]."""
    if kind not in KERNELS:
        raise Error("IRC320", f"kernel_type is {kind!r}; it must be one of {', '.join(KERNELS)}")
    similar, (gamma, shift, degree) = KERNELS[kind], _parameters(node)

    def run(x: Array) -> Array:
        rows = as_rows(x).astype(np.float64)
        if rows.shape[1] != basis.shape[1]:
            raise Error("IRC421", f"the input has shape {list(x.shape)}; it must be [n, {basis.shape[1]}]")
        check_size((len(rows), len(basis)), rows.dtype)
        check_work(rows.size * len(basis))
        return similar(rows, basis, gamma, shift, degree)

    return run


def _parameters(node: Node) -> tuple[float, float, float]:
    """gamma, coef0 and degree."""
    given: list[float] = node.attributes.get("kernel_params") or [0.0, 0.0, 0.0]
    if len(given) != 3:
        raise Error("IRC320", f"kernel_params has {len(given)} values; it must have 3: gamma, coef0 and degree")
    return given[0], given[1], given[2]


@kernel("ai.onnx.ml::SVMRegressor")
def svm_regressor(node: Node) -> Kernel:
    """Of x [n, features] the weighted similarities to support vectors plus rho, [n, 1]; of one class, 1 or -1."""
    coefficients, rho, vectors = (floats(node, name) for name in ("coefficients", "rho", "support_vectors"))
    count: int = node.attributes.get("n_supports", 0)
    if rho.size != 1 or count < 0 or (count and (coefficients.size != count or vectors.size % count)):
        given = f"{coefficients.size} coefficients, {vectors.size} numbers in vectors and {rho.size} of rho"
        raise Error("IRC320", f"{given} do not fit {count} support vectors")
    transform = TRANSFORMS[post_transform(node)]
    one_class = bool(node.attributes.get("one_class", 0))
    basis = vectors.reshape(count, -1) if count else coefficients.reshape(1, -1)
    factors = coefficients if count else np.ones(1)
    similar = _similarity(node, basis, node.attributes.get("kernel_type", "LINEAR") if count else "LINEAR")

    def run(x: Array) -> Array:
        score = (similar(x) @ factors + rho)[:, None]
        found = np.where(score > 0, 1, -1) if one_class else transform(score)
        return found.astype(np.float32)

    return run


@kernel("ai.onnx.ml::SVMClassifier")
def svm_classifier(node: Node) -> Kernel:
    """Of x [n, features] the best class of each row, [n], and scores, float32.

    The scores are of pairs of classes, [n, pairs] (of two classes [n, 2]); with
    ``prob_a`` and ``prob_b`` the classes' probabilities, [n, classes], as they
    are without support vectors.
    """
    sizes: list[int] = node.attributes.get("vectors_per_class") or []
    if min(sizes, default=0) < 0:
        raise Error("IRC320", f"vectors_per_class is {sizes}; a class cannot have fewer than no vectors")
    return _by_vectors(node, sizes) if sum(sizes) else _by_weights(node)


def _by_weights(node: Node) -> Kernel:
    labels, transform = class_labels(node, "classlabels_ints"), TRANSFORMS[post_transform(node)]
    coefficients, rho, classes = floats(node, "coefficients"), floats(node, "rho"), len(labels)
    if not coefficients.size or coefficients.size % classes or not rho.size:
        raise Error("IRC320", f"{coefficients.size} coefficients and {rho.size} of rho do not fit {classes} classes")
    similar = _similarity(node, coefficients.reshape(classes, -1), "LINEAR")
    # Of two classes the second is the one that wins by a threshold, unless there are probabilities.
    least = 0.5 if (coefficients >= 0).all() else np.nextafter(0, 1)
    by_threshold = classes == 2 and not floats(node, "prob_a").size

    def run(x: Array) -> tuple[Array, Array]:
        scores = (similar(x) + rho[0]).astype(np.float32)
        best = np.argmax(scores, axis=1)
        if by_threshold:
            best[scores.max(axis=1) >= least] = 1
        return labels[best], transform(scores).astype(np.float32, order="C")

    return run


def _by_vectors(node: Node, sizes: list[int]) -> Kernel:
    labels, name = class_labels(node, "classlabels_ints"), post_transform(node)
    classes, count = len(labels), sum(sizes)
    coefficients, rho, vectors = (floats(node, name) for name in ("coefficients", "rho", "support_vectors"))
    slopes, shifts = floats(node, "prob_a").astype(np.float32), floats(node, "prob_b").astype(np.float32)
    pairs = classes * (classes - 1) // 2
    wanted = {"vectors_per_class": classes, "coefficients": (classes - 1) * count, "rho": pairs}
    wanted |= {"prob_a": pairs, "prob_b": pairs} if slopes.size or shifts.size else {}
    given = {key: len(node.attributes.get(key) or []) for key in wanted}
    fit = given["vectors_per_class"] == classes and all(given[key] >= size for key, size in wanted.items())
    if classes < 2 or not fit or not vectors.size or vectors.size % count:
        raise Error("IRC320", f"{given} do not fit {classes} classes with {count} support vectors: {wanted}")
    if pairs == 1 and not slopes.size and name == "PROBIT":
        raise Error("IRC320", "the scores of two classes by support vectors have no PROBIT")
    similar = _similarity(node, vectors.reshape(count, -1), node.attributes.get("kernel_type", "LINEAR"))
    first, second = np.triu_indices(classes, 1)
    # A vector has a coefficient for each class but its own: of class i against j, greater, in row j - 1; of j in row i.
    table = coefficients[: (classes - 1) * count].reshape(classes - 1, count)
    ends = np.cumsum(sizes).tolist()
    of = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]

    def run(x: Array) -> tuple[Array, Array]:
        similarities = similar(x)
        sums = np.empty(check_size((len(similarities), classes, classes - 1), similarities.dtype))
        check_work(similarities.size * classes)
        for i, part in enumerate(of):
            np.matmul(similarities[:, part], table[:, part].T, out=sums[:, i])
        scores = (sums[:, first, second - 1] + sums[:, second, first] + rho[:pairs]).astype(np.float32)
        votes = np.zeros((len(scores), classes), np.int64)
        np.add.at(votes, (np.arange(len(scores))[:, None], np.where(scores > 0, first, second)), 1)
        best = labels[np.argmax(votes, axis=1)]
        if slopes.size:
            less = 1 - TRANSFORMS["LOGISTIC"](scores * slopes[:pairs] + shifts[:pairs])
            scores = _coupled(np.clip(less, 1e-7, 1 - 1e-7, dtype=np.float32), first, second, classes)
        elif pairs == 1:
            both = np.hstack([-scores if name in ("NONE", "LOGISTIC") else 1 - scores, scores])
            return best, TRANSFORMS[name](both) if name == "LOGISTIC" else both
        return best, TRANSFORMS[name](scores).astype(np.float32, order="C")

    return run


_MOST_TURNS = 100


def _coupled(less: Array, first: Array, second: Array, classes: int) -> Array:
    """Probabilities of classes, [n, classes], from those that the first of a pair beats the second, [n, pairs].

    The second method of Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling"
    (2004): the minimum of p Q p with a sum of 1, class by class until the equations hold up to 0.005 / classes.
    """
    n = len(less)
    beats = np.zeros(check_size((n, classes, classes), less.dtype), less.dtype)
    beats[:, first, second], beats[:, second, first] = less, 1 - less
    q = -np.swapaxes(beats, 1, 2) * beats
    diagonal = np.square(beats).sum(axis=1)
    q[:, range(classes), range(classes)] = diagonal
    found = np.full((n, classes), 1 / classes, less.dtype)
    going = np.arange(n)
    for _ in range(_MOST_TURNS):
        pace()
        p, matrix = found[going], q[going]
        product = np.matmul(matrix, p[:, :, None])[:, :, 0]
        total = (p * product).sum(axis=1)
        open_ = np.abs(product - total[:, None]).max(axis=1) >= 0.005 / classes
        going, p, product, total, matrix = going[open_], p[open_], product[open_], total[open_], matrix[open_]
        if not going.size:
            break
        for i in range(classes):
            own = matrix[:, i, i]
            step = (total - product[:, i]) / own
            p[:, i] += step
            total = (total + step * (step * own + 2 * product[:, i])) / (1 + step) / (1 + step)
            product = (product + step[:, None] * matrix[:, i]) / (1 + step[:, None])
            p /= 1 + step[:, None]
        found[going] = p
    return found
