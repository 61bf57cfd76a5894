"""Loops over elements of arrays, of which some broadcast and some have gaps.

Invariants:

- A loop function never touches memory outside of its arrays: where fewer elements than lanes are left, they go through
  buffers on the stack. These are zeros at first, so what is computed of the lanes that nothing was copied to has no
  effect.
- Results are dense along the last axis. They overlap operands only where each element lies where the operand's does.
- What depends on no array, or on arrays that do not vary along the last axis, is computed outside of the inner loop.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import partial, reduce
from typing import Any, NamedTuple

from irc.native.elements import load, load_one, memory_type, store
from irc.native.jit import PACE
from irc.native.lanes import Emitter, Lanes
from irc.native.llvm import ir
from irc.native.target import Target
from irc.ops.algebra import AnyDType

BYTE, INT = ir.IntType(8), ir.IntType(64)
POINTER, VOID = ir.PointerType(), ir.VoidType()


def number(value: int) -> Any:
    """A constant of 64 bits."""
    return ir.Constant(INT, value)


class Step(Enum):
    """How far one element of an array lies from the next along the last axis."""

    NONE = "all are one"
    DENSE = "side by side"
    APART = "at a distance that the call knows"


class Access(NamedTuple):
    """An array of a loop.

    Attributes:
        dtype: its element type.
        step: along the axis that lanes lie along, mostly the last.
    """

    dtype: AnyDType
    step: Step


class Space(NamedTuple):
    """The elements that a loop visits, with as few axes as their arrays allow.

    Attributes:
        sizes: of the axes, at least one.
        strides: for each array, in bytes; 0 along axes that it is broadcast along.
    """

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def layout(self) -> list[int]:
        """What the loop function reads: sizes, then strides array by array."""
        return [*self.sizes, *(n for each in self.strides for n in each)]

    def accesses(self, dtypes: Sequence[AnyDType]) -> tuple[Access, ...]:
        """How arrays of these element types are read and written."""
        found: list[Access] = []
        for dtype, strides in zip(dtypes, self.strides, strict=True):
            last = strides[-1]
            step = Step.NONE if last == 0 else Step.DENSE if last == dtype.itemsize else Step.APART
            found.append(Access(dtype, step))
        return tuple(found)


def space_of(shape: Sequence[int], arrays: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Space:
    """The space of a result of ``shape`` for arrays with these shapes and strides, which broadcast to it."""
    rank = len(shape)
    strides: list[list[int]] = []
    for sizes, steps in arrays:
        missing = rank - len(sizes)
        strides.append([0] * missing + [0 if size == 1 else step for size, step in zip(sizes, steps)])
    kept: list[int] = []
    found: list[list[int]] = [[] for _ in arrays]
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if kept and all(each[-1] == own[axis] * size for each, own in zip(found, strides)):
            kept[-1] *= size  # one axis with the one before
            for each, own in zip(found, strides):
                each[-1] = own[axis]
            continue
        kept.append(size)
        for each, own in zip(found, strides):
            each.append(own[axis])
    if not kept:
        return Space((1,), tuple((0,) for _ in arrays))
    return Space(tuple(kept), tuple(map(tuple, found)))


@contextmanager
def loop(builder: Any, start: Any, stop: Any, step: Any = 1) -> Generator[Any]:
    """Emit what follows once, to be run for each number from ``start`` up to ``stop``."""
    before = builder.block
    head, body, after = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(INT)
    index.add_incoming(start, before)
    builder.cbranch(builder.icmp_signed("<", index, stop), body, after)
    builder.position_at_end(body)
    yield index
    index.add_incoming(builder.add(index, number(step) if isinstance(step, int) else step), builder.block)
    builder.branch(head)
    builder.position_at_end(after)


@contextmanager
def paced_loop(emitter: Emitter, start: Any, stop: Any, step: int, elements: Any) -> Generator[Any]:
    """As `loop`, with a `pause` now and then, where each number stands for so many ``elements``."""
    builder = emitter.builder
    steps = chunk_of(builder, elements, step)
    with loop(builder, start, stop, steps) as i:
        pause(emitter, i, start)
        with loop(builder, i, least(builder, builder.add(i, steps), stop), step) as k:
            yield k


def chunk_of(builder: Any, elements: Any, step: int = 1) -> Any:
    """A multiple of ``step``, after which a loop is to pause, if each number stands for so many elements."""
    steps = builder.sdiv(number(_PAUSE // step), elements)
    return builder.mul(builder.select(builder.icmp_signed("<", steps, number(1)), number(1), steps), number(step))


_PAUSE = 1 << 20
"""Elements between two pauses: about a millisecond's work."""


