"""Pointwise kernels against ONNX Runtime, exact arithmetic, and what `out=` promises."""

import inspect
import math
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

from irc import ops
from irc.errors import Error
from irc.ops import pointwise
from irc.runtime.kernels.registry import registered
from tests.kernels.helpers import NodeStandIn, bind, check_against_ort, run_kernel, since_version
from tests.operators import POINTWISE

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def versions(op: str, last: int = 21) -> list[int]:
    """Opsets from 7 on, one for each version of the operator that ONNX Runtime knows."""
    sinces = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if s.name == op and not s.domain}
    opsets = {max(7, s) for s in sinces if s <= last}
    return sorted(o for o in opsets if since_version(op, o) in sinces)


def values(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    scale = 2 if np.dtype(dtype).kind == "f" else 20
    return np.asarray(scale * np.random.default_rng([seed, *shape]).standard_normal(shape)).astype(dtype)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 90.0, -90.0, np.inf, -np.inf, np.nan, 1e-30], np.float32)

PLAIN = (
    "Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Gelu HardSwish IsNaN Log Mish Neg "
    "Reciprocal Relu Round Selu Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Tan Tanh"
)
UNARY: dict[str, dict[str, Any]] = {op: {} for op in PLAIN.split()} | {
    "Celu": {"alpha": 0.7},
    "Elu": {"alpha": 1.3},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.4},
    "IsInf": {"detect_negative": 0},
    "LeakyRelu": {"alpha": 0.2},
    "Shrink": {"lambd": 0.9, "bias": 0.3},
    "ThresholdedRelu": {"alpha": 0.6},
}


@pytest.mark.parametrize(
    "op", sorted(set(UNARY) - {"Erf", "Acos", "Asin", "Mish", "Shrink", "Sign", "Softsign", "Tan"})
)
def test_unary_of_special_values(op):
    """Zeros, infinities, NaN and what overflows; Softsign and Mish of infinities are a matter of taste."""
    check_against_ort(op, [SPECIAL], UNARY[op], versions(op)[-1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("LeakyRelu", {"alpha": 0.0}),
        ("LeakyRelu", {"alpha": 1.7}),
        ("LeakyRelu", {"alpha": -0.4}),
        ("LeakyRelu", {}),
        ("Elu", {}),
        ("Selu", {"alpha": 1.1, "gamma": 0.9}),
        ("Celu", {}),
        ("HardSigmoid", {}),
        ("ThresholdedRelu", {}),
        ("Shrink", {}),
        ("IsInf", {}),
        ("IsInf", {"detect_positive": 0}),
        ("IsInf", {"detect_positive": 0, "detect_negative": 0}),
        ("Gelu", {"approximate": "tanh"}),
    ],
)
def test_attributes(op, attrs):
    x = np.concatenate([values(40), [np.inf, -np.inf] if op == "IsInf" else [0, -0.5]]).astype(np.float32)
    check_against_ort(op, [x], attrs, versions(op)[-1], rtol=1e-5, atol=1e-6)


def test_many_blocks_are_as_one():
    """Functions of several steps work block by block on large tensors."""
    x = values(3, 50_001)
    whole = run_kernel("Gelu", [x], {}, 20)[0]
    rows = np.stack([run_kernel("Gelu", [row[:777].copy()], {}, 20)[0] for row in x])
    np.testing.assert_array_equal(whole[:, :777], rows)
    np.testing.assert_array_equal(whole, run_kernel("Gelu", [np.asfortranarray(x)], {}, 20)[0])


# -- accuracy ------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 5), (np.float64, 5)])
def test_erf_is_accurate(dtype, ulps):
    x = np.concatenate([np.linspace(-7, 7, 40_001), np.logspace(-30, 0, 301), [0.46875, -0.46875]]).astype(dtype)
    exact = np.array([math.erf(v) for v in x.tolist()])
    found = run_kernel("Erf", [x], {}, 13)[0]
    assert found.dtype == dtype
    assert (np.abs(found - exact) <= ulps * np.spacing(np.abs(exact).astype(dtype))).all()
    assert np.abs(found).max() <= 1
    extremes = run_kernel("Erf", [np.array([np.inf, -np.inf, np.nan], dtype)], {}, 13)[0]
    np.testing.assert_array_equal(extremes, [1, -1, np.nan])


