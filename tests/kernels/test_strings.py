"""Operators on strings."""

import sys
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


@pytest.mark.parametrize("pattern", ["(a+)+", "(a|a)*b", "(.*a){12}c", "a*" * 30 + "b"])
def test_patterns_that_take_other_engines_exponential_time(pattern: str) -> None:
    (found,) = run_kernel("RegexFullMatch", [texts("a" * 20_000 + "!")], {"pattern": pattern}, 20)
    assert not found.any()


@pytest.mark.parametrize("pattern", ["(a", "(a)\\1", "(?=a)a", "a{1000}{1000}", "["])
def test_patterns_that_are_none(pattern: str) -> None:
    with pytest.raises(Error, match=r"^IRC320: .*not one of RE2's"):
        run_kernel("RegexFullMatch", [texts("a")], {"pattern": pattern}, 20)


def test_matching_what_is_no_text() -> None:
    with pytest.raises(Error, match="strings"):
        run_kernel("RegexFullMatch", [np.arange(3)], {"pattern": "a"}, 20)


def test_matching_without_re2(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    with pytest.raises(Error, match=r"^IRC321: .*pip install 'irc\[regex\]'"):
        run_kernel("RegexFullMatch", [texts("a")], {"pattern": "a"}, 20)


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
