"""Blocks: parameters, nodes in order, returns.

A block owns the order of its nodes. Links and labels change through its methods and those of `Node` only, and nodes may
be inserted, moved and erased while `Block.nodes` is iterated over.
"""

# pyright: reportPrivateUsage=false
# Value, Node, Block and Graph share the links and use counts that nobody else may touch.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from irc.ir.kinds import RETURN
from irc.ir.metadata import HasMetadata
from irc.ir.node import Node
from irc.ir.value import Value
from irc.support.formatting import count

if TYPE_CHECKING:
    from irc.ir.graph import Graph
    from irc.ir.types import Type

_ORDER_BITS = 62
_ORDER_END = 1 << _ORDER_BITS
_APPEND_GAP = 1 << 24
"""Labels left free between appended nodes; 2**38 appends fit before labels run out."""


class Block(HasMetadata):
    """A list of nodes with parameters and returns.

    The nodes form a ring around ``return_node``, which stands for both ends.
    Each carries an integer label that grows along the block, so that order is
    compared in O(1); when there is no free label between two neighbours, the
    smallest sparse enough range around them is relabelled: O(log n) amortised
    (Bender et al., "Two Simplified Algorithms for Maintaining Order in a
    List", 2002).

    Attributes:
        graph: the graph it belongs to.
        node: the node it is nested in; None for a graph's own block.
        params: its parameters (a graph's own block: the graph's inputs).
        return_node: a ``prim::Return`` node whose inputs are the block's returns; not among ``nodes``.
        metadata: what the model says of it (`irc.ir.metadata`); read-only, set it as a whole.
    """

    __slots__ = ("__weakref__", "_cursors", "_size", "graph", "node", "params", "return_node")

    def __init__(self, graph: Graph, node: Node | None) -> None:
        self.graph = graph
        self.node = node
        self.params: tuple[Value, ...] = ()
        end = Node(graph, RETURN)
        end.block = self
        end._prev = end._next = end
        end._order = _ORDER_END
        self.return_node = end
        self._size = 0
        self._cursors: list[_Cursor] = []

    def __repr__(self) -> str:
        return f"<block of {self.node or self.graph!r}, {count(self._size, 'node')}>"

    @property
    def nodes(self) -> NodeList:
        """The nodes in order."""
        return NodeList(self)

    def around(self) -> Iterator[Block]:
        """This block and those that it is nested in, innermost first."""
        block: Block | None = self
        while block is not None:
            yield block
            block = None if block.node is None else block.node.block

    def unchanging_nodes(self) -> Iterator[Node]:
        """The nodes in order, for callers that do not change the block meanwhile: faster than ``nodes``."""
        end = self.return_node
        node = end._next
        while node is not end and node is not None:
            yield node
            node = node._next

    @property
    def returns(self) -> tuple[Value, ...]:
        """The values the block returns."""
        return self.return_node.inputs

    def set_returns(self, values: Iterable[Value]) -> None:
        """Replace all returns."""
        self.return_node.set_inputs(values)

    def add_param(self, type: Type, name: str = "") -> Value:
        """Append a parameter; ``name`` is made unique, "" gives a number."""
        return self.add_params((type,), (name,))[0]

    def add_params(self, types: Sequence[Type], names: Sequence[str] = ()) -> tuple[Value, ...]:
        """Append several parameters at once and return them."""
        self.graph.changes += 1
        first = len(self.params)
        added = tuple(Value(self.graph, t, None, self, first + i) for i, t in enumerate(types))
        self.params += added
        for i, value in enumerate(added):
            self.graph.name_value(value, names[i] if i < len(names) else "")
        return added

    def erase_params(self, indices: Iterable[int]) -> None:
        """Remove parameters that nothing uses; later ones move down."""
        self.params = self.graph.without(self.params, indices)

    def append(self, node: Node) -> Node:
        """Put ``node``, which is in no block, at the end. Returns it."""
        self._link(node, self.return_node)
        return node

    def prepend(self, node: Node) -> Node:
        """Put ``node``, which is in no block, at the start. Returns it."""
        first = self.return_node._next
        assert first is not None
        self._link(node, first)
        return node

    # -- the ring --------------------------------------------------------

    def _link(self, node: Node, after: Node) -> None:
        assert node.block is None and after.block is self, "node must be free, point must be in this block"
        before = after._prev
        assert before is not None
        node._prev, node._next = before, after
        before._next = after._prev = node
        node.block = self
        self._size += 1
        self.graph.changes += 1
        end = self.return_node
        low = 0 if before is end else before._order
        if after is end:
            label = low + _APPEND_GAP
            if label >= _ORDER_END:
                label = (low + _ORDER_END) // 2
        else:
            label = (low + after._order) // 2
        node._order = label
        if label == low or label >= _ORDER_END:
            self._relabel(node)

    def _unlink(self, node: Node) -> None:
        before, after = node._prev, node._next
        assert before is not None and after is not None
        for cursor in self._cursors:
            cursor.node_removed(node)
        before._next, after._prev = after, before
        node._prev = node._next = node.block = None
        self._size -= 1
        self.graph.changes += 1

    def _relabel(self, node: Node) -> None:
        """Spread the labels of the smallest aligned range around ``node`` that is sparse enough."""
        end = self.return_node
        first = last = node
        count, capacity = 1, 1.0
        for bits in range(1, _ORDER_BITS + 1):
            low = (node._order >> bits) << bits
            high = low + (1 << bits)
            while (p := first._prev) is not end and p is not None and p._order >= low:
                first, count = p, count + 1
            while (n := last._next) is not end and n is not None and n._order < high:
                last, count = n, count + 1
            capacity *= 2 / 1.5  # density threshold falls by 1.5 a level: the T of the paper
            if count < capacity:
                gap = (1 << bits) // (count + 1)
                if gap > 1:
                    label, walk = low, first
                    while True:
                        label += gap
                        walk._order = label
                        if walk is last:
                            return
                        assert walk._next is not None
                        walk = walk._next
        raise OverflowError("too many nodes in one block")


