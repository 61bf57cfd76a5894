"""Reductions, and sums and products that run along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir.constants import is_none
from irc.ir.kinds import CONSTANT
from irc.ir.polynomials import product
from irc.ir.types import Dim, DType, TensorType, Type
from irc.ops import checks
from irc.ops.inference import Contents, NodeTypes, dims_array
from irc.ops.record import Family
from irc.ops.shape_rules import same_as_first

if TYPE_CHECKING:
    from irc.ir.node import Node

FAMILY = Family("onnx")
_REDUCTIONS = [f"Reduce{name}" for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()]
FAMILY.each(" ".join(_REDUCTIONS), value_operands=(1,), kernel="reduce")
FAMILY.each("ArgMax ArgMin", value_operands=(), kernel="reduce")
FAMILY.each(
    "CumProd CumSum",
    shape=same_as_first,
    value_operands=(),
    requires=(checks.flags("exclusive", "reverse"), checks.axis(1)),
    kernel="reduce",
)


@FAMILY.shape(*_REDUCTIONS)
def reduce(c: NodeTypes) -> Type:
    x, axes, keep = c.shape(0), c.axes(1), c.attr("keepdims", 1)
    if x is None:
        return TensorType(c.dtype(0))
    if axes is None and c.has(1):
        return TensorType(c.dtype(0), (None,) * len(x) if keep else None)
    if not axes and c.attr("noop_with_empty_axes", 0):
        return c.type(0)
    gone = {c.axis(a, len(x)) for a in axes} if axes else set(range(len(x)))
    if keep:
        return TensorType(c.dtype(0), tuple(1 if i in gone else d for i, d in enumerate(x)))
    return TensorType(c.dtype(0), tuple(d for i, d in enumerate(x) if i not in gone))


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
