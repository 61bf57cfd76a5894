"""Comparing two databases about one graph, answer by answer."""

from __future__ import annotations

from collections.abc import Callable

from irc.alias.paths import outermost
from irc.alias.queries import Queries
from irc.alias.sets import LocationSet, intersects, members
from irc.errors import Error
from irc.ir.node import Node
from irc.ir.value import Value


def compare(kept: Queries, fresh: Queries, exact: bool) -> None:
    """Raise ``Error`` IRC340 if ``kept`` does not answer as ``fresh`` does.

    Args:
        kept: the database that was updated.
        fresh: one built from the graph as it is now.
        exact: whether more cautious answers count as wrong too.
    """
    for value in kept.known_values():
        _require(_is_placed(value), "a value that is no longer in the graph is still known", f"%{value.name}")
    for node in kept.writing_nodes():
        _require(node.block is not None, "a node that is no longer in the graph is still known to write", repr(node))
    values = [v for v in kept.graph.values() if _is_placed(v)]
    direct = [[db.location_set(v) for v in values] for db in (kept, fresh)]
    _compare_rows("may_alias", values, direct[0], direct[1], exact)
    reach = [[db.reach_set(v) for v in values] for db in (kept, fresh)]
    _compare_rows("may_contain_alias", values, reach[0], reach[1], exact)
    for contained in (True, False):
        for v in values:
            _compare_answer(
                f"has_writers(contained={contained})",
                f"%{v.name}",
                kept.has_writers(v, contained),
                fresh.has_writers(v, contained),
                exact,
            )
    # Which of its writers may run between two nodes, ``writes_between`` asks the graph, and an index of their order.
    _require(kept.knows_order_of_writers(), "nodes that write the same were moved past each other", "the write index")
    for v in values:
        found, wanted = (set(db.writers(v)) for db in (kept, fresh))
        for node in found ^ wanted:
            _compare_answer("writes_between", f"%{v.name}, by {node!r}", node in found, node in wanted, exact)
    writers = {n: None for db in (kept, fresh) for n in db.writing_nodes()}
    for node in writers:
        written = kept.write_set(node), fresh.write_set(node)
        for v in values:
            answers = [intersects(w, db.reach_set(v)) for w, db in zip(written, (kept, fresh))]
            _compare_answer("writes_to_alias", f"{node!r} and %{v.name}", answers[0], answers[1], exact)
        for name, ask in _NODE_QUERIES:
            _compare_answer(name, repr(node), ask(kept, node), ask(fresh, node), exact)


_NODE_QUERIES: tuple[tuple[str, Callable[[Queries, Node], bool]], ...] = (
    ("is_mutable", lambda db, n: db.is_mutable(n)),
    ("has_side_effects", lambda db, n: db.has_side_effects(n)),
    ("is_random", lambda db, n: db.is_random(n)),
    ("writes_to_wildcard", lambda db, n: db.writes_to_wildcard(n)),
)


def _is_placed(value: Value) -> bool:
    """Whether the value's node, and all nodes around it, are in a block (a parameter: its block's node)."""
    block = outermost(value.block)
    return block is not None and block is block.graph.block


def _compare_rows(
    name: str, values: list[Value], kept: list[LocationSet], fresh: list[LocationSet], exact: bool
) -> None:
    """Compare a symmetric relation, row by row. A row is an integer whose bit i stands for value i."""
    sharing = _by_location(kept), _by_location(fresh)
    for v, a, b in zip(values, kept, fresh):
        row, wanted = (_union(s, by) for s, by in zip((a, b), sharing))
        if row != wanted and (exact or wanted & ~row):
            odd = row ^ wanted
            other = (odd & -odd).bit_length() - 1
            _compare_answer(
                name, f"%{v.name} and %{values[other].name}", bool(row >> other & 1), bool(wanted >> other & 1), exact
            )


def _by_location(sets: list[LocationSet]) -> dict[int, int]:
    found: dict[int, int] = {}
    for i, locations in enumerate(sets):
        for x in members(locations):
            found[x] = found.get(x, 0) | 1 << i
    return found


def _union(locations: LocationSet, by_location: dict[int, int]) -> int:
    row = 0
    for x in members(locations):
        row |= by_location[x]
    return row


def _compare_answer(query: str, where: str, kept: bool, fresh: bool, exact: bool) -> None:
    _require(kept == fresh or (kept and not exact), f"{query} is {kept}, but {fresh} after a rebuild", where)


def _require(holds: bool, message: str, where: str) -> None:
    if not holds:
        raise Error("IRC340", f"the alias analysis no longer fits the graph: {message}", where)
