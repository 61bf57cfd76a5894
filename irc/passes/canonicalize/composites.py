"""Functions that exporters write as several operators, for opsets without an operator for them.

When exported to ONNX for an older operator set, they are written as several operators again
(`irc.frontend.onnx_export.decompositions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from irc.ir import DType, Node, Tensor, Value, constant_tensor, one_number
from irc.ir.kinds import GELU, LAYER_NORM, RMS_NORM, SWISH
from irc.passes.canonicalize.match import Match, rewrite

# Activations: ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3)))`` is eight operators, in any of several
# orders: ``x ** 3`` may be ``x * x * x``, and factors may be inside of sums or before them. Multiplied out, all are one
# polynomial of x and of the one function in them, whose operand is a polynomial of x.


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


def _product(a: _Polynomial, b: _Polynomial) -> _Polynomial | None:
    found: _Polynomial = {}
    for (s, m), (t, n) in product(a.items(), b.items()):
        term = "".join(sorted(s + t))
        found[term] = found.get(term, 0) + m * n
    return None if any(len(term) > _HIGHEST for term in found) else found


def _power(a: _Polynomial, b: _Polynomial) -> _Polynomial | None:
    if b == {"": 2}:
        return _product(a, a)
    square = _product(a, a) if b == {"": 3} else None
    return None if square is None else _product(square, a)


_ARITHMETIC: dict[str, Callable[[_Polynomial, _Polynomial], _Polynomial | None]] = {
    "onnx::Add": lambda a, b: {term: a.get(term, 0) + b.get(term, 0) for term in {**a, **b}},
    "onnx::Mul": _product,
    "onnx::Div": lambda a, b: _product(a, {"": 1 / b[""]}) if b.keys() == {""} else None,
    "onnx::Pow": _power,
}


# Normalisations: ``(x - mean) / sqrt(mean((x - mean)²) + epsilon) * scale + bias`` is nine operators, and a decoder has
# several of these in each layer. As LayerNormalization, or RMSNormalization if no mean is subtracted, it is one.


_VERSIONS = {LAYER_NORM: 17, RMS_NORM: 23}


class _Normal(NamedTuple):
    """``source``, minus its mean if ``centered``, over the root mean square of that (and ``epsilon``)."""

    source: Value
    centered: bool
    epsilon: float
    made_by: list[Node]


@rewrite("Div", "Mul")
def normalization(m: Match) -> Value | None:
    """What is divided by the root of its mean square along the last axis."""
    if m.output.type.dtype is not DType.FLOAT or m.types.version < 7:
        return None  # others are rounded in between
    for found in _normals(m):
        width = m.size(found.source, -1) if m.type_of(found.source).rank else None
        if not isinstance(width, int) or not width or not m.same_type(found.source):
            continue
        if m.still_holds_here(found.made_by):
            kind = LAYER_NORM if found.centered else RMS_NORM
            ones = m.new_constant(Tensor.splat(DType.FLOAT, (width,), 1.0))
            attributes = {"axis": -1, "epsilon": found.epsilon}
            return m.new(kind, [found.source, ones], m.output.type, attributes, _VERSIONS[kind])
    return None


@rewrite("Mul")
def scale_of_normalization(m: Match) -> Value | None:
    """A product with normalised rows whose scale is 1: the factor becomes the scale."""
    for normal, own, given in _rows_with(m, LAYER_NORM, RMS_NORM):
        scale = constant_tensor(normal.inputs[1])
        if scale is not None and (scale.is_splat or scale.numel == 1) and scale.scalar == 1:
            return _with(m, normal, [own, given])
    return None


@rewrite("Add")
def bias_of_normalization(m: Match) -> Value | None:
    """A sum with normalised rows that have no bias: the summand becomes the bias."""
    for normal, own, given in _rows_with(m, LAYER_NORM):
        return _with(m, normal, [own, normal.inputs[1], given])
    return None


def _rows_with(m: Match, *kinds: str) -> Iterator[tuple[Node, Value, Value]]:
    """A node of ``kinds`` without bias, the rows it normalises, and one number for each column.

    Nothing else uses the result of the node.
    """
    for at in (0, 1):
        rows, constant = m.input(at), m.constant(1 - at)
        normal = rows.made_by(*kinds) if rows.is_used_once else None
        if normal is None or constant is None or normal.outputs[1:] or normal.inputs[2:]:
            continue
        shape = m.type_of(normal.inputs[1]).static_shape
        fits = shape is not None and len(shape) == 1 and shape == tuple(constant.shape)
        if fits and constant.dtype is DType.FLOAT and m.same_type(normal.inputs[0]) and m.still_holds_here([normal]):
            yield normal, normal.inputs[0], m.input(1 - at)


def _with(m: Match, normal: Node, inputs: list[Value]) -> Value:
    return m.new(normal.kind, inputs, m.output.type, dict(normal.attributes), normal.version)


def _normals(m: Match) -> Iterator[_Normal]:
    """The normalisations that the node, a division or product, may be."""
    for source, root, inverse in _quotients(m.node):
        shifted = root.made_by("onnx::Sqrt") if root.is_used_once else None
        added = None if shifted is None else shifted.inputs[0].made_by("onnx::Add")
        if shifted is None or added is None:
            continue
        for square, number in (added.inputs, added.inputs[::-1]):
            epsilon, mean = one_number(number), _mean(m, square)
            squared = None if mean is None else mean.inputs[0].made_by("onnx::Pow", "onnx::Mul")
            if epsilon is None or mean is None or squared is None or not _is_square(squared, source):
                continue
            nodes = [*inverse, shifted, added, mean, squared]
            centered = source.made_by("onnx::Sub")
            taken = None if centered is None else _mean(m, centered.inputs[1])
            if centered is None or taken is None or taken.inputs[0] is not centered.inputs[0]:
                yield _Normal(source, False, epsilon, nodes)
            else:
                yield _Normal(taken.inputs[0], True, epsilon, [*nodes, centered, taken])


def _quotients(node: Node) -> Iterator[tuple[Value, Value, list[Node]]]:
    """``(x, y, made_by)`` where ``node`` is ``x / y`` or ``x * (1 / y)``."""
    a, b = node.inputs
    if node.kind == "onnx::Div":
        yield a, b, []
        return
    for x, factor in ((a, b), (b, a)):
        inverse = factor.made_by("onnx::Reciprocal", "onnx::Div") if factor.is_used_once else None
        if inverse is not None and (inverse.kind == "onnx::Reciprocal" or one_number(inverse.inputs[0]) == 1):
            yield x, inverse.inputs[-1], [inverse]


def _mean(m: Match, value: Value) -> Node | None:
    """The node that makes ``value``, if it takes the mean along the last axis and keeps that axis."""
    node = value.made_by("onnx::ReduceMean")
    if node is None or not node.attributes.get("keepdims", 1):
        return None
    axes, rank = m.types_of(node).axes(1), m.type_of(node.inputs[0]).rank
    return node if axes == [-1] or (rank and axes == [rank - 1]) else None


def _is_square(node: Node, x: Value) -> bool:
    if node.kind == "onnx::Mul":
        return node.inputs[0] is x and node.inputs[1] is x
    return node.inputs[0] is x and one_number(node.inputs[1]) == 2
