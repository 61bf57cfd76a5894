"""What the bodies of ONNX's Loop and Scan give: what is carried, and rows that are stacked to scan outputs."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from irc.ir.declared import told_type
from irc.ir.types import TensorType

if TYPE_CHECKING:
    from irc.ir.node import Node
    from irc.ir.value import Value


def is_batched(scan: Node) -> bool:
    """Whether ``scan`` is of version 8: input 0 holds lengths of sequences, others start with a batch axis."""
    return scan.version is not None and scan.version < 9


def carried_values(node: Node) -> int | None:
    """How many values a Loop or Scan carries from trip to trip; None of any other node."""
    if len(node.blocks) != 1:
        return None
    if node.kind == "onnx::Loop":
        return max(0, len(node.inputs) - 2)
    if node.kind == "onnx::Scan":
        return max(0, len(node.inputs) - is_batched(node) - node.attributes.get("num_scan_inputs", 0))
    return None


def scanned_rows(node: Node) -> list[TensorType]:
    """The types of rows of the scan outputs of a Loop or Scan, as far as declared; none of any other node."""
    carried = carried_values(node)
    if carried is None:
        return []
    is_scan = node.kind == "onnx::Scan"
    returned = node.blocks[0].returns[carried if is_scan else 1 + carried :]  # a Loop's condition comes first
    # With a batch, the outputs have one more axis; there, the body alone tells.
    outputs = () if is_scan and is_batched(node) else node.outputs[carried:]
    pairs = list(zip_longest(returned, outputs))
    axes: list[int] = (node.attributes.get("scan_output_axes") or []) if is_scan else []
    return [row_type(*pair, axis) for pair, axis in zip(pairs, axes + [0] * len(pairs))]


def row_type(returned: Value | None, output: Value | None, axis: int = 0) -> TensorType:
    """The type of a row: what the types of the value that the body returns and of the scan output say together.

    What the model declares of the output counts, as an empty one has the declared shape, in ONNX Runtime too.
    """
    types = [None if returned is None else returned.type, None if output is None else told_type(output)]
    row, whole = (type if isinstance(type, TensorType) else TensorType() for type in types)
    shape = row.shape
    if whole.shape and -len(whole.shape) <= axis < len(whole.shape):
        at = axis % len(whole.shape)
        rest = whole.shape[:at] + whole.shape[at + 1 :]
        if shape is None:
            shape = rest
        elif len(shape) == len(rest):
            shape = tuple(d if isinstance(d, int) else other for d, other in zip(shape, rest))
    return TensorType(row.dtype or whole.dtype, shape)
