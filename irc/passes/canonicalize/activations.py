"""Activations that exporters wrote as several operators, because their operator set had no operator for them.

``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`` is eight operators, in any of several orders: ``x **
3`` may be ``x * x * x``, and factors may be inside of sums or before them. Multiplied out, all are one polynomial of x
and of the one function in them, whose operand is a polynomial of x. When exported to ONNX for an older operator set,
they are written as several operators again (`irc.frontend.onnx_export.decompositions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir.constants import one_number
from irc.ir.kinds import GELU, SWISH
from irc.ir.types import DType
from irc.passes.canonicalize.match import Match, rewrite

if TYPE_CHECKING:
    from irc.ir import Node, Value

_Polynomial = dict[str, float]
"""Of x and f, the function: ``{"x": 0.5, "fx": 0.5}`` is 0.5 x + 0.5 f x. All numbers are positive, so that none cancel
each other out, which would not be what is computed."""

_HIGHEST = 3
"""The highest power that there is in activations."""

_MOST_NODES = 12
"""How many operators may make one: it has no more than nine."""

_PRECISION = {DType.FLOAT: float(np.finfo(np.float32).eps), DType.DOUBLE: float(np.finfo(np.float64).eps)}
"""Element types, and by how much numbers of them differ at least. Half precision would be rounded elsewhere."""

_TOLERANCE = 4
"""How many times that a coefficient, a product of rounded numbers, may be off."""

_SLOPE = math.sqrt(2 / math.pi)

_GELUS = {
    "onnx::Erf": ("none", {"x": math.sqrt(0.5)}),
    "onnx::Tanh": ("tanh", {"x": _SLOPE, "xxx": _SLOPE * 0.044715}),
}
"""What they are called by their functions, and the operands of these."""

_SIGMOID = "onnx::Sigmoid"

_LARGEST = float(np.finfo(np.float32).max)
"""Of alpha."""

_FUNCTIONS = {*_GELUS, _SIGMOID}


@rewrite("Mul")
def activation(m: Match) -> Value | None:
    """The product that ends a gelu, or x times a sigmoid."""
    dtype = m.output.type.dtype
    if dtype not in _PRECISION:
        return None
    reading = _Reading()
    whole = reading.result_of(m.node)
    x, function = reading.x, reading.function
    if whole is None or x is None or function is None or not m.type_of(x).rank:
        return None  # numbers, which may have an axis, leave x its shape
    inner = reading.polynomial(function.inputs[0])
    if inner is None or "x" not in inner:
        return None

    def is_near(found: _Polynomial, wanted: _Polynomial) -> bool:
        most = _TOLERANCE * _PRECISION[dtype]
        return found.keys() == wanted.keys() and all(math.isclose(found[k], wanted[k], rel_tol=most) for k in wanted)

    if function.kind == _SIGMOID:
        kind, version = SWISH, 24
        alpha = float(np.float32(min(inner["x"], _LARGEST)))
        attributes: dict[str, Any] = {"alpha": alpha}
        found = is_near(whole, {"fx": 1}) and is_near(inner, {"x": alpha})
    else:
        kind, version = GELU, 20
        name, operand = _GELUS[function.kind]
        attributes = {"approximate": name}
        found = is_near(whole, {"x": 0.5, "fx": 0.5}) and is_near(inner, operand)
    if not found or not m.still_holds_here(reading.nodes):
        return None
    return m.new(kind, [x], m.output.type, attributes, version)


class _Reading:
    """How values are computed from one other value, x, and from one function of that.

    Intermediate values have no other use; x has several.
    """

    def __init__(self) -> None:
        self.x: Value | None = None
        self.function: Node | None = None
        self.nodes: list[Node] = []

    def polynomial(self, value: Value) -> _Polynomial | None:
        """``value`` as a polynomial, multiplied out; None if it is not one."""
        number = one_number(value)
        if number is not None:
            return {"": number} if number > 0 else None
        node = value.node
        if node is not None and value.is_used_once:
            if node.kind in _ARITHMETIC:
                return self.result_of(node)
            if node.kind in _FUNCTIONS and self.function is None:
                self.function = node
                self.nodes.append(node)
                return {"f": 1.0}
        if self.x is None:
            self.x = value
        return {"x": 1.0} if value is self.x else None

    def result_of(self, node: Node) -> _Polynomial | None:
        """The polynomial that an arithmetic node computes."""
        if len(self.nodes) == _MOST_NODES or (node.version or 7) < 7:
            return None
        self.nodes.append(node)
        a = self.polynomial(node.inputs[0])
        b = None if a is None else self.polynomial(node.inputs[1])
        return None if a is None or b is None else _ARITHMETIC[node.kind](a, b)


def _sum(a: _Polynomial, b: _Polynomial) -> _Polynomial:
    return {term: a.get(term, 0) + b.get(term, 0) for term in {**a, **b}}


def _product(a: _Polynomial, b: _Polynomial) -> _Polynomial | None:
    found: _Polynomial = {}
    for (s, m), (t, n) in product(a.items(), b.items()):
        term = "".join(sorted(s + t))
        found[term] = found.get(term, 0) + m * n
    return None if any(len(term) > _HIGHEST for term in found) else found


def _quotient(a: _Polynomial, b: _Polynomial) -> _Polynomial | None:
    return _product(a, {"": 1 / b[""]}) if b.keys() == {""} else None


def _power(a: _Polynomial, b: _Polynomial) -> _Polynomial | None:
    if b == {"": 2}:
        return _product(a, a)
    square = _product(a, a) if b == {"": 3} else None
    return None if square is None else _product(square, a)


_ARITHMETIC: dict[str, Callable[[_Polynomial, _Polynomial], _Polynomial | None]] = {
    "onnx::Add": _sum,
    "onnx::Mul": _product,
    "onnx::Div": _quotient,
    "onnx::Pow": _power,
}
