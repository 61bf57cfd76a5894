"""Local functions: each becomes functions of the module, called by ``prim::CallFunction``.

A function of ONNX is a template: it takes attributes, and an input may be a tensor,
a sequence or absent. So it is instantiated once for each
set of attribute values and kinds of inputs that calls use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx.attributes import GRAPH, Environment, substitute
from irc.frontend.onnx.blocks import GraphBuilder, Scope
from irc.frontend.onnx.scan import RawFunction, RawNode
from irc.ir.types import TENSOR, ListType, OptionalType, TensorType, Type, without_shapes
from irc.support.formatting import count

if TYPE_CHECKING:
    from irc.frontend.onnx.importer import Importer
    from irc.ir import Block, Graph, Value

MAX_REPEATED_NODES = 200_000
"""Nodes in instances of functions beyond each function's first, nested ones too.

A chain of functions that call each other twice, with other attributes each
time, has 2**n instances; this bounds it. Calls alone cost nothing here.
"""

MAX_REPEATED_BYTES = 1 << 28
"""What bodies and attributes of such instances take in the model, together: each reads its constants anew."""

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
        if given > expected:
            takes = count(expected, "input")
            raise Error("IRC128", f"{function.label} takes {takes}, but the node has {given}", str(raw))
        if len(raw.outputs) > len(function.graph.outputs):
            gives = count(len(function.graph.outputs), "output")
            raise Error("IRC128", f"{function.label} gives {gives}, but the node has {len(raw.outputs)}", str(raw))
        names = [*raw.inputs, *[""] * (expected - given)]
        inputs = [scope[name] if name else builder.absent() for name in names]
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
                raise Error(
                    "IRC132",
                    f"instances of local functions for different attributes have more than {most} {what}",
                    function.graph.where,
                )


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
