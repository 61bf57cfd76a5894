"""Building graphs from IR text, running them, and interrupting that."""

import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import irc
from irc.ir import Graph, Module, parse_module
from irc.runtime.execution import Counters, Observer, Run
from irc.runtime.model import CompiledModel
from irc.runtime.plan import Plan, lower

T = TypeVar("T")

PACKAGE = str(Path(irc.__file__).parent)


def module_of(text: str, weights: dict[str, np.ndarray], verify: bool = True) -> Module:
    module = parse_module(text, weights)
    if verify:
        module.verify()
    return module


def graph_of(text: str, *, verify: bool = True) -> Graph:
    return module_of(text, {}, verify).main


def model_of(text: str, **weights: np.ndarray) -> CompiledModel:
    return CompiledModel(module_of(text, weights))


def observed_run(observer: Observer | None) -> Run:
    """A run that ``observer`` follows."""
    run = Run()
    run.observer = observer
    return run


def run(text: str, *inputs: Any, counters: Run | None = None, verify: bool = True) -> list[Any]:
    """The outputs of the graph in ``text``, by its plan alone: no checks of inputs, no boundary."""
    return lower(graph_of(text, verify=verify)).run(list(inputs), counters)


def run_plan(plan: Plan, *inputs: Any) -> tuple[list[Any], Counters]:
    counters = Run()
    with np.errstate(all="ignore"):
        return plan.call(inputs, counters), counters


def the_only(kind: type[T], plan: Plan) -> T:
    """The only object of that ``kind`` that the steps of ``plan`` know, through their closures."""
    found: set[T] = set()
    pending: list[Any] = list(plan.code.steps)
    while pending:
        item = pending.pop()
        if isinstance(item, kind):
            found.add(item)
        elif isinstance(item, list | tuple):
            pending.extend(item)
        else:
            pending.extend(cell.cell_contents for cell in getattr(item, "__closure__", None) or ())
    (only,) = found
    return only


def ctrl_c() -> None:
    raise KeyboardInterrupt


def interrupted(action: Callable[[], Any], at: int, files: str = PACKAGE, handler: Callable[[], Any] = ctrl_c) -> bool:
    """Whether a signal before the ``at``-th line that ``action`` runs, in files with such paths, came before its end.

    Only lines with calls count, as Python looks for signals at calls; and not those where a ``with`` begins and ends:
    there it has no line of its own for what the interpreter does.
    """
    lines = 0

    def line(frame: Any, event: str, _: Any) -> Any:
        nonlocal lines
        text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and "(" in text and not text.lstrip().startswith("with "):
            lines += 1
            if lines == at:
                handler()
        return line

    def call(frame: Any, event: str, _: Any) -> Any:
        return line if files in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        action()
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)
    return lines >= at


def f32(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def i64(value: Any) -> np.ndarray:
    return np.array(value, np.int64)


def boolean(value: bool) -> np.ndarray:
    return np.array(value)
