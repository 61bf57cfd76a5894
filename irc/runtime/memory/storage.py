"""Which values may be one piece of memory, as precisely as is needed before memory is overwritten.

These are memory classes (`irc.alias.classes`), for the graph and for what is
in its fusion groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from irc.alias import Kind, analyze
from irc.alias.classes import FOREIGN, MemoryClasses
from irc.alias.sets import BigSet
from irc.ir.functions import inner_graph
from irc.ir.graph import Graph
from irc.ir.kinds import LOOPS, SCAN
from irc.ir.ops.loops import carried, is_batched
from irc.runtime.memory.loop_aliases import LoopAliases
from irc.runtime.prepack import lasting_nodes

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.ir import Block, Node, Value

_OURS = frozenset([Kind.TEMPORARY, Kind.CONSTANT, Kind.DONATED])
"""Memory that a run may write, or that is read-only for NumPy too and so cannot be written by mistake."""


class Storage:
    """The classes of the values of a graph and of its fusion groups.

    Args:
        db: the analysis of the graph, which must not change afterwards; it is not kept. Inputs that it knows to share
            with nothing hold what is read-only unless it is the run's to overwrite; others are foreign.
        apart: an analysis of the graph with ``loops_apart``. If it is given, what loops carry is of classes of its own,
            as far as can be (`irc.runtime.memory.loop_aliases`): only the graph itself may then write its results.

    Attributes:
        written: the values whose memory, or that of what they hold, some node may write.
        lasting: the nodes of the graph whose results may be kept from run to run (`irc.runtime.prepack`).
    """

    def __init__(self, db: AliasDb, apart: AliasDb | None = None) -> None:
        self.written: set[Value] = set()
        self.lasting = lasting_nodes(db)
        self._classes = MemoryClasses(_OURS)
        self._groups: set[Graph] = set()
        self._add(apart or db)
        loops = [node for node in apart.graph.walk() if node.kind in LOOPS] if apart else []
        self._loop_aliases = LoopAliases(loops, self._classes, self.written)
        self.written.update(_written(db))
        self._captors: defaultdict[int, set[Block]] = defaultdict(set)
        for value in self._classes.values():
            self._find_captors(value)

    def of(self, value: Value) -> int:
        """The class of ``value``, a number; `FOREIGN` for memory that must not be written."""
        return self._classes.of(value)

    def shown(self, value: Value) -> frozenset[int]:
        """The classes of the memory that ``value`` may show: its own, and of what a loop was given also others."""
        return self._loop_aliases.of(value)

    def captors(self, storage: int) -> set[Block]:
        """The bodies of loops that need memory of class ``storage`` again in every trip."""
        return self._captors.get(storage, set())

    def _add(self, db: AliasDb) -> None:
        self._classes.add(db)
        self.written.update(_written(db))
        for node in db.graph.walk():
            group = inner_graph(node)
            if group is not None:
                if group not in self._groups:  # one graph may serve several groups
                    self._groups.add(group)
                    self._add(analyze(group, noalias=group.inputs))
                for outer, inner in (*zip(node.inputs, group.inputs), *zip(node.outputs, group.outputs)):
                    self._classes.join(outer, inner)

    def _find_captors(self, value: Value) -> None:
        if self.of(value) == FOREIGN:
            return
        blocks: set[Block] = set()
        for user in value.iter_users():
            blocks.update(block for owner, block in _between(user, value) if owner.kind in LOOPS)
            if user.kind == SCAN and value in _scanned(user):  # it reads slices of them, trip by trip
                blocks.update(user.blocks)
        for storage in self.shown(value) if blocks else ():
            self._captors[storage] |= blocks


def _written(db: AliasDb) -> list[Value]:
    if not db.any_writes():
        return []
    return [v for v in db.values_in_order() if isinstance(db.reach_set(v), BigSet) or db.has_writers(v)]


def _scanned(scan: Node) -> Sequence[Value]:
    """The inputs of which each trip sees a slice; before version 9, with a batch axis, also the states."""
    return scan.inputs if is_batched(scan) else scan.inputs[carried(scan).many :]


def _between(user: Node, value: Value) -> Iterator[tuple[Node, Block]]:
    """The nodes around ``user`` but not around ``value``, innermost first, and their blocks that ``user`` is in."""
    for block in user.block.around() if user.block is not None else ():
        if block is value.block or block.node is None:
            return
        yield block.node, block
