"""Folding normalisations, scales and shifts by channel into the convolution or product before them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from irc.alias import AliasDb
from irc.ir import Array, Graph, Node, Tensor, Value, constant_tensor, is_none
from irc.ops.pointwise import is_pointwise
from irc.passes.base import PassContext, Refused
from irc.passes.layouts import Layouts
from irc.passes.quantised import is_dequantised
from irc.passes.registry import register
from irc.passes.rewriter import Rewriter

BATCH_NORM = "onnx::BatchNormalization"
LINEAR = frozenset(["onnx::Conv", "onnx::ConvTranspose", "onnx::Gemm"])
SUFFIX = ".folded"


@register
@dataclass(frozen=True)
class ConvBnFold:
    """Fold what is affine by channel into the Conv, ConvTranspose or Gemm whose only user it is.

    Affine are BatchNormalization at inference, and Mul, Div, Add and Sub with a constant that has one number a
    channel. With ``y * s + t`` for each channel the weights of the channel are multiplied by ``s``, and the bias
    becomes ``bias * s + t``, computed in float64. (Of BatchNormalization, ``s`` is ``scale / sqrt(var + epsilon)`` and
    ``t`` is ``B - mean * s``.) New weights are called like the old ones with ``.folded``.
    """

    name: ClassVar[str] = "conv-bn-fold"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Fold every affine operator that can be."""
        rewriter = ctx.rewriter(graph)
        layouts: Layouts | None = None
        changed = False
        for node in graph.walk():
            if node.kind not in _AFFINE or not (linear := _linear_before(node)):
                continue
            try:
                fold = _Fold(linear, node, rewriter.db)
                layouts = layouts or Layouts(graph, rewriter.db, ctx.memory)
                if layouts.is_seen(node.outputs):
                    raise Refused("an operator observes the memory layout of its result")
            except Refused as refusal:
                if any(constant_tensor(value) is not None for value in node.inputs):
                    ctx.note(node, f"not folded into {linear.kind}: {refusal}")
                continue
            if ctx.allow(node):
                fold.apply(rewriter)
                ctx.count("folded")
                changed = True
        return changed


class Affine(NamedTuple):
    """``y * scale + shift``, float64, one number or one a channel.

    Attributes:
        scale: None for 1.
        shift: None for 0.
        name: the constant that a bias which is made is called after.
    """

    scale: Array | None
    shift: Array | None
    name: Value


def _normalisation(norm: Node, _: Node) -> Affine:
    if not _is_inference(norm):
        raise Refused("it is in training mode or normalises each element apart")
    parameters = [_constant(v, "the parameters are") for v in norm.inputs[1:5]]
    scale, offset, mean, var = map(_float64, parameters)
    if scale.ndim != 1 or not scale.shape == offset.shape == mean.shape == var.shape:
        raise Refused("the shapes of its parameters do not agree")
    s = scale / np.sqrt(var + norm.attributes.get("epsilon", 1e-5))
    return Affine(s, offset - mean * s, norm.inputs[2])


def _pointwise(node: Node, linear: Node) -> Affine:
    number, name = _by_channel(node, linear)
    is_first = node.inputs[0] is linear.output
    match node.kind:
        case "onnx::Mul":
            return Affine(number, None, name)
        case "onnx::Div" if is_first:
            return Affine(1 / number, None, name)
        case "onnx::Div":
            raise Refused("it divides by the result")
        case "onnx::Add":
            return Affine(None, number, name)
        case _:
            return Affine(None, -number, name) if is_first else Affine(np.array(-1.0), number, name)


_AFFINE = {
    BATCH_NORM: _normalisation,
    **dict.fromkeys(("onnx::Mul", "onnx::Div", "onnx::Add", "onnx::Sub"), _pointwise),
}


