"""Metadata in IR text: notes after a graph's return, so that statements stay as short as they are.

Each is a comment of a line, which other readers of the text skip::

    # metadata {"author": "somebody"}                      of the graph
    # metadata %x {"unit": "px"}                           of the value %x
    # metadata node %y {"irc.source": "conv, bn"}          of the node whose first result is %y
    # metadata node 3 {"irc.source": "print"}              of a node without results: number 3 in the text, from 0
    # metadata block 0 %y {"irc.graph_name": "then"}       of the first block of the node whose first result is %y
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from irc.ir.declared_outputs import declared_beyond
from irc.ir.metadata import DECLARED_TYPE
from irc.ir.text.lexer import VALUE_NAME
from irc.ir.text.names import value_text

if TYPE_CHECKING:
    from irc.ir.block import Block
    from irc.ir.graph import Graph
    from irc.ir.node import Node
    from irc.ir.text.lexer import Scanner
    from irc.ir.value import Value

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
