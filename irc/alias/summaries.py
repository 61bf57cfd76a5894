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

from collections.abc import Iterator
from dataclasses import dataclass

from irc.alias import facts as f
from irc.alias.facts import NOTHING, Constraint, Element, Facts, Site
from irc.alias.locations import Kind
from irc.alias.memory_types import has_memory
from irc.alias.recorder import Noting, Recorder
from irc.alias.write_index import WriteLog
from irc.ir.functions import callee
from irc.ir.graph import Graph, Module
from irc.ir.node import Node

_LARGEST = 2000
"""Elements a summary may have; a function with a larger one counts as opaque."""

_FIXED = (NOTHING, f.ESCAPED, f.OUTSIDE, f.RANDOM, f.WORLD)


@dataclass(frozen=True)
class Summary:
    """What calls of one function do.

    Attributes:
        facts: the facts of the function's body (and of those it calls in a cycle).
        params, returns: the elements of its parameters and of what it returns.
        visible: the elements that its caller can see, in order of creation.
        constraints: those among visible elements.
        written: the elements it writes, as far as they are visible.
    """

    name: str
    facts: Facts
    params: tuple[Element, ...]
    returns: tuple[Element, ...]
    visible: tuple[Element, ...]
    constraints: tuple[Constraint, ...]
    written: tuple[Element, ...]


class Functions:
    """The summaries of a module's functions, each made when it is first called."""

    def __init__(self, module: Module | None) -> None:
        self._graphs = {} if module is None else module.graphs
        self._summaries: dict[str, Summary | None] = {}

    def summary(self, name: str) -> Summary | None:
        """The summary of the function called ``name``; None if it is opaque: not known, or too large."""
        if name not in self._summaries:
            for cycle in _cycles(name, self._graphs):
                self._summaries.update(_summarise(cycle, self._graphs, self))
        return self._summaries[name]

    def has(self, name: str) -> bool:
        """Whether the summary of ``name`` has been made."""
        return name in self._summaries


class _Body(Noting):
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

    def call(self, node: Node, name: str) -> bool:
        """Record a call of a function of this cycle; False if it is none."""
        if name not in self.params:
            return False
        for param, value in zip(self.params[name], node.inputs[1:]):
            if param != NOTHING:
                self.point(param, self.element(value))
        for output, element in zip(node.outputs, self.returns[name]):
            self.bind(output, element)
        return True


def call(rec: Recorder, node: Node, name: str) -> bool:
    """Record what a call of the function ``name`` does; False if the function is opaque."""
    if isinstance(rec, _Body) and rec.call(node, name):
        return True
    summary = rec.functions.summary(name)
    if summary is None or len(summary.params) != len(node.inputs) - 1 or len(summary.returns) != len(node.outputs):
        return False
    _instantiate(rec, node, summary)
    return True


def _instantiate(rec: Recorder, node: Node, summary: Summary) -> None:
    body, facts = summary.facts, rec.facts
    to: dict[Element, Element] = {e: e for e in _FIXED}
    for param, value in zip(summary.params, node.inputs[1:]):
        argument = rec.element(value)
        if body.targets_of(param):  # calls from within the cycle give it more
            to[param] = facts.new()
            rec.point(to[param], argument)
        else:
            to[param] = argument
    for e in summary.visible:
        if e not in to:
            to[e] = _copy(rec, node, summary, e)
    for e in summary.visible:
        if e in body.unknown_of:
            continue
        for target in body.targets_of(e):
            rec.point(to[e], to[target])
        for field, held in body.contents.get(e, {}).items():
            facts.contents.setdefault(to[e], {})[field] = to[held]
            facts.content_type[to[held]] = body.content_type[held]
        if e in body.constructed:
            facts.constructed.add(to[e])
        if e in body.private:
            facts.private[to[e]] = to[body.private[e]]
    for target in body.targets_of(f.ESCAPED):
        rec.escape(to[target])
    for constraint in summary.constraints:
        if isinstance(constraint, f.Load):
            rec.point(to[constraint.target], rec.load(to[constraint.base], constraint.type, constraint.field))
        elif isinstance(constraint, f.Store):
            rec.store(to[constraint.base], to[constraint.source], constraint.type, constraint.field)
        else:
            rec.become_unknown(to[constraint.base])
    for e in summary.written:
        rec.write(node, to[e])
    for output, e in zip(node.outputs, summary.returns):
        rec.bind(output, to[e])


