"""`irc::attention` written as the operators that exporters spell it with: two products with a softmax between them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.ir.types import NONE, DType, TensorType

if TYPE_CHECKING:
    from irc.frontend.onnx_export.spelling import Emitter
    from irc.ir import Node, Value

_SIZE, _SIZES = TensorType(DType.INT64, ()), TensorType(DType.INT64, (None,))

_AXES_ARE_INPUT = {"ReduceMax": 18, "ReduceSum": 13}
"""The opset since which an operator takes its axes as an input."""


def first_opset(node: Node) -> int:
    """The first opset that has all operators that ``node``, an `irc::attention`, is written with."""
    if any(value.type.rank is None for value in node.inputs[:3]):
        return 12  # Einsum
    if len(node.inputs) > 5 or node.attributes.get("causal") or node.attributes.get("zero_rows") == "masked":
        return 11  # Range, Equal of floats, negative axes
    has_choice = len(node.inputs) > 4 or node.attributes.get("zero_rows")
    return 9 if has_choice else 7


def spell(node: Node, emit: Emitter) -> Value:
    """Insert the operators that ``node``, an `irc::attention`, stands for; their result. Raises IRC350."""
    dtype = next((v.type.dtype for v in (*node.inputs[:3], node.output) if v.type.dtype is not None), None)
    if dtype is None:
        raise Error("IRC350", f"{node.kind} can be spelt out for a known element type only", f"%{node.output.name}")
    return _Writer(node, emit, dtype).write()


class _Writer:
    """Writes one node; all scores have the element type ``dtype``."""

    def __init__(self, node: Node, emit: Emitter, dtype: DType) -> None:
        self._node, self._emit, self._type = node, emit, TensorType(dtype)
        self._query, self._key, self._value = node.inputs[:3]
        optional = [None if value.type == NONE else value for value in node.inputs[3:]]
        self._bias, self._mask, self._sink = (*optional, None, None, None)[:3]

    def write(self) -> Value:
        """The result of the operators that are inserted."""
        given = self._node.attributes
        heads = [v.type.shape[-3] if v.type.shape and len(v.type.shape) > 2 else None for v in self._node.inputs[:3]]
        is_shared = bool(given.get("grouped")) and not (isinstance(heads[0], int) and heads[0] == heads[1])
        scores = self._product(self._scaled_query(), self._transposed_key(), self._key, is_shared)
        if given.get("softcap"):
            cap = self._number(given["softcap"])
            scores = self._op("Mul", self._op("Tanh", self._op("Div", scores, cap)), cap)
        if self._bias is not None:
            scores = self._op("Add", scores, self._as_scores(self._bias))
        if self._mask is not None:
            scores = self._op("Where", self._mask, scores, self._number(given.get("fill", -math.inf)))
        if given.get("causal"):
            scores = self._op("Where", self._later(), self._number(-math.inf), scores)
        weights = self._without_rows(self._softmax(scores))
        return self._product(weights, self._value, self._value, is_shared)

    def _softmax(self, scores: Value) -> Value:
        """The weights; with a sink, they are computed step by step, as its score counts in maxima and sums."""
        rank = self._query.type.rank
        if self._sink is None:
            return self._emit.typed("onnx::Softmax", [scores], self._type, {"axis": -1 if rank is None else rank - 1})
        column = self._op("Reshape", self._as_scores(self._sink), self._emit.numbers([-1, 1, 1]))
        highest = self._op("Max", self._reduced("ReduceMax", scores), column)
        powers = self._op("Exp", self._op("Sub", scores, highest))
        away = self._op("Exp", self._op("Sub", column, highest))
        return self._op("Div", powers, self._op("Add", self._reduced("ReduceSum", powers), away))

    def _reduced(self, name: str, x: Value) -> Value:
        """``x`` reduced along its last axis, which stays."""
        if self._emit.opset >= _AXES_ARE_INPUT[name]:
            return self._emit.typed(f"onnx::{name}", [x, self._emit.numbers([-1])], self._type, {"keepdims": 1})
        return self._emit.typed(f"onnx::{name}", [x], self._type, {"keepdims": 1, "axes": [-1]})

    def _op(self, name: str, *inputs: Value) -> Value:
        return self._emit.typed(f"onnx::{name}", inputs, self._type, {})

    def _number(self, value: float) -> Value:
        assert self._type.dtype is not None
        with np.errstate(over="ignore"):
            return self._emit.constant(np.array(value, np.float64).astype(self._type.dtype.numpy))

    def _as_scores(self, bias: Value) -> Value:
        dtype = self._type.dtype
        if dtype is None or bias.type.dtype is dtype:
            return bias
        return self._emit.typed("onnx::Cast", [bias], TensorType(dtype, bias.type.shape), {"to": dtype.onnx})

    def _scaled_query(self) -> Value:
        scale, shape = self._node.attributes.get("scale"), self._query.type.shape
        width = shape[-1] if shape else None
        if scale is None and isinstance(width, int):
            scale = 1 / math.sqrt(width or 1)
        if scale is None:
            width = self._emit.typed("onnx::Cast", [self._size(self._query, 1)], self._type, {"to": DType.FLOAT.onnx})
            root = self._emit.typed("onnx::Sqrt", [width], TensorType(DType.FLOAT, ()), {})
            return self._op("Div", self._query, self._as_scores(root))
        return self._query if scale == 1 else self._op("Mul", self._query, self._number(scale))

    def _transposed_key(self) -> Value:
        rank = self._key.type.rank
        if rank is None:
            return self._emit.typed("onnx::Einsum", [self._key], self._type, {"equation": "...ij->...ji"})
        perm = [*range(rank - 2), rank - 1, rank - 2]
        return self._emit.typed("onnx::Transpose", [self._key], self._type, {"perm": perm})

    def _product(self, rows: Value, matrix: Value, source: Value, is_shared: bool) -> Value:
        """The product with ``matrix``, which is made of ``source``.

        If heads share that, the rows of all that share one are the rows of one product.
        """
        if not is_shared:
            return self._op("MatMul", rows, matrix)
        query, emit = self._query, self._emit
        group = emit.typed("onnx::Div", [self._sizes(query, 3), self._sizes(source, 3)], _SIZES, {})
        length = emit.typed("onnx::Mul", [group, self._sizes(query, 2)], _SIZES, {})
        together = [self._sizes(query, None, 3), self._sizes(source, 3), length, self._sizes(rows, 1)]
        product = self._op("MatMul", self._reshaped(rows, together), matrix)
        return self._reshaped(product, [self._sizes(query, None, 1), self._sizes(matrix, 1)])

    def _reshaped(self, x: Value, sizes: list[Value]) -> Value:
        shape = self._emit.typed("onnx::Concat", sizes, _SIZES, {"axis": 0})
        return self._op("Reshape", x, shape)

    def _sizes(self, x: Value, first: int | None, last: int | None = None) -> Value:
        """Sizes of ``x``: of its axis ``first``, counted from the end, or of all, up to ``last`` excluded."""
        whole = self._emit.typed("onnx::Shape", [x], _SIZES, {})
        rank = self._query.type.rank
        base = 0 if rank is None else rank
        start = 0 if first is None else base - first
        end = (2**31 - 1 if first == 1 else start + 1) if last is None else base - last
        if self._emit.opset < 10:
            return self._emit.typed("onnx::Slice", [whole], _SIZES, {"starts": [start], "ends": [end], "axes": [0]})
        places = [self._emit.numbers([n]) for n in (start, end, 0)]
        return self._emit.typed("onnx::Slice", [whole, *places], _SIZES, {})

    def _size(self, x: Value, axis: int) -> Value:
        """The size of ``x`` along ``axis``, counted from the end, as a scalar."""
        whole, rank = self._emit.typed("onnx::Shape", [x], _SIZES, {}), x.type.rank
        index = self._emit.numbers(-axis if rank is None else rank - axis)
        return self._emit.typed("onnx::Gather", [whole, index], _SIZE, {})

    def _later(self) -> Value:
        """Which keys each query does not see, (L, S)."""
        emit = self._emit
        rows, keys = self._size(self._query, 2), self._size(self._key, 2)
        zero, one = emit.numbers(0), emit.numbers(1)
        queries = emit.typed("onnx::Range", [zero, rows, one], _SIZES, {})
        if self._node.attributes["causal"] == "last":
            queries = emit.typed("onnx::Add", [queries, emit.typed("onnx::Sub", [keys, rows], _SIZE, {})], _SIZES, {})
        column = emit.typed("onnx::Reshape", [queries, emit.numbers([-1, 1])], TensorType(DType.INT64, (None, 1)), {})
        every = emit.typed("onnx::Range", [zero, keys, one], _SIZES, {})
        return emit.typed("onnx::Greater", [every, column], TensorType(DType.BOOL, (None, None)), {})

    def _without_rows(self, weights: Value) -> Value:
        """``weights`` with zeros in the rows that the attribute ``zero_rows`` names."""
        emit, zero_rows, truth = self._emit, self._node.attributes.get("zero_rows"), TensorType(DType.BOOL)
        if not zero_rows:
            return weights
        zero = self._number(0)
        if zero_rows == "nan":
            return self._op("Where", emit.typed("onnx::IsNaN", [weights], truth, {}), zero, weights)
        excluded = zero if self._bias is None else self._as_scores(self._bias)
        if self._mask is not None:
            fill = self._number(self._node.attributes.get("fill", -math.inf))
            excluded = self._op("Where", self._mask, excluded, fill)
        if self._node.attributes.get("causal"):
            excluded = self._op("Where", self._later(), self._number(-math.inf), excluded)
        if excluded is zero:
            return weights
        highest = self._reduced("ReduceMax", excluded)
        none = emit.typed("onnx::Equal", [highest, self._number(-math.inf)], truth, {})
        return self._op("Where", none, zero, weights)
