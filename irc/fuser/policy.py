"""What may fuse with what, and why not.

A policy only says what pays. Legality is the fuser's: whatever a policy answers, no group is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from irc.errors import misfit
from irc.fuser.subgraph import is_group, subgraph_of
from irc.ir import CONSTANT, Shape, TensorType
from irc.ops import record
from irc.ops.axes import Rows, reduces, row_axes
from irc.ops.pointwise import is_elementwise
from irc.support.remarks import Reason, fix_sizes, set_option

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from irc.fuser.fuse import Cluster
    from irc.ir import Graph, Node, Value


def is_anchor(node: Node) -> bool:
    """Whether ``node`` carries the time, and pointwise epilogues join it."""
    return record(node.kind).epilogues


class Policy:
    """What may fuse: pointwise trees, row reductions, and epilogues of convolutions and products.

    Pointwise trees broadcast, and may surround softmax, normalisations and reductions of the same rows. Pointwise
    epilogues follow one convolution or matrix product.

    A policy is made for each graph. Subclasses decide otherwise (docs/how-to/fusion-policy.md): their answers make
    groups larger, smaller or other ones, but never wrong, as the fuser itself ensures that operators can be in groups
    and may be moved.

    Args:
        graph: the graph that it is asked about, before anything is fused in it.
        max_size: how many operators a group may hold.
    """

    def __init__(self, graph: Graph, max_size: int = 64) -> None:
        self.max_size = max_size
        self._upstream = _UpstreamAnchors(graph)

    def fuses(self, node: Node) -> bool:
        """Whether ``node``, which is not a group, is of a kind that groups grow from and take in.

        Operators that dominate the run time (`is_anchor`) are taken in too. If the answer is False, no reason is
        reported.
        """
        return is_elementwise(node) or rows_of((node,)) is not None

    def refusal(self, producer: Node, cluster: Cluster) -> str | None:
        """Why ``producer`` may not join ``cluster``, which uses its result; None if it may.

        A producer that is refused while a cluster grows does not join it later, whatever else joins. The answer may be
        a `Reason`, which also names what is in the way, and a remedy.
        """
        added, its, its_rows = cluster.brings(producer)
        size = len(added) + cluster.size
        if size > self.max_size:
            text = f"the group would hold {size} operators, more than max-size={self.max_size}"
            return Reason(text, remedy=set_option("fuse", "max-size", size))
        mine, rows = cluster.anchor, cluster.rows or its_rows
        if rows is not None:
            if mine is not None or its is not None:
                anchor = mine or its or producer
                return _because(anchor, "gives its whole result before rows of it are reduced")
            return _rows_refusal(rows, (*added, *cluster.operators))
        if mine is not None and its is not None:
            return Reason(f"the group has {_label(mine)} already, and {_label(its)} would be a second", _name(mine))
        if mine is not None:
            if cluster.feeds_anchor(producer):
                return Reason(f"it feeds {_label(mine)} itself, not its epilogue", _name(mine))
            if self._upstream.reaches(producer):
                return "it is left to the epilogue of the convolution or matrix product that it depends on"
        if its is not None:
            return _shape_refusal(its, cluster)
        return None


def fault(policy: object) -> str:
    """Why ``policy`` is unusable: not a `Policy`, not initialised as one, or without callable methods.
    Empty if usable.
    """
    name = type(policy).__name__
    if not isinstance(policy, Policy):
        return f"policy must return a Policy, not {policy!r}"
    if not hasattr(policy, "_upstream"):
        return f"policy must return a Policy, and {name} does not call super().__init__(graph)"
    wrong = misfit(f"{name}.fuses", policy.fuses, "node")
    return wrong or misfit(f"{name}.refusal", policy.refusal, "producer", "cluster")


class _UpstreamAnchors:
    """Which values come out of an anchor through pointwise operators alone.

    Computed once, in one forward pass. It stays right while groups form,
    because an output of a group is the same value as before.
    """

    def __init__(self, graph: Graph) -> None:
        self._values: set[Value] = set()
        for node in graph.walk():
            leads_on = not self._values.isdisjoint(node.inputs) and (is_elementwise(node) or is_group(node))
            if leads_on or any(map(is_anchor, operators(node) if is_group(node) else (node,))):
                self._values.update(node.outputs)

    def reaches(self, node: Node) -> bool:
        """Whether ``node`` is pointwise on the result of an anchor."""
        return not self._values.isdisjoint(node.outputs)


def operators(node: Node) -> Sequence[Node]:
    """The operators that ``node`` stands for: itself, or those of the group, without constants."""
    return [op for op in subgraph_of(node).nodes if op.kind != CONSTANT] if is_group(node) else (node,)


Brought: TypeAlias = "tuple[Sequence[Node], Node | None, Domain | None]"
"""What a node brings into a group: operators, the anchor among them, what reductions among them reduce."""


def brought(node: Node) -> Brought:
    """What ``node`` brings into a group."""
    if not is_group(node):
        known = record(node.kind)
        return (node,), node if known.epilogues else None, rows_of((node,)) if known.reduces else None
    inside = operators(node)
    return inside, next(filter(is_anchor, inside), None), rows_of(inside)


class Domain(NamedTuple):
    """What operators reduce.

    Attributes:
        shape: of the operand.
        rows: how rows lie in it.
    """

    shape: Shape
    rows: Rows

    @property
    def row_shapes(self) -> tuple[Shape, Shape]:
        """The shapes of what there is once for each row: with axes of 1, and without these."""
        axes = {axis + len(self.shape) for axis in self.rows.axes}
        kept = tuple(1 if i in axes else size for i, size in enumerate(self.shape))
        return kept, tuple(size for i, size in enumerate(self.shape) if i not in axes)


def rows_of(operators: Iterable[Node]) -> Domain | None:
    """What the first reduction among ``operators`` reduces; None if nothing, or unknown axes."""
    for op in filter(reduces, operators):
        shape = _shape(op.inputs[0])
        rows = None if shape is None else row_axes(op, len(shape))
        if shape is not None and rows is not None:
            return Domain(shape, rows)
    return None


def _rows_refusal(domain: Domain, members: Iterable[Node]) -> str | None:
    """Why ``members`` cannot be computed row by row: not all are of the rows of ``domain``."""
    shapes = (domain.shape, *domain.row_shapes)
    for op in members:
        if reduces(op):
            if rows_of((op,)) != domain:
                return _because(op, "reduces other rows than the group", domain.shape, _shape(op.inputs[0]))
        elif any(_shape(value) not in shapes for value in op.outputs):
            text = f"gives another shape than {list(domain.shape)}, whose rows the group reduces"
            return _because(op, text, domain.shape, *map(_shape, (*op.outputs, *op.inputs)))
    return None


def _shape(value: Value) -> Shape | None:
    return value.type.shape if isinstance(value.type, TensorType) else None


def _shape_refusal(anchor: Node, cluster: Cluster) -> str | None:
    """Why ``cluster`` cannot be an epilogue: it changes the shape, so elements would be recomputed."""
    shape = anchor.outputs[0].type.shape
    for op in cluster.operators:
        for value in op.outputs:
            other = value.type.shape
            if shape is not None and other is not None and len(other) >= len(shape) and other != shape:
                return _because(anchor, f"gives {list(shape)}, its epilogue would give {list(other)}", shape, other)
    return None


def _because(node: Node, text: str, shape: Shape | None = None, *others: Shape | None) -> Reason:
    """The reason for ``text`` about ``node``. Named sizes that make shapes differ may be fixed."""
    remedy = None
    for other in others:
        if remedy is None and shape is not None and other is not None and len(shape) == len(other):
            different = [size for pair in zip(shape, other) if pair[0] != pair[1] for size in pair]
            names = [size for size in different if isinstance(size, str)]
            numbers = {size for size in different if isinstance(size, int)}
            if names and len(numbers) < 2 and all(isinstance(size, str | int) for size in different):
                remedy = fix_sizes(names, next(iter(numbers), None))
    return Reason(f"{_label(node)} {text}", _name(node), remedy)


def _name(node: Node) -> str:
    return node.outputs[0].name


def _label(node: Node) -> str:
    return f"{node.kind}{f' {node.name!r}' if node.name else f' %{node.outputs[0].name}'}"
