"""The operators of ai.onnx.ml that irc has kernels of its own for."""

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import assert_same, run_kernel, run_ort, since_version

ML = "ai.onnx.ml"


def texts(*values: str) -> np.ndarray:
    return np.array(values, object)


def check(op: str, x: np.ndarray, attrs: dict[str, Any], opset: int) -> None:
    expected = run_ort(op, [x], attrs, opset, 1, ML)
    assert_same(run(op, x, attrs, opset), expected, rtol=1e-6)


def run(op: str, x: Any, attrs: dict[str, Any], opset: int = 1) -> list[Any]:
    return run_kernel(op, [x], attrs, since_version(op, opset, ML), 1, ML)


def test_bad_label_encoders():
    for attrs in ({"keys_strings": ["a"], "values_int64s": [1, 2]}, {"values_int64s": [1]}, {"keys_strings": ["a"]}):
        with pytest.raises(Error):
            run("LabelEncoder", texts("a"), attrs, 2)


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
def test_normalizer(norm):
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    for given in (x, x[0], -np.abs(x), np.zeros_like(x), x.astype(np.float64), np.array([[1, -3]])):
        check("Normalizer", given, {"norm": norm}, 1)
    for bad in ({"norm": "L3"}, {"norm": norm}):
        with pytest.raises(Error):
            run("Normalizer", x[None], bad)


@pytest.mark.parametrize("labels", [{"classlabels_int64s": [3, 4]}, {"classlabels_strings": ["x", "y"]}])
def test_zip_map(labels):
    for x in (np.array([[0.25, 0.75], [0.5, 0.5]], np.float32), np.array([0.25, 0.75], np.float32)):
        assert run("ZipMap", x, labels) == run_ort("ZipMap", [x], labels, 1, 1, ML)
    with pytest.raises(Error, match="do not fit 2 class labels"):
        run("ZipMap", np.zeros((2, 3), np.float32), labels)


def test_cast_map():
    pairs = {3: 0.5, 1: 2.0}
    assert run("CastMap", pairs, {})[0].tolist() == [[2, 0.5]]
    assert run("CastMap", pairs, {"cast_to": "TO_INT64"})[0].tolist() == [[2, 0]]
    sparse = {"map_form": "SPARSE", "max_map": 5}
    assert run("CastMap", pairs, sparse)[0].tolist() == [[0, 2, 0, 0.5, 0]]
    assert run("CastMap", {0: "a"}, sparse | {"cast_to": "TO_STRING"})[0].tolist() == [["a", "", "", "", ""]]
    for attrs, given in ((sparse, {9: 1.0}), ({"cast_to": "TO_BYTES"}, pairs), ({}, {0: "word"})):
        with pytest.raises(Error):
            run("CastMap", given, attrs)
