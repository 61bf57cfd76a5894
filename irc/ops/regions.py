"""Where in a tensor a view of it lies: strided boxes whose bounds are numbers or expressions.

Each dimension of each view is an *axis*, along which different places are different elements. A region states in which
places of some axes all elements of a view lie. Two views are apart if along one axis their places are disjoint.

Everything here fails closed. A number that is not known is None, and a bound that is None bounds nothing. A rule states
only what it knows for certain: without its facts, the view may show any elements of its operand, in any order.

Records of view operators have a `RegionRule` for what they show of their first operand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import gcd
from typing import Any, NamedTuple, TypeAlias, cast

from irc.ir import INT, MAX_SIZE, NONE, Node, Tensor, Value, constant_value
from irc.ir.polynomials import Polynomial, Size, UnknownSize, is_size, minus, plus, times, unknown_size

_MOST_DIMS = 8
"""Dimensions further from the first, or from the last, are not known."""

_DEEPEST = 8
"""How many sums and products deep numbers are looked into."""

_MOST_LENGTHS = 64
"""Of longer lists of lengths, it is not known where the pieces lie: each adds up the lengths of those before it."""

_LARGEST = 1 << 15
"""The largest factor of a symbol. Sizes are far below 2^47, so no such sum exceeds 64 bits, where integers wrap."""

Axis: TypeAlias = "tuple[Value, int | str]"
"""A dimension of a value, from -1 on counted from the last one; or something else that tells its elements apart."""

PIECES, STORAGE = "the pieces", "the storage"
"""The numbers of the pieces in a list; places in the storage of a tensor, in elements of its type."""


def name_of(axis: Axis) -> str:
    """An axis as people write it."""
    of, along = axis
    return f"dimension {along} of %{of.name}" if isinstance(along, int) else f"{along} of %{of.name}"


class Symbol(NamedTuple):
    """An integer that is not a constant; at least 0, except a ``value`` or ``summand``.

    Attributes:
        of: the value that it is, or whose axis it is about: numbers are only compared along one axis.
        what: ``value``, an integer of the graph; ``summand``, likewise, in a sum, which may wrap around; ``count``, a
            size or the number of an iteration; ``size``, how many places there are along the axis; ``bound``, the place
            that ``number`` is as a bound of a slice: itself if it is not negative.
        number: the expression.
    """

    of: Value
    what: str
    number: Size = 0

    def values(self) -> Iterator[Value]:
        """The values that it depends on."""
        yield self.of
        yield from values_of(self.number)


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
        if isinstance(number, int) or (isinstance(number, Polynomial) and number.largest <= _LARGEST):
            return number
    return unknown_size(Symbol(value, "count" if _counts(value) else "summand" if depth else "value"), 0)


def _product(a: Size, b: Size) -> Size:
    return times(a, b) if isinstance(a, int) or isinstance(b, int) else None


_ARITHMETIC: Mapping[str, Callable[[Size, Size], Size]] = {"aten::add": plus, "aten::sub": minus, "aten::mul": _product}


def _counts(value: Value) -> bool:
    """Whether ``value`` is a size or the number of an iteration: at least 0."""
    if value.node is not None:
        return value.node.kind in ("aten::size", "aten::len", "aten::dim", "aten::numel")
    return value.index == 0 and value.definer is not None and value.definer.kind == "prim::Loop"


def is_from_0(size: Size, facts: Sequence[Size] = ()) -> bool:
    """Whether a number is at least 0 for certain, if ``facts`` are."""
    if isinstance(size, int):
        return size >= 0
    if is_size(size) and not any(symbol.what in ("value", "summand") for symbol in _symbols(size)):
        return True
    return any(is_from_0(minus(size, fact), facts[at + 1 :]) for at, fact in enumerate(facts))


def is_exact(size: Size) -> bool:
    """Whether a number is known, and is no sum that may wrap around."""
    return size is not None and all(symbol.what != "summand" for symbol in _symbols(size))


def _resolved(size: Size, facts: Sequence[Size]) -> Size:
    """``size`` without the bounds of which ``facts`` say that they are not negative."""
    for symbol in _symbols(size):
        if symbol.what == "bound" and is_from_0(symbol.number, facts):
            size = plus(minus(size, unknown_size(symbol, 0)), symbol.number)
    return size


def _is_negative(size: Size) -> bool:
    return is_from_0(minus(-1, size))


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
    if symbol.what == "bound":
        return text_of(symbol.number)
    return "size" if symbol.what == "size" else f"%{symbol.of.name}"


# -- regions -----------------------------------------------------------------


class Span(NamedTuple):
    """Places along an axis.

    Attributes:
        low: no place is before it.
        high: all places are before it; None bounds nothing.
        start: all places are a multiple of ``step`` behind it; None if that is not known.
        step: how far apart neighbours are; 0 if there is one place.
    """

    low: Size = 0
    high: Size = None
    start: Size = None
    step: int = 1

    def resolved(self, facts: Sequence[Size]) -> Span:
        """The same places, bounded by what ``facts`` say of numbers."""
        return self._replace(low=_resolved(self.low, facts), high=_resolved(self.high, facts))

    def is_apart(self, other: Span, facts: Sequence[Size] = ()) -> bool:
        """Whether no place is in both, for certain, if ``facts`` are at least 0."""
        if is_from_0(minus(other.low, self.high), facts) or is_from_0(minus(self.low, other.high), facts):
            return True
        common, distance = gcd(self.step, other.step), minus(self.start, other.start)
        return isinstance(distance, int) and (distance % common if common else distance) != 0

    def values(self) -> Sequence[Value]:
        """The values that it depends on."""
        found: list[Value] = []
        for number in (self.low, self.high, self.start):
            if number.__class__ is Polynomial:
                found += values_of(number)
        return found

    def __str__(self) -> str:
        high = "end" if self.high is None else text_of(self.high)
        return f"[{text_of(self.low)}, {high})" + (f" by {self.step}" if self.step > 1 else "")


class Line(NamedTuple):
    """The places of a dimension: number ``q``, if there is one, is at ``start + q`` along ``axis``.

    Attributes:
        whole: whether they are all places of the axis, so that numbers from the end mean the same.
    """

    axis: Axis
    start: Size = 0
    whole: bool = True


def _from_side(dim: int) -> int:
    """How many steps dimension ``dim`` is from the side that it is counted from."""
    return dim if dim >= 0 else ~dim


class Side(NamedTuple):
    """Where the dimensions of a view lie, counted from its first one, or from its last one.

    Attributes:
        sign: 1 if they are counted from the first one on, 0, 1, 2, ...; -1 if from the last one back, -1, -2, ...
        lines: where those next to this side lie; None: it is an axis of its own.
        rest: the value of which all others are dimensions.
        shift: how much further from the side they are there.
    """

    sign: int
    lines: tuple[Line | None, ...]
    rest: Value
    shift: int = 0

    def along(self, of: Value, count: int) -> list[Line]:
        """The first lines of ``of``, which this side is of: all that are listed, and at least ``count``."""
        lines = [Line((of, self.dim(at))) if line is None else line for at, line in enumerate(self.lines)]
        lines += [Line((self.rest, self.dim(at + self.shift))) for at in range(len(lines), count)]
        return lines

    def dim(self, at: int) -> int:
        """The number of the dimension that is ``at`` steps from the side."""
        return at if self.sign > 0 else ~at

    def changed(self, lines: Sequence[Line | None], more: int = 0) -> Side:
        """The side with these lines, after which there are ``more`` dimensions more than before."""
        return Side(self.sign, tuple(lines), self.rest, self.shift + more)


class Region(NamedTuple):
    """What a view shows of a tensor.

    Which dimensions -1 and 1 are the same one depends on the rank, which is not known: each side is by itself.

    Attributes:
        spans: in which places it lies along the axes of which something is known.
        first: where its dimensions lie, from 0 on; None: each is an axis of its own.
        last: likewise, from -1 back.
        once: whether no two elements of the view are in one place; if not, its dimensions are no axes.
    """

    spans: Mapping[Axis, Span] = {}
    first: Side | None = None
    last: Side | None = None
    once: bool = True

    def renumbered(self) -> Region:
        """The same elements, or some of them, in unknown dimensions."""
        return Region(self.spans, None, None, self.once)

    def with_side(self, side: Side) -> Region:
        """The same elements, or some of them, of whose dimensions just this is known."""
        return Region(self.spans, *((side, None) if side.sign > 0 else (None, side)), self.once)

    def side(self, of: Value, dim: int) -> Side:
        """The dimensions of ``of``, which this region is of, from the side that ``dim`` is counted from."""
        if dim >= 0:
            return self.first or Side(1, (), of)
        return self.last or Side(-1, (), of)

    def sliced(self, of: Value, dim: int | None, low: Size, high: Size, step: int = 1, length: Size = None) -> Region:
        """The places of a slice of ``of``, which this region is of.

        Bounds may count from the end, and are clamped. Where the slice begins is unknown if ``low`` is None, and it
        ends with the dimension if ``high`` is. There are at most ``length`` places.
        """
        if dim is None or not self.once or not -_MOST_DIMS <= dim < _MOST_DIMS:
            return self.renumbered()
        side, at = self.side(of, dim), _from_side(dim)
        lines: list[Line | None] = [*side.along(of, at + 1)]
        axis, before, whole = cast("Line", lines[at])
        if isinstance(high, int) and high >= MAX_SIZE:
            high = None
        if low == 0 and high is None and step == 1:
            return self.with_side(side.changed(lines))
        begins = is_from_0(low)
        if not whole and not (begins and (high is None or is_from_0(high))):
            axis, before = (of, dim), 0
        first, end = plus(before, _bound(axis[0], low)), plus(before, _bound(axis[0], high))
        if end is None:
            end = plus(first, length)
        old = self.spans.get(axis)
        if old is not None and old.high is not None and (end is None or is_from_0(minus(end, old.high))):
            end = old.high
        start = plus(before, low) if begins else None
        lines[at] = None if start is None or step != 1 else Line(axis, start, whole=False)
        span = Span(0 if first is None else first, end, start, step)
        return Region({**self.spans, axis: span}).with_side(side.changed(lines))

    def narrowed(self, of: Value, dim: int | None, start: Size, length: Size, step: int = 1) -> Region:
        """``length`` places from index ``start`` on, from the end if it is below 0; all of them exist."""
        end = plus(start, length)
        return self.sliced(of, dim, start, end if is_from_0(start) or _is_negative(end) else None, step, length)

    def at_index(self, of: Value, dim: int | None, index: Size) -> Region:
        """The place with an index, without the dimension."""
        found = self.narrowed(of, dim, index, 1, step=0)
        side = found.first or found.last
        if side is None or dim is None:
            return found
        at = _from_side(dim)
        return found.with_side(side.changed((*side.lines[:at], *side.lines[at + 1 :]), more=1))

    def piece(self, of: Value, number: int) -> Region:
        """One of the pieces of ``of``, which do not overlap where no elements do."""
        return self.among(of, PIECES, number)

    def among(self, of: Value, what: str, number: int) -> Region:
        """Elements at place ``number`` of an axis of ``of``, by which its elements are told apart."""
        span = {(of, what): Span(number, number + 1)} if self.once else {}
        return Region({**self.spans, **span}, None, None, self.once)

    def with_new(self, of: Value, dims: Sequence[int] | None) -> Region:
        """All elements of ``of``, with more dimensions of size 1: ``dims`` of the result."""
        signs = {dim >= 0 for dim in dims or ()}
        if dims is None or len(signs) != 1 or len({*dims}) < len(dims) or not self.once:
            return self.renumbered()
        places = sorted(map(_from_side, dims))
        if places[-1] >= _MOST_DIMS:
            return self.renumbered()
        side = self.side(of, dims[0])
        lines: list[Line | None] = [*side.along(of, places[-1])]
        for place in places:
            lines.insert(place, None)
        return self.with_side(side.changed(lines, more=-len(places)))

    def transposed(self, of: Value, a: int | None, b: int | None) -> Region:
        """All elements of ``of``, two of whose dimensions change places."""
        if a is None or b is None or (a >= 0) != (b >= 0) or not self.once:
            return self.renumbered()
        i, j = _from_side(a), _from_side(b)
        if max(i, j) >= _MOST_DIMS:
            return self.renumbered()
        side = self.side(of, a)
        lines = side.along(of, max(i, j) + 1)
        lines[i], lines[j] = lines[j], lines[i]
        return self.with_side(side.changed(lines))

    def keeping(self, of: Value, result: Value, first: int, last: int = 0) -> Region:
        """All elements of ``of``, whose ``first`` and ``last`` dimensions ``result`` keeps."""
        if not self.once or not max(first, last) <= _MOST_DIMS:
            return self.renumbered()
        kept = [
            Side(sign, tuple(self.side(of, dim).along(of, count)[:count]), result) if count > 0 else None
            for sign, dim, count in ((1, 0, first), (-1, -1, last))
        ]
        return Region(self.spans, kept[0], kept[1])

    def permuted(self, of: Value, dims: Sequence[int] | None) -> Region:
        """All elements of ``of``, whose dimensions are in another order; there are as many as are given."""
        rank = len(dims or ())
        order = [dim % rank for dim in dims or () if -rank <= dim < rank]
        if len({*order}) < rank or not self.once or not 0 < rank <= _MOST_DIMS:
            return self.renumbered()
        is_first = self.last is None or self.first is not None
        side = self.side(of, 0 if is_first else -1)
        lines = side.along(of, rank)[:rank]
        lines = [(lines if is_first else lines[::-1])[dim] for dim in order]
        return Region(self.spans, Side(1, tuple(lines), of), Side(-1, tuple(lines[::-1]), of))


def _bound(of: Value, number: Size) -> Size:
    """The place to compare others with for a bound of a slice along an axis of ``of``.

    The slice begins no earlier, or shows nothing from there on. For a bound from the end it may be below 0.
    """
    if number is None or is_from_0(number):
        return number
    if _is_negative(number):
        return plus(unknown_size(Symbol(of, "size"), 0), number)
    return unknown_size(Symbol(of, "bound", number), 0)


RegionRule: TypeAlias = "Callable[[Node, Value, int, Region], Region | None]"
"""What a view shows, of its node, the first operand, the number of the view (a result or an element of a list that is
the result), and what the first operand shows. None: nothing is known."""

# -- arguments ---------------------------------------------------------------


def _number(node: Node, position: int, default: Size) -> Size:
    """The integer that an argument is, or ``default`` if it is absent; None if it is not known."""
    value = node.inputs[position] if position < len(node.inputs) else None
    return default if value is None or value.type == NONE else quantity(value)


def _constant(node: Node, position: int, default: int | None = None) -> int | None:
    found = _number(node, position, default)
    return found if isinstance(found, int) else None


def _numbers(value: Value) -> list[int] | None:
    """The constant integers of a list or tensor; None if there are none, or too many."""
    source = value.made_by("prim::ListConstruct")
    found = [constant_value(v) for v in source.inputs] if source is not None else constant_value(value)
    if isinstance(found, Tensor):
        found = found.numpy().tolist() if found.numel <= _MOST_LENGTHS and found.dtype.numpy.kind in "iu" else None
    return _integers(found)


def _integers(found: Any) -> list[int] | None:
    items = cast("Sequence[Any]", found) if isinstance(found, list | tuple) else ()
    return list(items) if 0 < len(items) <= _MOST_LENGTHS and all(type(n) is int for n in items) else None


# -- rules of aten -------------------------------------------------------------


def same(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements in the same dimensions."""
    first, last = (side.changed(side.along(of, 0)) for side in (shown.side(of, 0), shown.side(of, -1)))
    return Region(shown.spans, first, last, shown.once)


