"""What is wrong with a node whose kernel has failed, or with its operands.

Kernels expect what the operator allows, which models that pass the importer's checks and
the verifier respect. Other models, and files that were changed, may give a kernel numbers of a
wrong type, a sequence, or fewer operands than it expects, and Python then fails somewhere inside
the kernel. Checking all operands before each call would slow down every run, so they are checked after a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.ir.ops.registry import schemas
from irc.ir.ops.resolution import takes
from irc.ir.types import DType, TensorType
from irc.ir.verify.onnx_rules import check_form, misfit, onnx_name
from irc.runtime.values import describe, is_array, is_mapping, is_sequence
from irc.wording import count

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.ir.schema import Schema


_SHOWN = 3
"""Overloads that a message names."""


def what_is_wrong(node: Node, inputs: Sequence[Any]) -> Error | None:
    """What is wrong with ``node``, or the types of its operands, ``inputs``; None if nothing is, as far as known."""
    try:
        check_form(node)
        _check_count(node)
        _check_types(node)
    except Error as error:
        return Error(error.code, error.message.partition("\n")[0])  # without the node's text, which runs have not shown
    if node.kind.startswith("irc::"):  # made by passes, from what takes tensors only
        odd = next((value for value in inputs if not is_array(value)), None)
        return None if odd is None else Error("IRC421", f"{node.kind} takes tensors, not {describe(odd)}")
    wrong = misfit(node.kind, node.version, tuple(map(onnx_type, inputs)))
    return None if wrong is None else Error("IRC421", wrong)


def _check_count(node: Node) -> None:
    """Error IRC213 if no overload of ``node``, of those that irc has rows for, takes so many arguments."""
    rows, found = schemas(node.kind), len(node.inputs)
    if rows and not any(_needed(row) <= found and (row.is_vararg or found <= len(row.arguments)) for row in rows):
        raise Error("IRC213", f"{node.kind} does not take {count(found, 'argument')}: it is {_shown(rows)}")


def _check_types(node: Node) -> None:
    """Error IRC423 if no overload of ``node``, of those that irc has rows for, takes arguments of the types it has."""
    rows, given = schemas(node.kind), [value.type for value in node.inputs]
    if rows and not any(type.is_open for type in given) and not takes(node.kind, given):
        arguments = ", ".join(map(str, given))
        raise Error("IRC423", f"{node.kind} does not take arguments of the types ({arguments}): it is {_shown(rows)}")


def _shown(rows: Sequence[Schema]) -> str:
    return " or ".join(map(str, rows[:_SHOWN])) + (" or others" if len(rows) > _SHOWN else "")


def _needed(row: Schema) -> int:
    return sum(not argument.has_default for argument in row.arguments)


def onnx_type(value: Any) -> str | None:
    """The type of a run-time value as ONNX, or else Python, writes it; None if that cannot be told, or it is absent."""
    if is_array(value):
        try:
            return onnx_name(TensorType(DType.from_numpy(value.dtype)))
        except KeyError:
            return None
    if is_sequence(value):
        element = onnx_type(value[0]) if value else None
        return "seq(" if element is None else f"seq({element})"
    return "map(" if is_mapping(value) else None if value is None else type(value).__name__
