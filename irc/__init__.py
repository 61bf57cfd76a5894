"""irc: a compiler toolkit for a graph IR, with alias analysis at its heart."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The version comes first: the compiler and the files it writes name it.
from irc.compiler import compile
from irc.errors import Error
from irc.exporting import export
from irc.runtime.files.file import load
from irc.runtime.guards.limits import Limits
from irc.runtime.model import CompiledModel
from irc.runtime.options import Options
from irc.runtime.session import Session

if TYPE_CHECKING:
    from irc import backend as backend
    from irc import check as check
    from irc import demo as demo
    from irc import frontend as frontend

__all__ = ["CompiledModel", "Error", "Limits", "Options", "Session", "__version__", "compile", "export", "load"]

_LATE = ("backend", "check", "demo", "frontend")
"""Modules that need onnx, or are seldom needed: ``irc.check`` imports one when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return import_module(f"irc.{name}")
    raise AttributeError(f"module 'irc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})
