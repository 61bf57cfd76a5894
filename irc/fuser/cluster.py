"""A fusion group while it grows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irc.fuser.policy import Domain, anchor_of, operator_count, operators, rows_of
from irc.fuser.subgraph import subgraph_of
from irc.ir import Node, Value
from irc.ir.kinds import CONSTANT


class Cluster:
    """Adjacent nodes of one block that are to be one group.

    Nodes stay where they are until the group is complete: a merge only moves the
    producer next to the cluster, so its cost does not depend
    on how large the cluster is.

    Attributes:
        members: the nodes, last first.
        size: how many operators they stand for.
        anchor: the convolution or matrix product among those, if there is one.
        rows: what operators among those reduce, if there are some that do.
    """

    __slots__ = ("_anchor_inputs", "anchor", "members", "rows", "size")

    def __init__(self, consumer: Node) -> None:
        self.members: list[Node] = []
        self.size = 0
        self.anchor: Node | None = None
        self.rows: Domain | None = None
        self._anchor_inputs: set[Value] = set()
        self.take(consumer)

    @property
    def operators(self) -> Iterator[Node]:
        """The operators that its members stand for."""
        return (op for node in self.members for op in operators(node))

    def inputs_with(self, producer: Node) -> set[Value]:
        """The inputs that the group would have if ``producer`` were its last addition; constants are its own."""
        nodes = {producer, *self.members}
        # From the members each time: a producer that joins may make what others of them take from outside now.
        used = {value for node in nodes for value in node.inputs if value.node not in nodes}
        return {value for value in used if value.made_by(CONSTANT) is None}

    @property
    def first(self) -> Node:
        """The first node."""
        return self.members[-1]

    @property
    def last(self) -> Node:
        """The last node: the consumer that it grew from."""
        return self.members[0]

    def take(self, producer: Node) -> None:
        """Take in ``producer``, which stands right before the first node."""
        self.members.append(producer)
        self.size += operator_count(producer)
        self.rows = self.rows or rows_of(producer)
        anchor = anchor_of(producer)
        if anchor is not None:
            self.anchor = anchor
            self._anchor_inputs.update(_fed_to(anchor, producer))

    def feeds_anchor(self, producer: Node) -> bool:
        """Whether a result of ``producer`` is an input of the anchor."""
        return not self._anchor_inputs.isdisjoint(producer.outputs)


def _fed_to(anchor: Node, node: Node) -> Iterable[Value]:
    """The inputs of ``anchor``, which is ``node`` or inside it, as values outside."""
    if anchor is node:
        return node.inputs
    params = zip(subgraph_of(node).inputs, node.inputs, strict=True)
    return [actual for param, actual in params if param in anchor.inputs]
