"""Recurrent layers: RNN, GRU, LSTM, and an LSTM of quantized weights, in one or both directions.

One loop over time serves all three; a cell says how many gates it has and how
one step goes. The inputs' share of the gates is one matrix product for all
steps at once. Shapes: T steps, B samples, I inputs, H hidden, D directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import is_
from typing import Any, NamedTuple

import numpy as np

from irc import ops
from irc.errors import Error
from irc.ir import Node
from irc.ops.algebra import SINGLE, Expression, tanh
from irc.runtime.bounds import CURRENT, check_work, pace
from irc.runtime.kernels.elementwise import kernel_of
from irc.runtime.kernels.expressions import of_expression
from irc.runtime.kernels.numerics import product, widened
from irc.runtime.kernels.quantized import columns, dynamically_quantized, matmul_sums
from irc.runtime.kernels.registry import Binder, Kernel, kernel
from irc.runtime.kernels.support import (
    Array,
    as_constant,
    c_order,
    check_size,
    counting,
    filled,
    is_constant,
    is_half,
    shapes_of,
    spread_out,
)

State = tuple[Array, ...]
Product = Callable[[Array], Array]
Step = Callable[[Array, State], State]
"""``(inputs' share of the gates [B, gates H], state)`` -> the next state; the first of a state is the output."""


class Cells(NamedTuple):
    """What machine code knows of a step in one direction.

    Attributes:
        kind: ``"lstm"``, ``"gru"``, ``"late gru"`` (the state is reset after its product), ``"rnn"``, or ``"quantized
            lstm"``, whose states are quantized dynamically.
        r: the weights of the state (directions, gates H, H); of integers (directions, H, gates H).
        direction: which of them.
        late: the bias of what is reset (H); of integers, their scales (gates H).
        zero: of integers, their zero points.
    """

    kind: str
    r: Array
    direction: int
    late: Array
    zero: Array | None = None


Recurrence = Callable[[Array, Array, Sequence[Array], Array], bool]
"""Whether it has computed all steps in one direction.

Given the inputs' share of the gates with biases (T, B, gates H), the samples' lengths (B), int64, beyond which results
are 0, states (B, H) each, which become the last ones, and where results go (T, B, H).
"""

PACE_ELEMENTS = 1 << 12
"""Elements of gates after which a run under limits looks at the clock: of a tenth of a millisecond or so."""


def _affine(x: Expression, *, alpha: float = 1.0, beta: float = 0.0) -> Expression:
    return x * alpha + beta


def _scaled_tanh(x: Expression, *, alpha: float = 1.0, beta: float = 1.0) -> Expression:
    return tanh(x * beta) * alpha


ACTIVATIONS: dict[str, tuple[Callable[..., Expression] | str, tuple[str, ...]]] = {
    "affine": (_affine, ("alpha", "beta")),
    "elu": ("Elu", ("alpha",)),
    "hardsigmoid": ("HardSigmoid", ("alpha", "beta")),
    "leakyrelu": ("LeakyRelu", ("alpha",)),
    "relu": ("Relu", ()),
    "scaledtanh": (_scaled_tanh, ("alpha", "beta")),
    "sigmoid": ("Sigmoid", ()),
    "softplus": ("Softplus", ()),
    "softsign": ("Softsign", ()),
    "tanh": ("Tanh", ()),
    "thresholdedrelu": ("ThresholdedRelu", ("alpha",)),
}
"""Name in lower case: its semantics, or those of which operator, and which of alpha and beta it takes."""


def _activation(name: str, attributes: dict[str, float]) -> Kernel:
    semantics, _ = ACTIVATIONS[name]
    if isinstance(semantics, str):
        record = ops.semantics(f"onnx::{semantics}")
        assert record is not None
        return kernel_of(record, attributes, 1)
    return of_expression(partial(semantics, **attributes), 1)


def _activations(node: Node, defaults: Sequence[str], directions: int) -> list[list[Callable[[Array], Array]]]:
    """Each direction's activation functions, with alphas and betas dealt in order to those that take them."""
    names: list[str] = node.attributes.get("activations") or list(defaults) * directions
    if len(names) != len(defaults) * directions:
        raise Error("IRC320", f"{len(names)} activations are given where {len(defaults) * directions} are needed")
    given = [list(node.attributes.get(f"activation_{which}") or ()) for which in ("alpha", "beta")]
    clip: float | None = node.attributes.get("clip")
    functions: list[Callable[[Array], Array]] = []
    for name in names:
        if name.lower() not in ACTIVATIONS:
            raise Error(
                "IRC320", f"{name!r} is not an activation of recurrent layers; they are {', '.join(ACTIVATIONS)}"
            )
        _, taken = ACTIVATIONS[name.lower()]
        parameters: dict[str, float] = {
            which: values.pop(0) for which, values in zip(taken, given, strict=False) if values
        }
        function = _activation(name.lower(), parameters)
        # The last function of an LSTM sees the cell, which is not cut: so does ONNX Runtime.
        limited = len(functions) % len(defaults) < 2
        functions.append(_clipped(function, clip if limited else None))
    return [functions[i : i + len(defaults)] for i in range(0, len(functions), len(defaults))]


def _clipped(function: Kernel, limit: float | None) -> Kernel:
    """``function`` of what is first cut to ``[-limit, limit]``."""
    if limit is None:
        return function

    def run(x: Array) -> Array:
        return function(np.clip(x, -limit, limit))

    return run


class Weights:
    """One direction's weights: ``w`` [gates H, I], ``r`` [gates H, H], ``b`` [2 gates H], peepholes.

    Attributes:
        share: the inputs' share of the gates, of rows of inputs.
        late: the bias of the last gate's share of the state.
        recurrent: the state's share of the gates, of rows of states.
        cells: what machine code knows of its steps, if that is something else than of floats.
    """

    cells: Cells | None = None

    def __init__(
        self, w: Array, r: Array, b: Array | None, peepholes: Array | None, several: bool, are_constant: bool = False
    ) -> None:
        # Products of several rows take BLAS a quarter of the time if it need not turn the weights around in each step.
        self.r_transposed = np.ascontiguousarray(r.T) if several else r.T
        w_transposed = as_constant(w.T) if are_constant else w.T
        self.share: Product = lambda rows: product(rows, w_transposed)
        self.recurrent: Product = lambda rows: product(rows, self.r_transposed)
        self.size, self.hidden = w.size + r.size, r.shape[1]
        zero = np.zeros(r.shape[0], w.dtype)
        self.input_bias, self.recurrent_bias = (zero, zero) if b is None else np.split(b, 2)
        self.late = self.recurrent_bias[-self.hidden :]
        self.peepholes = None if peepholes is None else peepholes.reshape(3, self.hidden)


_FEW_STEPS = 4
"""More steps are worth a copy of the weights."""

WeightsOf = Callable[[int, Array | None, Array | None], Weights]
"""Makes the weights of one direction, given its number, biases and peepholes."""

Cell = Callable[["Node", Weights, list[Callable[[Array], Array]]], tuple[Array, Step]]
"""Makes, for one direction, the bias to add to the inputs' share, and the step."""


def _rnn(node: Node, weights: Weights, activations: list[Callable[[Array], Array]]) -> tuple[Array, Step]:
    """H' = f(X W + H R + b)."""
    (f,) = activations

    def step(x: Array, state: State) -> State:
        return (f(x + weights.recurrent(state[0])),)

    return weights.input_bias + weights.recurrent_bias, step


def _gru(node: Node, weights: Weights, activations: list[Callable[[Array], Array]]) -> tuple[Array, Step]:
    """Gates z, r, h: H' = (1 - z) h + z H, where r resets the state before or after its product with R."""
    f, g = activations
    n = weights.hidden
    reset_after = bool(node.attributes.get("linear_before_reset", 0))
    gates, candidate = weights.r_transposed[:, : 2 * n], weights.r_transposed[:, 2 * n :]
    late_bias = weights.late
    bias = weights.input_bias + weights.recurrent_bias
    if reset_after:
        bias = np.concatenate([bias[: 2 * n], weights.input_bias[2 * n :]])

    def step(x: Array, state: State) -> State:
        (h,) = state
        open = f(x[:, : 2 * n] + product(h, gates))
        z, r = open[:, :n], open[:, n:]
        inner = r * (product(h, candidate) + late_bias) if reset_after else product(r * h, candidate)
        return ((1 - z) * g(x[:, 2 * n :] + inner) + z * h,)

    return bias, step


def _lstm(node: Node, weights: Weights, activations: list[Callable[[Array], Array]]) -> tuple[Array, Step]:
    """Gates i, o, f, c: C' = f C + i c; H' = o h(C'); peepholes let i, f see C and o see C'."""
    f, g, h = activations
    coupled = bool(node.attributes.get("input_forget", 0))
    n = weights.hidden

    def step(x: Array, state: State) -> State:
        hidden, cell = state
        gates = weights.recurrent(hidden)
        gates += x
        open = f(gates[:, : 3 * n])
        i, o, forget = open[:, :n], open[:, n : 2 * n], open[:, 2 * n :]
        cell = (1 - i if coupled else forget) * cell + i * g(gates[:, 3 * n :])
        return o * h(cell), cell

    bias = weights.input_bias + weights.recurrent_bias
    if weights.peepholes is None:
        return bias, step
    peep_i, peep_o, peep_f = weights.peepholes

    def peeping_step(x: Array, state: State) -> State:
        hidden, cell = state
        i, o, forget, c = np.split(x + weights.recurrent(hidden), 4, axis=1)
        i = f(i + peep_i * cell)
        forget = 1 - i if coupled else f(forget + peep_f * cell)
        cell = forget * cell + i * g(c)
        return f(o + peep_o * cell) * h(cell), cell

    return bias, peeping_step


def _run(x: Array, direction: _Direction, state: State, lengths: Array | None, out: Array) -> Recurrence | None:
    """Write all outputs [T, B, H] of one direction; the state becomes the last one.

    Steps beyond a sample's length give zeros. The result is what computed all steps, if anything did so at once.
    """
    weights, bias, step, cells, backward, _ = direction
    steps, batch = x.shape[:2]
    made, order = out, None
    if lengths is not None and backward:
        time = counting(steps)[:, None]
        order = (np.where(time < lengths, lengths - 1 - time, time), counting(batch))
        x, made = x[order], np.empty_like(out)
    longest = steps if lengths is None else int(lengths.max(initial=0))  # what lies beyond is not read
    check_work(longest * batch * weights.size)
    share = weights.share(x[:longest].reshape(longest * batch, x.shape[2]))
    share += bias
    share = share.reshape(longest, batch, len(bias))
    if backward and lengths is None:
        share, made = share[::-1], made[::-1]
    made[longest:] = 0
    counts = np.full(batch, steps) if lengths is None else lengths.astype(np.int64)
    recur = CURRENT.scope.loops.recurrence(cells, share, made[:longest]) if cells and longest else None
    if recur is None or not recur(share, counts, state, made[:longest]):
        recur = None
        _step_by_step(step, share, state, lengths, made)
    if lengths is not None:  # a sample without steps ends in zeros, whatever state it began in
        for value in state:
            value[lengths == 0] = 0
    if order is not None:
        out[...] = made[order]
    return recur


def _step_by_step(step: Step, share: Array, state: State, lengths: Array | None, out: Array) -> None:
    """As `_run`, of the inputs' share of the gates [T, B, gates H]."""
    given = latest = state
    paced = 1 + PACE_ELEMENTS // max(1, share[0].size if len(share) else 0)
    for t in range(len(share)):
        if not t % paced:
            pace()
        following = step(share[t], given)
        if lengths is None:
            out[t], latest = following[0], following
        else:
            alive = (t < lengths)[:, None]
            out[t] = np.where(alive, following[0], 0)
            latest = tuple(np.where(alive, new, old) for new, old in zip(following, latest, strict=True))
        # The next step sees zeros in place of samples that have ended, which counts where it quantizes all of them.
        given = (out[t], *following[1:])
    for place, value in zip(state, latest, strict=True):
        place[...] = value


class _Direction(NamedTuple):
    """What all runs share of one direction.

    Attributes:
        weights: of its gates.
        bias: to add to the inputs' share of these.
        step: computes a step.
        cells: what machine code knows of that.
        backward: whether steps are taken from the last one on.
        recur: computes all steps at once; None: nothing does.
    """

    weights: Weights
    bias: Array
    step: Step
    cells: Cells | None
    backward: bool
    recur: Recurrence | None = None


class _Ready(NamedTuple):
    """What has been made of ``constants``, which live as long: for operands that are the ``same``."""

    same: tuple[Any, ...]
    constants: list[Array]
    directions: list[_Direction]


class _Latest(NamedTuple):
    """Operands of a run, and what computes others like them, of float32 and without lengths or limits.

    Attributes:
        x: the shape and strides of the inputs.
        constants: weights and biases.
        result: the shape of all outputs [T, D, B, H].
        counts: the number of steps of each sample.
        directions: what computes each, at once, maybe with a bias for each row of inputs.
    """

    x: tuple[tuple[int, ...], tuple[int, ...]]
    constants: tuple[Any, ...]
    result: tuple[int, ...]
    counts: Array
    directions: list[_Direction]

    def compute(self, x: Array, constants: Sequence[Any], initial: Sequence[Array | None]) -> list[Array] | None:
        """Outputs and last states; None if the operands are others."""
        if (x.shape, x.strides) != self.x or x.dtype != SINGLE or CURRENT.scope.guard is not None:
            return None
        if not all(map(is_, constants, self.constants)):
            return None
        steps, _, batch, hidden = self.result
        shape = len(self.directions), batch, hidden
        states: list[Array] = []
        for given in initial:
            if given is not None and (given.shape != shape or given.dtype != SINGLE):
                return None
            states.append(np.zeros(shape, SINGLE) if given is None else given.copy())
        outputs = np.empty(self.result, SINGLE)
        rows = x.reshape(steps * batch, x.shape[2])
        for d, (weights, bias, _, _, backward, recur) in enumerate(self.directions):
            share, made = weights.share(rows), outputs[:, d]
            share += bias
            if backward:
                share, made = share.reshape(steps, -1)[::-1], made[::-1]
            if recur is None or not recur(share, self.counts, [state[d] for state in states], made):
                return None
        return [outputs, *states]


def _layer(cell: Cell, gates: int, states: int, defaults: Sequence[str]) -> Binder:
    """A binder of recurrent kernels; ``weights_of`` prepares the weights ``w`` and ``r``, if given."""

    def bind(node: Node) -> Kernel:
        direction: str = node.attributes.get("direction", "forward")
        if direction not in ("forward", "reverse", "bidirectional"):
            raise Error("IRC320", f"direction is {direction!r}; it must be 'forward', 'reverse' or 'bidirectional'")
        directions = 2 if direction == "bidirectional" else 1
        activations = _activations(node, defaults, directions)
        batch_first = bool(node.attributes.get("layout", 0))
        size: int | None = node.attributes.get("hidden_size")
        count = len(node.outputs)
        kind = _kind(node, defaults)
        ready: list[_Ready | None] = [None]
        latest: _Latest | None = None

        def run(
            x: Array, w: Array, r: Array, *others: Any, weights_of: WeightsOf | None = None, made_of: Any = None
        ) -> Any:
            nonlocal latest
            b, lengths, initial_h, initial_c, peepholes = filled(others, *[None] * 5)
            if latest is not None:
                found = latest.compute(x, (w, r, b, lengths, peepholes), (initial_h, initial_c)[:states])
                if found is not None:
                    return found[0] if count == 1 else tuple(found[:count])
            hidden = size if size is not None else r.shape[-1] if r.ndim else 0
            dtype = np.dtype(np.float32) if is_half(x.dtype) else x.dtype
            if x.ndim != 3 or w.shape != (directions, gates * hidden, x.shape[2]) or r.shape != (*w.shape[:2], hidden):
                text = f"do not fit a layer of {directions} direction(s)"
                raise Error("IRC421", f"X, W and R of shapes {shapes_of(x, w, r)} {text}")
            wide = (x.swapaxes(0, 1) if batch_first else x).astype(dtype, copy=False)
            steps, batch = wide.shape[:2]
            if lengths is not None and (lengths.shape != (batch,) or ((lengths < 0) | (lengths > steps)).any()):
                raise Error("IRC424", f"sequence_lens {lengths.tolist()} do not fit {batch} samples of {steps} steps")
            _check_shape("B", b, (directions, 2 * gates * hidden))
            _check_shape("P", peepholes, (directions, 3 * hidden))
            given = (initial_h, initial_c)[:states]
            last = [_initial(v, directions, batch, hidden, dtype, batch_first) for v in given]
            outputs = np.empty(check_size((steps, directions, batch, hidden), dtype), dtype)
            several = batch > 1 and steps > _FEW_STEPS
            constants = [v for v in made_of or (w, r, b, peepholes) if v is not None]
            same = (*map(id, constants), several, dtype)
            known = ready[0]
            if known is not None and known.same == same:
                made = known.directions
            else:
                made: list[_Direction] = []
                for d in range(directions):
                    bias, peep = (None if v is None else v[d].astype(dtype, copy=False) for v in (b, peepholes))
                    if weights_of is not None:
                        own = weights_of(d, bias, peep)
                    else:
                        own = Weights(widened(w[d]), widened(r[d]), bias, peep, several, is_constant(w))
                    cells = None if kind is None or peep is not None else own.cells or Cells(kind, r, d, own.late)
                    backward = direction == "reverse" or d == 1
                    made.append(_Direction(own, *cell(node, own, activations[d]), cells, backward))
                if all(map(is_constant, constants)):
                    ready[0] = _Ready(same, constants, made)
            at_once: list[_Direction] = []
            for d, each in enumerate(made):
                recur = _run(wide, each, tuple([v[d] for v in last]), lengths, outputs[:, d])
                if recur is not None:
                    at_once.append(each._replace(recur=recur))
            is_usual = x.dtype == SINGLE and x.flags.c_contiguous and not batch_first and lengths is None
            if is_usual and len(at_once) == directions and all(map(is_constant, constants)) and weights_of is None:
                counts, operands = np.full(batch, steps), (w, r, b, None, peepholes)
                rows = steps * batch
                spread = [each._replace(bias=spread_out(each.bias, (rows, len(each.bias)))) for each in at_once]
                latest = _Latest((x.shape, x.strides), operands, outputs.shape, counts, spread)
            results = [outputs, *last]
            if batch_first:
                results = [outputs.transpose(2, 0, 1, 3), *(v.swapaxes(0, 1) for v in last)]
            results = [c_order(v).astype(x.dtype, copy=False) for v in results[:count]]
            return results[0] if count == 1 else tuple(results)

        return run

    return bind


def _kind(node: Node, defaults: Sequence[str]) -> str | None:
    """What machine code calls the cell, with the usual activations and no more; None if it is another one."""
    given = node.attributes
    names = [name.lower() for name in given.get("activations") or defaults]
    if names != [name.lower() for name in defaults] * (len(names) // len(defaults)):
        return None
    if given.get("clip") is not None or given.get("input_forget"):
        return None
    kind = {1: "rnn", 2: "gru", 3: "lstm"}[len(defaults)]
    return f"late {kind}" if kind == "gru" and given.get("linear_before_reset") else kind


def _check_shape(name: str, given: Array | None, shape: tuple[int, ...]) -> None:
    if given is not None and given.shape != shape:
        raise Error("IRC421", f"{name} has the shape {list(given.shape)}; it must be {list(shape)}")


def _initial(
    given: Array | None, directions: int, batch: int, hidden: int, dtype: np.dtype[Any], batch_first: bool
) -> Array:
    """A state to begin with [D, B, H], in an array of its own."""
    shape = (directions, batch, hidden)
    if given is None:
        return np.zeros(shape, dtype)
    found = given.swapaxes(0, 1) if batch_first and given.ndim == 3 else given
    if found.shape != shape:
        raise Error("IRC421", f"an initial state has the shape {list(found.shape)}; it must be {list(shape)}")
    return found.astype(dtype, order="C")


rnn = kernel("onnx::RNN")(_layer(_rnn, 1, 1, ("Tanh",)))
gru = kernel("onnx::GRU")(_layer(_gru, 3, 1, ("Sigmoid", "Tanh")))
lstm = kernel("onnx::LSTM")(_layer(_lstm, 4, 2, ("Sigmoid", "Tanh", "Tanh")))


@kernel("com.microsoft::DynamicQuantizeLSTM")
def dynamic_quantize_lstm(node: Node) -> Kernel:
    """An LSTM of 8-bit weights, [D, I, 4 H] and [D, H, 4 H], in integer products, as ONNX Runtime's.

    What a weight is multiplied with is quantized as a whole, as by DynamicQuantizeLinear: the inputs of all steps at
    once, the states of all samples in each step. (ONNX Runtime's threads share the samples and quantize those of each
    thread apart: results are its own on one thread.)
    """
    layer = lstm(node)

    def run(x: Array, w: Array, r: Array, *others: Any) -> Any:
        of_layer, scales = others[:5], others[5:]
        w_scale, w_zero, r_scale, r_zero = scales
        directions, columns = w.shape[0] if w.ndim == 3 else 0, w.shape[-1] if w.ndim else 0
        for name, given in zip(("W_scale", "W_zero_point", "R_scale", "R_zero_point"), scales):
            if given.shape not in ((directions,), (directions, columns)):
                _check_shape(name, given, (directions,))

        def weights_of(d: int, bias: Array | None, peep: Array | None) -> Weights:
            made = Weights(w[d].T, r[d].T, bias, peep, several=False)
            are_constant = is_constant(w) and is_constant(w_zero)
            made.share = _quantizing_product(w[d], w_scale[d], w_zero[d], are_constant)
            made.recurrent = _quantizing_product(r[d], r_scale[d], r_zero[d])
            made.cells = Cells("quantized lstm", r, d, np.broadcast_to(r_scale[d], r.shape[-1]), r_zero)
            return made

        weights = [v.swapaxes(1, 2) if v.ndim == 3 else v for v in (w, r)]
        made_of = w, r, of_layer[0], of_layer[4], *scales  # with biases and peepholes
        return layer(x, *weights, *of_layer, weights_of=weights_of, made_of=made_of)

    return run


def _quantizing_product(b: Array, scale: Array, zero: Array, are_constant: bool = False) -> Product:
    """The product of float rows, which are quantized as a whole, with a matrix [K, N] of integers.

    Args:
        b: the matrix, of int8 or uint8.
        scale: float32, one or one a column.
        zero: the zero point, likewise.
        are_constant: whether the matrix and its zero point never change.
    """
    weights = columns(b, zero)
    if are_constant:
        as_constant(weights.values)

    def multiply(rows: Array) -> Array:
        codes, row_scale, row_zero = dynamically_quantized(rows)
        return matmul_sums(codes, weights, row_zero).astype(np.float32, copy=False) * (row_scale * scale)

    return multiply
