"""Python's own: strings, ranges, identity, warnings."""

from __future__ import annotations

import math
import operator
import re
import warnings
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.types import DictType, ListType, OptionalType, TupleType, Type
from irc.runtime.kernels.aten.arithmetic import wrapped
from irc.runtime.kernels.aten.containers import count, discard, index_of, same
from irc.runtime.kernels.aten.indexing import take
from irc.runtime.kernels.aten.queries import item
from irc.runtime.kernels.aten.registering import aten, by_node, one, table, three, two
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import MAX_BYTES
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.ir import Node


def _is(x: Any, y: Any) -> bool:
    """The same object; numbers and strings by value."""
    return x is y or (isinstance(x, (bool, int, float, str)) and type(x) is type(y) and same(x, y))


def _range_length(low: int, high: int, step: int) -> int:
    if step == 0:
        raise Error("IRC424", "a range's step must not be 0")
    return len(range(low, high, step))


def _rounded_to_zero(x: int, y: int) -> int:
    if y == 0:
        raise Error("IRC424", f"{x} is divided by zero")
    return wrapped(abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))


# -- strings -------------------------------------------------------------------


def text(value: Any, type: Type | None = None) -> str:
    """A value as torch's ``format`` and ``str`` write it, but for tensors, which are written as NumPy does.

    Args:
        value: any.
        type: as declared; without it, constant lists are written as tuples.
    """
    if isinstance(type, OptionalType):
        type = type.elem
    if isinstance(value, float):
        return _float_text(value)
    if isinstance(value, complex):
        return f"{_float_text(value.real)}{'+' if value.imag >= 0 else '-'}{_float_text(abs(value.imag))}j"
    if isinstance(value, (list, tuple)):
        return _sequence_text(value, type)  # type: ignore[reportUnknownArgumentType]
    if isinstance(value, dict):
        key, held = (type.key, type.value) if isinstance(type, DictType) else (None, None)
        return "{" + ", ".join(f"{text(k, key)}: {text(v, held)}" for k, v in value.items()) + "}"  # type: ignore[reportUnknownVariableType]
    return np.array2string(value) if is_array(value) else str(value)


def _float_text(value: float) -> str:
    """``2.`` where a whole number fits into 64 bits, otherwise all 17 digits that may count."""
    return f"{int(value)}." if value.is_integer() and -(2**63) <= value < 2**63 else f"{value:.17g}"


def _sequence_text(value: Sequence[Any], type: Type | None) -> str:
    if isinstance(type, ListType) or isinstance(value, list):
        elem = type.elem if isinstance(type, ListType) else None
        return f"[{', '.join(text(v, elem) for v in value)}]"
    elems = type.elems if isinstance(type, TupleType) and len(type.elems) == len(value) else (None,) * len(value)
    inner = ", ".join(map(text, value, elems))
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def texts(node: Node, first: int = 0) -> Callable[[Sequence[Any]], list[str]]:
    """Writes the values of the inputs of ``node`` from ``first`` on, which may be fewer or more, by their types."""
    types = [value.type for value in node.inputs[first:]]
    return lambda values: [text(v, t) for v, t in zip_longest(values, types[: len(values)])]


@by_node("str")
def to_text(node: Node) -> Kernel:
    written = texts(node)
    return one(lambda value: written([value])[0])


@by_node("format")
def format_(node: Node) -> Kernel:
    """Values in the places of ``{}``; nothing else between braces means anything, and further values do not."""
    written = texts(node, 1)

    def run(pattern: str, *values: Any) -> str:
        pieces = pattern.split("{}")
        if len(pieces) - 1 > len(values):
            raise Error("IRC423", f"{pattern!r} has {len(pieces) - 1} places for {len(values)} values")
        return "".join(a + b for a, b in zip(pieces, [*written(values[: len(pieces) - 1]), ""], strict=True))

    return run


_PLACES = re.compile(r"%(.?)", re.DOTALL)


@by_node("percentFormat")
def percent_format(node: Node) -> Kernel:
    """A value, or the values of a tuple, in place of ``%s``, ``%d`` and so on; widths are not supported."""
    declared = node.inputs[1].type if len(node.inputs) > 1 else None

    def run(pattern: str, value: Any = ()) -> str:
        if value.__class__ is not tuple or isinstance(declared, ListType):
            return _percent_format(pattern, [(value, declared)])
        values: list[Any] = list(value)
        types = declared.elems if isinstance(declared, TupleType) else ()
        return _percent_format(pattern, list(zip_longest(values, types[: len(values)])))

    return run


def _percent_format(pattern: str, given: Sequence[tuple[Any, Type | None]]) -> str:
    left = iter(given)

    def place(match: re.Match[str]) -> str:
        kind = match[1]
        if kind == "%":
            return "%"
        value, type = next(left, (left, None))
        if value is left or kind not in "sdifFeEgGxXoc" or not kind:
            raise Error("IRC423", f"{pattern!r} does not fit {len(given)} values")
        if kind == "s":
            return text(value, type)
        try:
            return f"%{kind}" % item(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise Error("IRC423", f"%{kind} of {value!r}: {error}") from None

    return _PLACES.sub(place, pattern)


def _warn(message: str, stacklevel: int = 2) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)


def part_of(value: str, start: int, end: int) -> str:
    """The characters from ``start`` to before ``end``; of negative numbers, -1 as the end is the string's."""
    return value[start : max(len(value) + 1 + end, 0) if end < 0 else end]


def start_in(value: str, start: int) -> int:
    """Position that ``start`` names: negative numbers count from the end of the string, and stop at its first one."""
    return start if start >= 0 else max(start + len(value), 0)


def _starts_with(value: str, part: str, start: int = 0, end: int = -1) -> bool:
    return part_of(value, start, end).startswith(part)


def _ends_with(value: str, part: str, start: int = 0, end: int = -1) -> bool:
    return part_of(value, start, end).endswith(part)


def _find(value: str, part: str, start: int = 0, end: int = -1) -> int:
    found = part_of(value, start, end).find(part)
    if found < 0:
        raise Error("IRC420", f"{part!r} is not in the string")
    return found + start_in(value, start)


@aten("index")
def index(x: Any, *arguments: Any) -> Any:
    """The elements of a tensor at indices, or where something is in a list or string."""
    if is_array(x):
        return take(x, *arguments)
    return _find(x, *arguments) if isinstance(x, str) else index_of(x, *arguments)


def _count(x: Any, item: Any, start: int = 0, end: int = -1) -> int:
    """How often something is in a list, or in a part of a string."""
    return part_of(x, start, end).count(item) if isinstance(x, str) else count(x, item)


by_node("warn")(discard(_warn))

table(
    {
        "__is__": _is,
        "__isnot__": two(lambda x, y: not _is(x, y)),
        "__not__": operator.not_,
        "__range_length": _range_length,
        "__derive_index": three(lambda index, start, step: wrapped(start + index * step)),
        "__round_to_zero_floordiv": _rounded_to_zero,
        "count": _count,
        "ord": ord,
        "chr": chr,
        "lower": str.lower,
        "upper": str.upper,
        "join": two(lambda separator, parts: separator.join(parts)),
        "startswith": _starts_with,
        "endswith": _ends_with,
    }
)


# -- strings -------------------------------------------------------------------


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
