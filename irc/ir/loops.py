"""What loops carry from trip to trip, and the rows that their bodies return to be stacked to scan outputs."""

from __future__ import annotations

from itertools import chain, repeat, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from irc.ir.declared_outputs import told_type
from irc.ir.kinds import LOOPS, ONNX_LOOP, SCAN
from irc.ir.text.type_parser import parse_type
from irc.ir.types import Dim, TensorType

if TYPE_CHECKING:
    from irc.ir.node import Node
    from irc.ir.value import Value

DECLARED_INPUTS, DECLARED_ROWS = "declared_inputs", "declared_rows"
"""Attributes, texts of types: what the model declares of each value that the body of a Scan is given in a trip, and of
each row that the body of a Loop or Scan gives. No pass believes them, as they may be wrong. They are for empty scan
outputs, which have the declared shape in ONNX Runtime too, and for models that are written, where it wants ranks."""

SCANNED_BY = ("scan_input_axes", "scan_input_directions", "directions")
STACKED_BY = ("scan_output_axes", "scan_output_directions")
"""Attributes of Scan that have a number for each input that it takes slices of, and for each it stacks (or none)."""


class Carried(NamedTuple):
    """What a loop carries: where it begins in the inputs, the block's parameters and its returns, and how many values.

    A Scan's inputs after the carried ones are scanned, and its parameters after them are slices of those. A loop's
    first outputs are the carried values; further outputs are stacked from the rows that the block returns after these.
    """

    input: int
    param: int
    returned: int
    many: int


def carried(loop: Node) -> Carried:
    """What ``loop``, one of `LOOPS`, carries; nothing if it has too few inputs, which the verifier reports.

    ==============  ================================  ===========================  =========================
    loop            inputs                            the block's parameters       what the block returns
    ==============  ================================  ===========================  =========================
    ``prim::Loop``  trips, condition, carried...      trip, carried...             condition, carried...
    ``onnx::Loop``  trips, condition, carried...      trip, condition, carried...  condition, carried, rows...
    ``onnx::Scan``  lengths?, carried..., scanned...  carried..., slices...        carried..., rows...
    ==============  ================================  ===========================  =========================
    """
    if loop.kind == SCAN:
        first, scanned = int(is_batched(loop)), loop.attributes.get("num_scan_inputs", 0)
        return Carried(first, 0, 0, max(0, len(loop.inputs) - first - scanned))
    return Carried(2, 2 if loop.kind == ONNX_LOOP else 1, 1, max(0, len(loop.inputs) - 2))


def is_batched(loop: Node) -> bool:
    """Whether ``loop`` is a Scan of version 8: input 0 holds lengths of sequences, others start with a batch axis."""
    return loop.kind == SCAN and loop.version is not None and loop.version < 9


def scanned_rows(node: Node) -> list[TensorType]:
    """As `known_rows`, with what the body declares of rows of which nothing else is known."""
    declared = declared_types(node, DECLARED_ROWS)
    return [
        TensorType(row.dtype or said.dtype, _sizes(row.shape, said.shape))
        for row, said in zip(known_rows(node), chain(declared, repeat(TensorType())))
    ]


def declared_types(node: Node, key: str) -> list[TensorType]:
    """What ``node`` has under `DECLARED_INPUTS` or `DECLARED_ROWS`."""
    types = map(parse_type, node.attributes.get(key, ()))
    return [type if isinstance(type, TensorType) else TensorType() for type in types]


def known_rows(node: Node) -> list[TensorType]:
    """The types of rows of the scan outputs of a Loop or Scan, as far as known; none of any other node."""
    if node.kind not in LOOPS or len(node.blocks) != 1:
        return []
    at = carried(node)
    returned = node.blocks[0].returns[at.returned + at.many :]
    # With a batch, the outputs have one more axis; there, the body alone tells.
    outputs = () if is_batched(node) else node.outputs[at.many :]
    pairs = list(zip_longest(returned, outputs))
    axes: list[int] = (node.attributes.get("scan_output_axes") or []) if node.kind == SCAN else []
    return [row_type(*pair, axis) for pair, axis in zip(pairs, axes + [0] * len(pairs))]


def row_type(returned: Value | None, output: Value | None, axis: int = 0) -> TensorType:
    """The type of a row, from the type of the value that the body returns and that of the scan output together.

    What the model declares of the output counts, as an empty one has the declared shape, in ONNX Runtime too.
    """
    types = [None if returned is None else returned.type, None if output is None else told_type(output)]
    row, whole = (type if isinstance(type, TensorType) else TensorType() for type in types)
    shape = row.shape
    if whole.shape and -len(whole.shape) <= axis < len(whole.shape):
        at = axis % len(whole.shape)
        shape = _sizes(shape, whole.shape[:at] + whole.shape[at + 1 :])
    return TensorType(row.dtype or whole.dtype, shape)


def _sizes(shape: tuple[Dim, ...] | None, other: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
    """``shape``, with the sizes of ``other`` in place of those that are no numbers, if both have the same rank."""
    if shape is None or other is None:
        return other if shape is None else shape
    return tuple(d if isinstance(d, int) else o for d, o in zip(shape, other)) if len(shape) == len(other) else shape
