"""Which module has the kernels of an operator: it is imported when the first such node is bound.

A model uses few of the modules, and importing all of them takes longer than
compiling a small model.
"""

from __future__ import annotations

from irc.ops.registry import record

ONNX = {
    "batch_norm": "BatchNormalization",
    "cast": "BitCast Cast CastLike",
    "convolution": "Col2Im Conv ConvTranspose",
    "deform_conv": "DeformConv",
    "detection": "MaxRoiPool NonMaxSuppression RoiAlign",
    "generate": (
        "Bernoulli Constant ConstantOfShape Dropout EyeLike Multinomial OneHot RandomNormal RandomNormalLike "
        "RandomUniform RandomUniformLike Range Trilu"
    ),
    "grid_sample": "AffineGrid GridSample",
    "images": "ImageDecoder",
    "index": "Gather GatherElements GatherND ReverseSequence Scatter ScatterElements ScatterND TensorScatter",
    "matmul": "Det Einsum Gemm MatMul",
    "normalization": (
        "GroupNormalization InstanceNormalization LRN LayerNormalization LpNormalization MeanVarianceNormalization "
        "RMSNormalization"
    ),
    "pieces": "Concat Pad Slice Split Tile",
    "pool": "AveragePool GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxUnpool",
    "quantize": "DequantizeLinear DynamicQuantizeLinear QuantizeLinear",
    "quantized": "ConvInteger MatMulInteger QLinearConv QLinearMatMul",
    "recurrent": "GRU LSTM RNN",
    "reduce": (
        "ArgMax ArgMin CumProd CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean "
        "ReduceMin ReduceProd ReduceSum ReduceSumSquare"
    ),
    "resize": "Resize Upsample",
    "select": "Compress NonZero TopK Unique",
    "sequence": (
        "ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct "
        "SequenceEmpty SequenceErase SequenceInsert SequenceLength SplitToSequence"
    ),
    "sequence_models": "CausalConvWithState RotaryEmbedding",
    "shape": "DepthToSpace Expand Flatten Identity Reshape Shape Size SpaceToDepth Squeeze Transpose Unsqueeze",
    "signal": "DFT MelWeightMatrix STFT",
    "softmax": "Hardmax LogSoftmax Softmax",
    "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer",
}
"""Module -> the operators of ONNX's own domain that it has kernels for. Of pointwise operators whose kernels are made
from their records, module `elementwise` has them."""

NAMESPACES = {
    "ai.onnx.ml": ("ml", "ml_svm", "ml_trees"),
    "ai.onnx.preview.training": ("optimizers",),
    "aten": ("aten",),
    "com.microsoft": ("recurrent",),
    "prim": ("prim",),
}
"""Namespace -> the modules with kernels for its operators, for those that have few modules."""

_IRC = {
    "attention": "attention",
    "masked_softmax": "softmax",
    "overwrite": "aten",
    "rotate_half": "sequence_models",
    "slice_scatter": "index",
}
"""irc's own operators -> their modules."""

_MODULES = {
    **{f"onnx::{name}": (module,) for module, names in ONNX.items() for name in names.split()},
    **{f"irc::{name}": (module,) for name, module in _IRC.items()},
}


def modules_of(kind: str) -> tuple[str, ...]:
    """The modules that register the kernels of ``kind`` and, if there is one, of its in-place form."""
    namespace = kind.partition("::")[0]
    listed = NAMESPACES.get(namespace) or _MODULES.get(kind.removesuffix("_"))
    if listed is None:
        listed = ("elementwise",) if namespace == "onnx" and record(kind.removesuffix("_")).scalar else ()
    return listed


def all_modules() -> list[str]:
    """All modules that register kernels."""
    return sorted(
        {"elementwise", *ONNX, *_IRC.values(), *(module for modules in NAMESPACES.values() for module in modules)}
    )
