"""What functions do to memory, in terms of their parameters.

A function is recorded once, by itself: what its parameters denote is left
open, so that loads and stores through them stay constraints. Its *summary* is
what is left of that when everything is dropped that its caller cannot see.
Each call instantiates the summary: parameters become the arguments, and memory
that the function allocates becomes new locations of this call.

Functions that call each other in a cycle are recorded together, and their
calls among themselves are not told apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from irc.alias import facts as f
from irc.alias.facts import ESCAPED, NOTHING, OUTSIDE, Constraint, Element, Facts, Inside, Kind, Load, Site, Store
from irc.alias.memory_dag import components
from irc.alias.memory_types import has_memory
from irc.alias.recorder import Recorder
from irc.alias.write_index import WriteLog
from irc.ir import Graph, Module, Node, TensorType, Value, callee, with_subgraphs
from irc.ops.record import Change

_LARGEST = 2000
"""Elements a summary may have; a function with a larger one counts as opaque."""

_LONGEST_CYCLE = 64
"""Functions in a cycle of calls that are recorded again whenever one of them changes."""

_FIXED = (NOTHING, f.ESCAPED, f.OUTSIDE, f.RANDOM, f.WORLD)


@dataclass(frozen=True)
class Summary:
    """What calls of one function do, in condensed facts.

    Attributes:
        facts: the facts of the function's body (and of those it calls in a cycle).
        params, returns: the elements of its parameters and of what it returns.
        called: the parameters that also receive arguments from calls within the cycle.
        visible: the elements that its caller can see, in order of creation -> what they point to.
        escaping: the elements that unknown code may hold.
        constraints: the constraints among visible elements.
        written: the visible elements that the function writes, and what it changes there.
    """

    name: str
    facts: Facts
    params: tuple[Element, ...]
    returns: tuple[Element, ...]
    called: frozenset[Element]
    visible: dict[Element, list[Element]]
    escaping: list[Element]
    constraints: tuple[Constraint, ...]
    written: dict[Element, Change]


class Functions:
    """The summaries of a module's functions, each made when it is first called.

    Several analyses may share them, provided that whatever changes a function calls ``forget``, or, while it may be
    changing it, ``forget_if_changed``.

    Once a function in a cycle of more than `_LONGEST_CYCLE` has changed, those in the cycle are opaque: else each
    change of one would have all of them recorded again.

    Attributes:
        is_cautious: whether there are such functions, of which other analyses may know more.
    """

    def __init__(self, module: Module | None) -> None:
        self._graphs = {} if module is None else module.graphs
        self._callers: dict[str, set[str]] = {}
        """Name -> the functions whose bodies tell what it does."""
        self._bodies: dict[str, _Body | None] = {}
        self._summaries: dict[str, Summary | None] = {}
        self._texts: dict[str, str] = {}
        """Function that calls itself, perhaps through others -> what it looked like when it was recorded."""
        self._long: dict[str, list[str]] = {}
        """Function in a long cycle -> all functions in that."""
        self._opaque: set[str] = set()
        """Those in long cycles of which some function has changed."""

    def call(self, rec: Recorder, node: Node, name: str, callers: Iterable[str] = ()) -> bool:
        """Record what ``node``, a call of the function ``name``, does; False if the function is opaque.

        ``callers`` are the functions whose bodies are being recorded with the call.
        """
        summary = self.summary(name, callers)
        if summary is None or len(summary.params) != len(node.inputs) - 1 or len(summary.returns) != len(node.outputs):
            return False
        _instantiate(rec, node, summary)
        return True

    def summary(self, name: str, callers: Iterable[str] = ()) -> Summary | None:
        """The summary of the function called ``name``; None if it is opaque: not known, or too large."""
        self._callers.setdefault(name, set()).update(callers)
        if name not in self._summaries:
            if name not in self._bodies:
                self._record(name)
            body = self._bodies[name]
            self._summaries[name] = body and body.summary(name)
        return self._summaries[name]

    def forget(self, name: str) -> None:
        """Drop the summaries of the function called ``name``, which may have changed, and of its callers."""
        pending = [name]
        while pending:
            gone = pending.pop()
            if gone in self._opaque:
                continue
            for each in self._long.get(gone, (gone,)):
                self._bodies.pop(each, None)
                self._summaries.pop(each, None)
                self._texts.pop(each, None)
                pending += self._callers.pop(each, ())
            if gone in self._long:
                self._opaque.update(self._long[gone])
                self._bodies.update(dict.fromkeys(self._long[gone]))

    @property
    def is_cautious(self) -> bool:
        return bool(self._opaque)

    def forget_if_changed(self, name: str) -> None:
        """As ``forget``, if the summary of the function ``name`` itself is needed and no longer holds.

        That of others is needed only if it calls itself, for other functions cannot tell what calls them.
        """
        if name in self._texts and self._texts[name] != str(self._graphs.get(name)):
            self.forget(name)

    def _record(self, name: str) -> None:
        """Record the function called ``name`` and those that it leads to, callees first."""
        for cycle in components([name], self._callees):
            if cycle[0] not in self._bodies:
                known = cycle[0] in self._graphs
                self._bodies.update(dict.fromkeys(cycle, _Body(self, cycle, self._graphs) if known else None))
                for each in cycle[1:]:
                    self._callers.setdefault(each, set()).add(cycle[0])
                    self._callers.setdefault(cycle[0], set()).add(each)
                if len(cycle) > _LONGEST_CYCLE:
                    self._long.update(dict.fromkeys(cycle, cycle))
                if known and (len(cycle) > 1 or cycle[0] in called(self._graphs[cycle[0]])):
                    self._texts.update((each, str(self._graphs[each])) for each in cycle)

    def _callees(self, name: str) -> Iterable[str]:
        return called(self._graphs[name]) if name in self._graphs and name not in self._bodies else ()


class _Body(Recorder):
    """Records the bodies of functions that call each other."""

    def __init__(self, functions: Functions, names: list[str], graphs: dict[str, Graph]) -> None:
        super().__init__(Facts(), WriteLog(), functions)
        self.params: dict[str, list[Element]] = {}
        self.returns: dict[str, list[Element]] = {}
        for name in names:
            self.params[name] = [self.facts.new() if has_memory(p.type) else NOTHING for p in graphs[name].inputs]
            self.returns[name] = [self.facts.new() if has_memory(v.type) else NOTHING for v in graphs[name].outputs]
        for name in names:
            graph = graphs[name]
            for param, element in zip(graph.inputs, self.params[name]):
                self.bind(param, element)
            self.analyse_block(graph.block)
            for value, element in zip(graph.outputs, self.returns[name]):
                if element != NOTHING:
                    self.point(element, self.element(value))
        self._condense()

    def call(self, node: Node, name: str) -> bool:
        if name not in self.params:
            return self.functions.call(self, node, name, self.params)
        for param, value in zip(self.params[name], node.inputs[1:]):
            if param != NOTHING:
                self.point(param, self.element(value))
        for output, element in zip(node.outputs, self.returns[name]):
            self.bind(output, element)
        return True

    def _condense(self) -> None:
        facts = self.facts
        params = {e for elements in self.params.values() for e in elements}
        returns = {e for elements in self.returns.values() for e in elements}
        bases = {c.base for c in facts.constraints}
        written = {element for _, element in self.writes.entries}
        self._condensed = Condensed(facts, params, params | returns | bases, written)
        same = self._condensed.same
        self._called = frozenset(same[e] for e in params if facts.targets_of(e))
        renamed = [_renamed(c, same) for c in facts.constraints]
        self._constraints = tuple({(c.__class__, c): c for c in renamed}.values())  # a load equals a store, as tuples
        self._written: dict[Element, Change] = {}
        for node, element in self.writes.entries:
            change = self.writes.metadata.get((node, element), Change.ELEMENTS)
            self._written[same[element]] = max(change, self._written.get(same[element], change))
        self._involved = [*self._condensed.targets[f.ESCAPED]]
        self._involved += [e for c in self._constraints for e in _elements(c)]
        facts.elements.clear()  # the values in here are not needed any more
        facts.made_for.clear()

    def summary(self, name: str) -> Summary | None:
        """The summary of one of these functions; None if it is too large."""
        condensed = self._condensed
        params = tuple(condensed.same[e] for e in self.params[name])
        returns = tuple(condensed.same[e] for e in self.returns[name])
        visible = self._visible([*params, *returns, *self._involved])
        if visible is None:
            return None
        written: dict[Element, Change] = {}
        if self._written:
            leading = condensed.above([*visible, *self.facts.unknown_of, *self.facts.unknown_types, *_FIXED])
            written = {e: change for e, change in self._written.items() if e in leading}
            visible = self._visible([*visible, *written])
        if visible is None:
            return None
        seen = {e: condensed.targets[e] for e in sorted(visible.difference(_FIXED))}
        escaping = condensed.targets[f.ESCAPED]
        return Summary(name, self.facts, params, returns, self._called, seen, escaping, self._constraints, written)

    def _visible(self, roots: list[Element]) -> set[Element] | None:
        """What ``roots`` lead to, and what objects there hold; None if that is too much."""
        facts, targets = self.facts, self._condensed.targets
        found: set[Element] = set()
        pending = roots
        while pending:
            e = pending.pop()
            if e in found:
                continue
            found.add(e)
            if len(found) > _LARGEST:
                return None
            if e not in facts.unknown_of:
                pending += targets[e]
                pending += facts.contents.get(e, {}).values()
                if e in facts.private:
                    pending.append(facts.private[e])
        return found


def _elements(constraint: Constraint) -> tuple[Element, ...]:
    if isinstance(constraint, f.Load):
        return constraint.base, constraint.target
    return (constraint.base, constraint.source) if isinstance(constraint, f.Store) else (constraint.base,)


def _renamed(constraint: Constraint, same: dict[Element, Element]) -> Constraint:
    if isinstance(constraint, f.Load):
        return constraint._replace(base=same[constraint.base], target=same[constraint.target])
    if isinstance(constraint, f.Store):
        return constraint._replace(base=same[constraint.base], source=same[constraint.source])
    return constraint._replace(base=same[constraint.base])


def _instantiate(rec: Recorder, node: Node, summary: Summary) -> None:
    """Record the facts of a function again, of the elements that stand for its own in the call ``node``."""
    to = _counterparts(rec, node, summary)
    _know_contents(rec, summary, to)
    for e in summary.escaping:
        rec.escape(to[e])
    for constraint in summary.constraints:
        if isinstance(constraint, f.Load):
            rec.point(to[constraint.target], rec.load(to[constraint.base], constraint.type, constraint.field))
        elif isinstance(constraint, f.Store):
            rec.store(to[constraint.base], to[constraint.source], constraint.type, constraint.field)
        else:
            rec.become_unknown(to[constraint.base])
    for e, change in summary.written.items():
        rec.write(node, to[e], change)
    for output, e in zip(node.outputs, summary.returns):
        rec.bind(output, to[e])


def _counterparts(rec: Recorder, node: Node, summary: Summary) -> dict[Element, Element]:
    """For each element of a function that matters to its calls, the one of this call."""
    body, facts = summary.facts, rec.facts
    to: dict[Element, Element] = {e: e for e in _FIXED}
    for param, value in zip(summary.params, node.inputs[1:]):
        if param == NOTHING:
            continue
        if param not in summary.called:
            to[param] = rec.element(value)
        else:  # of several arguments, where those that are passed on in turn count as one
            if param not in to:
                to[param] = facts.new()
            rec.point(to[param], rec.element(value))
    for e in summary.visible:
        if e not in to:
            to[e] = _copy(rec, node, summary, e)
        if to[e] in facts.shared:  # by all calls, and so is what it holds
            for field, held in body.contents.get(e, {}).items():
                to[held] = rec.content(to[e], field, body.content_type[held])
    return to


def _know_contents(rec: Recorder, summary: Summary, to: Mapping[Element, Element]) -> None:
    """Record what elements of a function point to and hold; of unknown memory that is known."""
    body, facts = summary.facts, rec.facts
    for e, targets in summary.visible.items():
        if to[e] in facts.unknown_of:
            continue
        for target in targets:
            rec.point(to[e], to[target])
        for field, held in body.contents.get(e, {}).items():
            facts.contents.setdefault(to[e], {})[field] = to[held]
            facts.content_type[to[held]] = body.content_type[held]
        if e in body.constructed:
            facts.constructed.add(to[e])
        if e in body.private:
            facts.private[to[e]] = to[body.private[e]]


def _copy(rec: Recorder, node: Node, summary: Summary, e: Element) -> Element:
    """This call's element for one of the body's; unknown memory and constants are the same everywhere."""
    body = summary.facts
    if e in body.unknown_of:
        return rec.unknown(body.unknown_of[e])
    if e not in body.sites:
        return rec.facts.new()
    site = body.site(e)
    if site.kind is Kind.CONSTANT and rec.facts.constants_are_given:
        return rec.unknown(site.type)
    if site.kind is Kind.CONSTANT and isinstance(site.key, str):
        return rec.constant(site.key, site.type)
    if site.kind is Kind.CONSTANT and isinstance(site.key, Value):
        found = rec.facts.of_function(site._replace(inside=site.inside or Inside(f" in {summary.name}", None)))
        if e in body.constructed:
            rec.facts.constructed.add(found)
        return found
    inner = "" if site.key is None or isinstance(site.key, str) else f".%{site.key.name}"
    key = node.outputs[0] if node.outputs else summary.name
    return rec.facts.location(
        Site(site.kind, key, site.type, site.path, Inside(f" in {summary.name}{inner}", site.inside))
    )


def called(graph: Graph) -> Iterator[str]:
    """The names of the functions that ``graph``, or a group in it, calls."""
    for node in with_subgraphs(graph):
        name = callee(node)
        if name is not None:
            yield name


# -- condensing ----------------------------------------------------------


class Condensed:
    """What the elements of ``facts`` point to, with one element for all that denote the same.

    Of the elements that the facts name (locations, contents, unknown memory), only
    tensors that nothing tells apart are merged: whatever leads to one leads to all.

    Args:
        facts: recorded, and not solved.
        growing: elements that callers will let denote more.
        used: elements that callers refer to.
        written: elements that the function writes.

    Attributes:
        same: element -> the one that stands for it.
        targets: each element that stands for itself or others -> the elements that it points to.
    """

    def __init__(self, facts: Facts, growing: set[Element], used: set[Element], written: set[Element]) -> None:
        self._facts = facts
        self._loads: dict[Element, list[Load]] = {}
        """Element -> what is loaded into it."""
        for constraint in facts.constraints:
            if isinstance(constraint, Load):
                self._loads.setdefault(constraint.target, []).append(constraint)
        self._every = range(len(facts.targets))
        self._named = dict.fromkeys(filter(self._is_named, self._every))
        self.same: dict[Element, Element] = {}
        self.targets: dict[Element, list[Element]] = {}
        self._condense(growing, {})
        stored = {c.source for c in facts.constraints if isinstance(c, Store)}
        kept = growing.union(self._loads, used, written, stored)
        self._splice(kept)
        alike = self._alike({self.same[e] for e in used})
        if alike:
            self._condense(growing, alike)
            self._splice(kept)

    def _condense(self, growing: set[Element], alike: dict[Element, Element]) -> None:
        """Find `same` and `targets`, with one location for all ``alike``."""
        same, loaded = self.same, self._loads.keys()
        found: dict[Hashable, Element] = {}
        self.targets.clear()
        same.update(zip(self._every, self._every))
        same.update(alike)
        for cycle in self._in_order():
            first = cycle[0]
            if len(cycle) > 1:
                first = min(cycle)
                same.update(dict.fromkeys(cycle, first))
            targets = self._outside(cycle, first)
            if growing.isdisjoint(cycle):
                if not loaded.isdisjoint(cycle):
                    denoted = found.setdefault((frozenset(targets), self._loads_of(cycle)), first)
                elif len(targets) > 1:
                    denoted = found.setdefault(frozenset(targets), first)
                else:
                    denoted = targets[0] if targets else first
                if denoted != first:
                    same.update(dict.fromkeys(cycle, denoted))
                    continue
            self.targets[first] = targets
        self.targets.update((e, self._outside([e], e)) for e in self._named)

    def _in_order(self) -> Iterator[list[Element]]:
        """The SCCs of elements, each after those that it leads to and loads from."""
        same, below, loads, named = self.same.__getitem__, self._facts.targets_of, self._loads, self._named

        def before(e: Element) -> Iterable[Element]:
            others = chain(below(e), [load.base for load in loads[e]]) if e in loads else below(e)
            return [t for t in map(same, others) if t not in named]

        for group in components([e for e in self._every if e not in named], before):
            if len(group) == 1:
                yield group
            else:  # only what leads on by pointers denotes the same
                inside = set(group)
                yield from components(group, lambda e, inside=inside: inside.intersection(map(same, below(e))))

    def _is_named(self, e: Element) -> bool:
        facts = self._facts
        return e in facts.sites or e in facts.content_type or e in facts.unknown_of or e in (ESCAPED, OUTSIDE)

    def _loads_of(self, cycle: list[Element]) -> frozenset[Hashable]:
        """The loads into any element of ``cycle``."""
        same, loads = self.same, self._loads
        return frozenset([(same[x.base], x.field, x.type) for e in cycle if e in loads for x in loads[e]])

    def _outside(self, cycle: list[Element], first: Element) -> list[Element]:
        """What the elements of an SCC, represented by ``first``, point to outside of it."""
        targets = dict.fromkeys(self.same[t] for e in cycle for t in self._facts.targets_of(e))
        targets.pop(first, None)
        return list(targets)

    def _splice(self, kept: set[Element]) -> None:
        """Leave out each element that only one other points to; that one then points to its targets."""
        keep = {self.same[e] for e in kept}
        counts = Counter(t for targets in self.targets.values() for t in targets)
        spliced = {e for e in self.targets if counts[e] == 1 and e not in keep and e not in self._named}
        for e in [e for e in self.targets if e not in spliced]:
            found: dict[Element, None] = {}
            pending = self.targets[e][::-1]
            while pending:
                t = pending.pop()
                if t in spliced:
                    pending += self.targets.pop(t)[::-1]
                elif t != e:
                    found[t] = None
            self.targets[e] = list(found)

    def _alike(self, used: set[Element]) -> dict[Element, Element]:
        """Fresh tensors that callers cannot tell apart -> the first of them.

        The same elements point to them, and they are stored in the same places.
        """
        facts, same = self._facts, self.same
        used = used.union(facts.private.values())
        sources: dict[Element, list[Hashable]] = {}
        for source, targets in self.targets.items():
            for t in targets:
                if t in facts.sites and t not in used:
                    sources.setdefault(t, []).append(source)
        stores = [c for c in facts.constraints if isinstance(c, Store)]
        for store in dict.fromkeys(c._replace(base=same[c.base], source=same[c.source]) for c in stores):
            if store.source in facts.sites and store.source not in used:
                sources.setdefault(store.source, []).append(store._replace(source=NOTHING))
        found: dict[Element, Element] = {}
        first: dict[frozenset[Hashable], Element] = {}
        for t, leading in sources.items():
            if isinstance(facts.type_of(t), TensorType) and facts.site(t).kind is Kind.TEMPORARY:
                same_as = first.setdefault(frozenset(leading), t)
                if same_as != t:
                    found[t] = same_as
        return found

    def above(self, elements: Iterable[Element]) -> set[Element]:
        """``elements`` and all that lead to them."""
        sources: dict[Element, list[Element]] = {}
        for source, targets in self.targets.items():
            for target in targets:
                sources.setdefault(target, []).append(source)
        found = set(elements)
        pending = list(found)
        while pending:
            new = [e for e in sources.get(pending.pop(), ()) if e not in found]
            found.update(new)
            pending += new
        return found
