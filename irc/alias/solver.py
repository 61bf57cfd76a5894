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
from irc.alias.memory_dag import MemoryDAG
from irc.alias.memory_types import atoms, content_types, has_memory, overlap
from irc.alias.recorder import Recorder, is_functional
from irc.alias.region import Region
from irc.alias.sets import LocationSet, contains, members
from irc.alias.summaries import Functions
from irc.alias.write_index import WriteIndex, WriteLog
from irc.errors import Error
from irc.ir import types
from irc.ir.types import TensorType
from irc.ir.value import Value


class Solver(Recorder):
    """Takes over the facts of a builder, solves them, and keeps them solved.

    Attributes:
        dag: the memoised locations.
        index: the write index over them.
        grown: how often the locations of a known element grew.
    """

    def __init__(self, facts: Facts, log: WriteLog, functions: Functions) -> None:
        self.facts = facts
        self.dag = MemoryDAG(facts, self.all_contents)
        self.index = WriteIndex(log, self.dag)
        self.grown = 0
        self._watched: dict[Element, list[Constraint]] = {}
        self._pending: deque[tuple[Element, LocationSet]] = deque()
        self._draining = False
        super().__init__(facts, self.index, functions)
        for constraint in facts.constraints:
            self._watch(constraint)
        for location in list(members(self.dag.locations(f.ESCAPED))):
            self._escaped(location)

    # -- what rules record ----------------------------------------------

    def define(self, value: Value) -> Element:
        """The element of a value that nobody has told of: its node is analysed now, and those before it first."""
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
                        raise Error(
                            "IRC213",
                            f"the alias rule of {node.kind} says nothing of this output: verify the graph; if it "
                            "keeps the rules of the IR, it is the alias rule that must bind every output",
                            f"%{v.name}",
                        )
        return elements[value]

    def point(self, source: Element, target: Element) -> None:
        if target == NOTHING:
            return
        dag = self.dag
        before = dag.locations(source) if dag.is_known(source) else None
        if self.facts.point(source, target) and before is not None:
            dag.known[source] = before
            self._pending.append((source, dag.locations(target)))
            self._drain()

    def constrain(self, constraint: Constraint) -> None:
        self._watch(constraint)

    def all_contents(self, location: Element) -> Element:
        """The element of all that the object at ``location`` holds; NOTHING if that has no memory."""
        type = self.facts.type_of(location)
        if type.__class__ is TensorType or not any(has_memory(t) for a in atoms(type) for t in content_types(a)):
            return NOTHING
        return self.content(location, None, types.ANY)

    # -- propagation -----------------------------------------------------

    def _watch(self, constraint: Constraint) -> None:
        self._watched.setdefault(constraint.base, []).append(constraint)
        for location in list(members(self.dag.locations(constraint.base))):
            self._apply(constraint, location)

    def _apply(self, constraint: Constraint, location: Element) -> None:
        if isinstance(constraint, f.Unknown):
            if location not in self.facts.wild_types:
                self.escape(location)
                self.point(location, self.unknown(self.facts.type_of(location)))
        elif isinstance(constraint, f.Load):
            self.point(constraint.target, self.content(location, constraint.field, constraint.type))
        elif location in self.facts.wild_types:
            self.escape(constraint.source)
        else:
            self.point(self.content(location, constraint.field, constraint.type), constraint.source)

    def _drain(self) -> None:
        if self._draining:
            return  # an outer call will see to it: no recursion
        self._draining = True
        steps: dict[tuple[LocationSet, LocationSet], LocationSet] = {}
        try:
            while self._pending:
                element, more = self._pending.popleft()
                before = self.dag.known[element]
                step = before, more
                after = steps.get(step)  # many elements denote the same, and grow by the same
                if after is None:
                    after = steps[step] = self.dag.sets.union(before, more)
                self._grow(element, before, more, after)
        finally:
            self._draining = False

    def _grow(self, element: Element, before: LocationSet, more: LocationSet, after: LocationSet) -> None:
        dag = self.dag
        if after is before or after == before:
            return
        dag.known[element] = after
        dag.forget_closures()
        self.grown += 1
        self.index.changed(element)
        watching = self._watched.get(element)
        if watching is not None or element == f.ESCAPED:
            for location in [x for x in members(more) if not contains(before, x)]:
                if element == f.ESCAPED:
                    self._escaped(location)
                for constraint in watching or ():
                    self._apply(constraint, location)
        for source in self.facts.sources_of(element):
            if source in dag.known:
                self._pending.append((source, more))

    def _escaped(self, location: Element) -> None:
        """Unknown code may hold ``location``: it may be any unknown value, and hold anything unknown."""
        facts = self.facts
        if location in facts.escaped or location in facts.wild_types:
            return
        facts.escaped.add(location)
        type = facts.type_of(location)
        for element, atom in list(facts.unknown_atoms.items()):
            if overlap(type, atom):
                self.point(element, location)
        if self.all_contents(location) != NOTHING:
            for field, element in list(facts.contents[location].items()):
                self.tie(location, field, element)

    # -- updates ---------------------------------------------------------

    def redirect(self, value: Value, old: Element, new: Element) -> bool:
        """Let everything that refers to ``old``, what ``value`` denotes, refer to ``new`` instead.

        False if that is too much to follow.
        That is where loads and stores were resolved through ``old``, or where
        it escaped or was declared unknown: all of that would have to be taken back.
        """
        facts, dag = self.facts, self.dag
        if old == new:
            return True
        dag.answers.clear()
        dag.locations(new)  # whether it leads to old is seen by its memo, and what will point to it may have one
        above = self._known_above(old)
        # Not "denote the same now": what new denotes may follow from what old was used for. Chains may be long.
        may_be_same = new in above or isinstance(facts.targets[old], int)
        same = may_be_same and facts.resolve(old) == facts.resolve(new)
        if not same and (f.ESCAPED in above or self._holds_any(old) or any(e in self._watched for e in (old, *above))):
            return False
        site = facts.sites.get(old)
        plain = facts.targets[old] is None and new not in above and not self._holds_any(old)
        if plain and isinstance(site, Value) and facts.elements.get(site) == old:
            facts.forward(site, new)
            dag.known.pop(old, None)
        elif facts.targets[old] == new and facts.elements.get(value) == old:
            facts.elements[value] = facts.same(new)  # what leads to ``old``, and be it a list of thousands, goes on
        else:
            facts.redirect(old, new)
        if not same:  # before anybody asks again: what is not known yet is found by what is
            for element in above:
                dag.known.pop(element, None)
            dag.forget_closures()
            for element in above:
                self.index.changed(element)
        for constraint in self._watched.pop(old, ()):
            self._watch(constraint._replace(base=new))
        self.index.redirect(old, new)
        return True

    def forget(self, value: Value) -> None:
        """``value`` is gone; whatever still points to its element keeps its meaning."""
        element = self.facts.elements.get(value)
        self.facts.disown(value)
        self.dag.answers.pop(value, None)
        if element is not None and self.facts.release(element):
            self.dag.known.pop(element, None)

    def analyse_again(self, region: Region) -> None:
        """Find anew what the values of ``region`` denote and what its nodes do.

        The elements they had are given up, not changed: none that is still in
        use leads there, as the region is closed.
        """
        for value in region.values:
            self.facts.disown(value)
        self.dag.forget_closures()
        for node in region.nodes:
            self.index.remove(node)
        for node in region.in_order():
            self.analyse_node(node)

    def _known_above(self, element: Element) -> dict[Element, None]:
        """All elements with a memo that lead to ``element``: what leads to one without has none either."""
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
