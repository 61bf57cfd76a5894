"""irc's own operators."""

from __future__ import annotations

from irc.ops import tags
from irc.ops.record import Family, Operator

FAMILY = Family(
    "irc",
    tags.statements(
        """
    # Concat into reserved capacity: the result begins with the memory of the first operand.
    irc::append_(Tensor(a!) self, Tensor other) -> Tensor(a)
    # A copy of self with a slice of it, given by attributes starts and steps (one entry a dimension), replaced by src.
    irc::slice_scatter(Tensor self, Tensor src) -> Tensor
    # The same, written into self itself.
    irc::slice_scatter_(Tensor(a!) self, Tensor src) -> Tensor(a!)
    # Softmax along the attribute axis, and 0 where that is not a number.
    irc::masked_softmax(Tensor self) -> Tensor
    # softmax(query key^T scale + bias) value: (..., H, L, E), (..., H, S, E), (..., H, S, V) to (..., H, L, V).
    # Attributes: scale, by default 1 / sqrt(E); softcap, below which scores stay; causal, "first" or "last": query i
    # sees keys up to i, or up to S - L + i; fill, by default -inf: the score where mask is false; zero_rows: results
    # are 0 where the softmax is no number ("nan"), or is none because bias, mask and causal exclude all keys
    # ("masked"); grouped = 1: key and value may have fewer heads, each of which several neighbours share. Sink, (H,) or
    # (1,), has for each head the score of a key that is not there, whose value is 0.
    irc::attention(Tensor query, Tensor key, Tensor value, Tensor? bias=None, Tensor? mask=None, Tensor? sink=None) \
-> Tensor
    # The second half of the last axis, which has an even size, with the other sign, before the first; with the
    # attribute interleaved = 1, likewise of each two neighbours.
    irc::rotate_half(Tensor self) -> Tensor
    # A copy of self, with the strides of self, overwritten by src of the same shape, which torch's in-place operators
    # could write there: no float into integers. With the attribute same_type, both must have one element type.
    irc::overwrite(Tensor self, Tensor src) -> Tensor
    # The same, written into self itself.
    irc::overwrite_(Tensor(a!) self, Tensor src) -> Tensor(a!)
    """
    ),
)

ATTRIBUTES: dict[str, dict[str, bool]] = {
    "irc::append_": {"axis": False},
    "irc::slice_scatter": {"starts": True, "steps": True},
    "irc::slice_scatter_": {"starts": True, "steps": True},
}
"""The attributes that they need: whether each is a list of whole numbers, or one."""

OPTIONAL_ATTRIBUTES: dict[str, dict[str, tuple[object, ...] | None]] = {
    "irc::attention": {
        "scale": None,
        "softcap": None,
        "fill": None,
        "causal": ("first", "last"),
        "zero_rows": ("nan", "masked"),
        "grouped": (0, 1),
    },
}
"""The attributes that they may have: what each may be; None: any number."""


def records() -> dict[str, Operator]:
    """All records, by kind."""
    return FAMILY.records
