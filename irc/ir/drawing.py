"""The picture of a graph: a box for each input, node and return, arrows for values, blocks nested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from irc.drawing import Arrow, Box, Picture, to_svg
from irc.ir.graph import Graph, Module
from irc.ir.kinds import CALL, CONSTANT, IF
from irc.ir.node import Block, Node, Value, describe
from irc.ir.region_flow import callee, graphs_of
from irc.support.formatting import count

NESTED = 8
"""Blocks inside of blocks are drawn so deep; deeper ones are boxes without contents."""

NOTEBOOK = 150
"""Boxes of a block that a notebook shows."""


@dataclass
class Scope:
    """What is drawn of one block.

    Attributes:
        items: parameters and values from outside, then nodes in order, then the return if it has operands. Constants
            are left out.
        edges: index of an item, index of an item that uses a value of the first, and that value. From a value that a
            nested block captures, it leads to the node around.
        left_out: how many nodes there are besides.
    """

    items: list[Value | Node] = field(default_factory=list[Value | Node])
    edges: list[tuple[int, int, Value]] = field(default_factory=list[tuple[int, int, Value]])
    left_out: int = 0


def scope_of(block: Block, most: int | None = None) -> Scope:
    """The picture of ``block``, with at most its first ``most`` nodes."""
    nodes = [node for node in block.nodes if node.kind != CONSTANT]
    left_out = len(nodes) - len(nodes[:most])
    nodes = nodes[:most]
    if not left_out and block.returns:
        nodes.append(block.return_node)
    used = {node: _used(node) for node in nodes}
    own = {value for node in nodes for value in node.outputs}
    around = dict.fromkeys(value for values in used.values() for value in values if value not in own)
    params = [value for value in block.params if most is None or value in around]
    items: list[Value | Node] = [*dict.fromkeys([*params, *around]), *nodes]
    place: dict[Value, int] = {}
    for i, item in enumerate(items):
        place.update(dict.fromkeys([item] if isinstance(item, Value) else item.outputs, i))
    edges = {
        (place[value], place_of): value
        for place_of, node in enumerate(items)
        if isinstance(node, Node)
        for value in used[node]
    }
    return Scope(items, [(a, b, value) for (a, b), value in edges.items()], left_out)


def _used(node: Node) -> list[Value]:
    values = dict.fromkeys([*node.inputs, *(node.captures() if node.blocks else ())])
    return [value for value in values if not value.made_by(CONSTANT)]


def inner_blocks(node: Node) -> list[tuple[str, Block]]:
    """The blocks of ``node``, and those of graphs that are its attributes, each with a word for it."""
    words = ("then", "else") if node.kind == IF and len(node.blocks) == 2 else ("body",) * len(node.blocks)
    return [*zip(words, node.blocks), *(("fused", graph.block) for graph in graphs_of(node))]


def picture_of(target: Graph | Module, most: int | None = None) -> Picture:
    """A picture of a graph, or of all graphs of a module, with at most ``most`` nodes a block."""
    graphs = [target] if isinstance(target, Graph) else list(target.graphs.values())
    pictures = [_picture(graph.block, f"graph {graph.name}", most, NESTED) for graph in graphs]
    if len(pictures) == 1:
        return pictures[0]
    boxes = [Box([graph.name], picture.title, "block", picture) for graph, picture in zip(graphs, pictures)]
    return Picture("a module", boxes, keeps_order=True)


def notebook_html(graph: Graph) -> str:
    """HTML for notebooks: a picture of the graph, or of its first nodes."""
    return f'<div style="max-height:40em;overflow:auto">{to_svg(picture_of(graph, NOTEBOOK))}</div>'


def _picture(block: Block, title: str, most: int | None, depth: int) -> Picture:
    scope = scope_of(block, most)
    boxes = [box_of(item, block, most, depth) for item in scope.items]
    if scope.left_out:
        more = f"and {count(scope.left_out, 'more node')}"
        boxes.append(Box([more], more, "capture"))
    arrows = [Arrow(a, b, title=_value_text(value)) for a, b, value in scope.edges]
    return Picture(title, boxes, arrows)


def box_of(item: Value | Node, block: Block, most: int | None = None, depth: int = 0) -> Box:
    """The box of an item of the scope of ``block``, with what is inside of it to this ``depth``."""
    if isinstance(item, Value):
        is_param = item.node is None and item.block is block
        return Box([f"%{item.name}", str(item.type)], _value_text(item), "input" if is_param else "capture")
    if item.is_return:
        names = [f"%{value.name}" for value in item.inputs]
        return Box(["return", ", ".join(names[:4])], f"return {', '.join(names)}", "output")
    blocks = inner_blocks(item)
    box = Box([*_head(item), *_result_types(item)], _title_of(item), _sort_of(item))
    if not blocks or not depth:
        return box
    inner = [
        Box([word], f"{word} of {describe(item)}", "block", _picture(b, word, most, depth - 1)) for word, b in blocks
    ]
    inside = inner[0].inner if len(inner) == 1 and inner[0].inner else Picture("blocks", inner, keeps_order=True)
    return replace(box, inner=inside)


def _sort_of(node: Node) -> str:
    return "group" if graphs_of(node) else "block" if node.blocks or node.kind == CALL else "op"


def _head(node: Node) -> list[str]:
    if node.kind == CALL:
        return [callee(node) or node.kind, *_results(node)]
    domain, _, operator = node.kind.partition("::")
    kind = operator if domain in ("onnx", "prim") else node.kind
    return [kind, *_results(node)]


def _results(node: Node) -> Sequence[str]:
    return [", ".join(f"%{value.name}" for value in node.outputs[:4])] if node.outputs else []


def _title_of(node: Node) -> str:
    return "\n".join([describe(node), *(_value_text(value) for value in node.outputs)])


def _value_text(value: Value) -> str:
    return f"%{value.name} : {value.type}"


def _result_types(node: Node) -> Sequence[str]:
    return [str(node.outputs[0].type)] if len(node.outputs) == 1 else []
