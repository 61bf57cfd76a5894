"""Nodes: operators applied to values.

Inputs and outputs change through methods only, which keep the use lists of values right. A node is erased after
everything that uses its results.
"""

# pyright: reportPrivateUsage=false
# Value, Node, Block and Graph share the links and use counts that nobody else may touch.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.ir.kinds import NAMES, RETURN
from irc.ir.metadata import HasMetadata
from irc.ir.value import Value

if TYPE_CHECKING:
    from irc.ir.block import Block
    from irc.ir.graph import Graph
    from irc.ir.types import Type


WIDE = 64
"""A node with this many inputs rebuilds its tuple of them when that is next read, not at each replacement."""


class Node(HasMetadata):
    """An operator with inputs, outputs, attributes and nested blocks.

    ``inputs``, ``outputs`` and ``blocks`` are tuples: change them only through
    the methods, which keep the use lists right.

    Attributes:
        kind: ``namespace::name``, such as ``onnx::Conv`` or ``prim::If``. Of several names of PyTorch's for an operator
            it is the one that PyTorch compiles to, whichever is given: ``aten::mul`` for ``aten::multiply``.
        version: for ONNX operators, the ``since_version`` it is bound to; None: the newest.
        attributes: name -> int, float, str, bool, None, Tensor, Type, Graph or a list of these.
        name: the ONNX node's name, or where in the source it comes from; may be "".
        scope: TorchScript's module scope; may be "".
        metadata: what the model says of it, and where it comes from (`irc.ir.metadata`); read-only, set it as a whole.
        block: the block it stands in; None before insertion and after erasure.
    """

    __slots__ = (
        "__weakref__",
        "_next",
        "_order",
        "_prev",
        "attributes",
        "block",
        "blocks",
        "graph",
        "inputs",
        "kind",
        "name",
        "outputs",
        "scope",
        "version",
    )

    def __init__(
        self,
        graph: Graph,
        kind: str,
        inputs: Iterable[Value] = (),
        attributes: dict[str, Any] | None = None,
        version: int | None = None,
        name: str = "",
    ) -> None:
        self.graph = graph
        self.kind = NAMES.get(kind, kind)
        self.version = version
        self.name = name
        self.scope = ""
        self.attributes: dict[str, Any] = {} if attributes is None else attributes
        self.inputs: tuple[Value, ...] = tuple(inputs)
        self.outputs: tuple[Value, ...] = ()
        self.blocks: tuple[Block, ...] = ()
        self.block: Block | None = None
        self._prev: Node | None = None
        self._next: Node | None = None
        self._order = 0  # position label in the block, see Block
        for value in self.inputs:
            users = value._users
            users[self] = users.get(self, 0) + 1

    # -- outputs ---------------------------------------------------------

    def add_output(self, type: Type, name: str = "") -> Value:
        """Append an output; ``name`` is made unique, "" gives a number."""
        return self.add_outputs((type,), (name,))[0]

    def add_outputs(self, types: Sequence[Type], names: Sequence[str] = ()) -> tuple[Value, ...]:
        """Append several outputs at once and return them."""
        graph = self.graph
        added = tuple([Value(graph, type, self, None, i) for i, type in enumerate(types, len(self.outputs))])
        self.outputs += added
        for i, value in enumerate(added):
            graph.name_value(value, names[i] if i < len(names) else "")
        return added

    def erase_outputs(self, indices: Iterable[int]) -> None:
        """Remove outputs that nothing uses; later ones move down."""
        self.outputs = self.graph.without(self.outputs, indices)

    @property
    def output(self) -> Value:
        """The only output; ValueError if there is not exactly one."""
        (value,) = self.outputs
        return value

    # -- inputs ----------------------------------------------------------

    def replace_input(self, index: int, value: Value) -> None:
        """Make input ``index`` be ``value``."""
        old = self.inputs[index]
        if old is value:
            return
        self.graph.changes += 1
        self._drop_use(old)
        self._add_use(value)
        inputs = list(self.inputs)  # faster than from slices, for few inputs and for thousands
        inputs[index] = value
        self.inputs = tuple(inputs)

    def replace_uses(self, old: Value, new: Value) -> None:
        """Make every input that is ``old`` be ``new``. Replacing many inputs one by one is O(inputs) in all."""
        if self._redirect(old, new):
            if len(self.inputs) < WIDE:
                self.inputs = tuple([new if value is old else value for value in self.inputs])
            else:
                _INPUTS.__set__(self, _Replaced(self.inputs, [(old, new)]))
                self.__class__ = _Wide  # pyright: ignore[reportAttributeAccessIssue]

    def _redirect(self, old: Value, new: Value) -> bool:
        """Count uses of ``old`` as uses of ``new``. Returns whether there are any."""
        if new is old or self not in old._users:
            return False
        self.graph.changes += 1
        new._users[self] = new._users.get(self, 0) + old._users.pop(self)
        return True

    def append_input(self, value: Value) -> None:
        """Append an input."""
        self.insert_input(len(self.inputs), value)

    def insert_input(self, index: int, value: Value) -> None:
        """Insert an input before position ``index``."""
        self.graph.changes += 1
        self._add_use(value)
        self.inputs = (*self.inputs[:index], value, *self.inputs[index:])

    def erase_inputs(self, indices: Iterable[int]) -> None:
        """Remove inputs; later ones move down."""
        self.graph.changes += 1
        positions = range(len(self.inputs))
        gone = {positions[index] for index in indices}
        for index in gone:
            self._drop_use(self.inputs[index])
        self.inputs = tuple([value for i, value in enumerate(self.inputs) if i not in gone])

    def set_inputs(self, values: Iterable[Value]) -> None:
        """Replace all inputs."""
        self.graph.changes += 1
        for old in self.inputs:
            self._drop_use(old)
        self.inputs = tuple(values)
        for new in self.inputs:
            self._add_use(new)

    def _add_use(self, value: Value) -> None:
        value._users[self] = value._users.get(self, 0) + 1

    def _drop_use(self, value: Value) -> None:
        left = value._users[self] - 1
        if left:
            value._users[self] = left
        else:
            del value._users[self]

    # -- blocks ----------------------------------------------------------

    def add_block(self) -> Block:
        """Append an empty nested block."""
        from irc.ir.block import Block

        self.graph.changes += 1
        block = Block(self.graph, self)
        self.blocks += (block,)
        return block

    # -- position --------------------------------------------------------

    @property
    def prev(self) -> Node | None:
        """The node before this one in its block, or None."""
        before = self._prev
        return None if before is None or before.kind == RETURN else before

    @property
    def next(self) -> Node | None:
        """The node after this one in its block, or None."""
        after = self._next
        return None if after is None or after.kind == RETURN else after

    @property
    def is_return(self) -> bool:
        """Whether this is the ``return_node`` of a block, whose inputs are the block's returns."""
        return self.kind == RETURN

    def insert_before(self, point: Node) -> Node:
        """Put this node, which is in no block, right before ``point``. Returns it."""
        assert point.block is not None, "the point is in no block"
        point.block._link(self, point)
        return self

    def insert_after(self, point: Node) -> Node:
        """Put this node, which is in no block, right after ``point``. Returns it."""
        assert point.block is not None and point._next is not None, "the point is in no block"
        point.block._link(self, point._next)
        return self

    def move_before(self, point: Node) -> None:
        """Move to right before ``point``, in any block. Checks nothing: see ``AliasDb.move_before``."""
        if point is not self:
            self._unlink()
            self.insert_before(point)

    def move_after(self, point: Node) -> None:
        """Move to right after ``point``, in this or another block. Checks nothing: see ``AliasDb.move_after``."""
        if point is not self:
            self._unlink()
            self.insert_after(point)

    def _unlink(self) -> None:
        assert self.block is not None, "the node is in no block"
        self.block._unlink(self)

    def is_before(self, other: Node) -> bool:
        """Whether this node runs before ``other``, both in the same graph, at whatever nesting.

        Of a node and one nested inside it, the outer one comes first. O(1) in
        one block; O(depth) across blocks.
        """
        if self.block is other.block:
            return self._order < other._order
        return self.place() < other.place()

    def place(self) -> list[tuple[int, int]]:
        """A sort key for nodes, as `is_before` orders them; valid until a block around the node changes.

        From the outside in: the index of each block in its node, and the order in that block.
        """
        place: list[tuple[int, int]] = []
        node: Node | None = self
        while node is not None and node.block is not None:
            outer = node.block.node
            place.append((0 if outer is None else outer.blocks.index(node.block), node._order))
            node = outer
        return place[::-1]

    @property
    def order(self) -> int:
        """A number that grows along the block; valid until the block changes."""
        return self._order

    @property
    def outer(self) -> Node | None:
        """The node whose block contains this one; None in a graph's own block, or in no block."""
        return None if self.block is None else self.block.node

    def around(self) -> Iterator[Node]:
        """The nodes that contain this one, innermost first."""
        node = self.outer
        while node is not None:
            yield node
            node = node.outer

    def ancestor_in(self, block: Block) -> Node | None:
        """This node or the one around it that stands in ``block``; None if there is none."""
        node: Node | None = self
        while node is not None and node.block is not block:
            node = node.block.node if node.block else None  # not `outer`, whose call costs as much as the turn
        return node

    # -- removal ---------------------------------------------------------

    def erase(self) -> None:
        """Remove this node, with all nested blocks, from the graph; nothing may use its outputs."""
        for value in self.outputs:
            if value.has_uses:
                users = ", ".join(user.kind for user in value.users[:3])
                raise ValueError(f"cannot erase {self.kind}: %{value.name} is used by {users}")
        # Nested nodes go first, innermost and last first, so that uses vanish before what they use.
        for node in [*self.nested()][::-1]:
            node._detach()
        self._detach()

    def captures(self) -> list[Value]:
        """The values from outside that its blocks use, or return, each once."""
        inside = list(self.nested())
        blocks = {node.block for node in inside}
        used = dict.fromkeys(value for node in inside for value in node.inputs)
        return [value for value in used if value.block not in blocks]

    def nested(self) -> Iterator[Node]:
        """All nodes inside this one at any depth, and each block's ``return_node``. They must not change."""
        stack = list(self.blocks)
        while stack:
            block = stack.pop()
            for node in block.nodes:
                yield node
                stack.extend(node.blocks)
            yield block.return_node

    def _detach(self) -> None:
        for value in self.inputs:
            users = value._users
            if self in users:
                del users[self]
        self.inputs = ()
        self.graph.changes += 1
        for value in self.outputs:
            self.graph.forget(value)
        for block in self.blocks:
            for param in block.params:
                self.graph.forget(param)
        if self.block is not None and not self.is_return:
            self._unlink()

    def __repr__(self) -> str:
        outs = ", ".join(f"%{v.name}" for v in self.outputs)
        ins = ", ".join(f"%{v.name}" for v in self.inputs)
        return f"{outs} = {self.kind}({ins})"


