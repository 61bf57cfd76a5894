"""Putting a new value in place of every version of some memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from irc.ir import Block, Builder, Graph, Node, Value
from irc.ir.clone import clone_node, counterpart
from irc.ir.kinds import IDENTITY, IF
from irc.ir.types import TENSOR, Type
from irc.passes.remove_mutation.family import Family, Step
from irc.passes.remove_mutation.forms import functional_kind, is_laid_out_like_first, is_like_first
from irc.passes.remove_mutation.versions import Version

Returned: TypeAlias = dict[Node, list[Value]]
"""The end of a block -> what it is to return besides."""


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
        self._views = family.views()
        self._used: dict[Node, list[Value]] = {}
        """User -> the members among its inputs, which may be few of very many."""
        for member in family.members():
            for user in member.iter_users():
                self._used.setdefault(user, []).append(member)
        self._users = sorted(self._used, key=Node.place)
        self._names = {v: v.name for v in self._used.get(self._graph.block.return_node, ())}
        # Which version everyone sees is settled before anything moves.
        self._seen = {node: versions.before(node) for node in (*self._users, *versions.around)}
        self._ends = {block: versions.at_end(block) for node in versions.around for block in node.blocks}
        self._values: dict[Version, Value] = {None: family.root}
        self._parts: dict[tuple[Version, Value], dict[Block | None, Value]] = {
            (self._seen[view], view.output): {view.block: view.output} for view in self._views
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
                part = self._named(part, self._names[value])
            user.replace_uses(value, part)
            step = self._views.get(user)
            if step is not None and step.how is not None:
                user.kind = step.how.again  # the new memory may be laid out in another way

    def _named(self, part: Value, name: str) -> Value:
        """``part`` as an output of the graph that is called ``name``."""
        end = self._graph.block.return_node
        if part.node is None or part.block is not self._graph.block or part.uses_by(end):
            part = Builder.before(end).op(IDENTITY, part, type=part.type)
        part.name = name
        return part

    def _replace(self, node: Node, target: Value) -> None:
        """Make the version after the write ``node``, whose inputs are bound to the version before it."""
        kind = functional_kind(node)
        assert kind is not None
        part = node.inputs[0]
        exact = is_like_first(node, kind)
        value = self._compute(node, kind, part.type if exact else TENSOR)
        emit = _emitter(node)
        step = None if target is self._family.root else self._family.step(target)
        if not exact or (step is not None and not _settles_layout(step) and not is_laid_out_like_first(node)):
            value = emit("irc::overwrite", part, value)
            value.type = part.type
        self._parts[node, target] = {node.block: value}
        if node.outputs:
            value.name = node.output.name
        while step is not None:
            assert step.view is not None and step.how is not None and step.how.put is not None
            whole = self._part(step.parent, self._seen[node], node)
            value = step.how.put(emit, step.view, whole, value)
            value.type = whole.type
            step = None if step.parent is self._family.root else self._family.step(step.parent)
        self._values[node] = value

    def _compute(self, node: Node, kind: str, type: Type) -> Value:
        """The result of the functional operator ``kind`` on what ``node`` is given."""
        return counterpart(node, kind, node.inputs, [type]).insert_before(node).output

    def _part(self, member: Value, version: Version, before: Node) -> Value:
        """The part of ``version`` that ``member`` shows, defined before the node ``before``."""
        missing: list[tuple[Value, Node, str]] = []
        at = member
        found = self._find(at, version, before)
        while found is None:
            step = self._family.step(at)
            assert step.view is not None and step.how is not None
            missing.append((at, step.view, step.how.again))
            at = step.parent
            found = self._find(at, version, before)
        for view, node, kind in reversed(missing):
            copy = clone_node(node, self._graph, {node.inputs[0]: found})
            copy.kind = kind
            copy.insert_before(before)
            found = copy.output
            self._parts.setdefault((version, view), {})[before.block] = found
        return found

    def _find(self, member: Value, version: Version, before: Node) -> Value | None:
        if member is self._family.root:
            return self._values[version]
        parts = self._parts.get((version, member))
        if parts is None or before.block is None:
            return None
        return next((parts[block] for block in before.block.around() if block in parts), None)


def _settles_layout(view: Step) -> bool:
    """Whether the layout of the whole, after a write into ``view``, does not depend on what is written."""
    return view.how is not None and view.how.copies


def _emitter(before: Node) -> Callable[..., Value]:
    """Inserts nodes before a node: ``emit(kind, *inputs)``, where inputs may be Python values."""
    builder = Builder.before(before)

    def emit(kind: str, *inputs: Any) -> Value:
        values = [v if isinstance(v, Value) else builder.constant(v) for v in inputs]
        return builder.op(kind, *values)

    return emit
