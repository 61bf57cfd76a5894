"""What passes leave alone in quantised models, so that what is quantised stays so.

Other runtimes compute with the integers themselves where a model has QuantizeLinear and DequantizeLinear around an
operator: without them, or with float weights, a part of the model would be computed in floats, and rounded otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from irc.ir import GROUP, DType, Graph, Node, Type, Value, constant_tensor
from irc.ir.metadata import QUANTIZATION_TENSOR
from irc.ir.region_flow import graphs_of
from irc.ops import REARRANGING, record

QUANTISING = frozenset({"onnx::DequantizeLinear", "onnx::DynamicQuantizeLinear", "onnx::QuantizeLinear"})
"""They are kept as the model has them: not computed once for all, and not merged with equal ones."""

_MOST_BITS = 8
_LONGEST_CHAIN = 8


def dequantises(node: Node, types: Sequence[Type]) -> bool:
    """Whether ``node``, with results of ``types``, widens a constant of at most 8 bits an element.

    Single numbers and bools are no quantised weights, and fewer elements than before are no conversion of them.
    """
    given = [tensor for value in node.inputs if (tensor := constant_tensor(value)) is not None]
    narrow = [tensor for tensor in given if tensor.numel > 1 and _is_number(tensor.dtype, 0, _MOST_BITS)]
    return any(_is_number(type.dtype, t.dtype.bits) and _count(type) >= t.numel for t in narrow for type in types)


def _is_number(dtype: DType | None, more: int, most: int = 128) -> bool:
    """Whether ``dtype`` is of real numbers, of more than ``more`` bits and at most ``most``."""
    return dtype is not None and (dtype.is_integer or dtype.is_float) and more < dtype.bits <= most


def _count(type: Type) -> int:
    return 0 if type.static_shape is None else math.prod(type.static_shape)


def is_dequantised(value: Value) -> bool:
    """Whether ``value`` is what DequantizeLinear gives, perhaps with its elements moved."""
    for _ in range(_LONGEST_CHAIN):
        node = value.node
        if node is None or record(node.kind).movement not in REARRANGING:
            break
        value = node.inputs[0]
    return value.made_by("onnx::DequantizeLinear") is not None


def annotation_names(graph: Graph, live: Callable[[Node], bool] = lambda node: True) -> set[str]:
    """Names of values, such as scales, that quantization annotations in ``graph`` and its groups have.

    Those of results of nodes that are not ``live``, and what is inside of these, do not count.
    """
    found: set[str] = set()
    pending = [graph] if graph.has_metadata else []
    for each in pending:  # grows while it is walked
        for value in each.values():
            said = value.metadata
            if said and (each is not graph or (definer := value.definer) is None or live(definer)):
                found.update(text for key, text in said.items() if key.startswith(QUANTIZATION_TENSOR))
        groups = [node for node in each.walk() if node.kind == GROUP and (each is not graph or live(node))]
        pending += [part for node in groups for part in graphs_of(node)]
    return found
