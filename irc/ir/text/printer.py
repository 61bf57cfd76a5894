"""IR as text, laid out as TorchScript lays it out.

``parser`` reads it back exactly. The grammar is in docs/reference/ir-text.md.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from irc.ir.declarations import declared_beyond
from irc.ir.graph import Graph, Module
from irc.ir.kinds import CONSTANT
from irc.ir.metadata import DECLARED_TYPE
from irc.ir.node import Block, Node, Value
from irc.ir.objects import EnumMember
from irc.ir.tensor import Tensor
from irc.ir.text.lexer import SCALAR, VALUE_NAME, Scanner
from irc.ir.text.names import attribute_text, graph_text, integer_text, kind_text, note_text, quote, value_text
from irc.ir.types import TENSOR, DictType, DType, ListType, OptionalType, TensorType, TupleType, Type, rebuilt

# Which of irc's types PyTorch's parser of IR text can read.


def readable(t: Type) -> Type:
    """``t`` without what TorchScript's text cannot express: rank or element type alone.

    (There, ``Float`` must have dimensions in brackets, and ``Tensor`` cannot.)
    """
    return rebuilt(t, lambda part: TENSOR if isinstance(part, TensorType) and _is_half_known(part) else part)


def _is_half_known(tensor: TensorType) -> bool:
    return (tensor.dtype is None) != (tensor.shape is None)


# How values of attributes are printed; ``attribute_parser`` reads them back, bit for bit.


@dataclass(frozen=True)
class Opaque:
    """A value that IR text names without giving it: ``<Tensors>``.

    Attributes:
        text: as it stands in the text.
    """

    text: str

    def __str__(self) -> str:
        return self.text


def literal_text(value: Any, declared: Type | None = None) -> str:
    """``value`` as IR text.

    Args:
        value: an attribute's value, but for graphs, which the printer numbers.
        declared: for a ``prim::Constant``, the type of its output, which the text need not repeat.
    """
    write = _WRITERS.get(value.__class__)
    if write is not None:
        return write(value)
    if isinstance(value, Tensor):
        return tensor_text(value, declared == value.type)
    if isinstance(value, Type):
        return _type_text(value, declared)
    if isinstance(value, list):
        if not value and isinstance(declared, ListType):
            return f"annotate({_python_text(declared)}, [])"  # as TorchScript does
        return f"[{', '.join(map(literal_text, cast('list[Any]', value)))}]"
    if isinstance(value, tuple):
        items = [_item_text(item) for item in cast("tuple[Any, ...]", value)]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(value, dict):
        pairs = cast("dict[Any, Any]", value).items()
        return "{" + ", ".join(f"{literal_text(k)}: {literal_text(v)}" for k, v in pairs) + "}"
    # The verifier refuses any other value; that text cannot be read back does not keep the graph from being shown.
    return f"<{value.__class__.__module__}.{value.__class__.__qualname__}>"


def _item_text(value: Any) -> str:
    """The text of a tuple's item: types are marked, as a tuple of bare types would read as a type."""
    return f"<Type : {value}>" if isinstance(value, Type) else literal_text(value)


def _type_text(value: Type, declared: Type | None) -> str:
    """The text of a type as a value; without a mark if it cannot be read as anything else."""
    text = str(value)
    is_member = declared is not None and text.startswith("__torch__.")
    return f"<Type : {text}>" if text[0] == "(" or is_member or SCALAR.match(f"{text},") else text


def float_text(value: float) -> str:
    """The shortest decimal that reads back as ``value``, TorchScript style: ``2.``, ``1e-05``, ``-inf``.

    Subnormal numbers have all their digits, up to 767: PyTorch refuses those that its reading would round.
    """
    if value != value:
        bits = struct.unpack("<Q", struct.pack("<d", value))[0]
        return "nan" if bits == _QUIET_NAN else f"nan({bits:#x})"
    return _point(repr(value)) if abs(value) >= _NORMAL or value == 0 else f"{Decimal(value):e}"


_NORMAL = sys.float_info.min
_QUIET_NAN = struct.unpack("<Q", struct.pack("<d", float("nan")))[0]


