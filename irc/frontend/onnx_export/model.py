"""The ``ModelProto`` around the graphs."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx_export.graphs import FUNCTION_DOMAIN, FunctionWriter, GraphWriter
from irc.frontend.onnx_export.prepare import prepare
from irc.frontend.onnx_export.tensors import InFile
from irc.ir.region_flow import callee
from irc.ir.types import DType, Type
from irc.support.files import real_path, replacing, spare_sources

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto

    from irc.frontend.onnx_export.tensors import Weights
    from irc.ir import Graph, Module


# What a written model holds, for reports.


@dataclass(frozen=True)
class Written:
    """A model in files.

    Attributes:
        bytes: of all its files together.
        nodes: operators in the main graph, without what is nested in them; constants are none.
        operators: how often each operator occurs, in nested graphs and bodies of functions, too.
    """

    bytes: int
    nodes: int
    operators: dict[str, int]


def written(proto: ModelProto, bytes: int) -> Written:
    """What ``proto`` holds, whose files take ``bytes``."""
    top = list(_operators(proto.graph.node))
    functions = [node for function in proto.functions for node in _operators(function.node)]
    counts = Counter(_kind(node) for node in _with_nested([*top, *functions]))
    return Written(bytes, len(top), dict(sorted(counts.items())))


def _operators(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    return (node for node in nodes if node.op_type != "Constant" or node.domain)


def _with_nested(nodes: list[NodeProto]) -> Iterator[NodeProto]:
    pending = nodes
    while pending:
        node = pending.pop()
        yield node
        for attribute in node.attribute:
            if attribute.type == attribute.GRAPH:
                pending.extend(_operators(attribute.g.node))


def _kind(node: NodeProto) -> str:
    """What reports call the operator: as a node of the graph that irc imports is called."""
    if node.op_type == "If" and not node.domain:
        return "prim::If"
    return f"{node.domain or 'onnx'}::{node.op_type}"


# -- model ---------------------------------------------------------------------


PRODUCER = "irc"
_PROPS = "metadata_props."
_OURS = "irc."
"""What compiling says of a module: by which version and passes."""

_LOWEST_IR_VERSION = 4
"""Before, each initializer had to be an input too."""

_FUNCTIONS_IR_VERSION = 8

_DTYPE_IR_VERSIONS = {
    9: (DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ),
    10: (DType.UINT4, DType.INT4),
    11: (DType.FLOAT4E2M1,),
    12: (DType.FLOAT8E8M0,),
    13: (DType.UINT2, DType.INT2),
    14: (DType.FLOAT6E2M3, DType.FLOAT6E3M2),
}
"""IR version -> the element types that came with it."""


def write_model(module: Module, weights: Weights, metadata: Mapping[str, str] | None = None) -> ModelProto:
    """The model of ``module``, which is not changed, with its tensors as ``weights`` writes them.

    Raises:
        Error: IRC350, IRC351; others as of ``weights``.
    """
    try:
        return _write(module, weights, metadata or {})
    except UnicodeEncodeError as error:
        raise Error("IRC350", f"names and strings of ONNX are UTF-8, but this cannot be: {error.object!r}") from None


def _write(module: Module, weights: Weights, metadata: Mapping[str, str]) -> ModelProto:
    from onnx import ModelProto

    given = module.metadata
    module = module.copy()
    opsets = prepare(module)
    proto = ModelProto()
    proto.graph.name = given.get("graph.name") or module.main.name
    proto.graph.doc_string = given.get("graph.doc_string", "")
    main = GraphWriter(module.main, opsets, weights)
    main.write(proto.graph, module)
    functions = _functions(module)
    for graph in functions:
        FunctionWriter(graph, opsets, weights).write_function(proto.functions.add())
    if functions:
        opsets = {**opsets, FUNCTION_DOMAIN: 1}
    for domain, version in opsets.items():
        entry = proto.opset_import.add()
        entry.domain, entry.version = domain, version
    proto.ir_version = _ir_version(module, opsets)
    _describe(proto, given, metadata)
    return proto


def _functions(module: Module) -> list[Graph]:
    """All functions, each after those that it calls, as onnx.reference wants them."""
    calls = {
        name: [function for node in graph.walk() if (function := callee(node)) in module.graphs]
        for name, graph in module.graphs.items()
        if graph is not module.main
    }
    try:
        return [module.graphs[name] for name in TopologicalSorter(calls).static_order()]
    except CycleError as error:
        names = " -> ".join(error.args[1])
        raise Error("IRC350", f"functions of ONNX cannot call themselves, as {names} do") from None


def _describe(proto: ModelProto, given: Mapping[str, str], metadata: Mapping[str, str]) -> None:
    """The metadata of the imported model, and irc as the producer of this one."""
    proto.producer_name = PRODUCER
    proto.domain = given.get("domain", "")
    proto.doc_string = given.get("doc_string", "")
    version = given.get("model_version", "")
    if version.lstrip("-").isdecimal():
        proto.model_version = int(version)
    props = {key.removeprefix(_PROPS): value for key, value in given.items() if key.startswith(_PROPS)}
    source = " ".join(filter(None, (given.get("producer_name", ""), given.get("producer_version", ""))))
    if source and given.get("producer_name") != PRODUCER:
        props["irc.source"] = source
    props |= {key: value for key, value in given.items() if key.startswith(_OURS)}
    for key, value in (props | dict(metadata)).items():
        entry = proto.metadata_props.add()
        entry.key, entry.value = key, value


def _ir_version(module: Module, opsets: Mapping[str, int]) -> int:
    """The lowest IR version that supports all that is used, but not below that of the imported model."""
    from onnx.helper import OP_SET_ID_VERSION_MAP

    needed = [_LOWEST_IR_VERSION, _FUNCTIONS_IR_VERSION if len(module.graphs) > 1 else 0]
    imported = module.metadata.get("ir_version", "")
    if imported.isdecimal():
        needed.append(int(imported))
    needed += [OP_SET_ID_VERSION_MAP.get((domain or "ai.onnx", n), 0) for domain, n in opsets.items()]
    used = {dtype for graph in module.graphs.values() for value in graph.values() for dtype in _dtypes(value.type)}
    needed += [version for version, dtypes in _DTYPE_IR_VERSIONS.items() if not used.isdisjoint(dtypes)]
    return max(needed)


def _dtypes(type: Type) -> set[DType]:
    own = {type.dtype} if type.dtype is not None else set[DType]()
    return own.union(*map(_dtypes, type.inner))


# Models as files: whole or not at all, large weights in a file beside them.


def save_model(module: Module, path: str | os.PathLike[str], external_threshold: int | None = None) -> Written:
    """Write ``module``, which is not changed, to ``path`` as an ONNX model.

    Weights that go into a file of their own go into ``<path>.data``. Both files appear when they are complete, the
    model last; if anything fails, existing files stay.

    Args:
        module: any module whose operators are those of ONNX.
        path: where to.
        external_threshold: weights of that many bytes or more go into the other file, but for strings and short vectors
            of integers; None: all from 1 KB on, but only if the model would be too large for one file.

    Returns:
        What the files hold, and how many bytes they have together.

    Raises:
        irc.Error: IRC350, IRC351; IRC501 if a file cannot be written; IRC503 if it is one of those that the module was
            read from, unless its model is replaced too; IRC352 if the model without its weights, or with those below
            the threshold, is too large for a message.
    """
    from google.protobuf.message import EncodeError

    where = os.fspath(path)
    target = real_path(where)
    beside = f"{target}.data"
    weights = InFile(os.path.basename(beside), external_threshold)
    proto = write_model(module, weights)
    try:
        weights.place(proto.ByteSize())
        message = proto.SerializeToString()
    except (EncodeError, ValueError) as error:  # protobuf's limit, in one implementation and in the other
        raise Error("IRC352", f"the model is too large for a message: {error}", where) from None
    if target not in module.sources[:1]:  # a model that is replaced itself needs its data no longer
        spare_sources(module.sources, [where] if weights.is_empty else [where, beside])
    with replacing(where) as file:
        free = shutil.disk_usage(os.path.dirname(target)).free
        if weights.bytes > free:
            raise Error("IRC501", f"the weights take {weights.bytes:,} bytes, and only {free:,} are free", where)
        file.write(message)
        file.flush()  # a full disk shows now: once the other file is in its place, only a renaming is left
        if not weights.is_empty:
            with replacing(beside) as data:
                weights.write(data)
    return written(proto, len(message) + weights.bytes)
