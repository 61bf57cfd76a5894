"""irc: a compiler toolkit for a graph IR, with alias analysis at its heart."""

from irc.errors import Error

__version__ = "0.1.0"

__all__ = ["Error", "__version__"]