_WRITERS: dict[type, Callable[[Any], str]] = {
    int: integer_text,
    float: float_text,
    str: quote,
    bool: str,
    type(None): str,
    complex: lambda value: _complex(float_text(value.real), float_text(value.imag)),
    Opaque: str,
    EnumMember: lambda member: member.path if member.value is None else f"{member.path}({literal_text(member.value)})",
}


def _point(text: str) -> str:
    """A number's text in TorchScript's way: ``2.0`` is ``2.``, and ``1e16`` is a float too."""
    return text.removesuffix("0") if text.endswith(".0") else text


def _complex(real: str, imag: str) -> str:
    if real == "0.":
        return f"{imag}j"
    return f"{real}{'' if imag.startswith('-') else '+'}{imag}j"


def _python_text(t: Type) -> str:
    """A type in the notation that TorchScript uses inside ``annotate(...)``."""
    if isinstance(t, ListType):
        return f"List[{_python_text(t.elem)}]"
    if isinstance(t, OptionalType):
        return f"Optional[{_python_text(t.elem)}]"
    if isinstance(t, DictType):
        return f"Dict[{_python_text(t.key)}, {_python_text(t.value)}]"
    if isinstance(t, TupleType):
        return f"Tuple[{', '.join(map(_python_text, t.elems))}]"
    return "Tensor" if isinstance(t, TensorType) else str(t)


# -- tensors -----------------------------------------------------------------


def tensor_text(tensor: Tensor, typed: bool = False) -> str:
    """A tensor as IR text: ``@"name"``, ``splat(0.)``, ``tensor([1., 2.])`` or ``<Tensor>``.

    Args:
        tensor: the tensor; all its elements are written if it has no name and is not a splat.
        typed: whether the type stands next to it already; else it is written too, ``splat<Float(3)>(0.)``.
    """
    if tensor.name:
        return f"@{quote(tensor.name)}" + ("" if typed else f"<{tensor.type}>")
    if tensor.is_absent:
        return "<Tensor>" if typed else f"<Tensor : {tensor.type}>"
    of_type = "" if typed else f"<{tensor.type}>"
    if tensor.is_splat:
        return f"splat{of_type}({''.join(_elements(tensor.dtype, tensor.scalar))})"
    return f"tensor{of_type}([{', '.join(_elements(tensor.dtype, tensor.numpy()))}])"


def _elements(dtype: DType, array: np.ndarray[Any, Any]) -> list[str]:
    """The elements of ``array`` in C order as text that reads back bit for bit."""
    flat = array.reshape(-1)
    if dtype is DType.STRING:
        return [quote(item if isinstance(item, str) else bytes(item).decode(errors="surrogateescape")) for item in flat]
    if dtype is DType.BOOL or dtype.is_integer:
        return [str(item) for item in (flat if dtype is DType.BOOL else map(int, flat))]
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        return [_complex(_real_text(item.real), _real_text(item.imag)) for item in flat]
    return [_real_text(item) for item in flat]


def _real_text(item: Any) -> str:
    """A NumPy or ml_dtypes floating-point scalar as text."""
    value = float(item)
    if value != value:
        bits = int.from_bytes(item.tobytes(), sys.byteorder)
        return "nan" if item.tobytes() == item.dtype.type(float("nan")).tobytes() else f"nan({bits:#x})"
    # What NumPy or ml_dtypes print has the fewest digits, but in a notation that depends on their version: Python's is
    # used. Text is read as a double and then rounded to the dtype; in the rare case that this gives a neighbour, the
    # double itself is written, which is exact.
    shortest = float(str(item))
    exact = item.dtype.type(shortest).tobytes() == item.tobytes()
    return _point(repr(shortest if exact else value))


# Metadata in IR text: notes after a graph's return, so that statements stay as short as they are.
#
# Each is a comment of a line, which other readers of the text skip::
#
#     # metadata {"author": "somebody"}                      of the graph
#     # metadata %x {"unit": "px"}                           of the value %x
#     # metadata node %y {"irc.source": "conv, bn"}          of the node whose first result is %y
#     # metadata node 3 {"irc.source": "print"}              of a node without results: number 3 in the text, from 0
#     # metadata block 0 %y {"irc.graph_name": "then"}       of the first block of the node whose first result is %y


