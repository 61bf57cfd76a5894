"""Phase one: recording what every node of a graph does to memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from irc.alias.db import AliasDb
from irc.alias.facts import Facts, Kind, Site
from irc.alias.memory_types import has_memory
from irc.alias.recorder import Recorder
from irc.alias.summaries import Functions
from irc.alias.write_index import WriteLog
from irc.errors import Error
from irc.ir.graph import Graph, Module
from irc.ir.objects import Object
from irc.ir.region_flow import with_subgraphs
from irc.ir.value import Value


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
            elif value in self.noalias and has_memory(value.type):
                self.own(value, self.facts.location(Site(Kind.DONATED, value, value.type)))
            else:
                self.bind(value, self.unknown(value.type))
        self.analyse_block(self.graph.block)
        if self.facts.constants_are_given:
            for node in with_subgraphs(self.graph):
                self.know_constant(node)

    def freeze(self) -> AliasDb:
        """Solve the constraints."""
        return AliasDb(self)
