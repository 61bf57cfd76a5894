"""irc: a compiler toolkit for a graph IR, with alias analysis at its heart."""

__version__ = "0.1.0"

# The version comes first: the compiler and the files it writes name it.
from irc.compiler import compile
from irc.errors import Error
from irc.runtime.files.file import load
from irc.runtime.guards.limits import Limits
from irc.runtime.model import CompiledModel
from irc.runtime.options import Options
from irc.runtime.session import Session

__all__ = ["CompiledModel", "Error", "Limits", "Options", "Session", "__version__", "compile", "load"]
