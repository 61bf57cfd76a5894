"""irc's own operators."""

from __future__ import annotations

ROWS = (
    """
    # Concat into reserved capacity: the result begins with the memory of the first operand.
    irc::append_(Tensor(a!) self, Tensor other) -> Tensor(a)
    """,
)

RANDOM: tuple[str, ...] = ()
SIDE_EFFECT: tuple[str, ...] = ()
