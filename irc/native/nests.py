"""Loop nests over arrays' elements that compute a program (`irc.native.programs`) by a `Schedule`.

Axes of the domain are of two kinds. *Outer* ones go from row to row; the range is of rows. *Inner* ones lie within a
row, and each pass is a nest of loops over them, of which the innermost one goes in vectors. A program without
reductions has no outer axes; its range is of its first inner axis.

Lanes of a vector lie along rows, or across them:

- *Along*: a vector holds neighbours of one row. Reductions accumulate in its lanes, which are then combined as a tree;
  at a row's end, lanes without elements count as the neutral element. Row values are vectors of one lane, and so is
  all else that does not vary along the innermost axis: it is computed outside of that loop.
- *Across*: a vector holds one element of each of several neighbouring rows, where rows lie apart or are short. Row
  values are vectors as all others.

Invariants:

- Nothing outside of the arrays is touched. Where fewer elements than lanes are left, they go through buffers on the
  stack, or are read by masked loads. Buffers are zeros at first, so what is computed of lanes that nothing was copied
  to has no effect. The last array, the scratch, is large enough for whole vectors, and belongs to the call alone.
- Results overlap operands only where each element lies where the operand's does, and is read before.
- The order in which a row's elements are combined depends on its length and on the code alone. Sums of long rows are
  added up in blocks, and blocks of blocks, so that errors do not grow with the length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from irc.native.functions.exponential import exp_of_negative
from irc.native.lanes import (
    INT64,
    Emitter,
    Lanes,
    joined,
    load,
    load_one,
    memory_type,
    only,
    select,
    store,
    tree,
)
from irc.native.loops import (
    Accumulate,
    Accumulators,
    copy_elements,
    finished,
    fold,
    lanes_inside,
    least,
    loop,
    loop_function,
    masked_load,
    number,
    offset,
    paced_fold,
    pause,
    product,
)
from irc.native.primitives import PRIMITIVES, apply, cast, ordered
from irc.native.programs import Pass, Program, Schedule
from irc.native.row_operators import COUNT, EXP_OF_NEGATIVE, LARGEST, MAXIMUM, MINIMUM, PRODUCT, SUM
from irc.native.target import Target, ir
from irc.ops.algebra import BOOL, AnyDType, Apply, Constant, Expression, Operand

BLOCK = 128
"""Vectors that are accumulated one by one; of more, sums of this many are accumulated."""


class Step(Enum):
    """How far one element of an array lies from the next along the axis that lanes lie along."""

    NONE = "all are one"
    DENSE = "side by side"
    APART = "at a distance that the call knows"


class Access(NamedTuple):
    """An array of a loop: its element type, and the step from one to the next."""

    dtype: AnyDType
    step: Step


class Shape(NamedTuple):
    """What code depends on, apart from the program.

    Attributes:
        arrays: the leaves, then the results.
        is_across: where lanes lie.
        outer: the number of axes that go from row to row.
        inner: the number of axes within a row.
        levels: of blocks of blocks.
        lanes: of a vector.
        is_long: whether what is done for one number of the range takes so long that its loops have to pause.
    """

    arrays: tuple[Access, ...]
    is_across: bool
    outer: int
    inner: int
    levels: int
    lanes: int
    is_long: bool


def emit(name: str, program: Program, plan: Schedule, shape: Shape, target: Target) -> tuple[str, Mapping[str, Any]]:
    """The module of the loop function ``name`` over rows, or vectors of rows, and what it needs.

    Its layout: sizes of outer and of inner axes; elements a row; bytes of a kept row; the strides of each array and of
    the scratch, of outer axes, then of inner ones.
    """
    arrays, axes = len(shape.arrays) + bool(plan.kept), shape.outer + shape.inner
    emitter, *rest = loop_function(name, target, shape.lanes, arrays, axes + 2 + arrays * axes)
    _Nest(emitter, program, plan, shape).emit(*rest)
    return finished(emitter)


def _combine(reducer: Any, x: Lanes, y: Lanes) -> Lanes:
    if reducer is LARGEST:
        return select(y > x, y, x)
    names = {SUM: "add", PRODUCT: "multiply", MAXIMUM: "maximum", MINIMUM: "minimum"}
    return PRIMITIVES[names[reducer]](x, y)


def _neutral(reducer: Any, dtype: AnyDType) -> complex:
    if reducer in (SUM, PRODUCT):
        return int(reducer is PRODUCT)
    sign = 1 if reducer is MINIMUM else -1
    if dtype.kind == "f":
        return sign * np.inf
    if dtype == BOOL:
        return sign > 0
    return int(np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min)


_MASKABLE = ir.FloatType(), ir.DoubleType(), ir.IntType(32), ir.IntType(64)
"""The elements of which a vector can be read in part."""


class _Nest:
    def __init__(self, emitter: Emitter, program: Program, plan: Schedule, shape: Shape) -> None:
        self._emitter, self._builder = emitter, emitter.builder
        self._program, self._plan, self._shape = program, plan, shape
        self._is_across = shape.is_across
        self._row_emitter = emitter
        if not shape.is_across:
            self._row_emitter = Emitter(emitter.builder, 1, emitter.has_fma, emitter.has_f16c)
            self._row_emitter.needs = emitter.needs
        self._kept = {id(x): i for i, x in enumerate(plan.kept)}
        self._leaves = len(program.leaves)

    def emit(self, starts: list[Any], known: list[Any], begin: Any, end: Any) -> None:
        shape, builder = self._shape, self._builder
        outer, axes = shape.outer, shape.outer + shape.inner
        sizes, (self._count, self._row_bytes) = known[:axes], known[axes : axes + 2]
        self._inner = [(number(0), size) for size in sizes[outer:]]
        strides = [known[i : i + axes] for i in range(axes + 2, len(known), axes)]
        self._strides = [each[outer:] for each in strides]
        for i, array in enumerate(shape.arrays):
            if outer and not self._is_across and array.step is Step.DENSE:
                # Known, which makes addresses simpler. Not so without rows: loops over many streams of memory then take
                # a sixth more, as loads follow too closely on stores to addresses that are equal modulo 4096.
                self._strides[i][-1] = number(array.dtype.itemsize)
        self._lane_strides = [each[outer - 1] if self._is_across else each[-1] for each in strides]
        self._buffers = [self._buffer(array) for array in shape.arrays]
        if not outer:
            self._inner[0] = begin, end
            self._row(starts, None)
            return
        whole = number(self._emitter.count)
        with loop(builder, begin, end) as row:
            if not self._is_across:
                self._row(self._unravelled(starts, row, sizes[:outer], strides), None)
                return
            last = sizes[outer - 1]
            blocks = builder.sdiv(builder.add(last, number(self._emitter.count - 1)), whole)
            column = builder.mul(builder.srem(row, blocks), whole)
            at = self._unravelled(starts, builder.sdiv(row, blocks), sizes[: outer - 1], strides)
            at = [offset(builder, x, builder.mul(column, each[outer - 1])) for x, each in zip(at, strides)]
            left = builder.sub(last, column)
            with builder.if_else(builder.icmp_signed(">=", left, whole)) as (then, otherwise):
                with then:
                    self._row(at, None)
                with otherwise:
                    self._row(at, left)

    def _buffer(self, array: Access) -> Any:
        """Stack memory for a vector of an array's elements, zeroed; None if all of them are one."""
        if array.step is Step.NONE:
            return None
        kind = ir.VectorType(memory_type(array.dtype), self._emitter.count)
        found = self._builder.alloca(kind)
        self._builder.store(ir.Constant(kind, None), found, align=array.dtype.itemsize)
        return found

    def _unravelled(self, starts: Sequence[Any], index: Any, sizes: Sequence[Any], strides: Sequence[Any]) -> list[Any]:
        """Where each array's row ``index`` starts."""
        builder, at = self._builder, list(starts)
        for axis in reversed(range(len(sizes))):
            i = builder.srem(index, sizes[axis]) if axis else index
            if axis:
                index = builder.sdiv(index, sizes[axis])
            at = [offset(builder, x, builder.mul(i, each[axis])) for x, each in zip(at, strides)]
        return at

    # -- a row -----------------------------------------------------------------

    def _row(self, at: list[Any], left: Any) -> None:
        """Emit all of a row, or, across, of as many rows as there are lanes, or ``left``."""
        self._left, self._rows = left, dict[int, Lanes]()
        for each in self._plan.passes:
            self._pass(each, at)
        for i, result in enumerate(self._program.results, self._leaves):
            if id(result.expression) not in self._plan.varying:
                self._write(i, at[i], self._fixed(result.expression, at, self._rows), self._row_emitter)

    def _fixed(self, expression: Expression, at: Sequence[Any], known: dict[int, Lanes]) -> Lanes:
        """A value that does not vary along lanes of a row; what is found on the way becomes ``known``."""
        emitter = self._row_emitter
        for node in ordered([expression], lambda x: id(x) in known):
            if id(node) in known:
                continue
            if isinstance(node, Operand):
                known[id(node)] = self._read(node.index, at[node.index], emitter)
            elif isinstance(node, Constant):
                known[id(node)] = emitter.constant(node.value, node.dtype)
            else:
                assert isinstance(node, Apply)
                known[id(node)] = self._applied(emitter, node, [known[id(x)] for x in node.arguments])
        return known[id(expression)]

    def _applied(self, emitter: Emitter, node: Apply, arguments: Sequence[Lanes]) -> Lanes:
        if node.primitive is COUNT:
            return cast(emitter.splat(self._count, INT64), node.dtype)
        if node.primitive is EXP_OF_NEGATIVE:
            return exp_of_negative(arguments[0])  # in place, as these loops are short
        return apply(emitter, node, arguments)

    # -- a pass ----------------------------------------------------------------

    def _pass(self, each: Pass, at: list[Any]) -> None:
        self._each, rows = each, self._rows
        for node in self._constant_along(each, self._plan.varying):
            if not isinstance(node, Constant):
                self._fixed(node, at, rows)
        self._begun = [self._emitter.constant(_neutral(x.primitive, x.dtype), x.dtype) for x in each.reductions]
        for node, x in zip(each.reductions, self._axis(0, at, self._begun)):
            if not self._is_across:  # all lanes are of one row
                x = Lanes(self._row_emitter, tree(x, partial(_combine, node.primitive)).value, x.dtype)
            rows[id(node)] = x

    def _constant_along(self, each: Pass, varying: set[int]) -> list[Expression]:
        """What a pass needs that is not in ``varying``."""
        found: list[Expression] = [x.arguments[0] for x in each.reductions]
        found += [*each.kept, *(self._program.results[i].expression for i in each.results)]
        for node in each.order:
            if isinstance(node, Apply) and id(node) in varying and id(node) not in each.loaded:
                found += node.arguments
        return [x for x in dict.fromkeys(found) if id(x) not in varying]

    def _varying_along_lanes(self, each: Pass) -> set[int]:
        """The ids of those values of a pass that vary along the innermost axis, or that are loaded."""
        if self._is_across:
            return self._plan.varying
        found: set[int] = set()
        for node in each.order:
            if isinstance(node, Operand):
                is_varying = self._shape.arrays[node.index].step is not Step.NONE
            else:
                is_varying = isinstance(node, Apply) and any(id(x) in found for x in node.arguments)
            if is_varying or id(node) in each.loaded:
                found.add(id(node))
        return found

    def _axis(self, axis: int, at: list[Any], given: Accumulators) -> Accumulators:
        """Emit the loops of a pass over the inner axes from this one on, which go on from accumulators."""
        start, stop = self._inner[axis]
        if axis == self._shape.inner - 1:
            return self._innermost(axis, at, given)

        def step(i: Any, accumulators: Accumulators) -> Accumulators:
            return self._axis(axis + 1, self._moved(at, i, axis), accumulators)

        if not self._shape.is_long:
            return fold(self._builder, start, stop, 1, given, step)
        inside = product(self._builder, [size for _, size in self._inner[axis + 1 :]])
        return paced_fold(self._emitter, start, stop, 1, inside, given, step)

    def _innermost(self, axis: int, at: list[Any], given: Accumulators) -> Accumulators:
        builder, count, each = self._builder, self._emitter.count, self._each
        start, stop = self._inner[axis]
        varying, known = self._varying_along_lanes(each), dict(self._rows)
        self._made: dict[int, Lanes] = {}
        for node in self._constant_along(each, varying):
            if isinstance(node, Constant):
                self._made[id(node)] = self._emitter.constant(node.value, node.dtype)
            else:
                value = self._fixed(node, at, known)
                self._made[id(node)] = value if self._is_across else self._emitter.splat(only(value), value.dtype)
        self._order = [x for x in each.order if id(x) in varying]

        def point(i: Any, accumulators: Accumulators, left: Any) -> Accumulators:
            return self._point(self._moved(at, i, axis), accumulators, left, left)

        is_blocked = self._shape.is_long or any(x.primitive is SUM for x in each.reductions)
        levels = self._shape.levels if is_blocked else 0
        if self._is_across:
            return self._blocks(start, stop, 1, given, partial(point, left=self._left), levels)
        if not self._shape.outer:
            self._vectors(axis, at)
            return []
        whole = builder.and_(stop, number(-count))
        found = self._blocks(start, whole, count, given, partial(point, left=None), levels)
        left, before = builder.sub(stop, whole), builder.block
        with builder.if_then(builder.icmp_signed(">", left, number(0))):
            ended, rest = point(whole, found, left), builder.block
        return [x.made(joined(builder, (x.value, before), (y.value, rest))) for x, y in zip(found, ended)]

    def _vectors(self, axis: int, at: list[Any]) -> None:
        """Emit the loop of a pass without reductions, with buffers for partial vectors.

        Pointwise groups have long bodies, which to emit twice would take twice as long.
        """
        builder, count, arrays = self._builder, self._emitter.count, self._shape.arrays
        start, stop = self._inner[axis]
        self._order.sort(key=lambda x: not isinstance(x, Operand))  # streams of memory are read in step
        reads = [x.index for x in self._order if isinstance(x, Operand)]
        writes = [self._leaves + i for i in self._each.results]
        reads, writes = ([k for k in found if arrays[k].step is Step.DENSE] for found in (reads, writes))

        def step(i: Any, accumulators: Accumulators) -> Accumulators:
            left, places = builder.sub(stop, i), self._moved(at, i, axis)
            whole, rest, body = (builder.append_basic_block() for _ in range(3))
            is_whole = builder.icmp_signed(">=", left, number(count))
            builder.cbranch(is_whole, whole, rest)
            builder.position_at_end(whole)
            builder.branch(body)
            builder.position_at_end(rest)
            for k in reads:
                self._copy("gather", k, places[k], left)
            rest = builder.block
            builder.branch(body)
            builder.position_at_end(body)
            n = joined(builder, (number(count), whole), (left, rest))
            chosen = list(places)
            for k in (*reads, *writes):
                chosen[k] = joined(builder, (places[k], whole), (self._buffers[k], rest))
            self._point(chosen, [], None, n)
            with builder.if_then(builder.not_(is_whole)):
                for k in writes:
                    self._copy("scatter", k, places[k], left)
            return []

        if self._shape.is_long:
            paced_fold(self._emitter, start, stop, count, number(1), [], step)
        else:
            fold(builder, start, stop, count, [], step)

    def _blocks(
        self, start: Any, stop: Any, step: int, given: Accumulators, body: Accumulate, levels: int
    ) -> Accumulators:
        """`fold`, of blocks of blocks."""
        if not levels:
            return fold(self._builder, start, stop, step, given, body)
        builder, size = self._builder, step * BLOCK**levels

        def block(i: Any, accumulators: Accumulators) -> Accumulators:
            if self._shape.is_long and levels == self._shape.levels:
                pause(self._emitter, i, start)
            end = least(builder, builder.add(i, number(size)), stop)
            found = self._blocks(i, end, step, self._begun, body, levels - 1)
            return [_combine(node.primitive, x, y) for node, x, y in zip(self._each.reductions, accumulators, found)]

        return fold(builder, start, stop, size, given, block)

    def _moved(self, at: Sequence[Any], i: Any, axis: int) -> list[Any]:
        builder = self._builder
        return [offset(builder, x, builder.mul(i, each[axis])) for x, each in zip(at, self._strides)]

    def _point(self, at: list[Any], accumulators: Accumulators, left: Any, apart: Any) -> Accumulators:
        """Emit a pass at one vector, of which only ``left`` lanes may count.

        Of arrays whose elements lie ``apart``, only these are read.
        """
        emitter, each, made = self._emitter, self._each, dict(self._made)
        for node in self._order:
            if id(node) in each.loaded:
                result = each.loaded[id(node)]
                if result is None:
                    made[id(node)] = load(emitter, self._place(node, at), node.dtype)
                else:
                    made[id(node)] = self._read(self._leaves + result, at[self._leaves + result], emitter, left)
            elif isinstance(node, Operand):
                count = apart if self._shape.arrays[node.index].step is Step.APART else left
                made[id(node)] = self._read(node.index, at[node.index], emitter, count)
            else:
                assert isinstance(node, Apply)
                made[id(node)] = self._applied(emitter, node, [made[id(x)] for x in node.arguments])
        for node in each.kept:
            store(made[id(node)], self._place(node, at), node.dtype)
        for i in each.results:
            x = made[id(self._program.results[i].expression)]
            self._write(self._leaves + i, at[self._leaves + i], x, emitter, left)
        found: Accumulators = []
        for node, accumulator in zip(each.reductions, accumulators):
            x = made[id(node.arguments[0])]
            if left is not None and not self._is_across:
                x = select(lanes_inside(emitter, number(0), left), x, _neutral(node.primitive, node.dtype))
            found.append(_combine(node.primitive, accumulator, x))
        return found

    def _place(self, node: Expression, at: Sequence[Any]) -> Any:
        """Where ``node`` is kept."""
        builder = self._builder
        return offset(builder, at[-1], builder.mul(self._row_bytes, number(self._kept[id(node)])))

    # -- memory ----------------------------------------------------------------

    def _read(self, index: int, pointer: Any, emitter: Emitter, left: Any = None) -> Lanes:
        array = self._shape.arrays[index]
        left = self._left if self._is_across else left
        if emitter.count == 1 or array.step is Step.NONE:
            return load_one(emitter, pointer, array.dtype)
        if array.step is Step.DENSE and left is None:
            return load(emitter, pointer, array.dtype)
        if array.step is Step.DENSE and emitter.has_fma and memory_type(array.dtype) in _MASKABLE:
            # Processors with FMA do not touch what the mask leaves out.
            zeros = ir.Constant(ir.VectorType(memory_type(array.dtype), emitter.count), None)
            mask = lanes_inside(emitter, number(0), left)
            return Lanes(emitter, masked_load(emitter, pointer, mask, zeros), array.dtype)
        self._copy("gather", index, pointer, left)
        return load(emitter, self._buffers[index], array.dtype)

    def _write(self, index: int, pointer: Any, x: Lanes, emitter: Emitter, left: Any = None) -> None:
        array = self._shape.arrays[index]
        left = self._left if self._is_across else left
        if emitter.count == 1 or (array.step is Step.DENSE and left is None):
            store(x, pointer, array.dtype)
            return
        store(x, self._buffers[index], array.dtype)
        self._copy("scatter", index, pointer, left)

    def _copy(self, name: str, index: int, pointer: Any, left: Any) -> None:
        dtype, step = self._shape.arrays[index]
        count = number(self._emitter.count) if left is None else left
        stride = self._lane_strides[index] if step is Step.APART else number(dtype.itemsize)
        copy_elements(self._emitter, name, dtype, self._buffers[index], pointer, stride, count)
