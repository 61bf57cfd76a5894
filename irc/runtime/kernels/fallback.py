"""Operators without a kernel of irc's own, computed by ``onnx.reference``.

The reference implementation is slow, and in some cases wrong, not least as one
implementation serves several versions of an operator. Where that is known,
irc has a kernel of its own. The adapter states the defaults of the node's own
version, as the reference would take the newest one's. It hands over copies,
since the reference returns inputs, or views of them: so a result never shares
memory with an input, nor with another result.

onnx is imported when the first such operator is bound, not before.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from traceback import extract_tb
from typing import Any

import numpy as np

from irc.errors import Error, comes_from_outside
from irc.ir import DOMAINS, DType, Node
from irc.ops.onnx_signatures import misfit
from irc.ops.opaque import is_opaque
from irc.runtime.arguments import onnx_type
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import AnyDType, c_order, may_be_view
from irc.runtime.values import is_array


def serves(node: Node) -> bool:
    """Whether `bind` can bind ``node``."""
    return refusal(node) is None


def refusal(node: Node) -> str | None:
    """Why ``node`` cannot be computed by onnx.reference, or None if it can."""
    namespace = node.kind.rpartition("::")[0]
    if namespace not in DOMAINS:
        if node.kind == "prim::CallMethod":  # of methods that are known, what they do stands in the graph
            return "which method that is, is not known: of a live module's attributes irc knows the class, if it is one"
        return "irc does not know it" if is_opaque(node.kind) else "there is no kernel for it"
    try:
        from onnx.reference.op_run import RuntimeContextError
    except ImportError as error:
        return f"irc has no kernel of its own for it, and onnx is not installed ({error})"
    try:
        reference = _Reference(node)
        if reference.has_graphs:
            return "control flow has no kernel: in IR text it is prim::If, or prim::Loop"
        reference.make_evaluator([])
    except RuntimeContextError:  # a function whose body depends on the inputs' types, which a run will tell
        return None
    except Exception as error:  # whatever a foreign library raises for what it cannot do
        if comes_from_outside(error):
            raise
        return f"irc has no kernel of its own for it, and onnx.reference refuses it: {_first_line(error)}"
    return None


def bind(node: Node) -> Kernel:
    """A kernel that computes ``node`` by onnx.reference; only where `refusal` has nothing to say."""
    return _Reference(node)


class _Reference:
    """One node for onnx.reference, with an evaluator for each combination of input types."""

    def __init__(self, node: Node) -> None:
        from onnx import defs

        self.kind = node.kind
        namespace, _, self.op_type = node.kind.rpartition("::")
        self.domain = DOMAINS[namespace]
        newest: Any = defs.get_schema(self.op_type, self.domain)
        self.version: int = newest.since_version if node.version is None else node.version
        self.schema: Any = defs.get_schema(self.op_type, self.version, self.domain)
        graphs = [a for a in self.schema.attributes.values() if a.type.name in ("GRAPH", "GRAPHS")]
        self.has_graphs = bool(node.blocks) or any(a.required or a.name in node.attributes for a in graphs)
        self.attributes = [] if self.has_graphs else _attributes(node.attributes, self.schema)
        self.outputs = [f"y{i}" for i in range(len(node.outputs))]
        self.evaluators: dict[tuple[Any, ...], Any] = {}
        self.lock = threading.RLock()  # the reference promises nothing to several threads

    def __call__(self, *inputs: Any) -> Any:
        copies = [_copy(x) for x in inputs]
        feeds = {f"x{i}": x for i, x in enumerate(copies) if x is not None}
        key = tuple(map(_signature, copies))
        if key not in self.evaluators:
            self.check(copies)
        with self.lock:
            try:
                if key not in self.evaluators:
                    self.evaluators[key] = self.make_evaluator(copies)
                found: list[Any] = self.evaluators[key].run(None, feeds)
            except Exception as error:  # whatever a foreign library raises for bad values
                if comes_from_outside(error):
                    raise
                raise Error("IRC404", f"onnx.reference cannot compute {self.op_type}: {_first_line(error)}") from error
        results: list[Any] = []
        for i, y in enumerate(found):
            result = _normal(y, self._stated_dtype(i, copies))
            results.append(_copy(result) if any(_may_share(result, r) for r in results) else result)
        return results[0] if len(results) == 1 else tuple(results)

    def check(self, inputs: Sequence[Any]) -> None:
        """Error IRC421 if ``inputs`` have types that the operator does not allow: the reference believes them."""
        wrong = misfit(self.kind, self.version, tuple(map(onnx_type, inputs)))
        if wrong is not None:
            raise Error("IRC421", wrong)

    def make_evaluator(self, inputs: Sequence[Any]) -> Any:
        """An evaluator for inputs of the types of ``inputs``."""
        from onnx import ValueInfoProto, defs, helper
        from onnx.reference import ReferenceEvaluator

        names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
        infos = [ValueInfoProto(name=n, type=_type(x)) for n, x in zip(names, inputs, strict=True) if n]
        node = helper.make_node(self.op_type, names, self.outputs, domain=self.domain)
        node.attribute.extend(self.attributes)
        graph = helper.make_graph([node], "node", infos, [ValueInfoProto(name=y) for y in self.outputs])
        opsets = {"": defs.onnx_opset_version()} | {self.domain: self.version}
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        return ReferenceEvaluator(helper.make_model(graph, opset_imports=imports))

    def _stated_dtype(self, index: int, inputs: Sequence[Any]) -> AnyDType | None:
        """The element type that the schema states for an output, if it does."""
        formals = self.schema.outputs
        stated: str = formals[min(index, len(formals) - 1)].type_str
        if stated.startswith("tensor("):
            return DType[stated[len("tensor(") : -1].upper()].numpy
        for formal, x in zip(self.schema.inputs, inputs, strict=False):
            if formal.type_str == stated and is_array(x):
                return x.dtype
        return None


def _attributes(given: dict[str, Any], schema: Any) -> list[Any]:
    """Protos of the attributes given, and of the defaults of *this* version for the others."""
    from onnx import AttributeProto, helper

    protos: list[Any] = []
    for name, value in given.items():
        formal = schema.attributes.get(name)
        protos.append(helper.make_attribute(name, _plain(value), attr_type=formal and formal.type.value))
    for name, formal in schema.attributes.items():
        if name not in given and formal.default_value.type != AttributeProto.UNDEFINED:
            protos.append(formal.default_value)
    return protos


def _plain(value: Any) -> Any:
    """An attribute value as onnx takes it: tensors as protos."""
    from onnx import numpy_helper

    if isinstance(value, list):
        return [_plain(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return numpy_helper.from_array(np.asarray(value.numpy(), order="C")) if hasattr(value, "numpy") else value


def _type(value: Any) -> Any:
    """The ONNX type of a run-time value."""
    from onnx import TensorProto, helper

    if is_array(value):
        return helper.make_tensor_type_proto(DType.from_numpy(value.dtype).onnx, None)
    if isinstance(value, dict):
        items: list[tuple[Any, Any]] = list(value.items())  # pyright: ignore[reportUnknownArgumentType]
        key, element = items[0] if items else ("", 0.0)
        key_type = TensorProto.STRING if isinstance(key, str) else TensorProto.INT64
        return helper.make_map_type_proto(key_type, _type(np.asarray(element)))
    return helper.make_sequence_type_proto(_type(value[0] if value else np.zeros((), np.float32)))


def _signature(value: Any) -> Any:
    if value is None:
        return None
    return value.dtype if is_array(value) else str(_type(value))


def _copy(value: Any) -> Any:
    if is_array(value):
        return np.array(value, order="C")
    if isinstance(value, list):
        return [_copy(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def _normal(value: Any, dtype: AnyDType | None) -> Any:
    """A result as kernels return it: arrays in C order with the dtype that was stated; strings as objects."""
    if isinstance(value, list):
        return [_normal(v, None) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if not (is_array(value) or isinstance(value, np.generic)):
        return value
    array = c_order(value)
    wanted = np.dtype(object) if array.dtype.kind in "UST" else dtype or array.dtype
    return array.astype(wanted, copy=False)


def _may_share(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return any(_may_share(x, b) for x in a)  # pyright: ignore[reportUnknownVariableType]
    if isinstance(b, list):
        return _may_share(b, a)
    return is_array(a) and is_array(b) and may_be_view(a, b)


def _first_line(error: Exception) -> str:
    """The class of ``error`` and what it says, or else the statement that raised it."""
    line = str(error).partition("\n")[0] or (extract_tb(error.__traceback__)[-1].line or "it does not say why")
    return f"{type(error).__name__}: {line}"[:300]
