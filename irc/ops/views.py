"""Views as functions: taking a view again of other memory, and putting new contents into its base.

``x.select(0, 1).add_(y)`` is ``x' = x.select_scatter(x.select(0, 1) + y, 0, 1)``. Views that give other bits, as
``view(dtype)``, have none. Records of operators have a `View`, and tell whether views surely show elements.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

from irc.ir import INT, ListType, Node, TensorType, Value, constant_value, is_constant

Emit: TypeAlias = Callable[..., Value]
"""``emit(kind, *inputs, type=TENSOR)`` inserts a node and gives its output; Python values among the inputs become
constants."""

Put: TypeAlias = Callable[[Emit, Node, Value, Value], Value]
"""From ``emit``, the view's node, the whole and new contents of the part: the whole with these contents."""

Number: TypeAlias = int | Value
"""A integer, known or computed in the graph."""

PutPiece: TypeAlias = Callable[[Emit, Node, Value, Value, Number], Value]
"""As `Put`, of the piece with a number; if that is negative, pieces are counted from the end."""


def always(node: Node) -> bool:
    return True


def never(node: Node) -> bool:
    return False


class View(NamedTuple):
    """An operator whose result shares memory with its first input, and can be taken again of other memory.

    Attributes:
        put: how a part is put into the whole; None if it cannot be.
        put_piece: the same of an element of the list that is the result.
        can_put: whether ``put`` or ``put_piece`` can be made for a node.
        can_put_any: whether ``put_piece`` can, if the number of the piece is computed in the graph.
        copies: whether what ``put`` makes is new memory that is laid out as the whole.
        turns: whether what ``put`` makes is laid out as the whole if the new part is laid out as the old one.
        when_contiguous: whether it is a view for certain only of contiguous tensors.
        of_storage: whether it shows places in the memory of the operand, whatever part of that the operand shows.
        like_other: whether of the other operands only shapes count.
    """

    put: Put | None = None
    put_piece: PutPiece | None = None
    can_put: Callable[[Node], bool] = always
    can_put_any: Callable[[Node], bool] = never
    copies: bool = False
    turns: bool = False
    when_contiguous: bool = False
    of_storage: bool = False
    like_other: bool = False


# -- numbers -----------------------------------------------------------------


