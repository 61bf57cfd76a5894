"""How large results are, by shape rules and what nodes are run with, against what runs give."""

from __future__ import annotations

import numpy as np

from irc.frontend.onnx import import_model
from irc.ir.kinds import CONSTANT
from irc.ops import record
from irc.ops.sizes import result_bytes
from tests.suites import suite, value


def test_node_suite_agrees_with_the_expected_results():
    """Where results are told, they are as large; none is larger than the field ``size`` of its record says."""
    told, wrong = 0, []
    for case in suite("node"):
        graph = import_model(case.model).main
        nodes = [node for node in graph.block.nodes if node.kind != CONSTANT]
        inputs, outputs = ([value(given) for given in part] for part in case.data_sets[0])
        if len(nodes) != 1 or len(nodes[0].outputs) != len(outputs):  # what the model leaves out is made all the same
            continue
        (node,) = nodes
        given = dict(zip(graph.inputs, inputs))
        size = result_bytes(node, [given.get(operand) for operand in node.inputs])
        actual = sum(output.nbytes for output in outputs if isinstance(output, np.ndarray))
        told += size > 0
        is_right = size in (0, actual) if record(node.kind).size is None else size >= actual
        if not is_right:
            wrong.append((case.name, size, actual))
    assert not wrong
    assert told > 1000
