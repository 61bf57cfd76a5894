"""Where the models of PyTorch's exporters mean something else than the standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from irc.ir import Tensor
from irc.ir.constants import constant_tensor
from irc.ir.types import NONE, DType, Type, tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from irc.frontend.onnx.blocks import GraphBuilder, Scope, Special
    from irc.frontend.onnx.opsets import Operator
    from irc.frontend.onnx.scan import RawNode
    from irc.ir import Block, Value

PRODUCER = "pytorch"
"""How its exporters sign their models."""

FRACTIONAL_SINCE = 19
"""From this version on, Resize by scales aligns corners to sizes that need not be whole."""

_SCALES = 2
"""The position of Resize's scales; sizes are behind it."""


def _resize(builder: GraphBuilder, raw: RawNode, operator: Operator, block: Block, scope: Scope) -> Sequence[Value]:
    """Resize aligning corners: by ``sizes`` computed from the scales and rounded down, which scales alone do not imply.

    PyTorch, and ONNX Runtime, round the size first in every version. The standard's own cases do not.
    """
    given = builder.inputs(raw, operator, scope)
    attributes = builder.attributes(raw, operator)
    if (
        (operator.version or 0) < FRACTIONAL_SINCE
        or attributes.get("coordinate_transformation_mode") != "align_corners"
        or len(given) != _SCALES + 1
        or given[_SCALES].type is NONE
    ):
        return builder.operator(raw, operator, block, scope)

    def emit(op_type: str, type: Type, *inputs: Value, **attributes: Any) -> Value:
        return builder.create(block, f"onnx::{op_type}", inputs, (type,), attributes=attributes).output

    def constant(numbers: Any, dtype: Any) -> Value:
        return builder.constant(Tensor.of(np.array(numbers, dtype)), block, builder.fresh())

    axes, scales = attributes.get("axes"), given[_SCALES]
    known = constant_tensor(scales)
    if known is not None:
        factors, every = known.numpy(), range(given[0].type.rank or 0) if axes is None else axes
        changed = {axis: factor for axis, factor in zip(every, factors.flat) if factor != 1}
        if factors.shape != (len(every),) or len(set(every)) < len(every) or not changed:
            return builder.operator(raw, operator, block, scope)  # which says what is wrong, if anything is
        # Of these alone, so that the others keep their sizes, and the names of these.
        axes, scales = list(changed), constant(list(changed.values()), factors.dtype)
    floats, integers = tensor(DType.FLOAT), tensor(DType.INT64)
    before = emit("Shape", integers, given[0])
    if axes is not None:
        before = emit("Gather", integers, before, constant(axes, np.int64))
    scaled = emit("Mul", floats, emit("Cast", floats, before, to=DType.FLOAT.onnx), scales)
    sizes = emit("Cast", integers, emit("Floor", floats, scaled), to=DType.INT64.onnx)
    outputs = builder.operator(raw, operator, block, scope)
    node = outputs[0].node
    assert node is not None
    node.set_inputs([*given[:_SCALES], builder.absent(), sizes])
    if axes is not None:
        node.attributes["axes"] = axes
    return outputs


PYTORCH: dict[str, Special] = {"onnx::Resize": _resize}
"""Operators that import in a way of their own from models that PyTorch has exported."""
