"""How operators treat memory layouts: which ones look at strides, and how their results lie in memory.

A layout is the order and the strides in which the elements of a tensor lie. A pass that gives a tensor another layout
changes what the operators in `LOOKING` and `VIEWS_OR_COPIES` do with it, and with whatever takes its layout from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.constants import constant_value, is_none
from irc.ir.kinds import CALL
from irc.ir.types import TensorType
from irc.ops.torch_pointwise import is_torch_pointwise

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.ir.graph import Graph
    from irc.ir.node import Node
    from irc.ir.value import Value


def _aten(names: str) -> frozenset[str]:
    return frozenset(f"aten::{name}" for name in names.split())


LOOKING = _aten(
    "as_strided as_strided_ as_strided_copy as_strided_scatter is_contiguous resize_ resize_as_ storage_offset stride "
    "unflatten view view_as view_as_complex"
)
"""Operators that give something else, or fail, if an operand lies otherwise."""

VIEWS_OR_COPIES = _aten("contiguous flatten ravel reshape reshape_as to")
"""Operators whose results share memory with the first operand or not, as its layout has it."""

LAID_OUT_ANEW = _aten("addmm baddbmm bmm dim embedding linear matmul mm numel scaled_dot_product_attention size")
"""Operators whose results lie in memory in one way, however their operands do."""

_CONTIGUOUS = _aten(
    "arange embedding eye full gather index_add index_copy linspace new_full new_ones new_zeros one_hot ones rand "
    "randint randn randperm repeat scalar_tensor scatter scatter_add stack take tensor tile tril tril_indices triu "
    "triu_indices zeros"
)
"""Operators whose results are contiguous, whatever their operands are. They take no memory format."""

_LIKE_FIRST = _aten(
    "clone copy empty_like fill full_like index_fill index_put masked_scatter ones_like put rand_like randn_like "
    "zeros_like"
)
"""Operators whose results lie as the first operand does, without its gaps, unless a memory format is given."""

_LAID_OUT_OTHERWISE = _aten("angle log_sigmoid")
"""Pointwise operators whose results may be contiguous though the operand is not."""

_PRESERVE = 1
"""The memory format of results that lie as the operand does, as torch counts formats; 0 is contiguous."""

_MEMORY_FORMAT = {
    "aten::clone": 1,
    "aten::contiguous": 1,
    "aten::empty": 5,
    "aten::empty_like": 5,
    "aten::full_like": 6,
    "aten::ones_like": 5,
    "aten::rand_like": 5,
    "aten::randn_like": 5,
    "aten::zeros_like": 5,
}
"""Kind -> which operand is the memory format."""

_SAME_ORDER = _aten(
    "alias detach flatten lift_fresh positive ravel reshape reshape_as squeeze unflatten unsqueeze view view_as"
) | {"prim::data", "prim::unchecked_cast"}
"""Views, or copies, that are contiguous if the first operand is."""

_PARTS = {"aten::select": 3, "aten::slice": 5, "aten::narrow": 4}
"""Parts along a dimension -> how many operands they have. Parts along the first dimension are contiguous if the whole
is and their steps are 1."""

_SEEING = LOOKING | VIEWS_OR_COPIES | {CALL}

WITH_GAPS = _aten("as_strided_scatter empty_strided")
"""Operators whose results, although in memory of their own, may have gaps between elements and before the first."""


def sees_layouts(graph: Graph) -> bool:
    """Whether something in ``graph``, or around it if it is a function, may see how a tensor lies in memory.

    It takes a look at each node; `irc.passes.layouts` tells of which tensors.
    """
    return graph.is_function or any(node.kind in _SEEING for node in graph.walk())


def keeps_layout(node: Node) -> bool:
    """Whether the result of ``node`` lies as the first operand if that has no gaps: no other tensor has a say."""
    if any(isinstance(v.type, TensorType) for v in node.inputs[1:]):
        return False
    if _is_pointwise(node):
        return node.kind not in _LAID_OUT_OTHERWISE
    return node.kind in _LIKE_FIRST and _format(node) is None


def contiguous_if(node: Node) -> Sequence[Value] | None:
    """The operands that make the only result of ``node`` contiguous if they all are; None if nothing certainly does."""
    kind = node.kind
    if kind in _CONTIGUOUS:
        return ()
    if kind in _MEMORY_FORMAT or kind in _LIKE_FIRST:
        wanted = _format(node)
        if wanted == 0 or (wanted is None and kind in ("aten::contiguous", "aten::empty")):
            return ()
        return node.inputs[:1] if wanted is None and kind in _LIKE_FIRST else None
    if kind in _SAME_ORDER:
        return node.inputs[:1]
    if kind in _PARTS:
        step = constant_value(node.inputs[4]) if kind == "aten::slice" and len(node.inputs) == 5 else 1
        dim = constant_value(node.inputs[1]) if len(node.inputs) > 1 else None
        is_part = isinstance(node.output.type, TensorType) and dim == 0 and step == 1
        return node.inputs[:1] if is_part else None
    if _is_pointwise(node):
        return [v for v in node.inputs if isinstance(v.type, TensorType)]
    return None


def _is_pointwise(node: Node) -> bool:
    return is_torch_pointwise(node.kind) and len(node.outputs) == 1 and isinstance(node.outputs[0].type, TensorType)


def _format(node: Node) -> object:
    """The memory format that ``node`` is given, as torch's number; None if none is, "?" if it is not constant."""
    at = _MEMORY_FORMAT.get(node.kind)
    if at is None or at >= len(node.inputs) or is_none(node.inputs[at]):
        return None
    found = constant_value(node.inputs[at])
    if type(found) is not int:
        return "?"
    return None if found == _PRESERVE else found
