"""Recurrent layers, by ONNX's kernels, and packed sequences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error
from irc.ops import algebra
from irc.runtime.kernels import recurrent
from irc.runtime.kernels.aten.creation import factors
from irc.runtime.kernels.aten.element_types import INT64, element_of, result_type
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.expressions import of_expression
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, check_size, counting
from irc.runtime.values import is_array


def alive(sizes: Array, batch: int) -> Array:
    """Of each step and sequence, whether the sequence goes on; ``sizes`` are how many do, step by step."""
    return np.asarray(counting(batch) < sizes[:, None])


def _pack(x: Array, lengths: Array, batch_first: bool) -> tuple[Array, Array]:
    steps = x.swapaxes(0, 1) if batch_first else x
    if x.ndim < 2 or not x.size or lengths.ndim != 1 or lengths.dtype != INT64 or lengths.size != steps.shape[1]:
        given = f"{lengths.dtype.name}{list(lengths.shape)}"
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} holds no sequences of which the lengths are {given}")
    if lengths[-1] < 1 or lengths[0] > steps.shape[0] or (np.diff(lengths) > 0).any():
        raise Error("IRC424", f"lengths must be from {steps.shape[0]} down to 1, longer ones first")
    sizes = (lengths > counting(int(lengths[0]))[:, None]).sum(1)
    return steps[: len(sizes)][alive(sizes, lengths.size)], sizes


def _pad(data: Array, sizes: Array, batch_first: bool, padding: Any, total: int) -> tuple[Array, Array]:
    if sizes.ndim != 1 or not sizes.size or sizes.dtype != INT64 or sizes.sum() != len(data) or sizes[-1] < 1:
        raise Error("IRC421", f"{len(data)} packed elements are no steps of sizes {sizes.tolist()[:8]}")
    if 0 < total < sizes.size:
        raise Error("IRC424", f"sequences of length {sizes.size} cannot be padded to length {total}")
    goes_on = alive(sizes, int(sizes[0]))
    shape = check_size((max(total, sizes.size), *goes_on.shape[1:], *data.shape[1:]), data.dtype)
    out = np.full(shape, element_of(padding, data.dtype))
    out[: sizes.size][goes_on] = data
    return out.swapaxes(0, 1) if batch_first else out, goes_on.sum(0)


table(
    _pack_padded_sequence=_pack,
    _pad_packed_sequence=_pad,
)


# -- recurrent layers ----------------------------------------------------------


_sigmoid = of_expression(algebra.sigmoid, 1)


@dataclass(frozen=True)
class _Layer:
    """Stands in for an ONNX node: it has all that the node's binder reads."""

    attributes: dict[str, Any]
    outputs: Sequence[None]
    inputs: Sequence[None] = field(default_factory=tuple)


class _Cell(NamedTuple):
    """A kind of layer.

    Attributes:
        bind: makes ONNX's kernel.
        gates: for each gate of ONNX's, the number of torch's.
        states: how many states there are.
        attributes: of the ONNX operator.
    """

    bind: Callable[[Any], Kernel]
    gates: tuple[int, ...]
    states: int
    attributes: dict[str, Any]


CELLS = {
    "lstm": _Cell(recurrent.lstm, (0, 3, 1, 2), 2, {}),  # i f g o -> i o f c
    "gru": _Cell(recurrent.gru, (1, 0, 2), 1, {"linear_before_reset": 1}),  # r z n -> z r h
    "rnn_tanh": _Cell(recurrent.rnn, (0,), 1, {"activations": ["Tanh"]}),
    "rnn_relu": _Cell(recurrent.rnn, (0,), 1, {"activations": ["Relu"]}),
}


