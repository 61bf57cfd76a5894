"""Values, nodes and blocks: the linked structure of a graph.

Inputs and outputs of nodes change through methods only, which keep the use lists of values right. A node is erased
after everything that uses its results. A block owns the order of its nodes: links and labels change through its methods
and those of `Node` only, and nodes may be inserted, moved and erased while `Block.nodes` is iterated over.
"""

# pyright: reportPrivateUsage=false
# Value, Node, Block and Graph share the links and use counts that nobody else may touch.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.ir.kinds import NAMES, RETURN
from irc.ir.metadata import NOTHING, HasMetadata
from irc.support.formatting import count

if TYPE_CHECKING:
    from irc.ir.graph import Graph
    from irc.ir.types import Type


class Use(NamedTuple):
    """One use of a value: input number ``index`` of ``node`` (a block's ``return_node`` for its returns)."""

    node: Node
    index: int  # type: ignore[assignment]  # hides tuple.index, which uses do not need


class Value(HasMetadata):
    """One SSA value: an output of a node or a parameter of a block.

    Attributes:
        type: its type.
        node: the node that produces it; None for a block parameter.
        index: which output of ``node``, or which parameter of ``block``.
        graph: the graph it belongs to.
        metadata: what the model says of it (`irc.ir.metadata`); read-only, set it as a whole.
    """

    __slots__ = ("__weakref__", "_name", "_param_of", "_users", "graph", "index", "node", "type")

    def __init__(self, graph: Graph, type: Type, node: Node | None, param_of: Block | None, index: int) -> None:
        self.graph = graph
        self._metadata = NOTHING
        self.type = type
        self.node = node
        self.index = index
        self._param_of = param_of
        self._name = ""
        # How many inputs of each user are this value. One entry a user keeps adding
        # and removing a use O(1), and needs no object for a use.
        self._users: dict[Node, int] = {}

    @property
    def name(self) -> str:
        """The name without ``%``, unique in the graph."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        """Take ``name``; whichever value held it before gets ``name.N`` instead."""
        self.graph.rename(self, name)

    def succeed(self, other: Value) -> None:
        """Take over the name of ``other``, and its metadata beside one's own."""
        said = other.metadata
        self.name = other.name
        if said:
            self.metadata = {**self.metadata, **said}

    @property
    def block(self) -> Block | None:
        """The block it is defined in; None while its node is in no block."""
        return self._param_of if self.node is None else self.node.block

    @property
    def is_param(self) -> bool:
        """Whether it is a block parameter (a graph input, if the block is a graph's own)."""
        return self._param_of is not None

    @property
    def definer(self) -> Node | None:
        """The node that defines it: as an output or as a block parameter; None for a graph's input."""
        if self.node is not None:
            return self.node
        return None if self._param_of is None else self._param_of.node

    def made_by(self, *kinds: str) -> Node | None:
        """The node that it is an output of, if that is of one of ``kinds``."""
        return self.node if self.node is not None and self.node.kind in kinds else None

    @property
    def uses(self) -> list[Use]:
        """All uses, grouped by user, users in order of their first use."""
        return [Use(node, i) for node in self._users for i, v in enumerate(node.inputs) if v is self]

    @property
    def users(self) -> list[Node]:
        """The distinct nodes that use it (``return_node`` of blocks included)."""
        return list(self._users)

    @property
    def has_uses(self) -> bool:
        """Whether anything uses it."""
        return bool(self._users)

    @property
    def user_count(self) -> int:
        """Number of nodes that use it. O(1)."""
        return len(self._users)

    @property
    def is_used_once(self) -> bool:
        """Whether it has exactly one use. O(1), which ``use_count`` is not."""
        return len(self._users) == 1 and self.use_count == 1

    @property
    def use_count(self) -> int:
        """Number of uses; ``Add(x, x)`` counts 2."""
        return sum(self._users.values())

    def uses_by(self, user: Node) -> int:
        """How many inputs of ``user`` it is."""
        return self._users.get(user, 0)

    def iter_users(self) -> Iterator[Node]:
        """Like ``users`` without a copy; the uses must not change meanwhile."""
        return iter(self._users)

    def replace_all_uses_with(self, other: Value) -> None:
        """Make every user use ``other`` instead. O(inputs of the users)."""
        for user in self.users:
            user.replace_uses(self, other)

    def report_type(self) -> None:
        """Tell who remembers something of the graph that the type, which has been set, says something else."""
        if self.graph.observers:
            definer = self.definer
            for node in (*self._users, *(() if definer is None else (definer,))):
                node._report()

    def __repr__(self) -> str:
        return f"%{self._name} : {self.type}"


