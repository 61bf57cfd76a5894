"""Building graphs of the IR from scanned and resolved graphs of a model.

Graphs come scanned and resolved: every name is defined before it is used, and every node has an operator.
"""

from __future__ import annotations

from base64 import b64encode
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from irc.errors import Error
from irc.frontend.onnx.opsets import UNBOUNDED, Operator, as_written
from irc.frontend.onnx.scan import RawFunction, RawGraph, RawNode, describe_declared, describe_nodes, describe_values
from irc.frontend.onnx.tensors import GRAPH, Environment, content_field, substitute
from irc.frontend.onnx.types import MAX_DEPTH, from_proto, output_types, settle, text
from irc.ir.kinds import CONSTANT
from irc.ir.types import ANY, FUNCTION, NONE, ListType, TensorType, Type, without_shapes
from irc.ops import record
from irc.ops.onnx_signatures import misfit, onnx_name
from irc.ops.opaque import GRAPHS, NAMES, OMITTED, PROTOS, RESERVED, TYPES, graph_key, is_opaque
from irc.support.formatting import count as counted

if TYPE_CHECKING:
    from onnx import AttributeProto, TypeProto

    from irc.frontend.onnx.importer import Importer
    from irc.ir import Block, Graph, Node, Tensor, Value


# Nodes whose operator irc does not know, imported so that they can be written again as they are.
#
# What they consist of is described in `irc.ops.opaque`.


_GRAPHS = 10  # AttributeProto.AttributeType

_EXACT = frozenset({1, 2, 3, 4, 6, 7, 8, 9})
"""Types of attributes whose values the IR holds exactly: numbers, strings, tensors and lists of them."""


def import_opaque(
    builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope
) -> Sequence[Value]:
    """Append a node of an unknown operator; its outputs have the types that the model declares, if any.

    Raises:
        Error: IRC127 if an attribute is malformed; IRC130 if a sparse tensor lies in another file; IRC134 if a nested
            graph's input has a default value.
    """
    inputs = [scope[name] if name else builder.absent() for name in raw.inputs]
    attributes, nested = _attributes(builder, raw, operator)
    omitted = [i for i, name in enumerate(raw.outputs) if not name]
    if omitted:
        attributes[OMITTED] = omitted
    node = builder.create(
        block, operator.kind, inputs, [ANY] * len(raw.outputs), raw.outputs, attributes, operator.version, raw.name
    )
    builder.opaque_depth += 1
    for graph in nested:
        types = [_type(declared, graph) or ANY for _, declared in builder.params(graph)]
        builder.body(graph, node.add_block(), scope, [without_shapes(type) for type in types])
    builder.opaque_depth -= 1
    return node.outputs


def _attributes(builder: GraphBuilder, raw: RawNode, operator: Operator) -> tuple[dict[str, Any], list[RawGraph]]:
    """The node's attributes, and its nested graphs that become blocks because they capture values."""
    found: dict[str, Any] = {}
    protos: list[str] = []
    graphs: list[str] = []
    types: list[str] = []
    interfaces: list[str] = []
    blocks: list[RawGraph] = []
    names: set[str] = set()
    reader = builder.importer.attributes
    stem = next(filter(None, raw.outputs), operator.name)
    for proto in substitute(raw.attributes, builder.environment, raw):
        name = text(proto.name, raw)
        if name in names:
            raise Error("IRC127", f"attribute {name!r} is given twice", str(raw))
        names.add(name)
        field = "g" if proto.type == GRAPH or proto.HasField("g") else "graphs"
        if field == "g" or (proto.type == _GRAPHS and proto.graphs):
            for number in range(1 if field == "g" else len(proto.graphs)):
                key = graph_key(field, name, number)
                graph = raw.graphs[key]
                graphs.append(f"{field}:{name}")
                types += _declared(builder, graph, raw)
                if graph.captures:
                    blocks.append(graph)
                    interfaces += [graph.name, *(name for name, _ in (*builder.params(graph), *graph.outputs))]
                else:
                    found[key] = builder.importer.closed_graph(
                        builder, graph, graph.name, raw, builder.opaque_depth + 1
                    )
        elif _is_exact(proto) and not name.startswith(RESERVED):
            found[name] = reader.value(proto, proto.type, f"{stem}.{name}", raw)
        else:
            _check_data(proto, raw)
            protos.append(b64encode(proto.SerializeToString(deterministic=True)).decode())
    if len(found) != len(names) - len(protos) + len(graphs) - len(blocks) - len(set(graphs)):
        raise Error("IRC127", "two attributes have names that irc cannot tell apart", str(raw))
    found |= {
        key: value for key, value in ((GRAPHS, graphs), (TYPES, types), (NAMES, interfaces), (PROTOS, protos)) if value
    }
    return found, blocks