def _run(
    cell: _Cell,
    x: Array,
    states: Sequence[Array],
    params: Sequence[Array],
    biased: bool,
    both: bool,
    lengths: Array | None,
    dropout: float = 0.0,
) -> tuple[Array, list[Array]]:
    """All layers on ``x`` (T, B, I), from ``states`` (layers · directions, B, H): outputs, last states.

    If the sizes of an LSTM's two states differ, its output is projected to that of the first.
    """
    operands = [x, *states, *params]
    if len({v.dtype for v in operands}) > 1:
        dtype = result_type(*operands)
        x, states, params = x.astype(dtype), [s.astype(dtype) for s in states], [p.astype(dtype) for p in params]
    projects = len({s.shape[-1] for s in states}) > 1
    directions, each = 2 if both else 1, (4 if biased else 2) + projects
    layers, rest = divmod(len(params), directions * each)
    if rest or not layers or any(s.shape[0] != layers * directions for s in states):
        raise Error("IRC421", f"{len(params)} parameters do not fit {directions} direction(s) of layers, {each} each")
    attributes: dict[str, Any] = {"direction": "bidirectional" if both else "forward", **cell.attributes}
    if "activations" in attributes:
        attributes["activations"] = cell.attributes["activations"] * directions
    kernel = cell.bind(_Layer(attributes, (None,) * (1 + cell.states)))
    last: list[list[Array]] = [[] for _ in states]
    for layer in range(layers):
        if layer and dropout:
            x = x * factors(x, dropout)
        own = [params[(layer * directions + d) * each :][:each] for d in range(directions)]
        if projects:
            outputs: list[Array] = []
            for d, parameters in enumerate(own):
                h, c = (s[layer * directions + d] for s in states)
                y, h, c = _projected(x, parameters, h, c, lengths, d > 0)
                outputs.append(y)
                last[0].append(h[None])
                last[1].append(c[None])
            x = np.concatenate(outputs, -1)
            continue
        w, r = (np.stack([_reordered(p[i], cell.gates) for p in own]) for i in (0, 1))
        b = np.stack([np.concatenate([_reordered(v, cell.gates) for v in p[2:]]) for p in own]) if biased else None
        first = [s[layer * directions :][:directions] for s in states]
        y, *final = kernel(x, w, r, b, lengths, *first)
        for kept, state in zip(last, final, strict=True):
            kept.append(state)
        x = np.ascontiguousarray(np.moveaxis(y, 1, 2)).reshape(y.shape[0], y.shape[2], y.shape[1] * y.shape[3])
    return x, [np.concatenate(kept) for kept in last]


def _projected(
    x: Array, params: Sequence[Array], h: Array, c: Array, lengths: Array | None, backward: bool
) -> tuple[Array, Array, Array]:
    """One direction of an LSTM that projects each state ``h`` to a smaller one."""
    w, r, *biases, projection = params
    wide = 4 * c.shape[-1]
    shapes = [(wide, x.shape[-1]), (wide, h.shape[-1]), *[(wide,)] * len(biases), (h.shape[-1], c.shape[-1])]
    if [p.shape for p in params] != shapes:
        raise Error("IRC421", f"parameters of a projected LSTM are of shapes {shapes}, not {[p.shape for p in params]}")
    fixed = x @ w.T + (sum(biases) if biases else 0)
    out = np.zeros((*x.shape[:2], projection.shape[0]), x.dtype)
    for t in reversed(range(len(x))) if backward else range(len(x)):
        into, kept, new, given = np.split(fixed[t] + h @ r.T, 4, -1)
        for gate in (into, kept, given):
            _sigmoid(gate, gate)
        cell = kept * c + into * np.tanh(new)
        state = (given * np.tanh(cell)) @ projection.T
        goes_on = True if lengths is None else (t < lengths)[:, None]
        c, h = np.where(goes_on, cell, c), np.where(goes_on, state, h)
        out[t] = np.where(goes_on, state, 0)
    return out, h, c


def _reordered(w: Array, gates: tuple[int, ...]) -> Array:
    return np.concatenate([np.split(w, len(gates))[g] for g in gates])


def _layer(cell: _Cell, x: Array, *arguments: Any) -> tuple[Array, ...]:
    """(x, hx, params, biased, layers, dropout, train, both, batch_first), or packed (data, sizes, ...)."""
    packed = is_array(arguments[0] if cell.states == 2 else arguments[1])
    hx, params, biased, _, dropout, train, both, *rest = arguments[1:] if packed else arguments
    states = list(hx) if cell.states == 2 else [hx]
    rate = dropout if train else 0.0
    if packed:
        goes_on = alive(arguments[0], int(arguments[0][0]))
        padded = np.zeros((*goes_on.shape, x.shape[1]), x.dtype)
        padded[goes_on] = x
        y, last = _run(cell, padded, states, params, biased, both, goes_on.sum(0), rate)
        return y[goes_on], *last
    (batch_first,) = rest
    y, last = _run(cell, x.swapaxes(0, 1) if batch_first else x, states, params, biased, both, None, rate)
    return y.swapaxes(0, 1) if batch_first else y, *last


def _step(
    cell: _Cell, x: Array, hx: Any, w_ih: Array, w_hh: Array, b_ih: Array | None = None, b_hh: Array | None = None
) -> Any:
    """One step: (x, state or states, w_ih, w_hh, b_ih, b_hh)."""
    states = [s[None] for s in hx] if cell.states == 2 else [hx[None]]
    given = b_hh if b_ih is None else b_ih
    biases = [] if given is None else [np.zeros_like(given) if b is None else b for b in (b_ih, b_hh)]
    _, last = _run(cell, x[None], states, [w_ih, w_hh, *biases], bool(biases), False, None)
    return tuple(s[0] for s in last) if cell.states == 2 else last[0][0]


for _name, _cell in CELLS.items():
    aten(_name)(partial(_layer, _cell))
    aten(f"{_name}_cell")(partial(_step, _cell))
