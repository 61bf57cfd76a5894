"""ScatterND as exporters write an assignment to a slice: ``x[..., 0:2] = y``.

They hold the index of every element. The index tensor of YOLOv3's widest
assignment alone would take 26 MB; the slice that it stands for takes a few
numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.ir import Array, Dim, Value, constant_tensor
from irc.passes.canonicalize.match import Match, rewrite


@rewrite("ScatterND", "irc::slice_scatter")
def scatter_overwritten(m: Match) -> Value | None:
    """A scatter into the result of another one, at the same place: the earlier one is dropped."""
    inner = m.input().node
    if inner is None or inner.kind != m.node.kind or inner.attributes != m.node.attributes:
        return None
    # ScatterND writes where its indices say; slice_scatter's place follows from its attributes and the source's shape.
    if m.node.kind == "onnx::ScatterND":
        same_place = inner.inputs[1] is m.input(1) and not _adds_up(m.node.attributes)
    else:
        same_place = m.surely_same_type(inner.inputs[1], m.input(1))
    if not same_place or not m.still_holds(inner):
        return None
    inputs = [inner.inputs[0], *m.node.inputs[1:]]
    return m.new(m.node.kind, inputs, m.output.type, dict(m.node.attributes), m.node.version)


@rewrite("ScatterND")
def scatter_to_slice(m: Match) -> Value | None:
    """Indices of evenly spaced positions along each axis, in order: a slice."""
    data, updates = m.types.tensor(0).static_shape, m.types.tensor(2).static_shape
    if data is None or updates is None or _adds_up(m.node.attributes):
        return None
    columns = _columns(m, m.input(1))
    if not columns or len(columns) > len(data) or any(column.ndim != len(columns) for column in columns):
        return None
    if updates != columns[0].shape + data[len(columns) :]:
        return None  # a run says what is wrong
    starts: list[int] = []
    steps: list[int] = []
    for axis, column in enumerate(columns):
        progression = _progression(column, axis, data[axis])
        if progression is None:
            return None
        starts.append(progression[0])
        steps.append(progression[1])
    rest = len(data) - len(starts)
    attributes = {"starts": starts + [0] * rest, "steps": steps + [1] * rest}
    return m.new("irc::slice_scatter", [m.input(0), m.input(2)], m.output.type, attributes)


@rewrite("ScatterND")
def scatter_of_all(m: Match) -> Value | None:
    """A scatter by indices of all positions in order, as a slice of a full mask gives: the updates."""
    data, indices, updates = m.node.inputs
    join, shape = indices.made_by("onnx::Concat"), m.types.shape(0)
    if shape is None or _adds_up(m.node.attributes) or not m.is_fixed(indices):
        return None
    columns = [indices]
    if join is not None:
        columns = join.inputs
        if join.attributes.get("axis") not in (-1, len(columns)):
            return None
    if len(columns) > len(shape) or m.types.tensor(1).rank != len(columns) + 1 or m.types.tensor(2).rank != len(shape):
        return None
    for axis in range(len(shape)):
        same = [m.size(data, axis), m.size(updates, axis)]
        if axis < len(columns):
            same += [m.size(indices, axis), _counted(m, columns[axis], axis, len(columns))]
        if same[0] is None or len(set(same)) > 1:
            return None
    return updates if m.can_share(updates) else None


def _counted(m: Match, column: Value, axis: int, rank: int) -> Dim:
    """The size n if ``column``, save a last axis, counts 0 to n - 1 along ``axis`` and no other."""
    made = column.made_by("onnx::Unsqueeze")
    if made is None or m.types_of(made).axes(1) not in ([-1], [rank]):
        return None
    wide = made.inputs[0]
    tall = _before(wide, "onnx::Expand")
    own = m.type_of(tall).rank
    if own is None or not 0 <= (at := axis + own - rank) < own:
        return None
    if any(m.size(tall, other) != 1 for other in range(own) if other != at):
        return None
    line = _before(tall, "onnx::Reshape")
    if m.type_of(line).rank != 1 or not _counts(m, line):
        return None
    return m.size(line, 0) if all(m.is_fixed(value) for value in (column, wide, tall)) else None


def _before(value: Value, kind: str) -> Value:
    """The first input of the node that makes ``value``, if that is of ``kind``; else ``value``."""
    made = value.made_by(kind)
    return value if made is None else made.inputs[0]


def _counts(m: Match, line: Value) -> bool:
    """Whether ``line``, of one dimension, is 0, 1, 2, and so on."""
    part = line.made_by("onnx::Slice")
    if part is not None and m.is_fixed(line):
        types = m.types_of(part)
        starts, _, _, steps = types.slices()
        if types.version < 10 or starts != [0] or steps != [1]:
            return False
        line = part.inputs[0]
    tensor = constant_tensor(line)
    if tensor is not None:
        is_written_out = tensor.numel < 2 or not tensor.is_splat
        return is_written_out and np.array_equal(tensor.numpy(), np.arange(tensor.numel))
    counted = line.made_by("onnx::Range")
    if counted is None or not m.is_fixed(line):
        return False
    types = m.types_of(counted)
    return types.ints(0) == [0] and types.ints(2) == [1]


def _adds_up(attributes: dict[str, Any]) -> bool:
    return attributes.get("reduction", "none") != "none"


def _columns(m: Match, indices: Value) -> list[Array] | None:
    """``indices[..., k]`` for each k, as broadcast views: they repeat no more than the graph does."""
    tensor = constant_tensor(indices)
    if tensor is not None:
        array = tensor.numpy()
        return [array[..., k] for k in range(array.shape[-1])] if array.ndim else None
    node, rank = indices.made_by("onnx::Concat"), m.type_of(indices).rank
    if node is None or rank is None or node.attributes.get("axis") not in (-1, rank - 1):
        return None
    columns = [_column(m, value) for value in node.inputs] if m.is_fixed(indices) else []
    found = [column for column in columns if column is not None]
    return found if found and len(found) == len(columns) else None


def _column(m: Match, value: Value) -> Array | None:
    """A tensor whose last dimension is 1, without that dimension."""
    shape = m.type_of(value).static_shape
    if not shape or shape[-1] != 1:
        return None
    tensor = constant_tensor(value)
    if tensor is not None:
        return tensor.numpy()[..., 0]
    node = value.made_by("onnx::Unsqueeze")
    if node is None or m.type_of(node.inputs[0]).shape != shape[:-1] or not m.is_fixed(value):
        return None
    return _spread(m, node.inputs[0], shape[:-1])


def _spread(m: Match, value: Value, shape: tuple[int, ...]) -> Array | None:
    tensor = constant_tensor(_before(value, "onnx::Expand") if m.is_fixed(value) else value)
    return None if tensor is None else np.broadcast_to(tensor.numpy(), shape)


def _progression(column: Array, axis: int, size: int) -> tuple[int, int] | None:
    """Start and step if ``column`` grows evenly along ``axis``, and no other, within ``size``."""
    if not column.size:
        return None
    line = column[tuple(slice(None) if i == axis else slice(1) for i in range(column.ndim))]
    varies = any(n > 1 and stride for i, (n, stride) in enumerate(zip(column.shape, column.strides)) if i != axis)
    if varies and not np.array_equal(column, np.broadcast_to(line, column.shape)):
        return None
    positions: list[int] = [p + size if p < 0 else p for p in line.ravel().tolist()]
    start = positions[0]
    step = positions[1] - start if len(positions) > 1 else 1
    if step < 1 or positions != list(range(start, start + step * len(positions), step)):
        return None
    return (start, step) if start >= 0 and positions[-1] < size else None
