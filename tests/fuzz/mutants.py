"""Bugs put into the alias analysis on purpose: those of PyTorch's, by number, and others like them.

Each is a context manager. While it lasts, analyses are wrong in just one way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from irc.alias import db, facts, memory_dag, memory_types, recorder, solver, summaries, unknown_memory, write_index
from irc.alias.location_sets import LocationSet, members
from irc.alias.memory_types import has_memory
from irc.alias.recorder import Recorder
from irc.alias.rules import RULES
from irc.alias.rules.entry import Rule
from irc.ir import Node, Value, types
from irc.ir.types import UnionType
from irc.ops import record
from tests.operators import records_for_a_while

Mutant = Callable[[], AbstractContextManager[None]]


@contextmanager
def _rule(kind: str, rule: Rule | None) -> Generator[None]:
    """``rule`` in the place of the one for ``kind``."""
    with patch.dict(RULES, {kind: rule}):
        yield


@contextmanager
def _rows(change: Callable[[str], str], *kinds: str) -> Generator[None]:
    """Schema rows of ``kinds``, changed."""
    changed = {kind: replace(record(kind), rows=tuple(map(change, record(kind).rows))) for kind in kinds}
    assert all(changed[kind].rows != record(kind).rows for kind in kinds), "nothing was changed"
    with records_for_a_while(changed):
        yield


def _row(kind: str, before: str, after: str) -> Mutant:
    return lambda: _rows(lambda row: row.replace(before, after), kind)


# -- control flow --------------------------------------------------------------


def loop(back: bool, none: bool) -> Rule:
    """``prim::Loop``, with or without the edge back and that of no iteration."""

    def rule(rec: Recorder, node: Node) -> Iterator[Any]:
        (block,) = node.blocks
        carried = []
        for param, start in zip(block.params[1:], node.inputs[2:]):
            element = rec.facts.new() if has_memory(param.type) else facts.NOTHING
            rec.point(element, rec.element(start))
            rec.bind(param, element)
            carried.append(element)
        yield block
        for element, start, returned, output in zip(carried, node.inputs[2:], block.returns[1:], node.outputs):
            if back and element != facts.NOTHING:
                rec.point(element, rec.element(returned))
            started = [rec.element(start)] if none else []
            rec.bind(output, rec.facts.join([*started, rec.element(returned)]))

    return rule


def _first_branch(rec: Recorder, node: Node) -> Iterator[Any]:
    yield from node.blocks
    for output, returned in zip(node.outputs, node.blocks[0].returns):
        rec.bind(output, rec.element(returned))


@contextmanager
def _no_repetition() -> Generator[None]:
    """Between two nodes, only what stands between them."""

    with patch.object(write_index, "outermost_loop", lambda block: None):
        yield


@contextmanager
def _nested_writes_unseen() -> Generator[None]:
    def own(self: write_index.WriteIndex, node: Node) -> Any:
        self._catch_up()
        return self._own.get(node, ())

    with patch.object(write_index.WriteIndex, "elements", own):
        yield


# -- containers ----------------------------------------------------------------


@contextmanager
def _contents_unseen() -> Generator[None]:
    """Who writes a container is asked, not who writes what it holds."""

    def has_writers(self: db.AliasDb, what: Any, contained: bool = True) -> bool:
        return original(self, what, False)

    original = db.AliasDb.has_writers
    with patch.object(db.AliasDb, "has_writers", has_writers):
        yield


@contextmanager
def _half_done_closures() -> Generator[None]:
    """What a location leads to, memoised when met: in a cycle, what was only half known."""

    def closure(self: memory_dag.MemoryDAG, element: int) -> LocationSet:
        memo, locations = self._closures, self.locations(element)

        def of(location: int) -> set[int]:
            if location not in memo:
                memo[location] = {location}
                held = self._content_of(location)
                inside = members(self.locations(held)) if held else ()
                memo[location] = {location}.union(*(of(x) for x in inside))
            return memo[location]

        return self.sets.of(set().union(*map(of, members(locations))))

    with patch.object(memory_dag.MemoryDAG, "closure", closure):
        yield


def _inside_dropped(row: str) -> str:
    """``Dict(str(k), t(b))`` without what is said inside."""
    return re.sub(r"Dict\((\w+)(\([^()]*\))?, t(\([^()]*\))?\)", r"Dict(\1, t)", row)


@contextmanager
def _fields_mixed_up() -> Generator[None]:
    """What a tuple holds first is taken for what it holds last."""

    def rule(rec: Recorder, node: Node) -> None:
        base = rec.element(node.inputs[0])
        for i, output in enumerate(node.outputs):
            rec.bind(output, rec.load(base, output.type, len(node.outputs) - 1 - i))

    with _rule("prim::TupleUnpack", rule):
        yield


# -- unknown memory ------------------------------------------------------------


@contextmanager
def _any_apart() -> Generator[None]:
    """Nothing but an Any may be an Any."""

    def type_intersection(a: Any, b: Any) -> Any:
        return None if (a == types.ANY) != (b == types.ANY) else original(a, b)

    original = memory_types.type_intersection
    with (
        patch.object(memory_types, "type_intersection", type_intersection),
        patch.object(unknown_memory, "ANY", object()),
    ):
        yield


@contextmanager
def _escapes_unseen() -> Generator[None]:
    """What is stored into something unknown is forgotten."""
    with patch.object(recorder.Recorder, "escape", lambda self, element: None):
        yield


@contextmanager
def _updates_half_done() -> Generator[None]:
    """That a value has become unknown is known of it, and not of what was known of others."""

    def set_wildcard(self: db.AliasDb, value: Value) -> None:
        known = self._solver.dag.known
        element = self._solver.element(value)
        before = {e: found for e, found in known.items() if e != element}
        original(self, value)
        known.update(before)

    original = db.AliasDb.set_wildcard
    with patch.object(db.AliasDb, "set_wildcard", set_wildcard):
        yield


@contextmanager
def _unions_apart() -> Generator[None]:
    """What is stored into something unknown as a union, unknown values of its members are not."""

    def store(self: recorder.Recorder, base: int, source: int, type: Any, field: Any = None) -> None:
        facts = self.facts
        unknown = facts.resolve(base) in (facts.unknown_atoms.keys() | facts.unknown_types.keys())
        if not (unknown and isinstance(type, UnionType)):
            store_known(self, base, source, type, field)

    def apply(self: solver.Solver, constraint: facts.Constraint, location: int) -> None:
        union = isinstance(constraint, facts.Store) and isinstance(constraint.type, UnionType)
        if not (union and location in self.facts.unknown_types):
            apply_known(self, constraint, location)

    store_known, apply_known = recorder.Recorder.store, solver.Solver._apply
    with patch.object(recorder.Recorder, "store", store), patch.object(solver.Solver, "_apply", apply):
        yield


# -- calls ---------------------------------------------------------------------


@contextmanager
def _summaries_without(**nothing: Any) -> Generator[None]:
    class Summary(summaries.Summary):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            for name, value in nothing.items():
                object.__setattr__(self, name, value)

    with patch.object(summaries, "Summary", Summary):
        yield


def _fresh_calls() -> AbstractContextManager[None]:
    """What functions return is never what they were given."""
    original = RULES["prim::CallFunction"]
    assert original is not None

    def rule(rec: Recorder, node: Node) -> Any:
        nested = original(rec, node)
        assert nested is None, "the function is known"
        for output in node.outputs:
            rec.fresh(output)

    return _rule("prim::CallFunction", rule)


# -- the list ------------------------------------------------------------------

UPDATES: dict[str, Mutant] = {"4: updates of wildcards take answers back": _updates_half_done}
"""What only changing a graph brings to light."""

PYTORCHS: dict[str, Mutant] = {
    "1: loops have no edge back": lambda: _rule("prim::Loop", loop(back=False, none=True)),
    "2: loops always make an iteration": lambda: _rule("prim::Loop", loop(back=True, none=False)),
    "3: writes into what containers hold are ignored": _contents_unseen,
    "4: Any and Tensor are apart": _any_apart,
    **UPDATES,
    "5: broadcast_tensors copies": _row("aten::broadcast_tensors", "Tensor(a)", "Tensor"),
    "6: closures depend on the order of queries": _half_done_closures,
    "7: what escapes as a union is not what its members may be": _unions_apart,
    "8: annotations inside dictionaries are dropped": lambda: _rows(
        _inside_dropped, "aten::__getitem__", "aten::_set_item", "aten::values", "aten::get"
    ),
}
"""By the number of the case."""

OTHERS: dict[str, Mutant] = {
    "of two branches one counts": lambda: _rule("prim::If", _first_branch),
    "reshape certainly shares": _row("aten::reshape", "-> Tensor(a)", "-> Tensor(a=)"),
    "transposes copy": _row("aten::t", "Tensor(a)", "Tensor"),
    "expand copies": _row("aten::expand", "Tensor(a)", "Tensor"),
    "Reshape of ONNX copies": _row("onnx::Reshape", "Tensor(a)", "Tensor"),
    "copy_ writes nothing": _row("aten::copy_", "Tensor(a!)", "Tensor(a)"),
    "relu_ writes a copy": lambda: _rule("aten::relu_", None),
    "append stores nothing": _row("aten::append", "t(c -> b)", "t"),
    "_set_item stores nothing": _row("aten::_set_item", "t(c -> b)", "t"),
    "extend stores nothing": _row("aten::extend", "t(c -> b)[]", "t[]"),
    "insert stores nothing": _row("aten::insert", "t(c -> b)", "t"),
    "list + holds the left elements only": _row("aten::add", "-> t(b|c)[]", "-> t(b)[]"),
    "elements are copies": _row("aten::__getitem__", "int idx) -> t(b)", "int idx) -> t"),
    "parts of a tensor are copies": _row("aten::unbind", "Tensor(a)", "Tensor"),
    "sequences hold copies": _row("onnx::SequenceConstruct", "t(a)", "t"),
    "optionals hold copies": _row("onnx::Optional", "t(a)", "t"),
    "fields of tuples are mixed up": _fields_mixed_up,
    "writes inside blocks are their own": _nested_writes_unseen,
    "nothing runs again": _no_repetition,
    "what escapes is forgotten": _escapes_unseen,
    "what functions write is forgotten": lambda: _summaries_without(written={}),
    "what functions store is forgotten": lambda: _summaries_without(constraints=()),
    "what functions return is new": _fresh_calls,
}
"""Other mistakes that an alias analysis could make."""

SANE: dict[str, Mutant] = {"loops as they are": lambda: _rule("prim::Loop", loop(back=True, none=True))}
"""Changes that are no mistakes: nothing may catch them."""
