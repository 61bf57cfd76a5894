"""Operators that show memory of an operand, and how new contents of what they show reach the whole.

``x.select(0, 1).add_(y)`` is ``x' = x.select_scatter(x.select(0, 1) + y, 0, 1)``. Each operator has a record in
`VIEWS`. Operators that give lists of views have one too; an element of such a list is a view by way of the list.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from irc.ir import Node, Value, types
from irc.ir.constants import constant_value
from irc.ir.kinds import IF, ONNX_LOOP, PRIM_LOOP
from irc.ir.region_flow import slots
from irc.ir.schema import Schema
from irc.ir.types import INT, ListType, TensorType
from irc.ops import Effects, effects, resolve, schemas
from irc.ops.axes import APPEND, CONCAT
from irc.ops.pointwise import keeps_type, twin, twin_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


# The functional forms of in-place operators.


_RENAMED = {
    "aten::zero_": "aten::zeros_like",
    **{f"aten::__i{name}__": f"aten::__{name}__" for name in ("and", "or", "xor", "lshift", "rshift")},
}

_LIKE_FIRST = frozenset(
    f"aten::{name}"
    for name in (
        "copy fill index_add index_copy index_fill index_put masked_fill masked_scatter neg put relu scatter "
        "scatter_add tril triu zeros_like"
    ).split()
)
"""Operators whose result has the element type and shape of the first argument, whatever the others are."""

_BOOLEAN = frozenset(f"aten::{name}" for name in "eq ge gt le logical_and logical_not logical_or lt ne".split())

_SETTINGS = frozenset({types.NONE, types.STR})
"""Types of operands that are no numbers."""


def functional_kind(node: Node) -> str | None:
    """The operator that computes into new memory what ``node`` writes into its first input; None if there is none.

    It takes the same arguments and shares memory with none. Its result is what the in-place
    operator writes into its input, provided that it converts to the input's element
    type (`is_like_first`); otherwise the in-place one fails.
    """
    if not node.inputs or len(node.outputs) > 1 or not isinstance(node.inputs[0].type, TensorType):
        return None
    kind = node.kind
    if kind.startswith(("onnx::", "irc::")):
        functional = kind.removesuffix("_")
        return functional if functional != kind and _is_twin(node, functional) else None
    row = resolve(node)
    return None if row is None or effects(kind) & Effects.RANDOM else _functional_row(row)


def functional_form(kind: str) -> str | None:
    """The `functional_kind` of any node of ``kind``; None if none has one."""
    if kind == APPEND:
        return CONCAT  # as `concatenate_instead` has it
    if kind.startswith(("onnx::", "irc::")):
        functional = kind.removesuffix("_")
        return functional if twin(functional) == kind else None
    rows = () if effects(kind) & Effects.RANDOM else schemas(kind)
    return next(filter(None, map(_functional_row, rows)), None)


def _is_twin(node: Node, functional: str) -> bool:
    plain = Node(node.graph, functional, version=node.version)
    return twin_of(plain) == node.kind


@cache
def _functional_row(row: Schema) -> str | None:
    """The operator with a row that takes the arguments of ``row`` and returns fresh memory."""
    name = _RENAMED.get(row.name) or row.name.removesuffix("_")
    written = [i for i, a in enumerate(row.arguments) if a.alias is not None and a.alias.write]
    if name == row.name or written != [0]:
        return None
    wanted = [(a.name, a.type) for a in row.arguments]
    for other in schemas(name):
        given = [(a.name, a.type) for a in other.arguments[: len(wanted)]]
        rest = other.arguments[len(wanted) :]
        fresh = not other.has_annotations and [r.type for r in other.returns] == [types.TENSOR]
        if given == wanted and fresh and all(a.has_default for a in rest):
            return name
    return None


def is_like_first(node: Node, functional: str) -> bool:
    """Whether ``functional`` on the inputs of ``node`` surely gives a tensor like the first: no conversion, no growth.

    True for twins of ONNX operators, which fail at run time otherwise.
    """
    if not functional.startswith("aten::") or functional in _LIKE_FIRST:
        return True
    first, *others = [v.type for v in node.inputs]
    return functional not in _BOOLEAN and keeps_type(first, [t for t in others if t not in _SETTINGS])


# -- views ---------------------------------------------------------------------


Emit: TypeAlias = Callable[..., Value]
"""``emit(kind, *inputs, type=TENSOR)`` inserts a node and gives its output; Python values among the inputs become
constants."""

Put: TypeAlias = Callable[[Emit, Node, Value, Value], Value]
"""From ``emit``, the view's node, the whole and new contents of the part: the whole with these contents."""

Number: TypeAlias = int | Value
"""A whole number, known or computed in the graph."""

