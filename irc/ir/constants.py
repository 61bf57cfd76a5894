"""Reading constants: which values are known at compile time."""

from __future__ import annotations

from typing import Any

from irc.ir.kinds import CONSTANT
from irc.ir.node import Value
from irc.ir.tensor import Tensor
from irc.ir.text.printer import Opaque
from irc.ir.types import NONE


def is_constant(value: Value) -> bool:
    """Whether ``value`` is a constant whose contents are known."""
    node = value.made_by(CONSTANT)
    if node is None:
        return False
    content = node.attributes.get("value")
    if content is None:
        return value.type == NONE
    return not (isinstance(content, Opaque) or (isinstance(content, Tensor) and content.is_absent))


def constant_tensor(value: Value) -> Tensor | None:
    """The tensor that ``value`` always is, or None if it is not such a constant."""
    content = constant_value(value)
    return content if isinstance(content, Tensor) else None


def one_number(value: Value) -> float | None:
    """The one number that ``value`` always holds, in at most one axis."""
    tensor = constant_tensor(value)
    return float(tensor.scalar) if tensor is not None and tensor.numel == 1 and len(tensor.shape) < 2 else None


def constant_value(value: Value) -> Any:
    """The tensor or Python value that ``value`` always is; None if it varies, or is the constant None."""
    return value.node.attributes.get("value") if value.node is not None and is_constant(value) else None


def is_none(value: Value) -> bool:
    """Whether ``value`` is the None that stands for an absent optional input."""
    return value.type == NONE
