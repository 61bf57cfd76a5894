"""Which nodes and values of a graph matter: to its outputs, to memory that others see, to the world."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias import AliasDb
from irc.ir import Block, Graph, Node, Value
from irc.ir.kinds import GROUP
from irc.ir.region_flow import Slot, bodies, slots

if TYPE_CHECKING:
    from collections.abc import Iterable


class Liveness:
    """Marks backwards from what is needed: a use makes its value live, a live value the node that makes it,
    live memory all nodes that write it.

    Attributes:
        order: all nodes, those in blocks and fusion groups too, except what is
            inside of groups that write memory: such a group lives or dies as a whole.
            Users come after what they use, nested nodes after the one around them.
        nodes: the live nodes.
        values: the live values.
    """

    def __init__(self, graph: Graph, db: AliasDb) -> None:
        self.order: list[Node] = []
        self.nodes: set[Node] = set()
        self.values: set[Value] = set()
        self._db = db
        self._owner: dict[Block, Node] = {}
        self._slots: dict[Node, list[Slot] | None] = {}
        self._by_position: dict[Value, tuple[Node, Slot]] = {}
        self._live_slots: set[tuple[Node, Slot]] = set()
        self._memory = db.live_writes() if db.any_writes() else None
        self._locations = db.sweep()
        self._pending: list[Value] = []
        self._index(graph.block)
        self._use(graph.outputs)
        if self._memory is not None:
            for node in self._memory.use(db.seen_outside()):
                self._run(node)
        self._propagate()

    def dead_slots(self, node: Node) -> list[Slot]:
        """The slots of a live ``node`` that carry nothing live."""
        return [s for s in self._slots.get(node) or () if not s.needed and (node, s) not in self._live_slots]

    def around(self, node: Node) -> Node | None:
        """The node whose block or fusion group ``node`` stands in, or None."""
        return self._owner.get(node.block) if node.block is not None else None

    def _index(self, block: Block) -> None:
        """Note owners and slots inside ``block``."""
        pending = [block]
        while pending:
            for node in pending.pop().nodes:
                self.order.append(node)
                inner = bodies(node)
                # What a group's subgraph writes, the group writes. Other nodes around writers are live if those are.
                if inner and not (node.kind == GROUP and self._writes(node)):
                    self._index_slots(node, inner)
                    pending.extend(inner)

    def _writes(self, group: Node) -> bool:
        """Whether ``group`` writes anything. A group inside a group that writes nothing does not either."""
        return group.graph is self._db.graph and self._db.writes_anything(group)

    def _index_slots(self, node: Node, inner: list[Block]) -> None:
        for body in inner:
            self._owner[body] = node
        found = self._slots[node] = slots(node)
        for slot in found or ():
            if slot.output is not None:
                self._by_position[node.outputs[slot.output]] = node, slot
            if slot.param is not None:
                for body in inner:
                    self._by_position[body.params[slot.param]] = node, slot

    # -- marking ---------------------------------------------------------

    def _use(self, values: Iterable[Value]) -> None:
        for value in values:
            if value not in self.values:
                self.values.add(value)
                self._pending.append(value)

    def _propagate(self) -> None:
        while self._pending:
            value = self._pending.pop()
            # What is made inside a fusion group is memory of its own, of which the analysis knows nothing.
            if self._memory is not None and value.block is not None and value.block.graph is self._db.graph:
                for writer in self._memory.use(self._locations(value)):
                    self._run(writer)
            found = self._by_position.get(value)
            if found is not None:
                self._carry(*found)
            elif value.node is not None:
                self._run(value.node)
            elif value.block in self._owner:
                self._run(self._owner[value.block])

    def _run(self, node: Node) -> None:
        """``node`` is live, and so are the nodes around it."""
        while node not in self.nodes:
            self.nodes.add(node)
            self._use_always(node)
            block = node.block
            if block is None or block not in self._owner:
                return
            node = self._owner[block]

    def _use_always(self, node: Node) -> None:
        """What ``node`` uses even if its slots are dead: conditions, trip counts; everything if it has no slots."""
        found = self._slots.get(node) or []
        inputs = {s.input for s in found}
        returned = {s.returned for s in found}
        self._use(v for i, v in enumerate(node.inputs) if i not in inputs)
        for body in bodies(node):
            if body in self._owner:
                self._use(v for i, v in enumerate(body.returns) if i not in returned)
        for slot in found:
            if slot.needed:
                self._carry(node, slot)

    def _carry(self, node: Node, slot: Slot) -> None:
        """A slot of ``node`` is live."""
        if (node, slot) in self._live_slots:
            return
        self._live_slots.add((node, slot))
        self._run(node)
        if slot.input is not None:
            self._use([node.inputs[slot.input]])
        if slot.returned is not None:
            self._use(body.returns[slot.returned] for body in bodies(node))
