"""Copying nodes, blocks, graphs and modules.

Copies are nodes and values of their own, in the order of the originals and with their names; tensors, types and
metadata, which never change, are shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from irc.ir.declarations import FIXED_SIZES_KEYS, OUTPUT_TYPE
from irc.ir.graph import Graph, Module
from irc.ir.kinds import GROUP
from irc.ir.node import Block, Node, Value
from irc.ir.objects import PLAIN, map_tensors
from irc.ir.tensor import Tensor, WeightTable
from irc.ir.types import Type

ValueMap = dict[Value, Value]


def clone_node(node: Node, graph: Graph, mapping: ValueMap) -> Node:
    """A copy of ``node``, nested blocks included, for ``graph``; in no block yet.

    Inputs are looked up in ``mapping`` (a value that is missing there is used
    as it is, so it must belong to ``graph``); the copies of all values are
    entered into it. Names are kept, made unique where they are taken.
    """
    copy = _clone_one(node, graph, mapping)
    if not node.blocks:
        return copy
    pending = [(node, copy)]
    while pending:  # not recursive: nesting may be deep
        old, new = pending.pop()
        for old_block in old.blocks:
            new_block = new.add_block()
            pending.extend(clone_nodes(old_block, new_block, mapping, nested=False))
    # Returns may name values of nested blocks copied later, so they are bound last.
    _bind_returns(node, copy, mapping)
    return copy


def counterpart(node: Node, kind: str, inputs: Iterable[Value], outputs: Sequence[Type]) -> Node:
    """A new node of ``kind`` with ``node``'s attributes, version, name, scope and metadata.

    It is in no block yet.
    """
    made = node.graph.create(
        kind, inputs, outputs, attributes=dict(node.attributes), version=node.version, name=node.name
    )
    made.scope = node.scope
    _copy_metadata([node], [made])
    return made


def clone_nodes(source: Block, into: Block, mapping: ValueMap, nested: bool = True) -> list[tuple[Node, Node]]:
    """Append copies of ``source``'s nodes to ``into``, and its parameters unless mapped already.

    Returns the pairs (original, copy). The returns of ``into`` are left alone:
    ``[mapping[v] for v in source.returns]`` are the copies of the source's.
    """
    params = [param for param in source.params if param not in mapping]
    copies = into.add_params([p.type for p in params], [p.name for p in params])
    mapping.update(zip(params, copies, strict=True))
    if source.graph.has_metadata:
        _copy_metadata([source, *params], [into, *copies])
    pairs: list[tuple[Node, Node]] = []
    for node in source.nodes:
        copy = clone_node(node, into.graph, mapping) if nested else _clone_one(node, into.graph, mapping)
        into.append(copy)
        pairs.append((node, copy))
    return pairs


def copy_graph(graph: Graph, weights: WeightTable | None = None, module: Module | None = None) -> Graph:
    """A structurally equal copy, with a weight table of its own unless one is given."""
    weights = WeightTable(graph.weights) if weights is None else weights
    copy = Graph(graph.name, weights, module or graph.module)
    mapping: ValueMap = {}
    clone_nodes(graph.block, copy.block, mapping)
    copy.set_outputs([mapping[v] for v in graph.outputs])
    return copy


def copy_module(module: Module) -> Module:
    """A module of copied graphs that shares the immutable tensors and objects, with tables of its own."""
    copy = Module()
    copy.weights.update(module.weights)
    copy.metadata.update(module.metadata)
    copy.defaults.update(module.defaults)
    copy.objects.update(module.objects)
    copy.sources = module.sources
    copy.graphs.clear()
    for name, graph in module.graphs.items():
        copied = copy_graph(graph, copy.weights, copy)
        copy.graphs[name] = copied
        if graph is module.main:
            copy.main = copied
    return copy


def module_of(graph: Graph) -> Module:
    """A module of copied graphs with that of ``graph`` as main, and the functions that it may call."""
    given = _home(graph)
    if given is None:
        copy = Module(graph.copy())
        copy.sources = () if graph.module is None else graph.module.sources
        return copy
    copy = given.copy()
    if graph is not given.main:  # what is said of inputs and outputs is said of those of the main graph
        copy.main = copy.graphs[graph.name]
        copy.defaults.clear()
        copy.objects.clear()
        of_main = (OUTPUT_TYPE, *FIXED_SIZES_KEYS)
        copy.metadata = {key: text for key, text in copy.metadata.items() if not key.startswith(of_main)}
    return copy


def verify_given(model: Module | Graph, *, operators: bool = True) -> None:
    """Verify all that a copy of ``model`` would have, before copying: a copy would use invisible values.

    ``operators`` is as of `irc.ir.verify.verifier.verify`.
    """
    home = model if isinstance(model, Module) else _home(model)
    (home or model).verify(operators=operators)


def _home(graph: Graph) -> Module | None:
    """The module that ``graph`` is a function of; None if it is alone, or nested in another graph's node."""
    module = graph.module
    return module if module is not None and module.graphs.get(graph.name) is graph else None


