"""Which operators of a block must run before which others, because of values, memory and side effects.

A need that follows from others may be missing, so that the needs of a graph are no larger than the graph.
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
    """For each operator of a block, the positions of earlier operators that must run before it.

    Positions that follow from others may be missing.

    Args:
        db: the analysis of the graph.
        nodes: the operators, in order.
        reads: for each operator the slots that it reads.
        makes: for each operator the slots that it fills.
        touched: for each operator the memory classes that it reads.
        overwritten: for each operator the memory classes that it may overwrite because nothing needs them later. The
            graph does not show these writes; all reads of the memory must be over by then.
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
