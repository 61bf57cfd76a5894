"""Steps that call kernels: what they read and write, and what they leave of operands that nothing needs any more."""

from typing import Any

import numpy as np
import pytest

from irc.runtime.execution import kernel_step, placed_step


def add(*operands: Any, out: Any = None) -> Any:
    found = sum(operands)
    if out is None:
        return found
    out[...] = found
    return out


@pytest.mark.parametrize("count", [1, 2, 3, 4])
@pytest.mark.parametrize("dead", [False, True])
@pytest.mark.parametrize("placed", [False, True])
def test_operands_that_nothing_needs_any_more_are_let_go(count: int, dead: bool, placed: bool) -> None:
    place = np.zeros(2)
    frame: list[Any] = [None, *(np.full(2, i + 1.0) for i in range(count)), place if placed else None]
    ins, out = tuple(range(1, count + 1)), count + 1
    gone = ins[:1] if dead else ()
    step = placed_step(add, ins, (out,), gone, True) if placed else kernel_step(add, ins, (out,), gone)
    step(frame)
    assert frame[out].tolist() == [sum(ins)] * 2
    assert (frame[out] is place) == placed
    assert [s for s in ins if frame[s] is None] == list(gone)
