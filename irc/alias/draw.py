"""Drawing an alias analysis: as text, as a dot graph, as a networkx graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from irc.alias.facts import Element
from irc.alias.locations import Location
from irc.alias.sets import members
from irc.ir.value import Value
from irc.wording import printable

if TYPE_CHECKING:
    import networkx as nx

    from irc.alias.queries import Queries


_NAMED = 20
"""How many of the values that share nothing the text names."""


class Edge(NamedTuple):
    """``kind`` is ``denotes`` (from value to location), ``holds`` (between locations) or ``writes`` (from node)."""

    source: str
    target: str
    kind: str


class Drawing(NamedTuple):
    """Nodes by key, with what is written on them and their sort, and the edges between them."""

    nodes: dict[str, tuple[str, str]]
    edges: list[Edge]


def drawing(db: Queries) -> Drawing:
    """Values, the locations they denote, what these hold, and who writes them.

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


def to_text(db: Queries) -> str:
    """One line a value: what it denotes and holds, and whether that is written; then who writes what, and the rest."""
    lines: list[str] = []
    shared = _shared_values(db)
    for value in shared:
        where = _sorted(db.locations(value))
        written = "  (written)" if db.has_writers(value) else ""
        lines.append(f"%{value.name} : {value.type}  ->  {', '.join(where)}{written}")
        held = {y for x in members(db.location_set(value)) for y in members(db.held_by(x))}
        if held:
            lines.append(f"    holds {', '.join(_sorted(frozenset(map(db.describe, held))))}")
    for node in db.writing_nodes():
        lines.append(f"{node!r}  writes  {', '.join(_sorted(db.writes(node)))}")
    told = set(shared)
    alone = [f"%{v.name}" for v in db.values_in_order() if v not in told and members(db.location_set(v))]
    if alone:
        more = f" and {len(alone) - _NAMED} more" if len(alone) > _NAMED else ""
        lines.append(f"memory of its own, which nothing shares or writes:  {', '.join(alone[:_NAMED])}{more}")
    return "\n".join(lines)


def to_dot(db: Queries) -> str:
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


def to_networkx(db: Queries) -> nx.MultiDiGraph[Any]:
    """The drawing as a networkx graph; nodes have ``label`` and ``sort``, edges ``kind``."""
    import networkx  # slow to import

    d = drawing(db)
    graph: nx.MultiDiGraph[Any] = networkx.MultiDiGraph()
    for key, (label, sort) in d.nodes.items():
        graph.add_node(key, label=label, sort=sort)
    for edge in d.edges:
        graph.add_edge(edge.source, edge.target, kind=edge.kind)
    return graph


def _shared_values(db: Queries) -> list[Value]:
    """The values whose memory is not theirs alone, or holds something, or is written; in the graph's order."""
    values = db.values_in_order()
    count: dict[Element, int] = {}
    for value in values:
        for x in members(db.location_set(value)):
            count[x] = count.get(x, 0) + 1
    return [
        v
        for v in values
        if db.has_writers(v) or any(count[x] > 1 or members(db.held_by(x)) for x in members(db.location_set(v)))
    ]


def _key(location: Element) -> str:
    return f"location {location}"


def _sorted(locations: frozenset[Location]) -> list[str]:
    return sorted(map(str, locations))


def _quoted(text: str) -> str:
    return '"' + printable(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
