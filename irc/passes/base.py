"""What a pass is, what it is given while it runs, and what is said of an error that it raises."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from traceback import walk_tb
from types import FrameType
from typing import Any, ClassVar, Protocol, runtime_checkable

from irc.alias import AliasDb
from irc.alias.builder import Analyses, Analyze
from irc.alias.facts import OWN
from irc.alias.location_sets import intersects
from irc.errors import Error, error_text, last_line, package_of
from irc.ir import Graph, Module, Node, describe
from irc.passes.registry import print_pass
from irc.passes.rewriter import Rewriter
from irc.support.lazy import provided
from irc.support.remarks import MOST_REMARKS, Reason, Remark, Remedy, add_pass


class Refused(Exception):
    """Says the reason, as words of a remark, or a `Reason`; the pass that asked catches it."""

    @property
    def reason(self) -> Reason:
        """As given."""
        given = self.args[0]
        return given if isinstance(given, Reason) else Reason(given)


class Worklist:
    """Nodes that are still to be visited, in the order in which they were added, without duplicates."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._order = deque[Node]()
        self._held = set[Node]()
        self.add(nodes)

    def add(self, nodes: Iterable[Node]) -> None:
        """Put ``nodes`` at the end, except those that are waiting already."""
        for node in nodes:
            if node not in self._held:
                self._held.add(node)
                self._order.append(node)

    def pop(self) -> Node:
        """Take the first one."""
        node = self._order.popleft()
        self._held.remove(node)
        return node

    def __len__(self) -> int:
        return len(self._order)


def name_of(node: Node) -> str:
    """What a remark calls ``node``: its first result, or else the node in a few words."""
    return node.outputs[0].name if node.outputs else describe(node)


def functional(writers: Sequence[Node], db: AliasDb, pass_name: str) -> Remedy | None:
    """The remedy to make ``writers`` functional before the pass; None if they write others' memory."""
    foreign = db.all_but(OWN)
    own = not any(intersects(db.write_set(node), foreign) for node in writers[:MOST_EXPLAINED])
    return add_pass("remove-mutation", pass_name) if own else None


MOST_EXPLAINED = 16
"""How many remarks of a run of a pass are looked into for alias facts: each takes time linear in the graph's size."""


# -- base ----------------------------------------------------------------------


Evaluate = Callable[["Node", Sequence[Any]], "list[Any] | None"]
"""Computes a node's outputs from its inputs' values (arrays, Python scalars, None
for an absent input); None if there is no kernel for it; raises if the inputs are
bad. Must neither write into the arrays nor return memory of theirs that is writable."""


