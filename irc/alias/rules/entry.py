"""What a rule is, and what else is known of a kind of node that has a rule of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from irc.ir.node import Block, Node
from irc.ir.types import OptionalType, TensorType, Type, UnionType

if TYPE_CHECKING:
    from irc.alias.recorder import Recorder

Steps: TypeAlias = "Iterator[Block | Steps]"
"""What a rule for nodes with blocks or calls yields: blocks to analyse, in order, or further steps."""

Rule: TypeAlias = "Callable[[Recorder, Node], Steps | None]"
"""Records what a node does. It binds every output that has memory."""


class Functional:
    """The rule of an operator whose results are all fresh, for nodes that its schema rows describe.

    The rows do not describe a node with more arguments than any of them takes, nor one whose last argument is a tensor
    where no row has one: that tensor may be the one that receives the result (``out=``).

    Args:
        most: how many arguments a node has at most.
        lasts: the numbers of arguments that a node may have if the last one is a tensor.
    """

    __slots__ = ("_lasts", "_most")

    def __init__(self, most: int, lasts: frozenset[int]) -> None:
        self._most = most
        self._lasts = lasts

    def fits(self, node: Node) -> bool:
        """Whether the schema rows describe ``node``, judged by its arguments."""
        inputs = node.inputs
        count = len(inputs)
        return not count or count in self._lasts or (count <= self._most and not _may_be_tensor(inputs[-1].type))


def _may_be_tensor(type: Type) -> bool:
    if isinstance(type, OptionalType | UnionType):
        return any(map(_may_be_tensor, type.inner))
    return isinstance(type, TensorType) or type.is_any


OfKind: TypeAlias = "Rule | Functional | None"
"""The rule for nodes of a kind; None, or `Functional`, if all outputs are fresh and nothing is written."""


def always(node: Node) -> bool:
    """Yes, whatever node it is."""
    return True


def never(node: Node) -> bool:
    """No, whatever node it is."""
    return False


class Entry(NamedTuple):
    """All that is said of one kind.

    Attributes:
        rule: what its nodes do to memory; None: they write nothing and all their outputs are fresh.
        keeps: whether a node itself may have stored into, or let escape, something that outlives it.
        runs_graph: whether a node also keeps what the nodes of the graph that it runs keep.
        switch: the position of an argument that, if it is a constant, decides what a node does by its truth value.
        choice: the position of one that chooses among many: which element, which function.
    """

    rule: Rule | None
    keeps: Callable[[Node], bool] = never
    runs_graph: bool = False
    switch: int | None = None
    choice: int | None = None
