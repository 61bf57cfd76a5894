"""SSA values and their uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from irc.ir.metadata import HasMetadata

if TYPE_CHECKING:
    from irc.ir.block import Block
    from irc.ir.graph import Graph
    from irc.ir.node import Node
    from irc.ir.types import Type


class Use(NamedTuple):
    """One use of a value: input number ``index`` of ``node`` (a block's ``return_node`` for its returns)."""

    node: Node
    index: int  # type: ignore[assignment]  # hides tuple.index, which uses do not need


class Value(HasMetadata):
    """One SSA value: an output of a node or a parameter of a block.

    Attributes:
        type: its type.
        node: the node that produces it; None for a block parameter.
        index: which output of ``node``, or which parameter of ``block``.
        graph: the graph it belongs to.
        metadata: what the model says of it (`irc.ir.metadata`); read-only, set it as a whole.
    """

    __slots__ = ("__weakref__", "_name", "_param_of", "_users", "graph", "index", "node", "type")

    def __init__(self, graph: Graph, type: Type, node: Node | None, param_of: Block | None, index: int) -> None:
        self.graph = graph
        self.type = type
        self.node = node
        self.index = index
        self._param_of = param_of
        self._name = ""
        # How many inputs of each user are this value. One entry a user keeps adding
        # and removing a use O(1), and needs no object for a use.
        self._users: dict[Node, int] = {}

    @property
    def name(self) -> str:
        """The name without ``%``, unique in the graph."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        """Take ``name``; whichever value held it before gets ``name.N`` instead."""
        self.graph.rename(self, name)

    def succeed(self, other: Value) -> None:
        """Take over the name of ``other``, and its metadata beside one's own."""
        said = other.metadata
        self.name = other.name
        if said:
            self.metadata = {**self.metadata, **said}

    @property
    def block(self) -> Block | None:
        """The block it is defined in; None while its node is in no block."""
        return self._param_of if self.node is None else self.node.block

    @property
    def is_param(self) -> bool:
        """Whether it is a block parameter (a graph input, if the block is a graph's own)."""
        return self._param_of is not None

    @property
    def definer(self) -> Node | None:
        """The node that defines it: as an output or as a block parameter; None for a graph's input."""
        if self.node is not None:
            return self.node
        return None if self._param_of is None else self._param_of.node

    def made_by(self, *kinds: str) -> Node | None:
        """The node that it is an output of, if that is of one of ``kinds``."""
        return self.node if self.node is not None and self.node.kind in kinds else None

    @property
    def uses(self) -> list[Use]:
        """All uses, grouped by user, users in order of their first use."""
        return [Use(node, i) for node in self._users for i, v in enumerate(node.inputs) if v is self]

    @property
    def users(self) -> list[Node]:
        """The distinct nodes that use it (``return_node`` of blocks included)."""
        return list(self._users)

    @property
    def has_uses(self) -> bool:
        """Whether anything uses it."""
        return bool(self._users)

    @property
    def user_count(self) -> int:
        """Number of nodes that use it. O(1)."""
        return len(self._users)

    @property
    def is_used_once(self) -> bool:
        """Whether it has exactly one use. O(1), which ``use_count`` is not."""
        return len(self._users) == 1 and self.use_count == 1

    @property
    def use_count(self) -> int:
        """Number of uses; ``Add(x, x)`` counts 2."""
        return sum(self._users.values())

    def uses_by(self, user: Node) -> int:
        """How many inputs of ``user`` it is."""
        return self._users.get(user, 0)

    def iter_users(self) -> Iterator[Node]:
        """Like ``users`` without a copy; the uses must not change meanwhile."""
        return iter(self._users)

    def replace_all_uses_with(self, other: Value) -> None:
        """Make every user use ``other`` instead. O(inputs of the users)."""
        for user in self.users:
            user.replace_uses(self, other)

    def __repr__(self) -> str:
        return f"%{self._name} : {self.type}"
