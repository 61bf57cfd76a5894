"""Graphs of the IR to ``GraphProto`` and ``FunctionProto``."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, cast

from google.protobuf.message import DecodeError
from onnx import FunctionProto, GraphProto, NodeProto, ValueInfoProto

from irc.errors import Error
from irc.frontend.onnx.scan import denoted
from irc.frontend.onnx.types import contradiction, settle, to_proto
from irc.frontend.onnx_export.decompositions import identity_since, schema
from irc.frontend.onnx_export.tensors import GRAPH, TENSOR, Weights, add_attribute, fill, write_attribute
from irc.frontend.onnx_export.tensors import GRAPHS as GRAPH_LIST
from irc.ir import Block, DType, Graph, Module, Node, Tensor, TensorType, Type, Value, parse_type
from irc.ir.declarations import completed, declared_type
from irc.ir.kinds import CALL, CONSTANT, IF, ONNX_LOOP, SCAN
from irc.ir.metadata import (
    DECLARED_TYPE,
    DOC_STRING,
    GRAPH_NAME,
    NOT_PROPERTIES,
    QUANTIZATION,
    QUANTIZATION_TENSOR,
    merged,
)
from irc.ir.region_flow import DECLARED_INPUTS, DECLARED_ROWS, carried, declared_types, scanned_rows
from irc.ir.types import FUNCTION, NONE, DictType, ListType, OptionalType, join, without_names, without_shapes
from irc.ops.onnx_signatures import split_kind
from irc.ops.opaque import GRAPHS, NAMES, OMITTED, PROTOS, TYPES, is_opaque, nested_graphs, opaque_operator
from irc.passes.shapes import Inference

# Types that inputs and outputs of graphs are declared with.


def declare(proto: ValueInfoProto, name: str, type: Type) -> None:
    """Give ``proto`` the name and the type. Raises IRC350 if ONNX has no such type, or it is not known."""
    proto.name = name
    if not is_complete(type):
        raise Error("IRC350", f"ONNX needs its element type, but all that is known is {type}", f"%{name}")
    try:
        proto.type.CopyFrom(to_proto(type))
    except TypeError as error:
        raise Error("IRC350", str(error), f"%{name}") from None


def declare_nested(proto: ValueInfoProto, name: str, type: Type | None) -> None:
    """As `declare`, for a nested graph, where an unknown type may be left out."""
    if type is not None and is_complete(type):
        declare(proto, name, type)
    proto.name = name


def parameter_types(block: Block) -> list[Type]:
    """The types of the parameters of a nested block.

    ONNX Runtime needs the ranks of the parameters that a loop itself provides: the iteration and the condition, both
    scalars. Other values in a nested graph are declared without a shape, as it may differ each time the graph runs.
    There are two exceptions: all rows of a scan output have the same shape, which ONNX Runtime needs if there is no
    iteration; and what a Scan carries and scans has the same rank in all iterations, which ONNX Runtime must know for
    states.
    """
    types, node = [param.type for param in block.params], block.node
    if node is not None and node.kind == SCAN:
        return list(map(_of_one_rank, types, chain(declared_types(node, DECLARED_INPUTS), repeat(None))))
    made = carried(node).param if node is not None and node.kind == ONNX_LOOP else 0
    return [_ranked(type) for type in types[:made]] + [without_shapes(type) for type in types[made:]]


def returned_types(block: Block) -> list[Type]:
    """The types of what a nested block returns."""
    types, node = [without_shapes(result_type(value)) for value in block.returns], block.node
    if node is None:
        return types
    rows = scanned_rows(node)
    states = carried(node).many if node.kind == SCAN else 0
    types[:states] = map(_of_one_rank, [value.type for value in block.returns], parameter_types(block)[:states])
    return [*types[: len(types) - len(rows)], *map(without_names, rows)]


def _of_one_rank(type: Type, declared: Type | None) -> Type:
    """The declarable part of ``type`` if all iterations have one rank, which ``declared`` may tell."""
    found = settle(type, declared)
    if found.shape is None:
        return without_shapes(found)
    return TensorType(found.dtype, (None,) * len(found.shape))


def result_type(value: Value) -> Type:
    """The type of a result of a graph.

    A value that a loop carries is optional in the IR if its initial value is, as no iteration may replace it. In ONNX
    it has the type that the body returns; so has a result of an If whose branches both return such values.
    """
    found: Type | None = None
    for source in _sources(value):
        if isinstance(source.type, OptionalType):
            return value.type
        found = source.type if found is None else join(found, source.type)
        if found is None:
            return value.type
    return found or value.type


def _sources(value: Value) -> Iterator[Value]:
    """Where ``value`` comes from, through loops and branches, as long as that is an optional."""
    seen, pending = {value}, [value]
    while pending:
        source = pending.pop()
        node = source.node
        through = isinstance(source.type, OptionalType) and node is not None and node.kind in (ONNX_LOOP, IF)
        if not through or node is None:
            yield source
            continue
        first = carried(node).returned if node.kind == ONNX_LOOP else 0
        for block in node.blocks:
            returned = block.returns[first + source.index]
            if returned not in seen:
                seen.add(returned)
                pending.append(returned)


def output_type(value: Value, metadata: Mapping[str, str]) -> Type:
    """The type of a main graph's output: its `result_type`, completed by what the model declared."""
    return completed(result_type(value), declared_type(value, metadata))


