"""ONNX operators whose results may share memory with their inputs.

All others return fresh memory and write nothing; their signatures come from
``onnx.defs``. The kernels follow these rows: results that a row does not
declare to share are copied. Whether they do share depends on strides at run
time, so none of them is a must.
"""

from __future__ import annotations

DOMAINS = {"onnx": ""} | {
    name: name for name in ("ai.onnx.ml", "ai.onnx.preview", "ai.onnx.preview.training", "ai.onnx.training")
}
"""The IR's namespaces of the standard's operators -> ONNX's name of each.

Of others that look like them (``ai.onnx.contrib``) nothing is known.
"""

ROWS = (
    """
    onnx::Identity(t(a) input) -> t(a==)
    onnx::Reshape(Tensor(a) data, Tensor? shape=None) -> Tensor(a)
    onnx::Squeeze(Tensor(a) data, Tensor? axes=None) -> Tensor(a)
    onnx::Unsqueeze(Tensor(a) data, Tensor? axes=None) -> Tensor(a)
    onnx::Flatten(Tensor(a) input) -> Tensor(a)
    onnx::Transpose(Tensor(a) data) -> Tensor(a)
    onnx::Slice(Tensor(a) data, Tensor? bounds=None, ...) -> Tensor(a)
    onnx::Expand(Tensor(a) input, Tensor shape) -> Tensor(a)
    onnx::Dropout(Tensor(a) data, Tensor? ratio=None, Tensor? training_mode=None) -> (Tensor(a) output, Tensor mask)
    onnx::Split(Tensor(a) input, Tensor? split=None) -> (Tensor(a) output, ...)
    onnx::Optional(t(a)? input=None) -> t(a)?
    onnx::OptionalGetElement(t(a)? input) -> t(a)
    onnx::SequenceConstruct(t(a) inputs, ...) -> t(a)[]
    onnx::SequenceAt(t(a)[] input_sequence, Tensor position) -> t(a)
    onnx::SequenceInsert(t(a)[] input_sequence, t(b) tensor, Tensor? position=None) -> t(a|b)[]
    onnx::SequenceErase(t(a)[] input_sequence, Tensor? position=None) -> t(a)[]
    onnx::SplitToSequence(Tensor(a) input, Tensor? split=None) -> Tensor(a)[]
    """,
)

RANDOM = (
    "onnx::Bernoulli",
    "onnx::Multinomial",
    "onnx::RandomNormal",
    "onnx::RandomNormalLike",
    "onnx::RandomUniform",
    "onnx::RandomUniformLike",
)

RANDOM_UNLESS_FALSE = {"onnx::Dropout": "training_mode"}

SIDE_EFFECT: tuple[str, ...] = ()
