"""Operators that concatenate tensors: ONNX's, torch's and irc's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from irc.ir.constants import constant_value

if TYPE_CHECKING:
    from irc.ir.node import Node
    from irc.ir.value import Value

APPEND = "irc::append_"
CONCAT = "onnx::Concat"

_WITH_AXIS = frozenset({APPEND, CONCAT})
_OF_LIST = "aten::cat"


class Join(NamedTuple):
    """Tensors that are concatenated along an axis."""

    parts: Sequence[Value]
    axis: int


def joined(node: Node) -> Join | None:
    """What ``node`` concatenates; None if it is another operator, or the axis or the parts are not known.

    torch's operators take a list, whose elements are known if nothing else uses it.
    """
    if node.kind in _WITH_AXIS:
        axis, parts = node.attributes.get("axis"), node.inputs
    elif node.kind == _OF_LIST and 1 <= len(node.inputs) <= 2:
        made = node.inputs[0].made_by("prim::ListConstruct")
        if made is None or made.output.user_count != 1 or not made.output.uses_by(node):
            return None
        axis, parts = _dimension(node), made.inputs
    else:
        return None
    return Join(parts, axis) if type(axis) is int and parts and len(node.outputs) == 1 else None


def _dimension(node: Node) -> object:
    return 0 if len(node.inputs) == 1 else constant_value(node.inputs[1])
