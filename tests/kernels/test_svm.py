"""SVMClassifier. SVMRegressor is among the tests of features."""

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import assert_same, run_kernel, run_ort

ML = "ai.onnx.ml"
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]
X = np.random.default_rng(0).standard_normal((40, 3)).astype(np.float32)


def machine(sizes: list[int], kind: str = "RBF", *, probabilities: bool = False, positive: bool = False) -> Any:
    """A classifier by support vectors, so many of each class."""
    rng = np.random.default_rng(1 + len(sizes) + 10 * sum(sizes))
    classes, count = len(sizes), sum(sizes)
    pairs = classes * (classes - 1) // 2
    coefficients = rng.standard_normal((classes - 1) * count)
    found: dict[str, Any] = {
        "kernel_type": kind,
        "kernel_params": [0.5, 0.25, 2.0],
        "coefficients": (np.abs(coefficients) if positive else coefficients).tolist(),
        "support_vectors": rng.standard_normal(count * 3).tolist(),
        "vectors_per_class": sizes,
        "rho": (rng.standard_normal(pairs) / 2).tolist(),
        "classlabels_ints": [*range(7, 7 + classes)],
    }
    if probabilities:
        found |= {"prob_a": rng.uniform(-3, -1, pairs).tolist(), "prob_b": rng.standard_normal(pairs).tolist()}
    return found


def check(x: Any, attributes: Any, atol: float = 1e-5) -> None:
    expected = run_ort("SVMClassifier", [x], attributes, 1, 2, ML)
    found = run_kernel("SVMClassifier", [x], attributes, 1, 2, ML)
    assert len(set(found[0].tolist())) > 1, "one class wins everywhere: that shows little"
    assert_same(found, expected, 1e-4, atol)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("sizes", [[2, 3], [3, 2, 4]])
@pytest.mark.parametrize("probabilities", [False, True])
def test_what_becomes_of_scores(transform: str, sizes: list[int], probabilities: bool) -> None:
    attributes = machine(sizes, probabilities=probabilities) | {"post_transform": transform}
    if transform == "PROBIT":
        if len(sizes) == 2 and not probabilities:
            with pytest.raises(Error, match="PROBIT"):
                run_kernel("SVMClassifier", [X], attributes, 1, 2, ML)
            return
        found, expected = (f("SVMClassifier", [X], attributes, 1, 2, ML)[1] for f in (run_kernel, run_ort))
        np.testing.assert_allclose(found[np.isfinite(expected)], expected[np.isfinite(expected)], atol=0.02)
        return  # ONNX Runtime's quantiles are an approximation, good to two places
    check(X, attributes)


@pytest.mark.parametrize("transform", TRANSFORMS[:-1])
@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("positive", [False, True])
def test_by_weights(transform: str, classes: int, positive: bool) -> None:
    weights = np.random.default_rng(classes).standard_normal(3 * classes)
    attributes = {
        "coefficients": (np.abs(weights) if positive else weights).tolist(),
        "rho": [-0.25],
        "kernel_params": [0.0, 0.0, 0.0],  # ONNX Runtime needs them
        "classlabels_strings": list("abcde")[:classes],
        "post_transform": transform,
    }
    check(X, attributes)
    check(X, attributes | {"prob_a": [-1.0] * 10, "prob_b": [0.5] * 10})


def test_probabilities_add_up_to_one() -> None:
    _, found = run_kernel("SVMClassifier", [X], machine([2, 1, 3, 2], probabilities=True), 1, 2, ML)
    np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-5)
    assert (found > 0).all()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vectors_per_class": [2, 2]}, "do not fit 3 classes"),
        ({"vectors_per_class": [2, 2, -1]}, "fewer than no vectors"),
        ({"coefficients": [1.0]}, "do not fit 3 classes"),
        ({"rho": [1.0]}, "do not fit 3 classes"),
        ({"prob_a": [1.0] * 3}, "do not fit 3 classes"),
        ({"support_vectors": [1.0] * 4}, "do not fit 3 classes"),
        ({"support_vectors": [1.0] * 10}, r"must be \[n, 2\]"),
        ({"kernel_type": "CUBE"}, "kernel_type"),
        ({"kernel_params": [1.0]}, "must have 3"),
        ({"classlabels_ints": None}, "exactly one of"),
        ({"vectors_per_class": None, "coefficients": [1.0] * 10}, "10 coefficients"),
        ({"vectors_per_class": None, "rho": None}, "0 of rho"),
        ({"vectors_per_class": [1], "classlabels_ints": [1], "support_vectors": [1.0] * 3}, "do not fit 1 classes"),
    ],
)
def test_bad_machines(change: dict[str, Any], words: str) -> None:
    attributes = {k: v for k, v in (machine([1, 2, 2]) | change).items() if v is not None}
    with pytest.raises(Error, match=words) as caught:
        run_kernel("SVMClassifier", [X], attributes, 1, 2, ML)
    assert caught.value.code in ("IRC320", "IRC421")
