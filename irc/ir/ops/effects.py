"""What an operator does besides computing results and writing memory."""

from __future__ import annotations

from enum import Flag, auto


class Effects(Flag):
    """Effects of an operator that no alias annotation can express."""

    NONE = 0
    RANDOM = auto()
    """Advances the state of a random number generator: nothing may merge, drop or reorder such nodes."""
    SIDE_EFFECT = auto()
    """Acts on the world (prints, raises, reads a clock): it is never removed, and nothing is moved past it."""
