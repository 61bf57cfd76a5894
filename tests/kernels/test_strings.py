"""Operators on strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import assert_same, check_against_ort, run_kernel


def texts(*values: Any) -> np.ndarray:
    return np.array(values, object)


def test_concat_broadcasts() -> None:
    x, y = texts(["a", "b"], ["c", ""]), texts("1", "é")
    check_against_ort("StringConcat", [x, y], {}, 20)
    (found,) = run_kernel("StringConcat", [np.array("x", object), np.array("y", object)], {}, 20)
    assert (found.shape, found.tolist()) == ((), "xy")
    with pytest.raises(Error, match="broadcast"):
        run_kernel("StringConcat", [texts("a", "b"), texts("a", "b", "c")], {}, 20)


@pytest.mark.parametrize(
    "attributes", [{}, {"delimiter": ","}, {"delimiter": ",", "maxsplit": 1}, {"maxsplit": 1}, {"delimiter": ", "}]
)
def test_split(attributes: dict[str, Any]) -> None:
    x = texts(["a,b, c", " hello  world"], ["d", ",,e"])
    check_against_ort("StringSplit", [x], attributes, 20, n_outputs=2)


def test_split_of_nothing() -> None:
    """An empty text has one part, which is empty (in ONNX Runtime it has none); of words it has none."""
    for attributes, expected in (({"delimiter": ","}, 1), ({}, 0)):
        _, counts = run_kernel("StringSplit", [texts("", "a")], attributes, 20, n_outputs=2)
        assert counts.tolist() == [expected, 1]
    parts, counts = run_kernel("StringSplit", [np.empty((2, 0), object)], {}, 20, n_outputs=2)
    assert (parts.shape, counts.shape) == ((2, 0, 0), (2, 0))


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("stops", [None, ["monday", "b"], ["Monday", "monday", "tuesday", "b", "c d"]])
def test_normalizer(action: str, sensitive: int, stops: list[str] | None) -> None:
    attributes = {"case_change_action": action, "is_case_sensitive": sensitive, "locale": "C", "stopwords": stops}
    attributes = {k: v for k, v in attributes.items() if v is not None}
    for x in (texts("Monday", "tuesday", "B", "c d"), texts(["monday", "tuesday"])):
        check_against_ort("StringNormalizer", [x], attributes, 10)


def test_normalizer_keeps_accents_and_parts_of_texts() -> None:
    """Whole texts are stop words, as the specification says; onnx.reference takes words out of them."""
    found = run_kernel("StringNormalizer", [texts("Café au lait", "au")], {"stopwords": ["au"]}, 10)
    assert_same(found, [texts("Café au lait")])
    for empty, shape in ((texts("au"), (1,)), (texts(["au"]), (1, 1)), (np.empty((1, 0), object), (1, 1))):
        (none,) = run_kernel("StringNormalizer", [empty], {"stopwords": ["AU"]}, 10)
        assert (none.shape, none.reshape(-1).tolist()) == (shape, [""])


def test_bad_normalizers() -> None:
    with pytest.raises(Error, match="case_change_action"):
        run_kernel("StringNormalizer", [texts("a")], {"case_change_action": "TITLE"}, 10)
    for shape in ((), (2, 1), (1, 1, 1)):
        with pytest.raises(Error, match=r"must be \[c\]"):
            run_kernel("StringNormalizer", [np.full(shape, "a", object)], {}, 10)
