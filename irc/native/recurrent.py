"""Recurrent cells: the loop over the steps of a sequence.

What the inputs add to the gates is one matrix product, which the caller has made. Each step adds what the state adds, a
product of a matrix and a vector, and computes the cell.

Invariants:

- Nothing outside of the operands is read or written. In the work memory, the gates of a sample are padded to whole
  vectors, whose further lanes affect nothing.
- The terms of a product are added in the order of the state, whatever the number of threads, which share the samples.
- A state that is quantized dynamically is multiplied as integers, whose sums are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.jit import Make
from irc.native.kernels import Call
from irc.native.lanes import INT32, Emitter, Lanes, load, load_one, only, store, to_float, whole
from irc.native.loops import INT, copy_floats, finished, fold, loop, loop_function, number, offset, paced_loop
from irc.native.panels import FLOAT, PAIR, add_products, integers_at_once, lanes_of_panel
from irc.native.primitives import call
from irc.native.products import OF_NUMBERS
from irc.native.quantization import Steps, range_of_lanes, store_codes, widened_range
from irc.native.target import Target, current
from irc.ops.algebra import SINGLE, AnyDType

LSTM, QUANTIZED_LSTM, GRU, LATE_GRU, RNN = "lstm", "quantized lstm", "gru", "late gru", "rnn"
"""Cells by ONNX's order of gates: i o f c, of states as they are or quantized dynamically; z r h, whose state is reset
before its product, or after it; tanh alone."""

READ_LATE = LATE_GRU, QUANTIZED_LSTM
"""Cells that read `irc.runtime.kernels.recurrent.Cells.late`."""

GATES = {LSTM: 4, QUANTIZED_LSTM: 4, GRU: 3, LATE_GRU: 3, RNN: 1}

_SIZE = 4
"""Bytes of an element."""

_MOST_HIDDEN = np.iinfo(np.int32).max // (255 * 255)
"""Elements of a state of integers: sums of more products may not fit into 32 bits."""

_NANOSECONDS = 0.08
"""For a product, by estimate."""


class Form(NamedTuple):
    """What the code depends on.

    Attributes:
        kind: of the cell.
        numbers: what 4 bytes of the state's weights hold (`irc.native.panels`).
    """

    kind: str
    numbers: int


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of samples.

    Attributes:
        steps: of each.
        hidden: elements of a state.
        padded: elements of a gate in the work memory, whole vectors.
        share: elements from the inputs' share in a step to that in the next.
        result: likewise of results.
        products: of a step.
    """

    steps: Any
    hidden: Any
    padded: Any
    share: Any
    result: Any
    products: Any


