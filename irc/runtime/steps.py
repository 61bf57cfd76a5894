"""Steps that call a kernel: a closure for each form of call, as one call is all a step may cost.

A step may write its result into an input that nothing needs any more. A chain such as Conv, Add, Relu then needs one
array of full size, not three. What may be overwritten is decided when the graph is lowered; that shapes and element
types agree, that the array is not read-only (somebody else's) nor in planned memory, and that its elements lie in C
order, as those of results do, is looked at in each run, because a model's own type annotations may be wrong, and
strides are known only there. A result without a place may leave the run, so it is never made in planned memory.
"""

from __future__ import annotations

from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir.types import TensorType
from irc.ops.pointwise import keeps_float_type, overwritable, result_like
from irc.ops.registry import record
from irc.runtime.array_memory import lies_as_new
from irc.runtime.binding import fits
from irc.runtime.execution import Frame, Slots, Step, put
from irc.runtime.kernels.primitives import ufunc_of
from irc.runtime.kernels.registry import takes_out
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from irc.ir import Node
    from irc.runtime.kernels.registry import Kernel
    from irc.runtime.values import Array

    Free = Callable[[int], Collection[int]]


def kernel_step(kernel: Kernel, ins: Slots, outs: Slots, dead: Slots) -> Step:
    """A step that calls ``kernel`` on ``ins``, stores its results in ``outs`` and empties ``dead``.

    Without ``outs`` the kernel is called for its effects: `aten::append` returns the list, which nobody need use.
    """
    operands = operands_in(ins)
    if len(outs) != 1:

        def several(frame: Frame) -> None:
            results = kernel(*operands(frame))
            put(frame, outs, results if outs else (), dead)

        return several

    (out,) = outs

    def step(frame: Frame) -> None:
        frame[out] = kernel(*operands(frame))
        for s in dead:
            frame[s] = None

    return step


def operands_in(ins: Slots) -> Callable[[Frame], Sequence[Any]]:
    """A function from a frame to the values in slots ``ins``, made in C as comprehensions are calls."""
    if len(ins) > 1:
        return itemgetter(*ins)
    return itemgetter(slice(ins[0], ins[0] + 1) if ins else slice(0))  # of one slot, `itemgetter` gives no sequence


def placed_step(kernel: Kernel, ins: Slots, outs: Slots, dead: Slots, directly: bool) -> Step:
    """As `kernel_step`, for results that are made in the arrays that the slots ``outs`` hold.

    If the kernel is a ufunc, it is called ``directly``, or through the kernel, which chooses what suits its operands.
    """
    operands = operands_in(ins)
    if len(outs) != 1:
        results = operands_in(outs)

        def several(frame: Frame) -> None:
            kernel(*operands(frame), outs=results(frame))
            put(frame, (), (), dead)

        return several

    out = outs[0]
    ufunc = ufunc_of(kernel) if directly else None
    if ufunc is not None and not dead and len(ins) == 1:
        (x,) = ins

        def unary(frame: Frame) -> None:
            ufunc(frame[x], frame[out])

        return unary

    if ufunc is not None and not dead and len(ins) == 2:
        x, y = ins

        def binary(frame: Frame) -> None:
            ufunc(frame[x], frame[y], frame[out])

        return binary

    def step(frame: Frame) -> None:
        kernel(*operands(frame), out=frame[out])
        for s in dead:
            frame[s] = None

    return step


def move_step(source: int, target: int) -> Step:
    """A step that puts what is in slot ``source`` into ``target``, too."""

    def step(frame: Frame) -> None:
        frame[target] = frame[source]

    return step


def drop_step(dead: Slots) -> Step:
    """A step that only empties ``dead``."""
    return partial(put, slots=(), values=(), dead=dead)


MIN_ELEMENTS = 1 << 12
"""Of an array that TorchScript's operators write over: finding out whether they may takes 2 microseconds."""


