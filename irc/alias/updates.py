"""Keeping an ``AliasDb`` right while its graph changes."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import NamedTuple

from irc.alias.builder import AliasDbBuilder
from irc.alias.facts import NOTHING
from irc.alias.memory_types import atoms, has_memory, is_closed, parts
from irc.alias.queries import Queries
from irc.alias.region import Region, any_escaped, holds
from irc.alias.rules import leaves_traces
from irc.alias.rules.schema_rule import chooses_otherwise
from irc.alias.rules.switches import is_resettled, say_the_same
from irc.ir.kinds import CALL, CONSTANT
from irc.ir.node import Node
from irc.ir.types import Type
from irc.ir.value import Value


class _Again(NamedTuple):
    """What is to be analysed again: values, nodes, and the nodes that use some values."""

    values: list[Value]
    nodes: list[Node]
    used: dict[Value, None]


class Updates(Queries):
    """Each update leaves every query answering as after a rebuild, at the cost of what it affects.

    There are three exceptions: erased nodes that stored into or escaped from what
    outlives them, constants that settle what a node does, and types that rule
    something out. They leave traces of what was possible before until
    ``tighten``, which is safe.

    Attributes:
        is_tight: whether there are no such traces.
        generation: grows whenever values got new locations in place of those they had.
        check_rewrites: whether ``rewrite`` ends with ``check``; slow, for tests and the verify-alias instrument.
        solves: how often the graph was analysed as a whole: once, and when an update changed too much to follow.
        regions: how often a part of it was analysed again.
    """

    def __init__(self, builder: AliasDbBuilder) -> None:
        super().__init__(builder)
        self.solves = 1
        self.regions = 0
        self.check_rewrites = False
        self._open = 0
        self._declared_unknown: dict[Value, None] = {}
        self._told: set[Value] = set()
        """Values whose locations an update stated: the rule of the node that makes them may never have run."""
        self._start()

    def _start(self) -> None:
        """Reset the bookkeeping: every query answers as after a rebuild."""
        self.is_tight = True
        self._loose: dict[Value | Node, None] = {}
        """Values and nodes to which all remaining traces lead."""
        self._is_unbounded = False
        """Whether there are traces outside of the graph too."""
        self._postponed: dict[Value, None] | None = None
        """Values that replaced others in a `rewrite`; their uses are analysed again when it closes."""
        self._most = 2 * len(self._solver.facts.targets) + 1000
        """Element count above which the whole graph is analysed anew: most elements are garbage by then."""

    # -- adding ----------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """``node`` is new in the graph; its inputs, outputs and blocks are complete."""
        self.check_own(node)
        elements = self._solver.facts.elements
        if not self._told.isdisjoint(node.outputs):
            self._analyse_again([], [node])  # others may refer to what they were told to denote
            self._told.difference_update(node.outputs)
        elif all(elements.get(v, NOTHING) == NOTHING for v in node.outputs):
            self._solver.analyse_node(node)  # or else a query for its results has done so
            self._solver.know_constant(node)

    def create_value(self, value: Value) -> None:
        """``value`` is new and denotes fresh memory, whatever its node is."""
        self._check_told(value)
        self._solver.dag.forget_answer(value)
        self._solver.fresh(value)
        self._told.add(value)

    def copy_value(self, source: Value, target: Value) -> None:
        """``target`` is new and denotes what ``source`` does."""
        self._check_told(source, target)
        self._solver.dag.forget_answer(target)
        self._solver.bind(target, self._solver.element(source))
        self._told.add(target)
        if source in self._declared_unknown:
            self._declared_unknown[target] = None

    def rehome_value(self, value: Value) -> None:
        """``value`` is about to become the result of another node. It denotes what it did."""
        self._check_told(value)
        self._solver.element(value)  # known from now on: what its new node does will not be asked
        self._told.add(value)

    def unnest_nodes(self, node: Node, moved: Iterable[Node] | None = None) -> None:
        """Nodes have moved from the blocks of ``node``, which is still in the graph, to before it.

        ``moved`` lists these nodes, if given: then there is nothing to do unless one of them writes.
        """
        index = self._solver.index
        if moved is None or any(index.elements(n) for n in moved):
            index.renest(node)

    def set_wildcard(self, value: Value) -> None:
        """``value`` is unknown from now on: it may be any unknown memory of its type, and unknown code may hold it."""
        self._check_told(value)
        self._declared_unknown[value] = None
        self._declare_unknown([value])

    def _declare_unknown(self, values: Iterable[Value]) -> None:
        for value in values:
            self._solver.become_unknown(self._solver.element(value))

    # -- replacing -------------------------------------------------------

    def replace_value(self, old: Value, new: Value) -> None:
        """Every use of ``old``, except as an output of the graph, has become a use of ``new``. Call it after that.

        If ``new`` is a constant that settles what its users do (whether a
        normalisation trains), and ``old`` is not one, the db remains a superset of the exact answer until ``tighten``.
        """
        self.replace_values([(old, new)])

    def replace_values(self, pairs: Iterable[tuple[Value, Value]]) -> None:
        """`replace_value` for pairs of old and new, none of which replaces another; the graph is re-analysed only once.

        Call it after all of them have been replaced.
        """
        again = _Again([], [], {})
        is_bounded = True
        for old, new in pairs:
            self._check_told(old, new)
            if old is not new:
                is_bounded = self._replace(old, new, again) and is_bounded
        nodes = [*again.nodes, *(user for value in again.used for user in _users(value))]
        if not is_bounded:
            self._solve_again()
        elif nodes:
            self._analyse_again(again.values, nodes)

    def _replace(self, old: Value, new: Value, again: _Again) -> bool:
        """Do what can be done at once for ``new`` in place of ``old``, and add to ``again`` what cannot.

        Returns False if nothing less than an analysis of the whole graph will do.
        """
        before = self._solver.facts.elements.get(old)
        was_nothing = before == NOTHING or (before is None and not has_memory(old.type))
        if was_nothing and has_memory(new.type):
            if holds(new):
                again.values.append(new)
            again.used[new] = None  # it was of no concern to who uses it
            return True
        if self._postponed is not None and old in self._postponed:
            self._postponed[new] = None
        if not say_the_same(old, new):
            settled = [user for user in new.iter_users() if is_resettled(user, old, new)]
            for user in settled:
                if old.made_by(CONSTANT) is None and user.kind != CALL:
                    self._loosen(user, self._is_around_escaped(user))
                elif leaves_traces(user) and self._is_around_escaped(user):
                    return False  # what it did before may have left traces anywhere
                else:  # it may do now what it was known not to do; a call, what unknown functions do not
                    again.nodes.append(user)
        if before is not None and before != NOTHING:  # or else nothing was ever said about what old denotes
            after = self._solver.element(new)
            stays = old in self._declared_unknown  # what it denotes is unknown whatever its uses have become
            if stays or not self._solver.redirect(old, before, after):
                if self._open and not stays and self._solver.leads_to(before, after):
                    self._postpone(new)
                    return True
                again.values.extend(v for v in (old, new) if holds(v))
                if stays or holds(old) or any_escaped(self._solver, [old]):
                    again.nodes.extend(_makers([old]))  # of a mere tensor, its uses take nothing back
                again.used[new] = None
        return True

    def _postpone(self, new: Value) -> None:
        """Until the rewrite closes, keep what is known of the uses of ``new``: the replaced value denoted no less."""
        self._loosen(None, unbounded=False)
        if self._postponed is None:
            self._postponed = {}
        self._postponed[new] = None

    def retype_value(self, value: Value, before: Type) -> None:
        """The type of ``value``, which was ``before``, has become more exact.

        Where it says less of memory now (a ``Tensor?`` is None), or has a user mean another overload, the db stays what
        it was, a superset, until ``tighten``. Of shapes and element types it says nothing.
        """
        self._check_told(value)
        if parts(before) == parts(value.type):
            return
        if atoms(before) != atoms(value.type):
            self._loosen(value, any_escaped(self._solver, [value]))
        for user in _users(value):
            if chooses_otherwise(user, value, before):
                self._loosen(user, self._is_around_escaped(user))

    # -- erasing ---------------------------------------------------------

    def erase_value(self, value: Value) -> None:
        """``value`` is about to be erased, or has been."""
        if value in self._loose:
            del self._loose[value]  # what makes it still leads to what it led to
            makers = [n for n in _makers([value]) if n.block is not None and n.block.graph is self.graph]
            self._loose.update(dict.fromkeys(makers))
            for node in makers:
                self.cut_inputs(node)
            self._loose.pop(value, None)
        self._solver.forget(value, may_be_written=self._postponed is not None)
        self._told.discard(value)
        if self._postponed is not None:
            self._postponed.pop(value, None)
        if value in self._declared_unknown:
            del self._declared_unknown[value]
            self._loosen(None, unbounded=True)
        elif self._solver.facts.merges_types and not all(map(is_closed, atoms(value.type))):
            self._loosen(None, unbounded=True)  # without it, there may be few enough types to tell apart

    def cut_inputs(self, node: Node) -> None:
        """``node``, or the blocks in it, are about to lose inputs or returns that no value depends on any more."""
        cut = (*node.inputs, *(v for block in node.blocks for v in block.returns))
        self._loose.update((v, None) for v in cut if holds(v))  # what is erased later may have left traces there

    def erase_node(self, node: Node) -> None:
        """``node``, with all inside it, is about to be erased. Call it before erasing the node from the graph."""
        inside = [node, *node.nested()]
        elements = self._solver.facts.elements
        for n in inside:
            if leaves_traces(n):
                self._loosen(None, self._is_around_escaped(n))
            if not self.is_tight:  # it may be all that leads from what it makes to what it is given
                self._loose.update((v, None) for v in n.inputs if holds(v) and v in elements)
        for n in inside:
            self._solver.index.remove(n)
            for value in n.outputs:
                self.erase_value(value)
            for block in n.blocks:
                for value in block.params:
                    self.erase_value(value)
        for n in inside:
            for gone in (n, *n.outputs, *(v for block in n.blocks for v in block.params)):
                self._loose.pop(gone, None)

    def refresh(self) -> None:
        """The graph has changed beyond what the updates can tell: analyse it again as a whole."""
        self._declared_unknown = {v: None for v in self._declared_unknown if self._stands(v.block)}
        self._solve_again()

    def declares_unknown(self) -> bool:
        """Whether values of the graph were declared unknown, which the graph itself does not show."""
        return bool(self._declared_unknown)

    def tighten(self) -> None:
        """Drop what is left of erased nodes, so that every query answers as after a rebuild."""
        if not self.is_tight:
            values = [v for v in self._loose if isinstance(v, Value)]
            nodes = [n for n in self._loose if isinstance(n, Node)]
            users = [user for value in self._postponed or () for user in _users(value)]
            nodes += users
            self._postponed = None
            # Unknown code that used what was replaced may have been given more than what stands there now.
            escaped = any(leaves_traces(user) and self._is_around_escaped(user) for user in users)
            if self._is_unbounded or escaped:
                self._solve_again()
            else:
                self._analyse_again(values, nodes)
            self._start()

    def _check_told(self, *values: object) -> None:
        """Raise an error unless ``values`` are of the graph: otherwise a foreign one would pass for a new value."""
        self.check_single(*values, taken="updates take one value at a time")

    def _is_around_escaped(self, node: Node) -> bool:
        """Whether unknown code may hold an input or output of ``node``, or something in it."""
        return any_escaped(self._solver, (*node.inputs, *node.outputs))

    def _loosen(self, of: Value | Node | None, unbounded: bool) -> None:
        self.is_tight = False
        if of is not None:
            self._loose[of] = None
        self._is_unbounded = self._is_unbounded or unbounded

    def _analyse_again(self, values: list[Value], nodes: list[Node]) -> None:
        """Find anew what ``values`` denote and ``nodes`` do, and all that follows; nothing else is touched."""
        region = Region(self._solver, values, nodes)
        if not region.is_closed or len(self._solver.facts.targets) > self._most:
            self._solve_again()
            return
        self._solver.analyse_again(region)
        self._declare_unknown(value for value in region.values if value in self._declared_unknown)
        self.regions += 1

    @property
    def generation(self) -> tuple[int, int]:
        return self.solves, self.regions

    def _record(self) -> AliasDbBuilder:
        builder = AliasDbBuilder(self.graph, self.module, self.noalias.intersection(self.graph.inputs))
        builder.record()
        return builder

    def _solve_again(self) -> None:
        self._solve(self._record())
        self._declare_unknown(self._declared_unknown)
        self.solves += 1
        self._told.clear()
        self._start()

    def counters(self) -> dict[str, int]:
        """Elements made and known, unions computed, known elements grown, analyses of the whole graph and of parts."""
        solver = self._solver
        return {
            "elements": len(solver.facts.targets),
            "known": len(solver.dag.known),
            "unions": solver.dag.sets.unions,
            "grown": solver.grown,
            "solves": self.solves,
            "regions": self.regions,
        }

    # -- checking --------------------------------------------------------

    @contextmanager
    def rewrite(self) -> Generator[None]:
        """Bracket a change of the graph and the updates that report it: inside, graph and database may disagree.

        If a value was replaced by one that it might have been (the result of an If, by what one of its blocks returns),
        and much of the graph has to be analysed again for that, this is done once, when the outermost bracket closes.
        Until then the database is a superset. If ``check_rewrites`` is set, it is then checked.
        """
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
        if not self._open:
            if self._postponed is not None:
                self.tighten()
            if self.check_rewrites:
                self.check()

    def check(self, exact: bool = True) -> None:
        """Analyse the graph anew and compare the answers; ``Error`` IRC340 names the first difference.

        An answer may be more cautious than the new one only while ``is_tight`` is false, or if not ``exact``.
        """
        from irc.alias.check import compare

        fresh = Updates(self._record())
        fresh._declare_unknown(self._declared_unknown)
        exact = exact and self.is_tight and not self._solver.functions.is_cautious
        compare(self, fresh, exact)


def _makers(values: Iterable[Value]) -> list[Node]:
    """The nodes that define ``values``; for a parameter, the node around its block."""
    nodes = [v.definer for v in values]
    return [n for n in nodes if n is not None]


def _users(value: Value) -> list[Node]:
    """The nodes that use ``value``; where a block returns it, the node around that block."""
    nodes = [u.outer if u.is_return else u for u in value.iter_users()]
    return list(dict.fromkeys(n for n in nodes if n is not None))
