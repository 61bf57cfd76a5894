"""``aten::`` operators."""

from __future__ import annotations

ROWS = (
    """
    aten::relu(Tensor self) -> Tensor
    aten::relu_(Tensor(a!) self) -> Tensor(a!)
    aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
    aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor
    aten::add.t(t(a)[] a, t(b)[] b) -> t(a|b)[]
    aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)
    aten::add_.Scalar(Tensor(a!) self, Scalar other, Scalar alpha=1) -> Tensor(a!)
    aten::t(Tensor(a) self) -> Tensor(a=)
    aten::append.t(t(b)[](a!) self, t(c -> b) el) -> t(b)[](a!)
    aten::__getitem__.t(t(b)[] list, int idx) -> t(b)
    """,
)

RANDOM: tuple[str, ...] = ()
SIDE_EFFECT: tuple[str, ...] = ()
