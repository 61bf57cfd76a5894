"""What the elements of an input may be, as its readers require."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Domain:
    """What the elements of one input may be. Readers only ever narrow it.

    Attributes:
        low: the least integer; None if no reader minds.
        high: the greatest integer; None if no reader minds.
        compared: constants that the elements are compared with.
        is_mask: whether 0 and 1 tell what counts.
        is_positive: whether a reader takes logarithms or roots, or divides by it.
        is_arithmetic: whether all readers compute with the elements, whatever these are.
        distinct: the axis along which no two elements may be equal; None if they may.
        whole: the elements of a small tensor that says a shape, axes or the like; None if it does not.
    """

    low: int | None = None
    high: int | None = None
    compared: list[int] = field(default_factory=list[int])
    is_mask: bool = False
    is_positive: bool = False
    is_arithmetic: bool = True
    distinct: int | None = None
    whole: list[float] | None = None

    def between(self, low: int, high: int) -> None:
        """Narrow it to integers from ``low`` to ``high``."""
        self.low = low if self.low is None else max(low, self.low)
        self.high = high if self.high is None else min(high, self.high)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the greatest integer, if a reader minds."""
        if self.low is None or self.high is None:
            return None
        return self.low, max(self.low, self.high)
