"""The pointwise operators whose errors are measured: how each is called, and its reference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.goldens import references as ref
from benchmarks.goldens.references import PI, L, Reference

OPERANDS = ("x", "y", "z")
CONDITION = "c"
LARGE = 1e300
"""The limit of operators whose steps overflow on larger operands: this, or a sixteenth of the largest number."""


@dataclass(frozen=True)
class Operator:
    """One operator with its parameters.

    Attributes:
        kind: such as ``onnx::Elu``.
        reference: what it computes of its operands, in extended precision.
        arguments: operands (`OPERANDS` of floats, `CONDITION` of bools) and, of TorchScript, Python constants.
        attributes: of ONNX's; in text form.
        scale: of operators that cancel near their zeros, what their terms are as large as: errors are in ulp of that.
        limit: operands are clipped to this size, and to a sixteenth of the largest number.
        predicate: whether the result is a bool.
    """

    kind: str
    reference: Reference
    arguments: tuple[Any, ...] = ("x",)
    attributes: str = ""
    scale: Reference | None = None
    limit: float = np.inf
    predicate: bool = False

    @property
    def name(self) -> str:
        """How the table calls it: the kind, its parameters, and how many operands if more than two."""
        constants = ", ".join(str(a) for a in self.arguments if a not in (*OPERANDS, CONDITION))
        parameters = ", ".join(filter(None, (self.attributes, constants)))
        several = f" of {len(self.operands)}" if len(self.operands) > 2 else ""
        return self.kind + (f"({parameters})" if parameters else "") + several

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of its operands."""
        return tuple(a for a in self.arguments if a in (*OPERANDS, CONDITION))

    def text(self, element: str) -> str:
        """A graph that computes it of operands of one element type, as IR text calls it."""
        types = {name: "Bool" if name == CONDITION else element for name in self.operands}
        lines = [f"graph({', '.join(f'%{name} : {t}(*)' for name, t in types.items())}):"]
        names: list[str] = []
        for i, argument in enumerate(self.arguments):
            if argument in types:
                names.append(f"%{argument}")
                continue
            names.append(f"%a{i}")
            lines.append(f"  %a{i} : {_CONSTANTS[type(argument)]} = prim::Constant{_value(argument)}()")
        attributes = f"[{self.attributes}]" if self.attributes else ""
        result = "Bool" if self.predicate else element
        lines.append(f"  %r : {result}(*) = {self.kind}{attributes}({', '.join(names)})")
        return "\n".join([*lines, "  return (%r)", ""])


_CONSTANTS = {float: "float", int: "int", str: "str", type(None): "NoneType", bool: "bool"}


def _value(constant: Any) -> str:
    if constant is None:
        return ""
    return f'[value="{constant}"]' if isinstance(constant, str) else f"[value={constant!r}]"


@dataclass
class _Table:
    rows: list[Operator] = field(default_factory=list[Operator])

    def add(self, namespace: str, references: dict[str, Reference], *arguments: Any, **properties: Any) -> None:
        for name, reference in references.items():
            self.rows.append(Operator(f"{namespace}::{name}", reference, arguments or ("x",), **properties))

    def onnx(self, name: str, reference: Reference, *arguments: Any, **properties: Any) -> None:
        self.add("onnx", {name: reference}, *arguments, **properties)

    def aten(self, name: str, reference: Reference, *arguments: Any, **properties: Any) -> None:
        self.add("aten", {name: reference}, *arguments, **properties)


def _one(*operands: Any) -> Any:
    return L(1)


def _sizes(*operands: Any) -> Any:
    return sum(map(np.abs, operands))


_SHARED: dict[str, Reference] = {
    "Abs": np.abs,
    "Acos": np.arccos,
    "Acosh": np.arccosh,
    "Asin": np.arcsin,
    "Asinh": np.arcsinh,
    "Atan": np.arctan,
    "Atanh": np.arctanh,
    "Ceil": np.ceil,
    "Cos": np.cos,
    "Cosh": np.cosh,
    "Erf": ref.erf,
    "Exp": np.exp,
    "Floor": np.floor,
    "Log": np.log,
    "Neg": np.negative,
    "Reciprocal": lambda x: 1 / x,
    "Relu": lambda x: ref.maximum(x, L(0)),
    "Round": np.rint,
    "Sign": ref.sign,
    "Sin": np.sin,
    "Sinh": np.sinh,
    "Sqrt": np.sqrt,
    "Tan": np.tan,
    "Tanh": np.tanh,
}
"""Operators that both have, by ONNX's name."""

_COMPARISONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "Equal": ("eq", np.equal),
    "Greater": ("gt", np.greater),
    "GreaterOrEqual": ("ge", np.greater_equal),
    "Less": ("lt", np.less),
    "LessOrEqual": ("le", np.less_equal),
}


