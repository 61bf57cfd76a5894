"""What planned memory relies on: kernels write where they are told, and operands decide shapes as the table says."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.ir import Node
from irc.ops import record, records
from irc.runtime.kernels.registry import Kernel, takes_out
from irc.runtime.values import is_array
from tests.kernels import torch_operands
from tests.kernels.conftest import Cases
from tests.kernels.test_shortcuts import DTYPES, as_taken, elements, kernel_of, operand_counts
from tests.kernels.torch_operands import copies, operands_of
from tests.operators import POINTWISE, TORCH_POINTWISE

KINDS = sorted(each.kind for each in records("onnx") if each.value_operands is not None)
WRITING = {kind for kind in KINDS if kind in POINTWISE} | {
    f"onnx::{name}"
    for name in """
        AveragePool BatchNormalization Concat Conv ConvTranspose DeformConv Einsum Gemm GlobalAveragePool GlobalMaxPool
        Hardmax LRN LogSoftmax MatMul MatMulInteger MaxPool Reshape Resize Scatter ScatterElements ScatterND Softmax
        TensorScatter Upsample
    """.split()
}
"""Operators whose kernels take ``out=``."""

NOT_SEEN = {f"onnx::{name}" for name in "Attention CenterCropPad GlobalLpPool MaxRoiPool RoiAlign".split()}
"""Operators whose operands cannot be changed in the suite's cases, or that have none of one node."""


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_write_out(kind: str, single_nodes: Cases) -> None:
    with np.errstate(all="ignore"):
        written = [writes_out(*case) for case in single_nodes[kind] if takes_out(case[1])]
    assert any(written) == (kind in WRITING)


@pytest.mark.parametrize("kind", KINDS)
def test_operands_decide_shapes_as_the_table_says(kind: str, single_nodes: Cases) -> None:
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        decided = [decides_as_it_should(*case, rng) for case in single_nodes[kind]]
    assert any(decided) == (kind not in NOT_SEEN)


def writes_out(node: Node, kernel: Kernel, inputs: list[Any]) -> bool:
    """Fail if ``out`` is not the result, or is not all written; False if there is nothing to be seen."""
    wanted = kernel(*inputs)
    if len(node.outputs) != 1 or wanted.dtype.hasobject or not wanted.size:
        return False
    memory = np.full(wanted.nbytes, 0xFF, np.uint8)
    out = np.ndarray(wanted.shape, wanted.dtype, memory)
    assert kernel(*inputs, out=out) is out, node
    assert out.tobytes() == np.ascontiguousarray(wanted).tobytes(), node
    return True


def decides_as_it_should(node: Node, kernel: Kernel, inputs: list[Any], rng: np.random.Generator) -> bool:
    """Fail if shapes change with operands that do not decide them; False if those cannot be changed."""
    deciding = record(node.kind).value_operands
    assert deciding is not None
    changed = [x if i in deciding else other_contents(x, rng) for i, x in enumerate(inputs)]
    try:
        wanted, got = kernel(*inputs), kernel(*changed)
    except (Error, ValueError, IndexError):
        return False  # the operator does not take any contents
    pairs = zip(wanted, got) if isinstance(wanted, tuple | list) else [(wanted, got)]
    assert all(a is b is None or (a.shape, a.dtype) == (b.shape, b.dtype) for a, b in pairs), node
    return True


def other_contents(x: Any, rng: np.random.Generator) -> Any:
    """An array of the same shape and type with other contents; small ones, which are good as indices, too."""
    if not isinstance(x, np.ndarray) or x.dtype.kind not in "fiub":
        return x
    if x.dtype.kind == "f":
        return rng.standard_normal(x.shape).astype(x.dtype)
    return rng.integers(0, 2, x.shape).astype(x.dtype)


OTHER_TYPES = {"complex", "polar"}