_NOTE = re.compile(
    rf"[ \t\r\n]*+\#[ ]metadata[ ](?:(?P<of>node|block)[ ](?:(?P<index>\d{{1,4}})[ ](?=[%\d]))?)?"
    rf"(?:(?P<name>{VALUE_NAME})[ ]|(?P<number>\d{{1,9}})[ ])?(?P<text>\{{[^\n]*)"
)


def metadata_notes(graph: Graph) -> Iterator[str]:
    """The lines for all metadata in ``graph``, without those of subgraphs."""
    declared = declared_beyond(graph)
    if not graph.has_metadata and not declared:
        return
    if graph.metadata:
        yield _line("", graph.metadata)
    yield from _of_values(graph.inputs, declared)
    for number, node in enumerate(graph.walk()):
        if node.metadata:
            yield _line(f"node {_place(node, number)} ", node.metadata)
        yield from _of_values(node.outputs, declared)
        for index, block in enumerate(node.blocks):
            if block.metadata:
                yield _line(f"block {index} {_place(node, number)} ", block.metadata)
            yield from _of_values(block.params, declared)


def _of_values(values: Iterable[Value], declared: Mapping[Value, str]) -> Iterator[str]:
    for value in values:
        said = {**value.metadata, DECLARED_TYPE: declared[value]} if value in declared else value.metadata
        if said:
            yield _line(f"{value_text(value.name)} ", said)


def _place(node: Node, number: int) -> str:
    return value_text(node.outputs[0].name) if node.outputs else str(number)


def _line(subject: str, metadata: Any) -> str:
    return f"# metadata {subject}{json.dumps(dict(metadata))}\n"


def read_metadata(scan: Scanner, graph: Graph) -> None:
    """Read the notes that follow ``graph``, which is complete otherwise. Raises IRC110, IRC111, IRC112."""
    nodes: list[Node] | None = None
    while match := scan.take(_NOTE):
        start = match.start("text")
        if match["number"] is not None and nodes is None:
            nodes = list(graph.walk())
        subject = _subject(scan, match, graph, nodes or [])
        if subject.metadata:
            scan.fail("metadata of this are given twice", start, "IRC112")
        subject.metadata = _parsed(scan, match["text"], start)


def _subject(scan: Scanner, match: re.Match[str], graph: Graph, nodes: list[Node]) -> Graph | Block | Node | Value:
    """What a note is about."""
    of, name, number = match["of"], match["name"], match["number"]
    if of is None:
        if number is not None:
            scan.fail("expected 'node' or 'block' before a number", match.start("number"))
        return graph if name is None else _value(scan, match, graph)
    if name is None and number is None:
        scan.fail(f"expected a value's name or a number after '{of}'", match.start("text"))
    if name is not None:
        node = _value(scan, match, graph).node
    else:
        node = nodes[int(number)] if int(number) < len(nodes) else None
    if node is None or (name is not None and node.outputs[0].name != _name(scan, match)):
        scan.fail("there is no such node", match.start("name" if number is None else "number"), "IRC111")
    if of == "node":
        return node
    index = int(match["index"] or 0)
    if index >= len(node.blocks):
        scan.fail(f"the node has no block {index}", match.start("of"), "IRC111")
    return node.blocks[index]


def _value(scan: Scanner, match: re.Match[str], graph: Graph) -> Value:
    name = _name(scan, match)
    if not graph.has_value(name):
        scan.fail(f"{match['name']} is not defined in this graph", match.start("name"), "IRC111")
    return graph.value(name)


def _name(scan: Scanner, match: re.Match[str]) -> str:
    return scan.name(match["name"][1:], match.start("name") + 1)


def _parsed(scan: Scanner, text: str, start: int) -> dict[str, str]:
    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            scan.fail("a name is given twice in metadata", start, "IRC112")
        return found

    try:
        found = json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        scan.fail(f"metadata are strings by name, in JSON: {error}", start)
    if not isinstance(found, dict) or not all(isinstance(text, str) for text in cast("dict[str, Any]", found).values()):
        scan.fail("metadata are strings by name, in JSON", start)
    return cast("dict[str, str]", found)


# -- printer -------------------------------------------------------------------


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
