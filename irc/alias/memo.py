"""Memoised answers about parts of tensors, each with its dependencies, and what invalidates them.

An answer depends on

- nodes: their kind, inputs, results, blocks and place, and the types of their inputs;
- values: which nodes use them, with which other inputs;
- subgraphs: all of their nodes;
- memory: what the solved facts say, and what changes the metadata of tensors;
- locations: which nodes write there;
- the answers to other questions, and so on what these depend on.

The graph reports changes of nodes and values when they happen, whoever makes them; the write index reports writes; the
state of the facts is compared at each question. A change invalidates the answers that depend on what changed, and no
others. Invariants:

- An answer depends on all that was asked for it, and on what it is about.
- Whoever finds an answer names what it depends on before asking: nothing else may decide it.
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

Question: TypeAlias = tuple[Hashable, ...]

Dependency: TypeAlias = Node | Value | Graph | int | str | Question

MEMORY = "memory"

_ANYWHERE = "all locations"

_ANYTHING = "the graph"

_MOST_DEPENDENCIES = 256
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
        self._known: dict[Question, tuple[Any, dict[Dependency, None]]] = {}
        """Question -> the answer, and its dependencies."""
        self._dependents: dict[Dependency, dict[Question, None]] = {}
        """Dependency -> the questions whose answers it decides."""
        self._open: list[dict[Dependency, None]] = []
        """The dependencies so far of the questions that are being answered, each for the one before."""

    def follow(self, dag: MemoryDAG, index: WriteIndex) -> None:
        """From now on, these say what values denote, and who writes: the graph was analysed, perhaps again."""
        self._dag, self._index = dag, index
        index.observer = self._written
        self._invalidate(MEMORY)

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
            self._invalidate(MEMORY)
        question = find, *of
        known = self._known.get(question)
        if known is None:
            known = self._find(question, find, *of)
        if self._open:
            self._open[-1][question] = None
        return known[0]

    def depend_on(self, *dependencies: Dependency) -> None:
        """Note that the answer that is being found, if there is one, depends on ``dependencies``, too."""
        if self._open:
            self._open[-1].update(dict.fromkeys(dependencies))

    def depend_on_nodes_of(self, graph: Graph) -> None:
        """Likewise, on all nodes of ``graph``, which a fusion group runs."""
        if self._open:
            graph.report_to(self)
            self.depend_on(graph)

    def depend_on_writes(self, locations: LocationSet) -> None:
        """Likewise, on which nodes write ``locations``."""
        few = _few(locations)
        self.depend_on(*((_ANYWHERE,) if few is None else few))

    def _find(self, question: Question, find: Callable[..., Any], *of: Any) -> tuple[Any, dict[Dependency, None]]:
        if not self._known:
            self._graph.report_to(self)
        # Each answer depends on the nodes that it is about, or that make what it is about: it goes when they do.
        about = [each.definer if isinstance(each, Value) else each for each in of]
        self._open.append({each: None for each in about if isinstance(each, Node)})
        try:
            answer = find(*of)
        finally:
            dependencies = self._open.pop()
        if self._at is None:  # an answer that it was made of is forgotten already
            dependencies[MEMORY] = None
        if len(dependencies) > _MOST_DEPENDENCIES:
            nodes_and_values = [each for each in dependencies if isinstance(each, Node | Value)]
            for each in nodes_and_values:
                del dependencies[each]
            dependencies[_ANYTHING] = None
        for each in dependencies:
            self._dependents.setdefault(each, {})[question] = None
        found = self._known[question] = answer, dependencies
        return found

    # -- changes ---------------------------------------------------------

    def moved(self, node: Node) -> None:
        """``node`` has come into the graph, or to another place, or is about to leave."""
        dependents = self._dependents
        graph = node.graph if node.block is None else node.block.graph  # as it is moved from one to another
        for each in (node, graph, _ANYTHING):
            if each in dependents:
                self._invalidate(each)
        for value in node.inputs:
            if value in dependents and self._concerns(node, value):
                self._invalidate(value)

    def changed(self, node: Node, values: Iterable[Value]) -> None:
        """``node`` is another one than before, and so are the nodes that use ``values``."""
        dependents = self._dependents
        for each in (node, node.graph, _ANYTHING, *values):
            if each in dependents:
                self._invalidate(each)

    def _written(self, locations: LocationSet, metadata: bool) -> None:
        """A node writes ``locations``, or no longer does: elements there or, if so, ``metadata``."""
        if self._open:
            self._at = None  # what is being found may depend on what was before
        few = None if metadata else _few(locations)
        for each in (MEMORY,) if few is None else (_ANYWHERE, *few):
            self._invalidate(each)

    def _invalidate(self, changed: Dependency) -> None:
        """Forget the answers that depend on ``changed``, and those that depend on these."""
        dependents, pending = self._dependents, [changed]
        while pending:
            changed = pending.pop()
            for question in dependents.pop(changed, ()):
                pending.append(question)
                for other in self._known.pop(question)[1]:
                    if other != changed:
                        left = dependents[other]
                        del left[question]
                        if not left:
                            del dependents[other]


def _few(locations: LocationSet) -> list[int] | None:
    """The locations, if they are few enough to be told apart; else None."""
    few = list(islice(members(locations), _MOST_LOCATIONS + 1))
    return few if len(few) <= _MOST_LOCATIONS else None