class _Cell:
    """Emits the loops of one kind of cell, for a range of samples."""

    def __init__(self, form: Form, emitter: Emitter, arrays: Sequence[Any], layout: Layout) -> None:
        kind = form.kind
        self.numbers = form.numbers
        self.kind, self.emitter, self.builder, self.layout = kind, emitter, emitter.builder, layout
        self.share, self.weights, self.late, self.lengths, self.hidden, self.cell, self.result, work = arrays
        self.gates = GATES[kind]
        buffers = [self._at(work, self.builder.mul(number(k), layout.padded)) for k in range(_buffers(kind))]
        self.of_gate, (self.h, self.c, self.spare, self.zeros) = buffers[: self.gates], buffers[self.gates :]

    def _at(self, pointer: Any, index: Any) -> Any:
        """``pointer`` plus an offset in elements."""
        return offset(self.builder, pointer, self.builder.mul(index, number(_SIZE)))

    def emit(self, begin: Any, end: Any) -> None:
        builder, layout = self.builder, self.layout
        zero = self.emitter.constant(0, SINGLE)
        everything = builder.mul(layout.padded, number(_buffers(self.kind)))
        with loop(builder, number(0), everything, self.emitter.count) as i:
            store(zero, self._at(self.of_gate[0], i), SINGLE)
        with loop(builder, begin, end) as sample:
            own = builder.mul(sample, layout.hidden)
            states = [(self.h, self.hidden), (self.c, self.cell)][: 2 if self.gates == 4 else 1]
            for buffer, state in states:
                self._copy(buffer, self._at(state, own))
            length = builder.load(offset(builder, self.lengths, builder.mul(sample, number(8))), typ=INT)
            with paced_loop(self.emitter, number(0), length, 1, layout.products) as step:
                self._step(step, own)
            with loop(builder, length, layout.steps) as step:
                self._copy(self._at(self._result(step), own), self.zeros)
            for buffer, state in states:
                self._copy(self._at(state, own), buffer)

    def _copy(self, to: Any, source: Any) -> None:
        copy_floats(self.emitter, to, source, self.layout.hidden)

    def _result(self, step: Any) -> Any:
        return self._at(self.result, self.builder.mul(step, self.layout.result))

    def _step(self, step: Any, own: Any) -> None:
        """One step of the sample whose elements are from ``own`` on."""
        share = self._at(self.share, self.builder.mul(step, self.layout.share))
        share = self._at(share, self.builder.mul(own, number(self.gates)))
        for k, gate in enumerate(self.of_gate):
            part = self._at(share, self.builder.mul(self.layout.hidden, number(k)))
            if self.kind == LATE_GRU and k == 2:
                self._copy(self.spare, part)
                self._copy(gate, self.late)
            else:
                self._copy(gate, part)
        if self.kind == GRU:
            self._multiply(self.h, 0, 2)
            self._each(self._reset)
            self._multiply(self.spare, 2, 3)
        elif self.kind == QUANTIZED_LSTM:
            self._multiply_integers(*self._quantize())
        else:
            self._multiply(self.h, 0, self.gates)
        self._each(
            {LSTM: self._lstm, QUANTIZED_LSTM: self._lstm, GRU: self._gru, LATE_GRU: self._late_gru, RNN: self._rnn}[
                self.kind
            ]
        )
        self._copy(self._at(self._result(step), own), self.h)

    def _multiply(self, state: Any, first: int, last: int) -> None:
        """Add to some gates their weights times ``state``, a vector of elements of gates at a time."""
        builder, emitter, layout = self.builder, self.emitter, self.layout
        begin, end = (builder.mul(layout.padded, number(k)) for k in (first, last))
        with loop(builder, begin, end, emitter.count) as i:
            rows = self._at(self.weights, builder.mul(i, layout.hidden))

            def step(k: Any, sums: list[Lanes]) -> list[Lanes]:
                weights = load(emitter, self._at(rows, builder.mul(k, number(emitter.count))), SINGLE)
                return [weights.fma(load_one(emitter, self._at(state, k), SINGLE), sums[0])]

            place = self._at(self.of_gate[0], i)
            (total,) = fold(builder, number(0), layout.hidden, 1, [load(emitter, place, SINGLE)], step)
            store(total, place, SINGLE)

    def _multiply_integers(self, scale: Lanes, zero: Lanes) -> None:
        """Add to the gates their weights times the state that `_quantize` wrote, times both scales."""
        builder, layout, lanes = self.builder, self.layout, self.emitter.count
        emitter = Emitter(builder, lanes_of_panel(), self.emitter.has_fma, self.emitter.has_f16c)
        groups = builder.sdiv(builder.add(layout.hidden, number(self.numbers - 1)), number(self.numbers))
        begun = emitter.splat(builder.neg(only(zero)), INT32)
        with loop(builder, number(0), builder.mul(layout.padded, number(self.gates)), lanes) as i:
            sums_of_weights = self._at(self.weights, builder.mul(i, builder.add(groups, number(1))))
            rows = self._at(sums_of_weights, number(lanes))

            def registers(start: Any, dtype: AnyDType) -> list[Lanes]:
                places = range(0, lanes, emitter.count)
                return [load(emitter, self._at(start, number(place)), dtype) for place in places]

            def step(k: Any, totals: list[Lanes]) -> list[Lanes]:
                codes = load_one(emitter, self._at(self.spare, k), INT32)
                factors = registers(self._at(rows, builder.mul(k, number(lanes))), INT32)
                return [add_products(total, codes, x, self.numbers) for total, x in zip(totals, factors)]

            first = [begun * each for each in registers(sums_of_weights, INT32)]
            totals = fold(builder, number(0), groups, 1, first, step)
            place, scale_of = self._at(self.of_gate[0], i), registers(self._at(self.late, i), SINGLE)
            one = emitter.splat(only(scale), SINGLE)
            for index, (total, own, share) in enumerate(zip(totals, scale_of, registers(place, SINGLE))):
                made = to_float(total, SINGLE) * (one * own) + share
                store(made, self._at(place, number(index * emitter.count)), SINGLE)

    def _quantize(self) -> tuple[Lanes, Lanes]:
        """Quantize the state into `spare` as DynamicQuantizeLinear does; its scale and zero point."""
        builder, emitter, layout = self.builder, self.emitter, self.layout

        def widen(i: Any, range_: list[Lanes]) -> list[Lanes]:
            return widened_range(load(emitter, self._at(self.h, i), SINGLE), range_)

        begun = [emitter.constant(0, SINGLE)] * 2
        ends = range_of_lanes(fold(builder, number(0), layout.padded, emitter.count, begun, widen))
        steps = Steps.of(*[emitter.splat(end, SINGLE) for end in ends])
        width = _SIZE // self.numbers
        with loop(builder, number(0), layout.padded, emitter.count) as i:
            codes = steps.codes(load(emitter, self._at(self.h, i), SINGLE))
            store_codes(codes, offset(builder, self.spare, builder.mul(i, number(width))), width)
        return steps.scale, whole(steps.zero)

    def _each(self, make: Callable[[Callable[[Any], Lanes], Callable[[Lanes, Any], None]], None]) -> None:
        """Emit ``make`` for each vector of elements, given what reads and writes that of a buffer."""
        with loop(self.builder, number(0), self.layout.padded, self.emitter.count) as i:
            make(
                lambda buffer: load(self.emitter, self._at(buffer, i), SINGLE),
                lambda value, buffer: store(value, self._at(buffer, i), SINGLE),
            )

    def _call(self, name: str, x: Lanes) -> Lanes:
        return call(self.emitter, name, [x])

    def _lstm(self, read: Any, write: Any) -> None:
        i, o, f, c = map(read, self.of_gate)
        cell = self._call("sigmoid", f) * read(self.c) + self._call("sigmoid", i) * self._call("tanh", c)
        write(cell, self.c)
        write(self._call("sigmoid", o) * self._call("tanh", cell), self.h)

    def _reset(self, read: Any, write: Any) -> None:
        write(self._call("sigmoid", read(self.of_gate[1])) * read(self.h), self.spare)

    def _gru(self, read: Any, write: Any) -> None:
        self._mix(read, write, self._call("tanh", read(self.of_gate[2])))

    def _late_gru(self, read: Any, write: Any) -> None:
        reset = self._call("sigmoid", read(self.of_gate[1]))
        self._mix(read, write, self._call("tanh", read(self.spare) + reset * read(self.of_gate[2])))

    def _mix(self, read: Any, write: Any, candidate: Lanes) -> None:
        z = self._call("sigmoid", read(self.of_gate[0]))
        one = self.emitter.constant(1, SINGLE)
        write((one - z) * candidate + z * read(self.h), self.h)

    def _rnn(self, read: Any, write: Any) -> None:
        write(self._call("tanh", read(self.of_gate[0])), self.h)


