"""What the values of one block take of memory, and until when: an estimate to compare orders of its nodes by."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from irc.alias import Kind
from irc.alias.classes import Classes
from irc.alias.sets import LocationSet, contains, intersects, members
from irc.ir.kinds import CONSTANT
from irc.ir.types import PrimType, Type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from irc.alias import AliasDb
    from irc.ir import Block, Node, Value

_SIZE = 64
"""What a dimension that is not known is taken to be."""

_FEW = 16
"""Values that may be at more places are not told apart."""

_MANY = -1
"""Stands for the locations of such values."""

_OWN = frozenset({Kind.TEMPORARY, Kind.DONATED})


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
        """The largest, either by itself."""
        fresh = reused = 0
        for peak in peaks:
            fresh, reused = max(fresh, peak.fresh), max(reused, peak.reused)
        return Peak(fresh, reused)

    def within(self, other: Peak) -> bool:
        """Whether neither is more than ``other``'s."""
        return self.fresh <= other.fresh and self.reused <= other.reused


class Moment(NamedTuple):
    """One node at its turn.

    Attributes:
        alive: what is alive while it runs.
        takes: 1 if it is the last to use memory that it can take, else 0.
        takes_input: the same for a graph input, which its caller may donate.
    """

    alive: Peak
    takes: int
    takes_input: int


class BlockMemory:
    """The memory of one block: its *storages*, classes of values that may share memory, and who uses them.

    A storage is alive from its first value to its last user. What is not known of types is guessed: 64 for a dimension,
    for a tensor the mean of the others. Memory of values from outside of the block counts nothing. Nodes are numbers:
    positions in ``nodes``.

    Args:
        block: the block.
        nodes: its nodes in order, and its return node.
        used: what each of them uses.
        db: the alias analysis of their graph.

    Attributes:
        used: for each node, the storages it uses.
        users: storage -> the nodes that use it, in order.
        inputs: the storages of the graph's inputs.
    """

    def __init__(self, block: Block, nodes: Sequence[Node], used: Sequence[Sequence[Value]], db: AliasDb) -> None:
        self._db = db
        self._joined = Classes()
        self._foreign: list[bool] = []
        self._storages: dict[Value, int] = {}
        self._outer: dict[int, int] = {}  # location -> the storage of what is defined outside
        made: list[list[tuple[Value, int | None]]] = []
        for value in block.params:
            # The runtime lets no donated input share with others, and takes none that is not donated.
            self._storages[value] = self._new() if block is db.graph.block else self._from_outside(value)
        for node, values in zip(nodes, used):
            for value in values:
                if value not in self._storages:
                    self._storages[value] = self._from_outside(value)
            operands = _Operands(values, db)
            made.append([(value, self._define(value, operands)) for value in node.outputs])
        guess = _mean([size for outputs in made for _, size in outputs if size])
        self._made = [[(self.storage(v), guess if n is None else n) for v, n in outputs] for outputs in made]
        self.used = [list(dict.fromkeys(map(self.storage, values))) for values in used]
        self.inputs = {self.storage(v) for v in block.params} if block is db.graph.block else set[int]()
        self.users: dict[int, list[int]] = {}
        for i, storages in enumerate(self.used):
            for storage in storages:
                self.users.setdefault(storage, []).append(i)

    def storage(self, value: Value) -> int:
        """The storage of a value that the nodes use or make."""
        return self._joined.of(self._storages[value])

    def may_be_taken(self, storage: int) -> bool:
        """Whether all that may be in ``storage`` is the graph's to write, or the caller's to give up."""
        return not self._foreign[storage]

    def moments(self, order: Iterable[int], takes: Sequence[Iterable[int]], inside: Sequence[Peak]) -> list[Moment]:
        """What is alive at each node's turn, if the nodes run in ``order``.

        Args:
            order: all nodes.
            takes: for each node, the storages over which it can write its result, if nothing uses them later.
            inside: for each node, what it takes besides while it runs.
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

    # -- storages --------------------------------------------------------

    def _new(self) -> int:
        self._foreign.append(False)
        return self._joined.new()

    def _join(self, a: int, b: int) -> int:
        foreign = self._foreign[self._joined.of(a)] or self._foreign[self._joined.of(b)]
        storage = self._joined.join(a, b)
        self._foreign[storage] = foreign
        return storage

    def _from_outside(self, value: Value) -> int:
        """The storage of a value that none of the nodes makes."""
        storage = self._new()
        for location in self._few(self._db.location_set(value)):
            self._foreign[storage] |= not self._is_own(location)
            if location in self._outer:
                storage = self._join(self._outer[location], storage)
            self._outer[location] = storage
        return storage

    def _define(self, value: Value, operands: _Operands) -> int | None:
        """Enter a result; how many bytes it takes, None if its type does not tell."""
        storage = self._storages[value] = self._new()
        shared, known = operands.sharing(self._db.reach_set(value))
        fresh = [x for x in self._few(self._db.location_set(value)) if not contains(known, x)]
        self._foreign[storage] = not all(map(self._is_own, fresh))
        for other in shared:
            storage = self._join(self._storages[other], storage)
        if shared and not fresh:
            return 0
        return 0 if value.made_by(CONSTANT) else _bytes(value.type)

    def _few(self, locations: LocationSet) -> Iterable[int]:
        """The locations; one that stands for all if they are very many."""
        return members(locations) if isinstance(locations, int) or len(locations) <= _FEW else (_MANY,)

    def _is_own(self, location: int) -> bool:
        return location != _MANY and self._db.facts.site(location).kind in _OWN


class _Operands:
    """The values that one node uses, by where they may be: a loop may have thousands, and as many results."""

    def __init__(self, values: Iterable[Value], db: AliasDb) -> None:
        self._db = db
        self._values: dict[LocationSet, list[Value]] = {}
        for value in values:
            self._values.setdefault(db.reach_set(value), []).append(value)
        self._at: dict[int, list[LocationSet]] = {}
        self._wide = [reach for reach in self._values if not isinstance(reach, int) and len(reach) > _FEW]
        for reach in self._values:
            if isinstance(reach, int) or len(reach) <= _FEW:
                for location in members(reach):
                    self._at.setdefault(location, []).append(reach)
        self._asked: dict[LocationSet, tuple[list[Value], LocationSet]] = {}

    def sharing(self, reach: LocationSet) -> tuple[list[Value], LocationSet]:
        """The values that may share something with ``reach``, and all that they lead to.

        Of those of one storage one will do: all that are returned together become one.
        """
        found = self._asked.get(reach)
        if found is not None:
            return found
        if isinstance(reach, int) or len(reach) <= _FEW:
            near = dict.fromkeys(s for x in members(reach) for s in self._at.get(x, ()))
            sets = [*near, *(s for s in self._wide if intersects(s, reach))]
        else:
            sets = [s for s in self._values if intersects(s, reach)]
        shared = [value for s in sets for value in self._values[s]]
        known = self._db.reach_set(shared)
        for s in sets:
            del self._values[s][1:]
        self._asked[reach] = shared[:1], known
        return shared, known


def _bytes(type: Type) -> int | None:
    if isinstance(type, PrimType):
        return 0
    if type.shape is None:
        return None
    size = 4 if type.dtype is None else type.dtype.numpy.itemsize
    return size * math.prod(d if isinstance(d, int) else _SIZE for d in type.shape)


def _mean(sizes: Sequence[int]) -> int:
    return sum(sizes) // len(sizes) if sizes else 1
