"""What the IR asks of operators. `irc.ops` answers, and the package root installs it: the IR imports nothing above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from irc.support.lazy import provided

if TYPE_CHECKING:
    from irc.ir.node import Node
    from irc.ir.schema import Schema


class SchemaLookup(Protocol):
    """The signatures of operators."""

    def schema_of(self, node: Node) -> Schema | None:
        """The signature of ``node``: the overload that its inputs choose; None if none is known."""
        ...

    def check(self, node: Node) -> None:
        """Error IRC213, IRC214, IRC215 or IRC217 if ``node`` does not fit the signatures of its operator."""
        ...


SCHEMAS = "schemas"
"""The name under which the package root installs it."""


def schema_lookup() -> SchemaLookup:
    """What is installed."""
    return cast("SchemaLookup", provided(SCHEMAS))
