"""Random but repeatable input values, within the domains that the inputs' readers require."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import MAX_RANK, MAX_SIZE, types
from irc.ir.declarations import sizes_text
from irc.ir.types import DType, ListType, OptionalType, Shape, TensorType, TupleType, Type
from irc.runtime.arguments import Argument
from irc.runtime.values import is_array, is_sequence

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class Domain:
    """What the elements of one input may be. Readers only ever narrow it.

    Attributes:
        low: the least integer; None if no reader minds.
        high: the greatest integer; None if no reader minds.
        compared: constants that the elements are compared with.
        is_mask: whether 0 and 1 tell what counts.
        is_positive: whether a reader takes logarithms or roots, or divides by it.
        is_arithmetic: whether all readers compute with the elements, whatever these are.
        distinct: the axis along which no two elements may be equal; None if they may.
        elements: of a small tensor that holds a shape, axes or the like, all its elements; else None.
    """

    low: int | None = None
    high: int | None = None
    compared: list[int] = field(default_factory=list[int])
    is_mask: bool = False
    is_positive: bool = False
    is_arithmetic: bool = True
    distinct: int | None = None
    elements: list[float] | None = None

    def between(self, low: int, high: int) -> None:
        """Narrow it to integers from ``low`` to ``high``."""
        self.low = low if self.low is None else max(low, self.low)
        self.high = high if self.high is None else min(high, self.high)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the greatest integer, if a reader minds."""
        if self.low is None or self.high is None:
            return None
        return self.low, max(self.low, self.high)


MAX_ELEMENTS = 2**28
"""Larger inputs are not made up: a model may state any size."""

ANYTHING = Domain()

_EDGES = (1.0, -1.0, 0.5, -6.5, 6.5, 20.0, -20.0, 100.0, -100.0, 2.0**-140)
"""Bounds that activations clip to and where they saturate; one is below the normal numbers of float32."""

LETTERS = np.array(list("abcdefgh"), object)
"""The strings that are made up."""

_SINGLE: dict[Type, TensorType] = {
    types.INT: TensorType(DType.INT64, ()),
    types.FLOAT: TensorType(DType.DOUBLE, ()),
    types.BOOL: TensorType(DType.BOOL, ()),
    types.COMPLEX: TensorType(DType.COMPLEX128, ()),
    types.STR: TensorType(DType.STRING, ()),
}
"""Numbers and strings that are not tensors, as the tensors that they are drawn as."""


class Style(Enum):
    """Which values are drawn where readers leave that open.

    Attributes:
        PLAIN: floats that are normally distributed, integers in [0, 8).
        MIXED: small integers and zeros of either sign among the floats, negative numbers among the integers.
        EDGES: MIXED, and some numbers that are large or tiny.
    """

    PLAIN = "plain"
    MIXED = "mixed"
    EDGES = "edges"


def seeded_inputs(
    arguments: Iterable[Argument],
    seed: int,
    sizes: Mapping[str, int] | None = None,
    domains: Mapping[str, Domain] | None = None,
    style: Style = Style.PLAIN,
) -> dict[str, Any]:
    """A value for each input that a caller must give, by name.

    Floats are normally distributed around 0 with deviation 1; from rank 3 on, part of that is one offset a channel
    (axis 1), so that two seeds still differ after a network has averaged over all positions. Integers lie in [0, 8),
    strings are one of eight letters. A list has two elements, a list in a list one.

    Args:
        arguments: the inputs; optional ones are left out. They must be numbers or strings, tensors of them with a
            known rank, or lists and tuples of these.
        seed: the same seed gives the same values.
        sizes: sizes of named dimensions; those not given here are as `assumed_sizes` says, unnamed ones 1.
        domains: what the elements of inputs may be, by name, as `irc.tools.random_inputs.readers.domains` finds it.
        style: which values are drawn otherwise.

    Raises:
        Error: IRC102, an input is something else, such as an object, has no shape or too many dimensions, or is too
            large.
    """
    rng = np.random.default_rng(seed)
    drawn = [argument for argument in arguments if not argument.optional]
    assumed = assumed_sizes(drawn, sizes)
    known = domains or {}
    return {
        a.name: _draw(_Source(rng, assumed, a.where, known.get(a.name, ANYTHING), style, seed), a.type) for a in drawn
    }


