"""The part of a graph whose facts an update takes back, and so what has to be analysed again.

Facts flow from what a node is given to what it makes: a result denotes what
its argument does. Only containers take something back: what is stored into
one is seen by all who have it. So if the facts of a value are taken back, all
that mentions it follows; and if a node's are, so do its results and those of
its arguments that may hold anything. A tensor that is merely given stays.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from irc.alias.facts import NOTHING, Element
from irc.alias.memory_types import has_memory
from irc.alias.recorder import is_functional
from irc.alias.rules import leaves_traces
from irc.alias.sets import LocationSet, members
from irc.ir.node import Node
from irc.ir.types import TensorType
from irc.ir.value import Value

if TYPE_CHECKING:
    from irc.alias.solver import Solver


class Region:
    """All that has to be analysed again once the facts of some values and nodes are taken back.

    Attributes:
        values: the values whose locations are to be found anew.
        nodes: the nodes whose effects are to be recorded anew.
        is_closed: whether nothing outside knows of the region. If false, something in it is, or came with, memory known
            outside of the graph, and the region is without bounds.
    """

    def __init__(self, solver: Solver, values: Iterable[Value], nodes: Iterable[Node]) -> None:
        self._solver = solver
        self._elements = solver.facts.elements
        self._pending: list[Value | Node] = []
        self.values: dict[Value, None] = {}
        self.nodes: dict[Node, None] = {}
        for value in values:
            self._take(value)
        for node in nodes:
            self._enter(node)
        self.is_closed = self._close()

    def in_order(self) -> list[Node]:
        """The nodes that are not inside another node of the region, in the order of the program."""
        outermost = [n for n in self.nodes if self.nodes.keys().isdisjoint(n.around())]
        return sorted(outermost, key=Node.place)

    def _close(self) -> bool:
        while self._pending:
            found = self._pending.pop()
            if isinstance(found, Node):
                self._follow_node(found)
            elif not self._follow_value(found):
                return False
        return True

    def _take(self, value: Value) -> None:
        element = self._elements.get(value)
        if value not in self.values and element is not None and not self._is_nothing(value, element):
            self.values[value] = None
            self._pending.append(value)

    def _enter(self, node: Node) -> None:
        if node not in self.nodes:
            self.nodes[node] = None
            self._pending.append(node)

    def _follow_node(self, node: Node) -> None:
        for value in node.inputs:
            if holds(value) and not self._is_unknown(value):
                self._take(value)
        for value in node.outputs:
            self._take(value)
        for block in node.blocks:
            for value in block.params:
                self._take(value)
            for value in block.returns:
                if holds(value):
                    self._take(value)
            for inner in block.nodes:
                self._enter(inner)

    def _follow_value(self, value: Value) -> bool:
        """Enter all nodes that mention ``value``; False if it is known outside of the graph."""
        block = value.block
        if not self._is_inside(value) or block is None:
            return False
        maker = value.definer
        if maker is None:
            return False  # an input: not the graph made it
        self._enter(maker)
        was_nothing = self._elements.get(value) == NOTHING  # who only read it made memory of their own for that
        for user in value.iter_users():
            if user.is_return:
                around = user.outer
                if around is not None:
                    self._enter(around)
            elif was_nothing or not self._only_reads(user):
                self._enter(user)
        return True

    def _is_inside(self, value: Value) -> bool:
        facts, dag = self._solver.facts, self._solver.dag
        if not facts.escaped and not facts.shared:
            return True
        reach = members(dag.closure(self._elements[value]))
        return not any(
            x in facts.escaped or (holds(value) and (x in facts.shared or x in facts.wild_types)) for x in reach
        )

    def _is_unknown(self, value: Value) -> bool:
        """Whether nothing is known of ``value`` but its type: what is stored there escapes, and is found by that."""
        facts = self._solver.facts
        element = self._elements.get(value, NOTHING)
        return facts.resolve(element) in facts.unknown_of

    def _only_reads(self, node: Node) -> bool:
        """Whether ``node`` only makes tensors of their own: then no fact about it mentions its inputs."""
        if node.blocks or self._solver.index.elements(node):
            return False
        if is_functional(node):
            return True
        return not leaves_traces(node) and all(map(self._is_fresh, node.outputs))

    def _is_nothing(self, value: Value, element: Element) -> bool:
        """Whether ``value`` can denote no memory at all. If it is merely None on every path, that may change."""
        return element == NOTHING and not has_memory(value.type)

    def _is_fresh(self, value: Value) -> bool:
        element = self._elements.get(value)
        if element is not None and self._is_nothing(value, element):
            return True
        return element is not None and not holds(value) and self._solver.facts.sites.get(element) is value


def holds(value: Value) -> bool:
    """Whether ``value`` may hold other values: it is, or may be, anything but a tensor."""
    return value.type.__class__ is not TensorType


def any_escaped(solver: Solver, values: Iterable[Value]) -> bool:
    """Whether unknown code may hold any of ``values`` or something in them."""
    facts, dag = solver.facts, solver.dag
    if not facts.escaped:
        return False
    known = [facts.elements[v] for v in values if v in facts.elements]
    reached: list[LocationSet] = [dag.closure(element) for element in known]
    return any(x in facts.escaped for locations in reached for x in members(locations))
