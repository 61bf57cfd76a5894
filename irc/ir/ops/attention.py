"""Attention as graphs spell it: a product, pointwise operators, a softmax among them, and another product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.constants import is_constant
from irc.ir.kinds import MASKED_SOFTMAX, MATMUL, RESHAPE
from irc.ir.ops.pointwise import is_pointwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.ir.block import Block
    from irc.ir.node import Node
    from irc.ir.value import Value

SOFTMAX = {"onnx::Softmax", MASKED_SOFTMAX}

_LONGEST = 16
"""How many operators between the products are looked at."""


def attention(last: Node) -> list[Node] | None:
    """The operators of ``softmax(f(q @ k)) @ v`` of which ``last`` is the last one, in order; None if it is not.

    Each but the last makes a value that the next one alone uses, so that all of them can be computed row by row of the
    scores ``q @ k``. Operators around the softmax, which goes along the rows, are pointwise; it is not known whether
    they keep the shape of the scores. Next to the products there may be a Reshape: where heads share keys, their
    queries are the rows of one product.
    """
    if not _is_of_computed(last):
        return None
    reshape = _maker(last.inputs[0], last.block, RESHAPE)
    found = _up_to(reshape.inputs[0] if reshape else last.inputs[0], last.block, past_softmax=False, longest=_LONGEST)
    if found is None:
        return None
    members = [*found, reshape, last] if reshape else [*found, last]
    matrices = {found[0].inputs[1], last.inputs[1]}  # they are not cut into rows
    if found[0].inputs[0] in matrices or any(not matrices.isdisjoint(node.inputs) for node in members[1:-1]):
        return None
    return members


def _up_to(value: Value, block: Block | None, past_softmax: bool, longest: int) -> list[Node] | None:
    """The operators that make ``value`` of a product; on the way back to it, a softmax may have been passed."""
    if past_softmax:
        reshape = _maker(value, block, RESHAPE)
        product = _maker(reshape.inputs[0] if reshape else value, block, MATMUL)
        if product is not None and _is_of_computed(product):
            return [product, reshape] if reshape else [product]
    node = _maker(value, block)
    if node is None or not longest:
        return None
    operands = _operands(node, past_softmax)
    past_softmax |= node.kind in SOFTMAX
    for operand in operands:
        found = _up_to(operand, block, past_softmax, longest - 1)
        if found is not None:
            return [*found, node]
    return None


def _maker(value: Value, block: Block | None, kind: str = "") -> Node | None:
    """What makes ``value`` in ``block``, of that ``kind`` if one is given; None if it has other uses, too."""
    node = value.made_by(kind) if kind else value.node
    return node if node is not None and node.block is block and value.is_used_once else None


def _is_of_computed(product: Node) -> bool:
    """Whether ``product`` is one of two computed matrices. With a weight, it is a layer of its own."""
    return product.kind == MATMUL and not is_constant(product.inputs[1])


def _operands(node: Node, past_softmax: bool) -> Sequence[Value]:
    """The operands through which attention may come to ``node``."""
    if node.kind in SOFTMAX:
        return () if past_softmax or not _goes_along_rows(node) else node.inputs[:1]
    # The kernel of Pow looks at the size of the exponent, and so is not the same for rows.
    return node.inputs if is_pointwise(node) and node.kind != "onnx::Pow" else ()


def _goes_along_rows(softmax: Node) -> bool:
    """Whether ``softmax`` goes along the last axis alone."""
    rank = softmax.inputs[0].type.rank
    return softmax_axis(softmax) in (-1, None if rank is None else rank - 1)


def softmax_axis(softmax: Node) -> int:
    """The axis that ``softmax`` goes along; before version 13, the first of several."""
    version = softmax.version or 13
    default = -1 if version >= 13 or softmax.kind == MASKED_SOFTMAX else 1
    return int(softmax.attributes.get("axis", default))
