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

from collections.abc import Callable, Iterable


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


MOST_COMPARED = 10_000
"""Names that are looked at for one that was perhaps meant: comparing takes some 10 µs each."""


def did_you_mean(name: object, known: Iterable[str], show: Callable[[str], str] = repr) -> str:
    """``"did you mean 'x'?"`` for the name among ``known`` that is most like ``name``, as ``show`` has it, or ""."""
    import difflib  # needed only once something went wrong
    from itertools import islice

    close = difflib.get_close_matches(str(name), islice(known, MOST_COMPARED), 1)
    return f"did you mean {show(close[0])}?" if close else ""
