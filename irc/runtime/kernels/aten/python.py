"""Tensor properties, conversions to Python numbers, and Python's strings, ranges, identity."""

from __future__ import annotations

import math
import operator
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.ir.types import DictType, ListType, OptionalType, TupleType, Type
from irc.ops.aten.promotion import promote
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.arithmetic import check_numeral, parsed, truncated, wrapped
from irc.runtime.kernels.aten.containers import changing, count, index_of, same
from irc.runtime.kernels.aten.element_types import FLOAT32, dtype_of, is_floating, number_of, result_type
from irc.runtime.kernels.aten.indexing import take
from irc.runtime.kernels.aten.registering import by_node, one, table, three, two
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import MAX_BYTES, Array, axis_in
from irc.runtime.values import is_array


def size(x: Array, dim: int | None = None) -> Any:
    return list(x.shape) if dim is None else x.shape[axis_in(dim, x.ndim)]


def strides_of(x: Array) -> list[int]:
    """Strides in elements; dense ones for empty tensors and where NumPy has none for size 1."""
    found: list[int] = []
    inner = 1
    for n, s in zip(reversed(x.shape), reversed(x.strides), strict=True):
        found.append(s // x.itemsize if x.size and (s or n > 1) else inner)
        inner = found[-1] * max(n, 1)
    return found[::-1]


def stride(x: Array, dim: int | None = None) -> Any:
    return strides_of(x) if dim is None else strides_of(x)[axis_in(dim, x.ndim)]


def item(x: Any) -> Any:
    """The Python number that a tensor of one element, or a number, is."""
    if not is_array(x):
        return x
    if x.size != 1:
        raise Error("IRC421", f"only a tensor of one element is a number; the shape is {list(x.shape)}")
    value = x.item()
    return float(value) if is_floating(x.dtype) else value


def Int(x: Any) -> int:
    value = item(x)
    if isinstance(value, str):
        return parsed(value)
    value = _real(value)
    return truncated(value) if isinstance(value, float) else wrapped(int(value))


def _real(value: Any) -> Any:
    """A number that is not complex; Error if it has an imaginary part."""
    if not isinstance(value, complex):
        return value
    if value.imag:
        raise Error("IRC423", f"{value} has an imaginary part: it is not an integer and no float")
    return value.real


def Float(x: Any) -> float:
    value = item(x)
    if isinstance(value, str):
        check_numeral(value)
    try:
        found = float(_real(value))
    except ValueError:
        raise Error("IRC423", f"{value!r} is not a number") from None
    if isinstance(value, str) and math.isinf(found) and any(map(str.isdigit, value)):
        raise Error("IRC423", f"{value} is too large for a float")
    return found


def ScalarImplicit(x: Array) -> Any:
    """The number that a tensor given in place of one is: it must have no dimensions."""
    if x.ndim:
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} is given where a number is needed")
    return item(x)


def IntImplicit(x: Array) -> int:
    if x.dtype.kind not in "iu":
        raise Error("IRC423", f"a tensor of {x.dtype.name} is given where an integer is needed: int(...) converts it")
    return ScalarImplicit(x)


_KIND = {"b": 0, "i": 1, "u": 1, "f": 2, "V": 2, "c": 3}


def can_cast(from_: int, to: int) -> bool:
    """Whether values keep their kind: bools to numbers, integers to floats, those to complex numbers."""
    a, b = (dtype_of(n, FLOAT32) for n in (from_, to))
    return _KIND[a.kind] <= _KIND[b.kind]


def promote_types(a: int, b: int) -> int:
    return number_of(promote(dtype_of(a, FLOAT32), dtype_of(b, FLOAT32)))


def _predicate(holds: Callable[[Array], bool]) -> Callable[[Array], bool]:
    return lambda x: bool(holds(x))


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
    """A value's text as torch's ``format`` and ``str`` give it; tensors as NumPy writes them.

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
    """``2.`` where an integer fits into 64 bits, otherwise all 17 digits that may count."""
    return f"{int(value)}." if value.is_integer() and -(2**63) <= value < 2**63 else f"{value:.17g}"


def _sequence_text(value: Sequence[Any], type: Type | None) -> str:
    if isinstance(type, ListType) or isinstance(value, list):
        elem = type.elem if isinstance(type, ListType) else None
        return f"[{', '.join(text(v, elem) for v in value)}]"
    elems = type.elems if isinstance(type, TupleType) and len(type.elems) == len(value) else (None,) * len(value)
    inner = ", ".join(map(text, value, elems))
    return f"({inner},)" if len(value) == 1 else f"({inner})"


def texts(node: Node, first: int = 0) -> Callable[[Sequence[Any]], list[str]]:
    """A writer of ``node``'s input values from ``first`` on, by their types."""
    types = [value.type for value in node.inputs[first:]]
    return lambda values: [text(v, t) for v, t in zip_longest(values, types[: len(values)])]


@by_node("str")
def to_text(node: Node) -> Kernel:
    written = texts(node)
    return one(lambda value: written([value])[0])


@by_node("format")
def format_(node: Node) -> Kernel:
    """Values in the places of ``{}``; other braces mean nothing, further values are ignored."""
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
    """The position ``start`` names: negatives count from the string's end and stop at 0."""
    return start if start >= 0 else max(start + len(value), 0)


def index(x: Any, *arguments: Any) -> Any:
    """The elements of a tensor at indices, or where something is in a list or string."""
    if is_array(x):
        return take(x, *arguments)
    return _sought(str.find, True, x, *arguments) if isinstance(x, str) else index_of(x, *arguments)


