"""Attention in its most frequent form, ``softmax(scale (q @ k) + mask) @ v``, with as few passes over scores as can be.

Queries are scaled instead of scores, and the result is divided by the softmax's sums: both have fewer elements. So last
digits differ from those of the operators one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from irc.ir.kinds import MASKED_SOFTMAX, RESHAPE
from irc.runtime.execution import Slots, Watch, fail
from irc.runtime.fused import geometry
from irc.runtime.fused.geometry import Shape
from irc.runtime.kernels.last_axes import are_short
from irc.runtime.kernels.matmul import matrix_product
from irc.runtime.kernels.softmax import exponentials, masked_softmax, softmax
from irc.runtime.kernels.support import broadcast_shape
from irc.runtime.values import Array, is_array

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.fused.blocks import Operation

_SCALES = {"onnx::Mul": np.multiply, "onnx::Div": np.divide}

_SOFTMAX = frozenset(["onnx::Softmax", MASKED_SOFTMAX])

_FLOATS = "fd"


class Scores(NamedTuple):
    """What is done to scores, by registers: the inputs of attention.

    Attributes:
        queries: those of the first product.
        keys: what they are multiplied with.
        values: what the softmax's result is multiplied with.
        scale: the number that scores are scaled with; None: they are not.
        scaling: how: `numpy.multiply` or `numpy.divide`.
        masks: what is added to them.
        is_masked: whether rows of a softmax that are no numbers become zeros.
        operations: the operators, in the order in which they are computed here.
    """

    queries: int
    keys: int
    values: int
    scale: int | None
    scaling: Any
    masks: Slots
    is_masked: bool
    operations: tuple[Operation, ...]

    def suit(self, inputs: Sequence[Any]) -> bool:
        """Whether ``inputs`` are floats of one type, and the scale is one number."""
        dtype, rank = inputs[self.queries].dtype, inputs[self.queries].ndim
        if dtype.char not in _FLOATS or inputs[self.keys].dtype is not dtype or inputs[self.values].dtype is not dtype:
            return False
        for r in self.masks:
            if not is_array(inputs[r]) or inputs[r].dtype is not dtype:
                return False
        if self.scale is None:
            return True
        number = inputs[self.scale]
        return is_array(number) and number.size == 1 and number.dtype is dtype and number.ndim <= rank

    def fit(self, inputs: Sequence[Any], shape: Shape) -> bool:
        """Whether masks among ``inputs`` can be added to scores of ``shape``."""
        return all(geometry.broadcasts_into(inputs[r].shape, shape) for r in self.masks)

    def compute(
        self,
        inputs: Sequence[Any],
        scores: Array | None = None,
        out: Array | None = None,
        watch: Watch | None = None,
        whole: Sequence[Any] | None = None,
    ) -> Array:
        """The result of attention.

        Args:
            inputs: that `suit`, of shapes that fit.
            scores: where to make the scores; None: in new memory.
            out: where to make the result; None: in new memory.
            watch: who follows the operators.
            whole: what ``inputs`` are parts of, for messages; None: they are whole.

        Raises:
            Error: as `irc.runtime.execution.fail`, with the operator that failed.
        """
        queries, keys, values, scale, scaling, masks, is_masked, operations = self  # at once: for decoders' many steps
        turns = None if watch is None else _Turns(watch, operations)
        at = 0  # the number of the operator
        try:
            rows: Array = inputs[queries]
            product: Callable[..., Array] = np.matmul if rows.shape[-2] == 1 else matrix_product
            if scale is not None:
                if turns:
                    turns.next()
                rows = scaling(rows, inputs[scale])
                at = 1
            if turns:
                turns.next()
            weights = product(rows, inputs[keys], scores)
            for r in masks:
                at += 1
                if turns:
                    turns.next()
                np.add(weights, inputs[r], weights)
            at += 1
            if turns:
                turns.next()
            sums = _softmax(weights, is_masked)
            at += 1
            if turns:
                turns.next()
            result = product(weights, inputs[values], out)
            if sums is not None:
                result /= sums
        except Exception as error:
            self._fail(error, operations[at], inputs if whole is None else whole)
        if turns:
            turns.end()
        return result

    def _fail(self, error: Exception, operation: Operation, inputs: Sequence[Any]) -> NoReturn:
        """Raise ``error`` as one of ``operation``, which computes all scores with ``inputs``."""
        queries, keys = inputs[self.queries], inputs[self.keys]
        shape = *broadcast_shape(queries.shape[:-2], keys.shape[:-2]), queries.shape[-2], keys.shape[-1]
        scores = np.broadcast_to(np.empty((), queries.dtype), shape)
        fail(error, operation.node, [inputs[r] if r < len(inputs) else scores for r in operation.ins])


def _softmax(scores: Array, is_masked: bool) -> Array | None:
    """Make ``scores`` their softmax; or, if the sums of its rows are returned, what divided by these is that."""
    last = scores.ndim - 1
    if are_short(scores, last):
        (masked_softmax if is_masked else softmax)(scores, last, scores)
        return None
    _, sums = exponentials(scores, last, scores)
    if is_masked and (none := np.isnan(sums)).any():
        np.copyto(scores, 0, where=none)
        sums[none] = 1
    return sums


class _Turns:
    """Tells ``watch`` of operators, one after the other."""

    def __init__(self, watch: Watch, operations: Iterable[Operation]) -> None:
        self._watch = watch
        self._nodes = iter([operation.node for operation in operations])
        self._node: Node | None = None

    def next(self) -> None:
        """The one before is finished; the next one begins."""
        self.end()
        self._node = next(self._nodes)
        self._watch.begin_part(self._node)

    def end(self) -> None:
        if self._node is not None:
            self._watch.end_part(self._node)


def scores_of(operations: Sequence[Operation]) -> Scores | None:
    """What the operators of attention do to scores; None if it is anything else."""
    first, *between, last = operations
    scale, scaling = None, None
    masks: list[int] = []
    scaled: list[Operation] = []
    following: list[Operation] = []
    softmax = ""
    made = first.out
    for operation in between:
        node, _, ins, out = operation
        others = [r for r in ins if r != made]
        if node.kind in _SOFTMAX and not softmax:
            softmax = node.kind
            following.append(operation)
        elif node.kind != RESHAPE:
            if softmax or len(ins) != 2 or len(others) != 1:
                return None
            if node.kind == "onnx::Add":
                masks += others
                following.append(operation)
            elif node.kind in _SCALES and not scaled and not masks and (node.kind == "onnx::Mul" or ins[0] == made):
                scale, scaling = others[0], _SCALES[node.kind]
                scaled.append(operation)
            else:
                return None
        made = out
    queries, keys = first.ins
    is_masked = softmax == MASKED_SOFTMAX
    return Scores(
        queries, keys, last.ins[1], scale, scaling, tuple(masks), is_masked, (*scaled, first, *following, last)
    )
