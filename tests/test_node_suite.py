"""The ONNX node suite, imported once for all who look at it.

What its models become survives the way through text and has the types that they declare; sizes and shapes that are told
of results are those of the expected ones; whatever kernels share in real memory, the analysis allows.
`tests/kernels/test_node_suite.py` has values, `tests/test_onnx_backend.py` whole models.
"""

from collections import Counter
from typing import Any

import numpy as np
import pytest
from onnx.reference.ops import op_pool_common

from irc.alias import AliasDb, analyze
from irc.frontend.onnx import import_model
from irc.frontend.onnx.types import from_proto
from irc.ir import CONSTANT, Graph, Module, parse_module, structurally_equal
from irc.ir.types import DType, OptionalType, TensorType, without_shapes
from irc.ops import record
from irc.ops.sizes import result_bytes
from irc.passes.shapes import Inference
from irc.runtime.kernels import means
from irc.runtime.plan import lower
from tests.programs.interpreter import interpret, share_inside
from tests.programs.soundness import Soundness
from tests.suites import pool, suite, value

SHARDS = 4
FORGET = {
    "static": lambda value, axis, size: size,
    "named": lambda value, axis, size: f"{value.name}_{axis}",
    "unknown": lambda value, axis, size: None,
}
"""What is known of the sizes of inputs."""


@pytest.mark.parametrize(("kind", "more"), [("AVG", {}), ("MAX", {}), ("LPPOOL", {"p": 3}), ("LPPOOL", {})])
def test_pools_that_are_expected_are_those_of_onnx(kind: str, more: dict[str, int]) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    for strides, size in ([1, 1], (3, 3)), ([2, 1], (2, 3)):
        given = (x, x.shape, (2, 3), strides, size, kind)
        np.testing.assert_allclose(pool(*given, **more), op_pool_common.pool(*given, **more), rtol=1e-6)


@pytest.mark.parametrize("states", [1, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("shard", range(SHARDS))
def test_all_that_is_said_of_the_models_is_so(shard: int, states: int) -> None:
    """Of the sizes of one model's inputs all is known, of the next one's names, or nothing; or each in turn."""
    seen: Counter[str] = Counter()
    for number, case in enumerate(suite("node")[shard::SHARDS]):
        module = import_model(case.model)
        try:
            survives_text(module)
            has_declared_types(case, module.main)
            seen["told sizes"] += has_told_size(case, module.main)
            for known in [*FORGET, *FORGET][number % 3 :][:states]:
                seen[f"{known} shapes"] += has_inferred_shapes(case, module.main.copy(), known)
            for given, _ in case.data_sets if can_run(module) else []:
                seen["shared"] += shares_as_told(module, [value(v) for v in given])
                seen["runs"] += 1
        except Exception as error:
            raise AssertionError(case.name) from error
    least = {"told sizes": 1000, **dict.fromkeys((f"{known} shapes" for known in FORGET), 500 * states), "runs": 1200}
    assert all(seen[what] > 0.9 * number / SHARDS for what, number in least.items()), seen
    assert seen["shared"] > 50, "hardly anything was shared"


def survives_text(module: Module) -> None:
    module.verify()
    text = str(module)
    parsed = parse_module(text, module.weights)
    assert str(parsed) == text
    assert structurally_equal(parsed, module) is None


def has_declared_types(case: Any, graph: Graph) -> None:
    """Inputs and outputs have the names, and outputs the kind and element type, that the model declares."""
    assert [v.name for v in graph.inputs] == [i.name for i in case.model.graph.input]
    assert [v.name for v in graph.outputs] == [o.name for o in case.model.graph.output]
    for output, declared in zip(graph.outputs, case.model.graph.output, strict=True):
        expected = without_shapes(from_proto(declared.type, case.name))
        if case.name == "test_loop16_seq_none":  # an optional that no iteration need replace
            expected = OptionalType(expected)
        assert without_shapes(output.type) == expected


def has_told_size(case: Any, graph: Graph) -> bool:
    """Whether a size is told of results: theirs, or as much as the field ``size`` of the record says at most."""
    nodes = [node for node in graph.block.nodes if node.kind != CONSTANT]
    inputs, outputs = ([value(given) for given in part] for part in case.data_sets[0])
    if len(nodes) != 1 or len(nodes[0].outputs) != len(outputs):  # what the model leaves out is made all the same
        return False
    (node,) = nodes
    given = dict(zip(graph.inputs, inputs))
    size = result_bytes(node, [given.get(operand) for operand in node.inputs])
    actual = sum(output.nbytes for output in outputs if isinstance(output, np.ndarray))
    assert size in (0, actual) if record(node.kind).size is None else size >= actual
    return size > 0


def has_inferred_shapes(case: Any, graph: Graph, known: str) -> int:
    """How many shapes inference tells of the outputs: those, and element types, that are expected."""
    for given in graph.inputs:
        if given.type.shape is not None:
            dims = [FORGET[known](given, i, d) for i, d in enumerate(given.type.shape)]
            given.type = TensorType(given.type.dtype, tuple(dims))
    for output in graph.outputs:  # what the model declares must not help
        if isinstance(output.type, TensorType) and output.node is not None:
            output.type = TensorType()
    Inference(graph).run()
    told = 0
    for output, expected in zip(graph.outputs, case.data_sets[0][1]):
        if isinstance(output.type, TensorType) and hasattr(expected, "dtype"):
            actual, found = np.asarray(expected), output.type
            assert found.dtype in (None, DType.STRING) or found.dtype.numpy == actual.dtype, known
            if found.shape is not None:
                told += 1
                assert len(found.shape) == actual.ndim, known
                assert all(not isinstance(d, int) or d == n for d, n in zip(found.shape, actual.shape)), known
    return told


def can_run(module: Module) -> bool:
    nodes = [n for graph in module.graphs.values() for n in graph.walk()]
    return all(n.blocks or n.kind.startswith("prim::") or means(n) is not None for n in nodes)


class Apart(Soundness):
    """The main graph's inputs share with nothing, so that only rows of schemas can make results share with them."""

    def _db(self, graph: Graph) -> AliasDb:
        return analyze(graph, noalias=graph.inputs if graph is self._module.main else ())


def shares_as_told(module: Module, inputs: list[Any]) -> int:
    """Run node by node, with control flow and functions, and watched; how often memory was shared.

    Of a Scan, as plans do, and only outputs and inputs are looked at.
    """
    with np.errstate(all="ignore"):
        if not any(n.kind == "onnx::Scan" for graph in module.graphs.values() for n in graph.walk()):
            watcher = Apart(module)
            interpret(module.main, inputs, watcher)
            return watcher.seen["shared"]
        graph = module.main
        db = analyze(graph, noalias=graph.inputs)
        outputs = lower(graph).run(inputs)
    pairs = [(o, i) for o, x in zip(graph.outputs, outputs) for i, y in zip(graph.inputs, inputs) if share_inside(x, y)]
    for output, given in pairs:
        assert db.may_contain_alias(output, given), f"%{output.name} shares with %{given.name}"
    return len(pairs)
