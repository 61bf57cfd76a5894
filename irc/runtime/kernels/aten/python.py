"""Python's own: identity, ranges, strings, warnings."""

from __future__ import annotations

import operator
import re
import warnings
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir.text.literals import literal_text
from irc.runtime.kernels.aten.containers import discard, index_of, same
from irc.runtime.kernels.aten.indexing import take
from irc.runtime.kernels.aten.queries import item
from irc.runtime.kernels.aten.registering import aten, by_node, table, three, two
from irc.runtime.values import is_array


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
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


# -- strings -------------------------------------------------------------------


def text(value: Any) -> str:
    """A value as torch's ``format`` and ``str`` write it, but for tensors, which are written as NumPy does."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, int)) or value is None:
        return str(value)
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(text, value))  # type: ignore[reportUnknownArgumentType]
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text(k)}: {text(v)}" for k, v in value.items()) + "}"  # type: ignore[reportUnknownVariableType]
    return np.array2string(value) if is_array(value) else literal_text(value)


def _format(pattern: str, *values: Any) -> str:
    """Values in the places of ``{}``; unlike Python's, nothing else between braces means anything."""
    pieces = pattern.split("{}")
    if len(pieces) - 1 > len(values):
        raise Error("IRC423", f"{pattern!r} has {len(pieces) - 1} places for {len(values)} values")
    return "".join(a + b for a, b in zip(pieces, [*map(text, values), ""]))


_PLACES = re.compile(r"%(.?)", re.DOTALL)


def _percent_format(pattern: str, *values: Any) -> str:
    """A value, or those of a tuple, in the places of ``%s``, ``%d`` and so on, which take no width."""
    first: Any = values[0] if values else ()
    given: list[Any] = list(first) if isinstance(first, tuple) else [first]  # type: ignore[reportUnknownArgumentType]
    left = iter(given)

    def place(match: re.Match[str]) -> str:
        kind = match[1]
        if kind == "%":
            return "%"
        value = next(left, left)
        if value is left or kind not in "sdifFeEgGxXoc" or not kind:
            raise Error("IRC423", f"{pattern!r} does not fit {len(given)} values")
        if kind == "s":
            return text(value)
        try:
            return f"%{kind}" % item(value)
        except (TypeError, ValueError, OverflowError) as error:
            raise Error("IRC423", f"%{kind} of {value!r}: {error}") from None

    return _PLACES.sub(place, pattern)


def _warn(message: str, stacklevel: int = 2) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)


def _part(value: str, start: int, end: int) -> str:
    return value[start : len(value) + 1 + end if end < 0 else end]


def _starts_with(value: str, part: str, start: int = 0, end: int = -1) -> bool:
    return _part(value, start, end).startswith(part)


def _ends_with(value: str, part: str, start: int = 0, end: int = -1) -> bool:
    return _part(value, start, end).endswith(part)


def _find(value: str, part: str, start: int = 0, end: int = -1) -> int:
    found = _part(value, start, end).find(part)
    if found < 0:
        raise Error("IRC420", f"{part!r} is not in the string")
    return found + start


@aten("index")
def index(x: Any, *arguments: Any) -> Any:
    """The elements of a tensor at indices, or where something is in a list or string."""
    if is_array(x):
        return take(x, *arguments)
    return _find(x, *arguments) if isinstance(x, str) else index_of(x, *arguments)


by_node("warn")(discard(_warn))

table(
    {
        "__is__": _is,
        "__isnot__": two(lambda x, y: not _is(x, y)),
        "__not__": operator.not_,
        "__range_length": _range_length,
        "__derive_index": three(lambda index, start, step: start + index * step),
        "__round_to_zero_floordiv": _rounded_to_zero,
        "format": _format,
        "percentFormat": _percent_format,
        "str": text,
        "ord": ord,
        "chr": chr,
        "lower": str.lower,
        "upper": str.upper,
        "join": two(lambda separator, parts: separator.join(parts)),
        "startswith": _starts_with,
        "endswith": _ends_with,
    }
)
