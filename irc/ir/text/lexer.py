"""Reading IR text piece by piece, and saying where it is wrong.

The grammar's terminals are regular expressions tried at a position, coarse
ones (a whole list of inputs, a whole type) first: a match in C is what makes
a pure-Python parser fast. White space and line ends between terminals do not
matter, ``#`` starts a comment.

No text may make them backtrack for long, so repetitions are atomic:
``[...]++`` for single characters, ``(?>(?:...)+)`` for groups. (Not
``(?:...)++``: before 3.11.5, Python loses what such a group should match.)
"""

from __future__ import annotations

import re
from typing import NoReturn

from irc.errors import Error
from irc.ir.text.names import unquote
from irc.support.formatting import pointed_at

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

    def skip(self) -> int:
        """Step over white space and comments; the position after them."""
        match = _SPACE.match(self.text, self.pos)
        if match is not None:
            self.pos = match.end()
        return self.pos

    def accept(self, symbol: str) -> bool:
        """Step over ``symbol`` if it comes next; otherwise over nothing, as a note may follow, which is no comment."""
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
        """Raise ``irc.Error`` with the line at ``pos`` (default: here, white space skipped) and a caret under it."""
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
