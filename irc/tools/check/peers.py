"""Other runtimes of ONNX models, ONNX Runtime and onnx.reference, and their known faults."""

from __future__ import annotations

import ctypes
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from onnx import ModelProto, NodeProto, defs
from onnx.helper import get_attribute_value

from irc.frontend.onnx.importer import FRACTIONAL_SINCE, PRODUCER
from irc.frontend.onnx.tensors import decode, pack
from irc.frontend.onnx_export.model import nodes_in
from irc.ir import Array, DType
from irc.ops import record, records
from irc.ops.onnx_signatures import find
from irc.runtime.threads import usable_processors
from irc.runtime.values import is_array

# Arrays in ONNX Runtime, also of types that NumPy has no names for: bfloat16, floats and integers of few bits.
#
# They are passed by address: an array given must be packed in C order, and a result is read where it lies.


_FOREIGN = {f"tensor({dtype.name.lower()})" for dtype in DType if dtype.onnx >= DType.BFLOAT16.onnx}


def is_foreign(declared: str) -> bool:
    """Whether NumPy lacks the element type that ONNX Runtime names for an input or output."""
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
    if isinstance(source, ModelProto):
        return source, ""
    path = Path(source)
    proto = ModelProto()
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
        threads: how many share the work of an operator; 0: one for each processor that the process may use.

    Raises whatever ONNX Runtime does.
    """
    import onnxruntime

    runtime: Any = onnxruntime  # it ships no types
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    # Its own default counts all cores: on fewer, its threads would wait for each other.
    options.intra_op_num_threads = threads or usable_processors()
    if not optimised:
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if folder:
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", folder)
    source = str(model) if isinstance(model, str | Path) else model.SerializeToString()
    return runtime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def run_session(session: Any, feeds: Mapping[str, Any], names: Sequence[str] | None = None) -> list[Any]:
    """The outputs of these names, or all, as irc's arrays: of ml_dtypes for types like bfloat16.

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


def onnxruntime(proto: ModelProto, folder: str, threads: int = 0) -> Runner:
    """ONNX Runtime, on the processor, as fast as it is, for models that it is known to compute right."""
    return _onnxruntime(proto, folder, optimised=True, threads=threads)


def exact_onnxruntime(proto: ModelProto, folder: str) -> Runner:
    """ONNX Runtime on the CPU, node by node: its fusions of quantised models change results.

    It runs on one thread: several would share the samples of DynamicQuantizeLSTM, and each quantize its own.
    """
    if saturates() and any(node.op_type in _OF_BYTES for node in nodes_of(proto)):
        raise Unable("on this processor, its products of bytes may saturate")
    return _onnxruntime(proto, folder, optimised=False, threads=1)


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
    from onnx.reference import ReferenceEvaluator

    _check_reference_is_right(proto)
    ready = _foreign(lambda: ReferenceEvaluator(with_data(proto, folder)))
    return lambda feeds, names: _foreign(lambda: ready.run(names, feeds))


def with_data(proto: ModelProto, folder: str) -> ModelProto:
    """``proto``, or a copy with the data that lies in ``folder``, if that is not empty."""
    from onnx.external_data_helper import load_external_data_for_model

    if folder:
        proto = deepcopy(proto)
        load_external_data_for_model(proto, folder)
    return proto


def _check_reference_is_right(proto: ModelProto) -> None:
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
    """Whether an ONNX operator meant something else at ``version`` than where onnx.reference is right.

    Of pointwise ones only element types have changed since they broadcast as NumPy does.
    """
    if record(f"onnx::{op_type}").pointwise and version >= 7:
        return False
    then, later = (find(f"onnx::{op_type}", opset) for opset in (version, FIRST_RIGHT_OPSET))
    return then is None or later is None or then.since_version != later.since_version


def _check_no_fault(proto: ModelProto, faults: Iterable[Fault]) -> None:
    if fault := fault_in(proto, faults):
        raise Unable(f"it is not known to be right for {fault}")


def _foreign(action: Callable[[], Any]) -> Any:
    """The result of ``action``; any exception of another library, whatever its class, becomes `Unable`."""
    try:
        return action()
    except Exception as error:
        raise Unable(reason(error)) from error


# Where ONNX Runtime and onnx.reference are known to differ from irc: there, they are not used as oracles.
#
# Each row states when this is so for an operator.
# docs/reference/conformance.md explains the differences and irc's choice.


# What other runtimes say when they cannot run a model, in one line.


MOST = 300
"""Characters of a reason; of what is longer, the middle is left out."""

