"""Comparing two databases about one graph, answer by answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from irc.alias.location_sets import EMPTY, LocationSet, SetTable, contains, members
from irc.alias.regions import part_of, part_read_of
from irc.alias.write_index import outermost
from irc.errors import Error
from irc.ir.node import Node, Value

if TYPE_CHECKING:
    from irc.alias.db import AliasDb


def compare(kept: AliasDb, fresh: AliasDb, exact: bool) -> None:
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
    # What is said of values follows from where they, and what they hold, may be: one of those that agree will do.
    kinds: dict[tuple[LocationSet, ...], Value] = {}
    for v in filter(_is_placed, kept.graph.values()):
        kinds.setdefault((*_sets(kept, v), *_sets(fresh, v)), v)
    values = list(kinds.values())
    labels = [f"%{v.name}" for v in values]
    direct, reach = [[[sets[of + i] for sets in kinds] for of in (0, 2)] for i in (0, 1)]
    _compare_rows("may_alias", labels, direct, labels, direct, exact)
    _compare_rows("may_contain_alias", labels, reach, labels, reach, exact)
    for contained in (True, False):
        for v in values:
            _compare_answer(
                f"has_writers(contained={contained})",
                f"%{v.name}",
                kept.has_writers(v, contained),
                fresh.has_writers(v, contained),
                exact,
            )
    _compare_parts(kept, fresh, exact)
    for v in values:
        found, wanted = kept.has_metadata_writers(v), fresh.has_metadata_writers(v)
        _compare_answer("has_metadata_writers", f"%{v.name}", found, wanted, exact)
    # Which of its writers may run between two nodes, ``writes_between`` asks the graph, and an index of their order.
    _require(kept.knows_order_of_writers(), "nodes that write the same were moved past each other", "the write index")
    for v in values:
        found, wanted = (set(db.writers(v)) for db in (kept, fresh))
        for node in found ^ wanted:
            _compare_answer("writes_between", f"%{v.name}, by {node!r}", node in found, node in wanted, exact)
    writers = list({n: None for db in (kept, fresh) for n in db.writing_nodes()})
    written = [[db.write_set(n) for n in writers] for db in (kept, fresh)]
    _compare_rows("writes_to_alias", [repr(n) for n in writers], written, labels, reach, exact)
    for node in writers:
        for name, ask in _NODE_QUERIES:
            _compare_answer(name, repr(node), ask(kept, node), ask(fresh, node), exact)


def _compare_parts(kept: AliasDb, fresh: AliasDb, exact: bool) -> None:
    """Compare what values show of other tensors, what reading them reads, and whether that is written."""
    for v in filter(_is_placed, kept.graph.values()):
        where = f"%{v.name}"
        _compare_answer("whether others made its memory", where, not kept.is_own(v), not fresh.is_own(v), exact)
        shown, known = part_of(fresh, v), part_of(kept, v)
        if shown is None and known is None:
            continue
        cautious = known is None and not exact
        _require(known == shown or cautious, f"it shows {known}, but {shown} after a rebuild", where)
        read, known = part_read_of(fresh, v), part_read_of(kept, v)
        cautious = known is None and not exact
        _require(known == read or cautious, f"what is read is {known}, but {read} after a rebuild", where)
        _compare_answer("has_writers", where, kept.has_writers(v), fresh.has_writers(v), exact)


def _sets(db: AliasDb, value: Value) -> tuple[LocationSet, LocationSet]:
    """The locations that ``value`` may be at, and those plus the locations of what it holds."""
    return db.location_set(value), db.reach_set(value)


_NODE_QUERIES: tuple[tuple[str, Callable[[AliasDb, Node], bool]], ...] = (
    ("is_mutable", lambda db, n: db.is_mutable(n)),
    ("has_side_effects", lambda db, n: db.has_side_effects(n)),
    ("is_random", lambda db, n: db.is_random(n)),
    ("writes_to_wildcard", lambda db, n: db.writes_to_wildcard(n)),
)


def _is_placed(value: Value) -> bool:
    """Whether ``value`` is defined in the graph: no node around it, nor its own, has been taken out."""
    block = outermost(value.block)
    return block is not None and block is block.graph.block


def _compare_rows(
    name: str,
    of: list[str],
    sets: list[list[LocationSet]],
    others: list[str],
    with_: list[list[LocationSet]],
    exact: bool,
) -> None:
    """Compare, for each set, which of the other sets it intersects: its row is their indices.

    Args:
        name: the query.
        of: a label for each set.
        sets: the sets of the two databases.
        others: a label for each other set.
        with_: the other sets of the two databases.
        exact: whether more cautious answers count as wrong too.
    """
    table = SetTable()
    kept, fresh = (_rows(table, some, other) for some, other in zip(sets, with_))
    for what, row, wanted in zip(of, kept, fresh):
        missing, excess = table.difference(wanted, row), table.difference(row, wanted)
        odd = next(iter(members(missing if missing is not EMPTY else excess if exact else EMPTY)), None)
        if odd is not None:
            _compare_answer(name, f"{what} and {others[odd]}", contains(row, odd), contains(wanted, odd), exact)


def _rows(table: SetTable, sets: list[LocationSet], others: list[LocationSet]) -> list[LocationSet]:
    """For each of ``sets``, the indices of the ``others`` that it intersects."""
    places: dict[int, list[int]] = {}
    for number, locations in enumerate(others):
        for x in members(locations):
            places.setdefault(x, []).append(number)
    by_location = {x: table.of(numbers) for x, numbers in places.items()}
    found = {
        locations: table.union_all(by_location[x] for x in members(locations) if x in by_location)
        for locations in dict.fromkeys(sets)
    }
    return [found[locations] for locations in sets]


def _compare_answer(query: str, where: str, kept: bool, fresh: bool, exact: bool) -> None:
    _require(kept == fresh or (kept and not exact), f"{query} is {kept}, but {fresh} after a rebuild", where)


def _require(holds: bool, message: str, where: str) -> None:
    if not holds:
        raise Error("IRC340", f"the alias analysis no longer fits the graph: {message}", where)
