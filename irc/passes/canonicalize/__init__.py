"""Canonicalisation: local rewrites to simpler forms, by tables of rules indexed by root operator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from irc.ir import Graph, Node, Value
from irc.passes.base import PassContext, Worklist
from irc.passes.canonicalize import attention, composites, scatter, simplifications
from irc.passes.canonicalize.match import SAME_TENSOR, Match, rules_of
from irc.passes.layouts import Layouts
from irc.passes.registry import check_not_negative, register
from irc.passes.shapes import Inference

__all__ = ["FAMILIES", "Canonicalize"]

FAMILIES = (attention, composites, simplifications, scatter)
"""Modules whose import has filled the table of rules."""


@register
@dataclass(frozen=True)
class Canonicalize:
    """Rewrite nodes to simpler forms until no rule applies.

    Attributes:
        max_rewrites: the most rewrites per node, against rules that undo each other.
    """

    name: ClassVar[str] = "canonicalize"
    max_rewrites: int = 16

    def __post_init__(self) -> None:
        check_not_negative(self)

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Apply the rules; types are inferred first, because most rules ask for shapes."""
        inference = Inference.in_pass(graph, ctx).run()
        rewriter = ctx.rewriter(graph)
        layouts: Layouts | None = None
        counted: dict[Any, Value] = {}
        changed = False
        work = Worklist(graph.walk())
        users: dict[Node, None] = {}  # of what has been replaced
        budget = (len(work) + 16) * self.max_rewrites
        while (work or users) and budget:
            if not work:  # once for all that was replaced among a node's inputs
                work.add(inference.propagate(users))
                users.clear()
                continue
            node = work.pop()
            if node.block is None:
                continue  # erased meanwhile
            match: Match | None = None
            for rule in rules_of(node.kind):
                if match is None or match.created:  # by a rule whose value could not replace the node's
                    match = Match(node, inference, rewriter, ctx, counted)
                value = rule(match)
                if value is None:
                    continue
                layouts = layouts or Layouts(graph, rewriter.db, ctx.memory)
                old, affected, type = node.outputs[0], node.outputs[0].users, value.type
                # What is equal may lie otherwise in memory: a Cast to the same type makes an array without gaps.
                is_same = rule in SAME_TENSOR or not layouts.is_seen([old]) or rewriter.are_alike(old, value)
                may_replace = is_same and ctx.allow(node)
                if not may_replace or not rewriter.replace(old, value, keep_name=value.node in match.created):
                    for created in reversed(match.created):
                        rewriter.erase(created)
                    continue
                budget -= 1
                changed = True
                ctx.stats[f"{self.name}.{rule.__name__}"] += 1
                work.add(match.created)
                if value.type != type:  # the replaced one stated more, which is news to others too
                    affected += value.users
                users.update(dict.fromkeys(affected))
                if not any(v.has_uses for v in node.outputs):
                    rewriter.erase(node)
                break
        return changed or inference.changed
