"""Versions of pointwise operators. Below 7, operands broadcast where attributes say so, and only then."""

from typing import Any

import numpy as np

from tests.kernels.versions.rows import Row, each, floats, integers

X = floats(2, 3, 4)
UNIT = floats(2, 3, low=-0.9, high=0.9)
POSITIVE = floats(2, 3, low=0.1, high=4.0)
BOOLS = integers(2, 3, 4, low=0, high=2, dtype=np.bool_)

UNARY: dict[str, tuple[Any, np.ndarray]] = {
    "Abs": (np.abs, X),
    "Acos": (np.arccos, UNIT),
    "Acosh": (np.arccosh, POSITIVE + 1),
    "Asin": (np.arcsin, UNIT),
    "Asinh": (np.arcsinh, X),
    "Atan": (np.arctan, X),
    "Atanh": (np.arctanh, UNIT),
    "Ceil": (np.ceil, X),
    "Cos": (np.cos, X),
    "Cosh": (np.cosh, X),
    "Exp": (np.exp, X),
    "Floor": (np.floor, X),
    "IsNaN": (np.isnan, np.where(X > 1, np.float32(np.nan), X)),
    "Log": (np.log, POSITIVE),
    "Neg": (np.negative, X),
    "Not": (np.logical_not, BOOLS),
    "Reciprocal": (lambda x: 1 / x, POSITIVE),
    "Relu": (lambda x: np.maximum(x, np.float32(0)), X),
    "Round": (np.round, X),
    "Sigmoid": (lambda x: 1 / (1 + np.exp(-x)), X),
    "Sign": (np.sign, np.where(np.abs(X) < 0.5, np.float32(0), X)),
    "Sin": (np.sin, X),
    "Sinh": (np.sinh, X),
    "Softplus": (lambda x: np.log1p(np.exp(x)), X),
    "Softsign": (lambda x: x / (1 + np.abs(x)), X),
    "Sqrt": (np.sqrt, POSITIVE),
    "Tan": (np.tan, UNIT),
    "Tanh": (np.tanh, X),
}


@each([Row(op, [x], expected=f) for op, (f, x) in UNARY.items()])
def test_unary(row: Row, version: int) -> None:
    row.check(version)


BINARY: dict[str, tuple[Any, int, tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}
"""Operator -> what it computes, the first version that broadcasts as NumPy does, a left operand of shape (2, 3, 4), and
right ones of its shape and of shape (3,)."""

for _op, _f in (("Add", np.add), ("Sub", np.subtract), ("Mul", np.multiply), ("Div", np.divide)):
    BINARY[_op] = (_f, 7, (X, floats(2, 3, 4, seed=1, low=0.5), floats(3, seed=2, low=0.5)))
BINARY["Pow"] = (np.power, 7, (floats(2, 3, 4, low=0.1), floats(2, 3, 4, seed=1), floats(3, seed=2, low=0.1)))
for _op, _f in (("And", np.logical_and), ("Or", np.logical_or), ("Xor", np.logical_xor)):
    _others = (integers(*s, seed=1, low=0, high=2, dtype=np.bool_) for s in ((2, 3, 4), (3,)))
    BINARY[_op] = (_f, 7, (BOOLS, *_others))
for _op, _f in (("Greater", np.greater), ("Less", np.less)):
    _quarters = tuple(np.round(x * 2) / 2 for x in (X, floats(2, 3, 4, seed=1), floats(3, seed=2)))
    BINARY[_op] = (_f, 7, _quarters)
BINARY["Equal"] = (
    np.equal,
    7,
    tuple(integers(*s, seed=i, low=0, high=3) for i, s in enumerate(((2, 3, 4), (2, 3, 4), (3,)))),
)


def aligned(f: Any, axis: int) -> Any:
    """``f`` with the dimensions of the second operand at those of the first from ``axis`` on."""

    def expected(a: np.ndarray, b: np.ndarray, **_: Any) -> np.ndarray:
        return f(a, b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim)))

    return expected