_NOISE = re.compile(
    r"""^\[ONNXRuntimeError\]\ :\ \d+\ :\ \w+\ :\             # a number and the name of it
    | (?:\b[A-Z]:)?[^\s:]+\.(?:cc|h):\d+\                     # where in its source
      [^()]*\((?:[^()]|\([^()]*\))*\)(?:[^()\s]*\([^()]*\)>?)*  # the signature of the function there
      (?:\ const)?(?:\ \[with\ [^\]]*\])?\ """,
    re.VERBOSE,
)


def reason(error: Exception) -> str:
    """The first line of ``error`` without the source places that ONNX Runtime puts first."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    said = _NOISE.sub("", line).strip() or line
    return said if len(said) <= MOST else f"{said[: MOST // 3]}…{said[-(2 * MOST // 3 - 1) :]}"


# -- peer faults ---------------------------------------------------------------


class Use(NamedTuple):
    """The properties of a node that matter here.

    Attributes:
        attributes: by name.
        inputs: names; "" or missing for absent ones.
        opset: of ONNX's own operators in the model.
        producer: the producer that the model names.
    """

    attributes: Mapping[str, Any]
    inputs: list[str]
    opset: int
    producer: str

    def get(self, name: str, default: Any = None) -> Any:
        """The value of an attribute."""
        return self.attributes.get(name, default)

    def has(self, position: int) -> bool:
        """Whether the input at ``position`` is there."""
        return position < len(self.inputs) and bool(self.inputs[position])


Fault = tuple[str, str, Callable[[Use], Any]]
"""Operators, and how their nodes are used, in words that are said behind the operator, if the function says so."""

FIRST_RIGHT_OPSET = 14
"""Below, onnx.reference computes old versions of many operators (BatchNormalization, Softmax...) as newer ones."""

_FEW_BITS = frozenset(dtype.onnx for dtype in DType if dtype.is_integer and dtype.bits < 8)


def _is_padded_alike(use: Use) -> bool:
    return use.get("auto_pad") in (b"SAME_UPPER", b"SAME_LOWER")


def _is_sparse(use: Use) -> bool:
    strides, kernel = use.get("strides", ()), use.get("kernel_shape")
    is_less = any(s > 1 for s in strides) and (kernel is None or any(k < s for k, s in zip(kernel, strides)))
    return _is_padded_alike(use) and is_less


def _is_dilated(use: Use) -> bool:
    return _is_padded_alike(use) and any(d > 1 for d in use.get("dilations", ()))


def _aligns_corners(use: Use) -> bool:
    is_new = use.opset >= FRACTIONAL_SINCE and use.producer != PRODUCER
    return use.get("coordinate_transformation_mode") == b"align_corners" and is_new and use.has(2)


def _is_voting(use: Use) -> bool:
    labels = use.get("classlabels_int64s") or use.get("classlabels_strings") or ()
    return len(labels) == 2 and len(set(use.get("class_ids", ()))) == 2


def _is_by_probit(use: Use) -> bool:
    return use.get("post_transform") == b"PROBIT"


def _has_one_target(use: Use) -> bool:
    return use.get("targets", use.get("n_targets", 1)) == 1


_WINDOWS = [each for each in records("onnx") if "auto_pad" in each.attributes]
_PADDED, _DENSE = "with auto_pad and windows smaller than strides", "with auto_pad and dilations"
_SCORES = "that transforms scores"

IN_ONNXRUNTIME: Sequence[Fault] = (
    ("Attention", "with is_causal and a past", lambda use: use.get("is_causal") and use.has(4)),
    # Floats are rounded to integers of few bits, to others cut off; what is negative is the least power of two.
    ("Cast", "to integers of less than 8 bits", lambda use: use.get("to") in _FEW_BITS),
    ("Cast", "to float8e8m0", lambda use: use.get("to") == DType.FLOAT8E8M0.onnx),
    # Numbers that are just too large for a type of float8 become the largest one, or no number for an infinity.
    ("Cast CastLike QuantizeLinear", "that does not saturate", lambda use: not use.get("saturate", 1)),
    (" ".join(each.name for each in _WINDOWS if not each.macs), _DENSE, _is_dilated),
    (" ".join(each.name for each in _WINDOWS), _PADDED, _is_sparse),
    ("MaxUnpool", "with an output_shape", lambda use: use.has(2)),
    ("Resize", "of a region", lambda use: use.get("coordinate_transformation_mode") == b"tf_crop_and_resize"),
    ("Resize", "by scales with aligned corners", _aligns_corners),
    ("TreeEnsembleClassifier", "of two classes that both have votes", _is_voting),
    (
        "TreeEnsembleRegressor",
        "of several targets with base values",
        lambda use: use.get("n_targets", 1) > 1 and (use.get("base_values") or use.get("base_values_as_tensor")),
    ),
    # PROBIT's quantiles are approximations, regressors of one target do not transform scores.
    ("LinearClassifier SVMClassifier TreeEnsembleClassifier", _SCORES, _is_by_probit),
    (
        "LinearRegressor SVMRegressor TreeEnsembleRegressor",
        _SCORES,
        lambda use: _is_by_probit(use) or (_has_one_target(use) and use.get("post_transform", b"NONE") != b"NONE"),
    ),
    # LOGISTIC and SOFTMAX are exchanged. (The attribute is a number: 0 is NONE.)
    ("TreeEnsemble", _SCORES, lambda use: use.get("post_transform", 0)),
)
"""What ONNX Runtime computes otherwise."""

IN_REFERENCE: Sequence[Fault] = (
    ("Attention", "with a mask", lambda use: use.opset == 23 and use.has(3)),
    ("ConvTranspose", _PADDED, _is_sparse),
    ("LRN LinearClassifier TreeEnsemble TreeEnsembleClassifier", "", lambda use: True),
    (
        "TreeEnsembleRegressor",
        "of several targets by their least or largest votes",
        lambda use: use.get("aggregate_function") in (b"MIN", b"MAX") and use.get("n_targets", 1) > 1,
    ),
)
"""What onnx.reference may compute wrong: LRN sums over the batch, classifiers choose a class before they transform the
scores, TreeEnsemble does not transform them; ConvTranspose pads by less than nothing; Attention 23 pads masks as
Attention 24 does; the least or largest of no votes is the largest or least number there is."""


_FINDING_NAN = frozenset("ArgMax ArgMin Hardmax MaxPool ReduceMax ReduceMin".split())


def differs_by_choice(node: NodeProto, opset: int, output: str, operands: Sequence[Any]) -> bool:
    """Whether irc's result ``output`` of ``node`` is another than ONNX Runtime's for a known reason.

    Of a number that is none, the largest or least of elements is none; OneHot before version 11 does not count from the
    end; Dropout before version 12 drops nothing, so that its mask is all true.
    """
    first = operands[0] if operands else None
    if not is_array(first):
        return False
    if node.op_type in _FINDING_NAN:
        return first.dtype.kind == "f" and bool(np.isnan(first).any())
    if node.op_type == "OneHot":
        return opset < 11 and bool((first < 0).any())
    return node.op_type == "Dropout" and opset < 12 and list(node.output).index(output) == 1


def fault_in(proto: ModelProto, faults: Iterable[Fault]) -> str:
    """The first use of an operator in the model to which one of ``faults`` applies; "" if there is none."""
    opset, producer = opset_of(proto), proto.producer_name
    for node in nodes_of(proto):
        known = [(words, applies) for operators, words, applies in faults if node.op_type in operators.split()]
        attributes = {a.name: get_attribute_value(a) for a in node.attribute if known and not a.ref_attr_name}
        use = Use(attributes, list(node.input), opset, producer)
        for words, applies in known:
            if applies(use):
                return f"{node.op_type} {words}".rstrip()
    return ""


def opset_of(proto: ModelProto) -> int:
    """The version of ONNX's own operators that the model imports; 0 if it imports none."""
    return max((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), default=0)


def nodes_of(proto: ModelProto) -> Iterator[NodeProto]:
    """All nodes, those of functions, branches and loops too."""
    return nodes_in(chain(proto.graph.node, *(function.node for function in proto.functions)))


# -- products of bytes -------------------------------------------------------------


_OF_BYTES = frozenset(
    """
    ConvInteger DynamicQuantizeLSTM DynamicQuantizeMatMul MatMulInteger MatMulIntegerToFloat QAttention QGemm
    QLinearConv QLinearMatMul
    """.split()
)
"""Operators that multiply unsigned bytes with signed ones."""


@cache
def saturates() -> bool:
    """Whether ONNX Runtime's products of unsigned and signed bytes saturate.

    On x86 processors without VNNI it adds them in pairs with 16 bits.
    """
    try:
        known = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        known = ""
    # Where the flags cannot be read, the worst is assumed: then other oracles are asked.
    return platform.machine().lower() in ("x86_64", "amd64") and "vnni" not in known
