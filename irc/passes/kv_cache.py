"""Concat, and `torch.cat`, that extend an input of a run which also leaves it as an output: KV caches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from irc.alias import AliasDb
from irc.alias.explain import Fact, why_written
from irc.alias.location_sets import intersects
from irc.alias.regions import shown_by
from irc.ir import IF, Block, DType, Graph, Node, TensorType, Value, counterpart, describe
from irc.ops.axes import APPEND, CONCAT, Join, joined
from irc.passes.base import PassContext, name_of
from irc.passes.layouts import Layouts
from irc.passes.registry import register
from irc.passes.rewriter import Rewriter
from irc.support.remarks import COPIED, Reason, declare


@register
@dataclass(frozen=True)
class Growable:
    """Replace ``onnx::Concat(%cache, %new)`` by ``irc::append_``, which appends in place where it can.

    That pays where the result comes back as an operand: where something that
    the graph is given, or that a loop carries, is extended and leaves the
    graph, or the loop's body, again.

    `irc::append_` changes nothing that any other value shows; only the run
    knows whether there is reserve that it may use. The only difference is that its
    result may share memory with the operand. So the rewrite is legal where nothing else
    writes into either, and not in functions, whose callers might. Later passes must
    know of the sharing, so this pass comes before those that overwrite.

    `torch.cat` is Concat if all parts are known to have one element type
    and rank; otherwise it converts them, and leaves out empty vectors. Its result has
    no gaps, whereas a tensor with reserve has some: nothing may ask for strides.
    """

    name: ClassVar[str] = "growable"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Look at every Concat, and again once some are appends: others may extend their parts."""
        changed = False
        while self._extend(graph, ctx):
            changed = True
        return changed

    def _extend(self, graph: Graph, ctx: PassContext) -> bool:
        """Look at every Concat once; whether any has become an append."""
        nodes = _coming_back(graph, ctx)
        rewriter = ctx.rewriter(graph)
        writers = [writer for writer in rewriter.db.writing_nodes() if writer.kind != APPEND] if nodes else []
        growing: list[Node] = []
        layouts = Layouts(graph, rewriter.db, ctx.memory)
        for node in nodes:
            blocked = self._blocked(node, graph, rewriter.db, writers, layouts)
            if blocked is not None:
                reason, facts = blocked
                ctx.note(node, Reason(f"copies: {reason}", reason.blocker, reason.remedy), COPIED, facts)
            elif ctx.allow(node):
                ctx.count("appends")
                growing.append(node)
        # All at once: what one of them shares with, nothing writes, so that the others may share with it too.
        lists = [node.inputs[0].node for node in growing if node.kind != CONCAT]
        _replace(growing, APPEND, rewriter, lambda node: [_parts(node)[0], _others(node, rewriter)])
        for made in lists:
            if made is not None:
                rewriter.erase(made)
        return bool(growing)

    def _blocked(
        self, node: Node, graph: Graph, db: AliasDb, writers: Sequence[Node], layouts: Layouts
    ) -> tuple[Reason, list[Fact]] | None:
        """Why ``node`` may not become an append, with facts of the alias analysis; None if it may."""
        parts = _parts(node)
        first = parts[0]
        shared = first, node.output
        if node.kind != CONCAT and not _concatenates_alike(node):
            unknown = [part.name for part in parts if part.type.dtype is None or part.type.rank is None]
            text = "element types and ranks of what it concatenates are not known to be equal"
            return Reason(text, unknown[0] if unknown else "", declare(unknown) if unknown else None), []
        if graph.is_function:
            return Reason("the caller of the function may write into its arguments or results"), []
        writing = [writer for writer in writers if db.writes_to_alias(writer, shared)]
        if writing:
            text = f"%{first.name} or the result is written in place by {describe(writing[0])}"
            return Reason(text, name_of(writing[0])), why_written(db, shared, writing[0])
        if layouts.is_seen(shared):
            return Reason(f"strides of %{first.name} or of the result are observed", first.name), []
        return None


def concatenate_instead(graph: Graph, ctx: PassContext) -> bool:
    """Replace every ``irc::append_`` by Concat, which means the same; return whether there was one."""
    # The last first, so that no other append's result changes with it.
    appends = [node for node in reversed([*graph.walk()]) if node.kind == APPEND and ctx.allow(node)]
    _replace(appends, CONCAT, ctx.rewriter(graph), lambda node: node.inputs)
    ctx.count("concatenated", len(appends))
    return bool(appends)