def _by_channel(node: Node, linear: Node) -> tuple[Array, Value]:
    """The constant operand of a pointwise ``node`` on ``linear``'s result: one number, or one a channel.

    Refused if it has another shape.
    """
    first, second = node.inputs
    value = second if first is linear.output else first
    number = _float64(_constant(value, "the other operand is"))
    rank = _rank(linear)
    shape = (1,) * (rank - number.ndim) + number.shape
    axis = rank - 1 if linear.kind == "onnx::Gemm" else 1
    if not is_pointwise(node) or number.ndim > rank or number.size != shape[axis]:
        raise Refused("the other operand is not one number a channel")
    return number.reshape(-1) if number.size > 1 else number.reshape(()), value


def _rank(linear: Node) -> int:
    """How many axes the result of ``linear`` has: as many as its weights."""
    shape = linear.inputs[1].type.shape
    if shape is None:
        raise Refused("the rank of the weights is not known")
    return len(shape)


def _linear_before(node: Node) -> Node | None:
    """The linear operator that makes an operand of ``node``."""
    operands = node.inputs[:1] if node.kind == BATCH_NORM else node.inputs
    return next((found for v in operands if (found := v.made_by(*LINEAR)) is not None), None)


class _Fold:
    """The folding of one affine operator: checks legality, computes new weights, changes the graph."""

    def __init__(self, linear: Node, node: Node, db: AliasDb) -> None:
        self.linear = linear
        self.node = node
        self.attributes = dict(linear.attributes)
        self.old_bias = linear.inputs[2] if len(linear.inputs) > 2 and not is_none(linear.inputs[2]) else None
        self._check_uses(db)
        try:
            with np.errstate(all="raise", under="ignore"):
                affine = _AFFINE[node.kind](node, linear)
                self._compute(affine)
        except FloatingPointError as e:
            raise Refused(f"the folded weights are not finite ({e})") from None
        self.name = affine.name

    # -- conditions ------------------------------------------------------

    def _check_uses(self, db: AliasDb) -> None:
        if not self.linear.output.is_used_once:
            raise Refused("its input has other uses")
        if any(map(is_dequantised, self.linear.inputs)):
            raise Refused("its operands are quantised: a runtime may compute it with integers")
        if self.node.block is not self.linear.block and db.has_writers(self.node.outputs[0]):
            raise Refused("it is computed in every iteration, and its result is written to")

    # -- arithmetic ------------------------------------------------------

    def _compute(self, affine: Affine) -> None:
        if affine.scale is not None and not np.isfinite(affine.scale).all():
            raise Refused("the folded weights are not finite")
        # A sum needs no weights, but their number of channels.
        self.weight = None if affine.scale is None else _constant(self.linear.inputs[1], "the weights are")
        channels = self._channels()
        for numbers in (affine.scale, affine.shift):
            if numbers is not None and numbers.size not in (1, channels):
                raise Refused(f"it has {numbers.size} channels where the weights have {channels}")
        self.new_bias = self._biased(affine, channels)
        self.new_weight = None
        if self.weight is not None and affine.scale is not None:
            self.new_weight = self._scaled(self.weight, np.broadcast_to(affine.scale, (channels,)))

    def _layout(self) -> tuple[int, int]:
        """Into how many groups weights are divided, and the axis of a group's channels."""
        if self.linear.kind == "onnx::ConvTranspose":
            return self.attributes.get("group", 1), 1
        return 1, int(self.linear.kind == "onnx::Gemm" and not self.attributes.get("transB", 0))

    def _channels(self) -> int:
        """How many channels the result has."""
        shape = self.linear.inputs[1].type.shape if self.weight is None else self.weight.shape
        groups, axis = self._layout()
        size = shape[axis] if shape is not None and len(shape) > axis else None
        if not isinstance(size, int):
            raise Refused("the number of channels is not known")
        return groups * size

    def _biased(self, affine: Affine, channels: int) -> Tensor | None:
        """The new bias; None if there is none. Of a matrix product, it may be several numbers a channel."""
        if self.old_bias is None and affine.shift is None:
            return None
        bias = np.zeros(()) if self.old_bias is None else _float64(_constant(self.old_bias, "the bias is"))
        dtype = self.linear.inputs[1].type.dtype
        if dtype is None:
            raise Refused("the element type is not known")
        if self.linear.kind == "onnx::Gemm":
            bias = bias * self.attributes.pop("beta", 1.0)
            if self.linear.version is not None and self.linear.version < 7:
                self.attributes["broadcast"] = 1
        moved = bias if affine.scale is None else bias * affine.scale
        moved = moved if affine.shift is None else moved + affine.shift
        try:
            wide = np.broadcast_to(moved, np.broadcast_shapes(moved.shape, (channels,)))
        except ValueError:
            raise Refused("the bias has another number of channels") from None
        return Tensor.of(wide.astype(dtype.numpy))

    def _scaled(self, weight: Tensor, s: Array) -> Tensor:
        """The weights with output channel ``c`` multiplied by ``s[c]``."""
        old = weight.peek()  # most weights are only needed folded
        # The weights as (groups, rest, channels of a group, rest): s goes along the channels.
        groups, axis = self._layout()
        before, channels = math.prod(weight.shape[:axis]) // groups, weight.shape[axis]
        if weight.is_splat and (s == s[0]).all():
            return Tensor.splat(weight.dtype, weight.shape, _multiplied(weight.scalar.reshape(1, 1), s[:1, None])[0, 0])
        shape = groups, before, channels, old.size // (groups * before * channels or 1)
        new = _multiplied(old.reshape(shape), s.reshape(groups, 1, channels, 1))
        return Tensor.of(new.reshape(weight.shape), dtype=weight.dtype)

    # -- the graph -------------------------------------------------------

    def apply(self, rewriter: Rewriter) -> None:
        """Put the folded operator in place of the old one and the affine one."""
        linear, node = self.linear, self.node
        inputs = [linear.inputs[0], linear.inputs[1]]
        if self.new_weight is not None:
            inputs[1] = _named(rewriter, self.new_weight, linear.inputs[1], linear)
        if self.new_bias is not None:
            inputs.append(_named(rewriter, self.new_bias, self.old_bias or self.name, linear))
        folded = rewriter.op(
            linear.kind,
            *inputs,
            before=linear,
            type=node.outputs[0].type,
            attributes=self.attributes,
            version=linear.version,
            node_name=linear.name,
        )
        rewriter.replace_node(node, [folded], keep_names=True)
        rewriter.erase_with_constants(linear)


