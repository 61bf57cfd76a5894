"""Types of TorchScript's layers: convolution, pooling, products of matrices, normalisation, reductions."""

from __future__ import annotations

from collections.abc import Sequence

from irc.ir.types import Dim, DType, Shape, TensorType, Type
from irc.passes.shapes.nn import einsum_shape
from irc.passes.shapes.torch_call import UNKNOWN, Call, torch_rule
from irc.passes.shapes.torch_pointwise import element_type
from irc.passes.shapes.torch_types import category, if_float, result_type


def _common(*operands: TensorType) -> DType | None:
    """The common element type of operands that must agree."""
    found = {t.dtype for t in operands}
    return found.pop() if len(found) == 1 else None


@torch_rule("batch_norm", "instance_norm", "layer_norm", "group_norm", "rms_norm")
def normalization(c: Call) -> Type:
    x = c.tensor("input")
    return TensorType(if_float(x.dtype), x.shape)


@torch_rule("_weight_norm")
def weight_norm(c: Call) -> Type:
    return c.tensor("v")


@torch_rule("softmax", "log_softmax")
def softmax(c: Call) -> Type:
    x, given = c.tensor(0), c.arg("dtype")
    return TensorType(if_float(x.dtype) if given is None else element_type(given), x.shape)


# -- windows -------------------------------------------------------------------


def _windows(sizes: Shape, n: int, *settings: Sequence[Dim] | None) -> list[Dim]:
    """Sizes after windows: kernel, stride, padding, dilation; each per axis or None if unknown."""
    if any(s is None or len(s) != n for s in settings):
        return [None] * n
    rows = [s for s in settings if s is not None]
    return [_window(size, *row) for size, *row in zip(sizes, *rows, strict=True)]


def _window(size: Dim, kernel: Dim, stride: Dim, padding: Dim, dilation: Dim) -> Dim:
    numbers = [d for d in (size, kernel, stride, padding, dilation) if isinstance(d, int)]
    if len(numbers) < 5 or numbers[2] <= 0:
        return size if (kernel, stride, padding) == (1, 1, 0) else None
    whole, k, s, p, d = numbers
    found = (whole + 2 * p - d * (k - 1) - 1) // s + 1
    return found if found > 0 else None


@torch_rule("conv1d", "conv2d", "conv3d", "_convolution", "_convolution_mode", "convolution")
def convolution(c: Call) -> Type:
    x, weight = c.tensor("input"), c.tensor("weight")
    dtype = _common(x, weight)
    if x.shape is None or weight.shape is None or len(x.shape) != len(weight.shape) or len(x.shape) < 3:
        return TensorType(dtype)
    if c.arg("transposed", False) is not False:
        return TensorType(dtype, (x.shape[0], *[None] * (len(x.shape) - 1)))
    n = len(x.shape) - 2
    padding, stride, how = c.dims("padding", n), c.dims("stride", n), c.arg("padding")
    if how == "same":
        return TensorType(dtype, (x.shape[0], weight.shape[0], *x.shape[2:]))
    if how == "valid":
        padding = [0] * n
    spatial = _windows(x.shape[2:], n, list(weight.shape[2:]), stride, padding, c.dims("dilation", n))
    return TensorType(dtype, (x.shape[0], weight.shape[0], *spatial))


@torch_rule("conv_transpose1d", "conv_transpose2d", "conv_transpose3d")
def conv_transpose(c: Call) -> Type:
    x, weight = c.tensor("input"), c.tensor("weight")
    if x.shape is None or weight.shape is None or len(x.shape) != len(weight.shape):
        return TensorType(_common(x, weight))
    return TensorType(_common(x, weight), (x.shape[0], *[None] * (len(x.shape) - 1)))


