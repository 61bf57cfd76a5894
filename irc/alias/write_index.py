"""Which nodes write what, and which of them may run between two nodes.

Kept apart from the points-to facts: a write is noted as *this node writes
what that element denotes*, so that either may change without the other.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Collection, Iterable

from irc.alias.facts import WORLD
from irc.alias.location_sets import EMPTY, LocationSet, SetIndex, intersects
from irc.alias.memory_dag import MemoryDAG
from irc.ir import IF, Block, Node
from irc.ir.graph import gc_paused
from irc.ops.record import Change


class WriteLog:
    """The writes as rules note them.

    Attributes:
        entries: (node, element that it writes), in order.
        metadata: those that change metadata of tensors -> how much.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[Node, int]] = []
        self.metadata: dict[tuple[Node, int], Change] = {}

    def add(self, node: Node, element: int, change: Change = Change.ELEMENTS) -> None:
        """``node`` writes what ``element`` denotes."""
        self.entries.append((node, element))
        if change:
            self.metadata[node, element] = max(change, self.metadata.get((node, element), change))


class WriteIndex(WriteLog):
    """The writes by node and by location, for queries.

    The index takes over a log when it is first queried. To add or remove a write takes time that does not depend on
    how many there are. What it keeps:

    - ``_own``, ``_writers``: the writes by node and by element. They change with each write.
    - ``_denoted``, ``_sets``: what each written element denoted when last counted, and all these sets by location. An
      element that comes to denote more is *stale*, and counted again at the next query: thousands of changes may come.
    - ``_elements_at``: written set -> the elements that denote just that. Made when first asked which nodes write a
      set; then it changes as ``_sets`` does.
    - ``_ordered``: written set -> its writers in order. Made when first asked for. A write that comes or goes enters or
      leaves; an element that denotes another set drops the orders of both; so does a node that leaves a block, all.
    - ``observer``: told what is written, and whether metadata is, when such a write comes or goes; not when an element
      comes to denote more.
    - ``_nested``: node with blocks -> the elements written in it. Made when first asked for, and dropped when a write
      comes or goes inside.
    """

    def __init__(self, log: WriteLog, dag: MemoryDAG) -> None:
        super().__init__()
        self.entries = log.entries
        self.metadata = log.metadata
        self._dag = dag
        self._own: dict[Node, list[int]] = {}
        self._writers: dict[int, list[Node]] = {}
        self._denoted: dict[int, LocationSet] = {}
        self._stale: set[int] = set()
        self._sets = SetIndex(dag.sets)
        self._elements_at: dict[LocationSet, dict[int, None]] | None = None
        self._ordered: dict[LocationSet, _WriterOrder] = {}
        self._nested: dict[Node, frozenset[int]] = {}
        self.observer: Callable[[LocationSet, bool], object] | None = None

    def __bool__(self) -> bool:
        """Whether anything is written at all."""
        return bool(self.entries or self._own)

    # -- updates ---------------------------------------------------------

    def remove(self, node: Node) -> None:
        """Forget what ``node`` itself writes."""
        self._catch_up()
        for element in self._own.pop(node, ()):
            change = self.metadata.pop((node, element), None)
            if self.observer is not None:
                self.observer(self._denoted[element], change is not None)
            self._forget_nested(node)
            order = self._ordered.get(self._denoted[element])
            if order is not None and not order.remove(node):
                del self._ordered[self._denoted[element]]
            writers = self._writers[element]
            writers.remove(node)
            if not writers:
                del self._writers[element]
                self._discount(element)
        self._nested.pop(node, None)

    def redirect(self, old: int, new: int) -> None:
        """Count writes to ``old`` as writes to ``new`` instead."""
        self._catch_up()
        for node in dict.fromkeys(self._writers.get(old, ())):
            elements = self._own[node]
            changes = [self.metadata.get((node, element), Change.ELEMENTS) for element in elements]
            self.remove(node)
            for element, change in zip(elements, changes):
                self.add(node, new if element == old else element, change)
        self._catch_up()

    def renest(self, node: Node) -> None:
        """Nodes have left the blocks of ``node``, or entered them."""
        self._ordered.clear()
        self._forget_nested(node)

    def changed(self, element: int) -> None:
        """What ``element`` denotes has changed."""
        if element in self._denoted:
            self._stale.add(element)

    def _catch_up(self) -> None:
        """Enter the logged writes."""
        if self.entries:
            entries, self.entries = self.entries, []
            with gc_paused():
                for node, element in entries:
                    self._enter(node, element)

    def _enter(self, node: Node, element: int) -> None:
        self._own.setdefault(node, []).append(element)
        writers = self._writers.get(element)
        if writers is None:
            self._writers[element] = [node]
            self._count(element)
        else:
            writers.append(node)
        if self._ordered:
            locations = self._denoted[element]
            order = self._ordered.get(locations)
            if order is not None and not order.add(node):
                del self._ordered[locations]
        self._forget_nested(node)
        if self.observer is not None:
            self.observer(self._denoted[element], (node, element) in self.metadata)

    def _forget_nested(self, node: Node | None) -> None:
        while self._nested and node is not None:
            self._nested.pop(node, None)
            node = node.outer

    def settle(self) -> None:
        """Enter the logged writes, and count elements that have changed again, as each query does first."""
        if self.entries:
            self._catch_up()
        while self._stale:
            element = self._stale.pop()
            self._ordered.pop(self._denoted[element], None)
            self._discount(element)
            self._count(element)
            self._ordered.pop(self._denoted[element], None)

    def _count(self, element: int) -> None:
        locations = self._denoted[element] = self._dag.locations(element)
        self._sets.add(locations)
        if self._elements_at is not None:
            self._elements_at.setdefault(locations, {})[element] = None

    def _discount(self, element: int) -> None:
        locations = self._denoted.pop(element)
        self._stale.discard(element)
        if self._elements_at is not None:
            del self._elements_at[locations][element]
        if self._sets.remove(locations):
            self._ordered.pop(locations, None)
            if self._elements_at is not None:
                del self._elements_at[locations]

    # -- queries ---------------------------------------------------------

    def own(self, node: Node) -> Collection[int]:
        """The elements that ``node`` itself writes, not what is inside of it."""
        self._catch_up()
        return self._own.get(node, ())

    def nodes(self) -> list[Node]:
        """The nodes that write themselves, not the nodes around them."""
        self._catch_up()
        return list(self._own)

    def elements(self, node: Node) -> Collection[int]:
        """The elements that ``node``, or one inside it, writes."""
        self._catch_up()
        if not node.blocks:
            return self._own.get(node, ())
        found = self._nested.get(node)
        if found is None:
            inside = [node, *node.nested()]
            found = self._nested[node] = frozenset(e for n in inside for e in self._own.get(n, ()))
        return found

    def locations(self, node: Node) -> LocationSet:
        """What ``node``, and those inside it, write."""
        elements = self.elements(node)
        if not elements:
            return EMPTY
        dag = self._dag
        return dag.sets.union_all([dag.locations(e) for e in elements])

    def touches(self, locations: LocationSet) -> bool:
        """Whether anything writes one of ``locations``."""
        self.settle()
        return self._sets.meets(locations)

    def writing(self, locations: LocationSet) -> list[Node]:
        """The nodes that write one of ``locations`` themselves."""
        if not self.touches(locations):
            return []
        return list(dict.fromkeys(node for s in self._sets.meeting(locations) for node in self.writing_just(s)))

    def few_writing(self, locations: LocationSet, most: int) -> list[Node] | None:
        """As `writing`; None if there are more than ``most``, or if it takes long to tell."""
        self.settle()
        found: dict[Node, None] = {}
        looked_at = 0
        for written in self._sets.meeting(locations):
            for element in self._elements_of(written):
                looked_at += 1
                found.update(dict.fromkeys(self._writers[element]))
                if looked_at > most or len(found) > most:
                    return None
        return list(found)

    def writing_just(self, locations: LocationSet) -> list[Node]:
        """The nodes that write elements which denote all of ``locations`` and nothing else."""
        writers = self._writers
        return [node for element in self._elements_of(locations) for node in writers[element]]

    def written_sets(self) -> SetIndex:
        """What the written elements denote, each set once."""
        self.settle()
        found = SetIndex(self._dag.sets)
        for locations in dict.fromkeys(self._denoted.values()):
            found.add(locations)
        return found

    def changes_metadata(self, locations: LocationSet, least: Change) -> bool:
        """Whether anything changes the metadata of a tensor in ``locations``, at least as much as ``least``."""
        if not self.metadata:
            return False
        self.settle()
        elements = (e for s in self._sets.meeting(locations) for e in self._elements_of(s))
        writes = ((node, e) for e in elements for node in self._writers[e])
        return any(self.metadata.get(write, Change.ELEMENTS) >= least for write in writes)

    def written_between(self, locations: LocationSet, first: Node | None, last: Node) -> bool:
        """Whether a node strictly between ``first`` and ``last``, of one block, writes any of ``locations``.

        Without ``first``, all nodes before ``last`` count. Either the nodes are examined one by one or the sets that
        are written, whichever is shorter.
        """
        self.settle()
        left = self._sets.ways(locations)
        node = last.prev
        while node is not None and node is not first:
            elements = self.elements(node)
            left -= 1 + len(elements)
            if left < 0:
                return any(self._order(s).any_between(first, last) for s in self._sets.meeting(locations))
            if any(intersects(self._denoted[e], locations) for e in elements):
                return True
            node = node.prev
        return False

    def acts_on_world_between(self, first: Node, last: Node) -> bool:
        """Whether some node strictly between two nodes of one block acts on the world."""
        self.settle()
        return WORLD in self._writers and self._order(WORLD).any_between(first, last)

    def written_in(self, block: Block, locations: LocationSet) -> bool:
        """Whether some node in ``block``, or nested in one, writes one of ``locations``."""
        self.settle()
        return any(block in self._order(s).blocks for s in self._sets.meeting(locations))

    def writes_any(self, node: Node, locations: LocationSet) -> bool:
        """Whether ``node``, or one inside it, writes one of ``locations``."""
        self.settle()
        return any(intersects(self._denoted[e], locations) for e in self.elements(node))

    def writes_itself(self, node: Node, locations: LocationSet) -> bool:
        """Whether ``node``, not what is inside of it, writes one of ``locations``."""
        self.settle()
        return any(intersects(self._denoted[e], locations) for e in self._own.get(node, ()))

    def is_in_order(self) -> bool:
        """Whether the writers kept in order are complete and still in order; for checks."""
        self.settle()
        return all(order.blocks == self._order_of(s).blocks for s, order in self._ordered.items())

    def _order(self, locations: LocationSet) -> _WriterOrder:
        """The order of the nodes that write elements which denote exactly ``locations``."""
        found = self._ordered.get(locations)
        if found is None:
            found = self._ordered[locations] = self._order_of(locations)
        return found

    def _order_of(self, locations: LocationSet) -> _WriterOrder:
        return _WriterOrder(self.writing_just(locations))

    def _elements_of(self, locations: LocationSet) -> Iterable[int]:
        """The written elements that denote all of ``locations`` and nothing else."""
        at = self._elements_at
        if at is None:
            at = self._elements_at = {}
            for element, denoted in self._denoted.items():
                at.setdefault(denoted, {})[element] = None
        return at[locations]