@runtime_checkable
class Pass(Protocol):
    """A transformation of one graph.

    Passes are frozen dataclasses: ``name`` is what pipelines call them, fields
    are their options (bool, int, float or str, each with a default), in Python
    and in pipeline text alike.
    """

    name: ClassVar[str]

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Transform ``graph`` in place; return whether anything changed. A second run must change nothing."""
        ...


class PassContext:
    """What passes share while a pipeline runs.

    Attributes:
        module: the module of the graphs, or None.
        evaluate: computes a node on constants; returns None where there is no kernel. An exception from it leaves the
            node as it is, unless it `comes_from_outside`.
        analyses: of the graphs.
        stats: how often each pass did what, by ``"pass.key"``.
        pass_name: the name of the running pass.
        limit: how many transformations may still be done; None for no limit (see ``allow``).
        allowed: those that were done while there was a limit, in words.
        version: how many changes of graphs were reported so far; None outside of a ``PassManager``.
        memory: what passes remember from one of their runs to the next, by keys of their own.
    """

    def __init__(
        self, module: Module | None = None, evaluate: Evaluate | None = None, analyze: Analyze | None = None
    ) -> None:
        self.module = module
        self.analyses = Analyses(module, analyze)
        self.analyses.begin(None)
        self.evaluate: Evaluate = evaluate or _default_evaluate
        self.stats: Counter[str] = Counter()
        self.pass_name = ""
        self.limit: int | None = None
        self.allowed: list[str] = []
        self.version: int | None = None
        self.memory: dict[Any, Any] = {}
        self._graph: Graph | None = None
        # By pass and graph: what the last run of the one on the other left, by place and reason.
        self._remarks: dict[tuple[str, Graph | None], dict[tuple[str, str], Remark]] = {}

    def begin(self, pass_name: str, graph: Graph | None) -> None:
        """The pass runs on ``graph`` from now on: what it left there in an earlier run is forgotten."""
        self.pass_name, self._graph = pass_name, graph
        self._remarks.pop((pass_name, graph), None)
        if graph is not None:
            self.analyses.begin(graph)

    # -- alias analysis --------------------------------------------------

    def alias_db(self, graph: Graph) -> AliasDb:
        """The alias analysis of ``graph``: built when first asked for, then kept while passes keep it right."""
        found = self.analyses.built(graph)
        if found is None:
            self.stats["alias.built"] += 1
            found = self.analyses.of(graph)
        return found

    def donated_db(self, graph: Graph) -> AliasDb:
        """The alias analysis of ``graph`` if all its inputs were donated: built when asked for, and not kept."""
        return self.analyses.another(graph, owned=True)

    def built_alias_db(self, graph: Graph) -> AliasDb | None:
        """The alias analysis of ``graph`` if it has been built already."""
        return self.analyses.built(graph)

    def drop_alias_db(self, graph: Graph | None = None) -> None:
        """Forget the analysis of ``graph`` (None: of all), after changes that updates cannot report."""
        self.analyses.drop(graph)

    def trial(self, copy: Graph) -> PassContext:
        """The context for trying a pass on ``copy`` of the graph that the running pass may change."""
        trial = PassContext(self.module, self.evaluate)
        trial.analyses = self.analyses.of_copy(copy)
        return trial

    def rewriter(self, graph: Graph) -> Rewriter:
        """The means to change ``graph`` that keeps its alias analysis and output names right."""
        from irc.passes.rewriter import Rewriter

        return Rewriter(graph, self)

    def may_change_shapes(self) -> bool:
        """Whether something in the module, and so perhaps what calls a function, changes shapes in place."""
        from irc.passes.shapes import module_changes_metadata  # which needs what passes are

        return self.module is None or module_changes_metadata(self.module, self.memory)

    # -- reporting -------------------------------------------------------

    def count(self, key: str, n: int = 1) -> None:
        """Add ``n`` to the running pass's statistic ``key``; what is 0 is none."""
        if n:
            self.stats[f"{self.pass_name}.{key}"] += n

    @property
    def remarks(self) -> list[Remark]:
        """What passes left as it was in their last runs, and why."""
        return [remark for found in self._remarks.values() for remark in found.values()]

    def note(self, where: Node | str, reason: str, what: str = "", aliasing: Iterable[object] = ()) -> None:
        """Record why the running pass leaves ``where`` as it is; once, however often it says so.

        Args:
            where: the node, or a name for the place.
            reason: in one sentence; a `Reason` also tells what is in the way, and the remedy.
            what: what the remark is about, one of the words of `irc.support.remarks`.
            aliasing: facts of the alias analysis, which say why the blocker touches the memory in question.
        """
        place = where if isinstance(where, str) else describe(where)
        found = self._remarks.setdefault((self.pass_name, self._graph), {})
        if (place, reason) in found:
            return
        if len(found) >= MOST_REMARKS:
            self.count("remarks-left-out")
            return
        told = reason if isinstance(reason, Reason) else Reason(reason)
        said = Remark(self.pass_name, place, str(reason), what, told.blocker, [*map(str, aliasing)], told.remedy)
        found[place, reason] = said

    def allow(self, node: Node) -> bool:
        """Whether the running pass may do one more transformation, at ``node``; counts it if so.

        Passes ask before each transformation, so that a wrong one is found by
        bisection over ``limit`` (see ``instruments.OptimisationLimit``).
        """
        if self.limit is None:
            return True
        if self.limit <= 0:
            return False
        self.limit -= 1
        self.allowed.append(f"{self.pass_name} at {describe(node)}")
        return True

    @property
    def last_allowed(self) -> str:
        """The last transformation that `allow` has counted, in words; "" if there is none."""
        return self.allowed[-1] if self.allowed else ""


def _default_evaluate(node: Node, arrays: Sequence[Any]) -> list[Any] | None:
    """What kernels give, which live in a layer that passes do not import."""
    return provided("evaluate").evaluate(node, arrays)


