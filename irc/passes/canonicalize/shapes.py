"""Chains of shape operators, shape arithmetic, and the idioms of exporters around Expand."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from irc.ir.limits import MAX_ELEMENTS
from irc.ir.ops.movers import ORDERED
from irc.ir.tensor import Tensor
from irc.ir.types import DType
from irc.passes.canonicalize.match import Match, rewrite, surely_equal
from irc.passes.shapes.contents import CONTENTS_RULES

if TYPE_CHECKING:
    from irc.ir import Value

_RESHAPING = [kind.removeprefix("onnx::") for kind in sorted(ORDERED)]

_LONGEST_CHAIN = 16
"""How many reshapes up a shape is looked for: each of a long chain looks."""


@rewrite(*(kind.removeprefix("onnx::") for kind in CONTENTS_RULES))
def known_contents(m: Match) -> Value | None:
    """Shape arithmetic whose result is known becomes a constant."""
    type, contents = m.output.type, m.inference.contents.get(m.output)
    if contents is None or type.dtype is None:
        return None
    if not all(isinstance(d, int) for d in contents.flat) or not m.can_be_constant():
        return None
    try:
        array = np.array(contents.tolist(), type.dtype.numpy)
    except OverflowError:  # a run wraps around
        return None
    return m.new_constant(Tensor.of(array, dtype=type.dtype))


@rewrite("Transpose")
def transpose_of_transpose(m: Match) -> Value | None:
    """Two transpositions are one, or none."""
    inner = m.producer(0, "Transpose")
    rank = m.types.tensor(0).rank
    if inner is None or rank is None:
        return None
    reverse = list(range(rank))[::-1]
    first, second = inner.attributes.get("perm") or reverse, m.types.attr("perm") or reverse
    perm, x = [first[p] for p in second], inner.inputs[0]
    if not m.can_share(x):
        return None
    if perm == sorted(perm):
        return x
    return m.new("onnx::Transpose", [x], m.output.type, {"perm": perm}, m.node.version)


@rewrite(*_RESHAPING)
def reshape_there_and_back(m: Match) -> Value | None:
    """A chain of reshapes that ends in the shape it began with."""
    inner = m.producer(0, *_RESHAPING)
    for _ in range(_LONGEST_CHAIN):
        if inner is None:
            return None
        x = inner.inputs[0]
        if surely_equal(x.type, m.output.type):
            return x if m.can_share(x) else None
        inner = x.node if x.node is not None and x.node.kind.removeprefix("onnx::") in _RESHAPING else None
    return None


@rewrite("Reshape")
def reshape_of_reshape(m: Match) -> Value | None:
    """Only the last of several reshapes matters, if it does not copy sizes (0) from the one before."""
    inner = m.producer(0, *_RESHAPING)
    if inner is None or m.types.version < 5 or not m.can_share(inner.inputs[0]):
        return None
    target = m.types.ints(1)
    if target is None or (0 in target and not m.types.attr("allowzero", 0)):
        return None
    attributes = dict(m.node.attributes)
    return m.new("onnx::Reshape", [inner.inputs[0], m.input(1)], m.output.type, attributes, m.node.version)


@rewrite("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Equal", "Less", "Greater", "Where", "And", "Or")
def operand_expanded_for_nothing(m: Match) -> Value | None:
    """Operators that broadcast need no Expand before them, unless it alone gives the result its shape."""
    out, db = m.output.type, m.rewriter.db
    if m.types.version < 7 or out.shape is None or None in out.shape:
        return None
    expands = {i: e for i, v in enumerate(m.node.inputs) if (e := v.made_by("onnx::Expand")) is not None}
    plain = {
        i: e.inputs[0] for i, e in expands.items() if not (db.has_writers(e.inputs[0]) or db.has_writers(e.output))
    }
    inputs = [plain.get(i, v) for i, v in enumerate(m.node.inputs)]
    shape = m.types.broadcast([v.type.shape for v in inputs])
    for i in plain:
        if shape == out.shape:
            break
        more = m.types.broadcast([shape, m.types.shape(i)])  # with this Expand after all
        if more != shape:
            inputs[i], shape = m.node.inputs[i], more
    if shape != out.shape or inputs == list(m.node.inputs):
        return None
    return m.new(m.node.kind, inputs, out, dict(m.node.attributes), m.node.version)


@rewrite("ConstantOfShape")
def constant_of_known_shape(m: Match) -> Value | None:
    """Becomes a splat, which takes no memory whatever its size."""
    type, given = m.output.type, m.types.attr("value")
    sizes = type.static_shape
    if sizes is None or math.prod(d or 1 for d in sizes) > MAX_ELEMENTS or not m.can_be_constant():
        return None
    dtype = DType.FLOAT if given is None else given.dtype
    tensor = Tensor.splat(dtype, sizes, 0 if given is None else given.scalar)
    return m.new_constant(tensor if tensor.numel > 1 else Tensor.of(tensor.numpy().copy(), dtype=dtype))
