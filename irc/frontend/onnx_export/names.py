"""Names of values and nodes in a model that is being written."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.ir import Graph, Value


class Names:
    """The names of one name space: a graph's with all that is nested in it. Values keep theirs."""

    def __init__(self, graph: Graph) -> None:
        self._given: dict[Value, str] = {}
        self._taken = {value.name: 0 for value in graph.values()}
        self._nodes: dict[str, int] = {}

    def __call__(self, value: Value) -> str:
        """What ``value`` is called."""
        return self._given.get(value) or value.name

    def give(self, value: Value, name: str) -> None:
        """Call ``value`` ``name``."""
        self._given[value] = name

    def fresh(self, stem: str) -> str:
        """A name that no value has: ``stem``, or ``stem.N``."""
        return _unique(stem, self._taken)

    def adopt(self, graph: Graph) -> None:
        """Add the values of a graph that has names of its own; values whose names are taken get others."""
        for value in graph.values():
            self._given[value] = self.fresh(value.name)

    def node(self, name: str) -> str:
        """A node's name, made unique; "" stays."""
        return name and _unique(name, self._nodes)


def _unique(stem: str, taken: dict[str, int]) -> str:
    """``stem``, or the next ``stem.N``; ``taken`` has the N that was given last."""
    name, number = stem, taken.get(stem, 0)
    while name in taken:
        number += 1
        name = f"{stem}.{number}"
    taken[name] = 0
    taken[stem] = number
    return name
