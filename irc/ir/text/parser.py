"""IR text to graphs and modules: what irc prints, and TorchScript's dumps. The grammar is in docs/ir-text.md.

Blocks and subgraphs are kept on explicit stacks, so text may nest as deeply
as ``limits`` allows without using Python's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irc.ir.bulk import no_collection
from irc.ir.declared_outputs import take_declared
from irc.ir.graph import Graph, Module
from irc.ir.limits import MAX_SUBGRAPH_DEPTH
from irc.ir.tensor import Array, Tensor, WeightTable
from irc.ir.text.attribute_parser import AttributeParser
from irc.ir.text.graph_parser import GraphParser, Refs
from irc.ir.text.lexer import STRING_BODY, WS, Scanner, terminal
from irc.ir.text.type_parser import TypeParser

_GRAPH_NAME = rf'[A-Za-z_][\w.]*|"{STRING_BODY}"'
# TorchScript's own parser takes any word in place of "graph"; irc reads it as the graph's name.
_GRAPH = terminal(rf"(?:graph\b(?>(?:{WS}(?P<name>{_GRAPH_NAME}))?)|(?P<only>{_GRAPH_NAME}))(?={WS}\()")
_WITH = terminal(rf'with\b{WS}(?P<name>(?:[A-Za-z_][\w.]*(?:::[\w.]+)*|"{STRING_BODY}"_\d+)){WS}=')

Weights = Mapping[str, "Tensor | Array"]


def parse_graph(text: str, weights: Weights | None = None, filename: str = "<text>") -> Graph:
    """The graph that ``text`` holds.

    Args:
        text: IR text. If functions follow the graph, ``graph.module`` holds them.
        weights: what ``@"name"`` refers to (arrays are not copied). Weights that are
            missing are entered as absent tensors, known by their type alone.
        filename: what errors call the text.

    Raises:
        Error: IRC110 the text does not follow the grammar; IRC111 a value is used that is
            not defined at that place; IRC112 a name is defined twice; IRC113 a limit is
            exceeded; IRC114 a tensor's contents do not agree with its type.
    """
    module = parse_module(text, weights, filename)
    if len(module.graphs) == 1:
        module.main.module = None
    return module.main


def parse_module(text: str, weights: Weights | None = None, filename: str = "<text>") -> Module:
    """The module that ``text`` holds; its first graph is ``main``. Arguments and errors: see ``parse_graph``."""
    table = WeightTable()
    for name, weight in (weights or {}).items():
        tensor = weight if isinstance(weight, Tensor) else Tensor.of(np.asarray(weight), name)
        table[name] = tensor if tensor.name == name else tensor.renamed(name)
    with no_collection():
        return _ModuleParser(Scanner(text, filename), table).module()


class _ModuleParser:
    """Reads graphs together with their ``with`` sections."""

    def __init__(self, scan: Scanner, weights: WeightTable) -> None:
        self._scan = scan
        self._weights = weights
        self._types = TypeParser(scan)
        self._attributes = AttributeParser(scan, self._types, weights)
        self._read: list[Graph] = []
        """All graphs, subgraphs too."""

    def module(self) -> Module:
        """All graphs of the text."""
        scan = self._scan
        module = Module(self.graph())
        while scan.peek():
            start = scan.pos
            graph = self.graph()
            if graph.name in module.graphs:
                scan.fail(f"there are two graphs called {graph.name!r}", start, "IRC112")
            module.graphs[graph.name] = graph
        for graph in self._read:
            graph.module = module
        take_declared(module)
        return module

    def graph(self) -> Graph:
        """One graph and the subgraphs that its nodes refer to.

        The sections of a graph's subgraphs follow it, each followed by those of its own.
        """
        scan = self._scan
        top, refs = self._one_graph()
        stack = [refs]
        while match := scan.take(_WITH):
            name, pos = match["name"], match.start("name")
            while stack and name not in stack[-1]:
                self._check_found(stack.pop())
            if not stack:
                scan.fail(f"no node of the graphs before refers to {name}", pos, "IRC111")
            if len(stack) == MAX_SUBGRAPH_DEPTH:
                scan.fail(f"graphs nest in graphs deeper than {MAX_SUBGRAPH_DEPTH} levels", pos, "IRC113")
            node, key, _ = stack[-1].pop(name)
            if key is None:
                node.kind = scan.name(name.rpartition("_")[0], pos)
            graph, refs = self._one_graph()
            node.attributes[key or "Subgraph"] = graph
            stack.append(refs)
        for refs in stack:
            self._check_found(refs)
        return top

    def _one_graph(self) -> tuple[Graph, Refs]:
        scan = self._scan
        match = scan.take(_GRAPH)
        if match is None:
            scan.fail("expected 'graph(' and the graph's inputs")
        text = match["name"] or match["only"]
        name = "main" if text is None else scan.name(text, match.end() - len(text))
        parser = GraphParser(scan, self._types, self._attributes, Graph(name, self._weights))
        parser.parse()
        self._read.append(parser.graph)
        return parser.graph, parser.refs

    def _check_found(self, refs: Refs) -> None:
        for name, (_, key, pos) in refs.items():
            if key is not None:  # an operator called prim::FusionGroup_0 may well have no section, <Graph_0> may not
                self._scan.fail(f"the section 'with {name} = graph(...)' is missing", pos, "IRC111")
