"""Concat that extends what a run is given and gives back: KV caches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from irc.alias.sets import intersects
from irc.ir.types import DType, TensorType
from irc.passes.registry import register
from irc.passes.walking import is_function

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from irc.ir import Block, Graph, Node, Value
    from irc.passes.base import PassContext
    from irc.passes.rewriter import Rewriter

APPEND = "irc::append_"
CONCAT = "onnx::Concat"

_BRANCH = "prim::If"


@register
@dataclass(frozen=True)
class Growable:
    """Replace ``onnx::Concat(%cache, %new)`` by ``irc::append_``, which leaves the cache where it is if it can.

    That pays where the result comes back as an operand: where something that
    the graph is given, or that a loop carries, is extended and leaves the
    graph, or the loop's body, again.

    `irc::append_` changes nothing that anybody sees; whether there is reserve
    that it may use, only the run knows. All that is new is that its result
    may share with the operand. So it is legal where nothing else writes into
    either, and not in functions, whose callers might. Later passes then know
    of the sharing: this one comes before those that overwrite.
    """

    name: ClassVar[str] = "growable"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Look at every Concat once."""
        nodes = _coming_back(graph, ctx)
        rewriter = ctx.rewriter(graph)
        writers = [writer for writer in rewriter.db.writing_nodes() if writer.kind != APPEND] if nodes else []
        growing: list[Node] = []
        for node in nodes:
            shared = node.inputs[0], node.output
            if is_function(graph):
                ctx.note(node, "copies: who calls the function might write into what it is given or gives")
            elif any(rewriter.db.writes_to_alias(writer, shared) for writer in writers):
                ctx.note(node, f"copies: %{node.inputs[0].name} or the result is written in place")
            elif ctx.allow(node):
                ctx.count("appends")
                growing.append(node)
        # All at once: what one of them shares with, nothing writes, so that the others may share with it too.
        _replace(growing, APPEND, rewriter, lambda node: [node.inputs[0], _joined(node, rewriter)])
        return bool(growing)


def concatenate_instead(graph: Graph, ctx: PassContext) -> bool:
    """Replace every ``irc::append_`` by Concat, which means the same; return whether there was one."""
    # The last first, so that no other append's result changes with it.
    appends = [node for node in reversed([*graph.walk()]) if node.kind == APPEND and ctx.allow(node)]
    _replace(appends, CONCAT, ctx.rewriter(graph), lambda node: node.inputs)
    if appends:
        ctx.count("concatenated", len(appends))
    return bool(appends)


def _may_grow(node: Node) -> bool:
    if node.kind != CONCAT or len(node.inputs) < 2 or len(node.outputs) != 1 or "axis" not in node.attributes:
        return False
    type = node.inputs[0].type
    return not (isinstance(type, TensorType) and type.dtype is DType.STRING)


def _coming_back(graph: Graph, ctx: PassContext) -> list[Node]:
    """Every Concat that extends what the graph, or the body of a loop around, is given, and that returns the result.

    Between, it may be extended by others: each chain of them is walked once in either direction.
    """
    extending = [node for node in graph.walk() if _extends(node)]
    if not any(node.kind == CONCAT for node in extending):
        return []
    db = ctx.rewriter(graph).db
    loops = dict.fromkeys(block for node in extending for block in _repeated_around(node))
    given = {block: db.location_set(block.params) for block in loops}
    returned = {block: db.location_set(block.returns) for block in loops}
    started_with: dict[Node, Value] = {}  # definitions come before uses
    for node in extending:
        before = node.inputs[0].node
        started_with[node] = node.inputs[0] if before is None else started_with.get(before, node.inputs[0])
    returned_by: dict[Node, set[Block]] = {}
    for node in reversed(extending):
        memory = db.location_set(node.output)
        blocks = {block for block in _repeated_around(node) if intersects(memory, returned[block])}
        for user in node.output.users:
            if user in returned_by and user.inputs[0] is node.output:
                blocks |= returned_by[user]
        returned_by[node] = blocks
    return [
        node
        for node in extending
        if node.kind == CONCAT
        and any(
            block in returned_by[node] and intersects(db.location_set(started_with[node]), given[block])
            for block in _repeated_around(node)
        )
    ]


def _repeated_around(node: Node) -> Iterator[Block]:
    """The blocks around ``node`` that run again on what they return, if only in a later run: all but branches."""
    block = node.block
    while block is not None:
        if block.node is None or block.node.kind != _BRANCH:
            yield block
        block = block.node.block if block.node is not None else None


def _extends(node: Node) -> bool:
    return node.kind == APPEND or _may_grow(node)


def _joined(node: Node, rewriter: Rewriter) -> Value:
    """What the Concat ``node`` puts behind its first operand, put together by one of its own if it is several."""
    parts = node.inputs[1:]
    if len(parts) == 1:
        return parts[0]
    both = node.output.type
    return rewriter.op(
        CONCAT,
        *parts,
        before=node,
        type=TensorType(both.dtype if isinstance(both, TensorType) else None),
        attributes=dict(node.attributes),
        version=node.version,
    )


def _replace(nodes: Sequence[Node], kind: str, rewriter: Rewriter, operands: Callable[[Node], Iterable[Value]]) -> None:
    """Put nodes of ``kind`` on ``operands`` in the places of ``nodes``, all else being equal."""
    if not nodes:
        return
    instead: dict[Value, Value] = {}
    with rewriter.db.rewrite():
        for node in nodes:
            other = node.graph.create(
                kind, operands(node), [node.output.type], attributes=dict(node.attributes), version=node.version
            )
            other.name, other.scope = node.name, node.scope
            rewriter.insert(other, before=node)
            instead[node.output] = other.output
        for user in dict.fromkeys(user for old in instead for user in old.iter_users()):
            rewriter.replace_inputs(user, instead)  # once, even if it is a graph's end with thousands of results
        for node, (old, new) in zip(nodes, instead.items(), strict=True):
            rewriter.replace(old, new)
            new.name = old.name
            rewriter.erase(node)