def pause(emitter: Emitter, i: Any, start: Any) -> None:
    """Emit a look at signals and the run's limits, unless ``i`` is ``start``: the loop function ends if one raises."""
    builder, bit = emitter.builder, ir.IntType(1)
    with builder.if_then(builder.icmp_signed("!=", i, start)):
        asked = builder.call(emitter.library("irc.pause", bit, [], _pause_module), [])
        with builder.if_then(asked, likely=False):
            builder.ret_void()


def _pause_module() -> tuple[str, Mapping[str, Any]]:
    """The module of a function that calls Python's `irc.runtime.bounds.pace`, and tells whether that raises.

    It may be called with and without the interpreter's lock. An exception stays with the thread: `irc.native.calls`.
    """
    text = f"""
    @{PACE} = external global i8
    declare i32 @PyGILState_Ensure()
    declare void @PyGILState_Release(i32)
    declare ptr @PyObject_CallNoArgs(ptr)
    declare void @Py_DecRef(ptr)

    define i1 @irc.pause() {{
      %state = call i32 @PyGILState_Ensure()
      %made = call ptr @PyObject_CallNoArgs(ptr @{PACE})
      call void @Py_DecRef(ptr %made)
      call void @PyGILState_Release(i32 %state)
      %is.raised = icmp eq ptr %made, null
      ret i1 %is.raised
    }}
    """
    return text, {PACE: None}


Accumulators = list[Lanes]
Accumulate = Callable[[Any, Accumulators], Accumulators]


def fold(builder: Any, start: Any, stop: Any, step: Any, accumulators: Accumulators, body: Accumulate) -> Accumulators:
    """Emit a loop, from each step of which to the next go the accumulators."""
    before = builder.block
    head, inside, after = (builder.append_basic_block() for _ in range(3))
    builder.branch(head)
    builder.position_at_end(head)
    index = builder.phi(INT)
    index.add_incoming(start, before)
    carried: Accumulators = []
    for x in accumulators:
        phi = builder.phi(x.value.type)
        phi.add_incoming(x.value, before)
        carried.append(x.made(phi))
    builder.cbranch(builder.icmp_signed("<", index, stop), inside, after)
    builder.position_at_end(inside)
    for x, y in zip(carried, body(index, carried)):
        x.value.add_incoming(y.value, builder.block)
    index.add_incoming(builder.add(index, number(step) if isinstance(step, int) else step), builder.block)
    builder.branch(head)
    builder.position_at_end(after)
    return carried


def function(name: str, arguments: Sequence[Any], result: Any = VOID) -> tuple[Any, Any]:
    """A new module's function, and a builder in it."""
    made = ir.Function(ir.Module(), ir.FunctionType(result, arguments), name)
    return made, ir.IRBuilder(made.append_basic_block())


def loop_function(name: str, arrays: int, numbers: int) -> tuple[Any, Any, list[Any], list[Any], Any, Any]:
    """A new module's loop function (`irc.native.calls`), and a builder in it.

    Also where its arrays begin, the numbers of its layout, and the range.
    """
    made, builder = function(name, [POINTER, POINTER, INT, INT])
    table, layout, begin, end = made.args
    starts = [builder.load(offset(builder, table, number(8 * i)), typ=POINTER, align=8) for i in range(arrays)]
    known = [builder.load(offset(builder, layout, number(8 * i)), typ=INT, align=8) for i in range(numbers)]
    return made, builder, starts, known, begin, end


def product(builder: Any, factors: Sequence[Any]) -> Any:
    """The product of numbers."""
    return reduce(builder.mul, factors, number(1))


def least(builder: Any, x: Any, y: Any) -> Any:
    """The smaller one of two numbers."""
    return builder.select(builder.icmp_signed("<", x, y), x, y)


def indices(numbers: Sequence[int]) -> Any:
    """A constant vector of numbers of 32 bits, such as names the lanes that `shuffle_vector` takes."""
    kind = ir.IntType(32)
    return ir.Constant(ir.VectorType(kind, len(numbers)), [ir.Constant(kind, n) for n in numbers])


