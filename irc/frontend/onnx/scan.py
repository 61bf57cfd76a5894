"""First pass over a model: its graphs as plain lists of nodes, with all names checked.

Every value must be defined once in its graph (SSA) and before it is used, in
this graph or one around it. Nodes in another order are sorted, if there is an
order at all. This pass knows nothing of operators.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, TypeVar

import onnx

from irc.errors import Error
from irc.frontend.onnx.opsets import Operator, bind, is_standard, opaque, read_imports
from irc.frontend.onnx.types import MAX_DEPTH, Place, text, texts
from irc.ir import Block, Node, Value
from irc.ir.metadata import (
    DECLARED_TYPE,
    DENOTATION,
    DOC_STRING,
    GRAPH_NAME,
    NOT_PROPERTIES,
    QUANTIZATION,
    QUANTIZATION_TENSOR,
    SOURCE,
    frozen,
)
from irc.ir.types import Type, without_shapes
from irc.ops.opaque import graph_key

# What a model says of its graphs, nodes and values beside what they compute, as metadata of the IR.


def said_of(proto: Any, where: Place) -> dict[str, str]:
    """The metadata in the ``metadata_props`` and the ``doc_string`` of a proto."""
    found = {text(entry.key, where): text(entry.value, where) for entry in proto.metadata_props}
    found = {key: value for key, value in found.items() if not key.startswith(NOT_PROPERTIES)}
    if proto.doc_string:
        found[DOC_STRING] = text(proto.doc_string, where)
    return found


def said_of_graph(proto: onnx.GraphProto, where: Place, usual_name: str) -> dict[str, str]:
    """The metadata of a nested graph, with its name unless that is ``usual_name``."""
    found = said_of(proto, where)
    if proto.name and proto.name != usual_name:
        found[GRAPH_NAME] = text(proto.name, where)
    return found


def value_descriptions(proto: Any, where: Place) -> dict[str, dict[str, str]]:
    """Metadata of the values that a graph or function describes, by name, without empty ones.

    Of a value that is an input or output and an initializer, too, that is what all of these say.
    """
    found: dict[str, dict[str, str]] = {}

    def add(name: str, said: dict[str, str]) -> None:
        if said:
            found.setdefault(text(name, where), {}).update(said)

    for tensor in getattr(proto, "initializer", ()):
        if tensor.doc_string or tensor.metadata_props:
            add(tensor.name, said_of(tensor, where))
    for info in _value_infos(proto):
        said = said_of(info, where) if info.doc_string or info.metadata_props else {}
        said |= {key: text(part.denotation, where) for key, part in denoted(info.type) if part.denotation}
        add(info.name, said)
    annotations = getattr(proto, "quantization_annotation", ())
    names = set(_names(proto)) if annotations else set[str]()
    for annotation in annotations:
        parameters = [(entry.value in names, entry) for entry in annotation.quant_parameter_tensor_names]
        said = {
            (QUANTIZATION_TENSOR if is_value else QUANTIZATION) + text(entry.key, where): text(entry.value, where)
            for is_value, entry in parameters
        }
        add(annotation.tensor_name, said)
    return found


def _names(proto: onnx.GraphProto) -> Iterator[str]:
    """The names of all values that a graph defines."""
    yield from (value.name for values in (proto.input, proto.initializer) for value in values)
    yield from (name for node in proto.node for name in node.output)


def _value_infos(proto: Any) -> Iterator[Any]:
    yield from proto.value_info
    for values in (proto.input, proto.output):
        yield from (value for value in values if not isinstance(value, str))  # functions only name theirs


def denoted(proto: onnx.TypeProto) -> Iterator[tuple[str, Any]]:
    """The parts of a type that may have a denotation, each with the key of that as metadata."""
    key = DENOTATION
    while True:
        yield key, proto
        kind = proto.WhichOneof("value")
        if kind == "tensor_type":
            yield from ((f"{key}.{axis}", dim) for axis, dim in enumerate(proto.tensor_type.shape.dim))
        if kind not in ("sequence_type", "optional_type"):
            return
        proto, key = getattr(proto, kind).elem_type, f"{key}.element"


def describe_declared(value: Value, type: Type) -> None:
    """Note the type that the model declares of ``value``, if it has shapes; inference does not use it."""
    if type not in (value.type, without_shapes(type)):
        value.metadata = {**value.metadata, DECLARED_TYPE: str(type)}


def describe_values(values: Mapping[str, Value], block: Block, said: dict[str, dict[str, str]]) -> None:
    """Give those of ``values`` that are defined in ``block`` the metadata that the model has of them."""
    for name, metadata in said.items():
        value = values.get(name)
        if value is not None and value.block is block:
            value.metadata = {**value.metadata, **metadata}


def describe_nodes(raw: RawNode, nodes: Iterable[Node]) -> None:
    """Give ``nodes``, made from one node of the model, its metadata, and its name as their source."""
    said = said_of(raw.proto, raw) if raw.proto.doc_string or raw.proto.metadata_props else {}
    nodes = list(nodes)
    if len(nodes) > 1:
        name = raw.name or next(filter(None, raw.outputs), "")
        said = {SOURCE: name, **said} if name else said
    if said:
        metadata = frozen(said)
        for node in nodes:
            node.metadata = metadata


# -- scan ----------------------------------------------------------------------


_Item = TypeVar("_Item")

_GRAPH, _GRAPHS = 5, 10  # onnx.AttributeProto.AttributeType


@dataclass(slots=True, eq=False)
class RawFunction:
    """A local function: its graph (scanned when it is first called), and what it takes."""

    proto: onnx.FunctionProto
    key: tuple[str, str, str]
    graph: RawGraph
    imports: dict[str, int]
    attributes: dict[str, onnx.AttributeProto | None]  # name -> default

    @property
    def label(self) -> str:
        """What it is called in messages and, where unique, in the module: ``domain.Name:overload``."""
        domain, name, overload = self.key
        return f"{domain or 'onnx'}.{name}" + (f":{overload}" if overload else "")


@dataclass(slots=True, eq=False)
class RawNode:
    """A node: the parts of its proto that are needed more than once, and what it was resolved to."""

    proto: onnx.NodeProto
    name: str
    op_type: str
    domain: str
    inputs: list[str]
    outputs: list[str]
    attributes: list[onnx.AttributeProto]
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
        yield from filter(None, self.inputs)
        for graph in self.graphs.values():
            yield from graph.captures


@dataclass(slots=True, eq=False)
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
        descriptions: what the model says of its values, by name.
    """

    where: str
    name: str = ""
    inputs: dict[str, onnx.TypeProto | None] = field(default_factory=dict[str, "onnx.TypeProto | None"])
    outputs: list[tuple[str, onnx.TypeProto | None]] = field(default_factory=list[tuple[str, "onnx.TypeProto | None"]])
    initializers: dict[str, onnx.TensorProto] = field(default_factory=dict[str, "onnx.TensorProto"])
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    sparse: dict[str, onnx.SparseTensorProto] = field(default_factory=dict[str, "onnx.SparseTensorProto"])
    nodes: list[RawNode] = field(default_factory=list["RawNode"])
    declared: dict[str, onnx.TypeProto] = field(default_factory=dict[str, "onnx.TypeProto"])
    captures: dict[str, str] = field(default_factory=dict[str, str])
    metadata: dict[str, str] = field(default_factory=dict[str, str])
    descriptions: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])

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