def _copy(rec: Recorder, node: Node, summary: Summary, e: Element) -> Element:
    """The element of this call for one of the body's: unknown memory and weights are the same everywhere."""
    body = summary.facts
    if e in body.unknown_of:
        return rec.unknown(body.unknown_of[e])
    if e not in body.sites:
        return rec.facts.new()
    site = body.site(e)
    if site.kind is Kind.CONSTANT and isinstance(site.key, str):
        return rec.constant(site.key, site.type)
    inner = "" if site.key is None or isinstance(site.key, str) else f".%{site.key.name}"
    key = node.outputs[0] if node.outputs else summary.name
    return rec.facts.location(Site(site.kind, key, site.type, (f" in {summary.name}{inner}", *site.path)))


# -- making summaries --------------------------------------------------------


def _summarise(cycle: list[str], graphs: dict[str, Graph], functions: Functions) -> dict[str, Summary | None]:
    if any(name not in graphs for name in cycle):
        return dict.fromkeys(cycle)
    body = _Body(functions, cycle, graphs)
    facts = body.facts
    written = list(dict.fromkeys(element for _, element in body.writes.entries))
    found: dict[str, Summary | None] = {}
    for name in cycle:
        params, returns = tuple(body.params[name]), tuple(body.returns[name])
        visible = _visible(facts, [*params, *returns])
        if len(visible) > _LARGEST:
            found[name] = None
            continue
        constraints = [c for c in facts.constraints if c.base in visible]
        seen = tuple(e for e in written if e in _FIXED or _reaches(facts, e, visible))
        everything = _visible(facts, [*visible, *seen])
        order = tuple(sorted(everything - set(_FIXED)))
        found[name] = Summary(name, facts, params, returns, order, tuple(constraints), seen)
    return found


def _visible(facts: Facts, roots: list[Element]) -> set[Element]:
    """What follows from ``roots``, from what escapes, and from what is stored or loaded through constraints."""
    found: set[Element] = set()
    pending = [*roots, *facts.targets_of(f.ESCAPED)]
    for constraint in facts.constraints:
        pending.append(constraint.base)
        if isinstance(constraint, f.Store):
            pending.append(constraint.source)
        elif isinstance(constraint, f.Load):
            pending.append(constraint.target)
    while pending:
        e = pending.pop()
        if e in found:
            continue
        found.add(e)
        if e not in facts.unknown_of:
            pending += facts.targets_of(e)
            pending += facts.contents.get(e, {}).values()
            if e in facts.private:
                pending.append(facts.private[e])
    return found


def _reaches(facts: Facts, element: Element, visible: set[Element]) -> bool:
    seen = {element}
    pending = [element]
    while pending:
        e = pending.pop()
        if e in visible or e in facts.unknown_of or e in facts.wild_types:
            return True
        for target in facts.targets_of(e):
            if target not in seen:
                seen.add(target)
                pending.append(target)
    return False


def called(graph: Graph) -> Iterator[str]:
    """The names of the functions that ``graph`` calls."""
    for node in graph.walk():
        name = callee(node)
        if name is not None:
            yield name


def _cycles(start: str, graphs: dict[str, Graph]) -> list[list[str]]:
    """The functions that ``start`` leads to, those that call each other together, callees first (Tarjan)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    open_: list[str] = []
    found: list[list[str]] = []
    stack: list[tuple[str, Iterator[str]]] = []

    def enter(name: str) -> None:
        order[name] = low[name] = len(order)
        open_.append(name)
        stack.append((name, called(graphs[name]) if name in graphs else iter(())))

    enter(start)
    while stack:
        name, callees = stack[-1]
        further = next(callees, None)
        if further is not None:
            if further not in order:
                enter(further)
            elif further in open_:
                low[name] = min(low[name], order[further])
            continue
        stack.pop()
        if stack:
            caller = stack[-1][0]
            low[caller] = min(low[caller], low[name])
        if low[name] == order[name]:
            at = open_.index(name)
            found.append(open_[at:])
            del open_[at:]
    return found