def intermediate_type(value: Value) -> Type | None:
    """The type of a value that a graph computes, as far as is known; None if no element type is.

    It is completed by the type that the model declares, if nothing contradicts it (`settle_declared`). Nothing is said
    of optional values, which other tools may take to be there.
    """
    if value.metadata and DECLARED_TYPE in value.metadata:
        found = completed(value.type, parse_type(value.metadata[DECLARED_TYPE]))
    else:
        found = value.type
    return found if isinstance(found, TensorType | ListType | DictType) and is_complete(found) else None


def settle_declared(graph: Graph, inference: Inference) -> None:
    """Let values of ``graph`` keep of the types that the model declares only what nothing contradicts.

    Contradicted are declarations of another element type, rank or size, and names of dimensions that inputs give, where
    another size is known; a new name, which the model gives two different sizes, names none.
    """
    declared = [value for value in graph.values() if DECLARED_TYPE in value.metadata] if graph.has_metadata else []
    named = {size for value in graph.inputs for size in value.type.shape or () if isinstance(size, str)}
    found: dict[Value, Type] = {}
    meanings: dict[str, Any] = {}
    ambiguous: set[str] = set()
    for value in declared:
        type, proved = parse_type(value.metadata[DECLARED_TYPE]), inference.type_of(value)
        if contradiction(value.type, type) is not None:
            continue
        found[value] = type
        for said, size in zip(type.shape or (), proved.shape or ()):
            if isinstance(said, str) and size is not None:
                known = meanings.setdefault(said, said if said in named else size)
                if known != size:
                    ambiguous.add(said)
    for value in declared:
        metadata = dict(value.metadata)
        del metadata[DECLARED_TYPE]
        if value in found:
            metadata[DECLARED_TYPE] = str(_agreeing(found[value], inference.type_of(value), ambiguous))
        value.metadata = metadata


def _agreeing(declared: Type, proved: Type, ambiguous: set[str]) -> Type:
    """``declared`` without names that are ambiguous, where ``proved`` knows a size."""
    if not isinstance(declared, TensorType) or declared.shape is None or proved.shape is None:
        return declared
    sizes = zip(declared.shape, proved.shape, strict=True)
    return TensorType(declared.dtype, tuple([None if a in ambiguous and b is not None else a for a, b in sizes]))


def _ranked(type: Type) -> Type:
    """``type``, as a scalar if the rank is unknown."""
    return TensorType(type.dtype, ()) if isinstance(type, TensorType) and type.shape is None else type


def is_complete(type: Type) -> bool:
    """Whether ``type`` says all that ONNX needs: which kind of value, and its element type."""
    if isinstance(type, ListType | OptionalType):
        return is_complete(type.elem)
    if isinstance(type, DictType):
        return is_complete(type.value)
    return type.dtype is not None if isinstance(type, TensorType) else not type.is_any


# Names of values and nodes in a model that is being written.


class Names:
    """The names of one name space: a graph's with all that is nested in it. Values keep theirs."""

    def __init__(self, graph: Graph) -> None:
        self._given: dict[Value, str] = {}
        self._taken = {value.name: 0 for value in graph.values()}
        self._nodes: dict[str, int] = {}

    def __call__(self, value: Value) -> str:
        """What ``value`` is called."""
        return self._given.get(value) or value.name

    def give(self, value: Value, name: str) -> None:
        """Call ``value`` ``name``."""
        self._given[value] = name

    def fresh(self, stem: str) -> str:
        """A name that no value has: ``stem``, or ``stem.N``."""
        return _unique(stem, self._taken)

    def adopt(self, graph: Graph) -> None:
        """Add the values of a graph that has names of its own; values whose names are taken get others."""
        for value in graph.values():
            self._given[value] = self.fresh(value.name)

    def node(self, name: str) -> str:
        """A node's name, made unique; "" stays."""
        return name and _unique(name, self._nodes)


