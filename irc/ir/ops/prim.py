"""``prim::`` operators with a signature; those without one have rules of their own."""

from __future__ import annotations

ROWS = (
    """
    prim::Print(...) -> ()
    prim::RaiseException(str msg, str? cls=None) -> ()
    prim::NumToTensor.Scalar(Scalar a) -> Tensor
    prim::device(Tensor a) -> Device
    prim::dtype(Tensor a) -> int
    """,
)

RANDOM: tuple[str, ...] = ()
SIDE_EFFECT = ("prim::Print", "prim::RaiseException")
