"""What the tables say of operators (docs/architecture.md lists them) goes together."""

from __future__ import annotations

import numpy as np
import pytest

from irc.ir import Builder, Graph, Tensor, ops
from irc.ir.ops.movers import MOVERS, ORDERED, SELECTING
from irc.ir.ops.pointwise import POINTWISE
from irc.ir.ops.torch_pointwise import TORCH_POINTWISE
from irc.passes.shapes.context import find_rule
from irc.runtime.kernels.registry import find_binder
from irc.runtime.plan import lower


def is_known(kind: str) -> bool:
    """Whether ``kind`` is an operator: one with a schema row, or one of ONNX's newest."""
    if not kind.startswith("onnx::"):
        return bool(ops.schemas(kind))
    import onnx.defs

    return onnx.defs.has(kind.removeprefix("onnx::"))


@pytest.mark.parametrize("kind", sorted(POINTWISE | TORCH_POINTWISE))
def test_pointwise_operators_are_known_have_a_shape_rule_and_a_kernel(kind):
    assert is_known(kind)
    assert find_rule(kind) is not None
    assert find_binder(kind, None) is not None


MOVED = {
    "onnx::DepthToSpace": ([], {"blocksize": 2}),
    "onnx::Expand": ([[3, 4, 2, 2]], {}),
    "onnx::Reshape": ([[2, -1]], {}),
    "onnx::Slice": ([[1], [0], [1], [-2]], {}),
    "onnx::SpaceToDepth": ([], {"blocksize": 2}),
    "onnx::Split": ([[4]], {"axis": 1}),
    "onnx::Squeeze": ([[0]], {}),
    "onnx::Tile": ([[1, 2, 1, 1]], {}),
    "onnx::Unsqueeze": ([[0, 2]], {}),
}
"""Other operands and attributes, of operators that need some."""


@pytest.mark.parametrize("kind", sorted(MOVERS))
def test_movers_give_elements_of_the_first_operand(kind):
    x = np.arange(16).reshape(1, 4, 2, 2)
    operands, attributes = MOVED.get(kind, ([], {}))
    graph = Graph()
    b = Builder(graph)
    inputs = [b.constant(Tensor.of(np.array(given))) for given in (x, *operands)]
    graph.set_outputs([b.op(kind, *inputs, attributes=attributes)])
    (found,) = lower(graph).run([])
    assert set(found.flat) <= set(x.flat)
    if kind not in SELECTING:
        assert sorted(found.flat) == list(x.flat)
        assert (list(found.flat) == list(x.flat)) == (kind in ORDERED)