def _declared(builder: GraphBuilder, graph: RawGraph, raw: RawNode) -> list[str]:
    """The declared types of the inputs and outputs of a nested graph, as texts."""
    params = builder.params(graph)
    for name, _ in params:
        if name in graph.initializers or name in graph.sparse:
            raise Error("IRC134", f"{graph.where} must not have a default value for its input {name!r}", str(raw))
    return [str(_type(declared, graph) or "") for _, declared in (*params, *graph.outputs)]


def _type(declared: TypeProto | None, graph: RawGraph) -> Type | None:
    return None if declared is None or declared.WhichOneof("value") is None else from_proto(declared, graph.where)


def _is_exact(proto: AttributeProto) -> bool:
    """Whether the IR's form of an attribute says all that ``proto`` does."""
    contents = {field.name for field, _ in proto.ListFields()} - {"name", "type", "ref_attr_name"}
    if proto.type not in _EXACT or contents != {content_field(proto.type)}:
        return False
    try:
        b"\0".join((proto.s, *proto.strings)).decode()
    except UnicodeDecodeError:
        return False
    return True


def _check_data(proto: AttributeProto, raw: RawNode) -> None:
    """Raise IRC130 if a tensor of ``proto``, whose message is kept, has its data in another file."""
    sparse = (proto.sparse_tensor, *proto.sparse_tensors)
    tensors: Iterable[Any] = (t for s in sparse for t in (s.values, s.indices))
    if any(tensor.data_location for tensor in (proto.t, *proto.tensors, *tensors)):
        raise Error("IRC130", f"the data of attribute {proto.name!r} must be in the model's own file", str(raw))


# -- blocks --------------------------------------------------------------------


Scope = ChainMap[str, "Value"]
"""Values by their names in the model, with the scopes around; scanning found every name defined."""


