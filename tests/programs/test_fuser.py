"""What must hold of fusion groups, whatever the program."""

from collections import Counter
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from irc.fuser.policy import is_anchor, operators
from irc.fuser.subgraph import is_group, subgraph_of
from irc.ir import Graph, Node
from irc.ops.axes import reduces
from irc.ops.pointwise import is_elementwise
from irc.passes import PassManager
from tests.counting import analyses
from tests.effort import examples
from tests.programs.generator import Program, programs
from tests.programs.running import expected, run

FAMILIES = (
    "torch",
    "torch views",
    "torch writes",
    "onnx",
    "onnx views",
    "onnx writes",
    "products",
    "branches",
    "loops",
)


def _operators(graph: Graph) -> Iterator[Node]:
    """All operators, those inside groups too; constants do not count."""
    return (op for node in graph.walk() for op in operators(node) if op.kind != "prim::Constant")


@examples(150)
@given(programs(FAMILIES), st.sampled_from([2, 5, 64]))
def test_groups(program: Program, size: int) -> None:
    wanted = expected(program)
    graph = program.module.copy().main
    computed = Counter(op.kind for op in _operators(graph))
    with analyses() as built:
        report = PassManager(f"fuse{{max-size={size}}}").run(graph)
    assert built.call_count == 1, "one analysis serves the whole pass"
    graph.verify()
    assert Counter(op.kind for op in _operators(graph)) == computed, "nothing is computed twice, nothing is lost"
    groups = [node for node in graph.walk() if is_group(node)]
    assert bool(groups) == report.changed
    for group in groups:
        inside = list(operators(group))
        assert 2 <= len(inside) <= size
        assert all(is_elementwise(op) or is_anchor(op) or reduces(op) for op in inside)
        assert sum(is_anchor(op) for op in inside) <= 1
        assert len(set(group.inputs)) == len(group.inputs), "what goes in goes in once"
        assert all(param.has_uses for param in subgraph_of(group).inputs)
    wanted.check(run(program, graph))
