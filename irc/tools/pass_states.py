"""Runs pipelines and keeps the module as it is after each pass; what a pass has changed."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from irc.errors import Error, error_text
from irc.ir import CONSTANT, Graph, Module, Node, describe
from irc.ir.text.printer import print_node
from irc.passes import Pass, PassContext, PassManager
from irc.passes.base import is_ours
from irc.passes.instruments import PassEnds, alias_fault
from irc.passes.registry import Pipeline
from irc.passes.shapes import contradiction
from irc.tools.shrink import Work

_UNLIMITED = 1 << 60


class Failure(NamedTuple):
    """How a module is wrong.

    Attributes:
        how: a pass ``"raises"``, or ``"breaks"`` a rule of the IR; lowering or running ``"fails"``; results are
            ``"different"``.
        code: of the error; "" if results are different.
        message: what the error says, or which output differs, by how much.
    """

    how: str
    code: str
    message: str

    @property
    def is_of_results(self) -> bool:
        """Whether the module keeps the rules, but gives no or other results."""
        return self.how in ("fails", "different")

    def like(self, other: Failure | None) -> bool:
        """Whether ``other`` is the same fault, as far as can be told.

        A wrong value may make a later node fail, and a wrong type break this or that rule.
        """
        if other is None or self.is_of_results != other.is_of_results:
            return False
        return self.is_of_results or self.how == other.how == "breaks" or self[:2] == other[:2]


class State(NamedTuple):
    """A module, and the pass that has just changed it, also in words."""

    of: Pass
    module: Module
    words: str


class _Keep(PassEnds):
    """Verifies and copies the module after each pass that changed it; counts transformations."""

    def __init__(self, limit: int | None) -> None:
        super().__init__()
        self.states: list[State] = []
        self.limit = _UNLIMITED if limit is None else limit
        self.ctx: PassContext | None = None
        self.running: tuple[Pass, Graph] | None = None
        self.is_broken = self._changed = self._agrees = False

    def before(self, p: Pass, graph: Graph, ctx: PassContext) -> None:
        """Let a pass that begins make at most `limit` transformations."""
        begins = self.running is None or p != self.running[0] or graph.is_main
        super().before(p, graph, ctx)
        if begins:
            ctx.limit, ctx.allowed, self._changed = self.limit, [], False
            self._agrees = not is_ours(p) and ctx.module is not None and contradiction(ctx.module) is None
        self.running, self.ctx = (p, graph), ctx

    def after(self, p: Pass, graph: Graph, ctx: PassContext, changed: bool) -> None:
        """Verify what the pass has changed."""
        self._changed = self._changed or changed or not is_ours(p)
        self._verify(graph)

    def pass_ended(self, module: Module, last: tuple[Pass, Graph]) -> None:
        """Keep the module. Of passes that are not irc's, types and the alias analysis are verified too."""
        if not self._changed:
            return
        self._verify(module)
        if not is_ours(last[0]) and self.ctx is not None:
            faults = [alias_fault(last[0], graph, self.ctx, exact=False) for graph in module.graphs.values()]
            faults += [contradiction(module)] if self._agrees else []
            for fault in filter(None, faults):
                self.is_broken = True
                raise fault
        self.states.append(State(last[0], module.copy(), self.words(last)))

    def _verify(self, what: Graph | Module) -> None:
        try:
            what.verify()
        except Error:
            self.is_broken = True
            raise

    @property
    def rewrites(self) -> list[str]:
        """The transformations that the pass that ran last has reported, in words."""
        return list(self.ctx.allowed) if self.ctx is not None else []


class Passed(NamedTuple):
    """What running passes gave.

    Attributes:
        module: the module, as they left it; after a failure, as the pass that fails did.
        states: the module after each pass that changed it.
        last: the pass that ran last.
        rewrites: the transformations that this pass reported, in words.
        failure: None if all went well.
    """

    module: Module
    states: list[State]
    last: Pass | None
    rewrites: list[str]
    failure: Failure | None


def run_passes(module: Module, pipeline: Pipeline, work: Work, limit: int | None = None) -> Passed:
    """Run ``pipeline`` on a copy of ``module``; each pass may do at most ``limit`` transformations."""
    copy, keep, failure = module.copy(), _Keep(limit), None
    work.compilations += 1
    try:
        PassManager(pipeline, [keep]).run(copy)
    except MemoryError:
        raise
    except Error as error:
        is_rule = keep.is_broken or " must keep " in error.message  # the inputs and outputs, the manager says
        failure = Failure("breaks" if is_rule else "raises", error.code, error.message)
    except Exception as error:  # what the manager does not take for a fault of a pass
        failure = Failure("raises", "", error_text(error))
    last = keep.running[0] if keep.running is not None else None
    return Passed(copy, keep.states, last, keep.rewrites, failure)


class Changes(NamedTuple):
    """What a pass has changed in the top block of a module.

    Attributes:
        nodes: those of the module before that differ, or stand elsewhere, or use constants that differ.
        made: those of the module after.
    """

    nodes: list[Node]
    made: list[Node]

    def __str__(self) -> str:
        old, new = (named(nodes, with_operands=True) for nodes in self)
        return f"{old} becomes {new}" if old and new else f"{old} is removed" if old else new


SHOWN = 3
"""Nodes that are named."""


def named(nodes: Sequence[Node], with_operands: bool = False) -> str:
    """Nodes in words, or the first ones of many; constants are left out."""
    listed = [node for node in nodes if node.kind != CONSTANT]
    operands = [f"({', '.join(f'%{v.name}' for v in node.inputs)})" if with_operands else "" for node in listed[:SHOWN]]
    more = f", and {len(listed) - SHOWN} more" if len(listed) > SHOWN else ""
    return "; ".join(f"{describe(node)}{given}" for node, given in zip(listed, operands)) + more


def changes(before: Module, after: Module) -> Changes:
    """What differs between two modules, in the order of each."""
    old, new = list(before.main.nodes), list(after.main.nodes)
    matcher = SequenceMatcher(None, [print_node(n) for n in old], [print_node(n) for n in new], autojunk=False)
    block = before.main.block
    found: dict[Node, None] = {}
    made: list[Node] = []
    for tag, first, last, start, end in matcher.get_opcodes():
        if tag == "equal":
            continue
        made += [node for node in new[start:end] if node.kind != CONSTANT]
        for node in old[first:last]:
            users = [user.ancestor_in(block) for value in node.outputs for user in value.iter_users()]
            near = users if node.kind == CONSTANT else [node]
            found |= dict.fromkeys(each for each in near if each is not None and not each.is_return)
    if not found:  # nothing but new nodes: what they read
        names = {value.name for node in made for value in node.inputs}
        found = {node: None for node in old if any(value.name in names for value in node.outputs)}
    return Changes([node for node in old if node in found and node.kind != CONSTANT], made)
