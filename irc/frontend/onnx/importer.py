"""From a model to a module: header checks, then scan, resolve, build.

Each stage relies on what those before it have checked: names and cycles (`scan.py`), operators and their versions
(`opsets.py`), before any node is built (`blocks.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import IR_VERSION, ModelProto

from irc.errors import Error
from irc.frontend.onnx.blocks import GraphBuilder, Scope, Special
from irc.frontend.onnx.files import FileSlice, Source
from irc.frontend.onnx.opsets import Operator, read_imports
from irc.frontend.onnx.scan import RawFunction, RawGraph, RawNode, no_captures, read_functions, resolve, scan_graph
from irc.frontend.onnx.special import SPECIAL
from irc.frontend.onnx.tensors import GRAPH, AttributeReader, Environment, TensorReader, substitute
from irc.frontend.onnx.types import check_outputs, from_proto, text
from irc.ir import Block, Graph, Module, Tensor, Value, constant_tensor
from irc.ir.declarations import OUTPUT_TYPE
from irc.ir.limits import MAX_SUBGRAPH_DEPTH
from irc.ir.metadata import DOC_STRING, GRAPH_NAME
from irc.ir.types import NONE, TENSOR, DType, ListType, OptionalType, TensorType, Type, tensor, without_shapes
from irc.support.formatting import count

# Where the models of PyTorch's exporters mean something else than the standard.


PRODUCER = "pytorch"
"""How its exporters sign their models."""

FRACTIONAL_SINCE = 19
"""From this version on, Resize by scales aligns corners to sizes that need not be whole."""

_SCALES = 2
"""The position of Resize's scales; sizes are behind it."""


