"""Explaining and drawing an alias analysis: why values may share memory, and what shares with what."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.alias import facts as f
from irc.alias.facts import Element, Facts, Kind, Location
from irc.alias.incremental import holds
from irc.alias.location_sets import EMPTY, LocationSet, contains, intersects, members
from irc.alias.regions import apart, part_of
from irc.ir.node import Node, Value
from irc.ops import resolve
from irc.support.formatting import printable

if TYPE_CHECKING:
    import networkx as nx

    from irc.alias.db import AliasDb


class Step(NamedTuple):
    """What a fact is of: ``start`` points to ``end``, on the way to the location ``to``."""

    start: Element
    end: Element
    to: Element


class Fact(NamedTuple):
    """One step: ``subject`` may be ``object``, because of ``node``.

    Attributes:
        subject: a value, what a container holds, or unknown memory.
        object: what ``subject`` may be.
        node: the node that makes it so, if one does.
        step: the same step as elements of the analysis, for callers that need more than the text; None for a value
            that is memory of its own.
    """

    subject: str
    object: str
    node: Node | None = None
    step: Step | None = None

    def __str__(self) -> str:
        because = f"    by {self.node!r}" if self.node is not None else ""
        return f"{self.subject} may be {self.object}{because}"


def why(db: AliasDb, a: Value, b: Value) -> list[Fact]:
    """The facts from ``a`` to a location that ``b`` may denote, then those from ``b``; empty if none.

    If only something that they hold is shared, the path leads through the containers. Of two parts of one tensor, the
    last facts tell where they lie.
    """
    found = meeting(db, a, b)
    if found is None or apart(db, a, b) is not None:
        return []
    parts = [(value, part_of(db, value)) for value in dict.fromkeys((a, b))]
    is_one = len({part and part.base for _, part in parts}) == 1
    lying = [Fact(f"%{value.name}", str(part)) for value, part in parts if part is not None and is_one]
    return [*found.from_a, *found.from_b, *lying]


def why_written(db: AliasDb, values: Iterable[Value], node: Node) -> list[Fact]:
    """The facts that let ``node``, or one inside it, write memory of ``values``; empty if it does not."""
    for value in values:
        for writer in db.writers(value):
            if writer is node or node in writer.around():
                for written in writer.inputs:
                    if intersects(db.write_set(writer), db.reach_set(written)) and (found := why(db, value, written)):
                        return [*dict.fromkeys(found)]  # both may be one value
    return []


def ways(db: AliasDb, most: int) -> Callable[[Value], list[str]]:
    """A function that explains why a value may be at its locations: the facts that lead there."""
    path = Paths(db)  # once for all values

    def of(value: Value) -> list[str]:
        tree = path.search(path.raw.elements[value], inside=False)
        places = [x for x in islice(members(db.location_set(value)), most) if x in tree]
        return list(dict.fromkeys(str(fact) for x in places for fact in path.facts(value, tree, x)))

    return of


class Meeting(NamedTuple):
    """The facts that lead from each of two values to ``location``, which both may be or hold."""

    from_a: list[Fact]
    from_b: list[Fact]
    location: str


def meeting(db: AliasDb, a: Value, b: Value) -> Meeting | None:
    """The nearest location that both ``a`` and ``b`` may denote or hold, and the facts; None if none."""
    path = Paths(db)
    for reach in (db.location_set, db.reach_set):
        common = _common(reach(a), reach(b))
        if common:
            from_a, from_b = path.tree(a), path.tree(b)
            nearest = min(common, key=lambda x: (from_a[x].steps + from_b[x].steps, db.is_unknown(x), x))
            facts = path.facts(a, from_a, nearest), path.facts(b, from_b, nearest)
            return Meeting(*facts, str(db.describe(nearest)))
    return None


def _common(a: LocationSet, b: LocationSet) -> list[Element]:
    """The locations of both sets."""
    return [x for x in members(a) if contains(b, x)]


class Reached(NamedTuple):
    """How an element is reached: from which one, and in how many steps."""

    before: Element
    steps: int


class Paths:
    """Shortest paths in the facts, told in words.

    Attributes:
        value_of: element -> the value that it is of.
        holder_of: element -> the location of which it is what a field holds.
    """

    def __init__(self, db: AliasDb) -> None:
        self.db = db
        self.raw: Facts = db.facts
        self.value_of = {element: value for value, element in self.raw.elements.items() if element != f.NOTHING}
        self.holder_of = {
            element: location for location, fields in self.raw.contents.items() for element in fields.values()
        }

    def facts(self, value: Value, tree: dict[Element, Reached], location: Element) -> list[Fact]:
        """From ``value``, whose `tree` is given, to ``location``."""
        start = self.raw.elements[value]
        path = [location]
        while path[-1] != start:
            path.append(tree[path[-1]].before)
        path.reverse()
        named = [e for e in path if e in (start, location) or self._is_named(e)]
        met = [next(e for e in named[i:] if e in self.raw.sites) for i in range(1, len(named))]
        found = [self._fact(x, y, object) for (x, y), object in zip(pairwise(named), met)]
        if len(named) == 1:
            found.append(Fact(f"%{value.name}", str(self.db.describe(location)), value.node))
        return found

    def tree(self, value: Value) -> dict[Element, Reached]:
        """All that ``value`` may be or hold, and the shortest ways there."""
        return self.search(self.raw.elements[value], inside=True)

    def search(self, start: Element, inside: bool) -> dict[Element, Reached]:
        """The elements reachable from ``start``, inside containers too if ``inside``, with the shortest paths."""
        found: dict[Element, Reached] = {start: Reached(start, 0)}
        queue = deque([start])
        while queue:
            e = queue.popleft()
            further = self.raw.targets_of(e)
            if inside and e in self.raw.sites:  # on into what it holds
                further = [*further, self.db.contents_element(e)]
            for target in further:
                if target not in found:
                    found[target] = Reached(e, found[e].steps + 1)
                    queue.append(target)
        return found

    def _is_named(self, e: Element) -> bool:
        return e in self.value_of or e in self.raw.sites or e in self.holder_of or e in self.raw.unknown_atoms

    def _name(self, e: Element) -> str:
        if e in self.value_of:
            return f"%{self.value_of[e].name}"
        if e in self.holder_of:
            return f"what {self.db.describe(self.holder_of[e])} holds"
        if e in self.raw.unknown_atoms:
            return f"any unknown {self.raw.unknown_atoms[e]}"
        return str(self.db.describe(e))

    def _fact(self, x: Element, y: Element, object: Element) -> Fact:
        """That ``x`` may be ``y``, on the way to the location ``object``."""
        subject, node, step = self._name(x), None, Step(x, y, object)
        if self.is_held(x, y):
            subject = f"what {subject} holds" if self.db.is_unknown(x) else subject  # that has no element
            maker = self.maker(self.holder_of.get(x, x))
            row = None if maker is None else resolve(maker)
            made = row is not None and any(a.alias for a in row.returns)  # with what it holds: nobody else stored that
            node = maker if made else self._storing(self.value_of.get(y))
        elif x in self.value_of and not (x in self.raw.unknown_atoms and y in self.raw.sites):
            node = self.value_of[x].definer
        return Fact(subject, self._name(y), node, step)

    def is_held(self, x: Element, y: Element) -> bool:
        """Whether a step from ``x`` to ``y`` leads from a container to what it holds."""
        if x in self.holder_of or x not in self.raw.sites:
            return x in self.holder_of
        held = self.db.contents_element(x)  # of a union, it stands for what its members may be
        return y == held or (not self._is_named(held) and y in self.raw.targets_of(held))

    def maker(self, location: Element) -> Node | None:
        """The node that allocates ``location``."""
        key = self.raw.site(location).key
        return key.node if isinstance(key, Value) else None

    def _storing(self, value: Value | None) -> Node | None:
        """The node that stored ``value``, if one of its users is such a node."""
        if value is None:
            return None
        users = [user for user in value.users if not user.is_return]
        writers = [user for user in users if self.db.is_mutable(user)]
        makers = [user for user in users if user.kind.endswith("Construct")]
        return next(iter([*writers, *makers]), None)


# -- drawing: as text, as a dot graph, as a networkx graph ---------------------


_NAMED = 20
"""How many of the locations that a value may be, and of the values that share nothing, the text names."""


class Edge(NamedTuple):
    """An edge: ``denotes`` (value, location), ``holds`` (two locations) or ``writes`` (node, location)."""

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
    """The analysis as text: what each value denotes and holds, whether that is written, and nodes' writes."""
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
