"""The ``ModelProto`` around the graphs: what is changed before they are written, operator sets, files.

The module that is given stays as it is: groups are dissolved and operators decomposed in a copy.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from itertools import chain
from math import prod

import numpy as np
from google.protobuf.message import EncodeError
from onnx import ModelProto, NodeProto
from onnx.helper import OP_SET_ID_VERSION_MAP

from irc.errors import Error
from irc.frontend.onnx_export.decompositions import DECOMPOSITIONS, choose, decompose, is_known
from irc.frontend.onnx_export.graphs import FUNCTION_DOMAIN, FunctionWriter, GraphWriter, settle_declared
from irc.frontend.onnx_export.tensors import InFile, Weights
from irc.ir import CALL, CONSTANT, IF, Builder, Graph, Module, Node, Tensor, constant_tensor, dissolve_groups
from irc.ir.region_flow import callee, graphs_of, with_subgraphs
from irc.ir.types import FUNCTION, NONE, DType, Type
from irc.ops.opaque import is_opaque
from irc.passes import PassManager
from irc.passes.shapes import Inference
from irc.support.files import real_path, replacing, spare_sources

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
    everything = nodes_in(chain(proto.graph.node, *(function.node for function in proto.functions)))
    counts = Counter(kind for node in everything if (kind := _kind(node)) != "onnx::Constant")
    top = sum(_kind(node) != "onnx::Constant" for node in proto.graph.node)
    return Written(bytes, top, dict(sorted(counts.items())))


def nodes_in(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """``nodes``, and those of their branches and loops."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                yield from nodes_in(graph.node)


def _kind(node: NodeProto) -> str:
    """What reports call the operator: as a node of the graph that irc imports is called."""
    kind = f"{node.domain or 'onnx'}::{node.op_type}"
    return IF if kind == "onnx::If" else kind


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
        proto.opset_import.add(domain=domain, version=version)
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
        proto.metadata_props.add(key=key, value=value)


def _ir_version(module: Module, opsets: Mapping[str, int]) -> int:
    """The lowest IR version that supports all that is used, but not below that of the imported model."""
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
    where = os.fspath(path)
    weights = InFile(f"{os.path.basename(real_path(where))}.data", external_threshold)
    return save_proto(write_model(module, weights), weights, where, module.sources)


def save_proto(proto: ModelProto, weights: InFile, where: str, sources: Sequence[str]) -> Written:
    """Write ``proto`` to ``where``, and what ``weights`` took of it beside it; see `save_model`.

    Args:
        proto: the model.
        weights: its weights, which wait for their places.
        where: the path.
        sources: real paths of the files that the model was read from, its own first.
    """
    target = real_path(where)
    beside = f"{target}.data"
    try:
        weights.place(proto.ByteSize())
        message = proto.SerializeToString()
    except (EncodeError, ValueError) as error:  # protobuf's limit, in one implementation and in the other
        raise Error("IRC352", f"the model is too large for a message: {error}", where) from None
    if target not in sources[:1]:  # a model that is replaced itself needs its data no longer
        spare_sources(sources, [where] if weights.is_empty else [where, beside])
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


# From an optimised module to one of plain ONNX operators: groups dissolved, in-place operators made functional.


# Target shapes of Reshape, in the form that ONNX Runtime needs for tensors without elements.
#
# A size that a target leaves open (-1) next to sizes that it copies (0) is the product of
# all sizes that are not copied, even if there are no elements. ONNX Runtime divides
# by their number, and refuses a batch of none: so the size is stated where it is known.


def state_sizes(graph: Graph) -> None:
    """In the targets of ``graph``, replace the -1 next to copied sizes by the size, where types tell it."""
    for node in list(graph.walk()):
        if node.kind != "onnx::Reshape" or (sizes := _sizes(node)) is None:
            continue
        target = node.inputs[1]
        tensor = Tensor.of(np.array(sizes, np.int64))
        stated = Builder.before(node).node(
            CONSTANT, (), [tensor.type], names=[target.name], attributes={"value": tensor}
        )
        node.replace_input(1, stated.output)
        if target.node is not None and not target.has_uses:
            target.node.erase()


