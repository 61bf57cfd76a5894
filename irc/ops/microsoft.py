"""Operators of ONNX Runtime's domain that no standard operators spell; others import as function bodies of these."""

from __future__ import annotations

from irc.ops.onnx.recurrent import recurrent
from irc.ops.record import Operator

_DYNAMIC_QUANTIZE_LSTM = Operator(
    "com.microsoft::DynamicQuantizeLSTM",
    # An LSTM with weights of 8 bits that quantizes the inputs, and in each step the states.
    "(Tensor X, Tensor W, Tensor R, Tensor? B, Tensor? sequence_lens, "
    "Tensor? initial_h, Tensor? initial_c, Tensor? P, Tensor W_scale, Tensor W_zero_point, Tensor R_scale, "
    "Tensor R_zero_point) -> (Tensor Y, Tensor Y_h, Tensor Y_c)",
    shape=recurrent,
    needed_outputs=1,
    kernel="recurrent",
)


def records() -> dict[str, Operator]:
    """All records, by kind."""
    return {_DYNAMIC_QUANTIZE_LSTM.kind: _DYNAMIC_QUANTIZE_LSTM}
