"""Packages that only a few operators need, and that irc does not install by itself."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from irc.errors import Error

EXTRAS = {"PIL.Image": "images", "re2": "regex"}
"""Module -> the extra of irc that installs it."""


def needed(module: str, kind: str) -> Any:
    """``module``, which nodes of ``kind`` are computed by; Error IRC321 if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        install = f"pip install 'irc[{EXTRAS[module]}]'"
        raise Error("IRC321", f"irc computes {kind} by the package {module}: {install} ({error})") from None
