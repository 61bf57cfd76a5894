"""Steps that call a kernel: one closure for each number of operands, as a call of it is all that a step may cost."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.runtime.kernels.pointwise import ufunc_of

if TYPE_CHECKING:
    from irc.runtime.execution import Frame, Slots, Step
    from irc.runtime.kernels.registry import Kernel


def kernel_step(kernel: Kernel, ins: Slots, outs: Slots, dead: Slots) -> Step:
    """A step that calls ``kernel`` on ``ins``, puts what it returns into ``outs`` and then empties ``dead``.

    Without ``outs`` the kernel is called for its effects: `aten::append` returns the list, which nobody need use.
    """
    if len(outs) != 1:
        return _many_results(kernel, ins, outs, dead)
    make = {1: _unary, 2: _binary}.get(len(ins), _any_arity)
    return make(kernel, ins, outs[0], dead)


def placed_step(kernel: Kernel, ins: Slots, out: int, dead: Slots, directly: bool) -> Step:
    """As `kernel_step`, for one result, which is made in the array that slot ``out`` holds.

    If the kernel is a ufunc, it is called ``directly``, or through the kernel, which chooses what suits its operands.
    """
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
        kernel(*[frame[s] for s in ins], out=frame[out])
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

    def step(frame: Frame) -> None:
        for s in dead:
            frame[s] = None

    return step


def _unary(kernel: Kernel, ins: Slots, out: int, dead: Slots) -> Step:
    (a,) = ins

    def step(frame: Frame) -> None:
        frame[out] = kernel(frame[a])
        for s in dead:
            frame[s] = None

    return step


def _binary(kernel: Kernel, ins: Slots, out: int, dead: Slots) -> Step:
    a, b = ins

    def step(frame: Frame) -> None:
        frame[out] = kernel(frame[a], frame[b])
        for s in dead:
            frame[s] = None

    return step


def _any_arity(kernel: Kernel, ins: Slots, out: int, dead: Slots) -> Step:
    def step(frame: Frame) -> None:
        frame[out] = kernel(*[frame[s] for s in ins])
        for s in dead:
            frame[s] = None

    return step


def _many_results(kernel: Kernel, ins: Slots, outs: Slots, dead: Slots) -> Step:
    def step(frame: Frame) -> None:
        results = kernel(*[frame[s] for s in ins])
        for s, value in zip(outs, results, strict=True) if outs else ():
            frame[s] = value
        for s in dead:
            frame[s] = None

    return step
