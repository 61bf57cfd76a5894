"""Operators that do nothing here, chains of shape operators, shape arithmetic, idioms around Expand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from irc.ir import IDENTITY, Node, Tensor, Value, constant_value, is_constant
from irc.ir.polynomials import is_positive, product
from irc.ops import Movement, record
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


# -- shapes --------------------------------------------------------------------


_LONGEST_CHAIN = 16
"""How many reshapes up a shape is looked for: each of a long chain looks."""


@rewrite(where=lambda operator: operator.contents is not None)
def known_contents(m: Match) -> Value | None:
    """Shape arithmetic whose result is known becomes a constant."""
    type, contents = m.output.type, m.inference.contents.get(m.output)
    if contents is None or type.dtype is None:
        return None
    if m.node.kind == IDENTITY and is_constant(m.input()):
        return None  # it is there for an output's name, and `constant-fold` leaves it alone, too
    if not all(isinstance(d, int) for d in contents.flat) or not m.can_be_constant():
        return None
    try:
        array = np.array(contents.tolist(), type.dtype.numpy)
    except OverflowError:  # a run wraps around
        return None
    return m.new_constant(Tensor.of(array, dtype=type.dtype))


@rewrite(where=lambda operator: operator.contents is not None)
def same_contents(m: Match) -> Value | None:
    """Shape arithmetic whose result has been computed before: deep models repeat it in each layer."""
    contents, node = m.inference.contents.get(m.output), m.node
    if contents is None or None in contents.flat:
        return None
    key = (m.output.type.dtype, contents.shape, *contents.flat)
    found = m.counted.setdefault(key, m.output)
    block = None if found.node is None else found.node.block
    if found is m.output or found.node is None or block is None:
        m.counted[key] = m.output
        return None
    if node.ancestor_in(block) is None or not found.node.is_before(node):
        return None
    return found if m.can_share(found) else None


@rewrite("Reshape")
def reshape_by_numbers(m: Match) -> Value | None:
    """A target shape that needs no computing: numbers, kept sizes, and at most one remaining size."""
    target, x = m.types.dims(1), m.types.shape(0)
    if m.types.version < 5 or target is None or x is None or m.constant(1) is not None:
        return None
    if m.types.attr("allowzero", 0) and 0 in target:
        return None
    stays = [size is not None and not isinstance(size, int) and size in x[i : i + 1] for i, size in enumerate(target)]
    numbers = [0 if kept else size for kept, size in zip(stays, target, strict=True)]
    rest = [i for i, size in enumerate(numbers) if not isinstance(size, int)]
    if rest:
        made = m.type_of(m.output).shape or ()
        whole = product(x)
        if -1 in numbers or whole is None or product(made) != whole:
            return None
        if not all(is_positive(size) for i, size in enumerate(made) if i != rest[0]):
            return None  # without elements, the remaining size cannot be determined
        numbers[rest[0]] = -1
    if len(rest) > 1:
        return None
    inputs = [m.input(), m.new_constant(Tensor.of(np.array(numbers, np.int64)))]
    return m.new("onnx::Reshape", inputs, m.output.type, {}, m.node.version)


@rewrite("Transpose")
def transpose_of_transpose(m: Match) -> Value | None:
    """Two transpositions are one, or none."""
    inner = m.input().made_by("onnx::Transpose")
    rank = m.types.tensor(0).rank
    if inner is None or rank is None:
        return None
    reverse = list(range(rank))[::-1]
    first, second = inner.attributes.get("perm") or reverse, m.types.attr("perm") or reverse
    perm, x = [first[p] for p in second], inner.inputs[0]
    if not m.can_share(x):
        return None
    if perm == list(range(len(perm))):
        return x
    return m.new("onnx::Transpose", [x], m.output.type, {"perm": perm}, m.node.version)


def _reshaped(value: Value) -> Node | None:
    """The node that makes ``value`` by giving a tensor another shape; None if it is made otherwise."""
    node = value.node
    return node if node is not None and record(node.kind).movement is Movement.IN_ORDER else None


@rewrite(where=lambda operator: operator.movement is Movement.IN_ORDER)
def reshape_there_and_back(m: Match) -> Value | None:
    """A chain of reshapes that ends in the shape it began with."""
    inner = _reshaped(m.input())
    for _ in range(_LONGEST_CHAIN):
        if inner is None:
            return None
        x = inner.inputs[0]
        if m.same_type(x):
            return x if m.can_share(x) else None
        inner = _reshaped(x)
    return None


@rewrite("Reshape")
def reshape_of_reshape(m: Match) -> Value | None:
    """Only the last of several reshapes matters, if it does not copy sizes (0) from the one before."""
    inner = _reshaped(m.input())
    if inner is None or m.types.version < 5 or not m.can_share(inner.inputs[0]):
        return None
    target = m.types.ints(1)
    if target is None or (0 in target and not m.types.attr("allowzero", 0)):
        return None
    attributes = dict(m.node.attributes)
    return m.new("onnx::Reshape", [inner.inputs[0], m.input(1)], m.output.type, attributes, m.node.version)


@rewrite("Add", "Sub", "Mul", "Div", "Max", "Min", "Pow", "Equal", "Less", "Greater", "Where", "And", "Or")
def operand_expanded_for_nothing(m: Match) -> Value | None:
    """Operators that broadcast need no Expand before them, unless only it gives the result its shape."""
    out, db = m.type_of(m.output), m.rewriter.db
    if m.types.version < 7 or out.shape is None or None in out.shape:
        return None
    expands = {i: e for i, v in enumerate(m.node.inputs) if (e := v.made_by("onnx::Expand")) is not None}
    plain = {
        i: e.inputs[0] for i, e in expands.items() if not (db.has_writers(e.inputs[0]) or db.has_writers(e.output))
    }
    inputs = [plain.get(i, v) for i, v in enumerate(m.node.inputs)]
    shape = m.types.broadcast([m.type_of(v).shape for v in inputs])
    for i in plain:
        if shape == out.shape:
            break
        more = m.types.broadcast([shape, m.types.shape(i)])  # with this Expand after all
        if more != shape:
            inputs[i], shape = m.node.inputs[i], more
    if shape != out.shape or inputs == list(m.node.inputs):
        return None
    return m.new(m.node.kind, inputs, m.output.type, dict(m.node.attributes), m.node.version)
