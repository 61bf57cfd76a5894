"""Writing pointwise results into inputs that nothing needs any more.

Inside a fusion group a chain such as Conv, Add, Relu then needs one array of
full size, not three. What may be overwritten is decided when the graph is
lowered; that shapes and element types agree is looked at in each run, because a
model's own type annotations may be wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.ops.pointwise import RESULT_LIKE
from irc.runtime.binding import can_overwrite, fits
from irc.runtime.execution import Frame, Slots, Step, kernel_step

if TYPE_CHECKING:
    from collections.abc import Callable

    from irc.ir import Node, Value
    from irc.runtime.kernels.registry import Kernel

SHARING = frozenset(
    f"onnx::{name}"
    for name in (
        "Identity Reshape Squeeze Unsqueeze Flatten Transpose Slice Split Expand Dropout Optional OptionalGetElement "
        "SequenceConstruct SequenceAt SequenceInsert SequenceErase SplitToSequence Loop Scan"
    ).split()
)
"""The ONNX operators whose results may share memory with their inputs."""


def reusing_step(node: Node, kernel: Kernel, ins: Slots, outs: Slots) -> Callable[[Slots], Step] | None:
    """A maker of a step that writes the result of ``node`` into a dead input where that fits.

    None if the kernel cannot, or no input is a temporary that only this node may refer to.
    """
    like = RESULT_LIKE.get(node.kind, 0)
    if len(outs) != 1 or like is None or not can_overwrite(node.kind, kernel):
        return None
    own = [i for i, value in enumerate(node.inputs) if _is_unshared(value)]
    if not own:
        return None
    out = outs[0]

    def fill_in(dead: Slots) -> Step:
        candidates = tuple(i for i in own if ins[i] in dead)
        if not candidates:
            return kernel_step(kernel, ins, outs, dead)

        def step(frame: Frame) -> None:
            inputs = [frame[s] for s in ins]
            for i in candidates:
                if fits(inputs[i], inputs, like):
                    frame[out] = kernel(*inputs, out=inputs[i])
                    frame[0].counters.in_place += 1
                    break
            else:
                frame[out] = kernel(*inputs)
            for s in dead:
                frame[s] = None

        return step

    return fill_in


def _is_unshared(value: Value) -> bool:
    """Whether ``value`` is memory of its own that no other value can refer to."""
    node = value.node
    if node is None or not _is_functional(node.kind):
        return False
    return all(_is_functional(user.kind) or user.is_return for user in value.iter_users())


def _is_functional(kind: str) -> bool:
    return kind.startswith("onnx::") and not kind.endswith("_") and kind not in SHARING
