"""Support vector machines that classify: what the similarities of a row to support vectors decide.

Invariants:

- Terms are added in the order of the support vectors, and of the classes, whatever the number of threads, which share
  the rows.
- Each class has support vectors from one number on up to another, none of them beyond the row of similarities.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import INT64, Emitter, Lanes, load, only, select, store, to_float
from irc.native.loops import finished, fold, loop, loop_function, number, offset, paced_loop
from irc.native.primitives import call
from irc.native.target import Target, current
from irc.ops.algebra import DOUBLE, SINGLE, AnyDType
from irc.runtime.kernels.ml import MOST_TURNS

_NANOSECONDS = 1.5
"""For a product, by estimate."""


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of rows.

    Attributes:
        vectors: support vectors.
        classes: how many there are, at least two.
        pairs: of classes.
        work: of a row, in what `paced_loop` counts.
    """

    vectors: Any
    classes: Any
    pairs: Any
    work: Any


def call_for_machine(rows: int, vectors: int, classes: int, has_chances: bool) -> Call:
    """A call for rows of similarities.

    It takes similarities, float64, what `irc.runtime.kernels.ml.Machine` has, the class of each row, int64, and scores
    and probabilities, float32, which are untouched without ``has_chances``.
    """
    pairs = classes * (classes - 1) // 2
    layout = Layout(vectors, classes, pairs, vectors * classes + has_chances * 10 * classes**3)
    name = "irc.machine"
    make = partial(_emit, name, has_chances, current())
    memory = 8 * (classes * classes + 2 * classes) + 4 * (classes * classes)
    return Call.of_loops(
        name, f"{name} {has_chances}", make, 10, layout, rows, rows * layout.work * _NANOSECONDS, memory
    )


def _emit(name: str, has_chances: bool, target: Target) -> tuple[str, Mapping[str, Make]]:
    emitter, arrays, numbers, begin, end = loop_function(name, target, 1, 10, len(Layout._fields))
    machine = _Machine(emitter, arrays, Layout(*numbers))
    with paced_loop(emitter, begin, end, 1, machine.layout.work) as row:
        machine.decide(row)
        if has_chances:
            machine.couple(row)
    return finished(emitter)


