"""Operators that do nothing here: their input stands for their output."""

from __future__ import annotations

import numpy as np

from irc.ir import Tensor, Value
from irc.ir.constants import constant_value
from irc.passes.canonicalize.match import Match, rewrite


@rewrite("Identity", same_tensor=True)
def identity(m: Match) -> Value | None:
    """Its result is its input, by definition."""
    return m.input()


@rewrite("Dropout")
def dropout_at_inference(m: Match) -> Value | None:
    """Without training, Dropout drops nothing."""
    if any(mask.has_uses for mask in m.node.outputs[1:]):
        return None
    if m.types.version < 7:
        inference = bool(m.types.attr("is_test", 0))
    elif m.types.has(2):
        training = m.constant(2)
        inference = training is not None and training.numel == 1 and not training.scalar
    else:
        inference = True
    return m.input() if inference and m.can_share(m.input()) else None


@rewrite(
    "aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout", same_tensor=True
)
def torch_dropout_at_inference(m: Match) -> Value | None:
    """Without training, it gives its input itself; the probability is checked all the same."""
    x, probability, train = m.node.inputs
    p = constant_value(probability)
    fits = isinstance(p, int | float) and 0 <= p <= 1
    return x if fits and constant_value(train) is False else None


_CASTS = ("onnx::Cast", "onnx::CastLike")
"""They keep the shape, known or not."""


@rewrite("aten::conj", "aten::_conj")
def conjugate(m: Match) -> Value | None:
    """A copy instead of a view that NumPy does not have, if nothing writes into either, nor may a caller."""
    if not m.rewriter.can_be_constant([m.output]):
        return None
    return m.new("aten::conj_physical", [m.input()], m.output.type)


@rewrite("aten::mH")
def adjoint(m: Match) -> Value | None:
    """As `conjugate`, transposed."""
    if not m.rewriter.can_be_constant([m.output]):
        return None
    return m.new("aten::mT", [m.new("aten::conj_physical", [m.input()], m.output.type)], m.output.type)


@rewrite("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Cast", "CastLike", "Tile")
def shape_and_type_kept(m: Match) -> Value | None:
    """Operators that do nothing if shape and element type stay as they are."""
    x = m.input()
    if m.node.kind == "onnx::Tile" and m.types.version < 6:
        return None
    kept = m.same_dtype(x) if m.node.kind in _CASTS else m.same_type(x)
    return x if kept and m.can_share(x) else None


@rewrite("Concat", "Sum", "Max", "Min", "Mean")
def single_operand(m: Match) -> Value | None:
    """The sum, extreme, mean or concatenation of one operand is that operand."""
    x = m.input()
    return x if len(m.node.inputs) == 1 and m.can_share(x) else None


@rewrite("Transpose")
def transpose_in_order(m: Match) -> Value | None:
    """A transposition that leaves all dimensions in place."""
    perm, x = m.types.attr("perm"), m.input()
    rank = m.types.tensor(0).rank
    in_order = perm == list(range(len(perm))) if perm else rank is not None and rank <= 1
    return x if in_order and m.can_share(x) else None


@rewrite("Slice")
def full_slice(m: Match) -> Value | None:
    """A slice of everything, in forward order."""
    x = m.input()
    steps = m.types.slices().steps
    if steps is None or any(step != 1 for step in steps):
        return None
    return x if m.same_type(x) and m.types.shape(0) and m.can_share(x) else None


@rewrite("Pad")
def no_padding(m: Match) -> Value | None:
    """Padding by nothing."""
    x, c = m.input(), m.types
    pads = c.pads()
    axes_are_known = c.version < 18 or not c.has(3) or c.ints(3) is not None
    is_checked = axes_are_known and c.shape(0) is not None  # by the shape rule, which counts the pads
    return x if is_checked and pads is not None and all(size == 0 for size in pads) and m.can_share(x) else None


@rewrite("Split")
def single_part(m: Match) -> Value | None:
    """A split into one part."""
    x = m.input()
    return x if len(m.node.outputs) == 1 and m.same_type(x) and m.can_share(x) else None


_NEUTRAL = {"Mul": (1, True), "Div": (1, False), "Pow": (1, False), "Sub": (0.0, False), "Add": (-0.0, True)}
"""The operand that changes nothing, and whether it may come first. The sign of zero matters: -0.0 + 0.0 is 0.0."""


@rewrite(*_NEUTRAL)
def neutral_operand(m: Match) -> Value | None:
    """Operations with a neutral operand: x * 1, x / 1, x ** 1, x + -0.0, x - 0.0, of kept shape and type."""
    neutral, commutes = _NEUTRAL[m.node.kind.removeprefix("onnx::")]
    for at, other in ((1, 0), (0, 1)) if commutes else ((1, 0),):
        constant = m.constant(at)
        x = m.input(other)
        if constant is None or not (constant.is_splat or constant.numel == 1) or not m.same_type(x):
            continue
        if _is_number(constant, neutral) and m.can_share(x):
            return x
    return None


def _is_number(constant: Tensor, wanted: float) -> bool:
    """Whether all elements are ``wanted``, in sign too if there are signed zeros."""
    scalar = constant.scalar
    return bool(scalar == wanted) and (constant.dtype.is_integer or bool(np.signbit(scalar) == np.signbit(wanted)))


@rewrite("Where")
def settled_choice(m: Match) -> Value | None:
    """A choice whose condition is the same everywhere."""
    condition = m.constant(0)
    known = m.types.contents_of(0)
    if condition is not None and (condition.is_splat or condition.numel == 1):
        pick = 1 if bool(condition.scalar) else 2
    elif known is not None and known.size and all(k is not None and bool(k) == bool(known.flat[0]) for k in known.flat):
        pick = 1 if known.flat[0] else 2
    else:
        return None
    x = m.input(pick)
    return x if m.same_type(x) and m.can_share(x) else None
