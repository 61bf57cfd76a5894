"""Python's methods of strings, and its functions of numbers that are no tensor's. Letters are ASCII's, as in torch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from irc.errors import Error
from irc.runtime.kernels.aten.arithmetic import wrapped
from irc.runtime.kernels.aten.python import part_of, start_in
from irc.runtime.kernels.aten.registering import one, table, two
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import MAX_BYTES

_BLANKS = " \n\t\f\v"


def _of_ascii(test: Callable[[str], bool]) -> Kernel:
    return one(lambda x: x.isascii() and test(x))


def _sought(find: Callable[[str, str], int], must: bool = False) -> Kernel:
    def run(x: str, part: str, start: int = 0, end: int = -1) -> int:
        found = find(part_of(x, start, end), part)
        if found < 0 and must:
            raise Error("IRC420", f"{part!r} is not in the string")
        return found + start_in(x, start) if found >= 0 else -1

    return run


def _filled(fill: Callable[[str, int, str], str]) -> Kernel:
    def run(x: str, width: int, character: str = " ") -> str:
        if len(character) != 1:
            raise Error("IRC423", f"{character!r} is not one character to fill up with")
        if width > MAX_BYTES:
            raise Error("IRC422", f"a string of {width} characters is too long")
        return fill(x, width, character)

    return run


def _stripped(strip: Callable[[str, str], str]) -> Kernel:
    def run(x: str, characters: str = _BLANKS) -> str:
        return strip(x, characters)

    return run


def _replace(x: str, old: str, new: str, most: int = -1) -> str:
    return x.replace(old, new, most)


def _parts(divide: Callable[[str, str], tuple[str, str, str]]) -> Kernel:
    def run(x: str, separator: str) -> tuple[str, str, str]:
        if not separator:
            raise Error("IRC423", "the separator is empty")
        return divide(x, separator)

    return run


def _from_the_right(x: str, separator: str = " ", most: int = -1) -> list[str]:
    if not separator:
        raise Error("IRC423", "the separator is empty")
    return x.rsplit(separator, most)


_LINE = re.compile("([^\n\r\v\f\x1c-\x1e]*)([\n\r\v\f\x1c-\x1e]|$)")


def _lines(x: str, keepends: bool = False) -> list[str]:
    """Of a carriage return and a line feed, both end a line; kept ends are strings of their own, as in torch."""
    found = [pair for pair in _LINE.findall(x) if any(pair)]
    return [part for line, end in found for part in ((line, end) if keepends and end else (line,))]


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    if y == 0:
        raise Error("IRC424", f"{x} is divided by zero")
    quotient, rest = divmod(x, y)
    return (quotient, rest) if isinstance(quotient, float) else (wrapped(quotient), rest)


def _factorial(n: int) -> int:
    if not 0 <= n <= 20:  # 21! does not fit into 64 bits
        raise Error("IRC424", f"{n}! is no integer of 64 bits")
    return math.factorial(n)


_TESTS = "isalnum isalpha isdecimal isdigit islower isnumeric isprintable isspace istitle isupper".split()

table(
    {
        **{name: _of_ascii(getattr(str, name)) for name in _TESTS},
        **{name: one(getattr(str, name)) for name in ("capitalize", "swapcase", "title")},
        "find": _sought(str.find),
        "rfind": _sought(str.rfind),
        "rindex": _sought(str.rfind, must=True),
        "center": _filled(str.center),
        "ljust": _filled(str.ljust),
        "rjust": _filled(str.rjust),
        "zfill": two(lambda x, width: _filled(str.rjust)(x, width, "0")),  # a sign stays behind the zeros, in torch
        "strip": _stripped(str.strip),
        "lstrip": _stripped(str.lstrip),
        "rstrip": _stripped(str.rstrip),
        "replace": _replace,
        "partition": _parts(str.partition),
        "rpartition": _parts(str.rpartition),
        "rsplit": _from_the_right,
        "splitlines": _lines,
        "hex": one(hex),
        "bin": one(bin),
        "oct": one(oct),
        "divmod": _divmod,
        "degrees": one(lambda x: math.degrees(x)),
        "radians": one(lambda x: math.radians(x)),
        "factorial": _factorial,
        "fabs": one(lambda x: math.fabs(x)),
        "modf": one(lambda x: math.modf(x)),
    }
)
