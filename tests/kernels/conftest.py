"""Cases of ONNX's node suite that are one operator."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

from irc.errors import Error
from irc.frontend.onnx import import_model
from irc.ir import Node
from irc.runtime.binding import bind
from irc.runtime.kernels import means
from irc.runtime.kernels.registry import Kernel
from tests.suites import suite, value

Cases = Mapping[str, list[tuple[Node, Kernel, list[Any]]]]


@pytest.fixture(scope="session")
def single_nodes() -> Cases:
    """By kind: nodes, their kernels, and inputs, which nobody may change. Made once a process: that takes long."""
    found: Cases = defaultdict(list)
    for case in suite("node"):
        if sum(n.op_type != "Constant" for n in case.model.graph.node) != 1:
            continue
        try:
            module = import_model(case.model)
        except Error:
            continue
        nodes = [n for n in module.main.nodes if n.kind != "prim::Constant"]
        if len(nodes) != 1 or nodes[0].blocks or means(nodes[0]) is None:
            continue
        (node,) = nodes
        given = {v: value(x) for v, x in zip(module.main.inputs, case.data_sets[0][0])}
        if all(v in given or v.node is not None for v in node.inputs):
            inputs = [given[v] if v in given else v.node.attributes.get("value") for v in node.inputs]
            found[node.kind].append((node, bind(node), [x.numpy() if hasattr(x, "numpy") else x for x in inputs]))
    return found
