"""What can watch a pipeline run: checks, prints, timing, bisection.

An instrument gets a call before and after each pass; passes know nothing of
it. All of them write to a stream (stderr by default), never to stdout, where
results go.
"""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from irc.errors import Error
from irc.passes.base import run_pass
from irc.passes.registry import print_pass, print_pipeline, suggest
from irc.support.files import replacing

if TYPE_CHECKING:
    from irc.ir import Graph, Module
    from irc.passes.base import Pass, PassContext
    from irc.passes.manager import PassReport
    from irc.passes.registry import Pipeline


class Instrument:
    """Base of all instruments: does nothing. ``stream`` is where it writes (default: stderr)."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream

    def start(self, pipeline: Pipeline, graphs: list[Graph], ctx: PassContext) -> None:
        """Called before the first pass."""

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        """Called before ``p`` runs on ``graph``."""

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        """Called after ``p`` ran on ``graph``."""

    def failed(self, p: Pass, graph: Graph, ctx: PassContext, error: Exception) -> None:
        """Called when ``p`` raised ``error``, which is then raised to the caller."""

    def finish(self, report: PassReport, ctx: PassContext) -> None:
        """Called after the last pass."""

    def write(self, text: str) -> None:
        """Write a paragraph."""
        print(text, file=self.stream or sys.stderr)


class PassEnds(Instrument):
    """Base of instruments that look at a module each time that a pass has run on all of its graphs."""

    def start(self, pipeline: Pipeline, graphs: list[Graph], ctx: PassContext) -> None:
        module = ctx.module
        self._module: Module | None = module if module is not None and len(graphs) == len(module.graphs) else None
        self._last: tuple[Pass, Graph] | None = None
        self._runs: Counter[tuple[Pass, Graph]] = Counter()

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        if self._last is not None and (p != self._last[0] or graph.is_main):
            self._end_pass()  # the main graph comes first in each run of a pass
        self._last = (p, graph)
        self._runs[self._last] += 1

    def finish(self, report: PassReport, ctx: PassContext) -> None:
        self._end_pass()

    def pass_ended(self, module: Module, last: tuple[Pass, Graph]) -> None:
        """Called when a pass has run on all its graphs of ``module``; ``last`` is the last run of it."""

    def words(self, last: tuple[Pass, Graph]) -> str:
        """A pass in words, and how often it has run on the graph, if more than once."""
        times = self._runs[last]
        return f"{print_pass(last[0])}{f' (run {times})' if times > 1 else ''}"

    def _end_pass(self) -> None:
        if self._module is not None and self._last is not None:
            self.pass_ended(self._module, self._last)


class VerifyEach(PassEnds):
    """Verifies the graphs at the start, and after each pass the one it ran on; the error names the pass.

    When a pass has run on all graphs of a module, the whole module is verified.
    """

    def start(self, pipeline: Pipeline, graphs: list[Graph], ctx: PassContext) -> None:
        super().start(pipeline, graphs, ctx)
        for target in graphs if self._module is None else [self._module]:
            self.verify(target, "before the first pass")

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        if self.watches(p):
            self.verify(graph, f"after pass {self.words((p, graph))}")

    def pass_ended(self, module: Module, last: tuple[Pass, Graph]) -> None:
        if self.watches(last[0]):
            self.verify(module, f"after pass {self.words(last)}")

    def watches(self, p: Pass) -> bool:
        """Whether to verify after ``p``."""
        return True

    def verify(self, target: Graph | Module, moment: str) -> None:
        """Verify ``target``; an error begins with the ``moment``."""
        try:
            target.verify()
        except Error as e:
            raise Error(e.code, f"{moment}: {e.message}", e.where) from e


class VerifyAlias(Instrument):
    """After each pass, rebuilds the alias analysis it left and compares the answers."""

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        fault = alias_fault(p, graph, ctx, exact=True)
        if fault is not None:
            raise fault


def alias_fault(p: Pass, graph: Graph, ctx: PassContext, exact: bool) -> Error | None:
    """What is wrong with the alias analysis left by ``p``, if built; only omissions unless ``exact``."""
    db = ctx.built_alias_db(graph)
    try:
        if db is not None:
            db.check(exact)
    except Error as e:
        return Error(e.code, f"after pass {print_pass(p)}: {e.message}", e.where)
    return None


class VerifyChanged(Instrument):
    """Checks that passes say truly whether they changed the graph, and that a second run changes nothing."""

    text = ""

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        self.text = _text(graph)

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        text = _text(graph)
        if changed != (text != self.text):
            claim = "a change, but there is none" if changed else "no change, but there is one"
            raise Error("IRC305", f"pass {print_pass(p)} reports {claim}", graph.name)
        again, after = run_pass(p, graph, ctx), _text(graph)
        if after != text:
            difference = "\n".join(_diff(text, after))
            raise Error("IRC305", f"pass {print_pass(p)} is not idempotent:\n{difference}", graph.name)
        if again:
            raise Error("IRC305", f"pass {print_pass(p)} reports a change again, but there is none", graph.name)


class Timing(Instrument):
    """At the end, prints the time each pass took."""

    def finish(self, report: PassReport, ctx: PassContext) -> None:
        total = sum(run.seconds for run in report.passes)
        width = max((len(run.name) for run in report.passes), default=0)
        self.write("\n".join([
            f"{'pass':<{width}} {'ms':>9} {'%':>4}",
            *(
                f"{run.name:<{width}} {run.seconds * 1e3:>9.2f} {100 * run.seconds / (total or 1):>4.0f}"
                f"{' changed' if run.changed else ''}"
                for run in report.passes
            ),
            f"{'total':<{width}} {total * 1e3:>9.2f}",
        ]))  # fmt: skip


class PrintAfterAll(Instrument):
    """Prints the graph after each pass."""

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        self.write(f"# after {print_pass(p)}{'' if changed else ' (no change)'}\n{graph}")


class PrintAfterChange(PrintAfterAll):
    """Prints the graph after each pass that changed it."""

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        if changed:
            super().after(p, graph, ctx, changed)


class PrintAfterFailure(Instrument):
    """Prints the graph as a failing pass left it."""

    def failed(self, p: Pass, graph: Graph, ctx: PassContext, error: Exception) -> None:
        self.write(f"# {print_pass(p)} failed: {error}\n{graph}")


class Diff(Instrument):
    """Prints what each pass changed, as a unified diff of the text."""

    text = ""

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        self.text = str(graph)

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        if changed:
            self.write("\n".join([f"# {print_pass(p)}", *_diff(self.text, str(graph))]))


class OptimisationLimit(Instrument):
    """Allows only the first ``limit`` transformations, and at the end prints the last one done.

    Bisection over the limit finds the transformation that breaks a program.
    """

    def __init__(self, limit: int, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self.limit = limit

    def start(self, pipeline: Pipeline, graphs: list[Graph], ctx: PassContext) -> None:
        ctx.limit = self.limit

    def finish(self, report: PassReport, ctx: PassContext) -> None:
        done = self.limit - (ctx.limit or 0)
        self.write(f"# {done} transformations; the last: {ctx.last_allowed or 'none'}")


class CrashReproducer(Instrument):
    """Saves the graph that a failing pass was given, and its pipeline text, to ``path`` for ``irc opt``."""

    text = ""

    def __init__(self, path: str | Path, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self.path = Path(path)

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        self.text = str(graph)

    def failed(self, p: Pass, graph: Graph, ctx: PassContext, error: Exception) -> None:
        try:
            with replacing(self.path) as file:
                file.write(f"# irc opt {self.path.name} -p '{print_pipeline((p,))}'\n{self.text}".encode())
        except Error as e:  # what the pass raised matters more
            self.write(f"# {print_pass(p)} failed; the graph before it cannot be saved: {e}")
        else:
            self.write(f"# {print_pass(p)} failed; the graph before it is in {self.path}")


INSTRUMENTS: dict[str, Callable[[], Instrument]] = {
    "diff": Diff,
    "print-after-all": PrintAfterAll,
    "print-after-change": PrintAfterChange,
    "print-after-failure": PrintAfterFailure,
    "timing": Timing,
    "verify-alias": VerifyAlias,
    "verify-changed": VerifyChanged,
    "verify-each": VerifyEach,
}
"""The instruments that need no argument, by name."""


def create_instruments(names: Sequence[str]) -> list[Instrument]:
    """The instruments called ``names``; IRC301 if a name matches no instrument."""
    for name in names:
        if name not in INSTRUMENTS:
            known = list(INSTRUMENTS)
            hint = suggest(name, known)
            raise Error("IRC301", f"no instrument is called {name!r}{hint}; instruments are: {', '.join(known)}")
    return [INSTRUMENTS[name]() for name in names]


def _text(graph: Graph) -> str:
    """The text of all that a pass on ``graph`` may change: for the main graph, the module's functions too."""
    return str(graph.module if graph.is_main else graph)


def _diff(before: str, after: str) -> list[str]:
    return list(difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="", n=2))
