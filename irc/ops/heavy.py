"""Operators that sum products."""

from __future__ import annotations

from irc.ir.kinds import ATTENTION

CONTRACTING = frozenset(
    f"onnx::{name}"
    for name in (
        "Attention Conv ConvInteger ConvTranspose DFT DeformConv Einsum GRU Gemm LSTM MatMul MatMulInteger QLinearConv "
        "QLinearMatMul RNN STFT"
    ).split()
) | {ATTENTION}
"""They sum products: each element of a result takes many multiplications."""