def renumbered(node: Node, of: Value, number: int, shown: Region) -> Region:
    """Elements, each at most once, in other dimensions."""
    return shown.renumbered()


def repeated(node: Node, of: Value, number: int, shown: Region) -> Region:
    """Some of the elements, some of them several times."""
    return Region(shown.spans, once=False)


def select(node: Node, of: Value, number: int, shown: Region) -> Region:
    """One place along a dimension, which goes."""
    return shown.at_index(of, _constant(node, 1), _number(node, 2, None))


def slice_(node: Node, of: Value, number: int, shown: Region) -> Region:
    """Places from a start to an end, with a step."""
    step = _constant(node, 4, 1)
    if step is None or step < 1:
        return shown.renumbered()
    return shown.sliced(of, _constant(node, 1, 0), _number(node, 2, 0), _number(node, 3, None), step)


def narrow(node: Node, of: Value, number: int, shown: Region) -> Region:
    """A number of places from a start on."""
    return shown.narrowed(of, _constant(node, 1), _number(node, 2, None), _number(node, 3, None))


def unbind(node: Node, of: Value, number: int, shown: Region) -> Region:
    """One place along a dimension, which goes, for each element of a list."""
    return shown.at_index(of, _constant(node, 1, 0), number)


def pieces(node: Node, of: Value, number: int, shown: Region) -> Region:
    """One of the pieces that a dimension is cut into."""
    return shown.piece(node.outputs[0], number)


