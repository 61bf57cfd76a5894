"""Fusion groups as two steps, so that what takes long need not wait for what only the end of the group reads.

``Add(Relu(Conv(x)), Tanh(Conv(x)))`` is fused into a group of one convolution and all that follows it, which reads the
other one. For several threads the group is split behind its convolution: the two of them run side by side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.ir.kinds import CONSTANT
from irc.runtime.fused.groups import lower_part, slots_of, subgraph_of
from irc.runtime.threads.units import is_heavy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from irc.ir import Node, Value
    from irc.runtime.execution import Slots
    from irc.runtime.lowering import FillIn, Lowering, Special


def split_point(group: Node) -> int:
    """How many operators of ``group`` come up to its last heavy one; 0 if the others wait for nothing else."""
    graph = subgraph_of(group)
    operators = [node for node in graph.nodes if node.kind != CONSTANT]
    at = max((i + 1 for i, node in enumerate(operators) if is_heavy(node)), default=0)
    late = set(_reads(operators[at:])).difference(_reads(operators[:at]))
    waits = any(
        inner in late and outer.node is not None and outer.node.kind != CONSTANT
        for inner, outer in zip(graph.inputs, group.inputs)
    )
    return at if waits else 0


def split(lowering: Lowering, group: Node, at: int) -> list[tuple[Slots, Special]]:
    """``group`` as two steps, the first of its first ``at`` operators.

    Returns:
        For each step the slots that it makes, and what lowers it. The second one must be lowered first: it puts the
        constants of both into the frame.
    """
    graph = subgraph_of(group)
    outs = lowering.slots(group.outputs)
    given = slots_of(graph, lowering.slots(group.inputs), outs)
    head = [node for node in graph.nodes if node.kind != CONSTANT][:at]
    early = set(head)
    rest = [node for node in graph.nodes if node not in early]
    read_later = set(_reads(rest))
    handed = [value for node in head for value in node.outputs if value in given or value in read_later]
    between = [value for value in handed if value not in given]
    given.update(zip(between, lowering.define(between)))
    made = tuple([given[value] for value in handed])
    results = [(value, out) for value, out in zip(graph.outputs, outs) if out not in made]
    returns, remaining = [value for value, _ in results], tuple([out for _, out in results])

    def lower_head(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> FillIn:
        return lower_part(lowering, node, head, handed, given, outs)

    def lower_rest(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> FillIn:
        return lower_part(lowering, node, rest, returns, given, outs)

    return [(made, lower_head), (remaining, lower_rest)]


def _reads(nodes: Iterable[Node]) -> Iterator[Value]:
    for node in nodes:
        yield from node.inputs
        yield from node.captures()
