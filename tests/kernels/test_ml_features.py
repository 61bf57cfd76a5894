"""The operators of ai.onnx.ml that prepare features, and linear models, against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

import irc
from irc.errors import Error
from tests.kernels.helpers import assert_same, run_kernel, run_ort
from tests.models import onnx_model

ML = "ai.onnx.ml"
X = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
HOLES = np.where(X > 0.5, np.float32(np.nan), X)
WORDS = np.array(["a", "b", "z"], object)

CASES: list[tuple[str, list[Any], dict[str, Any]]] = [
    ("ArrayFeatureExtractor", [X, np.array([2, 0, 2])], {}),
    ("ArrayFeatureExtractor", [X[0], np.array([1])], {}),
    ("ArrayFeatureExtractor", [WORDS, np.array([[1, 1]])], {}),
    ("Binarizer", [X], {}),
    ("FeatureVectorizer", [X, X[:, :1]], {"inputdimensions": [3, 1]}),
    ("Imputer", [HOLES], {"imputed_value_floats": [9.0], "replaced_value_float": float("nan")}),
    ("Imputer", [np.array([[0, 5], [3, 0]])], {"imputed_value_int64s": [7, 8]}),
    ("OneHotEncoder", [np.array([[1, 0], [9, 2]])], {"cats_int64s": [0, 1, 2]}),
    ("OneHotEncoder", [np.array([1.5, 0], np.float32)], {"cats_int64s": [0, 1, 2]}),
    ("Scaler", [X], {"offset": [0.5], "scale": [2.0]}),
    ("Scaler", [X.astype(np.float64)], {"offset": [0.5, 0.0, -1.0], "scale": [2.0, 1.0, 0.5]}),
    ("Scaler", [np.array([[4, 5]])], {"offset": [1.0], "scale": [0.5]}),
    ("LinearRegressor", [X], {"coefficients": [0.5, -1.0, 2.0]}),
    ("SVMRegressor", [X], {"coefficients": [0.5, -1.0, 2.0], "rho": [0.25], "kernel_params": [0.0, 0.0, 0.0]}),
    ("SVMRegressor", [X], {"coefficients": [0.5, -1.0, 2.0], "rho": [0.25], "kernel_params": [0.0, 0.0, 0.0],
                           "one_class": 1}),
    *(("SVMRegressor", [X], {"coefficients": [0.5, -1.0], "n_supports": 2, "rho": [0.25], "kernel_type": kind,
                             "support_vectors": [0.1, 0.2, 0.3, -1.0, 1.0, 0.5], "kernel_params": [0.5, 0.25, 3.0]})
      for kind in ("LINEAR", "POLY", "RBF", "SIGMOID")),
    ("LinearRegressor", [X], {"coefficients": [0.5, -1.0, 2.0, 1.0, 1.5, 3.0], "targets": 2}),
    ("LinearRegressor", [X], {"coefficients": [0.5, -1.0, 2.0, 1.0, 1.5, 3.0], "intercepts": [0.5, 1.0], "targets": 2,
                              "post_transform": "SOFTMAX"}),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes"), CASES)
def test_against_onnx_runtime(op: str, inputs: list[Any], attributes: dict[str, Any]) -> None:
    expected = run_ort(op, inputs, attributes, 1, 1, ML)
    assert_same(run_kernel(op, inputs, attributes, 1, 1, ML), expected)


@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO"])
@pytest.mark.parametrize(("classes", "single"), [(2, False), (2, True), (3, False)])
@pytest.mark.parametrize("has_intercepts", [False, True])
def test_linear_classifiers(transform: str, classes: int, single: bool, has_intercepts: bool) -> None:
    models = 1 if single else classes
    rng = np.random.default_rng(models)
    attributes = {"coefficients": rng.standard_normal(3 * models).tolist(), "post_transform": transform}
    attributes["classlabels_strings"] = list("abc")[:classes]
    # ONNX Runtime needs intercepts.
    attributes["intercepts"] = (rng.standard_normal(models) * has_intercepts).tolist()
    expected = run_ort("LinearClassifier", [X], attributes, 1, 2, ML)
    if not has_intercepts:
        del attributes["intercepts"]
    assert_same(run_kernel("LinearClassifier", [X], attributes, 1, 2, ML), expected)


BAD: list[tuple[str, list[Any], dict[str, Any], str]] = [
    ("ArrayFeatureExtractor", [X, np.array([3])], {}, "there are 3"),
    ("ArrayFeatureExtractor", [X, np.array([-1])], {}, "there are 3"),
    ("ArrayFeatureExtractor", [X[0, 0], np.array([0])], {}, "scalar"),
    ("FeatureVectorizer", [X, X[:2]], {"inputdimensions": [3, 3]}, "do not make columns"),
    ("FeatureVectorizer", [X], {"inputdimensions": [3, 3]}, "do not make columns"),
    ("FeatureVectorizer", [X], {"inputdimensions": [1 << 45]}, "would take more"),
    ("FeatureVectorizer", [X], {"inputdimensions": [-1]}, "negative"),
    ("Imputer", [X], {}, "exactly one of"),
    ("Imputer", [X], {"imputed_value_floats": [1.0, 2.0]}, "2 values"),
    ("OneHotEncoder", [np.array([5])], {"cats_int64s": [1], "zeros": 0}, "5 is none"),
    ("Scaler", [X], {"offset": [1.0, 2.0]}, "2 values"),
    ("LinearRegressor", [X], {"coefficients": [1.0, 2.0]}, "2 coefficients"),
    ("SVMRegressor", [X], {"coefficients": [1.0, 2.0], "rho": [1.0]}, r"must be \[n, 2\]"),
    ("SVMRegressor", [X], {"coefficients": [1.0, 2.0]}, "0 of rho"),
    ("SVMRegressor", [X], {"coefficients": [1.0] * 3, "rho": [1.0], "kernel_params": [1.0]}, "must have 3"),
    ("SVMRegressor", [X], {"coefficients": [1.0], "rho": [1.0], "n_supports": 1, "support_vectors": [1.0] * 3,
                           "kernel_type": "CUBE"}, "kernel_type"),
    ("LinearClassifier", [X], {"coefficients": [1.0] * 5, "classlabels_ints": [1, 2]}, "5 coefficients"),
    ("LinearClassifier", [X], {"coefficients": [1.0] * 3}, "exactly one of classlabels_ints"),
    ("LinearClassifier", [X], {"coefficients": [1.0] * 3, "classlabels_ints": [1, 2], "post_transform": "PROBIT"},
     "PROBIT"),
    ("LinearRegressor", [X], {"coefficients": [1.0, 2.0, 3.0], "targets": 2}, "do not fit 2 targets"),
]  # fmt: skip


@pytest.mark.parametrize(("op", "inputs", "attributes", "words"), BAD)
def test_bad_nodes(op: str, inputs: list[Any], attributes: dict[str, Any], words: str) -> None:
    with pytest.raises(Error, match=words):
        run_kernel(op, inputs, attributes, 1, 1, ML)


def test_a_scaler_takes_one_shape_after_another():
    attributes: dict[str, Any] = {"offset": [0.5, 0.0, -1.0], "scale": [2.0, 1.0, 0.1]}
    node = helper.make_node("Scaler", ["x"], ["y"], domain=ML, **attributes)
    compiled = irc.compile(onnx_model(node, {"x": None}, ai_onnx_ml=1))
    for x in (X, X[:2], X[0], np.asfortranarray(X), np.tile(X, (1000, 1)), X[:0], X):
        expected = run_kernel("Scaler", [x], attributes, 1, 1, ML)[0]
        for _ in range(2):
            np.testing.assert_array_equal(compiled.run({"x": x})["y"], expected, strict=True)
        with pytest.raises(Error, match="IRC421"):
            compiled.run({"x": X[:, :2]})
