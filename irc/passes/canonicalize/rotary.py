"""Rotary positions as PyTorch's exporters write them: ``cat((-x[..., n // 2:], x[..., :n // 2]), -1)``.

Two slices, a sign and Concat are one copy, `irc::rotate_half`, twice in each layer of many decoders. Written as ONNX it
is spelt out again (`irc.frontend.onnx_export.spelling`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.kinds import ROTATE_HALF
from irc.passes.canonicalize.match import Match, rewrite

if TYPE_CHECKING:
    from irc.ir import Node, Value


@rewrite("Concat")
def rotated_halves(m: Match) -> Value | None:
    """The second half of the last axis, with the other sign, before the first."""
    if len(m.node.inputs) != 2:
        return None
    first, last = m.node.inputs
    sign, second = first.made_by("onnx::Neg"), last.made_by("onnx::Slice")
    part = None if sign is None else sign.inputs[0].made_by("onnx::Slice")
    if sign is None or second is None or part is None or part.inputs[0] is not second.inputs[0]:
        return None
    x = part.inputs[0]
    rank, width = x.type.rank, m.size(x, -1) if x.type.rank else None
    if (
        not rank
        or not isinstance(width, int)
        or width < 2
        or width % 2
        or m.types.attr("axis", 1) not in (-1, rank - 1)
    ):
        return None
    half = width // 2
    if _begins(m, second, half) != 0 or _begins(m, part, half) not in (half, -half):
        return None
    return m.new(ROTATE_HALF, [x], m.output.type) if m.still_holds_here([sign, second, part]) else None


def _begins(m: Match, node: Node, count: int) -> int | None:
    """Where a slice of ``count`` positions of the last axis begins, if ``node`` is one."""
    types, rank = m.types_of(node), node.inputs[0].type.rank
    by_inputs = types.version >= 10
    starts, axes = (types.ints(1), types.ints(3)) if by_inputs else (types.attr("starts"), types.attr("axes"))
    steps = types.ints(4) if by_inputs and types.has(4) else [1]
    if starts is None or len(starts) != 1 or not rank or axes not in ([-1], [rank - 1]) or steps != [1]:
        return None
    return starts[0] if m.size(node.output, -1) == count else None