@torch_rule(*(f"{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)))
def pool(c: Call) -> Type:
    x, n = c.tensor(0), int(c.schema.name[-2])
    if x.shape is None or len(x.shape) not in (n + 1, n + 2):
        return TensorType(x.dtype)
    kernel, stride = c.dims("kernel_size", n), c.dims("stride", n)
    dilation = c.dims("dilation", n) if c.schema.name.startswith("aten::max") else [1] * n
    spatial: list[Dim] = [None] * n
    if c.arg("ceil_mode", False) is False:
        spatial = _windows(x.shape[-n:], n, kernel, stride or (kernel if stride == [] else None), c.dims("padding", n),
                           dilation)  # fmt: skip
    return TensorType(x.dtype, (*x.shape[:-n], *spatial))


@torch_rule(*(f"adaptive_avg_pool{n}d" for n in (1, 2, 3)))
def adaptive_pool(c: Call) -> Type:
    x, n = c.tensor(0), int(c.schema.name[-2])
    if x.shape is None or len(x.shape) not in (n + 1, n + 2):
        return TensorType(x.dtype)
    sizes = c.dims("output_size", n)
    spatial = sizes if sizes is not None and len(sizes) == n else [None] * n
    return TensorType(x.dtype, (*x.shape[:-n], *spatial))


@torch_rule(
    *(f"upsample_nearest{n}d" for n in (1, 2, 3)), "upsample_linear1d", "upsample_bilinear2d", "upsample_bicubic2d",
    "upsample_trilinear3d",
)  # fmt: skip
def upsample(c: Call) -> Type:
    x, n = c.tensor(0), int(c.schema.name[-2])
    if x.shape is None or len(x.shape) != n + 2:
        return TensorType(x.dtype)
    sizes, factors = c.dims("output_size", n), c.factors("scale_factors")
    spatial: list[Dim] = [None] * n
    if sizes is not None and len(sizes) == n:
        spatial = sizes
    elif c.value("output_size") is None and factors is not None and len(factors) == n:
        spatial = [s * f if isinstance(s, int) else None for s, f in zip(x.shape[2:], factors, strict=True)]
    return TensorType(x.dtype, (*x.shape[:2], *spatial))


# -- products ------------------------------------------------------------------


def _product(a: Shape | None, b: Shape | None, c: Call) -> Shape | None:
    """The shape of ``matmul``: a vector's axis of 1 is dropped again, the axes before the last two are broadcast."""
    if a is None or b is None or not a or not b:
        return None
    rows = a[-2:-1] if len(a) > 1 else ()
    columns = b[-1:] if len(b) > 1 else ()
    batch = c.broadcast([a[:-2], b[:-2]])
    return None if batch is None else (*batch, *rows, *columns)


@torch_rule("matmul", "mm", "bmm", "mv", "dot")
def matmul(c: Call) -> Type:
    a, b = c.tensor(0), c.tensor(1)
    return TensorType(_common(a, b), _product(a.shape, b.shape, c))


@torch_rule("addmm", "baddbmm")
def addmm(c: Call) -> Type:
    if c.schema.overload:
        return TensorType()
    a, b = c.tensor(1), c.tensor(2)
    return TensorType(_common(c.tensor(0), a, b), _product(a.shape, b.shape, c))


@torch_rule("linear")
def linear(c: Call) -> Type:
    x, weight = c.tensor("input"), c.tensor("weight")
    if x.shape is None or weight.shape is None or not x.shape or len(weight.shape) != 2:
        return TensorType(_common(x, weight))
    return TensorType(_common(x, weight), (*x.shape[:-1], weight.shape[0]))


@torch_rule("embedding")
def embedding(c: Call) -> Type:
    weight, indices = c.tensor("weight"), c.tensor("indices")
    if weight.shape is None or indices.shape is None or len(weight.shape) != 2:
        return TensorType(weight.dtype)
    return TensorType(weight.dtype, (*indices.shape, weight.shape[1]))


@torch_rule("einsum")
def einsum(c: Call) -> Type:
    items, equation = c.elements("tensors"), c.arg("equation")
    if not items or not isinstance(equation, str):
        return TensorType()
    dtype = _common(*items) if len(items) > 1 else if_float(items[0].dtype)  # sums of integers are wider
    return TensorType(dtype, einsum_shape(c.types, equation.replace(" ", ""), [t.shape for t in items], True))


# -- reductions ----------------------------------------------------------------


def reduced(c: Call) -> Shape | None:
    """The shape without the axes of ``dim``, or with 1 there; no ``dim``: all of them."""
    x, keep = c.tensor(0).shape, c.arg("keepdim", False)
    if x is None or keep is UNKNOWN:
        return None
    given = c.dims("dim") if c.has("dim") else []
    if given is None:
        return None
    axes = [c.axis(d, len(x)) for d in given] or list(range(len(x)))
    if any(a is None for a in axes):
        return None
    if keep:
        return tuple(1 if i in axes else d for i, d in enumerate(x))
    return tuple(d for i, d in enumerate(x) if i not in axes)


@torch_rule("sum", "prod", "mean", "nansum", "nanmean")
def total(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    dtype, given = c.tensor(0).dtype, c.arg("dtype")
    if given is not None:
        dtype = element_type(given)
    elif c.schema.name == "aten::mean":
        dtype = if_float(dtype)
    elif dtype is not None and category(dtype) < 2:
        dtype = DType.INT64
    return TensorType(dtype, reduced(c))


@torch_rule("amax", "amin", "std", "var")
def extreme(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    x = c.tensor(0)
    return TensorType(if_float(x.dtype) if c.schema.name in ("aten::std", "aten::var") else x.dtype, reduced(c))


@torch_rule("max", "min")
def extreme_and_where(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    x = c.tensor(0)
    if len(c.node.outputs) == 2:
        shape = reduced(c)
        return TensorType(x.dtype, shape), TensorType(DType.INT64, shape)
    if c.has("other"):
        other = c.tensor("other")
        return TensorType(result_type([x, other]), c.broadcast([x.shape, other.shape]))
    return TensorType(x.dtype, reduced(c))


@torch_rule("cummax", "cummin")
def cumulative_extreme(c: Call) -> tuple[Type, ...]:
    x = c.tensor(0)
    return x, TensorType(DType.INT64, x.shape)


@torch_rule("cumsum", "cumprod")
def cumulative(c: Call) -> Type:
    x, given = c.tensor(0), c.arg("dtype")
    if given is not None:
        return TensorType(element_type(given), x.shape)
    return TensorType(DType.INT64 if x.dtype is not None and category(x.dtype) < 2 else x.dtype, x.shape)
