"""Merging equal nodes and equal constants; all merges of a graph are carried out at once."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np

from irc.alias import AliasDb
from irc.alias.explain import Fact, why_written
from irc.ir import CONSTANT, Block, DType, EnumMember, Graph, Node, Opaque, Tensor, TensorType, Value, describe
from irc.ir.metadata import quantization
from irc.ops import record
from irc.passes.base import MOST_EXPLAINED, PassContext, functional, name_of
from irc.passes.quantised import QUANTISING, annotation_names
from irc.passes.registry import register
from irc.passes.rewriter import Rewriter
from irc.support.remarks import NOT_MERGED, Reason

# Hashable keys of attributes: equal keys mean equal attributes, bit for bit.


_UNHASHED = 1024
"""In-line tensors of more elements are told apart by identity: looking at their bytes would cost more than it gains."""


def attributes_key(node: Node) -> tuple[Any, ...]:
    """A hashable key of all attributes of ``node``."""
    attributes = node.attributes
    if not attributes:
        return ()
    return tuple((name, value_key(attributes[name])) for name in sorted(attributes))


def value_key(value: Any) -> Any:
    """A hashable key of an attribute's value: 1, 1.0, True differ, so do 0.0, -0.0; a NaN equals itself."""
    if isinstance(value, Tensor):
        known = value.is_splat or value.name or (value.numel <= _UNHASHED and not value.is_absent)
        return value.key() if known else id(value)
    if isinstance(value, Opaque):
        return id(value)  # two that read alike may stand for different contents
    if isinstance(value, float):
        return (float, struct.pack("<d", value))
    if isinstance(value, complex):
        return (complex, struct.pack("<dd", value.real, value.imag))
    if isinstance(value, EnumMember):
        return (EnumMember, value.path, value_key(value.value))
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        kinds = set(map(type, items))
        # Tree ensembles have lists of a million numbers.
        if kinds == {float}:
            return (type(items), float, struct.pack(f"<{len(items)}d", *items))
        if kinds == {int}:
            return (type(items), int, tuple(items))
        return (type(items), tuple(map(value_key, items)))
    if isinstance(value, int | str) or value is None:
        return (type(value), value)
    try:
        hash(value)
    except TypeError:
        return id(value)
    return value  # types compare by value, graphs by identity


# -- merging -------------------------------------------------------------------


class Merges:
    """The nodes of one graph that are to be replaced by earlier ones, which compute the same.

    Very many nodes may be merged into one, and each update of the alias analysis may re-analyse much of the
    graph. So it is updated once, when all is decided; until then, the decisions are remembered here.
    """

    def __init__(self, rewriter: Rewriter) -> None:
        self._rewriter = rewriter
        self._pairs: list[tuple[Node, Node]] = []
        self._instead: dict[Value, Value] = {}
        self._escaping: set[Value] = set()
        """Results that give the callers of a function what was merged into them."""
        self._named = annotation_names(rewriter.graph)
        """Names of values that quantization annotations have: they must stay names of values."""

    def apart(self, earlier: Node, node: Node) -> Reason | None:
        """Why results of ``node`` may not become the same memory as those of ``earlier``; None if they may."""
        rewriter, db = self._rewriter, self._rewriter.db
        for a, b in zip(earlier.outputs, node.outputs, strict=True):
            if quantization(a.metadata) != quantization(b.metadata):  # ranges of one would be those of the other
                return Reason(f"%{a.name} and %{b.name} are quantised with other ranges", a.name)
            if b.name in self._named:
                return Reason(f"the quantization annotation of another value names %{b.name}", b.name)
            if not rewriter.can_share(a, b):
                written = db.has_writers(a) or db.has_writers(b)
                return _WRITTEN if written else Reason(f"the caller may write to one of them, %{a.name}", a.name)
            if a in self._escaping and db.escapes(b) and not rewriter.are_alike(a, b):
                return Reason(f"the caller may write to one of %{a.name} and %{b.name}", a.name)
        return None

    def add(self, earlier: Node, node: Node) -> None:
        """Plan to merge ``node`` into ``earlier``, which is never itself merged into another."""
        self._pairs.append((earlier, node))
        self._instead.update(zip(node.outputs, earlier.outputs, strict=True))
        if self._rewriter.graph.is_function:
            pairs = zip(earlier.outputs, node.outputs, strict=True)
            self._escaping.update(a for a, b in pairs if self._rewriter.db.escapes(b))

    def let_use(self, node: Node) -> None:
        """Let ``node`` use already what is left of its operands, so that it can be told to be equal to others.

        All of them at once: one by one, a node with n operands that merge would cost n². Not for the graph's end,
        whose results may have to keep their names, and the alias analysis learns of it from `apply` only.
        """
        if self._instead and any(value in self._instead for value in node.inputs):
            node.set_inputs([self._instead.get(value, value) for value in node.inputs])

    def apply(self) -> int:
        """Carry out the planned merges. Returns how many."""
        return self._rewriter.replace_nodes([(node, earlier.outputs) for earlier, node in self._pairs])


