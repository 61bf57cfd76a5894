"""Phase one of an analysis: recording what each node of a graph does; what a module's analyses share.

A builder only records, and answers nothing: `AliasDb`, which `freeze` makes of it, has the queries. Whoever changes a
graph of which `Analyses` keeps an analysis updates that, or drops it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from irc.alias.db import AliasDb
from irc.alias.facts import Facts
from irc.alias.recorder import Recorder
from irc.alias.summaries import Functions
from irc.alias.write_index import WriteLog
from irc.errors import Error
from irc.ir import CALL, Value, with_subgraphs
from irc.ir.graph import Graph, Module, gc_paused
from irc.ir.objects import Object


class AliasDbBuilder(Recorder):
    """Records constraints and nothing else; ``freeze`` solves them and returns the database that answers.

    Args:
        graph: what to analyse.
        module: where called functions are found; the graph's own module by default.
        noalias: inputs (values or names) that are known to share memory with nothing.
        functions: what is known of the functions of ``module``, if something is.
        loops_apart: see `irc.alias.analyze`.
    """

    def __init__(
        self,
        graph: Graph,
        module: Module | None = None,
        noalias: Iterable[Value | str] = (),
        functions: Functions | None = None,
        *,
        loops_apart: bool = False,
    ) -> None:
        self.graph = graph
        self.module = module or graph.module
        inner = self.module is not None and graph is not self.module.main  # a function's, or a fusion group's
        facts = Facts(constants_are_given=inner)
        super().__init__(facts, WriteLog(), functions or Functions(self.module))
        if isinstance(noalias, str):  # a collection of its letters
            raise TypeError(f"noalias takes inputs, or a list of their names: [{noalias!r}]")
        given = list(noalias)
        inputs: dict[Value | str, Value] = {key: v for v in graph.inputs for key in (v, v.name)} if given else {}
        for v in given:
            if v not in inputs:
                name = v if isinstance(v, str) else v.name
                raise Error("IRC341", "only an input of the graph can be known to share with nothing", f"%{name}")
        self.noalias = frozenset(inputs[v] for v in given)  # not their names, which may change hands
        self.loops_apart = loops_apart

    def record(self) -> None:
        """Record the whole graph."""
        objects: Mapping[str, Object] = {} if self.module is None else self.module.objects_of(self.graph)
        for value in self.graph.inputs:
            if value.name in objects:
                self.bind(value, self.object(objects[value.name], value))
            else:
                self.bind_input(value, value in self.noalias)
        self.analyse_block(self.graph.block)
        if self.facts.constants_are_given:
            for node in with_subgraphs(self.graph):
                self.know_constant(node)

    def freeze(self) -> AliasDb:
        """Solve the constraints."""
        return AliasDb(self)


def analyze(
    graph: Graph,
    module: Module | None = None,
    noalias: Iterable[Value | str] = (),
    functions: Functions | None = None,
    *,
    loops_apart: bool = False,
) -> AliasDb:
    """Analyse ``graph``.

    Args:
        graph: what to analyse.
        module: where called functions are found; the graph's own module by default.
        noalias: inputs (values or names) that are known to share memory with nothing, such as donated ones.
        functions: summaries of the module's functions, to be shared by analyses of several graphs that call them.
        loops_apart: whether to take each parameter and result of a loop for fresh memory. Unsound alone: the caller
            must relate them to what the loop is given, as `irc.runtime.storage` does.

    Returns:
        The database that answers queries, and that updates keep right while the graph changes.

    Raises:
        TypeError: if ``graph`` is something else, such as a module, or ``noalias`` is a single name.
        Error: IRC341 if something in ``noalias`` is neither an input of the graph nor the name of one; an error of
            `Graph.verify` if the graph is too malformed to be analysed.
    """
    if not isinstance(graph, Graph):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
        hint = "; give module.main" if isinstance(graph, Module) else ""
        raise TypeError(f"a Graph is analysed, not a {type(graph).__name__}{hint}")
    with gc_paused():
        builder = AliasDbBuilder(graph, module, noalias, functions, loops_apart=loops_apart)
        try:
            builder.record()
            return builder.freeze()
        except (Error, IndexError, KeyError, TypeError, ValueError):
            graph.verify()
            if module := module or graph.module:
                module.verify()
            raise


Analyze: TypeAlias = "Callable[[Graph, Module | None], AliasDb]"
"""Builds the alias analysis of a graph whose functions are found in a module."""


class Analyses:
    """The alias analyses of a module's graphs, built on first use and kept while updates keep them right.

    Their inputs may be anything. They share summaries of functions, except while those may be changing.

    Args:
        module: of the graphs, or None.
        build: what builds them; None: `analyze`.
    """

    def __init__(self, module: Module | None, build: Analyze | None = None) -> None:
        self.module = module
        self._build = build
        self._dbs: dict[Graph, AliasDb] = {}
        self._is_settled = True
        self._changing: Graph | None = None
        self._functions: Functions | None = None
        self._functions_of: dict[str, Graph] = {}

    # -- giving ------------------------------------------------------------

    def of(self, graph: Graph) -> AliasDb:
        """The analysis of ``graph``."""
        db = self.built(graph)
        if db is None:
            db = self._dbs[graph] = self._build(graph, self.module) if self._build else self.another(graph)
        return db

    def built(self, graph: Graph) -> AliasDb | None:
        """The analysis of ``graph`` if it has been built already."""
        return self._dbs.get(graph)

    def take(self, graph: Graph, owned: bool = False) -> AliasDb:
        """Remove and return the analysis of ``graph``; if ``owned``, its inputs share memory with nothing."""
        db = self._dbs.pop(graph, None)
        if db is None:
            return self.another(graph, owned)
        if owned:
            db.own_inputs()
        return db

    def another(self, graph: Graph, owned: bool = False, loops_apart: bool = False) -> AliasDb:
        """A new analysis of ``graph`` that is not kept: inputs ``owned``, or loops apart (see `analyze`)."""
        noalias = graph.inputs if owned else ()
        return analyze(graph, self.module, noalias, self._known_functions(graph), loops_apart=loops_apart)

    def _known_functions(self, graph: Graph) -> Functions | None:
        """The function summaries that all analyses share; None if functions may be changing."""
        if self.module is None or not (self._is_settled or graph is self._changing):
            return None
        if self._functions is None or self._functions_of != self.module.graphs:
            self._functions, self._functions_of = Functions(self.module), dict(self.module.graphs)
        self._functions.forget_if_changed(graph.name)
        return self._functions

    # -- changes of graphs -------------------------------------------------

    def begin(self, graph: Graph | None) -> None:
        """From now on only ``graph`` may change; None: any may."""
        self._is_settled, self._changing = False, graph

    def settle(self) -> None:
        """From now on no graph changes."""
        self._is_settled, self._changing = True, None

    def drop(self, graph: Graph | None = None) -> None:
        """Forget the analysis of ``graph`` (None: of all graphs), after a change that updates cannot report."""
        if graph is None:
            self._dbs.clear()
            self._functions = None
        else:
            self._dbs.pop(graph, None)
            self._forget_function(graph)

    def function_changed(self, function: Graph) -> None:
        """Forget the analyses of graphs that may call ``function``: they include what calls of it did."""
        self._forget_function(function)
        calls = any(node.kind == CALL for node in with_subgraphs(function))  # perhaps itself, in the end
        own = None if calls else self._dbs.get(function)
        self._dbs.clear()
        if own is not None:
            self._dbs[function] = own

    def _forget_function(self, graph: Graph) -> None:
        if self._functions is not None:
            self._functions.forget(graph.name)

    def of_copy(self, copy: Graph) -> Analyses:
        """Others, for trials on ``copy``, a copy of the graph that may be changing."""
        found = Analyses(self.module, self._build)
        found.begin(copy if self._changing else None)
        if self._changing is not None:
            found._functions = self._known_functions(self._changing)
            found._functions_of = self._functions_of
        return found
