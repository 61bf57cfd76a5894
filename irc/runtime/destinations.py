"""Results made where they are to be copied to: ``out[i] = f(x[i])`` copies nothing.

That is a part that `copy_` writes, or the next row of what a loop stacks. What decides this when the graph is lowered:
nothing but the copy uses the result; all that stands between its node and the copy are views and numbers, so that the
node may run right before the copy; it reads no memory of the destination's class. What is decided in runs: the result's
shape and element type, which are those of the last run with operands that lay alike.

Or it is a part of what an operator concatenates or stacks (`Assembly`): nothing may need the part's memory after that.

``cat(cache[:i], rows, cache[i + n:])`` writes just the rows if nothing needs the cache any more: the other parts lie
where the result has them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from irc.alias.memory_types import has_memory
from irc.alias.rules import is_functional
from irc.ir import Block, Node, Value
from irc.ir.kinds import CONSTANT, GROUP, IF
from irc.ir.objects import address
from irc.ir.region_flow import inner_graph
from irc.ir.types import ListType, OptionalType, TensorType, Type
from irc.ops.record import Movement
from irc.ops.registry import record
from irc.ops.signatures import resolve, schemas
from irc.runtime.array_memory import ArrayType, lies_as_new
from irc.runtime.bounds import CURRENT
from irc.runtime.execution import Frame, Slots, Step, may_overwrite, operands_in, put
from irc.runtime.kernels.support import axis_in, copied_to
from irc.runtime.values import Array, is_array, is_sequence

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
    """Whether shapes and types of tensors, and all else that is given, decide those of the results."""
    inner = inner_graph(node) if node.kind == GROUP else None
    if inner is not None:
        are_apart = len({*inner.outputs}) == len(inner.outputs)  # else results are one array
        return are_apart and all(each.kind == CONSTANT or form_follows(each) for each in inner.nodes)
    if node.blocks or len(node.outputs) != 1 or not isinstance(node.output.type, TensorType):
        return False
    deciding = record(node.kind).value_operands
    return deciding is not None and all(
        i not in deciding or v.made_by(CONSTANT) is not None or _is_plain(v.type) for i, v in enumerate(node.inputs)
    )


def _is_plain(type: Type) -> bool:
    """Whether values of ``type`` are certainly numbers, text, or lists of these."""
    return not has_memory(type.elem if isinstance(type, ListType | OptionalType) else type)


def makes_new(node: Node) -> bool:
    """Whether ``node`` writes to nothing, and its results are memory of their own."""
    inner = inner_graph(node) if node.kind == GROUP else None
    if inner is not None:
        members = [each for each in inner.nodes if each.kind != CONSTANT]
        return all(map(makes_new, members)) and {value.node for value in inner.outputs} <= {*members}
    row = resolve(node)
    if row is None:
        return is_functional(node)
    return not node.blocks and not any(part.alias for part in (*row.arguments, *row.returns))


Destination = Callable[[Frame, ArrayType], "Array | None"]
"""The array in which a step may make a result of this element type and shape; None if there is none."""


def array_in(slot: int) -> Destination:
    """The array in ``slot``, if the result fits."""

    def find(frame: Frame, form: ArrayType) -> Array | None:
        x = frame[slot]
        return x if x is not None and form == (x.dtype, x.shape) and x.flags.carray else None

    return find


def _lies(x: Any) -> Any:
    """The element type, shape and strides of an array, also in lists; of others, the type and the value."""
    if is_array(x):
        return x.dtype, x.shape, x.strides
    return list(map(_lies, x)) if is_sequence(x) else (type(x), x)


def step_into(into: Step, otherwise: Step, ins: Sequence[int], places: Sequence[tuple[int, Destination]]) -> Step:
    """A step that makes results in the arrays of their destinations if those have their form.

    Args:
        into: makes them in the arrays in their slots, if there are any.
        otherwise: makes them anywhere.
        ins: the slots of the operands.
        places: slots of results, and what gives an array of other memory than the operands, or none. A run with
            planned memory has arrays in these slots.
    """
    operands = operands_in(tuple(ins))
    latest: tuple[Any, list[ArrayType | None]] = None, []
    """How operands lay, and the forms of results that lay as new arrays do."""
    first = places[0][1]
    whole = first.whole if isinstance(first, Part) else None

    def step(frame: Frame) -> None:
        nonlocal latest
        if whole is not None and whole.is_idle:
            otherwise(frame)
            return
        forms = list(map(_lies, operands(frame)))
        known, made = latest
        if known == forms:
            found = [
                (out, x)
                for (out, destination), form in zip(places, made)
                if form is not None and frame[out] is None and (x := destination(frame, form)) is not None
            ]
            put(frame, tuple([out for out, _ in found]), [x for _, x in found])
            (into if found else otherwise)(frame)
            for out, x in found:
                frame[0].in_place += frame[out] is x
            return
        otherwise(frame)
        results = [frame[out] for out, _ in places]
        latest = forms, [ArrayType.of(x) if is_array(x) and lies_as_new(x) else None for x in results]

    return step


# -- parts of what is concatenated or stacked ----------------------------------


LEAST = 1 << 19
"""Bytes of a result for whose parts it pays to be made where it has them: of less, a copy stays in the cache."""


class _Layout(NamedTuple):
    """How parts lie in what they are joined to: one after the other.

    Attributes:
        parts: how they lay before they were joined.
        places: where each begins in the result, and its size, in bytes.
        result: the form of the result, in C order.
    """

    parts: list[Any]
    places: list[tuple[int, int]]
    result: ArrayType


class Assembly:
    """The result of an operator that concatenates or stacks, in which its parts may be made beforehand.

    A run knows the layout of the last one. If the parts lie as they did then, so does the result. Those that have been
    made in their places need no copy, others are copied there. It is *idle* if that does not pay: if the result is
    small, or written over its parts (`step_around`), if more than half of it would be copied, or if layouts change.

    Args:
        slot: for the array of the result, from its first part on.
        outer: where the result itself may be made, as a part of another; else None.

    Attributes:
        is_idle: whether parts are made elsewhere.
    """

    def __init__(self, slot: int, outer: Part | None) -> None:
        self._slot, self._outer = slot, outer
        self._latest: _Layout | None = None
        self._before: list[Any] = []  # how parts lay when they were last joined elsewhere
        self._in_vain: list[Any] = []  # how they lay when most of them were copied
        self.is_idle = False

    def place(self, number: int, frame: Frame, form: ArrayType) -> Array | None:
        """Memory for the part ``number``, which has ``form`` or is a view of an array of this form."""
        whole, layout = frame[self._slot] or self._begin(frame) or (None, None)
        if whole is None or layout is None:
            return None
        offset, nbytes = layout.places[number]
        if form.nbytes != nbytes:  # a branch of an If may have made another part last
            return None
        return np.ndarray(form.shape, form.dtype, whole, offset)  # with the strides of a new array

    def _begin(self, frame: Frame) -> tuple[Array, _Layout] | None:
        """Memory for the result, and how its parts will lie there if they come as in the last run."""
        layout = self._latest  # once: another thread may change it
        if layout is None or CURRENT.scope.guard is not None:  # a limit is for what this run needs, and when it does
            return None
        whole = None if self._outer is None else self._outer(frame, layout.result)
        if whole is None:
            dtype, shape = layout.result
            try:
                whole = np.empty(shape, dtype)
            except MemoryError:  # the result may be smaller in this run
                return None
        frame[self._slot] = held = whole, layout
        return held

    def step(self, otherwise: Step, ins: Slots, out: int, dead: Slots, axis: int) -> Step:
        """A step that joins the parts, of which some may lie in their places.

        Args:
            otherwise: joins them in new memory.
            ins: the slots of the parts, or of a list of them and what else there is.
            out: the slot of the result.
            dead: the slots to empty.
            axis: of the result, along which the parts lie.
        """
        operands = operands_in(ins)

        def step(frame: Frame) -> None:
            parts = operands(frame)
            if not is_array(parts[0]):
                parts = parts[0]
            held: tuple[Array, _Layout] | None = frame[self._slot]
            if held is None and self._outer is not None:
                held = self._begin(frame)
            frame[self._slot] = None
            moved = None if held is None else self._fill(held[0], held[1], parts)
            if held is None or moved is None:
                otherwise(frame)
                self._note(parts, frame[out], axis)
                return
            put(frame, (out,), held[:1], dead)
            frame[0].in_place += not moved

        return step

    def _fill(self, whole: Array, layout: _Layout, parts: Sequence[Any]) -> int | None:
        """Copy what does not lie in its place; return how many that were, None if nothing could be done."""
        if list(map(_lies, parts)) != layout.parts:
            return None
        begin = address(whole)
        there = [(x, offset) for x, (offset, nbytes) in zip(parts, layout.places) if nbytes]
        moved = [(x, offset) for x, offset in there if address(x) != begin + offset or not lies_as_new(x)]
        is_little = self._outer is not None or sum(x.nbytes for x, _ in moved) <= whole.nbytes // 2
        if not is_little or any(np.may_share_memory(x, whole) for x, _ in moved):
            self._in_vain = layout.parts
            return None
        for x, offset in moved:
            copied_to(np.ndarray(x.shape, x.dtype, whole, offset), x)
        return len(moved)

    def _note(self, parts: Sequence[Any], made: Any, axis: int) -> None:
        """Note how ``parts`` lay in ``made``, if they follow one after the other there."""
        self._latest = None
        self.is_idle = not is_array(made) or made.nbytes < LEAST
        if self.is_idle or not lies_as_new(made):
            return
        if not all(is_array(x) and x.dtype == made.dtype for x in parts):
            return
        ends, lie = [*accumulate(x.nbytes for x in parts)], list(map(_lies, parts))
        changes, self._before = self._before not in ([], lie), lie
        self.is_idle = changes or lie == self._in_vain
        if not self.is_idle and math.prod(made.shape[: axis_in(axis, made.ndim)]) == 1:
            places = [(end - x.nbytes, x.nbytes) for x, end in zip(parts, ends)]
            self._latest = _Layout(lie, places, ArrayType.of(made))


class Part(NamedTuple):
    """A part of an `Assembly`, as a `Destination`."""

    whole: Assembly
    number: int

    def __call__(self, frame: Frame, form: ArrayType) -> Array | None:
        return self.whole.place(self.number, frame, form)


def made_for(value: Value, block: Block | None) -> Iterator[Value]:
    """The values, of which ``block`` makes one, whose memory ``value`` is, as far as is seen at once.

    Branches of an If make one each. What has been made before the If is not meant: a branch may read it when it makes
    another value in its place.
    """
    node = value.node
    if block is None or node is None or node.block is not block:
        return
    if node.kind == IF:
        for branch in node.blocks:
            yield from made_for(branch.returns[node.outputs.index(value)], branch)
    elif node.inputs and _passes_on(node):
        yield from made_for(node.inputs[0], block)
    else:
        yield value


def _passes_on(node: Node) -> bool:
    """Whether the result of ``node`` probably lies where its first operand does, in the same order."""
    operator = record(node.kind)
    is_view = operator.region is not None and (operator.movement is Movement.IN_ORDER or "in-order" in operator.layout)
    return is_view or (node.kind.startswith(("aten::", "onnx::")) and node.kind.endswith("_"))


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
