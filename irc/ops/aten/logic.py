# ruff: noqa: E501 - a row is one line
"""Comparisons, truth values, bits, and selection by them."""

from __future__ import annotations

from irc.ir.types import TensorType, Type
from irc.ops import sizes
from irc.ops.algebra import Expression, select
from irc.ops.aten.call import Call, TorchFamily
from irc.ops.aten.promotion import like_first

ROWS = """
    aten::bitwise_not(Tensor self) -> Tensor | pointwise=first in-place
    aten::logical_not(Tensor self) -> Tensor | pointwise=bool in-place out=any
    aten::{isnan isinf}(Tensor self) -> Tensor | pointwise=bool
    aten::isfinite(Tensor self) -> Tensor | pointwise=bool out=none
    aten::{isnan isinf isfinite}.float(float a) -> bool
    aten::{eq ne lt le gt ge}(Scalar a, Scalar b) -> bool
    aten::{eq ne}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=bool in-place out=any
    aten::{lt le gt ge}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=bool takes-both=buif in-place out=any
    aten::equal(Tensor self, Tensor other) -> bool
    aten::{logical_and logical_or logical_xor}(Tensor self, Tensor other) -> Tensor | pointwise=bool in-place out=any
    aten::{bitwise_and bitwise_or bitwise_xor}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common in-place out=any
    aten::{bitwise_and bitwise_or bitwise_xor}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor
    aten::{eq ne lt le gt ge bitwise_and bitwise_or bitwise_xor}.Tensor(Tensor self, Tensor other) -> Tensor | out=any
    aten::{eq ne}.{Tensor bool float int str}_list({}[] a, {}[] b) -> bool
    aten::{bitwise_left_shift bitwise_right_shift}.Scalar_Tensor(Scalar self, Tensor other) -> Tensor | pointwise=common in-place
    aten::{bitwise_left_shift bitwise_right_shift}.Tensor(Tensor self, Tensor other) -> Tensor | takes-both=ui out=any
    aten::{bitwise_left_shift bitwise_right_shift}.Tensor_Scalar(Tensor self, Scalar other) -> Tensor | out=any
    aten::{__and__ __or__ __xor__}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common out=none
    aten::{__iand__ __ior__ __ixor__}.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!) | out=none
    aten::{__ilshift__ __irshift__}.Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!) | takes=ui out=none
    aten::{__lshift__ __rshift__}.Scalar(Tensor self, Scalar other) -> Tensor | pointwise=common takes-both=ui
    aten::{__and__ __or__ __xor__ __lshift__ __rshift__}.Tensor(Tensor self, Tensor other) -> Tensor
    aten::{eq ne __and__ __or__ __xor__}.bool(bool a, bool b) -> bool
    aten::{eq ne}.device(Device a, Device b) -> bool
    aten::{eq ne}.enum(AnyEnumType a, AnyEnumType b) -> bool
    aten::{eq ne lt le gt ge}.{float int str}({} a, {} b) -> bool
    aten::{eq ne lt le gt ge}.float_int(float a, int b) -> bool
    aten::{eq ne lt le gt ge}.int_float(int a, float b) -> bool
    aten::{__and__ __or__ __xor__ __lshift__ __rshift__}.int(int a, int b) -> int
    aten::where(Tensor condition) -> Tensor[]
    aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor
    aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor
    aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor
    aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor | pointwise=common
    aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor | pointwise in-place
    aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor
    aten::masked_select(Tensor self, Tensor mask) -> Tensor
    aten::masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor | in-place layout=like-first
    aten::fill.Scalar(Tensor self, Scalar value) -> Tensor | in-place layout=like-first
    aten::fill.Tensor(Tensor self, Tensor value) -> Tensor
    aten::zero_(Tensor(a!) self) -> Tensor(a!)
    aten::copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)
    aten::{__iand__ __ior__ __ixor__ __ilshift__ __irshift__ copy_}.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)
    aten::copy_.{float int}(Tensor(a!) self, {} other) -> Tensor(a!)
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each("where", size=sizes.nonzero)
FAMILY.each("masked_select", size=sizes.broadcast)
FAMILY.primitives(
    "bitwise_and __and__=bitwise_and bitwise_or __or__=bitwise_or bitwise_xor __xor__=bitwise_xor bitwise_not "
    "bitwise_left_shift=shift_left __lshift__=shift_left bitwise_right_shift=shift_right __rshift__=shift_right"
)
FAMILY.primitives(
    "logical_and logical_not logical_or logical_xor isfinite=is_finite isinf=is_infinite isnan=is_nan "
    "eq=equal ne=not_equal lt=less le=less_equal gt=greater ge=greater_equal",
    result=None,
)
FAMILY.primitives("where=select", result=1)


@FAMILY.semantics("aten::masked_fill")
def masked_fill(x: Expression, mask: Expression, value: Expression) -> Expression:
    return select(mask, value, x)


# -- shapes -------------------------------------------------------------------

FAMILY.shape("fill")(like_first)


@FAMILY.shape("masked_fill", "masked_scatter")
def masked(c: Call) -> Type:
    return TensorType(c.tensor("self").dtype, c.broadcast([c.tensor("self").shape, c.tensor("mask").shape]))


@FAMILY.shape("masked_select")
def masked_select(c: Call) -> Type:
    return TensorType(c.tensor(0).dtype, (None,))
