"""IR as text, laid out as TorchScript lays it out.

``parser`` reads it back exactly. The grammar is in docs/ir-text.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from irc.ir.block import Block
from irc.ir.graph import Graph, Module
from irc.ir.kinds import CONSTANT
from irc.ir.node import Node
from irc.ir.text.literals import literal_text
from irc.ir.text.metadata import metadata_notes
from irc.ir.text.names import attribute_text, graph_text, kind_text, note_text, value_text
from irc.ir.text.readable import readable
from irc.ir.types import Type
from irc.ir.value import Value


def print_graph(graph: Graph) -> str:
    """``graph`` and, after it, the subgraphs of its nodes."""
    return "".join(_graphs(graph))


def print_module(module: Module) -> str:
    """The main graph, then each function; weights by name."""
    functions = [graph for graph in module.graphs.values() if graph is not module.main]
    return "\n".join(map(print_graph, [module.main, *functions]))


def print_node(node: Node) -> str:
    """One node in one line, without indentation and nested blocks."""
    return str(node_text(node))


def node_text(node: Node) -> NodeText:
    """The pieces of a node's line."""
    return _Printer(node.graph, exact=True).node(node)


class NodeText(NamedTuple):
    """The pieces of a node's line.

    Attributes:
        outputs: each output with its type.
        operator: kind and attributes.
        inputs: each input.
        notes: the notes after it: types that PyTorch cannot read in place, scope, source comment.
    """

    outputs: list[str]
    operator: str
    inputs: list[str]
    notes: str

    def __str__(self) -> str:
        equals = f"{', '.join(self.outputs)} = " if self.outputs else ""
        return f"{equals}{self.operator}({', '.join(self.inputs)}){self.notes}"


def _graphs(graph: Graph) -> Iterator[str]:
    """Pieces of text of ``graph`` and its subgraphs: those of a graph follow it, each followed by its own."""
    todo = [("", graph)]
    while todo:
        head, graph = todo.pop()
        printer = _Printer(graph)
        yield head
        yield from printer.lines()
        todo.extend((f"with {name} = ", sub) for name, sub in reversed(printer.subgraphs))


class _Printer:
    """Prints one graph.

    Args:
        graph: the graph.
        exact: whether all types are printed in their place, those that PyTorch cannot read too.

    Attributes:
        subgraphs: graphs that attributes of the nodes printed so far hold, and what the nodes call them.
    """

    def __init__(self, graph: Graph, exact: bool = False) -> None:
        self.graph = graph
        self.subgraphs: list[tuple[str, Graph]] = []
        self._exact = exact
        self._names: dict[Value, str] = {}
        self._types: dict[int, str] = {}  # by identity: hashing a type costs as much as printing it
        self._hidden: set[int] = set()  # types for which another one is shown

    def lines(self) -> Iterator[str]:
        params = ",\n      ".join(map(self.definition, self.graph.inputs))
        yield f"{graph_text(self.graph.name)}({params}):{self._types_told(self.graph.inputs)}\n"
        yield from self._nodes(self.graph.block)
        yield f"  return ({', '.join(map(self.name, self.graph.outputs))})\n"
        yield from metadata_notes(self.graph)

    def _nodes(self, top: Block) -> Iterator[str]:
        """The lines of all nodes, blocks within blocks."""
        # Each entry: what is left of a block's nodes, its indentation, its end, the blocks after it.
        stack: list[tuple[Iterator[Node], str, str, Iterator[tuple[int, Block]]]] = []
        stack.append((iter(top.nodes), "  ", "", iter(())))
        while stack:
            nodes, indent, end, siblings = stack[-1]
            for node in nodes:
                yield f"{indent}{self.node(node)}\n"
                if node.blocks:
                    siblings = enumerate(node.blocks)
                    break
            else:
                stack.pop()
                yield end
                indent = indent[:-4]
            for i, block in siblings:
                params = ", ".join(map(self.definition, block.params))
                yield f"{indent}  block{i}({params}):{self._types_told(block.params)}\n"
                inner = indent + "    "
                stack.append((iter(block.nodes), inner, self._end(block, inner), siblings))
                break

    def _end(self, block: Block, indent: str) -> str:
        return f"{indent}-> ({', '.join(map(self.name, block.returns))})\n"

    def node(self, node: Node) -> NodeText:
        operator = self._operator(node) if node.attributes or node.version is not None else kind_text(node.kind)
        outputs = list(map(self.definition, node.outputs))
        notes = self._types_told(node.outputs)
        if node.scope:
            notes += f" # scope: {note_text(node.scope, '#')}"  # PyTorch does not read its own ", scope:"
        if node.name:
            notes += f" # {note_text(node.name)}"
        return NodeText(outputs, operator, list(map(self.name, node.inputs)), notes)

    def _operator(self, node: Node) -> str:
        kind = kind_text(node.kind)
        is_constant = node.kind == CONSTANT and len(node.outputs) == 1
        declared = self._shown(node.outputs[0].type) if is_constant else None
        items: list[str] = []
        for key, value in node.attributes.items():
            if not isinstance(value, Graph):
                items.append(f"{attribute_text(key)}={literal_text(value, declared)}")
            elif key == "Subgraph":
                kind = self._subgraph(kind, value)
            else:
                items.append(f"{attribute_text(key)}=<{self._subgraph('Graph', value)}>")
        if node.version is not None:
            items.append(f"since_version={node.version}")
        return f"{kind}[{', '.join(items)}]" if items else kind

    def _subgraph(self, stem: str, graph: Graph) -> str:
        name = f"{stem}_{len(self.subgraphs)}"
        self.subgraphs.append((name, graph))
        return name

    def name(self, value: Value) -> str:
        text = self._names.get(value)
        if text is None:
            text = self._names[value] = value_text(value.name)
        return text

    def definition(self, value: Value) -> str:
        return f"{self.name(value)} : {self._type(value.type)}"

    def _type(self, t: Type) -> str:
        text = self._types.get(id(t))
        if text is None:
            shown = self._shown(t)
            if shown is not t:
                self._hidden.add(id(t))
            text = self._types[id(t)] = str(shown)
        return text

    def _shown(self, t: Type) -> Type:
        """The type that is printed for ``t``: in a graph for PyTorch, the nearest one that PyTorch reads."""
        if self._exact:
            return t
        nearest = readable(t)
        return nearest if nearest != t and self._is_for_pytorch else t

    @cached_property
    def _is_for_pytorch(self) -> bool:
        """Whether the graph is one of TorchScript's."""
        return any(node.kind.startswith("aten::") for node in self.graph.walk())

    def _types_told(self, values: Sequence[Value]) -> str:
        """A note of the types of ``values``, if for one of them another type was printed."""
        if not self._hidden or self._hidden.isdisjoint([id(v.type) for v in values]):
            return ""
        return f" # : {', '.join(str(v.type) for v in values)}"
