"""Which inputs of a graph its in-place operators may write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.runtime.binding import reachable_nodes

if TYPE_CHECKING:
    from irc.ir import Graph


def written_inputs(graph: Graph) -> frozenset[int]:
    """The positions of the inputs whose memory a run may change; a superset of those that it does change."""
    if any(_writes(node.kind) for node in reachable_nodes(graph)):
        return frozenset(range(len(graph.inputs)))
    return frozenset()


def _writes(kind: str) -> bool:
    """Whether an operator is in place by its name: ``aten::add_``, ``onnx::Relu_``, ``aten::__iand__``."""
    name = kind.rpartition("::")[2]
    return name.startswith("__i") if name.endswith("__") else name.endswith("_")
