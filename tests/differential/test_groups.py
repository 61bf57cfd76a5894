"""Packed sequences, recurrent layers of all kinds, segments, and losses of labels, against torch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.differential.helpers import Array, compare
from tests.differential.test_everyday import INTS, NAN, TURNED, X, make


def index(*places: int) -> Array:
    return np.array(places, np.int64)


def test_packed_sequences() -> None:
    for x in (make(4, 3), make(4, 3, 2), make(3, 4, 2).transpose(1, 0, 2), make(4, 3, dtype="int64")):
        for lengths in (index(4, 2, 1), index(3, 3, 3), index(1, 2, 2), index(2, 1, 0), index(2, 1)):
            compare("aten::_pack_padded_sequence", x, lengths, False, outputs=2, strides=False)
            compare("aten::_pack_padded_sequence", x.swapaxes(0, 1), lengths, True, outputs=2, strides=False)
    for data in (make(6), make(6, 2), make(6, 2, dtype="int64"), make(5, 1)):
        for sizes in (index(3, 2, 1), index(2, 2, 2), index(6)):
            for total in (-1, 2, 5):
                for first in (True, False):
                    if sizes.sum() == len(data):
                        compare("aten::_pad_packed_sequence", data, sizes, first, 0.5, total, outputs=2)


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_projected_states(both: bool, biased: bool) -> None:
    directions, layers = 2 if both else 1, 2
    params: list[Array] = []
    for layer in range(layers):
        for _ in range(directions):
            shapes = [(16, 3 if layer == 0 else 2 * directions), (16, 2), *([(16,)] * 2 if biased else []), (2, 4)]
            params.extend(make(*shape, seed=len(params) + i, low=-1, high=1) for i, shape in enumerate(shapes))
    states = [make(layers * directions, 5, 2), make(layers * directions, 5, 4)]
    rest = (biased, layers, 0.0, False, both)
    close: dict[str, Any] = {"outputs": 3, "tolerance": 1e-4, "strides": False}
    compare("aten::lstm", make(6, 5, 3), states, params, *rest, False, **close)
    compare("aten::lstm", make(5, 6, 3), states, params, *rest, True, **close)
    sizes = index(5, 5, 4, 2, 1)
    compare("aten::lstm", make(17, 3), sizes, states, params, *rest, **close)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("given", [(True, True), (True, False), (False, True), (False, False)])
def test_cells_with_one_of_their_biases(name: str, given: tuple[bool, bool]) -> None:
    rows = {"lstm": 16, "gru": 12}.get(name, 4)
    hx: Any = [make(2, 4), make(2, 4, seed=1)] if name == "lstm" else make(2, 4)
    biases = [make(rows, seed=seed) if is_there else None for seed, is_there in enumerate(given)]
    outputs = 2 if name == "lstm" else 1
    compare(
        f"aten::{name}_cell",
        make(2, 3),
        hx,
        make(rows, 3),
        make(rows, 4),
        *biases,
        outputs=outputs,
        tolerance=1e-5,
        strides=False,
    )


def test_dropout_between_layers_in_training() -> None:
    params = [make(6, 3), make(6, 3, seed=1), make(6, 3, seed=2), make(6, 3, seed=3)]
    params = [np.concatenate([p, p[:3]]) for p in params]
    state = make(2, 4, 3)
    for rate in (0.0, 1.0):  # of which chance decides nothing
        compare(
            "aten::gru", make(5, 4, 3), state, params, False, 2, rate, True, False, False, outputs=2, tolerance=1e-4
        )
    compare("aten::gru", make(5, 4, 3), state, params, False, 2, 0.5, True, False, False, outputs=2, values=False)


@pytest.mark.parametrize("reduce", "sum mean max min prod odd".split())
def test_segments(reduce: str) -> None:
    rest: tuple[Any, ...]
    for x in (make(6), make(6, 2), make(6, 2, dtype="float64"), np.array([1, NAN, 2, 3, 4, 5], np.float32)):
        for lengths in (index(1, 2, 3), index(0, 6), index(2, 0, 4), index(2, 2)):
            for initial in (None, 1.5):
                rest = (lengths, None, None, 0, False, initial)
                compare("aten::segment_reduce", x, reduce, *rest, strides=False, tolerance=1e-5)
    rest = (np.array([[1, 3], [2, 2], [4, 0]]), None, None, 1, False, 0.5)
    compare("aten::segment_reduce", X, reduce, *rest, strides=False, tolerance=1e-5)
    compare("aten::segment_reduce", make(6), reduce, None, None, index(0, 2, 6), 0, False, None, tolerance=1e-5)


@pytest.mark.parametrize("suffix", ["", "_"])
@pytest.mark.parametrize("reduce", "mean amax amin prod sum".split())
def test_reduced_slices(reduce: str, suffix: str) -> None:
    for x in (X, INTS, make(3, 4, dtype="float64")):
        for include_self in (True, False):
            source = np.ascontiguousarray(x[:, [0, 1, 1]] * 2)
            compare(f"aten::index_reduce{suffix}", x, 1, index(3, 0, 3), source, reduce, include_self)
            compare(f"aten::index_reduce{suffix}", x, -2, index(2), x[:1].copy(), reduce, include_self)
            compare(f"aten::index_reduce{suffix}", x[0].copy(), 0, index(2, 2), x[1, :2].copy(), reduce, include_self)
    compare(f"aten::index_reduce{suffix}", X, 0, index(5), X[:1].copy(), reduce, True)


def test_shortened_rows() -> None:
    for table in (make(5, 3), make(5, 3, dtype="float64")):
        for norm in (1.0, 2.0, float("inf")):
            for indices in (index(0, 3, 3), np.array([[1, 2], [4, 4]])):
                compare("aten::embedding_renorm_", table, indices, 1.5, norm)


@pytest.mark.parametrize("reduction", [0, 1, 2])
def test_labels(reduction: int) -> None:
    labels = np.array([[3, 0, -1, 1], [-1, 2, 0, 1], [0, 1, 2, 3]])
    for x in (X, TURNED, X.astype("float64")):
        compare("aten::multilabel_margin_loss", x, labels, reduction)
    compare("aten::multilabel_margin_loss", X[0].copy(), labels[0].copy(), reduction)
    compare("aten::multilabel_margin_loss", X, labels + 1, reduction)
    compare("aten::multilabel_margin_loss", X, labels[:2], reduction)


@pytest.mark.parametrize("suffix", ["", "_"])
@pytest.mark.parametrize("name", ["alpha_dropout", "feature_alpha_dropout"])
def test_dropouts_that_keep_mean_and_variance(name: str, suffix: str) -> None:
    for x in (X, make(2, 3, 4)):
        compare(f"aten::{name}{suffix}", x, 0.5, False)
        compare(f"aten::{name}{suffix}", x, 0.0, True)
        compare(f"aten::{name}{suffix}", x, 1.0, True)


def test_conjugates() -> None:
    for x in (X, INTS, (X + 1j * X).astype(np.complex64)):
        compare("aten::conj_physical", x)
