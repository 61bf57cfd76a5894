"""Other ways to run an ONNX model: ONNX Runtime and onnx.reference, where they are right."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.frontend.onnx.tensors import decode, pack
from irc.ir.tensor import Array
from irc.ir.types import DType
from irc.ops import record
from irc.runtime.values import is_array
from irc.tools.check.peer_faults import (
    FIRST_RIGHT_OPSET,
    IN_ONNXRUNTIME,
    IN_REFERENCE,
    Fault,
    fault_in,
    nodes_in,
    opset_of,
    reason,
    with_unsigned_products,
)

if TYPE_CHECKING:
    from onnx import ModelProto


# Arrays in ONNX Runtime, also of types that NumPy has no names for: bfloat16, floats and integers of few bits.
#
# They are passed by address: an array given must be packed in C order, and a result is read where it lies.


_FOREIGN = {f"tensor({dtype.name.lower()})" for dtype in DType if dtype.onnx >= DType.BFLOAT16.onnx}


def is_foreign(declared: str) -> bool:
    """Whether NumPy has no name for the elements of an input or output that ONNX Runtime says is of this type."""
    return declared in _FOREIGN


def to_ort(value: Any) -> Any:
    """An array of such a type as an ``OrtValue``; anything else as it is."""
    if not is_array(value) or value.dtype.isbuiltin != 2:  # NumPy's number for types of other packages
        return value
    from onnxruntime import OrtValue

    dtype = DType.from_numpy(value.dtype)
    held: Array = np.asarray(value, order="C")
    if dtype.bits < 8:  # as many bytes as elements are asked for, of which the first ones are read
        packed = pack(held.reshape(-1).view(np.uint8), dtype.bits)
        held = np.zeros(held.shape, np.uint8)
        held.reshape(-1)[: packed.size] = packed
    return OrtValue.ortvalue_from_numpy_with_onnx_type(held, dtype.onnx)


def from_ort(value: Any) -> Array:
    """The array in an ``OrtValue``."""
    dtype = DType.from_onnx(value.element_type())
    if dtype.onnx < DType.BFLOAT16.onnx:
        return value.numpy()
    raw = (ctypes.c_ubyte * value.tensor_size_in_bytes()).from_address(value.data_ptr())
    return decode(bytes(raw), dtype, tuple(value.shape()), "")


# -- peers ---------------------------------------------------------------------


ONNX_RUNTIME, REFERENCE = "ONNX Runtime", "onnx.reference"
"""What they are called in messages."""

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


def onnxruntime_session(
    model: ModelProto | str | Path, folder: str = "", optimised: bool = True, threads: int = 0
) -> Any:
    """A session of ONNX Runtime on the processor that logs nothing, for `run_session`.

    Args:
        model: the model or its file, next to which its external data is looked for.
        folder: where the external data of a model that is no file lies, if it has some.
        optimised: whether nodes may be fused; else they run one by one.
        threads: how many share the work of an operator; 0: one for each core.

    Raises whatever ONNX Runtime does.
    """
    import onnxruntime

    runtime: Any = onnxruntime  # it ships no types
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = threads
    if not optimised:
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if folder:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    source = str(model) if isinstance(model, str | Path) else model.SerializeToString()
    return runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_session(session: Any, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Any]:
    """The outputs of these names, or all: arrays as irc has them, of ml_dtypes where NumPy has no such type (bfloat16).

    Raises whatever ONNX Runtime does: also if an output is of such a type, and another one or an input is a list, or an
    input has strings.
    """
    types = {output.name: output.type for output in session.get_outputs()}
    asked = list(types) if names is None else list(names)
    given = {name: to_ort(value) for name, value in feeds.items()}
    if not any(is_foreign(types.get(name, "")) for name in asked):
        return session.run(asked, given)
    from onnxruntime import OrtValue

    values = {n: v if isinstance(v, OrtValue) else OrtValue.ortvalue_from_numpy(v) for n, v in given.items()}
    return [from_ort(value) for value in session.run_with_ort_values(asked, values)]


def onnxruntime(proto: ModelProto, folder: str) -> Runner:
    """ONNX Runtime, on the processor, as fast as it is, for models that it is known to compute right."""
    return _onnxruntime(proto, folder, optimised=True)


def exact_onnxruntime(proto: ModelProto, folder: str) -> Runner:
    """ONNX Runtime, on the processor, node by node: its fusions of quantised models change the results of nodes.

    Its products of bytes are exact whatever the processor. It runs on one thread: several would share the samples of
    DynamicQuantizeLSTM, and each quantize its own.
    """
    return _onnxruntime(_foreign(lambda: with_unsigned_products(proto)), folder, optimised=False, threads=1)


def _onnxruntime(proto: ModelProto, folder: str, optimised: bool, threads: int = 0) -> Runner:
    _check_no_fault(proto, IN_ONNXRUNTIME)
    ready = _foreign(lambda: onnxruntime_session(proto, folder, optimised, threads))
    return lambda feeds, names: _foreign(lambda: run_session(ready, feeds, names))


def reference(proto: ModelProto, folder: str) -> Runner:
    """onnx.reference, for models that it is known to compute right."""
    if (opset := opset_of(proto)) < FIRST_RIGHT_OPSET:
        raise Unable(f"it is not right for opset {opset}")
    return reference_for_nodes(proto, folder)


def reference_for_nodes(proto: ModelProto, folder: str) -> Runner:
    """onnx.reference, for operators of any operator set whose versions it is known to compute right."""
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

    _check_no_fault(proto, IN_REFERENCE)
    for opset_import, nodes in (
        (proto.opset_import, proto.graph.node),
        *((f.opset_import, f.node) for f in proto.functions),
    ):
        versions = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in opset_import}
        for node in nodes_in(nodes):
            domain = "" if node.domain == "ai.onnx" else node.domain
            if any((f.name, f.domain) == (node.op_type, node.domain) for f in proto.functions):
                continue
            if not defs.has(node.op_type, domain):
                raise Unable(f"it is not known to be right for {node.op_type}")
            version = versions.get(domain, 1)
            if domain == "" and version < FIRST_RIGHT_OPSET and _is_old(node.op_type, version):
                raise Unable(f"it is not right for {node.op_type} of opset {version}")


def _is_old(op_type: str, version: int) -> bool:
    """Whether an operator of ONNX computed something else at ``version`` than where onnx.reference is right.

    Of pointwise ones only element types have changed since they broadcast as NumPy does.
    """
    from onnx import defs

    if record(f"onnx::{op_type}").pointwise and version >= 7:
        return False

    try:
        then: Any = defs.get_schema(op_type, version, "")
        later: Any = defs.get_schema(op_type, FIRST_RIGHT_OPSET, "")
    except defs.SchemaError:
        return True
    return then.since_version != later.since_version


def _check_no_fault(proto: ModelProto, faults: Mapping[str, Fault]) -> None:
    if fault := fault_in(proto, faults):
        raise Unable(f"it is not known to be right for {fault}")


def _foreign(action: Callable[[], Any]) -> Any:
    """The result of ``action``; any exception of another library, whatever its class, becomes `Unable`."""
    try:
        return action()
    except Exception as error:
        raise Unable(reason(error)) from error
