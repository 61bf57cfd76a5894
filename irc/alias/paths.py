"""Where two nodes meet, and what may be written on the paths between them, through branches and loops."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.block import Block
from irc.ir.kinds import IF
from irc.ir.node import Node

if TYPE_CHECKING:
    from irc.alias.location_sets import LocationSet
    from irc.alias.write_index import WriteIndex


def outermost(block: Block | None) -> Block | None:
    """The outermost block around ``block``, or ``block`` itself: for nodes and values of a graph, the graph's block."""
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


def writes_between(index: WriteIndex, locations: LocationSet, first: Node, last: Node) -> bool:
    """Whether ``locations`` may be written after ``first`` and before ``last``, nodes of one graph, on any path.

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
    index: WriteIndex, locations: LocationSet, outer: Node, before: Node | None = None, after: Node | None = None
) -> bool:
    """Whether ``outer`` may write ``locations`` after, or before, it runs a node inside of it, which is given."""
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
