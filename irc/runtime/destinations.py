"""Results made where they are to be copied to: ``out[i] = f(x[i])`` copies nothing.

That is a part that `copy_` writes, or the next row of what a loop stacks. What decides this when the graph is lowered:
nothing but the copy uses the result; all that stands between its node and the copy are views and numbers, so that the
node may run right before the copy; it reads no memory of the destination's class. What is decided in runs: the result's
shape and element type, which are those of the last run with operands of the same shapes and types.

``cat(cache[:i], rows, cache[i + n:])`` writes just the rows if nothing needs the cache any more: the other parts lie
where the result has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from irc.alias.memory_types import has_memory
from irc.ir import Node, Value
from irc.ir.kinds import CONSTANT, GROUP
from irc.ir.objects import address
from irc.ir.region_flow import inner_graph
from irc.ir.types import TensorType
from irc.ops.registry import record
from irc.ops.signatures import schemas
from irc.runtime.execution import Frame, Slots, Step, may_overwrite, operands_in, put
from irc.runtime.kernels.support import axis_in
from irc.runtime.values import Array, is_array

_COPY = "aten::copy_"

_FARTHEST = 16
"""How many nodes before a copy its source may be made."""


def sources(nodes: Iterable[Node]) -> dict[Node, Value]:
    """Nodes that may run right before a copy of their result, the only use; with where it goes."""
    found: dict[Node, Value] = {}
    for copy in nodes:
        if copy.kind == _COPY and len(copy.inputs) > 1:
            value = copy.inputs[1]
            node = value.node
            if node is None or not value.is_used_once or len(node.outputs) > 1:
                continue
            if form_follows(node) and node in _just_before(copy):
                found[node] = copy.inputs[0]
    return found


def delayed(nodes: Iterable[Node], destinations: dict[Node, Value]) -> Iterator[Node]:
    """``nodes``, of which those that have a destination come right before the copies."""
    pending: dict[Value, Node] = {}
    for node in nodes:
        if node in destinations:
            pending[node.output] = node
            continue
        if node.kind == _COPY and len(node.inputs) > 1 and node.inputs[1] in pending:
            yield pending.pop(node.inputs[1])
        yield node


def _just_before(copy: Node) -> Iterator[Node]:
    """The nodes before ``copy`` as long as those after them only give views and numbers."""
    node = copy.prev
    for _ in range(_FARTHEST):
        if node is None:
            return
        yield node
        if not (node.kind == CONSTANT or _gives_view_or_number(node)):
            return
        node = node.prev


def _gives_view_or_number(node: Node) -> bool:
    if node.blocks or not node.outputs or _may_write(node.kind):
        return False
    return record(node.kind).region is not None or not any(has_memory(v.type) for v in (*node.inputs, *node.outputs))


def _may_write(kind: str) -> bool:
    rows = schemas(kind)
    return not rows or any(part.alias is not None and part.alias.write for row in rows for part in row.arguments)


def form_follows(node: Node) -> bool:
    """Whether shapes and types of operands decide those of the results of ``node``."""
    inner = inner_graph(node) if node.kind == GROUP else None
    if inner is not None:
        are_apart = len({*inner.outputs}) == len(inner.outputs)  # else results are one array
        return are_apart and all(each.kind == CONSTANT or form_follows(each) for each in inner.nodes)
    if node.blocks or len(node.outputs) != 1 or not isinstance(node.output.type, TensorType):
        return False
    deciding = record(node.kind).value_operands
    return deciding is not None and all(
        (isinstance(v.type, TensorType) and i not in deciding) or v.made_by(CONSTANT) is not None
        for i, v in enumerate(node.inputs)
    )


def step_into(into: Step, otherwise: Step, ins: Sequence[int], out: int, destination: int) -> Step:
    """A step that makes its result in the array in slot ``destination`` if that has its form.

    Args:
        into: makes the result in the array in slot ``out``.
        otherwise: makes it anywhere.
        ins: the slots of the operands.
        out: the slot of the result; a run with planned memory has an array there.
        destination: a slot with an array of other memory than the operands, or with None.
    """
    operands = operands_in(tuple(ins))
    latest: tuple[Any, Any] = None, None
    """The forms of operands, and of their result if it lay in C order."""

    def step(frame: Frame) -> None:
        nonlocal latest
        forms = [(x.dtype, x.shape, x.flags.c_contiguous) if is_array(x) else None for x in operands(frame)]
        known, form = latest
        x = frame[destination]
        if known == forms and x is not None and form == (x.dtype, x.shape) and frame[out] is None and x.flags.carray:
            frame[out] = x
            into(frame)
            frame[0].in_place += frame[out] is x
            return
        otherwise(frame)
        made = frame[out]
        latest = forms, (made.dtype, made.shape) if is_array(made) and made.flags.c_contiguous else None

    return step


# -- parts that lie in their places --------------------------------------------


def step_around(
    otherwise: Step, ends: Sequence[int], ins: Slots, out: int, dead: Slots, axis: int, must_own_storage: bool
) -> Step:
    """A step that concatenates arrays, of which some may lie where the result has them, in dead memory.

    Args:
        otherwise: concatenates them in new memory.
        ends: positions of the first or the last of the arrays, or both, which lie in memory that nothing needs later.
        ins: the slots of the arrays, or of a list of them and what else there is.
        out: the slot of the result.
        dead: the slots to empty.
        axis: along which they are concatenated.
        must_own_storage: as for `may_overwrite`.
    """
    operands = operands_in(ins)

    def step(frame: Frame) -> None:
        parts = operands(frame)
        if not is_array(parts[0]):
            parts = parts[0]
        may_be = (x for x in (parts[end].base for end in ends) if is_array(x))
        whole = next((x for x in may_be if may_overwrite(x, frame[0].arena, must_own_storage)), None)
        if whole is None or not _fill_around(parts, axis, whole):
            otherwise(frame)
            return
        put(frame, (out,), (whole,), dead)
        frame[0].in_place += 1

    return step


def _fill_around(parts: Sequence[Array], axis: int, whole: Array) -> bool:
    """Write ``parts`` into ``whole``, where some of them lie in their places; whether this was possible."""
    if not whole.flags.carray or any(x.ndim != whole.ndim or x.dtype != whole.dtype for x in parts):
        return False
    axis = axis_in(axis, whole.ndim)
    ends = np.cumsum([x.shape[axis] for x in parts]).tolist()
    places = [whole[(*[slice(None)] * axis, slice(end - x.shape[axis], end))] for x, end in zip(parts, ends)]
    if ends[-1] != whole.shape[axis] or any(x.shape != place.shape for x, place in zip(parts, places)):
        return False
    pairs = [(x, place) for x, place in zip(parts, places) if x.size]
    moved = [(x, place) for x, place in pairs if address(x) != address(place) or x.strides != place.strides]
    kept = [x for x, place in pairs if address(x) == address(place) and x.strides == place.strides]
    if not kept or not all(x.flags.writeable for x in kept):  # a read-only view is of what somebody keeps
        return False
    if any(np.may_share_memory(x, whole) for x, _ in moved):
        return False
    for x, place in moved:
        np.copyto(place, x)
    return True
