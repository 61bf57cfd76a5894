"""How large the results of operators will be whose kernels do not ask before they allocate them.

Only runs under limits use this, which ask before each node; kernels stay free of
it. Operators that are not named here have results about
as large as an operand, or ask themselves (`irc.runtime.kernels.support.check_size`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir.ops.made_bytes import STRING_BYTES, VIEW_BYTES, made_bytes
from irc.ir.ops.pointwise import POINTWISE
from irc.ir.ops.torch_pointwise import TORCH_POINTWISE
from irc.ir.types import DType
from irc.runtime.kernels.support import AnyDType, broadcast_shape
from irc.runtime.memory.live import text_bytes
from irc.runtime.values import Array, is_array, is_sequence

if TYPE_CHECKING:
    from irc.ir import Node

WIDEST = 16
"""Bytes of the widest element type."""

Estimate = Callable[["Node", Sequence[Any]], int]


def expected_bytes(node: Node, inputs: Sequence[Any]) -> int:
    """At least how many bytes ``node`` will take for results much larger than an operand on ``inputs``; else 0.

    Shapes that do not fit together give 0: the kernel will report them.
    """
    made = made_bytes(node.kind, inputs)
    if made:
        return made
    arrays = [x for x in inputs if is_array(x)]
    # A kernel writes out what only a repeated element stands for, or windows that overlap.
    size = sum(x.nbytes for x in arrays if _own_bytes(x) < x.nbytes)
    estimate = _ESTIMATES.get(node.kind)
    if estimate is None and (node.kind in POINTWISE or node.kind in _BROADCASTING):
        estimate = _broadcast
    if estimate is not None:
        try:
            size = max(size, estimate(node, inputs))
        except (ValueError, IndexError, TypeError, AttributeError, ZeroDivisionError, OverflowError, KeyError):
            return 0  # the operands are not those that the operator takes
    return size if size > max((_own_bytes(x) for x in arrays), default=0) else 0


def _own_bytes(array: Array) -> int:
    """The bytes of distinct elements in ``array``: at most those from its first element to its last."""
    if array.flags.c_contiguous:
        return array.nbytes
    reach = sum((n - 1) * abs(stride) for n, stride in zip(array.shape, array.strides)) + array.itemsize
    return min(reach, math.prod(n for n, stride in zip(array.shape, array.strides) if stride) * array.itemsize)


def _broadcast(node: Node, inputs: Sequence[Any]) -> int:
    arrays = [x for x in inputs if is_array(x)]
    elements = math.prod(broadcast_shape(*(x.shape for x in arrays)))
    return elements * max(x.itemsize for x in arrays)


def _cast(node: Node, inputs: Sequence[Any]) -> int:
    to = node.attributes["to"]
    return inputs[0].size * _element_bytes((DType[to] if isinstance(to, str) else DType.from_onnx(to)).numpy)


def _cast_like(node: Node, inputs: Sequence[Any]) -> int:
    x, like = inputs
    return x.size * _element_bytes(like.dtype)


def _element_bytes(dtype: AnyDType) -> int:
    return STRING_BYTES if dtype.hasobject else dtype.itemsize


def _nonzero(node: Node, inputs: Sequence[Any]) -> int:
    """One position, as many numbers as there are axes, for each element that is not zero."""
    x = inputs[0]
    return np.count_nonzero(x) * x.ndim * 8


def _gather(node: Node, inputs: Sequence[Any]) -> int:
    x, indices = inputs
    return x.nbytes // x.shape[node.attributes.get("axis", 0)] * indices.size


def _gather_elements(node: Node, inputs: Sequence[Any]) -> int:
    x, indices = inputs
    return indices.size * x.itemsize


def _gather_nd(node: Node, inputs: Sequence[Any]) -> int:
    x, indices = inputs
    depth = indices.shape[-1]
    return indices.size // depth * math.prod(x.shape[node.attributes.get("batch_dims", 0) + depth :]) * x.itemsize


def _index_select(node: Node, inputs: Sequence[Any]) -> int:
    x, dim, index = inputs
    return x.nbytes // x.shape[dim] * index.size


def _embedding(node: Node, inputs: Sequence[Any]) -> int:
    weight, indices = inputs[:2]
    return weight.nbytes // weight.shape[0] * indices.size


def _advanced_index(node: Node, inputs: Sequence[Any]) -> int:
    x, indices = inputs[:2]
    given = [i for i in indices if is_array(i) and i.dtype != np.bool_]
    shape = broadcast_shape(*(i.shape for i in given))
    indexed = math.prod(n for n, i in zip(x.shape, indices) if is_array(i) and i.dtype != np.bool_)
    return x.nbytes // indexed * math.prod(shape)


def _joined(node: Node, inputs: Sequence[Any]) -> int:
    """Bytes of tensors joined one after the other; they are given one by one, or in a list."""
    parts = inputs[0] if inputs and is_sequence(inputs[0]) else inputs
    return sum(x.nbytes for x in parts if is_array(x))


def _joined_text(node: Node, inputs: Sequence[Any]) -> int:
    shape = broadcast_shape(*(x.shape for x in inputs))
    repeats = sum(text_bytes(x) * (math.prod(shape) // max(1, x.size)) for x in inputs)
    return repeats + math.prod(shape) * 8


def _split_text(node: Node, inputs: Sequence[Any]) -> int:
    """Bytes of the parts of strings: each row has as many parts as the string with the most."""
    most = max((len(s) for s in inputs[0].reshape(-1)), default=0)
    return inputs[0].size * (most + 1) * 8


def _pieces(node: Node, inputs: Sequence[Any]) -> int:
    x = inputs[0]
    size = inputs[1] if len(inputs) > 1 else None
    count = x.shape[node.attributes.get("axis", 0)]
    if size is not None:
        count = size.size if size.ndim else -(-count // int(size.item()))
    return count * VIEW_BYTES


def _col2im(node: Node, inputs: Sequence[Any]) -> int:
    columns, image, block = inputs
    channels = columns.shape[1] // math.prod(block.tolist())
    return columns.shape[0] * channels * math.prod(image.tolist()) * columns.itemsize


def _spectrum(node: Node, inputs: Sequence[Any]) -> int:
    """DFT pads or cuts to the length given."""
    x, length = inputs[:2]
    axis = int(inputs[2].item()) if len(inputs) > 2 and inputs[2] is not None else node.attributes.get("axis", 1)
    return 0 if length is None else x.size // x.shape[axis] * int(length.item()) * WIDEST


def _spectrogram(node: Node, inputs: Sequence[Any]) -> int:
    signal, step = inputs[:2]
    window, length = inputs[2] if len(inputs) > 2 else None, inputs[3] if len(inputs) > 3 else None
    size = int(length.item()) if length is not None else 0 if window is None else window.size
    frames = max(0, signal.shape[1] - size) // int(step.item()) + 1
    return signal.shape[0] * frames * size * WIDEST


def _mel_weights(node: Node, inputs: Sequence[Any]) -> int:
    bins, length = (int(x.item()) for x in inputs[:2])
    return bins * (length // 2 + 1) * WIDEST


def _ngram_counts(node: Node, inputs: Sequence[Any]) -> int:
    x = inputs[0]
    rows = x.shape[0] if x.ndim > 1 else 1
    return rows * (max(node.attributes["ngram_indexes"]) + 1) * 4


def _outer(node: Node, inputs: Sequence[Any]) -> int:
    a, b = [x for x in inputs if is_array(x)][-2:]
    return a.size * b.size * max(a.itemsize, b.itemsize)


def _bilinear(node: Node, inputs: Sequence[Any]) -> int:
    x, _, weight = inputs[:3]
    return x.size // x.shape[-1] * weight.shape[0] * x.itemsize


def _tensordot(node: Node, inputs: Sequence[Any]) -> int:
    """Bytes of a contraction: the axes summed over are in both operands."""
    x, y, along = inputs[:3]
    return x.size * y.size // math.prod(x.shape[axis] for axis in along) ** 2 * x.itemsize


def _covariance(node: Node, inputs: Sequence[Any]) -> int:
    x = inputs[0]
    return len(x) ** 2 * 8 if x.ndim > 1 else 0


def _whole_bases(node: Node, inputs: Sequence[Any]) -> int:
    """Bytes of square matrices for each operand, unless only the span of its columns is asked for."""
    x: Any
    wanted: Any
    x, wanted = (*inputs, True)[:2]
    return x.size // x.shape[-1] * x.shape[-2] * x.itemsize if wanted in (True, "complete") else 0


def _take_along(node: Node, inputs: Sequence[Any]) -> int:
    x, indices = inputs[:2]
    axis = inputs[2] if len(inputs) > 2 else None
    if axis is None:  # both are taken flat
        return indices.size * x.itemsize
    rests = [(*a.shape[:axis], *a.shape[axis:][1:]) for a in (x, indices)]
    return math.prod(broadcast_shape(*rests)) * indices.shape[axis] * x.itemsize


def _masked(node: Node, inputs: Sequence[Any]) -> int:
    return _broadcast(node, inputs[:2])


def _of_two(node: Node, inputs: Sequence[Any]) -> int:
    """Bytes of the elementwise maximum or minimum of two tensors; 0 for one tensor, whose result is no larger."""
    return _broadcast(node, inputs) if len(inputs) == 2 and is_array(inputs[1]) else 0


def _where(node: Node, inputs: Sequence[Any]) -> int:
    return _nonzero(node, inputs) if len(inputs) == 1 else _broadcast(node, inputs)


def _views(node: Node, inputs: Sequence[Any]) -> int:
    """Bytes of the views of unbind, split or chunk: one per element, per listed size, or a given count or size."""
    x: Any
    parts: Any
    dim: Any
    x, parts, dim = (*inputs, None, None)[:3]
    if node.kind == "aten::unbind":
        return x.shape[parts or 0] * VIEW_BYTES
    if not isinstance(parts, int):
        return len(parts) * VIEW_BYTES
    size = x.shape[dim or 0]
    if node.kind == "aten::chunk":
        parts = min(parts, size or parts)
    elif node.kind != "aten::tensor_split":
        parts = -(-size // parts)
    return parts * VIEW_BYTES


_BROADCASTING = TORCH_POINTWISE | {
    f"aten::{name}"
    for name in (
        "allclose binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cosine_similarity "
        "cross dist hinge_embedding_loss huber_loss isclose kl_div l1_loss linalg_pinv margin_ranking_loss "
        "masked_select mse_loss pairwise_distance poisson_nll_loss smooth_l1_loss soft_margin_loss "
        "triplet_margin_loss"
    ).split()
}
"""Operators whose operands are spread to one shape, which the result has, or what it is the sum of."""

_DIVIDING = "chunk split split_with_sizes tensor_split unbind unsafe_split".split()

_ESTIMATES: dict[str, Estimate] = {
    "onnx::Cast": _cast,
    "onnx::CastLike": _cast_like,
    "onnx::Col2Im": _col2im,
    "onnx::Concat": _joined,
    "onnx::ConcatFromSequence": _joined,
    "onnx::DFT": _spectrum,
    "onnx::Gather": _gather,
    "onnx::GatherElements": _gather_elements,
    "onnx::GatherND": _gather_nd,
    "onnx::MelWeightMatrix": _mel_weights,
    "onnx::NonZero": _nonzero,
    "onnx::STFT": _spectrogram,
    "onnx::SplitToSequence": _pieces,
    "onnx::StringConcat": _joined_text,
    "onnx::StringSplit": _split_text,
    "onnx::TfIdfVectorizer": _ngram_counts,
    "aten::addr": _outer,
    "aten::argwhere": _nonzero,
    "aten::bilinear": _bilinear,
    "aten::cat": _joined,
    "aten::cov": _covariance,
    "aten::embedding": _embedding,
    "aten::gather": _gather_elements,
    "aten::index": _advanced_index,
    "aten::index_select": _index_select,
    "aten::linalg_qr": _whole_bases,
    "aten::linalg_svd": _whole_bases,
    "aten::masked_scatter": _masked,
    "aten::max": _of_two,
    "aten::min": _of_two,
    "aten::nonzero": _nonzero,
    "aten::nonzero_numpy": _nonzero,
    "aten::outer": _outer,
    "aten::take_along_dim": _take_along,
    "aten::tensordot": _tensordot,
    "aten::where": _where,
    **dict.fromkeys((f"aten::{name}" for name in _DIVIDING), _views),
}
