"""Where in a tensor a view of it lies: strided boxes whose bounds are numbers or expressions.

The elements of a tensor have coordinates in its *index space*. A view shows elements whose coordinates are, along some
axes, known to lie in a `Span`. Two views share no element if along one axis their spans are disjoint.

Everything here fails closed. A number that is not known is None, and a bound that is None bounds nothing. A dimension
that is not known has no axis. A rule states only what it knows for certain: without its facts, the view may show any
elements of its operand, in any order.

Records of view operators have a `RegionRule` for what they show of their first operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import gcd
from typing import Any, NamedTuple, TypeAlias, cast

from irc.ir.constants import constant_value
from irc.ir.node import Node
from irc.ir.polynomials import Polynomial, Size, UnknownSize, is_size, minus, plus, times, unknown_size
from irc.ir.tensor import Tensor
from irc.ir.types import INT, NONE, ListType
from irc.ir.value import Value

_MOST_DIMS = 8
"""Dimensions further from the first, or from the last, are not known."""

_DEEPEST = 8
"""How many sums and products deep numbers are looked into."""

_LARGEST = 1 << 15
"""The largest factor of a symbol. Sizes are far below 2^47, so no such sum exceeds 64 bits, where integers wrap."""

Axis: TypeAlias = tuple[Value, int]
"""A dimension of the index space of a value; from -1 on, counted from the last one."""


class Symbol(NamedTuple):
    """An integer that is not a constant.

    Attributes:
        of: the value that it is, or the tensor or list that it belongs to.
        what: ``value``, an integer of the graph; ``count``, likewise, and at least 0; ``size``, how many places there
            are along ``axis``; ``clamped``, the place that ``number`` is as a bound of a slice; ``wrapped``, the
            place that ``number`` is as an index; ``length``, that of piece ``number`` of a list. All but ``value``
            are at least 0.
        axis: the axis that it is about.
        number: an expression that it is about.
    """

    of: Value
    what: str
    axis: Axis | None = None
    number: Size = 0

    def values(self) -> Iterator[Value]:
        """The values that it depends on."""
        yield self.of
        if self.axis is not None:
            yield self.axis[0]
        yield from values_of(self.number)


def _symbol(of: Value, what: str, axis: Axis | None = None, number: Size = 0) -> Size:
    return unknown_size(Symbol(of, what, axis, number), 0)


def _symbols(size: Size) -> list[Symbol]:
    if not isinstance(size, Polynomial):
        return []
    return [of.value for term, _ in size.terms for of, _ in term if isinstance(of, UnknownSize)]


def values_of(size: Size) -> Iterator[Value]:
    """The values that a number depends on."""
    for symbol in _symbols(size):
        yield from symbol.values()


def quantity(value: Value, depth: int = 0) -> Size:
    """The integer that ``value`` is, in terms of values of the graph; None if it may be something else."""
    if value.type != INT:
        return None
    node, found = value.node, constant_value(value)
    if type(found) is int:
        return found
    if node is not None and node.kind in _ARITHMETIC and len(node.inputs) == 2 and depth < _DEEPEST:
        a, b = (quantity(v, depth + 1) for v in node.inputs)
        number = _ARITHMETIC[node.kind](a, b)
        if number is not None and (not isinstance(number, Polynomial) or number.largest <= _LARGEST):
            return number
    return _symbol(value, "count" if _counts(value) else "value")


def _product(a: Size, b: Size) -> Size:
    return times(a, b) if isinstance(a, int) or isinstance(b, int) else None


_ARITHMETIC: Mapping[str, Callable[[Size, Size], Size]] = {"aten::add": plus, "aten::sub": minus, "aten::mul": _product}


def _counts(value: Value) -> bool:
    """Whether ``value`` is a size or the number of an iteration: at least 0."""
    if value.node is not None:
        return value.node.kind in ("aten::size", "aten::len", "aten::dim", "aten::numel")
    return value.index == 0 and value.definer is not None and value.definer.kind == "prim::Loop"


def is_from_0(size: Size) -> bool:
    """Whether a number is at least 0 for certain."""
    return is_size(size) and all(symbol.what != "value" for symbol in _symbols(size))


def _is_negative(size: Size) -> bool:
    return size is not None and is_from_0(minus(-1, size))


def text_of(size: Size) -> str:
    """A number as people write it: ``%n + 1``."""
    if not isinstance(size, Polynomial):
        return str(size)
    terms: list[tuple[bool, str]] = []
    for term, n in size.terms:
        factors = sorted(_text(of.value) for of, power in term for _ in range(power) if isinstance(of, UnknownSize))
        terms.append((not factors, "*".join([str(n)] * (n != 1 or not factors) + factors)))
    return " + ".join(text for _, text in sorted(terms)).replace("+ -", "- ")


def _text(symbol: Symbol) -> str:
    name = f"%{symbol.of.name}"
    if symbol.what in ("clamped", "wrapped"):
        return text_of(symbol.number)
    if symbol.what == "length":
        return f"length {text_of(symbol.number)} of {name}"
    return "size" if symbol.what == "size" else name


# -- spans -------------------------------------------------------------------


class Span(NamedTuple):
    """Places along an axis.

    Attributes:
        of: the view whose own places along the axis the next cut counts.
        lows: no place is before one of these.
        highs: all places are before each of these.
        start: the place that is number 0 of ``of``, if there is any; None if it is not known.
        step: number q is at ``start + q * step``.
    """

    of: Value
    lows: tuple[Size, ...] = ()
    highs: tuple[Size, ...] = ()
    start: Size = 0
    step: int = 1

    def part(self, made: Value, low: Size, high: Size, start: Size, step: int) -> Span:
        """The span of every ``step``-th of the places of ``of``, from number ``low`` to before ``high``.

        The first, if there is any, is number ``start``. ``made`` shows them. None bounds nothing.
        """
        first, end = self._place(low), self._place(plus(high, -1))
        lows = self.lows if first is None else (*self.lows, first)
        highs = self.highs if end is None else (*self.highs, plus(end, 1))
        return Span(made, lows, highs, self._place(start), self.step * step)

    def _place(self, number: Size) -> Size:
        return plus(self.start, times(number, self.step)) if number is not None and self.start is not None else None

    def is_apart(self, other: Span) -> bool:
        """Whether no place is in both, for certain."""
        if any(is_from_0(minus(low, high)) for high in self.highs for low in other.lows):
            return True
        if any(is_from_0(minus(low, high)) for high in other.highs for low in self.lows):
            return True
        common, distance = gcd(self.step, other.step), minus(self.start, other.start)
        return common > 1 and isinstance(distance, int) and distance % common != 0

    def values(self) -> Iterator[Value]:
        """The values that it depends on."""
        for number in (*self.lows, *self.highs, self.start):
            yield from values_of(number)

    def __str__(self) -> str:
        low = text_of(self.lows[-1]) if self.lows else "0"
        high = text_of(self.highs[-1]) if self.highs else "end"
        return f"[{low}, {high})" + (f" by {self.step}" if self.step > 1 else "")


class Region(NamedTuple):
    """What a view shows of a tensor.

    Attributes:
        spans: in which places it lies along the axes of which something is known.
        dims: the axis of each dimension of the view of which that is known; negative ones are counted from the last.
        once: whether no two elements of the view are in one place.
    """

    spans: Mapping[Axis, Span]
    dims: Mapping[int, Axis]
    once: bool = True

    @staticmethod
    def whole(value: Value) -> Region:
        """All of ``value``."""
        return Region({}, _axes(value))

    def renumbered(self, made: Value) -> Region:
        """The same elements in ``made``, in unknown dimensions: its own index space, if it shows each once."""
        return Region(self.spans, _axes(made) if self.once else {}, self.once)

    def repeated(self) -> Region:
        """Some of the same elements in unknown dimensions, some of them several times."""
        return Region(self.spans, {}, False)

    def on_side(self, dim: int) -> dict[int, Axis]:
        """The axes of dimensions counted from the side that ``dim`` is counted from.

        Which dimensions -1 and 1 are the same one depends on the rank, which is not known.
        """
        return {d: axis for d, axis in self.dims.items() if (d < 0) == (dim < 0)}

    def cut(self, made: Value, dim: int | None, low: Size, high: Size, start: Size, step: int = 1) -> Region:
        """The part along ``dim`` that `Span.part` describes, as ``made`` shows it."""
        axis = None if dim is None else self.dims.get(dim)
        if dim is None or axis is None:
            return self._replace(dims={} if dim is None else self.on_side(dim))
        span = self.spans.get(axis, Span(axis[0])).part(made, low, high, start, step)
        return self._replace(spans={**self.spans, axis: span}, dims=self.on_side(dim))

    def sliced(self, made: Value, dim: int | None, low: Size, high: Size, step: int = 1) -> Region:
        """What a slice from ``low`` to ``high`` shows: both may count from the end, and are clamped."""
        of = self._numbering(dim)
        if of is None:
            return self.cut(made, dim, None, None, None)
        first, start = of.bound(low)
        return self.cut(made, dim, first, of.bound(high)[0], start, step)

    def from_index(self, made: Value, dim: int | None, number: Size, count: Size, step: int = 1) -> Region:
        """``count`` places from index ``number`` on, from the end if it is below 0; all of them must exist."""
        of = self._numbering(dim)
        at = None if of is None else of.place(number)
        return self.cut(made, dim, at, plus(at, count), at, step)

    def at_index(self, made: Value, dim: int | None, number: Size) -> Region:
        """The place with index ``number``, without the dimension."""
        return self.from_index(made, dim, number, 1, 0).without(dim)

    def without(self, dim: int | None) -> Region:
        """The same elements without ``dim``, of which there is one place."""
        if dim is None:
            return self._replace(dims={})
        dims = self.on_side(dim)
        dims.pop(dim, None)
        toward = -1 if dim >= 0 else 1
        return self._replace(dims={d + toward * (abs(d) > abs(dim)): axis for d, axis in dims.items()})

    def _numbering(self, dim: int | None) -> _Numbering | None:
        axis = None if dim is None else self.dims.get(dim)
        return None if axis is None else _Numbering(self.spans[axis].of if axis in self.spans else axis[0], axis)


class _Numbering(NamedTuple):
    """The places of a view along an axis, numbered from 0."""

    of: Value
    axis: Axis

    def bound(self, number: Size) -> tuple[Size, Size]:
        """The place to compare others with for a bound of a slice, and the clamped place."""
        if number is None or is_from_0(number):
            return number, number
        clamped = _symbol(self.of, "clamped", self.axis, number)
        return (plus(_symbol(self.of, "size", self.axis), number) if _is_negative(number) else clamped), clamped

    def place(self, number: Size) -> Size:
        """A number as an index of a place that exists."""
        if number is None or is_from_0(number):
            return number
        if _is_negative(number):
            return plus(_symbol(self.of, "size", self.axis), number)
        return _symbol(self.of, "wrapped", self.axis, number)


def _axes(value: Value) -> dict[int, Axis]:
    return {dim: (value, dim) for dim in range(-_MOST_DIMS, _MOST_DIMS)}


RegionRule: TypeAlias = Callable[[Node, Value, int, Region], "Region | None"]
"""What a view shows, of its node, the view (a result or an element of a list that is the result), its number among
these, and what the first operand shows. None: nothing is known."""

# -- arguments ---------------------------------------------------------------


def _number(node: Node, position: int, default: Size) -> Size:
    """The integer that an argument is, or ``default`` if it is absent; None if it is not known."""
    value = node.inputs[position] if position < len(node.inputs) else None
    return default if value is None or value.type == NONE else quantity(value)


def _constant(node: Node, position: int, default: int | None = None) -> int | None:
    found = _number(node, position, default)
    return found if isinstance(found, int) else None


def _numbers(value: Value) -> Sequence[Size] | None:
    """The integers of a list that is written out, or of a constant tensor; None if there is neither."""
    source = value.made_by("prim::ListConstruct")
    if source is not None:
        return [quantity(v) for v in source.inputs]
    found = constant_value(value)
    if isinstance(found, Tensor):
        array = found.numpy() if found.numel <= _MOST_DIMS * 2 else None
        found = array.tolist() if array is not None and array.ndim == 1 and array.dtype.kind in "iu" else None
    items = cast("Sequence[Any]", found) if isinstance(found, list | tuple) else None
    return items if items is not None and all(type(n) is int for n in items) else None


def _is_integers(value: Value) -> bool:
    return isinstance(value.type, ListType) and value.type.elem == INT


# -- rules of aten -------------------------------------------------------------


def same(node: Node, made: Value, number: int, shown: Region) -> Region:
    """All elements in the same dimensions."""
    return shown


def renumbered(node: Node, made: Value, number: int, shown: Region) -> Region:
    """Elements, each at most once, in other dimensions."""
    return shown.renumbered(made)


def repeated(node: Node, made: Value, number: int, shown: Region) -> Region:
    """Some of the elements, some of them several times."""
    return shown.repeated()


def viewed(node: Node, made: Value, number: int, shown: Region) -> Region | None:
    """All elements in other dimensions; nothing is known of a view as another element type."""
    return shown.renumbered(made) if _is_integers(node.inputs[1]) else None


def select(node: Node, made: Value, number: int, shown: Region) -> Region:
    """One place along a dimension, which goes."""
    return shown.at_index(made, _constant(node, 1), _number(node, 2, None))


def slice_(node: Node, made: Value, number: int, shown: Region) -> Region:
    """Places from a start to an end, with a step."""
    step = _constant(node, 4, 1)
    if step is None or step < 1:
        return shown.renumbered(made)
    return shown.sliced(made, _constant(node, 1, 0), _number(node, 2, 0), _number(node, 3, None), step)


def narrow(node: Node, made: Value, number: int, shown: Region) -> Region:
    """A number of places from a start on."""
    return shown.from_index(made, _constant(node, 1), _number(node, 2, None), _number(node, 3, None))


def unbind(node: Node, made: Value, number: int, shown: Region) -> Region:
    """One place along a dimension, which goes, for each element of a list."""
    return shown.at_index(made, _constant(node, 1, 0), number)


def split(node: Node, made: Value, number: int, shown: Region) -> Region:
    """A piece of a given length, or one of several lengths."""
    dim, by = _constant(node, 2, 0), node.inputs[1]
    if not _is_integers(by):
        return _piece(quantity(by), made, number, dim, shown)
    return _of_lengths(_numbers(by), made, number, dim, shown)


def chunk(node: Node, made: Value, number: int, shown: Region) -> Region:
    """One of a number of pieces of equal length, of which the last may be shorter."""
    return _piece(_symbol(node.outputs[0], "length"), made, number, _constant(node, 2, 0), shown)


def tensor_split(node: Node, made: Value, number: int, shown: Region) -> Region:
    """One of a number of pieces, side by side, or of those that end at given places."""
    dim, by = _constant(node, 2, 0), node.inputs[1]
    if by.type == INT:
        lengths = [_symbol(node.outputs[0], "length", None, i) for i in range(number + 1)]
        return _of_lengths(lengths, made, number, dim, shown)
    ends = _numbers(by) if _is_integers(by) else None
    if ends is None or number > len(ends):
        return shown.renumbered(made)
    bounds = [0, *ends, None]
    return shown.sliced(made, dim, bounds[number], bounds[number + 1])


def _piece(length: Size, made: Value, number: int, dim: int | None, shown: Region) -> Region:
    """A piece of which all before it have ``length``, and it has no more."""
    low = times(length, number)
    return shown.cut(made, dim, low, plus(low, length), low)


def _of_lengths(lengths: Sequence[Size] | None, made: Value, number: int, dim: int | None, shown: Region) -> Region:
    """A piece behind those of the lengths before."""
    if lengths is None or number >= len(lengths) or not all(map(is_from_0, lengths)):
        return shown.renumbered(made)
    low, high = list(accumulate(lengths[: number + 1], plus, initial=0))[-2:]
    return shown.cut(made, dim, low, high, low)


def unsqueeze(node: Node, made: Value, number: int, shown: Region) -> Region:
    """All elements, with a dimension of one place more."""
    dim = _constant(node, 1)
    if dim is None:
        return shown.renumbered(made)
    from_here = 1 if dim >= 0 else -1
    dims = {d + from_here * (abs(d) >= abs(dim)): axis for d, axis in shown.on_side(dim).items()}
    return shown._replace(dims=dims)


def transpose(node: Node, made: Value, number: int, shown: Region) -> Region:
    """All elements, with two dimensions swapped."""
    first, second = _constant(node, 1), _constant(node, 2)
    if first is None or second is None or (first < 0) != (second < 0):
        return shown.renumbered(made)
    swap = {first: second, second: first}
    return shown._replace(dims={swap.get(d, d): axis for d, axis in shown.on_side(first).items()})


def permute(node: Node, made: Value, number: int, shown: Region) -> Region:
    """All elements, with dimensions in another order."""
    return _in_order(_numbers(node.inputs[1]), made, shown)


def _in_order(order: Sequence[Size] | None, made: Value, shown: Region) -> Region:
    rank = len(order or ())
    known = [n % rank for n in order or () if isinstance(n, int) and -rank <= n < rank]
    if sorted(known) != list(range(rank)):
        return shown.renumbered(made)
    # All dimensions are listed, so the rank is known, and which of those counted from the last they are.
    axes = [shown.dims.get(n, shown.dims.get(n - rank)) for n in known]
    dims = {d: axis for i, axis in enumerate(axes) if axis is not None for d in (i, i - rank)}
    return shown._replace(dims=dims)


# -- rules of ONNX -------------------------------------------------------------


def onnx_slice(node: Node, made: Value, number: int, shown: Region) -> Region:
    """A box, of constant bounds with steps above 0."""
    starts, ends, axes, steps = (_listed(node, i, name) for i, name in enumerate(_SLICE, 1))
    if not starts or ends is None or axes is None or steps is None:
        return shown.renumbered(made)
    axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    is_even = len(starts) == len(ends) == len(axes) == len(steps) == len(set(axes))
    if not is_even or min(steps) < 1 or min(axes) < 0 <= max(axes):  # -1 may be an axis that is named already
        return shown.renumbered(made)
    for low, high, axis, step in zip(starts, ends, axes, steps):
        shown = shown.sliced(made, axis, low, high, step)
    return shown


_SLICE = ("starts", "ends", "axes", "steps")


def _listed(node: Node, position: int, name: str) -> list[int] | None:
    """Integers of an attribute or a constant argument; empty if there is neither; None if not known."""
    value = node.inputs[position] if position < len(node.inputs) else None
    is_there = value is not None and value.type != NONE
    if name in node.attributes:
        found: Sequence[Size] | None = None if is_there else node.attributes[name]
    else:
        found = _numbers(value) if value is not None and is_there else []
    return None if found is None or not all(type(n) is int for n in found) else cast("list[int]", list(found))


def onnx_split(node: Node, made: Value, number: int, shown: Region) -> Region:
    """A piece, by its length or by the number of pieces."""
    dim = node.attributes.get("axis", 0)
    lengths = _listed(node, 1, "split")
    if type(dim) is not int or lengths is None:
        return shown.renumbered(made)
    if not lengths:
        return _piece(_symbol(node.outputs[0], "length"), made, number, dim, shown)
    return _of_lengths(lengths, made, number, dim, shown)


def onnx_transpose(node: Node, made: Value, number: int, shown: Region) -> Region:
    """All elements, with axes in another order."""
    return _in_order(node.attributes.get("perm"), made, shown)


CUTTING = frozenset(
    {select, slice_, narrow, unbind, split, chunk, tensor_split, onnx_slice, onnx_split}  # all others only rearrange
)
"""The rules of views that may be known to be less than their operand."""
