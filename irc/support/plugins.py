"""Plugins: the entry points of other installed packages, in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irc.errors import Error, error_text, package_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OPERATORS = "irc.operators"
"""Name = namespace, object = a module whose import registers its operators."""

BACKENDS = "irc.backends"
"""Name = name of the backend, object = its class, an `irc.runtime.backends.Backend`."""

PASSES = "irc.passes"
"""Name = name of the pass, object = its class."""


def entry_points(group: str) -> list[EntryPoint]:
    """All entry points of ``group``, in an order that does not depend on the installation."""
    from importlib.metadata import entry_points  # slow to import, and few models and pipelines need it

    return sorted(entry_points(group=group), key=lambda entry: (entry.name, entry.value))


def load(entry: EntryPoint, what: str) -> Any:
    """The object of an entry point, called ``what`` in messages; Error IRC304 if it cannot be loaded."""
    try:
        return entry.load()
    except (Exception, SystemExit) as e:  # the user needs to know whose import it is that raises anything
        raise Error("IRC304", f"{what} cannot be loaded: {error_text(e)}", entry.value) from e


def packages() -> set[str]:
    """The names of all packages with an entry point of irc's groups."""
    groups = (BACKENDS, OPERATORS, PASSES)
    return {package_of(entry.value.partition(":")[0]) for group in groups for entry in entry_points(group)}
