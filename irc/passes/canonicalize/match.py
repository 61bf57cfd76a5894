"""What a canonicalisation rule sees, and the rules for each root operator."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from irc.ir import CONSTANT, Graph, Node, Tensor, Value, constant_tensor
from irc.ir.types import Dim, Type, with_plain_sizes
from irc.ops import Operator, of_kind, record
from irc.ops.inference import NodeTypes
from irc.passes.base import PassContext
from irc.passes.rewriter import Rewriter
from irc.passes.shapes import Inference

RewriteRule = Callable[["Match"], "Value | None"]
"""Gives the value that can stand for the node's first output, or None if the rule does not apply."""

RULES: list[tuple[frozenset[str], Callable[[Operator], bool] | None, RewriteRule]] = []
"""Rules in the order in which they are tried, each with the kinds, or the records of operators, that it is for."""


SAME_TENSOR: set[RewriteRule] = set()
"""Rules whose value is the very tensor that the output is: others may lie in memory in another way than that."""


def rewrite(
    *names: str, where: Callable[[Operator], bool] | None = None, same_tensor: bool = False
) -> Callable[[RewriteRule], RewriteRule]:
    """Register a rule for ONNX operators (without ``onnx::``), for qualified kinds, or as in ``where``.

    ``where`` is only asked for kinds of nodes that there are, so that no records are read before. A rule that is not of
    the ``same_tensor`` is not applied where something may see how the output lies in memory.
    """
    kinds = frozenset(name if "::" in name else f"onnx::{name}" for name in names)

    def register(rule: RewriteRule) -> RewriteRule:
        RULES.append((kinds, where, rule))
        if same_tensor:
            SAME_TENSOR.add(rule)
        return rule

    return register


@of_kind
def rules_of(kind: str) -> tuple[RewriteRule, ...]:
    """The rules for nodes of ``kind``."""
    operator = record(kind)
    return tuple(rule for kinds, where, rule in RULES if kind in kinds or (where is not None and where(operator)))


class Match:
    """A node that a rule may rewrite, with what is known of types, contents and aliasing."""

    __slots__ = ("context", "counted", "created", "inference", "node", "rewriter", "types")

    def __init__(
        self, node: Node, inference: Inference, rewriter: Rewriter, context: PassContext, counted: dict[Any, Value]
    ) -> None:
        self.node = node
        self.counted = counted  # what shape arithmetic came to -> what holds it
        self.inference = inference
        self.rewriter = rewriter
        self.context = context
        self.types = self.types_of(node)
        self.created: list[Node] = []

    @property
    def graph(self) -> Graph:
        return self.node.graph

    def types_of(self, node: Node) -> NodeTypes:
        """What is known of the inputs of another node."""
        return NodeTypes(node, self.inference.known)

    def type_of(self, value: Value) -> Type:
        """The type that ``value`` surely has: a plain tensor if types may be stale. Sizes may be polynomials."""
        return self.inference.type_of(value)

    def size(self, value: Value, axis: int) -> Dim:
        """The size of ``value`` along ``axis``; None if its rank is unknown. Equal sizes surely are equal."""
        shape = self.type_of(value).shape
        return None if shape is None else shape[axis]

    @property
    def output(self) -> Value:
        """The node's first output."""
        return self.node.outputs[0]

    def input(self, index: int = 0) -> Value:
        """Input ``index``."""
        return self.node.inputs[index]

    def constant(self, index: int) -> Tensor | None:
        """The constant tensor at input ``index``."""
        return constant_tensor(self.node.inputs[index]) if self.types.has(index) else None

    def same_type(self, value: Value) -> bool:
        """Whether ``value`` surely has the shape and element type of the output."""
        return self.surely_same_type(value, self.output)

    def surely_same_type(self, a: Value, b: Value) -> bool:
        """Whether ``a`` and ``b`` surely have one shape and element type."""
        first, second = self.type_of(a), self.type_of(b)
        return first == second and first.dtype is not None and first.shape is not None and None not in first.shape

    def same_dtype(self, value: Value) -> bool:
        """Whether ``value`` surely has the element type of the output."""
        a, b = self.type_of(value), self.type_of(self.output)
        return a.dtype is not None and a.dtype is b.dtype

    def can_share(self, value: Value) -> bool:
        """Whether ``value``, equal to the output, may replace it, even if one of them is a copy of the other."""
        return self.rewriter.can_share(value, self.output)

    def can_be_constant(self) -> bool:
        """Whether the output may become a constant: nothing writes into it."""
        return self.rewriter.can_be_constant([self.output])

    def still_holds(self, *earlier: Node) -> bool:
        """Whether, when the node runs, nothing has written what any of ``earlier`` read or made."""
        writes = self.rewriter.db.writes_between
        return not any(writes((*node.inputs, *node.outputs), node, self.node) for node in earlier)

    def still_holds_here(self, earlier: Collection[Node]) -> bool:
        """As `still_holds`, and all of ``earlier`` are in the block of the matched node."""
        return all(node.block is self.node.block for node in earlier) and self.still_holds(*earlier)

    def is_fixed(self, value: Value) -> bool:
        """Whether nothing writes into ``value``, so that the node that makes it determines its contents."""
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
            (with_plain_sizes(type),),
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


def is_needed_once(value: Value) -> bool:
    """Whether ``value`` has exactly one live use: rules leave dead ones until `dce` removes them.

    An operator that writes or draws at random may be taken for one of these: what the answer is used for must be right
    for values of more uses, too.
    """
    if value.is_used_once:
        return True
    needed = [user for user in value.users if not _is_left_behind(user, _LONGEST_CHAIN)] if value.user_count < 8 else []
    return len(needed) == 1 and value.uses_by(needed[0]) == 1


_LONGEST_CHAIN = 20
"""How many operators are looked at behind one that is left behind, if it is."""


def _is_left_behind(node: Node, longest: int) -> bool:
    """Whether no result of ``node`` is needed."""
    if not node.outputs or node.blocks or not longest:
        return False
    return all(_is_left_behind(user, longest - 1) for value in node.outputs for user in value.iter_users())
