"""Solving the facts, and keeping them solved.

Loads and stores through a base that may be several locations, and what
follows from escaping, depend on the locations of elements, which depend on
loads and stores: a least fixed point, reached by propagating differences.
The same machinery keeps the facts solved when nodes are added later: a new
pointer grows only the elements that reach it and have been asked about.
"""

from __future__ import annotations

from collections import deque

from irc.alias import facts as f
from irc.alias.facts import NOTHING, Constraint, Element, Facts
from irc.alias.location_sets import EMPTY, LocationSet, members
from irc.alias.memory_dag import MemoryDAG
from irc.alias.memory_types import has_memory
from irc.alias.recorder import Recorder
from irc.alias.rules import is_functional
from irc.alias.summaries import Functions
from irc.alias.write_index import WriteIndex, WriteLog
from irc.errors import Error
from irc.ir import Value, types

MOST_WAYS = 16
"""Of elements that point to more, it is not asked whether they lead to another."""


class Solver(Recorder):
    """Takes over the facts of a builder, solves them, and keeps them solved.

    Attributes:
        dag: the memoised locations.
        index: the write index over them.
        grown: how often the locations of a known element grew.
        became_unknown: the locations that some constraint has come to say are unknown.
    """

    def __init__(self, facts: Facts, log: WriteLog, functions: Functions) -> None:
        self.facts = facts
        self.dag = MemoryDAG(facts, self.all_contents)
        self.index = WriteIndex(log, self.dag)
        self.grown = 0
        self._watched: dict[Element, list[Constraint]] = {}
        self.became_unknown: LocationSet = EMPTY
        self._pending: deque[Element] = deque()
        """Elements that are to grow, in order."""
        self._more: dict[Element, LocationSet] = {}
        """What they are to grow by."""
        super().__init__(facts, self.index, functions)
        self._draining = True  # all that was recorded grows at once
        for constraint in facts.constraints:
            self._watch(constraint)
        for location in members(self.dag.locations(f.ESCAPED)):
            self._escaped(location)
        self._draining = False
        self._drain()

    # -- what rules record ----------------------------------------------

    def define(self, value: Value) -> Element:
        """The element of a value that has none yet: its node is analysed now, after those that it depends on."""
        elements = self.facts.elements
        pending = [value]
        while pending:
            v = pending[-1]
            node = v.node
            if v in elements:
                pending.pop()
            elif node is None:  # a parameter that nothing has bound
                self.bind(v, self.unknown(v.type))
            elif not has_memory(v.type) or is_functional(node):
                self.fresh(v)
            else:
                before = [u for u in node.inputs if u not in elements]
                pending += before
                if not before:
                    self.analyse_node(node)
                    if v not in elements:
                        node.graph.verify()  # which says what is wrong with a node that its rule could not read
                        message = f"the alias rule of {node.kind} says nothing of this output: it must bind every one"
                        raise Error("IRC305", message, f"%{v.name}")
        return elements[value]

    def point(self, source: Element, target: Element) -> None:
        if target == NOTHING:
            return
        dag = self.dag
        before = dag.locations(source) if dag.is_known(source) else None
        # An element without a memo needs no growth, nor does anything above it: what points to it has none either.
        if self.facts.point(source, target) and before is not None:
            dag.known[source] = before
            dag.version += 1  # it may denote what it did, but is memory of its own no more
            self._postpone(source, dag.locations(target))
            self._drain()

    def constrain(self, constraint: Constraint) -> None:
        self._watch(constraint)

    def all_contents(self, location: Element) -> Element:
        """The element of all that the object at ``location`` holds; NOTHING if it holds nothing with memory."""
        return self.content(location, None, types.ANY)

    # -- propagation -----------------------------------------------------

    def _watch(self, constraint: Constraint) -> None:
        self._watched.setdefault(constraint.base, []).append(constraint)
        self._apply(constraint, self.dag.locations(constraint.base))

    def _apply(self, constraint: Constraint, locations: LocationSet) -> None:
        """What follows now that the base of ``constraint`` may denote ``locations`` too."""
        unknown = self.facts.unknown_types
        if isinstance(constraint, f.Unknown):
            sets = self.dag.sets
            # Each may be what any other is, and is looked at once.
            new = sets.difference(locations, self.became_unknown)
            self.became_unknown = sets.union(self.became_unknown, new)
            for location in members(new):
                if location not in unknown:
                    self.escape(location)
                    self.point(location, self.unknown(self.facts.type_of(location)))
        elif isinstance(constraint, f.Load):
            for location in members(locations):
                self.point(constraint.target, self.content(location, constraint.field, constraint.type))
        else:
            for location in members(locations):
                if location in unknown:
                    self.escape(constraint.source)
                else:
                    self.put(location, constraint.field, constraint.source, constraint.type)

    def _postpone(self, element: Element, more: LocationSet) -> None:
        """Queue ``element``, whose locations are known, to grow by ``more`` when its turn comes."""
        already = self._more.get(element)
        if already is None:
            self._pending.append(element)
            self._more[element] = more
        else:
            self._more[element] = self.dag.sets.union(already, more)

    def _drain(self) -> None:
        if self._draining:
            return  # an outer call will see to it: no recursion
        self._draining = True
        try:
            self._grow_all()
        finally:
            self._draining = False

    def _grow_all(self) -> None:
        steps: dict[tuple[LocationSet, LocationSet], tuple[LocationSet, LocationSet]] = {}
        while self._pending:
            element = self._pending.popleft()
            step = before, more = self.dag.known[element], self._more.pop(element)
            done = steps.get(step)  # many elements denote the same, and grow by the same
            if done is None:
                new = self.dag.sets.difference(more, before)
                done = steps[step] = new, self.dag.sets.union(before, new)
            new, after = done
            if new is not EMPTY:
                self._grow(element, new, after)

    def _grow(self, element: Element, new: LocationSet, after: LocationSet) -> None:
        dag = self.dag
        dag.known[element] = after
        dag.changed(element)
        self.grown += 1
        self.index.changed(element)
        if element == f.ESCAPED:
            for location in members(new):
                self._escaped(location)
        for constraint in self._watched.get(element, ()):
            self._apply(constraint, new)
        # By the difference alone: what was known before has been passed on.
        for source in self.facts.sources_of(element):
            if source in dag.known:
                self._postpone(source, new)

    def _escaped(self, location: Element) -> None:
        """Unknown code may hold ``location``: it may be any unknown value, and hold anything unknown."""
        facts = self.facts
        if location in facts.escaped or location in facts.unknown_types:
            return
        facts.escaped.add(location)
        self._unknown.add_escaped(location)
        if self.all_contents(location) != NOTHING:
            for field, element in list(facts.contents[location].items()):
                self.tie(location, field, element)

    # -- updates ---------------------------------------------------------

    def redirect(self, value: Value, old: Element, new: Element) -> bool:
        """Let everything that refers to ``old``, the element of ``value``, refer to ``new`` instead.

        Returns False, and redirects nothing, if too much would have to be taken back: where loads and stores were
        resolved through ``old``, or where it escaped or was declared unknown.

        (`Region` follows what it takes back value by value: with that alone, cse, dce and fuse took 56 s for a chain of
        2,000 reshapes, each of them twice, and take 0.3 s with this.)
        """
        facts, dag = self.facts, self.dag
        if old == new:
            return True
        dag.answers.clear()
        dag.locations(new)  # whether it leads to old is seen by its memo, and what will point to it may have one
        # Stores and loads through one that leads on are noted where it leads, and those that lead back there nowhere:
        # so it is redirected only if that changes nothing above, which may be most of the graph.
        leads_on = isinstance(facts.targets[old], int)
        above = {} if leads_on else self._known_above(old)
        # Not "denote the same now": what new denotes may follow from what old was used for. Chains may be long.
        same = (new in above or leads_on) and facts.resolve_alike(old, new)
        watched = (e in self._watched for e in (old, *above))
        if not same and (leads_on or f.ESCAPED in above or self._holds_any(old) or any(watched)):
            return False
        if facts.targets[old] == new and facts.elements.get(value) == old:
            facts.elements[value] = facts.same(new)  # what leads to ``old``, and be it a list of thousands, goes on
        else:
            facts.redirect(old, new)
        if not same:  # what is not known yet is found, before the next query, from what is
            for element in above:
                dag.known.pop(element, None)
                self.index.changed(element)
            if above:
                dag.changed(*above)
        for constraint in self._watched.pop(old, ()):
            self._watch(constraint._replace(base=new))
        self.index.redirect(old, new)
        return True

    def leads_to(self, element: Element, target: Element) -> bool:
        """Whether ``element`` surely denotes what ``target`` does, now and later; False may mean unknown."""
        if target == NOTHING:
            return True
        facts = self.facts
        ways = facts.targets_of(facts.resolve(element))
        return len(ways) <= MOST_WAYS and any(target in facts.chain(way) for way in ways)

    def forget(self, value: Value, may_be_written: bool = False) -> None:
        """Forget ``value``. Elements pointing to its element keep their meaning; writes if ``may_be_written``."""
        element = self.facts.elements.get(value)
        self.facts.disown(value)
        self.dag.answers.pop(value, None)
        if element is not None and not may_be_written and self.facts.release(element):
            self.dag.known.pop(element, None)

    def _known_above(self, element: Element) -> dict[Element, None]:
        """All memoised elements that lead to ``element``. (What a memoised element points to is memoised.)"""
        known = self.dag.known
        found: dict[Element, None] = {}
        pending = list(self.facts.sources_of(element))
        while pending:
            e = pending.pop()
            if e in known and e not in found:
                found[e] = None
                pending += self.facts.sources_of(e)
        return found

    def _holds_any(self, element: Element) -> bool:
        """Whether objects that ``element`` may denote hold anything with memory."""
        return any(self.all_contents(x) != NOTHING for x in members(self.dag.locations(element)))
