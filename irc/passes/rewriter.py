"""The only way for passes to change a graph.

It keeps the alias analysis and the names of outputs right, and records which of the model's nodes new ones stand for.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from irc.ir import CONSTANT, IDENTITY, Block, Graph, Node, Tensor, Value
from irc.ir.builder import type_of_constant
from irc.ir.metadata import SOURCE, merged, provenance
from irc.ir.types import TENSOR, Type, refined
from irc.ops.axes import APPEND, CONCAT

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.passes.base import PassContext


_MOST_REPLACED = 64
"""How many nodes are looked at to find those that a new node stands for."""


class Rewriter:
    """Changes one graph.

    The graph's alias analysis, if it has been built, is updated with every change.
    The outputs of a main graph keep their names: a value that replaces an
    output takes its name over or, where it cannot (it is a graph input, another
    output, or defined in a nested block), reaches it through ``onnx::Identity``.

    New nodes get the merged metadata of those that they stand for, and their names as ``irc.source``: of the node that
    is replaced, and of all before it that nothing else needs. So does a node of the same operator that another one is
    merged into. Of new constants, only those that are results themselves get any.
    """

    def __init__(self, graph: Graph, ctx: PassContext) -> None:
        self.graph = graph
        self.ctx = ctx
        self._is_function = graph.is_function
        self._unplaced: set[Node] = set()
        """New nodes that have replaced nothing yet."""

    @property
    def db(self) -> AliasDb:
        """The graph's alias analysis."""
        return self.ctx.alias_db(self.graph)

    # -- adding ----------------------------------------------------------

    def insert(self, node: Node, *, before: Node) -> Node:
        """Put a new node, with all of its inputs and outputs, right before ``before``. Returns it."""
        node.insert_before(before)
        self._unplaced.add(node)
        db = self.ctx.built_alias_db(self.graph)
        if db is not None:
            db.add_node(node)
        return node

    def op(
        self,
        kind: str,
        *inputs: Value,
        before: Node,
        type: Type = TENSOR,
        name: str = "",
        attributes: dict[str, Any] | None = None,
        version: int | None = None,
        node_name: str = "",
    ) -> Value:
        """Insert a node with one output, called ``name``, and return that output."""
        node = self.graph.create(
            kind, inputs, (type,), names=(name,), attributes=attributes, version=version, name=node_name
        )
        return self.insert(node, before=before).output

    def constant(self, value: Any = None, *, before: Node, type: Type | None = None, name: str = "") -> Value:
        """Insert a ``prim::Constant`` of a ``Tensor``, array, Python value or None, and return its value.

        A tensor of more than 16 elements that are not all equal becomes a weight called ``name``.
        """
        if hasattr(value, "__array__"):
            value = Tensor.of(value)
        if isinstance(value, Tensor):
            value = self.weight(value, name or self.graph.unique_name())
        attributes = {} if value is None else {"value": value}
        return self.op(CONSTANT, before=before, type=type or type_of_constant(value), name=name, attributes=attributes)

    def weight(self, tensor: Tensor, name: str) -> Tensor:
        """``tensor`` as a constant may hold it: entered in the weight table as ``name`` if it is large."""
        return self.graph.weights.hold(name, tensor)

    # -- replacing -------------------------------------------------------

    def can_share(self, a: Value, b: Value) -> bool:
        """Whether ``a`` and ``b``, which hold equal contents, may become one memory.

        They may not if something writes into one of them, now or, for a
        function that returns both, in its caller; unless nobody can tell them apart already.
        """
        db = self.db
        # In this order: most values are not written, which is soon found.
        if not db.has_writers((a, b)) and (not self._is_function or db.safe_to_change_aliasing([a], [b])):
            return True
        return self.are_alike(a, b)

    def are_alike(self, a: Value, b: Value) -> bool:
        """Whether ``a`` and ``b``, which hold equal contents, are one tensor or might as well be.

        Two tensors of one memory might if nothing changes the shape or strides of either; nor may, in a function, any
        of its callers.
        """
        db = self.db
        if db.same_tensor(a, b):
            return True
        if not db.must_alias(a, b, if_any=True) or db.has_metadata_writers((a, b)):
            return False
        return not self._is_function or not self.ctx.may_change_shapes()

    def can_be_constant(self, results: Sequence[Value], read: Sequence[Value] = ()) -> bool:
        """Whether ``results`` may become constants, whose memory nothing may write.

        They may not if something writes into them, or into what they are computed from (``read``), or if the
        caller of a function might.
        """
        db = self.db
        if db.has_writers((*results, *read)):
            return False
        return not self._is_function or not db.escapes(results)

    def replace(self, old: Value, new: Value, *, keep_name: bool = False) -> bool:
        """Make every use of ``old`` a use of ``new``, which must hold the same contents and dominate the uses.

        The caller vouches that sharing is right: ``new`` is a fresh result as
        ``old`` was, both are views of one value, or ``can_share`` allowed it.

        Args:
            old: the value to do without.
            new: what is used instead.
            keep_name: whether ``new`` takes over the name of ``old`` (outputs' names are kept anyhow).

        Returns:
            Whether any use changed. The graph's output stays the use of an
            ``onnx::Identity`` that is needed to keep its name.
        """
        return self.replace_values([(old, new)], keep_names=keep_name) > 0

    def replace_values(self, pairs: Iterable[tuple[Value, Value]], *, keep_names: bool = False) -> int:
        """As `replace` for each; returns how many changed. No value may both be replaced and replace another.

        Very many, which one node may use, cost no more than one: the alias analysis learns of all at once, and nodes
        put their inputs together when they are next asked for.
        """
        untold: list[tuple[Value, Value]] = []
        changed = sum([self._replace(old, new, keep_names, untold) for old, new in pairs])
        self._tell_replaced(untold)
        return changed

    def _replace(self, old: Value, new: Value, keep_name: bool, untold: list[tuple[Value, Value]]) -> bool:
        """As `replace`, but the alias analysis is still to be told of ``untold``, to which the pair is added."""
        if old is new:
            return False
        if new.node is not None and new.block is old.block:
            before, new.type = new.type, refined(new.type, old.type)
            if new.type is not before:
                new.report_type()
        untold.append((old, new))
        self._trace_new(old, new, keep_name)
        if not old.has_uses:  # the caller may have let all use ``new`` already, as `Merges` does
            return False
        end = self.graph.block.return_node
        is_output, is_other = (not self._is_function and value.uses_by(end) > 0 for value in (old, new))
        if is_output and (new.node is None or new.block is not self.graph.block or is_other):
            return self._replace_behind_identity(old, new, untold)
        old.replace_all_uses_with(new)
        self._trace_merged([(old, new)])
        if is_output or (keep_name and new.node is not None and not is_other):
            new.succeed(old)
        return True

    def _trace_merged(self, pairs: Iterable[tuple[Value, Value]]) -> None:
        """Give new values and nodes also the metadata of the old ones, if both are of one operator."""
        became: dict[Node, list[Node]] = {}
        for old, new in pairs:
            node, made = old.node, new.node
            if node is not None and made is not None and made is not node and made.kind == node.kind:
                became.setdefault(made, [made]).append(node)
                if old.metadata:
                    new.metadata = {**old.metadata, **new.metadata}
        for made, nodes in became.items():  # once for the very many that may become one
            made.metadata = provenance(nodes)

    def _trace_new(self, old: Value, new: Value, keep_name: bool) -> None:
        """Give new nodes the provenance of those that make ``old``, which ``new`` is going to replace."""
        node, made = old.node, new.node
        if node is None or made is None or made not in self._unplaced:
            return
        replaced = _replaced(node)
        is_same = len(replaced) == 1 and _is_same(node, made) and bool(node.name or keep_name)
        said = node.metadata if is_same else provenance(replaced)
        pending = [made]
        self._unplaced.discard(made)
        while pending:
            each = pending.pop()
            if each is made or each.kind != CONSTANT:
                each.metadata = merged([each.metadata, said])
            for value in each.inputs:
                if value.node in self._unplaced:
                    self._unplaced.discard(value.node)
                    pending.append(value.node)

    def replace_node(self, node: Node, values: Sequence[Value], *, keep_names: bool = False) -> bool:
        """Replace the outputs of ``node``; if nothing uses them then, erase it and the constants only it used."""
        return self.replace_nodes([(node, values)], keep_names=keep_names) > 0

    def replace_nodes(self, nodes: Sequence[tuple[Node, Sequence[Value]]], *, keep_names: bool = False) -> int:
        """As `replace_node` for each; return how many changed. No value may be both old and new.

        There may be very many: the alias analysis is told of all at once.
        """
        untold: list[tuple[Value, Value]] = []
        changed: list[bool] = []
        for node, values in nodes:
            pairs = zip(node.outputs, values, strict=True)
            changed.append(sum([self._replace(old, new, keep_names, untold) for old, new in pairs]) > 0)
        self._tell_replaced(untold)
        gone: list[tuple[Value, Value]] = []
        for i, (node, values) in enumerate(nodes):
            if not any(v.has_uses for v in node.outputs):
                gone += zip(node.outputs, values, strict=True)
                self.erase_with_constants(node)
                changed[i] = True
        self._trace_merged(gone)
        return sum(changed)

    def _replace_behind_identity(self, old: Value, new: Value, untold: list[tuple[Value, Value]]) -> bool:
        end, identity = self.graph.block.return_node, old.made_by(IDENTITY)
        others = [user for user in old.users if user is not end]
        for user in others:
            user.replace_uses(old, new)
        self._tell_replaced(untold)  # before the Identity is: those that use it now stay with ``new``
        if others or identity is None:
            self._trace_merged([(old, new)])
        if identity is not None:
            return bool(others)  # it is the Identity that is needed: only its other users go past it
        copy = self.op(IDENTITY, new, before=end, type=old.type)
        if copy.node is not None and old.node is not None:
            copy.node.metadata = provenance([old.node])
        end.replace_uses(old, copy)
        copy.succeed(old)
        return True

    def _tell_replaced(self, untold: list[tuple[Value, Value]]) -> None:
        """Update the alias analysis with the replacements since the last call."""
        db = self.ctx.built_alias_db(self.graph)
        if db is not None:
            db.replace_values(untold)
        untold.clear()

    # -- removing and moving ---------------------------------------------

    def erase(self, node: Node) -> None:
        """Erase a node, nested blocks included; nothing may use its outputs."""
        db = self.ctx.built_alias_db(self.graph)
        if db is not None:
            db.erase_node(node)
        node.erase()

    def erase_with_constants(self, node: Node) -> None:
        """Erase a node, and the constants that only it used."""
        inputs = dict.fromkeys(node.inputs)
        self.erase(node)
        for value in inputs:
            constant = value.made_by(CONSTANT)
            if constant is not None and not value.has_uses:
                self.erase(constant)

    def hoist(self, nodes: Collection[Node], node: Node) -> None:
        """Move ``nodes`` out of the blocks of ``node``, to right before it, in the given order.

        The caller vouches that this is right: what they use is defined there, they may run as often as ``node`` does,
        and neither they nor anything that ``node`` does before them affects the other. Moving many costs no more than
        one.
        """
        for inner in nodes:
            inner.move_before(node)
        db = self.ctx.built_alias_db(self.graph)
        if db is not None:
            db.unnest_nodes(node, nodes)

    def erase_outputs(self, node: Node, indices: Collection[int]) -> None:
        """Remove outputs of ``node`` that nothing uses."""
        self._forget(node.outputs[index] for index in indices)
        node.erase_outputs(indices)

    def erase_params(self, block: Block, indices: Collection[int]) -> None:
        """Remove parameters of ``block`` that nothing uses."""
        self._forget(block.params[index] for index in indices)
        block.erase_params(indices)

    def _forget(self, values: Iterable[Value]) -> None:
        db = self.ctx.built_alias_db(self.graph)
        if db is not None:
            for value in values:
                db.erase_value(value)


def _replaced(node: Node) -> list[Node]:
    """``node`` and the nodes before it in its block whose results only these need, in order.

    Constants are left out, unless passes have made them of other nodes.
    """
    found = {node}
    pending = [node]
    while pending and len(found) < _MOST_REPLACED:
        for value in pending.pop().inputs[:_MOST_REPLACED]:
            producer = value.node
            if producer is None or producer in found or producer.block is not node.block:
                continue
            if producer.kind == CONSTANT and SOURCE not in producer.metadata:
                continue
            if all(v.user_count <= len(found) and found.issuperset(v.iter_users()) for v in producer.outputs):
                found.add(producer)
                pending.append(producer)
    return sorted(found, key=_ORDER)


_ORDER = attrgetter("order")


def _is_same(node: Node, made: Node) -> bool:
    """Whether ``made`` is ``node`` in its in-place or functional form."""
    same = made.name == node.name and set(made.inputs) == set(node.inputs)
    return same and _functional(made.kind) == _functional(node.kind) and made.metadata == node.metadata


def _functional(kind: str) -> str:
    return CONCAT if kind == APPEND else kind.removesuffix("_")