def test_gelu_is_accurate():
    """Of what is positive, to 3 units in the last place; below, relative to the result only near 0."""
    x = np.concatenate([np.linspace(-20, 20, 40_001), np.logspace(-30, 2, 301), -np.logspace(-30, 2, 301)])
    x = x.astype(np.float32)
    exact = np.array([v * (1 + math.erf(v / math.sqrt(2))) / 2 for v in x.tolist()])
    found = run_kernel("Gelu", [x], {}, 20)[0]
    off = np.abs(found - exact)
    assert (off <= 3 * np.spacing(np.abs(exact).astype(np.float32)))[x >= 0].all()
    assert off[x < 0].max() < 3e-7 and (off / np.maximum(np.abs(exact), 1e-30))[(x > -1) & (x < 0)].max() < 5e-7
    extremes = np.array([np.inf, np.nan, 3e38, -3e38, -1e5, 0.0], np.float32)
    np.testing.assert_array_equal(
        run_kernel("Gelu", [extremes], {}, 20)[0], np.array([np.inf, np.nan, 3e38, 0, 0, 0], np.float32)
    )


@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16], ids=["float16", "bfloat16"])
def test_small_floats_are_rounded_once(op, dtype):
    """The result of a small float is that of float64, to one unit in the last place."""
    x = (np.abs(values(500)) if op in ("Acosh", "Log", "Sqrt") else values(500)).astype(dtype)
    found = run_kernel(op, [x], UNARY[op], versions(op, 28)[-1])[0]
    exact = run_kernel(op, [x.astype(np.float64)], UNARY[op], versions(op, 28)[-1])[0]
    assert found.dtype == (bool if op in ("IsInf", "IsNaN") else dtype)
    eps = 2.0 ** (-10 if dtype is np.float16 else -7)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=eps, atol=1e-6 if op == "Gelu" else 1e-7)


# -- binary and variadic --------------------------------------------------


def test_mean_of_small_floats_does_not_overflow():
    x = np.full(3, 60_000, np.float16)
    np.testing.assert_array_equal(run_kernel("Mean", [x, x, x], {}, 13)[0], x)


@pytest.mark.parametrize(("base", "exponent"), [("f", "f"), ("f", "i"), ("i", "i"), ("i", "f"), ("d", "f"), ("f", "l")])
def test_pow_of_mixed_types(base, exponent):
    x = np.array([1, 2, 3, 4, 5], base)
    y = np.array([0, 3, 2, 1, 3], exponent)
    check_against_ort("Pow", [x, y], {}, 15, rtol=1e-6)
    check_against_ort("Pow", [x, np.array(2, exponent)], {}, 15, rtol=1e-6)


@pytest.mark.parametrize("exponent", [-1.0, 0.5, 2.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_simple_powers_of_zeros_and_infinities_are_what_powers_are(exponent, dtype):
    x = np.array([-np.inf, -4, -0.0, 0.0, 4, np.inf, np.nan], dtype)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.float64), np.full(x.shape, exponent))  # by a number, 0.5 is NumPy's sqrt
    one = np.array(exponent, dtype)
    for y in (one, np.full(x.shape, exponent, dtype), np.broadcast_to(one, x.shape), np.full((1, 1), exponent, dtype)):
        found = run_kernel("Pow", [x, y], {}, 15)[0]
        assert found.shape == (1,) * (y.ndim - 1) + x.shape
        found = found.reshape(x.shape)
        np.testing.assert_array_equal(found, expected.astype(dtype))
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
    other = np.float32 if dtype is np.float64 else np.float64
    np.testing.assert_array_equal(run_kernel("Pow", [x, one.astype(other)], {}, 15)[0], expected.astype(dtype))
    assert np.array_equal(bind("Pow", {}, 15, 2)(x, np.array(exponent, dtype), out=x), expected.astype(dtype), True)


def test_pow_of_integers():
    found = run_kernel("Pow", [np.array([2, 1, -1, 3]), np.array([-1, -5, -3, 39])], {}, 15)[0]
    assert found.tolist() == [0, 1, -1, 3**39 - (1 << 64) if 3**39 >= 1 << 63 else 3**39]
    wrapped = run_kernel("Pow", [np.array([3, 7], np.uint64), np.array([60, 50], np.int64)], {}, 15)[0]
    assert wrapped.tolist() == [3**60 % 2**64, 7**50 % 2**64]


# -- Clip ------------------------------------------------------------------


def test_clip_by_attributes():
    for attrs in ({}, {"min": -1.0}, {"max": 0.5}, {"min": -1.0, "max": 0.5}):
        check_against_ort("Clip", [SPECIAL], attrs, 7)
    np.testing.assert_array_equal(run_kernel("Clip", [SPECIAL], {}, 1)[0], SPECIAL)  # no bounds by default yet
    half = np.array([np.inf, -np.inf, 3], np.float16)
    np.testing.assert_array_equal(run_kernel("Clip", [half], {}, 6)[0], half)


