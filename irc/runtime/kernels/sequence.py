"""Sequences and optionals. A sequence is a list, an empty optional None; neither is changed once made."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.errors import Error
from irc.ops.sizes import VIEW_BYTES
from irc.runtime.bounds import check_bytes
from irc.runtime.kernels.registry import computes, kernel
from irc.runtime.kernels.shape import concatenate, split_of
from irc.runtime.kernels.support import Array, axis_in, c_order, ints, scalar, shapes_of
from irc.runtime.values import describe, is_array

Sequence = list[Any]


def _position(where: Array, count: int) -> int:
    position = int(scalar(where, "position"))
    if not -count <= position < count:
        raise Error("IRC423", f"position {position} is out of range: there are {count} places")
    return position + count if position < 0 else position


kernel("onnx::SequenceEmpty")(lambda node: list)


@computes("onnx::SequenceConstruct")
def sequence_construct(*elements: Any) -> Sequence:
    return [_tensor(element) for element in elements]


@computes("onnx::SequenceAt")
def sequence_at(sequence: Sequence, where: Array) -> Any:
    return sequence[_position(where, len(sequence))]


@computes("onnx::SequenceInsert")
def sequence_insert(sequence: Sequence, element: Any, where: Array | None = None) -> Sequence:
    """With the element before the position given, or at the end."""
    at = len(sequence)
    if where is not None:
        position = int(scalar(where, "position"))  # from -n to n: one more place than there are elements
        if not -at <= position <= at:
            raise Error("IRC423", f"position {position} is out of range: there are {at} elements")
        at = position + at if position < 0 else position
    return [*sequence[:at], _tensor(element), *sequence[at:]]


def _tensor(element: Any) -> Array:
    """``element``; Error if it is not a tensor: a model may state types that its values do not have."""
    if not is_array(element):
        raise Error("IRC423", f"the elements of a sequence must be tensors, not {describe(element)}")
    return element


@computes("onnx::SequenceErase")
def sequence_erase(sequence: Sequence, where: Array | None = None) -> Sequence:
    at = _position(np.array(-1) if where is None else where, len(sequence))
    return [*sequence[:at], *sequence[at + 1 :]]


@computes("onnx::SequenceLength")
def sequence_length(sequence: Sequence) -> Array:
    return np.array(len(sequence), np.int64)


@computes("onnx::SplitToSequence")
def split_to_sequence(x: Array, split: Array | None = None, *, axis: int = 0, keepdims: bool = True) -> Sequence:
    """Split into parts of given sizes, of one size (the last may be smaller), or single elements.

    Only in the last case ``keepdims=0`` drops the axis.
    """
    along = axis_in(axis, x.ndim)
    total = x.shape[along]
    if split is not None and split.ndim:
        check_bytes(split.size * VIEW_BYTES)
        return list(split_of(x, ints(split), along))
    size = 1 if split is None else int(scalar(split, "split"))
    if size < 1:
        raise Error("IRC424", f"a tensor cannot be split into parts of {size}")
    check_bytes(-(-total // size) * VIEW_BYTES)
    parts = split_of(x, [min(size, total - start) for start in range(0, total, size)], along)
    return list(parts) if keepdims or split is not None else [p.squeeze(along) for p in parts]


@computes("onnx::ConcatFromSequence")
def concat_from_sequence(sequence: Sequence, *, axis: int, new_axis: bool = False) -> Array:
    if not sequence:
        raise Error("IRC421", "an empty sequence cannot be concatenated")
    if any(x.dtype != sequence[0].dtype for x in sequence):
        types = ", ".join(str(x.dtype) for x in sequence)
        raise Error("IRC421", f"tensors of different element types, {types}, cannot be concatenated")
    if not new_axis:
        return concatenate(sequence, axis)
    try:
        return c_order(np.stack(sequence, axis_in(axis, sequence[0].ndim + 1)))
    except ValueError:
        raise Error("IRC421", f"tensors of different shapes {shapes_of(*sequence)} cannot be stacked") from None


@computes("onnx::Optional")
def optional(element: Any = None) -> Any:
    return element


@computes("onnx::OptionalHasElement")
def optional_has_element(element: Any = None) -> Array:
    return np.array(element is not None)


@computes("onnx::OptionalGetElement")
def optional_get_element(element: Any) -> Any:
    if element is None:
        raise Error("IRC424", "the optional is empty: it has no element to get")
    return element