# -- errors: which pass raised one, at which node, and at which line of source -


_LIBRARIES = frozenset({"irc", "numpy", "ml_dtypes", "onnx", *sys.stdlib_module_names}) - {"__main__"}
"""Packages whose lines say nothing about who has made a mistake."""


def run_pass(p: Pass, graph: Graph, ctx: PassContext, failed: Callable[[Exception], None] = lambda error: None) -> bool:
    """What ``p.run(graph, ctx)`` returns.

    Args:
        p: the pass.
        graph: what it runs on.
        ctx: its context.
        failed: is told what the pass raised, before that is raised to the caller.

    Raises:
        Error: the pass raised it, and is named now; IRC305 another exception came from code outside of irc, which is
            named with its line; IRC309 it came from a pass of irc's own. The exception is the ``__cause__``.
    """
    try:
        return p.run(graph, ctx)
    except (Exception, SystemExit) as error:
        if isinstance(error, Exception):
            failed(error)
        if _ends_the_program(error):
            raise
        raise _of_pass(error, p) from error


def with_note(message: str, note: str) -> str:
    """``message`` with ``note`` at the end of its first line: an excerpt of IR, or a list, may follow."""
    first, end, rest = message.partition("\n")
    said = first.removesuffix(":")
    return f"{said} ({note}){first[len(said) :]}{end}{rest}"


def is_ours(made: object) -> bool:
    """Whether the class of a pass or instrument is irc's own."""
    return package_of(type(made).__module__) == "irc"


def _of_pass(error: BaseException, p: Pass) -> Error:
    name = f"pass {print_pass(p)}"
    module = type(p).__module__
    of_pass = _within(module) if is_ours(p) else _in_package(package_of(module))
    place = last_line(error, _of_nobody_known if is_ours(p) else of_pass)
    if isinstance(error, Error):
        where = error.where if is_ours(p) else ", ".join(filter(None, (place, error.where)))
        is_named = f"pass {p.name}" in error.message
        return Error(error.code, error.message if is_named else with_note(error.message, f"pass {p.name}"), where)
    node = _node_at(error, of_pass)
    at = f", at {describe(node)}" if node is not None else ""
    code = "IRC309" if is_ours(p) and not place else "IRC305"
    return Error(code, f"{error_text(error)} (raised by {name}{at})", place or _line_in(error, of_pass))


def _ends_the_program(error: BaseException) -> bool:
    """Whether ``error`` is not the code's fault: memory, time, the reader of results, a signal."""
    if isinstance(error, MemoryError | TimeoutError | BrokenPipeError):
        return True
    return any(_handles_a_signal(frame) for frame, _ in walk_tb(error.__traceback__))


def _handles_a_signal(frame: FrameType) -> bool:
    """Whether ``frame`` has its caller's frame as an argument, as signal handlers have."""
    given = frame.f_code.co_varnames[: frame.f_code.co_argcount]
    return frame.f_back is not None and any(frame.f_locals.get(name) is frame.f_back for name in given)


def _node_at(error: BaseException, counts: Callable[[FrameType], bool]) -> Node | None:
    frames = [frame for frame, _ in walk_tb(error.__traceback__) if counts(frame)]
    return next((node for frame in reversed(frames) for node in _nodes_in(frame)), None)


def _nodes_in(frame: FrameType) -> Iterator[Node]:
    variables: dict[str, Any] = frame.f_locals
    if isinstance(node := variables.get("node"), Node):
        yield node
    yield from (value for value in reversed(variables.values()) if isinstance(value, Node))


def _line_in(error: BaseException, of_pass: Callable[[FrameType], bool]) -> str:
    """The innermost line of a pass; of one that inherits all that it does, that of what it inherits."""
    return last_line(error, of_pass) or last_line(error, lambda frame: _module_of(frame) != __name__)


def _within(module: str) -> Callable[[FrameType], bool]:
    return lambda frame: f"{_module_of(frame)}.".startswith(f"{module}.")


def _in_package(package: str) -> Callable[[FrameType], bool]:
    return lambda frame: package_of(_module_of(frame)) == package


def _of_nobody_known(frame: FrameType) -> bool:
    return package_of(_module_of(frame)) not in _LIBRARIES


def _module_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))