@pytest.mark.parametrize("name", sorted({kind.removeprefix("aten::") for kind in TORCH_POINTWISE} - OTHER_TYPES))
def test_kernels_of_torch_write_over_any_operand(name: str) -> None:
    """They write what they give else, to the last bit. (Results of two others are of other types.)"""
    compared = 0
    for count, dtype, shape in product(operand_counts(name), DTYPES, [(3, 4), (4,), (3, 1), ()]):
        kernel = kernel_of(name, count)
        whole, rest = elements((3, 4), dtype, 1), [elements(shape, dtype, i) for i in range(2, count + 1)]
        for operands in ([whole, *rest], [*rest, whole], [whole, *[2] * len(rest)]):
            compared += writes_over_each(kernel, as_taken(name, operands))
    assert compared or not operand_counts(name) or name == "gelu"  # whose further argument is a word


@pytest.mark.parametrize("dtype", torch_operands.DTYPES, ids=str)
@pytest.mark.parametrize("name", torch_operands.NAMES)
def test_selections_and_powers_write_over_any_operand(name: str, dtype: np.dtype[Any]) -> None:
    """Of all types, layouts and sizes; some operands are there twice."""
    kernel, compared = kernel_of(name, 2 if name == "pow" else 3), 0
    few, many = (3, 4), (90, 50)  # of many, elements are chosen by bits
    for other in torch_operands.DTYPES:
        for operands in operands_of(name, few, dtype, other):
            compared += writes_over_each(kernel, operands)
    for operands in operands_of(name, many, dtype, dtype):
        compared += writes_over_each(kernel, operands)
    assert compared or (name, dtype.kind) == ("pow", "b")


def writes_over_each(kernel: Kernel, operands: list[Any]) -> int:
    """Fail if a result written over an operand, or anywhere, is another one; of how many operands that was seen."""
    with np.errstate(all="ignore"):
        try:
            wanted = kernel(*copies(operands))
        except Exception:  # of some overloads these are no arguments at all
            return 0
        fitting = [
            i for i, x in enumerate(operands) if is_array(x) and (x.shape, x.dtype) == (wanted.shape, wanted.dtype)
        ]
        out = np.empty_like(wanted, order="F")
        assert kernel(*copies(operands), out=out) is out
        assert out.tobytes() == wanted.tobytes(), operands
        for i in fitting:
            given = copies(operands)
            assert kernel(*given, out=given[i]) is given[i]
            assert given[i].tobytes() == wanted.tobytes(), (i, operands)
    return len(fitting)


def channels_last(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


STATISTICS = np.float32([1, 0, -2]), np.float32([2, 0.5, 1])
LAYERS: list[tuple[str, tuple[Any, ...]]] = [
    ("conv2d", (np.float32([1, 2, -1] * 3).reshape(3, 3, 1, 1), None, [2, 2], [1, 1])),
    ("batch_norm", (None, STATISTICS[0], *STATISTICS, False, 0.1, 1e-5, False)),
    ("batch_norm", (STATISTICS[1], None, STATISTICS[0], np.float32([1, 0, 2]), False, 0.1, 0.0, False)),
    ("batch_norm", (None, None, None, None, True, 0.1, 1e-5, False)),
    ("max_pool2d", ([2, 2], [1, 2], [1, 1])),
    ("max_pool2d", ([1, 1],)),
    ("avg_pool2d", ([3, 2], [1, 2], [1, 0], True, False)),
    ("avg_pool2d", ([1, 1], [1, 1], 0, False, True, 3)),
]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int16])
@pytest.mark.parametrize(("name", "arguments"), LAYERS)
def test_layers_of_torch_write_out(name: str, arguments: tuple[Any, ...], dtype: Any) -> None:
    """Also of images in other layouts, and of one without batch."""
    kernel, images = kernel_of(name, 1 + len(arguments)), elements((2, 3, 4, 6), np.dtype(dtype), 1)
    given = [images, channels_last(images), images[:1, :, ::2], *([] if name == "batch_norm" else [images[0]])]
    parameters = [x.astype(dtype) if is_array(x) and name == "conv2d" else x for x in arguments]
    for x in given:
        try:
            with np.errstate(all="ignore"):
                wanted = kernel(x, *parameters)
        except Error:  # not of integers
            assert dtype is np.int16
            continue
        out = np.full(wanted.shape, 99, wanted.dtype)
        with np.errstate(all="ignore"):
            kernel(x, *parameters, out=out)
        assert out.tobytes() == np.ascontiguousarray(wanted).tobytes()
