"""Run one operator three ways: irc's kernel, ONNX Runtime, the ONNX node suite's expected values.

Kernels are bound through a stand-in node that has only what binders may read
(kind, version, attributes, numbers of inputs and outputs), so these tests need
no graph. Every run also checks what holds for all kernels: they do not write
into their inputs, results are C-order arrays, and share memory with an input
only where the operator is one of `MAY_SHARE`.
"""

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import irc.runtime.kernels  # noqa: F401  registers every family
from irc.runtime.kernels.registry import find_binder
from tests.elsewhere import run_onnxruntime

MAY_SHARE = frozenset(
    "Identity Reshape Squeeze Unsqueeze Flatten Transpose Slice Split Expand Dropout Optional OptionalGetElement "
    "SequenceConstruct SequenceAt SequenceInsert SequenceErase SplitToSequence If Loop Scan".split()
)
"""The operators whose kernels may return memory that shares with an input."""


@dataclass
class TensorStandIn:
    """A tensor attribute, as far as binders may look: like ``irc.ir.Tensor``."""

    array: np.ndarray

    def numpy(self) -> np.ndarray:
        return self.array

    @property
    def dtype(self) -> Any:
        from irc.ir.types import DType

        return DType.from_numpy(self.array.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape


@dataclass
class NodeStandIn:
    """What a binder may read of a node."""

    kind: str
    version: int | None
    attributes: dict[str, Any]
    inputs: list[None]
    outputs: list[None]
    name: str = ""
    blocks: list[Any] = field(default_factory=list)


def values(*shape: int, seed: int = 0, dtype: Any = np.float32) -> np.ndarray:
    """Normally distributed numbers, always the same for a shape and seed."""
    return np.asarray(np.random.default_rng([seed, *shape]).standard_normal(shape)).astype(dtype)


def kind_of(op_type: str, domain: str = "") -> str:
    return f"{domain}::{op_type}" if domain not in ("", "ai.onnx") else f"onnx::{op_type}"


def _attribute(value: Any) -> Any:
    """An attribute value as it is in the IR."""
    if isinstance(value, np.ndarray):
        return TensorStandIn(value)
    if isinstance(value, onnx.TensorProto):
        return TensorStandIn(numpy_helper.to_array(value))
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, (tuple, list)):
        return [_attribute(v) for v in value]
    return value


def bind(op_type: str, attrs: dict[str, Any], version: int | None, n_inputs: int, n_outputs: int = 1, domain: str = ""):
    """irc's own kernel for the operator, bound to a stand-in node."""
    binder = find_binder(kind_of(op_type, domain), version)
    assert binder is not None, f"irc has no kernel of its own for {kind_of(op_type, domain)} at version {version}"
    attributes = {k: _attribute(v) for k, v in attrs.items() if v is not None}
    node = NodeStandIn(kind_of(op_type, domain), version, attributes, [None] * n_inputs, [None] * n_outputs)
    return binder(node)  # type: ignore[arg-type]


def run_kernel(
    op_type: str,
    inputs: Sequence[Any],
    attrs: dict[str, Any],
    version: int | None,
    n_outputs: int = 1,
    domain: str = "",
) -> list[Any]:
    """The operator's outputs by irc's kernel: always a list of ``n_outputs``. Absent inputs are None."""
    inputs = list(inputs)
    while inputs and inputs[-1] is None:  # as the importer does
        inputs.pop()
    kernel = bind(op_type, attrs, version, len(inputs), n_outputs, domain)
    before = copy.deepcopy(inputs)
    with np.errstate(all="ignore"):  # as whoever runs kernels does
        result = kernel(*inputs)
    if n_outputs != 1:
        assert isinstance(result, tuple) and len(result) == n_outputs, (
            f"expected a tuple of {n_outputs}: {type(result)}"
        )
    outputs = list(result) if n_outputs != 1 else [result]
    for given, kept in zip(_arrays(inputs), _arrays(before), strict=True):
        same = given.tolist() == kept.tolist() if given.dtype.hasobject else given.tobytes() == kept.tobytes()
        assert same, f"{op_type} wrote into its input"
    for out in outputs:
        assert not isinstance(out, np.generic), f"{op_type} returned a NumPy scalar, not an array"
        if op_type in MAY_SHARE:
            continue
        for array in _arrays([out]):
            assert array.flags.c_contiguous, f"{op_type}'s result is not in C order: strides {array.strides}"
            for given in _arrays(inputs):
                assert not np.shares_memory(array, given), f"{op_type}'s result shares memory with an input"
    return outputs


