"""Comparisons, truth values, bits, and selection by them."""

from __future__ import annotations

from irc.ops import algebra
from irc.ops.algebra import Expression, select
from irc.ops.operator import Family, Operator

FAMILY = Family()
FAMILY.add(
    Operator("aten::eq", algebra.equal, result=None),
    Operator("aten::ne", algebra.not_equal, result=None),
    Operator("aten::lt", algebra.less, result=None),
    Operator("aten::le", algebra.less_equal, result=None),
    Operator("aten::gt", algebra.greater, result=None),
    Operator("aten::ge", algebra.greater_equal, result=None),
    *(
        Operator(f"aten::{name}", algebra.PRIMITIVES[name], result=None)
        for name in ("logical_and", "logical_or", "logical_xor")
    ),
    *(
        Operator(f"aten::{name}", algebra.PRIMITIVES[primitive])
        for primitive, names in {
            "bitwise_and": "bitwise_and __and__",
            "bitwise_or": "bitwise_or __or__",
            "bitwise_xor": "bitwise_xor __xor__",
            "shift_left": "bitwise_left_shift __lshift__",
            "shift_right": "bitwise_right_shift __rshift__",
        }.items()
        for name in names.split()
    ),
    Operator("aten::where", select, result=1),
)


@FAMILY.operator("aten::masked_fill")
def masked_fill(x: Expression, mask: Expression, value: Expression) -> Expression:
    return select(mask, value, x)