def split(node: Node, of: Value, number: int, shown: Region) -> Region:
    """A piece of a given length, or one of several lengths."""
    dim, length = _constant(node, 2, 0), _constant(node, 1)
    if length is None:
        return _of_lengths(node, _listed(node, 1), dim, of, number, shown)
    low = length * number
    return shown.sliced(of, dim, low, low + length).piece(node.outputs[0], number)


def tensor_split(node: Node, of: Value, number: int, shown: Region) -> Region:
    """One of a number of pieces; or what is between two of the given places, which need not be in order."""
    if _number(node, 1, None) is not None:
        return pieces(node, of, number, shown)
    places = _listed(node, 1)
    if not places or number > len(places):
        return shown.renumbered()
    bounds = [0, *places, None]
    return shown.sliced(of, _constant(node, 2, 0), bounds[number], bounds[number + 1])


def unsqueeze(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements, with one more dimension."""
    dim = _constant(node, 1)
    return shown.with_new(of, None if dim is None else [dim])


def transpose(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements; two dimensions change places."""
    return shown.transposed(of, _constant(node, 1), _constant(node, 2))


def t(node: Node, of: Value, number: int, shown: Region) -> Region:
    """A matrix whose dimensions change places; or a vector.

    That has one dimension only: nothing lies along the other one.
    """
    first, last = shown.transposed(of, 0, 1).first, shown.transposed(of, -1, -2).last
    return Region(shown.spans, first, last, shown.once)


def view(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements in C order; dimensions stay on either side as far as their sizes are asked for."""
    source = node.inputs[1].made_by("prim::ListConstruct") if len(node.inputs) == 2 else None
    if source is None:
        return shown.renumbered()
    asked = [v.made_by("aten::size") for v in source.inputs]
    dims = [_constant(n, 1) if n is not None and n.inputs[0] is node.inputs[0] else None for n in asked]
    first = next((at for at, dim in enumerate(dims) if dim != at), len(dims))
    last = next((at for at, dim in enumerate(reversed(dims)) if dim != ~at), len(dims))
    return shown.keeping(of, node.output, first, last)


def flatten(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements; dimensions from one to another become one."""
    first, last = _constant(node, 1, 0), _constant(node, 2, -1)
    if first is None or last is None:
        return shown.renumbered()
    return shown.keeping(of, node.output, max(first, 0), max(~last, 0))


def squeeze(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements, perhaps without some dimensions of size 1: some or all of those given."""
    dim = _constant(node, 1)
    return _without(node, of, shown, _listed(node, 1, "axes") if dim is None else [dim])


def _without(node: Node, of: Value, shown: Region, dims: Sequence[int] | None) -> Region:
    if not dims:
        return shown.renumbered()
    return shown.keeping(of, node.output, max(min(dims), 0), max(min(~dim for dim in dims), 0))


def permute(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements; the dimensions are in a given order."""
    return shown.permuted(of, _listed(node, 1))


def diagonal(node: Node, of: Value, number: int, shown: Region) -> Region:
    """One of the diagonals of two dimensions."""
    offset, a, b = (_constant(node, i, default) for i, default in enumerate((0, 0, 1), 1))
    if offset is None or a is None or b is None:
        return shown.renumbered()
    return shown.among(of, f"the diagonals of dimensions {a} and {b}", offset)


def as_strided(node: Node, of: Value, number: int, shown: Region) -> Region | None:
    """Places in the storage of ``of``, whatever ``of`` shows of that."""
    sizes, strides, offset = _listed(node, 1), _listed(node, 2), _constant(node, 3)
    if not sizes or not strides or len(sizes) != len(strides) or offset is None or min(offset, *sizes, *strides) < 0:
        return None
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides))
    step = gcd(*(stride for size, stride in zip(sizes, strides) if size > 1))
    return Region({(of, STORAGE): Span(offset, last + 1, offset, step)}, once=False)


def _of_lengths(
    node: Node, lengths: Sequence[int] | None, dim: int | None, of: Value, number: int, shown: Region
) -> Region:
    """A piece behind those of the lengths before."""
    if lengths and number < len(lengths):
        shown = shown.sliced(of, dim, sum(lengths[:number]), sum(lengths[: number + 1]))
    return shown.piece(node.outputs[0], number)


# -- rules of ONNX -------------------------------------------------------------

_SLICE = ("starts", "ends", "axes", "steps")


def onnx_slice(node: Node, of: Value, number: int, shown: Region) -> Region:
    """A box, of constant bounds; of a step below 0, in unknown dimensions."""
    starts, ends, axes, steps = (_listed(node, i, name) for i, name in enumerate(_SLICE, 1))
    if not starts or not ends or axes is None or steps is None:
        return shown.renumbered()
    axes, steps = axes or list(range(len(starts))), steps or [1] * len(starts)
    is_even = len(starts) == len(ends) == len(axes) == len(steps) == len(set(axes))
    if not is_even or 0 in steps or min(axes) < 0 <= max(axes):  # -1 may be an axis that is named already
        return shown.renumbered()
    for start, end, axis, step in zip(starts, ends, axes, steps):
        if step > 0:
            shown = shown.sliced(of, axis, start, end, step)
        else:  # a start far below 0 is the first place, so it bounds nothing
            shown = shown.sliced(of, axis, end + (end != -1), start + 1 if start >= 0 else None)
    return shown if len(axes) == 1 and steps[0] > 0 else shown.renumbered()


def _listed(node: Node, position: int, name: str = "") -> list[int] | None:
    """Integers of a constant argument or an attribute; empty if there is neither; None if not known."""
    value = node.inputs[position] if position < len(node.inputs) else None
    is_there = value is not None and value.type != NONE
    if name in node.attributes:
        return None if is_there else _integers(node.attributes[name])
    return _numbers(value) if value is not None and is_there else []


def onnx_unsqueeze(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements, with more dimensions."""
    return shown.with_new(of, _listed(node, 1, "axes") or None)


def onnx_reshape(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements in C order; the first dimensions stay as long as their sizes are given as 0."""
    sizes = _listed(node, 1, "shape")
    if not sizes or node.attributes.get("allowzero", 0):
        return shown.renumbered()
    return shown.keeping(of, node.output, next((at for at, size in enumerate(sizes) if size), len(sizes)))


def onnx_flatten(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements of a matrix: those dimensions that come before an axis are one, and the others are one."""
    axis = node.attributes.get("axis", 1)
    return shown.keeping(of, node.output, int(axis == 1), int(axis == -1))


def onnx_transpose(node: Node, of: Value, number: int, shown: Region) -> Region:
    """All elements; the dimensions are in a given order."""
    return shown.permuted(of, _integers(node.attributes.get("perm")))


def onnx_split(node: Node, of: Value, number: int, shown: Region) -> Region:
    """A piece, perhaps of a known length."""
    dim = node.attributes.get("axis", 0)
    return _of_lengths(node, _listed(node, 1, "split"), dim if type(dim) is int else None, of, number, shown)


CUTTING = frozenset(  # others only rearrange
    {select, slice_, narrow, unbind, split, pieces, tensor_split, diagonal, as_strided, onnx_slice, onnx_split}
)
"""The rules of views that may be known to be less than their operand."""
