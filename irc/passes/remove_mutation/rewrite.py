"""Putting a new value in place of every version of some memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from irc.ir import Block, Builder, Graph, Node, Value
from irc.ir.clone import clone_node, counterpart
from irc.ir.kinds import IDENTITY, IF
from irc.ir.metadata import provenance
from irc.ir.types import TENSOR, Type
from irc.ops.layouts import keeps_layout
from irc.passes.remove_mutation.family import Family, Step
from irc.passes.remove_mutation.forms import functional_kind, is_like_first
from irc.passes.remove_mutation.versions import Version

Returned: TypeAlias = dict[Node, list[Value]]
"""The end of a block -> what it is to return besides."""

_MOST_PIECES = 16
"""Of lists of more elements than this, elements are taken one by one: of n, taken n times, there would be n²."""


def rewrite(family: Family, returned: Returned) -> None:
    """Make the writes of ``family`` functional. The alias analysis is not updated.

    Additional returns of blocks are collected in ``returned``: thousands of families may be written in one block.
    """
    _Rewrite(family).run(returned)


class _Rewrite:
    """Each version becomes a value: the result of the functional operator, or what a branch or loop passes on.

    A user of a member then uses the same part of the version that it saw.
    """

    def __init__(self, family: Family) -> None:
        versions = family.versions
        self._family = family
        self._graph: Graph = family.root.graph
        self._used: dict[Node, list[Value]] = {}
        """User -> the members among its inputs, which may be few of very many."""
        for member in family.members():
            for user in member.iter_users():
                self._used.setdefault(user, []).append(member)
        self._literals: dict[Node, list[Value | None]] = {
            step.view: [family.member(value) for value in step.view.inputs]
            for step in family.views().values()
            if step.view is not None and step.how is not None and step.how.is_literal
        }
        """List or tuple -> the members that it holds, as its inputs are bound to versions later; None for others."""
        self._users = sorted(self._used, key=Node.place)
        self._names = {v: v.name for v in self._used.get(self._graph.block.return_node, ())}
        # Which version everyone sees is settled before anything moves.
        self._seen = {node: versions.before(node) for node in (*self._users, *versions.around)}
        self._ends = {block: versions.at_end(block) for node in versions.around for block in node.blocks}
        self._values: dict[Version, Value] = {None: family.root}
        self._parts: dict[tuple[Version, Value], dict[Block | None, Value]] = {
            (self._seen[step.view], value): {value.block: value}
            for value, step in family.views().items()
            if step.view is not None
        }
        """By the block where they are. Users come in order: so what was made in a block is there for the next."""

    def run(self, returned: Returned) -> None:
        for node in self._family.versions.around:
            self._carry(node)
        for node in self._users:
            self._rebind(node)
            target = self._family.targets.get(node)
            if target is not None:
                self._replace(node, target)
        for node in self._family.versions.around:
            if node.kind != IF:
                node.append_input(self._values[self._seen[node]])
            for block in node.blocks:
                returned.setdefault(block.return_node, []).append(self._values[self._ends[block]])
        for node in reversed(self._users):
            if node in self._family.targets:
                node.erase()

    def _carry(self, node: Node) -> None:
        """Let ``node``, which has writes inside, pass the memory on: one more parameter, one more output."""
        root = self._family.root
        if node.kind != IF:
            (block,) = node.blocks
            self._values[block] = block.add_param(root.type, root.name)
        self._values[node] = node.add_output(root.type, root.name)

    def _rebind(self, user: Node) -> None:
        """Let ``user`` use the version of the memory that it sees, for each member among its inputs."""
        for value in self._used[user]:
            member = self._family.member(value)
            assert member is not None
            part = self._part(member, self._seen[user], user)
            if part is value:
                continue
            if user is self._graph.block.return_node and not self._graph.is_function:
                part = self._named(part, self._names[value], value.metadata)
            user.replace_uses(value, part)

    def _named(self, part: Value, name: str, metadata: Mapping[str, str]) -> Value:
        """``part`` as an output of the graph that is called ``name`` and has ``metadata``."""
        end = self._graph.block.return_node
        if part.node is None or part.block is not self._graph.block or part.uses_by(end):
            part = Builder.before(end).op(IDENTITY, part, type=part.type)
        part.name = name
        if metadata:
            part.metadata = metadata
        return part

    def _replace(self, node: Node, target: Value) -> None:
        """Make the version after the write ``node``, whose inputs are bound to the version before it."""
        family = self._family
        kind = functional_kind(node)
        assert kind is not None
        old = node.inputs[0]
        exact = is_like_first(node, kind)
        computed = value = self._compute(node, kind, old.type if exact else TENSOR)
        is_alike = value.node is not None and keeps_layout(value.node)
        said = provenance([node])
        emit = _emitter(node, said)
        if not exact:
            value, is_alike = emit("irc::overwrite", old, value, type=old.type), True
        written = node.output if node.outputs else None
        if not family.keeps_layout:
            self._parts[node, target] = {node.block: value}
        elif target is family.root and not is_alike:
            value = self._laid_out_as(old, value, emit)
        is_named = written is not None and (target is family.root or not family.keeps_layout)
        if written is not None and is_named:
            value.succeed(written)
        if computed.node is not None and not node.name and not (is_named and value is computed):  # no name tells
            computed.node.metadata = said
        for part in family.parts(target):
            old = self._part(part.whole, self._seen[node], node)
            if part.piece is not None:
                assert part.how.put_piece is not None
                value = part.how.put_piece(emit, part.view, old, value, part.piece)
            else:
                assert part.how.put is not None
                value = part.how.put(emit, part.view, old, value)
            value.type = old.type
            is_alike = part.how.copies or (is_alike and part.how.turns)
            if family.keeps_layout and part.whole is family.root and not is_alike:
                value = self._laid_out_as(old, value, emit)
        self._values[node] = value

    def _laid_out_as(self, old: Value, value: Value, emit: Callable[..., Value]) -> Value:
        """``value``, or a copy of it, laid out as ``old``, the version before it."""
        contiguity = self._family.contiguity
        if contiguity.is_certain(self._family.root) and contiguity.is_certain(value):
            return value
        return emit("irc::overwrite", old, value, type=old.type)

    def _compute(self, node: Node, kind: str, type: Type) -> Value:
        """The result of the functional operator ``kind`` on what ``node`` is given."""
        return counterpart(node, kind, node.inputs, [type]).insert_before(node).output

    def _part(self, member: Value, version: Version, before: Node) -> Value:
        """The part of ``version`` that ``member`` shows, defined before the node ``before``."""
        missing: list[tuple[Value, Step]] = []
        at = member
        found = self._find(at, version, before)
        while found is None:
            step = self._family.step(at)
            missing.append((at, step))
            at = step.parent
            found = self._find(at, version, before)
        for value, step in reversed(missing):
            found = self._take(value, step, found, version, before)
        return found

    def _take(self, value: Value, step: Step, whole: Value, version: Version, before: Node) -> Value:
        """The view ``value``, taken anew of ``whole``, a part of ``version``."""
        view, how = step.view, step.how
        assert view is not None and how is not None
        instead = {view.inputs[0]: whole}
        if how.is_literal:
            held = zip(view.inputs, self._literals[view])
            instead = {v: self._part(part, version, before) for v, part in held if part is not None}
        if view.kind == "prim::ListUnpack" and len(view.outputs) > _MOST_PIECES:
            emit = _emitter(before, provenance([view]))
            piece = emit("aten::__getitem__", whole, value.index, type=value.type)
            self._parts.setdefault((version, value), {})[before.block] = piece
            return piece
        copy = clone_node(view, self._graph, instead).insert_before(before)
        for old, new in zip(view.outputs, copy.outputs, strict=True):
            self._parts.setdefault((version, old), {})[before.block] = new
        if not view.name:
            copy.metadata = provenance([view])
        return copy.outputs[value.index]

    def _find(self, member: Value, version: Version, before: Node) -> Value | None:
        if member is self._family.root:
            return self._values[version]
        parts = self._parts.get((version, member))
        if parts is None or before.block is None:
            return None
        return next((parts[block] for block in before.block.around() if block in parts), None)


def _emitter(before: Node, metadata: Mapping[str, str]) -> Callable[..., Value]:
    """Inserts nodes before a node: ``emit(kind, *inputs, type=TENSOR)``, where inputs may be Python values.

    They have ``metadata``.
    """
    builder = Builder.before(before)

    def emit(kind: str, *inputs: Any, type: Type = TENSOR) -> Value:
        values = [v if isinstance(v, Value) else builder.constant(v) for v in inputs]
        made = builder.op(kind, *values, type=type)
        if made.node is not None:
            made.node.metadata = metadata
        return made

    return emit
