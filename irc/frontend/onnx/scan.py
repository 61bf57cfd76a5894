"""First pass over a model: its graphs as plain lists of nodes, with all names checked.

Every value must be defined once in its graph (SSA) and before it is used, in
this graph or one around it. Nodes in another order are sorted, if there is an
order at all. This pass knows nothing of operators.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from irc.errors import Error
from irc.frontend.onnx.checks import text, texts
from irc.frontend.onnx.descriptions import said_of, said_of_graph, said_of_values
from irc.frontend.onnx.opsets import Operator, is_standard
from irc.ops.opaque import graph_key

if TYPE_CHECKING:
    from onnx import (
        AttributeProto,
        FunctionProto,
        GraphProto,
        NodeProto,
        SparseTensorProto,
        TensorProto,
        TypeProto,
        ValueInfoProto,
    )

MAX_DEPTH = 64
"""How deep graphs and function calls may nest, together."""

_GRAPH, _GRAPHS = 5, 10  # AttributeProto.AttributeType


@dataclass(slots=True, eq=False)
class RawFunction:
    """A local function: its graph (scanned when it is first called), and what it takes."""

    proto: FunctionProto
    key: tuple[str, str, str]
    graph: RawGraph
    imports: dict[str, int]
    attributes: dict[str, AttributeProto | None]  # name -> default

    @property
    def label(self) -> str:
        """What it is called in messages and, where unique, in the module: ``domain.Name:overload``."""
        domain, name, overload = self.key
        return f"{domain or 'onnx'}.{name}" + (f":{overload}" if overload else "")


@dataclass(slots=True, eq=False)
class RawNode:
    """A node: the parts of its proto that are needed more than once, and what it was resolved to."""

    proto: NodeProto
    name: str
    op_type: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[AttributeProto]
    graphs: dict[str, RawGraph]
    target: Operator | RawFunction | None = None  # set by resolve

    def __str__(self) -> str:
        """The node in messages: its name, or its first output where it has none, and its operator."""
        operator = self.op_type if is_standard(self.domain) else f"{self.domain}::{self.op_type}"
        output = next(filter(None, self.outputs), "")
        return f"node {self.name!r} ({operator})" if self.name else f"the {operator} node that makes {output!r}"

    def user(self, name: str) -> str:
        """The node in messages that uses ``name``: this one or the first nested one."""
        return next((g.captures[name] for g in self.graphs.values() if name in g.captures), str(self))

    def uses(self) -> Iterator[str]:
        """Names it uses, captures of its graphs included."""
        for name in self.inputs:
            if name:
                yield name
        for graph in self.graphs.values():
            yield from graph.captures


class RawGraph:
    """A graph, subgraph or function body; its nodes are sorted.

    Attributes:
        where: the graph in messages.
        name: what the model calls it.
        inputs: names and declared types (of graphs).
        outputs: likewise; a nested graph may give one value several times.
        numbers: the position of each initializer in the message.
        declared: types that the graph declares of its values.
        captures: names it uses but does not define, and the user of each.
        metadata: what the model says of it.
        described: what the model says of its values, by name.
    """

    __slots__ = (
        "captures",
        "declared",
        "described",
        "initializers",
        "inputs",
        "metadata",
        "name",
        "nodes",
        "numbers",
        "outputs",
        "sparse",
        "where",
    )

    def __init__(self, where: str) -> None:
        self.where = where
        self.name = ""
        self.inputs: dict[str, TypeProto | None] = {}
        self.outputs: list[tuple[str, TypeProto | None]] = []
        self.initializers: dict[str, TensorProto] = {}
        self.numbers: dict[str, int] = {}
        self.sparse: dict[str, SparseTensorProto] = {}
        self.nodes: list[RawNode] = []
        self.declared: dict[str, TypeProto] = {}
        self.captures: dict[str, str] = {}
        self.metadata: dict[str, str] = {}
        self.described: dict[str, dict[str, str]] = {}

    def walk(self) -> Iterator[RawNode]:
        """All nodes, nested ones too, in pre-order."""
        stack = [iter(self.nodes)]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                continue
            yield node
            stack += [iter(graph.nodes) for graph in reversed(node.graphs.values())]

    def drain(self) -> Iterator[RawNode]:
        """The nodes, each dropped when the next is requested, so that a large model is not in memory twice."""
        self.nodes.reverse()
        while self.nodes:
            yield self.nodes.pop()

    def names(self) -> Iterator[str]:
        """Names defined here (not in nested graphs)."""
        yield from self.inputs
        yield from self.initializers
        yield from self.sparse
        for node in self.nodes:
            yield from filter(None, node.outputs)


def scan_graph(proto: GraphProto, where: str = "the graph", depth: int = 1, usual_name: str = "") -> RawGraph:
    """Read a graph with all that is nested in it. Raises IRC124, IRC125, IRC126, IRC133."""
    if depth > MAX_DEPTH:
        raise Error("IRC133", f"graphs nest deeper than {MAX_DEPTH} levels", where)
    graph = RawGraph(where)
    graph.name = text(proto.name, where)
    inputs, graph.outputs = _named(proto.input, where), _named(proto.output, where)
    graph.inputs = dict(inputs)
    _check_names("input", [name for name, _ in inputs], where)
    if depth == 1:
        graph.outputs = [*{name: (name, type) for name, type in graph.outputs}.values()]  # once, as results have names
        _check_names("output", [name for name, _ in graph.outputs], where)
    for number, tensor in enumerate(proto.initializer):
        graph.initializers[_initializer_name(graph, tensor.name)] = tensor
        graph.numbers[tensor.name] = number
    for sparse in proto.sparse_initializer:
        graph.sparse[_initializer_name(graph, sparse.values.name)] = sparse
        graph.initializers.pop(sparse.values.name, None)
    graph.declared = {text(info.name, where): info.type for info in proto.value_info}
    graph.described = said_of_values(proto, where)
    graph.metadata = said_of_graph(proto, where, usual_name)
    _scan_nodes(graph, proto.node, depth)
    return graph


def scan_function(proto: FunctionProto, graph: RawGraph) -> None:
    """Read the body of a function into ``graph``. Raises as ``scan_graph`` does."""
    inputs = texts(proto.input, graph.where)
    _check_names("input", inputs, graph.where)
    graph.inputs = dict.fromkeys(inputs)
    graph.outputs = [(name, None) for name in texts(proto.output, graph.where)]
    graph.declared = {text(info.name, graph.where): info.type for info in proto.value_info}
    graph.described = said_of_values(proto, graph.where)
    graph.metadata = said_of(proto, graph.where)
    _scan_nodes(graph, proto.node, 1)
    no_captures(graph)


def no_captures(graph: RawGraph) -> None:
    """Raise IRC125 if ``graph``, which has no graph around it, uses a name that it does not define."""
    for name, user in graph.captures.items():
        raise Error("IRC125", f"{name!r} is used but never defined: no input, initializer or node gives it", user)


def _named(infos: Iterable[ValueInfoProto], where: str) -> list[tuple[str, TypeProto | None]]:
    return [(text(info.name, where), info.type if info.HasField("type") else None) for info in infos]


def _check_names(kind: str, names: Sequence[str], where: str) -> None:
    for name, count in Counter(names).items():
        if not name:
            raise Error("IRC124", f"an {kind} has no name", where)
        if count > 1:
            raise Error("IRC124", f"two {kind}s are called {name!r}: names must be unique", where)


def _initializer_name(graph: RawGraph, name: str) -> str:
    """The name of an initializer. Of several with one name the last counts, as in ONNX Runtime."""
    if not text(name, graph.where):
        raise Error("IRC124", "an initializer has no name", graph.where)
    return name


def _scan_nodes(graph: RawGraph, protos: Iterable[NodeProto], depth: int) -> None:
    graph.nodes = nodes = [_scan_node(proto, depth) for proto in protos]
    owners: dict[str, RawNode | None] = dict.fromkeys(graph.inputs)
    owners.update(dict.fromkeys(graph.initializers))
    owners.update(dict.fromkeys(graph.sparse))
    replaced: set[RawNode | None] = set()
    for node in nodes:
        for name in node.outputs:
            if name in owners:
                if not _replaces(node, name, owners[name], graph):
                    _duplicate(name, owners[name], node)
                replaced.add(owners[name])
            if name:
                owners[name] = node
    if replaced:
        graph.nodes = nodes = [node for node in nodes if node not in replaced]
    seen: set[RawNode | None] = {None}
    is_sorted = True
    for node in nodes:
        for name in node.uses():
            if name not in owners:
                graph.captures.setdefault(name, node.user(name))
            elif owners[name] not in seen:
                is_sorted = False
        seen.add(node)
    for name, _ in graph.outputs:
        if name not in owners:
            graph.captures.setdefault(name, f"output {name!r} of {graph.where}")
    if not is_sorted:
        graph.nodes = _sorted(graph, owners)


def _replaces(node: RawNode, name: str, owner: RawNode | None, graph: RawGraph) -> bool:
    """Whether ``node``, a constant, stands in place of a constant or initializer of that name: the last counts.

    ONNX Runtime takes constants for initializers that come after the others.
    """
    if not _is_constant(node) or name in graph.inputs:
        return False
    if owner is None:
        graph.initializers.pop(name, None)
        graph.sparse.pop(name, None)
        return True
    return _is_constant(owner)


def _is_constant(node: RawNode) -> bool:
    return node.op_type == "Constant" and is_standard(node.domain)


def _scan_node(proto: NodeProto, depth: int) -> RawNode:
    attributes = list(proto.attribute)
    op_type, domain, name = texts((proto.op_type, proto.domain, proto.name), "a node")
    inputs, outputs = texts(proto.input, name), texts(proto.output, name)
    node = RawNode(proto, name, op_type, domain, inputs, outputs, attributes, {})
    for attribute in attributes:
        type = attribute.type
        if type == _GRAPH or (not type and attribute.HasField("g")):  # IR version 1 gives no types
            key = text(attribute.name, node)
            if attribute.ref_attr_name:
                raise Error("IRC132", f"functions with graphs as attributes are not supported ({key!r})", str(node))
            node.graphs[key] = scan_graph(attribute.g, f"{key} of {node}", depth + 1, key)
        elif type == _GRAPHS:
            key = text(attribute.name, node)
            for number, graph in enumerate(attribute.graphs):
                inner = graph_key("graphs", key, number)
                node.graphs[inner] = scan_graph(graph, f"{inner} of {node}", depth + 1)
    return node


def _duplicate(name: str, first: RawNode | None, second: RawNode) -> NoReturn:
    owner = str(first) if first else "an input or initializer"
    raise Error("IRC124", f"{name!r} is defined twice, the first time by {owner}: names must be unique", str(second))


def _sorted(graph: RawGraph, owners: dict[str, RawNode | None]) -> list[RawNode]:
    """The nodes in topological order, as near to the given one as possible; IRC126 if there is a cycle.

    Kahn's algorithm, always taking the earliest node that is ready.
    """
    number = {node: i for i, node in enumerate(graph.nodes)}
    needs = [{number[owner] for name in node.uses() if (owner := owners.get(name)) is not None} for node in graph.nodes]
    users: list[list[int]] = [[] for _ in needs]
    for i, producers in enumerate(needs):
        for producer in producers:
            users[producer].append(i)
    waiting = [len(producers) for producers in needs]
    ready = [i for i, count in enumerate(waiting) if not count]
    order: list[int] = []
    while ready:
        i = heapq.heappop(ready)
        order.append(i)
        for user in users[i]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    if len(order) < len(needs):
        _cycle(graph, needs, set(order))
    return [graph.nodes[i] for i in order]


def _cycle(graph: RawGraph, needs: Sequence[set[int]], done: set[int]) -> NoReturn:
    """Raise IRC126 for the nodes that are not ``done``, each of which waits for another one."""
    at = next(i for i in range(len(needs)) if i not in done)
    path: dict[int, None] = {}
    while at not in path:
        path[at] = None
        at = next(i for i in needs[at] if i not in done)
    steps = list(path)
    cycle = steps[steps.index(at) :][::-1]  # from producer to user
    first = cycle.index(min(cycle))
    cycle = cycle[first:] + cycle[:first]
    names = [next(filter(None, graph.nodes[i].outputs), "?") for i in cycle]
    shown = names if len(names) <= 8 else [*names[:4], "...", *names[-3:]]
    text = " -> ".join([*map(repr, shown), repr(names[0])])
    raise Error("IRC126", f"the graph has a cycle: {text}", str(graph.nodes[cycle[0]]))
