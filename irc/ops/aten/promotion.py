"""Torch's promotion of element types, as types in graphs and arrays in runs have it.

Rules: https://pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc. They
differ from NumPy's: int64 with float32 gives float32, and a tensor without
dimensions or a Python number decides only the kind, not the size.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from irc.errors import Error
from irc.ops.algebra import SINGLE, AnyDType

FLOATING = 2
"""The category of floating-point types; below are bools and integers, above complex numbers."""

_CATEGORIES = {"b": 0, "i": 1, "u": 1, "f": FLOATING, "V": FLOATING, "c": 3}
_COMPLEX64 = np.dtype(np.complex64)


def category(dtype: AnyDType) -> int:
    """Bool, integer, floating-point, complex: the higher decides. Error IRC423 if it is none of these."""
    try:
        return _CATEGORIES[dtype.kind]
    except KeyError:
        raise Error("IRC423", f"no arithmetic on elements of type {dtype.name}") from None


def promote(a: AnyDType, b: AnyDType) -> AnyDType:
    """The element type of what combines tensors of ``a`` and ``b``, both with dimensions."""
    if a == b:
        return a
    low, high = (b, a) if category(a) > category(b) else (a, b)
    if category(low) == category(high) or (category(low) == FLOATING and low == np.float64):
        try:
            return np.promote_types(low, high)
        except TypeError:  # float16 with bfloat16: neither holds the other
            return SINGLE
    return high


def combined(groups: Sequence[Sequence[AnyDType]]) -> AnyDType:
    """The element type of an arithmetic result on tensors with dimensions, those without, and numbers.

    Operands of a later group only count if they are of a higher category. Floats then become complex numbers of their
    own precision.
    """
    first, *later = [reduce(promote, group) if len(group) > 1 else group[0] for group in groups if group]
    for dtype in later:
        if category(dtype) > category(first):
            first = promote(first, _COMPLEX64 if category(first) == FLOATING else dtype)
    return first
