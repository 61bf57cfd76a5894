"""How far apart results are, and how far they may be."""

import ml_dtypes
import numpy as np
import pytest

from irc.tools.check import Tolerance, difference

EXACT = Tolerance(0.0, 0.0)
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([1.0, NAN, INF, -INF], [1.0, NAN, INF, -INF]),
        ([1.0, 100.0], [1.0009, 100.0]),
        ([1e-6, 1.0], [0.0, 1.0]),
        ([], []),
    ],
)
def test_equal_enough(found: list[float], expected: list[float]) -> None:
    error, right = difference(np.array(found), np.array(expected), Tolerance())
    assert right
    assert error < 2e-3


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([1.0], [NAN]),
        ([NAN], [1.0]),
        ([INF], [-INF]),
        ([INF], [1.0]),
        ([1.0], [INF]),
        ([1.0, 2.0], [1.01, 2.0]),
        ([1.0], [[1.0]]),
    ],
)
def test_not_equal_enough(found: list[float], expected: list[float]) -> None:
    error, right = difference(np.array(found), np.array(expected), Tolerance())
    assert not right
    assert error > 1e-3


def test_types_must_be_equal() -> None:
    assert not difference(np.ones(2, np.float32), np.ones(2, np.float64), Tolerance())[1]
    assert not difference(np.ones(2, bool), np.ones(2, np.int8), Tolerance())[1]
    assert difference(np.array(["a"], object), np.array(["a"]), Tolerance())[1]
    assert not difference(np.array(["a"], object), np.array(["b"]), Tolerance())[1]
    assert difference(np.ones(2, ml_dtypes.bfloat16), np.ones(2, ml_dtypes.bfloat16), Tolerance())[1]


def test_integers_are_exact_but_for_the_last_place_of_quantised_numbers() -> None:
    for dtype, off, right in ((np.int64, 1, False), (np.int32, 1, False), (np.uint8, 1, True), (np.uint8, 2, False)):
        a = np.array([100, 200], dtype)
        assert difference(a, a, EXACT) == (0.0, True)
        assert difference(a + np.array([off, 0], dtype), a, EXACT)[1] is right
    for dtype in (ml_dtypes.int4, ml_dtypes.uint4, ml_dtypes.uint2):  # no integers by NumPy's kinds
        a, by_one, by_two = (np.array([x, 1], dtype) for x in (0, 1, 2))
        assert difference(by_one, a, EXACT)[1] and not difference(by_two, a, EXACT)[1]
    for dtype, numbers in ((ml_dtypes.float8_e4m3fn, (1.5, 1.625, 1.75)), (ml_dtypes.float4_e2m1fn, (1, 1.5, 2))):
        a, by_one, by_two = (np.array([x, 1], dtype) for x in numbers)
        assert difference(by_one, a, EXACT)[1] and not difference(by_two, a, EXACT)[1]
        assert not difference(by_one, a, EXACT._replace(rounded=0))[1]
    big = np.array([2**62], np.int64)
    assert not difference(big + 1, big, Tolerance())[1]


def test_lists_maps_and_none() -> None:
    one, two = np.ones(1), np.full(1, 2.0)
    assert difference([one, None, {"a": one}], [one, None, {"a": one}], EXACT) == (0.0, True)
    for found, expected in (
        ([one], [one, one]),
        ([two], [one]),
        (None, one),
        (one, None),
        ({"a": one}, {"b": one}),
        ({"a": two}, {"a": one}),
        ({"a": one, "b": one}, {"a": one}),
        ([one, np.ones(2)], one),
        (one, [one, np.ones(2)]),
        ([1], {0: 1}),
    ):
        assert not difference(found, expected, EXACT)[1]