def _table() -> list[Operator]:
    t = _Table()
    t.add("onnx", _SHARED)
    t.add(
        "aten", {name.lower(): r for name, r in _SHARED.items()} | {"sign": lambda x: np.where(x == x, np.sign(x), 0)}
    )
    for namespace, names in (("onnx", ("Mish", "Sigmoid", "HardSwish")), ("aten", ("mish", "sigmoid", "hardswish"))):
        slope = np.float32(1 / 6) if namespace == "onnx" else L(1) / 6  # ONNX has it as an attribute
        references = dict(zip(names, (ref.mish, ref.sigmoid, ref.hard_swish(slope))))
        t.add(namespace, references, scale=_one, limit=LARGE)
    t.onnx("Softplus", ref.softplus)
    t.onnx("Softsign", lambda x: np.where(np.isinf(x), np.nan, x / (1 + np.abs(x))))
    t.onnx("Gelu", ref.gelu, scale=_one)
    t.onnx("Gelu", ref.gelu_tanh, attributes='approximate="tanh"', scale=_one)
    t.onnx("Celu", ref.elu(0.75, 1, 0.75), attributes="alpha=0.75")
    t.onnx("Elu", ref.elu(1.25), attributes="alpha=1.25")
    t.onnx("Selu", ref.elu(ref.SELU_ALPHA, ref.SELU_SCALE))
    t.onnx("LeakyRelu", lambda x: np.where(x < 0, x * L(0.125), x), attributes="alpha=0.125")
    t.onnx("ThresholdedRelu", lambda x: np.where(x > 0.5, x, 0), attributes="alpha=0.5")
    t.onnx("HardSigmoid", ref.hard_sigmoid(0.25, 0.5), attributes="alpha=0.25, beta=0.5")
    t.onnx("Shrink", ref.shrink(0.75, 0.25), attributes="bias=0.25, lambd=0.75")
    t.onnx("Swish", lambda x: ref.swish(x, 0.75), attributes="alpha=0.75", scale=_one)
    t.onnx("IsInf", np.isinf, predicate=True)
    t.onnx("IsNaN", np.isnan, predicate=True)
    t.onnx("SwiGLU", lambda x, y: ref.swish(x) * y, "x", "y", scale=lambda x, y: np.maximum(np.abs(y), 1))
    t.onnx("PRelu", lambda x, y: np.where(x < 0, x * y, x), "x", "y")
    arithmetic = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    t.add("onnx", {**arithmetic, "Max": ref.maximum, "Min": ref.minimum, "Pow": np.power}, "x", "y")
    t.onnx("Mod", ref.fmod, "x", "y", attributes="fmod=1")
    t.onnx("Sum", ref.sum_of, "x", "y", "z", scale=_sizes, limit=LARGE)
    t.onnx("Mean", lambda *xs: ref.sum_of(*xs) / 3, "x", "y", "z", scale=_sizes, limit=LARGE)
    for name, reference in (("Max", ref.maximum), ("Min", ref.minimum)):
        t.onnx(name, lambda x, y, z, f=reference: f(f(x, y), z), "x", "y", "z")
    t.onnx("Where", np.where, "c", "x", "y")
    for name, (short, reference) in _COMPARISONS.items():
        t.onnx(name, reference, "x", "y", predicate=True)
        t.aten(short, reference, "x", "y", predicate=True)
    _unary_of_torch(t)
    _binary_of_torch(t)
    return t.rows


