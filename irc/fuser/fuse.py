"""The fuser: merges producers into their consumers' groups, keeping one AliasDb right all the time.

The scheme is that of PyTorch's graph fuser (pull request #37106): scan each
block backwards; while a consumer has a producer that the policy admits and
that can be moved next to it, merge the two. The AliasDb is updated when a
group is complete, and never rebuilt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import ClassVar

from irc.alias import AliasDb, analyze
from irc.alias.explain import Fact, why_written
from irc.alias.rules import is_functional
from irc.errors import Error, misfit
from irc.fuser.policy import Brought, Domain, Policy, brought, fault, is_anchor
from irc.fuser.subgraph import dissolve, is_group, make_group, subgraph_of
from irc.ir import CONSTANT, Block, Graph, Node, Value
from irc.ir.region_flow import graphs_of
from irc.ops.pointwise import is_elementwise
from irc.passes.base import MOST_EXPLAINED, PassContext, describe, functional, name_of
from irc.passes.registry import check_not_negative, register
from irc.support.remarks import NOT_FUSED, Reason, split_use


class Cluster:
    """Adjacent nodes of one block that are to be one group.

    Nodes stay where they are until the group is complete: a merge only moves the
    producer next to the cluster, so its cost does not depend
    on how large the cluster is.

    Attributes:
        members: the nodes, last first.
        operators: the operators that they stand for.
        anchor: the convolution or matrix product among those, if there is one.
        rows: what operators among those reduce, if there are some that do.
    """

    __slots__ = ("_anchor_inputs", "_asked", "_brings", "anchor", "members", "operators", "rows")

    def __init__(self, consumer: Node) -> None:
        self.members: list[Node] = []
        self.operators: list[Node] = []
        self.anchor: Node | None = None
        self.rows: Domain | None = None
        self._anchor_inputs: set[Value] = set()
        self._asked, self._brings = consumer, brought(consumer)
        self.take(consumer)

    @property
    def size(self) -> int:
        """How many operators its members stand for."""
        return len(self.operators)

    def inputs_with(self, producer: Node) -> set[Value]:
        """The inputs that the group would have if ``producer`` were its last addition; constants are its own."""
        nodes = {producer, *self.members}
        # From the members each time: a producer that joins may make what others of them take from outside now.
        used = {value for node in nodes for value in node.inputs if value.node not in nodes}
        return {value for value in used if value.made_by(CONSTANT) is None}

    @property
    def first(self) -> Node:
        """The first node."""
        return self.members[-1]

    @property
    def last(self) -> Node:
        """The last node: the consumer that it grew from."""
        return self.members[0]

    def brings(self, producer: Node) -> Brought:
        """What ``producer`` brings into a group; remembered until another one is asked about."""
        if producer is not self._asked:
            self._asked, self._brings = producer, brought(producer)
        return self._brings

    def take(self, producer: Node) -> None:
        """Take in ``producer``, which stands right before the first node."""
        added, anchor, rows = self.brings(producer)
        self.members.append(producer)
        self.operators += added
        self.rows = self.rows or rows
        if anchor is not None:
            self.anchor = anchor
            self._anchor_inputs.update(_fed_to(anchor, producer))

    def feeds_anchor(self, producer: Node) -> bool:
        """Whether a result of ``producer`` is an input of the anchor."""
        return not self._anchor_inputs.isdisjoint(producer.outputs)


def _fed_to(anchor: Node, node: Node) -> Iterable[Value]:
    """The inputs of ``anchor``, which is ``node`` or inside it, as values outside."""
    if anchor is node:
        return node.inputs
    params = zip(subgraph_of(node).inputs, node.inputs, strict=True)
    return [actual for param, actual in params if param in anchor.inputs]


@register
@dataclass(frozen=True)
class Fuse:
    """Fuse pointwise operators, and pointwise epilogues onto a convolution or matrix product.

    Subclasses may have a policy of their own (docs/how-to/fusion-policy.md).

    Attributes:
        max_size: how many operators a group may hold.
    """

    name: ClassVar[str] = "fuse"
    max_size: int = 64

    def __post_init__(self) -> None:
        check_not_negative(self)

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Fuse in every block."""
        wrong = misfit(f"{type(self).__name__}.policy", self.policy, "graph")
        if not wrong:
            policy = self.policy(graph)
            wrong = fault(policy)
            if not wrong:
                return Fuser(graph, ctx, policy).run()
        raise Error("IRC305", f"pass {self.name}: {wrong}", graph.name)

    def policy(self, graph: Graph) -> Policy:
        """The policy that decides what may fuse in ``graph``."""
        return Policy(graph, self.max_size)


