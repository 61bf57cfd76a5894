"""Operators that look at rows: reductions, sums and products along an axis, softmax, normalisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irc.ir import CONSTANT, Dim, DType, Node, Shape, TensorType, Type, is_none
from irc.ir.polynomials import product
from irc.ops import Family, checks
from irc.ops.inference import Contents, NodeTypes, dims_array
from irc.ops.shape_rules import for_each_element, same_as_first

FAMILY = Family("onnx")
_REDUCTIONS = [f"Reduce{name}" for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()]
FAMILY.each(" ".join(_REDUCTIONS), value_operands=(1,), kernel="reduce")
FAMILY.each("ArgMax ArgMin", kernel="reduce")
FAMILY.each("ArgMax ArgMin CumProd CumSum", flops=for_each_element())
# The largest, the difference from it, the exponential, the sum, and the quotient.
FAMILY.each("Hardmax LogSoftmax Softmax", flops=for_each_element(5), kernel="softmax")
# The mean, the difference from it, the square, its sum, the product with what it is divided by, with scale, and bias.
FAMILY.each(
    "GroupNormalization InstanceNormalization LayerNormalization MeanVarianceNormalization",
    flops=for_each_element(7),
)
FAMILY.each("RMSNormalization", flops=for_each_element(4))
FAMILY.each("BatchNormalization", flops=for_each_element(2))  # folded into a scale and a shift
FAMILY.each(
    "CumProd CumSum",
    shape=same_as_first,
    requires=(checks.flags("exclusive", "reverse"), checks.axis(1)),
    kernel="reduce",
)


@FAMILY.reshapes(*_REDUCTIONS)
def reduce(c: NodeTypes, x: Shape) -> Shape | None:
    axes, keep = c.axes(1), c.attr("keepdims", 1)
    if axes is None and c.has(1):
        return (None,) * len(x) if keep else None
    if not axes and c.attr("noop_with_empty_axes", 0):
        return x
    gone = {c.axis(a, len(x)) for a in axes} if axes else set(range(len(x)))
    return tuple(1 if i in gone else d for i, d in enumerate(x) if keep or i not in gone)


@FAMILY.reduces(*_REDUCTIONS)
def reduced_axes(node: Node, rank: int) -> Sequence[int] | None:
    if (node.version or 18) < (13 if node.kind == "onnx::ReduceSum" else 18):
        return node.attributes.get("axes") or range(rank)
    axes: Any = ()
    if len(node.inputs) > 1 and not is_none(node.inputs[1]):
        source = node.inputs[1].made_by(CONSTANT)
        if source is None:
            return None
        axes = np.asarray(source.attributes["value"].numpy()).reshape(-1).tolist()
    if not axes and node.attributes.get("noop_with_empty_axes", 0):
        return None
    return axes or range(rank)


@FAMILY.contents("ReduceProd")
def product_of_contents(c: NodeTypes) -> Contents | None:
    x, axes = c.contents_of(0), c.axes(1)
    if x is None or (axes is None and c.has(1)):
        return None
    if not axes and c.attr("noop_with_empty_axes", 0):
        return x
    if x.ndim != 1 or (axes and axes not in ([0], [-1])):
        return None
    result = dims_array(product(list(x)))
    return result.reshape(1) if c.attr("keepdims", 1) else result


@FAMILY.shape("ArgMax", "ArgMin")
def arg_reduce(c: NodeTypes) -> Type:
    x = c.shape(0)
    if x is None:
        return TensorType(DType.INT64)
    axis = c.axis(c.attr("axis", 0), len(x))
    kept: tuple[Dim, ...] = (1,) if c.attr("keepdims", 1) else ()
    return TensorType(DType.INT64, (*x[:axis], *kept, *x[axis + 1 :]))


# -- softmax and normalisations, of rows, channels and groups ------------------


FAMILY.each(
    "GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization MeanVarianceNormalization "
    "RMSNormalization",
    kernel="normalization",
)
FAMILY.each("GroupNormalization InstanceNormalization LRN MeanVarianceNormalization", shape=same_as_first)
FAMILY.each("LayerNormalization", needed_outputs=1, early="lenient")
FAMILY.each("LayerNormalization RMSNormalization", decomposed=True)
FAMILY.each("GroupNormalization", changes_meaning=(21,))  # scale and bias are those of channels
# How many outputs there are says before version 14 whether it trains: none may be left out.
FAMILY.each("BatchNormalization", requires=(checks.flags("training_mode"),), kernel="normalization")
FAMILY.each("GroupNormalization", requires=(checks.positive("num_groups"),))


@FAMILY.shape("Hardmax", "LogSoftmax", "LpNormalization", "Softmax")
def along_axis(c: NodeTypes) -> Type:
    rank = c.tensor(0).rank
    if rank:
        # Softmax 1 and 11 flatten the input at the axis, which may then be the end.
        c.axis(c.attr("axis", -1 if c.version >= 13 else 1), rank, end=c.version < 13)
    return c.type(0)


def _from(axis: int, rank: int) -> Sequence[int] | None:
    """All axes from ``axis`` on."""
    return range(axis % rank, rank) if -rank <= axis < rank else None


@FAMILY.reduces("Softmax", "LogSoftmax")
def softmax_axes(node: Node, rank: int) -> Sequence[int] | None:
    if (node.version or 13) < 13:
        return _from(node.attributes.get("axis", 1), rank)
    return (node.attributes.get("axis", -1),)


@FAMILY.reduces("LpNormalization")
def last_axis(node: Node, rank: int) -> Sequence[int]:
    """The attribute ``axis``, or the last one."""
    return (node.attributes.get("axis", -1),)


@FAMILY.shape("RMSNormalization")
def rms_normalization(c: NodeTypes) -> Type:
    """The shape of the input, the element type of the scale."""
    rank = c.tensor(0).rank
    if rank:
        c.axis(c.attr("axis", -1), rank)
    return TensorType(c.dtype(1), c.shape(0))


@FAMILY.shape("LayerNormalization")
def layer_normalization(c: NodeTypes) -> list[Type]:
    x = c.shape(0)
    if x is None:
        return [c.type(0)]
    axis = c.axis(c.attr("axis", -1), len(x))
    statistics = TensorType(DType.from_onnx(c.attr("stash_type", 1)), (*x[:axis], *[1] * (len(x) - axis)))
    return [c.type(0), statistics, statistics]


@FAMILY.reduces("LayerNormalization", "RMSNormalization")
def normalized_axes(node: Node, rank: int) -> Sequence[int] | None:
    return _from(node.attributes.get("axis", -1), rank)


@FAMILY.reduces("InstanceNormalization")
def image_axes(node: Node, rank: int) -> Sequence[int] | None:
    return range(2, rank) if rank > 2 else None


@FAMILY.requires("GroupNormalization")
def check_group_normalization(c: NodeTypes) -> None:
    x = c.shape(0)
    wanted = c.attr("num_groups") if c.version < 21 else x[1] if x is not None and len(x) > 1 else None
    what = "groups" if c.version < 21 else "channels"
    for name, at in (("scale", 1), ("bias", 2)):
        checks.rank(name, at, 1)(c)
        checks.size(c, name, at, wanted, f"{wanted} {what}")


@FAMILY.reduces("GroupNormalization")
def group_axes(node: Node, rank: int) -> Sequence[int] | None:
    is_by_channel = (node.version or 21) >= 21 and node.attributes.get("num_groups", 0) > 0
    return range(1, rank) if rank > 1 and is_by_channel else None


FAMILY.shape("BatchNormalization")(lambda c: [c.type(0), *(c.type(i) for i in (3, 4, 3, 4))])


@FAMILY.requires("BatchNormalization")
def check_batch_normalization(c: NodeTypes) -> None:
    """Check that scale, bias and statistics are per channel or, with ``spatial`` 0, per element.

    Version 7 is the first to say that they have the shape of an example then. What versions before it say of them, one
    dimension, contradicts what they say of ``spatial``; either is let pass.
    """
    operands = ("scale", 1), ("B", 2), ("the mean", 3), ("the variance", 4)
    x = c.shape(0)
    if c.attr("spatial", 1):
        checks.by_channel(*operands)(c)
    elif x:
        wanted = x[1:]
        ranks = sorted({len(wanted), 1} if c.version < 7 else {len(wanted)})
        for name, at in operands:
            checks.rank(name, at, *ranks)(c)
            for found, size in zip(c.shape(at) or (), wanted, strict=False):
                if isinstance(found, int) and isinstance(size, int) and found != size:
                    c.fail(f"{name} has {found} elements along an axis for {size} of the input")


@FAMILY.reduces("BatchNormalization")
def batch_axes(node: Node, rank: int) -> Sequence[int] | None:
    """At inference, when nothing is reduced: the axes along which a channel has one factor and one shift."""
    attributes = node.attributes
    if len(node.outputs) != 1 or attributes.get("training_mode", 0) or not attributes.get("spatial", 1):
        return None
    return range(2, rank) if rank > 1 else None