def _arrays(values: Iterable[Any]) -> Iterator[np.ndarray]:
    for v in values:
        if isinstance(v, np.ndarray):
            yield v
        elif isinstance(v, (list, tuple)):
            yield from _arrays(v)


def make_model(
    op_type: str, inputs: Sequence[Any], attrs: dict[str, Any], opset: int, n_outputs: int = 1, domain: str = ""
) -> onnx.ModelProto:
    """A model of one node; its inputs have the arrays' dtypes and shapes, None is an absent input."""
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    protos = {k: numpy_helper.from_array(v) if isinstance(v, np.ndarray) else v for k, v in attrs.items()}
    outs = [f"y{i}" for i in range(n_outputs)]
    node = helper.make_node(op_type, names, outs, domain=domain, **{k: v for k, v in protos.items() if v is not None})
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=n) for n in outs])
    imports = [helper.make_opsetid("", opset)] if domain == "" else [helper.make_opsetid(domain, opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=9)


def run_ort(
    op_type: str, inputs: Sequence[Any], attrs: dict[str, Any], opset: int, n_outputs: int = 1, domain: str = ""
) -> list[Any]:
    """The operator's outputs by ONNX Runtime, unoptimised; its exceptions pass through."""
    model = make_model(op_type, inputs, attrs, opset, n_outputs, domain)
    return run_ort_model(model, [x for x in inputs if x is not None])


def run_ort_model(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[Any]:
    """Outputs of ``model`` by ONNX Runtime; ``inputs`` in the order of the graph's inputs."""
    names = [i.name for i in model.graph.input]
    return run_onnxruntime(model, dict(zip(names, inputs, strict=True)), optimised=False)


def since_version(op_type: str, opset: int, domain: str = "") -> int:
    """The operator's version that a model of opset ``opset`` uses."""
    return onnx.defs.get_schema(op_type, opset, domain).since_version


def check_against_ort(
    op_type: str,
    inputs: Sequence[Any],
    attrs: dict[str, Any],
    opset: int,
    n_outputs: int = 1,
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> list[Any]:
    """Assert that irc's kernel and ONNX Runtime agree on one node at ``opset``; returns irc's outputs."""
    expected = run_ort(op_type, inputs, attrs, opset, n_outputs)
    ours = run_kernel(op_type, inputs, attrs, since_version(op_type, opset), n_outputs)
    assert_same(ours, expected, rtol, atol)
    return ours


def assert_same(ours: Sequence[Any], expected: Sequence[Any], rtol: float = 1e-4, atol: float = 1e-5) -> None:
    """Assert equal structure, dtypes and shapes, and values within ``rtol`` and ``atol``."""
    assert len(ours) == len(expected), f"{len(ours)} outputs, expected {len(expected)}"
    for got, want in zip(ours, expected, strict=True):
        if isinstance(want, (list, tuple)):
            assert_same(list(got), list(want), rtol, atol)
        elif want is None or isinstance(want, dict):
            assert got == want
        else:
            _assert_same_array(got, np.asarray(want), rtol, atol)


def _assert_same_array(got: Any, want: np.ndarray, rtol: float, atol: float) -> None:
    assert isinstance(got, np.ndarray), f"not an array: {type(got)}"
    assert got.shape == want.shape, f"shape {got.shape}, expected {want.shape}"
    if want.dtype.kind in "OUST":
        assert got.tolist() == want.tolist()
        return
    assert got.dtype == want.dtype, f"dtype {got.dtype}, expected {want.dtype}"
    if want.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
    elif want.dtype.kind == "c":
        np.testing.assert_allclose(got, want, rtol, atol)
    else:  # float8 and bfloat16 as well
        np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol, atol)
