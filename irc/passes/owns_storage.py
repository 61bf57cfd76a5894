"""Which values are the whole of their memory: each element once, in the order of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.alias import Kind
from irc.ir.kinds import CONSTANT, DOMAINS, GROUP
from irc.ir.region_flow import Slot, bodies, slots
from irc.ops import record, schemas
from irc.ops.record import Movement

if TYPE_CHECKING:
    from collections.abc import Iterable

    from irc.alias import AliasDb
    from irc.ir import Node, Value

_MAKERS = tuple(f"{namespace}::" for namespace in ("aten", "irc", *DOMAINS))
"""Namespaces of operators whose kernels give fresh results of which each element has a place of its own."""


class StorageOwners:
    """Whether values are whole, with a memo; whatever adds values that are whole must call ``add``.

    Slices, transposes and expanded tensors are not whole: writing into them
    would keep something larger alive, be slow, or write one place twice.
    """

    def __init__(self, db: AliasDb) -> None:
        self._db = db
        self._known: dict[Value, bool] = {}
        self._slots: dict[Node, dict[Value, Slot]] = {}
        """Node with blocks -> of each parameter and result that blocks return, its slot."""

    def add(self, value: Value) -> None:
        """``value`` is whole."""
        self._known[value] = True

    def is_whole(self, value: Value) -> bool:
        """Whether ``value`` surely is the whole of its memory, whichever it is."""
        known = self._known.get(value)
        if known is not None:
            return known
        seen = {value}
        pending = [value]
        while pending:
            at = pending.pop()
            if self._known.get(at) or self._is_fresh(at):
                continue
            sources = self._sources(at)
            if not sources or any(self._known.get(v) is False for v in sources):
                self._known[value] = False
                return False
            new = [v for v in sources if v not in seen]
            seen.update(new)
            pending += new
        self._known.update(dict.fromkeys(seen, True))
        return True

    def _is_fresh(self, value: Value) -> bool:
        """Whether the node of ``value`` allocates it, or the caller gives it up."""
        node = value.node
        if node is not None and not all(_makes_dense(made.kind) for made in _makers(node)):
            return False
        wanted = Kind.DONATED if node is None else Kind.TEMPORARY
        memory = self._db.location_set(value)
        if not isinstance(memory, int):
            return False
        location = self._db.describe(memory)
        return location.kind is wanted and location.site is value and not location.path

    def _sources(self, value: Value) -> list[Value]:
        """The values that ``value`` may be the same as, and with which it is whole; empty if they are not known."""
        node = value.node
        if node is None:
            owner = value.definer
            return [] if owner is None else self._carried(owner, value)
        if node.blocks:
            return self._carried(node, value)
        if value.index == 0 and node.inputs and (_reshapes(node.kind) or _writes_first(node)):
            return [node.inputs[0]]
        return []

    def _carried(self, node: Node, value: Value) -> list[Value]:
        """What a parameter or a result of a branch or loop may be: the initial value, and what the blocks return."""
        known = self._slots.get(node)
        if known is None:
            known = self._slots[node] = _returned(node)
        slot = known.get(value)
        if slot is None or slot.returned is None:
            return []
        given = [] if slot.input is None else [node.inputs[slot.input]]
        return [*given, *(body.returns[slot.returned] for body in bodies(node))]


def _reshapes(kind: str) -> bool:
    """Whether the first result has all elements of the first input, in their order, each once."""
    found = record(kind)
    return found.whole or found.movement is Movement.IN_ORDER


def _makes_dense(kind: str) -> bool:
    """Whether fresh results of operators of ``kind`` have no gaps."""
    return kind.startswith(_MAKERS) and "gaps" not in record(kind).layout


def _makers(node: Node) -> Iterable[Node]:
    """The operators that make the results of ``node``: the node itself, or those in the group."""
    if node.kind != GROUP:
        return (node,)
    return (inner for block in bodies(node) for inner in block.nodes if inner.kind != CONSTANT)


def _writes_first(node: Node) -> bool:
    """Whether the result of ``node`` is its first input, which it writes."""
    return node.kind.endswith("_") and any(
        row.returns and row.returns[0].alias is not None and row.returns[0].alias.write for row in schemas(node.kind)
    )


def _returned(node: Node) -> dict[Value, Slot]:
    """The slots of parameters and results of ``node`` that its blocks return."""
    found: dict[Value, Slot] = {}
    for slot in slots(node) or ():
        if slot.returned is not None:
            if slot.param is not None:
                found.update((body.params[slot.param], slot) for body in node.blocks)
            if slot.output is not None:
                found[node.outputs[slot.output]] = slot
    return found
