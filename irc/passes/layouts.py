"""Whose memory layouts something sees, and which tensors are certainly contiguous.

A pass that gives a tensor another layout asks `Layouts` first. Operators that look at strides see layouts
(``irc/ops/layouts.py``); so does code that is not in sight, and so do views that become copies where strides allow
no view, if somebody writes later. Most results lie as operands do, so what sees the layout of one sees those of its
operands. The layouts of what a run returns are not promised: they do not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

from irc.alias import AliasDb, Kind
from irc.alias.location_sets import EMPTY, LocationSet, contains, intersects, members
from irc.ir import Graph, Node, Value
from irc.ir.kinds import CALL, IF, SUBGRAPHS
from irc.ir.region_flow import inner_graph, with_subgraphs
from irc.ir.types import BOOL, FLOAT, INT
from irc.ops import functional_by_default, of_kind, record, resolve, schemas
from irc.ops.layouts import contiguous_if, sees_layout
from irc.ops.opaque import is_opaque

_HANDING_ON = frozenset({CALL, "prim::SetAttr"})
"""What hands its operands to other functions of the module, or to the next run."""


class Layouts:
    """The tensors of one graph whose layouts are seen, as the graph is now.

    All that shows one piece of memory counts as one tensor. Of unknown memory, which tensors of the caller's may share,
    values count, unless something is written: then any of them may be in a list that another is taken out of.

    Args:
        graph: the graph.
        db: its alias analysis.
        memory: where passes store what they find for as long as they run (``PassContext.memory``).
    """

    def __init__(self, graph: Graph, db: AliasDb, memory: dict[Any, Any]) -> None:
        self._graph = graph
        self._db = db
        self._memory = memory
        self._generation: tuple[int, int] | None = None
        self._values: set[Value] = set()
        self._places: LocationSet = EMPTY

    def is_seen(self, values: Iterable[Value]) -> bool:
        """Whether something may see how one of ``values`` is laid out.

        It stays right for values that there were before while a pass changes the graph, as long as it adds nothing
        that sees layouts, and puts others only in place of values that are not seen, or that are the same tensors.
        """
        # Analysing again gives locations other numbers, of which there are none if no value is seen.
        if self._generation is None or (self._values and self._generation != self._db.generation):
            self._generation = self._db.generation
            self._values, self._places = self._find()
        if not self._values:
            return False
        return any(v in self._values for v in values) or intersects(self._db.location_set(tuple(values)), self._places)

    def has_gaps(self, value: Value) -> bool:
        """Whether the memory of ``value``, allocated by this graph, may have gaps between elements."""
        sites = (self._db.describe(x).site for x in members(self._db.location_set(value)))
        makers = (site.definer for site in sites if isinstance(site, Value))
        return any(maker is not None and "gaps" in record(maker.kind).layout for maker in makers)

    def _find(self) -> tuple[set[Value], LocationSet]:
        """The values whose layout is seen, or decides the layout of such; and the memory of these."""
        db = self._db
        seen: set[Value] = set()
        found: LocationSet = EMPTY
        unknown: LocationSet = EMPTY
        pending = self._looked_at()
        while pending:
            value = pending.pop()
            if value in seen or value.type in (INT, FLOAT, BOOL):
                continue
            seen.add(value)
            pending += _laid_out_by(value)
            places = db.reach_set(value)
            fresh = [x for x in members(db.difference(places, found)) if not contains(unknown, x)]
            for place in fresh:
                location = db.describe(place)
                if location.kind is not Kind.TEMPORARY or not isinstance(location.site, Value):
                    unknown = db.union(unknown, place)
                else:
                    found = db.union(found, place)
                    pending += _laid_out_by(location.site)
        return seen, db.union(found, unknown) if db.any_writes() else found

    def _looked_at(self) -> list[Value]:
        """The values whose layouts nodes see themselves."""
        found: list[Value] = []
        for node in self._graph.walk():
            if not _may_count(node.kind):
                continue
            layout = record(node.kind).layout
            if "seen" in layout:
                found.append(node.inputs[0])
            elif "view-or-copy" in layout:
                found += node.inputs[:1] if self._tells_views_from_copies(node) else ()
            elif self._looks(node):
                found += node.inputs
        if self._graph.is_function and self._module_looks:
            found += self._graph.outputs
        return found

    def _looks(self, node: Node) -> bool:
        """Whether ``node`` may hand its operands to what sees their layouts."""
        if node.kind in _HANDING_ON:
            return self._module_looks
        inner = inner_graph(node)
        return _may_look(node.kind) if inner is None else any(_may_look(each.kind) for each in with_subgraphs(inner))

    def _tells_views_from_copies(self, node: Node) -> bool:
        """Whether anything may show whether the result of ``node`` is a view: a write after it, or other code."""
        db = self._db
        if db.may_be_known(node.outputs) or (self._graph.is_function and db.escapes(node.outputs)):
            return True
        return any(_may_run_after(writer, node) for writer in db.writers(node.outputs))

    @cached_property
    def _module_looks(self) -> bool:
        """Whether any function of the module may see layouts. No pass adds what does if there was nothing."""
        module = self._graph.module
        if module is None:
            return True
        key = (Layouts, module)
        if key not in self._memory:
            self._memory[key] = any(_may_look(node.kind) for node in with_subgraphs(*module.graphs.values()))
        return self._memory[key]


@of_kind
def _may_count(kind: str) -> bool:
    """Whether nodes of ``kind`` may see layouts, or run or call what does: most do not."""
    sees = "seen" in record(kind).layout or "view-or-copy" in record(kind).layout or _may_look(kind)
    return sees or kind in _HANDING_ON or kind in SUBGRAPHS


@of_kind
def _may_look(kind: str) -> bool:
    """Whether nodes of ``kind`` may see the layouts of operands that are in the same graph."""
    if sees_layout(kind) or kind == "prim::CallMethod":
        return True
    if is_opaque(kind):  # of ONNX, whose tensors have no strides
        return False
    namespace = kind.partition("::")[0]
    return namespace not in ("prim", "irc") and not functional_by_default(kind) and not schemas(kind)


def _laid_out_by(value: Value) -> list[Value]:
    """The values whose layouts may decide how ``value`` is laid out."""
    node = value.definer
    if node is None or "anew" in record(node.kind).layout:
        return []
    needed = contiguous_if(node) if len(node.outputs) == 1 else None
    if needed is not None and not needed:
        return []
    return [*node.inputs, *(v for block in node.blocks for v in block.returns)]


def _may_run_after(node: Node, first: Node) -> bool:
    """Whether ``node`` may run after ``first``, in the same iteration of loops around or a later one."""
    assert node.block is not None
    for block in node.block.around():
        start, at = first.ancestor_in(block), node.ancestor_in(block)
        if start is not None and at is not None:
            is_repeated = any(each.node is not None and each.node.kind != IF for each in block.around())
            return at is start or start.is_before(at) or is_repeated
    return True


class Contiguity:
    """Which values surely are contiguous tensors; graph inputs and loop-carried values never are.

    Args:
        changes: whether something changes shapes or strides of the tensor that a value is in place. None is certain
            then.
    """

    def __init__(self, changes: Callable[[Value], bool]) -> None:
        self._changes = changes
        self._known: dict[Value, bool] = {}

    def is_certain(self, value: Value) -> bool:
        """Whether the elements of ``value`` certainly lie in order, without gaps, whenever it is used."""
        known = self._known
        pending = [value]
        while pending:  # a chain may be too deep for recursion
            at = pending[-1]
            needed = None if at in known or self._changes(at) else _contiguous_if(at)
            if needed is None:
                known.setdefault(at, False)
                pending.pop()
                continue
            unknown = [v for v in needed if v not in known]
            if unknown:
                pending.extend(unknown)
            else:
                known[at] = all(known[v] for v in needed)
                pending.pop()
        return known[value]


def _contiguous_if(value: Value) -> Iterable[Value] | None:
    node = value.node
    if node is None:
        return None
    if node.kind == IF:
        return [block.returns[value.index] for block in node.blocks]
    if len(node.outputs) != 1:
        return None
    row = resolve(node)
    written = row is not None and row.returns and row.returns[0].alias is not None and row.returns[0].alias.write
    return node.inputs[:1] if written else contiguous_if(node)
