"""Sizes as sums of others, where types have no name for them: of a cache after a step, ``past + new``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from irc.ir.ops.movers import ORDERED
from irc.ir.ops.pointwise import POINTWISE, SHAPED_LIKE_FIRST, is_pointwise
from irc.ir.ops.slices import bounds
from irc.ir.types import Dim, DType
from irc.passes.shapes.context import NodeTypes

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.passes.shapes.infer import Inference

Size = frozenset[tuple[Any, int]]
"""How often each term occurs in a sum: 1, a name, or an axis of a value."""

_DEEPEST = 24
"""How many operators are looked at, one behind the other; what is behind them is a term of its own."""

_MOST_TERMS = 16
"""Longer sums are terms of their own: they would be copied for each that has one term more."""


def number(n: int) -> Size:
    """``n`` as a size, or as the -1 of a target shape."""
    return frozenset({(1, n)})


def as_number(size: Size | None) -> int | None:
    """The number that ``size`` is, if it is one."""
    terms = [] if size is None else list(size)
    return terms[0][1] if len(terms) == 1 and terms[0][0] == 1 else None


def _of_dim(dim: Dim) -> Size:
    return number(dim) if isinstance(dim, int) else frozenset({(dim, 1)})


def _sum(sizes: Iterable[Size | None]) -> Size | None:
    total = Counter[Any]()
    for size in sizes:
        if size is None:
            return None
        total.update(dict(size))
    found = frozenset((term, n) for term, n in total.items() if n) or number(0)
    return found if len(found) <= _MOST_TERMS else None


def _is_size(size: Size | None) -> bool:
    """Whether ``size`` is surely not negative."""
    return size is not None and all(n >= 0 for _, n in size)


def _is_negative(size: Size | None) -> bool:
    return size is not None and all(n < 0 and term == 1 for term, n in size)


class Sizes:
    """What can be told of sizes and of the elements of target shapes: those that are equal surely are.

    What has been found stays true whatever is rewritten, and is found once: in deep models, each layer is looked at as
    if it were the first one.
    """

    def __init__(self, inference: Inference) -> None:
        self._inference = inference
        self._known: dict[tuple[_Rule, Value, int], Size | None] = {}
        self._depth = 0

    def forget(self) -> None:
        """Find all anew: types may say more than they did."""
        self._known.clear()

    def types(self, node: Node) -> NodeTypes:
        """What is known of a node's inputs."""
        return NodeTypes(node, self._inference.contents)

    def axis(self, value: Value, axis: int) -> Size | None:
        """The size of ``value`` along ``axis``, which is not negative; None if even its rank is not known."""
        type = value.type
        if type.shape is None or not self._inference.is_fixed(value):
            return None
        dim = type.shape[axis]
        if dim is not None:
            return _of_dim(dim)
        return self._followed(_AXES, value, axis) or frozenset({((value, axis), 1)})

    def element(self, c: NodeTypes, operand: int, index: int) -> Size | None:
        """Element ``index`` of input ``operand``, integers of at most one dimension."""
        contents, value = c.contents_of(operand), c.node.inputs[operand]
        if contents is not None and contents.flat[index] is not None:
            return _of_dim(contents.flat[index])
        return self._followed(_ELEMENTS, value, index) if self._inference.is_fixed(value) else None

    def _followed(self, rules: Mapping[str, _Rule], value: Value, index: int) -> Size | None:
        """What follows from how ``value`` is made."""
        rule = None if value.node is None else rules.get(value.node.kind)
        if rule is None or value.node is None:
            return None
        key = (rule, value, index)
        if key not in self._known:
            self._known[key] = None  # also where there are too many before it: all that asks is told the same
            if self._depth < _DEEPEST:
                self._depth += 1
                try:
                    self._known[key] = rule(self, self.types(value.node), index)
                finally:
                    self._depth -= 1
        return self._known[key]


_Rule = Callable[[Sizes, NodeTypes, int], "Size | None"]


# -- elements of shapes ----------------------------------------------------------


