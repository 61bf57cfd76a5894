"""`bisect`: the rewrite, kernel or backend that makes a model wrong, and the smallest such part.

1. The pipeline runs once; the module is kept as it is after each pass. irc without passes, on the interpreter, tells
   what each of these modules should compute. Bisection over them finds the pass.
2. The module before that pass is compared with the one after it, value by value. What the first wrong value is computed
   from, as far as values that are right, is cut out, with recorded values as inputs, and the pass runs on that part
   alone. If this shows nothing, bisection over the rewrites of the pass (`PassContext.allow`) finds one, and the nodes
   that it changes are cut out.
3. The part is made as small as it gets (`irc.tools.shrink`). Bisection over the few rewrites in it names one.

If no pass is to blame, the optimised model runs on the backend and on the interpreter, value by value, and each node,
on its own, in ONNX Runtime or onnx.reference (`irc.tools.check.votes`).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any, cast

from irc.alias import analyze
from irc.compiler import count_nodes, export
from irc.errors import Error, cannot
from irc.fuser.subgraph import is_group
from irc.ir import Module, Node, describe, with_subgraphs
from irc.ops import Effects, effects_of
from irc.passes import FixSizes, Pass, PassManager, Pipeline, Repeat, parse_pipeline, print_pass, print_pipeline
from irc.runtime.backends import AUTO, NUMPY, Backend
from irc.runtime.file import is_saved
from irc.runtime.model import CompiledModel
from irc.support.files import replacing
from irc.support.formatting import count
from irc.tools.archives import as_entries, write_archive
from irc.tools.check import peers
from irc.tools.check.models import FIRST_SIZES, Options, comparable, first_wrong, how_it_differs, runs
from irc.tools.check.oracles import Oracles, Tolerance, difference
from irc.tools.check.votes import PEERS, Vote, votes
from irc.tools.extract import cut_out
from irc.tools.inspection import module_in
from irc.tools.pass_states import Failure, Passed, State, changes, named, run_passes
from irc.tools.random_inputs.draw import seeded_inputs
from irc.tools.random_inputs.fitting import Fitting
from irc.tools.shrink import Part, Parts, Work, fewest, first_difference, opened

REPEATS = 3
"""Runs of a compiled model that are compared: the first reads weights, the second plans memory, the third uses it."""

Values = Mapping[str, Any]

Reference = Callable[[Values], Values]

Shows = Callable[["Part", Pipeline], bool]
"""Whether a part shows a fault when these passes run on it."""


@dataclass(frozen=True)
class Bisection:
    """What is wrong with a model, and the smallest part of it that shows this.

    Attributes:
        model: the path of the model, or its name.
        culprit: ``"pass"``, ``"backend"`` or ``"kernel"``.
        name: the pass as pipelines spell it, the backend, or the operator.
        rewrite: the transformation that is wrong, as the pass reports it; of a pass that reports none, the nodes that
            it changes. Of a backend or a kernel, the node.
        what: what happens then.
        module: the part, as it is before the pass.
        after: that part as the pass leaves it, if the pass does not do so where the part is all that there is.
        feeds: its inputs; None if they do not matter.
        pipeline: the passes that show it on the part.
        backend: what runs it.
        nodes: operators of the part.
        compilations: pipelines that ran, and models that were lowered without one, to find this.
        runs: of models, likewise.
        files: what was written.
        command: shows it again, from the files.
    """

    model: str
    culprit: str
    name: str
    rewrite: str
    what: str
    module: Module
    feeds: Values | None
    pipeline: Pipeline
    backend: str
    nodes: int
    compilations: int
    runs: int
    after: Module | None = None
    files: tuple[str, ...] = ()
    command: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All but the part itself, as JSON has it."""
        found = {key: value for key, value in vars(self).items() if key not in ("module", "after", "feeds", "pipeline")}
        return {**found, "passes": self.passes}

    @property
    def passes(self) -> str:
        """The text of the pipeline."""
        return print_pipeline(self.pipeline) or "none"

    def __str__(self) -> str:
        by = {"pass": f"pass {self.name}", "backend": f"backend {self.name}", "kernel": f"the kernel of {self.name}"}
        lines = [by[self.culprit], f"  at   {self.rewrite}", f"  what {self.what}"]
        effort = f"{count(self.compilations, 'compilation')} and {count(self.runs, 'run')}"
        lines.append(f"  left {count(self.nodes, 'operator')} after {effort}")
        lines += [f"  file {path}" for path in self.files]
        return "\n".join([*lines, *([f"  show {self.command}"] if self.command else [])])


