"""``onnx::Scan``: a body applied to slices of tensors, states carried from one slice to the next.

Versions 9 and 11 differ in that 11 allows negative axes. Version 8 has a batch
axis: it is a Scan for each element of the batch, over sequences of their own
lengths (https://onnx.ai/onnx/operators/onnx__Scan.html).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.ops.loops import is_batched
from irc.runtime.control.control_flow import Body
from irc.runtime.control.stacking import Stack
from irc.runtime.execution import Frame, Slots, Step, label, put
from irc.runtime.kernels.support import axis_in
from irc.runtime.values import Array

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.lowering import Lowering


def lower_scan(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """Lower a Scan of any version."""
    scan = _Scan(Body(lowering, node, ins, outs), node)
    run = scan.run_batches if is_batched(node) else scan.run
    dead = lowering.emptied(ins)

    def step(frame: Frame) -> None:
        put(frame, outs, run(frame, [frame[s] for s in ins]), dead)

    return step


class _Scan:
    def __init__(self, body: Body, node: Node) -> None:
        self.body = body
        scanned = node.attributes["num_scan_inputs"]
        self.states = len(body.code.params) - scanned
        stacked = len(body.code.returns) - self.states

        def option(name: str, count: int) -> list[int]:
            return node.attributes.get(name) or [0] * count

        def directions(name: str, count: int) -> list[int]:
            given = option(name, count)
            if not {0, 1}.issuperset(given):
                raise Error("IRC320", f"{name} is {given}; 0 is forward, 1 is backward", label(node))
            return given

        self.backwards = directions("directions" if is_batched(node) else "scan_input_directions", scanned)
        self.axes = option("scan_input_axes", scanned)
        self.out_backwards = directions("scan_output_directions", stacked)
        self.out_axes = option("scan_output_axes", stacked)

    def run(self, frame: Frame, inputs: Sequence[Any]) -> list[Any]:
        """Final states, then stacked outputs."""
        sequences = [np.moveaxis(x, axis_in(a, x.ndim), 0) for x, a in zip(inputs[self.states :], self.axes)]
        states, stacks = self._scan(frame, list(inputs[: self.states]), sequences)
        return states + [s.result(a, bool(b)) for s, a, b in zip(stacks, self.out_axes, self.out_backwards)]

    def run_batches(self, frame: Frame, inputs: Sequence[Any]) -> list[Any]:
        """As `run`, for inputs [lengths of the sequences?, states..., sequences...] with the batch as axis 0.

        Stacked outputs of sequences shorter than the longest end in zeros.
        """
        lengths, *batched = inputs
        sequences = batched[self.states :]
        ranks = [x.ndim for x in batched]
        if 0 in ranks or 1 in ranks[self.states :]:
            needs = "states have a batch axis, sequences then one of time"
            raise Error("IRC433", f"the inputs of Scan, without lengths, are of ranks {ranks}: {needs}")
        batch, longest = sequences[0].shape[:2]
        if any(x.shape[0] != batch for x in batched) or any(x.shape[1] != longest for x in sequences):
            raise Error("IRC433", "the inputs of Scan have different batch sizes or sequence lengths")
        sizes: list[int] = [longest] * batch if lengths is None else lengths.tolist()
        if np.shape(sizes) != (batch,) or any(not 0 <= n <= longest for n in sizes):
            raise Error("IRC433", f"sequence_lens is {sizes}; it needs {batch} lengths from 0 to {longest}")
        results: list[list[Any]] = []
        for b, size in enumerate(sizes):
            initial = [x[b, ...] for x in batched[: self.states]]
            states, stacks = self._scan(frame, initial, [x[b, :size] for x in sequences])
            results.append(states + [_padded(stack.result(), longest) for stack in stacks])
        if not results:
            raise Error("IRC433", "Scan of version 8 needs a batch of at least one")
        return [np.stack(column) for column in zip(*results)]

    def _scan(self, frame: Frame, states: list[Any], sequences: Sequence[Array]) -> tuple[list[Any], list[Stack]]:
        trips = len(sequences[0])
        if any(len(s) != trips for s in sequences):
            raise Error("IRC433", f"the inputs of Scan have different lengths {[len(s) for s in sequences]}")
        sequences = [s[::-1] if backwards else s for s, backwards in zip(sequences, self.backwards)]
        stacks = self.body.stacks(trips)
        states = self.body.lend(states)
        for t in range(trips):
            _, states = self.body.run(frame, (), states, [sequence[t, ...] for sequence in sequences], stacks)
        return states, stacks


def _padded(rows: Array, length: int) -> Array:
    if len(rows) == length:
        return rows
    whole = np.full((length, *rows.shape[1:]), "" if rows.dtype.hasobject else 0, rows.dtype)
    whole[: len(rows)] = rows
    return whole
