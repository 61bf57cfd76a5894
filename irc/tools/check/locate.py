"""After which pass a compiled model is wrong, and which value is first: the pipeline runs again, up to some pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from irc.compiler import load_module
from irc.errors import Error
from irc.ir import Graph, Module
from irc.passes import Pass, PassManager
from irc.passes.faults import with_note
from irc.passes.instruments import PassEnds
from irc.runtime.model import CompiledModel
from irc.tools.check.models import CheckResult, comparable, compare, plain_runs
from irc.tools.check.oracles import values_of
from irc.tools.check.tolerance import Tolerance, difference

AT_ONCE = 32
"""How many intermediate values are compared at once: all of them may not fit in memory."""


class Wanted(NamedTuple):
    """What a right model computes.

    Attributes:
        feeds: the inputs by name.
        outputs: the outputs by name.
        tolerance: how far they may be off.
    """

    feeds: Mapping[str, Any]
    outputs: Mapping[str, Any]
    tolerance: Tolerance


def check_compiled(model: CompiledModel, source: Any, manager: PassManager, **options: Any) -> CheckResult:
    """As `irc.check.check_model` with these ``options``; an error also names the pass that made the model wrong.

    Args:
        model: what ``manager`` made of ``source``.
        source: as `irc.compile` takes it.
        manager: the pipeline.
        options: of `irc.check.check_model`.
    """
    try:
        found = compare(model, source, **options)
    except Error as error:
        wanted = _failing(model, source, options) if error.code.startswith("IRC4") else None
        if wanted is None:
            raise
        raise Error(error.code, f"{error.message}; {blame(wanted, source, manager)}", error.where) from error
    if isinstance(found, CheckResult):
        return found
    error = found.error()
    wanted = Wanted(found.run.feeds, found.expected, found.tolerance)
    raise Error(error.code, f"{error.message}; {blame(wanted, source, manager)}", error.where)


def _failing(model: CompiledModel, source: Any, options: Mapping[str, Any]) -> Wanted | None:
    """Inputs on which ``model`` fails, but not irc without passes, and what that computes; None if both fail."""
    with suppress(Error):
        for run in plain_runs(source, **options):
            try:
                model.run(run.feeds)
            except Error:
                return Wanted(run.feeds, run.results, Tolerance.of(source))
    return None


def blame(wanted: Wanted, source: Any, manager: PassManager) -> str:
    """The pass after which a model is wrong, and the first value that it changes, in words.

    Args:
        wanted: what the model, as ``manager`` makes it of ``source``, does not compute.
        source: as `irc.compile` takes it.
        manager: the pipeline.
    """
    prefixes = _Prefixes(source, manager)
    try:
        names = prefixes.passes()
        plain = prefixes.after(0)
        if not _agrees(plain, wanted):  # other oracles may round otherwise: did passes change what irc computes?
            wanted = wanted._replace(outputs=CompiledModel(prefixes.after(0)).run(wanted.feeds))
            if _agrees(prefixes.after(len(names)), wanted):
                return "it is so without any pass, too"
        elif _agrees(prefixes.after(len(names)), wanted):
            return "compiled again, it is right: a pass or an instrument does not do the same each time"
        at = first_wrong(len(names), lambda count: not _agrees(prefixes.after(count), wanted))
        value = _first_changed(prefixes.after(at - 1), prefixes.after(at), wanted)
    except Error as error:
        return f"the pass that made it so is not known, as compiling it again fails: {error}"
    first = f", which changes {value} first" if value else ""
    return f"it is right before pass {names[at - 1]}, and wrong after it{first}"


def since_pass(error: Error, source: Any, manager: PassManager) -> Error | None:
    """The ``error`` of lowering what ``manager`` made of ``source``, with the pass since which it is raised.

    None if the model cannot be lowered without passes either.
    """
    prefixes = _Prefixes(source, manager)
    try:
        names = prefixes.passes()
        if not _is_lowered(prefixes.after(0)) or _is_lowered(prefixes.after(len(names))):
            return None
        at = first_wrong(len(names), lambda count: not _is_lowered(prefixes.after(count)))
    except Error:
        return None
    return Error(error.code, with_note(error.message, f"since pass {names[at - 1]}"), error.where)


def _is_lowered(module: Module) -> bool:
    try:
        CompiledModel(module)
    except Error:
        return False
    return True


def first_wrong(count: int, is_wrong: Callable[[int], bool]) -> int:
    """A number up to ``count`` that is wrong while the one before is not. (``count`` is wrong, and 0 is not.)"""
    right, wrong = 0, count
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_wrong(middle):
            wrong = middle
        else:
            right = middle
    return wrong


def _agrees(module: Module, wanted: Wanted) -> bool:
    """Whether ``module`` computes what is wanted; one that cannot run does not."""
    try:
        found = CompiledModel(module).run(wanted.feeds)
    except Error:
        return False
    return all(difference(found[name], value, wanted.tolerance)[1] for name, value in wanted.outputs.items())


def _first_changed(before: Module, after: Module, wanted: Wanted) -> str:
    """The first value, in the order of ``after``, that both have and that differs, with its operator; "" if none."""
    known = {value.name for value in comparable(before.main)}
    shared = [value for value in comparable(after.main) if value.name in known]
    for start in range(0, len(shared), AT_ONCE):
        values = shared[start : start + AT_ONCE]
        names = [value.name for value in values]
        try:
            found, expected = (values_of(module.main, wanted.feeds, names) for module in (after, before))
        except Error:  # one of them cannot be computed, or is nothing that a model may return
            return ""
        for value in values:
            if not difference(found[value.name], expected[value.name], wanted.tolerance)[1]:
                return f"%{value.name}, of {value.node.kind if value.node else 'input'},"
    return ""


# -- the pipeline, up to some pass ------------------------------------------------


class _Stopped(BaseException):
    """The pipeline has come as far as it should. (No Exception: it is no failure of an instrument.)"""


class _Counted(PassEnds):
    """Notes the names of passes that have run, and ends the pipeline after ``count`` of them (None: never)."""

    def __init__(self, count: int | None) -> None:
        super().__init__()
        self.count = count
        self.names: list[str] = []

    def pass_ended(self, module: Module, last: tuple[Pass, Graph]) -> None:
        """Note the pass; stop if it is the last one to run."""
        self.names.append(self.words(last))
        if len(self.names) == self.count:
            raise _Stopped


class _Prefixes:
    """A model after the first passes of a pipeline, compiled anew each time."""

    def __init__(self, source: Any, manager: PassManager) -> None:
        self._source = source
        self._manager = manager

    def passes(self) -> list[str]:
        """The passes that run, in words and in order: those of groups in each round."""
        return self._run(load_module(self._source)[0], None)

    def after(self, count: int) -> Module:
        """The model after the first ``count`` of them."""
        module, _ = load_module(self._source)
        if count:
            with suppress(_Stopped):
                self._run(module, count)
        return module

    def _run(self, module: Module, count: int | None) -> list[str]:
        counted = _Counted(count)
        self._manager.watched_by([counted]).run(module)
        return counted.names
