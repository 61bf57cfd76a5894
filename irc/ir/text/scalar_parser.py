"""Numbers, strings and other single values from text."""

from __future__ import annotations

import re
import struct
from typing import Any

from irc.ir.text.lexer import STRING_BODY, Scanner, terminal
from irc.ir.text.tensor_elements import NanBits

_END = r"(?=\s*[,\])}:>])"
# Possessive, as digits without end must not take quadratic time to refuse.
_MAGNITUDE = r"(?:(?:\d++(?>(?:\.\d*+)?)|\.\d++)(?>(?:[eE][+-]?\d++)?)|inf|nan(?>(?:\(0x[0-9a-f]{1,16}\))?))"

SCALAR = terminal(
    rf"(?:(?P<int>-?\d++){_END}|\"(?P<str>{STRING_BODY})\"|(?P<float>-?{_MAGNITUDE}){_END}"
    rf"|(?:(?P<real>-?{_MAGNITUDE})(?=[+-]))?(?P<imag>[+-]?{_MAGNITUDE})j{_END}|(?P<word>True|False|None){_END})"
)
"""A number (``1``, ``2.``, ``inf``, ``1.+2.j``), a string, True, False or None."""

_WORDS = {"True": True, "False": False, "None": None}


def scalar_value(scan: Scanner, match: re.Match[str]) -> Any:
    """What a match of ``SCALAR`` stands for; ``irc.Error`` for integers beyond 64 bits and unknown escapes."""
    value = element_value(scan, match)
    if isinstance(value, tuple):
        real, imag = map(_double, value)  # type: ignore[reportUnknownArgumentType]
        return complex(real, imag)
    return _double(value) if isinstance(value, NanBits) else value


def element_value(scan: Scanner, match: re.Match[str]) -> Any:
    """Like ``scalar_value`` for an element of a tensor: ``nan(0x...)`` is ``NanBits``, a complex number a pair."""
    kind, text = match.lastgroup, match[match.lastgroup or 0]
    if kind == "int":
        if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
            scan.fail("the integer does not fit in 64 bits", match.start("int"), "IRC113")
        return int(text)
    if kind == "str":
        return scan.unquote(text, match.start("str"))
    if kind == "float":
        return _number(text)
    if kind == "imag":
        return _number(match["real"] or "0."), _number(text)
    return _WORDS[text]


def _number(text: str) -> float | NanBits:
    return NanBits(text[text.index("(") + 1 : -1], 16) if text.endswith(")") else float(text)


def _double(value: float | NanBits) -> float:
    return struct.unpack("<d", struct.pack("<Q", value))[0] if isinstance(value, NanBits) else value