def _unique(stem: str, taken: dict[str, int]) -> str:
    """``stem``, or the next ``stem.N``; ``taken`` has the N that was given last."""
    name, number = stem, taken.get(stem, 0)
    while name in taken:
        number += 1
        name = f"{stem}.{number}"
    taken[name] = 0
    taken[stem] = number
    return name


# Metadata of the IR as what an ONNX model says of its graphs, nodes and values.


def describe(proto: Any, metadata: Mapping[str, str]) -> None:
    """Write the properties and doc string in ``metadata`` into the proto of a graph, function or node."""
    for key, value in metadata.items():
        if not key.startswith(NOT_PROPERTIES):
            proto.metadata_props.add(key=key, value=value)
    if DOC_STRING in metadata:
        proto.doc_string = metadata[DOC_STRING]


def describe_value(proto: ValueInfoProto, metadata: Mapping[str, str]) -> None:
    """As `describe`, with the denotations of the value's type and its dimensions, where these are written."""
    if not metadata:
        return
    describe(proto, metadata)
    # Denotations of what is not written, such as a dimension of a type without a shape, are lost.
    for key, part in denoted(proto.type):
        if key in metadata:
            part.denotation = metadata[key]


# What irc's own attributes of opaque nodes say.


def _texts(node: Node, key: str, where: str) -> list[str]:
    given: Any = node.attributes.get(key, [])
    if not isinstance(given, list) or not all(isinstance(text, str) for text in cast("list[Any]", given)):
        raise Error("IRC350", f"attribute {key} is not a list of strings", where)
    return cast("list[str]", given)


def _parsed(text: str, where: str) -> Type | None:
    try:
        return parse_type(text) if text else None
    except Error as error:
        raise Error("IRC350", f"attribute {TYPES} has {text!r}, which is not a type: {error.message}", where) from None


# -- graphs --------------------------------------------------------------------


FUNCTION_DOMAIN = "irc.function"
"""The domain of functions of the module."""

_CONSTANT_OF_ALL = 9
"""The first opset whose Constant returns tensors of all types; before, those of the types that follow:"""

_FIRST_CONSTANTS = frozenset([DType.FLOAT16, DType.FLOAT, DType.DOUBLE])

_GRAPHS = {IF: ("then_branch", "else_branch"), ONNX_LOOP: ("body",), SCAN: ("body",)}
"""Operators with blocks, and the attributes that these become."""


Declare = Callable[["ValueInfoProto", str, Any], None]
"""Gives a message the name and the type of a value."""


