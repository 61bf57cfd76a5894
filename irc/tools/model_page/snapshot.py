"""One state of a graph as plain data for the page: nodes, values, sharing, places of boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irc.alias.explain import ways
from irc.drawing.layout import lay_out
from irc.drawing.svg import cut
from irc.ir import CALL, CONSTANT, Block, Graph, Node, Value, callee
from irc.ir.drawing import box_of, inner_blocks, scope_of
from irc.ir.metadata import sources
from irc.support.formatting import one_line

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.alias.location_sets import LocationSet

Data = dict[str, Any]

MOST_CALLS, MOST_NAMES = 16, 64
"""Depth of calls, and how many of its callers, a node of a function is named for."""

MOST_LOCATIONS = 1000
"""Locations of one alias set that the page lists."""

MOST_WRITERS = 50
"""Writers of one value that the page lists."""

MOST_WHYS = 4
"""Locations of one value to which the page tells the way."""

MOST_REASONED = 3000
"""Values whose ways are told: those that share first."""


class Snapshot:
    """A graph at one time.

    Args:
        graph: the graph, which may change afterwards.
        title: when that is.
        db: its alias analysis; without one, the page shows no sharing.

    Attributes:
        value_ids: the number of each value in the data.
        node_ids: likewise, of each node.
        data: what the page is given; lists stand for records, which ``graph.js`` reads.
    """

    def __init__(self, graph: Graph, title: str, db: AliasDb | None = None) -> None:
        self._graph = graph
        blocks = self._blocks()
        self._scopes = {block: i for i, block in enumerate(blocks)}
        self.node_ids: dict[Node, int] = {}
        self.value_ids: dict[Value, int] = {}
        for block in blocks:
            for value in block.params:
                self.value_ids[value] = len(self.value_ids)
            for node in block.nodes:
                self.node_ids[node] = len(self.node_ids)
                for value in node.outputs:
                    self.value_ids[value] = len(self.value_ids)
        self._callers = self._calls()
        self.data: Data = {
            "title": title,
            "nodes": [self._node(node) for node in self.node_ids],
            "values": [self._value(value) for value in self.value_ids],
            "scopes": [self._scope(block) for block in blocks],
            "alias": None if db is None else self._alias(db),
        }

    @property
    def boxes(self) -> int:
        """How many boxes it shows, all blocks unfolded."""
        return sum(len(scope["items"]) for scope in self.data["scopes"])

    def _blocks(self) -> list[Block]:
        """The blocks of the graph, outer ones first, then those of its groups and called functions.

        So that of several values of one name, the graph's own comes first.
        """
        graphs, found = {self._graph: None}, list[Block]()
        pending = list(graphs)
        for graph in pending:  # grows while it is walked
            for block in graph.blocks():
                found.append(block)
                run = (each.graph for node in block.nodes for _, each in self._inner(node))
                inner = dict.fromkeys(each for each in run if each not in graphs)
                graphs.update(inner)
                pending += inner
        return found

    def _inner(self, node: Node) -> list[tuple[str, Block]]:
        """The blocks that ``node`` runs, each with a word for it."""
        name, module = callee(node), self._graph.module
        function = module.graphs.get(name) if module is not None and name is not None else None
        called = [] if function is None else [(one_line(function.name), function.block)]
        return [*(inner_blocks(node) if node.blocks or node.attributes else ()), *called]

    def _calls(self) -> dict[Block, list[Node]]:
        """The nodes that call each function."""
        found: dict[Block, list[Node]] = {}
        for node in self.node_ids:
            if node.kind == CALL:
                for _, block in self._inner(node):
                    found.setdefault(block, []).append(node)
        return found

    def _sources(self, node: Node, depth: int = 0) -> list[str]:
        """Names of the model's nodes that ``node`` stands for; in functions, as `inlined` names them."""
        block = node.block
        while block is not None and block.node is not None:
            block = block.node.block
        callers = self._callers.get(block, ()) if block is not None and depth < MOST_CALLS else ()
        outer = [name for call in callers for name in self._sources(call, depth + 1)][:MOST_NAMES]
        own = sources(node)
        return [f"{name}/{inner}" for name in outer for inner in own][:MOST_NAMES] + outer if outer and own else own

    def _node(self, node: Node) -> Data:
        attributes = [f"{one_line(name)} = {_short(value)}" for name, value in node.attributes.items()]
        return {
            "kind": node.kind,
            "name": one_line(node.name),
            "in": [self.value_ids[value] for value in node.inputs if value in self.value_ids],
            "out": [self.value_ids[value] for value in node.outputs],
            "from": [one_line(name) for name in self._sources(node)],
            "attributes": attributes,
            "scopes": [[word, self._scopes[block]] for word, block in self._inner(node)],
            "constant": node.kind == CONSTANT,
        }

    def _value(self, value: Value) -> list[Any]:
        return [
            one_line(value.name),
            one_line(str(value.type)),
            self.node_ids.get(value.node, -1) if value.node else -1,
        ]

    def _scope(self, block: Block) -> Data:
        scope = scope_of(block)
        boxes = [box_of(item, block) for item in scope.items]
        placed = lay_out([box.size for box in boxes], [(a, b) for a, b, _ in scope.edges])
        items: list[list[Any]] = []
        for item, box, x, y in zip(scope.items, boxes, placed.x, placed.y):
            is_value = isinstance(item, Value)
            kind = "value" if is_value else "return" if item.is_return else "node"
            number = self.value_ids[item] if is_value else self.node_ids.get(item, self._scopes[block])
            items.append([kind, number, box.sort, round(x), round(y), *map(round, box.size), box.shown])
        bends = [[round(x), round(y)] for x, y in zip(placed.x[len(items) :], placed.y[len(items) :])]
        edges = [[a, b, self.value_ids[v], r[1:-1]] for (a, b, v), r in zip(scope.edges, placed.routes)]
        size = [round(placed.width), round(placed.height)]
        return {"items": items, "bends": bends, "layers": placed.layers, "edges": edges, "size": size}

    def _alias(self, db: AliasDb) -> Data:
        """Alias sets, each once; of each value its set, those who write it, and why it is where it is."""
        sets: dict[LocationSet, int] = {}
        texts: dict[str, int] = {}
        listed: list[list[int]] = []
        values = [value for value in db.values_in_order() if value in self.value_ids]
        set_of: list[int] = [-1] * len(self.value_ids)
        for value in values:
            found = db.location_set(value)
            if found not in sets:
                sets[found] = len(sets)
                names = sorted(one_line(str(location)) for location in db.locations(value))
                listed.append([texts.setdefault(name, len(texts)) for name in names[:MOST_LOCATIONS]])
            set_of[self.value_ids[value]] = sets[found]
        shared = self._sharing(values, listed, set_of)
        way = ways(db, MOST_WHYS)
        whys = {self.value_ids[v]: [one_line(text) for text in way(v)] for v in shared[:MOST_REASONED]}
        writers: dict[int, list[int]] = {}
        for value in values:
            if db.has_writers(value):
                nodes = [self.node_ids[node] for node in db.writers(value) if node in self.node_ids]
                writers[self.value_ids[value]] = nodes[:MOST_WRITERS]
        return {"locations": list(texts), "sets": listed, "of": set_of, "writers": writers, "why": whys}

    def _sharing(self, values: Sequence[Value], listed: list[list[int]], set_of: list[int]) -> list[Value]:
        """The values at a location where another one may be, too."""
        users: dict[int, int] = {}
        for value in values:
            for location in listed[set_of[self.value_ids[value]]]:
                users[location] = users.get(location, 0) + 1
        return [v for v in values if any(users[x] > 1 for x in listed[set_of[self.value_ids[v]]])]


def _short(value: Any) -> str:
    """An attribute in a few words."""
    if isinstance(value, Graph):
        return "a graph"
    if isinstance(value, list | tuple):
        return cut(str(value[:20]), 80)  # pyright: ignore[reportUnknownArgumentType]
    return cut(str(value), 80) if isinstance(value, str | int | float | bool) else type(value).__name__
