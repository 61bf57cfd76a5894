"""Memory locations: what an alias analysis tells apart."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from irc.ir.types import Type
from irc.ir.value import Value


class Kind(Enum):
    """What sort of memory a location is."""

    TEMPORARY = "temporary"
    """Allocated by a node; in a loop, one location stands for the memory of all trips."""
    CONSTANT = "constant"
    """Of a constant or a weight: read-only, and the same memory at every use, trip, call and run."""
    BORROWED = "borrowed input"
    """Of a graph input that its caller keeps."""
    DONATED = "donated input"
    """Of a graph input that is known to share with nothing."""
    ATTRIBUTE = "attribute"
    """Of an object's attribute whose storage is known."""
    UNKNOWN = "unknown"
    """Whatever else there is: one location a type."""
    RANDOM = "random state"
    """The state of random number generators."""
    WORLD = "world"
    """What is outside of memory: console, files, the process."""


OWN = frozenset({Kind.TEMPORARY, Kind.DONATED})
"""Memory that is the graph's to write."""


class Location(NamedTuple):
    """One memory location, as queries report it.

    Attributes:
        kind: what sort of memory.
        site: what it belongs to: the value that is allocated there, the name
            of a weight; None for unknown memory, the random state, the world.
        type: the type of the object there.
        path: for what a container of unknown origin holds, the fields that
            lead from it to this location; else empty.
    """

    kind: Kind
    site: Value | str | None
    type: Type
    path: tuple[str, ...] = ()

    def __str__(self) -> str:
        name = f" %{self.site.name}" if isinstance(self.site, Value) else f' @"{self.site}"' if self.site else ""
        type = "" if self.kind in (Kind.RANDOM, Kind.WORLD) else f" : {self.type}"
        return f"{self.kind.value}{name}{''.join(self.path)}{type}"