def scan_graph(proto: onnx.GraphProto, where: str = "the graph", depth: int = 1, usual_name: str = "") -> RawGraph:
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
    graph.descriptions = value_descriptions(proto, where)
    graph.metadata = said_of_graph(proto, where, usual_name)
    _scan_nodes(graph, proto.node, depth)
    return graph


def scan_function(proto: onnx.FunctionProto, graph: RawGraph) -> None:
    """Read the body of a function into ``graph``. Raises as ``scan_graph`` does."""
    inputs = texts(proto.input, graph.where)
    _check_names("input", inputs, graph.where)
    graph.inputs = dict.fromkeys(inputs)
    graph.outputs = [(name, None) for name in texts(proto.output, graph.where)]
    graph.declared = {text(info.name, graph.where): info.type for info in proto.value_info}
    graph.descriptions = value_descriptions(proto, graph.where)
    graph.metadata = said_of(proto, graph.where)
    _scan_nodes(graph, proto.node, 1)
    no_captures(graph)


def no_captures(graph: RawGraph) -> None:
    """Raise IRC125 if ``graph``, which has no graph around it, uses a name that it does not define."""
    for name, user in graph.captures.items():
        raise Error("IRC125", f"{name!r} is used but never defined: no input, initializer or node gives it", user)


def _named(infos: Iterable[onnx.ValueInfoProto], where: str) -> list[tuple[str, onnx.TypeProto | None]]:
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


