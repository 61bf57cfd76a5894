"""Shared parts of the importer: places in messages, and texts that may not be UTF-8."""

from __future__ import annotations

from collections.abc import Iterable

from irc.errors import Error

Place = object
"""Where something is wrong: anything whose ``str`` names the place, so that names are made only for messages."""


def text(value: str, what: Place) -> str:
    """``value``, which protobuf gives as ``bytes`` if it is not UTF-8. Raises IRC121."""
    if not isinstance(value, str):  # type: ignore[reportUnnecessaryIsInstance]  # see above
        raise Error("IRC121", f"the text {value!r} is not UTF-8", str(what))
    return value


def texts(values: Iterable[str], what: Place) -> list[str]:
    """``values`` as a list, each checked as ``text`` does."""
    found = list(values)
    try:
        "".join(found)  # much faster than to look at each
    except TypeError:
        for value in found:
            text(value, what)
        raise
    return found