def bisect(
    model: Any,
    passes: str | Sequence[Pass | Repeat | str] = "default",
    *,
    sizes: Mapping[str, int] | None = None,
    given: Values | None = None,
    dims: Mapping[str, int] | None = None,
    seeds: Sequence[int] = (0, 1),
    reference: Reference | None = None,
    backend: str | Backend = AUTO,
    directory: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Bisection:
    """Find the pass, and its one rewrite, that makes a model wrong; or the wrong backend or kernel.

    A pass is wrong if it raises or breaks a rule of the IR, or if what it leaves cannot be lowered, fails in a run, or
    gives other results than irc does without passes. A backend is wrong if it gives other results than the interpreter,
    a kernel if ONNX Runtime and onnx.reference say so.

    Args:
        model: what `irc.compile` takes or gives, or the path of a ``.irc`` file. It is not changed.
        passes: as of `irc.compile`.
        sizes: of named dimensions that the model is compiled for, as of `irc.compile`.
        given: values of inputs by name; others are made up.
        dims: sizes of named dimensions of the inputs that are made up.
        seeds: one set of inputs each.
        reference: tells what right outputs are, by name, instead of irc without passes.
        backend: what computes the compiled model.
        directory: where to write the part that is left: ``bisect-NAME.onnx``, or ``.irc`` where ONNX cannot say it,
            ``.npz`` with its inputs, and ``.txt`` with what was found and the command that shows it. None: nowhere.
        progress: called with a few words now and then.

    Raises:
        Error: IRC333 nothing is wrong; IRC332 the results are random; IRC501 the directory cannot be written; others if
            the model cannot be imported, or fails without passes, too.
    """
    if directory is not None:
        check_folder(directory)
    pipeline = PassManager(passes).pipeline
    search = _Search(model, (FixSizes.of(sizes), *pipeline) if sizes else pipeline, backend, reference, Work(progress))
    found = search.find({"seeds": seeds, "sizes": dict(dims or {}), "given": dict(given or {})})
    return found if directory is None else write(found, directory)


class _Search:
    """One search for a fault."""

    def __init__(
        self, source: Any, pipeline: Pipeline, backend: str | Backend, reference: Reference | None, work: Work
    ) -> None:
        self.source, self.pipeline, self.backend, self.reference, self.work = source, pipeline, backend, reference, work
        work.tell("importing")
        module, self.name = module_in(source)
        self.base = module.copy()
        self.base.verify()
        self.is_whole = True
        self.proto = peers.read(source) if _is_onnx(source) else None
        self.tolerance = Tolerance.of(self.base)
        self.is_unlike = False

    def find(self, options: Options) -> Bisection:
        """What is wrong; Error IRC333 if nothing is."""
        passed = self.passed()
        if passed.failure is not None and passed.last is not None:  # for which values do not matter
            before = passed.states[-1].module if passed.states else self.base
            return self.of_pass(before, passed.last, passed.failure, passed.module, None, {})
        sets = self.inputs(options)
        seen: list[tuple[Values, Values]] = []
        try:
            for feeds, expected in sets:
                if not seen and _random_nodes(self.base):
                    feeds, expected = self.without_random(feeds)
                    sets.close()
                    passed = self.passed()
                seen.append((feeds, expected))
                if self.reference is not None:
                    wanted = self.reference(feeds)
                    self.is_unlike = self.compared(expected, wanted) is not None
                    expected = expected if self.is_unlike else wanted
                if (found := self.of_states(passed.states, feeds, expected)) is not None:
                    return found
        except Error as error:
            if seen or error.code[:4] != "IRC4":
                raise
            return self.of_crash(options, error)
        return self.of_others(passed.module, seen)

    def passed(self) -> Passed:
        """Run the whole pipeline."""
        self.work.tell("running the passes")
        return run_passes(self.base, self.pipeline, self.work)

    def inputs(self, options: Options) -> Generator[tuple[Values, Values]]:
        """Inputs, and what the model computes of them without passes."""
        self.work.tell("running without passes")
        self.work.compilations += 1
        for run in runs(CompiledModel(self.base.copy(), backend=NUMPY), self.base, **options):
            self.work.runs += 1
            yield run.feeds, run.results

    def without_random(self, feeds: Values) -> tuple[Values, Values]:
        """Let the model be given what random operators gave in one run; its inputs and results then."""
        parts = Parts(self.base, feeds, self.work)
        random = set(_random_nodes(self.base))
        part = parts.of([node for node in parts.nodes if node not in random])
        if part is None or _random_nodes(part.module):
            why = "its results are random, by an operator inside of a loop, branch or function"
            raise Error("IRC332", f"the model cannot be bisected: {why}", self.name)
        self.base, self.is_whole = part.module, False
        return part.feeds or {}, part.expected

    # -- what is wrong ---------------------------------------------------

    def failure(
        self, module: Module, feeds: Values, expected: Values, backend: str | Backend = NUMPY, repeats: int = 1
    ) -> Failure | None:
        """How ``module``, lowered as it is, is wrong on ``feeds``; None if it gives what is ``expected``."""
        known = {value.name for value in module.main.inputs}
        feeds = {name: value for name, value in feeds.items() if name in known}
        try:
            model = CompiledModel(module.copy(), backend=backend)
            for _ in range(repeats):
                self.work.runs += 1
                if (found := self.compared(model.run(feeds), expected)) is not None:
                    return found
        except Error as error:
            return Failure("fails", error.code, str(error))
        return None

    def compared(self, found: Values, expected: Values) -> Failure | None:
        """How outputs differ; None if they do not."""
        for name, value in expected.items():
            if name not in found:
                return Failure("different", "", f"there is no output {name!r}")
            if not difference(found[name], value, self.tolerance)[1]:
                how = how_it_differs(found[name], value, self.tolerance)
                return Failure("different", "", f"output {name!r} {how}, compared with irc without passes")
        return None

    def after(self, part: Part, pipeline: Pipeline, limit: int | None = None) -> tuple[Failure | None, Passed]:
        """How ``part`` is wrong after ``pipeline``."""
        passed = run_passes(part.module, pipeline, self.work, limit)
        if passed.failure is not None or part.feeds is None:
            return passed.failure, passed
        return self.failure(passed.module, part.feeds, part.expected), passed

    def shows(self, found: Bisection) -> bool:
        """Whether the model shows what was ``found``."""
        if found.culprit == "kernel":
            return True
        expected = {} if found.feeds is None else self.work.run(self.base, found.feeds)
        passed = run_passes(self.base, self.pipeline, self.work)
        tries = REPEATS if self.backend != NUMPY else 1
        wrong = passed.failure or self.failure(passed.module, found.feeds or {}, expected, self.backend, tries)
        return wrong is not None

    def result(self, culprit: str, name: str, rewrite: str, what: str, part: Part, passes: Pipeline) -> Bisection:
        """What was found."""
        return Bisection(
            self.name,
            culprit,
            name,
            rewrite,
            what,
            part.module,
            part.feeds,
            passes,
            name if culprit == "backend" else NUMPY,
            count_nodes(part.module.main),
            self.work.compilations,
            self.work.runs,
        )

    # -- passes ----------------------------------------------------------

    def of_states(self, states: Sequence[State], feeds: Values, expected: Values) -> Bisection | None:
        """The pass that makes results wrong, by bisection over the modules after each; None if none does."""
        modules = [self.base, *(state.module for state in states)]
        wrong = self.failure(modules[-1], feeds, expected)
        if wrong is None:
            return None
        seen = {len(states): wrong}

        def is_wrong(number: int) -> bool:
            self.work.tell(f"bisecting {count(len(states), 'pass', 'passes')}")
            found = self.failure(modules[number], feeds, expected)
            return found is not None and bool(seen.setdefault(number, found))

        at = first_wrong(len(states), is_wrong)
        return self.of_pass(modules[at - 1], states[at - 1].of, seen[at], modules[at], feeds, expected)

    def of_pass(
        self, before: Module, p: Pass, wrong: Failure, after: Module, feeds: Values | None, expected: Values
    ) -> Bisection:
        """The rewrite of ``p`` that makes ``after`` wrong while ``before`` is right; its smallest part.

        Passes run on parts if these show the fault. If not, as the pass looks at more than the part, the same part of
        the module before the rewrite is compared with that of the module after it.
        """

        def reruns(part: Part, pipeline: Pipeline) -> bool:
            self.work.tell(f"shrinking, {count(count_nodes(part.module.main), 'operator')} left")
            return wrong.like(self.after(part, pipeline)[0])

        def differs(part: Part, pipeline: Pipeline) -> bool:
            self.work.tell(f"comparing parts, {count(count_nodes(part.module.main), 'operator')} left")
            other = self.same_part(part, after)
            return other is not None and self.failure(other, part.feeds or {}, part.expected) is not None

        pipeline: Pipeline = (p,)
        parts, is_result = Parts(before, feeds, self.work), wrong.is_of_results
        nodes = self.behind_first_wrong(parts, after) if is_result else []
        part, other, rewrite = grown(parts, nodes, partial(_on, reruns, pipeline), 0, 0), None, ""
        if part is None:
            other = grown(parts, nodes, partial(_on, differs, ()), 0, 0)
            part = None if other is None else grown(parts, nodes, partial(_on, reruns, pipeline), 1, 4)
        if part is None:
            whole = Part(before, None if feeds is None else dict(feeds), dict(expected))
            failure, passed = self.after(whole, pipeline)
            # Else the fault depends on what passes did before, and the pass alone does not show it.
            is_alone = wrong.like(failure)
            if other is not None and is_alone:
                rewrite = _at(passed.rewrites, nodes)
            if is_alone and not rewrite:
                parts, after, nodes, rewrite = self.by_rewrites(whole, pipeline, passed)
                part = grown(parts, nodes, partial(_on, reruns, pipeline), 0, 4)
            if part is None and other is None:
                part = grown(parts, nodes or parts.nodes, partial(_on, reruns, pipeline))
        if part is None and other is None:
            part, pipeline = Part(self.base, None if feeds is None else dict(feeds), dict(expected)), self.pipeline
        if part is not None:
            part, pipeline = self.smallest(part, pipeline, reruns)
        smallest = part or other
        kernel = self.kernel_in(smallest, next(iter(PEERS)), True) if is_result and smallest is not None else None
        if kernel is not None:  # the pass has replaced what is wrong by something right
            return kernel
        if part is not None:
            rewrite, found = self.rewrite_in(part, pipeline, wrong)
            return self.result("pass", print_pass(p), rewrite, found.message, part, pipeline)
        assert other is not None
        part = self.fewest(other, partial(_on, differs, ()))
        made = self.same_part(part, after)
        found = wrong if made is None else self.failure(made, part.feeds or {}, part.expected) or wrong
        rewrite = rewrite or str(changes(before, after))
        return replace(self.result("pass", print_pass(p), rewrite, found.message, part, self.pipeline), after=made)

    def same_part(self, part: Part, module: Module) -> Module | None:
        """The part of ``module`` with the inputs and outputs of ``part``; None if it has not all of them."""
        inputs, outputs = ([v.name for v in values] for values in (part.module.main.inputs, part.module.main.outputs))
        try:
            return cut_out(module, inputs, outputs, only_needed=True)
        except Error:
            return None

    def behind_first_wrong(self, parts: Parts, after: Module) -> list[Node]:
        """The nodes from which the first value comes that differs in ``after``, as far as values that do not."""
        db = analyze(after.main, after)
        known = {v.name for node in parts.nodes for v in node.outputs if not parts.db.has_writers(v)}
        shared = [v for v in comparable(after.main) if v.name in known and not db.has_writers(v)]
        names = [value.name for value in shared]

        def differ(chosen: Sequence[str]) -> list[bool]:
            self.work.tell("comparing values")
            expected = parts.values(chosen)
            try:
                found = self.work.run(cut_out(after, None, chosen), parts.known)
            except Error:  # a later value may be what fails
                half = len(chosen) // 2
                return [*(differ(chosen[:half]) if half else []), *[True] * (len(chosen) - half)]
            return [not difference(found[name], expected[name], self.tolerance)[1] for name in chosen]

        return self.behind(parts, names, [_bytes(value.type) for value in shared], differ)

    def behind(
        self, parts: Parts, names: Sequence[str], sizes: Sequence[int], differ: Callable[[Sequence[str]], list[bool]]
    ) -> list[Node]:
        """The nodes that lead to the first wrong value of ``names``, as far as the values before it."""
        try:
            at = first_difference(names, sizes, differ)
        except Error:  # one of them is nothing that a model may return
            return []
        right = set(names[:at])
        pending = [] if at is None else [parts.module.main.value(names[at])]
        found: dict[Node, None] = {}
        while pending:
            node = pending.pop().node
            if node is not None and node not in found:
                found[node] = None
                pending += [value for value in parts.reads(node) if value.name not in right]
        return list(found)

    def by_rewrites(self, whole: Part, pipeline: Pipeline, passed: Passed) -> tuple[Parts, Module, list[Node], str]:
        """The module before the wrong rewrite, the one after it, the changed nodes, and its description.

        ``passed`` is the run of the pass with all rewrites.
        """
        seen = {len(passed.rewrites): passed}

        def is_wrong(limit: int) -> bool:
            self.work.tell(f"bisecting {count(len(passed.rewrites), 'rewrite')}")
            failure, seen[limit] = self.after(whole, pipeline, limit)
            return failure is not None

        before, after, words = whole.module, passed, ""
        if passed.rewrites and not is_wrong(0):  # else the pass does not ask
            at = first_wrong(len(passed.rewrites), is_wrong)
            before, after, words = seen[at - 1].module, seen[at], seen[at].rewrites[-1]
        return Parts(before, whole.feeds, self.work), after.module, changes(before, after.module).nodes, words

    def rewrite_in(self, part: Part, pipeline: Pipeline, wrong: Failure) -> tuple[str, Failure]:
        """The rewrite that makes ``part`` wrong, in words, and how it is wrong then."""
        failure, passed = self.after(part, pipeline)
        at = len(passed.rewrites) if len(pipeline) == 1 else 0
        seen = {at: passed}

        def is_wrong(limit: int) -> bool:
            found, seen[limit] = self.after(part, pipeline, limit)
            return found is not None

        if at and not is_wrong(0):
            return seen[first_wrong(at, is_wrong)].rewrites[-1], failure or wrong
        return str(changes(part.module, passed.module)) or named(list(part.module.main.nodes)), failure or wrong

    def smallest(self, part: Part, pipeline: Pipeline, shows: Shows) -> tuple[Part, Pipeline]:
        """The smallest part of ``part`` that is found, and the pipeline that shows the fault on it."""
        while True:
            part = self.fewest(part, partial(_on, shows, pipeline))
            found = self.opened_up(part, pipeline, shows)
            if found is None:
                return part, pipeline
            part, pipeline = found

    def opened_up(self, part: Part, pipeline: Pipeline, shows: Shows) -> tuple[Part, Pipeline] | None:
        """``part`` with what a node runs in place of the node; None if no such part shows the fault."""
        for at, node in enumerate(part.module.main.nodes):
            wanted = (*parse_pipeline("fuse"), *pipeline) if is_group(node) else pipeline
            for module in opened(part.module, at):
                smaller = self.recomputed(module, part)
                if smaller is not None and shows(smaller, wanted):
                    return smaller, wanted
        return None

    def fewest(self, part: Part, shows: Callable[[Part], bool]) -> Part:
        """``part`` without nodes and outputs that are not needed to show the fault."""
        return fewest(part, Parts(part.module, part.feeds, self.work, part.expected), shows)

    def recomputed(self, module: Module, part: Part) -> Part | None:
        """``module``, which was made of ``part``, as a part, with what it computes without passes."""
        try:
            module.verify()
            return Part(module, part.feeds, {} if part.feeds is None else self.work.run(module, part.feeds))
        except Error:
            return None

    # -- backends --------------------------------------------------------

    def of_others(self, module: Module, seen: Sequence[tuple[Values, Values]]) -> Bisection:
        """The wrong backend or kernel; ``module`` is what passes leave. Error IRC333 if nothing is wrong."""
        for feeds, expected in seen:
            for backend in dict.fromkeys((NUMPY, self.backend)):
                wrong = self.failure(module, feeds, expected, backend, REPEATS)
                if wrong is not None:
                    return self.of_backend(module, feeds, wrong, backend)
            if (found := self.of_kernel(feeds)) is not None:
                return found
        if self.is_unlike:
            message = "irc gives other results than the reference without any pass, but no kernel is found to be wrong"
            raise Error("IRC333", message, self.name)
        right = f"on {count(len(seen), 'set')} of inputs, the compiled model computes what irc without passes does"
        raise Error("IRC333", f"nothing is wrong: {right}", self.name)

    def of_backend(self, module: Module, feeds: Values, wrong: Failure, backend: str | Backend) -> Bisection:
        """The node of ``module`` that ``backend`` computes otherwise than the interpreter does."""

        def shows(part: Part, pipeline: Pipeline) -> bool:
            self.work.tell(f"shrinking, {count(count_nodes(part.module.main), 'operator')} left")
            passed = run_passes(part.module, pipeline, self.work)
            found = self.failure(passed.module, part.feeds or {}, part.expected, backend, REPEATS)
            return passed.failure is None and wrong.like(found)

        def differ(chosen: Sequence[str]) -> list[bool]:
            expected = parts.values(chosen)
            part = cut_out(module, None, chosen)
            inputs = {value.name for value in part.main.inputs}
            model = CompiledModel(part, backend=backend)
            self.work.compilations += 1
            feeds = {name: value for name, value in parts.known.items() if name in inputs}
            found: dict[str, Any] = {}
            for _ in range(REPEATS):
                self.work.runs += 1
                found = model.run(feeds)
            return [not difference(found[name], expected[name], self.tolerance)[1] for name in chosen]

        parts = Parts(module, feeds, self.work)
        values = comparable(module.main)
        names = [value.name for value in values]
        nodes = self.behind(parts, names, [_bytes(value.type) for value in values], differ) or parts.nodes
        part = grown(parts, nodes, lambda part: shows(part, ())) or parts.of(parts.nodes)
        if part is None:
            raise Error(
                "IRC333", f"the backend is wrong ({wrong.message}), but no part of the model shows it", self.name
            )
        kernel = self.kernel_in(part, next(iter(PEERS)), True)
        if kernel is not None:  # the backend has code of its own for what the kernel computes wrong
            return kernel
        part, pipeline = self.smallest(part, (), shows)
        used = CompiledModel(part.module.copy(), backend=backend).backend
        found = self.failure(
            run_passes(part.module, pipeline, self.work).module, part.feeds or {}, part.expected, backend
        )
        found = found or wrong
        words = named(list(part.module.main.nodes))
        return self.result("backend", used.name if used else NUMPY, words, found.message, part, pipeline)

    # -- kernels ---------------------------------------------------------

    def of_kernel(self, feeds: Values) -> Bisection | None:
        """The node that irc computes otherwise than others do; None if there is none, or nobody to ask."""
        self.work.tell("asking others about each operator")
        proto, folder = self.as_onnx(self.base)
        if proto is None:
            return None
        names = [value.name for value in self.base.main.outputs]
        oracle, expected = Oracles(self.source if folder else proto).ask(feeds, names)
        name = oracle.name if oracle.name in PEERS else next(iter(PEERS))
        if oracle.name in PEERS and self.compared(self.work.run(self.base, feeds), expected) is None:
            return None
        vote = self.against(proto, folder, feeds, name)
        if vote is None:
            return None
        parts = Parts(self.base, feeds, self.work)
        value = self.base.main.value(vote.value) if self.base.main.has_value(vote.value) else None
        node = value.node.ancestor_in(self.base.main.block) if value is not None and value.node is not None else None
        part = parts.of(parts.nodes if node is None else [node])
        found = None if part is None else self.kernel_in(part, name)
        return found or self.of_vote(vote, part or Part(self.base, dict(feeds), {}))

    def against(self, proto: Any, folder: str, feeds: Values, oracle: str) -> Vote | None:
        """The first vote on a node of a model that is not for irc; ``oracle`` is who is asked first."""
        self.work.compilations += 1
        self.work.runs += 1
        return next((v for v in votes(proto, folder, feeds, self.tolerance, oracle) if not v.irc_is_right), None)

    def kernel_in(self, part: Part, oracle: str, decided: bool = False) -> Bisection | None:
        """The kernel that is wrong in ``part``, and the smallest part of that; None if there is none.

        ``decided``: whether somebody must agree with ``oracle``.
        """
        found: list[Vote] = []

        def shows(part: Part, pipeline: Pipeline) -> bool:
            alone, _ = self.as_onnx(part.module)
            vote = None if alone is None else self.against(alone, "", part.feeds or {}, oracle)
            if vote is None or (decided and vote.irc_is_right is None):
                return False
            found.append(vote)
            return True

        if not shows(part, ()):
            return None
        part, _ = self.smallest(part, (), shows)
        return self.of_vote(found[-1], part)

    def of_vote(self, vote: Vote, part: Part) -> Bisection:
        """What a vote says."""
        who = f"{vote.by} agrees with {vote.oracle}" if vote.by else f"{vote.oracle} computes something else"
        what = f"%{vote.value} has max error {vote.error:.1e} relative to max|ref|; {who}"
        return self.result("kernel", vote.operator, named(list(part.module.main.nodes)), what, part, ())

    def of_crash(self, options: Options, error: Error) -> Bisection:
        """The node that irc cannot run without passes, but others can; ``error`` if they cannot either."""
        given = options.get("given", {})
        fitting = Fitting(CompiledModel(self.base.copy(), backend=NUMPY), given, options.get("sizes", {}))
        sizes = dict(zip(fitting.free, FIRST_SIZES * len(fitting.free)))
        try:
            feeds = {**seeded_inputs(fitting.made_up, 0, {**fitting.stated, **sizes}), **given}
        except Error:
            raise error from None
        parts = Parts(self.base, feeds, self.work)
        block = self.base.main.block

        def fails(number: int) -> bool:
            inside = set(parts.nodes[:number])
            made = [value for node in parts.nodes[:number] for value in node.outputs]
            edge = [v.name for v in made if not v.has_uses or {u.ancestor_in(block) for u in v.iter_users()} - inside]
            return self.failure(cut_out(self.base, None, edge), feeds, {}) is not None

        try:
            node = parts.nodes[first_wrong(len(parts.nodes), fails) - 1]
        except Error:
            raise error from None
        part = parts.of([node], [value.name for value in node.outputs], record_outputs=False)
        proto = None if part is None else self.as_onnx(part.module)[0]
        if part is None or proto is None:
            raise error
        for name, peer in PEERS.items():
            try:
                peer(proto, "")(part.feeds or {}, None)
            except peers.Unable:
                continue
            what = f"{error}; {name} computes it"
            return self.result("kernel", node.kind, named(list(part.module.main.nodes)), what, part, ())
        raise error

    def as_onnx(self, module: Module) -> tuple[Any, str]:
        """``module`` as a ``ModelProto``, and the folder of its data; None if ONNX cannot express it."""
        if module is self.base and self.is_whole and self.proto is not None:
            return self.proto
        from irc.frontend.onnx_export import export_model

        try:
            return export_model(module), ""
        except Error:
            return None, ""


def grown(
    parts: Parts, nodes: Collection[Node], shows: Callable[[Part], bool], least: int = 0, most: int | None = None
) -> Part | None:
    """``nodes`` with ``least`` to ``most`` uses around them, as a part that ``shows`` the fault; or None."""
    steps, size = least, 0
    while nodes and (most is None or steps <= most):
        inside = parts.around(nodes, steps)
        if len(inside) == size:
            return None
        part = parts.of(inside)
        if part is not None and shows(part):
            return part
        steps, size = max(1, 2 * steps), len(inside)
    return None


def _at(rewrites: Sequence[str], nodes: Iterable[Node]) -> str:
    """The only one of ``rewrites`` that is of one of ``nodes``; "" if there are none, or several."""
    words = [describe(node) for node in nodes]
    found = [each for each in rewrites if any(each.endswith(f" at {node}") for node in words)]
    return found[0] if len(found) == 1 else ""


def _on(shows: Shows, pipeline: Pipeline, part: Part) -> bool:
    return shows(part, pipeline)


def _random_nodes(module: Module) -> list[Node]:
    return [node for node in with_subgraphs(*module.graphs.values()) if effects_of(node) & Effects.RANDOM]


def _bytes(type: Any) -> int:
    """About how much memory a value of ``type`` takes: sizes that are not known count as 16."""
    sizes = [d if isinstance(d, int) else 16 for d in type.shape or (1 << 16,)]
    return prod(sizes) * (type.dtype.bits // 8 or 1 if type.dtype is not None else 4)


def _is_onnx(source: Any) -> bool:
    """Whether ``source``, which irc has imported, is an ONNX model or the path of one."""
    if not isinstance(source, str | os.PathLike):
        return type(source).__name__ == "ModelProto"
    return not is_saved(cast("str | os.PathLike[str]", source))


# -- files ---------------------------------------------------------------------


def check_folder(directory: str | os.PathLike[str]) -> None:
    """Raise IRC501 unless files can be written into ``directory``."""
    path = os.fsdecode(directory)
    try:
        is_folder = os.path.isdir(path)
    except ValueError as error:  # no name of a file
        raise cannot("IRC501", "write files", error, path) from None
    if not is_folder:
        raise Error("IRC501", "there is no such folder: make it first", path)
    if not os.access(path, os.W_OK | os.X_OK):
        raise Error("IRC501", "this folder may not be written", path)


def write(
    found: Bisection,
    directory: str | os.PathLike[str],
    options: Sequence[str] = (),
    path: str = "",
    inputs: Sequence[str] = (),
) -> Bisection:
    """Write the finding into ``directory``: the part, its inputs, the fault and a command to show it.

    All files are written, or none.

    Args:
        found: what to write.
        directory: where to.
        options: further ones of the command.
        path: of the model, if that is not what it is called.
        inputs: options that say what the model is run on, for a fault that only the whole model shows.
    """
    path = path or found.model
    stem = "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(path).stem) or "model"
    start = str(Path(os.fsdecode(directory)) / f"bisect-{stem}")
    files: list[str] = []
    try:
        files.append(_write_model(found, start))
        command = ["irc", "bisect", files[0], "-p", found.passes, *options]
        command += [] if found.backend == NUMPY else ["--backend", found.backend]
        if found.feeds:
            files.append(f"{start}.npz")
            write_archive(files[-1], as_entries(found.feeds))
            command += ["-i", files[-1]]
        if found.after is not None:  # of which the pass makes nothing wrong: that takes the whole model
            files.append(_write_model(replace(found, module=found.after), f"{start}-after"))
            whole = ["irc", "bisect", path, "-p", found.passes, *options, *inputs]
            command = whole if os.path.isfile(path) else []
        written = replace(found, files=(*files, f"{start}.txt"), command=shlex.join(command))
        with replacing(f"{start}.txt") as file:
            file.write(f"{written}\n".encode())
    except Error:
        for each in files:
            Path(each).unlink(missing_ok=True)
        raise
    return written


def _write_model(found: Bisection, start: str) -> str:
    """Write the part as ONNX if what is read back shows the fault, else as ``.irc``; the path."""
    path = f"{start}.onnx"
    try:
        export(found.module, path)
        if found.after is not None or _Search(path, found.pipeline, found.backend, None, Work()).shows(found):
            return path
    except Error as error:
        if error.code == "IRC501":
            raise
    Path(path).unlink(missing_ok=True)
    CompiledModel(found.module.copy(), backend=NUMPY).save(f"{start}.irc")
    return f"{start}.irc"
