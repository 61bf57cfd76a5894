"""Versions of ai.onnx.ml against ONNX Runtime, which defines what the specification leaves open."""

from typing import Any

import numpy as np

from tests.kernels.versions.rows import Row, each, floats, ints

X = floats(4, 3)
NAMES = np.array(["a", "b", "z"], object)
ML = "ai.onnx.ml"


def ml(
    op: str, inputs: list[Any], attributes: dict[str, Any], versions: Any = None, outputs: int = 1, **more: Any
) -> Row:
    return Row(op, inputs, attributes, versions, None, outputs, ML, **more)


TREES: dict[str, Any] = {
    "nodes_treeids": [0, 0, 0, 1, 1, 1],
    "nodes_nodeids": [0, 1, 2, 0, 1, 2],
    "nodes_featureids": [0, 0, 0, 2, 0, 0],
    "nodes_values": [0.1, 0.0, 0.0, -0.2, 0.0, 0.0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_GT", "LEAF", "LEAF"],
    "nodes_truenodeids": [1, 0, 0, 1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0, 2, 0, 0],
}
LEAVES = [0, 0, 1, 1], [1, 2, 1, 2], [0, 1, 2, 0], [0.5, 0.75, 0.25, 1.5]


def leaves(prefix: str) -> dict[str, Any]:
    return dict(zip([f"{prefix}_{k}" for k in ("treeids", "nodeids", "ids", "weights")], LEAVES, strict=True))


CLASSES = TREES | leaves("class") | {"classlabels_int64s": [0, 1, 2]}
TARGETS = TREES | leaves("target") | {"n_targets": 3}
ONE_SCORE = TREES | leaves("class") | {"class_ids": [0] * 4, "classlabels_strings": ["n", "y"]}
VECTORS: dict[str, Any] = {"kernel_type": "RBF", "kernel_params": [0.5, 0.0, 3.0]}
MACHINE = VECTORS | {"support_vectors": floats(4, 3, seed=1).ravel().tolist(), "coefficients": [0.5, -0.25, 1.0, 0.75]}


@each(
    [
        ml("LabelEncoder", [NAMES], {"classes_strings": ["b", "a"], "default_int64": -7}, [1]),
        ml("LabelEncoder", [ints(1, 0, 5)], {"classes_strings": ["b", "a"], "default_string": "none"}, [1]),
        ml("LabelEncoder", [NAMES], {"keys_strings": ["a", "b"], "values_int64s": [5, 6]}, [2, 4]),
        ml("LabelEncoder", [ints(3, 9)], {"keys_int64s": [3, 4], "values_floats": [0.5, 1.5], "default_float": 2.5},
            [2, 4]),
        ml("CategoryMapper", [NAMES], {"cats_strings": ["a", "b"], "cats_int64s": [4, 5], "default_int64": 9}),
        ml("CategoryMapper", [ints(5, 1)], {"cats_strings": ["a", "b"], "cats_int64s": [4, 5], "default_string": "no"}),
        ml("FeatureVectorizer", [X, X[:, :2]], {"inputdimensions": [3, 2]}),
        ml("Imputer", [np.where(X > 1, np.float32(np.nan), X)], {"imputed_value_floats": [1.0, 2.0, 3.0],
            "replaced_value_float": float("nan")}),
        ml("Imputer", [np.array([[0, 5], [3, 0]])], {"imputed_value_int64s": [7], "replaced_value_int64": 0}),
        ml("LinearRegressor", [X], {"coefficients": [0.5, -1.0, 2.0, 1.0, 0.25, 3.0], "intercepts": [0.5, -0.5],
            "targets": 2}),
        ml("LinearClassifier", [X], {"coefficients": floats(9, seed=3).tolist(), "intercepts": [0.1, 0.2, -0.3],
            "classlabels_ints": [4, 5, 6], "multi_class": 1, "post_transform": "SOFTMAX"}, None, 2),
        ml("Normalizer", [X], {"norm": "L1"}),
        ml("Normalizer", [X], {"norm": "L2"}),
        ml("Normalizer", [np.abs(X)], {"norm": "MAX"}),
        ml("OneHotEncoder", [ints(2, 0, 7)], {"cats_int64s": [0, 1, 2], "zeros": 1}),
        ml("OneHotEncoder", [NAMES[:2]], {"cats_strings": ["b", "a"]}),
        ml("Scaler", [X], {"offset": [0.5, 0.0, -1.0], "scale": [2.0, 1.0, 0.5]}),
        ml("SVMRegressor", [X], MACHINE | {"n_supports": 4, "rho": [0.25]}),
        ml("SVMClassifier", [X], MACHINE | {"vectors_per_class": [2, 2], "rho": [0.25],
            "classlabels_ints": [3, 8]}, None, 2),
        ml("TreeEnsembleClassifier", [X], CLASSES, None, 2),
        ml("TreeEnsembleClassifier", [X], CLASSES | {"post_transform": "SOFTMAX"}, None, 2),
        ml("TreeEnsembleClassifier", [X], ONE_SCORE | {"post_transform": "LOGISTIC"}, None, 2),
        ml("TreeEnsembleRegressor", [X], TARGETS),
        ml("TreeEnsembleRegressor", [X], TARGETS | {"post_transform": "SOFTMAX"}),
        *(ml("TreeEnsembleRegressor", [X], TARGETS | {"aggregate_function": by}) for by in ("MAX", "MIN", "AVERAGE")),
        ml("TreeEnsembleRegressor", [X], TARGETS | {"target_ids": [0] * 4, "n_targets": 1, "base_values": [0.25]}),
        ml("ArrayFeatureExtractor", [X, ints(2, 0)], {}),
        ml("Binarizer", [X], {"threshold": 0.25}),
        ml("ZipMap", [np.abs(X)], {"classlabels_int64s": [4, 5, 6]}),
        ml("ZipMap", [np.abs(X)], {"classlabels_strings": ["a", "b", "c"]}),
        # ONNX Runtime gives a matrix of one row; the specification says 1-D.
        Row("DictVectorizer", [{"a": 2.0, "z": 5.0}], {"string_vocabulary": ["z", "y", "a"]}, None,
            lambda pairs, **_: np.array([5, 0, 2], np.float32), 1, ML),
        Row("DictVectorizer", [{3: 2.0, 7: 5.0}], {"int64_vocabulary": [7, 3, 1]}, None,
            lambda pairs, **_: np.array([5, 2, 0], np.float32), 1, ML),
        ml("CastMap", [{2: 2.5, 0: 5.0}], {"cast_to": "TO_FLOAT", "map_form": "DENSE"}),
        ml("CastMap", [{2: 2.5, 0: 5.0}], {"cast_to": "TO_INT64", "map_form": "SPARSE", "max_map": 4}),
    ]
)  # fmt: skip
def test_ml(row: Row, version: int) -> None:
    row.check(version)
