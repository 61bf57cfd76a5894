"""The parser of IR text, irc's and TorchScript's dumps. Grammar: docs/reference/ir-text.md.

Blocks and subgraphs are kept on explicit stacks, so text may nest as deeply
as ``limits`` allows without using Python's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irc.ir import types
from irc.ir.declarations import take_declared
from irc.ir.graph import Graph, Module, gc_paused
from irc.ir.kinds import CONSTANT, RETURN
from irc.ir.limits import MAX_BLOCK_DEPTH, MAX_BLOCKS, MAX_SUBGRAPH_DEPTH
from irc.ir.node import Block, Node, Value
from irc.ir.tensor import Array, Tensor, WeightTable
from irc.ir.text.attribute_parser import AttributeParser, GraphRef
from irc.ir.text.lexer import BARE_VALUE_NAME, STRING_BODY, VALUE_NAME, WS, Scanner, terminal
from irc.ir.text.printer import read_metadata, readable
from irc.ir.text.type_parser import SIMPLE_TYPE, SIMPLE_TYPE_END, TypeParser
from irc.ir.types import Type

# One graph from text: parameters, statements, nested blocks, return.


_KIND = rf'(?P<kind>(?:[A-Za-z_][\w.]*+(?>(?:::\w[\w.]*+)+)|"{STRING_BODY}"(?>(?:_\d+)?)))(?={WS}(?:(?P<open>\[)|\())'
_TYPED_VALUE = rf"(?P<value>{VALUE_NAME})(?>(?:[ ]:[ ](?P<type>{SIMPLE_TYPE}){SIMPLE_TYPE_END})?)"

_LINE = terminal(rf"(?:{_TYPED_VALUE}|(?P<end>->|return\b)|(?:={WS})?{_KIND}|(?P<label>[A-Za-z_]\w*)(?={WS}\())")
_DEFINITION = terminal(_TYPED_VALUE)
_OPERATOR = terminal(rf"={WS}{_KIND}")
_VALUES = terminal(rf"\({WS}((?>(?:{VALUE_NAME}(?:{WS},{WS}{VALUE_NAME})*)?)){WS}\)")
_BARE_VALUE = re.compile(f"%({BARE_VALUE_NAME})")
_VALUE = re.compile(rf"{WS}(?:,{WS})?({VALUE_NAME})")
_KEY = terminal(rf'(?:(?P<bare>[A-Za-z_]\w*)|"(?P<quoted>{STRING_BODY})"){WS}=')
_NOTES = re.compile(
    rf'[ \t]*+(?>(?:[,\#][ \t]*+scope:[ \t]*+(?:"(?P<quoted_scope>{STRING_BODY})"|(?P<scope>[^"\#\n][^\#\n]*+)))?)'
    rf'[ \t]*+(?>(?:\#[ \t]*+(?:"(?P<quoted_name>{STRING_BODY})"[ \t]*+(?=\r?(?:\n|\Z))|(?P<name>[^\n]*)))?)'
    rf"(?:\n|\r\n|\Z)"
)
_TYPES_TOLD = re.compile(r"[ \t]*+\#[ \t]*+:[ \t]")
_NUMBERED = re.compile(r".+_\d+", re.DOTALL)
_RESERVED = (RETURN, "prim::Param")

Refs = dict[str, tuple[Node, "str | None", int]]
"""By the name that a ``with`` section may have: the node it belongs to, the attribute
that refers to it (None: the operator's own name does), and where in the text it is."""


class GraphParser:
    """Reads one graph with a scanner.

    Attributes:
        graph: the graph to fill, empty at first.
        refs: attributes that may refer to subgraphs further down in the text.
    """

    def __init__(self, scan: Scanner, type_parser: TypeParser, attributes: AttributeParser, graph: Graph) -> None:
        self.graph = graph
        self.refs: Refs = {}
        self._scan = scan
        self._types = type_parser
        self._attributes = attributes
        self._kinds: dict[str, tuple[str, bool]] = {}
        self._visible: dict[str, Value] = {}
        self._block = graph.block
        self._defined: list[str] = []  # names defined in the current block
        self._outer: list[tuple[Block, list[str]]] = []  # the blocks around it, with theirs

    def parse(self) -> None:
        """Read everything after the graph's name."""
        scan = self._scan
        self._params("the graph's name")
        node: Node | None = None  # the node that a nested block here would belong to
        while True:
            match = scan.take(_LINE)
            if match is None:
                scan.fail(f"expected a statement such as '%y : Tensor = aten::relu(%x)', or '{self._end()}'")
            found = match.lastgroup
            if found in ("type", "value"):
                node = self._assignment(match)
            elif found in ("kind", "open"):
                node = self._operator(match, [], [])
            elif found == "label":
                node = self._open(node, match.start("label"))
            elif match["end"] != self._end():
                scan.fail(f"expected '{self._end()}' to end this {self._where()}", match.start("end"))
            elif self._outer:
                node = self._close()
            else:
                self.graph.set_outputs(self._values("return"))
                read_metadata(scan, self.graph)
                return

    def _end(self) -> str:
        return "->" if self._outer else "return"

    def _where(self) -> str:
        return "block" if self._outer else "graph"

    # -- definitions -----------------------------------------------------

    def _params(self, after: str) -> None:
        """Parameters of the current block, brackets and colon included."""
        scan = self._scan
        params: dict[str, Type] = {}
        scan.expect("(", after)
        for _ in scan.listed(")", "a parameter"):
            match = scan.need(_DEFINITION, "a parameter such as '%x : Tensor'")
            name, of_type = self._definition(match)
            if name in params:
                scan.fail(f"{match['value']} is a parameter twice", match.start("value"), "IRC112")
            params[name] = of_type
        scan.expect(":", "the parameters")
        self._see(self._block.add_params(self._told(list(params.values())), list(params)))

    def _definition(self, match: re.Match[str]) -> tuple[str, Type]:
        """Name and type of a value that is defined at ``match``."""
        scan = self._scan
        text = match["value"]
        start = match.start("value")
        name = scan.name(text[1:], start + 1)
        if self.graph.has_value(name):
            scan.fail(f"{text} is defined twice: every value of a graph needs a name of its own", start, "IRC112")
        if not name:
            scan.fail("the name of a value cannot be empty", start, "IRC112")
        of_type = self._types.known.get(match["type"])
        if of_type is not None:
            return name, of_type
        if match["type"] is not None:
            scan.pos = match.start("type")
            return name, self._types.parse()
        return name, self._types.parse() if scan.accept(":") else types.TENSOR

    def _told(self, shown: list[Type]) -> list[Type]:
        """The types of the values that a line defines: from its note, if PyTorch could not read them in place."""
        scan = self._scan
        start = scan.pos
        if scan.text.startswith("\n", start) or scan.take(_TYPES_TOLD) is None:
            return shown
        told = [self._types.parse()]
        while scan.text.startswith(",", scan.pos):
            scan.pos += 1
            told.append(self._types.parse())
        if list(map(readable, told)) != list(map(readable, shown)):
            expected = ", ".join(map(str, shown))
            scan.fail(f"the note must tell types of the values before it, such as '# : {expected}'", start)
        return told

    def _see(self, values: Sequence[Value]) -> None:
        for value in values:
            self._visible[value.name] = value
            self._defined.append(value.name)

    # -- statements ------------------------------------------------------

    def _assignment(self, match: re.Match[str]) -> Node:
        """A statement whose first output has been read."""
        scan = self._scan
        outputs: dict[str, Type] = {}
        while True:
            name, of_type = self._definition(match)
            if name in outputs:
                scan.fail(f"{match['value']} is defined twice in one statement", match.start("value"), "IRC112")
            outputs[name] = of_type
            if operator := scan.take(_OPERATOR):
                return self._operator(operator, list(outputs), list(outputs.values()))
            if not scan.accept(","):
                if scan.accept("="):
                    scan.fail("expected an operator such as aten::relu( or onnx::Conv[")
                scan.fail("expected '=' and an operator, or ',' and another output")
            match = scan.need(_DEFINITION, "an output such as '%y : Tensor'")

    def _operator(self, match: re.Match[str], names: list[str], out_types: list[Type]) -> Node:
        """A node from its operator on."""
        scan = self._scan
        text = match["kind"]
        kind, numbered = self._kinds.get(text) or self._kind(text, match.start("kind"))
        attributes: dict[str, Any] = {}
        version = None
        if match["open"]:
            declared = out_types[0] if kind == CONSTANT and len(out_types) == 1 else None
            version = self._attribute_list(attributes, declared)
        node = Node(self.graph, kind, self._values("the operator"), attributes, version)
        out_types = self._told(out_types)
        self._notes(node)
        if names:
            self._see(node.add_outputs(out_types, names))
        self._block.append(node)
        if numbered:
            self.refs[text] = (node, None, match.start("kind"))
        for key, value in attributes.items():
            if isinstance(value, GraphRef):
                if value.name in self.refs:
                    scan.fail(f"{value.name} is referred to twice", match.start("kind"), "IRC112")
                self.refs[value.name] = (node, key, match.start("kind"))
        return node

    def _kind(self, text: str, pos: int) -> tuple[str, bool]:
        """The kind that ``text`` denotes, and whether it may refer to a subgraph; remembered in ``_kinds``."""
        kind = text
        if text[0] == '"':
            body, _, suffix = text[1:].rpartition('"')
            kind = self._scan.unquote(body, pos + 1) + suffix
        if kind in _RESERVED:
            self._scan.fail(f"{kind} cannot be written: it is how blocks begin and end", pos)
        self._kinds[text] = found = kind, _NUMBERED.fullmatch(text) is not None
        return found

    def _attribute_list(self, attributes: dict[str, Any], declared: Type | None) -> int | None:
        """Fill in ``attributes``; the version that the operator is bound to."""
        scan = self._scan
        scan.expect("[", "the operator")
        version = None
        while True:
            match = scan.need(_KEY, "an attribute such as 'axis=1'")
            key = match["bare"] or scan.unquote(match["quoted"], match.start("quoted"))
            value = self._attributes.parse(declared if key == "value" else None)
            if match["bare"] == "since_version":
                if type(value) is not int:
                    scan.fail("since_version must be an integer", match.start("bare"))
                version = value
            elif key in attributes:
                scan.fail(f"attribute {key} is given twice", match.start(match.lastgroup or 0), "IRC112")
            elif value is not None or declared is None:  # a constant without a value is None
                attributes[key] = value
            if not scan.more("]", "an attribute"):
                return version

    def _values(self, after: str) -> list[Value]:
        """Values in brackets, all of them visible here."""
        scan = self._scan
        match = scan.take(_VALUES)
        if match is None:
            scan.fail(f"expected values in brackets after {after}, such as (%x, %y)")
        visible = self._visible
        if '"' not in match[1] and "#" not in match[1]:
            try:
                return [visible[name] for name in _BARE_VALUE.findall(match[1])]
            except KeyError:
                pass
        return [self._value(found) for found in _VALUE.finditer(scan.text, match.start(1), match.end(1))]

    def _value(self, match: re.Match[str]) -> Value:
        name = self._scan.name(match[1][1:], match.start(1) + 1)
        value = self._visible.get(name)
        if value is None:
            why = "is not visible here" if self.graph.has_value(name) else "is not defined before this"
            self._scan.fail(f"{match[1]} {why}", match.start(1), "IRC111")
        return value

    def _notes(self, node: Node) -> None:
        """Scope and comment at the end of a node's line."""
        scan = self._scan
        if scan.text.startswith("\n", scan.pos):
            return
        match = scan.need(_NOTES, "the end of the line after the operator's inputs")
        if match["scope"] is not None:
            node.scope = match["scope"].rstrip()
        elif match["quoted_scope"] is not None:
            node.scope = scan.unquote(match["quoted_scope"], match.start("quoted_scope"))
        if match["name"] is not None:
            node.name = match["name"].rstrip()
        elif match["quoted_name"] is not None:
            node.name = scan.unquote(match["quoted_name"], match.start("quoted_name"))

    # -- blocks ----------------------------------------------------------

    def _open(self, node: Node | None, pos: int) -> None:
        if node is None:
            self._scan.fail("a block must follow the node it belongs to", pos)
        if len(self._outer) + 1 == MAX_BLOCK_DEPTH:
            self._scan.fail(f"blocks nest deeper than {MAX_BLOCK_DEPTH} levels", pos, "IRC113")
        if len(node.blocks) == MAX_BLOCKS:
            self._scan.fail(f"a node has more than {MAX_BLOCKS} blocks", pos, "IRC113")
        self._hide(node)  # a node's own blocks cannot use its outputs
        self._outer.append((self._block, self._defined))
        self._block, self._defined = node.add_block(), []
        self._params("the block's label")

    def _close(self) -> Node | None:
        """End the current block; the node it belongs to."""
        block = self._block
        block.set_returns(self._values("->"))
        for name in self._defined:
            del self._visible[name]
        self._block, self._defined = self._outer.pop()
        node = block.node
        if node is not None:
            self._visible.update({value.name: value for value in node.outputs})
        return node

    def _hide(self, node: Node) -> None:
        for value in node.outputs:
            del self._visible[value.name]


# -- parser --------------------------------------------------------------------


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
    """The module in ``text``; its first graph is ``main``. Arguments and errors: see ``parse_graph``."""
    table = WeightTable()
    for name, weight in (weights or {}).items():
        tensor = weight if isinstance(weight, Tensor) else Tensor.of(np.asarray(weight), name)
        table[name] = tensor if tensor.name == name else tensor.renamed(name)
    with gc_paused():
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
        match = scan.need(_GRAPH, "'graph(' and the graph's inputs")
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
