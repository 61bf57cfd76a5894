"""How values pass into, through and out of functions, nested blocks, loops and fusion groups.

It owns the positions at which such nodes pass a value: among inputs, block parameters, returns and outputs. Nothing
else counts them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat, zip_longest
from typing import NamedTuple

from irc.errors import Error
from irc.ir.declarations import told_type
from irc.ir.graph import Graph
from irc.ir.kinds import CALL, CONSTANT, GROUP, IF, LOOPS, ONNX_LOOP, SCAN, SUBGRAPHS
from irc.ir.node import Block, Node, Value
from irc.ir.text.type_parser import parse_type
from irc.ir.types import Dim, TensorType

# Graphs that nodes run: functions of a module, which constants of type Function name, and subgraphs in attributes.


def function_name(node: Node) -> str | None:
    """The name of the function that the constant ``node`` stands for; None if it is no such constant."""
    name = node.attributes.get("name") if node.kind == CONSTANT else None
    return name if isinstance(name, str) else None


def callee(node: Node) -> str | None:
    """The name of the function that ``node`` calls; None if it is not a call, or calls no constant."""
    function = node.inputs[0].node if node.kind == CALL and node.inputs else None
    return None if function is None else function_name(function)


def inner_graph(node: Node) -> Graph | None:
    """The graph in an attribute that ``node`` runs; None if its kind runs none, whatever its attributes."""
    graph = node.attributes.get("Subgraph") if node.kind in SUBGRAPHS else None
    return graph if isinstance(graph, Graph) else None


def graphs_of(node: Node) -> list[Graph]:
    """The graphs that are attributes of ``node``, whether it runs them or not."""
    return [value for value in node.attributes.values() if isinstance(value, Graph)]


def with_subgraphs(*graphs: Graph) -> Iterator[Node]:
    """All nodes of ``graphs`` and of the graphs in their attributes (fusion groups), each graph once."""
    found = dict.fromkeys(graphs)
    pending = list(found)
    for graph in pending:  # grows while it is walked
        for node in graph.walk():
            yield node
            if node.attributes:  # not `graphs_of`: that of each node would take as long as the rest
                for value in node.attributes.values():
                    if value.__class__ is Graph and value not in found:
                        found[value] = None
                        pending.append(value)


# What loops carry from iteration to iteration, and the rows that their bodies return to be stacked to scan outputs.


DECLARED_INPUTS, DECLARED_ROWS = "declared_inputs", "declared_rows"
"""Attributes, texts of types: what the model declares of each value that the body of a Scan is given in an iteration,
and each row that the body of a Loop or Scan gives. No pass believes them, as they may be wrong. They are for empty scan
outputs, which have the declared shape in ONNX Runtime too, and for models that are written, where it wants ranks."""

SCANNED_BY = ("scan_input_axes", "scan_input_directions", "directions")
STACKED_BY = ("scan_output_axes", "scan_output_directions")
"""Attributes of Scan that have a number for each input that it takes slices of, and for each it stacks (or none)."""


class Carried(NamedTuple):
    """Where the carried values begin in a loop's inputs, block parameters and returns, and their number.

    A Scan's inputs after the carried ones are scanned, and its parameters after them are slices of those. A loop's
    first outputs are the carried values; further outputs are stacked from the rows that the block returns after these.
    """

    input: int
    param: int
    returned: int
    many: int


def carried(loop: Node) -> Carried:
    """Where ``loop``, one of `LOOPS`, carries values; none if it has too few inputs (a verifier error).

    ==============  ===================================  ================================  ==========================
    loop            inputs                               the block's parameters            what the block returns
    ==============  ===================================  ================================  ==========================
    ``prim::Loop``  trip count, condition, carried...    iteration, carried...             condition, carried...
    ``onnx::Loop``  trip count, condition, carried...    iteration, condition, carried...  condition, carried, rows...
    ``onnx::Scan``  lengths?, carried..., scanned...     carried..., slices...             carried..., rows...
    ==============  ===================================  ================================  ==========================
    """
    if loop.kind == SCAN:
        first, scanned = int(is_batched(loop)), loop.attributes.get("num_scan_inputs", 0)
        return Carried(first, 0, 0, max(0, len(loop.inputs) - first - scanned))
    return Carried(2, 2 if loop.kind == ONNX_LOOP else 1, 1, max(0, len(loop.inputs) - 2))


def is_batched(loop: Node) -> bool:
    """Whether ``loop`` is a Scan of version 8: input 0 is sequence lengths, other inputs are batches."""
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
    """The type of a row, from the types of the returned value and of the scan output together.

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
    """``shape`` with non-numbers replaced by the sizes of ``other``, if both have the same rank."""
    if shape is None or other is None:
        return other if shape is None else shape
    return tuple(d if isinstance(d, int) else o for d, o in zip(shape, other)) if len(shape) == len(other) else shape


