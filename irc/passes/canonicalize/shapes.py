"""Chains of shape operators, shape arithmetic, and the idioms of exporters around Expand."""

from __future__ import annotations

import numpy as np

from irc.ir import Node, Value
from irc.ir.constants import is_constant
from irc.ir.kinds import IDENTITY
from irc.ir.polynomials import is_positive, product
from irc.ir.tensor import Tensor
from irc.ops import Movement, record
from irc.passes.canonicalize.match import Match, rewrite

_LONGEST_CHAIN = 16
"""How many reshapes up a shape is looked for: each of a long chain looks."""


@rewrite(where=lambda operator: operator.contents is not None)
def known_contents(m: Match) -> Value | None:
    """Shape arithmetic whose result is known becomes a constant."""
    type, contents = m.output.type, m.inference.contents.get(m.output)
    if contents is None or type.dtype is None:
        return None
    if m.node.kind == IDENTITY and is_constant(m.input()):
        return None  # it is there for an output's name, and `constant-fold` leaves it alone, too
    if not all(isinstance(d, int) for d in contents.flat) or not m.can_be_constant():
        return None
    try:
        array = np.array(contents.tolist(), type.dtype.numpy)
    except OverflowError:  # a run wraps around
        return None
    return m.new_constant(Tensor.of(array, dtype=type.dtype))


@rewrite(where=lambda operator: operator.contents is not None)
def same_contents(m: Match) -> Value | None:
    """Shape arithmetic whose result has been computed before: deep models repeat it in each layer."""
    contents, node = m.inference.contents.get(m.output), m.node
    if contents is None or None in contents.flat:
        return None
    key = (m.output.type.dtype, contents.shape, *contents.flat)
    found = m.counted.setdefault(key, m.output)
    block = None if found.node is None else found.node.block
    if found is m.output or found.node is None or block is None:
        m.counted[key] = m.output
        return None
    if node.ancestor_in(block) is None or not found.node.is_before(node):
        return None
    return found if m.can_share(found) else None


@rewrite("Reshape")
def reshape_by_numbers(m: Match) -> Value | None:
    """A target shape that needs no computing: numbers, kept sizes, and at most one remaining size."""
    target, x = m.types.dims(1), m.types.shape(0)
    if m.types.version < 5 or target is None or x is None or m.constant(1) is not None:
        return None
    if m.types.attr("allowzero", 0) and 0 in target:
        return None
    stays = [size is not None and not isinstance(size, int) and size in x[i : i + 1] for i, size in enumerate(target)]
    numbers = [0 if kept else size for kept, size in zip(stays, target, strict=True)]
    rest = [i for i, size in enumerate(numbers) if not isinstance(size, int)]
    if rest:
        made = m.type_of(m.output).shape or ()
        whole = product(x)
        if -1 in numbers or whole is None or product(made) != whole:
            return None
        if not all(is_positive(size) for i, size in enumerate(made) if i != rest[0]):
            return None  # without elements, the remaining size cannot be determined
        numbers[rest[0]] = -1
    if len(rest) > 1:
        return None
    inputs = [m.input(), m.new_constant(Tensor.of(np.array(numbers, np.int64)))]
    return m.new("onnx::Reshape", inputs, m.output.type, {}, m.node.version)


@rewrite("Transpose")
def transpose_of_transpose(m: Match) -> Value | None:
    """Two transpositions are one, or none."""
    inner = m.input().made_by("onnx::Transpose")
    rank = m.types.tensor(0).rank
    if inner is None or rank is None:
        return None
    reverse = list(range(rank))[::-1]
    first, second = inner.attributes.get("perm") or reverse, m.types.attr("perm") or reverse
    perm, x = [first[p] for p in second], inner.inputs[0]
    if not m.can_share(x):
        return None
    if perm == list(range(len(perm))):
        return x
    return m.new("onnx::Transpose", [x], m.output.type, {"perm": perm}, m.node.version)


def _reshaped(value: Value) -> Node | None:
    """The node that makes ``value`` by giving a tensor another shape; None if it is made otherwise."""
    node = value.node
    return node if node is not None and record(node.kind).movement is Movement.IN_ORDER else None


@rewrite(where=lambda operator: operator.movement is Movement.IN_ORDER)
def reshape_there_and_back(m: Match) -> Value | None:
    """A chain of reshapes that ends in the shape it began with."""
    inner = _reshaped(m.input())
    for _ in range(_LONGEST_CHAIN):
        if inner is None:
            return None
        x = inner.inputs[0]
        if m.same_type(x):
            return x if m.can_share(x) else None
        inner = _reshaped(x)
    return None


@rewrite("Reshape")
def reshape_of_reshape(m: Match) -> Value | None:
    """Only the last of several reshapes matters, if it does not copy sizes (0) from the one before."""
    inner = _reshaped(m.input())
    if inner is None or m.types.version < 5 or not m.can_share(inner.inputs[0]):
        return None
    target = m.types.ints(1)
    if target is None or (0 in target and not m.types.attr("allowzero", 0)):
        return None
    attributes = dict(m.node.attributes)
    return m.new("onnx::Reshape", [inner.inputs[0], m.input(1)], m.output.type, attributes, m.node.version)


@rewrite("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Equal", "Less", "Greater", "Where", "And", "Or")
def operand_expanded_for_nothing(m: Match) -> Value | None:
    """Operators that broadcast need no Expand before them, unless only it gives the result its shape."""
    out, db = m.type_of(m.output), m.rewriter.db
    if m.types.version < 7 or out.shape is None or None in out.shape:
        return None
    expands = {i: e for i, v in enumerate(m.node.inputs) if (e := v.made_by("onnx::Expand")) is not None}
    plain = {
        i: e.inputs[0] for i, e in expands.items() if not (db.has_writers(e.inputs[0]) or db.has_writers(e.output))
    }
    inputs = [plain.get(i, v) for i, v in enumerate(m.node.inputs)]
    shape = m.types.broadcast([m.type_of(v).shape for v in inputs])
    for i in plain:
        if shape == out.shape:
            break
        more = m.types.broadcast([shape, m.types.shape(i)])  # with this Expand after all
        if more != shape:
            inputs[i], shape = m.node.inputs[i], more
    if shape != out.shape or inputs == list(m.node.inputs):
        return None
    return m.new(m.node.kind, inputs, m.output.type, dict(m.node.attributes), m.node.version)
