"""Building graphs in Python.

>>> from irc.ir import Builder, Graph, types
>>> g = Graph()
>>> x = g.add_input(types.tensor(types.DType.FLOAT, (2, 3)), "x")
>>> b = Builder(g)
>>> y = b.op("onnx::Relu", x, type=x.type, name="y")
>>> g.set_outputs([y])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.ir import types
from irc.ir.graph import Graph
from irc.ir.kinds import CONSTANT
from irc.ir.node import Block, Node, Value
from irc.ir.objects import EnumMember
from irc.ir.tensor import Tensor
from irc.ir.types import Type


class Builder:
    """Creates nodes at an insertion point.

    Args:
        graph: the graph to build in.
        block: the block to append to; the graph's own by default.
        before: if given, nodes go right before this one instead (in its block).
    """

    def __init__(self, graph: Graph, block: Block | None = None, before: Node | None = None) -> None:
        self.graph = graph
        self.point: Node = before if before is not None else (block or graph.block).return_node

    @staticmethod
    def at_end(block: Block) -> Builder:
        """A builder that appends to ``block``."""
        return Builder(block.graph, block)

    @staticmethod
    def before(node: Node) -> Builder:
        """A builder that inserts right before ``node``."""
        return Builder(node.graph, before=node)

    def node(
        self,
        kind: str,
        inputs: Sequence[Value] = (),
        outputs: Sequence[Type] = (),
        *,
        names: Sequence[str] = (),
        attributes: dict[str, Any] | None = None,
        version: int | None = None,
        name: str = "",
    ) -> Node:
        """Create and insert a node with outputs of the given types."""
        node = self.graph.create(kind, inputs, outputs, names=names, attributes=attributes, version=version, name=name)
        return node.insert_before(self.point)

    def op(
        self,
        kind: str,
        *inputs: Value,
        type: Type = types.TENSOR,
        name: str = "",
        attributes: dict[str, Any] | None = None,
        version: int | None = None,
    ) -> Value:
        """Create and insert a node with one output, and return that output (called ``name``)."""
        return self.node(kind, inputs, (type,), names=(name,), attributes=attributes, version=version).output

    def constant(self, value: Any = None, *, type: Type | None = None, name: str = "") -> Value:
        """Insert a ``prim::Constant`` of a Python value, ``Tensor``, array or None; its type is inferred.

        An array of more than 16 elements that are not all equal becomes a weight called ``name``.
        """
        if hasattr(value, "__array__"):
            value = self.graph.weights.hold(name or self.graph.unique_name(), Tensor.of(value))
        attributes = {} if value is None else {"value": value}
        return self.op(CONSTANT, type=type or type_of_constant(value), name=name, attributes=attributes)


def type_of_constant(value: Any) -> Type:
    """The IR type of a constant's value; TypeError if constants cannot hold it."""
    if value is None:
        return types.NONE
    if isinstance(value, Tensor | EnumMember):
        return value.type
    for python, found in _SCALARS.items():
        if isinstance(value, python):
            return found
    if isinstance(value, list) and value:
        return types.ListType(type_of_constant(value[0]))
    if isinstance(value, tuple):
        return types.TupleType(tuple(type_of_constant(v) for v in value))  # type: ignore[reportUnknownVariableType]
    raise TypeError(f"no IR type for a constant {value!r}")


# bool comes before int, of which it is a subclass
_SCALARS: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    float: types.FLOAT,
    complex: types.COMPLEX,
    str: types.STR,
}