def _multiplied(weights: Array, factors: Array) -> Array:
    """The product in the weights' type, computed in float64; refused if a channel loses precision.

    Numbers that are too small for normal ones lose digits, which does not matter beside larger ones.

    Args:
        weights: channels are the last axis but one.
        factors: with as many axes, one number for each channel.
    """
    new = np.empty_like(weights, order="C")
    try:
        with np.errstate(under="raise"):
            np.multiply(weights, factors, out=new, dtype=np.float64, casting="unsafe")
    except FloatingPointError as error:
        if "underflow" not in str(error):
            raise
        exact = weights.astype(np.float64) * factors
        new = exact.astype(weights.dtype)
        others = tuple(axis for axis in range(exact.ndim) if factors.shape[axis] == 1)
        lost, whole = (np.abs(x).sum(axis=others) for x in (new - exact, exact))
        import ml_dtypes  # slow to import, and hardly ever needed

        finfo: Any = ml_dtypes.finfo
        if np.any(lost > float(finfo(weights.dtype).eps) * whole):
            raise Refused(f"the folded weights are too small for {weights.dtype.name}") from None
    return new


def _is_inference(norm: Node) -> bool:
    version = norm.version or 1 << 30
    attributes = norm.attributes
    if len(norm.outputs) != 1 or not attributes.get("spatial", 1):
        return False
    if version >= 14:
        return not attributes.get("training_mode", 0)
    return version >= 7 or bool(attributes.get("is_test", 0))


def _constant(value: Value, what: str) -> Tensor:
    tensor = constant_tensor(value)
    if tensor is None:
        raise Refused(f"{what} not constant")
    return tensor


def _float64(tensor: Tensor) -> Array:
    return tensor.numpy().astype(np.float64)


def _named(rewriter: Rewriter, tensor: Tensor, old: Value, before: Node) -> Value:
    name = old.name if old.name.endswith(SUFFIX) else old.name + SUFFIX
    return rewriter.constant(tensor, before=before, name=name)
