"""Errors about a place in a graph: the node, IR lines around it, and a caret under the fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irc.errors import Error
from irc.ir.block import Block
from irc.ir.graph import Graph
from irc.ir.node import Node
from irc.ir.text.printer import NodeText, node_text, print_node
from irc.ir.types import Type
from irc.ir.value import Value

_AROUND = 2
"""Lines of IR shown before the node; one less is shown after it."""
_WIDTH = 120
"""Columns of a line of IR that are shown."""


def node_error(code: str, message: str, node: Node, *, input: int | None = None, output: int | None = None) -> Error:
    """An error about ``node``, or about one of its inputs or outputs.

    Args:
        code: such as ``"IRC212"``.
        message: what is wrong and what to do about it.
        node: the node at fault; a block's return node stands for the block's results.
        input: number of the input at fault.
        output: number of the output at fault.
    """
    text = _line(node)
    line = str(text)
    start, width = _span(text, input, output)
    shown, start, width = _window(line, start, width)
    lines = [*(_cut(print_node(n)) for n in _before(node)), shown, " " * start + "^" * width]
    after = None if node.is_return else node.next
    lines += [_cut(print_node(after))] if after is not None else []
    place = _describe(node.block)
    excerpt = "\n".join(f"    {text}" for text in lines)
    return Error(code, f"{message}\n  in {place}:\n{excerpt}", _where(node))


def _line(node: Node) -> NodeText:
    if not node.is_return:
        return node_text(node)
    head = "->" if node.block is not None and node.block.node is not None else "return"
    return node_text(node)._replace(operator=f"{head} ")


def _before(node: Node) -> list[Node]:
    found: list[Node] = []
    earlier = node.prev
    while earlier is not None and len(found) < _AROUND:
        found.append(earlier)
        earlier = earlier.prev
    return found[::-1]


def _span(text: NodeText, input: int | None, output: int | None) -> tuple[int, int]:
    """Column and width of what the caret marks: an output's or input's name, else the operator's."""
    if output is not None:
        return sum(len(t) + 2 for t in text.outputs[:output]), len(text.outputs[output].partition(" : ")[0])
    head = len(str(text._replace(inputs=[], notes=""))) - len("()")
    if input is not None:
        return head + 1 + sum(len(t) + 2 for t in text.inputs[:input]), len(text.inputs[input])
    kind = len(text.operator.partition("[")[0].rstrip())
    return head - len(text.operator), kind


def _window(line: str, start: int, width: int) -> tuple[str, int, int]:
    """The part of a long line that shows what is marked, and where it stands in it."""
    cut = max(0, start - _WIDTH // 2)
    if cut:
        line, start = "..." + line[cut:], start - cut + 3
    return _cut(line), start, max(1, min(width, _WIDTH - start))


def _cut(line: str) -> str:
    return line if len(line) <= _WIDTH else line[:_WIDTH] + "..."


def _describe(block: Block | None) -> str:
    if block is None:
        return "no block"
    if block.node is None:
        return f"graph {block.graph.name}"
    return f"block{block.node.blocks.index(block)} of {_where(block.node)}, graph {block.graph.name}"


def _where(node: Node) -> str:
    """A node in a few words: its outputs, operator and name."""
    if node.is_return:
        return f"the results of {_describe(node.block)}"
    outputs = ", ".join(f"%{v.name}" for v in node.outputs[:3]) + (", ..." if len(node.outputs) > 3 else "")
    name = f" ({node.name})" if node.name else ""
    return f"{outputs} = {node.kind}{name}" if outputs else f"{node.kind}{name}"


# Graphs that hold what is none of the IR's classes, such as None among the inputs of a node.
#
# Methods never make one. The verifier looks for it once it has stumbled, so that sound graphs pay nothing.


# pyright: reportPrivateUsage=false, reportUnnecessaryIsInstance=false, reportUnknownMemberType=false
# What annotations promise is what is checked here.


def malformed(graph: Graph) -> Error | None:
    """The IRC210 for the first part of ``graph`` that is of a wrong Python class; None if there is none."""
    fault = next(_faults(graph), None)
    return None if fault is None else Error("IRC210", fault, f"graph {graph.name}")


def _faults(graph: Graph) -> Iterator[str]:
    pending: list[Any] = [graph.block]
    seen: set[int] = set()
    while pending:
        block = pending.pop()
        if not isinstance(block, Block):
            yield f"a node has {block!r} among its blocks"
            continue
        if id(block) in seen:
            yield "a block belongs to two nodes"
            continue
        seen.add(id(block))
        yield from _value_faults("a block", "parameters", block.params)
        node: Any = block.return_node
        while True:
            yield from _node_faults(node)
            if isinstance(node.blocks, tuple):
                pending += node.blocks
            node = node._next
            if not isinstance(node, Node):
                yield f"{node!r} follows a node"
                break
            if node is block.return_node or id(node) in seen:
                break
            seen.add(id(node))


def _node_faults(node: Node) -> Iterator[str]:
    for what, text in (("kind", node.kind), ("name", node.name), ("scope", node.scope)):
        if not isinstance(text, str):
            yield f"the {what} of a node is {text!r}, not a string"
    who = f"node {node.kind}"
    if not isinstance(node.attributes, dict):
        yield f"the attributes of {who} are {node.attributes!r}, not a dict"
    elif any(not isinstance(key, str) for key in node.attributes):
        yield f"an attribute of {who} has a name that is not a string"
    if not isinstance(node.blocks, tuple):
        yield f"the blocks of {who} are {node.blocks!r}, not a tuple of them"
    yield from _value_faults(who, "inputs", node.inputs)
    yield from _value_faults(who, "outputs", node.outputs)


def _value_faults(who: str, what: str, values: Any) -> Iterator[str]:
    if not isinstance(values, tuple):
        yield f"the {what} of {who} are {values!r}, not a tuple of values"
        return
    for value in values:  # type: ignore[reportUnknownVariableType]
        if not isinstance(value, Value):
            yield f"{who} has {value!r} among its {what}"
        elif not isinstance(value._name, str):
            yield f"a value among the {what} of {who} is called {value._name!r}"
        elif not isinstance(value.type, Type):
            yield f"%{value._name} of {who} has the type {value.type!r}, which is none of irc.ir.types"
