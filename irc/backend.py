"""The ONNX backend API over irc: ``prepare``, ``run_model``, ``run_node``, ``supports_device``.

It is for ``onnx.backend.test.runner`` and other tools that work with any backend;
see ``onnx/backend/base.py``. For other purposes, `irc.compile` offers more.

::

    import irc.backend
    rep = irc.backend.prepare(model)            # an onnx.ModelProto
    outputs = rep.run([x])                      # a tuple, in the order of the graph's outputs
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import index
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

from irc.compiler import compile
from irc.errors import Error
from irc.frontend.onnx.types import to_proto
from irc.ir.types import INT, STR, TENSOR, DictType, DType, ListType, OptionalType, TensorType, Type
from irc.ops.onnx_signatures import newest_opset
from irc.runtime.model import CompiledModel
from irc.runtime.values import is_mapping, is_sequence
from irc.support.formatting import count

__all__ = ["IrcBackend", "IrcBackendRep", "is_compatible", "prepare", "run_model", "run_node", "supports_device"]


class IrcBackendRep(BackendRep):
    """A model that is ready to run.

    Attributes:
        model: what `irc.compile` made.
    """

    def __init__(self, model: CompiledModel) -> None:
        self.model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in order.

        Args:
            inputs: a sequence of values in the order of the graph's inputs, or a dict from name to value. A sequence
                may leave out all inputs that have defaults (initializers), or any number at the end. A single array
                is the one input.
            kwargs: as `CompiledModel.run` takes them.

        Raises:
            Error: IRC410 if there are too many inputs; others as of `CompiledModel.run`.
        """
        outputs = self.model.run(self._feeds(inputs), **kwargs)
        return tuple(outputs.values())

    def _feeds(self, inputs: Any) -> dict[str, Any]:
        if is_mapping(inputs):
            return dict(inputs)
        given: list[Any] = list(inputs) if is_sequence(inputs) else [inputs]
        arguments = self.model.inputs
        required = [a for a in arguments if not a.optional]
        chosen = required if len(given) <= len(required) else list(arguments)
        if len(given) > len(chosen):
            raise Error(
                "IRC410", f"{count(len(given), 'value')} given, but the model has {count(len(chosen), 'input')}"
            )
        return {a.name: value for a, value in zip(chosen, given, strict=False)}


class IrcBackend(Backend):
    """irc as a backend. It runs on the CPU."""

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whether `prepare` takes the model."""
        if not cls.supports_device(device):
            return False
        try:
            compile(model, **kwargs)
        except Error:
            return False
        return True

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> IrcBackendRep:
        """Compile ``model``.

        Args:
            model: any ONNX model.
            device: ``"CPU"``; ``"CPU:0"`` is the same.
            kwargs: as `irc.compile` takes them: ``passes="none"``, say.

        Raises:
            Error: IRC326 for another device; others as of `irc.compile`.
        """
        if not cls.supports_device(device):
            raise Error("IRC326", f"irc runs on the device CPU, not on {device!r}")
        return IrcBackendRep(compile(model, **kwargs))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Compile ``model`` and run it once; arguments as of `prepare` and `IrcBackendRep.run`."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run one operator.

        Args:
            node: the node; absent inputs have the name "".
            inputs: its inputs in order, absent ones left out (one at several places may be given once); or a dict by
                the names of the node's inputs.
            device: as for `prepare`.
            outputs_info: element type and shape of each output; not needed, as results have both.
            kwargs: ``opset_version`` of the node's domain, by default the newest of the installed onnx (1 for a domain
                that it does not know); others as `irc.compile` takes them.

        Raises:
            Error: IRC326 for an invalid version, IRC410 for another number of inputs, or two values for one of
                them, IRC412 for arrays of a type that no tensor has; others as of `run_model`.
        """
        version = _version(kwargs.pop("opset_version", None))
        values = dict(inputs) if is_mapping(inputs) else _by_name(node, inputs)
        return cls.run_model(_model_of(node, values, version), values, device, **kwargs)

    @classmethod
    def supports_device(cls, device: object) -> bool:
        """Whether ``device`` is the CPU."""
        return isinstance(device, str) and device.partition(":")[0].upper() == "CPU"


def _version(value: Any) -> int | None:
    """``value`` as the version of an operator set; Error IRC326 if it cannot be one."""
    if value is None:
        return None
    try:
        version = index(value)
    except TypeError:
        version = 0
    if isinstance(value, bool) or not 0 < version < 1 << 31:
        raise Error("IRC326", f"opset_version must be a positive integer, or None, not {value!r}")
    return version


def _by_name(node: onnx.NodeProto, inputs: Any) -> dict[str, Any]:
    """Values for the inputs of ``node``, given in order; one that comes twice may be given once."""
    given: list[Any] = list(inputs) if is_sequence(inputs) else [inputs]
    names = [name for name in node.input if name]
    if len(given) != len(names):
        names = list(dict.fromkeys(names))
    if len(given) != len(names):
        raise Error("IRC410", f"{node.op_type} needs {count(len(names), 'value')}; {len(given)} are given")
    values: dict[str, Any] = {}
    for name, value in zip(names, given, strict=True):
        if values.setdefault(name, value) is not value:
            raise Error("IRC410", f"{node.op_type} has one input {name!r} at two places: two values are given for it")
    return values


def _model_of(node: onnx.NodeProto, values: Mapping[str, Any], version: int | None) -> onnx.ModelProto:
    """A model of one node, whose inputs have the types of the values given."""
    names = list(dict.fromkeys(name for name in node.input if name))
    parameters = [
        onnx.helper.make_value_info(name, to_proto(_type_of(values.get(name), f"input {name!r}"))) for name in names
    ]
    results = [onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name]
    domain = "" if node.domain == "ai.onnx" else node.domain
    opsets = {"": newest_opset(""), domain: newest_opset(domain) if version is None else version}
    graph = onnx.helper.make_graph([node], node.op_type, parameters, results)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid(*opset) for opset in opsets.items()])


def _type_of(value: Any, where: str) -> Type:
    """The type of an ONNX value; IRC412 if it is an array of elements that no tensor has."""
    if value is None:
        return OptionalType(TENSOR)
    if is_mapping(value):
        key, inner = next(iter(value.items()), (0, 0.0))
        return DictType(STR if isinstance(key, str) else INT, _type_of(inner, where))
    if is_sequence(value):
        elements = [_type_of(element, where) for element in value]
        return ListType(reduce(_common, elements) if elements else TENSOR)
    array = np.asarray(value)
    try:
        return TensorType(DType.from_numpy(array.dtype), array.shape)
    except KeyError:
        raise Error("IRC412", f"NumPy's {array.dtype} is not an element type of tensors", where) from None


def _common(a: Type, b: Type) -> Type:
    """The common type of two elements of a sequence; for tensors of different shapes, one without a shape.

    ``a`` if they have nothing in common: running the model will report that.
    """
    if a == b:
        return a
    if isinstance(a, TensorType) and isinstance(b, TensorType) and a.dtype == b.dtype:
        return TensorType(a.dtype)
    if isinstance(a, ListType) and isinstance(b, ListType):
        return ListType(_common(a.elem, b.elem))
    return a


is_compatible = IrcBackend.is_compatible
prepare = IrcBackend.prepare
run_model = IrcBackend.run_model
run_node = IrcBackend.run_node
supports_device = IrcBackend.supports_device
