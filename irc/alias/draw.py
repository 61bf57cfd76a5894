"""Drawing an alias analysis: as text, as a dot graph, as a networkx graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.alias.facts import Element, Kind, Location
from irc.alias.incremental import holds
from irc.alias.location_sets import EMPTY, LocationSet, contains, intersects, members
from irc.ir.value import Value
from irc.support.formatting import printable

if TYPE_CHECKING:
    import networkx as nx

    from irc.alias.db import AliasDb


_NAMED = 20
"""How many of the locations that a value may be, and of the values that share nothing, the text names."""


class Edge(NamedTuple):
    """``kind`` is ``denotes`` (from value to location), ``holds`` (between locations) or ``writes`` (from node)."""

    source: str
    target: str
    kind: str


class Drawing(NamedTuple):
    """Nodes by key, with what is written on them and their sort, and the edges between them."""

    nodes: dict[str, tuple[str, str]]
    edges: list[Edge]


def drawing(db: AliasDb) -> Drawing:
    """Values, the locations they denote, what these hold, and the nodes that write them.

    Values that only denote memory of their own which nothing else shares are left out.
    """
    nodes: dict[str, tuple[str, str]] = {}
    edges: list[Edge] = []
    shared = _shared_values(db)
    pending: list[Element] = []
    for value in shared:
        nodes[f"%{value.name}"] = (f"%{value.name} : {value.type}", "value")
        for x in sorted(members(db.location_set(value))):
            edges.append(Edge(f"%{value.name}", _key(x), "denotes"))
            pending.append(x)
    for node in db.writing_nodes():
        key = f"node {len(nodes)}"
        nodes[key] = (repr(node), "node")
        for x in sorted(members(db.write_set(node))):
            edges.append(Edge(key, _key(x), "writes"))
            pending.append(x)
    seen: set[Element] = set()
    while pending:
        x = pending.pop()
        if x in seen:
            continue
        seen.add(x)
        nodes[_key(x)] = (str(db.describe(x)), "location")
        for held in sorted(members(db.held_by(x))):
            edges.append(Edge(_key(x), _key(held), "holds"))
            pending.append(held)
    return Drawing(nodes, edges)


def to_text(db: AliasDb) -> str:
    """What each value denotes and holds, and whether that is written; the writes of nodes; all other values."""
    lines: list[str] = []
    shared = _shared_values(db)
    names = _Names(db)
    first: dict[LocationSet, Value] = {}
    for value in shared:
        locations = db.location_set(value)
        like = first.setdefault(locations, value)
        where = (
            names.of(locations) if like is value or not names.are_cut(locations) else f"all that %{like.name} may be"
        )
        written = "  (written)" if db.has_writers(value) else ""
        lines.append(f"%{value.name} : {value.type}  ->  {where}{written}")
        held = names.held(locations)
        if held:
            lines.append(f"    holds {held}")
    for node in db.writing_nodes():
        lines.append(f"{node!r}  writes  {names.of(db.write_set(node))}")
    told = set(shared)
    alone = [f"%{v.name}" for v in db.values_in_order() if v not in told and members(db.location_set(v))]
    if alone:
        more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
        lines.append(f"memory of its own, which nothing shares or writes:  {', '.join(alone[:_NAMED])}{more}")
    return "\n".join(lines)


def to_dot(db: AliasDb) -> str:
    """The drawing in Graphviz's language."""
    d = drawing(db)
    shapes = {"value": "ellipse", "location": "box", "node": "plaintext"}
    styles = {"denotes": "solid", "holds": "dashed", "writes": "bold"}
    numbers = {key: f"n{i}" for i, key in enumerate(d.nodes)}
    lines = ["digraph alias {", "  rankdir=LR;"]
    for key, (label, sort) in d.nodes.items():
        lines.append(f"  {numbers[key]} [label={_quoted(label)}, shape={shapes[sort]}];")
    for edge in d.edges:
        color = ", color=red" if edge.kind == "writes" else ""
        style = styles[edge.kind]
        lines.append(f"  {numbers[edge.source]} -> {numbers[edge.target]} [style={style}{color}];")
    return "\n".join([*lines, "}"])