def _resize(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """Resize aligning corners with ``sizes`` computed from scales and rounded down, from version 19 on.

    PyTorch, and ONNX Runtime, round the size first in every version. The standard's own cases do not.
    """
    given = builder.inputs(raw, operator, scope)
    attributes = builder.attributes(raw, operator)
    if (
        (operator.version or 0) < FRACTIONAL_SINCE
        or attributes.get("coordinate_transformation_mode") != "align_corners"
        or len(given) != _SCALES + 1
        or given[_SCALES].type is NONE
    ):
        return builder.operator(raw, operator, block, scope)

    def emit(op_type: str, type: Type, *inputs: Value, **attributes: Any) -> Value:
        return builder.create(block, f"onnx::{op_type}", inputs, (type,), attributes=attributes).output

    def constant(numbers: Any, dtype: Any) -> Value:
        return builder.constant(Tensor.of(np.array(numbers, dtype)), block)

    axes, scales = attributes.get("axes"), given[_SCALES]
    known = constant_tensor(scales)
    if known is not None:
        factors, every = known.numpy(), range(given[0].type.rank or 0) if axes is None else axes
        changed = {axis: factor for axis, factor in zip(every, factors.flat) if factor != 1}
        if factors.shape != (len(every),) or len(set(every)) < len(every) or not changed:
            return builder.operator(raw, operator, block, scope)  # which says what is wrong, if anything is
        # Of these alone, so that the others keep their sizes, and the names of these.
        axes, scales = list(changed), constant(list(changed.values()), factors.dtype)
    floats, integers = tensor(DType.FLOAT), tensor(DType.INT64)
    before = emit("Shape", integers, given[0])
    if axes is not None:
        before = emit("Gather", integers, before, constant(axes, np.int64))
    scaled = emit("Mul", floats, emit("Cast", floats, before, to=DType.FLOAT.onnx), scales)
    sizes = emit("Cast", integers, emit("Floor", floats, scaled), to=DType.INT64.onnx)
    outputs = builder.operator(raw, operator, block, scope)
    node = outputs[0].node
    assert node is not None
    node.set_inputs([*given[:_SCALES], builder.absent(), sizes])
    if axes is not None:
        node.attributes["axes"] = axes
    return outputs


PYTORCH: dict[str, Special] = {"onnx::Resize": _resize}
"""Operators that import in a way of their own from models that PyTorch has exported."""


# Local functions: each becomes functions of the module, called by ``prim::CallFunction``.
#
# A function of ONNX is a template: it takes attributes, and an input may be a tensor,
# a sequence or absent. So it is instantiated once for each
# set of attribute values and kinds of inputs that calls use.


MAX_REPEATED_NODES = 200_000
"""Nodes in instances of functions beyond each function's first, nested ones too.

A chain of functions that call each other twice, with other attributes each
time, has 2**n instances; this bounds it. Calls alone cost nothing here.
"""

MAX_REPEATED_BYTES = 1 << 28
"""What bodies and attributes of such instances take in the model, together: each reads its constants again."""

Key = tuple[RawFunction, bytes, tuple[Type, ...]]


class FunctionImporter:
    """Instantiates the local functions of one model."""

    def __init__(self, importer: Importer) -> None:
        self._importer = importer
        self._instances: dict[Key, Graph] = {}
        self._sizes: dict[RawFunction, tuple[int, int]] = {}
        self._repeated_nodes = 0
        self._repeated_bytes = 0

    def call(
        self,
        builder: GraphBuilder,
        raw: RawNode,
        function: RawFunction,
        block: Block,
        scope: Scope,
        types: Sequence[Type] | None = None,
    ) -> Sequence[Value]:
        """Append a call; returns all its outputs.

        Args:
            builder: builds the graph of the call.
            raw: the node that calls.
            function: the function called.
            block: where the call goes.
            scope: the values the node sees.
            types: the types of the inputs, if the body is only for these.

        Raises:
            Error: IRC127, IRC128, IRC132, IRC133.
        """
        expected, given = len(function.graph.inputs), len(raw.inputs)
        many, wanted = len(function.graph.outputs), len(raw.outputs)
        for has, most, does, what in ((given, expected, "takes", "input"), (wanted, many, "gives", "output")):
            if has > most:
                message = f"{function.label} {does} {count(most, what)}, but the node has {has}"
                raise Error("IRC128", message, str(raw))
        inputs = [scope[name] if name else builder.absent() for name in (*raw.inputs, *[""] * (expected - given))]
        environment = _environment(builder, raw, function)
        kinds = [_kind(v.type) for v in inputs]
        kinds[: len(types or ())] = types or ()
        graph = self._instance(function, environment, tuple(kinds), builder.depth)
        results = [without_shapes(v.type) for v in graph.outputs]
        callee = builder.function(graph.name)
        return builder.create(
            block, "prim::CallFunction", [callee, *inputs], results, raw.outputs, None, None, raw.name
        ).outputs

    def _instance(self, function: RawFunction, environment: Environment, kinds: tuple[Type, ...], depth: int) -> Graph:
        digest, given = hashlib.blake2b(), 0
        for name in sorted(environment):
            serialized = environment[name].SerializeToString(deterministic=True)
            given += len(serialized)
            digest.update(b"%d:" % len(serialized) + serialized)
        key = (function, digest.digest(), kinds)
        graph = self._instances.get(key)
        if graph is None:
            self._count(function, given)
            module = self._importer.module
            name, number = function.label, 0
            while name in module.graphs:
                number += 1
                name = f"{function.label}.{number}"
            self._instances[key] = graph = module.add_graph(name)
            builder = GraphBuilder(self._importer, graph, function.graph, function.imports, environment, depth)
            try:
                builder.build(kinds)
            except Error:  # there may be another function for it
                del self._instances[key], module.graphs[name]
                raise
        return graph

    def _count(self, function: RawFunction, given: int) -> None:
        """Count an instance with ``given`` bytes of attributes. Raises IRC132."""
        size = self._sizes.get(function)
        if size is None:
            self._sizes[function] = 1 + sum(1 for _ in function.graph.walk()), function.proto.ByteSize()
            return
        self._repeated_nodes += size[0]
        self._repeated_bytes += size[1] + given
        for found, most, what in (
            (self._repeated_nodes, MAX_REPEATED_NODES, "nodes"),
            (self._repeated_bytes, MAX_REPEATED_BYTES, "bytes"),
        ):
            if found > most:
                message = f"instances of local functions for different attributes have more than {most} {what}"
                raise Error("IRC132", message, function.graph.where)


def _environment(builder: GraphBuilder, raw: RawNode, function: RawFunction) -> Environment:
    """The attributes that the body of ``function`` sees in this call."""
    found: Environment = {}
    for attribute in substitute(raw.attributes, builder.environment, raw):
        name = attribute.name
        if name not in function.attributes:
            raise Error("IRC127", f"{function.label} has no attribute {name!r}", str(raw))
        if name in found:
            raise Error("IRC127", f"attribute {name!r} is given twice", str(raw))
        found[name] = attribute
    for name, default in function.attributes.items():
        if default is not None and name not in found:
            found[name] = default
    for name, attribute in found.items():
        if attribute.type == GRAPH or attribute.HasField("g"):
            raise Error("IRC132", f"functions with graphs as attributes are not supported ({name!r})", str(raw))
    return found


def _kind(type: Type) -> Type:
    """The kind of an input, by which instances differ: a tensor, a list, nothing..."""
    if isinstance(type, TensorType):
        return TENSOR
    if isinstance(type, ListType):
        return ListType(_kind(type.elem))
    if isinstance(type, OptionalType):
        return OptionalType(_kind(type.elem))
    return type


# -- importer ------------------------------------------------------------------


_FIRST_WITH_OPSETS = 3
_FIRST_WITH_OVERRIDES = 4


class Importer:
    """Imports one model. ``run`` does it; the rest is what the builders of its graphs share."""

    def __init__(self, source: Source, refuse_unknown: bool = False) -> None:
        self._source = source
        self.refuse_unknown = refuse_unknown
        self.ir_version = _ir_version(source.model)
        self.module = Module()
        self.special = {**SPECIAL, **PYTORCH} if source.model.producer_name == PRODUCER else SPECIAL
        self.functions = FunctionImporter(self)
        self.bodies: dict[bytes, RawFunction] = {}
        self._tensors = TensorReader(source.folder)
        self.plain_attributes = AttributeReader(self._tensors)
        self.attributes = AttributeReader(self._tensors, self.weight)

    def run(self) -> Module:
        """The module of the model."""
        model, module = self._source.model, self.module
        oldest = 1 if self.ir_version < _FIRST_WITH_OPSETS else None
        imports = read_imports(model.opset_import, "the model", oldest)
        raw = scan_graph(model.graph)
        for key in (GRAPH_NAME, DOC_STRING):  # the module's metadata have these of the main graph
            raw.metadata.pop(key, None)
        no_captures(raw)
        resolve(raw, imports, read_functions(model.functions), self.refuse_unknown)
        if not raw.outputs:
            raise Error("IRC121", "this model computes nothing, or it is truncated: its graph has no outputs")
        constants = self._read_initializers(raw, self._source.regions)
        if self.ir_version >= _FIRST_WITH_OVERRIDES:
            for name in raw.inputs:
                if name in constants:
                    module.defaults[name] = constants.pop(name).renamed(name)
        constants = {name: self.weight(tensor, name) for name, tensor in constants.items()}
        GraphBuilder(self, module.main, raw, imports).build(constants=constants)
        module.metadata.update(_metadata(model, self.ir_version, imports))
        module.metadata.update(_output_types(raw))
        module.sources = self._source.files()
        check_outputs(module)
        return module

    def initializers(self, raw: RawGraph) -> dict[str, Tensor]:
        """The initializers of a nested graph."""
        return {name: self.weight(tensor, name) for name, tensor in self._read_initializers(raw, {}).items()}

    def weight(self, tensor: Tensor, name: str) -> Tensor:
        """``tensor``, entered into the weight table under ``name`` if it is large enough."""
        return self.module.weights.hold(name or "constant", tensor)

    def closed_graph(
        self, builder: GraphBuilder, raw: RawGraph, name: str, user: RawNode, opaque_depth: int = 0
    ) -> Graph:
        """The graph in an attribute of an operator without control flow: separate, and without captures."""
        for capture in raw.captures:
            raise Error("IRC134", f"{raw.where} must not use {capture!r} from outside", str(user))
        if builder.attribute_depth + 1 >= MAX_SUBGRAPH_DEPTH:
            raise Error("IRC133", f"graphs nest deeper than {MAX_SUBGRAPH_DEPTH} attributes", str(user))
        graph = Graph(name, self.module.weights, self.module)
        inner = GraphBuilder(self, graph, raw, builder.imports, builder.environment, builder.depth)
        inner.attribute_depth = builder.attribute_depth + 1
        inner.opaque_depth = opaque_depth
        old = self.ir_version < _FIRST_WITH_OVERRIDES  # whose initializers are inputs too
        inner.build(constants=self.initializers(raw) if old else None)
        return graph

    def _read_initializers(self, raw: RawGraph, regions: dict[int, FileSlice]) -> dict[str, Tensor]:
        found: dict[str, Tensor] = {}
        for name, proto in raw.initializers.items():
            found[name] = self._tensors.dense(proto, f"initializer {name!r}", regions.get(raw.numbers[name]))
        for name, proto in raw.sparse.items():
            found[name] = self._tensors.sparse(proto, f"sparse initializer {name!r}")
        return found


def _ir_version(model: ModelProto) -> int:
    """The model's IR version; IRC121 if it is not a model, IRC122 if the version is too new."""
    if not model.HasField("graph"):
        raise Error("IRC121", "this is not an ONNX model, or it is truncated: it has no graph")
    version = model.ir_version
    if version < 1:
        raise Error("IRC122", "the model has no IR version: is it truncated, or no ONNX model?")
    if version > IR_VERSION:
        raise Error(
            "IRC122", f"IR version {version} is newer than what the installed onnx package reads ({IR_VERSION})"
        )
    return version


def _output_types(raw: RawGraph) -> dict[str, str]:
    """The types that the model declares for its outputs; the inferred ones may be less exact."""
    found = {name: from_proto(type, f"type of {name!r}") for name, type in raw.outputs if type is not None}
    return {f"{OUTPUT_TYPE}{name}": str(type) for name, type in found.items()}


def _metadata(model: ModelProto, ir_version: int, imports: dict[str, int]) -> dict[str, str]:
    """What the model says about itself, under the names of ``ModelProto``'s fields."""
    names = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
    fields = {name: str(getattr(model, name) or "") for name in names}
    fields |= {"graph.name": model.graph.name, "graph.doc_string": model.graph.doc_string}
    fields |= {f"metadata_props.{text(entry.key, 'metadata_props')}": entry.value for entry in model.metadata_props}
    found = {"ir_version": str(ir_version)}
    found |= {f"opset_import.{domain or 'ai.onnx'}": str(version) for domain, version in imports.items()}
    return found | {name: value for name, value in fields.items() if text(value, name)}