# -- common subexpression elimination ------------------------------------------


@register
@dataclass(frozen=True)
class Cse:
    """Let nodes that compute the same from the same values share one result.

    A node uses the result of an equal one that dominates it: an earlier one of
    its block or of a block around it. Nodes are equal if their kind, version, attributes,
    inputs and output types agree; what is known of tensors in the types may differ. Not merged: nodes with blocks,
    (de)quantisation, side effects or random results; reads if memory that they read is written in between;
    results that something writes into, unless both are the same memory already.
    """

    name: ClassVar[str] = "cse"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Merge equal nodes. One walk: inputs are merged before the nodes that use them are looked at."""
        rewriter = ctx.rewriter(graph)
        db = rewriter.db
        merges = Merges(rewriter)
        scopes = _Scopes(graph.block)
        kept: list[tuple[Node, Node, Reason]] = []
        for node in scopes:
            merges.let_use(node)
            if node.blocks or not node.outputs or node.kind in QUANTISING or db.writes_anything(node):
                continue
            key = _key(node)
            earlier = scopes.find(key)
            apart = None
            if earlier is not None:
                is_same = not db.writes_between(node.inputs, earlier, node)
                apart = merges.apart(earlier, node) if is_same else _READ
            if earlier is not None and apart is None and ctx.allow(node):
                merges.add(earlier, node)
                continue
            if earlier is not None and apart is not None:
                kept.append((earlier, node, apart))
            scopes.enter(key, node)  # after a write in between, later nodes can only equal this one
        for block in graph.blocks():
            if block is not graph.block:
                merges.let_use(block.return_node)
        changed = merges.apply()
        ctx.count("merged", changed)
        _report(kept, db, ctx)
        return changed > 0


_READ = Reason("memory that they read is written in between")
_WRITTEN = Reason("something writes into one of them")


def _report(kept: Sequence[tuple[Node, Node, Reason]], db: AliasDb, ctx: PassContext) -> None:
    """Note which equal nodes stay apart, and why."""
    for i, (earlier, node, apart) in enumerate(kept):
        facts: Sequence[Fact] = ()
        if i < MOST_EXPLAINED and apart in (_READ, _WRITTEN):
            touched = node.inputs if apart is _READ else (*earlier.outputs, *node.outputs)
            writers = db.writers(touched)  # none, perhaps: other nodes have been merged since
            if apart is _READ:
                writers = [at for at in writers if _is_between(earlier, at, node)] or writers
            if writers:
                facts = why_written(db, touched, writers[0])
                what = "in between writes what they read" if apart is _READ else "writes into one"
                text = f"{describe(writers[0])} {what}"
                apart = Reason(text, name_of(writers[0]), functional(writers, db, "cse"))
        text = f"equal to %{earlier.outputs[0].name}, but not merged: {apart}"
        ctx.note(node, Reason(text, apart.blocker, apart.remedy), NOT_MERGED, facts)


def _is_between(first: Node, at: Node, last: Node) -> bool:
    """Whether ``at``, or what it is in, comes after ``first`` and not after ``last``, or what that is in."""
    assert first.block is not None
    outer, end = at.ancestor_in(first.block), last.ancestor_in(first.block)
    return outer is not None and end is not None and first.is_before(outer) and not end.is_before(outer)


class _Scopes:
    """A walk over all nodes in pre-order, with a table of what dominates the present one."""

    def __init__(self, block: Block) -> None:
        self._table: dict[Any, Node] = {}
        # For each open block: its iterator, and what to restore in the table when it closes.
        self._open: list[tuple[Iterator[Node], list[tuple[Any, Node | None]]]] = [(iter(block.nodes), [])]

    def __iter__(self) -> Iterator[Node]:
        while self._open:
            nodes, undo = self._open[-1]
            node = next(nodes, None)
            if node is None:
                self._close(undo)
                continue
            yield node
            self._open.extend((iter(block.nodes), []) for block in reversed(node.blocks))

    def find(self, key: Any) -> Node | None:
        return self._table.get(key)

    def enter(self, key: Any, node: Node) -> None:
        self._open[-1][1].append((key, self._table.get(key)))
        self._table[key] = node

    def _close(self, undo: list[tuple[Any, Node | None]]) -> None:
        for key, before in reversed(undo):
            if before is None:
                del self._table[key]
            else:
                self._table[key] = before
        self._open.pop()


def _key(node: Node) -> tuple[Any, ...]:
    inputs = sorted(node.inputs, key=id) if record(node.kind).commutative else node.inputs
    # Casts of a union differ in nothing but the type; of tensors, shapes and element types are what inference found.
    types = tuple([TensorType if v.type.__class__ is TensorType else v.type for v in node.outputs])
    return node.kind, node.version, attributes_key(node), tuple(inputs), types


# -- constant pooling ----------------------------------------------------------


@register
@dataclass(frozen=True)
class ConstantPool:
    """Merge equal constants, nested ones too, and move them to the top of the graph, keeping their order.

    Weights are equal if their contents are, whatever their names. A constant
    that something writes into (a list that is appended to) is left alone.
    """

    name: ClassVar[str] = "constant-pool"

    def run(self, graph: Graph, ctx: PassContext) -> bool:
        """Merge and hoist all constants."""
        rewriter = ctx.rewriter(graph)
        top = _Top(graph)
        pool = _Pool()
        merges = Merges(rewriter)
        changed = False
        for node in graph.walk():
            if node.kind != CONSTANT:
                continue
            earlier = None if rewriter.db.has_writers(node.output) else pool.equal(node)
            if earlier is not None and merges.apart(earlier, node) is None and ctx.allow(node):
                merges.add(earlier, node)
            else:
                changed |= top.hoist(node, ctx)
        merged = merges.apply()
        ctx.count("merged", merged)
        return changed or merged > 0


class _Pool:
    """The constants seen so far, by contents."""

    def __init__(self) -> None:
        self._first: dict[Any, Node] = {}
        self._by_contents: dict[Any, Node] = {}

    def equal(self, node: Node) -> Node | None:
        """The first constant equal to ``node``; None if that is ``node``, which is then remembered."""
        tensor = _weight(node)
        if tensor is None:
            return self._find(self._first, (node.output.type, attributes_key(node)), node)
        key = tensor.type, tensor.sample()
        first = self._find(self._first, key, node)
        if first is None:
            return None
        # Only of those that look alike are whole contents read.
        self._find(self._by_contents, (key, _digest(first)), first)
        return self._find(self._by_contents, (key, _digest(node)), node)

    def _find(self, table: dict[Any, Node], key: Any, node: Node) -> Node | None:
        found = table.setdefault(key, node)
        return None if found is node else found


class _Top:
    """The constants at the top of the graph, and where the next one goes."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.last: Node | None = None

    def hoist(self, node: Node, ctx: PassContext) -> bool:
        """Move ``node`` behind the constants hoisted before; return whether it was elsewhere."""
        first = next(iter(self.graph.nodes)) if self.last is None else self.last.next
        moved = node is not first
        if moved:
            if not ctx.allow(node):
                return False
            if self.last is None:
                assert first is not None
                node.move_before(first)
            else:
                node.move_after(self.last)
            ctx.count("hoisted")
        self.last = node
        return moved


def _weight(node: Node) -> Tensor | None:
    """The weight that ``node`` holds, if its contents are known and are not all equal."""
    content = node.attributes.get("value")
    known = isinstance(content, Tensor) and content.name and not content.is_splat and not content.is_absent
    return content if known else None


def _digest(node: Node) -> Any:
    """A cryptographic hash of a weight's contents, for which no collision can be constructed."""
    from hashlib import blake2b  # slow to import, seldom needed

    tensor: Tensor = node.attributes["value"]
    if tensor.dtype is DType.STRING:
        return tuple(tensor.peek().reshape(-1).tolist())
    return blake2b(np.ascontiguousarray(tensor.peek()).reshape(-1).view(np.uint8).data, digest_size=32).digest()