class Fuser:
    """Fuses in one graph.

    Args:
        graph: the graph.
        ctx: has the AliasDb, counts, and takes notes of what is refused.
        policy: what may fuse.
    """

    def __init__(self, graph: Graph, ctx: PassContext, policy: Policy) -> None:
        self.graph = graph
        self.ctx = ctx
        self.policy = policy
        self.db: AliasDb = ctx.alias_db(graph)
        self.dbs = {graph: self.db}
        self.known: dict[Node, bool] = {}
        self.refused: dict[Block, list[tuple[Node, Node, str]]] = {}

    def run(self) -> bool:
        """Fuse in every block; return whether anything was merged."""
        changed = False
        for block in list(self.graph.blocks()):
            while self.scan(block):
                changed = True
        self.report()
        return changed

    def scan(self, block: Block) -> bool:
        """Visit every node of ``block`` once, last first; return whether anything was merged.

        A node that stood in the way of a consumer may join another one later in the
        scan, so a block is done only when a scan has merged nothing.
        """
        self.refused[block] = []
        merged = False
        # Last first: a producer is offered to its last consumer before earlier ones, and only ever moves down.
        for node in reversed(block.nodes):
            if self.fuses(node) and any(value.has_uses for value in node.outputs):
                merged |= self.grow(node, block)
        return merged

    def fuses(self, node: Node) -> bool:
        """Whether ``node`` is a group that can join another, or an operator that can and the policy admits."""
        known = self.known.get(node)
        if known is None:
            known = self.known[node] = self.may_be_dissolved(node) if is_group(node) else self.is_wanted(node)
        return known

    def is_wanted(self, node: Node) -> bool:
        """Whether the operator ``node`` can be part of a group, and may by the policy."""
        answer = self.policy.fuses(node)
        if not isinstance(answer, bool):  # type: ignore[reportUnnecessaryIsInstance]  # policies may not be typed
            raise self.nonsense("fuses", node, f"True or False, not {answer!r}")
        return answer and self.may_be_grouped(node)

    def is_candidate(self, node: Node) -> bool:
        """Whether ``node`` may join some group. For other nodes, no refusal is reported."""
        return self.fuses(node) or (is_anchor(node) and self.may_be_grouped(node))

    def may_be_grouped(self, node: Node) -> bool:
        """Whether ``node`` can be in a group: an operator that writes nothing and returns fresh memory."""
        if not is_functional(node):  # nodes of its kind may write: torch's operators have overloads with ``out``
            return is_elementwise(node) and self.db_of(node.graph).is_functional(node)
        return node.kind != CONSTANT and not (node.attributes and graphs_of(node))

    def may_be_dissolved(self, group: Node) -> bool:
        """Whether ``group`` is like those made here, of operators that can be in groups.

        Its results are made by these operators, and none is returned twice.
        """
        graph = subgraph_of(group)
        results = graph.outputs
        return (
            len(set(results)) == len(results)
            and all(v.node is not None and v.node.kind != CONSTANT for v in results)
            and all(node.kind == CONSTANT or self.may_be_grouped(node) for node in graph.nodes)
        )

    def db_of(self, graph: Graph) -> AliasDb:
        """The analysis of the graph, or of that of a group, which is made when first asked for."""
        if graph not in self.dbs:
            self.dbs[graph] = analyze(graph)
        return self.dbs[graph]

    def grow(self, consumer: Node, block: Block) -> bool:
        """Merge all producers that may join into ``consumer``; return whether any did."""
        candidates: dict[Node, None] = {}
        self.add_candidates(candidates, consumer, block)
        if not candidates:
            return False
        cluster = Cluster(consumer)
        refused: dict[Node, str] = {}
        while (joined := self.next_producer(cluster, candidates, refused)) is not None:
            cluster.take(joined)
            self.add_candidates(candidates, joined, block)
        if refused:
            self.refused[block] += [(producer, consumer, reason) for producer, reason in refused.items()]
        if len(cluster.members) == 1:
            return False
        # The analysis is told once a cluster, not once a merge: until then members only move, which changes no answer.
        self.ctx.count("merged", len(cluster.members) - 1)
        with self.db.rewrite():
            self.close(cluster)
        return True

    def add_candidates(self, candidates: dict[Node, None], consumer: Node, block: Block) -> None:
        """Add the nodes of ``block`` that make inputs of ``consumer`` and may join its group."""
        for value in consumer.inputs:
            producer = value.node
            if producer is not None and producer.block is block and self.is_candidate(producer):
                candidates[producer] = None

    def next_producer(self, cluster: Cluster, candidates: dict[Node, None], refused: dict[Node, str]) -> Node | None:
        """The last of ``candidates`` that may join and now stands right before the cluster; None if none may.

        A producer that the policy refuses is no longer a candidate. One that cannot be moved remains one: the node in
        the way may join. Either way, ``refused`` has the reason.
        """
        # The last first: it has the fewest nodes to pass, and where it ends up it is out of the way of the others.
        for producer in sorted(candidates, key=_ORDER, reverse=True) if len(candidates) > 1 else list(candidates):
            reason = self.policy.refusal(producer, cluster)
            if reason is not None:
                if not isinstance(reason, str) or not reason:  # type: ignore[reportUnnecessaryIsInstance]  # as above
                    raise self.nonsense("refusal", producer, f"the reason, or None if there is none, not {reason!r}")
                del candidates[producer]
            elif not self.ctx.allow(producer):
                reason = "the optimisation limit is reached"
            elif not self.bring(producer, cluster):
                reason = _STUCK
            else:
                del candidates[producer]
                refused.pop(producer, None)
                return producer
            refused[producer] = reason
        return None

    def nonsense(self, method: str, node: Node, wanted: str) -> Error:
        """The error for an answer of the policy's ``method`` that is not one of those ``wanted``."""
        place = f"{type(self.policy).__name__}.{method}"
        return Error("IRC305", f"{place} must return {wanted}", describe(node))

    def bring(self, producer: Node, cluster: Cluster) -> bool:
        """Move ``producer`` right before ``cluster`` if that is unobservable; return whether it was done."""
        if self.db.any_writes() and self.db.writes_between(producer.outputs, producer, cluster.first):
            return False  # asked first: that is known without a look at all who use what it makes
        return self.db.move_before(producer, cluster.first, cluster.last)

    def close(self, cluster: Cluster) -> None:
        """Make a group of the cluster's nodes."""
        nodes: list[Node] = []
        # Members are last first. A member that is a group dissolves into its nodes, so that groups never nest.
        for node in reversed(cluster.members):
            nodes += dissolve(node, self.db) if is_group(node) else (node,)
        self.known[make_group(nodes, self.db)] = True

    def report(self) -> None:
        """Note what the last scan of each block, which merged nothing, refused, and why."""
        explained = 0
        for producer, consumer, reason in (refusal for block in self.refused.values() for refusal in block):
            facts: list[Fact] = []
            if reason is _STUCK and explained < MOST_EXPLAINED:
                explained += 1
                reason, facts = self.obstacle(producer, consumer)
            blocker, remedy = (reason.blocker, reason.remedy) if isinstance(reason, Reason) else ("", None)
            text = f"does not join %{consumer.outputs[0].name}: {reason}"
            self.ctx.note(producer, Reason(text, blocker, remedy), NOT_FUSED, facts)

    def obstacle(self, producer: Node, consumer: Node) -> tuple[Reason, list[Fact]]:
        """What keeps ``producer`` from ``consumer``, and why that touches the same memory, if it does."""
        db, touched = self.db, (*producer.outputs, *producer.inputs)
        assert producer.block is not None
        writers = [outer for node in db.writers(touched) if (outer := node.ancestor_in(producer.block)) is not None]
        between = [node for node in writers if producer.is_before(node) and node.is_before(consumer)]
        blocker = min(between, key=_ORDER) if between else db.blocker(producer, consumer)
        if blocker is None:
            return _STUCK, []
        if facts := why_written(db, touched, blocker):
            text = f"{_STUCK}: {describe(blocker)} in between writes memory that it reads or makes"
            return Reason(text, name_of(blocker), functional([blocker], db, self.ctx.pass_name)), facts
        text = f"{_STUCK}: {describe(blocker)} in between needs its result, and gives what that needs"
        result = producer.outputs[0]
        is_repeatable = is_elementwise(producer) and not db.writes_between(producer.inputs, producer, consumer)
        remedy = split_use(name_of(consumer), result.name) if is_repeatable else None
        return Reason(text, name_of(blocker), remedy), []


_ORDER = attrgetter("order")

_STUCK = Reason("it cannot be moved next to it")
