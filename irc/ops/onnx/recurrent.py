"""Recurrent networks."""

from __future__ import annotations

from irc.ir.types import TensorType, Type
from irc.ops import checks
from irc.ops.inference import NodeTypes
from irc.ops.onnx.products import largest_operand
from irc.ops.record import Family

FAMILY = Family("onnx")
FAMILY.each(
    "GRU LSTM RNN",
    contracts=largest_operand,
    widened=(1, 2, 3),
    value_operands=(),
    needed_outputs=1,
    attributes={"direction": ("forward", "reverse", "bidirectional")},
    requires=(checks.positive("hidden_size"), checks.flags("layout", "linear_before_reset", "input_forget")),
    kernel="recurrent",
)


@FAMILY.shape("LSTM", "GRU", "RNN")
def recurrent(c: NodeTypes) -> list[Type]:
    x, hidden = c.shape(0), c.attr("hidden_size")
    directions = 2 if c.attr("direction", "forward") == "bidirectional" else 1
    if x is None:
        return [TensorType(c.dtype(0))] * 3
    batch_first = c.attr("layout", 0)
    length, batch = (x[1], x[0]) if batch_first else (x[0], x[1])
    y = (batch, length, directions, hidden) if batch_first else (length, directions, batch, hidden)
    last = (batch, directions, hidden) if batch_first else (directions, batch, hidden)
    return [TensorType(c.dtype(0), y), TensorType(c.dtype(0), last), TensorType(c.dtype(0), last)]
