"""The bytes of results, before they are made: constant folding and runs under limits need them.

The shape rule of an operator tells them of the operands that it is given. What it cannot tell, the field `size` of the
record does: bytes of strings, lists, and of tensors whose shapes contents decide. The functions for it are below.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np

from irc.errors import Error
from irc.ir import DType, Node, Tensor, TensorType, Type
from irc.ops.inference import OperandTypes, type_of_operand
from irc.ops.record import Size
from irc.ops.registry import of_kind, on_change, record
from irc.ops.shape_rules import types_told
from irc.ops.signatures import schemas

VIEW_BYTES = 128
"""What a view takes beside the memory that it shows."""

STRING_BYTES = 64
"""What a string takes beside its characters, and its place in an array."""

ENTRY_BYTES = 40
"""A place in a list, and the number there."""

_INDEX_BYTES = 8  # a number of int64
_NUMBER_TEXT = 32  # characters of a number, and what parts it from the next one
_WIDEST_CHARACTER = 4
_WHOLE_TEXT = 1000  # of a tensor with more elements, only those at the ends of each dimension are written: 7 places


def object_bytes(value: Any) -> int:
    """The bytes of a string, or of the places of a list, tuple or dictionary; 0 for anything else."""
    if isinstance(value, str):
        return sys.getsizeof(value) + 8
    if isinstance(value, (list, tuple, dict)):
        return len(cast("Sequence[Any]", value)) * ENTRY_BYTES
    return 0


def content_bytes(value: Any) -> int:
    """As `object_bytes`, with the contents of lists and tuples, counted as often as they occur."""
    inner = cast("Sequence[Any]", value) if isinstance(value, (list, tuple)) else ()
    return object_bytes(value) + sum(map(content_bytes, inner))


def declared_bytes(node: Node, operands: Sequence[Any]) -> int | None:
    """Result bytes of ``node`` on ``operands`` by its record's field `size`; None if the record has none.

    0 for operands that the operator rejects.
    """
    size = record(node.kind).size
    return None if size is None else _asked(size, OperandTypes(node, operands))


def result_bytes(node: Node, operands: Sequence[Any]) -> int:
    """Result bytes of ``node`` on ``operands`` (arrays, Python values); 0 if nothing tells them.

    The field `size` of its record tells them, else its shape rule: of these shapes, and of the contents that it looks
    at. Results that may share the memory of an operand do not count, nor do those of a node that will fail.
    """
    operator = record(node.kind)
    told = declared_bytes(node, operands)
    if told or _may_share(node.kind):
        return told or 0
    rule = _by_shapes if operator.shape is not None else broadcast if operator.pointwise else None
    if rule is None:
        return 0
    try:
        forms = tuple([(x.shape, x.dtype) if x.__class__ is np.ndarray else (x.__class__, x) for x in operands])
        known = _told.setdefault(node, {}).get(forms)
    except TypeError:  # a list, which may be another one next time
        return _asked(rule, OperandTypes(node, operands)) or 0
    if known is None:
        types = OperandTypes(node, operands)
        known = _asked(rule, types) or 0
        if not types.looked:
            if len(_told[node]) >= _MOST_FORMS:
                _told[node].clear()
            _told[node][forms] = known
    return known


_told: WeakKeyDictionary[Node, dict[Any, int]] = WeakKeyDictionary()
"""Node -> forms of its operands -> what its shape rule has told without contents. Nodes that are run do not change."""

_MOST_FORMS = 64


def _asked(size: Size, types: OperandTypes) -> int | None:
    try:
        told = size(types)
        return None if told is None else int(told)
    except (Error, ValueError, LookupError, TypeError, AttributeError, ArithmeticError):
        return 0  # the operands are not those that the operator takes, which the kernel will report


def _by_shapes(types: OperandTypes) -> int:
    rule = record(types.node.kind).shape
    told = () if rule is None else types_told(rule, types)
    return sum(_tensor_bytes(type, types) for type, _ in zip(told, types.node.outputs, strict=False))


def _tensor_bytes(type: Type, types: OperandTypes) -> int:
    sizes = type.static_shape
    if sizes is None:
        return 0
    operands = _element_types(types)
    if type.dtype is DType.STRING and DType.STRING not in operands:
        return math.prod(sizes) * STRING_BYTES  # they are made, not only referred to
    return math.prod(sizes) * max(dtype.numpy.itemsize for dtype in (operands if type.dtype is None else [type.dtype]))


def _element_types(types: OperandTypes) -> set[DType]:
    return {dtype for i in range(len(types.operands)) if (dtype := types.dtype(i)) is not None}


@of_kind
def _may_share(kind: str) -> bool:
    """Whether a result, a tensor, may share memory with an operand."""
    formals = (formal for row in schemas(kind) for formal in row.returns if isinstance(formal.type, TensorType))
    return any(formal.alias is not None for formal in formals)


on_change.append(lambda kind: _told.clear())


# -- tensors -------------------------------------------------------------------


def broadcast(types: OperandTypes) -> int:
    """Bytes of a tensor of the shape that all tensors among the operands broadcast to."""
    shapes = [types.shape(i) for i, x in enumerate(types.operands) if isinstance(x, np.ndarray | Tensor)]
    return math.prod(cast("Sequence[int]", types.broadcast(shapes) or ())) * max(
        dtype.numpy.itemsize for dtype in _element_types(types)
    )


def nonzero(types: OperandTypes) -> int | None:
    """Result bytes: a position, one number an axis, for each nonzero element; None of more operands."""
    x, *others = types.operands
    if others:
        return None
    is_splat = isinstance(x, Tensor) and x.is_splat
    count = x.numel * bool(x.scalar) if is_splat else int(np.count_nonzero(x.numpy() if isinstance(x, Tensor) else x))
    return count * len(x.shape) * _INDEX_BYTES


def all_elements(types: OperandTypes) -> int:
    """Result bytes if all elements of the first operand are chosen; further results are positions."""
    item = (types.dtype(0) or DType.INT64).numpy.itemsize
    return math.prod(types.operands[0].shape) * (item + _INDEX_BYTES * (len(types.node.outputs) - 1))


def indexed(types: OperandTypes) -> int:
    """Bytes of what ``x[indices]`` gives, without masks, whose size the operand bounds."""
    x, indices, *_ = types.operands
    given = [
        (n, t.shape)
        for n, t in zip(x.shape, map(type_of_operand, indices))
        if t and t.shape is not None and t.dtype is not DType.BOOL
    ]
    wanted = cast("Sequence[int]", types.broadcast([shape for _, shape in given]) or ())
    return x.nbytes // math.prod(n for n, _ in given) * math.prod(wanted)


def listed(types: OperandTypes) -> int:
    """Bytes of the tensors that the first operand, a list, holds."""
    return sum(x.nbytes for x in types.operands[0] if isinstance(x, np.ndarray | Tensor))


def joined_text(types: OperandTypes) -> int:
    """Bytes of strings joined element by element."""
    count = math.prod(cast("Sequence[int]", types.broadcast([x.shape for x in types.operands]) or ()))
    text = (sum(map(object_bytes, x.reshape(-1).tolist())) * (count // max(1, x.size)) for x in types.operands)
    return sum(text) + count * 8


# -- strings and lists that are made of Python's values ----------------------------


def of_values(size: Callable[..., float | None]) -> Size:
    """``size``, which takes the operands one by one, as the field `size` of records."""

    @wraps(size)
    def told(types: OperandTypes) -> float | None:
        return size(*types.operands)

    return told


# -- strings -------------------------------------------------------------------


def _text(characters: int, *strings: str) -> int:
    """Bytes of a string of ``characters`` characters taken from ``strings``."""
    return STRING_BYTES + characters * (1 if all(map(str.isascii, strings)) else _WIDEST_CHARACTER)


@of_values
def padded(x: str, width: int, character: str = " ") -> int:
    """Bytes of ``x`` padded to ``width`` characters."""
    return _text(max(len(x), width), x, character)


@of_values
def joined(separator: str, parts: Sequence[str]) -> int:
    """Bytes of ``parts`` with ``separator`` between them."""
    return _text(sum(map(len, parts)) + len(parts) * len(separator), separator, *parts)


@of_values
def replaced(x: str, old: str, new: str, most: int = -1) -> int:
    """Bytes of ``x`` with ``new`` in the place of ``old``, at most ``most`` times."""
    places = x.count(old)
    return _text(len(x) + (places if most < 0 else min(places, most)) * max(0, len(new) - len(old)), x, new)


@of_values
def written(*values: Any) -> int:
    """Bytes of one string with all values as text."""
    writing = _Writing()
    return STRING_BYTES + sum(map(writing.characters, values)) * writing.width


class _Writing:
    """The length of values as text: a repeated list counts each time, but is walked once.

    Attributes:
        width: bytes of a character, as far as strings have been seen.
    """

    def __init__(self) -> None:
        self.width = 1
        self._known: dict[int, int] = {}

    def characters(self, value: Any) -> int:
        if isinstance(value, str):
            self.width = self.width if value.isascii() else _WIDEST_CHARACTER
            return len(value) + 2
        if isinstance(value, (Tensor, np.ndarray)):
            shape: tuple[int, ...] = cast("Any", value).shape
            return _NUMBER_TEXT * min(math.prod(shape), max(_WHOLE_TEXT, 7 ** len(shape)))
        if not isinstance(value, (list, tuple, dict)):
            return _NUMBER_TEXT
        found = cast("Mapping[Any, Any] | Sequence[Any]", value)
        if id(found) not in self._known:
            self._known[id(found)] = 0
            inner = [x for entry in found.items() for x in entry] if isinstance(found, Mapping) else found
            self._known[id(found)] = 2 + sum(self.characters(v) + 2 for v in inner)
        return self._known[id(found)]


def _parts(pieces: int, x: str) -> int:
    """Bytes of ``x`` split into ``pieces`` strings."""
    return pieces * (STRING_BYTES + ENTRY_BYTES) + _text(len(x), x)


@of_values
def split(x: str, separator: str | None = None, most: int = -1) -> int:
    """Bytes of the pieces of ``x`` between separators, by default blanks."""
    pieces = x.count(separator) if separator else len(x) // 2
    return _parts((pieces if most < 0 else min(pieces, most)) + 1, x) if x else 0


@of_values
def split_lines(x: str, keepends: bool = False) -> int:
    """Bytes of the lines of ``x``."""
    return _parts(2 * sum(map(x.count, "\n\r\v\f\x1c\x1d\x1e")) + 1, x)


# -- lists ---------------------------------------------------------------------


@of_values
def concatenated(x: Any, y: Any, *others: Any) -> int | None:
    """Bytes of two strings or lists in one; None of tensors."""
    if isinstance(x, str) and isinstance(y, str):
        return _text(len(x) + len(y), x, y)
    return object_bytes(x) + object_bytes(y) if isinstance(x, list) else None


@of_values
def repeated(x: Any, y: Any) -> int | None:
    """Bytes of a string or list, repeated as often as the other operand says; None of tensors and numbers."""
    sequence, times = (x, y) if isinstance(y, int) else (y, x)
    if not isinstance(times, int) or not isinstance(sequence, str | list | tuple):
        return None
    if isinstance(sequence, str):
        return _text(len(sequence) * max(times, 0), sequence)
    return object_bytes(sequence) * max(times, 0)


@of_values
def entries(x: Any) -> int:
    """Bytes of a list of the elements of ``x``."""
    return len(x) * ENTRY_BYTES


@of_values
def pairs(x: Any) -> int:
    """Bytes of a list of the keys and values of ``x``, in pairs."""
    return 3 * len(x) * ENTRY_BYTES


@of_values
def number_range(n: int) -> int:
    """Bytes of a list of ``n`` numbers."""
    return max(n, 0) * ENTRY_BYTES


@of_values
def nested_list(x: Any, *others: Any) -> float:
    """Bytes of the numbers of the tensor ``x``, in lists."""
    return math.prod(x.shape) * ENTRY_BYTES
