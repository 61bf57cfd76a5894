"""How much memory the values of one block take, and how long: an estimate to compare orders of its nodes by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from irc.alias.classes import FOREIGN, MemoryClasses
from irc.alias.facts import OWN
from irc.alias.location_sets import BigSet, members
from irc.ir.kinds import CONSTANT
from irc.ir.types import PrimType, Type

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from irc.alias import AliasDb
    from irc.ir import Block, Node, Value

_SIZE = 64
"""What a dimension that is not known is taken to be."""


class Peak(NamedTuple):
    """Most bytes at one time.

    Attributes:
        fresh: if every result takes memory of its own.
        reused: if results are written over dead operands wherever nodes can.
    """

    fresh: int = 0
    reused: int = 0

    @staticmethod
    def most(peaks: Iterable[Peak]) -> Peak:
        """The largest of each number."""
        fresh = reused = 0
        for peak in peaks:
            fresh, reused = max(fresh, peak.fresh), max(reused, peak.reused)
        return Peak(fresh, reused)

    def within(self, other: Peak) -> bool:
        """Whether neither number is larger than that of ``other``."""
        return self.fresh <= other.fresh and self.reused <= other.reused


class Moment(NamedTuple):
    """One node at its turn.

    Attributes:
        alive: the bytes alive while it runs.
        takes: 1 if it is the last to use some memory and can take it for its result, else 0.
        takes_input: the same for a graph input, which its caller may donate.
    """

    alive: Peak
    takes: int
    takes_input: int


class GraphMemory:
    """Where the values of a graph may be, wherever its nodes are moved.

    Args:
        db: the analysis of the graph with its inputs donated: these are the only inputs whose memory the runtime takes,
            and it makes sure that they share memory with nothing.
    """

    def __init__(self, db: AliasDb) -> None:
        self._db = db
        self._classes = MemoryClasses(OWN)
        self._classes.add(db)

    def storage(self, value: Value) -> int:
        """The memory class of ``value``."""
        return self._classes.of(value)

    def places(self, value: Value) -> Collection[int]:
        """The locations of ``value`` and of what it holds; none if there are too many to look at."""
        reach = self._db.reach_set(value)
        return () if isinstance(reach, BigSet) else tuple(members(reach))


class BlockMemory:
    """The memory of one block: its *storages*, classes of values that may share memory, and the nodes that use them.

    A storage is alive from its first value to its last user. Unknown sizes are guessed: 64 for a dimension, and the
    mean of the others for a value whose type does not tell. Memory of values from outside of the block does not count.
    Nodes are numbers: positions in ``nodes``.

    Args:
        block: the block.
        nodes: its nodes in order, and its return node.
        used: what each of them uses.
        memory: of their graph.

    Attributes:
        used: for each node, the storages it uses.
        users: storage -> the nodes that use it, in order.
        inputs: the storages of the graph's inputs.
    """

    def __init__(
        self, block: Block, nodes: Sequence[Node], used: Sequence[Sequence[Value]], memory: GraphMemory
    ) -> None:
        self._memory = memory
        self._seen: set[int] = set()  # where values have been so far
        for value in block.params:
            self._come_by(value)
        made: list[list[tuple[Value, int | None]]] = []
        for node, values in zip(nodes, used):
            for value in values:
                self._come_by(value)
            made.append([(value, self._come_by(value)) for value in node.outputs])
        guess = _mean([size for outputs in made for _, size in outputs if size])
        self._made = [[(self.storage(v), guess if n is None else n) for v, n in outputs] for outputs in made]
        self.used = [list(dict.fromkeys(map(self.storage, values))) for values in used]
        self.inputs = {self.storage(v) for v in block.params} if block is block.graph.block else set[int]()
        self.users: dict[int, list[int]] = {}
        for i, storages in enumerate(self.used):
            for storage in storages:
                self.users.setdefault(storage, []).append(i)

    def storage(self, value: Value) -> int:
        """The storage of a value that the nodes use or make."""
        return self._memory.storage(value)

    def may_be_taken(self, storage: int) -> bool:
        """Whether the memory of ``storage`` is the graph's to write, or the caller may give it up."""
        return storage != FOREIGN

    def moments(self, order: Iterable[int], takes: Sequence[Iterable[int]], inside: Sequence[Peak]) -> list[Moment]:
        """What is alive at each node's turn, if the nodes run in ``order``.

        Args:
            order: all nodes.
            takes: for each node, the storages over which it can write its result, if nothing uses them later.
            inside: for each node, the additional memory that it takes while it runs.
        """
        left = {storage: len(users) for storage, users in self.users.items()}
        held: dict[int, int] = {}
        alive = 0
        found: list[Moment] = []
        for i in order:
            new = sum(size for _, size in self._made[i])
            free = [storage for storage in takes[i] if left[storage] == 1]
            own = [storage for storage in free if storage not in self.inputs]
            saved = min(new, held.get(own[0], 0)) if own else 0
            peak = Peak(alive + new + inside[i].fresh, alive + new - saved + inside[i].reused)
            found.append(Moment(peak, bool(own), len(free) > len(own)))
            alive += new
            for storage in self.used[i]:
                left[storage] -= 1
            for storage, size in self._made[i]:
                held[storage] = held.get(storage, 0) + size
            for storage in (*self.used[i], *(storage for storage, _ in self._made[i])):
                if not left.get(storage):
                    alive -= held.pop(storage, 0)
        return found

    def _come_by(self, value: Value) -> int | None:
        """The bytes of new memory with ``value``; None if its type does not tell; 0 if earlier values are there."""
        places = self._memory.places(value)
        known = bool(places) and self._seen.issuperset(places)
        self._seen.update(places)
        return 0 if known or value.made_by(CONSTANT) else _bytes(value.type)


def _bytes(type: Type) -> int | None:
    if isinstance(type, PrimType):
        return 0
    if type.shape is None:
        return None
    size = 4 if type.dtype is None else type.dtype.numpy.itemsize
    return size * math.prod(d if isinstance(d, int) else _SIZE for d in type.shape)


def _mean(sizes: Sequence[int]) -> int:
    return sum(sizes) // len(sizes) if sizes else 1
