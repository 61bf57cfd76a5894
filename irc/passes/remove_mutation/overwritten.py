"""In-place operators whose operand is not used again: the inverse of the pass ``in-place``.

For such an operator it need not be certain what it writes. No value that may share the
operand's memory is used afterwards, so a result in memory of its own
is as good. The pass ``in-place`` itself decides whether that is so: if it would
make all of these operators again in the graph without them.
"""

from __future__ import annotations

from collections.abc import Iterable

from irc.ir import Graph, Node
from irc.ir.clone import counterpart
from irc.passes.base import PassContext
from irc.passes.in_place import InPlace
from irc.passes.layouts import Layouts
from irc.passes.remove_mutation.forms import functional_kind

_ROUNDS = 2
"""Those that are left of a first round had others beside them, so they are asked once more; then it would take long."""


def undo(nodes: Iterable[Node], graph: Graph, ctx: PassContext) -> int:
    """Make those of ``nodes`` functional that ``in-place`` could restore; return how many."""
    db = ctx.alias_db(graph)
    if db.declares_unknown():
        return 0  # unknown code may look, and copies of the graph do not say so
    layouts = Layouts(graph, db, ctx.memory)
    candidates = [
        node
        for node in nodes
        if len(node.outputs) == 1 and functional_kind(node) is not None and not layouts.is_seen([node.output])
    ]
    names = {node.output.name for node in candidates}
    for _ in range(_ROUNDS):
        again = _made_again(names, graph, ctx) if names else names
        if again == names:
            break
        names = again
    else:
        return 0
    if not names or not ctx.allow(candidates[0]):
        return 0
    _make_functional(names, graph)
    ctx.alias_db(graph).refresh()
    return len(names)


def _made_again(names: set[str], graph: Graph, ctx: PassContext) -> set[str]:
    """The results called ``names`` that ``in-place`` writes in place, as now, once all of them are functional."""
    copy = graph.copy()
    _make_functional(names, copy)
    InPlace().run(copy, ctx.trial(copy))
    return {name for name in names if _is_like(copy.value(name).node, graph.value(name).node)}


def _is_like(one: Node | None, other: Node | None) -> bool:
    if one is None or other is None or one.kind != other.kind:
        return False
    return [value.name for value in one.inputs] == [value.name for value in other.inputs]


def _make_functional(names: set[str], graph: Graph) -> None:
    writers = [node for node in graph.walk() if len(node.outputs) == 1 and node.output.name in names]
    for node in writers:
        kind = functional_kind(node)
        assert kind is not None
        plain = counterpart(node, kind, node.inputs, [node.output.type]).insert_before(node).output
        written = node.output
        written.replace_all_uses_with(plain)
        node.erase()
        plain.succeed(written)
