"""Errors of passes: which one raised, at which node, and at which line of source.

The node is the local variable ``node`` of the pass's innermost frame that has one, else the last local variable there
that is a node: a traceback keeps both, so that passes need not say what they are working on.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from traceback import walk_tb
from types import FrameType
from typing import Any

from irc.errors import Error, error_text, last_line, package_of
from irc.ir import Graph, Node
from irc.passes.base import Pass, PassContext, describe
from irc.passes.registry import print_pass

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