class LiveWrites:
    """The writes to memory of interest. Each answer names the writers of memory that newly came to matter."""

    def __init__(self, index: WriteIndex) -> None:
        self._index = index
        self._left = index.written_sets()
        """The written sets of which nothing matters yet."""

    def use(self, locations: Iterable[int]) -> list[Node]:
        """``locations`` matter."""
        found = self._left.take(list(locations))  # at once: large sets are looked at one by one
        return [node for written in found for node in self._index.writing_just(written)]


class _WriterOrder:
    """Writers, and all nodes that contain one, in order, by block.

    Nodes that write the same memory are never moved past each other, so their order stays what it was.

    Attributes:
        blocks: block -> these nodes there, in order.
    """

    def __init__(self, writers: Iterable[Node]) -> None:
        self.blocks: dict[Block, list[Node]] = {}
        self._counts: dict[Node, int] = {}
        """Node -> for how many reasons it is there: what it writes itself, and nodes right inside it that are."""
        for writer in writers:
            self.add(writer)

    def any_between(self, first: Node | None, last: Node) -> bool:
        """Whether such a node is between two nodes of one block; without ``first``, before ``last``."""
        nodes = self.blocks.get(last.block, ()) if last.block is not None else ()
        at = 0 if first is None else bisect_right(nodes, first.order, key=_order)
        return at < len(nodes) and nodes[at].order < last.order

    def add(self, writer: Node) -> bool:
        """Add ``writer``; False if it is in no block, which makes this order useless."""
        node: Node | None = writer
        while node is not None:
            if node.block is None:
                return False
            count = self._counts.get(node, 0)
            self._counts[node] = count + 1
            if count:
                return True  # and so is what is around it
            insort(self.blocks.setdefault(node.block, []), node, key=_order)
            node = node.block.node
        return True

    def remove(self, writer: Node) -> bool:
        """Remove ``writer``; False if it is not where it was, which makes this order useless."""
        node: Node | None = writer
        while node is not None:
            count = self._counts.pop(node, 0)
            if count > 1:
                self._counts[node] = count - 1
                return True
            nodes = self.blocks.get(node.block, []) if node.block is not None else []
            at = bisect_left(nodes, node.order, key=_order)
            if node.block is None or at == len(nodes) or nodes[at] is not node:
                return False
            del nodes[at]
            if not nodes:
                del self.blocks[node.block]
            node = node.block.node
        return True


