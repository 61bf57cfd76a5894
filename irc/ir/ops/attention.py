"""Attention as graphs spell it: a product, pointwise operators, a softmax among them, and another product."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.constants import constant_tensor, constant_value, is_constant
from irc.ir.kinds import MASKED_SOFTMAX, MATMUL, RESHAPE
from irc.ir.ops.torch_pointwise import POWERS, is_elementwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.ir.block import Block
    from irc.ir.node import Node
    from irc.ir.value import Value

PRODUCTS = frozenset([MATMUL, "aten::bmm", "aten::matmul"])

SOFTMAX = frozenset(["onnx::Softmax", MASKED_SOFTMAX, "aten::_softmax", "aten::softmax"])

VIEWS = frozenset([RESHAPE, "aten::to"])
"""What may lie between the products although its result may be its operand's memory: only the next operator knows it.
"""

_LONGEST = 16
"""How many operators between the products are looked at."""


def attention(last: Node) -> list[Node] | None:
    """The operators of ``softmax(f(q @ k)) @ v`` of which ``last`` is the last one, in order; None if it is not.

    Each but the last makes a value that the next one alone uses, so that all of them can be computed row by row of the
    scores ``q @ k``. Operators around the softmax, which goes along the rows, are pointwise; it is not known whether
    they keep the shape of the scores. So are PyTorch's conversions, which may do nothing. Next to the products there
    may be a Reshape: where heads share keys, their queries are the rows of one product.
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
        product = _maker(reshape.inputs[0] if reshape else value, block, *PRODUCTS)
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


def _maker(value: Value, block: Block | None, *kinds: str) -> Node | None:
    """What makes ``value`` in ``block``, of one of ``kinds`` if any are given; None if it has other uses, too."""
    node = value.made_by(*kinds) if kinds else value.node
    return node if node is not None and node.block is block and value.is_used_once else None


def _is_of_computed(product: Node) -> bool:
    """Whether ``product`` is one of two computed matrices. With a weight, it is a layer of its own."""
    return product.kind in PRODUCTS and not any(map(is_constant, product.inputs))


def _operands(node: Node, past_softmax: bool) -> Sequence[Value]:
    """The operands through which attention may come to ``node``."""
    if node.kind in SOFTMAX:
        return () if past_softmax or not (_goes_along_rows(node) and _is_settled(node)) else node.inputs[:1]
    if node.kind == "aten::to":
        return node.inputs[:1] if _is_settled(node) else ()
    # Rows have fewer exponents than the whole.
    return node.inputs if is_elementwise(node) and node.kind not in POWERS else ()


def _is_settled(node: Node) -> bool:
    """Whether the element type that ``node`` makes of the scores is the same in each run: no other tensor says it."""
    return all(is_constant(v) and constant_tensor(v) is None for v in node.inputs[1:])


def _goes_along_rows(softmax: Node) -> bool:
    """Whether ``softmax`` goes along the last axis alone."""
    rank = softmax.inputs[0].type.rank
    axis = softmax_axis(softmax)
    return axis is not None and axis in (-1, None if rank is None else rank - 1)


def softmax_axis(softmax: Node) -> int | None:
    """The axis that ``softmax`` is stated to go along; before version 13, the first of several. None: not known."""
    if softmax.kind.startswith("aten::"):
        return constant_value(softmax.inputs[1]) if len(softmax.inputs) > 1 else None
    is_first = softmax.kind == "onnx::Softmax" and (softmax.version or 13) < 13
    return int(softmax.attributes.get("axis", 1 if is_first else -1))
