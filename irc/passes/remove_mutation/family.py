"""All that shares one piece of memory: who surely shows which part of it, and who only may."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from irc.ir import Block, Node, Value
from irc.ir.kinds import IF
from irc.passes.remove_mutation.forms import View, can_put, functional_kind, view_of
from irc.passes.remove_mutation.versions import Version, Versions
from irc.passes.slots import slots

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from irc.alias import AliasDb
    from irc.passes.holders import Holders

CARRIERS = frozenset({IF, "prim::Loop", "onnx::Loop"})
"""Nodes that can be given one more value to carry through."""


class Refused(Exception):
    """Why the writes to some memory stay."""


class Step(NamedTuple):
    """What a member is of another one, its ``parent``, which is the root or a view: the same, or a view by a node.

    ``how`` says what that node does.
    """

    parent: Value
    view: Node | None = None
    how: View | None = None


class Family:
    """The values that may share the memory of ``root``, a tensor that its node allocates.

    *Members* surely show a known part of it: views, results of in-place
    operators, and what branches and loops pass on of these. They can be taken
    anew of any later version. All other values that may share it, or hold it
    in a container, are *loose*: they may not be used once what they show has
    been written over, for nobody could tell whether they see that.

    Args:
        root: the value.
        db: the alias analysis.
        holders: to find all values that may denote the memory of ``root`` or lead to it.
        writers: the nodes that write it.

    Attributes:
        writes: the nodes that write it, in-place operators on members.
        versions: which version of the memory is seen where.

    Raises:
        Refused: if some write cannot be done without.
    """

    def __init__(self, root: Value, db: AliasDb, holders: Holders, writers: Sequence[Node]) -> None:
        self.root = root
        self._db = db
        self._holders = holders
        self._memory = db.location_set(root)
        self._steps: dict[Value, Step] = {}
        self._find_members()
        self.writes = list(writers)
        for node in writers:
            self._check_write(node)
        self.versions = Versions(root, writers)
        self._final = self.versions.at_end(self.versions.home)
        for node in self.versions.around:
            _check_carrier(node)
        self._check_loose()

    # -- members ---------------------------------------------------------

    def member(self, value: Value) -> Value | None:
        """The root, or the view of it, that ``value`` surely is; None if it is no member."""
        if value is self.root:
            return value
        step = self._steps.get(value)
        return None if step is None else value if step.view is not None else step.parent

    def step(self, view: Value) -> Step:
        """How the member ``view``, as ``member`` gives it, is made of another one."""
        return self._steps[view]

    def members(self) -> list[Value]:
        """All members, the root first."""
        return [self.root, *self._steps]

    def views(self) -> dict[Node, Step]:
        """The nodes whose results are members, as views of other members."""
        return {step.view: step for step in self._steps.values() if step.view is not None}

    def _find_members(self) -> None:
        """Whatever a loop carries is taken to be what it is given, until that turns out to be wrong."""
        refuted: set[Value] = set()
        while True:
            self._steps.clear()
            assumed: dict[Value, Value] = {}
            pending = [self.root]
            while pending:
                for value in _made_of(pending.pop()):
                    if self._is_loose(value) and value not in refuted:
                        step = self._step_of(value, assumed)
                        if step is not None:
                            self._steps[value] = step
                            pending.append(value)
            wrong = [v for v, returned in assumed.items() if self.member(returned) is not self.member(v)]
            if not wrong:
                return
            refuted.update(wrong)

    def _step_of(self, value: Value, assumed: dict[Value, Value]) -> Step | None:
        node = value.node
        if node is None:
            owner = value.block.node if value.block is not None else None
            return None if owner is None else self._carried(value, owner, assumed)
        if node.kind == IF:
            sides = [self.member(block.returns[value.index]) for block in node.blocks]
            same = sides[0] is not None and all(side is sides[0] for side in sides)
            return Step(sides[0]) if same and sides[0] is not None else None
        if node.blocks:
            return self._carried(value, node, assumed)
        parent = self.member(node.inputs[0]) if node.inputs else None
        if parent is None:
            return None
        how = view_of(node)
        if how is None:
            return Step(parent) if functional_kind(node) is not None else None
        return None if self._db.has_writers(node.inputs[1:]) else Step(parent, node, how)

    def _carried(self, value: Value, loop: Node, assumed: dict[Value, Value]) -> Step | None:
        """What a loop is given, if each trip passes it on."""
        if loop.kind not in CARRIERS:
            return None
        is_param = value.node is None
        for slot in slots(loop) or ():
            if (slot.param if is_param else slot.output) != value.index or None in (slot.input, slot.returned):
                continue
            assert slot.input is not None and slot.returned is not None
            given = self.member(loop.inputs[slot.input])
            if given is None:
                return None
            assumed[value] = loop.blocks[0].returns[slot.returned]
            return Step(given)
        return None

    # -- what may stand in the way ---------------------------------------

    def _check_write(self, node: Node) -> None:
        check_form(node)
        target = self.member(node.inputs[0])
        if target is None:
            raise only_may_share(node, self.root)
        while target is not self.root:
            step = self.step(target)
            assert step.view is not None and step.how is not None
            if not can_put(step.view, step.how):
                raise Refused(f"what is written into {step.view.kind} cannot be put into the whole")
            target = step.parent

    def _check_loose(self) -> None:
        """A loose value must not be used where another version is seen than where it was made.

        Those that were made before the memory was, or outside of where it is
        in scope, may hold one version only, wherever they are used; what the
        caller knows is used at the end.
        """
        wide = self._holders.wide(self._memory)
        near = self._near(len(wide))
        some = wide if near is None else [value for value in near if value in wide]
        outside: dict[Version, Value] = {}
        self._note_outside([*self._holders.narrow(self._memory), *some], outside)
        if any(version is not self._final for version in outside):
            self._note_outside(wide, outside)
        if len(outside) > 1:
            name = next(iter(outside.values())).name
            raise Refused(f"%{name}, which may share or hold its memory, is used before and after it is written")

    def _near(self, most: int) -> dict[Value, None] | None:
        """What is made or used while the memory changes: all others that are loose see what it is in the end.

        None if more than ``most`` nodes stand there, so that it is cheaper to look at so many values.
        """
        found: dict[Value, None] = {}
        for number, node in enumerate(self.versions.while_changing()):
            if number >= most:
                return None
            for values in (node.inputs, node.outputs, *(block.params for block in node.blocks)):
                found.update(dict.fromkeys(values))
        return found

    def _note_outside(self, values: Iterable[Value], outside: dict[Version, Value]) -> None:
        """Note what the loose ones of ``values`` may see that come from outside of where the memory is in scope."""
        versions = self.versions
        for value in filter(self._is_loose, values):
            seen = [versions.before(u) if versions.in_scope(u) else self._final for u in value.iter_users()]
            if self._is_inside(value):
                made = self._made_at(value)
                if any(version is not made for version in seen):
                    raise Refused(f"%{value.name}, which may share or hold its memory, is used after it is written")
                continue
            if value.node is None and value.block is self.root.graph.block:
                seen.append(self._final)
            outside.update((version, value) for version in seen)

    def _is_loose(self, value: Value) -> bool:
        """Whether ``value`` may share the memory or hold it, and is not known to be a member."""
        return value is not self.root and value not in self._steps and self._holders.holds(value, self._memory)

    def _is_inside(self, value: Value) -> bool:
        node = value.node or (value.block.node if value.block is not None else None)
        return node is not None and self.versions.in_scope(node)

    def _made_at(self, value: Value) -> Version:
        if value.node is not None:
            return self.versions.after(value.node)
        block: Block | None = value.block
        assert block is not None
        return self.versions.at_start(block)


def _made_of(value: Value) -> Iterator[Value]:
    """What the users of ``value`` make of it or pass it on as, and more."""
    for user in value.iter_users():
        node = user.block.node if user.is_return and user.block is not None else user
        if node is not None:
            yield from node.outputs
            for block in node.blocks:
                yield from block.params


def check_form(node: Node) -> None:
    """Refused if ``node``, which writes, has no functional form."""
    if functional_kind(node) is None:
        raise Refused(f"{node.kind} writes it, which has no functional form")


def only_may_share(node: Node, root: Value) -> Refused:
    """Of ``node``, which writes its first input, it is not certain whether that is the memory of ``root``."""
    return Refused(f"%{node.inputs[0].name} only may share memory with %{root.name}")


def _check_carrier(node: Node) -> None:
    if node.kind not in CARRIERS:
        raise Refused(f"it is written inside {node.kind}, which cannot pass it on")
    if node.kind == "onnx::Loop" and len(node.outputs) > len(node.inputs) - 2:
        raise Refused("it is written inside a loop that has scan outputs")
