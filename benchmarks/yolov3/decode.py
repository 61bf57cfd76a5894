"""Box decode of one YOLOv3 detection head: what in-place assignments to slices become in ONNX."""

from __future__ import annotations

import numpy as np

from benchmarks.yolov3.export import INT64_MAX, Exporter, Scope

Anchors = tuple[tuple[int, int], ...]

CHANNEL_AXIS = 4


def decode(export: Exporter, scope: Scope, x: str, size: int, channels: int, anchors: Anchors, stride: int) -> str:
    """Turn a head's raw output ``x`` [1, anchors * channels, size, size] into boxes [1, anchors * size², channels].

    With x as [1, anchors, size, size, channels] = (cx, cy, w, h, objectness, classes...), in this order::

        x[..., 0:2] = sigmoid(x[..., 0:2]) + grid      # centre, in cells
        x[..., 2:4] = exp(x[..., 2:4]) * anchors       # size, in cells
        x[..., 0:4] *= stride                          # pixels
        x[..., 4:] = sigmoid(x[..., 4:])
    """
    shape = (1, len(anchors), size, size, channels)

    def part(start: int, end: int = INT64_MAX) -> str:
        return export.slice(scope, boxes, CHANNEL_AXIS, start, end)

    split = export.reshape(scope, x, export.constant(scope, [1, len(anchors), channels, size, size]))
    boxes = export.node(scope, "Transpose", split, perm=[0, 1, 3, 4, 2])
    grid = _grid(export, scope, size)

    centre = export.node(scope, "Add", export.node(scope, "Sigmoid", part(0, 2)), grid)
    boxes = _assign(export, scope, boxes, shape, (0, 2), part(0, 2), centre)

    anchor_cells = (np.array(anchors, np.float32) / stride).reshape(1, -1, 1, 1, 2)
    extent = export.node(scope, "Exp", part(2, 4))
    extent = export.node(scope, "Mul", extent, export.folded("Mul", anchor_cells))
    boxes = _assign(export, scope, boxes, shape, (2, 4), part(2, 4), extent)

    # `x[a:b] *= c` writes twice: the multiplication writes into the slice, and Python then stores the slice.
    cells = part(0, 4)
    pixels = export.node(scope, "Mul", cells, export.constant(scope, stride, np.float32))
    boxes = _assign(export, scope, boxes, shape, (0, 4), cells, pixels)
    boxes = _assign(export, scope, boxes, shape, (0, 4), part(0, 4), pixels)

    scores = export.node(scope, "Sigmoid", part(4))
    boxes = _assign(export, scope, boxes, shape, (4, channels), part(4), scores)
    return export.reshape(scope, boxes, export.constant(scope, [1, -1, channels]))


def _grid(export: Exporter, scope: Scope, size: int) -> str:
    """Cell coordinates (x, y), float32 [1, 1, size, size, 2]."""

    def axis(shape: tuple[int, ...]) -> str:
        line = export.constant(scope, np.arange(size).reshape(shape), np.float32)
        return export.expand(scope, line, export.constant(scope, [1, 1, size, size]), rank=4)

    y = axis((1, 1, size, 1))
    x = axis((1, 1, 1, size))
    stacked = [export.unsqueeze(scope, coordinate, 4) for coordinate in (x, y)]
    return export.node(scope, "Concat", *stacked, axis=4)


def _assign(
    export: Exporter, scope: Scope, x: str, shape: tuple[int, ...], channels: tuple[int, int], view: str, value: str
) -> str:
    """``x[..., start:end] = value`` for ``channels = (start, end)``; ``view`` is ``x[..., start:end]``.

    ONNX has no slice assignment: the exporter writes out the index of every element, one coordinate after the other,
    and scatters.
    """
    value = export.node(scope, "Expand", value, export.node(scope, "Shape", view))
    channel_index = export.constant(scope, np.arange(*channels))
    indices = [
        export.anonymous_constant("Expand", np.arange(n).reshape(n, *[1] * (len(shape) - 1 - axis)))
        for axis, n in enumerate(shape[:-1])
    ]
    target = export.constant(scope, [*shape[:-1], channels[1] - channels[0]])
    coordinates = [
        export.unsqueeze(scope, export.expand(scope, index, target, len(shape)), -1)
        for index in (*indices, channel_index)
    ]
    index = export.node(scope, "Concat", *coordinates, axis=-1)

    # The rest of x's shape, past the indexed axes (empty here): the exporter does not know that there is none.
    x_shape = export.node(scope, "Shape", x)
    axes, starts, ends = (export.constant(scope, [v]) for v in (0, len(shape), INT64_MAX))
    rest = export.node(scope, "Slice", x_shape, starts, ends, axes)
    value = export.reshape(scope, value, export.node(scope, "Concat", target, rest, axis=0))
    return export.node(scope, "ScatterND", x, index, value)
