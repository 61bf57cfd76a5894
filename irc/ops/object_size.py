"""The bytes of the strings and lists that TorchScript's operators make of their operands.

They are known before they are made, which constant folding and runs under limits need. Records of operators name the
functions at the end, which estimate the bytes from the operands.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from irc.ir.tensor import Tensor
from irc.ops.registry import record

VIEW_BYTES = 128
"""What a view takes beside the memory that it shows."""

STRING_BYTES = 64
"""What a string takes beside its characters, and its place in an array."""

ENTRY_BYTES = 40
"""A place in a list, and the number there."""

_NUMBER_TEXT = 32  # characters of a number, and what parts it from the next one
_WIDEST_CHARACTER = 4
_WHOLE_TEXT = 1000  # of a tensor with more elements, only those at the ends of each dimension are written: 7 places


def object_bytes(value: Any) -> int:
    """The bytes of a string, or of the places of a list, tuple or dictionary; 0 for anything else."""
    if isinstance(value, str):
        return sys.getsizeof(value) + 8
    if isinstance(value, (list, tuple, dict)):
        return len(cast("Sequence[Any]", value)) * ENTRY_BYTES
    return 0


def content_bytes(value: Any) -> int:
    """As `object_bytes`, with all that a list or tuple holds; what is in a list several times counts as often."""
    inner = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
    return object_bytes(value) + sum(map(content_bytes, inner))


def made_bytes(kind: str, operands: Sequence[Any]) -> int | None:
    """The bytes that ``kind`` takes for a string or list that it makes of ``operands``.

    None if it is not known to make larger ones than it is given; 0 for operands that it does not take.
    """
    estimate = record(kind).object_size
    if estimate is None:
        return None
    try:
        return int(estimate(*operands))
    except (ValueError, TypeError, AttributeError, OverflowError, ZeroDivisionError):
        return 0


# -- strings -------------------------------------------------------------------


def _text(characters: int, *strings: str) -> int:
    """Bytes of a string of ``characters`` characters taken from ``strings``."""
    return STRING_BYTES + characters * (1 if all(map(str.isascii, strings)) else _WIDEST_CHARACTER)


def padded(x: str, width: int, character: str = " ") -> int:
    """Bytes of ``x`` padded to ``width`` characters."""
    return _text(max(len(x), width), x, character)


def joined(separator: str, parts: Sequence[str]) -> int:
    """Bytes of ``parts`` with ``separator`` between them."""
    return _text(sum(map(len, parts)) + len(parts) * len(separator), separator, *parts)


def replaced(x: str, old: str, new: str, most: int = -1) -> int:
    """Bytes of ``x`` with ``new`` in the place of ``old``, at most ``most`` times."""
    places = x.count(old)
    return _text(len(x) + (places if most < 0 else min(places, most)) * max(0, len(new) - len(old)), x, new)


def written(*values: Any) -> int:
    """Bytes of one string with all values as text."""
    writing = _Writing()
    return STRING_BYTES + sum(map(writing.characters, values)) * writing.width


class _Writing:
    """Computes the length of values as text: a list that occurs many times is written as often, but walked once.

    Attributes:
        width: bytes of a character, as far as strings have been seen.
    """

    def __init__(self) -> None:
        self.width = 1
        self._known: dict[int, int] = {}

    def characters(self, value: Any) -> int:
        if isinstance(value, str):
            self.width = self.width if value.isascii() else _WIDEST_CHARACTER
            return len(value) + 2
        if isinstance(value, (Tensor, np.ndarray)):
            shape: tuple[int, ...] = cast("Any", value).shape
            return _NUMBER_TEXT * min(math.prod(shape), max(_WHOLE_TEXT, 7 ** len(shape)))
        if not isinstance(value, (list, tuple, dict)):
            return _NUMBER_TEXT
        found = cast("Mapping[Any, Any] | Sequence[Any]", value)
        if id(found) not in self._known:
            self._known[id(found)] = 0
            inner = [x for entry in found.items() for x in entry] if isinstance(found, Mapping) else found
            self._known[id(found)] = 2 + sum(self.characters(v) + 2 for v in inner)
        return self._known[id(found)]


def _parts(pieces: int, x: str) -> int:
    """Bytes of ``x`` split into ``pieces`` strings."""
    return pieces * (STRING_BYTES + ENTRY_BYTES) + _text(len(x), x)


def split(x: str, separator: str | None = None, most: int = -1) -> int:
    """Bytes of the pieces of ``x`` between separators, by default blanks."""
    pieces = x.count(separator) if separator else len(x) // 2
    return _parts((pieces if most < 0 else min(pieces, most)) + 1, x) if x else 0


def split_lines(x: str, keepends: bool = False) -> int:
    """Bytes of the lines of ``x``."""
    return _parts(2 * sum(map(x.count, "\n\r\v\f\x1c\x1d\x1e")) + 1, x)


# -- lists ---------------------------------------------------------------------


def concatenated(x: Any, y: Any, *others: Any) -> int:
    """Bytes of two strings or lists in one."""
    if isinstance(x, str) and isinstance(y, str):
        return _text(len(x) + len(y), x, y)
    return object_bytes(x) + object_bytes(y)


def repeated(x: Any, y: Any) -> int:
    """Bytes of a string or list, repeated as often as the other operand says."""
    sequence, times = (x, y) if isinstance(y, int) else (y, x)
    if not isinstance(times, int):
        return 0
    if isinstance(sequence, str):
        return _text(len(sequence) * max(times, 0), sequence)
    return object_bytes(sequence) * max(times, 0)


def entries(x: Any) -> int:
    """Bytes of a list of the elements of ``x``."""
    return len(x) * ENTRY_BYTES


def pairs(x: Any) -> int:
    """Bytes of a list of the keys and values of ``x``, in pairs."""
    return 3 * entries(x)


def number_range(n: int) -> int:
    """Bytes of a list of ``n`` numbers."""
    return max(n, 0) * ENTRY_BYTES


def nested_list(x: Any, *others: Any) -> float:
    """Bytes of the numbers of the tensor ``x``, in lists."""
    return math.prod(x.shape) * ENTRY_BYTES
