"""The ``ModelProto`` around the graphs."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx_export.graphs import FUNCTION_DOMAIN, FunctionWriter, GraphWriter
from irc.frontend.onnx_export.prepare import prepare
from irc.ir.functions import callee
from irc.ir.types import DType, Type

if TYPE_CHECKING:
    from onnx import ModelProto

    from irc.frontend.onnx_export.weights import Weights
    from irc.ir import Graph, Module

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
