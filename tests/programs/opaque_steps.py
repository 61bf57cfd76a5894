"""Steps that append nodes whose operator irc does not know. Here they have kernels, so that programs run.

What they return depends on how often such a node has run before, and shares memory with what they are given: whoever
merges, removes or moves one of them, or writes over what it was given, changes results.
"""

from typing import Any

import numpy as np

from irc.ir import Node
from irc.ops.opaque import opaque_kind
from irc.runtime.kernels.registry import kernel
from tests.programs.kinds import FLOAT, LONG, Tens
from tests.programs.maker import Maker
from tests.programs.torch_steps import Step

SAME, KEEP, COUNT, SEE = (opaque_kind("irc.tests", name) for name in ("Same", "Keep", "Count", "See"))

calls: list[str] = []
"""The nodes that have run since `reset`."""

_kept: dict[tuple[int, ...], Any] = {}


def reset() -> None:
    """Forget what has run."""
    calls.clear()
    _kept.clear()


@kernel(SAME)
def _same(node: Node) -> Any:
    """The operand itself."""

    def run(x: Any) -> Any:
        calls.append("same")
        return x

    return run


@kernel(KEEP)
def _keep(node: Node) -> Any:
    """What such a node was last given of this shape, if anything, and the operand."""

    def run(x: Any) -> Any:
        calls.append("keep")
        before = _kept.get(x.shape, x)
        _kept[x.shape] = x
        return before, x[...]

    return run


@kernel(COUNT)
def _count(node: Node) -> Any:
    """How many have run, in an array like the operand."""

    def run(x: Any) -> Any:
        calls.append("count")
        return np.full(x.shape, len(calls) % 4, x.dtype)

    return run


@kernel(SEE)
def _see(node: Node) -> Any:
    """Nothing; what it is given counts."""

    def run(x: Any) -> None:
        calls.append(str(np.asarray(x).reshape(-1)[:4].tolist()))

    return run


def _numbers(k: Tens) -> bool:
    return k.dtype in (FLOAT, LONG)


def same(m: Maker) -> None:
    x = m.tensor()
    m.emit(SAME, [x], m.kind(x))


def keep(m: Maker) -> None:
    """What is kept is of one element type: kinds only tell shapes apart."""
    x = m.tensor(lambda k: k.dtype is FLOAT)
    k = Tens(FLOAT, m.kind(x).shape, frozen=True)
    m.emit_many(KEEP, [x], [k, m.kind(x)])


def count(m: Maker) -> None:
    x = m.tensor(_numbers)
    m.emit(COUNT, [x], Tens(m.kind(x).dtype, m.kind(x).shape))


def see(m: Maker) -> None:
    m.emit_many(SEE, [m.tensor(lambda k: k.dtype is LONG)], [])


STEPS: dict[str, tuple[Step, ...]] = {"opaque": (same, same, keep, count, see)}
