"""What the tables say of operators (docs/architecture.md lists them) goes together."""

from __future__ import annotations

import pytest

from irc.ir import ops
from irc.ir.ops.pointwise import POINTWISE
from irc.ir.ops.torch_pointwise import TORCH_POINTWISE
from irc.passes.shapes.context import find_rule
from irc.runtime.kernels.registry import find_binder


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