class GraphWriter:
    """Writes one graph with all that is nested in it.

    Args:
        graph: the graph.
        opsets: domain -> version.
        weights: takes the constants.
        names: gives the values their names; those around, for a graph that is an attribute.

    Attributes:
        names: as given.
    """

    def __init__(self, graph: Graph, opsets: Mapping[str, int], weights: Weights, names: Names | None = None) -> None:
        self._graph = graph
        self._opsets = opsets
        self._weights = weights
        self.names = Names(graph) if names is None else names
        self._returned = set(graph.outputs)
        self._proto: GraphProto | None = None
        self._written: dict[Any, str] = {}
        self._computed: dict[Value, str] = {}
        """The results of nodes that were written in the present block, and their names."""

    def write(self, proto: GraphProto, module: Module | None = None) -> None:
        """Make ``proto``, which is empty, the graph; it is the main one of ``module``, if that is given."""
        self._proto = proto
        block, metadata, defaults = self._graph.block, *((module.metadata, module.defaults) if module else ({}, {}))
        for value in block.params:
            if isinstance(default := defaults.get(value.name), Tensor):
                self._weights.add(default, proto.initializer.add(), value.name)
        # The type of what opaque nodes make nobody knows; nor did the model, perhaps.
        declare_result = declare_nested if self._has_opaque_nodes() else declare
        types = [value.type for value in block.params] + [output_type(value, metadata) for value in block.returns]
        self._write(block, proto, types, (), declare, declare_result)
        self._annotate(proto)

    def _write(
        self,
        block: Block,
        proto: GraphProto,
        types: Iterable[Type | None],
        wanted: Iterable[str] = (),
        declare_param: Declare = declare_nested,
        declare_result: Declare = declare_nested,
    ) -> None:
        """Write ``block`` into ``proto``: parameters and results of these types, nodes, metadata.

        Results get the names ``wanted``, "" for any, by copies where they have others.
        """
        types, names = iter(types), iter(wanted)
        for value in block.params:
            declare_param(info := proto.input.add(), self.names(value), next(types))
            describe_value(info, value.metadata)
        computed = self._nodes(block, proto.node)
        for value, name in self._results(block, proto.node):
            if (called := next(names, "")) and name != called:
                _identity(name, called, proto.node)
            declare_result(info := proto.output.add(), called or name, next(types))
            describe_value(info, value.metadata)
            computed.pop(value, None)
        _declare_computed(proto.value_info, computed)
        describe(proto, block.metadata)

    def _has_opaque_nodes(self) -> bool:
        """Whether the graph, or a function of its module, has opaque nodes."""
        module = self._graph.module
        graphs = [self._graph] if module is None else module.graphs.values()
        return any(is_opaque(node.kind) for graph in graphs for node in graph.walk())

    # -- blocks ------------------------------------------------------------

    def _nodes(self, block: Block, protos: Any) -> dict[Value, str]:
        """Write the nodes of ``block``; return their results by name, without constants and nameless ones."""
        around, self._computed = self._computed, {}
        for node in block.nodes:
            own = {CONSTANT: self._constant, CALL: self._call}.get(node.kind)
            write = own or (self._opaque if is_opaque(node.kind) else self._operator)
            write(node, protos)
        computed, self._computed = self._computed, around
        return computed

    def _results(self, block: Block, protos: Any) -> Iterable[tuple[Value, str]]:
        """The values that a block returns, with their names: each made by a node in it, and none twice."""
        given: set[str] = set()
        for value in block.returns:
            name = self.names(value)
            made_here = value.node is not None and value.node.block is block and not self._is_hoisted(value)
            is_input = value.is_param and value.block is block is self._graph.block
            if name in given or not (made_here or self._may_return(value, is_input)):
                fresh = self.names.fresh(value.name)
                _identity(name, fresh, protos)
                name = fresh
            given.add(name)
            yield value, name

    def _may_return(self, value: Value, is_input: bool) -> bool:
        """Whether a graph may return ``value`` directly although none of its nodes makes it."""
        return is_input or self._opsets[""] < identity_since(value.type)

    def _is_hoisted(self, value: Value) -> bool:
        return value.made_by(CONSTANT) is not None and value not in self._returned

    def _nested(
        self, body: Graph | Block, proto: GraphProto, declared: Sequence[Type | None], called: Sequence[str]
    ) -> None:
        """Make ``proto``, which is empty, a graph nested in an opaque node.

        Args:
            body: the graph, which captures nothing and keeps all of its names, or the block.
            proto: where to.
            declared: the types of its parameters, then of its returns, as far as they are known.
            called: the names of the same, if it is a block: some operators rely on them. Graphs beside each other may
                have the same names; names that the block needs from around it are not among them.
        """
        writer, block = self, body
        if isinstance(body, Graph):
            writer, block = GraphWriter(body, self._opsets, self._weights), body.block
            writer._proto = proto  # of this class
        assert isinstance(block, Block)
        many, taken = len(block.params), writer._names_inside(block) if called else set[str]()
        for value, name in zip(block.params, called):
            if name and (name not in taken or name == value.name):
                writer.names.give(value, name)
        wanted = [name if name not in taken else "" for name in called[many:]]
        writer._write(block, proto, declared, wanted)

    def _names_inside(self, block: Block) -> set[str]:
        """The names of what is defined or used in ``block``, its own parameters left out."""
        nodes = [inner for node in block.nodes for inner in (node, *node.nested())]
        values = [value for node in (*nodes, block.return_node) for value in (*node.inputs, *node.outputs)]
        return {self.names(value) for value in values if value not in block.params}

    # -- nodes -------------------------------------------------------------

    def _constant(self, node: Node, protos: Any) -> None:
        value = node.output
        if value.type in (NONE, FUNCTION):
            return
        tensor: Tensor = node.attributes["value"]
        is_returned = value in self._returned
        if is_returned and (self._opsets[""] >= _CONSTANT_OF_ALL or tensor.dtype in _FIRST_CONSTANTS):
            self._constant_node(node, protos.add(), value.name)
            return
        key = tensor.name or id(tensor)
        name = self._written.get(key)
        if name is None:
            self._written[key] = name = self.names.fresh(value.name) if is_returned else self.names(value)
            assert self._proto is not None
            proto = self._proto.initializer.add()
            self._weights.add(tensor, proto, name)
            describe(proto, merged([node.metadata, value.metadata]))
        if is_returned:
            _identity(name, self.names(value), protos)
        else:
            self.names.give(value, name)

    def _constant_node(self, node: Node, proto: NodeProto, name: str) -> None:
        proto.op_type, proto.name = "Constant", self.names.node(node.name)
        proto.output.append(name)
        describe(proto, node.metadata)
        fill(node.attributes["value"], add_attribute(proto, "value", TENSOR).t, name)

    def _add(self, node: Node, protos: Any, kind: tuple[str, str], inputs: list[str], outputs: list[str]) -> NodeProto:
        """A new message for ``node``, an operator of this domain and name; attributes are still to be written."""
        name = self.names.node(node.name)
        proto = protos.add(domain=kind[0], op_type=kind[1], name=name, input=inputs, output=outputs)
        self._computed.update((value, name) for value, name in zip(node.outputs, outputs) if name)
        describe(proto, node.metadata)
        return proto

    def _call(self, node: Node, protos: Any) -> None:
        function = node.inputs[0].node
        name = None if function is None else function.attributes.get("name")
        if not isinstance(name, str) or self._graph.module is None or name not in self._graph.module.graphs:
            raise Error("IRC350", "an ONNX model can only call its own functions", f"%{node.inputs[0].name}")
        inputs = self._inputs(node.inputs[1:], len(node.inputs))  # absent ones too: some want them all
        self._add(node, protos, (FUNCTION_DOMAIN, function_name(name)), inputs, list(map(self.names, node.outputs)))

    def _operator(self, node: Node, protos: Any) -> None:
        kind = "onnx::If" if node.kind == IF else node.kind
        known = schema(kind, self._opsets[split_kind(kind)[0]])
        inputs = self._inputs(node.inputs, known.min_input if known else 0)
        proto = self._add(node, protos, split_kind(kind), inputs, self._outputs(node, known))
        for key, value in node.attributes.items():
            if isinstance(value, Graph):
                self.names.adopt(value)
                inner = add_attribute(proto, key, GRAPH).g
                GraphWriter(value, self._opsets, self._weights, self.names).write(inner)
                inner.name = value.metadata.get(GRAPH_NAME, value.name)
            elif key not in (DECLARED_INPUTS, DECLARED_ROWS):  # which the body's types become
                type = known.attributes[key].type.value if known and key in known.attributes else None
                write_attribute(proto.attribute.add(), key, value, type, node.name or f"%{node.outputs[0].name}")
        for key, block in zip(_GRAPHS.get(node.kind, ()), node.blocks, strict=True):
            inner = add_attribute(proto, key, GRAPH).g
            inner.name = block.metadata.get(GRAPH_NAME, key)
            self._write(block, inner, [*parameter_types(block), *returned_types(block)])

    def _opaque(self, node: Node, protos: Any) -> None:
        """Write a node as it was in its model. Raises IRC350 if irc's own attributes make no sense."""
        omitted = node.attributes.get(OMITTED, ())
        outputs = ["" if i in omitted else self.names(value) for i, value in enumerate(node.outputs)]
        inputs = self._inputs(node.inputs, len(node.inputs))
        proto = self._add(node, protos, opaque_operator(node.kind), inputs, outputs)
        where = node.name or next((f"%{value.name}" for value in node.outputs), node.kind)
        for key, value in node.attributes.items():
            if not isinstance(value, Graph) and key not in (GRAPHS, TYPES, NAMES, PROTOS, OMITTED):
                write_attribute(proto.attribute.add(), key, value, None, where)
        self._opaque_graphs(node, proto, where)
        for text in _texts(node, PROTOS, where):
            try:
                proto.attribute.add().ParseFromString(b64decode(text, validate=True))
            except (Base64Error, ValueError, DecodeError):
                raise Error("IRC350", f"attribute {PROTOS} holds no message of ONNX", where) from None

    def _opaque_graphs(self, node: Node, proto: NodeProto, where: str) -> None:
        nested = nested_graphs(node)
        if nested is None:
            raise Error("IRC350", f"attribute {GRAPHS} does not fit its graphs and blocks", where)
        types, names = iter(_texts(node, TYPES, where)), iter(_texts(node, NAMES, where))
        attributes: dict[str, Any] = {}
        for field, name, _, body in nested:
            if name not in attributes:
                attributes[name] = add_attribute(proto, name, GRAPH if field == "g" else GRAPH_LIST)
            graph: GraphProto = attributes[name].g if field == "g" else attributes[name].graphs.add()
            graph.name = body.name if isinstance(body, Graph) else next(names, name)
            block = body.block if isinstance(body, Graph) else body
            declared = [_parsed(next(types, ""), where) for _ in (*block.params, *block.returns)]
            called = [] if isinstance(body, Graph) else [next(names, "") for _ in declared]
            self._nested(body, graph, declared, called)

    def _annotate(self, proto: GraphProto) -> None:
        """Write the quantization annotations of this graph's own values and weights."""
        graph, initializers = self._graph, {tensor.name for tensor in proto.initializer}

        def written(name: str) -> str | None:
            """What the model calls the value that irc calls ``name``; None if it is not in the model."""
            value = graph.value(name) if graph.has_value(name) else None
            if value is None or (value.made_by(CONSTANT) is not None and self.names(value) not in initializers):
                return None
            return self.names(value)

        for value in graph.values() if graph.has_metadata else ():
            if not value.metadata or value.block is not graph.block or not written(value.name):
                continue
            said = value.metadata.items()
            found = {key.removeprefix(QUANTIZATION): text for key, text in said if key.startswith(QUANTIZATION)}
            for key, text in said:
                if key.startswith(QUANTIZATION_TENSOR) and (parameter := written(text)):
                    found[key.removeprefix(QUANTIZATION_TENSOR)] = parameter
            if found:
                names = proto.quantization_annotation.add(tensor_name=self.names(value)).quant_parameter_tensor_names
                for key, text in found.items():
                    names.add(key=key, value=text)

    def _inputs(self, values: Iterable[Value], fewest: int) -> list[str]:
        return _trimmed(("" if value.type == NONE else self.names(value) for value in values), fewest)

    def _outputs(self, node: Node, known: Any) -> list[str]:
        """Names of a node's outputs; an optional output without uses gets none."""
        formals = known.outputs if known and not _counts_outputs(node) else ()
        optional = {i for i, formal in enumerate(formals) if formal.option.name == "Optional"}
        return _trimmed("" if i in optional and not v.has_uses else self.names(v) for i, v in enumerate(node.outputs))


