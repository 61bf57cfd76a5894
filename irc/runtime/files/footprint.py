"""How many bytes running a graph takes, from its types alone."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import TYPE_CHECKING

from irc.alias import Kind
from irc.alias.sets import LocationSet, members
from irc.ir.limits import MAX_SIZE
from irc.ir.tensor import Tensor
from irc.ir.types import PrimType, TensorType

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.ir import Graph, Value


def weight_bytes(graph: Graph) -> int:
    """Bytes of the distinct constant tensors in ``graph``, nested blocks and fusion groups included."""
    tensors: dict[int, Tensor] = {}
    graphs = [graph]
    for each in graphs:  # grows while it is walked
        for node in each.walk():
            for attribute in node.attributes.values():
                if isinstance(attribute, Tensor):
                    tensors[id(attribute)] = attribute
                elif hasattr(attribute, "walk"):
                    graphs.append(attribute)
    return sum(t.dtype.numpy.itemsize if t.is_splat else t.nbytes for t in tensors.values())


def peak_bytes(graph: Graph, db: AliasDb) -> int | None:
    """Most bytes of values alive between two nodes of the top block; None if a shape is not known, or cannot be.

    Storage is counted by memory location: views are free, and a location lives
    as long as any value that may denote it. Constants are not counted, and
    neither is what nested blocks and kernels need while they run.
    """
    positions = {node: i for i, node in enumerate(graph.nodes, 1)}
    positions[graph.block.return_node] = len(positions) + 1
    spans: dict[LocationSet, _Span] = {}
    for value in [*graph.inputs, *(v for node in positions for v in node.outputs)]:
        if value.node is not None and value.node.kind == "prim::Constant":
            continue
        born = 0 if value.node is None else positions[value.node]
        users = (user.ancestor_in(graph.block) for user in value.iter_users())
        died = max((positions[user] for user in users if user is not None), default=born)
        size = value_bytes(value)
        if size is None:
            return None
        spans.setdefault(db.location_set(value), _Span(born)).cover(died, size)
    change = [0] * (len(positions) + 2)
    for span in _by_location(spans, db):
        change[span.born] += span.size
        change[span.died + 1] -= span.size
    most = max(accumulate(change))
    return most if most <= MAX_SIZE else None


def _by_location(spans: dict[LocationSet, _Span], db: AliasDb) -> list[_Span]:
    """The spans of the locations in the sets: of constants none, of unknown memory only where nothing is better known.

    What graph inputs denote is known: each takes as long as any value that may be the unknown memory that it may be.
    """
    given = [[x for x in members(db.location_set(value)) if db.is_wild(x)] for value in db.graph.inputs]
    inputs = frozenset(x for wild in given for x in wild)
    found: dict[int, _Span] = {}
    for locations, span in spans.items():  # sets, and so locations, in the order in which they are born
        places = [x for x in members(locations) if db.facts.site(x).kind is not Kind.CONSTANT]
        for x in [x for x in places if x in inputs or not db.is_wild(x)] or places:
            found.setdefault(x, _Span(span.born)).cover(span.died, span.size)
    taken = [span for x, span in found.items() if x not in inputs]
    for wild in given:
        if wild:
            taken.append(span := _Span(0))
            for x in wild:
                span.cover(found[x].died, found[x].size)
    return taken


def value_bytes(value: Value) -> int | None:
    """Bytes of a tensor value; 0 for numbers and the like, None if its shape or type is not known."""
    if isinstance(value.type, PrimType):
        return 0
    if not isinstance(value.type, TensorType) or value.type.dtype is None or value.type.static_shape is None:
        return None
    return math.prod(value.type.static_shape) * value.type.dtype.numpy.itemsize


class _Span:
    """From where to where a location is alive, and its size."""

    __slots__ = ("born", "died", "size")

    def __init__(self, born: int) -> None:
        self.born = self.died = born
        self.size = 0

    def cover(self, died: int, size: int) -> None:
        self.died = max(self.died, died)
        self.size = max(self.size, size)
