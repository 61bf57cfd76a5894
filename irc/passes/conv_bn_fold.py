"""Folding batch normalisation into the convolution or matrix product before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from irc.ir import Graph, Node, Tensor, Value
from irc.ir.constants import constant_tensor, is_none
from irc.ir.ops.pointwise import is_pointwise
from irc.ir.tensor import Array
from irc.passes.refused import Refused
from irc.passes.registry import register

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.passes.base import PassContext
    from irc.passes.rewriter import Rewriter

BATCH_NORM = "onnx::BatchNormalization"
LINEAR = frozenset(["onnx::Conv", "onnx::ConvTranspose", "onnx::Gemm"])
SUFFIX = ".folded"


@register
@dataclass(frozen=True)
class ConvBnFold:
    """Fold BatchNormalization at inference into the Conv, ConvTranspose or Gemm whose only user it is.

    An Add of a bias per channel between the two is folded too. With
    ``s = scale / sqrt(var + epsilon)`` the weights of each output channel are
    multiplied by ``s`` and the bias becomes ``(bias - mean) * s + B`` (ONNX
    BatchNormalization), computed in float64. The new weights are called like
    the old ones with ``.folded``.
    """

    name: ClassVar[str] = "conv-bn-fold"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Fold every BatchNormalization that can be."""
        rewriter = ctx.rewriter(graph)
        changed = False
        for node in graph.walk():
            if node.kind != BATCH_NORM or not (linear := _linear_before(node)):
                continue
            try:
                fold = _Fold(linear, node, rewriter.db)
            except Refused as refusal:
                ctx.note(node, f"not folded into {linear.kind}: {refusal}")
                continue
            if ctx.allow(node):
                fold.apply(rewriter)
                ctx.count("folded")
                changed = True
        return changed


def _linear_before(norm: Node) -> Node | None:
    """The linear operator whose result ``norm`` normalises, directly or with something added."""
    added = norm.inputs[0].made_by("onnx::Add")
    operands = norm.inputs[:1] if added is None else added.inputs
    return next((node for v in operands if (node := v.made_by(*LINEAR)) is not None), None)


class _Fold:
    """The folding of one normalisation: checks that it can be, computes the new weights, changes the graph."""

    def __init__(self, linear: Node, norm: Node, db: AliasDb) -> None:
        self.linear = linear
        self.norm = norm
        above = norm.inputs[0].node
        self.add = above if above is not linear else None
        self._check_uses(db)
        self.weight = _constant(linear.inputs[1], "the weights are")
        self.old_bias = linear.inputs[2] if len(linear.inputs) > 2 and not is_none(linear.inputs[2]) else None
        try:
            with np.errstate(all="raise", under="ignore"):
                self._compute()
        except FloatingPointError as e:
            raise Refused(f"the folded weights are not finite ({e})") from None

    # -- conditions ------------------------------------------------------

    def _check_uses(self, db: AliasDb) -> None:
        if not _is_inference(self.norm):
            raise Refused("it is in training mode or normalises each element apart")
        if not self.linear.output.is_used_once or (self.add and not self.add.output.is_used_once):
            raise Refused("its input has other uses")
        if self.norm.block is not self.linear.block and db.has_writers(self.norm.outputs[0]):
            raise Refused("its result is made anew in every trip, and written to")

    # -- arithmetic ------------------------------------------------------

    def _compute(self) -> None:
        parameters = [_constant(v, "the parameters are") for v in self.norm.inputs[1:5]]
        scale, offset, mean, var = map(_float64, parameters)
        if scale.ndim != 1 or not scale.shape == offset.shape == mean.shape == var.shape:
            raise Refused("the shapes of its parameters do not agree")
        s = scale / np.sqrt(var + self.norm.attributes.get("epsilon", 1e-5))
        bias = (
            np.zeros(())
            if self.old_bias is None
            else _constant(self.old_bias, "the bias is").numpy().astype(np.float64)
        )
        self.attributes = dict(self.linear.attributes)
        if self.linear.kind == "onnx::Gemm":
            bias = bias * self.attributes.pop("beta", 1.0)
            if self.linear.version is not None and self.linear.version < 7:
                self.attributes["broadcast"] = 1
        if self.add is not None:
            bias = bias + self._added(self.add, len(s))
        try:
            bias = np.broadcast_to((bias - mean) * s + offset, np.broadcast_shapes(bias.shape, s.shape))
        except ValueError:
            raise Refused("the bias has another number of channels") from None
        self.new_bias = Tensor.of(bias.astype(self.weight.dtype.numpy))
        self.new_weight = self._scaled(s)

    def _added(self, add: Node, channels: int) -> Array:
        """The bias that ``add`` adds, one number a channel."""
        first, second = add.inputs
        addend = second if first is self.linear.output else first
        b = _float64(_constant(addend, "what is added is"))
        rank = len(self.weight.shape)
        shape = (1,) * (rank - b.ndim) + b.shape
        per_channel = (1, channels, *(1,) * (rank - 2))
        if not is_pointwise(add) or b.ndim > rank or (b.size != 1 and shape != per_channel):
            raise Refused("what is added before it is not one number a channel")
        return np.broadcast_to(b.reshape(-1), (channels,))

    def _scaled(self, s: Array) -> Tensor:
        """The weights with output channel ``c`` multiplied by ``s[c]``."""
        weight = self.weight
        old = weight.numpy()
        # The weights as (groups, rest, channels of a group, rest): s goes along the channels.
        groups, before, channels = 1, 1, weight.shape[0]
        if self.linear.kind == "onnx::ConvTranspose":
            groups = self.attributes.get("group", 1)
            before, channels = weight.shape[0] // groups, weight.shape[1]
        elif self.linear.kind == "onnx::Gemm" and not self.attributes.get("transB", 0):
            before, channels = weight.shape
        if groups * channels != len(s):
            raise Refused(f"it has {len(s)} channels where the weights have {groups * channels}")
        if weight.is_splat and (s == s[0]).all():
            return Tensor.splat(weight.dtype, weight.shape, _multiplied(weight.scalar.reshape(1, 1), s[:1, None])[0, 0])
        shape = groups, before, channels, old.size // (groups * before * channels or 1)
        new = _multiplied(old.reshape(shape), s.reshape(groups, 1, channels, 1))
        return Tensor.of(new.reshape(weight.shape), dtype=weight.dtype)

    # -- the graph -------------------------------------------------------

    def apply(self, rewriter: Rewriter) -> None:
        """Put the folded operator in place of the old one, the Add and the normalisation."""
        linear, norm = self.linear, self.norm
        weight = _named(rewriter, self.new_weight, linear.inputs[1], linear)
        bias = _named(rewriter, self.new_bias, self.old_bias or norm.inputs[2], linear)
        folded = rewriter.op(
            linear.kind,
            linear.inputs[0],
            weight,
            bias,
            before=linear,
            type=norm.outputs[0].type,
            attributes=self.attributes,
            version=linear.version,
            node_name=linear.name,
        )
        rewriter.replace_node(norm, [folded], keep_names=True)
        if self.add is not None:
            rewriter.erase_with_constants(self.add)
        rewriter.erase_with_constants(linear)


def _multiplied(weights: Array, factors: Array) -> Array:
    """The product, computed in float64, in the weights' type; refused if that makes an output channel imprecise.

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