def binary() -> list[Row]:
    rows: list[Row] = []
    for op, (f, numpys, (a, same, inner)) in BINARY.items():
        since = Row(op, ()).at()
        old, new = [v for v in since if v < numpys], [v for v in since if v >= numpys]
        rows.append(Row(op, [a, same], expected=f))
        rows.append(Row(op, [a, same[0, 0]], {"broadcast": 1}, old, lambda a, b, broadcast, f=f: f(a, b)))
        rows.append(Row(op, [a, inner], {"broadcast": 1, "axis": 1}, old, aligned(f, 1)))
        rows.append(Row(op, [a, same[:, 0, 0]], {"broadcast": 1, "axis": 0}, old, aligned(f, 0)))
        rows.append(Row(op, [a[:, :1], inner.reshape(1, 3, 1)], {}, new, f))
        rows.append(Row(op, [inner.reshape(3, 1), a], {}, new, f))
    return rows


@each(binary())
def test_binary(row: Row, version: int) -> None:
    row.check(version)


INTEGERS = [integers(2, 3, seed=i, low=1, high=9, dtype=np.int32) for i in range(2)]


def truncated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (np.sign(a) * (np.abs(a) // b)).astype(a.dtype)


@each(
    [
        Row("Add", INTEGERS, expected=np.add),
        Row("Sub", INTEGERS, expected=np.subtract),
        Row("Mul", INTEGERS, expected=np.multiply),
        Row("Div", [-INTEGERS[0], INTEGERS[1]], expected=truncated),
        Row("Abs", [-INTEGERS[0]], expected=np.abs),
        Row("Neg", [INTEGERS[0]], expected=np.negative),
        Row("Greater", INTEGERS, versions=[9, 13], expected=np.greater),
        Row("Less", INTEGERS, versions=[9, 13], expected=np.less),
        Row("GreaterOrEqual", INTEGERS, expected=np.greater_equal),
        Row("LessOrEqual", [np.round(X), np.round(X[:1, :1])], expected=np.less_equal),
        Row("Equal", [BOOLS, BOOLS[::-1].copy()], expected=np.equal),
        Row("Equal", [np.round(X), np.round(X[::-1]).copy()], versions=[11, 13, 19], expected=np.equal),
        Row("Equal", [np.array(["a", "b"], object), np.array(["a", "c"], object)], versions=[19], expected=np.equal),
        Row("Pow", [INTEGERS[0], INTEGERS[1].astype(np.float32)], versions=[12, 13, 15]),
        Row("Pow", [floats(3, low=0.1), np.array([2, 3, 0])], versions=[12, 13, 15]),
        Row("Relu", [INTEGERS[0] - 4], versions=[14], expected=lambda x: np.maximum(x, 0)),
        Row(
            "BitShift",
            [INTEGERS[0].astype(np.uint32), INTEGERS[1].astype(np.uint32)],
            {"direction": "LEFT"},
            None,
            lambda a, b, direction: a << b,
        ),
        Row(
            "BitShift",
            [np.array([255, 16], np.uint8), np.array([3, 8], np.uint8)],
            {"direction": "RIGHT"},
            None,
            lambda a, b, direction: np.array([31, 0], np.uint8),
        ),
        Row("Mod", [INTEGERS[0] - 5, INTEGERS[1]], expected=np.mod),
        Row("Mod", [-INTEGERS[0], INTEGERS[1]], {"fmod": 1}, expected=lambda a, b, fmod: np.fmod(a, b)),
        Row("Mod", [X, floats(4, low=0.5)], {"fmod": 1}, expected=lambda a, b, fmod: np.fmod(a, b)),
    ]
)
def test_other_types(row: Row, version: int) -> None:
    row.check(version)


def clipped(x: np.ndarray, min: Any = None, max: Any = None) -> np.ndarray:
    return np.clip(x, -np.inf if min is None else min, np.inf if max is None else max).astype(x.dtype)


BOUND = np.float32(0.5)


@each(
    [
        Row("Clip", [X], expected=clipped),
        Row("Clip", [X], {"min": -0.5, "max": 1.0}, [6], clipped),
        Row("Clip", [X], {"max": 0.5}, [6], clipped),
        Row("Clip", [X, np.array(-BOUND), np.array(BOUND)], {}, [11, 12, 13], clipped),
        Row("Clip", [X, None, np.array(BOUND)], {}, [11, 12, 13], clipped),
        Row("Clip", [integers(3, 4), np.array(-2), np.array(3)], {}, [12, 13], clipped),
        Row("Clip", [X, np.array(BOUND), np.array(-BOUND)], {}, [13], lambda x, low, high: np.full_like(x, high)),
    ]
)
def test_clip(row: Row, version: int) -> None:
    row.check(version)


def leaky(x: np.ndarray, alpha: float = 0.01) -> np.ndarray:
    return np.where(x < 0, np.float32(alpha) * x, x)


def slope(at: Any) -> Any:
    return lambda x, s: np.where(x < 0, s[at] * x, x)


INFINITE = np.array([[np.inf, 1, np.nan], [-np.inf, 0, 2]], np.float32)


@each(
    [
        Row("LeakyRelu", [X], expected=leaky),
        Row("LeakyRelu", [X], {"alpha": 0.3}, expected=leaky),
        Row("PRelu", [X, floats(3, seed=1)], {}, [6], slope((..., None))),
        Row("PRelu", [X, floats(1, seed=1)], expected=slope(...)),
        Row("PRelu", [X, floats(3, 1, seed=1)], {}, [7, 9, 16], slope(...)),
        Row("PRelu", [integers(2, 3, dtype=np.int32), np.array([2], np.int32)], {}, [9, 16], slope(...)),
        Row("IsInf", [INFINITE], expected=np.isinf),
        Row("IsInf", [INFINITE], {"detect_negative": 0}, expected=lambda x, **_: np.isposinf(x)),
        Row("IsInf", [INFINITE], {"detect_positive": 0}, expected=lambda x, **_: np.isneginf(x)),
        Row("Erf", [X]),
        Row(
            "Celu",
            [X],
            {"alpha": 0.7},
            None,
            lambda x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)),
        ),
        Row("HardSwish", [X * 3], expected=lambda x: x * np.clip(x / 6 + 0.5, 0, 1)),
        Row("Mish", [X], expected=lambda x: x * np.tanh(np.log1p(np.exp(x)))),
        Row("Elu", [X], {"alpha": 0.7}),
        Row("Selu", [X], {"alpha": 1.5, "gamma": 1.2}),
        Row("HardSigmoid", [X], {"alpha": 0.3, "beta": 0.4}),
        Row("ThresholdedRelu", [X], {"alpha": 0.3}),
    ]
)
def test_activations(row: Row, version: int) -> None:
    row.check(version)


def mean(*xs: np.ndarray) -> np.ndarray:
    return (sum(xs[1:], xs[0]) / np.float32(len(xs))).astype(np.float32)


THREE = [floats(2, 3, seed=i) for i in range(3)]
UNEQUAL = [floats(2, 1), floats(3), floats(1, 1)]


@each(
    [
        row
        for op, f in {
            "Max": lambda *xs: np.maximum(np.maximum(xs[0], xs[-1]), xs[len(xs) // 2]),
            "Min": lambda *xs: np.minimum(np.minimum(xs[0], xs[-1]), xs[len(xs) // 2]),
            "Sum": lambda *xs: sum(xs[1:], xs[0]),
            "Mean": mean,
        }.items()
        for row in (
            Row(op, THREE, expected=f),
            Row(op, THREE[:1], expected=f),
            Row(op, UNEQUAL, {}, [v for v in Row(op, ()).at() if v >= 8], f),
        )
    ]
    + [
        Row("Max", INTEGERS, {}, [12, 13], np.maximum),
        Row("Min", INTEGERS, {}, [12, 13], np.minimum),
        Row("Where", [BOOLS[0], X, X[:1, :1]], expected=np.where),
    ]
)
def test_variadic(row: Row, version: int) -> None:
    row.check(version)
