"""Which inputs of a graph its in-place operators may write to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from irc.runtime.binding import reachable_nodes

if TYPE_CHECKING:
    from irc.ir import Graph

_IN_PLACE_METHODS = frozenset(
    f"__i{name}__" for name in "add and floordiv lshift mod mul or pow rshift sub xor".split()
)


def written_inputs(graph: Graph) -> frozenset[int]:
    """The positions of the inputs whose memory a run may change; a superset of those that it does change.

    Inputs count as different memory: those found here are copied before a run.
    """
    if not any(_writes(node.kind) for node in reachable_nodes(graph)):
        return frozenset()  # most graphs: no need to analyse them
    from irc.alias import analyze

    db = analyze(graph, noalias=graph.inputs)
    return frozenset(i for i, value in enumerate(graph.inputs) if db.has_writers(value))


def _writes(kind: str) -> bool:
    """Whether an operator is in place by its name: ``aten::add_``, ``onnx::Relu_``, ``aten::__iand__``."""
    name = kind.rpartition("::")[2]
    return name in _IN_PLACE_METHODS or (name.endswith("_") and not name.endswith("__"))