def can_be_made_up(type: Type) -> bool:
    """Whether `seeded_inputs` has values of this type, if they are not too large."""
    if isinstance(type, HOLDERS):
        return all(map(can_be_made_up, type.inner))
    tensor = _SINGLE.get(type, type)
    return tensor.dtype is not None and tensor.shape is not None


@dataclass(frozen=True)
class _Source:
    """What a value is drawn from, and for which input."""

    rng: np.random.Generator
    sizes: Mapping[str, int]
    where: str
    domain: Domain
    style: Style
    seed: int


def _draw(source: _Source, type: Type, elements: int = 2) -> Any:
    """A value of ``type``; lists have ``elements`` elements."""
    if isinstance(type, OptionalType):
        return _draw(source, type.elem, elements)
    if isinstance(type, HOLDERS):
        parts = type.inner * elements if isinstance(type, ListType) else type.inner
        drawn = [_draw(source, part, elements=1) for part in parts]
        return drawn if isinstance(type, ListType) else tuple(drawn)
    tensor = _SINGLE.get(type, type)
    if tensor.dtype is None or tensor.shape is None:
        message = "only numbers, strings, tensors of them whose rank is known, and lists of these can be made up"
        raise Error("IRC102", f"{message}: not {type}; give a value for it (--input)", source.where)
    array = _draw_tensor(source, tensor.dtype, tensor.shape)
    return array.item() if type in _SINGLE else array


def _draw_tensor(source: _Source, dtype: DType, declared: Shape) -> Array:
    rng = source.rng
    shape = [d if isinstance(d, int) else source.sizes[d] if isinstance(d, str) else 1 for d in declared]
    if len(shape) > MAX_RANK:
        raise Error("IRC102", f"it has {len(shape)} dimensions; at most {MAX_RANK} are possible", source.where)
    if math.prod(shape) > MAX_ELEMENTS:
        elements = f"a tensor of shape {shape} has {math.prod(shape)} elements"
        message = (
            f"{elements}; at most {MAX_ELEMENTS} are made up: give it (--input), or smaller sizes (--dim, --shape)"
        )
        raise Error("IRC102", message, source.where)
    if dtype is DType.STRING:
        return np.asarray(LETTERS[rng.integers(0, len(LETTERS), shape)], object)
    if source.domain.elements is not None and math.prod(shape) == len(source.domain.elements):
        return np.array(source.domain.elements).reshape(shape).astype(dtype.numpy)
    if source.domain.is_mask and source.domain.bounds is None and (shape or dtype is not DType.BOOL):
        return _mask(rng, shape).astype(dtype.numpy)
    if dtype is DType.BOOL or dtype.is_integer:
        return _integers(source, dtype, shape).astype(dtype.numpy)
    if len(shape) < 3:
        drawn = rng.normal(size=shape)
    else:
        drawn = 0.8 * rng.normal(size=shape) + 0.6 * rng.normal(size=[*shape[:2], *[1] * len(shape[2:])])
    if source.style is not Style.PLAIN:
        drawn = _mixed(rng, np.asarray(drawn), source.style)
    if dtype is DType.FLOAT8E8M0:  # has no sign
        drawn = np.abs(drawn)
    if source.domain.is_positive:
        drawn = np.abs(drawn) + 2.0**-6
    if source.domain.bounds is not None:
        drawn = np.clip(np.rint(drawn), *source.domain.bounds)
    if dtype.numpy.kind == "c":
        drawn = drawn + 1j * rng.normal(size=shape)
    return np.asarray(drawn).astype(dtype.numpy)