PutPiece: TypeAlias = Callable[[Emit, Node, Value, Value, Number], Value]
"""As `Put`, of the piece with a number; if that is negative, pieces are counted from the end."""


def _always(node: Node) -> bool:
    return True


def _never(node: Node) -> bool:
    return False


class View(NamedTuple):
    """An operator whose result shares memory with its first input, and can be taken anew of other memory.

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
        is_literal: whether the result is a list or tuple of the inputs.
    """

    put: Put | None = None
    put_piece: PutPiece | None = None
    can_put: Callable[[Node], bool] = _always
    can_put_any: Callable[[Node], bool] = _never
    copies: bool = False
    turns: bool = False
    when_contiguous: bool = False
    of_storage: bool = False
    like_other: bool = False
    is_literal: bool = False


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


def _number(value: Value) -> Number:
    found = constant_value(value)
    return found if type(found) is int else value


def _operand(node: Node, index: int, default: int) -> Number:
    return _number(node.inputs[index]) if len(node.inputs) > index else default


def _numbers(value: Value) -> list[Number] | None:
    """The elements of a list of whole numbers that is written out; one number stands for itself. None otherwise."""
    source = value.made_by("prim::ListConstruct")
    if source is not None:
        return [_number(v) for v in source.inputs]
    found = constant_value(value)
    numbers = cast("list[Any]", found if isinstance(found, list) else [found])
    return numbers if all(type(n) is int for n in numbers) else None


# -- parts -------------------------------------------------------------------


def _scatter(kind: str) -> Put:
    return lambda emit, node, whole, part: emit(kind, whole, part, *node.inputs[1:])