class _Machine:
    """Emits what is done for a row."""

    def __init__(self, emitter: Emitter, arrays: Sequence[Any], layout: Layout) -> None:
        self.emitter, self.builder, self.layout = emitter, emitter.builder, layout
        self.similarities, self.table, self.ends, self.rho, self.slopes, self.shifts = arrays[:6]
        self.best, self.scores, self.chances, self.sums = arrays[6:]
        square = self.builder.mul(layout.classes, layout.classes)
        self.votes = self._place(self.sums, square, DOUBLE)
        self.products = self._place(self.votes, layout.classes, INT64)
        self.q = self._place(self.products, layout.classes, DOUBLE)

    def _place(self, pointer: Any, index: Any, dtype: AnyDType) -> Any:
        return offset(self.builder, pointer, self.builder.mul(index, number(dtype.itemsize)))

    def _read(self, pointer: Any, index: Any, dtype: AnyDType = SINGLE) -> Lanes:
        return load(self.emitter, self._place(pointer, index, dtype), dtype)

    def _write(self, value: Lanes, pointer: Any, index: Any) -> None:
        store(value, self._place(pointer, index, value.dtype), value.dtype)

    def _cell(self, i: Any, j: Any) -> Any:
        """Where the element of a row and a column is in a square of classes."""
        return self.builder.add(self.builder.mul(i, self.layout.classes), j)

    def _row(self, pointer: Any, row: Any, width: Any, dtype: AnyDType) -> Any:
        return self._place(pointer, self.builder.mul(row, width), dtype)

    @contextmanager
    def _pairs(self) -> Generator[tuple[Any, Any, Any]]:
        """A loop over pairs of classes: the first, the second, the number of the pair."""
        builder, classes = self.builder, self.layout.classes
        with loop(builder, number(0), classes) as i:
            others = builder.sub(builder.sub(builder.add(classes, classes), i), number(3))
            before = builder.sub(builder.sdiv(builder.mul(i, others), number(2)), number(1))
            with loop(builder, builder.add(i, number(1)), classes) as j:
                yield i, j, builder.add(before, j)

    def _sum(self, count: Any, dtype: AnyDType, term: Callable[[Any], Lanes]) -> Lanes:
        zero = self.emitter.constant(0, dtype)
        (total,) = fold(self.builder, number(0), count, 1, [zero], lambda i, sums: [sums[0] + term(i)])
        return total

    def decide(self, row: Any) -> None:
        """Emit the scores of pairs of classes, and the class with most votes."""
        builder, layout = self.builder, self.layout
        similarities = self._row(self.similarities, row, layout.vectors, DOUBLE)
        scores = self._row(self.scores, row, layout.pairs, SINGLE)
        one, none = (self.emitter.constant(n, INT64) for n in (1, 0))
        with loop(builder, number(0), layout.classes) as i:
            self._write(none, self.votes, i)
            first, last = (only(self._read(self.ends, builder.add(i, number(k)), INT64)) for k in (0, 1))
            with loop(builder, number(0), builder.sub(layout.classes, number(1))) as k:
                factors = self._row(self.table, k, layout.vectors, DOUBLE)
                x, y = (self._place(each, first, DOUBLE) for each in (similarities, factors))
                total = self._sum(
                    builder.sub(last, first), DOUBLE, lambda v: self._read(x, v, DOUBLE) * self._read(y, v, DOUBLE)
                )
                self._write(total, self.sums, self._cell(i, k))
        with self._pairs() as (i, j, pair):
            of_first = self._read(self.sums, self._cell(i, builder.sub(j, number(1))), DOUBLE)
            total = of_first + self._read(self.sums, self._cell(j, i), DOUBLE) + self._read(self.rho, pair, DOUBLE)
            score = to_float(total, SINGLE)
            self._write(score, scores, pair)
            winner = builder.select(only(score > 0), i, j)
            self._write(self._read(self.votes, winner, INT64) + one, self.votes, winner)
        self._write(none, self.best, row)
        with loop(builder, number(1), layout.classes) as i:
            best = only(self._read(self.best, row, INT64))
            is_more = only(self._read(self.votes, i, INT64) > self._read(self.votes, best, INT64))
            with builder.if_then(is_more):
                builder.store(i, self._place(self.best, row, INT64))

    def couple(self, row: Any) -> None:
        """Emit `irc.runtime.kernels.ml._coupled` of a row's scores."""
        builder, emitter, classes = self.builder, self.emitter, self.layout.classes
        scores = self._row(self.scores, row, self.layout.pairs, SINGLE)
        chances = self._row(self.chances, row, classes, SINGLE)
        count = to_float(emitter.splat(classes, INT64), SINGLE)
        with loop(builder, number(0), classes) as i:
            self._write(emitter.constant(0, SINGLE), self.q, self._cell(i, i))
            self._write(1 / count, chances, i)
        with self._pairs() as (i, j, pair):
            less = -(self._read(scores, pair) * self._read(self.slopes, pair) + self._read(self.shifts, pair))
            less = call(emitter, "sigmoid", [less])
            less = select(less < 1e-7, 1e-7, less)
            less = select(less > 1 - 1e-7, 1 - 1e-7, less)
            for a, b in ((i, j), (j, i)):
                self._write(-(less * (1 - less)), self.q, self._cell(a, b))
            for k, own in ((j, less), (i, 1 - less)):
                self._write(self._read(self.q, self._cell(k, k)) + own * own, self.q, self._cell(k, k))
        done = builder.append_basic_block()
        with loop(builder, number(0), number(MOST_TURNS)):
            self._turn(chances, 0.005 / count, done)
        builder.branch(done)
        builder.position_at_end(done)

    def _turn(self, chances: Any, bound: Lanes, done: Any) -> None:
        builder, emitter, classes = self.builder, self.emitter, self.layout.classes
        with loop(builder, number(0), classes) as i:
            product = self._sum(
                classes, SINGLE, lambda k: self._read(self.q, self._cell(i, k)) * self._read(chances, k)
            )
            self._write(product, self.products, i)
        total = self._sum(classes, SINGLE, lambda i: self._read(chances, i) * self._read(self.products, i))

        def error(i: Any, most: list[Lanes]) -> list[Lanes]:
            apart = emitter.intrinsic("fabs", self._read(self.products, i) - total)
            return [select(apart > most[0], apart, most[0])]

        (most,) = fold(builder, number(0), classes, 1, [emitter.constant(0, SINGLE)], error)
        with builder.if_then(builder.not_(only(most >= bound))):
            builder.branch(done)

        def move(i: Any, totals: list[Lanes]) -> list[Lanes]:
            own, (total,) = self._read(self.q, self._cell(i, i)), totals
            product = self._read(self.products, i)
            step = (total - product) / own
            more = 1 + step
            self._write(self._read(chances, i) + step, chances, i)
            with loop(builder, number(0), classes) as k:
                changed = self._read(self.products, k) + step * self._read(self.q, self._cell(i, k))
                self._write(changed / more, self.products, k)
                self._write(self._read(chances, k) / more, chances, k)
            return [(total + step * (step * own + 2 * product)) / more / more]

        fold(builder, number(0), classes, 1, [total], move)
