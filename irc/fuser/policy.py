"""What may fuse with what, and why not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from irc.fuser.subgraph import is_group, subgraph_of
from irc.ir.ops.pointwise import is_pointwise
from irc.ir.types import TensorType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from irc.ir import Graph, Node, Value

ANCHORS = frozenset({"onnx::Conv", "onnx::ConvTranspose", "onnx::Gemm", "onnx::MatMul"})
"""Operators that carry the time; pointwise epilogues join them."""


@dataclass(frozen=True)
class Policy:
    """Pointwise trees with broadcasting, and pointwise epilogues of one convolution or matrix product.

    Args:
        max_size: how many operators a group may hold.
    """

    max_size: int = 64

    def may_start(self, node: Node) -> bool:
        """Whether ``node`` may be the consumer that a group grows from."""
        return is_group(node) or is_pointwise(node)

    def is_candidate(self, node: Node) -> bool:
        """Whether ``node`` is of a kind that joins groups at all; no reason is reported for others."""
        return is_group(node) or is_pointwise(node) or node.kind in ANCHORS

    def refusal(self, producer: Node, consumer: Node, upstream: UpstreamAnchors) -> str | None:
        """Why ``producer`` may not join ``consumer`` (whatever the order and memory say), or None if it may."""
        size = operator_count(producer) + operator_count(consumer)
        if size > self.max_size:
            return f"the group would hold {size} operators, more than max-size={self.max_size}"
        mine, its = anchor_of(consumer), anchor_of(producer)
        if mine is not None and its is not None:
            return f"the group has {_label(mine)} already, and {_label(its)} would be a second"
        if mine is not None:
            if _feeds(producer, mine, consumer):
                return f"it feeds {_label(mine)} itself, not its epilogue"
            if upstream.reaches(producer):
                return "it is left to the epilogue of the convolution or matrix product that it depends on"
        if its is not None:
            return _shape_refusal(its, consumer)
        return None


class UpstreamAnchors:
    """Which values come out of an anchor through pointwise operators alone.

    Computed once a block, in one forward pass. It stays right while groups
    form, because merging changes no operator.
    """

    def __init__(self, graph: Graph) -> None:
        self._values: set[Value] = set()
        for node in graph.walk():
            if node.kind in ANCHORS or (is_pointwise(node) and not self._values.isdisjoint(node.inputs)):
                self._values.update(node.outputs)

    def reaches(self, node: Node) -> bool:
        """Whether ``node`` is pointwise on the result of an anchor."""
        return not self._values.isdisjoint(node.outputs)


def operators(node: Node) -> Iterator[Node]:
    """The operators that ``node`` stands for: itself, or those of the group without constants."""
    if is_group(node):
        for inner in subgraph_of(node).nodes:
            if inner.kind != "prim::Constant":
                yield inner
    else:
        yield node


def operator_count(node: Node) -> int:
    """How many operators ``node`` stands for."""
    return sum(1 for _ in operators(node))


def anchor_of(node: Node) -> Node | None:
    """The anchor among the operators of ``node``, if there is one."""
    return next((op for op in operators(node) if op.kind in ANCHORS), None)


def _feeds(producer: Node, anchor: Node, group: Node) -> bool:
    """Whether a result of ``producer`` is an input of ``anchor``, which is ``group`` or inside it."""
    if not is_group(group):
        return any(v in anchor.inputs for v in producer.outputs)
    params = zip(subgraph_of(group).inputs, group.inputs, strict=True)
    return any(actual in producer.outputs and param in anchor.inputs for param, actual in params)


def _shape_refusal(anchor: Node, consumer: Node) -> str | None:
    """An epilogue keeps the shape of what it is applied to: else each element would be needed many times."""
    shape = _shape(anchor.outputs[0])
    for op in operators(consumer):
        for value in op.outputs:
            other = _shape(value)
            if shape is not None and other is not None and len(other) >= len(shape) and other != shape:
                return f"{_label(anchor)} gives {list(shape)}, its epilogue would give {list(other)}"
    return None


def _shape(value: Value) -> tuple[int | str | None, ...] | None:
    return value.type.shape if isinstance(value.type, TensorType) else None


def _label(node: Node) -> str:
    return f"{node.kind}{f' {node.name!r}' if node.name else f' %{node.outputs[0].name}'}"
