"""Rotary position embeddings as PyTorch's exporters write them.

``cat((-x[..., n // 2:], x[..., :n // 2]), -1)`` is four operators, and ``stack((-x[..., 1::2], x[..., ::2]),
-1).flatten(-2)`` is seven. Each becomes one `irc::rotate_half`, which copies once; many decoders have two of them in
each layer. When exported to ONNX, it is written as several operators again (`irc.frontend.onnx_export.decompositions`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.kinds import ROTATE_HALF
from irc.passes.canonicalize.match import Match, rewrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.ir import Node, Value


@rewrite("Concat")
def rotated_halves(m: Match) -> Value | None:
    """The second half of the last axis, negated, before the first half."""
    rank = m.output.type.rank
    if len(m.node.inputs) != 2 or not rank or m.types.attr("axis", 1) not in (-1, rank - 1):
        return None
    return _rotated(m, m.node.inputs, [], interleaved=False)


@rewrite("Reshape")
def rotated_pairs(m: Match) -> Value | None:
    """The elements of each pair on the last axis exchanged, the second of them negated."""
    concat = m.input().made_by("onnx::Concat")
    rank = m.output.type.rank
    if concat is None or len(concat.inputs) != 2 or not rank or m.types_of(concat).attr("axis", 1) not in (-1, rank):
        return None
    columns = [value.made_by("onnx::Unsqueeze") for value in concat.inputs]
    found = [node for node in columns if node is not None and m.types_of(node).axes(1) in ([-1], [rank])]
    if len(found) != 2 or not m.is_fixed(m.output):  # which shares with what Concat makes
        return None
    return _rotated(m, [node.inputs[0] for node in found], [concat, *found], interleaved=True)


def _rotated(m: Match, parts: Sequence[Value], between: Sequence[Node], *, interleaved: bool) -> Value | None:
    """The operator, if both parts are slices of one value and the first of them is negated."""
    sign, first = parts[0].made_by("onnx::Neg"), parts[1].made_by("onnx::Slice")
    second = None if sign is None else sign.inputs[0].made_by("onnx::Slice")
    if sign is None or first is None or second is None or second.inputs[0] is not first.inputs[0]:
        return None
    x = first.inputs[0]
    width = m.size(x, -1) if m.type_of(x).rank else None
    if not isinstance(width, int) or width < 2 or width % 2 or (interleaved and not m.same_type(x)):
        return None  # the parts of Concat are as large as it is, but for its axis
    half = width // 2
    begin, step = (1, 2) if interleaved else (half, 1)
    if _begins(m, first, half, step) not in (0, -width) or _begins(m, second, half, step) not in (begin, begin - width):
        return None
    earlier = [sign, first, second, *between]
    attributes = {"interleaved": 1} if interleaved else {}
    return m.new(ROTATE_HALF, [x], m.output.type, attributes) if m.still_holds_here(earlier) else None


def _begins(m: Match, node: Node, count: int, step: int) -> int | None:
    """Where a slice of ``count`` positions of the last axis begins, if ``node`` is one with that step; else None."""
    (starts, _, axes, steps), rank = m.types_of(node).slices(), m.type_of(node.inputs[0]).rank
    if starts is None or len(starts) != 1 or not rank or axes not in ([-1], [rank - 1]) or steps != [step]:
        return None
    start = starts[0]
    return start if isinstance(start, int) and m.size(node.output, -1) == count else None
