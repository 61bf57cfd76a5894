"""Versions of operators about types and constants: Cast, Constant, sequences, optionals."""

from typing import Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

import irc
from tests.kernels.versions.rows import Row, covers, each, floats, ints, opset_for, since
from tests.models import onnx_model

X = floats(2, 3)
VALUES = np.array([0.0, -1.7, 2.5, 130.9], np.float32)


def cast(dtype: Any) -> Any:
    return lambda x, **_: x.astype(dtype)


def texts(*values: str) -> np.ndarray:
    return np.array(values, object)


@each(
    [
        Row("Cast", [VALUES], {"to": to}, expected=cast(dtype))
        for to, dtype in (
            (TensorProto.INT32, np.int32),
            (TensorProto.DOUBLE, np.float64),
            (TensorProto.FLOAT16, np.float16),
            (TensorProto.BOOL, np.bool_),
        )
    ]
    + [
        Row("Cast", [texts("1.5", "-2", "1e3", "nan", "-INF")], {"to": TensorProto.FLOAT}, since("Cast", 9),
            lambda x, to: np.array([1.5, -2, 1000, np.nan, -np.inf], np.float32)),
        Row("Cast", [ints(7, -3)], {"to": TensorProto.STRING}, since("Cast", 9), lambda x, to: texts("7", "-3")),
        Row("Cast", [VALUES], {"to": TensorProto.BFLOAT16}, since("Cast", 13), cast(ml_dtypes.bfloat16)),
        Row("Cast", [VALUES * 100], {"to": TensorProto.FLOAT8E4M3FN, "saturate": 1}, since("Cast", 19),
            lambda x, **_: np.clip(x, -448, 448).astype(ml_dtypes.float8_e4m3fn)),
        Row("Cast", [np.array([7, -8, 3], np.int8)], {"to": TensorProto.INT4}, since("Cast", 21), cast(ml_dtypes.int4)),
        Row("Cast", [np.array([0.5, -6, 3], np.float32)], {"to": TensorProto.FLOAT4E2M1}, since("Cast", 23),
            cast(ml_dtypes.float4_e2m1fn)),
        Row("Cast", [np.array([1, 0.5, 4], np.float32)], {"to": TensorProto.FLOAT8E8M0}, since("Cast", 24),
            cast(ml_dtypes.float8_e8m0fnu)),
        Row("CastLike", [VALUES, ints(1)], expected=lambda x, y: x.astype(np.int64)),
        Row("Constant", [], {"value": X}, expected=lambda value: value),
        Row("Constant", [], {"value_float": 1.5}, since("Constant", 12), lambda value_float: np.array(1.5, np.float32)),
        Row("Constant", [], {"value_ints": [1, 2]}, since("Constant", 12), lambda value_ints: ints(1, 2)),
        Row("Constant", [], {"value_string": "a"}, since("Constant", 12), lambda value_string: np.array("a", object)),
        Row("ConstantOfShape", [ints(2, 3)], expected=lambda s: np.zeros((2, 3), np.float32)),
        Row("ConstantOfShape", [ints(2, 0)], {"value": ints(7)}, expected=lambda s, value: np.zeros((2, 0), np.int64)),
        Row("ConstantOfShape", [ints(2)], {"value": np.array([3], ml_dtypes.bfloat16)}, since("ConstantOfShape", 20),
            lambda s, value: np.full(2, 3, ml_dtypes.bfloat16)),
    ]
)  # fmt: skip
def test_types(row: Row, version: int) -> None:
    row.check(version)


PARTS = [X, X[:1]]


@each(
    [
        Row("ConcatFromSequence", [PARTS], {"axis": 0}, expected=lambda s, axis: np.concatenate(s)),
        Row("ConcatFromSequence", [[X, X]], {"axis": -1, "new_axis": 1}, expected=lambda s, **_: np.stack(s, -1)),
        Row("SequenceConstruct", PARTS, expected=lambda *xs: list(xs)),
        Row("SequenceErase", [PARTS], expected=lambda s: s[:1]),
        Row("SequenceErase", [PARTS, np.array(-2)], expected=lambda s, i: s[1:]),
        Row("SequenceInsert", [PARTS, X[1:]], expected=lambda s, x: [*s, x]),
        Row("SequenceInsert", [PARTS, X[1:], np.array(0)], expected=lambda s, x, i: [x, *s]),
        Row("SequenceAt", [PARTS, np.array(-1)], expected=lambda s, i: s[-1]),
        Row("SequenceLength", [PARTS], expected=lambda s: np.array(2)),
        Row("SplitToSequence", [X], {"axis": 1}, expected=lambda x, axis: [x[:, i : i + 1] for i in range(3)]),
        Row("SplitToSequence", [X, np.array(2)], {"axis": -1}, expected=lambda x, n, axis: [x[:, :2], x[:, 2:]]),
        Row("SplitToSequence", [X], {"keepdims": 0}, expected=lambda x, keepdims: [x[0], x[1]]),
        Row("Optional", [X], expected=np.copy),
        Row("OptionalHasElement", [X], {}, since("OptionalHasElement", 18), lambda x: np.array(True)),
        Row("OptionalGetElement", [X], {}, since("OptionalGetElement", 18), np.copy),
    ]
)
def test_sequences_and_optionals(row: Row, version: int) -> None:
    row.check(version)


@covers("OptionalHasElement")
def test_an_empty_optional(version: int) -> None:
    """Made by Optional of that opset, with no input but a type."""
    element = helper.make_tensor_type_proto(TensorProto.FLOAT, None)
    nodes = [
        helper.make_node("Optional", [], ["o"], type=element),
        helper.make_node("OptionalHasElement", ["o"], ["y"]),
    ]
    (found,) = irc.compile(onnx_model(nodes, {}, opset=opset_for("OptionalHasElement", version))).run({}).values()
    assert found.tolist() is False


@covers("SequenceEmpty")
def test_an_empty_sequence(version: int) -> None:
    nodes = [helper.make_node("SequenceEmpty", [], ["s"], dtype=7), helper.make_node("SequenceLength", ["s"], ["y"])]
    (found,) = irc.compile(onnx_model(nodes, {}, opset=opset_for("SequenceEmpty", version))).run({}).values()
    assert found.tolist() == 0
