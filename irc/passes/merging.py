"""Merging equal nodes: each merge is decided on its own, all are carried out at once."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, cast

from irc.ir import Node, Opaque, Tensor, Value
from irc.ir.metadata import quantization
from irc.ir.objects import EnumMember
from irc.passes.quantised import annotation_names

if TYPE_CHECKING:
    from irc.passes.rewriter import Rewriter


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
    """A hashable key of one attribute's value; 1, 1.0 and True differ, and so do 0.0 and -0.0; a NaN equals itself."""
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

    def may_share(self, earlier: Node, node: Node) -> bool:
        """Whether results of ``node`` may become the same memory as those of ``earlier`` and of all merged into it."""
        rewriter = self._rewriter
        return all(
            quantization(a.metadata) == quantization(b.metadata)  # ranges of one tensor would be those of the other
            and b.name not in self._named
            and rewriter.can_share(a, b)
            and (a not in self._escaping or not rewriter.db.escapes(b) or rewriter.are_alike(a, b))
            for a, b in zip(earlier.outputs, node.outputs, strict=True)
        )

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
