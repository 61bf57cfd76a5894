"""Zeros keep their signs through bounds, as comparisons define them: ``x < bound ? bound : x``. NumPy gives either."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import irc
from irc.runtime.kernels import numerics
from tests.models import onnx_model
from tests.runtime.helpers import run
from tests.runtime.test_aten import op

SIZES = (1, 3, 8, 40, 10_000)
FLOATS = [np.float32, np.float64, np.float16, ml_dtypes.bfloat16]
OPERATORS: dict[str, tuple[Any, ...]] = {
    "relu": (),
    "relu6": (),
    "clamp": (0.0, 1.0),
    "clamp_min": (0,),
    "clamp_max": (0.0,),
    "hardtanh": (0.0, 6.0),
    "elu": (1, 1, 1),
    "celu": (2.0,),
    "leaky_relu": (0.1,),
    "hardswish": (),
    "remainder": (-1.5,),
    "fmod": (1.5,),
    "floor_divide": (2.0,),
    "round": (),
    "trunc": (),
}


def zeros(size: int, dtype: Any) -> np.ndarray:
    """Zeros of both signs in turn, twice as far apart in memory as they might be if there are few."""
    x = np.zeros(2 * size, dtype)[:: 2 if size < 100 else 1][:size]
    x[::2] = -0.0
    return x


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", OPERATORS)
def test_of_torch(name: str, dtype: Any) -> None:
    for size in SIZES:
        x = zeros(size, dtype)
        expected = np.signbit(x)
        np.testing.assert_array_equal(np.signbit(op(name, x, *OPERATORS[name])), expected)
        np.testing.assert_array_equal(np.signbit(op(f"{name}_", x.copy(), *OPERATORS[name])), expected)


def test_numbers_below_a_bound_of_zero_become_it() -> None:
    for low in (0.0, -0.0):
        x = np.array([-3, -0.0, 0, 2, np.nan, -np.inf], np.float32)
        found = op("clamp", x, low, None)
        np.testing.assert_array_equal(found, [0, 0, 0, 2, np.nan, 0])
        is_negative = np.signbit(low)
        assert np.signbit(found)[[0, 1, 2, 5]].tolist() == [is_negative, True, False, is_negative]


NODES: dict[str, tuple[dict[str, Any], list[float]]] = {
    "Relu": ({}, []),
    "Clip": ({}, [0.0, 3.0]),
    "LeakyRelu": ({}, []),
    "Elu": ({}, []),
    "PRelu": ({}, [0.5]),
}


@pytest.mark.parametrize("passes", ["", "default", "default,in-place"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("name", NODES)
def test_of_onnx(name: str, dtype: Any, passes: str) -> None:
    """Alone, and within what may be fused; an inverse makes the sign an infinity's."""
    attributes, bounds = NODES[name]
    constants = {f"c{i}": np.array(bound, dtype) for i, bound in enumerate(bounds)}
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node(name, ["n", *constants], ["a"], **attributes),
        helper.make_node("Reciprocal", ["a"], ["y"]),
    ]
    compiled = irc.compile(onnx_model(nodes, {"x": dtype}, "y", constants, 18), passes=passes)
    for size in SIZES:
        given = zeros(size, dtype)
        (found,) = compiled.run({"x": given}).values()
        np.testing.assert_array_equal(found, np.where(np.signbit(given), np.inf, -np.inf))


@pytest.mark.parametrize("kept", [None, 0, 1])
def test_whichever_zero_the_processor_gives(kept: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the processor has one instruction for it that orders zeros, for which ``None`` stands."""

    def maximum(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None, order: str = "K") -> np.ndarray:
        found = np.where((x == 0) & (y == 0), (np.abs(x), x, y)[0 if kept is None else kept + 1], np.maximum(x, y))
        if out is None:
            return found
        np.copyto(out, found)
        return out

    at_least = numerics.bounded(maximum)
    for size in SIZES:
        x = zeros(size, np.float32)
        expected = np.signbit(x)
        assert np.signbit(at_least(x, np.zeros((), np.float32))).tolist() == expected.tolist()
        assert np.signbit(at_least(x, np.float32(-0.0) + np.zeros((), np.float32))).tolist() == expected.tolist()
        y = np.array(x)
        at_least(y, np.zeros((), np.float32), y)
        assert np.signbit(y).tolist() == expected.tolist()


def test_integers_have_one_zero() -> None:
    text = "graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n"
    assert run(text, np.array([-2, 0, 3]))[0].tolist() == [0, 0, 3]
