"""Shape rules of convolution, pooling, matrix products and normalisation."""

from __future__ import annotations

import math

from irc.ir.kinds import ATTENTION
from irc.ir.limits import MAX_ELEMENTS
from irc.ir.polynomials import plus, times
from irc.ir.types import Dim, DType, Shape, TensorType, Type
from irc.ops.einsum import einsum_shape
from irc.ops.inference import NodeTypes
from irc.ops.shape_rules import shape_rule


def _window(c: NodeTypes, spatial: Shape, kernel: list[Dim], *, ceil: bool = False) -> list[Dim]:
    """Output sizes of a sliding window (ONNX Conv and pooling specifications)."""
    rank = len(spatial)
    if len(kernel) != rank:
        c.fail(f"a kernel of {len(kernel)} dimensions does not fit {rank} spatial dimensions")
    strides, dilations, pads = _window_attributes(c, rank)
    auto = c.attr("auto_pad", "NOTSET")
    out: list[Dim] = []
    for i, (size, k) in enumerate(zip(spatial, kernel, strict=True)):
        stride = strides[i]
        if not isinstance(size, int) or not isinstance(k, int):
            out.append(_moved_by_one(size, k, dilations[i], pads[i::rank], auto) if stride == 1 else None)
            continue
        reach = (k - 1) * dilations[i] + 1
        if auto.startswith("SAME"):
            out.append(-(-size // stride))
            continue
        begin = 0 if auto == "VALID" else pads[i]
        room = size + begin + (0 if auto == "VALID" else pads[i + rank]) - reach
        steps = -(-room // stride) if ceil else room // stride
        if steps < 0:
            c.fail(f"a window of {reach} does not fit spatial dimension {i} of size {size} with its padding")
        if ceil and steps * stride >= size + begin:
            steps -= 1  # the last window must start inside the input or its left padding
        out.append(steps + 1)
    return out


def _moved_by_one(size: Dim, kernel: Dim, dilation: int, pads: list[int], auto: str) -> Dim:
    """How often a window fits that moves by one element at a time."""
    if auto.startswith("SAME") or not isinstance(kernel, int):
        return size if auto.startswith("SAME") else None
    return plus(size, (0 if auto == "VALID" else sum(pads)) - (kernel - 1) * dilation)


def _window_attributes(c: NodeTypes, rank: int) -> tuple[list[int], list[int], list[int]]:
    strides = list(c.attr("strides") or [1] * rank)
    dilations = list(c.attr("dilations") or [1] * rank)
    pads = list(c.attr("pads") or [0] * 2 * rank)
    for name, values, count in (("strides", strides, rank), ("dilations", dilations, rank), ("pads", pads, 2 * rank)):
        if len(values) != count:
            c.fail(f"attribute {name} must have {count} entries, has {len(values)}")
        if min(values, default=1) < (name != "pads") and name != "pads":
            c.fail(f"attribute {name} must be positive, is {values}")
    return strides, dilations, pads


@shape_rule("Conv", "DeformConv", "ConvInteger", "QLinearConv")
def conv(c: NodeTypes) -> Type:
    quantized = c.node.kind == "onnx::QLinearConv"
    weight_at, dtype = (3, c.dtype(7)) if quantized else (1, c.dtype(0) or c.dtype(1))
    dtype = DType.INT32 if c.node.kind == "onnx::ConvInteger" else dtype
    x, w = c.shape(0), c.shape(weight_at)
    if x is None or w is None:
        return TensorType(dtype, None if x is None else (x[0], None, *[None] * (len(x) - 2)))
    if len(x) != len(w) or len(x) < 3:
        c.fail("the data and the weights of a convolution must have one rank, at least 3")
    group = c.attr("group", 1)
    if isinstance(x[1], int) and isinstance(w[1], int) and x[1] != w[1] * group:
        c.fail(f"{x[1]} input channels do not fit weights for {w[1]} channels in {group} groups")
    given = c.attr("kernel_shape")
    if given and any(isinstance(d, int) and d != k for d, k in zip(w[2:], given, strict=False)):
        c.fail(f"kernel_shape {given} does not agree with the weights")
    kernel: list[Dim] = list(given or w[2:])
    return TensorType(dtype, (x[0], w[0], *_window(c, x[2:], kernel)))


@shape_rule("ConvTranspose")
def conv_transpose(c: NodeTypes) -> Type:
    x, w = c.shape(0), c.shape(1)
    if x is None or w is None:
        return TensorType(c.dtype(0))
    rank = len(x) - 2
    channels = w[1] * c.attr("group", 1) if isinstance(w[1], int) else None
    strides, dilations, pads = _window_attributes(c, rank)
    extra = c.attr("output_padding") or [0] * rank
    kernel = list(c.attr("kernel_shape") or w[2:])
    wanted = c.attr("output_shape")
    if len(kernel) != rank or len(extra) != rank or (wanted and len(wanted) not in (rank, rank + 2)):
        c.fail(f"its attributes are not for {rank} spatial axes")
    auto = c.attr("auto_pad", "NOTSET")
    out: list[Dim] = []
    for i in range(rank):
        size, k = x[2 + i], kernel[i]
        if wanted:
            out.append(wanted[i - rank])
        elif not isinstance(size, int) or not isinstance(k, int):
            out.append(None)
        elif auto.startswith("SAME"):
            out.append(size * strides[i])
        else:
            padding = 0 if auto == "VALID" else pads[i] + pads[i + rank]
            out.append(strides[i] * (size - 1) + extra[i] + (k - 1) * dilations[i] + 1 - padding)
    return TensorType(c.dtype(0), (x[0], channels, *out))


@shape_rule("MaxPool", "AveragePool", "LpPool")
def pool(c: NodeTypes) -> list[Type]:
    x = c.shape(0)
    if x is None:
        return [TensorType(c.dtype(0)), TensorType(DType.INT64)]
    out = (*x[:2], *_window(c, x[2:], list(c.attr("kernel_shape", ())), ceil=bool(c.attr("ceil_mode", 0))))
    return [TensorType(c.dtype(0), out), TensorType(DType.INT64, out)]


@shape_rule("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def global_pool(c: NodeTypes) -> Type:
    x = c.shape(0)
    return TensorType(c.dtype(0), None if x is None else (*x[:2], *[1] * (len(x) - 2)))


@shape_rule("MaxUnpool")
def max_unpool(c: NodeTypes) -> Type:
    x = c.shape(0)
    wanted = c.dims(2) if c.has(2) else None
    if wanted is not None:
        return TensorType(c.dtype(0), tuple(wanted))
    if x is None or c.has(2):
        return TensorType(c.dtype(0), None if x is None else (None,) * len(x))
    strides, _, pads = _window_attributes(c, len(x) - 2)
    kernel = c.attr("kernel_shape")
    if len(kernel) != len(x) - 2:
        c.fail(f"attribute kernel_shape must have {len(x) - 2} entries, has {len(kernel)}")
    out: list[Dim] = []
    for i, (size, k) in enumerate(zip(x[2:], kernel, strict=True)):
        total = pads[i] + pads[i + len(x) - 2]
        out.append((size - 1) * strides[i] + k - total if isinstance(size, int) else None)
    return TensorType(c.dtype(0), (*x[:2], *out))


@shape_rule("Col2Im")
def col2im(c: NodeTypes) -> Type:
    x, image, block = c.shape(0), c.dims(1), c.ints(2)
    given = c.shape(1) or c.shape(2)
    if image is None and given and isinstance(given[0], int):
        image = [None] * given[0]
    if image is None:
        return TensorType(c.dtype(0))
    columns = x[1] if x is not None and len(x) == 3 else None
    channels = columns // math.prod(block) if isinstance(columns, int) and block is not None else None
    return TensorType(c.dtype(0), (None if x is None else x[0], channels, *image))


@shape_rule("CausalConvWithState")
def causal_conv(c: NodeTypes) -> list[Type]:
    x, w = c.shape(0), c.shape(1)
    before = w[2] - 1 if w is not None and len(w) == 3 and isinstance(w[2], int) else None
    return [c.tensor(0), TensorType(c.dtype(0), None if x is None else (*x[:2], before))]


@shape_rule("AffineGrid")
def affine_grid(c: NodeTypes) -> Type:
    theta, size = c.shape(0), c.dims(1)
    if size is None:
        rank = theta[1] if theta is not None and len(theta) == 3 and isinstance(theta[1], int) else None
        return TensorType(c.dtype(0), (theta[0], *[None] * rank, rank) if theta and rank in (2, 3) else None)
    if len(size) not in (4, 5):
        c.fail(f"a grid is for images of 4 or 5 dimensions, not {len(size)}")
    return TensorType(c.dtype(0), (size[0], *size[2:], len(size) - 2))


@shape_rule("GridSample")
def grid_sample(c: NodeTypes) -> Type:
    x, grid = c.shape(0), c.shape(1)
    if x is not None and grid is not None and (len(x) != len(grid) or len(x) < 3):
        c.fail(f"a grid of {len(grid)} dimensions does not fit an input of {len(x)}: both need one rank, at least 3")
    lead: list[Dim] = [None, None] if x is None else list(x[:2])
    if x is not None and grid is None:
        return TensorType(c.dtype(0), (*lead, *[None] * (len(x) - 2)))
    return TensorType(c.dtype(0), None if grid is None else (*lead, *grid[1:-1]))


@shape_rule("MatMul", "MatMulInteger", "QLinearMatMul")
def matmul(c: NodeTypes) -> Type:
    quantized = c.node.kind == "onnx::QLinearMatMul"
    dtype = {"onnx::MatMul": c.dtype(0) or c.dtype(1), "onnx::MatMulInteger": DType.INT32}.get(c.node.kind, c.dtype(7))
    a, b = c.shape(0), c.shape(3 if quantized else 1)
    if a is None or b is None:
        return TensorType(dtype)
    if not a or not b:
        c.fail("MatMul takes no scalars")
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    c.same_dim([left[-1], right[-2]], "the inner dimensions of a matrix product")
    batch = c.broadcast([left[:-2], right[:-2]]) or ()
    rows = () if len(a) == 1 else (left[-2],)
    columns = () if len(b) == 1 else (right[-1],)
    return TensorType(dtype, (*batch, *rows, *columns))


@shape_rule(ATTENTION)
def attention(c: NodeTypes) -> Type:
    query, key, value = (c.shape(i) for i in range(3))
    dtype = c.dtype(0) or c.dtype(1) or c.dtype(2)
    if query is None or key is None or value is None:
        return TensorType(dtype)
    if min(map(len, (query, key, value))) < 2:
        c.fail("attention takes matrices, or batches of them")
    c.same_dim([query[-1], key[-1]], "the widths of queries and keys")
    lead = [shape[:-2] for shape in (query, key, value)]
    if c.attr("grouped", 0) and all(lead) and key[-3] != query[-3]:
        lead = [lead[0], *((*others[:-1], 1) for others in lead[1:])]  # whether they can be shared, the run tells
    scores = (*(c.broadcast(lead) or ()), query[-2], key[-2])
    whole = c.broadcast([scores, *(c.shape(i) for i in (3, 4) if c.has(i))])
    if whole is None:
        return TensorType(dtype)
    return TensorType(dtype, (*whole[:-1], value[-1]))


@shape_rule("Einsum")
def einsum(c: NodeTypes) -> Type:
    equation = c.attr("equation", "").replace(" ", "")
    return TensorType(c.dtype(0), einsum_shape(c, equation, [c.shape(i) for i in range(len(c.node.inputs))]))


@shape_rule("Gemm")
def gemm(c: NodeTypes) -> Type:
    a, b = c.shape(0), c.shape(1)
    if a is None or b is None:
        return TensorType(c.dtype(0) or c.dtype(1), (None, None))
    if len(a) != 2 or len(b) != 2:
        c.fail("Gemm takes matrices")
    inner, rows = (a[0], a[1]) if c.attr("transA", 0) else (a[1], a[0])
    columns, inner_b = (b[0], b[1]) if c.attr("transB", 0) else (b[1], b[0])
    c.same_dim([inner, inner_b], "the inner dimensions of Gemm")
    return TensorType(c.dtype(0) or c.dtype(1), (rows, columns))


@shape_rule("BatchNormalization")
def batch_normalization(c: NodeTypes) -> list[Type]:
    return [c.type(0), *(c.type(i) for i in (3, 4, 3, 4))]


@shape_rule("LayerNormalization")
def layer_normalization(c: NodeTypes) -> list[Type]:
    x = c.shape(0)
    if x is None:
        return [c.type(0)]
    axis = c.axis(c.attr("axis", -1), len(x))
    statistics = TensorType(DType.from_onnx(c.attr("stash_type", 1)), (*x[:axis], *[1] * (len(x) - axis)))
    return [c.type(0), statistics, statistics]


@shape_rule("Resize", "Upsample")
def resize(c: NodeTypes) -> Type:
    x, dtype = c.shape(0), c.dtype(0)
    if x is None:
        return TensorType(dtype)
    old = c.node.kind == "onnx::Upsample" or c.version < 11
    scales_at, sizes_at = (1, None) if old else (2, 3)
    axes = [c.axis(a, len(x)) for a in c.attr("axes") or range(len(x))]
    out: list[Dim] = list(x)
    unknown = TensorType(dtype, tuple([None if i in axes else d for i, d in enumerate(x)]))
    if sizes_at is not None and c.has(sizes_at):
        sizes = c.dims(sizes_at)
        if sizes is None or c.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
            return unknown
        for axis, size in zip(axes, sizes, strict=False):
            out[axis] = size
        return TensorType(dtype, tuple(out))
    given = c.constant(scales_at)
    if given is not None and given.ndim > 1:
        c.fail(f"scales must have one dimension, not {given.ndim}")
    scales = c.attr("scales") or (None if given is None else given.reshape(-1).tolist())
    if scales is None or c.attr("coordinate_transformation_mode") == "tf_crop_and_resize":
        return unknown
    if len(scales) != len(axes):
        c.fail(f"{len(scales)} scales for {len(axes)} axes")
    for axis, scale in zip(axes, scales, strict=True):
        size = x[axis]
        out[axis] = _scaled(size, scale)
    return TensorType(dtype, tuple(out))


_LARGE_SCALE = 1 << 16
"""Below, sizes of tensors are surely multiplied exactly by whole scales, whatever the type of these."""


def _scaled(size: Dim, scale: float) -> Dim:
    if not isinstance(size, int) or size > MAX_ELEMENTS:
        is_whole = 1 <= scale < _LARGE_SCALE and scale == int(scale)
        return times(size, int(scale)) if is_whole and not isinstance(size, int) else None
    exact = size * scale
    if not math.isfinite(exact):
        return None  # the kernel will say what is wrong with it
    # float32 and float64 may round a product that is almost whole to different sides.
    whole = round(exact)
    return None if exact != whole and abs(exact - whole) < 1e-5 * max(1, whole) else int(exact)


@shape_rule("LSTM", "GRU", "RNN", "com.microsoft::DynamicQuantizeLSTM")
def recurrent(c: NodeTypes) -> list[Type]:
    x, hidden = c.shape(0), c.attr("hidden_size")
    directions = 2 if c.attr("direction", "forward") == "bidirectional" else 1
    if x is None:
        return [TensorType(c.dtype(0))] * 3
    batch_first = c.attr("layout", 0)
    length, batch = (x[1], x[0]) if batch_first else (x[0], x[1])
    y = (batch, length, directions, hidden) if batch_first else (length, directions, batch, hidden)
    last = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    return [TensorType(c.dtype(0), y), TensorType(c.dtype(0), last), TensorType(c.dtype(0), last)]
