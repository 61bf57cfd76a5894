"""What is wrong with the operands of a kernel that has failed.

Kernels are given what the operator allows: models that pass the checks of the
importer and of the verifier do so. Those of others may feed a kernel numbers of a type, or a
sequence, that it never expected, and Python then fails somewhere inside of it.
Checking all types before each call would cost every run; so it is done after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irc.ir.types import DType
from irc.ir.verify.onnx_rules import misfit
from irc.runtime.values import describe, is_array, is_mapping, is_sequence

if TYPE_CHECKING:
    from irc.ir import Node


def wrong_operands(node: Node, inputs: Sequence[Any]) -> str | None:
    """Which of ``inputs`` has a type that the operator does not allow; None if none has, or it is none of ONNX."""
    if node.kind.startswith("irc::"):  # made by passes, from what takes tensors only
        odd = next((value for value in inputs if not is_array(value)), None)
        return None if odd is None else f"{node.kind} takes tensors, not {describe(odd)}"
    return misfit(node.kind, node.version, [onnx_type(value) for value in inputs])


def onnx_type(value: Any) -> str | None:
    """The type of a run-time value as ONNX writes it, ``seq(tensor(float))``; None if that cannot be told."""
    if is_array(value):
        try:
            return f"tensor({DType.from_numpy(value.dtype).name.lower()})"
        except KeyError:
            return None
    if is_sequence(value):
        element = onnx_type(value[0]) if value else None
        return "seq(" if element is None else f"seq({element})"
    return "map(" if is_mapping(value) else None