class _Cursor:
    """The position of an iteration over a block; removing its node moves it back by one."""

    __slots__ = ("at", "forward")

    def __init__(self, at: Node, forward: bool) -> None:
        self.at = at
        self.forward = forward

    def node_removed(self, node: Node) -> None:
        if node is self.at:
            at = node._prev if self.forward else node._next
            assert at is not None
            self.at = at


class NodeList:
    """The nodes of a block as a read-only sequence.

    Iterating while the block changes is defined: nodes may be erased, moved
    and inserted anywhere; the iteration goes on from where the current node
    stands (or stood), so it visits a node inserted right after it.
    """

    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def __len__(self) -> int:
        return self._block._size

    def __bool__(self) -> bool:
        return self._block._size > 0

    def __iter__(self) -> Iterator[Node]:
        return self._iterate(True)

    def __reversed__(self) -> Iterator[Node]:
        return self._iterate(False)

    def _iterate(self, forward: bool) -> Iterator[Node]:
        block = self._block
        end = block.return_node
        cursor = _Cursor(end, forward)
        block._cursors.append(cursor)
        try:
            while True:
                node = cursor.at._next if forward else cursor.at._prev
                if node is None or node is end:
                    return
                cursor.at = node
                yield node
        finally:
            block._cursors.remove(cursor)

    def __getitem__(self, index: int) -> Node:
        """Node number ``index``. O(n)."""
        size = len(self)
        if not -size <= index < size:
            raise IndexError(index)
        if index >= 0:
            walk = iter(self)
        else:
            walk, index = reversed(self), -index - 1
        for _ in range(index):
            next(walk)
        return next(walk)

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.block is self._block and not node.is_return