def _trimmed(names: Iterable[str], fewest: int = 0) -> list[str]:
    """``names`` without "" at the end, but at least ``fewest``."""
    found = list(names)
    while len(found) > fewest and not found[-1]:
        found.pop()
    return found


def _declare_computed(infos: Any, computed: Mapping[Value, str]) -> None:
    """Append to ``infos`` what is known of the types of values that a graph computes."""
    for value, name in computed.items():
        type = intermediate_type(value)
        if type is not None:
            info = infos.add()
            declare(info, name, type)
            describe_value(info, value.metadata)


def _identity(name: str, result: str, protos: Any) -> None:
    """Append an Identity that copies the value called ``name`` to ``result``."""
    protos.add(op_type="Identity", input=[name], output=[result])


class FunctionWriter(GraphWriter):
    """Writes a function, which has no initializers."""

    def write_function(self, proto: FunctionProto) -> None:
        """Make ``proto``, which is empty, the function."""
        proto.name, proto.domain = function_name(self._graph.name), FUNCTION_DOMAIN
        proto.input.extend(value.name for value in self._graph.inputs)
        computed = self._nodes(self._graph.block, proto.node)
        for value, name in self._results(self._graph.block, proto.node):
            proto.output.append(name)
            computed.pop(value, None)
        _declare_computed(proto.value_info, computed)
        describe(proto, self._graph.metadata)
        for domain, version in {**self._opsets, FUNCTION_DOMAIN: 1}.items():
            proto.opset_import.add(domain=domain, version=version)

    def _constant(self, node: Node, protos: Any) -> None:
        if node.output.type not in (NONE, FUNCTION):
            self._constant_node(node, protos.add(), self.names(node.output))

    def _is_hoisted(self, value: Value) -> bool:
        return False

    def _may_return(self, value: Value, is_input: bool) -> bool:
        return super()._may_return(value, False)


def function_name(name: str) -> str:
    """What a function of the module is called in a model; one that came from such a model keeps its name."""
    return name.removeprefix(f"{FUNCTION_DOMAIN}.")


def _counts_outputs(node: Node) -> bool:
    """Whether a node's results depend on its number of outputs, as old batch normalisation's do."""
    return node.kind == "onnx::BatchNormalization" and node.version is not None and node.version < 14
