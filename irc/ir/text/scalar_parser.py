"""Numbers, strings and other single values from text."""

from __future__ import annotations

import math
import re
import struct
from typing import Any, cast

from irc.ir.limits import MAX_INTEGER, MIN_INTEGER
from irc.ir.text.lexer import STRING_BODY, WS, Scanner, terminal
from irc.ir.text.tensor_elements import NanBits

_END = rf"(?={WS}[,\])}}:>])"
# Possessive, as digits without end must not take quadratic time to refuse.
_MAGNITUDE = r"(?:(?:\d++(?>(?:\.\d*+)?)|\.\d++)(?>(?:[eE][+-]?\d++)?)|inf|nan(?>(?:\(0x[0-9a-f]{1,16}\))?))"

SCALAR = terminal(
    rf"(?:(?P<int>-?\d++){_END}|\"(?P<str>{STRING_BODY})\"|(?P<float>-?{_MAGNITUDE}){_END}"
    rf"|(?:(?P<real>-?{_MAGNITUDE})(?=[+-]))?(?P<imag>[+-]?{_MAGNITUDE})j{_END}|(?P<word>True|False|None){_END})"
)
"""A number (``1``, ``2.``, ``inf``, ``1.+2.j``), a string, True, False or None."""

_WORDS = {"True": True, "False": False, "None": None}


def scalar_value(scan: Scanner, match: re.Match[str]) -> Any:
    """What a match of ``SCALAR`` stands for; ``irc.Error`` for numbers beyond 64 bits and unknown escapes."""
    value = element_value(scan, match)
    if isinstance(value, tuple):
        real, imag = cast("tuple[float | NanBits, float | NanBits]", value)
        return complex(_double(scan, real, match.start("real")), _double(scan, imag, match.start("imag")))
    return _double(scan, value, match.start("float")) if isinstance(value, NanBits) else value


def element_value(scan: Scanner, match: re.Match[str]) -> Any:
    """Like ``scalar_value`` for an element of a tensor: ``nan(0x...)`` is ``NanBits``, a complex number a pair."""
    kind, text = match.lastgroup, match[match.lastgroup or 0]
    if kind == "int":
        if len(text) > 20 or not MIN_INTEGER <= int(text) <= MAX_INTEGER:
            scan.fail("the integer does not fit in 64 bits", match.start("int"), "IRC113")
        return int(text)
    if kind == "str":
        return scan.unquote(text, match.start("str"))
    if kind == "float":
        return _number(scan, match, "float")
    if kind == "imag":
        return _number(scan, match, "real") if match["real"] else 0.0, _number(scan, match, "imag")
    return _WORDS[text]


def _number(scan: Scanner, match: re.Match[str], part: str) -> float | NanBits:
    text = match[part]
    if text.endswith(")"):
        if text.startswith("-"):
            scan.fail("a NaN given by its bits has its sign among them", match.start(part))
        return NanBits(text[text.index("(") + 1 : -1], 16)
    value = float(text)
    if math.isinf(value) and "inf" not in text:
        scan.fail("the number does not fit in a 64-bit float", match.start(part), "IRC113")
    return value


def _double(scan: Scanner, value: float | NanBits, pos: int) -> float:
    if not isinstance(value, NanBits):
        return value
    double: float = struct.unpack("<d", struct.pack("<Q", value))[0]
    if not math.isnan(double):
        scan.fail(f"{value} are the bits of no NaN", pos)
    return double
