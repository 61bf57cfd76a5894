"""How many bytes running a graph takes, from its types alone."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from irc.alias import Kind
from irc.alias.sets import members
from irc.ir.attributes import tensors_of
from irc.ir.functions import with_subgraphs
from irc.ir.kinds import CONSTANT
from irc.ir.limits import MAX_SIZE
from irc.ir.types import PrimType
from irc.ir.value import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from irc.alias import AliasDb
    from irc.ir import Graph


def weight_bytes(graph: Graph) -> int:
    """Bytes of the distinct constant tensors in ``graph``, nested blocks and fusion groups included."""
    tensors = {id(tensor): tensor for node in with_subgraphs(graph) for tensor in tensors_of(node)}
    return sum(t.dtype.numpy.itemsize if t.is_splat else t.nbytes for t in tensors.values())


def peak_bytes(graph: Graph, db: AliasDb) -> int | None:
    """Most bytes of values alive between two nodes of the top block; None if a shape is not known, or cannot be.

    Storage is counted by memory location: views are free, and a location lives
    as long as any value that may denote it. Constants are not counted, and
    neither is what nested blocks and kernels need while they run.
    """
    positions = {node: i for i, node in enumerate(graph.nodes, 1)}
    positions[graph.block.return_node] = len(positions) + 1
    held: list[_Held] = []
    for value in [*graph.inputs, *(v for node in positions for v in node.outputs)]:
        if value.made_by(CONSTANT):
            continue
        born = 0 if value.node is None else positions[value.node]
        users = (user.ancestor_in(graph.block) for user in value.iter_users())
        died = max((positions[user] for user in users if user is not None), default=born)
        size = value_bytes(value)
        if size is None:
            return None
        held.append(_Held(value, born, died, size))
    memory = _Memory(graph, db)
    born_by = memory.first_of_each(held)
    died_by = memory.first_of_each(sorted(held, key=lambda h: -h.died))
    sized_by = memory.first_of_each(sorted(held, key=lambda h: -h.size))
    change = [0] * (len(positions) + 2)
    for location, largest in sized_by.items():
        change[born_by[location].born] += largest.size
        change[died_by[location].died + 1] -= largest.size
    most = max(accumulate(change))
    return most if most <= MAX_SIZE else None


class _Held(NamedTuple):
    """A value, the turns at which its life begins and ends, and its size."""

    value: Value
    born: int
    died: int
    size: int


class _Memory:
    """Which memory of a value counts: no constants, and unknown memory only if the value may be nowhere else.

    A borrowed input counts as a place of its own, though it is in unknown memory.
    """

    def __init__(self, graph: Graph, db: AliasDb) -> None:
        self._db = db
        self._borrowed: dict[int, list[Value]] = {}
        for value in graph.inputs:
            for x in members(db.location_set(value)):
                if db.is_wild(x):
                    self._borrowed.setdefault(x, []).append(value)

    def first_of_each(self, held: Iterable[_Held]) -> dict[int | Value, _Held]:
        """Location, or borrowed input -> the first whose value may be there."""
        found: dict[int | Value, _Held] = {}
        descent = self._db.descent()
        for one in held:
            if self._is_known(one.value):
                for location in descent.locations(one.value):
                    for place in self._places(location):
                        found.setdefault(place, one)
            else:
                for location in members(self._db.location_set(one.value)):
                    if self._db.describe(location).kind is not Kind.CONSTANT:
                        found.setdefault(location, one)
        return found

    def _is_known(self, value: Value) -> bool:
        """Whether ``value`` may be somewhere other than in anonymous unknown memory."""
        return any(self._places(x) for x in members(self._db.location_set(value)))

    def _places(self, location: int) -> Sequence[int | Value]:
        """The places that ``location`` stands for when the value is known."""
        kind = self._db.describe(location).kind
        if kind is Kind.UNKNOWN:
            return self._borrowed.get(location, ())
        return () if kind is Kind.CONSTANT else (location,)


def value_bytes(value: Value) -> int | None:
    """Bytes of a tensor value; 0 for numbers and the like, None if its shape or type is not known."""
    if isinstance(value.type, PrimType):
        return 0
    if value.type.dtype is None or value.type.static_shape is None:
        return None
    return math.prod(value.type.static_shape) * value.type.dtype.numpy.itemsize