class _Numbers:
    """Arithmetic on sizes and places; what is known is computed now."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def size(self, x: Value, dim: Number) -> Number:
        return self._emit("aten::size", x, dim, type=INT)

    def __call__(self, name: str, a: Number, b: Number) -> Number:
        kind, compute = _ARITHMETIC[name]
        if isinstance(a, int) and isinstance(b, int):
            return compute(a, b)
        if name == "add" and (a == 0 or b == 0):
            return b if a == 0 else a
        return self._emit(kind, a, b, type=INT)


_ARITHMETIC: dict[str, tuple[str, Callable[[int, int], int]]] = {
    "add": ("aten::add", operator.add),
    "sub": ("aten::sub", operator.sub),
    "mul": ("aten::mul", operator.mul),
    "floordiv": ("aten::floordiv", int.__floordiv__),
    "remainder": ("aten::remainder", operator.mod),
    "min": ("prim::min", min),
    "max": ("prim::max", max),
}


def number(value: Value) -> Number:
    found = constant_value(value)
    return found if type(found) is int else value


def _operand(node: Node, index: int, default: int) -> Number:
    return number(node.inputs[index]) if len(node.inputs) > index else default


def _numbers(value: Value) -> list[Number] | None:
    """The elements of a written-out list of integers; one number stands for itself; else None."""
    source = value.made_by("prim::ListConstruct")
    if source is not None:
        return [number(v) for v in source.inputs]
    found = constant_value(value)
    numbers = cast("list[Any]", found if isinstance(found, list) else [found])
    return numbers if all(type(n) is int for n in numbers) else None


# -- parts -------------------------------------------------------------------


def scatter(kind: str) -> Put:
    return lambda emit, node, whole, part: emit(kind, whole, part, *node.inputs[1:])


def same(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return part


def swap(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    """A view operator that is its own inverse, as transposition is."""
    return emit(node.kind, part, *node.inputs[1:])


def permute(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    order = permutation(node)
    assert order is not None
    return emit(node.kind, part, sorted(range(len(order)), key=order.__getitem__))


def move_back(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    source, destination = node.inputs[1:]
    return emit(node.kind, part, destination, source)


def unsqueeze(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return emit("aten::squeeze", part, node.inputs[1])


def reshape(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return emit("aten::reshape_as", part, whole)


def inverse(kind: str) -> Put:
    return lambda emit, node, whole, part: emit(kind, part)


def narrow(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    numbers = _Numbers(emit)
    _, dim, start, length = node.inputs
    first = number(start)
    if isinstance(start.type, TensorType):
        first = emit("aten::Int", start, type=INT)
    if not isinstance(first, int) or first < 0:  # counted from the end
        first = numbers("remainder", first, numbers("max", numbers.size(whole, dim), 1))
    return emit("aten::slice_scatter", whole, part, dim, first, numbers("add", first, number(length)))


def diagonal_of_last(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    offset, *dims = (_operand(node, at, default) for at, default in ((1, 0), (2, -2), (3, -1)))
    return emit("aten::diagonal_scatter", whole, part, offset, *dims)


_MOST_POSITIONS = 16
"""Windows of more positions than this are not taken apart."""


def has_separate_windows(node: Node) -> bool:
    dim, size, step = (number(v) for v in node.inputs[1:])
    if not isinstance(dim, int) or not isinstance(size, int) or not isinstance(step, int):
        return False
    return 0 <= size <= min(step, _MOST_POSITIONS)


def unfold(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    """The first positions of all windows are a slice, and so are the second ones."""
    numbers = _Numbers(emit)
    dim, size, step = (number(v) for v in node.inputs[1:])
    assert isinstance(size, int)
    new = emit("aten::atleast_1d", whole)  # a tensor without dimensions has one window
    for position in range(size):
        elements = emit("aten::atleast_1d", emit("aten::select", part, -1, position))
        last = numbers("mul", numbers("sub", numbers.size(elements, dim), 1), step)
        end = numbers("add", numbers("add", last, position), 1)
        new = emit("aten::slice_scatter", new, elements, dim, position, end, step)
    return emit("aten::reshape_as", new, whole)


def can_permute(node: Node) -> bool:
    return permutation(node) is not None


def permutation(node: Node) -> list[int] | None:
    """The constant order of dimensions that ``aten::permute`` is given; None if it is not constant."""
    numbers = _numbers(node.inputs[1])
    if numbers is None or not all(isinstance(n, int) for n in numbers):
        return None
    return [cast("int", n) % len(numbers) for n in numbers]


# -- pieces ------------------------------------------------------------------


def _put_slice(emit: Emit, whole: Value, part: Value, dim: Number, start: Number, end: Number | None) -> Value:
    return emit("aten::slice_scatter", whole, part, dim, start, end)


def _from_start(numbers: _Numbers, index: Number, count: Number) -> Number:
    """The number of a piece, of ``count``, counted from the first."""
    if not isinstance(index, int):
        return numbers("remainder", index, numbers("max", count, 1))
    return index if index >= 0 else numbers("add", count, index)


def one_of_unbind(emit: Emit, node: Node, whole: Value, part: Value, index: Number) -> Value:
    return emit("aten::select_scatter", whole, part, _operand(node, 1, 0), index)


def _one_of_equal(emit: Emit, whole: Value, part: Value, dim: Number, length: Number, index: Number) -> Value:
    """One of the pieces of ``length`` positions, the last of which may be shorter."""
    numbers = _Numbers(emit)
    at = index
    if not isinstance(index, int) or index < 0:
        rounded = numbers("add", numbers.size(whole, dim), numbers("sub", length, 1))
        at = _from_start(numbers, index, numbers("floordiv", rounded, numbers("max", length, 1)))
    start = numbers("mul", at, length)
    return _put_slice(emit, whole, part, dim, start, numbers("add", start, length))


def one_of_split(emit: Emit, node: Node, whole: Value, part: Value, index: Number) -> Value:
    dim = _operand(node, 2, 0)
    if isinstance(node.inputs[1].type, ListType):
        return _one_by_sizes(emit, whole, part, dim, node.inputs[1], index)
    return _one_of_equal(emit, whole, part, dim, number(node.inputs[1]), index)


def _one_by_sizes(emit: Emit, whole: Value, part: Value, dim: Number, sizes: Value, index: Number) -> Value:
    numbers, lengths = _Numbers(emit), _numbers(sizes)
    assert lengths is not None and isinstance(index, int)
    start: Number = 0
    at = index % len(lengths)
    for length in lengths[:at]:
        start = numbers("add", start, length)
    return _put_slice(emit, whole, part, dim, start, numbers("add", start, lengths[at]))


def one_of_chunk(emit: Emit, node: Node, whole: Value, part: Value, index: Number) -> Value:
    numbers = _Numbers(emit)
    chunks, dim = number(node.inputs[1]), _operand(node, 2, 0)
    length = numbers("floordiv", numbers("add", numbers.size(whole, dim), numbers("sub", chunks, 1)), chunks)
    return _one_of_equal(emit, whole, part, dim, length, index)


def one_of_tensor_split(emit: Emit, node: Node, whole: Value, part: Value, index: Number) -> Value:
    return _one_by_places(emit, whole, part, _operand(node, 2, 0), node.inputs[1], index)


def one_along(dim: int) -> PutPiece:
    return lambda emit, node, whole, part, index: _one_by_places(emit, whole, part, dim, node.inputs[1], index)


def _one_by_places(emit: Emit, whole: Value, part: Value, dim: Number, where: Value, index: Number) -> Value:
    """One of the pieces that begin at given places, or of a number of pieces (the first may be longer)."""
    numbers = _Numbers(emit)
    if isinstance(where.type, ListType):
        starts = _numbers(where)
        assert starts is not None and isinstance(index, int)
        at = index % (len(starts) + 1)
        return _put_slice(emit, whole, part, dim, ([0, *starts])[at], starts[at] if at < len(starts) else None)
    count, total = number(where), numbers.size(whole, dim)
    at = _from_start(numbers, index, count)
    length, longer = numbers("floordiv", total, count), numbers("remainder", total, count)
    start = numbers("add", numbers("mul", length, at), numbers("min", at, longer))
    after = numbers("add", at, 1)
    end = numbers("add", numbers("mul", length, after), numbers("min", after, longer))
    return _put_slice(emit, whole, part, dim, start, end)


def _cuts_are_known(node: Node) -> bool:
    """Whether it is known where the pieces begin, as numbers or as values of the graph."""
    where = node.inputs[1].type
    return where == INT or (isinstance(where, ListType) and bool(_numbers(node.inputs[1])))


def _are_equal(node: Node) -> bool:
    """Whether one number gives the pieces' count or length."""
    return node.inputs[1].type == INT


