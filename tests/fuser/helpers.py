"""Fusing IR text under every check there is."""

import irc.compiler  # noqa: F401  # registers the passes
from irc.fuser.subgraph import is_group, subgraph_of
from irc.ir import Graph, Node, parse_graph
from irc.passes import PassManager, PassReport, create_instruments

CHECKS = ("verify-each", "verify-alias", "verify-changed")


def fuse(text: str, pipeline: str = "fuse") -> tuple[Graph, PassReport]:
    """The graph in ``text`` after ``pipeline``: verified, its alias analysis compared with a new one, idempotent."""
    graph = parse_graph(text)
    return graph, PassManager(pipeline, create_instruments(CHECKS)).run(graph)


def kinds(graph: Graph) -> list[str]:
    """The kinds of the top block's nodes without namespaces; of a group, those inside in brackets. No constants."""
    return [_kind(node) for node in graph.nodes if node.kind != "prim::Constant"]


def _kind(node: Node) -> str:
    if is_group(node):
        return f"[{' '.join(kinds(subgraph_of(node)))}]"
    return node.kind.split("::")[1]


def the_group(graph: Graph) -> Node:
    """The only fusion group."""
    (group,) = (node for node in graph.walk() if is_group(node))
    return group
