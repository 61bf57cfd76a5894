"""Keys and values that are repeated for the heads that share them, as exporters of grouped-query attention write it.

That copies the whole cache in each step; `irc::attention` reads them where they are. A target shape in which a 0
copies a size is assumed to be for at least one key and a batch of at least one; without elements, the shape would be
another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from irc.ir.constants import is_constant
from irc.ir.tensor import Tensor
from irc.ir.types import Dim, DType, TensorType
from irc.passes.canonicalize.match import Match, rewrite

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.ops.inference import NodeTypes

_ONE_SIZE = TensorType(DType.INT64, (1,))


class Repeated(NamedTuple):
    """``Reshape(Expand(Unsqueeze(source)))``: ``shared`` heads become ``heads``, each repeated for its share."""

    source: Value
    shared: int
    heads: int
    made_by: list[Node]


def repeated(m: Match, value: Value) -> Repeated | None:
    """How ``value`` repeats heads; None if it does not, or does anything else."""
    nodes = _made_by(m, value, "onnx::Reshape", "onnx::Expand", "onnx::Unsqueeze")
    if nodes is None or not _is_between(m, nodes[2], nodes[1].output, value):
        return None
    reshape, expand, unsqueeze = nodes
    source = unsqueeze.inputs[0]
    shared, group, width = (_number(m.size(v, axis)) for v, axis in ((source, 1), (expand.output, 2), (source, 3)))
    if is_constant(source) or not shared or group < 2 or not width:
        return None
    if not _repeats_only(m, source, expand) or not _joins_only(m, source, reshape, shared * group):
        return None
    return Repeated(source, shared, shared * group, nodes)


def _is_between(m: Match, unsqueeze: Node, expanded: Value, value: Value) -> bool:
    """Whether the axis that is put in stands behind that of heads, of four."""
    ranks = tuple([m.type_of(v).rank for v in (unsqueeze.inputs[0], expanded, value)])
    return ranks == (4, 5, 4) and m.types_of(unsqueeze).axes(1) in ([2], [-3])


def _number(size: Dim) -> int:
    """``size`` if it is known; else 0."""
    return size if isinstance(size, int) else 0


def _repeats_only(m: Match, source: Value, expand: Node) -> bool:
    """Whether ``expand`` leaves all axes of ``source`` as they are."""
    return all(
        (size := m.size(source, axis)) is not None and size == m.size(expand.output, widened)
        for axis, widened in enumerate((0, 1, 3, 4))
    )


def _joins_only(m: Match, source: Value, reshape: Node, heads: int) -> bool:
    """Whether ``reshape`` makes ``heads`` of the heads of ``source`` and of how often each is there, and no more."""
    target = m.types_of(reshape)
    if target.version < 5:
        return False
    rows = _asked(target, 2)
    # If there are no rows, their 0 copies the size of the group, and a -1 elsewhere lets that pass.
    any_rest = -1 if target.attr("allowzero", 0) or (isinstance(rows, int) and rows) else None
    wanted = {0: m.size(source, 0), 1: heads, 2: m.size(source, 2), 3: m.size(source, 3)}
    # A -1 is what is left: the same, as nothing else changes.
    return all(_is_asked_for(m, reshape, axis, size, any_rest) for axis, size in wanted.items())


def _made_by(m: Match, value: Value, *kinds: str) -> list[Node] | None:
    """The nodes of ``kinds``, last first, that make ``value`` in the block of the match; None if others do."""
    nodes: list[Node] = []
    for kind in kinds:
        node = value.made_by(kind)
        if node is None or node.block is not m.node.block:
            return None
        nodes.append(node)
        value = node.inputs[0]
    return nodes


def _asked(reshape: NodeTypes, axis: int) -> Dim:
    """What the target shape states for ``axis``."""
    target = reshape.numbers(1)
    return None if target is None else target[axis]


def _is_asked_for(m: Match, reshape: Node, axis: int, *wanted: Dim) -> bool:
    """Whether ``reshape``, if it succeeds, gives ``axis`` one of the sizes that are ``wanted``."""
    made, asked = m.size(reshape.output, axis), _asked(m.types_of(reshape), axis)
    found = (made,) if isinstance(made, int) else (made, asked)
    return any(size is not None and size in found for size in wanted)


@rewrite("Shape")
def shape_of_shared_heads(m: Match) -> Value | None:
    """The shape of repeated heads, taken without repeating them."""
    found = repeated(m, m.input())
    if found is None or not m.still_holds(*found.made_by):
        return None
    sizes = [
        m.new_constant(Tensor.of(np.array([found.heads])))
        if axis == 1
        else m.new("onnx::Shape", [found.source], _ONE_SIZE, {"start": axis, "end": axis + 1})
        for axis in range(4)[m.types.attr("start", 0) : m.types.attr("end")]
    ]
    return m.new("onnx::Concat", sizes, m.output.type, {"axis": 0}) if sizes else None


@rewrite("Reshape")
def transpose_of_heads_as_one(m: Match) -> Value | None:
    """A transposition of the last two axes between reshapes that merge and split the others: no reshape is needed."""
    nodes = _made_by(m, m.input(), "onnx::Transpose", "onnx::Reshape")
    if nodes is None or m.types.version < 5 or nodes[0].attributes.get("perm") != [0, 2, 1]:
        return None
    transpose, merge = nodes
    x = merge.inputs[0]
    own, rank = m.type_of(x).rank, m.output.type.rank
    if own is None or rank is None or min(own, rank) < 4 or (merge.version or 5) < 5:
        return None
    rows, width = m.size(x, own - 2), m.size(x, own - 1)
    asked = [(merge, 1, rows), (merge, 2, width), (m.node, rank - 2, width), (m.node, rank - 1, rows)]
    if not all(_is_asked_for(m, *each) for each in asked):
        return None
    if not m.can_share(x) or not m.still_holds(*nodes):
        return None
    first = [m.size(x, axis) for axis in range(rank - 2)] if own == rank else []
    # A 0 would copy a size of another axis, but for the first.
    stay = all(isinstance(size, int) and size for size in (*first[1:], width)) and bool(first)
    if not stay or not all(_is_asked_for(m, m.node, axis, size) for axis, size in enumerate(first)):
        shape = m.output.type.static_shape
        if shape is None or 0 in shape:
            return None
        plain = (*shape[:-2], shape[-1], shape[-2])
        target = m.new_constant(Tensor.of(np.array(plain)))
        x = m.new("onnx::Reshape", [x, target], TensorType(m.types.tensor(0).dtype, plain))
    perm = [*range(rank - 2), rank - 1, rank - 2]
    return m.new("onnx::Transpose", [x], m.output.type, {"perm": perm}, transpose.version)
