"""Which operators of a block must have run before which: values, memory and side effects ask for it.

What an operator needs may be left to one of those that it needs, so that a graph has needs of no more than its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias.order import memory_order

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from irc.alias import AliasDb
    from irc.ir import Node


def find_needs(
    db: AliasDb,
    nodes: Sequence[Node],
    reads: Sequence[Collection[int]],
    makes: Sequence[Collection[int]],
    touched: Sequence[Collection[int]],
    overwritten: Sequence[Collection[int]],
) -> list[set[int]]:
    """For each operator of a block the positions of earlier ones that must have run before it.

    Those that these need in turn may be missing.

    Args:
        db: the analysis of the graph.
        nodes: the operators, in order.
        reads: for each the slots that it reads.
        makes: for each the slots that it fills.
        touched: for each the classes of memory that it reads.
        overwritten: for each the classes of memory that it may write over because nothing needs them later, which
            the graph does not say. Nobody may be reading them any more then.
    """
    needs = memory_order(db, nodes)
    maker: dict[int, int] = {}
    readers: dict[int, list[int]] = {}
    for position in range(len(nodes)):
        needs[position].update(maker[slot] for slot in reads[position] if slot in maker)
        for storage in overwritten[position]:
            needs[position].update(readers.get(storage, ()))
            readers[storage] = [position]
        for storage in touched[position]:
            readers.setdefault(storage, []).append(position)
        for slot in makes[position]:
            maker[slot] = position
    return needs