# How values pass into, through and out of nested blocks and fusion groups.
#
# A *slot* is what lives or dies together: the input, the block parameter, the
# block's return and the output that carry one value.


@dataclass(frozen=True)
class Slot:
    """Positions that carry one value; None where it does not appear.

    ``returned`` is a position among the returns of every body; ``needed``
    slots may not be removed even if nothing uses them.
    """

    input: int | None = None
    param: int | None = None
    returned: int | None = None
    output: int | None = None
    needed: bool = False


def bodies(node: Node) -> list[Block]:
    """The blocks that run as part of ``node``: its own, or that of a fusion group's subgraph."""
    subgraph = inner_graph(node) if node.kind == GROUP else None
    return list(node.blocks) if subgraph is None else [subgraph.block]


def slots(node: Node) -> list[Slot] | None:
    """The slots of a control-flow node or fusion group; None if its structure is not known."""
    find = _SLOTS.get(node.kind)
    return None if find is None else find(node)


def cut_slots(node: Node, dead: list[Slot]) -> None:
    """Drop the inputs and returns of ``dead`` slots, and their entries in attributes that count slots."""
    if node.kind in LOOPS:
        _cut_attributes(node, slots(node) or [], set(dead))
    node.erase_inputs([s.input for s in dead if s.input is not None])
    for body in bodies(node):
        body.return_node.erase_inputs([s.returned for s in dead if s.returned is not None])


def _if(node: Node) -> list[Slot]:
    return [Slot(returned=i, output=i) for i in range(len(node.outputs))]


def _loop(node: Node) -> list[Slot] | None:
    if is_batched(node):
        return None  # has the lengths of a batch's sequences in front
    at = carried(node)
    outputs, returns = range(len(node.outputs)), node.blocks[0].returns  # the last outputs may be left out
    # Before version 11, a Loop must carry something.
    first_needed = node.kind == ONNX_LOOP and node.version is not None and node.version < 11
    return [
        *(
            Slot(at.input + i, at.param + i, at.returned + i, i if i in outputs else None, first_needed and i == 0)
            for i in range(at.many)
        ),
        # The first scanned input says how many iterations there are.
        *(Slot(at.input + i, at.param + i, needed=i == at.many) for i in range(at.many, len(node.inputs) - at.input)),
        *(
            Slot(returned=at.returned + i, output=i if i in outputs else None)
            for i in range(at.many, len(returns) - at.returned)
        ),
    ]


def _group(node: Node) -> list[Slot]:
    return [
        *(Slot(input=i, param=i) for i in range(len(node.inputs))),
        *(Slot(returned=i, output=i) for i in range(len(node.outputs))),
    ]


_SLOTS: dict[str, Callable[[Node], list[Slot] | None]] = {IF: _if, **dict.fromkeys(LOOPS, _loop), GROUP: _group}


def _cut_attributes(node: Node, all_slots: list[Slot], dead: set[Slot]) -> None:
    """Cut the attributes of a Loop or Scan that have one element for each of some slots."""
    attributes = node.attributes
    scanned = [s for s in all_slots if s.input is not None and s.returned is None]
    scans = [s for s in all_slots if s.input is None]
    for names, of in (
        (SCANNED_BY, scanned),
        ((*STACKED_BY, DECLARED_ROWS), scans),
        ((DECLARED_INPUTS,), [s for s in all_slots if s.input is not None]),
    ):
        for name in names:
            if attributes.get(name):
                if len(attributes[name]) != len(of):
                    raise Error(
                        "IRC215", f"{name} of {node.kind} has {len(attributes[name])} elements; it needs {len(of)}"
                    )
                attributes[name] = [x for x, slot in zip(attributes[name], of, strict=True) if slot not in dead]
    if "num_scan_inputs" in attributes:
        attributes["num_scan_inputs"] = sum(slot not in dead for slot in scanned)
