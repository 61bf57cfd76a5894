"""Tensors made of numbers, or at random."""

from __future__ import annotations

import numpy as np

from irc.ir.polynomials import is_size
from irc.ir.types import Dim, DType, TensorType, Type
from irc.ops import Effects, Family, checks
from irc.ops.inference import MAX_CONTENTS, Contents, NodeTypes, as_contents, dims_array
from irc.ops.onnx.shaping import unknown_sizes
from irc.ops.shape_rules import range_length, sliced

FAMILY = Family(
    "onnx",
    """
    onnx::Dropout(Tensor(a) data, Tensor? ratio=None, Tensor? training_mode=None) -> (Tensor(a) output, Tensor mask)
    """,
)
FAMILY.each("Constant", kernel="generate")
FAMILY.each("ConstantOfShape", value_operands=(0,), kernel="generate")
FAMILY.each("Range", value_operands=(0, 1, 2), kernel="generate")
FAMILY.each("EyeLike", contents_from="shapes", kernel="generate")
FAMILY.each(
    "OneHot",
    changes_meaning=(11,),  # negative indices count from the end
    value_operands=(1,),
    requires=(
        checks.elements("depth", 1, 1),
        checks.at_least("depth", 1, 0),
        checks.rank("values", 2, 1),
        checks.elements("values", 2, 2),
    ),
    kernel="generate",
)
FAMILY.each(
    "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    effects=Effects.RANDOM,
    value_operands=None,
    kernel="generate",
)
FAMILY.each(
    "Dropout",
    effects=Effects.RANDOM,
    random_switch="training_mode",
    covers_operand=True,
    contents_from="chance",
    needed_outputs=1,
    requires=(checks.rank("ratio", 1, 0), checks.rank("training_mode", 2, 0)),
    kernel="generate",
)


@FAMILY.shape("ConstantOfShape")
def constant_of_shape(c: NodeTypes) -> Type:
    given, target = c.attr("value"), c.dims(0)
    if given is not None and given.numel != 1:
        c.fail(f"value must have one element, not {given.numel}")
    dtype = DType.FLOAT if given is None else given.dtype
    if target is None:
        count = c.shape(0)
        rank = count[0] if count else None
        return TensorType(dtype, unknown_sizes(c, rank))
    if any(isinstance(d, int) and d < 0 for d in target):
        c.fail(f"{target} is not a shape: sizes must not be negative")
    return TensorType(dtype, tuple(target))


@FAMILY.contents("ConstantOfShape")
def equal_contents(c: NodeTypes) -> Contents | None:
    sizes, given = c.ints(0), c.attr("value")
    if sizes is None or len(sizes) > 1 or (sizes and not 0 <= sizes[0] <= MAX_CONTENTS):
        return None
    if given is None or not given.dtype.is_integer:
        return None
    return np.broadcast_to(as_contents(given.scalar), tuple(sizes))


@FAMILY.shape("Range")
def range_(c: NodeTypes) -> Type:
    start, limit, delta = c.constant(0), c.constant(1), c.constant(2)
    if any(given is not None and given.size != 1 for given in (start, limit, delta)):
        c.fail("start, limit and delta must be numbers")
    count: Dim = None
    if start is not None and limit is not None and delta is not None and delta != 0:
        count = range_length(start.item(), limit.item(), delta.item())
    elif delta is not None and delta == 1:
        first, end = (found[0] if found else None for found in (c.numbers(0), c.numbers(1)))
        count = sliced(end, first, end, 1) if is_size(first) and is_size(end) else None
    return TensorType(c.dtype(0), (count,))


@FAMILY.contents("Range")
def range_contents(c: NodeTypes) -> Contents | None:
    bounds = [c.ints(i) for i in range(3)]
    dtype = c.dtype(0)
    if any(not b for b in bounds) or dtype is None or not dtype.is_integer:
        return None
    start, limit, delta = (b[0] for b in bounds if b)
    if delta == 0 or abs(limit - start) > MAX_CONTENTS * abs(delta):
        return None
    return dims_array(list(range(start, limit, delta)))


@FAMILY.shape("OneHot")
def one_hot(c: NodeTypes) -> Type:
    x, depth = c.shape(0), c.constant(1)
    if x is None:
        return TensorType(c.dtype(2))
    axis = c.axis(c.attr("axis", -1), len(x) + 1)
    size = None if depth is None or depth.size != 1 else int(depth.item())
    return TensorType(c.dtype(2), (*x[:axis], size, *x[axis:]))


@FAMILY.shape("Bernoulli", "RandomNormalLike", "RandomUniformLike", "EyeLike")
def like(c: NodeTypes) -> Type:
    given = c.attr("dtype")
    return TensorType(DType.from_onnx(given) if given else c.dtype(0), c.shape(0))


@FAMILY.shape("RandomNormal", "RandomUniform")
def random(c: NodeTypes) -> Type:
    return TensorType(DType.from_onnx(c.attr("dtype", 1)), tuple(c.attr("shape", ())))


@FAMILY.shape("Multinomial")
def multinomial(c: NodeTypes) -> Type:
    rows = c.shape(0)
    return TensorType(DType.from_onnx(c.attr("dtype", 6)), (rows[0] if rows else None, c.attr("sample_size", 1)))


@FAMILY.shape("Dropout")
def dropout(c: NodeTypes) -> list[Type]:
    mask = DType.BOOL if c.version >= 10 else c.dtype(0)
    return [c.type(0), TensorType(mask, c.shape(0))]
