"""Sizes of the named dimensions of made-up inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from irc.errors import Error
from irc.ir.declarations import sizes_text
from irc.ir.limits import MAX_SIZE
from irc.ir.types import ListType, OptionalType, TensorType, TupleType, Type
from irc.runtime.arguments import Argument
from irc.runtime.values import is_array, is_sequence

# The sizes of named dimensions whose names are formulas: exporters name one ``past + new``, or ``2*n``.


_OPERATOR = re.compile(r"\s*(//|[-+*/])\s*")
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)


def computed_size(name: str, sizes: Mapping[str, int]) -> int | None:
    """The value of ``name``: a sum or difference of products and whole quotients of numbers and names in ``sizes``.

    None if it is anything else, such as a name of its own, or its value cannot be a size.
    """
    operands, operators = _OPERATOR.split(name.strip())[::2], _OPERATOR.findall(name)
    values = [int(x) if _NUMBER.fullmatch(x) else sizes.get(x) for x in operands]
    known = [value for value in values if value is not None]
    if not operators or len(known) < len(values):
        return None
    total, sign, product = 0, 1, known[0]
    for operator, value in zip(operators, known[1:], strict=True):
        if operator in "+-":
            total += sign * product
            sign, product = (1 if operator == "+" else -1), value
        elif operator == "*":
            product *= value
        elif value:
            product //= value
        else:
            return None
        if product > MAX_SIZE:
            return None
    total += sign * product
    return total if 0 <= total <= MAX_SIZE else None


HOLDERS = (ListType, OptionalType, TupleType)
"""Types whose values hold others."""


def with_named_sizes(arguments: Iterable[Argument]) -> list[Argument]:
    """``arguments`` with a name, ``x[0]``, for each size of a tensor that has none."""
    return [replace(a, type=_named(a.type, a.name)) for a in arguments]


def _named(type: Type, name: str) -> Type:
    if isinstance(type, OptionalType):
        return OptionalType(_named(type.elem, name))
    if not isinstance(type, TensorType) or type.shape is None or None not in type.shape:
        return type
    return TensorType(type.dtype, tuple(f"{name}[{i}]" if d is None else d for i, d in enumerate(type.shape)))


def assumed_sizes(arguments: Iterable[Argument], sizes: Mapping[str, int] | None = None) -> dict[str, int]:
    """The named dimensions of ``arguments`` with the sizes that `seeded_inputs` gives them.

    These are the sizes in ``sizes``; else the value of a name that is a formula of others (``past + new``); else 1.
    ``sizes`` may have names that occur only in formulas, because they themselves have been replaced by numbers.
    """
    given = sizes or {}
    names = dict.fromkeys(size_names(arguments))
    single = {**dict.fromkeys(names, 1), **given}
    found = {name: given.get(name, computed_size(name, single)) for name in names}
    return {name: 1 if size is None else size for name, size in found.items()}


def free_names(arguments: Iterable[Argument], sizes: Mapping[str, int]) -> list[str]:
    """The names of sizes that may be chosen: neither in ``sizes`` nor formulas of others."""
    names = dict.fromkeys(size_names(arguments))
    single = {**dict.fromkeys(names, 1), **sizes}
    return [name for name in names if name not in sizes and computed_size(name, single) is None]


def given_sizes(arguments: Iterable[Argument], given: Mapping[str, Any]) -> dict[str, int]:
    """The named dimensions of those of ``arguments`` that ``given`` has arrays for, with the sizes of these arrays."""
    found = (size for a in arguments if a.name in given for size in _sizes_of(given[a.name], a.type))
    return dict(found)


def sizes_of_shapes(arguments: Iterable[Argument], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """The sizes, by name, that inputs of these ``shapes`` have.

    Raises:
        Error: IRC311 an input is no tensor that is made up, or such a shape does not fit it.
    """
    named = {argument.name: argument for argument in with_named_sizes(arguments)}
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        argument = named.get(name)
        type = argument.type if argument is not None else None
        tensor = type.elem if isinstance(type, OptionalType) else type
        if not isinstance(tensor, TensorType):
            raise Error("IRC311", f"there is no tensor {name!r} among the inputs that are made up")
        declared = tensor.shape
        if declared is None:
            raise Error("IRC311", f"the rank of {name!r} is not known: give the input itself (--input)")
        if len(declared) != len(shape):
            raise Error(
                "IRC311", f"{name!r} has {len(declared)} dimensions, {tensor}; the shape given has {len(shape)}"
            )
        for axis, (dim, size) in enumerate(zip(declared, shape, strict=True)):
            known = sizes.setdefault(dim, size) if isinstance(dim, str) else dim
            if known != size:
                raise Error("IRC311", f"axis {axis} of {name!r} cannot be {size}: it is {known}, {tensor}")
    return sizes


def _sizes_of(value: Any, type: Type) -> Iterator[tuple[str, int]]:
    """The named dimensions of the tensors in ``value``, which may not be of ``type``, with their sizes."""
    if isinstance(type, OptionalType):
        yield from _sizes_of(value, type.elem)
    elif isinstance(type, ListType | TupleType) and is_sequence(value):
        types = type.inner * len(value) if isinstance(type, ListType) else type.inner
        for part, of in zip(value, types):
            yield from _sizes_of(part, of)
    elif is_array(value):
        yield from ((name, n) for name, n in zip(type.shape or (), value.shape) if isinstance(name, str))


def assumption(sizes: Mapping[str, int]) -> str:
    """How commands and errors name the sizes that were assumed; "" if there are none."""
    return f"assumed {sizes_text(sizes)} (--dim changes that)" if sizes else ""


def size_names(arguments: Iterable[Argument]) -> Iterator[str]:
    """The names of dimensions of the tensors that are made up, some more than once."""
    return (name for argument in arguments for name in _names(argument.type))


def _names(type: Type) -> Iterator[str]:
    for part in type.inner if isinstance(type, HOLDERS) else ():
        yield from _names(part)
    yield from (d for d in type.shape or () if isinstance(d, str))
