"""The lexer of IR text: tokens, numbers, strings, other single values, and errors with carets."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn, cast

import numpy as np

from irc.errors import Error
from irc.ir.limits import MAX_INTEGER, MIN_INTEGER
from irc.ir.tensor import Array
from irc.ir.text.names import unquote
from irc.ir.types import DType
from irc.support.formatting import pointed_at

# Reading IR text piece by piece, and saying where it is wrong.
#
# The grammar's terminals are regular expressions tried at a position, coarse
# ones (a whole list of inputs, a whole type) first: a match in C is what makes
# a pure-Python parser fast. White space and line ends between terminals do not
# matter, ``#`` starts a comment.
#
# No text may make them backtrack for long, so repetitions are atomic:
# ``[...]++`` for single characters, ``(?>(?:...)+)`` for groups. (Not
# ``(?:...)++``: before 3.11.5, Python loses what such a group should match.)


_SPACES = r"[ \t\r\n]*+"
_COMMENT = rf"\#[^\n]*+{_SPACES}"
WS = rf"{_SPACES}(?:{_COMMENT}(?>(?:{_COMMENT})*)|)"
"""White space and comments. (A choice that begins with a character costs least where there is no comment.)"""

STRING_BODY = r'(?>(?:[^"\\\n]++|\\.)*)'
BARE_VALUE_NAME = r"[\w./-]++(?>(?:::[\w./-]++)*)"
VALUE_NAME = rf'%(?:{BARE_VALUE_NAME}|"{STRING_BODY}")'
"""A value's name. Dumps of ``torch.onnx`` hold bare ones such as ``%onnx::Conv_5`` and ``%/conv/out``."""

_SPACE = re.compile(WS)
_STRING = re.compile(rf'{WS}"({STRING_BODY})"')
_SEPARATOR = re.compile(rf"{WS}([,)\]}}>])")
_SHOWN = 100
"""Columns of a line that an error message shows at most."""


def terminal(pattern: str) -> re.Pattern[str]:
    """A compiled terminal that skips white space and comments first."""
    return re.compile(WS + pattern)


