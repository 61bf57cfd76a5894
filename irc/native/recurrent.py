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
from irc.native.loops import INT, copy_floats, finished, fold, least, loop, loop_function, number, offset, paced_loop
from irc.native.packed import PIECES
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

AT_ONCE = 2
"""Sequences whose sums stay in registers beside a vector of weights."""

_Read = Callable[[Any], Lanes]
_Write = Callable[[Lanes, Any], None]


class Form(NamedTuple):
    """What the code depends on.

    Attributes:
        kind: of the cell.
        numbers: what 4 bytes of the state's weights hold (`irc.native.panels`).
        at_once: sequences that run together where they are equally long: they read weights once.
    """

    kind: str
    numbers: int
    at_once: int


class Layout(NamedTuple):
    """The numbers that a loop function reads; its range is of samples, as many at once as there are.

    Attributes:
        batch: how many samples there are.
        steps: of each.
        hidden: elements of a state.
        padded: elements of a gate in the work memory, whole vectors.
        share: elements from the inputs' share in a step to that in the next.
        result: likewise of results.
        products: of a step.
    """

    batch: Any
    steps: Any
    hidden: Any
    padded: Any
    share: Any
    result: Any
    products: Any


class _Sample(NamedTuple):
    """The work memory of one sample: vectors of a state's size.

    Attributes:
        of_gate: the gates.
        h: the state.
        c: the other one, of an LSTM.
        spare: for what comes between.
        zeros: what no step makes.
    """

    of_gate: Sequence[Any]
    h: Any
    c: Any
    spare: Any
    zeros: Any


