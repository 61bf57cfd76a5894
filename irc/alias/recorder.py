"""The vocabulary in which alias rules speak: what a node does to memory.

A rule is the same whether a graph is analysed for the first time or a node is
added to a solved database: only what becomes of a pointer or a constraint differs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from irc.alias.attributes import Attributes
from irc.alias.facts import NOTHING, Constraint, Element, Facts, Site
from irc.alias.locations import Kind
from irc.alias.memory_types import has_memory
from irc.alias.write_index import WriteLog
from irc.errors import Error
from irc.ir.attributes import tensors_in
from irc.ir.block import Block
from irc.ir.kinds import CONSTANT
from irc.ir.node import Node
from irc.ir.objects import storage_of
from irc.ir.tensor import Tensor
from irc.ir.types import OptionalType, TensorType, Type, UnionType
from irc.ir.value import Value
from irc.ops.metadata import Change, change_of

if TYPE_CHECKING:
    from irc.alias.summaries import Functions

Steps: TypeAlias = "Iterator[Block | Steps]"
"""What a rule for nodes with blocks or calls yields: blocks to analyse, in order, or further steps."""

Rule: TypeAlias = "Callable[[Recorder, Node], Steps | None]"
"""Records what a node does. It binds every output that has memory."""


class Functional:
    """The rule of an operator whose results are all fresh, for those of its nodes that the schema rows describe.

    The rows do not describe a node with more arguments than any of them takes, nor one whose last argument is a tensor
    where no row has one: that tensor may be the one that receives the result (``out=``).

    Args:
        most: how many arguments a node has at most.
        lasts: the numbers of arguments that a node may have if the last one is a tensor.
    """

    __slots__ = ("_lasts", "_most")

    def __init__(self, most: int, lasts: frozenset[int]) -> None:
        self._most = most
        self._lasts = lasts

    def fits(self, node: Node) -> bool:
        """Whether the schema rows describe ``node``, judged by its arguments."""
        inputs = node.inputs
        count = len(inputs)
        return not count or count in self._lasts or (count <= self._most and not _may_be_tensor(inputs[-1].type))


def _may_be_tensor(type: Type) -> bool:
    if isinstance(type, OptionalType | UnionType):
        return any(map(_may_be_tensor, type.inner))
    return isinstance(type, TensorType) or type.is_any


OfKind: TypeAlias = "Rule | Functional | None"
"""The rule for nodes of a kind; None, or `Functional`, if all outputs are fresh and nothing is written."""


class _Rules(dict[str, "OfKind"]):
    """Kind of node -> its rule, found when first needed."""

    def __missing__(self, kind: str) -> OfKind:
        from irc.alias.rules import find_rule

        rule = self[kind] = find_rule(kind)
        return rule


RULES = _Rules()


def rule_of(node: Node) -> Rule | None:
    """The rule for ``node``; None if it writes nothing and all its outputs are fresh memory."""
    return rule_for(node, RULES[node.kind])


def rule_for(node: Node, rule: OfKind) -> Rule | None:
    """The rule for ``node``, given the ``rule`` of its kind: `opaque` if that does not fit it; None if all is fresh."""
    if rule is not None and not isinstance(rule, Functional):
        return rule
    if node.blocks or (rule is not None and not rule.fits(node)):
        from irc.alias.rules.calls import opaque  # functional operators have no blocks: this one means something else

        return opaque
    return None


def is_functional(node: Node) -> bool:
    """Whether ``node`` writes nothing and all its outputs are fresh memory."""
    return rule_of(node) is None


class Recorder(Attributes):
    """Binds values to elements, runs rules, and records what is written.

    Attributes:
        writes: where writes are noted.
        functions: the summaries of functions that nodes may call.
        loops_apart: see `irc.alias.analyze`.
    """

    def __init__(self, facts: Facts, writes: WriteLog, functions: Functions) -> None:
        super().__init__(facts)
        self.writes = writes
        self.functions = functions
        self.loops_apart = False
        self._acting: Node | None = None

    @abstractmethod
    def define(self, value: Value) -> Element:
        """The element of a value that has none yet."""

    # -- nodes -----------------------------------------------------------

    def analyse_block(self, block: Block) -> None:
        """Record what the nodes of ``block`` do, in order."""
        self._run(self._visit(block))

    def analyse_node(self, node: Node) -> None:
        """Record what ``node`` does."""
        rule = rule_of(node)
        nested = rule and rule(self, node)
        if nested is not None:
            self._run(nested)

    def _visit(self, block: Block) -> Steps:
        rules = RULES
        for node in block.unchanging_nodes():
            rule = rules[node.kind]
            if rule is None and not node.blocks:
                continue
            rule = rule_for(node, rule)
            nested = rule and rule(self, node)
            if nested is not None:
                yield nested

    def _run(self, steps: Steps) -> None:
        """Run ``steps`` and whatever they yield, innermost first: nesting may be deeper than Python's stack."""
        stack = [steps]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            else:
                stack.append(self._visit(step) if isinstance(step, Block) else step)

    # -- values ----------------------------------------------------------

    def element(self, value: Value) -> Element:
        """What ``value`` denotes."""
        found = self.facts.elements.get(value)
        return self.define(value) if found is None else found

    def bind(self, value: Value, element: Element) -> None:
        """``value`` denotes what ``element`` does."""
        if element.__class__ is not int:  # the rule may be foreign
            raise Error("IRC305", f"an alias rule binds it to {element!r}, which is no element", f"%{value.name}")
        self.facts.elements[value] = self.facts.same(element)

    def own(self, value: Value, element: Element) -> None:
        """Make ``element``, which no other value has, the element of ``value``."""
        self.facts.elements[value] = element

    def fresh(self, value: Value) -> Element:
        """``value`` denotes memory of its own; a container holds unknown contents that share memory with nothing."""
        node = value.node
        if not has_memory(value.type):
            element = NOTHING
        elif node is not None and node.kind == CONSTANT:
            element = self._constant(value, node)
        else:
            element = self.facts.location(value)
        self.facts.elements[value] = element
        return element

    def container(self, value: Value, type: Type | None = None, path: tuple[str, ...] = ()) -> Element:
        """A new, empty container that ``value`` denotes or, with a path, that is made inside it."""
        site = value if type is None else Site(Kind.TEMPORARY, value, type, path)
        element = self.facts.location(site)
        self.facts.constructed.add(element)
        if type is None:
            self.facts.elements[value] = element
        return element

    def memory(self, value: Value, type: Type, path: tuple[str, ...]) -> Element:
        """Fresh memory of the given type, somewhere inside what ``value`` denotes."""
        return self.facts.location(Site(Kind.TEMPORARY, value, type, path)) if has_memory(type) else NOTHING

    def know_constant(self, node: Node) -> None:
        """Bind the output of ``node`` if it is a constant that may also be given: then other values may be it, too."""
        if self.facts.constants_are_given and node.kind == CONSTANT:
            self.element(node.output)

    def _constant(self, value: Value, node: Node) -> Element:
        if self.facts.constants_are_given:
            return self.facts.same(self.unknown(value.type))
        given = node.attributes.get("value")
        if isinstance(given, Tensor) and given.name:
            return self.facts.same(self.constant(given.name, value.type))
        made = self.facts.location(value)
        if not isinstance(given, Tensor) and any(storage_of(tensor).name for tensor in tensors_in(given)):
            self.fill(made, given)
        return made

    # -- memory ----------------------------------------------------------

    def write(self, node: Node, element: Element, change: Change | None = None) -> None:
        """``node`` writes to what ``element`` denotes; ``change`` is by default what operators of its kind change."""
        if element != NOTHING:
            self.writes.add(self._acting or node, element, change_of(node.kind) if change is None else change)

    @contextmanager
    def on_behalf_of(self, node: Node) -> Generator[None]:
        """Count writes by nodes of another graph as writes by ``node``, which runs that graph."""
        outer, self._acting = self._acting, self._acting or node
        try:
            yield
        finally:
            self._acting = outer


class Noting(Recorder):
    """Notes pointers and constraints, and draws no conclusion from them."""

    def define(self, value: Value) -> Element:
        node = value.node
        if node is None:
            self.bind(value, self.unknown(value.type))
            return self.facts.elements[value]
        if has_memory(value.type) and not is_functional(node):
            raise Error("IRC212", f"%{value.name} is used before {node.kind} defines it", f"%{value.name}")
        return self.fresh(value)

    def point(self, source: Element, target: Element) -> None:
        if target != NOTHING:
            self.facts.point(source, target)

    def constrain(self, constraint: Constraint) -> None:
        self.facts.constraints.append(constraint)
