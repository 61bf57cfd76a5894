"""Ensembles of decision trees: random ones against ONNX Runtime, and what is wrong with bad ones."""

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from irc.errors import Error
from tests.kernels.helpers import assert_same, run_kernel, run_ort

ML = "ai.onnx.ml"
MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
FEATURES = 4


def random_trees(rng: np.random.Generator, trees: int) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The attributes of nodes, and the leaves (tree and node): trees grow at random, and differ in depth."""
    columns: dict[str, list[Any]] = {
        name: [] for name in "treeids nodeids modes featureids values truenodeids falsenodeids".split()
    }
    columns["missing_value_tracks_true"] = []
    leaves: list[tuple[int, int]] = []
    for tree in range(trees):
        size = 1
        node = 0
        while node < size:
            is_inner = size < 15 and rng.random() < 0.75
            children = (size, size + 1) if is_inner else (0, 0)
            size += 2 * is_inner
            mode = str(rng.choice(MODES)) if is_inner else "LEAF"
            # Halves: so that equality is met now and then.
            split = float(rng.integers(-4, 5)) / 2
            row = (tree, node, mode, int(rng.integers(FEATURES)), split, *children, int(rng.integers(2)))
            for values, value in zip(columns.values(), row, strict=True):
                values.append(value)
            if not is_inner:
                leaves.append((tree, node))
            node += 1
    return {f"nodes_{name}": values for name, values in columns.items()}, leaves


def votes(rng: np.random.Generator, prefix: str, leaves: list[tuple[int, int]], targets: int) -> dict[str, Any]:
    """Every leaf votes for every target, some more than once, in any order."""
    all_of = [(*leaf, t) for leaf in leaves for t in range(targets) for _ in range(int(rng.integers(1, 3)))]
    rng.shuffle(all_of)
    trees, nodes, ids = ([int(v) for v in column] for column in zip(*all_of, strict=True))
    weights = [float(w) for w in rng.integers(-8, 9, len(ids)) / 4]
    return {f"{prefix}_treeids": trees, f"{prefix}_nodeids": nodes, f"{prefix}_ids": ids, f"{prefix}_weights": weights}


def inputs(rng: np.random.Generator) -> np.ndarray:
    x = (rng.integers(-4, 5, (20, FEATURES)) / 2).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = np.nan
    return x


@pytest.mark.parametrize("positive", [False, True])
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
@pytest.mark.parametrize("base", [None, [0.125]])
def test_two_classes_by_one_score(positive: bool, transform: str, base: list[float] | None) -> None:
    rng = np.random.default_rng(3)
    attributes, leaves = random_trees(rng, 3)
    attributes |= votes(rng, "class", leaves, 1) | {"classlabels_int64s": [4, 9], "post_transform": transform}
    if positive:
        attributes["class_weights"] = [abs(w) / 8 for w in attributes["class_weights"]]
    attributes |= {} if base is None else {"base_values": base}
    x = inputs(rng)
    expected = run_ort("TreeEnsembleClassifier", [x], attributes, 3, 2, ML)
    assert set(expected[0].tolist()) == {4, 9}
    assert_same(run_kernel("TreeEnsembleClassifier", [x], attributes, 3, 2, ML), expected)


@pytest.mark.parametrize("trees", [5, 7, 10, 30])
@pytest.mark.parametrize("weight", [0.1, 0.7, 0.3])
def test_votes_are_added_up_in_float32(trees: int, weight: float) -> None:
    """Five votes of 0.1 are 0.5 in float32, and not more, which decides the class."""
    one = dict.fromkeys(("nodes_nodeids", "nodes_featureids", "nodes_truenodeids", "nodes_falsenodeids"), [0] * trees)
    attributes: dict[str, Any] = {
        **one,
        "nodes_treeids": list(range(trees)),
        "nodes_values": [0.0] * trees,
        "nodes_modes": ["LEAF"] * trees,
    }
    leaves: dict[str, Any] = {"treeids": list(range(trees)), "nodeids": [0] * trees, "ids": [0] * trees}
    x = np.zeros((2, 1), np.float32)
    total = np.float32(0)
    for _ in range(trees):
        total += np.float32(weight / trees)
    votes = {f"class_{name}": values for name, values in leaves.items()}
    votes |= {"class_weights": [weight / trees] * trees, "classlabels_int64s": [0, 1], "post_transform": "NONE"}
    label, scores = run_kernel("TreeEnsembleClassifier", [x], {**attributes, **votes}, 3, 2, domain=ML)
    assert scores[0].tolist() == [np.float32(1) - total, total]
    assert label.tolist() == [int(total > 0.5)] * 2
    votes = {f"target_{name}": values for name, values in leaves.items()}
    votes |= {"target_weights": [weight / trees] * trees, "n_targets": 1}
    (sums,) = run_kernel("TreeEnsembleRegressor", [x], {**attributes, **votes}, 3, 1, domain=ML)
    assert sums.tolist() == [[total]] * 2


def small(**changes: Any) -> dict[str, Any]:
    """One inner node with two leaves."""
    attributes: dict[str, Any] = {
        "nodes_treeids": [0, 0, 0],
        "nodes_nodeids": [0, 1, 2],
        "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
        "nodes_featureids": [1, 0, 0],
        "nodes_values": [0.5, 0.0, 0.0],
        "nodes_truenodeids": [1, 0, 0],
        "nodes_falsenodeids": [2, 0, 0],
        "target_treeids": [0, 0],
        "target_nodeids": [1, 2],
        "target_ids": [0, 1],
        "target_weights": [1.5, 2.5],
        "n_targets": 2,
    }
    return attributes | changes


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "cycle": (small(nodes_modes=["BRANCH_LEQ", "BRANCH_LEQ", "LEAF"], nodes_truenodeids=[1, 0, 0]), "come back"),
    "no such node": (small(nodes_truenodeids=[7, 0, 0]), "no node 7"),
    "no such leaf": (small(target_nodeids=[1, 9]), "no node 9"),
    "lengths": (small(nodes_values=[0.5]), "one length"),
    "mode": (small(nodes_modes=["BRANCH_SOME", "LEAF", "LEAF"]), "BRANCH_SOME"),
    "target": (small(target_ids=[0, 5]), "votes for target"),
    "negative feature": (small(nodes_featureids=[-1, 0, 0]), "negative"),
    "one number twice": (small(nodes_nodeids=[0, 1, 1]), "one number"),
    "aggregate": (small(aggregate_function="MEDIAN"), "aggregate_function"),
    "transform": (small(post_transform="CUBE"), "post_transform"),
    "base": (small(base_values=[1.0, 2.0, 3.0]), "base_values"),
    "huge": (small(n_targets=1 << 50), "would take more"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_trees(name: str) -> None:
    attributes, words = BAD[name]
    with pytest.raises(Error, match=words):
        run_kernel("TreeEnsembleRegressor", [np.zeros((1, 2), np.float32)], attributes, 3, 1, ML)


@pytest.mark.parametrize("shape", [(3,), (2, 1), (1, 2, 2)])
def test_inputs_that_do_not_fit(shape: tuple[int, ...]) -> None:
    with pytest.raises(Error, match="at least 2"):
        run_kernel("TreeEnsembleRegressor", [np.zeros(shape, np.float32)], small(), 3, 1, ML)


@pytest.mark.parametrize("mode", [-1, 7])
def test_modes_that_there_are_not(mode: int) -> None:
    """-1 would pass for the mode of a leaf in machine code, which has 3 bits for it."""
    attributes = {
        "n_targets": 1,
        "nodes_featureids": [0],
        "nodes_modes": numpy_helper.from_array(np.array([mode], np.int8)),
        "nodes_splits": numpy_helper.from_array(np.zeros(1, np.float32)),
        "nodes_truenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0, 0],
        "leaf_weights": numpy_helper.from_array(np.ones(2, np.float32)),
        "tree_roots": [0],
    }
    with pytest.raises(Error, match=f"has {mode}; it must be 0 to 6"):
        run_kernel("TreeEnsemble", [np.zeros((1, 2), np.float32)], attributes, 5, 1, ML)
