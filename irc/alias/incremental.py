"""Keeping the solved facts right while the graph changes.

An update changes them in place where nothing has to be taken back. Else the part of the graph concerned is analysed
again, on the solved rest; or all of it, if that part has no bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from irc.alias.facts import NOTHING, Element
from irc.alias.location_sets import members
from irc.alias.memory_types import atoms, has_memory, is_closed, parts
from irc.alias.rules import chooses_otherwise, is_functional, is_resettled, leaves_traces, say_the_same
from irc.alias.solver import Solver
from irc.alias.write_index import outermost
from irc.ir import CALL, CONSTANT, Node, TensorType, Type, Value
from irc.ir.region_flow import inner_graph

if TYPE_CHECKING:
    from irc.alias.builder import AliasDbBuilder


@dataclass(slots=True, eq=False)
class _Stale:
    """What is to be analysed again.

    Attributes:
        values: what these denote.
        nodes: what these do.
        used: what the users of these do, whichever use them then.
        inputs: inputs that turn out to share memory with nothing.
        is_unbounded: whether anything else may be concerned.
    """

    values: dict[Value, None] = field(default_factory=dict[Value, None])
    nodes: dict[Node, None] = field(default_factory=dict[Node, None])
    used: dict[Value, None] = field(default_factory=dict[Value, None])
    inputs: dict[Value, None] = field(default_factory=dict[Value, None])
    is_unbounded: bool = False

    def users(self) -> list[Node]:
        """The nodes that use ``used`` now."""
        return [user for value in self.used for user in _users(value)]


class IncrementalSolution:
    """The solved facts of a graph, and the updates that keep them so.

    Each update leaves every query answering as after a rebuild, at the cost of what it affects.
    There are three exceptions: erased nodes that stored into or escaped from what
    outlives them, constants that settle what a node does, and types that rule
    something out. They leave traces of what was possible before until
    ``tighten``, which is safe.

    Args:
        builder: what was recorded of the graph.
        record: records it again.
        solve: solves what a builder has recorded.

    Attributes:
        solver: the solved facts; another one once the graph was analysed as a whole again.
        is_tight: whether there are no such traces.
        open: how many brackets of changes are open.
        declared_unknown: the values that were declared unknown, which the graph itself does not show.
        solves: how often the graph was analysed as a whole: once, and when an update changed too much to follow.
        regions: how often a part of it was analysed again.
    """

    def __init__(
        self,
        builder: AliasDbBuilder,
        record: Callable[[], AliasDbBuilder],
        solve: Callable[[AliasDbBuilder], Solver],
    ) -> None:
        self.graph = builder.graph
        self._record = record
        self._solve = solve
        self.solver = solve(builder)
        self.solves = 1
        self.regions = 0
        self.open = 0
        self.declared_unknown: dict[Value, None] = {}
        self._told: set[Value] = set()
        """Values whose locations an update stated: the rule of the node that makes them may never have run."""
        self._most = 2 * len(self.solver.facts.targets) + 1000
        """Element count above which the whole graph is analysed again: most elements are garbage by then."""
        self._start()

    def _start(self) -> None:
        """Every query answers as after a rebuild."""
        self.is_tight = True
        self._traces = _Stale()
        """Values and nodes to which all remaining traces, or those of nodes that may yet be erased, lead."""
        self._is_postponed = False
        """Whether ``_traces.used`` are values that replaced others while a bracket is open."""

    # -- adding ----------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """``node`` is new in the graph; its inputs, outputs and blocks are complete."""
        elements = self.solver.facts.elements
        if not self._told.isdisjoint(node.outputs):
            self._analyse_again(_Stale(nodes={node: None}))  # others may refer to what they were told to denote
            self._told.difference_update(node.outputs)
        elif all(elements.get(v, NOTHING) == NOTHING for v in node.outputs):
            self.solver.analyse_node(node)  # or else a query for its results has done so
            self.solver.know_constant(node)

    def create_value(self, value: Value) -> None:
        """``value`` is new and denotes fresh memory, whatever its node is."""
        self.solver.dag.forget_answer(value)
        self.solver.fresh(value)
        self._told.add(value)

    def copy_value(self, source: Value, target: Value) -> None:
        """``target`` is new and denotes what ``source`` does."""
        self.solver.dag.forget_answer(target)
        self.solver.bind(target, self.solver.element(source))
        self._told.add(target)
        if source in self.declared_unknown:
            self.declared_unknown[target] = None

    def rehome_value(self, value: Value) -> None:
        """``value`` is about to become the result of another node. It denotes what it did."""
        self.solver.element(value)  # known from now on: what its new node does will not be asked
        self._told.add(value)

    def unnest_nodes(self, node: Node, moved: Iterable[Node] | None) -> None:
        """Nodes, ``moved`` if that is given, have moved from the blocks of ``node`` to before it."""
        index = self.solver.index
        if moved is None or any(index.elements(n) for n in moved):
            index.renest(node)

    def set_wildcard(self, value: Value) -> None:
        """Make ``value`` unknown: any unknown memory of its type may be its own, and unknown code may hold it."""
        self.declared_unknown[value] = None
        self.solver.dag.forget_answer(value)
        self.declare_unknown([value])

    def own_inputs(self, values: Iterable[Value]) -> None:
        """``values``, inputs of the graph that were unknown, share memory with nothing from now on."""
        self._analyse_again(_Stale(inputs=dict.fromkeys(values)))

    def declare_unknown(self, values: Iterable[Value]) -> None:
        """As `set_wildcard`, for values that were declared so before, or to another solution."""
        for value in values:
            self.solver.become_unknown(self.solver.element(value))

    # -- replacing -------------------------------------------------------

    def replace_values(self, pairs: Iterable[tuple[Value, Value]]) -> None:
        """Report, for pairs, that uses of the first, except as graph outputs, are now uses of the second."""
        again = _Stale()
        for old, new in pairs:
            if old is not new:
                self._replace(old, new, again)
        if again.is_unbounded or again.nodes or again.users():
            self._analyse_again(again)

    def _replace(self, old: Value, new: Value, again: _Stale) -> None:
        """Do what can be done at once for ``new`` in place of ``old``, and add to ``again`` what cannot."""
        before = self.solver.facts.elements.get(old)
        was_nothing = before == NOTHING or (before is None and not has_memory(old.type))
        if was_nothing and has_memory(new.type):
            if holds(new):
                again.values[new] = None
            again.used[new] = None  # it was of no concern to who uses it
            return
        if self._is_postponed and old in self._traces.used:
            self._traces.used[new] = None
        if not say_the_same(old, new):
            for user in [user for user in new.iter_users() if is_resettled(user, old, new)]:
                if old.made_by(CONSTANT) is None and user.kind != CALL:
                    self._loosen(user, self._is_around_escaped(user))
                elif leaves_traces(user) and self._is_around_escaped(user):
                    again.is_unbounded = True  # what it did before may have left traces anywhere
                    return
                else:  # it may do now what it was known not to do; a call, what unknown functions do not
                    again.nodes[user] = None
        if before is None or before == NOTHING:
            return  # nothing was ever said about what old denotes
        after = self.solver.element(new)
        if new in self._told and self.solver.facts.targets[after] == before:  # a copy that takes the place of ``old``
            self.solver.hand_over(old, new)
            before, after = self.solver.element(old), self.solver.element(new)
        stays = old in self.declared_unknown  # what it denotes is unknown whatever its uses have become
        if not stays and self.solver.redirect(old, before, after):
            return
        if self.open and not stays and self.solver.leads_to(before, after):
            # Until the bracket closes, what is known of the uses stays: what is replaced denoted no less.
            self.is_tight = False
            self._is_postponed = True
            self._traces.used[new] = None
            return
        again.values.update((v, None) for v in (old, new) if holds(v))
        if stays or holds(old) or self.any_escaped([old]):
            again.nodes.update((n, None) for n in _makers([old]))  # of a mere tensor, its uses take nothing back
        again.used[new] = None

    def retype_value(self, value: Value, before: Type) -> None:
        """The type of ``value``, which was ``before``, has become more exact."""
        if parts(before) == parts(value.type):
            return
        if atoms(before) != atoms(value.type):
            self._loosen(value, self.any_escaped([value]))
        for user in _users(value):
            if chooses_otherwise(user, value, before):
                self._loosen(user, self._is_around_escaped(user))

    # -- erasing ---------------------------------------------------------

    def erase_value(self, value: Value) -> None:
        """``value`` is about to be erased, or has been."""
        traces = self._traces
        if value in traces.values:  # what makes it still leads to what it led to
            makers = [n for n in _makers([value]) if n.block is not None and n.block.graph is self.graph]
            for node in makers:
                traces.nodes[node] = None
                self.cut_inputs(node)
            traces.values.pop(value)
        self.solver.forget(value, may_be_written=self._is_postponed)
        self._told.discard(value)
        traces.used.pop(value, None)
        if value in self.declared_unknown:
            del self.declared_unknown[value]
            self._loosen(None, unbounded=True)
        elif self.solver.facts.merges_types and not all(map(is_closed, atoms(value.type))):
            self._loosen(None, unbounded=True)  # without it, there may be few enough types to tell apart

    def cut_inputs(self, node: Node) -> None:
        """Report that ``node``, or its blocks, will lose inputs or returns on which no value depends."""
        cut = (*node.inputs, *(v for block in node.blocks for v in block.returns))
        inner = inner_graph(node)
        if inner is not None and len(set(inner.outputs)) < len(inner.outputs):
            self._loosen(node, unbounded=False)  # what it returns twice is not shared once one of the results has gone
        self._traces.values.update((v, None) for v in cut if holds(v))  # what is erased later may leave traces there

    def erase_node(self, node: Node) -> None:
        """``node``, with all inside it, is about to be erased."""
        inside = [node, *node.nested()]
        elements = self.solver.facts.elements
        for n in inside:
            if leaves_traces(n):
                self._loosen(None, self._is_around_escaped(n))
            if not self.is_tight:  # it may be all that leads from what it makes to what it is given
                self._traces.values.update((v, None) for v in n.inputs if holds(v) and v in elements)
        erased = [v for n in inside for v in (*n.outputs, *(p for block in n.blocks for p in block.params))]
        for n in inside:
            self.solver.index.remove(n)
        for value in erased:
            self.erase_value(value)
        # Erasing one of them may have noted another as a trace.
        for value in erased:
            self._traces.values.pop(value, None)
        for n in inside:
            self._traces.nodes.pop(n, None)

    # -- analysing again -------------------------------------------------

    def refresh(self) -> None:
        """Analyse the graph again as a whole."""
        top = self.graph.block
        self.declared_unknown = {v: None for v in self.declared_unknown if outermost(v.block) is top}
        self._solve_again()

    def tighten(self) -> None:
        """Drop what is left of erased nodes, so that every query answers as after a rebuild."""
        if not self.is_tight:
            traces = self._traces
            # Unknown code that used what was replaced may have been given more than what stands there now.
            if any(leaves_traces(user) and self._is_around_escaped(user) for user in traces.users()):
                traces.is_unbounded = True
            self._analyse_again(traces)
            self._start()

    def close(self) -> None:
        """The outermost bracket closes: tighten what was postponed."""
        if self._is_postponed:
            self.tighten()

    def any_escaped(self, values: Iterable[Value]) -> bool:
        """Whether unknown code may hold any of ``values`` or something in them."""
        facts, dag = self.solver.facts, self.solver.dag
        if not facts.escaped:
            return False
        known = [facts.elements[v] for v in values if v in facts.elements]
        return any(x in facts.escaped for element in known for x in members(dag.closure(element)))

    def _is_around_escaped(self, node: Node) -> bool:
        """Whether unknown code may hold an input or output of ``node``, or something in it."""
        return self.any_escaped((*node.inputs, *node.outputs))

    def _loosen(self, of: Value | Node | None, unbounded: bool) -> None:
        self.is_tight = False
        if isinstance(of, Value):
            self._traces.values[of] = None
        elif of is not None:
            self._traces.nodes[of] = None
        self._traces.is_unbounded = self._traces.is_unbounded or unbounded

    def _analyse_again(self, stale: _Stale) -> None:
        """Find again what is ``stale``, and all that follows; nothing else is touched.

        The elements that values had are given up, not changed: none that is still in use leads there, as the
        invalidation is closed.
        """
        solver = self.solver
        if stale.is_unbounded or len(solver.facts.targets) > self._most:
            self._solve_again()
            return
        gone = _Invalidation(solver, stale)
        if not gone.is_closed:
            self._solve_again()
            return
        for value in gone.values:
            solver.facts.disown(value)
        solver.dag.forget_closures()
        for node in gone.nodes:
            solver.index.remove(node)
        for value in stale.inputs:
            solver.bind_input(value, owned=True)
        for node in gone.in_order():
            solver.analyse_node(node)
        self.declare_unknown(value for value in gone.values if value in self.declared_unknown)
        self.regions += 1

    def _solve_again(self) -> None:
        self.solver = self._solve(self._record())
        self.declare_unknown(self.declared_unknown)
        self.solves += 1
        self._told.clear()
        self._most = 2 * len(self.solver.facts.targets) + 1000
        self._start()

    def counters(self) -> dict[str, int]:
        """Counts of elements made and known, unions, known elements grown, and analyses in full and in part."""
        solver = self.solver
        return {
            "elements": len(solver.facts.targets),
            "known": len(solver.dag.known),
            "unions": solver.dag.sets.unions,
            "grown": solver.grown,
            "solves": self.solves,
            "regions": self.regions,
        }


class _Invalidation:
    """All that has to be analysed again once the facts of some values and nodes are taken back.

    Facts flow from what a node is given to what it makes: a result denotes what
    its argument does. Only containers take something back: what is stored into
    one is seen by all who have it. So if the facts of a value are taken back, all
    that mentions it follows; and if a node's are, so do its results and those of
    its arguments that may hold anything. A tensor that is merely given stays.

    Attributes:
        values: the values whose locations are to be found again.
        nodes: the nodes whose effects are to be recorded again.
        is_closed: whether nothing outside knows of these. If false, something among them is, or came with, memory known
            outside of the graph, and they are without bounds.
    """

    def __init__(self, solver: Solver, stale: _Stale) -> None:
        self._solver = solver
        self._inputs = stale.inputs
        self._elements = solver.facts.elements
        self._pending: list[Value | Node] = []
        self.values: dict[Value, None] = {}
        self.nodes: dict[Node, None] = {}
        for value in (*stale.values, *stale.inputs):
            self._take(value)
        for node in (*stale.nodes, *stale.users()):
            self._enter(node)
        self.is_closed = self._close()

    def in_order(self) -> list[Node]:
        """The nodes that are not inside another one, in the order of the program."""
        outermost = [n for n in self.nodes if self.nodes.keys().isdisjoint(n.around())]
        return sorted(outermost, key=Node.place)

    def _close(self) -> bool:
        while self._pending:
            found = self._pending.pop()
            if isinstance(found, Node):
                self._follow_node(found)
            elif not self._follow_value(found):
                return False
        return True

    def _take(self, value: Value) -> None:
        element = self._elements.get(value)
        if value not in self.values and element is not None and not self._is_nothing(value, element):
            self.values[value] = None
            self._pending.append(value)

    def _enter(self, node: Node) -> None:
        if node not in self.nodes:
            self.nodes[node] = None
            self._pending.append(node)

    def _follow_node(self, node: Node) -> None:
        for value in node.inputs:
            if holds(value) and not self._is_unknown(value):
                self._take(value)
        for value in node.outputs:
            self._take(value)
        for block in node.blocks:
            for value in block.params:
                self._take(value)
            for value in block.returns:
                if holds(value):
                    self._take(value)
            for inner in block.nodes:
                self._enter(inner)

    def _follow_value(self, value: Value) -> bool:
        """Enter all nodes that mention ``value``; False if it is known outside of the graph."""
        block = value.block
        if not self._is_inside(value) or block is None:
            return False
        maker = value.definer
        if maker is not None:
            self._enter(maker)
        elif value not in self._inputs:
            return False  # not the graph made it
        was_nothing = self._elements.get(value) == NOTHING  # who only read it made memory of their own for that
        for user in value.iter_users():
            if user.is_return:
                around = user.outer
                if around is not None:
                    self._enter(around)
            elif was_nothing or not self._only_reads(user):
                self._enter(user)
        return True

    def _is_inside(self, value: Value) -> bool:
        facts, dag = self._solver.facts, self._solver.dag
        if not facts.escaped and not facts.shared:
            return True
        reach = members(dag.closure(self._elements[value]))
        return not any(
            x in facts.escaped or (holds(value) and (x in facts.shared or x in facts.unknown_types)) for x in reach
        )

    def _is_unknown(self, value: Value) -> bool:
        """Whether only the type of ``value`` is known: what is stored there escapes and is found by its type."""
        facts = self._solver.facts
        element = self._elements.get(value, NOTHING)
        return facts.resolve(element) in facts.unknown_of

    def _only_reads(self, node: Node) -> bool:
        """Whether ``node`` only makes tensors of their own: then no fact about it mentions its inputs."""
        if node.blocks or self._solver.index.elements(node):
            return False
        if is_functional(node):
            return True
        return not leaves_traces(node) and all(map(self._is_fresh, node.outputs))

    def _is_nothing(self, value: Value, element: Element) -> bool:
        """Whether ``value`` can denote no memory at all. If it is merely None on every path, that may change."""
        return element == NOTHING and not has_memory(value.type)

    def _is_fresh(self, value: Value) -> bool:
        element = self._elements.get(value)
        if element is not None and self._is_nothing(value, element):
            return True
        return element is not None and not holds(value) and self._solver.facts.sites.get(element) is value


def holds(value: Value) -> bool:
    """Whether ``value`` may hold other values: it is, or may be, anything but a tensor."""
    return value.type.__class__ is not TensorType


def _makers(values: Iterable[Value]) -> list[Node]:
    """The nodes that define ``values``; for a parameter, the node around its block."""
    nodes = [v.definer for v in values]
    return [n for n in nodes if n is not None]


def _users(value: Value) -> list[Node]:
    """The nodes that use ``value``; where a block returns it, the node around that block."""
    nodes = [u.outer if u.is_return else u for u in value.iter_users()]
    return list(dict.fromkeys(n for n in nodes if n is not None))
