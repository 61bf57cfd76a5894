"""Support vector machines by native similarities, against the interpreter's."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from tests.effort import examples
from tests.models import onnx_model

pytest.importorskip("llvmlite")

import irc
from irc.native.inner_loops import LOOPS
from irc.runtime.bounds import CURRENT
from irc.runtime.kernels.ml import Decided, Machine, _decided
from irc.runtime.limits import Limits
from irc.runtime.threads import share
from tests.native.guarded import fresh, placed


@examples(20)
@given(st.integers(0, 9), st.integers(1, 40), st.integers(1, 60), st.lists(st.integers(0, 300), min_size=1, max_size=3))
def test_regressors(seed: int, features: int, vectors: int, rows: list[int]) -> None:
    rng = np.random.default_rng(seed)
    basis, factors = rng.standard_normal((vectors, features)), rng.standard_normal(vectors)
    given_ = {"kernel_type": "RBF", "kernel_params": [0.1, 0.0, 0.0], "n_supports": vectors, "rho": [0.5]}
    given_ |= {"support_vectors": basis.ravel().tolist(), "coefficients": factors.tolist()}
    node = helper.make_node("SVMRegressor", ["x"], ["y"], domain="ai.onnx.ml", **given_)
    made = onnx_model(node, {"x": [None, features]}, ai_onnx_ml=1)
    native, plain = (irc.compile(made, backend=backend) for backend in ("native", "numpy"))
    special = np.array([np.inf, -np.inf, np.nan, 1e30, -0.0], "f4")
    for n in rows:
        x = np.where(
            rng.random((n, features)) < 0.01, rng.choice(special, (n, features)), rng.standard_normal((n, features))
        )
        feeds = {"x": x.astype("f4")}
        found = [
            model.run(feeds, limits=limits)["y"] for model in (native, plain) for limits in (None, Limits(seconds=60))
        ]
        for each in found:
            np.testing.assert_allclose(each, found[-1], rtol=1e-5, atol=1e-6)


def machine(sizes: list[int], has_chances: bool, seed: int = 0) -> Machine:
    rng, classes, vectors = np.random.default_rng(seed), len(sizes), sum(sizes)
    pairs = classes * (classes - 1) // 2
    slopes, shifts = (rng.standard_normal(pairs * has_chances).astype("f4") for _ in range(2))
    ends = np.cumsum([0, *sizes], dtype=np.int64)
    return Machine(rng.standard_normal((classes - 1, vectors)), ends, rng.standard_normal(pairs), slopes, shifts)


def decided(similarities: np.ndarray, given: Machine) -> Decided | None:
    decide = LOOPS.decider(len(similarities), given)
    return None if decide is None else decide(similarities)


def check_decided(found: Decided | None, wanted: Decided) -> None:
    assert found is not None
    for one, other in zip(found, wanted):
        if other is None:
            assert one is None
        else:
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


SIZES = [[3, 4], [1, 0, 2], [0, 0, 5], [7, 30, 1, 19], [2] * 12]


@pytest.mark.parametrize("has_chances", [True, False])
@pytest.mark.parametrize("rows", [1, 3, 3000])
@pytest.mark.parametrize("sizes", SIZES)
def test_classifiers(sizes: list[int], rows: int, has_chances: bool) -> None:
    plain = machine(sizes, has_chances)
    similarities = np.random.default_rng(1).random((rows, sum(sizes)))
    similarities[rows // 2, 0] = np.nan
    wanted = _decided(similarities, plain)
    given_, similarities = Machine(*map(placed, plain)), placed(similarities)
    check_decided(decided(similarities, given_), wanted)
    with patch.object(np, "empty", lambda shape, dtype=np.float64: fresh((*np.atleast_1d(shape),), dtype)):
        check_decided(decided(similarities, given_), wanted)
    before = CURRENT.scope.share
    CURRENT.scope.share = lambda pieces, piece: share(pieces, piece, 2)
    try:
        check_decided(decided(similarities, given_), wanted)
    finally:
        CURRENT.scope.share = before
