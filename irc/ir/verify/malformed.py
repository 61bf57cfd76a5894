"""Graphs that hold what is none of the IR's classes, such as None among the inputs of a node.

Methods never make one. The verifier looks for it once it has stumbled, so that sound graphs pay nothing.
"""

# pyright: reportPrivateUsage=false, reportUnnecessaryIsInstance=false, reportUnknownMemberType=false
# What annotations promise is what is checked here.

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from irc.errors import Error
from irc.ir.block import Block
from irc.ir.graph import Graph
from irc.ir.node import Node
from irc.ir.types import Type
from irc.ir.value import Value


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
            yield f"the {what} of a node is {text!r}, not a text"
    who = f"node {node.kind}"
    if not isinstance(node.attributes, dict):
        yield f"the attributes of {who} are {node.attributes!r}, not a dict"
    elif any(not isinstance(key, str) for key in node.attributes):
        yield f"an attribute of {who} has a name that is no text"
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
