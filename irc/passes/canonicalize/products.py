"""Matrix products: which of the operands is scaled."""

from __future__ import annotations

import math
from typing import NamedTuple

from irc.ir import Node, Value
from irc.ir.constants import constant_tensor, is_constant
from irc.ir.tensor import Tensor
from irc.ir.types import DType
from irc.ops import record
from irc.ops.axes import APPEND, CONCAT
from irc.ops.record import MOVING, REARRANGING
from irc.passes.canonicalize.match import Match, is_needed_once, rewrite
from irc.passes.quantised import before_moves, is_dequantised

_LONGEST_CHAIN = 8
"""How many operators before a product are looked at."""

LEAST = 2.0**-12
"""Smaller factors may take bits from small numbers, where they are moved to; scales of attention are not so small."""

_WIDE = (DType.FLOAT, DType.DOUBLE)
"""Results in half precision depend too much on where they are rounded."""


class Scaled(NamedTuple):
    """``moved(source * factor)``; no part of it has another use."""

    source: Value
    factor: float
    dtype: DType
    scaling: Node
    moved: list[Node]


@rewrite("MatMul")
def scale_of_the_smaller_operand(m: Match) -> Value | None:
    """Exported attention scales queries and keys; queries can take both factors, as keys are a cache."""
    for side in (0, 1):
        large, small = m.input(side), m.input(1 - side)
        found = scaled(m, large)
        # One of more than 1 might overflow where it is moved to.
        if found is None or not LEAST <= abs(found.factor) <= 1 or not _is_larger(found.source, small):
            continue
        if is_constant(before_moves(small)):
            continue  # it would be scaled in each run, if nothing folds that
        if is_dequantised(found.source) or is_dequantised(small):
            continue  # a runtime may compute the product with integers
        factor, other = found.factor, scaled(m, small)
        if other is not None and not other.moved and abs(factor * other.factor) >= LEAST:
            small, factor = other.source, factor * other.factor
        plain = found.source
        for node in reversed(found.moved):
            type = node.outputs[0].type
            plain = m.new(node.kind, [plain, *node.inputs[1:]], type, dict(node.attributes), node.version)
        constant = m.new_constant(Tensor.of(factor, dtype=found.dtype))
        bearing = m.new("onnx::Mul", [small, constant], small.type, version=found.scaling.version)
        inputs = [plain, bearing] if side == 0 else [bearing, plain]
        return m.new("onnx::MatMul", inputs, m.output.type, version=m.node.version)
    return None


def scaled(m: Match, value: Value) -> Scaled | None:
    """How ``value`` is a product with a single number; None if it is not."""
    moved: list[Node] = []
    for _ in range(_LONGEST_CHAIN):
        node = value.node
        if node is None or not is_needed_once(value) or node.block is not m.node.block or not m.still_holds(node):
            return None
        if record(node.kind).movement not in REARRANGING:
            break  # others would come before a scale at another cost than after it
        moved.append(node)
        value = node.inputs[0]
    else:
        return None
    if node.kind != "onnx::Mul" or (node.version or 7) < 7:
        return None
    for source, number in (node.inputs, node.inputs[::-1]):
        tensor = constant_tensor(number)
        if tensor is None or tensor.numel != 1 or is_constant(source):
            continue
        type = m.type_of(source)
        if type.dtype in _WIDE and len(tensor.shape) <= (type.rank or 0):
            return Scaled(source, float(tensor.scalar), type.dtype, node, moved)
    return None


def _is_larger(value: Value, other: Value) -> bool:
    """Whether ``value`` has more elements than ``other``, as far as known; a cache counts as larger."""
    sizes = [v.type.static_shape for v in (value, other)]
    if sizes[0] is not None and sizes[1] is not None:
        return math.prod(sizes[0]) > math.prod(sizes[1])
    return _lasting(value) > _lasting(other)


def _lasting(value: Value) -> int:
    """2 if ``value`` extends something given to the block, 1 if it is given, 0 if it is made here."""
    extended = False
    for _ in range(_LONGEST_CHAIN):
        node = value.node
        if node is None:
            return 2 if extended else 1
        extends = _extends(node.kind)
        extended |= extends
        if not extends and record(node.kind).movement not in MOVING:
            break  # a cache repeated for heads that share it, or a window of it, is one still
        value = node.inputs[0]
    return 0


def _extends(kind: str) -> bool:
    """Whether a step appends to a cache, which grows or has fixed size, by an operator of ``kind``."""
    return record(kind).scatters or kind in (APPEND, CONCAT)
