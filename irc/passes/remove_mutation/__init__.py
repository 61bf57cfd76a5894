"""In-place operators become functional ones.

``%y = aten::add_(%x, %z)`` becomes ``%y = aten::add(%x, %z)``, and whatever uses
%x, or a view of it, after the write uses %y, or that view of it. This is SSA
construction with memory as the variable. ``family.py`` finds which contents are seen
where, and which value shows which part of the memory; ``views.py`` has the functional
form of each operator, how a part is put into the whole, and what values are made of;
``rewrite.py`` changes the graph. Branches and loops pass changed memory on as values.
Where the memory is not used again, the rewrite needs no certainty.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from itertools import islice
from typing import ClassVar

from irc.alias import AliasDb, Kind
from irc.alias.location_sets import EMPTY, LocationSet, contains, members
from irc.ir import Graph, Node, TensorType, Value
from irc.passes.base import PassContext, Refused
from irc.passes.in_place import ReverseAlias
from irc.passes.kv_cache import concatenate_instead
from irc.passes.layouts import Contiguity, Layouts
from irc.passes.registry import register
from irc.passes.remove_mutation.family import Family, check_form, only_may_share
from irc.passes.remove_mutation.rewrite import Returned, Rewrite, undo, use_elements
from irc.passes.remove_mutation.views import Origins

_NO_MEMORY = frozenset({Kind.RANDOM, Kind.WORLD})


@register
@dataclass(frozen=True)
class RemoveMutation:
    """Replace in-place operators by functional ones where what they write, and who sees it, is certain.

    Writes stay, with a note, if they are to memory that the graph did not
    allocate (inputs, constants, unknown memory), if something that only *may*
    share the memory is used before and after, if an operator has no
    functional form, or if chains of views would be taken again so often that
    the graph grew by far more than it has uses of the memory.
    """

    name: ClassVar[str] = "remove-mutation"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Go through all memory that is written, until nothing more can be done."""
        changed = concatenate_instead(graph, ctx)
        changed |= use_elements(graph, ctx)
        refused: dict[Node, str] = {}
        while _round(graph, ctx, refused) or undo(refused, graph, ctx):
            changed = True
        for node in graph.walk() if refused else ():
            if node in refused:
                ctx.note(node, f"still writes: {refused[node]}")
        return changed


def _round(graph: Graph, ctx: PassContext, refused: dict[Node, str]) -> bool:
    db = ctx.alias_db(graph)
    db.tighten()  # what surely is in one place is not to look as if it were in several
    refused.clear()
    removed = 0
    written = _Written(db)
    refused.update((node, written.why_not(node)) for node in written.unsure)
    reverse_alias, origins = ReverseAlias(db, db.values_in_order()), Origins()
    layouts, contiguity = Layouts(graph, db, ctx.memory), Contiguity(db.has_metadata_writers)
    returned: Returned = {}
    later: LocationSet = EMPTY  # memory that lists hold which are created: the analysis does not know of these yet
    for location, writers in written.places.items():
        if contains(later, location):
            continue
        try:
            root = _root(db, location)
            written.check(location, root)
            family = Family(root, db, reverse_alias, origins, writers, layouts, contiguity)
        except Refused as reason:
            refused.update((node, str(reason)) for node in writers)
            continue
        if not ctx.allow(writers[0]):
            break
        Rewrite(family).run(returned)
        later = db.union(later, db.reach_set(family.beside))
        removed += len(writers)
    for end, values in returned.items():
        end.set_inputs([*end.inputs, *values])
    ctx.count("removed", removed)
    if removed:
        db.refresh()  # what shares with what has changed wherever the memory was seen
    return removed > 0


class _Written:
    """The memory that nodes write themselves.

    Attributes:
        places: location -> the nodes that write it and nothing else.
        unsure: the nodes that write several locations, or one of several. What they write is not certain, so they stay,
            and so do all writes to any of these locations.
    """

    def __init__(self, db: AliasDb) -> None:
        self._db = db
        self.places: dict[int, list[Node]] = {}
        self.unsure: list[Node] = []
        self._so_far: list[LocationSet] = []
        """What each of these and those before it may write."""
        for node in db.writing_nodes():
            first = self._memory(node, 2)  # listing thousands for each node would be quadratic
            if len(first) == 1:
                self.places.setdefault(first[0], []).append(node)
            elif first:
                before = self._so_far[-1] if self._so_far else EMPTY
                self.unsure.append(node)
                self._so_far.append(db.union(before, db.write_set(node)))

    def why_not(self, node: Node) -> str:
        """Why ``node``, which is unsure, stays."""
        (location,) = self._memory(node, 1)
        try:
            root = _root(self._db, location)
            check_form(node)
        except Refused as reason:
            return str(reason)
        return str(only_may_share(node, root))

    def check(self, location: int, root: Value) -> None:
        """Refused if an unsure node may write ``location``, which is the memory of ``root``."""
        if self._so_far and contains(self._so_far[-1], location):
            at = bisect_left(self._so_far, True, key=lambda places: contains(places, location))
            raise only_may_share(self.unsure[at], root)

    def _memory(self, node: Node, count: int) -> list[int]:
        """The first ``count`` locations that ``node`` writes, at most."""
        db = self._db
        places = (x for x in members(db.write_set(node)) if db.describe(x).kind not in _NO_MEMORY)
        return list(islice(places, count))


def _root(db: AliasDb, location: int) -> Value:
    """The tensor that is allocated at ``location``, and is certainly there."""
    site = db.describe(location)
    if site.kind is not Kind.TEMPORARY:
        raise Refused(f"it writes memory that the graph did not allocate ({site.kind.value})")
    root = site.site
    if not isinstance(root, Value) or root.node is None or site.path or not isinstance(root.type, TensorType):
        raise Refused("it writes something that is not a tensor made by a node of this graph")
    if db.location_set(root) != location:
        raise Refused(f"%{root.name} may be other memory as well")
    return root
