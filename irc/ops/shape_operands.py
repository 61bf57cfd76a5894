"""Which operands' contents decide the shapes of results; everything else follows from shapes and attributes.

Source: the operators' definitions in the ONNX standard, versions 1 to 28. Of
operators that are not listed, nothing is assumed: control flow, random draws
and results whose size depends on the data (NonZero, Unique).
"""

from __future__ import annotations

from irc.ir.kinds import ATTENTION, MASKED_SOFTMAX, ROTATE_HALF
from irc.ops.registry import record

_BY_SHAPES_ALONE = """
    ArgMax ArgMin Attention AveragePool BatchNormalization BitCast CastLike CausalConvWithState Concat Conv ConvInteger
    ConvTranspose CumProd CumSum DeformConv DepthToSpace DequantizeLinear Det Dropout DynamicQuantizeLinear Einsum
    EyeLike Flatten GRU Gather GatherElements GatherND Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample
    GroupNormalization Hardmax Identity InstanceNormalization LRN LSTM LayerNormalization LogSoftmax LpNormalization
    LpPool MatMul MatMulInteger MaxPool MaxRoiPool MeanVarianceNormalization QLinearConv QLinearMatMul QuantizeLinear
    RMSNormalization RNN ReverseSequence RoiAlign RotaryEmbedding Scatter ScatterElements ScatterND Shape Size Softmax
    SpaceToDepth TensorScatter Transpose Trilu
"""

_BY_CONTENTS: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "DFT": (1, 2),
    "Expand": (1,),
    "MaxUnpool": (2,),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "STFT": (1, 3),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
} | {f"Reduce{name}": (1,) for name in "L1 L2 LogSum LogSumExp Max Mean Min Prod Sum SumSquare".split()}

SHAPE_OPERANDS: dict[str, tuple[int, ...]] = (
    dict.fromkeys([f"onnx::{name}" for name in _BY_SHAPES_ALONE.split()], ())
    | dict.fromkeys(
        ["irc::append_", "irc::overwrite", "irc::slice_scatter", ATTENTION, MASKED_SOFTMAX, ROTATE_HALF], ()
    )
    | {f"onnx::{name}": operands for name, operands in _BY_CONTENTS.items()}
)
"""Kind -> indexes of those operands. Pointwise operators are missing: see `shape_operands`."""

ONLY_SHAPES = frozenset(["onnx::EyeLike", "onnx::Shape", "onnx::Size"])
"""Operators whose results' contents, too, follow from the shapes of their operands."""

NOT_DETERMINED = frozenset(["onnx::Dropout"])
"""Operators among `SHAPE_OPERANDS` whose contents may be drawn at random."""


def shape_operands(kind: str) -> tuple[int, ...] | None:
    """The indexes of the operands of ``kind`` whose contents decide shapes; None if its results may have any shape."""
    is_pointwise = record(kind).pointwise or (kind.startswith("onnx::") and record(kind.removesuffix("_")).pointwise)
    return () if is_pointwise else SHAPE_OPERANDS.get(kind)
