"""irc's own operators."""

from __future__ import annotations

ROWS = (
    """
    # Concat into reserved capacity: the result begins with the memory of the first operand.
    irc::append_(Tensor(a!) self, Tensor other) -> Tensor(a)
    # A copy of self with a slice of it, given by attributes starts and steps (one entry a dimension), replaced by src.
    irc::slice_scatter(Tensor self, Tensor src) -> Tensor
    # The same, written into self itself.
    irc::slice_scatter_(Tensor(a!) self, Tensor src) -> Tensor(a!)
    # Softmax along the attribute axis, and 0 where that is not a number.
    irc::masked_softmax(Tensor self) -> Tensor
    # The second half of the last axis, which has an even size, with the other sign, before the first; with the
    # attribute interleaved = 1, likewise of each two neighbours.
    irc::rotate_half(Tensor self) -> Tensor
    # A copy of self, with the strides of self, overwritten by src of the same shape, which torch's in-place operators
    # could write there: no float into integers. With the attribute same_type, both must have one element type.
    irc::overwrite(Tensor self, Tensor src) -> Tensor
    # The same, written into self itself.
    irc::overwrite_(Tensor(a!) self, Tensor src) -> Tensor(a!)
    """,
)

ATTRIBUTES: dict[str, dict[str, bool]] = {
    "irc::append_": {"axis": False},
    "irc::slice_scatter": {"starts": True, "steps": True},
    "irc::slice_scatter_": {"starts": True, "steps": True},
}
"""The attributes that they need: whether each is a list of whole numbers, or one."""

RANDOM: tuple[str, ...] = ()
RANDOM_UNLESS_FALSE: dict[str, str] = {}
SIDE_EFFECT: tuple[str, ...] = ()