class _Replaced(NamedTuple):
    """Inputs, some of which have been replaced.

    Attributes:
        inputs: the inputs before.
        instead: the replacements since then, as (old, new), in order.
    """

    inputs: tuple[Value, ...]
    instead: list[tuple[Value, Value]]

    def by_now(self) -> tuple[Value, ...]:
        found: dict[Value, Value] = {}
        for old, new in reversed(self.instead):
            found[old] = found.get(new, new)  # what has become of ``new`` afterwards
        return tuple(map(found.get, self.inputs, self.inputs))


class _Wide(Node):
    """A node with `_Replaced` inputs, until they are read: other nodes need no check for it."""

    __slots__ = ()

    def _put_together(self) -> tuple[Value, ...]:
        inputs = _INPUTS.__get__(self)
        if isinstance(inputs, _Replaced):
            _INPUTS.__set__(self, inputs.by_now())  # first: another thread may ask meanwhile
            self.__class__ = Node  # pyright: ignore[reportAttributeAccessIssue]
        return _INPUTS.__get__(self)

    inputs: Any = property(_put_together)

    def replace_uses(self, old: Value, new: Value) -> None:
        if self._redirect(old, new):
            _INPUTS.__get__(self).instead.append((old, new))


_INPUTS: Any = Node.__dict__["inputs"]


def describe(node: Node) -> str:
    """A node in a few words: its outputs, kind and, if it has one, its name."""
    outputs = ", ".join(f"%{v.name}" for v in node.outputs)
    name = f" {node.name!r}" if node.name else ""
    return f"{outputs} = {node.kind}{name}" if outputs else f"{node.kind}{name}"
