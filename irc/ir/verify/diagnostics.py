"""Errors about a place in a graph: the node, IR lines around it, and a caret under the fault."""

from __future__ import annotations

from irc.errors import Error
from irc.ir.node import Block, Node
from irc.ir.text.printer import NodeText, node_text, print_node

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
