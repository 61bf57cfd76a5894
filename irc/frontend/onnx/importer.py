"""From a model to a module: header checks, then scan, resolve, build."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.errors import Error
from irc.frontend.onnx.attributes import AttributeReader
from irc.frontend.onnx.blocks import GraphBuilder
from irc.frontend.onnx.checks import text
from irc.frontend.onnx.contradictions import check_outputs
from irc.frontend.onnx.control import SPECIAL
from irc.frontend.onnx.functions import FunctionImporter
from irc.frontend.onnx.opsets import read_imports
from irc.frontend.onnx.pytorch import PRODUCER, PYTORCH
from irc.frontend.onnx.resolve import read_functions, resolve
from irc.frontend.onnx.scan import RawFunction, RawGraph, RawNode, no_captures, scan_graph
from irc.frontend.onnx.tensors import TensorReader
from irc.frontend.onnx.types import from_proto
from irc.ir import Graph, Module
from irc.ir.declared_outputs import OUTPUT_TYPE
from irc.ir.limits import MAX_SUBGRAPH_DEPTH
from irc.ir.metadata import DOC_STRING, GRAPH_NAME

if TYPE_CHECKING:
    from onnx import ModelProto

    from irc.frontend.onnx.external import FileSlice
    from irc.frontend.onnx.reader import Source
    from irc.ir import Tensor

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
        """The graph in an attribute of an operator without control flow: a separate graph, which captures nothing."""
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
    from onnx import IR_VERSION

    if not model.HasField("graph"):
        raise Error("IRC121", "this is no ONNX model, or it is truncated: it has no graph")
    version = model.ir_version
    if version < 1:
        raise Error("IRC122", "the model has no IR version: is it truncated, or no ONNX model?")
    if version > IR_VERSION:
        raise Error(
            "IRC122", f"IR version {version} is newer than what the installed onnx package reads ({IR_VERSION})"
        )
    return version


def _output_types(raw: RawGraph) -> dict[str, str]:
    """The types that the model declares for its outputs: irc computes with inferred ones, which may be less exact."""
    found = {name: from_proto(type, f"type of {name!r}") for name, type in raw.outputs if type is not None}
    return {f"{OUTPUT_TYPE}{name}": str(type) for name, type in found.items()}


def _metadata(model: ModelProto, ir_version: int, imports: dict[str, int]) -> dict[str, str]:
    """What the model says about itself, under the names of ``ModelProto``'s fields."""
    fields = {
        "producer_name": model.producer_name,
        "producer_version": model.producer_version,
        "domain": model.domain,
        "model_version": str(model.model_version or ""),
        "doc_string": model.doc_string,
        "graph.name": model.graph.name,
        "graph.doc_string": model.graph.doc_string,
    }
    fields |= {f"metadata_props.{text(entry.key, 'metadata_props')}": entry.value for entry in model.metadata_props}
    found = {"ir_version": str(ir_version)}
    found |= {f"opset_import.{domain or 'ai.onnx'}": str(version) for domain, version in imports.items()}
    return found | {name: value for name, value in fields.items() if text(value, name)}
