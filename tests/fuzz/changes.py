"""Changes to a program that keep its analysis: passes, moves, values declared unknown."""

from collections import Counter
from collections.abc import Callable, Sequence

from hypothesis import strategies as st

import irc.compiler  # noqa: F401  # registers the passes of other layers
from irc.alias import AliasDb
from irc.errors import Error
from irc.ir import Graph, Module
from irc.passes import registry
from irc.passes.base import PassContext

PASSES = ("cse", "dce", "fuse", "in-place", "inline", "remove-mutation", "reorder")
"""They make, erase, replace and move nodes in all ways there are, and tell the analysis of it."""

Change = tuple[str, int]


def _declare_unknown(graph: Graph, db: AliasDb, number: int) -> None:
    values = list(graph.values())
    db.set_wildcard(values[number % len(values)])


def _move(graph: Graph, db: AliasDb, number: int) -> None:
    nodes = list(graph.walk())
    if nodes:
        point, node = (nodes[i % len(nodes)] for i in divmod(number, len(nodes)))
        (db.move_before, db.move_after)[number % 2](node, point)


_OTHERS: dict[str, Callable[[Graph, AliasDb, int], None]] = {"declare unknown": _declare_unknown, "move": _move}

changes: st.SearchStrategy[list[Change]] = st.lists(
    st.tuples(st.sampled_from((*_OTHERS, *_OTHERS, *PASSES)), st.integers(0, 1 << 12)), max_size=3
)
"""What to do, and a number that says to what."""


def change(module: Module, steps: Sequence[Change], seen: Counter[str]) -> AliasDb:
    """Do ``steps`` to the main graph; its analysis, made before and kept.

    Raises AssertionError if that answers anything else than one made afterwards.
    """
    graph, ctx = module.main, PassContext(module)
    try:
        ctx.alias_db(graph).check()  # asks everything: all that is remembered must be kept right
        for what, number in steps:
            if what in PASSES:
                registry.create(what).run(graph, ctx)
            else:
                _OTHERS[what](graph, ctx.alias_db(graph), number)
            seen["changes"] += 1
            ctx.alias_db(graph).check()
    except Error as error:
        if error.code == "IRC340":
            raise AssertionError(str(error)) from error
        raise
    return ctx.alias_db(graph)