def _order(node: Node) -> int:
    return node.order


# -- paths ---------------------------------------------------------------


def outermost(block: Block | None) -> Block | None:
    """The outermost block around ``block``, or itself: the graph's block for nodes and values of a graph."""
    while block is not None and block.node is not None:  # not `around`: each query asks, in 0.1 us, not 0.4
        block = block.node.block
    return block


def common_block(a: Node, b: Node) -> Block | None:
    """The innermost block that contains both nodes, directly or not; None if they are of different graphs."""
    if a.block is b.block:
        return a.block
    blocks: set[Block] = set()
    node: Node | None = a
    while node is not None and node.block is not None:  # not `around`: asked of each writer, in 0.2 us, not 0.8
        blocks.add(node.block)
        node = node.block.node
    node = b
    while node is not None and node.block is not None:
        if node.block in blocks:
            return node.block
        node = node.block.node
    return None


def outermost_loop(block: Block) -> Block | None:
    """The outermost block of a loop that contains ``block`` or is ``block``; None if no loop is around it.

    A node that is not known to branch counts as one that loops.
    """
    loops = [at for at in block.around() if at.node is not None and at.node.kind != IF]
    return loops[-1] if loops else None


class SomeWriters:
    """Some nodes that write, for `writes_between`, in place of an index and of written locations."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._order = _WriterOrder(nodes)
        self._nodes = frozenset(nodes)

    def written_between(self, locations: LocationSet, first: Node | None, last: Node) -> bool:
        """Whether one of them is strictly between two nodes of one block, or contained in a node that is."""
        return self._order.any_between(first, last)

    def written_in(self, block: Block, locations: LocationSet) -> bool:
        """Whether one of them is in ``block``, or nested in one that is."""
        return block in self._order.blocks

    def writes_any(self, node: Node, locations: LocationSet) -> bool:
        """Whether ``node`` is one of them, or contains one."""
        return node in self._order.blocks.get(node.block, ()) if node.block is not None else False

    def writes_itself(self, node: Node, locations: LocationSet) -> bool:
        """Whether ``node`` is one of them."""
        return node in self._nodes


def scope_between(first: Node, last: Node) -> Block | None:
    """The innermost block that no path from the latest run of ``first`` to ``last`` leaves or re-enters."""
    block = common_block(first, last)
    assert block is not None, "both are in the graph"
    start, end = first.ancestor_in(block), last.ancestor_in(block)
    if start is first and end is not None and first.is_before(end):
        return block
    loop = outermost_loop(block)
    return block if loop is None or loop.node is None else loop.node.block


def writes_between(index: WriteIndex | SomeWriters, locations: LocationSet, first: Node, last: Node) -> bool:
    """Whether ``locations`` may be written between ``first`` and ``last`` of one graph, on any path.

    Paths lead from the latest run of ``first`` to ``last``. Writes by ``first`` and ``last`` themselves do not count.
    """
    block = common_block(first, last)
    assert block is not None, "both are in the graph"
    start, end = first.ancestor_in(block), last.ancestor_in(block)
    assert start is not None and end is not None, "the block contains both"
    in_order = start.is_before(end)
    if not in_order or start is not first:  # iterations of a loop around may lead back, and pass ``first`` by
        loop = outermost_loop(block)
        if loop is not None and index.written_in(loop, locations):
            return True
    if not in_order:  # else only a node that is not known to branch leads from one of its blocks to another
        leads_on = start is end and start.kind != IF and start is not first and start is not last
        return leads_on and index.writes_any(start, locations)
    return (
        index.written_between(locations, start, end)
        or (start is not first and _written_inside(index, locations, start, after=first))
        or (end is not last and _written_inside(index, locations, end, before=last))
    )


def _written_inside(
    index: WriteIndex | SomeWriters,
    locations: LocationSet,
    outer: Node,
    before: Node | None = None,
    after: Node | None = None,
) -> bool:
    """Whether ``outer`` may write ``locations`` before, or after, it runs the given node inside of it."""
    at = before or after
    assert at is not None, "one of the two is given"
    if index.writes_any(at, locations):
        return True
    while at is not outer:
        around, block = at.outer, at.block
        assert around is not None and block is not None, "it is inside"
        writes = index.writes_itself if around.kind == IF else index.writes_any  # a loop may run all that is in it
        first, last = (None, at) if before else (at, block.return_node)
        if writes(around, locations) or index.written_between(locations, first, last):
            return True
        at = around
    return False
