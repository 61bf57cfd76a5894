"""Other ways to run an ONNX model: ONNX Runtime and onnx.reference, where they are right."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir.types import DType
from irc.peer_errors import reason
from irc.peer_faults import (
    FIRST_RIGHT_OPSET,
    IN_ONNXRUNTIME,
    IN_REFERENCE,
    ROUGH_IN_ONNXRUNTIME,
    Fault,
    fault_in,
    nodes_of,
    opset_of,
)

if TYPE_CHECKING:
    from onnx import ModelProto

Runner = Callable[[dict[str, Any], Sequence[str] | None], Sequence[Any]]
"""From inputs by name to the outputs of these names, or to all. Raises `Unable`."""

Peer = Callable[["ModelProto", str], Runner]
"""Makes a model ready to run; its external data lies in a folder, if that is not empty. Raises `Unable`."""


class Unable(Exception):
    """Another runtime cannot run a model; says why."""


def read(source: ModelProto | str | Path) -> tuple[ModelProto, str]:
    """A model and the folder of its external data. irc has read it before, so it is one."""
    import onnx

    if isinstance(source, onnx.ModelProto):
        return source, ""
    path = Path(source)
    proto = onnx.ModelProto()
    proto.ParseFromString(path.read_bytes())
    return proto, str(path.absolute().parent)


def onnxruntime(proto: ModelProto, folder: str) -> Runner:
    """ONNX Runtime, on the processor, as fast as it is, for models that it is known to compute right."""
    return _onnxruntime(proto, folder, optimised=True)


def exact_onnxruntime(proto: ModelProto, folder: str) -> Runner:
    """ONNX Runtime, on the processor, node by node: what it fuses of quantised models is not what the nodes say."""
    if fault := fault_in(proto, ROUGH_IN_ONNXRUNTIME):
        raise Unable(f"it rounds in the midst of {fault}")
    return _onnxruntime(proto, folder, optimised=False)


def _onnxruntime(proto: ModelProto, folder: str, optimised: bool) -> Runner:
    _check_no_fault(proto, IN_ONNXRUNTIME)

    def session() -> Any:
        import onnxruntime

        runtime: Any = onnxruntime  # it ships no types
        options = runtime.SessionOptions()
        options.log_severity_level = 4
        if not optimised:
            options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        if folder:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
        return runtime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])

    ready = _foreign(session)
    for output in ready.get_outputs():
        if any(element in output.type for element in _UNREADABLE):
            raise Unable(f"what it gives for {output.name!r}, a {output.type}, NumPy cannot read")
    return lambda feeds, names: _foreign(lambda: run_session(ready, feeds, names))


_UNREADABLE = ("bfloat16", "float8", "float4", "int4", "int2")


def run_session(session: Any, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> Sequence[Any]:
    """What an ``InferenceSession`` of ONNX Runtime gives for the outputs of these names, or for all.

    Of arrays whose element types NumPy has no name for (bfloat16, float8) it is told the ONNX type. Elements of less
    than a byte lie otherwise there: `Unable`.
    """
    foreign = {name for name, value in feeds.items() if _is_foreign(value)}
    if not foreign:
        return session.run(names, feeds)
    from onnxruntime import OrtValue

    if any(feeds[name].dtype.name in _SMALL for name in foreign):
        raise Unable("elements of less than a byte cannot be given to it")
    make: Any = OrtValue
    values = {
        name: make.ortvalue_from_numpy_with_onnx_type(np.ascontiguousarray(value), DType.from_numpy(value.dtype).onnx)
        if name in foreign
        else make.ortvalue_from_numpy(np.asarray(value, order="C"))
        for name, value in feeds.items()
    }
    wanted = names or [output.name for output in session.get_outputs()]
    return [value.numpy() for value in session.run_with_ort_values(wanted, values)]


_SMALL = {"int4", "uint4", "int2", "uint2", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"}


def _is_foreign(value: Any) -> bool:
    return isinstance(value, np.ndarray) and type(value.dtype).__module__ != "numpy.dtypes"  # type: ignore[reportUnknownMemberType]


def reference(proto: ModelProto, folder: str) -> Runner:
    """onnx.reference, for models that it is known to compute right."""
    _check_reference_is_right(proto)

    def evaluator() -> Any:
        import onnx
        from onnx.external_data_helper import load_external_data_for_model
        from onnx.reference import ReferenceEvaluator

        model = proto
        if folder:
            model = onnx.ModelProto()
            model.CopyFrom(proto)
            load_external_data_for_model(model, folder)
        return ReferenceEvaluator(model)

    ready = _foreign(evaluator)
    return lambda feeds, names: _foreign(lambda: ready.run(names, feeds))


def _check_reference_is_right(proto: ModelProto) -> None:
    from onnx import defs

    opset = opset_of(proto)
    if opset < FIRST_RIGHT_OPSET:
        raise Unable(f"it is not right for opset {opset}")
    _check_no_fault(proto, IN_REFERENCE)
    for node in nodes_of(proto):
        if not defs.has(node.op_type, node.domain):
            raise Unable(f"it is not known to be right for {node.op_type}")


def _check_no_fault(proto: ModelProto, faults: Mapping[str, Fault]) -> None:
    if fault := fault_in(proto, faults):
        raise Unable(f"it is not known to be right for {fault}")


def _foreign(action: Callable[[], Any]) -> Any:
    """What ``action`` gives; whatever another library raises, and each has classes of its own, is `Unable`."""
    try:
        return action()
    except Exception as error:
        raise Unable(reason(error)) from error
