"""Where in a tensor a view of it lies: boxes in index spaces, with bounds that are numbers or named.

A view of a view of a tensor is described by one `Span` for each axis along which it is known to be a part. Axes are
those of an *index space*: that of the tensor, or that of a value between it and the view whose elements each show
another place (a reshaped tensor, a diagonal). Two views of one tensor share no element if, along some axis that both
have, their spans are disjoint.

Records of view operators have a `RegionRule` for what they show of their first operand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import gcd
from typing import Any, NamedTuple, TypeAlias, cast

from irc.ir.constants import constant_value, is_constant
from irc.ir.node import Node
from irc.ir.polynomials import Polynomial, Size, UnknownSize, is_size, minus, plus, times
from irc.ir.tensor import Tensor
from irc.ir.types import NONE, ListType, PrimType, TensorType
from irc.ir.value import Value

_MOST_DIMS = 8
"""Later axes of an index space are not told apart."""

_DEEPEST = 8
"""How many sums and products deep numbers are looked into."""

_SIGNED = -1
"""As the axis of an `UnknownSize`: any integer. Other symbols are at least 0."""

_FAR = 1 << 31
"""Bounds from here on are the end of an axis, as exporters write it."""

# -- numbers -----------------------------------------------------------------


def quantity(value: Value, depth: int = 0) -> Size:
    """The number that ``value`` is, in terms of values of the graph; None if it is too long an expression."""
    found = constant_value(value)
    if isinstance(found, Tensor):
        found = found.numpy().item() if found.numel == 1 else None
    if type(found) is int:
        return found
    node = value.node
    if node is not None and node.kind in _ARITHMETIC and len(node.inputs) == 2 and depth < _DEEPEST:
        a, b = (quantity(v, depth + 1) for v in node.inputs)
        return _ARITHMETIC[node.kind](a, b)
    return Polynomial(frozenset({(frozenset({(UnknownSize(value, 0 if _counts(value) else _SIGNED), 1)}), 1)}))


_ARITHMETIC: Mapping[str, Callable[[Size, Size], Size]] = {"aten::add": plus, "aten::sub": minus, "aten::mul": times}


def _counts(value: Value) -> bool:
    """Whether ``value`` is a size or the number of an iteration: at least 0."""
    if value.node is not None:
        return value.node.kind in ("aten::size", "aten::len", "aten::dim")
    return value.index == 0 and value.definer is not None and value.definer.kind == "prim::Loop"


def symbols(size: Size) -> list[Value]:
    """The values that the number depends on."""
    if not isinstance(size, Polynomial):
        return []
    return [of.value for term, _ in size.terms for of, _ in term if isinstance(of, UnknownSize)]


def _at_most(a: Size, b: Size) -> bool:
    """Whether ``a <= b`` for certain."""
    difference = minus(b, a)
    return difference is not None and is_size(difference) and not _may_be_negative(difference)


def _may_be_negative(size: Size) -> bool:
    return isinstance(size, Polynomial) and any(
        isinstance(of, UnknownSize) and of.axis == _SIGNED for term, _ in size.terms for of, _ in term
    )


def written(size: Size) -> str:
    """A number as people write it: ``%n + 1``."""
    if not isinstance(size, Polynomial):
        return "?" if size is None else str(size)
    terms: list[str] = []
    for term, n in size.terms:
        factors = [_name(of) for of, power in term for _ in range(power)]
        terms.append("*".join([str(n)] * (n != 1 or not factors) + sorted(factors)))
    return " + ".join(sorted(terms, key=lambda text: (text.lstrip("-").isdecimal(), text)))


def _name(of: str | UnknownSize) -> str:
    if isinstance(of, str):
        return of
    return f"%{of.value.name}" if isinstance(of.value.type, PrimType) else f"length {of.axis} of %{of.value.name}"


# -- spans -------------------------------------------------------------------


class Bound(NamedTuple):
    """A place on an axis as slices state it: from the end if negative, and clamped to either end.

    Attributes:
        number: the place.
        sign: 1: it is at least 0 for certain; -1: it is negative; 0: it may be either.
    """

    number: Size
    sign: int

    @staticmethod
    def of(number: Size) -> Bound | None:
        """The bound at ``number``; None if that is not known."""
        if number is None:
            return None
        return Bound(number, 1 if _at_most(0, number) else -1 if _at_most(number, -1) else 0)

    def precedes(self, other: Bound) -> bool:
        """Whether this place is ``other`` or before it, for certain, however long the axis is."""
        if self.number == 0 or self == other:
            return True
        return self.sign == other.sign != 0 and _at_most(self.number, other.number)


class Span(NamedTuple):
    """Places on an axis.

    Attributes:
        lows: bounds that no place is before.
        highs: bounds that all places are before.
        start: the first place, if there is any; None if not known.
        step: the distance between places, which are all ``start`` and a multiple of it; 1 if ``start`` is not known.
    """

    lows: tuple[Bound, ...] = ()
    highs: tuple[Bound, ...] = ()
    start: Size = 0
    step: int = 1

    def part(self, low: Bound | None, high: Bound | None, step: int = 1) -> Span:
        """The span of every ``step``-th place with numbers from ``low`` to before ``high``.

        None stands for the first, or for the end; ``step`` is positive.
        """
        low = Bound(0, 1) if low is None else low
        if self == Span():
            start = low.number if low.sign > 0 else None
            return Span((low,), () if high is None else (high,), start, step if start is not None else 1)
        if self.start is None or low.sign <= 0:
            return Span(self.lows, self.highs, None)
        start = plus(self.start, times(low.number, self.step))
        if start is None:
            return Span(self.lows, self.highs, None)
        end = plus(self.start, times(high.number, self.step)) if high is not None and high.sign > 0 else None
        highs = self.highs if end is None else (*self.highs, Bound(end, 1))
        return Span((*self.lows, Bound(start, 1)), highs, start, self.step * step)

    def is_apart(self, other: Span) -> bool:
        """Whether no place is in both, for certain."""
        if any(high.precedes(low) for high in self.highs for low in other.lows):
            return True
        if any(high.precedes(low) for high in other.highs for low in self.lows):
            return True
        common = gcd(self.step, other.step)
        distance = minus(self.start, other.start)
        return common > 1 and isinstance(distance, int) and distance % common != 0

    def __str__(self) -> str:
        low, high = (written(bounds[-1].number) if bounds else "" for bounds in (self.lows, self.highs))
        return f"[{low or 0}, {high or 'end'})" + (f" by {self.step}" if self.step > 1 else "")

    def symbols(self) -> list[Value]:
        """The values that it depends on."""
        numbers = [*[bound.number for bound in (*self.lows, *self.highs)], self.start]
        return [value for number in numbers for value in symbols(number)]


Axis: TypeAlias = tuple[Value | None, int]
"""An axis of the index space of a value; without a value, the storage, which is one for all that lies there."""

STORAGE: Axis = (None, 0)


class Region(NamedTuple):
    """What a view shows of a tensor.

    Attributes:
        spans: along which axes it is known to be a part, and which.
        dims: the axis that each dimension of the view goes along, as far as known.
        once: whether no two elements of the view are at one place.
    """

    spans: Mapping[Axis, Span]
    dims: tuple[Axis | None, ...]
    once: bool = True

    @staticmethod
    def whole(value: Value) -> Region:
        """All of ``value``."""
        return Region({}, _axes(value))

    def within(self, value: Value) -> Region:
        """``value``, which shows some of the elements of this, each once, with an index space of its own."""
        return Region(self.spans, _axes(value) if self.once else (), self.once)

    def scattered(self) -> Region:
        """A view that shows some of the elements of this, maybe several times."""
        return Region(self.spans, (), False)

    def axis(self, dim: object) -> Axis | None:
        """The axis that a dimension goes along; None if not known."""
        return self.dims[dim] if isinstance(dim, int) and 0 <= dim < len(self.dims) else None

    def cut(self, dim: object, low: Bound | None, high: Bound | None, step: int = 1) -> Region:
        """What lies from ``low`` to ``high`` along ``dim``."""
        axis = self.axis(dim)
        if axis is None:
            return self
        span = self.spans.get(axis, Span()).part(low, high, step)
        return self._replace(spans={**self.spans, axis: span})

    def is_apart(self, other: Region) -> Axis | None:
        """An axis along which this shows other places than ``other``, for certain; None if none is known."""
        for axis, span in self.spans.items():
            found = other.spans.get(axis)
            if found is not None and span.is_apart(found):
                return axis
        return None


def _axes(value: Value) -> tuple[Axis, ...]:
    return tuple([(value, dim) for dim in range(_MOST_DIMS)])


RegionRule: TypeAlias = Callable[[Node, Value, int, Region], "Region | None"]
"""From a view's node, its result (or an element of the list that is its result), the number of that and what the first
operand shows: what the result shows."""

# -- arguments ---------------------------------------------------------------


def _argument(node: Node, index: int) -> Value | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    return None if value is None or value.type == NONE else value


def _integer(node: Node, index: int, default: int) -> int | None:
    """A constant integer; None if it is not constant."""
    value = _argument(node, index)
    found = default if value is None else quantity(value)
    return found if isinstance(found, int) else None


def _numbers(value: Value) -> list[Size] | None:
    """The elements of a list or of a constant tensor; None if they are not written out."""
    source = value.made_by("prim::ListConstruct")
    if source is not None:
        return [quantity(v) for v in source.inputs]
    found = constant_value(value) if is_constant(value) else None
    if isinstance(found, Tensor):
        found = found.numpy().reshape(-1).tolist() if found.numel <= _MOST_DIMS else None
    items = cast("list[Any]", found) if isinstance(found, list) else None
    return items if items is not None and all(type(n) is int for n in items) else None


# -- rules of aten -------------------------------------------------------------


def select(node: Node, made: Value, index: int, shown: Region) -> Region:
    """One place along a dimension, which goes."""
    dim = _integer(node, 1, 0)
    at = quantity(node.inputs[2])
    low, high = Bound.of(at), Bound.of(plus(at, 1))
    if at == -1 or (low is not None and low.sign == 0):
        high = None  # of the last place, 0 is no bound
    if low is not None and high is None and at != -1:
        low = None  # whether it counts from the end is not known: then the next place may be anywhere
    cut = shown if low is None else shown.cut(dim, low, high)
    return cut._replace(dims=_without(cut.dims, dim))


def slice_(node: Node, made: Value, index: int, shown: Region) -> Region:
    """Places from a start to an end, with a step."""
    dim, step = _integer(node, 1, 0), _integer(node, 4, 1)
    if step is None or step < 1:
        return shown.within(made)
    return shown.cut(dim, _end(_argument(node, 2)), _end(_argument(node, 3)), step)


def _end(value: Value | None) -> Bound | None:
    number = None if value is None else quantity(value)
    return None if isinstance(number, int) and number >= _FAR else Bound.of(number)


def narrow(node: Node, made: Value, index: int, shown: Region) -> Region:
    """A number of places from a start on."""
    if len(node.inputs) < 4 or isinstance(node.inputs[2].type, TensorType):
        return shown.within(made)
    start, length = (quantity(v) for v in node.inputs[2:4])
    low, end = Bound.of(start), plus(start, length)
    high = None
    if low is not None and low.sign > 0 and end is not None:
        high = Bound(end, 1)  # a length is at least 0
    elif low is not None and low.sign < 0 and _at_most(end, -1):
        high = Bound(end, -1)
    return shown.cut(_integer(node, 1, 0), low, high)


def unbind(node: Node, made: Value, index: int, shown: Region) -> Region:
    """An element of a list of all places."""
    dim = _integer(node, 1, 0)
    cut = shown.cut(dim, Bound(index, 1), Bound(index + 1, 1))
    return cut._replace(dims=_without(cut.dims, dim))


def split(node: Node, made: Value, index: int, shown: Region) -> Region:
    """A piece of a given length, or one of several lengths."""
    lengths = quantity(node.inputs[1]) if not _is_list(node.inputs[1]) else _numbers(node.inputs[1])
    if isinstance(lengths, list):
        return _by_lengths(lengths, made, index, _integer(node, 2, 0), shown)
    return shown.cut(_integer(node, 2, 0), Bound.of(times(lengths, index)), Bound.of(times(lengths, index + 1)))


def chunk(node: Node, made: Value, index: int, shown: Region) -> Region:
    """One of a number of pieces, side by side."""
    return _side_by_side(node.outputs[0], made, index, _integer(node, 2, 0), shown)


def tensor_split(node: Node, made: Value, index: int, shown: Region) -> Region:
    """One of a number of pieces, or of those that begin at given places."""
    if not _is_list(node.inputs[1]):
        return chunk(node, made, index, shown)
    places = _numbers(node.inputs[1])
    if places is None:
        return shown.within(made)
    ends = [Bound(0, 1), *map(Bound.of, places)]
    high = ends[index + 1] if index + 1 < len(ends) else None
    return shown.cut(_integer(node, 2, 0), ends[index], high) if index < len(ends) else shown.scattered()


def _is_list(value: Value) -> bool:
    return value.made_by("prim::ListConstruct") is not None or isinstance(constant_value(value), list)


def _by_lengths(lengths: list[Size] | None, made: Value, index: int, dim: int | None, shown: Region) -> Region:
    if lengths is None or index >= len(lengths):
        return shown.within(made)
    start: Size = 0
    for length in lengths[:index]:
        start = plus(start, length)
    low, high = start, plus(start, lengths[index])
    if low is None or high is None:
        return shown.within(made)
    return shown.cut(dim, Bound(low, 1), Bound(high, 1))  # lengths are at least 0


def _side_by_side(of: Value, made: Value, index: int, dim: int | None, shown: Region) -> Region:
    """A piece of unknown length behind others of unknown lengths, which ``of`` names."""
    lengths: list[Size] = [Polynomial(frozenset({(frozenset({(UnknownSize(of, i), 1)}), 1)})) for i in range(index + 1)]
    return _by_lengths(lengths, made, index, dim, shown)


def _without(dims: tuple[Axis | None, ...], dim: int | None) -> tuple[Axis | None, ...]:
    if dim is None or dim < 0:
        return ()
    return (*dims[:dim], *dims[dim + 1 :])


def unsqueeze(node: Node, made: Value, index: int, shown: Region) -> Region:
    """All elements, with a dimension of one place more."""
    dim = _integer(node, 1, 0)
    if dim is None or not 0 <= dim <= len(shown.dims):
        return shown.within(made)
    return shown._replace(dims=(*shown.dims[:dim], None, *shown.dims[dim:]))


def same_elements(node: Node, made: Value, index: int, shown: Region) -> Region:
    """All elements, in other dimensions."""
    return shown.within(made)


def viewed(node: Node, made: Value, index: int, shown: Region) -> Region | None:
    """All elements in other dimensions; None as another element type.

    Places in storage count elements, so those of two types cannot be compared.
    """
    return shown.within(made) if isinstance(node.inputs[1].type, ListType) else None


def same(node: Node, made: Value, index: int, shown: Region) -> Region:
    """All elements, each where it was."""
    return shown


def swapped(node: Node, made: Value, index: int, shown: Region) -> Region:
    """All elements, with two dimensions swapped; those of a matrix, if none are given."""
    first, second = _integer(node, 1, 0), _integer(node, 2, 1)
    count = len(shown.dims)
    if first is None or second is None or not (0 <= first < count and 0 <= second < count):
        return shown.within(made)
    dims = list(shown.dims)
    dims[first], dims[second] = dims[second], dims[first]
    return shown._replace(dims=tuple(dims))


def permuted(node: Node, made: Value, index: int, shown: Region) -> Region:
    """All elements, with dimensions in another order."""
    order = _numbers(node.inputs[1])
    return _in_order(order, made, shown)


def _in_order(order: list[Size] | None, made: Value, shown: Region) -> Region:
    rank = len(order or ())
    if order is None or rank > len(shown.dims) or not all(isinstance(n, int) and -rank <= n < rank for n in order):
        return shown.within(made)
    return shown._replace(dims=tuple([shown.dims[cast("int", n) % rank] for n in order]))


def scattered(node: Node, made: Value, index: int, shown: Region) -> Region:
    """Some of the elements, some of them several times."""
    return shown.scattered()


def strided(node: Node, made: Value, index: int, shown: Region) -> Region:
    """Places in the storage, whatever part of it the operand shows."""
    sizes, steps = (_numbers(v) for v in node.inputs[1:3])
    offset = _argument(node, 3)
    start = None if offset is None else quantity(offset)
    known = [*(sizes or ()), *(steps or ()), start]
    if sizes is None or steps is None or not all(isinstance(n, int) and n >= 0 for n in known):
        return Region({}, (), False)
    counts = list(zip(cast("list[int]", sizes), cast("list[int]", steps)))
    end = plus(start, 1 + sum((size - 1) * step for size, step in counts if size))
    step = gcd(*[step for size, step in counts if size > 1]) or 1
    span = Span((Bound(start, 1),), (Bound(end, 1),), start, step)
    return Region({STORAGE: span}, (), False)


# -- rules of ONNX -------------------------------------------------------------


def onnx_slice(node: Node, made: Value, index: int, shown: Region) -> Region:
    """Boxes with steps; those along axes of which bounds are not constant stay as they are."""
    names = ("starts", "ends", "axes", "steps")
    given = [node.attributes.get(name) for name in names]
    listed = [
        list(cast("list[int]", given[i]))
        if given[i] is not None
        else _numbers(value)
        if (value := _argument(node, i + 1)) is not None
        else []
        for i in range(4)
    ]
    starts, ends, axes, steps = listed
    if starts is None or ends is None or axes is None or steps is None:
        return shown.within(made)
    axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps):
        return shown.within(made)
    for low, high, axis, step in zip(starts, ends, axes, steps):
        if isinstance(step, int) and step >= 1:
            end = None if isinstance(high, int) and high >= _FAR else Bound.of(high)
            shown = shown.cut(axis, Bound.of(low), end, step)
        else:
            return shown.within(made)
    return shown


def onnx_split(node: Node, made: Value, index: int, shown: Region) -> Region:
    """A piece, by its length or by the number of pieces."""
    dim = cast("int", node.attributes.get("axis", 0))
    sizes = _argument(node, 1)
    given: list[Size] | None = node.attributes.get("split") if sizes is None else _numbers(sizes)
    if given is not None:
        return _by_lengths(list(given), made, index, dim, shown)
    return _side_by_side(node.outputs[0], made, index, dim, shown)


def transposed(node: Node, made: Value, index: int, shown: Region) -> Region:
    """All elements, with axes in another order."""
    return _in_order(node.attributes.get("perm"), made, shown)
