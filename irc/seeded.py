"""Random but repeatable values for the inputs of a model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from irc.dimensions import computed_size
from irc.errors import Error
from irc.ir import types
from irc.ir.fixed_sizes import sizes_text
from irc.ir.limits import MAX_RANK
from irc.ir.types import DType, ListType, OptionalType, Shape, TensorType, TupleType, Type
from irc.runtime.arguments import Argument
from irc.runtime.values import is_array, is_sequence

Array = np.ndarray[Any, np.dtype[Any]]

_HOLDERS = (ListType, OptionalType, TupleType)

MAX_ELEMENTS = 2**28
"""Larger inputs are not made up: a model may state any size."""

LETTERS = np.array(list("abcdefgh"), object)
"""The strings that are made up."""

_SINGLE: dict[Type, TensorType] = {
    types.INT: TensorType(DType.INT64, ()),
    types.FLOAT: TensorType(DType.DOUBLE, ()),
    types.BOOL: TensorType(DType.BOOL, ()),
    types.COMPLEX: TensorType(DType.COMPLEX128, ()),
    types.STR: TensorType(DType.STRING, ()),
}
"""Numbers and strings that are no tensors, as the tensors that they are drawn as."""


def seeded_inputs(arguments: Iterable[Argument], seed: int, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
    """A value for each input that a caller must give, by name.

    Floats are normally distributed around 0 with deviation 1; from rank 3 on, part of that is one offset a channel
    (axis 1), so that two seeds still differ after a network has averaged over all positions. Integers lie in [0, 8),
    strings are one of eight letters. A list has two elements, a list in a list one.

    Args:
        arguments: the inputs; optional ones are left out. They must be numbers or strings, tensors of them with a
            known rank, or lists and tuples of these.
        seed: the same seed gives the same values.
        sizes: sizes of named dimensions; those not given here are as `assumed_sizes` says, unnamed ones 1.

    Raises:
        Error: IRC102, an input is something else, such as an object, has no shape or too many dimensions, or is too
            large.
    """
    rng = np.random.default_rng(seed)
    drawn = [argument for argument in arguments if not argument.optional]
    assumed = assumed_sizes(drawn, sizes)
    return {argument.name: _draw(rng, argument.type, assumed, argument.where) for argument in drawn}


def can_be_made_up(type: Type) -> bool:
    """Whether `seeded_inputs` has values of this type, if they are not too large."""
    if isinstance(type, _HOLDERS):
        return all(map(can_be_made_up, type.inner))
    tensor = _SINGLE.get(type, type)
    return tensor.dtype is not None and tensor.shape is not None


def assumed_sizes(arguments: Iterable[Argument], sizes: Mapping[str, int] | None = None) -> dict[str, int]:
    """The named dimensions of ``arguments`` with the sizes that `seeded_inputs` gives them.

    These are the sizes in ``sizes``; else the value of a name that is a formula of others (``past + new``); else 1.
    ``sizes`` may have names that occur only in formulas, because they themselves have been replaced by numbers.
    """
    given = sizes or {}
    names = dict.fromkeys(name for argument in arguments for name in _names(argument.type))
    single = {**dict.fromkeys(names, 1), **given}
    found = {name: given.get(name, computed_size(name, single)) for name in names}
    return {name: 1 if size is None else size for name, size in found.items()}


def given_sizes(arguments: Iterable[Argument], given: Mapping[str, Any]) -> dict[str, int]:
    """The named dimensions of those of ``arguments`` that ``given`` has arrays for, with the sizes of these arrays."""
    found = (size for a in arguments if a.name in given for size in _sizes_of(given[a.name], a.type))
    return dict(found)


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


def _names(type: Type) -> Iterator[str]:
    """The names of dimensions of the tensors that `_draw` makes."""
    for part in type.inner if isinstance(type, _HOLDERS) else ():
        yield from _names(part)
    yield from (d for d in type.shape or () if isinstance(d, str))


def _draw(rng: np.random.Generator, type: Type, sizes: Mapping[str, int], where: str, elements: int = 2) -> Any:
    """A value of ``type``; lists have ``elements`` elements."""
    if isinstance(type, OptionalType):
        return _draw(rng, type.elem, sizes, where, elements)
    if isinstance(type, _HOLDERS):
        parts = type.inner * elements if isinstance(type, ListType) else type.inner
        drawn = [_draw(rng, part, sizes, where, elements=1) for part in parts]
        return drawn if isinstance(type, ListType) else tuple(drawn)
    tensor = _SINGLE.get(type, type)
    if tensor.dtype is None or tensor.shape is None:
        message = "only numbers, strings, tensors of them whose rank is known, and lists of these can be made up"
        raise Error("IRC102", f"{message}: not {type}", where)
    array = _draw_tensor(rng, tensor.dtype, tensor.shape, sizes, where)
    return array.item() if type in _SINGLE else array


def _draw_tensor(
    rng: np.random.Generator, dtype: DType, declared: Shape, sizes: Mapping[str, int], where: str
) -> Array:
    shape = [d if isinstance(d, int) else sizes[d] if isinstance(d, str) else 1 for d in declared]
    if len(shape) > MAX_RANK:
        raise Error("IRC102", f"it has {len(shape)} dimensions; at most {MAX_RANK} are possible", where)
    if math.prod(shape) > MAX_ELEMENTS:
        elements = f"a tensor of shape {shape} has {math.prod(shape)} elements"
        raise Error("IRC102", f"{elements}; at most {MAX_ELEMENTS} are made up", where)
    if dtype is DType.STRING:
        return np.asarray(LETTERS[rng.integers(0, len(LETTERS), shape)], object)
    if dtype is DType.BOOL or dtype.is_integer:
        drawn = rng.integers(0, 2 if dtype is DType.BOOL or dtype.bits < 4 else 8, shape)
    elif len(shape) < 3:
        drawn = rng.normal(size=shape)
    else:
        drawn = 0.8 * rng.normal(size=shape) + 0.6 * rng.normal(size=[*shape[:2], *[1] * len(shape[2:])])
    if dtype is DType.FLOAT8E8M0:  # has no sign
        drawn = np.abs(drawn)
    if dtype.numpy.kind == "c":
        drawn = drawn + 1j * rng.normal(size=shape)
    return np.asarray(drawn).astype(dtype.numpy)
