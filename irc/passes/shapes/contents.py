"""Contents of small integer tensors: the shape arithmetic that exporters write.

A rule gives an array of ``Dim`` (numbers, sizes with or without a name and
their differences, None for unknown), so that ``Reshape(x, Concat(Gather(Shape(x),
0), -1))`` keeps its named sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from irc.ir.polynomials import is_positive, is_size, minus, plus, product, quotient, surely_differ, times
from irc.ir.types import Dim
from irc.ops.inference import Contents, NodeTypes, as_contents
from irc.ops.slices import bounds

ContentsRule = Callable[[NodeTypes], "Contents | None"]


def _shape(c: NodeTypes) -> Contents | None:
    x = c.shape(0)
    return None if x is None else _array(list(x[c.attr("start", 0) : c.attr("end")]))


def _size(c: NodeTypes) -> Contents | None:
    x = c.shape(0)
    return None if x is None else _array(product(x))


def _same(c: NodeTypes) -> Contents | None:
    return c.contents_of(0)


def _cast(c: NodeTypes) -> Contents | None:
    # To another integer type only: to bool and float changes what the numbers mean.
    x = c.contents_of(0)
    return None if x is None or c.attr("to") not in (6, 7) else _elementwise(_as_int, x)


def _as_int(d: Dim) -> Dim:
    return int(d) if isinstance(d, bool) else d


def _gather(c: NodeTypes) -> Contents | None:
    x, indices = c.contents_of(0), c.ints(1)
    shape = c.shape(1)
    if x is None or indices is None or shape is None or len(shape) > 1 or x.ndim != 1:
        return None
    if not all(-len(x) <= i < len(x) for i in indices):
        return None  # if this ever runs, the run says so
    return _array([x[i] for i in indices]) if shape else _array(x[indices[0]])


def _slice(c: NodeTypes) -> Contents | None:
    x = c.contents_of(0)
    if x is None or x.ndim != 1:
        return None
    starts, ends, _, steps = c.slices()
    if starts is None or ends is None or steps is None or len(starts) != 1:
        return None
    start, end = starts[0], ends[0]
    if not isinstance(start, int) or not isinstance(end, int):
        return None
    return x[bounds(start, end, steps[0] or 1, len(x))]


def _concat(c: NodeTypes) -> Contents | None:
    parts = [c.contents_of(i) for i in range(len(c.node.inputs))]
    known = [p for p in parts if p is not None and p.ndim == 1]
    return np.concatenate(known) if len(known) == len(parts) else None


def _unsqueeze(c: NodeTypes) -> Contents | None:
    x = c.contents_of(0)
    return x.reshape(1) if x is not None and x.ndim == 0 and len(c.axes(1) or ()) == 1 else None


def _squeeze(c: NodeTypes) -> Contents | None:
    x = c.contents_of(0)
    return x.reshape(()) if x is not None and x.size == 1 and (c.axes(1) or not c.has(1)) else None


def _reshape(c: NodeTypes) -> Contents | None:
    x, target = c.contents_of(0), c.ints(1)
    if x is None or target is None or len(target) > 1 or (target and target[0] not in (-1, x.size)):
        return None
    return x.reshape(target)


def _expand(c: NodeTypes) -> Contents | None:
    x, target = c.contents_of(0), c.ints(1)
    if x is None or target is None or len(target) > 1 or (target and not 0 <= target[0] <= 64):
        return None
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(target)))


def _constant_of_shape(c: NodeTypes) -> Contents | None:
    sizes, given = c.ints(0), c.attr("value")
    if sizes is None or len(sizes) > 1 or (sizes and not 0 <= sizes[0] <= 64):
        return None
    if given is None or not given.dtype.is_integer:
        return None
    return np.broadcast_to(as_contents(given.scalar), tuple(sizes))


def _range(c: NodeTypes) -> Contents | None:
    bounds = [c.ints(i) for i in range(3)]
    dtype = c.dtype(0)
    if any(not b for b in bounds) or dtype is None or not dtype.is_integer:
        return None
    start, limit, delta = (b[0] for b in bounds if b)
    if delta == 0 or abs(limit - start) > 64 * abs(delta):
        return None
    return _array(list(range(start, limit, delta)))


def _where(c: NodeTypes) -> Contents | None:
    parts = [c.contents_of(i) for i in range(3)]
    if all(part is None for part in parts[1:]):
        return None
    return _elementwise(_choose, *[_array(None) if part is None else part for part in parts])


def _choose(condition: Dim, a: Dim, b: Dim) -> Dim:
    return a if a == b else None if condition is None else a if condition else b


def _elementwise_rule(apply: Callable[..., Dim], oldest: int = 7) -> ContentsRule:
    """The rule of an operator that broadcasts its operands, as it does from version ``oldest`` on."""

    def rule(c: NodeTypes) -> Contents | None:
        parts = [c.contents_of(i) for i in range(len(c.node.inputs))]
        known = [part for part in parts if part is not None]
        return None if len(known) < len(parts) or c.version < oldest else _elementwise(apply, *known)

    return rule


def _divide(a: Dim, b: Dim) -> Dim:
    if isinstance(a, int) and isinstance(b, int):
        # ONNX integer division truncates toward zero.
        return None if b == 0 else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return quotient(a, b) if surely_differ(b, 0) else None


def _negative(a: Dim) -> Dim:
    return times(a, -1)


def _equal(a: Dim, b: Dim) -> Dim:
    if a is None or b is None:
        return None
    # A size is never negative, so it is no -1 (the idiom Where(Equal(shape, -1), ...)).
    return True if a == b else False if surely_differ(a, b) else None


def _less(a: Dim, b: Dim) -> Dim:
    return True if is_positive(minus(b, a)) else False if is_size(minus(a, b)) else None


def _at_most(a: Dim, b: Dim) -> Dim:
    return True if is_size(minus(b, a)) else False if is_positive(minus(a, b)) else None


def _more(a: Dim, b: Dim) -> Dim:
    return _less(b, a)


def _at_least(a: Dim, b: Dim) -> Dim:
    return _at_most(b, a)


def _not(a: Dim) -> Dim:
    return None if a is None else not a


def _least(*sizes: Dim) -> Dim:
    return reduce(lambda a, b: a if is_size(minus(b, a)) else b if is_size(minus(a, b)) else None, sizes)


def _most(*sizes: Dim) -> Dim:
    return reduce(lambda a, b: a if is_size(minus(a, b)) else b if is_size(minus(b, a)) else None, sizes)


def _reduce_prod(c: NodeTypes) -> Contents | None:
    x, axes = c.contents_of(0), c.axes(1)
    if x is None or (axes is None and c.has(1)):
        return None
    if not axes and c.attr("noop_with_empty_axes", 0):
        return x
    if x.ndim != 1 or (axes and axes not in ([0], [-1])):
        return None
    result = _array(product(list(x)))
    return result.reshape(1) if c.attr("keepdims", 1) else result


def _array(values: Any) -> Contents:
    if isinstance(values, list):
        out = np.empty(len(values), object)  # type: ignore[reportUnknownArgumentType]
        out[:] = values
        return out
    out = np.empty((), object)
    out[()] = values
    return out


def _elementwise(apply: Callable[..., Any], *arrays: Contents) -> Contents:
    spread = np.broadcast_arrays(*arrays)
    flat = [apply(*items) for items in zip(*(a.reshape(-1) for a in spread), strict=True)]
    out = np.empty(len(flat), object)
    out[:] = flat
    return out.reshape(spread[0].shape)


CONTENTS_RULES: dict[str, ContentsRule] = {
    "onnx::Shape": _shape,
    "onnx::Size": _size,
    "onnx::Identity": _same,
    "onnx::Cast": _cast,
    "onnx::Gather": _gather,
    "onnx::Slice": _slice,
    "onnx::Concat": _concat,
    "onnx::Unsqueeze": _unsqueeze,
    "onnx::Squeeze": _squeeze,
    "onnx::Reshape": _reshape,
    "onnx::Expand": _expand,
    "onnx::ConstantOfShape": _constant_of_shape,
    "onnx::Range": _range,
    "onnx::Where": _where,
    "onnx::Add": _elementwise_rule(plus),
    "onnx::Sub": _elementwise_rule(minus),
    "onnx::Mul": _elementwise_rule(times),
    "onnx::Div": _elementwise_rule(_divide),
    "onnx::Neg": _elementwise_rule(_negative),
    "onnx::Equal": _elementwise_rule(_equal),
    "onnx::Less": _elementwise_rule(_less),
    "onnx::LessOrEqual": _elementwise_rule(_at_most),
    "onnx::Greater": _elementwise_rule(_more),
    "onnx::GreaterOrEqual": _elementwise_rule(_at_least),
    "onnx::Not": _elementwise_rule(_not, oldest=1),
    "onnx::Min": _elementwise_rule(_least, oldest=1),
    "onnx::Max": _elementwise_rule(_most, oldest=1),
    "onnx::ReduceProd": _reduce_prod,
}