def _same(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return part


def _swap(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    """A view operator that is its own inverse, as transposition is."""
    return emit(node.kind, part, *node.inputs[1:])


def _permute(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    order = permutation(node)
    assert order is not None
    return emit(node.kind, part, sorted(range(len(order)), key=order.__getitem__))


def _move_back(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    source, destination = node.inputs[1:]
    return emit(node.kind, part, destination, source)


def _unsqueeze(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return emit("aten::squeeze", part, node.inputs[1])


def _reshape(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    return emit("aten::reshape_as", part, whole)


def _inverse(kind: str) -> Put:
    return lambda emit, node, whole, part: emit(kind, part)


def _narrow(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    numbers = _Numbers(emit)
    _, dim, start, length = node.inputs
    first = _number(start)
    if isinstance(start.type, TensorType):
        first = emit("aten::Int", start, type=INT)
    if not isinstance(first, int) or first < 0:  # counted from the end
        first = numbers("remainder", first, numbers("max", numbers.size(whole, dim), 1))
    return emit("aten::slice_scatter", whole, part, dim, first, numbers("add", first, _number(length)))


def _diagonal_of_last(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    offset, *dims = (_operand(node, at, default) for at, default in ((1, 0), (2, -2), (3, -1)))
    return emit("aten::diagonal_scatter", whole, part, offset, *dims)


_MOST_POSITIONS = 16
"""Windows of more positions than this are not taken apart."""


def _has_separate_windows(node: Node) -> bool:
    dim, size, step = (_number(v) for v in node.inputs[1:])
    if not isinstance(dim, int) or not isinstance(size, int) or not isinstance(step, int):
        return False
    return 0 <= size <= min(step, _MOST_POSITIONS)


def _unfold(emit: Emit, node: Node, whole: Value, part: Value) -> Value:
    """The first positions of all windows are a slice, and so are the second ones."""
    numbers = _Numbers(emit)
    dim, size, step = (_number(v) for v in node.inputs[1:])
    assert isinstance(size, int)
    new = emit("aten::atleast_1d", whole)  # a tensor without dimensions has one window
    for position in range(size):
        elements = emit("aten::atleast_1d", emit("aten::select", part, -1, position))
        last = numbers("mul", numbers("sub", numbers.size(elements, dim), 1), step)
        end = numbers("add", numbers("add", last, position), 1)
        new = emit("aten::slice_scatter", new, elements, dim, position, end, step)
    return emit("aten::reshape_as", new, whole)


def _can_permute(node: Node) -> bool:
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


def _one_of_unbind(emit: Emit, node: Node, whole: Value, part: Value, index: Number) -> Value:
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


def _one_of_split(emit: Emit, node: Node, whole: Value, part: Value, index: Number) -> Value:
    dim = _operand(node, 2, 0)
    if isinstance(node.inputs[1].type, ListType):
        return _one_by_sizes(emit, whole, part, dim, node.inputs[1], index)
    return _one_of_equal(emit, whole, part, dim, _number(node.inputs[1]), index)


def _one_by_sizes(emit: Emit, whole: Value, part: Value, dim: Number, sizes: Value, index: Number) -> Value:
    numbers, lengths = _Numbers(emit), _numbers(sizes)
    assert lengths is not None and isinstance(index, int)
    start: Number = 0
    at = index % len(lengths)
    for length in lengths[:at]:
        start = numbers("add", start, length)
    return _put_slice(emit, whole, part, dim, start, numbers("add", start, lengths[at]))


def _one_of_chunk(emit: Emit, node: Node, whole: Value, part: Value, index: Number) -> Value:
    numbers = _Numbers(emit)
    chunks, dim = _number(node.inputs[1]), _operand(node, 2, 0)
    length = numbers("floordiv", numbers("add", numbers.size(whole, dim), numbers("sub", chunks, 1)), chunks)
    return _one_of_equal(emit, whole, part, dim, length, index)


def _one_of_tensor_split(emit: Emit, node: Node, whole: Value, part: Value, index: Number) -> Value:
    return _one_by_places(emit, whole, part, _operand(node, 2, 0), node.inputs[1], index)


def _one_along(dim: int) -> PutPiece:
    return lambda emit, node, whole, part, index: _one_by_places(emit, whole, part, dim, node.inputs[1], index)


def _one_by_places(emit: Emit, whole: Value, part: Value, dim: Number, where: Value, index: Number) -> Value:
    """One of the pieces that begin at given places, or of a number of pieces of which the first ones may be longer."""
    numbers = _Numbers(emit)
    if isinstance(where.type, ListType):
        starts = _numbers(where)
        assert starts is not None and isinstance(index, int)
        at = index % (len(starts) + 1)
        return _put_slice(emit, whole, part, dim, ([0, *starts])[at], starts[at] if at < len(starts) else None)
    count, total = _number(where), numbers.size(whole, dim)
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
    """Whether the pieces are so many, or so long, as one number says."""
    return node.inputs[1].type == INT


def _is_matrix(node: Node) -> bool:
    return _cuts_are_known(node) and (node.inputs[0].type.rank or 0) > 1


def _pieces(put: PutPiece, can_put: Callable[[Node], bool] = _cuts_are_known) -> View:
    return View(put_piece=put, can_put=can_put, can_put_any=_are_equal, copies=True)


_RESHAPED = View(_reshape)
_SWAPPED = View(_swap, turns=True)
_SPLIT = _pieces(_one_of_split)
_CHUNKS = _pieces(_one_of_chunk)

VIEWS: dict[str, View] = {
    "aten::select": View(_scatter("aten::select_scatter"), copies=True),
    "aten::slice": View(_scatter("aten::slice_scatter"), copies=True),
    "aten::narrow": View(_narrow, copies=True),
    "aten::diagonal": View(_scatter("aten::diagonal_scatter"), copies=True),
    "aten::linalg_diagonal": View(_diagonal_of_last, copies=True),
    "aten::unfold": View(_unfold, can_put=_has_separate_windows, copies=True),
    "aten::as_strided": View(_scatter("aten::as_strided_scatter"), copies=True, of_storage=True),
    **dict.fromkeys(("aten::t", "aten::transpose", "aten::numpy_T", "aten::mT"), _SWAPPED),
    **dict.fromkeys(("aten::mH", "aten::matrix_H"), _SWAPPED),
    "aten::permute": View(_permute, can_put=_can_permute, turns=True),
    "aten::movedim": View(_move_back, turns=True),
    "aten::unsqueeze": View(_unsqueeze, turns=True),
    **dict.fromkeys(("aten::squeeze", "aten::view", "aten::unflatten"), _RESHAPED),
    "aten::view_as": View(_reshape, like_other=True),
    **dict.fromkeys(("aten::atleast_1d", "aten::atleast_2d", "aten::atleast_3d"), _RESHAPED),
    **dict.fromkeys(("aten::flatten", "aten::ravel", "aten::reshape"), View(_reshape, when_contiguous=True)),
    "aten::reshape_as": View(_reshape, when_contiguous=True, like_other=True),
    "aten::contiguous": View(_same, turns=True, when_contiguous=True),
    **dict.fromkeys(("aten::detach", "aten::alias", "aten::data", "prim::data"), View(_same, turns=True)),
    "aten::positive": View(_same, turns=True),
    **dict.fromkeys(("aten::conj", "aten::_conj"), _SWAPPED),
    "aten::view_as_real": View(_inverse("aten::view_as_complex")),
    "aten::view_as_complex": View(_inverse("aten::view_as_real")),
    **dict.fromkeys(("aten::expand", "aten::broadcast_to"), View()),
    "aten::expand_as": View(like_other=True),
    **dict.fromkeys(("aten::split", "aten::split_with_sizes", "aten::unsafe_split"), _SPLIT),
    **dict.fromkeys(("aten::chunk", "aten::unsafe_chunk"), _CHUNKS),
    "aten::tensor_split": _pieces(_one_of_tensor_split),
    "aten::hsplit": _pieces(_one_along(1), _is_matrix),
    "aten::vsplit": _pieces(_one_along(0)),
    "aten::dsplit": _pieces(_one_along(2)),
    "aten::unbind": View(put_piece=_one_of_unbind, can_put_any=_always, copies=True),
    **dict.fromkeys(("prim::ListConstruct", "prim::TupleConstruct"), View(is_literal=True)),
}
"""Views that can be taken anew of other memory. Not those that show other bits: ``view(dtype)``."""

_MOST_ELEMENTS = 16
"""Lists of more elements are not put together anew for each of them that is written."""

ELEMENT = View()
"""An element of a list of views: what is written into it is put where ``put_piece`` of the list says."""


def view_of(node: Node) -> View | None:
    """How ``node`` views its first input; None if its result is no view, or perhaps none."""
    view = VIEWS.get(node.kind)
    if view is None or len(node.outputs) != 1:
        return None
    if view.is_literal:
        return view if len(node.inputs) <= _MOST_ELEMENTS else None
    row = resolve(node)
    if row is None or row.overload == "dtype":
        return None
    if view.put_piece is None and not isinstance(node.output.type, TensorType):
        return None  # of a list: a slice of it, say
    return view


def begins_anywhere(node: Node) -> bool:
    """Whether ``node``, which shows places in memory, is told where the first of them is."""
    return len(node.inputs) > 3 and node.inputs[3].type == INT


def element_index(node: Node) -> Number | None:
    """Which element of a list ``node`` takes; None if it does something else."""
    if node.kind != "aten::__getitem__" or not isinstance(node.inputs[0].type, ListType):
        return None
    return _number(node.inputs[1])


# Values that take no new memory, and what they come from: views, results of writes, what branches and loops pass.


CARRIERS = frozenset({IF, PRIM_LOOP, ONNX_LOOP})
"""Nodes that can be given one more value to carry through."""


class Origin(NamedTuple):
    """What a value comes from.

    Attributes:
        given: the values of which it is one, or a view.
        back: the value that each iteration of a loop passes on in place of that.
        view: the node that makes it, if it is a view.
        how: what that node does.
    """

    given: tuple[Value, ...]
    back: Value | None = None
    view: Node | None = None
    how: View | None = None


class Origins:
    """The origins of values in a graph, as they are when first asked for.

    Each node is examined once, however many values it is given: a branch or loop may pass on thousands.
    """

    def __init__(self) -> None:
        self._found: dict[Node, dict[Value, list[tuple[Value, Origin]]]] = {}

    def made_of(self, value: Value) -> Iterator[tuple[Value, Origin]]:
        """The values that users of ``value`` make of it, or pass it on as."""
        for user in value.iter_users():
            node = user.outer if user.is_return else user
            if node is not None:
                yield from self._of(node).get(value, ())

    def _of(self, node: Node) -> dict[Value, list[tuple[Value, Origin]]]:
        found = self._found.get(node)
        if found is None:
            found = self._found[node] = {}
            for made, origin in _results(node):
                for value in dict.fromkeys(origin.given):
                    found.setdefault(value, []).append((made, origin))
        return found


def _results(node: Node) -> Iterable[tuple[Value, Origin]]:
    if node.kind == IF:
        return zip(node.outputs, map(Origin, zip(*[block.returns for block in node.blocks])))
    if node.blocks:
        return _carried(node) if node.kind in CARRIERS else ()
    how = view_of(node)
    if how is not None and how.is_literal:
        return [(node.output, Origin((value,), None, node, how)) for value in dict.fromkeys(node.inputs)]
    if how is None and (node.kind == "prim::ListUnpack" or element_index(node) is not None):
        how = ELEMENT
    if how is not None:
        return [(made, Origin((node.inputs[0],), None, node, how)) for made in node.outputs]
    if len(node.outputs) != 1 or functional_kind(node) is None:
        return ()
    return [(node.output, Origin((node.inputs[0],)))]


def _carried(loop: Node) -> Iterator[tuple[Value, Origin]]:
    (block,) = loop.blocks
    inputs, returns = loop.inputs, block.returns
    for slot in slots(loop) or ():
        if slot.input is None or slot.returned is None or slot.returned >= len(returns):
            continue  # what a family is carried by is returned when all are done
        origin = Origin((inputs[slot.input],), returns[slot.returned])
        if slot.param is not None:
            yield block.params[slot.param], origin
        if slot.output is not None:
            yield loop.outputs[slot.output], origin
