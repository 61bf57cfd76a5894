"""Arrays of strings: those of Python's strings, and arrays that can be converted to such."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from irc.ir.tensor import Array


def python_strings(array: Array) -> Array:
    """``array`` as an array of Python's strings; ValueError with the reason if it has no strings or no valid UTF-8."""
    kind = array.dtype.kind
    if kind == "S":
        try:
            decoded = [text.decode() for text in array.reshape(-1).tolist()]
        except UnicodeDecodeError as error:
            raise ValueError(f"expected strings; these bytes are none: {error}") from None
        return np.array(decoded, object).reshape(array.shape)
    if not is_text(array):
        raise ValueError("expected strings; these have elements that are no characters")
    if kind in "UT":
        return array.astype(object)
    if kind != "O":
        raise ValueError(f"expected strings, got {array.dtype.name}{list(array.shape)}")
    for number, element in enumerate(array.reshape(-1)):
        if not isinstance(element, str):
            place = [int(i) for i in np.unravel_index(number, array.shape)]
            raise ValueError(f"expected strings; element {place} is {element!r:.40}")
    return array


def is_text(array: Array) -> bool:
    """Whether an array of fixed-width strings (``<U3``) holds characters: NumPy lets it hold any 32 bits."""
    if array.dtype.kind != "U":
        return True
    code_points = np.frombuffer(array.tobytes(), np.dtype(np.uint32).newbyteorder(array.dtype.byteorder))
    return not (code_points > sys.maxunicode).any()
