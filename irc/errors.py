"""The one exception type that irc raises for anything wrong with its input.

Codes are grouped by the stage that found the problem:

========  ==========================================================
IRC1xx    import: the model file or IR text cannot become a graph
IRC2xx    verify: the graph breaks a rule of the IR
IRC3xx    compile: a pass, the pipeline or lowering cannot go on
IRC4xx    run: the inputs or the execution of a compiled model failed
IRC5xx    file: reading or writing a ``.irc`` or output file failed
========  ==========================================================
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from types import FrameType


class Error(Exception):
    """Base of all irc errors.

    Attributes:
        code: stable identifier such as ``"IRC203"``.
        message: what is wrong and, where known, what to do about it.
        where: the place: a node, value, or ``file:line``; empty if there is none.
    """

    def __init__(self, code: str, message: str, where: str = "") -> None:
        self.code = code
        self.message = message
        self.where = where
        super().__init__(code, message, where)

    def __str__(self) -> str:
        place = f" {self.where}:" if self.where else ""
        return f"{self.code}:{place} {self.message}"


_RAISED = frozenset({"builtins", "irc", "numpy", "onnx"})
"""Packages that define the exceptions of irc and of what it calls."""


def comes_from_outside(error: BaseException) -> bool:
    """Whether ``error`` comes from outside the computation to end it: from a signal handler, say.

    Decided by class: built-in exceptions are irc's own, except `TimeoutError`, which irc never raises.
    """
    return isinstance(error, TimeoutError) or package_of(type(error).__module__) not in _RAISED


def cannot(code: str, what: str, error: Exception, where: str = "") -> Error:
    """An Error that says why ``what`` cannot be done, in the system's words.

    Args:
        code: of the Error.
        what: such as ``"read the file"``.
        error: what was raised: an OSError, or the ValueError for an impossible file name.
        where: the path.
    """
    return Error(code, f"cannot {what}: {getattr(error, 'strerror', None) or error}", where)


def nonsense(error: Exception) -> str:
    """What is wrong with operands and attributes for which a rule or kernel raised ``error``."""
    match error:
        case KeyError(args=(str(name),)):
            return f"attribute {name!r} is missing"
        case KeyError(args=(value,)):
            return f"{value!r} is none of the possible values"
        case IndexError():
            return "an operand has fewer dimensions, or an attribute fewer numbers, than it needs"
        case OverflowError() | MemoryError():
            return "a number is too large"
        case _:
            return repr(error)


def error_text(error: BaseException) -> str:
    """The class and message of an error raised by foreign code."""
    if isinstance(error, Error | SyntaxError):  # the lines of the latter are those that show where
        return str(error) if isinstance(error, Error) else f"SyntaxError: {error}"
    from traceback import format_exception_only

    return format_exception_only(error)[0].strip()


def package_of(module: object) -> str:
    """The outermost package of a module, by its name."""
    return str(module).partition(".")[0]


def last_line(error: BaseException, counts: Callable[[FrameType], bool]) -> str:
    """``file:line`` of the innermost counted frame that ``error`` has passed through; "" if there is none."""
    from traceback import walk_tb

    lines = [f"{frame.f_code.co_filename}:{line}" for frame, line in walk_tb(error.__traceback__) if counts(frame)]
    return lines[-1] if lines else ""


def misfit(what: str, function: object, *arguments: str) -> str:
    """Why ``function``, which is ``what``, cannot be called with such arguments by position; "" if it can.

    It is also "" if that is unknown: functions written in C may not declare what they take.
    """
    from inspect import signature  # needed only for what others have written

    if not callable(function):
        return f"{what} must be a function, not {function!r}"
    try:
        takes = signature(function, follow_wrapped=False)  # what is called, whatever it calls
    except (TypeError, ValueError):
        return ""
    try:
        takes.bind(*arguments)
    except TypeError:
        code = getattr(function, "__code__", None)
        place = "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
        bare = [each.replace(annotation=each.empty) for each in takes.parameters.values()]
        found = takes.replace(parameters=bare, return_annotation=takes.empty)
        return f"{what}{place} must take ({', '.join(arguments)}), not {found}"
    return ""


MOST_COMPARED = 10_000
"""Names that are looked at for one that was perhaps meant: comparing takes some 10 µs each."""


def did_you_mean(name: object, known: Iterable[str], show: Callable[[str], str] = repr, least: float = 0.6) -> str:
    """``"did you mean 'x'?"`` for the name in ``known`` nearest to ``name``, formatted by ``show``; or "".

    ``least`` is the similarity required, from 0 to 1.
    """
    import difflib  # needed only once something went wrong
    from itertools import islice

    close = difflib.get_close_matches(str(name), islice(known, MOST_COMPARED), 1, least)
    return f"did you mean {show(close[0])}?" if close else ""


MOST_LISTED = 20
"""Names that are listed where none is like the one given."""


def suggestion(name: object, known: Collection[str]) -> str:
    """The end of a message: the one of ``known`` most similar to ``name``, or a list of ``known``."""
    listed = ", ".join(map(repr, list(known)[:MOST_LISTED])) + (", ..." if len(known) > MOST_LISTED else "")
    return did_you_mean(name, known) or (f"it has {listed}" if known else "it has none")
