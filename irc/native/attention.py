"""Attention of few rows of each head, as in a decoder's step, row by row without BLAS calls.

Invariant: elements of a row of any operand lie side by side, and their number is a multiple of a vector's lanes. Scores
have room for whole vectors; what is beyond the last key is -inf there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.functions.exponential import exp_of_negative
from irc.native.kernels import RELEASED, Call
from irc.native.lanes import Lanes, load, load_one, only, register_type, store, tree
from irc.native.loops import BYTE, INT, finished, fold, loop, loop_function, number, offset, paced_loop, space_of
from irc.native.primitives import PRIMITIVES
from irc.native.target import current
from irc.ops.algebra import DOUBLE, SINGLE, AnyDType

MOST_WIDTH = 256
"""Elements of a row: code has its vectors one by one."""


class Form(NamedTuple):
    """What code depends on.

    Attributes:
        dtype: of all operands but the mask.
        width: elements of a row of queries and keys.
        values: elements of a row of values.
        group: rows that share keys and values, of one head or of several.
        scale: factor of the scores.
        fill: score of keys that the mask excludes; None without a mask.
        has_bias: whether numbers are added to scores.
    """

    dtype: AnyDType
    width: int
    values: int
    group: int
    scale: float
    fill: float | None
    has_bias: bool


class Layout(NamedTuple):
    """The numbers, of int64, that the loop function reads.

    Heads lie along two axes, of which the inner one's size is here; then come strides in bytes, and whether each row
    has a mask and a bias of its own (1), or one is that of all (0). They are in an array, as strides of growing caches
    are known only when a table runs.
    """

    heads: Any
    key_outer: Any
    key_inner: Any
    key_row: Any
    value_outer: Any
    value_inner: Any
    value_row: Any
    mask_rows: Any = 1
    bias_rows: Any = 1


def call_for_attention(
    query: Array, key: Array, value: Array, scale: float, fill: float | None = None, has_bias: bool = False
) -> Call | None:
    """A call for arrays like these, whatever the number of keys; None if there is no code for them.

    It takes a query in C order, keys, values, the number of keys (int64), a `Layout`, scores (rows, keys, rounded up to
    a multiple of `lanes_of`), mask and bias (rows or 1, keys) in C order if there are such, and the result in C order.
    """
    group = query.shape[-2] * (query.shape[-3] if query.ndim > key.ndim else 1)
    form = Form(query.dtype, query.shape[-1], value.shape[-1], group, scale, fill, has_bias)
    if query.dtype not in (SINGLE, DOUBLE) or max(form.width, form.values) > MOST_WIDTH:
        return None
    if form.width % lanes_of(query.dtype) or form.values % lanes_of(query.dtype) or not form.width * form.values:
        return None
    if key.strides[-1] != key.itemsize or value.strides[-1] != value.itemsize:
        return None
    name, size, make = "irc.attention", query.size // form.width, partial(emit_attention, "irc.attention", form)
    return Call.of_loops(name, f"{name} {form!r}", make, _arrays(form), (), size, RELEASED + 1)


def layout_of(key: Array, value: Array, mask_rows: int = 1, bias_rows: int = 1) -> Array | None:
    """The `Layout` of these keys and values, an array; None if heads lie along more than two axes."""
    lead = key.shape[:-2]
    sizes, strides = space_of(lead, [(lead, key.strides[:-2]), (lead, value.strides[:-2])])
    size = sizes[-1]
    if len(sizes) > 2:
        return None
    (k_outer, k_inner), (v_outer, v_inner) = (((0, *each)[-2], each[-1]) for each in strides)
    numbers = size, k_outer, k_inner, key.strides[-2], v_outer, v_inner, value.strides[-2]
    return np.array(Layout(*numbers, mask_rows, bias_rows))


def _arrays(form: Form) -> int:
    return 7 + (form.fill is not None) + form.has_bias


def lanes_of(dtype: AnyDType) -> int:
    """Of a vector."""
    return current().vector_bytes // dtype.itemsize


def emit_attention(name: str, form: Form) -> tuple[str, Mapping[str, Any]]:
    """The loop function ``name`` of a range of rows, and what it needs."""
    dtype, size, count = form.dtype, form.dtype.itemsize, lanes_of(form.dtype)
    emitter, arrays, _, begin, end = loop_function(name, current(), count, _arrays(form), 0)
    queries, keys, values, count_at, layout_at, scores, *more, out = arrays
    builder = emitter.builder
    places = [offset(builder, layout_at, number(8 * i)) for i in range(len(Layout._fields))]
    layout = Layout(*[builder.load(place, typ=INT, align=8) for place in places])
    many = builder.load(count_at, typ=INT, align=8)
    padded = builder.and_(builder.add(many, number(count - 1)), number(-count))

    def moved(pointer: Any, *steps: Any) -> Any:
        for index, stride in zip(steps[::2], steps[1::2]):
            pointer = offset(builder, pointer, builder.mul(index, stride))
        return pointer

    def row_of(pointer: Any, width: int) -> list[Lanes]:
        return [load(emitter, offset(builder, pointer, number(i * size)), dtype) for i in range(0, width, count)]

    with paced_loop(emitter, begin, end, 1, builder.mul(many, number(form.width + form.values))) as each:
        shared = builder.sdiv(each, number(form.group))
        outer, inner = builder.sdiv(shared, layout.heads), builder.srem(shared, layout.heads)
        key = moved(keys, outer, layout.key_outer, inner, layout.key_inner)
        value = moved(values, outer, layout.value_outer, inner, layout.value_inner)
        query = [x * form.scale for x in row_of(moved(queries, each, number(form.width * size)), form.width)]
        row = moved(scores, each, builder.mul(padded, number(size)))
        with loop(builder, number(0), many) as j:
            products, *others = zip(query, row_of(moved(key, j, layout.key_row), form.width))
            total = products[0] * products[1]
            for x, y in others:
                total = x.fma(y, total)
            score = only(tree(total, PRIMITIVES["add"]))
            if form.has_bias:
                place = builder.add(builder.mul(builder.mul(each, many), layout.bias_rows), j)
                added = builder.load(moved(more[-1], place, number(size)), typ=register_type(dtype), align=size)
                score = builder.fadd(score, added)
            if form.fill is not None:
                place = builder.add(builder.mul(builder.mul(each, many), layout.mask_rows), j)
                is_seen = builder.icmp_unsigned("!=", builder.load(offset(builder, more[0], place), typ=BYTE), BYTE(0))
                score = builder.select(is_seen, score, only(emitter.constant(form.fill, dtype)))
            builder.store(score, moved(row, j, number(size)), align=size)
        lowest, zero = emitter.constant(-np.inf, dtype), emitter.constant(0, dtype)
        with loop(builder, many, padded) as j:
            builder.store(only(lowest), moved(row, j, number(size)), align=size)

        def higher(i: Any, carried: list[Lanes]) -> list[Lanes]:
            return [PRIMITIVES["maximum"](carried[0], load(emitter, moved(row, i, number(size)), dtype))]

        def weighted(i: Any, carried: list[Lanes]) -> list[Lanes]:
            at = moved(row, i, number(size))
            weight = exp_of_negative(load(emitter, at, dtype) - highest)
            store(weight, at, dtype)
            return [carried[0] + weight]

        def mixed(j: Any, carried: list[Lanes]) -> list[Lanes]:
            weight = load_one(emitter, moved(row, j, number(size)), dtype)
            found = row_of(moved(value, j, layout.value_row), form.values)
            return [x.fma(weight, sum_so_far) for x, sum_so_far in zip(found, carried)]

        (largest,) = fold(builder, number(0), padded, count, [lowest], higher)
        highest = emitter.splat(only(tree(largest, PRIMITIVES["maximum"])), dtype)
        (sums,) = fold(builder, number(0), padded, count, [zero], weighted)
        divisor = emitter.splat(only(tree(sums, PRIMITIVES["add"])), dtype)
        result = moved(out, each, number(form.values * size))
        for i, x in enumerate(fold(builder, number(0), many, 1, [zero] * (form.values // count), mixed)):
            store(x / divisor, offset(builder, result, number(i * count * size)), dtype)
    return finished(emitter)