def _clone_one(node: Node, graph: Graph, mapping: ValueMap) -> Node:
    copy = Node(graph, node.kind, [mapping.get(v, v) for v in node.inputs], None, node.version, node.name)
    copy.scope = node.scope
    if node.attributes:
        copy.attributes = {key: _copy_attribute(value, graph) for key, value in node.attributes.items()}
    outputs = copy.add_outputs([v.type for v in node.outputs], [v.name for v in node.outputs])
    mapping.update(zip(node.outputs, outputs))
    if node.graph.has_metadata:
        _copy_metadata([node, *node.outputs], [copy, *outputs])
    return copy


def _copy_metadata(sources: Sequence[Any], copies: Sequence[Any]) -> None:
    """Let nodes, values or blocks have the metadata of others, where these have any."""
    for source, copy in zip(sources, copies, strict=True):
        if metadata := source.metadata:
            copy.metadata = metadata


def _bind_returns(old: Node, new: Node, mapping: ValueMap) -> None:
    stack = [(old, new)]
    while stack:
        a, b = stack.pop()
        for old_block, new_block in zip(a.blocks, b.blocks, strict=True):
            new_block.set_returns([mapping.get(v, v) for v in old_block.returns])
            stack.extend(zip(old_block.nodes, new_block.nodes, strict=True))


def _copy_attribute(value: Any, graph: Graph) -> Any:
    if value.__class__ in PLAIN:
        return value
    if isinstance(value, Tensor):
        return _entered(graph, value)
    if isinstance(value, Graph):
        return copy_graph(value, graph.weights, graph.module)
    return map_tensors(value, partial(_entered, graph))


def _entered(graph: Graph, tensor: Tensor) -> Tensor:
    """``tensor``, in the weight table of ``graph`` if it is a weight."""
    if not tensor.name or graph.weights.get(tensor.name) is tensor:
        return tensor
    return graph.weights.add(tensor.name, tensor)


# Moving nodes from one graph to another without copying them.


# pyright: reportPrivateUsage=false


def splice_node(node: Node, point: Node) -> None:
    """Move ``node``, nested blocks included, to right before ``point``, which may be in another graph.

    Names are made unique there. Inputs are left as they are: the caller binds
    those of the old graph to values of the new one.
    """
    node._unlink()
    node.insert_before(point)
    if node.graph is point.graph:
        return
    point.graph.has_metadata |= node.graph.has_metadata
    stack = [node]
    while stack:
        moved = stack.pop()
        moved.graph = point.graph
        for value in moved.outputs:
            _splice_value(value, point.graph)
        for block in moved.blocks:
            block.graph = block.return_node.graph = point.graph
            for param in block.params:
                _splice_value(param, point.graph)
            stack.extend(block.nodes)


def exchange_outputs(a: Value, b: Value) -> None:
    """Exchange two outputs' places in their nodes. Uses and names stay; the caller adapts the types."""
    a.node, b.node, a.index, b.index = b.node, a.node, b.index, a.index
    for value in (a, b):
        node = value.node
        assert node is not None, "only outputs of nodes can be exchanged"
        node._report()
        node.outputs = (*node.outputs[: value.index], value, *node.outputs[value.index + 1 :])


def splice_subgraph(group: Node) -> list[Node]:
    """Move the nodes of a fusion group to right before it, and return them; the caller erases the group.

    What is used outside stays the value that it was, under its name, and is now a result of the node that makes it.
    """
    inner: Graph = group.attributes["Subgraph"]
    for param, value in zip(inner.inputs, group.inputs, strict=True):
        param.replace_all_uses_with(value)
    results = list(zip(inner.outputs, group.outputs, strict=True))
    inner.set_outputs(())  # a graph may not return values of another one
    nodes = list(inner.nodes)
    for node in nodes:
        splice_node(node, group)
    for made, value in results:
        if made.node is None or made is value:  # an operand of the group
            value.replace_all_uses_with(made)
        else:
            exchange_outputs(made, value)
            made.replace_all_uses_with(value)
    return nodes


def dissolve_groups(graph: Graph) -> None:
    """Replace all fusion groups by their nodes. Values used outside keep their names."""
    groups = [node for node in graph.walk() if node.kind == GROUP]
    for group in groups:  # grows by those that were inside of others
        groups += [each for node in splice_subgraph(group) for each in (node, *node.nested()) if each.kind == GROUP]
        group.erase()


def _splice_value(value: Value, graph: Graph) -> None:
    value.graph.forget(value)
    value.graph = graph
    graph.name_value(value, value.name)