def _concatenation(node: Node) -> Join:
    join = joined(node)
    assert join is not None, "this was asked before"
    return join


def _parts(node: Node) -> Sequence[Value]:
    return _concatenation(node).parts


def _may_grow(node: Node) -> bool:
    join = joined(node)
    if join is None or len(join.parts) < 2:
        return False
    return join.parts[0].type.dtype is not DType.STRING


def _replaces(node: Node, db: AliasDb) -> bool:
    """Whether the first and the last part are of one tensor, in which what is between is replaced."""
    first, last = (shown_by(db, _parts(node)[i]) for i in (0, -1))
    return first is not None and last is not None and first.part.base is last.part.base


def _concatenates_alike(node: Node) -> bool:
    """Whether torch's ``node`` means Concat: all tensors have one known element type and rank."""
    parts, axis = _concatenation(node)
    found = {(part.type.dtype, part.type.rank) for part in parts}
    dtype, rank = found.pop()
    return not found and dtype is not None and bool(rank) and -rank <= axis < rank


def _coming_back(graph: Graph, ctx: PassContext) -> list[Node]:
    """Each Concat that extends an input of the graph, or of a loop body around it, and is returned.

    Other nodes may extend it in between: each chain of them is walked once in either direction.
    """
    extending = {node: _parts(node)[0] for node in graph.walk() if _extends(node)}
    if all(node.kind == APPEND for node in extending):
        return []
    db = ctx.rewriter(graph).db
    extending = {node: start for node, start in extending.items() if node.kind == APPEND or not _replaces(node, db)}
    extended_by: dict[Value, list[Node]] = {}
    for node, start in extending.items():
        extended_by.setdefault(start, []).append(node)
    loops = dict.fromkeys(block for node in extending for block in _repeated_around(node))
    given = {block: db.location_set(block.params) for block in loops}
    returned = {block: db.reach_set(block.returns) for block in loops}  # in a tuple, too
    started_with: dict[Node, Value] = {}  # definitions come before uses
    for node, start in extending.items():
        started_with[node] = start if start.node is None else started_with.get(start.node, start)
    returned_by: dict[Node, set[Block]] = {}
    for node in reversed([*extending]):
        memory = db.location_set(node.output)
        blocks = {block for block in _repeated_around(node) if intersects(memory, returned[block])}
        for user in extended_by.get(node.output, ()):
            blocks |= returned_by[user]
        returned_by[node] = blocks
    return [
        node
        for node in extending
        if node.kind != APPEND
        and any(
            block in returned_by[node] and intersects(db.location_set(started_with[node]), given[block])
            for block in _repeated_around(node)
        )
    ]


def _repeated_around(node: Node) -> Iterator[Block]:
    """The blocks around ``node`` that run again on what they return, if only in a later run."""
    assert node.block is not None
    return (block for block in node.block.around() if block.node is None or block.node.kind != IF)


def _extends(node: Node) -> bool:
    return node.kind == APPEND or _may_grow(node)


def _others(node: Node, rewriter: Rewriter) -> Value:
    """What ``node`` appends to its first operand; several parts are joined by a new Concat."""
    parts = _parts(node)[1:]
    if len(parts) == 1:
        return parts[0]
    return rewriter.op(
        CONCAT,
        *parts,
        before=node,
        type=TensorType(node.output.type.dtype),
        attributes={"axis": _concatenation(node).axis},
        version=node.version,
    )


def _replace(nodes: Sequence[Node], kind: str, rewriter: Rewriter, operands: Callable[[Node], Iterable[Value]]) -> None:
    """Put nodes of ``kind`` on ``operands`` in the places of ``nodes``, all else being equal."""
    if not nodes:
        return
    instead: list[tuple[Value, Value]] = []
    with rewriter.db.rewrite():
        for node in nodes:
            other = counterpart(node, kind, operands(node), [node.output.type])
            other.attributes = {"axis": _concatenation(node).axis}
            rewriter.insert(other, before=node)
            instead.append((node.output, other.output))
        names = [node.output.name for node in nodes]
        rewriter.replace_values(instead)
        for node, (_, new), name in zip(nodes, instead, names, strict=True):
            rewriter.erase(node)
            new.name = name
