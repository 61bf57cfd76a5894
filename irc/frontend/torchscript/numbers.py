"""Numbers that traces hold as tensors without dimensions.

For ``2 * x`` a trace has a constant tensor of int64, marked as a number: it does not decide the element type of the
product. Files lose the mark, but PyTorch's optimizer treats such operands as numbers in any case.
"""

from __future__ import annotations

from irc.ir import Graph, Value, types
from irc.ir.functions import with_subgraphs
from irc.ir.kinds import CONSTANT
from irc.ir.tensor import Tensor
from irc.ir.types import TensorType, Type

_WITH_NUMBERS = frozenset({"aten::add", "aten::sub", "aten::mul", "aten::div"})
"""Operators whose second operand may be a number, and is one in PyTorch where it is such a constant."""

_KINDS: dict[str, Type] = {"i": types.INT, "u": types.INT, "f": types.FLOAT, "c": types.COMPLEX}


def use_numbers(graph: Graph) -> None:
    """Turn constant tensors without dimensions in ``graph`` that stand for numbers into numbers."""
    numbers: dict[Value, Value] = {}
    for node in list(with_subgraphs(graph)):
        if node.kind in _WITH_NUMBERS and len(node.inputs) > 1 and isinstance(node.inputs[0].type, TensorType):
            constant = node.inputs[1]
            tensor = None if constant.node is None else constant.node.attributes.get("value")
            if isinstance(tensor, Tensor) and not tensor.shape and tensor.numpy().dtype.kind in _KINDS:
                if constant not in numbers:
                    numbers[constant] = _number(constant, tensor)
                node.replace_input(1, numbers[constant])


def _number(constant: Value, tensor: Tensor) -> Value:
    assert constant.node is not None
    array = tensor.numpy()
    graph, attributes = constant.node.graph, {"value": array.item()}
    return (
        graph.create(CONSTANT, (), (_KINDS[array.dtype.kind],), attributes=attributes)
        .insert_after(constant.node)
        .output
    )
