"""Operators whose results may share memory with their inputs.

Kernels follow these rows: results that a row does not declare to share are copied. Whether they do share depends on
strides at run time, so none of them is a must.
"""

from __future__ import annotations

from irc.ops import tags
from irc.ops.record import Family

FAMILY = Family(
    "onnx",
    tags.statements(
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
        """
    ),
)
