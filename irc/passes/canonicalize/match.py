"""What a canonicalisation rule sees, and the table of rules by root operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from irc.ir.constants import constant_tensor
from irc.ir.kinds import CONSTANT
from irc.ir.tensor import Tensor
from irc.ir.types import Type
from irc.passes.shapes.context import NodeTypes

if TYPE_CHECKING:
    from irc.ir import Graph, Node, Value
    from irc.passes.base import PassContext
    from irc.passes.canonicalize.sizes import Sizes
    from irc.passes.rewriter import Rewriter
    from irc.passes.shapes.infer import Inference

RewriteRule = Callable[["Match"], "Value | None"]
"""Gives the value that can stand for the node's first output, or None if the rule does not apply."""

RULES: dict[str, list[RewriteRule]] = {}


def rewrite(*names: str) -> Callable[[RewriteRule], RewriteRule]:
    """Register a rule for ONNX operators (names without ``onnx::``) or for fully qualified kinds."""

    def register(rule: RewriteRule) -> RewriteRule:
        for name in names:
            RULES.setdefault(name if "::" in name else f"onnx::{name}", []).append(rule)
        return rule

    return register


class Match:
    """A node that a rule may rewrite, with what is known of types, contents and aliasing."""

    __slots__ = ("context", "created", "inference", "node", "rewriter", "sizes", "types")

    def __init__(
        self, node: Node, inference: Inference, rewriter: Rewriter, sizes: Sizes, context: PassContext
    ) -> None:
        self.node = node
        self.inference = inference
        self.rewriter = rewriter
        self.sizes = sizes
        self.context = context
        self.types = NodeTypes(node, inference.contents)
        self.created: list[Node] = []

    @property
    def graph(self) -> Graph:
        return self.node.graph

    @property
    def output(self) -> Value:
        """The node's first output."""
        return self.node.outputs[0]

    def input(self, index: int = 0) -> Value:
        """Input ``index``."""
        return self.node.inputs[index]

    def producer(self, index: int, *kinds: str) -> Node | None:
        """The node that makes input ``index``, if it is of one of ``kinds`` (without ``onnx::``)."""
        node = self.node.inputs[index].node
        return node if node is not None and node.kind.removeprefix("onnx::") in kinds else None

    def constant(self, index: int) -> Tensor | None:
        """The constant tensor at input ``index``."""
        return constant_tensor(self.node.inputs[index]) if self.types.has(index) else None

    def same_shape(self, value: Value) -> bool:
        """Whether ``value`` surely has the shape and element type of the output."""
        return surely_equal(value.type, self.output.type)

    def same_type(self, value: Value) -> bool:
        """Whether ``value`` surely has the element type of the output."""
        a, b = value.type, self.output.type
        return a.dtype is not None and a.dtype is b.dtype

    def can_share(self, value: Value) -> bool:
        """Whether ``value``, equal to the output, may stand for it although one of them may be a copy now."""
        return self.rewriter.can_share(value, self.output)

    def can_be_constant(self) -> bool:
        """Whether the output may become a constant: nothing writes into it."""
        return self.rewriter.can_be_constant([self.output])

    def still_holds(self, earlier: Node) -> bool:
        """Whether nothing has written what ``earlier`` read or made when the node runs."""
        return not self.rewriter.db.writes_between((*earlier.inputs, *earlier.outputs), earlier, self.node)

    def is_fixed(self, value: Value) -> bool:
        """Whether nothing writes into ``value``, so that looking at how it is made tells its contents."""
        return not self.rewriter.db.has_writers(value)

    def new(
        self,
        kind: str,
        inputs: list[Value],
        type: Type,
        attributes: dict[str, Any] | None = None,
        version: int | None = None,
    ) -> Value:
        """Insert a node with one output before the matched one."""
        node = self.graph.create(
            kind,
            inputs,
            (type,),
            names=(self.output.name,),
            attributes=attributes,
            version=version,
            name=self.node.name,
        )
        self.rewriter.insert(node, before=self.node)
        self.inference.infer_node(node)
        self.created.append(node)
        return node.output

    def new_constant(self, tensor: Tensor) -> Value:
        """Insert a constant before the matched node."""
        return self.new(CONSTANT, [], tensor.type, {"value": tensor})


def surely_equal(a: Type, b: Type) -> bool:
    """Whether two tensor types are complete (named sizes allowed, unknown ones not) and equal."""
    return a == b and a.dtype is not None and a.shape is not None and all(d is not None for d in a.shape)
