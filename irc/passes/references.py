"""Which functions of a module are referred to, kept up to date while calls are inlined in one after the other."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from irc.ir.region_flow import function_name, with_subgraphs

if TYPE_CHECKING:
    from irc.ir import Graph, Module


class References:
    """The references from functions of ``module`` to others, and how many functions refer to each."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._of = {name: self._referred(graph) for name, graph in module.graphs.items()}
        self._counts = Counter(target for targets in self._of.values() for target in targets)

    def drop_unreached(self) -> int:
        """Remove the functions that the main graph does not reach; return how many."""
        main = self._module.main.name
        reached, pending = {main}, [main]
        while pending:
            new = self._of[pending.pop()] - reached
            reached |= new
            pending += new
        unused = [name for name in self._module.graphs if name not in reached]
        for name in unused:
            self._drop(name)
        return len(unused)

    def inlined(self, graph: Graph) -> int:
        """Remove the functions that nothing refers to any more since calls were inlined in ``graph``; return how many.

        The main graph must have reached all functions. It still reaches those that something refers to: only a cycle
        of functions that nothing else refers to would be an exception, and what is inlined is in no cycle. A copy of
        its body refers to all that it refers to itself.
        """
        before, after = self._of[graph.name], self._referred(graph)
        self._of[graph.name] = after
        self._counts.update(after - before)
        self._counts.subtract(before - after)
        pending = list(before - after)
        dropped = 0
        while pending:
            name = pending.pop()
            if not self._counts[name] and name in self._of and name != self._module.main.name:
                pending += self._drop(name)
                dropped += 1
        return dropped

    def _drop(self, name: str) -> frozenset[str]:
        """Remove a function; return those that it referred to."""
        del self._module.graphs[name]
        targets = self._of.pop(name)
        self._counts.subtract(targets)
        return targets

    def _referred(self, graph: Graph) -> frozenset[str]:
        names = map(function_name, with_subgraphs(graph))
        return frozenset(name for name in names if name in self._module.graphs)