class _Cell:
    """Emits the loops of one kind of cell, for a range of samples."""

    def __init__(self, form: Form, emitter: Emitter, arrays: Sequence[Any], layout: Layout) -> None:
        kind = form.kind
        self.numbers = form.numbers
        self.kind, self.emitter, self.builder, self.layout = kind, emitter, emitter.builder, layout
        self.share, self.weights, self.late, self.lengths, self.hidden, self.cell, self.result, work = arrays
        self.gates = GATES[kind]
        buffers = [
            self._at(work, self.builder.mul(number(k), layout.padded)) for k in range(form.at_once * _buffers(kind))
        ]
        each = [buffers[k : k + _buffers(kind)] for k in range(0, len(buffers), _buffers(kind))]
        self.samples = [_Sample(x[: self.gates], *x[self.gates :]) for x in each]

    def _at(self, pointer: Any, index: Any) -> Any:
        """``pointer`` plus an offset in elements."""
        return offset(self.builder, pointer, self.builder.mul(index, number(_SIZE)))

    def emit(self, begin: Any, end: Any) -> None:
        builder, at_once = self.builder, len(self.samples)
        zero = self.emitter.constant(0, SINGLE)
        everything = builder.mul(self.layout.padded, number(at_once * _buffers(self.kind)))
        with loop(builder, number(0), everything, self.emitter.count) as i:
            store(zero, self._at(self.samples[0].of_gate[0], i), SINGLE)
        with loop(builder, begin, end) as i:
            first = builder.mul(i, number(at_once))
            last = least(builder, builder.add(first, number(at_once)), self.layout.batch)
            fits = builder.icmp_signed("==", builder.sub(last, first), number(at_once))
            for k in range(1, at_once):
                length = self._length(builder.select(fits, builder.add(first, number(k)), first))
                fits = builder.and_(fits, builder.icmp_signed("==", length, self._length(first)))
            with builder.if_then(fits):
                self._sequences(self.samples, first)
            if at_once > 1:
                with builder.if_then(builder.not_(fits)), loop(builder, first, last) as sample:
                    self._sequences(self.samples[:1], sample)

    def _length(self, sample: Any) -> Any:
        return self.builder.load(offset(self.builder, self.lengths, self.builder.mul(sample, number(8))), typ=INT)

    def _sequences(self, samples: Sequence[_Sample], first: Any) -> None:
        """All steps of the samples from ``first`` on, whose sequences are equally long."""
        builder, layout, length = self.builder, self.layout, self._length(first)
        own = [builder.mul(builder.add(first, number(k)), layout.hidden) for k in range(len(samples))]
        states = [
            (buffer, self._at(state, place))
            for sample, place in zip(samples, own)
            for buffer, state in [(sample.h, self.hidden), (sample.c, self.cell)][: 2 if self.gates == 4 else 1]
        ]
        for buffer, state in states:
            self._copy(buffer, state)
        with paced_loop(self.emitter, number(0), length, 1, builder.mul(layout.products, number(len(samples)))) as step:
            self._step(step, samples, own)
        with loop(builder, length, layout.steps) as step:
            for sample, place in zip(samples, own):
                self._copy(self._at(self._result(step), place), sample.zeros)
        for buffer, state in states:
            self._copy(state, buffer)

    def _copy(self, to: Any, source: Any) -> None:
        copy_floats(self.emitter, to, source, self.layout.hidden)

    def _result(self, step: Any) -> Any:
        return self._at(self.result, self.builder.mul(step, self.layout.result))

    def _step(self, step: Any, samples: Sequence[_Sample], own: Sequence[Any]) -> None:
        """One step of samples whose elements are from ``own`` on."""
        for sample, place in zip(samples, own):
            share = self._at(self.share, self.builder.mul(step, self.layout.share))
            share = self._at(share, self.builder.mul(place, number(self.gates)))
            for k, gate in enumerate(sample.of_gate):
                part = self._at(share, self.builder.mul(self.layout.hidden, number(k)))
                if self.kind == LATE_GRU and k == 2:
                    self._copy(sample.spare, part)
                    self._copy(gate, self.late)
                else:
                    self._copy(gate, part)
        states = [sample.h for sample in samples]
        if self.kind == GRU:
            self._multiply(samples, states, 0, 2)
            self._each(samples, self._reset)
            self._multiply(samples, [sample.spare for sample in samples], 2, 3)
        elif self.kind == QUANTIZED_LSTM:
            for sample in samples:
                self._multiply_integers(sample, *self._quantize(sample))
        else:
            self._multiply(samples, states, 0, self.gates)
        cells = {LSTM: self._lstm, QUANTIZED_LSTM: self._lstm, GRU: self._gru, LATE_GRU: self._late_gru, RNN: self._rnn}
        self._each(samples, cells[self.kind])
        for sample, place in zip(samples, own):
            self._copy(self._at(self._result(step), place), sample.h)

    def _multiply(self, samples: Sequence[_Sample], states: Sequence[Any], first: int, last: int) -> None:
        """Add to some gates their weights times ``states``, a vector of elements of gates at a time."""
        builder, emitter, layout = self.builder, self.emitter, self.layout
        begin, end = (builder.mul(layout.padded, number(k)) for k in (first, last))
        with loop(builder, begin, end, emitter.count) as i:
            rows = self._at(self.weights, builder.mul(i, layout.hidden))

            def step(k: Any, sums: list[Lanes]) -> list[Lanes]:
                weights = load(emitter, self._at(rows, builder.mul(k, number(emitter.count))), SINGLE)
                factors = [load_one(emitter, self._at(state, k), SINGLE) for state in states]
                return [weights.fma(factor, total) for factor, total in zip(factors, sums)]

            places = [self._at(sample.of_gate[0], i) for sample in samples]
            shares = [load(emitter, place, SINGLE) for place in places]
            for total, place in zip(fold(builder, number(0), layout.hidden, 1, shares, step), places):
                store(total, place, SINGLE)

    def _multiply_integers(self, sample: _Sample, scale: Lanes, zero: Lanes) -> None:
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
                codes = load_one(emitter, self._at(sample.spare, k), INT32)
                factors = registers(self._at(rows, builder.mul(k, number(lanes))), INT32)
                return [add_products(total, codes, x, self.numbers) for total, x in zip(totals, factors)]

            first = [begun * each for each in registers(sums_of_weights, INT32)]
            totals = fold(builder, number(0), groups, 1, first, step)
            place, scale_of = self._at(sample.of_gate[0], i), registers(self._at(self.late, i), SINGLE)
            one = emitter.splat(only(scale), SINGLE)
            for index, (total, own, share) in enumerate(zip(totals, scale_of, registers(place, SINGLE))):
                made = to_float(total, SINGLE) * (one * own) + share
                store(made, self._at(place, number(index * emitter.count)), SINGLE)

    def _quantize(self, sample: _Sample) -> tuple[Lanes, Lanes]:
        """Quantize the state into `spare` as DynamicQuantizeLinear does; its scale and zero point."""
        builder, emitter, layout = self.builder, self.emitter, self.layout

        def widen(i: Any, range_: list[Lanes]) -> list[Lanes]:
            return widened_range(load(emitter, self._at(sample.h, i), SINGLE), range_)

        begun = [emitter.constant(0, SINGLE)] * 2
        ends = range_of_lanes(fold(builder, number(0), layout.padded, emitter.count, begun, widen))
        steps = Steps.of(*[emitter.splat(end, SINGLE) for end in ends])
        width = _SIZE // self.numbers
        with loop(builder, number(0), layout.padded, emitter.count) as i:
            codes = steps.codes(load(emitter, self._at(sample.h, i), SINGLE))
            store_codes(codes, offset(builder, sample.spare, builder.mul(i, number(width))), width)
        return steps.scale, whole(steps.zero)

    def _each(self, samples: Sequence[_Sample], make: Callable[[_Sample, _Read, _Write], None]) -> None:
        """Emit ``make`` for each vector of elements, given what reads and writes that of a buffer."""
        for sample in samples:
            with loop(self.builder, number(0), self.layout.padded, self.emitter.count) as i:
                make(
                    sample,
                    lambda buffer: load(self.emitter, self._at(buffer, i), SINGLE),
                    lambda value, buffer: store(value, self._at(buffer, i), SINGLE),
                )

    def _call(self, name: str, x: Lanes) -> Lanes:
        return call(self.emitter, name, [x])

    def _lstm(self, own: _Sample, read: _Read, write: _Write) -> None:
        i, o, f, c = map(read, own.of_gate)
        cell = self._call("sigmoid", f) * read(own.c) + self._call("sigmoid", i) * self._call("tanh", c)
        write(cell, own.c)
        write(self._call("sigmoid", o) * self._call("tanh", cell), own.h)

    def _reset(self, own: _Sample, read: _Read, write: _Write) -> None:
        write(self._call("sigmoid", read(own.of_gate[1])) * read(own.h), own.spare)

    def _gru(self, own: _Sample, read: _Read, write: _Write) -> None:
        self._mix(own, read, write, self._call("tanh", read(own.of_gate[2])))

    def _late_gru(self, own: _Sample, read: _Read, write: _Write) -> None:
        reset = self._call("sigmoid", read(own.of_gate[1]))
        self._mix(own, read, write, self._call("tanh", read(own.spare) + reset * read(own.of_gate[2])))

    def _mix(self, own: _Sample, read: _Read, write: _Write, candidate: Lanes) -> None:
        z = self._call("sigmoid", read(own.of_gate[0]))
        one = self.emitter.constant(1, SINGLE)
        write((one - z) * candidate + z * read(own.h), own.h)

    def _rnn(self, own: _Sample, read: _Read, write: _Write) -> None:
        write(self._call("tanh", read(own.of_gate[0])), own.h)


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
    return PIECES.copy(rows.reshape(-1, lanes, depth).swapaxes(1, 2))


def call_for_cells(kind: str, weight: AnyDType, share: Array, out: Array) -> Call:
    """A call for such sequences, and `packed` weights of an element type: see `emit_recurrent`."""
    steps, batch, hidden = out.shape
    padded = padded_size(hidden)
    products = GATES[kind] * padded * hidden
    apart = share.strides[0] // _SIZE, out.strides[0] // _SIZE
    layout = Layout(batch, steps, hidden, padded, *apart, products)
    at_once = AT_ONCE if batch > 1 else 1
    name, work = "irc.recurrent", steps * batch * products * _NANOSECONDS
    memory = _SIZE * at_once * _buffers(kind) * padded
    form = Form(kind, FLOAT * _SIZE // weight.itemsize, at_once)
    make = partial(emit_recurrent, name, form, current())
    return Call.of_loops(name, f"{name} {form!r}", make, 8, layout, -(-batch // at_once), work, memory)