def _buffers(kind: str) -> int:
    """Vectors of a state's size in the work memory: the gates, both states, a spare one, zeros."""
    return GATES[kind] + 4


def emit_recurrent(name: str, form: Form, target: Target) -> tuple[str, Mapping[str, Make]]:
    """The function ``name``, and what it needs.

    It takes the inputs' share of the gates (T, B, gates, H), packed weights, the bias of a candidate or the scales of
    integers, padded, lengths (B), both states (B, H), which become the last ones, the result (T, B, H), work memory.
    What is of one step lies side by side.
    """
    made = loop_function(name, target, target.lanes(_SIZE), 8, len(Layout._fields))
    emitter, arrays, numbers, begin, end = made
    _Cell(form, emitter, arrays, Layout(*numbers)).emit(begin, end)
    return finished(emitter)


def padded_size(hidden: int) -> int:
    """The elements of a gate in work memory."""
    lanes = current().lanes(_SIZE)
    return -(-hidden // lanes) * lanes


def padded(late: Array, hidden: int) -> Array:
    """``late`` (gates H) as (gates, padded elements): see `irc.runtime.kernels.recurrent.Cells`."""
    made: Array = np.zeros((late.size // hidden, padded_size(hidden)), SINGLE)
    made[:, :hidden] = late.reshape(-1, hidden)
    return made


def packed_bytes(kind: str, hidden: int) -> int:
    """The most bytes that `packed` makes."""
    return _SIZE * GATES[kind] * padded_size(hidden) * (hidden + 1)


def packed(r: Array, zero: Array | None, kind: str) -> tuple[Array] | None:
    """Weights of the state as code reads them.

    Floats are (vectors of gates, H, lanes). Of integers, as many as are multiplied at once are one element of 4 bytes,
    (vectors of gates, 1 + H / as many, lanes), the first of which are the sums of all weights.

    None if sums of products may not fit into 32 bits.

    Args:
        r: (gates H, H); of integers (H, gates H).
        zero: of integers, their zero point, or one for each column.
    """
    gates, lanes = GATES[kind], current().lanes(_SIZE)
    if zero is None:
        return (_vectors(r.reshape(gates, -1, r.shape[1]), lanes),)
    hidden = len(r)
    weights: Array = (r.astype(np.int32) - zero.astype(np.int32)).T.reshape(gates, hidden, hidden)
    if hidden > _MOST_HIDDEN:
        return None
    numbers = integers_at_once() if -(1 << 7) <= weights.min() <= weights.max() < 1 << 7 else PAIR
    small: Array = np.zeros((gates, hidden, -(-hidden // numbers) * numbers), OF_NUMBERS[numbers])
    small[..., :hidden] = weights
    groups = np.concatenate([weights.sum(2, dtype=np.int32)[..., None], small.view(np.int32)], axis=2)
    return (_vectors(groups, lanes).view(small.dtype),)


def _vectors(weights: Array, lanes: int) -> Array:
    """``weights`` (gates, H, numbers of a sum) as vectors of elements of a gate."""
    gates, hidden, depth = weights.shape
    rows: Array = np.zeros((gates, padded_size(hidden), depth), weights.dtype)
    rows[:, :hidden] = weights
    return np.ascontiguousarray(rows.reshape(-1, lanes, depth).swapaxes(1, 2))


def call_for_cells(kind: str, weight: AnyDType, share: Array, out: Array) -> Call:
    """A call for such sequences, and `packed` weights of an element type: see `emit_recurrent`."""
    steps, batch, hidden = out.shape
    padded = padded_size(hidden)
    products = GATES[kind] * padded * hidden
    apart = share.strides[0] // _SIZE, out.strides[0] // _SIZE
    layout = Layout(steps, hidden, padded, *apart, products)
    name, work, memory = "irc.recurrent", steps * batch * products * _NANOSECONDS, _SIZE * _buffers(kind) * padded
    form = Form(kind, FLOAT * _SIZE // weight.itemsize)
    make = partial(emit_recurrent, name, form, current())
    return Call.of_loops(name, f"{name} {form!r}", make, 8, layout, batch, work, memory)