def _scan_nodes(graph: RawGraph, protos: Iterable[onnx.NodeProto], depth: int) -> None:
    graph.nodes = nodes = [_scan_node(proto, depth) for proto in protos]
    owners: dict[str, RawNode | None] = dict.fromkeys((*graph.inputs, *graph.initializers, *graph.sparse))
    replaced: set[RawNode | None] = set()
    for node in nodes:
        for name in node.outputs:
            if name in owners:
                owner = owners[name]
                if not _replaces(node, name, owner, graph):
                    said = f"the first time by {owner or 'an input or initializer'}: names must be unique"
                    raise Error("IRC124", f"{name!r} is defined twice, {said}", str(node))
                replaced.add(owner)
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
    """Whether the constant ``node`` replaces a constant or initializer of that name: the last counts.

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


def _scan_node(proto: onnx.NodeProto, depth: int) -> RawNode:
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
        cycle = [graph.nodes[i] for i in _cycle(dict(enumerate(needs)))]
        names = [next(filter(None, node.outputs), "?") for node in cycle]
        shown = names if len(names) <= 8 else [*names[:4], "...", *names[-3:]]
        steps = " -> ".join([*map(repr, shown), repr(names[0])])
        raise Error("IRC126", f"the graph has a cycle: {steps}", str(cycle[0]))
    return [graph.nodes[i] for i in order]


# What each node of a model means: an operator at one version, or a local function.
#
# All operators that are missing are reported in one error, before anything is
# built. A local function takes precedence over an operator of the same name, which the
# specification leaves to the runtime.


Functions = dict[tuple[str, str, str], RawFunction]
"""Local functions by (domain, name, overload)."""

Missing = dict[tuple[str, str, int, str], tuple[int, str]]
"""(domain, operator, opset, reason) -> (nodes, the first one)."""


def read_functions(protos: Iterable[onnx.FunctionProto]) -> Functions:
    """The local functions of a model, bodies not read yet. Raises IRC122, IRC132."""
    found: Functions = {}
    for proto in protos:
        key = _key(*texts((proto.domain, proto.name, proto.overload), "a local function"))
        where = f"function {'::'.join(filter(None, key))}"
        attributes: dict[str, onnx.AttributeProto | None] = dict.fromkeys(texts(proto.attribute, where))
        attributes.update({text(default.name, where): default for default in proto.attribute_proto})
        function = RawFunction(proto, key, RawGraph(""), {}, attributes)
        function.graph.where = f"function {function.label}"
        if not proto.name:
            raise Error("IRC132", "a local function has no name")
        if key in found:
            raise Error("IRC132", "two local functions have this name", function.graph.where)
        found[key] = function
    return found


def _key(domain: str, name: str, overload: str) -> tuple[str, str, str]:
    return ("" if is_standard(domain) else domain, name, overload)


def resolve(main: RawGraph, imports: dict[str, int], functions: Functions, refuse_unknown: bool = True) -> None:
    """Set the target of each reachable node. Raises IRC123, IRC132 and the errors of ``scan_function``.

    Args:
        main: the graph.
        imports: its opset imports.
        functions: what its nodes may call.
        refuse_unknown: whether operators that irc does not know are missing; else their nodes become opaque. Those
            whose domain is not imported are missing anyhow: the model is wrong.
    """
    missing: Missing = {}
    calls: dict[RawFunction | None, list[tuple[RawFunction, str]]] = {}
    calls[None] = _resolve_graph(main, imports, functions, missing, "", refuse_unknown)
    pending = [function for function, _ in calls[None]]
    while pending:
        function = pending.pop()
        if function in calls:
            continue
        where = function.graph.where
        function.imports = read_imports(function.proto.opset_import, where) if function.proto.opset_import else {}
        scan_function(function.proto, function.graph)
        calls[function] = _resolve_graph(function.graph, function.imports, functions, missing, where, refuse_unknown)
        pending += [called for called, _ in calls[function]]
    if missing:
        raise Error("IRC123", _describe(missing))
    _refuse_recursion(calls)


def _resolve_graph(
    graph: RawGraph,
    imports: dict[str, int],
    functions: Functions,
    missing: Missing,
    where: str,
    refuse_unknown: bool,
) -> list[tuple[RawFunction, str]]:
    """Set the targets of a graph's nodes, note missing ones; the functions called, with their callers.

    ``where``: the function that the graph is of; "" for a model's graph.
    """
    called: dict[RawFunction, str] = {}
    for node in graph.walk():
        if node.target is not None:
            continue
        if functions:
            function = functions.get(_key(node.domain, node.op_type, text(node.proto.overload, node)))
            if function is not None:
                node.target = function
                _drop_notes(node, function.attributes)
                called.setdefault(function, str(node))
                continue
        found = bind(node.domain, node.op_type, imports, where)
        if isinstance(found, str) and not refuse_unknown:
            found = opaque(node.domain, node.op_type, imports) or found
        if isinstance(found, str):
            domain = "ai.onnx" if is_standard(node.domain) else node.domain
            opset = imports.get("" if is_standard(node.domain) else node.domain, 0)
            key = (domain, node.op_type, opset, found)
            count, first = missing.get(key, (0, str(node)))
            missing[key] = (count + 1, first)
        else:
            node.target = found
            if found.attributes is not None:
                _drop_notes(node, found.attributes, found.is_lenient)
    return list(called.items())


def _drop_notes(node: RawNode, known: Collection[str], all_others: bool = False) -> None:
    """Drop attributes that are exporters' notes, recognised by name as the ONNX checker does.

    With ``all_others``, all that are not known.
    """
    names = [text(attribute.name, node) for attribute in node.attributes]
    notes = {name for name in names if name not in known and (all_others or name.startswith("__"))}
    if notes:
        node.attributes = [a for name, a in zip(names, node.attributes) if name not in notes]
        node.graphs = {name: graph for name, graph in node.graphs.items() if name not in notes}


def _describe(missing: Missing) -> str:
    lines = [f"{len(missing)} operator{'s are' if len(missing) > 1 else ' is'} not supported:"]
    for (domain, op_type, opset, reason), (count, first) in sorted(missing.items()):
        version = f"opset {opset}" if opset else "not imported"
        lines.append(
            f"  {op_type} (domain {domain}, {version}), {count} node{'s' * (count > 1)}, first {first}: {reason}"
        )
    return "\n".join(lines)


def _refuse_recursion(calls: dict[RawFunction | None, list[tuple[RawFunction, str]]]) -> None:
    """Raise IRC132 if a function calls itself, directly or by others."""
    cycle = _cycle({function: [called for called, _ in calls[function]] for function in calls})[::-1]
    if cycle:
        cycle = [cycle[-1], *cycle[:-1]]  # from caller to callee, beginning with the one that is called first
        names = " -> ".join(str(f and f.label) for f in [*cycle[:8], cycle[0]])
        where = next(where for called, where in calls[cycle[-1]] if called is cycle[0])
        raise Error("IRC132", f"local functions must not call themselves: {names}", where)


def _cycle(needs: Mapping[_Item, Iterable[_Item]]) -> list[_Item]:
    """A cycle of items, each needed by the one before, starting with the first in ``needs``; or []."""
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        found: list[_Item] = error.args[1][:-1]
        places = {item: place for place, item in enumerate(needs)}
        first = min(range(len(found)), key=lambda i: places[found[i]])
        return found[first:] + found[:first]
    return []
