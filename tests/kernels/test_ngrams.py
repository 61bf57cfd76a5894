"""TfIdfVectorizer against ONNX Runtime, and by counting."""

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import run_kernel

GRAMS: list[tuple[int, ...]] = [(2,), (3,), (5,), (2, 3), (3, 3), (5, 2), (2, 3, 5), (3, 3, 3)]
POOL = [token for gram in GRAMS for token in gram]


def attributes(**changes: Any) -> dict[str, Any]:
    return {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 3,
        "max_skip_count": 0,
        "ngram_counts": [0, 3, 9],
        "ngram_indexes": list(range(len(GRAMS))),
        "pool_int64s": POOL,
    } | changes


TOKENS = np.random.default_rng(0).integers(1, 7, (6, 30))


def test_words_and_places_in_any_order() -> None:
    words = np.array([["b", "c", "b", "c", "x"]], object)
    given = attributes(
        pool_strings=["b", "c", "b", "c"], pool_int64s=None, ngram_counts=[0, 2], ngram_indexes=[4, 0, 2]
    )
    given |= {"mode": "TFIDF", "weights": [10.0, 20.0, 30.0]}
    (found,) = run_kernel("TfIdfVectorizer", [words], given, 9)
    assert found.tolist() == [[40, 0, 60, 0, 20]]


@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
def test_ngrams_that_share_a_place(mode: str) -> None:
    """There, what each counts for is added, in double precision."""
    weights = np.random.default_rng(1).standard_normal(len(GRAMS))
    apart = attributes(mode=mode, weights=weights.tolist(), max_skip_count=1)
    at = np.array([3, 0, 3, 1, 3, 0, 6, 6])
    (found,) = run_kernel("TfIdfVectorizer", [TOKENS], apart | {"ngram_indexes": at.tolist()}, 9)
    (counts,) = run_kernel("TfIdfVectorizer", [TOKENS], apart | {"mode": "TF"}, 9)
    values = counts.astype(np.float64)
    if mode != "TF":
        values = (np.minimum(values, 1) if mode == "IDF" else values) * weights
    expected = np.zeros((len(TOKENS), 7))
    np.add.at(expected.T, at, values.T)
    np.testing.assert_array_equal(found, expected.astype(np.float32))


def test_by_counting() -> None:
    """Each n-gram at each place and with each distance between its tokens."""
    (found,) = run_kernel("TfIdfVectorizer", [TOKENS], attributes(max_skip_count=2), 9)
    for row, counts in zip(TOKENS.tolist(), found, strict=True):
        for gram, count in zip(GRAMS, counts, strict=True):
            steps = range(1, 4) if len(gram) > 1 else (1,)
            places = [row[i : i + (len(gram) - 1) * s + 1 : s] for s in steps for i in range(len(row))]
            assert count == places.count(list(gram))


def test_rows_without_tokens() -> None:
    (found,) = run_kernel("TfIdfVectorizer", [np.zeros((2, 0), np.int64)], attributes(), 9)
    np.testing.assert_array_equal(found, np.zeros((2, len(GRAMS))))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"mode": "DF"}, "mode is"),
    ({"ngram_indexes": [0]}, "one number"),
    ({"ngram_indexes": [-1] * len(GRAMS)}, "places from 0"),
    ({"ngram_counts": [0, 3, 8]}, "no n-grams of 2"),
    ({"ngram_counts": [0, 99]}, "no n-grams of 1"),
    ({"pool_strings": ["a"]}, "exactly one"),
    ({"min_gram_length": 0}, "not defined"),
    ({"max_skip_count": -1}, "not defined"),
]


@pytest.mark.parametrize(("changes", "words"), BAD)
def test_bad_nodes(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Error, match=words):
        run_kernel("TfIdfVectorizer", [TOKENS], attributes(**changes), 9)


def test_inputs_and_places_that_do_not_fit() -> None:
    with pytest.raises(Error, match="must be"):
        run_kernel("TfIdfVectorizer", [TOKENS[None]], attributes(), 9)
    with pytest.raises(Error, match="would take more"):
        run_kernel("TfIdfVectorizer", [TOKENS], attributes(ngram_indexes=[1 << 50] * len(GRAMS)), 9)
    with pytest.raises(Error, match="would take more"):
        run_kernel("TfIdfVectorizer", [TOKENS], attributes(ngram_indexes=[(1 << 63) - 1] * len(GRAMS)), 9)
