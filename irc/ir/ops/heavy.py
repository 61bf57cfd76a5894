"""Operators that take long."""

from __future__ import annotations

from irc.ir.kinds import ATTENTION, MASKED_SOFTMAX

CONTRACTING = frozenset(
    f"onnx::{name}"
    for name in (
        "Attention Conv ConvInteger ConvTranspose DFT DeformConv Einsum GRU Gemm LSTM MatMul MatMulInteger QLinearConv "
        "QLinearMatMul RNN STFT"
    ).split()
) | {ATTENTION}
"""They sum products: each element of a result takes many multiplications."""

HEAVY = CONTRACTING | {
    MASKED_SOFTMAX,
    *(
        f"onnx::{name}"
        for name in (
            "AveragePool BatchNormalization GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample GroupNormalization "
            "InstanceNormalization LRN LayerNormalization LogSoftmax LpNormalization LpPool MaxPool "
            "MeanVarianceNormalization RMSNormalization Resize Softmax"
        ).split()
    ),
    "com.microsoft::DynamicQuantizeLSTM",
    *(
        f"aten::{name}"
        for name in (
            "_convolution _convolution_mode _log_softmax _native_multi_head_attention _softmax addbmm addmm baddbmm "
            "batch_norm bilinear bmm cdist convolution einsum grid_sampler group_norm gru instance_norm layer_norm "
            "linear log_softmax lstm matmul mm native_group_norm native_layer_norm rms_norm rnn_relu rnn_tanh "
            "scaled_dot_product_attention softmax"
        ).split()
    ),
    *(
        f"aten::{name}{axes}d"
        for name in "adaptive_avg_pool adaptive_max_pool avg_pool conv conv_transpose max_pool".split()
        for axes in (1, 2, 3)
    ),
}
"""They mostly take long enough for a thread of their own."""
