"""What other installed packages offer: entry points, in groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irc.errors import Error, described, package_of

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

    return sorted(entry_points(group=group), key=lambda offer: (offer.name, offer.value))


def load(offer: EntryPoint, what: str) -> Any:
    """The object that an entry point offers, ``what`` in messages; IRC304 if it cannot be loaded."""
    try:
        return offer.load()
    except (Exception, SystemExit) as e:  # the user needs to know whose import it is that raises anything
        raise Error("IRC304", f"{what} cannot be loaded: {described(e)}", offer.value) from e


def packages() -> set[str]:
    """The packages that offer anything."""
    groups = (BACKENDS, OPERATORS, PASSES)
    return {package_of(offer.value.partition(":")[0]) for group in groups for offer in entry_points(group)}
