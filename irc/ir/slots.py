"""How values pass into, through and out of nested blocks and fusion groups.

A *slot* is what lives or dies together: the input, the block parameter, the
block's return and the output that carry one value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irc.errors import Error
from irc.ir.block import Block
from irc.ir.functions import inner_graph
from irc.ir.kinds import GROUP, IF, LOOPS, ONNX_LOOP
from irc.ir.loops import DECLARED_INPUTS, DECLARED_ROWS, SCANNED_BY, STACKED_BY, carried, is_batched

if TYPE_CHECKING:
    from irc.ir.node import Node


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
    """Make ``dead`` slots carry nothing: drop their inputs and returns. Attributes that count slots follow."""
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
        # The first scanned input says how many trips there are.
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


_SLOTS: dict[str, Callable[[Node], list[Slot] | None]] = {
    IF: _if,
    **dict.fromkeys(LOOPS, _loop),
    GROUP: _group,
}


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
