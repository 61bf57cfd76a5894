"""Operators that do nothing here: their input stands for their output."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irc.ir import Tensor, Value
from irc.ir.constants import constant_value
from irc.passes.canonicalize.match import Match, rewrite


@rewrite("Identity", same_tensor=True)
def identity(m: Match) -> Value | None:
    """Its result is its input, by definition."""
    return m.input()


@rewrite(
    "aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout", same_tensor=True
)
def torch_dropout_at_inference(m: Match) -> Value | None:
    """Without training, it gives its input itself; the probability is checked all the same."""
    x, probability, train = m.node.inputs
    p = constant_value(probability)
    fits = isinstance(p, int | float) and 0 <= p <= 1
    return x if fits and constant_value(train) is False else None


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


def _drops_nothing(m: Match) -> bool:
    """Without training, Dropout drops nothing."""
    training = m.constant(2)
    if m.types.version < 7:
        inference = bool(m.types.attr("is_test", 0))
    else:
        inference = not m.types.has(2) or (training is not None and training.numel == 1 and not training.scalar)
    return inference and not any(mask.has_uses for mask in m.node.outputs[1:])


def _is_in_order(m: Match) -> bool:
    """A transposition that leaves all dimensions in place."""
    perm, rank = m.types.attr("perm"), m.types.tensor(0).rank
    return perm == list(range(len(perm))) if perm else rank is not None and rank <= 1


def _takes_all(m: Match) -> bool:
    """A slice of everything, in forward order."""
    steps = m.types.slices().steps
    return steps is not None and all(step == 1 for step in steps) and bool(m.types.shape(0)) and m.same_type(m.input())


def _pads_nothing(m: Match) -> bool:
    c = m.types
    pads, axes_are_known = c.pads(), c.version < 18 or not c.has(3) or c.ints(3) is not None
    is_checked = axes_are_known and c.shape(0) is not None  # by the shape rule, which counts the pads
    return is_checked and pads is not None and all(size == 0 for size in pads)


_KEEPING: dict[str, Callable[[Match], bool]] = {
    **dict.fromkeys(("Cast", "CastLike"), lambda m: m.same_dtype(m.input())),  # of a shape known or not
    **dict.fromkeys(("Concat", "Sum", "Max", "Min", "Mean"), lambda m: len(m.node.inputs) == 1),
    **dict.fromkeys(("Expand", "Flatten", "Reshape", "Squeeze", "Unsqueeze"), lambda m: m.same_type(m.input())),
    "Dropout": _drops_nothing,
    "Pad": _pads_nothing,
    "Slice": _takes_all,
    "Split": lambda m: len(m.node.outputs) == 1 and m.same_type(m.input()),
    "Tile": lambda m: m.types.version >= 6 and m.same_type(m.input()),
    "Transpose": _is_in_order,
}
"""Operators that may do nothing, and when that is so."""


@rewrite(*_KEEPING)
def nothing_to_do(m: Match) -> Value | None:
    """What an operator is given, if it surely does nothing."""
    does_nothing = _KEEPING[m.node.kind.removeprefix("onnx::")](m)
    return m.input() if does_nothing and m.can_share(m.input()) else None


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