def _count(x: Any, item: Any, start: int = 0, end: int = -1) -> int:
    """How often something is in a list, or in a part of a string."""
    return part_of(x, start, end).count(item) if isinstance(x, str) else count(x, item)


by_node("warn")(changing(_warn))


# -- strings -------------------------------------------------------------------


_BLANKS = " \n\t\f\v"


def _of_ascii(test: Callable[[str], bool], x: str) -> bool:
    return x.isascii() and test(x)


def _sought(find: Callable[[str, str], int], must: bool, x: str, part: str, start: int = 0, end: int = -1) -> int:
    found = find(part_of(x, start, end), part)
    if found < 0 and must:
        raise Error("IRC420", f"{part!r} is not in the string")
    return found + start_in(x, start) if found >= 0 else -1


def _filled(fill: Callable[[str, int, str], str], x: str, width: int, character: str = " ") -> str:
    if len(character) != 1:
        raise Error("IRC423", f"{character!r} is not one character to fill up with")
    if width > MAX_BYTES:
        raise Error("IRC422", f"a string of {width} characters is too long")
    return fill(x, width, character)


def _stripped(strip: Callable[[str, str], str], x: str, characters: str = _BLANKS) -> str:
    return strip(x, characters)


def _parts(divide: Callable[[str, str], tuple[str, str, str]], x: str, separator: str) -> tuple[str, str, str]:
    if not separator:
        raise Error("IRC423", "the separator is empty")
    return divide(x, separator)


def rsplit(x: str, separator: str = " ", most: int = -1) -> list[str]:
    if not separator:
        raise Error("IRC423", "the separator is empty")
    return x.rsplit(separator, most)


_LINE = re.compile("([^\n\r\v\f\x1c-\x1e]*)([\n\r\v\f\x1c-\x1e]|$)")


def splitlines(x: str, keepends: bool = False) -> list[str]:
    """Lines; of a carriage return and line feed, both end one; kept ends are separate, as in torch."""
    found = [pair for pair in _LINE.findall(x) if any(pair)]
    return [part for line, end in found for part in ((line, end) if keepends and end else (line,))]


def _divmod(x: Any, y: Any) -> tuple[Any, Any]:
    if y == 0:
        raise Error("IRC424", f"{x} is divided by zero")
    quotient, rest = divmod(x, y)
    return (quotient, rest) if isinstance(quotient, float) else (wrapped(quotient), rest)


def factorial(n: int) -> int:
    if not 0 <= n <= 20:  # 21! does not fit into 64 bits
        raise Error("IRC424", f"{n}! is not an integer of 64 bits")
    return math.factorial(n)


_TESTS = "isalnum isalpha isdecimal isdigit islower isnumeric isprintable isspace istitle isupper".split()


table(
    dim=one(lambda x: x.ndim),
    numel=one(lambda x: x.size),
    storage_offset=layout.offset_of,
    element_size=one(lambda x: x.itemsize),
    is_contiguous=layout.is_contiguous,
    is_floating_point=_predicate(lambda x: is_floating(x.dtype)),
    is_complex=_predicate(lambda x: x.dtype.kind == "c"),
    is_nonzero=_predicate(item),
    Bool=one(lambda x: bool(item(x))),
    Complex=two(lambda x, imaginary=0: complex(item(x), item(imaginary))),
    FloatImplicit=one(lambda x: Float(ScalarImplicit(x))),
    result_type=two(lambda x, y: number_of(result_type(x, y))),
    get_device=one(lambda x: -1),
    device=two(lambda kind, index=None: kind if index is None else f"{kind}:{index}"),
    is_grad_enabled=lambda: False,
    is_autocast_enabled=lambda: False,
    _size_if_not_equal=two(lambda a, b: None if list(a) == list(b) else list(a)),
    __is__=_is,
    __isnot__=two(lambda x, y: not _is(x, y)),
    __not__=operator.not_,
    __range_length=_range_length,
    __derive_index=three(lambda index, start, step: wrapped(start + index * step)),
    __round_to_zero_floordiv=_rounded_to_zero,
    count=_count,
    ord=ord,
    chr=chr,
    lower=str.lower,
    upper=str.upper,
    join=two(lambda separator, parts: separator.join(parts)),
    startswith=three(lambda x, part, start=0, end=-1: part_of(x, start, end).startswith(part)),
    endswith=three(lambda x, part, start=0, end=-1: part_of(x, start, end).endswith(part)),
    **{name: partial(_of_ascii, getattr(str, name)) for name in _TESTS},
    **{name: one(getattr(str, name)) for name in ("capitalize", "swapcase", "title")},
    find=partial(_sought, str.find, False),
    rfind=partial(_sought, str.rfind, False),
    rindex=partial(_sought, str.rfind, True),
    center=partial(_filled, str.center),
    ljust=partial(_filled, str.ljust),
    rjust=partial(_filled, str.rjust),
    zfill=two(lambda x, width: _filled(str.rjust, x, width, "0")),  # a sign stays behind the zeros, in torch
    strip=partial(_stripped, str.strip),
    lstrip=partial(_stripped, str.lstrip),
    rstrip=partial(_stripped, str.rstrip),
    replace=three(lambda x, old, new, most=-1: x.replace(old, new, most)),
    partition=partial(_parts, str.partition),
    rpartition=partial(_parts, str.rpartition),
    hex=one(hex),
    bin=one(bin),
    oct=one(oct),
    divmod=_divmod,
    degrees=one(lambda x: math.degrees(x)),
    radians=one(lambda x: math.radians(x)),
    fabs=one(lambda x: math.fabs(x)),
    modf=one(lambda x: math.modf(x)),
)
