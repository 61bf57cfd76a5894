"""Fusion groups: making and dissolving them.

A group is a ``prim::FusionGroup`` node whose attribute ``Subgraph`` is a graph
with one input for each input of the node and one output for each output.
Nodes are *moved* between graphs, never cloned. What is used outside of the
group stays the value that it was and becomes an output of the group, so that
the AliasDb need be told only what has gone inside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from irc.alias import AliasDb
from irc.ir import CONSTANT, GROUP, Graph, Node, Value
from irc.ir.clone import exchange_outputs, splice_node, splice_subgraph
from irc.ir.metadata import quantization


def subgraph_of(group: Node) -> Graph:
    """The subgraph of a fusion group."""
    graph = group.attributes["Subgraph"]
    assert isinstance(graph, Graph)
    return graph


def is_group(node: Node) -> bool:
    """Whether ``node`` is a fusion group."""
    return node.kind == GROUP


def make_group(nodes: Sequence[Node], db: AliasDb) -> Node:
    """Put ``nodes``, adjacent ones of one block in their order, into a new group, which takes their place.

    They write nothing, and what is used outside of the group is fresh memory: so are the results of the group.
    """
    outer = nodes[0].graph
    graph = Graph("fused", outer.weights, outer.module)
    end = graph.block.return_node
    group = outer.create(GROUP, attributes={"Subgraph": graph}).insert_after(nodes[-1])
    inputs = _Inputs(graph)
    inside = set(nodes)
    operators = [node for node in nodes if node.kind != CONSTANT]
    # Constants first: a constant from outside that equals one of these is then not copied in.
    for node in nodes:
        if node.kind == CONSTANT:
            inputs.take_constant(node, db)
    for node in operators:
        if not inside.issuperset([value.node for value in node.inputs]):
            node.set_inputs([v if v.node in inside else inputs.stand_in(v) for v in node.inputs])
    group.set_inputs(inputs.actual)
    results: list[Value] = []
    for node in operators:
        # A result is renamed once its node has left: until then, the outer graph has its name.
        published = [_publish(v, group, inside, db) for v in node.outputs if not _stays_inside(v, inside, db)]
        splice_node(node, end)
        for inner, name in published:
            inner.name = name
            results.append(inner)
    graph.set_outputs(results)
    return group


def dissolve(group: Node, db: AliasDb) -> list[Node]:
    """Put the nodes of ``group`` back in its place and erase it. Returns them, constants too."""
    nodes = splice_subgraph(group)
    db.erase_node(group)
    group.erase()
    return nodes


class _Inputs:
    """The outside values that the nodes of a new group use, and the values that stand for them inside.

    Attributes:
        actual: the inputs of the group.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.actual: list[Value] = []
        self._stand_ins: dict[Value, Value] = {}
        self._constants: dict[Any, Value] = {}

    def stand_in(self, value: Value) -> Value:
        """The value for ``value`` inside: the group's own constant sharing the tensor, or a parameter."""
        found = self._stand_ins.get(value)
        if found is None:
            source = value.made_by(CONSTANT)
            if source is not None:
                found = self._constant(source)
            else:
                found = self.graph.add_input(value.type, value.name)
                self.actual.append(value)
            self._stand_ins[value] = found
        return found

    def take_constant(self, node: Node, db: AliasDb) -> None:
        """Move a constant that only members of the group use to the front of the group."""
        known = self._constants.setdefault(_constant_key(node), node.output)
        if known is node.output:
            splice_node(node, self.graph.block.return_node)
        else:
            node.output.replace_all_uses_with(known)
            db.erase_value(node.output)
            node.erase()

    def _constant(self, source: Node) -> Value:
        key = _constant_key(source)
        found = self._constants.get(key)
        if found is None:
            value, attributes = source.output, dict(source.attributes)
            copy = self.graph.create(
                CONSTANT, outputs=(value.type,), names=(value.name,), attributes=attributes, name=source.name
            )
            copy.metadata, copy.output.metadata = source.metadata, value.metadata
            self.graph.block.append(copy)
            found = self._constants[key] = copy.output
        return found


def _constant_key(node: Node) -> tuple[Any, ...]:
    """A key that equal constants share: numbers by their text (0.0 is not -0.0), others by identity.

    What is said of their quantization counts, too.
    """
    value = node.attributes.get("value")
    same = repr(value) if value is None or isinstance(value, _SCALARS) else id(value)
    return node.output.type, same, frozenset(quantization(node.output.metadata).items())


_SCALARS = (bool, int, float, complex, str)


def _stays_inside(value: Value, inside: set[Node], db: AliasDb) -> bool:
    """Whether only members of the group use ``value``."""
    if inside.issuperset(value.iter_users()):
        db.erase_value(value)
        return True
    return False


def _publish(value: Value, group: Node, inside: set[Node], db: AliasDb) -> tuple[Value, str]:
    """Make ``value`` an output of ``group``; return the value that stands for it inside, and its name."""
    db.rehome_value(value)
    users = [user for user in value.iter_users() if user in inside]
    inner = group.add_output(value.type)
    exchange_outputs(inner, value)
    for user in users:
        user.set_inputs([inner if v is value else v for v in user.inputs])
    return inner, value.name
