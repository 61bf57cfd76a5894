"""Windows that slide over images: convolution and pooling."""

from __future__ import annotations

import math

from irc.ir.polynomials import plus
from irc.ir.types import Dim, DType, Shape, TensorType, Type
from irc.ops import Family, checks
from irc.ops.inference import NodeTypes
from irc.ops.onnx.reductions import image_axes
from irc.ops.shape_rules import for_each_element, sizes

FAMILY = Family("onnx")
_AUTO_PAD = {"auto_pad": ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")}


@FAMILY.macs("Conv", "ConvInteger", "QLinearConv", "DeformConv", "CausalConvWithState")
def _window_products(c: NodeTypes, elements: int) -> int:
    """Those with padding count, too."""
    return elements * math.prod(sizes(c, 3 if c.node.kind == "onnx::QLinearConv" else 1)[1:])


@FAMILY.macs("ConvTranspose")
def _transposed_window_products(c: NodeTypes, elements: int) -> int:
    return math.prod(sizes(c, 0)) * math.prod(sizes(c, 1)[1:])


FAMILY.each("Conv", widened=(1, 2), epilogues=True, attributes=_AUTO_PAD, kernel="convolution")
FAMILY.each(
    "ConvTranspose",
    epilogues=True,
    attributes=_AUTO_PAD,
    requires=(checks.positive("group"), checks.not_negative("output_padding", "output_shape")),
    kernel="convolution",
)
FAMILY.each("DeformConv", kernel="grid_sample")
FAMILY.each("ConvInteger QLinearConv", attributes=_AUTO_PAD, kernel="quantized")
FAMILY.each(
    "CausalConvWithState",
    attributes={"activation": ("silu", "swish", "none")},
    requires=(checks.rank("bias", 2, 1),),
    kernel="attention",
)


def _pooled(c: NodeTypes, elements: int) -> int:
    return elements * math.prod(c.attr("kernel_shape"))


FAMILY.each("AveragePool LpPool MaxPool", flops=_pooled, attributes=_AUTO_PAD, kernel="pool")
FAMILY.each("MaxPool", needed_outputs=1, requires=(checks.flags("storage_order"),))
FAMILY.each("GlobalLpPool", flops=for_each_element())
FAMILY.each("GlobalAveragePool GlobalLpPool GlobalMaxPool", kernel="pool")
FAMILY.each("GlobalAveragePool GlobalMaxPool", reduces=image_axes)
FAMILY.each("MaxUnpool", value_operands=(2,), requires=(checks.rank("output_shape", 2, 1),), kernel="pool")
FAMILY.each(
    "Col2Im",
    value_operands=(1, 2),
    requires=(checks.positive("strides", "dilations"), checks.at_least("block_shape", 2, 1)),
    kernel="convolution",
)


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


@FAMILY.shape("Conv", "DeformConv", "ConvInteger", "QLinearConv")
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


@FAMILY.shape("ConvTranspose")
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


@FAMILY.requires("ConvTranspose")
def check_conv_transpose(c: NodeTypes) -> None:
    x, group = c.shape(0), c.attr("group", 1)
    if x is None or len(x) < 2:
        return
    if isinstance(x[1], int) and x[1] % group:
        c.fail(f"{x[1]} channels cannot be split into {group} groups")
    shape = c.attr("output_shape")
    if shape is not None and len(shape) != len(x) - 2:
        c.fail(f"output_shape has {len(shape)} numbers for {len(x) - 2} dimensions of the image")


@FAMILY.shape("CausalConvWithState")
def causal_conv(c: NodeTypes) -> list[Type]:
    x, w = c.shape(0), c.shape(1)
    before = w[2] - 1 if w is not None and len(w) == 3 and isinstance(w[2], int) else None
    return [c.tensor(0), TensorType(c.dtype(0), None if x is None else (*x[:2], before))]


@FAMILY.shape("MaxPool", "AveragePool", "LpPool")
def pool(c: NodeTypes) -> list[Type]:
    x = c.shape(0)
    if x is None:
        return [TensorType(c.dtype(0)), TensorType(DType.INT64)]
    out = (*x[:2], *_window(c, x[2:], list(c.attr("kernel_shape", ())), ceil=bool(c.attr("ceil_mode", 0))))
    return [TensorType(c.dtype(0), out), TensorType(DType.INT64, out)]


FAMILY.reshapes("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")(lambda c, x: (*x[:2], *[1] * (len(x) - 2)))


@FAMILY.shape("MaxUnpool")
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


@FAMILY.requires("MaxUnpool")
def check_max_unpool(c: NodeTypes) -> None:
    x = c.shape(0)
    if x is not None and len(x) > 2:
        checks.lengths(c, len(x) - 2, "kernel_shape", "strides")
        checks.size(c, "output_shape", 2, len(x), f"{len(x)} dimensions")


@FAMILY.shape("Col2Im")
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


@FAMILY.requires("Col2Im")
def check_col2im(c: NodeTypes) -> None:
    image = c.shape(1)
    if image is None or len(image) != 1 or not isinstance(image[0], int):
        return
    count = image[0]
    checks.size(c, "block_shape", 2, count, f"{count} dimensions of the image")
    checks.lengths(c, count, "dilations", "strides")
