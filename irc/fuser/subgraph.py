"""Fusion groups: making them, and merging nodes and groups into them.

A group is a ``prim::FusionGroup`` node whose attribute ``Subgraph`` is a graph
with one input for each input of the node and one output for each output.
Nodes are *moved* between graphs, never cloned, and the AliasDb is updated at
each step, so that a merge costs what it changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.graph import Graph
from irc.ir.tensor import Tensor
from irc.ir.transfer import transfer_node

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.ir import Node, Value

KIND = "prim::FusionGroup"


def subgraph_of(group: Node) -> Graph:
    """The subgraph of a fusion group."""
    graph = group.attributes["Subgraph"]
    assert isinstance(graph, Graph)
    return graph


def is_group(node: Node) -> bool:
    """Whether ``node`` is a fusion group."""
    return node.kind == KIND


def make_group(node: Node, db: AliasDb) -> Node:
    """Put ``node`` alone into a new group, which takes its place. Returns the group."""
    outer = node.graph
    graph = Graph("fused", outer.weights, outer.module)
    group = outer.create(KIND, attributes={"Subgraph": graph})
    group.insert_before(node)
    db.add_node(group)
    merge_node(node, group, db)
    return group


def merge_node(producer: Node, group: Node, db: AliasDb) -> None:
    """Move ``producer``, which stands right before ``group`` in the same block, to the front of the group.

    (Or right behind it, if the group is still empty.)
    """
    graph = subgraph_of(group)
    names = [value.name for value in producer.outputs]
    for value in producer.outputs:
        _publish(value, value, group, db)
    transfer_node(producer, _first(graph))
    for value, name in zip(producer.outputs, names, strict=True):
        value.name = name  # the published results took the names outside
    for index, value in enumerate(producer.inputs):
        if value.graph is not graph:
            producer.replace_input(index, _input_for(value, group, db))


def merge_group(producer: Node, group: Node, db: AliasDb) -> None:
    """Move all nodes of the group ``producer`` to the front of ``group`` and erase the empty ``producer``."""
    inner = subgraph_of(producer)
    graph = subgraph_of(group)
    actual = dict(zip(inner.inputs, producer.inputs, strict=True))
    results = list(zip(producer.outputs, inner.outputs, strict=True))
    inner.set_outputs(())
    point = _first(graph)
    for node in inner.nodes:
        if node.kind == "prim::Constant":
            known = _find_constant(node, graph)
            if known is not None:
                node.output.replace_all_uses_with(known)
                db.erase_value(node.output)
                node.erase()
                continue
        transfer_node(node, point)
    for param, value in actual.items():
        if param.has_uses:
            param.replace_all_uses_with(_input_for(value, group, db))
        db.erase_value(param)
    for outer, value in results:
        _publish(outer, value, group, db)
    db.erase_node(producer)
    producer.erase()


def dissolve(group: Node, db: AliasDb) -> None:
    """Put the nodes of ``group`` back in its place and erase it."""
    graph = subgraph_of(group)
    results = list(zip(group.outputs, graph.outputs, strict=True))
    graph.set_outputs(())
    for node in graph.nodes:
        transfer_node(node, group)
    for param, value in zip(graph.inputs, group.inputs, strict=True):
        param.replace_all_uses_with(value)
        db.erase_value(param)
    for outer, value in results:
        name = outer.name
        outer.replace_all_uses_with(value)
        db.erase_value(outer)
        value.name = name
    db.erase_node(group)
    group.erase()


def _first(graph: Graph) -> Node:
    """The first node that is no constant: constants stand at the front of a subgraph."""
    for node in graph.nodes:
        if node.kind != "prim::Constant":
            return node
    return graph.block.return_node


def _publish(outer: Value, inner: Value, group: Node, db: AliasDb) -> None:
    """Where ``outer`` is used, use ``inner`` inside ``group`` and an output of ``group`` elsewhere.

    ``outer`` may be ``inner`` itself, a value about to move into the group.
    """
    graph = subgraph_of(group)
    for index in reversed([i for i, v in enumerate(group.inputs) if v is outer]):
        param = graph.inputs[index]
        param.replace_all_uses_with(inner)
        db.erase_value(param)
        graph.block.erase_param(index)
        group.erase_input(index)
    if not outer.has_uses or (outer is inner and all(user.graph is graph for user in outer.iter_users())):
        return
    name = outer.name
    result = group.add_output(inner.type)
    db.copy_value(outer, result)
    for user in outer.users:
        if user.graph is not graph:
            for index, value in enumerate(user.inputs):
                if value is outer:
                    user.replace_input(index, result)
    graph.block.return_node.append_input(inner)
    result.name = name


def _input_for(value: Value, group: Node, db: AliasDb) -> Value:
    """What stands for the outer ``value`` inside ``group``: a constant of its own, or a parameter."""
    graph = subgraph_of(group)
    source = value.node
    if source is not None and source.kind == "prim::Constant":
        return _constant_for(source, graph, db)
    for param, actual in zip(graph.inputs, group.inputs, strict=True):
        if actual is value:
            return param
    param = graph.add_input(value.type, value.name)
    group.append_input(value)
    db.copy_value(value, param)
    return param


def _constant_for(source: Node, graph: Graph, db: AliasDb) -> Value:
    """A constant in ``graph`` equal to ``source``; its tensor, if it is one, is shared, not copied."""
    known = _find_constant(source, graph)
    if known is not None:
        return known
    value = source.output
    node = graph.create(
        source.kind, outputs=(value.type,), names=(value.name,), attributes=dict(source.attributes), name=source.name
    )
    graph.block.prepend(node)
    db.copy_value(value, node.output)
    return node.output


def _find_constant(source: Node, graph: Graph) -> Value | None:
    wanted = source.attributes.get("value")
    for node in graph.nodes:
        if node.kind != "prim::Constant":
            return None
        value = node.attributes.get("value")
        if value is wanted and node.output.type == source.output.type:
            return node.output
        if type(value) is type(wanted) and not isinstance(value, Tensor) and value == wanted:
            return node.output
    return None