def to_networkx(db: AliasDb) -> nx.MultiDiGraph[Any]:
    """The drawing as a networkx graph; nodes have ``label`` and ``sort``, edges ``kind``."""
    import networkx  # slow to import

    d = drawing(db)
    graph: nx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    for key, (label, sort) in d.nodes.items():
        graph.add_node(key, label=label, sort=sort)
    for edge in d.edges:
        graph.add_edge(edge.source, edge.target, kind=edge.kind)
    return graph


class _Names:
    """Texts for sets of locations, each made once; only the first locations of a large set are named."""

    def __init__(self, db: AliasDb) -> None:
        self._db = db
        self._texts: dict[LocationSet, str] = {}
        self._held: dict[LocationSet, str] = {}
        self._cut: set[LocationSet] = set()
        self._given: dict[Element, list[Value]] = {}
        """Unknown memory -> the inputs that may be it."""
        for value in db.graph.inputs:
            for x in members(db.location_set(value)):
                if db.is_unknown(x):
                    self._given.setdefault(x, []).append(value)
        self._inputs: dict[tuple[Element, ...], list[Value]] = {}

    def of(self, locations: LocationSet) -> str:
        """The names of ``locations`` and of the inputs that may be at the unknown ones among them."""
        found = self._texts.get(locations)
        if found is None:
            unknown = tuple(x for x in self._given if contains(locations, x))
            if unknown not in self._inputs:
                self._inputs[unknown] = list(dict.fromkeys(value for x in unknown for value in self._given[x]))
            inputs = self._inputs[unknown]
            found = self._texts[locations] = self._text(locations, inputs)
            if _size(locations) + len(inputs) > _NAMED:
                self._cut.add(locations)
        return found

    def are_cut(self, locations: LocationSet) -> bool:
        """Whether there are more locations and inputs than the text of ``of`` names."""
        self.of(locations)
        return locations in self._cut

    def held(self, locations: LocationSet) -> str:
        """What the objects at ``locations`` hold directly; empty if they hold nothing."""
        found = self._held.get(locations)
        if found is None:
            held: dict[Element, None] = {}
            if self._db.facts.objects_made:  # each place is looked at, of which very many values may be any
                held = {y: None for x in members(locations) for y in members(self._db.held_by(x))}
            found = self._held[locations] = self._text(held, ())
        return found

    def _text(self, locations: LocationSet | dict[Element, None], inputs: Sequence[Value]) -> str:
        size = _size(locations) + len(inputs)
        places = locations if isinstance(locations, dict) else members(locations)
        all_of = chain(map(self._db.describe, places), (Location(Kind.BORROWED, v, v.type) for v in inputs))
        more = f" and {size - _NAMED} more" if size > _NAMED else ""
        return ", ".join(sorted(map(str, set(islice(all_of, _NAMED))))) + more


def _size(locations: LocationSet | dict[Element, None]) -> int:
    return 1 if isinstance(locations, int) else len(locations)


def _shared_values(db: AliasDb) -> list[Value]:
    """The values that share, hold or have written memory, in the graph's order."""
    values = db.values_in_order()
    # Sets may be as many as values, each of as many locations: only their parts are looked at, not each location.
    denoted = Counter(map(db.location_set, values))
    seen: LocationSet = EMPTY
    shared: LocationSet = EMPTY
    for locations, times in denoted.items():
        again = locations if times > 1 else db.difference(locations, db.difference(locations, seen))
        shared, seen = db.union(shared, again), db.union(seen, locations)
    return [v for v in values if db.has_writers(v) or intersects(shared, db.location_set(v)) or _holds_any(db, v)]


def _holds_any(db: AliasDb, value: Value) -> bool:
    """Whether objects that ``value`` may denote hold anything."""
    return holds(value) and any(members(db.held_by(x)) for x in members(db.location_set(value)))


def _key(location: Element) -> str:
    return f"location {location}"


def _quoted(text: str) -> str:
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