def copy_elements(
    emitter: Emitter, name: str, dtype: AnyDType, buffer: Any, array: Any, stride: Any, count: Any
) -> None:
    """Copy elements of ``array``, ``stride`` bytes apart, into the dense ``buffer`` ("gather"), or back ("scatter")."""
    symbol, arguments = f"irc.{name}{dtype.itemsize}", [POINTER, POINTER, INT, INT]
    called = emitter.library(symbol, VOID, arguments, partial(_copy_module, symbol, dtype.itemsize, name == "gather"))
    emitter.builder.call(called, [buffer, array, stride, count])


def _copy_module(symbol: str, size: int, gathers: bool) -> tuple[str, Mapping[str, Any]]:
    """The module of ``symbol(ptr buffer, ptr array, i64 stride, i64 count)``."""
    made, builder = function(symbol, [POINTER, POINTER, INT, INT])
    buffer, array, stride, count = made.args
    with loop(builder, number(0), count) as i:
        dense = offset(builder, buffer, builder.mul(i, number(size)))
        apart = offset(builder, array, builder.mul(i, stride))
        source, target = (apart, dense) if gathers else (dense, apart)
        builder.store(builder.load(source, typ=ir.IntType(8 * size), align=1), target, align=1)
    builder.ret_void()
    return str(made.module), {}


def copy_floats(emitter: Emitter, to: Any, source: Any, count: Any) -> None:
    """Copy ``count`` elements of 4 bytes that lie side by side, and touch nothing behind them."""
    symbol, lanes = f"irc.copied{emitter.count}", emitter.count
    called = emitter.library(symbol, VOID, [POINTER, POINTER, INT], lambda: _floats_module(symbol, lanes))
    emitter.builder.call(called, [to, source, count])


def _floats_module(symbol: str, lanes: int) -> tuple[str, Mapping[str, Any]]:
    """The module of ``symbol(ptr to, ptr source, i64 count)``: the last vector overlaps the one before."""
    made, builder = function(symbol, [POINTER, POINTER, INT])
    to, source, count = made.args

    def move(i: Any, kind: Any) -> None:
        place = builder.mul(i, number(4))
        value = builder.load(offset(builder, source, place), typ=kind, align=4)
        builder.store(value, offset(builder, to, place), align=4)

    def run(width: int, *others: int) -> None:
        if width == 1:
            with loop(builder, number(0), count) as i:
                move(i, ir.FloatType())
            return
        with builder.if_else(builder.icmp_signed(">=", count, number(width))) as (long, short):
            with long:
                last = builder.sub(count, number(width))
                with loop(builder, number(0), count, width) as i:
                    move(least(builder, i, last), ir.VectorType(ir.FloatType(), width))
            with short:
                run(*others)

    run(lanes, 4, 1)
    builder.ret_void()
    return str(made.module), {}


def offset(builder: Any, pointer: Any, distance: Any) -> Any:
    """``pointer``, moved by so many bytes."""
    return builder.gep(pointer, [distance], source_etype=BYTE)


def stack_buffer(emitter: Emitter, access: Access) -> Any:
    """Memory on the stack for a vector of an array's elements, zeros at first; None if all of them are one."""
    if access.step is Step.NONE:
        return None
    kind = ir.VectorType(memory_type(access.dtype), emitter.count)
    found = emitter.builder.alloca(kind)
    emitter.builder.store(ir.Constant(kind, None), found, align=access.dtype.itemsize)
    return found


class Body:
    """What is computed of elements. Subclasses emit it."""

    def before(self, emitter: Emitter, fixed: Sequence[Lanes | None]) -> None:
        """Emit what depends on operands that do not vary alone: those are not None."""

    def compute(self, emitter: Emitter, operands: Sequence[Lanes]) -> list[Lanes]:
        """Emit the results of these operands."""
        raise NotImplementedError


def emit(
    name: str,
    body: Body,
    accesses: Sequence[Access],
    results: int,
    depth: int,
    target: Target,
    is_long: bool = False,
) -> tuple[str, Mapping[str, Any]]:
    """The module of the function ``name`` that computes ``body`` over a `Space` of ``depth`` axes, and what it needs.

    Args:
        accesses: of the operands, then of the ``results``, which are `Step.DENSE`.
        is_long: whether what is done for one number of the range takes so long that it has to pause.
    """
    arrays = len(accesses)
    made, builder, starts, known, begin, end = loop_function(name, arrays, depth * (1 + arrays))
    count = target.lanes(max(access.dtype.itemsize for access in accesses))
    emitter = Emitter(builder, count, target.has_fma, target.has_f16c)
    sizes, *strides = [known[i : i + depth] for i in range(0, len(known), depth)]
    _Loops(emitter, body, accesses, results, is_long).emit(starts, sizes, strides, begin, end)
    builder.ret_void()
    return str(made.module), emitter.needs


