"""Loops over rows: what `irc.native.row_passes.schedule` says, emitted.

Lanes lie along rows, or across them:

- *Along*: a vector holds neighbours of one row. Reductions accumulate in its lanes, which are then combined as a tree;
  at a row's end, lanes without elements count as the neutral element. Row values are vectors of one lane.
- *Across*: a vector holds one element of each of several neighbouring rows, where rows lie apart or are short. Row
  values are vectors as all others.

Invariants:

- As in `irc.native.loops`: nothing outside of the arrays is touched; what does not fill a vector goes through buffers
  on the stack. The last array, the scratch, is large enough for whole vectors, and belongs to the call alone.
- The order in which a row's elements are combined depends on its length and on the code alone. Sums of long rows are
  added up in blocks, and blocks of blocks, so that errors do not grow with the length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from irc.native.elements import load, load_one, memory_type, store
from irc.native.functions.exponential import exp_of_negative
from irc.native.groups import apply, ordered
from irc.native.lanes import INT32, INT64, Emitter, Lanes, only, select, tree
from irc.native.llvm import ir
from irc.native.loops import (
    POINTER,
    Access,
    Accumulate,
    Accumulators,
    Step,
    chunk_of,
    copy_elements,
    fold,
    indices,
    least,
    loop,
    loop_function,
    number,
    offset,
    pause,
    product,
    stack_buffer,
)
from irc.native.primitives import PRIMITIVES, cast
from irc.native.row_operators import COUNT, EXP_OF_NEGATIVE, LARGEST, MAXIMUM, MINIMUM, PRODUCT, SUM
from irc.native.row_passes import Pass, Schedule
from irc.native.rows import RowProgram
from irc.native.target import Target
from irc.ops.algebra import BOOL, AnyDType, Apply, Constant, Expression, Operand

BLOCK = 128
"""Vectors that are accumulated one by one: of more, sums of so many are."""


class Shape(NamedTuple):
    """What code depends on, apart from the program.

    Attributes:
        arrays: the leaves, then the results.
        is_across: where lanes lie.
        outer: the number of axes that are not reduced.
        inner: the number of axes that are.
        levels: of blocks of blocks.
        lanes: of a vector.
        is_long: whether a row takes so long that its loops have to pause.
    """

    arrays: tuple[Access, ...]
    is_across: bool
    outer: int
    inner: int
    levels: int
    lanes: int
    is_long: bool


def emit(name: str, program: RowProgram, plan: Schedule, shape: Shape, target: Target) -> tuple[str, Mapping[str, Any]]:
    """The module of the loop function ``name`` of a range of rows, or, across rows, of vectors of them; what it needs.

    Its layout: sizes of outer and of inner axes; elements a row; bytes of a kept row; the strides of each array and of
    the scratch, of outer axes, then of inner ones.
    """
    arrays, axes = len(shape.arrays) + bool(plan.kept), shape.outer + shape.inner
    made, builder, starts, known, begin, end = loop_function(name, arrays, axes + 2 + arrays * axes)
    emitter = Emitter(builder, shape.lanes, target.has_fma, target.has_f16c)
    _RowLoops(emitter, program, plan, shape).emit(starts, known, begin, end)
    builder.ret_void()
    return str(made.module), emitter.needs


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


_MASKABLE = {ir.FloatType(): "f32", ir.DoubleType(): "f64", ir.IntType(32): "i32", ir.IntType(64): "i64"}
"""The elements of which a vector can be read in part, by their names in LLVM."""


class _RowLoops:
    def __init__(self, emitter: Emitter, program: RowProgram, plan: Schedule, shape: Shape) -> None:
        self._emitter, self._builder = emitter, emitter.builder
        self._program, self._plan, self._shape = program, plan, shape
        self._is_across = shape.is_across
        self._row_emitter = emitter
        if not shape.is_across:
            self._row_emitter = Emitter(emitter.builder, 1, emitter.has_fma, emitter.has_f16c)
            self._row_emitter.needs = emitter.needs
        self._rows: dict[int, Lanes] = {}
        self._kept = {id(x): i for i, x in enumerate(plan.kept)}
        self._leaves = len(program.leaves)

    def emit(self, starts: list[Any], known: list[Any], begin: Any, end: Any) -> None:
        shape, builder = self._shape, self._builder
        outer, axes = shape.outer, shape.outer + shape.inner
        sizes, (self._count, self._row_bytes) = known[:axes], known[axes : axes + 2]
        self._inner = sizes[outer:]
        strides = [known[i : i + axes] for i in range(axes + 2, len(known), axes)]
        self._strides = [each[outer:] for each in strides]
        for i, array in enumerate(shape.arrays):
            if not self._is_across and array.step is Step.DENSE:
                self._strides[i][-1] = number(array.dtype.itemsize)  # known, which makes addresses simpler
        self._lane_strides = [each[outer - 1] if self._is_across else each[-1] for each in strides]
        self._buffers = [stack_buffer(self._emitter, array) for array in shape.arrays]
        whole = number(self._emitter.count)
        with loop(builder, begin, end) as row:
            last = sizes[outer - 1]
            if self._is_across:
                blocks = builder.sdiv(builder.add(last, number(self._emitter.count - 1)), whole)
                column = builder.mul(builder.srem(row, blocks), whole)
                rest = builder.sdiv(row, blocks)
                at = self._unravelled(starts, rest, sizes[: outer - 1], strides)
                at = [offset(builder, x, builder.mul(column, each[outer - 1])) for x, each in zip(at, strides)]
                left = builder.sub(last, column)
                with builder.if_else(builder.icmp_signed(">=", left, whole)) as (then, otherwise):
                    with then:
                        self._row(at, None)
                    with otherwise:
                        self._row(at, left)
            else:
                self._row(self._unravelled(starts, row, sizes[:outer], strides), None)

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
        self._rows = {}
        self._start, self._left = at, left
        for each in self._plan.passes:
            found = self._pass(each, at)
            for node, value in zip(each.reductions, found):
                self._rows[id(node)] = value
        for i, result in enumerate(self._program.results, self._leaves):
            if id(result.expression) not in self._plan.varying:
                self._write(i, at[i], self._row_value(result.expression), self._row_emitter)

    def _row_value(self, expression: Expression) -> Lanes:
        """A value that does not vary along the row."""
        emitter, rows = self._row_emitter, self._rows
        for node in ordered([expression], lambda x: id(x) in rows):
            if id(node) in rows:
                continue
            if isinstance(node, Operand):
                rows[id(node)] = self._read(node.index, self._start[node.index], emitter)
            elif isinstance(node, Constant):
                rows[id(node)] = emitter.constant(node.value, node.dtype)
            else:
                assert isinstance(node, Apply)
                rows[id(node)] = self._applied(emitter, node, [rows[id(x)] for x in node.arguments])
        return rows[id(expression)]

    def _applied(self, emitter: Emitter, node: Apply, arguments: Sequence[Lanes]) -> Lanes:
        if node.primitive is COUNT:
            return cast(emitter.splat(self._count, INT64), node.dtype)
        if node.primitive is EXP_OF_NEGATIVE:
            return exp_of_negative(arguments[0])  # in place, as these loops are short
        return apply(emitter, node, arguments)

    # -- a pass ----------------------------------------------------------------

    def _pass(self, each: Pass, at: list[Any]) -> Accumulators:
        plan = self._plan
        fixed: dict[int, Lanes] = {}
        wanted: list[Expression] = [x.arguments[0] for x in each.reductions]
        for node in each.order:
            if isinstance(node, Apply) and id(node) not in each.loaded:
                wanted += node.arguments
        for node in wanted:
            if id(node) not in plan.varying and id(node) not in fixed:
                fixed[id(node)] = self._spread(node)
        begun = [self._emitter.constant(_neutral(x.primitive, x.dtype), x.dtype) for x in each.reductions]

        def point(at: list[Any], accumulators: Accumulators, left: Any) -> Accumulators:
            return self._point(each, fixed, at, accumulators, left)

        found = self._nest(0, at, begun, begun, each, point)
        return [self._across_lanes(node.primitive, x) for node, x in zip(each.reductions, found)]

    def _spread(self, node: Expression) -> Lanes:
        """A row value, in all lanes."""
        if isinstance(node, Constant):
            return self._emitter.constant(node.value, node.dtype)
        value = self._row_value(node)
        return value if self._is_across else self._emitter.splat(only(value), value.dtype)

    def _across_lanes(self, reducer: Any, x: Lanes) -> Lanes:
        """All lanes combined, as a tree, if they are of one row."""
        if self._is_across:
            return x
        x = tree(x, partial(_combine, reducer))
        return Lanes(self._row_emitter, x.value, x.dtype)

    def _nest(
        self, axis: int, at: list[Any], begun: Accumulators, accumulators: Accumulators, each: Pass, point: Any
    ) -> Accumulators:
        if axis < self._shape.inner - 1:

            def step(i: Any, accumulators: Accumulators) -> Accumulators:
                return self._nest(axis + 1, self._moved(at, i, axis), begun, accumulators, each, point)

            if not self._shape.is_long:
                return fold(self._builder, number(0), self._inner[axis], 1, accumulators, step)
            size, chunk = self._inner[axis], chunk_of(self._builder, product(self._builder, self._inner[axis + 1 :]))

            def several_steps(i: Any, accumulators: Accumulators) -> Accumulators:
                pause(self._emitter, i, number(0))
                end = least(self._builder, self._builder.add(i, chunk), size)
                return fold(self._builder, i, end, 1, accumulators, step)

            return fold(self._builder, number(0), size, chunk, accumulators, several_steps)
        builder, size = self._builder, self._inner[axis]
        is_blocked = self._shape.is_long or any(x.primitive is SUM for x in each.reductions)
        levels = self._shape.levels if is_blocked else 0
        reducers = [x.primitive for x in each.reductions]
        if self._is_across:

            def single(i: Any, accumulators: Accumulators) -> Accumulators:
                return point(self._moved(at, i, axis), accumulators, self._left)

            return self._blocks(number(0), size, 1, accumulators, begun, reducers, single, levels)

        def several(i: Any, accumulators: Accumulators) -> Accumulators:
            return point(self._moved(at, i, axis), accumulators, None)

        count = self._emitter.count
        whole = builder.and_(size, number(-count))
        accumulators = self._blocks(number(0), whole, count, accumulators, begun, reducers, several, levels)
        left = builder.sub(size, whole)
        before = builder.block
        rest, after = builder.append_basic_block(), builder.append_basic_block()
        builder.cbranch(builder.icmp_signed(">", left, number(0)), rest, after)
        builder.position_at_end(rest)
        ended = point(self._moved(at, whole, axis), accumulators, left)
        rest = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        return [_either(x, before, y, rest) for x, y in zip(accumulators, ended)]

    def _blocks(
        self,
        start: Any,
        stop: Any,
        step: int,
        accumulators: Accumulators,
        begun: Accumulators,
        reducers: Sequence[Any],
        body: Accumulate,
        levels: int,
    ) -> Accumulators:
        """`fold`, of blocks of blocks."""
        if not levels:
            return fold(self._builder, start, stop, step, accumulators, body)
        builder, size = self._builder, step * BLOCK**levels

        def block(i: Any, accumulators: Accumulators) -> Accumulators:
            if self._shape.is_long and levels == self._shape.levels:
                pause(self._emitter, i, start)
            end = least(builder, builder.add(i, number(size)), stop)
            found = self._blocks(i, end, step, begun, begun, reducers, body, levels - 1)
            return [_combine(each, x, y) for each, x, y in zip(reducers, accumulators, found)]

        return fold(builder, start, stop, size, accumulators, block)

    def _moved(self, at: Sequence[Any], i: Any, axis: int) -> list[Any]:
        builder = self._builder
        return [offset(builder, x, builder.mul(i, each[axis])) for x, each in zip(at, self._strides)]

    def _point(
        self, each: Pass, fixed: dict[int, Lanes], at: list[Any], accumulators: Accumulators, left: Any
    ) -> Accumulators:
        """Emit what a pass does at one vector, of which only so many lanes may be ``left``."""
        emitter = self._emitter
        made = dict(fixed)
        for node in each.order:
            if id(node) in each.loaded:
                result = each.loaded[id(node)]
                if result is None:
                    made[id(node)] = load(emitter, self._place(node, at), node.dtype)
                else:
                    made[id(node)] = self._read(self._leaves + result, at[self._leaves + result], emitter, left)
            elif isinstance(node, Operand):
                made[id(node)] = self._read(node.index, at[node.index], emitter, left)
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
                x = select(self._mask(left), x, _neutral(node.primitive, node.dtype))
            found.append(_combine(node.primitive, accumulator, x))
        return found

    def _place(self, node: Expression, at: Sequence[Any]) -> Any:
        """Where ``node`` is kept."""
        builder = self._builder
        return offset(builder, at[-1], builder.mul(self._row_bytes, number(self._kept[id(node)])))

    def _mask(self, left: Any) -> Lanes:
        builder, emitter = self._builder, self._emitter
        numbers = Lanes(emitter, indices(range(emitter.count)), INT32)
        return numbers < emitter.splat(builder.trunc(left, ir.IntType(32)), INT32)

    # -- memory ----------------------------------------------------------------

    def _read(self, index: int, pointer: Any, emitter: Emitter, left: Any = None) -> Lanes:
        array = self._shape.arrays[index]
        left = self._left if self._is_across else left
        if emitter.count == 1 or array.step is Step.NONE:
            return load_one(emitter, pointer, array.dtype)
        if array.step is Step.DENSE and left is None:
            return load(emitter, pointer, array.dtype)
        if array.step is Step.DENSE and self._emitter.has_fma and memory_type(array.dtype) in _MASKABLE:
            return self._masked(pointer, array.dtype, left)
        stride = self._lane_strides[index] if array.step is Step.APART else number(array.dtype.itemsize)
        self._copy("gather", index, pointer, stride, left)
        return load(emitter, self._buffers[index], array.dtype)

    def _masked(self, pointer: Any, dtype: AnyDType, left: Any) -> Lanes:
        """Read so many elements, and zeros. Processors with FMA do not touch what the mask leaves out."""
        emitter = self._emitter
        kind = ir.VectorType(memory_type(dtype), emitter.count)
        mask, zeros = self._mask(left), ir.Constant(kind, None)
        name = f"llvm.masked.load.v{emitter.count}{_MASKABLE[kind.element]}.p0"
        align = ir.IntType(32)
        masked = emitter.declare(name, kind, [POINTER, align, mask.value.type, kind])
        found = emitter.builder.call(masked, [pointer, ir.Constant(align, dtype.itemsize), mask.value, zeros])
        return Lanes(emitter, found, dtype)

    def _write(self, index: int, pointer: Any, x: Lanes, emitter: Emitter, left: Any = None) -> None:
        array = self._shape.arrays[index]
        left = self._left if self._is_across else left
        if emitter.count == 1 or (array.step is Step.DENSE and left is None):
            store(x, pointer, array.dtype)
            return
        stride = self._lane_strides[index] if array.step is Step.APART else number(array.dtype.itemsize)
        store(x, self._buffers[index], array.dtype)
        self._copy("scatter", index, pointer, stride, left)

    def _copy(self, name: str, index: int, pointer: Any, stride: Any, left: Any) -> None:
        count = number(self._emitter.count) if left is None else left
        dtype = self._shape.arrays[index].dtype
        copy_elements(self._emitter, name, dtype, self._buffers[index], pointer, stride, count)


def _either(x: Lanes, before: Any, y: Lanes, after: Any) -> Lanes:
    phi = x.emitter.builder.phi(x.value.type)
    phi.add_incoming(x.value, before)
    phi.add_incoming(y.value, after)
    return x.made(phi)
