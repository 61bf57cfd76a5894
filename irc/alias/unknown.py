"""Operators unknown to irc: the analysis assumes that they do anything to what they can reach."""

from __future__ import annotations

from irc import ops
from irc.alias.rules import has_rule
from irc.alias.rules.schema_rule import is_unsettled
from irc.ir.functions import callee, with_subgraphs
from irc.ir.graph import Graph, Module
from irc.ir.kinds import CALL
from irc.ir.node import Node
from irc.ops.opaque import is_opaque


def unknown_operators(graph: Graph) -> dict[str, list[Node]]:
    """The opaque nodes of ``graph``, including those in blocks and fusion groups, by kind.

    A node is opaque if its kind has neither a rule nor a schema row, if its arguments leave open which of several rows
    that say different things is meant, or if it calls a function that the module does not have.
    """
    found: dict[str, list[Node]] = {}
    for node in with_subgraphs(graph):
        if not _is_known(node, graph.module):
            found.setdefault(node.kind, []).append(node)
    return found


def _is_known(node: Node, module: Module | None) -> bool:
    if node.kind == CALL:
        return module is not None and callee(node) in module.graphs
    if has_rule(node.kind):
        return True
    rows = ops.schemas(node.kind)
    if not rows:
        return ops.functional_by_default(node.kind) or is_opaque(node.kind)
    return not is_unsettled(node)