class Scanner:
    """A position in a text.

    Attributes:
        text: the whole text.
        pos: where reading goes on.
        filename: what errors call the text.
    """

    __slots__ = ("filename", "pos", "text")

    def __init__(self, text: str, filename: str = "<text>") -> None:
        self.text = text
        self.pos = 0
        self.filename = filename

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The match of ``pattern`` here, stepped over; None if there is none."""
        match = pattern.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return match

    def need(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """The match of ``pattern`` here, stepped over, or the complaint that ``what`` should come."""
        match = self.take(pattern)
        if match is None:
            self.fail(f"expected {what}")
        return match

    def skip(self) -> int:
        """Step over white space and comments; the position after them."""
        match = _SPACE.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return self.pos

    def accept(self, symbol: str) -> bool:
        """Step over ``symbol`` if it comes next; otherwise stay, as a note may follow that is not a comment."""
        start = self.pos
        if self.text.startswith(symbol, self.skip()):
            self.pos += len(symbol)
            return True
        self.pos = start
        return False

    def expect(self, symbol: str, after: str) -> None:
        """Step over ``symbol``, or complain that it should come after ``after``."""
        if not self.accept(symbol):
            self.fail(f"expected '{symbol}' after {after}")

    def more(self, closing: str, after: str) -> bool:
        """Step over a comma (True) or the ``closing`` bracket (False), or complain that one should come."""
        match = self.take(_SEPARATOR)
        if match is not None and match[1] == ",":
            return True
        if match is None or match[1] != closing:
            self.fail(f"expected ',' or '{closing}' after {after}", None if match is None else match.start(1))
        return False

    def listed(self, closing: str, what: str, may_end_in_comma: bool = False) -> Iterator[None]:
        """Yield at each part, called ``what``, of a list that ends with the bracket ``closing``."""
        is_over = self.accept(closing)
        while not is_over:
            yield
            is_over = not self.more(closing, what) or (may_end_in_comma and self.accept(closing))

    def peek(self) -> str:
        """The next character that is no white space; "" at the end."""
        self.skip()
        return self.text[self.pos : self.pos + 1]

    def string(self) -> str | None:
        """A quoted string, unquoted; None if there is none here."""
        match = self.take(_STRING)
        return None if match is None else self.unquote(match[1], match.start(1))

    def unquote(self, body: str, pos: int) -> str:
        """The meaning of the inside of a quoted string that starts at ``pos``."""
        try:
            return unquote(body)
        except ValueError as error:
            self.fail(f"{error} in a string", pos)

    def name(self, text: str, pos: int) -> str:
        """The bare name that ``text``, as printed (quoted perhaps), stands for."""
        return self.unquote(text[1:-1], pos + 1) if text.startswith('"') else text

    def where(self, pos: int) -> tuple[int, int]:
        """Line and column of a position, both from 1."""
        return self.text.count("\n", 0, pos) + 1, pos - self.text.rfind("\n", 0, pos)

    def fail(self, message: str, pos: int | None = None, code: str = "IRC110") -> NoReturn:
        """Raise ``irc.Error`` with the line at ``pos`` (default: the next token) and a caret under it."""
        raise self.error(message, self.skip() if pos is None else pos, code)

    def error(self, message: str, pos: int, code: str = "IRC110") -> Error:
        """The error that ``fail`` raises."""
        line, column = self.where(pos)
        begin = pos - column + 1
        end = self.text.find("\n", begin)
        shown = self.text[begin : len(self.text) if end < 0 else end].rstrip("\r").replace("\t", " ")
        caret = column - 1
        if caret >= _SHOWN - 10:
            cut = caret - _SHOWN // 2
            shown, caret = "..." + shown[cut:], caret - cut + 3
        if len(shown) > _SHOWN:
            shown = shown[:_SHOWN] + "..."
        return Error(code, message + pointed_at(shown, caret, indent=" " * 4), f"{self.filename}:{line}:{column}")


# Arrays of any element type from numbers and strings, exactly or not at all.


class NanBits(int):
    """A NaN that is not the usual one, as its bit pattern in the element type."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"nan({int(self):#x})"


def array_of(dtype: DType, elements: Sequence[Any]) -> Array:
    """A one-dimensional array of ``elements``.

    Args:
        dtype: the element type.
        elements: strings, bools, ints, floats, ``NanBits``, and pairs of these for complex numbers.

    Raises:
        ValueError: an element is of another kind or does not fit. Floats are rounded, but not to infinity; the
            bits of ``NanBits`` must be a NaN's.
    """
    if dtype is DType.STRING:
        _check(dtype, elements, str)
        return np.array(elements, object)
    if dtype is DType.BOOL or dtype.is_integer:
        return _integers(dtype, elements)
    if dtype in (DType.COMPLEX64, DType.COMPLEX128):
        _check(dtype, elements, (int, float, complex, tuple))
        part = DType.FLOAT if dtype is DType.COMPLEX64 else DType.DOUBLE
        return _floats(part, [number for element in elements for number in _pair(element)]).view(dtype.numpy)
    _check(dtype, elements, (int, float))
    return _floats(dtype, elements)


def _check(dtype: DType, elements: Sequence[Any], kinds: type | tuple[type, ...]) -> None:
    for element in elements:
        if not isinstance(element, kinds) or (kinds is int and isinstance(element, NanBits)):
            raise ValueError(f"{element!r} cannot be an element of a {dtype.label} tensor")


def _pair(element: Any) -> tuple[Any, Any]:
    if isinstance(element, tuple):
        return cast("tuple[Any, Any]", element)
    return (element.real, element.imag) if isinstance(element, complex) else (element, 0.0)


def _integers(dtype: DType, elements: Sequence[Any]) -> Array:
    _check(dtype, elements, int)
    wide = np.uint64 if any(e >= 2**63 for e in elements) else np.int64
    if wide is np.uint64 and min(elements) < 0:
        raise ValueError(f"{min(elements)} and {max(elements)} do not both fit in a {dtype.label} tensor")
    array = np.array(elements, wide).astype(dtype.numpy)
    for element, item in zip(elements, array, strict=True):
        if int(item) != element:
            raise ValueError(f"{element} does not fit in a {dtype.label} tensor")
    return array


def _floats(dtype: DType, elements: Sequence[Any]) -> Array:
    doubles = np.array([0.0 if isinstance(e, NanBits) else float(e) for e in elements], np.float64)
    with np.errstate(all="ignore"):
        array = doubles.astype(dtype.numpy)
    for element, before, after in zip(elements, doubles, array.astype(np.float64), strict=True):
        if np.isfinite(before) != np.isfinite(after) and not isinstance(element, NanBits):
            raise ValueError(f"{element} does not fit in a {dtype.label} tensor")
    words = array.view(f"u{array.itemsize}")
    for i, element in enumerate(elements):
        if isinstance(element, NanBits):
            if element >= 1 << (8 * array.itemsize):
                raise ValueError(f"{element} has more bits than a {dtype.label}")
            words[i] = element
            if array[i] == array[i]:
                raise ValueError(f"{element} are the bits of no NaN of a {dtype.label} tensor")
    return array


# Numbers, strings and other single values from text.


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
    """Like ``scalar_value`` for a tensor's element: ``nan(0x...)`` is ``NanBits``, a complex is a pair."""
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