def is_matrix(node: Node) -> bool:
    return _cuts_are_known(node) and (node.inputs[0].type.rank or 0) > 1


def pieces(put: PutPiece, can_put: Callable[[Node], bool] = _cuts_are_known) -> View:
    return View(put_piece=put, can_put=can_put, can_put_any=_are_equal, copies=True)


# -- empty results -------------------------------------------------------------

_UNKNOWN = object()


def _given(node: Node, position: int, default: object) -> object:
    """The constant that an argument is, or its default; `_UNKNOWN` if it is not a constant."""
    if position >= len(node.inputs):
        return default
    value = node.inputs[position]
    return constant_value(value) if is_constant(value) else _UNKNOWN


def at_least_one(position: int) -> Callable[[Node], bool]:
    def keeps(node: Node) -> bool:
        found = _given(node, position, _UNKNOWN)
        return isinstance(found, int) and found > 0

    return keeps


def on_the_diagonal(node: Node) -> bool:
    return _given(node, 1, 0) == 0


def to_sizes(node: Node) -> bool:
    """Whether no size that is expanded to is 0."""
    sizes = _given(node, 1, _UNKNOWN)
    listed = node.inputs[1].made_by("prim::ListConstruct") if len(node.inputs) > 1 else None
    if listed is not None:
        sizes = [_given(listed, i, _UNKNOWN) for i in range(len(listed.inputs))]
    return isinstance(sizes, list) and all(isinstance(n, int) and n != 0 for n in sizes)  # type: ignore[reportUnknownVariableType]


def of_an_end(node: Node) -> bool:
    """Whether a slice begins at the first position, and ends behind it, or contains the last one."""
    start, end = _given(node, 2, None), _given(node, 3, None)
    from_first = start is None or start == 0
    to_last = end is None or (isinstance(end, int) and end >= _FAR)
    reaches = isinstance(end, int) and end > 0
    return (from_first and (to_last or reaches)) or (to_last and isinstance(start, int) and start < 0)


_FAR = (1 << 63) - 1
"""The end of slices to the end."""