class GraphBuilder:
    """Builds one graph of the IR: the main one, an instance of a function, or a graph attribute.

    Attributes:
        imports: the opset versions its operators are bound with.
        environment: the attributes of the call of a function; None outside of functions.
        depth: graphs and calls around what is being built.
        attribute_depth: graph attributes around it.
        opaque_depth: opaque nodes around it.
    """

    def __init__(
        self,
        importer: Importer,
        graph: Graph,
        raw: RawGraph,
        imports: dict[str, int],
        environment: Environment | None = None,
        depth: int = 0,
    ) -> None:
        self.importer = importer
        self.graph = graph
        self.imports = imports
        self.environment = environment
        self.depth = depth
        self.attribute_depth = 0
        self.opaque_depth = 0
        self._raw = raw
        self._shared: dict[str, Value] = {}

    def build(self, input_types: Sequence[Type] | None = None, constants: dict[str, Tensor] | None = None) -> None:
        """Build the whole graph.

        Args:
            input_types: the types of its inputs, if not the declared ones.
            constants: its initializers that are no inputs.
        """
        scope: Scope = ChainMap()
        is_main = self.graph is self.importer.module.main  # what callers pass to it is checked
        read = from_proto if is_main else _element
        types: dict[str, Type] = {}
        for number, (name, declared) in enumerate(self._raw.inputs.items()):
            if constants and name in constants:
                continue
            if declared is not None and declared.HasField("sparse_tensor_type"):
                raise Error("IRC131", "inputs that are sparse tensors are not supported", f"input {name!r}")
            inferred = input_types[number] if input_types else None
            types[name] = settle(inferred, read(declared, f"input {name!r}") if declared is not None else None)
        inputs = self.graph.block.add_params([*types.values()], list(types))
        scope.update(zip(types, inputs, strict=True))
        self.graph.set_outputs(self.fill(self._raw, self.graph.block, scope, constants))
        if self._raw.metadata:
            self.graph.metadata = self._raw.metadata

    # -- for the importers of single operators ---------------------------

    def body(self, raw: RawGraph, block: Block, scope: Scope, types: Sequence[Type]) -> list[Value]:
        """Build a nested graph into the empty ``block`` with parameters of ``types``; return its returns."""
        inner = scope.new_child()
        params = self.params(raw)
        if len(params) != len(types):
            raise Error("IRC134", f"it must have {len(types)} inputs, but has {len(params)}", raw.where)
        settled = [
            settle(type, _element(declared, f"{name!r} in {raw.where}") if declared is not None else None)
            for (name, declared), type in zip(params, types)
        ]
        names = [name for name, _ in params]
        values = block.add_params(settled, names)
        inner.update(zip(names, values, strict=True))
        returns = self.fill(raw, block, inner)
        block.set_returns(returns)
        if raw.metadata:
            block.metadata = raw.metadata
        return returns

    def params(self, raw: RawGraph) -> list[tuple[str, TypeProto | None]]:
        """Names and declared types of the parameters of a nested graph."""
        # In IR version 3 every initializer is also listed as an input, which makes it no parameter.
        initializers = {*raw.initializers, *raw.sparse} if self.importer.ir_version < 4 else ()
        return [(name, type) for name, type in raw.inputs.items() if name not in initializers]

    def fill(
        self, raw: RawGraph, block: Block, scope: Scope, constants: dict[str, Tensor] | None = None
    ) -> list[Value]:
        """Append what ``raw`` computes to ``block``; returns its outputs.

        Args:
            raw: the graph.
            block: where to.
            scope: the values it sees, its inputs included; what it defines is added.
            constants: its initializers, if they have been read.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Error("IRC133", f"graphs and function calls nest deeper than {MAX_DEPTH} levels", raw.where)
        if constants is None:
            constants = self.importer.initializers(raw)
        for name, tensor in constants.items():
            if name not in scope.maps[0]:
                scope[name] = self.constant(tensor, block, name)
        returned = {name: type for name, type in raw.outputs if type is not None}
        is_built_once = self.environment is None and block is self.graph.block
        for node in raw.drain() if is_built_once else raw.nodes:
            last = block.return_node.prev
            outputs = self._node(node, block, scope)
            describe_nodes(node, _nodes_after(last, block))
            for name, value in zip(node.outputs, outputs):
                if name:
                    if name in returned:
                        value.type = self._settled(value, returned[name], f"type of {name!r}")
                    elif name in raw.declared:
                        value.type = self._settled(value, raw.declared[name], f"type of {name!r}")
                        describe_declared(value, from_proto(raw.declared[name], f"type of {name!r}"))
                    scope[name] = value
        describe_values(scope.maps[0], block, raw.descriptions)
        self.depth -= 1
        return [scope[name] for name, _ in raw.outputs]

    def inputs(self, raw: RawNode, operator: Operator, scope: Scope, keep: int = 0) -> list[Value]:
        """A node's inputs, checked; trailing absent ones are left out, but for the first ``keep``."""
        names = raw.inputs
        fewest, most, _, _ = operator.arity
        if not fewest <= len(names) <= most:
            _arity(f"{operator.name} takes {_range(fewest, most, 'input')}, but has {len(names)}", raw)
        count = len(names)
        while count and not names[count - 1]:
            count -= 1
        last = len(operator.inputs) - 1
        found: list[Value] = []
        for number in range(max(count, keep)):
            is_named = number < len(names) and names[number]
            value = scope[names[number]] if is_named else self.absent()
            # A function's input may be absent as well, where the call leaves it out.
            if value.type is NONE and not operator.inputs[min(number, last)]:
                _arity(f"input {number} of {operator.name} must not be absent", raw)
            found.append(value)
        if count < fewest and not all(operator.inputs[count:fewest]):
            _arity(f"input {count} of {operator.name} must not be absent", raw)
        return found

    def attributes(self, raw: RawNode, operator: Operator, plain: bool = False) -> dict[str, Any]:
        """A node's checked attributes without its graphs. With ``plain``, large tensors do not become weights."""
        importer = self.importer
        reader = importer.plain_attributes if plain else importer.attributes
        if not (raw.attributes or operator.attributes):
            return {}
        protos = substitute(raw.attributes, self.environment, raw)
        name = next(filter(None, raw.outputs), operator.name)
        if self.environment is not None:
            name = f"{self.graph.name}/{name}"
        found = reader.read(protos, operator, name, raw)
        for key in raw.graphs:
            found.pop(key, None)
        return found

    def create(
        self,
        block: Block,
        kind: str,
        inputs: Sequence[Value],
        types: Sequence[Type] = (),
        names: Sequence[str] = (),
        attributes: dict[str, Any] | None = None,
        version: int | None = None,
        name: str = "",
    ) -> Node:
        """Append a node to ``block``; ``names`` are the model's names of its outputs."""
        node = self.graph.create(kind, inputs, (), attributes=attributes, version=version, name=name)
        block.append(node)
        self.add_outputs(node, types, names)
        return node

    def add_outputs(self, node: Node, types: Sequence[Type], names: Sequence[str] = ()) -> Sequence[Value]:
        """Add outputs to ``node``, which is in a block already; missing names are new ones.

        Values of the top block keep the model's names, which nested ones may have got before: these get others.
        """
        graph = self.graph
        for name in filter(graph.has_value, names if node.block is graph.block else ()):
            graph.value(name).name = graph.unique_name(name)
        return node.add_outputs(types, names)

    def constant(self, tensor: Tensor, block: Block, name: str = "", source: str = "") -> Value:
        """Append a constant called ``name``."""
        return self.create(block, CONSTANT, (), (tensor.type,), (name,), {"value": tensor}, None, source).output

    def absent(self) -> Value:
        """The value that stands for absent inputs: one for the whole graph."""
        return self._shared_constant("", NONE, {})

    def function(self, name: str) -> Value:
        """The value that stands for function ``name`` of the module: one for the whole graph."""
        return self._shared_constant(name, FUNCTION, {"name": name})

    def _shared_constant(self, key: str, type: Type, attributes: dict[str, Any]) -> Value:
        value = self._shared.get(key)
        if value is None:
            node = self.graph.create(CONSTANT, (), (type,), attributes=attributes)
            self._shared[key] = value = self.graph.block.prepend(node).output
        return value

    # -- nodes -----------------------------------------------------------

    def _node(self, raw: RawNode, block: Block, scope: Scope) -> Sequence[Value]:
        """Append one node of the model; its outputs, as many as the node names at least up to the last named."""
        target = raw.target
        if isinstance(target, RawFunction):
            return self.importer.functions.call(self, raw, target, block, scope)
        assert target is not None, "resolved before"
        if self.opaque_depth:  # an operator that nobody knows may rely on what is in its graphs
            target = as_written(raw, target, self.imports)
        if is_opaque(target.kind):
            return import_opaque(self, raw, target, block, scope)
        special = self.importer.special.get(target.kind)
        if special is not None and not (self.opaque_depth and record(target.kind).expanded):
            return special(self, raw, target, block, scope)
        return self.operator(raw, target, block, scope)

    def operator(self, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
        """Append a node that is ``operator``; its outputs."""
        inputs = self.inputs(raw, operator, scope)
        attributes = self.attributes(raw, operator)
        for key, graph in raw.graphs.items():
            attributes[key] = self.importer.closed_graph(self, graph, key, raw)
        names = output_names(raw, operator)
        given = [v.type for v in inputs]
        # NumPy computes much that no runtime of ONNX does: sums of booleans, of integers and floats.
        wrong = misfit(operator.kind, operator.version, tuple(map(_surely, given)))
        if wrong is not None:
            raise Error("IRC136", f"{wrong}, at version {operator.version}", str(raw))
        node = self.create(block, operator.kind, inputs, (), (), attributes, operator.version, raw.name)
        return self.add_outputs(node, output_types(operator, node, len(names)), names)

    def _settled(self, value: Value, declared: TypeProto, where: str) -> Type:
        """The type of ``value``, which a node makes, with what the model declares of it.

        Nobody but the model knows the shape of an opaque node's result. In nested graphs it may differ each time.
        """
        if value.node is not None and is_opaque(value.node.kind):
            type = from_proto(declared, where)
            return type if value.block is self.importer.module.main.block else without_shapes(type)
        return settle(value.type, _element(declared, where))


Special = Callable[[GraphBuilder, RawNode, Operator, "Block", Scope], "Sequence[Value]"]
"""Imports the nodes of one operator; returns their outputs."""


def output_names(raw: RawNode, operator: Operator) -> list[str]:
    """Checked names of a node's outputs, without trailing absent ones beyond the operator's minimum."""
    _, _, fewest, most = operator.arity
    names = list(raw.outputs)
    if not fewest <= len(names) <= most:
        _arity(f"{operator.name} gives {_range(fewest, most, 'output')}, but the node has {len(names)}", raw)
    while len(names) > max(fewest, 1) and not names[-1]:
        names.pop()
    return names


def _range(fewest: int, most: int, what: str) -> str:
    if most == fewest:
        return counted(fewest, what)
    return f"{fewest} or more {what}s" if most == UNBOUNDED else f"{fewest} to {most} {what}s"


def _arity(message: str, raw: RawNode) -> NoReturn:
    raise Error("IRC128", message, str(raw))


def _surely(type: Type) -> str | None:
    """The ONNX name of ``type`` if it is a tensor or list; None for others, optional values included."""
    return onnx_name(type) if isinstance(type, (TensorType, ListType)) else None


def _nodes_after(last: Node | None, block: Block) -> Iterator[Node]:
    """The nodes of ``block`` behind ``last``, without the shared constants at its start."""
    node = next(iter(block.unchanging_nodes()), None) if last is None else last.next
    while node is not None:
        if node.kind != CONSTANT or node.output.type not in (NONE, FUNCTION):
            yield node
        node = node.next


def _element(proto: TypeProto, where: str) -> Type:
    """A declared type without its shapes: passes would trust them, whereas irc infers true ones."""
    return without_shapes(from_proto(proto, where))
