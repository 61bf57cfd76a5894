"""Remarks on a compiled model: what passes have recorded, and what a look at its graph tells.

The look takes about as long as compiling does, so it waits until `CompiledModel.remarks` is asked for. Each of these
is linear in the size of the graph:

- The passes `in-place` and `growable` run on copies of the graph, whose fusion groups are dissolved: what they leave
  is what runs leave, as these decide by the same rules. A copy with all inputs donated tells what donation changes.
- Outputs, inputs that a run writes, reshaped views, and Concats are looked at one by one.
- The memory peak is computed again after some moves of operators, of which one that lowers it is a remedy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from irc.alias import AliasDb, Kind, analyze
from irc.alias.location_sets import intersects, members
from irc.ir import CONSTANT, Graph, Node, Value, describe, with_subgraphs
from irc.ir.clone import copy_graph, dissolve_groups
from irc.ir.types import TensorType, Type, may_be_equal
from irc.ops import REARRANGING, record
from irc.ops.axes import APPEND, joined
from irc.passes import Growable, InPlace
from irc.passes.base import PassContext, name_of
from irc.passes.in_place import OTHER_FORM, LastUses
from irc.runtime.report import Peak, memory_peak, value_bytes
from irc.support.formatting import amount, count
from irc.support.remarks import (
    COPIED,
    MOST_REMARKS,
    PEAK,
    Remark,
    Remedy,
    add_pass,
    donate,
    fix_sizes,
    leave_out,
    move_before,
    return_too,
)

if TYPE_CHECKING:
    from irc.ir import Module
    from irc.runtime.model import CompiledModel


def remarks(model: CompiledModel, donated: Collection[str] = ()) -> list[Remark]:
    """All that can be said of ``model``, of which runs are given the inputs ``donated``.

    Args:
        model: as compiled, or loaded.
        donated: names of inputs.
    """
    graph = model.graph
    recorded = [] if model.report is None else _present(model.report.remarks, graph)
    look = _Look(graph, donated)
    found: dict[tuple[str, str], Remark] = {}
    for remark in (*look.in_place(), *look.boundary(), *look.joins(), *look.views(), *look.peak()):
        found.setdefault((remark.what, remark.where), remark)
        if len(found) >= MOST_REMARKS:
            break
    return [*(remark for remark in recorded if (remark.what, remark.where) not in found), *found.values()]


def _present(recorded: Iterable[Remark], graph: Graph) -> list[Remark]:
    """The remarks whose place was not removed by a later pass: those of which a result is still there."""
    names = {value.name for node in with_subgraphs(graph) for value in node.outputs}
    functions = graph.module is not None and len(graph.module.graphs) > 1
    kept: list[Remark] = []
    for remark in recorded:
        results, is_node, _ = remark.where.partition(" = ")
        if functions or not is_node or any(name in names for name in results.removeprefix("%").split(", %")):
            kept.append(remark)
    return kept


class _Copy:
    """A copy of a graph without fusion groups, for passes to run on.

    Attributes:
        graph: the copy.
        db: its alias analysis, with some inputs donated.
    """

    def __init__(self, graph: Graph, donated: Iterable[str]) -> None:
        self.graph = copy_graph(graph, graph.weights)
        dissolve_groups(self.graph)
        self._ctx = PassContext(graph.module, analyze=partial(_analyzed, donated=tuple(donated)))
        self.db = self._ctx.alias_db(self.graph)

    def run(self, p: InPlace | Growable) -> list[Remark]:
        """Run the pass; what it leaves."""
        self._ctx.begin(p.name, self.graph)
        p.run(self.graph, self._ctx)
        return [remark for remark in self._ctx.remarks if remark.pass_name == p.name]


def _analyzed(graph: Graph, module: Module | None, donated: Sequence[str]) -> AliasDb:
    return analyze(graph, module, noalias=[name for name in donated if any(v.name == name for v in graph.inputs)])


class _Look:
    """What can be seen of one graph.

    Args:
        graph: the graph.
        donated: the names of the inputs that its caller gives up.
    """

    def __init__(self, graph: Graph, donated: Collection[str]) -> None:
        self._graph = graph
        self._donated = donated
        self._db = _analyzed(graph, graph.module, tuple(donated))
        self._inputs = [value.name for value in graph.inputs if isinstance(value.type, TensorType)]

    # -- results in new arrays -------------------------------------------

    def in_place(self) -> Iterator[Remark]:
        """Results that are new arrays although an operand may have their form."""
        kept, given = _Copy(self._graph, self._donated), _Copy(self._graph, self._inputs)
        types = {value.name: (value.type, _operand_types(node)) for node in kept.graph.walk() for value in node.outputs}
        left = kept.run(InPlace())
        always = {remark.where: remark for remark in given.run(InPlace())}
        made = {value.name: node for node in given.graph.walk() for value in node.outputs}
        for remark in left:
            result = remark.where.partition(" = ")[0].removeprefix("%")
            type, operands = types[result]
            remark = always.get(remark.where, remark)
            if OTHER_FORM in remark.reason or not any(_may_be_equal(type, operand) for operand in operands):
                continue  # runs look at the forms that there are
            if remark.where in always:
                yield remark
            elif made[result].inputs:
                sources = self._given_by(given.db, given.graph, made[result].inputs[0])
                yield replace(remark, remedy=donate(sources) if sources else None)

    def _given_by(self, db: AliasDb, graph: Graph, value: Value) -> list[str]:
        """The inputs whose memory ``value`` may be."""
        return [v.name for v in graph.inputs if v.name in self._inputs and db.may_alias(v, value)]

    # -- the boundary ------------------------------------------------------

    def boundary(self) -> Iterator[Remark]:
        """Outputs and inputs that runs copy, so that nothing else has the same memory."""
        owned = analyze(self._graph, self._graph.module, noalias=self._inputs)
        yield from self._written_inputs()
        grown = owned.location_set([n.output for n in self._graph.walk() if n.kind == APPEND])  # `joins` tells of these
        left: dict[int, Value] = {}
        seen: set[Value] = set()
        for output in self._graph.outputs:
            where = f"output %{output.name}"
            if output in seen or not isinstance(output.type, TensorType):
                continue
            seen.add(output)
            kinds = {location.kind for location in self._db.locations(output)}
            sources = [name for name in self._given_by(owned, self._graph, output) if name not in self._donated]
            if Kind.CONSTANT in kinds:
                text = f"%{output.name} may be a constant, which the model keeps: a run returns a copy"
                yield Remark("run", where, text, COPIED, output.name)
            elif sources and intersects(grown, owned.location_set(output)):
                continue
            elif sources:
                source = next(v for v in self._graph.inputs if v.name == sources[0])
                text = f"%{output.name} may be memory of %{source.name}, which the caller keeps: a run returns a copy"
                because = [str(fact) for fact in owned.why(output, source)]
                yield Remark("run", where, text, COPIED, source.name, because, donate(sources))
            else:
                locations = list(members(self._db.location_set(output)))
                other = next((left[x] for x in locations if x in left and _overlap(output, left[x])), None)
                if other is not None:
                    text = f"it shares memory with the output %{other.name}: a run returns a copy of one of them"
                    because = [str(fact) for fact in self._db.why(output, other)]
                    yield Remark("run", where, text, COPIED, other.name, because, leave_out([output.name]))
                for x in locations:
                    left.setdefault(x, output)

    def _written_inputs(self) -> Iterator[Remark]:
        for value in self._graph.inputs:
            if value.name in self._donated or value.name not in self._inputs:
                continue
            writers = [node for node in self._db.writers(value) if node.kind != APPEND]
            if writers:
                text = f"{describe(writers[0])} may write it, and the caller keeps it: a run works on a copy"
                because = [str(fact) for fact in self._db.why(value, writers[0].inputs[0])]
                blocker = name_of(writers[0])
                yield Remark("run", f"input %{value.name}", text, COPIED, blocker, because, donate([value.name]))

    # -- Concat, and caches ----------------------------------------------

    def joins(self) -> Iterator[Remark]:
        """Concats, which copy their operands, and caches that have no room unless the caller gives them up."""
        copy = _Copy(self._graph, self._donated)
        nodes = {value.name: node for node in copy.graph.walk() for value in node.outputs if joined(node) is not None}
        kinds = {name: node.kind for name, node in nodes.items()}
        given = {name: _parts(node)[0] for name, node in nodes.items()}
        told = {remark.where: remark for remark in copy.run(Growable())}
        yield from told.values()
        appends = {value.name for node in copy.graph.walk() if node.kind == APPEND for value in node.outputs}
        borrowed = {v.name for v in copy.graph.inputs if v.name in self._inputs and v.name not in self._donated}
        for name, node in nodes.items():
            first, where = given[name], f"%{name} = {kinds[name]}"
            if where in told or any(place.startswith(where) for place in told):
                continue
            if kinds[name] == APPEND:
                sources = [first.name] if first.name in borrowed else []
                if sources:
                    text = f"copies %{first.name}, which the caller keeps: there is no room behind it"
                    yield Remark("growable", where, text, COPIED, first.name, [], donate(sources))
            elif name in appends:
                text = f"copies %{first.name}, which it could extend where it is"
                yield Remark("growable", where, text, COPIED, first.name, [], add_pass("growable", ""))
            elif not _is_of_sizes(node):
                back = first.node is None and first.block is copy.graph.block
                text = f"copies its {len(_parts(node))} operands, the first of which is %{first.name}: "
                if back:
                    text += "that is extended in place only if the result is returned, for the next run to be given"
                else:
                    text += "each is in memory of its own, and only a cache that comes back is extended in place"
                yield Remark(
                    "growable", where, text, COPIED, first.name, [], return_too(name, first.name) if back else None
                )

    # -- views -------------------------------------------------------------

    def views(self) -> Iterator[Remark]:
        """Operators such as Reshape whose result would be a view, if their operand lay in order."""
        for node in with_subgraphs(self._graph):
            if not node.inputs or len(node.outputs) != 1 or node.kind not in _RESHAPING:
                continue
            names = {d: 7 for d in node.inputs[0].type.shape or () if isinstance(d, str)}
            if not _copies(node, names):
                continue
            single = next((name for name in names if not _copies(node, {**names, name: 1})), None)
            remedy = fix_sizes([single], 1) if single else None
            maker = node.inputs[0].node
            assert maker is not None, "inputs lie in order"
            text = f"copies: what {describe(maker)} gives does not lie in order, so the result is not a view of it"
            yield Remark("run", describe(node), text, COPIED, name_of(maker), [], remedy)

    # -- the peak ----------------------------------------------------------

    def peak(self) -> Iterator[Remark]:
        """What is alive where most memory is in use."""
        found = memory_peak(self._graph, self._db)
        if found is None:
            sizes = [d for v in self._graph.inputs for d in v.type.shape or () if isinstance(d, str)]
            unknown = next((v for v in _values(self._graph) if value_bytes(v) is None), None)
            if unknown is not None:
                text = f"not known: %{unknown.name} is a {unknown.type}"
                remedy = fix_sizes(sizes, same=False) if sizes else None
                yield Remark("memory", self._graph.name, text, PEAK, unknown.name, [], remedy)
            return
        if not found.alive or not found.bytes:
            return
        largest = sorted(found.alive, key=lambda pair: -pair[1])
        named = ", ".join(f"%{value.name} ({amount(size)})" for value, size in largest[:_MOST_NAMED])
        more = f" and {count(len(largest) - _MOST_NAMED, 'other')}" if len(largest) > _MOST_NAMED else ""
        text = f"{amount(found.bytes)} are in use: {named}{more}"
        moved = self._lower_peak(found, [value for value, _ in largest])
        blocker, remedy = moved if moved is not None else (largest[0][0].name, None)
        yield Remark("memory", describe(found.node), text, PEAK, blocker, [], remedy)

    def _lower_peak(self, found: Peak, alive: Sequence[Value]) -> tuple[str, Remedy] | None:
        """A value that need not be live at the peak, and the operator to move; None if there is none."""
        tries = 0
        uses = LastUses()
        for value in alive:
            if value in found.node.inputs or value in found.node.outputs:
                continue
            users = [user for user in value.iter_users() if user.block is found.node.block]
            after = sorted({user for user in users if found.node.is_before(user)}, key=attrgetter("order"))
            if not after or any(user.is_return for user in after) or len(after) > _MOST_MOVED:
                continue
            moves = [([name_of(user) for user in after], name_of(found.node))]
            if value.node is not None and len(after) == len(users) and not uses.may_be_used_after(value, after[-1]):
                moves.append(([name_of(value.node)], name_of(after[0])))
            for names, point in moves:
                tries += 1
                if tries > _MOST_TRIED:
                    return None
                if self._peak_after(names, point, found.bytes):
                    return value.name, move_before(names, point)
        return None

    def _peak_after(self, names: Sequence[str], point: str, peak: int) -> bool:
        """Whether the peak is below ``peak`` once the nodes of these results stand before that of ``point``."""
        copy = copy_graph(self._graph, self._graph.weights)
        db = _analyzed(copy, copy.module, tuple(self._donated))
        nodes = {name_of(node): node for node in copy.nodes}
        if not all(db.move_before(nodes[name], nodes[point]) for name in names):
            return False
        lowered = memory_peak(copy, db)
        return lowered is not None and lowered.bytes < peak


_MOST_NAMED = 5
_MOST_MOVED = 8
_MOST_TRIED = 6

_RESHAPING = ("onnx::Reshape", "onnx::Flatten")


def _copies(node: Node, sizes: Mapping[str, int]) -> bool:
    """Whether a reshape, for these sizes of named dimensions, gets an operand it cannot view."""
    operand, wanted = node.inputs[0], node.output.type.shape
    shape, strides = _shape(operand, sizes), _strides(operand, sizes)
    if shape is None or strides is None or wanted is None:
        return False
    target = [d if isinstance(d, int) else sizes.get(d, -1) if isinstance(d, str) else -1 for d in wanted]
    if target.count(-1) > 1 or (-1 not in target and math.prod(shape) != math.prod(target)):
        return False
    try:
        np.reshape(np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), shape, strides), target, copy=False)
    except ValueError:
        return True
    except TypeError:  # NumPy 2.0 cannot say
        return False
    return False


def _strides(value: Value, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """How far apart elements along each axis lie, in elements; None if that is not known."""
    node, shape = value.node, _shape(value, sizes)
    if shape is None:
        return None
    if node is None or node.kind != "onnx::Transpose":
        is_view = node is not None and record(node.kind).movement is not None and node.kind not in _RESHAPING
        return None if is_view else tuple(math.prod(shape[i + 1 :]) for i in range(len(shape)))
    before, order = _strides(node.inputs[0], sizes), node.attributes.get("perm") or range(len(shape))[::-1]
    return None if before is None else tuple(before[axis] for axis in order)


def _shape(value: Value, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
    """The shape of ``value``, with named dimensions of these ``sizes``; None if it is not all known."""
    found = [sizes.get(d) if isinstance(d, str) else d for d in value.type.shape or (None,)]
    return tuple(d for d in found if isinstance(d, int)) if all(isinstance(d, int) for d in found) else None


def _values(graph: Graph) -> Iterator[Value]:
    yield from graph.inputs
    for node in graph.nodes:
        if node.kind != CONSTANT:
            yield from node.outputs


def _operand_types(node: Node) -> list[Type]:
    return [value.type for value in node.inputs if value.made_by(CONSTANT) is None]


def _may_be_equal(a: Type, b: Type) -> bool:
    return isinstance(a, TensorType) and isinstance(b, TensorType) and may_be_equal(a, b)


def _parts(node: Node) -> Sequence[Value]:
    join = joined(node)
    return () if join is None else join.parts


def _is_of_sizes(node: Node) -> bool:
    """Whether ``node`` only joins a few numbers: arithmetic on shapes."""
    type = node.output.type
    return type.dtype is not None and not type.dtype.is_float and type.rank == 1


def _overlap(a: Value, b: Value) -> bool:
    """Whether two values of one location surely share an element: one covers it, or the other."""
    ways = [*_sources(a)], [*_sources(b)]
    wholes = [_whole(value) for value in (a, b)]
    return wholes[0] in ways[1] or wholes[1] in ways[0]


def _sources(value: Value) -> Iterator[Value]:
    """``value``, and what it is a view of, as far as operators tell."""
    at: Value | None = value
    while at is not None:
        yield at
        node = at.node
        at = node.inputs[0] if node is not None and node.inputs and record(node.kind).movement is not None else None


def _whole(value: Value) -> Value:
    """The value of which ``value`` is all elements."""
    while value.node is not None and value.node.inputs and record(value.node.kind).movement in REARRANGING:
        value = value.node.inputs[0]
    return value
