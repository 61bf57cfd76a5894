"""Computing one node: what constant folding needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from irc.errors import Error
from irc.ir.clone import ValueMap, clone_node
from irc.ir.graph import Graph
from irc.ir.kinds import CONSTANT, GROUP
from irc.ir.types import FUNCTION
from irc.runtime.bounds import CURRENT, in_own_scope, in_turn
from irc.runtime.execution import Code, Instruction, Run, execute
from irc.runtime.lowering import Bound
from irc.runtime.plan import SPECIAL, lower
from irc.runtime.steps import kernel_step

if TYPE_CHECKING:
    from irc.ir import Node


def evaluate(node: Node, arrays: Sequence[Any]) -> list[Any]:
    """The outputs of ``node`` for the given inputs.

    Args:
        node: any node that irc can compute. What its blocks capture must be constants.
        arrays: one value an input: an array, None for an absent one, a list for a sequence. Not written to unless
            the node is an in-place operator.

    Returns:
        One value an output; they may share memory with ``arrays``.

    Raises:
        Error: the node cannot be computed, or not on these inputs.
    """
    if len(arrays) != len(node.inputs):
        raise Error("IRC434", f"{node.kind} has {len(node.inputs)} inputs, {len(arrays)} values were given", node.name)
    if node.kind in SPECIAL or node.kind == GROUP:
        graph, used = _alone(node)
        return lower(graph).run([arrays[i] for i in used])
    n = len(arrays)
    ins, outs = tuple(range(1, n + 1)), tuple(range(n + 1, n + 1 + len(node.outputs)))
    step = kernel_step(Bound().kernel(node), ins, outs, ())
    code = Code().with_instructions([Instruction(step, node, ins, outs)])
    frame = [Run(), *arrays, *[None] * len(outs)]
    in_own_scope(CURRENT.scope.guard, in_turn, execute, code, frame)
    return [frame[s] for s in outs]


def _alone(node: Node) -> tuple[Graph, list[int]]:
    """A graph of a copy of ``node`` alone, and which inputs of the node are the graph's."""
    graph = Graph("evaluate", node.graph.weights, node.graph.module)
    given = [value for value in dict.fromkeys(node.inputs) if value.type != FUNCTION]
    mapping: ValueMap = {value: graph.add_input(value.type, value.name) for value in given}
    for value in (*node.inputs, *node.captures()):
        if value not in mapping:
            constant = value.made_by(CONSTANT)
            if constant is None:
                raise Error("IRC307", f"%{value.name} is needed to compute the node, and it is no constant")
            graph.block.append(clone_node(constant, graph, mapping))
    graph.set_outputs(graph.block.append(clone_node(node, graph, mapping)).outputs)
    return graph, [node.inputs.index(value) for value in given]
