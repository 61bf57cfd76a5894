"""Concatenations that extend earlier ones: cat(a, b, c) after cat(a, b) becomes cat(cat(a, b), c)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from irc.ir import Graph, ListType, Node, TensorType, Value, counterpart
from irc.ops.axes import APPEND, Join, joined
from irc.passes.base import PassContext
from irc.passes.layouts import Layouts
from irc.passes.registry import register
from irc.passes.rewriter import Rewriter

_LIST, _ADD, _CAT = "prim::ListConstruct", "aten::append", "aten::cat"

_MOST = 1 << 12
"""Elements in lists that are made of one that grows: n lists of up to n elements would have n²."""


@register
@dataclass(frozen=True)
class NestConcats:
    """Let a concatenation whose first parts have been concatenated before take that result instead.

    A dense block concatenates all features so far for each of its layers. Then each of them is needed until the end, as
    is each result, so that all are copied. Nested, they are needed once, and a run makes them where the last result has
    them. The bytes that a run copies where it cannot do that stay the same.

    torch's features are in a list that grows. If only its concatenations use it, each gets a list of its own.
    """

    name: ClassVar[str] = "nest-concats"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Look at each list, then at each concatenation, in order."""
        rewriter = ctx.rewriter(graph)
        lists = [node for node in graph.walk() if node.kind == _LIST and _grows(node)]
        changed = sum([_divide(node, rewriter) for node in lists if ctx.allow(node)]) > 0
        prefixes, layouts = _Prefixes(), None
        for node in [*graph.walk()]:
            join = joined(node)
            if join is None or node.kind == APPEND or node.output.type.rank == 1:
                continue
            while (found := prefixes.longest(node, join, rewriter)) is not None:
                layouts = layouts or Layouts(graph, rewriter.db, ctx.memory)
                if layouts.is_seen([node.output]) or not ctx.allow(node):
                    break
                earlier, count = found
                node = _replace(node, (earlier.output, *join.parts[count:]), rewriter)
                prefixes.add(node, join)
                join = Join(_concatenation(node).parts, join.axis)
                ctx.count("nested")
                changed = True
            prefixes.add(node, join)
        return changed


class _Prefixes:
    """The concatenations so far, by the parts that they join: a trie."""

    def __init__(self) -> None:
        self._next: dict[Any, int] = {}  # where one stands, a part -> where one stands then
        self._joins: dict[int, Node] = {}

    def _path(self, node: Node, join: Join) -> list[int]:
        at = self._next.setdefault((node.block, node.kind, join.axis), len(self._next))
        return [at := self._next.setdefault((at, part), len(self._next)) for part in join.parts]

    def add(self, node: Node, join: Join) -> None:
        """Enter ``node`` for the parts of ``join``, which it concatenates."""
        self._joins[self._path(node, join)[-1]] = node

    def longest(self, node: Node, join: Join, rewriter: Rewriter) -> tuple[Node, int] | None:
        """The concatenation of the most first parts of ``join`` that nothing writes before ``node``; how many.

        What something writes before ``node`` is written before later nodes, too, and is forgotten.
        """
        path = self._path(node, join)
        for count in range(len(path) - 1, 0, -1):
            earlier = self._joins.get(path[count - 1])
            if earlier is not None:
                if not _may_change([earlier.output, *join.parts[:count]], earlier, node, rewriter):
                    return earlier, count
                del self._joins[path[count - 1]]
        return None


def _may_change(values: Sequence[Value], first: Node, last: Node, rewriter: Rewriter) -> bool:
    db = rewriter.db
    return db.writes_between(values, first, last) or db.has_metadata_writers(values)


def _concatenation(node: Node) -> Join:
    join = joined(node)
    assert join is not None, "it has just been made"
    return join


def _replace(node: Node, parts: Sequence[Value], rewriter: Rewriter) -> Node:
    """A concatenation of ``parts`` in the place of ``node``."""
    operands, made = [*parts], None
    if node.kind == _CAT:
        made = node.inputs[0].node
        listed = rewriter.op(_LIST, *operands, before=node, type=node.inputs[0].type)
        operands = [listed, *node.inputs[1:]]
    other = counterpart(node, node.kind, operands, [node.output.type])
    rewriter.insert(other, before=node)
    rewriter.replace(node.output, other.output, keep_name=True)
    rewriter.erase(node)
    if made is not None and made.kind == _LIST and not made.output.has_uses:
        rewriter.erase(made)
    return other


# -- lists that grow -----------------------------------------------------------


def _grows(made: Node) -> bool:
    """Whether tensors are appended to the list ``made``, and all else that uses it concatenates it."""
    value, block = made.output, made.block
    if not isinstance(value.type, ListType) or not isinstance(value.type.elem, TensorType):
        return False
    users = value.users
    appends = [user for user in users if _appends_to(user, value)]
    joins = [user for user in users if user.kind == _CAT]
    if not appends or len(appends) + len(joins) < len(users) or any(user.block is not block for user in users):
        return False
    return len(joins) * (len(made.inputs) + len(appends)) <= _MOST


def _appends_to(node: Node, value: Value) -> bool:
    return node.kind == _ADD and node.inputs[0] is value and not any(v.has_uses for v in node.outputs)


def _divide(made: Node, rewriter: Rewriter) -> bool:
    """Give each concatenation of the list ``made`` a list of what is in it then."""
    elements = [*made.inputs]
    users = sorted(made.output.users, key=Node.place)
    for user in users:
        if user.kind == _ADD:
            elements.append(user.inputs[1])
        else:
            _replace(user, elements, rewriter)
    for user in users:
        if user.kind == _ADD:
            rewriter.erase(user)
    rewriter.erase(made)
    return True
