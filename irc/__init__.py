"""irc: a compiler toolkit for a graph IR, with alias analysis at its heart."""

__version__ = "0.1.0"

# The version comes first: the compiler and the files it writes name it.
from irc.compiler import compile  # noqa: E402
from irc.errors import Error  # noqa: E402
from irc.runtime.file import load  # noqa: E402
from irc.runtime.model import CompiledModel  # noqa: E402

__all__ = ["CompiledModel", "Error", "__version__", "compile", "load"]
