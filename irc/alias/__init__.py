"""Alias analysis: which values may share memory, and which nodes write it.

>>> from irc.alias import analyze
>>> db = analyze(graph)
>>> db.may_alias(graph.value("x"), graph.value("y"))
"""

from __future__ import annotations

from collections.abc import Iterable

from irc.alias.builder import AliasDbBuilder
from irc.alias.db import AliasDb
from irc.alias.facts import Kind, Location
from irc.alias.memory_types import overlap
from irc.alias.rules import register as register_rule
from irc.alias.summaries import Functions
from irc.errors import Error
from irc.ir.graph import Graph, Module, gc_paused
from irc.ir.value import Value

__all__ = ["AliasDb", "AliasDbBuilder", "Kind", "Location", "analyze", "overlap", "register_rule"]


def analyze(
    graph: Graph,
    module: Module | None = None,
    noalias: Iterable[Value | str] = (),
    functions: Functions | None = None,
    *,
    loops_apart: bool = False,
) -> AliasDb:
    """Analyse ``graph``.

    Args:
        graph: what to analyse.
        module: where called functions are found; the graph's own module by default.
        noalias: inputs (values or names) that are known to share memory with nothing, such as donated ones.
        functions: summaries of the module's functions, to be shared by analyses of several graphs that call them.
        loops_apart: whether to take each parameter and result of a loop for fresh memory. Unsound alone: the caller
            must relate them to what the loop is given, as `irc.runtime.storage` does.

    Returns:
        The database that answers queries, and that updates keep right while the graph changes.

    Raises:
        TypeError: if ``graph`` is something else, such as a module, or ``noalias`` is a single name.
        Error: IRC341 if something in ``noalias`` is neither an input of the graph nor the name of one; an error of
            `Graph.verify` if the graph is too malformed to be analysed.
    """
    if not isinstance(graph, Graph):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
        hint = "; give module.main" if isinstance(graph, Module) else ""
        raise TypeError(f"a Graph is analysed, not a {type(graph).__name__}{hint}")
    with gc_paused():
        builder = AliasDbBuilder(graph, module, noalias, functions, loops_apart=loops_apart)
        try:
            builder.record()
            return builder.freeze()
        except (Error, IndexError, KeyError, TypeError, ValueError):
            graph.verify()
            if module := module or graph.module:
                module.verify()
            raise
