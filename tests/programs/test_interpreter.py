"""The interpreter that random programs are judged by."""

import numpy as np

from irc.ir import parse_graph
from irc.passes import PassManager
from tests.graphs import ir
from tests.programs.interpreter import interpret

NO_TRIP = ir("""
    x: Float(2, 3) -> w, rows
    a = relu(x); zero: Long() = prim.Constant(value=tensor([0])); none: NoneType = prim.Constant()
    carried, rows["Float(*, 2, 3)"] = Loop(zero, none, a)
    with block(trip=Long(), on=Bool(), row=Float(2, 3)):
        true: Bool() = prim.Constant(value=tensor([True])); yield true, row, row
    w = neg_(carried)
""")


def test_a_loop_without_iterations_stacks_nothing_whatever_is_known_of_its_rows() -> None:
    """Without mutations, the body returns %a, whose shape is not known before the loop."""
    graph = parse_graph(NO_TRIP)
    for _ in range(2):
        w, rows = interpret(graph, [np.ones((2, 3), np.float32)])
        assert rows.shape == (0, 2, 3)
        assert (w == -1).all()
        PassManager("remove-mutation").run(graph)
    assert not any(node.kind == "aten::neg_" for node in graph.nodes)
