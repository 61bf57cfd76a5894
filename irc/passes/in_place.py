"""Results written over operands that nothing needs any more."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from irc.alias import Kind
from irc.alias.facts import OWN
from irc.alias.location_sets import LocationSet, contains, intersects, members
from irc.ir import Graph, Node, Value
from irc.ir.clone import counterpart
from irc.ops.pointwise import may_take, reads_first, twin_of
from irc.passes.last_uses import LastUses
from irc.passes.owns_storage import StorageOwners
from irc.passes.registry import register
from irc.passes.reverse_alias import ReverseAlias

if TYPE_CHECKING:
    from irc.passes.base import PassContext

_WHOSE = {
    Kind.CONSTANT: "a constant",
    Kind.BORROWED: "an input that the caller keeps",
    Kind.ATTRIBUTE: "an attribute of an object",
    Kind.UNKNOWN: "unknown memory",
}


@register
@dataclass(frozen=True)
class InPlace:
    """Replace operators by their in-place twins: ``onnx::Relu(%x)`` by ``onnx::Relu_(%x)``.

    Only where it makes no observable difference: the operand is whole memory of
    its own, made in the graph or donated; the result surely has its element
    type and shape; the operator reads it at the same places only, through no
    other operand, unless it is added to itself or the like; and no value that
    may be, or hold, that memory is used later, on any path. If the operator
    commutes, the first operand that is free is taken.
    """

    name: ClassVar[str] = "in-place"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Walk in order, until a walk finds nothing more: in loops, one decision may depend on a later one."""
        overwriter = _Overwriter(graph, ctx)
        while overwriter.walk():
            pass
        for node, reason in overwriter.refused.items():
            ctx.note(node, f"not in place: {reason}")
        if overwriter.done:
            ctx.count("in_place", overwriter.done)
        return bool(overwriter.done)


class _Overwriter:
    """One run of the pass.

    Attributes:
        refused: nodes that stay as they are -> why.
        done: how many were replaced.
    """

    def __init__(self, graph: Graph, ctx: PassContext) -> None:
        self.refused: dict[Node, str] = {}
        self.done = 0
        self._graph = graph
        self._ctx = ctx
        self._rewriter = ctx.rewriter(graph)
        self._db = self._rewriter.db
        self._holders = ReverseAlias(self._db, graph.inputs)  # of values in sight: those before the node in question
        self._whole = StorageOwners(self._db)
        self._uses = LastUses()

    @cached_property
    def _types_hold(self) -> bool:
        return self._ctx.types_hold(self._graph)

    def walk(self) -> bool:
        """Look at every node once; whether any was replaced."""
        before = self.done
        self.refused.clear()
        self._holders = ReverseAlias(self._db, self._graph.inputs)
        around: list[Node] = []
        for node in self._graph.walk():
            while around and not _is_inside(node, around[-1]):
                self._holders.enter(around.pop().outputs)
            if node.blocks:  # what it makes is not in sight of what is in it
                around.append(node)
                for block in node.blocks:
                    self._holders.enter(block.params)
            elif not self._overwrite(node):
                self._holders.enter(node.outputs)
        return self.done > before

    def _overwrite(self, node: Node) -> bool:
        """Let ``node`` write over an operand, the first that it may; whether it was replaced."""
        kind = twin_of(node)
        if kind is None or not node.inputs or len(node.outputs) != 1 or not node.output.has_uses:
            return False
        reasons: list[str] = []
        for index in range(len(node.inputs)):
            reason = self._refusal(node, index)
            if reason is None:
                if not self._ctx.allow(node):
                    return False
                self._replace(node, kind, index)
                return True
            reasons.append(reason)
        self.refused[node] = reasons[0]
        return False

    def _refusal(self, node: Node, index: int) -> str | None:
        """Why ``node`` may not write its result into operand ``index``; None if it may."""
        value = node.inputs[index]
        if not may_take(node, index):
            return f"its result may have another shape or element type than %{value.name}"
        db = self._db
        memory = db.location_set(value)
        if not isinstance(memory, int) and self._uses.may_be_used_after(value, node):
            return f"%{value.name} is used later"  # asked first, for it may be at thousands of places
        foreign = self._foreign(memory)
        if foreign is not None:
            return f"%{value.name} may be {_WHOSE.get(foreign, 'anything')}"
        if not self._whole.is_whole(value):
            return f"%{value.name} may be a part of something larger, out of order, or repeat elements"
        others = [v for i, v in enumerate(node.inputs) if i != index and intersects(db.reach_set(v), memory)]
        if others and not (reads_first(node.kind) and all(db.same_tensor(v, value) for v in others)):
            return f"%{value.name} is read through another operand too"
        if db.any_escaped(memory):
            return f"unknown code may know %{value.name}"
        if not self._types_hold:
            return "the graph changes shapes or element types of tensors in place"
        return self._later_use(node, value)

    def _foreign(self, memory: LocationSet) -> Kind | None:
        """The kind of some location in ``memory`` that the graph may not write to; None if there is none."""
        foreign = self._db.all_but(OWN)
        if not intersects(memory, foreign):
            return None
        location = next(x for x in members(memory) if contains(foreign, x))
        kind = self._db.describe(location).kind
        # What borrowed inputs denote is unknown memory.
        given = kind is Kind.UNKNOWN and any(contains(self._db.location_set(v), location) for v in self._graph.inputs)
        return Kind.BORROWED if given else kind

    def _later_use(self, node: Node, value: Value) -> str | None:
        """How the memory of ``value`` may be used after ``node``, by a value that may be or hold it; None if not."""
        memory = self._db.location_set(value)
        over: list[Value] = []
        found: str | None = None
        for holder in self._holders.candidates(memory):
            if holder.is_param and holder.block is self._graph.block and not self._is_donated(holder):
                reason = f"the caller may know it through %{holder.name}"
            elif self._uses.may_be_used_after(holder, node):
                reason = f"%{holder.name} is used later"
            else:
                if self._uses.is_over(holder, node):
                    over.append(holder)
                continue
            if self._holders.holds(holder, memory):
                found = reason
                break
        self._holders.drop(over)  # else all that was ever in some memory would be looked at for each of its users
        return found

    def _is_donated(self, value: Value) -> bool:
        return all(location.kind is Kind.DONATED for location in self._db.locations(value))

    def _replace(self, node: Node, kind: str, index: int) -> None:
        target, result = node.inputs[index], node.output
        operands = [target, *(v for i, v in enumerate(node.inputs) if i != index)]
        memory, freed = self._db.location_set(target), self._db.location_set(result)
        twin = counterpart(node, kind, operands, [result.type])
        with self._db.rewrite():
            self._rewriter.insert(twin, before=node)
            self._rewriter.replace(result, twin.output, keep_name=True)
            self._uses.replaced(node, twin)
            self._rewriter.erase(node)
        self._holders.moved(freed, memory)
        self._holders.enter(twin.outputs)
        self._whole.add(twin.output)
        self.done += 1


def _is_inside(node: Node, outer: Node) -> bool:
    return outer.block is not None and node.ancestor_in(outer.block) is outer