def _unary_of_torch(t: _Table) -> None:
    t.add("aten", {"exp2": np.exp2, "expm1": np.expm1, "log2": np.log2, "log10": np.log10, "log1p": np.log1p})
    t.add("aten", {"erfc": ref.erfc, "erfinv": ref.erfinv, "frac": lambda x: x - np.trunc(x), "trunc": np.trunc})
    t.add(
        "aten",
        {"rsqrt": lambda x: 1 / np.sqrt(x), "square": np.square, "sgn": lambda x: np.where(x == x, np.sign(x), 0)},
    )
    t.add("aten", {"deg2rad": lambda x: x * (PI / 180), "rad2deg": lambda x: x * (180 / PI)})
    t.aten("angle", lambda x: np.where(np.isnan(x), x, np.where(x < 0, PI, 0)))
    t.add("aten", {"lgamma": ref.lgamma, "digamma": ref.digamma, "special_entr": ref.entropy}, scale=_one)
    t.aten("sinc", ref.sinc, scale=_one, limit=LARGE)
    t.add("aten", {"i0": ref.bessel(0, False), "special_i0e": ref.bessel(0, True)})
    t.add("aten", {"special_i1": ref.bessel(1, False), "special_i1e": ref.bessel(1, True)})
    t.add("aten", {"relu6": lambda x: ref.minimum(ref.maximum(x, L(0)), L(6))})
    t.add("aten", {"silu": ref.swish}, scale=_one)
    t.add("aten", {"hardsigmoid": lambda x: np.clip((x + 3) / 6, 0, 1)})
    t.add(
        "aten",
        {"selu": ref.elu(ref.TORCH_SELU_ALPHA, ref.TORCH_SELU_SCALE), "log_sigmoid": lambda x: -ref.softplus(-x)},
    )
    t.aten("elu", ref.elu(0.75), "x", 0.75, 1.0, 1.0)
    t.aten("celu", ref.elu(0.75, 1, 0.75), "x", 0.75)
    t.aten("gelu", ref.gelu, "x", "none", scale=_one)
    t.aten("gelu", ref.gelu_tanh, "x", "tanh", scale=_one)
    t.aten("softplus", lambda x: np.where(x > 20, x, ref.softplus(x)), "x", 1.0, 20.0)
    t.aten("leaky_relu", lambda x: np.where(x < 0, x * L(0.125), x), "x", 0.125)
    t.aten("threshold", lambda x: np.where(x <= 0.5, L(0.25), x), "x", 0.5, 0.25)
    t.aten("hardtanh", lambda x: np.clip(x, -2, 3), "x", -2.0, 3.0)
    t.aten("hardshrink", lambda x: np.where(np.abs(x) <= 0.5, 0, x), "x", 0.5)
    t.aten("softshrink", ref.shrink(0.5, 0.5), "x", 0.5)
    t.aten("logit", lambda x: np.log(x / (1 - x)), "x", None, scale=_one)
    t.aten("nan_to_num", lambda x: np.where(np.isinf(x), 2 * np.sign(x), np.where(x == x, x, 0)), "x", 0.0, 2.0, -2.0)
    t.aten("clamp", lambda x: np.clip(x, -2, 3), "x", -2.0, 3.0)
    t.add("aten", {"clamp_min": lambda x: np.maximum(x, -2)}, "x", -2.0)
    t.add("aten", {"clamp_max": lambda x: np.minimum(x, 3)}, "x", 3.0)
    predicates: dict[str, Reference] = {"isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan}
    predicates |= {"isneginf": np.isneginf, "isposinf": np.isposinf, "signbit": np.signbit}
    t.add(
        "aten",
        {**predicates, "isreal": lambda x: np.full(x.shape, True), "logical_not": lambda x: x == 0},
        predicate=True,
    )
    powers: dict[float, Reference] = {0.5: np.sqrt, 2.0: np.square}
    for power in (-1.0, -2.0, 0.5, 2.0, 3.0, 2.5):
        f = powers.get(power, lambda x, power=power: np.power(x, L(power)))
        t.aten("pow", f, "x", power)


def _binary_of_torch(t: _Table) -> None:
    t.add("aten", {"add": np.add, "sub": np.subtract}, "x", "y", 1)
    t.aten("add", lambda x, y: x + y * L(0.75), "x", "y", 0.75, scale=_sizes)
    t.aten("rsub", lambda x, y: y - x, "x", "y", 1)
    simple = {"mul": np.multiply, "div": np.divide, "maximum": ref.maximum, "minimum": ref.minimum, "pow": np.power}
    t.add("aten", {**simple, "fmax": np.fmax, "fmin": np.fmin, "atan2": np.arctan2, "hypot": np.hypot}, "x", "y")
    t.add("aten", {"fmod": ref.fmod, "remainder": ref.remainder, "copysign": np.copysign}, "x", "y")
    t.aten("div", lambda x, y: np.trunc(x / y), "x", "y", "trunc")
    t.aten("xlogy", ref.xlogy, "x", "y", scale=_one)
    t.add("aten", {"logaddexp": ref.logaddexp, "logaddexp2": ref.logaddexp2}, "x", "y", scale=_one)
    t.aten("heaviside", lambda x, y: np.where(x == 0, y, x > 0), "x", "y")
    t.aten("where", np.where, "c", "x", "y")
    t.aten("masked_fill", lambda x, c: np.where(c, L(0.5), x), "x", "c", 0.5)
    t.aten(
        "lerp", ref.lerp, "x", "y", "z", scale=lambda x, y, z: (np.abs(x) + np.abs(y)) * (1 + np.abs(z)), limit=LARGE
    )
    t.aten("addcmul", lambda x, y, z: x + L(0.75) * y * z, "x", "y", "z", 0.75, scale=lambda x, y, z: _sizes(x, y * z))
    t.aten("addcdiv", lambda x, y, z: x + L(0.75) * y / z, "x", "y", "z", 0.75, scale=lambda x, y, z: _sizes(x, y / z))
    logic = {"logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
    t.add("aten", {**logic, "ne": np.not_equal}, "x", "y", predicate=True)


OPERATORS = _table()
