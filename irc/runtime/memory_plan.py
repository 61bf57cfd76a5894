"""Where results lie in one piece of memory, the *arena*, for runs whose shapes are known.

A watched run tells the shapes. Results whose shapes are decided by the inputs'
shapes (`static_values`) then get places in an arena before the
next such run. Two results may share a place if their live ranges do not overlap, and
an in-place operator uses its operand's place. Live ranges are those of storage
classes (`irc.runtime.storage`), so a view keeps the memory it shows alive.
What outputs may show has no place: it must outlive the run.

Operands of a Concat that are made for it have places in that of its result, where their
elements are one run there: then it copies nothing. All of them are one memory from then on,
and a part that others read later too keeps the whole in use. Where that would make the
arena larger by more than a sixteenth, all Concats copy.

Places are found largest first, each in the smallest gap that holds it, which
comes close to the lower bound, the most bytes that are alive at one time.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irc.alias.classes import ESCAPED
from irc.errors import Error
from irc.ir import CALL, CONSTANT, IF, MAX_SIZE, Array, Block, Graph, Node, Value, constant_tensor
from irc.ir.region_flow import inner_graph
from irc.ir.types import TENSOR, DType, TensorType, Type, join, with_plain_sizes, without_facts
from irc.ops import record
from irc.ops.axes import CONCAT, joined
from irc.ops.inference import Known, NodeTypes
from irc.ops.pointwise import overwritable
from irc.ops.shape_rules import tell_contents, types_told
from irc.runtime.array_memory import ANY, ArrayType, aligned, c_strides
from irc.runtime.execution import Frame, Observer, Slots
from irc.runtime.values import is_array

if TYPE_CHECKING:
    from irc.runtime.backends import CompiledGroup
    from irc.runtime.storage import Storage

Forms = Mapping[Value, ArrayType]
"""The element types and shapes of values."""

Groups = Mapping[Node, Graph]
"""Fusion groups, with their subgraphs."""

OnNode = Callable[[Node], None]


def nodes_run_once(block: Block) -> Iterator[Node]:
    """The nodes of ``block`` and of branches in it, in order: a branch, the other one, the If itself."""
    for node in block.nodes:
        for branch in node.blocks if node.kind == IF else ():
            yield from nodes_run_once(branch)
        yield node


def own_groups(graph: Graph) -> dict[Node, Graph]:
    """The fusion groups of ``graph`` that run at most once, and share their subgraph with no other node."""
    users = Counter(map(inner_graph, graph.walk()))
    groups = ((node, inner_graph(node)) for node in nodes_run_once(graph.block))
    return {node: group for node, group in groups if group is not None and users[group] == 1}


def were_steps(group: Node, forms: Forms) -> bool:
    """Whether the members of ``group`` ran one by one in the run in which values had ``forms``."""
    graph = inner_graph(group)
    return graph is not None and any(value in forms for node in graph.nodes for value in node.outputs)


def _follow(block: Block, groups: Groups, equate: Callable[[Value, Value], None], join: OnNode, apply: OnNode) -> None:
    """Tell what follows from what in ``block``, and in the groups and branches in it, in order.

    Args:
        block: the block.
        groups: those to look into, with their subgraphs.
        equate: is told of a value that is another one, at the boundary of a group.
        join: is told of an If, once its branches have been followed.
        apply: is told of other nodes.
    """
    for node in block.nodes:
        if node in groups:
            inner = groups[node]
            for inside, value in zip(inner.inputs, node.inputs):
                equate(inside, value)
            _follow(inner.block, groups, equate, join, apply)
            for value, inside in zip(node.outputs, inner.outputs):
                equate(value, inside)
        elif node.kind == IF:
            for branch in node.blocks:
                _follow(branch, groups, equate, join, apply)
            join(node)
        else:
            apply(node)


def static_values(
    graph: Graph,
    groups: Groups,
    written: Container[Value],
    in_order: bool = False,
    given: Iterable[Value] | None = None,
) -> tuple[set[Value], set[Value]]:
    """The values that run at most once, and which shapes and elements the input shapes decide.

    Args:
        graph: the graph.
        groups: its fusion groups, with their subgraphs.
        written: values whose contents something may change.
        in_order: whether all values lie in C order, as TorchScript's need not.
        given: values whose shapes are decided; by default, the inputs.
    """
    shapes = set(graph.inputs if given is None else given)  # the values of which these are decided
    contents: set[Value] = set()  # none of which is written: what takes them in a group is not known to be

    def note(value: Value, has_shape: bool, has_contents: bool) -> None:
        if has_shape:
            shapes.add(value)
        if has_contents and value not in written:
            contents.add(value)

    def equate(value: Value, other: Value) -> None:
        note(value, other in shapes, other in contents)

    def join(node: Node) -> None:
        if contents.issuperset(node.inputs):
            for value, *inside in zip(node.outputs, *(branch.returns for branch in node.blocks)):
                note(value, shapes.issuperset(inside), contents.issuperset(inside))

    def apply(node: Node) -> None:
        operator = record(node.kind)
        deciding = operator.value_operands if in_order or not node.kind.startswith("aten::") else None
        if node.kind != CONSTANT and (deciding is None or not shapes.issuperset(node.inputs)):
            return
        if contents.issuperset(value for i, value in enumerate(node.inputs) if i in (deciding or ())):
            by_operands = operator.contents_from == "operands" and contents.issuperset(node.inputs)
            for value in node.outputs:
                note(value, True, node.kind == CONSTANT or operator.contents_from == "shapes" or by_operands)

    _follow(graph.block, groups, equate, join, apply)
    return shapes, contents


class _Derived(Known):
    """Types that have been derived; of all other values, no more is known than of what kind they are.

    What a graph states of types is not asked: nobody may have checked it.
    """

    def __init__(self, given: Mapping[Value, TensorType], written: Container[Value]) -> None:
        super().__init__(is_fixed=lambda value: value not in written)
        self.types: dict[Value, Type] = {**given}

    def plain_type(self, value: Value) -> Type:
        found = self.types.get(value)
        if found is not None:
            return found
        tensor = constant_tensor(value)
        return without_facts(value.type) if tensor is None else tensor.type

    def tell_derived(self, value: Value, type: Type) -> None:
        """Note that ``value`` is of ``type``, which may have polynomials as sizes."""
        self.types[value] = with_plain_sizes(type)
        if isinstance(type, TensorType) and type.shape is not None:
            self.symbolic[value] = type if None not in type.shape else self._keep(value, type.shape)


def derived_forms(graph: Graph, groups: Groups, given: Forms, written: Container[Value]) -> dict[Value, ArrayType]:
    """The forms that shape rules tell of values that run at most once, TorchScript's operators apart.

    Args:
        graph: the graph.
        groups: its fusion groups, with their subgraphs.
        given: the forms of inputs; sizes may be `ANY` in these, and then in the result.
        written: values whose elements something may change.
    """
    known = _Derived({value: _type_of(form) for value, form in given.items() if not form.dtype.hasobject}, written)

    def join_returns(node: Node) -> None:
        for value, *inside in zip(node.outputs, *(branch.returns for branch in node.blocks)):
            known.tell_derived(value, join(*map(known.plain_type, inside)) or TENSOR)

    def apply(node: Node) -> None:
        operator = record(node.kind)
        if operator.shape is None or node.kind == CONSTANT or node.kind.startswith("aten::"):
            return
        context = NodeTypes(node, known)
        with suppress(Error):  # of what may never run; else the run says so
            for value, type in zip(node.outputs, types_told(operator.shape, context)):
                known.tell_derived(value, type)
            tell_contents(operator, context, known.plain_type)

    _follow(graph.block, groups, lambda a, b: known.tell_derived(a, known.type_of(b)), join_returns, apply)
    return {value: form for value, type in known.types.items() if (form := _form_of(type)) is not None}


def _type_of(form: ArrayType) -> TensorType:
    return TensorType(DType.from_numpy(form.dtype), tuple([None if size == ANY else size for size in form.shape]))


def _form_of(type: Type) -> ArrayType | None:
    """The form of tensors of ``type``, in which unknown sizes are `ANY`; None if the rank is unknown."""
    if not isinstance(type, TensorType) or type.dtype is None or type.shape is None:
        return None
    return ArrayType(type.dtype.numpy, tuple([size if isinstance(size, int) else ANY for size in type.shape]))


MOST = 1 << 12
"""Places in one plan, the largest; finding them takes a time that grows with the square of their number."""


FEW = 16
"""Elements of an array that is kept with its form: shapes, and what is computed of them."""


class FormRecorder(Observer):
    """Watches a run for the forms of the values that it makes.

    Attributes:
        forms: by value; for a block that runs several times, those of its last run.
        varying: the values that had several.
        strides: of those that do not lie in C order.
        few: the elements of small arrays of integers, by value.
    """

    def __init__(self) -> None:
        self.forms: dict[Value, ArrayType] = {}
        self.varying: set[Value] = set()
        self.strides: dict[Value, tuple[int, ...]] = {}
        self.few: dict[Value, Array] = {}

    def after(self, node: Node, frame: Frame, outs: Slots) -> None:
        for value, slot in zip(node.outputs, outs):
            array = frame[slot]
            if is_array(array) and not array.dtype.hasobject:
                form = ArrayType.of(array)
                if self.forms.setdefault(value, form) != form:
                    self.forms[value] = form
                    self.varying.add(value)
                if not array.flags.c_contiguous:
                    self.strides[value] = array.strides
                if array.size <= FEW and array.dtype.kind in "biu":
                    self.few[value] = array.copy()
                    self.few[value].flags.writeable = False


def stated_forms(graph: Graph) -> dict[Value, ArrayType] | None:
    """The forms of the values of the top block and of its fusion groups by their types.

    None if one is not known, or if they are too large for any run.
    """
    forms: dict[Value, ArrayType] = {}
    blocks = [graph.block, *(group.block for group in own_groups(graph).values())]
    for value in (v for block in blocks for v in (*block.params, *(v for n in block.nodes for v in n.outputs))):
        type = value.type
        if isinstance(type, TensorType):
            if type.dtype is None or type.static_shape is None:
                return None
            if not type.dtype.numpy.hasobject:
                forms[value] = ArrayType(type.dtype.numpy, type.static_shape)
    return forms if sum(aligned(form.nbytes) for form in forms.values()) <= MAX_SIZE else None


@dataclass(eq=False, slots=True)
class Place:
    """Memory for a chain of values, each made in place over the one before.

    Attributes:
        form: the form of all of them.
        latest: the value that is in it at the end.
        start: the turn of the first.
        end: the last turn in which one is in use.
        source: the position of the donated input whose memory it is; None: it is in the arena.
        whole: the place of a Concat's result that it is a part of, or None.
        offset: where it begins, in bytes: in the arena, once it has been placed there; before, in ``whole``.
    """

    form: ArrayType
    latest: Value
    start: int
    end: int
    source: int | None = None
    whole: Place | None = None
    offset: int = 0

    @property
    def size(self) -> int:
        """The bytes that it takes in the arena."""
        return aligned(self.form.nbytes)


@dataclass
class MemoryPlan:
    """The places of one kind of run.

    Attributes:
        place_of: for each value that has one.
        nbytes: the size of the arena.
        bound: the most bytes in places that are in use at one time; no arena can be smaller.
        over: the values that are written over an operand, or, of Concats, whose operands are made in their places.
        turns: when each node of the top block, and each member of its groups, runs.
        in_use: the bytes of results in places that are in use at each turn, without rounding.
    """

    place_of: dict[Value, Place]
    nbytes: int
    bound: int
    over: frozenset[Value]
    turns: Mapping[Node, int]
    in_use: list[int]


class _LastUses:
    """The turns in which classes of memory are used last; classes can be joined.

    Args:
        last: these turns, by class.
    """

    def __init__(self, last: Mapping[int, int]) -> None:
        self._last = dict(last)
        self._joined: dict[int, int] = {}

    def of(self, storage: int) -> int:
        """The class that stands for those which ``storage`` is joined with."""
        while (other := self._joined.get(storage)) is not None:
            self._joined[storage] = self._joined.get(other, other)  # a shorter way for the next search
            storage = other
        return storage

    def turn(self, storage: int) -> int:
        """The turn in which ``storage``, or what it is joined with, is used last."""
        return self._last[self.of(storage)]

    def join(self, storages: Iterable[int]) -> None:
        """Make all of ``storages`` one class."""
        first, *others = dict.fromkeys(map(self.of, storages))
        self._joined.update(dict.fromkeys(others, first))
        self._last[first] = max(self._last[each] for each in (first, *others))


RESHAPE, TRANSPOSE = "onnx::Reshape", "onnx::Transpose"

_Placeable = tuple[int, "Node", "Value"]
"""A turn, what runs then, and a result that may have a place."""

PEAK = 17 / 16
"""How large the arena may be with operands in the places of Concats, compared to one without."""


class Planner:
    """Plans the memory of runs of one graph.

    Args:
        graph: the graph.
        storage: which of its values are one memory.
        placeable: the results whose kernels can be given the arrays for them.
        compiled: the fusion groups that are one kernel, and their kernels. The members of others are steps like all
            others.
        params: inputs of the graph that lie in planned memory until its end, as its results then do: it is the body of
            a loop, which copies them. None: neither do.
        given: the forms of the inputs, if these have sizes that differ from run to run; else none. Nothing is derived
            from them where shapes of tensors may change after they have been made.

    Attributes:
        static: the values whose shapes the shapes of the inputs decide.
        inner: those of them that no result of the graph shows.
        known: those of these whose elements are decided, too, and which nothing writes.
        compiled: as given.
        open: the forms of values with sizes that differ from run to run.
    """

    def __init__(
        self,
        graph: Graph,
        storage: Storage,
        placeable: Container[Value],
        compiled: Mapping[Node, CompiledGroup] | None = None,
        params: Sequence[Value] | None = None,
        given: Forms | None = None,
    ) -> None:
        self._storage = storage
        self._params = params or ()
        self._inputs = graph.inputs
        groups = own_groups(graph)
        changed = given and any(record(node.kind).changes or node.kind == CALL for node in graph.walk())
        derived = derived_forms(graph, groups, given, storage.written) if given and not changed else {}
        self.open = {value: form for value, form in derived.items() if form.varies}
        decided = [value for value in derived if value not in self.open] if given else None
        self.static, contents = static_values(graph, groups, storage.written, params is not None, decided)
        self.compiled = compiled or {}
        self._groups = {node: group for node, group in groups.items() if node not in self.compiled}
        order = list(enumerate(self._in_order(graph), 1))
        self._turns = {node: turn for turn, node in order if node not in self._groups}
        lasting = [value for node in storage.lasting for value in node.outputs]
        self._kept = {ESCAPED, *map(storage.of, lasting)}
        if params is None:
            self._kept.update(*map(storage.shown, graph.outputs))
        self._same: dict[Value, Value] = {}  # inner and outer values of groups
        for node, group in self._groups.items():
            self._same.update(zip(group.inputs, node.inputs))
            self._same.update(zip(node.outputs, group.outputs))
        self._last: dict[int, int] = {}  # class -> the turn of its last use
        for turn, node in order:
            for value in self._touched(node):
                self._last.update(dict.fromkeys(storage.shown(value), turn))
        for value in (*params, *graph.outputs) if params is not None else ():
            self._last.update(dict.fromkeys(storage.shown(value), len(order) + 1))
        self.inner = {value for value in self.static if storage.of(value) not in self._kept}
        self._changed = set(map(storage.of, storage.written))
        self.known = {value for value in contents & self.inner if storage.of(value) not in self._changed}
        self._placeable = [
            (turn, node, value)
            for node, turn in self._turns.items()
            for value in node.outputs
            if value in self.inner and value in placeable
        ]

    def plan(self, forms: Forms, donated: Collection[int] = ()) -> MemoryPlan:
        """The plan for runs in which values have ``forms``.

        Args:
            forms: of all values that may get a place.
            donated: positions of inputs whose memory may be taken.
        """
        placeable = [each for each in self._placeable if each[1].kind != RESHAPE or self._copies(each[1], forms)]
        concats = [node for _, node, _ in placeable if node.kind == CONCAT]

        def packed(joining: Collection[Node]) -> MemoryPlan:
            return _pack(*self._buffers(placeable, forms, donated, joining), self._turns)

        copying = packed(())
        joining = packed(concats) if concats else copying
        return joining if joining.nbytes <= PEAK * copying.nbytes else copying

    def _buffers(
        self, placeable: Iterable[_Placeable], forms: Forms, donated: Collection[int], joining: Container[Node]
    ) -> tuple[dict[Value, Place], list[Value]]:
        """Buffers by value, and the values that overwrite operands, if the Concats ``joining`` copy nothing."""
        made = {value: Place(forms[value], value, 0, self._last[self._storage.of(value)]) for value in self._params}
        over: list[Value] = []
        held = self._donated(forms, donated)  # what is in a buffer
        last = _LastUses(self._last)
        for turn, node, value in placeable:
            form = forms.get(value)
            if form is None:
                continue
            buffer = self._dying(node, value, forms, held, last)
            if buffer is None:
                buffer = Place(form, value, turn, turn)
                parts = self._parts(node, form, made) if node in joining else []
                if parts:
                    last.join(map(self._storage.of, (value, *(part.latest for part in parts))))
                    over.append(value)
                offset = 0
                for part in parts:
                    part.whole, part.offset = buffer, offset
                    offset += part.form.nbytes
            else:
                over.append(value)
            buffer.latest, buffer.end = value, self._last[self._storage.of(value)]
            made[value] = held[value] = buffer
        for buffer in dict.fromkeys(made.values()):  # parts before what they are parts of
            if buffer.whole is not None:
                buffer.whole.start = min(buffer.whole.start, buffer.start)
                buffer.whole.end = max(buffer.whole.end, buffer.end)
        return made, over

    def _copies(self, node: Node, forms: Forms) -> bool:
        """Whether the Reshape ``node`` gives no view of what a Transpose makes of an operand in C order."""
        mover = self._resolved(node.inputs[0]).node
        if mover is None or mover.kind != TRANSPOSE:
            return False
        before, made = forms.get(self._resolved(mover.inputs[0])), forms.get(node.output)
        if before is None or made is None:
            return False
        dtype, shape = before
        moved = as_strided(np.empty(1, dtype), shape, c_strides(shape, dtype.itemsize)).transpose(
            mover.attributes.get("perm")
        )
        try:
            moved.reshape(made.shape, copy=False)
        except (ValueError, TypeError) as error:
            return isinstance(error, ValueError)  # NumPy 2.0, which raises the other one, cannot say
        return False

    def _parts(self, node: Node, form: ArrayType, made: Mapping[Value, Place]) -> list[Place]:
        """The buffers of a Concat's operands, in order, if they can be parts of the result's; else none.

        Each is one run of the result's elements, is no part of something else, and lies in its place, as the result
        does, and stays as it is made.
        """
        join = joined(node)
        if join is None or math.prod(form.shape[: join.axis]) != 1:
            return []
        values = [self._resolved(value) for value in join.parts]
        parts = [made.get(value) for value in values]
        found = [
            part
            for part, value in zip(parts, values)
            if part is not None and part.whole is None and part.source is None
            if part.form.dtype == form.dtype and self._lies_in_place(value)
        ]
        is_whole = sum(part.form.nbytes for part in found) == form.nbytes
        return found if is_whole and len(set(found)) == len(values) and self._lies_in_place(node.output) else []

    def _lies_in_place(self, value: Value) -> bool:
        """Whether ``value`` is always made in its place, and nothing changes it afterwards."""
        node = value.node
        is_placed = node in self.compiled or (node is not None and len(node.outputs) == 1)
        return is_placed and value not in self.known and self._storage.of(value) not in self._changed

    def _donated(self, forms: Forms, donated: Collection[int]) -> dict[Value, Place]:
        """The buffers that the inputs at the positions ``donated`` bring."""
        values = {self._inputs[i]: i for i in donated}
        free = [v for v in values if v in forms and v in self.static and self._storage.of(v) not in self._kept]
        return {value: Place(forms[value], value, 0, 0, values[value]) for value in free}

    def _dying(
        self, node: Node, result: Value, forms: Forms, held: Mapping[Value, Place], last: _LastUses
    ) -> Place | None:
        """The buffer that ``node`` may write ``result`` over: of the first operand that dies with it."""
        kernels, candidates = self.compiled.get(node), node.inputs[: overwritable(node)]
        if kernels is not None:
            types = [form_of(value, forms) for value in node.inputs]
            candidates = [node.inputs[i] for i in kernels.over(node.outputs.index(result), types)]
        shown = [last.of(c) for v in node.inputs for c in self._storage.shown(v)] if candidates else []
        for value in map(self._resolved, candidates):
            buffer, storage = held.get(value), last.of(self._storage.of(value))
            if buffer is None or buffer.form != forms[result] or buffer.latest is not value:
                continue  # in none, or another result has been written over it
            if last.turn(storage) <= self._turns[node] and shown.count(storage) <= 1:
                return buffer
        return None

    def _in_order(self, graph: Graph) -> Iterator[Node]:
        """The nodes that run at most once, in the order in which they do; members of a group, then the group."""
        for node in nodes_run_once(graph.block):
            if node in self._groups:
                yield from (n for n in self._groups[node].block.nodes if n.kind != CONSTANT)
            yield node

    def _touched(self, node: Node) -> Iterable[Value]:
        """What ``node`` makes, and what it and its blocks read; of a group, only the results."""
        if node in self._groups:
            return node.outputs
        returns = [value for block in node.blocks for value in block.returns]
        return (*node.outputs, *node.inputs, *node.captures(), *returns)

    def _resolved(self, value: Value) -> Value:
        """The value that ``value`` stands for across the boundary of a group."""
        while value in self._same:
            value = self._same[value]
        return value


def form_of(value: Value, forms: Forms) -> ArrayType | None:
    """The form of ``value``, a constant or one of ``forms``; None if unknown, or no tensor of numbers."""
    tensor = constant_tensor(value)
    form = forms.get(value) if tensor is None else ArrayType(tensor.dtype.numpy, tensor.shape)
    return None if form is None or form.dtype.hasobject else form


def _pack(made: Mapping[Value, Place], over: Iterable[Value], turns: Mapping[Node, int]) -> MemoryPlan:
    """The plan in which they are placed in one arena. Values are in the order in which they are made."""
    places = list(dict.fromkeys(made.values()))
    own = [b for b in places if b.source is None and b.whole is None]
    own = sorted(own, key=lambda b: (-b.size, b.start - b.end))[:MOST]
    nbytes = _place(own)
    held = {*own, *(p for p in places if p.source is not None)}
    for place in reversed(places):  # parts after what they are parts of
        if place.whole in held:
            place.offset += place.whole.offset
            held.add(place)
    place_of = {v: place for v, place in made.items() if place in held}
    return MemoryPlan(
        place_of=place_of,
        nbytes=nbytes,
        bound=max(_in_use(own, [b.size for b in own])),
        over=frozenset(place_of.keys() & over),
        turns=turns,
        in_use=_in_use(own, [b.form.nbytes for b in own]),
    )


def _place(buffers: Sequence[Place]) -> int:
    """Set the offsets of buffers, placed in this order; return the bytes that they take."""
    starts = np.array([b.start for b in buffers], np.int64)
    ends = np.array([b.end for b in buffers], np.int64)
    sizes = np.array([b.size for b in buffers], np.int64)
    offsets = np.zeros(len(buffers), np.int64)
    for i in range(len(buffers)):
        at_once = np.flatnonzero((starts[:i] <= ends[i]) & (ends[:i] >= starts[i]))
        offsets[i] = _best_fit(offsets[at_once], sizes[at_once], sizes[i])
        buffers[i].offset = int(offsets[i])
    return int((offsets + sizes).max(initial=0))


def _best_fit(offsets: np.ndarray[Any, Any], sizes: np.ndarray[Any, Any], size: int) -> int:
    """The offset of the smallest gap that holds ``size`` between the buffers placed at ``offsets``."""
    order = np.argsort(offsets, kind="stable")
    begins, reached = offsets[order], np.maximum.accumulate((offsets + sizes)[order])
    gap_starts = np.concatenate([[0], reached])
    gaps = np.append(begins, np.iinfo(np.int64).max) - gap_starts
    gaps[gaps < size] = np.iinfo(np.int64).max
    return int(gap_starts[np.argmin(gaps)])


def _in_use(buffers: Sequence[Place], sizes: Sequence[int]) -> list[int]:
    """The bytes in use at each turn, from 0 on, if buffers have these sizes."""
    starts, ends = (np.array(turns, np.int64) for turns in ([b.start for b in buffers], [b.end for b in buffers]))
    change = np.zeros(int(ends.max(initial=0)) + 2, np.int64)
    np.add.at(change, starts, np.array(sizes, np.int64))
    np.subtract.at(change, ends + 1, np.array(sizes, np.int64))
    return cast("list[int]", np.cumsum(change).tolist())