# -- nodes ----------------------------------------------------------------------


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
        self._metadata = NOTHING
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
        graph, before = self.graph, self.outputs
        if before:
            self._report()
        added = tuple([Value(graph, type, self, None, i) for i, type in enumerate(types, len(before))])
        self.outputs = before + added if before else added
        for value, name in zip(added, names if len(names) == len(added) else (*names, *[""] * len(added))):
            graph.name_value(value, name)
        return added

    def erase_outputs(self, indices: Iterable[int]) -> None:
        """Remove outputs that nothing uses; later ones move down."""
        self._report()
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
        self._drop_use(old)
        self._add_use(value)
        inputs = list(self.inputs)  # faster than from slices, for few inputs and for thousands
        inputs[index] = value
        self.inputs = tuple(inputs)
        self._report(old)

    def replace_uses(self, old: Value, new: Value) -> None:
        """Make every input that is ``old`` be ``new``. Replacing many inputs one by one is O(inputs) in all."""
        if self._redirect(old, new):
            if len(self.inputs) < WIDE:
                self.inputs = tuple([new if value is old else value for value in self.inputs])
                self._report(old)
            else:
                _INPUTS.__set__(self, _Replaced(self.inputs, [(old, new)]))
                self.__class__ = _Wide  # pyright: ignore[reportAttributeAccessIssue]

    def _redirect(self, old: Value, new: Value) -> bool:
        """Count uses of ``old`` as uses of ``new``. Returns whether there are any."""
        if new is old or self not in old._users:
            return False
        if self.graph.observers:
            self.graph.report_change(self, (old, new))  # of thousands of inputs, others are not put together for this
        new._users[self] = new._users.get(self, 0) + old._users.pop(self)
        return True

    def append_input(self, value: Value) -> None:
        """Append an input."""
        self.insert_input(len(self.inputs), value)

    def insert_input(self, index: int, value: Value) -> None:
        """Insert an input before position ``index``."""
        self._add_use(value)
        self.inputs = (*self.inputs[:index], value, *self.inputs[index:])
        self._report()

    def erase_inputs(self, indices: Iterable[int]) -> None:
        """Remove inputs; later ones move down."""
        self._report()
        positions = range(len(self.inputs))
        gone = {positions[index] for index in indices}
        for index in gone:
            self._drop_use(self.inputs[index])
        self.inputs = tuple([value for i, value in enumerate(self.inputs) if i not in gone])

    def set_inputs(self, values: Iterable[Value]) -> None:
        """Replace all inputs."""
        for old in self.inputs:
            self._drop_use(old)
        before, self.inputs = self.inputs, tuple(values)
        for new in self.inputs:
            self._add_use(new)
        self._report(*before)

    def _report(self, *values: Value) -> None:
        """Tell who remembers something of the graph that this node changed, and with it, what uses its inputs.

        So did the users of ``values``, which may be inputs no longer.
        """
        if self.graph.observers:
            self.graph.report_change(self, (*values, *self.inputs))

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
        self._report()
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
        if self.graph.observers:
            self.graph.report_move(self)
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
        if self.graph.observers:
            self.graph.report_move(self)
        for value in self.inputs:
            users = value._users
            if self in users:
                del users[self]
        self.inputs = ()
        for value in self.outputs:
            self.graph.forget(value)
        for block in self.blocks:
            for param in block.params:
                self.graph.forget(param)
        if self.block is not None and not self.is_return:
            self.block._unlink(self)

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


