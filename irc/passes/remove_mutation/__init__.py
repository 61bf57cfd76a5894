"""In-place operators become functional ones.

``%y = aten::add_(%x, %z)`` becomes ``%y = aten::add(%x, %z)``, and whoever sees
%x, or a view of it, after the write uses %y, or that view of it. This is SSA
construction with memory as the variable: ``versions.py`` says which contents
are seen where, ``family.py`` who shows which part of the memory, ``forms.py``
what stands for an operator and how a part is put into the whole, and
``rewrite.py`` does it. Branches and loops pass changed memory on as values.
Where nobody looks at the memory again, ``overwritten.py`` needs no certainty.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from irc.alias import Kind
from irc.alias.sets import members
from irc.ir import Graph, Node, TensorType, Value
from irc.passes.growable import concatenate_instead
from irc.passes.holders import Holders
from irc.passes.registry import register
from irc.passes.remove_mutation.family import Family, Refused
from irc.passes.remove_mutation.overwritten import undo
from irc.passes.remove_mutation.rewrite import rewrite

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.passes.base import PassContext

_NO_MEMORY = frozenset({Kind.RANDOM, Kind.WORLD})


@register
@dataclass(frozen=True)
class RemoveMutation:
    """Replace in-place operators by functional ones, where it is certain what they write and who sees it.

    Writes stay, with a note, if they are to memory that the graph did not
    allocate (inputs, constants, unknown memory), if something that only *may*
    share the memory is used before and after, or if an operator has no
    functional form.
    """

    name: ClassVar[str] = "remove-mutation"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Go through all memory that is written, until nothing more can be done."""
        changed = concatenate_instead(graph, ctx)
        refused: dict[Node, str] = {}
        while _round(graph, ctx, refused) or _undo(graph, ctx, refused):
            changed = True
        for node, reason in refused.items():
            ctx.note(node, f"still writes: {reason}")
        return changed


def _round(graph: Graph, ctx: PassContext, refused: dict[Node, str]) -> bool:
    db = ctx.alias_db(graph)
    refused.clear()
    removed = 0
    holders = Holders(db)
    for location, writers in _writers(db).items():
        try:
            root = _root(db, location)
            family = Family(root, db, holders.of(location), writers)
        except Refused as reason:
            refused.update((node, str(reason)) for node in writers if node not in refused)
            continue
        if not ctx.allow(writers[0]):
            break
        rewrite(family)
        removed += len(writers)
    if removed:
        ctx.count("removed", removed)
        db.refresh()  # what shares with what has changed wherever the memory was seen
    return removed > 0


def _undo(graph: Graph, ctx: PassContext, refused: dict[Node, str]) -> bool:
    """Go through what is refused; return whether anything could be done."""
    undone = undo(refused, graph, ctx)
    if undone:
        ctx.count("removed", undone)
    return undone > 0


def _writers(db: AliasDb) -> dict[int, list[Node]]:
    """Location -> the nodes that write it themselves."""
    found: dict[int, list[Node]] = {}
    for node in db.writing_nodes():
        for location in members(db.write_set(node)):
            found.setdefault(location, []).append(node)
    return {x: nodes for x, nodes in found.items() if db.describe(x).kind not in _NO_MEMORY}


def _root(db: AliasDb, location: int) -> Value:
    """The tensor that is allocated at ``location``, and is certainly there."""
    site = db.describe(location)
    if site.kind is not Kind.TEMPORARY:
        raise Refused(f"it writes memory that the graph did not allocate ({site.kind.value})")
    root = site.site
    if not isinstance(root, Value) or root.node is None or site.path or not isinstance(root.type, TensorType):
        raise Refused("it writes something that is no tensor made by a node of this graph")
    if db.location_set(root) != location:
        raise Refused(f"%{root.name} may be other memory as well")
    return root
