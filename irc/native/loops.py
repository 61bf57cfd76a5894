"""Loops: what nests over elements, windows, rows and heads are built of.

Invariants:

- A *loop function* is ``void f(ptr arrays, ptr layout, i64 begin, i64 end)``: where its arrays begin, numbers that it
  was made for, and the range of work that it is to do (`irc.native.calls`).
- A loop that may take longer than a millisecond pauses (`pause`): it looks at signals and the run's limits. If one of
  them raises, the loop function ends there, and its caller raises.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from typing import Any, NamedTuple

from irc.native.jit import PACE
from irc.native.lanes import INT32, Emitter, Lanes, store
from irc.native.target import Target, ir
from irc.ops.algebra import BOOL, SINGLE, AnyDType

BYTE, INT = ir.IntType(8), ir.IntType(64)
POINTER, VOID = ir.PointerType(), ir.VoidType()


class Space(NamedTuple):
    """The elements that a loop visits, with as few axes as their arrays allow.

    Attributes:
        sizes: of the axes, at least one.
        strides: for each array, in bytes; 0 along axes that it is broadcast along.
    """

    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]


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


def number(value: int) -> Any:
    """A constant of 64 bits."""
    return ir.Constant(INT, value)


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
    """As `loop`, likewise."""
    builder = emitter.builder
    chunk = _chunk(builder, step, elements)
    with loop(builder, start, stop, chunk) as i:
        pause(emitter, i, start)
        with loop(builder, i, least(builder, builder.add(i, chunk), stop), step) as k:
            yield k


def _chunk(builder: Any, step: int, elements: Any) -> Any:
    """The interval of a loop's pauses, a multiple of ``step``, for ``elements`` elements a number."""
    chunk = builder.sdiv(number(_PAUSE // step), elements)
    return builder.mul(builder.select(builder.icmp_signed("<", chunk, number(1)), number(1), chunk), number(step))


_PAUSE = 1 << 20
"""Elements between two pauses: about a millisecond's work."""


def pause(emitter: Emitter, i: Any, start: Any) -> None:
    """Emit a check of signals and limits, unless ``i`` is ``start``: the function ends if one raises."""
    builder, bit = emitter.builder, ir.IntType(1)
    with builder.if_then(builder.icmp_signed("!=", i, start)):
        asked = builder.call(emitter.library("irc.pause", bit, [], _pause_module), [])
        with builder.if_then(asked, likely=False):
            builder.ret_void()


def _pause_module() -> tuple[str, Mapping[str, Any]]:
    """The module of a function that calls `irc.runtime.bounds.pace` and returns whether it raised.

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
    """Emit a loop, from each iteration of which to the next go the accumulators."""
    before = builder.block
    with loop(builder, start, stop, step) as index:
        with builder.goto_block(index.parent):
            builder.position_at_start(index.parent)
            carried = [x.made(builder.phi(x.value.type)) for x in accumulators]
        found = body(index, carried)
        for phi, x, y in zip(carried, accumulators, found):
            phi.value.add_incoming(x.value, before)
            phi.value.add_incoming(y.value, builder.block)
    return carried


def paced_fold(
    emitter: Emitter, start: Any, stop: Any, step: int, elements: Any, accumulators: Accumulators, body: Accumulate
) -> Accumulators:
    """As `fold`, with a `pause` now and then; each number stands for ``elements`` elements."""
    builder = emitter.builder
    chunk = _chunk(builder, step, elements)

    def several(i: Any, accumulators: Accumulators) -> Accumulators:
        pause(emitter, i, start)
        return fold(builder, i, least(builder, builder.add(i, chunk), stop), step, accumulators, body)

    return fold(builder, start, stop, chunk, accumulators, several)


def function(name: str, arguments: Sequence[Any], result: Any = VOID) -> tuple[Any, Any]:
    """A new module's function, and a builder in it."""
    made = ir.Function(ir.Module(), ir.FunctionType(result, arguments), name)
    return made, ir.IRBuilder(made.append_basic_block())


def loop_function(
    name: str, target: Target, lanes: int, arrays: int, numbers: int
) -> tuple[Emitter, list[Any], list[Any], Any, Any]:
    """A new module's loop function: an emitter of ``lanes``, arrays, layout numbers, and the range."""
    made, builder = function(name, [POINTER, POINTER, INT, INT])
    table, layout, begin, end = made.args
    starts = [builder.load(offset(builder, table, number(8 * i)), typ=POINTER, align=8) for i in range(arrays)]
    known = [builder.load(offset(builder, layout, number(8 * i)), typ=INT, align=8) for i in range(numbers)]
    return Emitter(builder, lanes, target.has_fma, target.has_f16c), starts, known, begin, end


def finished(emitter: Emitter) -> tuple[str, Mapping[str, Any]]:
    """End a loop function: the text of its module, and the functions of the library that it calls."""
    emitter.builder.ret_void()
    return str(emitter.module), emitter.needs


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


def lanes_inside(emitter: Emitter, first: Any, size: Any) -> Lanes:
    """Which lanes are of the first ``size`` elements of a row, if lane 0 is of the element ``first``."""
    builder, narrow = emitter.builder, ir.IntType(32)
    place = emitter.splat(builder.trunc(first, narrow), INT32) + Lanes(emitter, indices(range(emitter.count)), INT32)
    edge = emitter.splat(builder.trunc(size, narrow), INT32)
    return Lanes(emitter, builder.icmp_unsigned("<", place.value, edge.value), BOOL)


def masked_load(emitter: Emitter, pointer: Any, mask: Lanes, filled: Any) -> Any:
    """A vector from ``pointer`` where ``mask`` is set, else ``filled``; reads no other memory."""
    operands = [pointer, ir.Constant(ir.IntType(32), 1), mask.value, filled]
    return emitter.call(f"llvm.masked.load.{_suffix(filled.type)}.p0", filled.type, operands)


def transposed(builder: Any, rows: Sequence[Any]) -> list[Any]:
    """The columns of a square of lanes: blocks of twice the size before change places, from step to step."""
    found, side = list(rows), len(rows)
    step = 1
    while step < side:
        low = [lane if not lane & step else side + lane - step for lane in range(side)]
        high = [lane + step if not lane & step else side + lane for lane in range(side)]
        for i in range(side):
            if not i & step:
                pair = found[i], found[i + step]
                found[i], found[i + step] = (builder.shuffle_vector(*pair, indices(which)) for which in (low, high))
        step *= 2
    return found


class Largest:
    """The largest magnitude of float32 that a loop has met, as its bits: those of NaN are above others.

    Args:
        emitter: it emits the loop, before which this is made.
    """

    def __init__(self, emitter: Emitter) -> None:
        self._emitter, self._bits = emitter, emitter.vector(INT32)
        self._seen = emitter.builder.alloca(self._bits)
        emitter.builder.store(ir.Constant(self._bits, None), self._seen, align=4)

    def see(self, *vectors: Any) -> None:
        """Take vectors of float32 into account."""
        builder = self._emitter.builder
        largest = builder.load(self._seen, typ=self._bits, align=4)
        for vector in vectors:
            magnitude = (Lanes(self._emitter, vector, SINGLE).bitcast(INT32) & 0x7FFFFFFF).value
            largest = builder.select(builder.icmp_unsigned(">", magnitude, largest), magnitude, largest)
        builder.store(largest, self._seen, align=4)

    def keep(self, place: Any) -> None:
        """Write it to ``place`` unless a larger one is there; other threads may do so at the same time."""
        builder = self._emitter.builder
        seen = builder.load(self._seen, typ=self._bits, align=4)
        most = ir.Constant(ir.IntType(32), 0)
        for k in range(self._emitter.count):
            each = builder.extract_element(seen, ir.Constant(ir.IntType(32), k))
            most = builder.select(builder.icmp_unsigned(">", each, most), each, most)
        builder.atomic_rmw("umax", place, most, "monotonic")


def masked_store(emitter: Emitter, value: Any, pointer: Any, mask: Lanes) -> None:
    """Write ``value`` behind ``pointer`` where ``mask`` is set; no other memory is touched."""
    operands = [value, pointer, ir.Constant(ir.IntType(32), 1), mask.value]
    emitter.call(f"llvm.masked.store.{_suffix(value.type)}.p0", VOID, operands)


def store_row(vectors: Sequence[Lanes], row: Any, first: Any, size: Any, dtype: AnyDType) -> None:
    """Write ``vectors`` side by side to a row of ``size`` elements from ``first`` on, as far as it goes."""
    emitter = vectors[0].emitter
    builder = emitter.builder
    for v, vector in enumerate(vectors):
        index = builder.add(first, number(v * emitter.count))
        place = offset(builder, row, builder.mul(index, number(dtype.itemsize)))
        is_whole = builder.icmp_signed("<=", builder.add(index, number(emitter.count)), size)
        with builder.if_else(is_whole) as (whole, part):
            with whole:
                store(vector, place, dtype)
            with part:
                masked_store(emitter, vector.value, place, lanes_inside(emitter, index, size))


def _suffix(kind: Any) -> str:
    """Of the name of LLVM's function for a vector type."""
    element = kind.element
    return f"v{kind.count}{f'i{element.width}' if isinstance(element, ir.IntType) else _FLOATS[element]}"


_FLOATS = {ir.FloatType(): "f32", ir.DoubleType(): "f64"}


def copy_elements(
    emitter: Emitter, name: str, dtype: AnyDType, buffer: Any, array: Any, stride: Any, count: Any
) -> None:
    """Copy elements of ``array``, ``stride`` bytes apart, to ``buffer`` ("gather") or back ("scatter")."""
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
    """``pointer`` plus an offset in bytes."""
    return builder.gep(pointer, [distance], source_etype=BYTE)