def reusing_step(
    node: Node, kernel: Kernel, ins: Slots, outs: Slots, dead: Slots, free: Free, must_own_storage: bool
) -> Step | None:
    """A step that writes ``node``'s result into a dead input if it fits, then empties ``dead``.

    None if the kernel cannot, or no input may be overwritten.

    Args:
        free: given n, which of the first n inputs hold memory that nothing needs once the node has run.
        must_own_storage: as for `may_overwrite`.
    """
    if len(outs) != 1 or not takes_out(kernel):
        return None
    of_torch = keeps_float_type(node)
    count = len(ins) if of_torch else overwritable(node)
    candidates = tuple([i for i in free(count) if ins[i] in dead]) if count else ()
    if not candidates:
        return None
    like = result_like(node.kind)
    scatters = record(node.kind).scatters
    shaping = 1 if scatters else len(ins)
    must_lie_as_new = scatters and node.kind.startswith("aten::")  # else torch's result would lie in another way

    def has_form_of_result(x: Array, inputs: Sequence[Any]) -> bool:
        return x.flags.carray and fits(x, inputs[:shaping], like) and (not must_lie_as_new or lies_as_new(x))

    may_be_result = _has_form_of_torch_result if of_torch else has_form_of_result
    out, operands = outs[0], operands_in(ins)

    def step(frame: Frame) -> None:
        inputs = operands(frame)
        for i in candidates:
            if may_be_result(inputs[i], inputs) and may_overwrite(inputs[i], frame[0].arena, must_own_storage):
                frame[out] = kernel(*inputs, out=inputs[i])
                frame[0].in_place += 1
                break
        else:
            frame[out] = kernel(*inputs)
        for s in dead:
            frame[s] = None

    is_given = all(isinstance(v.type, TensorType) for v in node.inputs)
    return (
        step
        if of_torch or like != 0 or len(ins) > 1 or not is_given
        else _unary_over(kernel, ins, out, dead, must_own_storage)
    )


def _unary_over(kernel: Kernel, ins: Slots, out: int, dead: Slots, must_own_storage: bool) -> Step:
    """A step that writes over the only operand, whose form the result has."""
    (a,) = ins

    def step(frame: Frame) -> None:
        x = frame[a]
        if x.flags.carray and may_overwrite(x, frame[0].arena, must_own_storage):
            frame[out] = kernel(x, out=x)
            frame[0].in_place += 1
        else:
            frame[out] = kernel(x)
        for s in dead:
            frame[s] = None

    return step


def may_overwrite(x: Array, arena: Any, must_own_storage: bool) -> bool:
    """Whether a result may be written into ``x``: outside ``arena`` and, if it must, owning its memory.

    An array whose base is not an array (`as_strided`) may not be overwritten: the owner of its memory is unknown.

    Args:
        x: a dead operand.
        arena: the owner of the run's planned memory, which later results use.
        must_own_storage: whether the graph can observe storage sizes and offsets, so that the result must not be a view
            of a part of something larger.
    """
    base: Any = x.base
    if base is None:
        return True
    return isinstance(base, np.ndarray) and base is not arena and (not must_own_storage or base.nbytes == x.nbytes)


def _has_form_of_torch_result(x: Any, inputs: Sequence[Any]) -> bool:
    """Whether a TorchScript operator's result has the form of ``x``, which is one of its ``inputs``.

    If all are floats of one type, and numbers, and lie in order, it has: else several rules decide what type it is of,
    and how it lies.
    """
    if not is_array(x) or x.size < MIN_ELEMENTS:
        return False
    if x.dtype.kind != "f" or not x.ndim or not x.flags.carray or not lies_as_new(x):
        return False
    arrays = [y for y in inputs if is_array(y)]
    return (
        all(y.dtype == x.dtype and y.flags.c_contiguous for y in arrays)
        and not any(isinstance(y, complex) for y in inputs)
        and fits(x, arrays, 0)
    )