# -- blocks ---------------------------------------------------------------------


_ORDER_BITS = 62
_ORDER_END = 1 << _ORDER_BITS
_APPEND_GAP = 1 << 24
"""Labels left free between appended nodes; 2**38 appends fit before labels run out."""


class Block(HasMetadata):
    """A list of nodes with parameters and returns.

    The nodes form a ring around ``return_node``, which stands for both ends.
    Each carries an integer label that grows along the block, so that order is
    compared in O(1); when there is no free label between two neighbours, the
    smallest sparse enough range around them is relabelled: O(log n) amortised
    (Bender et al., "Two Simplified Algorithms for Maintaining Order in a
    List", 2002).

    Attributes:
        graph: the graph it belongs to.
        node: the node it is nested in; None for a graph's own block.
        params: its parameters (a graph's own block: the graph's inputs).
        return_node: a ``prim::Return`` node whose inputs are the block's returns; not among ``nodes``.
        metadata: what the model says of it (`irc.ir.metadata`); read-only, set it as a whole.
    """

    __slots__ = ("__weakref__", "_cursors", "_size", "graph", "node", "params", "return_node")

    def __init__(self, graph: Graph, node: Node | None) -> None:
        self.graph = graph
        self._metadata = NOTHING
        self.node = node
        self.params: tuple[Value, ...] = ()
        end = Node(graph, RETURN)
        end.block = self
        end._prev = end._next = end
        end._order = _ORDER_END
        self.return_node = end
        self._size = 0
        self._cursors: list[_Cursor] = []

    def __repr__(self) -> str:
        return f"<block of {self.node or self.graph!r}, {count(self._size, 'node')}>"

    @property
    def nodes(self) -> NodeList:
        """The nodes in order."""
        return NodeList(self)

    def around(self) -> Iterator[Block]:
        """This block and those that it is nested in, innermost first."""
        block: Block | None = self
        while block is not None:
            yield block
            block = None if block.node is None else block.node.block

    def unchanging_nodes(self) -> Iterator[Node]:
        """The nodes in order, for callers that do not change the block meanwhile: faster than ``nodes``."""
        end = self.return_node
        node = end._next
        while node is not end and node is not None:
            yield node
            node = node._next

    @property
    def returns(self) -> tuple[Value, ...]:
        """The values the block returns."""
        return self.return_node.inputs

    def set_returns(self, values: Iterable[Value]) -> None:
        """Replace all returns."""
        self.return_node.set_inputs(values)

    def add_param(self, type: Type, name: str = "") -> Value:
        """Append a parameter; ``name`` is made unique, "" gives a number."""
        return self.add_params((type,), (name,))[0]

    def add_params(self, types: Sequence[Type], names: Sequence[str] = ()) -> tuple[Value, ...]:
        """Append several parameters at once and return them."""
        self._report_params()
        first = len(self.params)
        added = tuple(Value(self.graph, t, None, self, first + i) for i, t in enumerate(types))
        self.params += added
        for i, value in enumerate(added):
            self.graph.name_value(value, names[i] if i < len(names) else "")
        return added

    def erase_params(self, indices: Iterable[int]) -> None:
        """Remove parameters that nothing uses; later ones move down."""
        self._report_params()
        self.params = self.graph.without(self.params, indices)

    def _report_params(self) -> None:
        if self.node is not None:
            self.node._report()

    def append(self, node: Node) -> Node:
        """Put ``node``, which is in no block, at the end. Returns it."""
        self._link(node, self.return_node)
        return node

    def prepend(self, node: Node) -> Node:
        """Put ``node``, which is in no block, at the start. Returns it."""
        first = self.return_node._next
        assert first is not None
        self._link(node, first)
        return node

    # -- the ring --------------------------------------------------------

    def _link(self, node: Node, after: Node) -> None:
        assert node.block is None and after.block is self, "node must be free, point must be in this block"
        before = after._prev
        assert before is not None
        node._prev, node._next = before, after
        before._next = after._prev = node
        node.block = self
        self._size += 1
        end = self.return_node
        low = 0 if before is end else before._order
        if after is end:
            label = low + _APPEND_GAP
            if label >= _ORDER_END:
                label = (low + _ORDER_END) // 2
        else:
            label = (low + after._order) // 2
        node._order = label
        if label == low or label >= _ORDER_END:
            self._relabel(node)
        if self.graph.observers:
            self.graph.report_move(node)

    def _unlink(self, node: Node) -> None:
        before, after = node._prev, node._next
        assert before is not None and after is not None
        for cursor in self._cursors:
            cursor.node_removed(node)
        before._next, after._prev = after, before
        node._prev = node._next = node.block = None
        self._size -= 1

    def _relabel(self, node: Node) -> None:
        """Spread the labels of the smallest aligned range around ``node`` that is sparse enough."""
        end = self.return_node
        first = last = node
        count, capacity = 1, 1.0
        for bits in range(1, _ORDER_BITS + 1):
            low = (node._order >> bits) << bits
            high = low + (1 << bits)
            while (p := first._prev) is not end and p is not None and p._order >= low:
                first, count = p, count + 1
            while (n := last._next) is not end and n is not None and n._order < high:
                last, count = n, count + 1
            capacity *= 2 / 1.5  # density threshold falls by 1.5 a level: the T of the paper
            if count < capacity:
                gap = (1 << bits) // (count + 1)
                if gap > 1:
                    label, walk = low, first
                    while True:
                        label += gap
                        walk._order = label
                        if walk is last:
                            return
                        assert walk._next is not None
                        walk = walk._next
        raise OverflowError("too many nodes in one block")