def _mixed(rng: np.random.Generator, drawn: Array, style: Style) -> Array:
    """``drawn`` with some integers and zeros of either sign among it, and extreme numbers at the edges."""
    which = rng.uniform(size=list(drawn.shape))
    mixed = np.where(which < 1 / 4, np.rint(2 * drawn), drawn)
    edges = (0.0, -0.0, *_EDGES) if style is Style.EDGES else (0.0, -0.0)
    return np.where(which > 1 - len(edges) / 32, rng.choice(edges, drawn.shape), mixed)


def _mask(rng: np.random.Generator, shape: list[int]) -> Array:
    """Along the last axis ones, then zeros: there is always a one, or all that is masked might be NaN.

    An axis of one element does not count as the last.
    """
    axis = max((i for i, size in enumerate(shape) if size > 1), default=-1)
    if axis < 0:
        return np.ones(shape)
    size = shape[axis]
    lengths = rng.integers((size + 1) // 2, size + 1, [*shape[:axis], *[1] * (len(shape) - axis)])
    lengths.flat[:1] = size - 1  # something is masked
    places = np.arange(size).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(places < np.maximum(lengths, 1), shape).astype(np.float64)


def _integers(source: _Source, dtype: DType, shape: list[int]) -> Array:
    rng, domain, style = source.rng, source.domain, source.style
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape)
    bounds = domain.bounds
    if bounds is None and domain.compared and not shape:
        return np.array(domain.compared[source.seed % len(domain.compared)])
    least, most = _limits(dtype)
    if bounds is None:
        low, high = 0, 1 if dtype.bits < 4 else 7
        if domain.is_positive:
            low = 1
        elif domain.is_arithmetic and style is not Style.PLAIN:
            low, high = (least, most) if dtype.bits <= 8 else (-4, 9)
    else:
        low, high = bounds
    low, high = max(low, least), max(low, min(high, most))
    if domain.distinct is not None and shape:
        return _distinct(rng, shape, domain.distinct, low, high)
    drawn = rng.integers(low, high + 1, shape)
    if style is not Style.PLAIN:
        inside = [low, high, *(n for n in domain.compared if low <= n <= high)]
        drawn = np.where(rng.random(shape) < 1 / 6, rng.choice(inside, shape), drawn)
    return drawn


def _limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest number of an integer type, of those below 2**62."""
    signed = dtype.name.startswith("I")
    bits = min(dtype.bits, 62) - signed
    return -(2**bits) if signed else 0, 2**bits - 1


def _distinct(rng: np.random.Generator, shape: list[int], axis: int, low: int, high: int) -> Array:
    """Indices that differ along ``axis``, as far as possible: scattering twice is ambiguous."""
    axis = axis % len(shape) if -len(shape) <= axis < len(shape) else 0
    count = high - low + 1
    start = int(rng.integers(0, count))
    along = np.arange(shape[axis]).reshape([-1 if i == axis else 1 for i in range(len(shape))])
    return np.broadcast_to(low + (start + along) % count, shape).copy()


# The sizes of named dimensions whose names are formulas: exporters name one ``past + new``, or ``2*n``.


_OPERATOR = re.compile(r"\s*(//|[-+*/])\s*")
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)


def computed_size(name: str, sizes: Mapping[str, int]) -> int | None:
    """The value of ``name``, sums or differences of products and quotients of numbers and ``sizes``.

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
    """The named dimensions of ``arguments`` that ``given`` has arrays for, with these sizes."""
    found = (size for a in arguments if a.name in given for size in _sizes_of(given[a.name], a.type))
    return dict(found)


def sizes_of_shapes(arguments: Iterable[Argument], shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    """The sizes, by name, that inputs of these ``shapes`` have.

    Raises:
        Error: IRC311 an input is not a tensor that is made up, or such a shape does not fit it.
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