def _sizes(node: Node) -> list[int] | None:
    """The target shape of ``node`` without -1, if it copies sizes; None if not, or not known."""
    given = constant_tensor(node.inputs[1]) if len(node.inputs) == 2 else None
    type = node.inputs[0].type
    if given is None or node.attributes.get("allowzero") or type.shape is None:
        return None
    target: list[int] = given.numpy().tolist()
    if 0 not in target or -1 not in target:
        return None
    place = target.index(-1)
    left = {i: size for i, size in enumerate(type.shape) if i >= len(target) or target[i]}
    known, stated = prod(n for n in left.values() if isinstance(n, int)), prod(n for n in target if n > 0)
    unknown = [i for i, size in left.items() if not isinstance(size, int)]
    if not unknown and known and known % stated == 0:
        size = known // stated
    elif unknown == [place] and known == stated:
        size = 0  # it stays as it is
    else:
        return None
    return [*target[:place], size, *target[place + 1 :]]


# -- prepare -------------------------------------------------------------------


def prepare(module: Module) -> dict[str, int]:
    """Change ``module`` into one that ONNX can express; returns domain -> opset version.

    Raises:
        Error: IRC350 if there is something that ONNX cannot express; the message lists all. IRC351 if no operator set
            has all operators as they are bound.
    """
    for graph in _graphs(module):
        dissolve_groups(graph)
    if any(node.kind.endswith("_") and not is_opaque(node.kind) for node in _nodes(module)):
        PassManager("remove-mutation").run(module)
    _refuse(module)
    for graph in _graphs(module):
        settle_declared(graph, Inference(graph).run())
    opsets = choose(_nodes(module), module.metadata)
    for graph in _graphs(module):
        decompose(graph, opsets[""])
        state_sizes(graph)
    return opsets


def _graphs(module: Module) -> Iterator[Graph]:
    """All graphs of a module, those that are attributes too."""
    pending = list(module.graphs.values())
    while pending:
        graph = pending.pop()
        yield graph
        pending.extend(inner for node in graph.walk() for inner in graphs_of(node))


def _nodes(module: Module) -> Iterator[Node]:
    return with_subgraphs(*module.graphs.values())


def _refuse(module: Module) -> None:
    """Raise IRC350 if there are nodes that ONNX cannot express."""
    found: dict[str, tuple[int, Node, str]] = {}
    if module.objects:
        names = ", ".join(f"%{name}" for name in module.objects)
        raise Error("IRC350", f"ONNX has no objects with attributes, but {names} is one")
    for node in _nodes(module):
        reason = _reason(node)
        if reason:
            count, first, _ = found.get(f"{node.kind}: {reason}", (0, node, ""))
            found[f"{node.kind}: {reason}"] = (count + 1, first, reason)
    if found:
        lines = [f"{len(found)} kind{'s' * (len(found) > 1)} of nodes cannot be expressed in ONNX:"]
        for label, (count, first, _) in sorted(found.items()):
            values = ", ".join(f"%{v.name}" for v in first.outputs) or "without results"
            lines.append(f"  {label} ({count} node{'s' * (count > 1)}, first {values})")
        raise Error("IRC350", "\n".join(lines))


def has_form(kind: str) -> bool:
    """Whether ONNX can express nodes of ``kind``; constants, only if it has a form for their type."""
    return kind in (CONSTANT, CALL, IF) or kind in DECOMPOSITIONS or is_known(kind) or is_opaque(kind)


def _reason(node: Node) -> str:
    """Why ONNX cannot express ``node``; "" if it can."""
    if node.kind == CONSTANT:
        value, type = node.attributes.get("value"), node.output.type
        if isinstance(value, Tensor) or type in (NONE, FUNCTION):
            return ""
        return f"constants of type {type} are not tensors"
    if has_form(node.kind):
        return ""
    if node.kind.endswith("_"):
        return "it writes into memory, and could not be made functional"
    return "ONNX has no such operator"
