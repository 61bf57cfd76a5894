"""irc: a compiler toolkit for a graph IR, with alias analysis at its heart.

Importing it imports next to nothing, ``typing`` included: names are looked up when they are first asked for. So the
command can be interrupted from its first line on without a traceback, and says what its version is at once.
"""

from irc.late import put_off

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from irc import alias as alias
    from irc import backend as backend
    from irc import check as check
    from irc import demo as demo
    from irc import frontend as frontend
    from irc import fuser as fuser
    from irc import ir as ir
    from irc import passes as passes
    from irc import runtime as runtime
    from irc.compiler import compile as compile
    from irc.errors import Error as Error
    from irc.exporting import export as export
    from irc.runtime.files.file import load as load
    from irc.runtime.guards.limits import Limits as Limits
    from irc.runtime.model import CompiledModel as CompiledModel
    from irc.runtime.options import Options as Options
    from irc.runtime.session import Session as Session

__version__ = "0.1.0"

__all__ = ["CompiledModel", "Error", "Limits", "Options", "Session", "__version__", "compile", "export", "load"]

_NAMES = {
    "CompiledModel": "irc.runtime.model",
    "Error": "irc.errors",
    "Limits": "irc.runtime.guards.limits",
    "Options": "irc.runtime.options",
    "Session": "irc.runtime.session",
    "compile": "irc.compiler",
    "export": "irc.exporting",
    "load": "irc.runtime.files.file",
}
"""Where the public names are."""

_MODULES = ("alias", "backend", "check", "demo", "errors", "frontend", "fuser", "ir", "passes", "runtime")
"""Modules that are there after ``import irc`` alone."""

put_off("irc.compiler")


def __getattr__(name: str) -> "Any":
    from importlib import import_module

    if name in _NAMES:
        found = globals()[name] = getattr(import_module(_NAMES[name]), name)
        return found
    if name in _MODULES:
        return import_module(f"irc.{name}")
    raise AttributeError(f"module 'irc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