class _Loops:
    def __init__(self, emitter: Emitter, body: Body, accesses: Sequence[Access], results: int, is_long: bool) -> None:
        self._builder, self._emitter, self._body = emitter.builder, emitter, body
        self._is_long = is_long
        self._accesses, self._results = accesses, results

    def emit(self, starts: list[Any], sizes: list[Any], strides: list[list[Any]], begin: Any, end: Any) -> None:
        buffers = [stack_buffer(self._emitter, access) for access in self._accesses]
        self._level(0, starts, begin, end, sizes, strides, buffers)

    def _level(self, axis: int, at: list[Any], begin: Any, end: Any, sizes: Any, strides: Any, buffers: Any) -> None:
        builder = self._builder
        if axis == len(sizes) - 1:
            self._row(at, begin, end, [each[-1] for each in strides], buffers)
            return
        with self._loop(begin, end, 1, sizes[axis + 1 :]) as i:
            inner = [offset(builder, start, builder.mul(i, each[axis])) for start, each in zip(at, strides)]
            self._level(axis + 1, inner, number(0), sizes[axis + 1], sizes, strides, buffers)

    def _loop(self, begin: Any, end: Any, step: int, inside: Sequence[Any]) -> Any:
        """A loop over an axis; sizes of the axes ``inside`` it."""
        if not self._is_long:
            return loop(self._builder, begin, end, step)
        return paced_loop(self._emitter, begin, end, step, product(self._builder, inside))

    def _row(self, at: list[Any], begin: Any, end: Any, strides: list[Any], buffers: list[Any]) -> None:
        builder, emitter, accesses = self._builder, self._emitter, self._accesses
        fixed = [
            load_one(emitter, start, access.dtype) if access.step is Step.NONE else None
            for start, access in zip(at, accesses)
        ]
        operands = len(accesses) - self._results
        self._body.before(emitter, fixed[:operands])
        with self._loop(begin, end, emitter.count, ()) as i:
            left = builder.sub(end, i)
            is_whole = builder.icmp_signed(">=", left, number(emitter.count))
            whole, rest, body = (builder.append_basic_block() for _ in range(3))
            places = [offset(builder, start, builder.mul(i, stride)) for start, stride in zip(at, strides)]
            builder.cbranch(is_whole, whole, rest)
            builder.position_at_end(whole)
            builder.branch(body)
            builder.position_at_end(rest)
            for k, access in enumerate(accesses[:operands]):
                if access.step is Step.DENSE:
                    self._copy("gather", access, buffers[k], places[k], None, left)
            rest = builder.block
            builder.branch(body)
            builder.position_at_end(body)
            n = builder.phi(INT)
            n.add_incoming(number(emitter.count), whole)
            n.add_incoming(left, rest)
            chosen: list[Any] = []
            for k, access in enumerate(accesses):
                if access.step is not Step.DENSE:
                    chosen.append(buffers[k])
                    continue
                pointer = builder.phi(POINTER)
                pointer.add_incoming(places[k], whole)
                pointer.add_incoming(buffers[k], rest)
                chosen.append(pointer)
            for k, access in enumerate(accesses):
                if access.step is Step.APART:
                    self._copy("gather", access, buffers[k], places[k], strides[k], n)
            taken = [
                value or load(emitter, pointer, access.dtype)
                for value, pointer, access in zip(fixed[:operands], chosen, accesses)
            ]
            for made, pointer, access in zip(
                self._body.compute(emitter, taken), chosen[operands:], accesses[operands:], strict=True
            ):
                store(made, pointer, access.dtype)
            with builder.if_then(builder.not_(is_whole)):
                for k in range(operands, len(accesses)):
                    self._copy("scatter", accesses[k], buffers[k], places[k], None, left)

    def _copy(self, name: str, access: Access, buffer: Any, place: Any, stride: Any, count: Any) -> None:
        dense = number(access.dtype.itemsize)
        copy_elements(self._emitter, name, access.dtype, buffer, place, stride or dense, count)
