"""Operators that reduce rows, as programs: pointwise expressions and reductions over axes.

Each function of the table gives the results as expressions (`irc.ops.algebra`) over operands. Along which axes rows lie
says `irc.ops.axes`. A reduction is an `Apply` of one of `REDUCERS`, whose result is the same for all
elements of a row. `irc.native.programs.schedule` decides what of this is computed once, kept or repeated.

Small floats are computed in float32 and rounded once, when a result is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.native.lanes import INT64, computed
from irc.ops.algebra import (
    DOUBLE,
    AnyDType,
    Apply,
    Expression,
    Primitive,
    absolute,
    cast,
    equal,
    exp,
    is_finite,
    log,
    select,
    sqrt,
)
from irc.ops.axes import static, torch_reduction
from irc.runtime.backends import Unsupported
from irc.runtime.kernels.support import numpy_dtype

if TYPE_CHECKING:
    from irc.ir import Node

SUM, PRODUCT = Primitive("row_sum", 1), Primitive("row_product", 1)
MAXIMUM, MINIMUM = Primitive("row_maximum", 1), Primitive("row_minimum", 1)
LARGEST = Primitive("row_largest", 1, "The largest number, whatever is NaN; -inf if there is none.")
REDUCERS = frozenset({SUM, PRODUCT, MAXIMUM, MINIMUM, LARGEST})

EXP_OF_NEGATIVE = Primitive("exp_of_negative", 1, "exp of what is at most 0, or NaN.")
COUNT = Primitive("row_count", 0, "The number of elements of a row.")


class Form(Enum):
    """Which axes a result has."""

    FULL = "those of the operand"
    KEPT = "the same number, 1 where it is reduced"
    SQUEEZED = "those that are not reduced"


class Made(NamedTuple):
    """A result.

    Attributes:
        expression: of an element.
        dtype: in memory.
        form: its axes.
    """

    expression: Expression
    dtype: AnyDType
    form: Form = Form.FULL


class Call:
    """An operator with what it is applied to.

    Args:
        node: the operator.
        dtypes: of its operands; None where one is absent.
        shapes: likewise.
        operand: gives the expression of an operand, which broadcasts to the first; of one with an element for each
            channel if the second argument is True.
    """

    def __init__(
        self,
        node: Node,
        dtypes: Sequence[AnyDType | None],
        shapes: Sequence[tuple[int, ...]],
        operand: Callable[[int, bool], Expression],
    ) -> None:
        self.node, self.dtypes, self.shapes = node, dtypes, shapes
        self._operand = operand

    @property
    def shape(self) -> tuple[int, ...]:
        return self.shapes[0]

    @property
    def dtype(self) -> AnyDType:
        """Of the first operand."""
        found = self.dtypes[0]
        assert found is not None
        return found

    @property
    def wide(self) -> AnyDType:
        """The type that floats are computed in. Raises `Unsupported` of other types."""
        found = computed(self.dtype)
        if found.kind != "f":
            raise Unsupported(f"there is no code for {self.node.kind} of {self.dtype.name}")
        return found

    def attribute(self, name: str, default: Any) -> Any:
        return self.node.attributes.get(name, default)

    def has(self, index: int) -> bool:
        return index < len(self.dtypes) and self.dtypes[index] is not None

    def operand(self, index: int, dtype: AnyDType | None = None) -> Expression:
        """The operand, converted to ``dtype``."""
        found = self._operand(index, False)
        return found if dtype is None else cast(found, dtype)

    def channel(self, index: int, dtype: AnyDType) -> Expression:
        """An operand that has one element for each channel."""
        if self.shapes[index] != self.shape[1:2] or len(self.shape) < 2:
            raise Unsupported("parameters do not fit the channels")
        return cast(self._operand(index, True), dtype)

    def reduce(self, reducer: Primitive, x: Expression) -> Expression:
        return Apply(reducer, (x,), x.dtype)

    def sum(self, x: Expression) -> Expression:
        return self.reduce(SUM, x)

    def mean(self, x: Expression) -> Expression:
        return self.sum(x) / Apply(COUNT, (), x.dtype)


Expand = Callable[[Call], list[Made]]
ROW_OPERATORS: dict[str, Expand] = {}
"""By kind."""


def _enter(kind: str) -> Callable[[Expand], Expand]:
    def enter(expand: Expand) -> Expand:
        ROW_OPERATORS[kind] = expand
        return expand

    return enter


def _powers(call: Call, x: Expression) -> tuple[Expression, Expression]:
    """``x`` minus the row's maximum, so that no power overflows and not all vanish; their sum.

    If one is NaN, then the sum is, so the largest one need not be.
    """
    less = x - call.reduce(LARGEST, x)
    return less, call.sum(EXP_OF_NEGATIVE(less))


@_enter("onnx::Softmax")
def _softmax(call: Call) -> list[Made]:
    x = call.operand(0, call.wide)
    powers = EXP_OF_NEGATIVE(x - call.reduce(LARGEST, x))
    return [Made(powers * (1 / call.sum(powers)), call.dtype)]


@_enter("irc::masked_softmax")
def _masked_softmax(call: Call) -> list[Made]:
    x = call.operand(0, call.wide)
    powers = EXP_OF_NEGATIVE(x - call.reduce(LARGEST, x))
    total = call.sum(powers)
    return [Made(select(equal(total, total), powers * (1 / total), 0), call.dtype)]


@_enter("onnx::LogSoftmax")
def _log_softmax(call: Call) -> list[Made]:
    less, total = _powers(call, call.operand(0, call.wide))
    return [Made(less - log(total), call.dtype)]


def _epsilon(call: Call) -> float:
    return float(call.attribute("epsilon", 1e-5))


def _standardized(call: Call, x: Expression, epsilon: float | None = None) -> tuple[Expression, Expression, Expression]:
    """``x`` standardized in two passes; the mean, and the inverse deviation."""
    mean = call.mean(x)
    less = x - mean
    inverse = 1 / sqrt(call.mean(less * less) + (_epsilon(call) if epsilon is None else epsilon))
    return less * inverse, mean, inverse


@_enter("onnx::LayerNormalization")
def _layer_normalization(call: Call) -> list[Made]:
    y, mean, inverse = _standardized(call, call.operand(0, call.wide))
    y = y * call.operand(1, call.wide)
    if call.has(2):
        y = y + call.operand(2, call.wide)
    stash = numpy_dtype(int(call.attribute("stash_type", 1)))
    statistics = [Made(cast(x, computed(stash)), stash, Form.KEPT) for x in (mean, inverse)]
    return [Made(y, call.dtype), *statistics][: len(call.node.outputs)]


def _torch_layer(call: Call) -> list[Made]:
    """``(x, shape, weight, bias, eps)``; for ``native_layer_norm`` also mean and inverse deviation."""
    shape, epsilon = _known(call, 1), _known(call, 4)
    if any(call.has(i) and call.shapes[i] != tuple(shape) for i in (2, 3)):
        raise Unsupported("parameters do not have the shape of a row")
    y, mean, inverse = _standardized(call, call.operand(0, call.wide), 1e-5 if epsilon is None else float(epsilon))
    if call.has(2):
        y = y * call.operand(2, call.wide)
    if call.has(3):
        y = y + call.operand(3, call.wide)
    return [Made(y, call.dtype), *(Made(x, call.dtype, Form.KEPT) for x in (mean, inverse))][: len(call.node.outputs)]


@_enter("onnx::RMSNormalization")
def _rms_normalization(call: Call) -> list[Made]:
    x = call.operand(0, call.wide)
    y = x * (1 / sqrt(call.mean(x * x) + _epsilon(call))) * call.operand(1, call.wide)
    result = call.dtypes[1]
    assert result is not None
    return [Made(cast(y, computed(result)), result)]


def _affine(call: Call, y: Expression, weight: int, bias: int) -> list[Made]:
    """``y``, scaled and moved by parameters of the channels that may be absent."""
    if call.has(weight):
        y = y * call.channel(weight, call.wide)
    return [Made(y + call.channel(bias, call.wide) if call.has(bias) else y, call.dtype)]


@_enter("onnx::InstanceNormalization")
@_enter("onnx::GroupNormalization")
def _normalization_of_channels(call: Call) -> list[Made]:
    y, _, _ = _standardized(call, call.operand(0, call.wide))
    return _affine(call, y, 1, 2)


@_enter("onnx::BatchNormalization")
def _batch_normalization(call: Call) -> list[Made]:
    """The factor and the shift of a channel are computed in float64, as they are few."""
    scale, shift, mean, variance = (call.channel(i, DOUBLE) for i in range(1, 5))
    factor = scale / sqrt(variance + _epsilon(call))
    y = call.operand(0, call.wide) * cast(factor, call.wide) + cast(shift - mean * factor, call.wide)
    return [Made(y, call.dtype)]


def _known(call: Call, index: int) -> Any:
    """The operand at ``index``, which is not an array."""
    try:
        return static(call.node, index)
    except LookupError as error:
        raise Unsupported(str(error)) from None


@_enter("aten::group_norm")
def _torch_group(call: Call) -> list[Made]:
    epsilon = _known(call, 4)
    y, _, _ = _standardized(call, call.operand(0, call.wide), 1e-5 if epsilon is None else float(epsilon))
    return _affine(call, y, 2, 3)


@_enter("aten::batch_norm")
def _torch_batch(call: Call) -> list[Made]:
    """The mean is taken off first, as the factor may be infinite."""
    if not (call.has(3) and call.has(4)):
        raise Unsupported("there are no running statistics")
    factor = 1 / sqrt(call.channel(4, DOUBLE) + float(_known(call, 7)))
    if call.has(1):
        factor = call.channel(1, DOUBLE) * factor
    y = (call.operand(0, call.wide) - call.channel(3, call.wide)) * cast(factor, call.wide)
    return [Made(y + call.channel(2, call.wide) if call.has(2) else y, call.dtype)]


@_enter("onnx::LpNormalization")
def _lp_normalization(call: Call) -> list[Made]:
    x = call.operand(0, call.wide)
    norm = call.sum(absolute(x)) if call.attribute("p", 2) == 1 else sqrt(call.sum(x * x))
    return [Made(x / select(equal(norm, 0), 1, norm), call.dtype)]


def _log_sum_exp(call: Call, x: Expression) -> Expression:
    largest = call.reduce(MAXIMUM, x)
    finite = select(is_finite(largest), largest, 0)
    return log(call.sum(exp(x - finite))) + finite


_REDUCTIONS: dict[str, tuple[Callable[[Call, Expression], Expression], bool]] = {
    "ReduceSum": (Call.sum, False),
    "ReduceMean": (Call.mean, True),
    "ReduceMax": (lambda call, x: call.reduce(MAXIMUM, x), False),
    "ReduceMin": (lambda call, x: call.reduce(MINIMUM, x), False),
    "ReduceProd": (lambda call, x: call.reduce(PRODUCT, x), False),
    "ReduceL1": (lambda call, x: call.sum(absolute(x)), False),
    "ReduceL2": (lambda call, x: sqrt(call.sum(x * x)), True),
    "ReduceSumSquare": (lambda call, x: call.sum(x * x), False),
    "ReduceLogSum": (lambda call, x: log(call.sum(x)), True),
    "ReduceLogSumExp": (_log_sum_exp, True),
}
"""What is computed, and whether that leaves the integers, which are then computed in float64."""


def _reduction(name: str) -> Expand:
    function, leaves_integers = _REDUCTIONS[name]

    def expand(call: Call) -> list[Made]:
        wide = computed(call.dtype)
        if wide.kind not in "fiub" or (wide.kind == "b" and name not in ("ReduceMax", "ReduceMin")):
            raise Unsupported(f"there is no code for {name} of {wide.name}")
        x = call.operand(0, DOUBLE if leaves_integers and wide.kind in "iu" else wide)
        form = Form.KEPT if call.attribute("keepdims", 1) else Form.SQUEEZED
        return [Made(cast(function(call, x), wide), call.dtype, form)]

    return expand


_TORCH_REDUCTIONS: dict[str, Callable[[Call, Expression], Expression]] = {
    "sum": Call.sum,
    "mean": Call.mean,
    "amax": lambda call, x: call.reduce(MAXIMUM, x),
    "amin": lambda call, x: call.reduce(MINIMUM, x),
}


def _torch_reduction(name: str) -> Expand:
    def expand(call: Call) -> list[Made]:
        found = torch_reduction(call.node)
        wide = computed(call.dtype)
        if found is None or wide.kind not in "fiub" or (name == "mean" and wide.kind != "f"):
            raise Unsupported(f"there is no code for {name} of {wide.name}")
        is_total = name == "sum" and wide.kind != "f"
        made = _TORCH_REDUCTIONS[name](call, call.operand(0, INT64 if is_total else wide))
        return [Made(made, INT64 if is_total else call.dtype, Form.KEPT if found[1] else Form.SQUEEZED)]

    return expand


@_enter("onnx::GlobalAveragePool")
def _global_average_pool(call: Call) -> list[Made]:
    return [Made(call.mean(call.operand(0, call.wide)), call.dtype, Form.KEPT)]


@_enter("onnx::GlobalMaxPool")
def _global_max_pool(call: Call) -> list[Made]:
    return [Made(call.reduce(MAXIMUM, call.operand(0, call.wide)), call.dtype, Form.KEPT)]


for _name in _REDUCTIONS:
    ROW_OPERATORS[f"onnx::{_name}"] = _reduction(_name)

for _name in _TORCH_REDUCTIONS:
    ROW_OPERATORS[f"aten::{_name}"] = _torch_reduction(_name)
for _name in ("softmax", "_softmax"):
    ROW_OPERATORS[f"aten::{_name}"] = _softmax
for _name in ("log_softmax", "_log_softmax"):
    ROW_OPERATORS[f"aten::{_name}"] = _log_softmax
for _name in ("layer_norm", "native_layer_norm"):
    ROW_OPERATORS[f"aten::{_name}"] = _torch_layer