def _of_shape(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    rank = c.tensor(0).rank
    return None if rank is None else s.axis(c.node.inputs[0], range(rank)[c.attr("start", 0) : c.attr("end")][index])


def _of_concat(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    for i in range(len(c.node.inputs)):
        count = _count(c, i)
        if count is None or index < count:
            return None if count is None else s.element(c, i, index)
        index -= count
    return None


def _of_slice(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    count, starts, ends = _count(c, 0), c.ints(1), c.ints(2)
    steps = c.ints(4) if c.has(4) else [1]
    if c.version < 10 or count is None or not starts or not ends or not steps:
        return None
    return s.element(c, 0, range(count)[bounds(starts[0], ends[0], steps[0], count)][index])


def _of_gather(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    count, indices = _count(c, 0), c.ints(1)
    return None if count is None or indices is None else s.element(c, 0, range(count)[indices[index]])


def _same(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    return s.element(c, 0, index)


def _of_cast(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    return s.element(c, 0, index) if c.attr("to") == DType.INT64.onnx else None


def _of_add(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    return _sum(_spread(s, c, i, index) for i in (0, 1))


def _of_mul(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    product = _product(_spread(s, c, i, index) for i in (0, 1))
    return None if product is None else number(product)


def _of_where(s: Sizes, c: NodeTypes, index: int) -> Size | None:
    """As exporters replace the -1 of a shape: Where(Equal(shape, -1), ...)."""
    equal = c.node.inputs[0].made_by("onnx::Equal")
    if equal is None:
        return None
    a, b = (_spread(s, s.types(equal), i, index) for i in (0, 1))
    differ = (_is_size(a) and _is_negative(b)) or (_is_size(b) and _is_negative(a))
    return _spread(s, c, 2, index) if differ else None


def _spread(s: Sizes, c: NodeTypes, operand: int, index: int) -> Size | None:
    count = _count(c, operand)
    return None if count is None else s.element(c, operand, index if count > 1 else 0)


def _count(c: NodeTypes, operand: int) -> int | None:
    sizes = c.tensor(operand).static_shape
    return None if sizes is None or len(sizes) > 1 else math.prod(sizes)


_ELEMENTS: dict[str, _Rule] = {
    "onnx::Shape": _of_shape,
    "onnx::Concat": _of_concat,
    "onnx::Slice": _of_slice,
    "onnx::Gather": _of_gather,
    "onnx::Cast": _of_cast,
    "onnx::Add": _of_add,
    "onnx::Mul": _of_mul,
    "onnx::Where": _of_where,
    **dict.fromkeys(ORDERED, _same),
}


# -- sizes of results ------------------------------------------------------------


def _of_transpose(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    perm = c.attr("perm")
    return s.axis(c.node.inputs[0], perm[axis]) if perm else None


def _of_unsqueeze(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    rank, axes = c.tensor(0).rank, c.axes(1)
    if rank is None or axes is None:
        return None
    new = {c.axis(a, rank + len(axes)) for a in axes}
    return number(1) if axis in new else s.axis(c.node.inputs[0], axis - sum(a < axis for a in new))


def _of_joined(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    rank, values = c.tensor(0).rank, c.node.inputs
    if rank is None:
        return None
    joined = c.axis(c.attr("axis", 1), rank)
    if axis == joined:
        return _sum(s.axis(value, axis) for value in values)
    # What turns out to have no positions need not fit.
    sure = [value for value in values if as_number(s.axis(value, joined))]
    found = {s.axis(value, axis) for value in sure[:1] or values}
    return found.pop() if len(found) == 1 else None


def _of_expand(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    rank = c.tensor(0).rank
    if rank is None or _count(c, 1) != rank:
        return None
    own, asked = s.axis(c.node.inputs[0], axis), s.element(c, 1, axis)
    if own == number(1) and _is_size(asked):
        return asked
    return own if asked in (own, number(1)) else None


def _of_part(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    rank, axes = c.tensor(0).rank, c.axes(3)
    if rank is None or axes is None:
        return None
    own, cuts = s.axis(c.node.inputs[0], axis), [i for i, a in enumerate(axes) if c.axis(a, rank) == axis]
    if not cuts:
        return own
    if c.version < 10 or len(cuts) > 1:
        return None
    starts, ends, steps = (s.element(c, i, cuts[0]) if c.has(i) else number(1) for i in (1, 2, 4))
    return own if (starts, ends, steps) == (number(0), own, number(1)) else None


def _of_reshape(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    rank = c.tensor(0).rank
    if c.version < 5 or rank is None:
        return None
    asked = s.element(c, 1, axis)
    if c.attr("allowzero", 0):
        return asked if _is_size(asked) else None
    if asked == number(-1):
        return _rest(s, c, rank, axis)
    own = s.axis(c.node.inputs[0], axis) if axis < rank else None
    return own if asked in (own, number(0)) else None  # another one may turn out 0, which copies a size


def _rest(s: Sizes, c: NodeTypes, rank: int, axis: int) -> Size | None:
    """What a -1 stands for, if the axes before it stay as they are, and all after it are numbers, or one size and 1."""
    x = c.node.inputs[0]
    if axis > rank or any(s.element(c, 1, i) not in (number(0), s.axis(x, i)) for i in range(axis)):
        return None
    left = [size for i in range(axis, rank) if (size := s.axis(x, i)) != number(1)]
    had, made = _product(left), _product(s.element(c, 1, i) for i in range(axis + 1, _count(c, 1) or 0))
    if made == 1 and len(left) == 1:
        return left[0]
    return number(had // made) if had and made and had % made == 0 else None


def _product(sizes: Iterable[Size | None]) -> int | None:
    numbers = [as_number(size) for size in sizes]
    known = [n for n in numbers if n is not None]
    return math.prod(known) if len(known) == len(numbers) else None


def _of_product(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    left, right = c.tensor(0).rank, c.tensor(1).rank
    if left is None or right is None or min(left, right) < 2:
        return None
    from_end = axis - max(left, right)
    if from_end < -2:
        return _broadcast(s, c.node.inputs, from_end)
    return s.axis(c.node.inputs[0], left - 2) if from_end == -2 else s.axis(c.node.inputs[1], right - 1)


def _of_pointwise(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    rank = c.node.output.type.rank
    return None if rank is None or not is_pointwise(c.node) else _broadcast(s, c.node.inputs, axis - rank)


def _broadcast(s: Sizes, values: Sequence[Value], from_end: int) -> Size | None:
    """The size of what ``values`` broadcast to, of which at most one kind is not 1."""
    found: set[Size | None] = set()
    for value in values:
        rank = value.type.rank
        if rank is None:
            return None
        if rank + from_end >= 0:
            found.add(s.axis(value, rank + from_end))
    found.discard(number(1))
    return found.pop() if len(found) == 1 else None if found else number(1)


def _of_range(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    start, limit, step = (s.element(c, i, 0) for i in range(3))
    if start is None or limit is None or step != number(1):
        return None
    difference = _sum([limit, frozenset((term, -n) for term, n in start)])
    return difference if _is_size(difference) else None


def _of_mean(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    rank, axes = c.tensor(0).rank, c.axes(1)
    if rank is None or not axes or not c.attr("keepdims", 1):
        return None
    return number(1) if axis in {c.axis(a, rank) for a in axes} else s.axis(c.node.inputs[0], axis)


def _of_fill(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    asked = s.element(c, 0, axis)
    return asked if _is_size(asked) else None


def _as_first(s: Sizes, c: NodeTypes, axis: int) -> Size | None:
    return s.axis(c.node.inputs[0], axis)


_LIKE_FIRST = (*SHAPED_LIKE_FIRST, "onnx::RMSNormalization", "onnx::Softmax", "onnx::Trilu")

_AXES: dict[str, _Rule] = {
    **dict.fromkeys(POINTWISE, _of_pointwise),
    **dict.fromkeys(_LIKE_FIRST, _as_first),
    "onnx::ConstantOfShape": _of_fill,
    "onnx::MatMul": _of_product,
    "onnx::Range": _of_range,
    "onnx::ReduceMean": _of_mean,
    "onnx::Transpose": _of_transpose,
    "onnx::Unsqueeze": _of_unsqueeze,
    "onnx::Concat": _of_joined,
    "irc::append_": _of_joined,
    "onnx::Expand": _of_expand,
    "onnx::Reshape": _of_reshape,
    "onnx::Slice": _of_part,
}
