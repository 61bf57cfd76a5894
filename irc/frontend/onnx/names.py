"""Names of values: the model's own names stay, and new names avoid them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irc.frontend.onnx.scan import RawGraph


class Namer:
    """Gives names to the values of one graph, which share one name space, nested ones included.

    Values of the top block keep their names. So does the first of several
    nested values of one name; the others get ``name.N``.
    """

    def __init__(self, raw: RawGraph) -> None:
        self._top = set(raw.names())
        self._nested: set[str] = set()
        for node in raw.walk():
            for graph in node.graphs.values():
                self._nested.update(graph.names())
        self._given: set[str] = set()
        self._numbers: dict[str, int] = {}

    def top(self, name: str) -> str:
        """The name for a value of the top block called ``name`` ("": a new one)."""
        return name or self.fresh()

    def nested(self, name: str) -> str:
        """The name for a nested value called ``name`` ("": a new one)."""
        if not name or name in self._top or name in self._given:
            return self.fresh(name)
        self._given.add(name)
        return name

    def fresh(self, stem: str = "") -> str:
        """A name that nothing in the graph has or will have: ``stem.N``, or just a number."""
        number = self._numbers.get(stem, 0)
        while True:
            name = f"{stem}.{number + 1}" if stem else str(number)
            number += 1
            if name not in self._top and name not in self._nested and name not in self._given:
                self._numbers[stem] = number
                self._given.add(name)
                return name
