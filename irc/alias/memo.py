"""Answers that are remembered until something that they were found from changes.

Whoever finds an answer *looks at* things:

- a node: its kind, inputs, results, blocks and place, and the types of its inputs;
- a value: which nodes use it, with which other inputs;
- memory: what the solved facts say, and what changes the metadata of tensors;
- locations: which nodes write there.

The graph reports changes of nodes and values when they happen, whoever makes them; the write index reports writes; the
state of the facts is compared at each question. An answer is forgotten when something that it rests on changes, and not
before. Invariants:

- An answer rests on all that was looked at for it, also for the answers that it was made of, and on what it is about.
- What was not looked at may not be asked: no answer may depend on it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import islice
from typing import Any, ParamSpec, TypeAlias, TypeVar

from irc.alias.location_sets import LocationSet, members
from irc.alias.memory_dag import MemoryDAG
from irc.alias.write_index import WriteIndex
from irc.ir.graph import Graph
from irc.ir.node import Node, Value

Thing: TypeAlias = Node | Value | int | str

MEMORY = "memory"

_ANYWHERE = "all locations"

_ANYTHING = "the graph"

_MOST_THINGS = 256
"""An answer that was found from more is forgotten when anything changes in the graph."""

_MOST_LOCATIONS = 8
"""Of more, it is not told apart which of them are written."""

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Memo:
    """The answers about one graph.

    Args:
        graph: the graph that they are about.
        concerns: whether it matters to an answer that a node has come to use a value, or no longer does.
    """

    def __init__(self, graph: Graph, concerns: Callable[[Node, Value], bool]) -> None:
        self._graph = graph
        self._concerns = concerns
        self._at: Hashable = None
        self._known: dict[Hashable, tuple[Any, dict[Thing, None]]] = {}
        """Question -> the answer, and what it rests on."""
        self._resting_on: dict[Thing, dict[Hashable, None]] = {}
        """Thing -> the questions whose answers rest on it."""
        self._open: list[dict[Thing, None]] = []
        """What was looked at for each of the questions that are being answered, each for the one before."""

    def follow(self, dag: MemoryDAG, index: WriteIndex) -> None:
        """From now on, these say what values denote, and who writes: the graph was analysed, perhaps again."""
        self._dag, self._index = dag, index
        index.observer = self._written
        self._forget(MEMORY)

    def _memory(self) -> Hashable:
        """What changes whenever the facts, or the module, say something else of memory."""
        self._index.settle()  # which reports the writes that came
        module = self._graph.module
        return self._dag.version, 0 if module is None else len(module.graphs)

    # -- questions -------------------------------------------------------

    def answer(self, find: Callable[_P, _T], *of: _P.args, **_: _P.kwargs) -> _T:
        """What ``find`` returns of the arguments, as it was found, or is found now."""
        if not self._open and (at := self._memory()) != self._at:
            self._at = at
            self._forget(MEMORY)
        question = find, *of
        known = self._known.get(question)
        if known is None:
            known = self._find(question, find, *of)
        if self._open:
            self._open[-1].update(known[1])
        return known[0]

    def look(self, *things: Thing) -> None:
        """The question that is being answered, if there is one, is answered from ``things``, too."""
        if self._open:
            self._open[-1].update(dict.fromkeys(things))

    def look_at_writes(self, locations: LocationSet) -> None:
        """Likewise, from which nodes write ``locations``."""
        few = list(islice(members(locations), _MOST_LOCATIONS + 1))
        self.look(*(few if len(few) <= _MOST_LOCATIONS else (_ANYWHERE,)))

    def _find(self, question: Hashable, find: Callable[..., Any], *of: Any) -> tuple[Any, dict[Thing, None]]:
        if not self._known:
            self._graph.report_to(self)
        # Each answer rests on the nodes that it is about, or that make what it is about: it goes when they do.
        about = [each.definer if isinstance(each, Value) else each for each in of]
        self._open.append({each: None for each in about if isinstance(each, Node)})
        try:
            answer = find(*of)
        finally:
            things = self._open.pop()
        if len(things) > _MOST_THINGS:
            nodes_and_values = [thing for thing in things if isinstance(thing, Node | Value)]
            for thing in nodes_and_values:
                del things[thing]
            things[_ANYTHING] = None
        for thing in things:
            self._resting_on.setdefault(thing, {})[question] = None
        found = self._known[question] = answer, things
        return found

    # -- changes ---------------------------------------------------------

    def moved(self, node: Node) -> None:
        """``node`` has come into the graph, or to another place, or is about to leave."""
        resting = self._resting_on
        for thing in (node, _ANYTHING):
            if thing in resting:
                self._forget(thing)
        for value in node.inputs:
            if value in resting and self._concerns(node, value):
                self._forget(value)

    def changed(self, node: Node, values: Iterable[Value]) -> None:
        """``node`` is another one than before, and so are the nodes that use ``values``."""
        resting = self._resting_on
        for thing in (node, _ANYTHING, *values):
            if thing in resting:
                self._forget(thing)

    def _written(self, locations: LocationSet, metadata: bool) -> None:
        """A node writes ``locations``, or no longer does: elements there or, if so, ``metadata``."""
        if self._open:
            self._at = None  # what is being answered may rest on what was before
        few = list(islice(members(locations), _MOST_LOCATIONS + 1))
        for thing in (MEMORY,) if metadata or len(few) > _MOST_LOCATIONS else (_ANYWHERE, *few):
            self._forget(thing)

    def _forget(self, thing: Thing) -> None:
        """Forget what rests on ``thing``."""
        resting = self._resting_on
        for question in resting.pop(thing, ()):
            for other in self._known.pop(question)[1]:
                if other != thing:
                    left = resting[other]
                    del left[question]
                    if not left:
                        del resting[other]