class _Cursor:
    """The position of an iteration over a block; removing its node moves it back by one."""

    __slots__ = ("at", "forward")

    def __init__(self, at: Node, forward: bool) -> None:
        self.at = at
        self.forward = forward

    def node_removed(self, node: Node) -> None:
        if node is self.at:
            at = node._prev if self.forward else node._next
            assert at is not None
            self.at = at


class NodeList:
    """The nodes of a block as a read-only sequence.

    Iterating while the block changes is defined: nodes may be erased, moved
    and inserted anywhere; the iteration goes on from where the current node
    stands (or stood), so it visits a node inserted right after it.
    """

    __slots__ = ("_block",)

    def __init__(self, block: Block) -> None:
        self._block = block

    def __len__(self) -> int:
        return self._block._size

    def __bool__(self) -> bool:
        return self._block._size > 0

    def __iter__(self) -> Iterator[Node]:
        return self._iterate(True)

    def __reversed__(self) -> Iterator[Node]:
        return self._iterate(False)

    def _iterate(self, forward: bool) -> Iterator[Node]:
        block = self._block
        end = block.return_node
        cursor = _Cursor(end, forward)
        block._cursors.append(cursor)
        try:
            while True:
                node = cursor.at._next if forward else cursor.at._prev
                if node is None or node is end:
                    return
                cursor.at = node
                yield node
        finally:
            block._cursors.remove(cursor)

    def __getitem__(self, index: int) -> Node:
        """Node number ``index``. O(n)."""
        size = len(self)
        if not -size <= index < size:
            raise IndexError(index)
        if index >= 0:
            walk = iter(self)
        else:
            walk, index = reversed(self), -index - 1
        for _ in range(index):
            next(walk)
        return next(walk)

    def __contains__(self, node: object) -> bool:
        return isinstance(node, Node) and node.block is self._block and not node.is_return
