"""Operators that irc knows nothing of: the analysis takes them to do anything to what they can reach."""

from __future__ import annotations

from irc.alias.rules import has_rule
from irc.alias.rules.schema_rule import is_unsettled
from irc.ir import ops
from irc.ir.functions import callee, with_subgraphs
from irc.ir.graph import Graph, Module
from irc.ir.kinds import CALL
from irc.ir.node import Node


def unknown_operators(graph: Graph) -> dict[str, list[Node]]:
    """The nodes of ``graph``, nested ones and those of fusion groups too, that are opaque, by kind.

    They are those of kinds without rule or schema row, those whose arguments do not
    tell which of rows that say different things is meant, and calls of functions that the module does not have.
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
        return ops.functional_by_default(node.kind)
    return not is_unsettled(node)