# -- broadcasting before version 7 ------------------------------------------


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Pow", "Greater", "Less"])
def test_limited_broadcast(op):
    """The examples of the operator's specification."""
    x = np.abs(values(2, 3, 4, 5)) + 1
    for shape, axis in [((), None), ((1, 1), None), ((5,), None), ((4, 5), None), ((3, 4), 1), ((2,), 0), ((3,), 1)]:
        y = np.abs(values(*shape, seed=1)) + 1
        aligned = y if axis is None else y.reshape(y.shape + (1,) * (4 - axis - y.ndim))
        attrs = {"broadcast": 1} | ({} if axis is None else {"axis": axis})
        expected = run_kernel(op, [x, aligned], {}, 7)[0]
        np.testing.assert_array_equal(run_kernel(op, [x, y], attrs, 6)[0], expected)
    with pytest.raises(Error, match="broadcast is not set"):
        run_kernel(op, [x, x[0]], {}, 6)
    np.testing.assert_array_equal(run_kernel(op, [x, x], {}, 6)[0], run_kernel(op, [x, x], {}, 7)[0])


# -- out= --------------------------------------------------------------------


def example(kind: str) -> tuple[list[np.ndarray], dict[str, Any]]:
    """Inputs and attributes of a pointwise operator; all inputs but Clip's bounds have the result's shape."""
    op = kind.removeprefix("onnx::")
    attrs: dict[str, Any] = {"Cast": {"to": 11}, "BitShift": {"direction": "LEFT"}}.get(op, {})
    x, y = np.abs(values(3, 4)) / 8 + 0.1, np.abs(values(3, 4, seed=1)) / 8 + 0.1
    if op.startswith("Bit"):
        x, y = values(3, 4, dtype=np.uint8), values(3, 4, seed=1, dtype=np.uint8)
    if op in ("And", "Or", "Xor", "Not"):
        x, y = x > 0.3, y > 0.3
    if op == "Where":
        return [x > 0.3, x, y], attrs
    if op == "Clip":
        return [x, np.array(0.2, np.float32), np.array(0.4, np.float32)], attrs
    if op == "Acosh":
        x = x + 1
    record = ops.semantics(kind)
    assert record is not None
    if record.variadic:
        return [x, y, x + y, x * y], attrs
    return [x, y][: record.arity], attrs


def test_the_table_of_pointwise_operators_is_that_of_the_kernels():
    table = {kind for kind in POINTWISE if kind.startswith("onnx::")}  # other tests may have added their own
    assert set(registered()) >= table
    for kind in table:
        kernel = bind(kind.removeprefix("onnx::"), example(kind)[1], None, 1)
        assert "out" in inspect.signature(kernel).parameters, kind


def test_is_pointwise():
    def node(kind: str, version: int | None) -> Any:
        return NodeStandIn(kind, version, {}, [None] * 2, [None])

    assert pointwise.is_pointwise(node("onnx::Add", None))
    assert pointwise.is_pointwise(node("onnx::Add", 7))
    assert not pointwise.is_pointwise(node("onnx::Add", 6))
    assert pointwise.is_pointwise(node("onnx::Relu", 6))
    assert not pointwise.is_pointwise(node("onnx::Conv", None))


# -- what must always hold ----------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("op", ["Add", "Where", "PRelu", "Div"])
def test_shapes_that_do_not_broadcast(op, dtype):
    first = [np.array(True)] if op == "Where" else []
    with pytest.raises(Error, match=r"\[2, 3\].*\[4\].*broadcast"):
        run_kernel(op, [*first, np.ones((2, 3), dtype), np.ones(4, dtype)], {}, 16)


def test_sigmoid_is_right_far_from_zero():
    """The error is small relative to results that are next to 0."""
    x = np.concatenate([np.linspace(-85, 85, 20_001), [0.0, -0.0]]).astype(np.float32)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    error = np.abs(run_kernel("Sigmoid", [x], {}, 13)[0] - exact) / exact
    assert (error <= 8 * 2.0**-24).all()
    (ends,) = run_kernel("Sigmoid", [np.array([-np.inf, -1e4, 1e4, np.inf, np.nan], np.float32)], {}, 13)
    assert ends.tolist()[:4] == [0, 0, 1, 1] and np.isnan(ends[4])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8, np.bool_, np.int64, np.complex128])
@pytest.mark.parametrize(
    "shapes", [((64, 99),) * 3, ((64, 99), (), (1, 99)), ((64, 1), (99,), ()), ((99, 64), (64,), (2, 1, 1))]
)
def test_many_are_selected_bit_by_bit(shapes: tuple[tuple[int, ...], ...], dtype: type) -> None:
    rng = np.random.default_rng(0)
    condition = rng.random(shapes[0]) < 0.4
    x, y = (rng.integers(-3, 3, shape).astype(dtype) for shape in shapes[1:])
    if np.dtype(dtype).kind == "f":
        x, y = np.where(x == 0, -np.inf, -x).astype(dtype), np.where(y == 0, np.nan, y).astype(dtype)
    for c, a in ((condition, x), (condition.T.copy().T, np.asarray(x, order="F")), (condition[::-1], x)):
        (found,) = run_kernel("Where", [c, a, y], {}, 16)
        expected = np.where(c, a, y)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
