"""Dead code elimination.

A node stays if something live uses a result, if it writes live memory, or if it acts on the world. Everything else is
erased, and branches and loops lose the slots that carry dead values. A write goes, too, if a later one overwrites
all of it before anything reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from irc.alias import AliasDb
from irc.alias.overwrites import dead_stores
from irc.ir import CONSTANT, GROUP, Block, Graph, Node, Value
from irc.ir.objects import tensors_of
from irc.ir.region_flow import Slot, bodies, cut_slots, slots, with_subgraphs
from irc.ops import record
from irc.passes.base import PassContext
from irc.passes.quantised import annotation_names
from irc.passes.registry import register
from irc.passes.rewriter import Rewriter

# Which nodes and values of a graph matter: to its outputs, to memory that others see, to the world.


class Liveness:
    """Marks live nodes and values, backwards from those needed.

    A use makes its value live, a live value its producer, live memory all nodes that write it.

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
        """What ``node`` uses even if its slots are dead: conditions, iteration counts; all if it has no slots."""
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


# -- dce -----------------------------------------------------------------------


@register
@dataclass(frozen=True)
class Dce:
    """Remove what has no effect on the graph's outputs, on memory that others see, or on the world.

    Also removed: what an If, Loop, Scan or fusion group computes or carries
    without use, unused optional outputs, and weights that no constant
    refers to any more. The graph's own inputs and outputs stay.
    """

    name: ClassVar[str] = "dce"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Mark what is live, backwards from outputs and effects; remove the rest."""
        db = ctx.alias_db(graph)
        changed = _remove_nodes_and_slots(graph, Liveness(graph, db), ctx)
        if db.any_writes() and _remove_dead_stores(graph, ctx):
            changed = True
            _remove_nodes_and_slots(graph, Liveness(graph, db), ctx)  # what was only computed to be written
        while not db.is_tight:
            # What stored or escaped is gone: more may turn out to be dead. Ends, since each round erases a node.
            db.tighten()
            changed |= _remove_nodes_and_slots(graph, Liveness(graph, db), ctx)
        changed |= _trim_outputs(graph, ctx)
        _drop_weights(graph)
        return changed


def _remove_nodes_and_slots(graph: Graph, live: Liveness, ctx: PassContext) -> bool:
    rewriter = ctx.rewriter(graph)
    cut: list[tuple[Node, list[Slot]]] = []
    for node in live.order:
        if node in live.nodes and (dead := live.dead_slots(node)):
            if not ctx.allow(node):
                return bool(cut)
            ctx.alias_db(graph).cut_inputs(node)
            cut_slots(node, dead)
            cut.append((node, dead))
    erased = 0
    named = _annotating(graph, live)
    for node in reversed(live.order):
        around = live.around(node)
        if node in live.nodes or node in named or (around is not None and around not in live.nodes):
            continue
        if not ctx.allow(node):
            break
        rewriter.erase(node)
        erased += 1
    else:
        for node, dead in cut:
            _remove_slots(rewriter, node, dead)
    ctx.count("erased", erased)
    ctx.count("slots", sum(len(dead) for _, dead in cut))
    return bool(cut or erased)


def _remove_dead_stores(graph: Graph, ctx: PassContext) -> bool:
    """Remove in-place operators of which a later one overwrites all that they write, unread."""
    instead: dict[Value, Value] = {}
    erased: list[tuple[Node, list[Value]]] = []
    for node in dead_stores(ctx.alias_db(graph)):
        if not ctx.allow(node):
            break
        erased.append((node, [node.inputs[0]] * len(node.outputs)))
        instead.update((value, node.inputs[0]) for value in node.outputs)
    ctx.count("stores", len(erased))
    ctx.rewriter(graph).replace_nodes([(node, [_end(value, instead) for value in values]) for node, values in erased])
    return bool(erased)


def _end(value: Value, instead: Mapping[Value, Value]) -> Value:
    """What is used instead of ``value`` in the end."""
    while value in instead:
        value = instead[value]
    return value


def _annotating(graph: Graph, live: Liveness) -> set[Node]:
    """The constants that quantization annotations of live values name, though no node may use them."""
    names = annotation_names(graph, live.nodes.__contains__)
    found = [graph.value(name).made_by(CONSTANT) for name in names if graph.has_value(name)]
    return {node for node in found if node is not None}


def _remove_slots(rewriter: Rewriter, node: Node, dead: list[Slot]) -> None:
    """Remove the parameters and outputs of ``dead`` slots, which have no uses left."""
    for body in bodies(node):
        rewriter.erase_params(body, [s.param for s in dead if s.param is not None])
    rewriter.erase_outputs(node, [s.output for s in dead if s.output is not None])


def _trim_outputs(graph: Graph, ctx: PassContext) -> bool:
    rewriter = ctx.rewriter(graph)
    trimmed = 0
    for node in with_subgraphs(graph):
        kept = len(node.outputs)
        least = record(node.kind).needed_outputs
        while least is not None and kept > least and not node.outputs[kept - 1].has_uses and ctx.allow(node):
            kept -= 1
        unused = range(kept, len(node.outputs))
        if unused:
            rewriter.erase_outputs(node, unused)
            trimmed += len(unused)
    ctx.count("outputs", trimmed)
    return bool(trimmed)


def _drop_weights(graph: Graph) -> None:
    """Drop the weights that no graph of the module refers to. (The text of a graph does not show them.)"""
    if graph.is_function:
        return  # once a module is enough
    module = graph.module
    graphs = [graph] if module is None or module.weights is not graph.weights else module.graphs.values()
    used = {tensor.name for node in with_subgraphs(*graphs) for tensor in tensors_of(node)}
    for name in [name for name in graph.weights if name not in used]:
        del graph.weights[name]
