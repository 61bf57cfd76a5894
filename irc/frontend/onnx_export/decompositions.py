"""irc's own operators, and newer ones of ONNX's, written as several operators of the opset."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.frontend.onnx_export.operators import AXES_BECAME_INPUT, FOREVER, versions
from irc.ir.builder import Builder
from irc.ir.kinds import ATTENTION, CONSTANT, GELU, LAYER_NORM, MASKED_SOFTMAX, RMS_NORM, ROTATE_HALF, SWISH
from irc.ir.metadata import provenance
from irc.ir.tensor import Tensor
from irc.ir.types import NONE, Dim, DType, TensorType, Type
from irc.ir.value import Value

if TYPE_CHECKING:
    from irc.ir import Graph, Node


# `irc::attention` written as the operators that exporters spell it with: two products with a softmax between them.


_SIZE, _SIZES = TensorType(DType.INT64, ()), TensorType(DType.INT64, (None,))

_AXES_ARE_INPUT = {"ReduceMax": 18, "ReduceSum": 13}
"""The opset since which an operator takes its axes as an input."""


def first_opset_of_attention(node: Node) -> int:
    """The first opset that has all operators that ``node``, an `irc::attention`, is written with."""
    if any(value.type.rank is None for value in node.inputs[:3]):
        return 12  # Einsum
    if len(node.inputs) > 5 or node.attributes.get("causal") or node.attributes.get("zero_rows") == "masked":
        return 11  # Range, Equal of floats, negative axes
    has_choice = len(node.inputs) > 4 or node.attributes.get("zero_rows")
    return 9 if has_choice else 7


def spell_attention(node: Node, emit: Emitter) -> Value:
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


FIRST_OPSET = {
    "irc::slice_scatter": 11,
    LAYER_NORM: 7,
    RMS_NORM: 7,
    GELU: 7,
    SWISH: 7,
    ROTATE_HALF: 7,
    MASKED_SOFTMAX: 13,
    ATTENTION: 7,
}
"""Operators that can be spelt out, and the first opset that has what they are spelt with."""


_ALWAYS_SPELT = frozenset([SWISH])
"""Those that are spelt out for opsets that have them, too: ONNX Runtime (1.31) cannot run them, but what they are made
of, which it fuses."""


def first_opset(node: Node) -> int:
    """The first opset that has all operators that ``node`` is written with; ``node`` can be spelt out."""
    if node.kind == ATTENTION:
        return first_opset_of_attention(node)
    if node.attributes.get("interleaved"):
        return 10  # slices with steps
    needs_erf = node.kind == GELU and node.attributes.get("approximate", "none") == "none"
    return min(versions("onnx::Erf")) if needs_erf else FIRST_OPSET[node.kind]


def can_be_spelt(node: Node) -> bool:
    """Whether ``node`` can be written as several operators; one of ONNX's must be like those that passes make."""
    if node.kind in (GELU, SWISH):
        return node.inputs[0].type.dtype in (DType.FLOAT, DType.DOUBLE)  # others are rounded once
    if node.kind not in (LAYER_NORM, RMS_NORM):
        return node.kind in FIRST_OPSET
    axis, scale, x = node.attributes.get("axis", -1), node.inputs[1].type, node.inputs[0].type
    plain = node.attributes.get("stash_type", 1) == 1 and len(node.outputs) == 1
    is_last = axis == -1 or axis + 1 == x.rank
    return plain and is_last and scale.dtype is x.dtype and x.dtype in (DType.FLOAT, DType.FLOAT16)


def spell_out(graph: Graph, opset: int) -> None:
    """Replace in ``graph`` the operators that ``opset`` lacks by several that it has. Raises IRC350."""
    for node in list(graph.walk()):
        is_new = node.kind in _ALWAYS_SPELT or min(versions(node.kind), default=FOREVER) > opset
        spell = _SPELLINGS.get(node.kind) if is_new and can_be_spelt(node) else None
        if spell is None and _has_old_axes(node, opset):
            spell = _axes_as_input
        if spell is None:
            continue
        result, old = spell(node, Emitter(node, opset)), node.output
        if result.node is not None:
            result.node.name = result.node.name or node.name
        old.replace_all_uses_with(result)
        node.erase()
        result.succeed(old)


class Emitter:
    """Inserts operators of ``opset`` before ``node``."""

    def __init__(self, node: Node, opset: int) -> None:
        self._builder = Builder.before(node)
        self._stem = node.output.name
        self.opset = opset
        self._metadata = provenance([node])

    def op(self, name: str, inputs: Sequence[Value], shape: Sequence[Dim], **attributes: Any) -> Value:
        """The result of an operator, which has the element type of its first input."""
        return self.typed(f"onnx::{name}", inputs, TensorType(inputs[0].type.dtype, tuple(shape)), attributes)

    def typed(
        self, kind: str, inputs: Sequence[Value], type: Type, attributes: dict[str, Any], name: str = ""
    ) -> Value:
        """The result, of ``type``, of an operator; its node is called ``name``."""
        version = max(v for v in versions(kind) if v <= self.opset)
        node = self._builder.node(
            kind, inputs, [type], names=[self._stem], attributes=attributes, version=version, name=name
        )
        node.metadata = self._metadata
        return node.output

    def numbers(self, values: Any) -> Value:
        """A constant of integers."""
        return self.constant(np.array(values, np.int64))

    def column(self, x: Value) -> Value:
        """``x``, whose rank is known, with another axis, of size 1, at its end."""
        shape = [*(x.type.shape or ()), 1]
        if self.opset >= AXES_BECAME_INPUT["onnx::Unsqueeze"]:
            return self.op("Unsqueeze", [x, self.numbers([len(shape) - 1])], shape)
        return self.op("Unsqueeze", [x], shape, axes=[len(shape) - 1])

    def mean(self, x: Value) -> Value:
        """The mean of each row."""
        shape = x.type.shape
        means = TensorType(x.type.dtype, shape and (*shape[:-1], 1))
        if self.opset >= AXES_BECAME_INPUT["onnx::ReduceMean"]:
            return self.typed("onnx::ReduceMean", [x, self.numbers([-1])], means, {"keepdims": 1})
        last = -1 if shape is None else len(shape) - 1  # before opset 11, axes are not negative
        return self.typed("onnx::ReduceMean", [x], means, {"axes": [last], "keepdims": 1})

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A constant."""
        tensor = Tensor.of(array)
        node = self._builder.node(CONSTANT, (), [tensor.type], names=[self._stem], attributes={"value": tensor})
        return node.output

    def number(self, value: float, x: Value) -> Value:
        """A constant of the element type of ``x``."""
        dtype = x.type.dtype
        return self.constant(np.array(value, np.float64 if dtype is DType.DOUBLE else np.float32))

    def slice(self, x: Value, shape: Sequence[Dim], axis: int, start: int, count: int, step: int = 1) -> Value:
        """``count`` elements of ``axis`` from ``start`` on; ``x`` itself if those are all."""
        if count == shape[axis]:
            return x
        part, end = [*shape[:axis], count, *shape[axis + 1 :]], start + (count - 1) * step + 1
        if self.opset < 10 and step == 1:
            return self.op("Slice", [x], part, starts=[start], ends=[end], axes=[axis])
        return self.op("Slice", [x, *(self.numbers([n]) for n in (start, end, axis, step))], part)


def _has_old_axes(node: Node, opset: int) -> bool:
    """Whether ``node`` has axes as an attribute, whereas ``opset`` takes them only as an input."""
    since = AXES_BECAME_INPUT.get(node.kind)
    return since is not None and node.version is not None and node.version < since <= opset


def _axes_as_input(node: Node, emit: Emitter) -> Value:
    attributes = {key: value for key, value in node.attributes.items() if key != "axes"}
    axes = node.attributes.get("axes")
    inputs = [*node.inputs, emit.numbers(axes)] if axes else list(node.inputs)  # without: all of them
    return emit.typed(node.kind, inputs, node.output.type, attributes, node.name)


def _slice_scatter(node: Node, emit: Emitter) -> Value:
    data, source = node.inputs
    shape, count = (v.type.static_shape for v in (data, source))
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    if shape is None or count is None:
        raise Error("IRC350", f"{node.kind} can be spelt out for known shapes only", f"%{node.output.name}")
    if 0 in count:
        return emit.op("Identity", [data], shape)
    box = [axis for axis, (n, size) in enumerate(zip(count, shape)) if n != size]
    if not box:
        return emit.op("Identity", [source], shape)
    return _put(emit, data, list(shape), source, count, starts, steps, box)


def _put(
    emit: Emitter,
    data: Value,
    shape: list[int],
    source: Value,
    count: Sequence[int],
    starts: Sequence[int],
    steps: Sequence[int],
    axes: list[int],
) -> Value:
    """``data`` with a box of it replaced by ``source``, which is as large along all axes that are not in ``axes``."""
    axis, *rest = axes
    start, step, n, size = starts[axis], steps[axis], count[axis], shape[axis]
    if rest:
        inner = [*shape[:axis], n, *shape[axis + 1 :]]
        lines = emit.slice(data, shape, axis, start, n, step)
        source = _put(emit, lines, inner, source, count, starts, steps, rest)
    if n > 1 and step > 1:
        return _interleave(emit, data, shape, source, axis, range(start, start + n * step, step))
    parts = [source]
    if start:
        parts.insert(0, emit.slice(data, shape, axis, 0, start))
    if start + n < size:
        parts.append(emit.slice(data, shape, axis, start + n, size - start - n))
    return emit.op("Concat", parts, shape, axis=axis)


def _interleave(
    emit: Emitter, data: Value, shape: list[int], source: Value, axis: int, positions: Sequence[int]
) -> Value:
    """``data`` with the lines at ``positions`` of ``axis`` replaced by those of ``source``."""
    indices = emit.numbers([[p] for p in positions])
    order = list(range(len(shape)))
    order[0], order[axis] = axis, 0  # its own inverse

    def swap(x: Value, sizes: Sequence[int]) -> Value:
        return emit.op("Transpose", [x], [sizes[i] for i in order], perm=order) if axis else x

    sizes = [shape[i] for i in order]
    whole, part = swap(data, shape), swap(source, [*shape[:axis], len(positions), *shape[axis + 1 :]])
    return swap(emit.op("ScatterND", [whole, indices, part], sizes), sizes)


def _normalization(node: Node, emit: Emitter) -> Value:
    x, scale, *bias = node.inputs
    given = x.type

    def op(name: str, *inputs: Value) -> Value:
        return emit.typed(f"onnx::{name}", inputs, inputs[0].type, {})

    def cast(value: Value, dtype: DType) -> Value:
        """In the type that it is computed in, and back: float32, whatever the operands are."""
        if value.type.dtype is dtype:
            return value
        return emit.typed("onnx::Cast", [value], TensorType(dtype, given.shape), {"to": dtype.onnx})

    x = cast(x, DType.FLOAT)

    if node.kind == LAYER_NORM:
        x = op("Sub", x, emit.mean(x))
    epsilon = emit.constant(np.array(node.attributes.get("epsilon", 1e-5), np.float32))
    root = op("Sqrt", op("Add", emit.mean(op("Mul", x, x)), epsilon))
    y = op("Mul", cast(op("Div", x, root), given.dtype or DType.FLOAT), scale)
    return op("Add", y, *bias) if bias else y


def _activation(node: Node, emit: Emitter) -> Value:
    """The activation as exporters write it, in a form that other runtimes recognise."""
    x = node.inputs[0]

    def op(name: str, y: Value, by: Value | float | None = None) -> Value:
        inputs = [y] if by is None else [y, by if isinstance(by, Value) else emit.number(by, x)]
        return emit.typed(f"onnx::{name}", inputs, x.type, {})

    if node.kind == SWISH:
        alpha = float(node.attributes.get("alpha", 1.0))
        return op("Mul", x, op("Sigmoid", x if alpha == 1 else op("Mul", x, alpha)))
    if node.attributes.get("approximate", "none") == "tanh":
        cubic = op("Add", op("Mul", op("Mul", x, 0.044715), x), 1.0)
        gate = op("Tanh", op("Mul", op("Mul", x, math.sqrt(2 / math.pi)), cubic))
        return op("Mul", op("Mul", x, 0.5), op("Add", gate, 1.0))
    gate = op("Erf", op("Div", x, math.sqrt(2)))
    return op("Mul", op("Mul", x, op("Add", gate, 1.0)), 0.5)


def _rotate_half(node: Node, emit: Emitter) -> Value:
    x = node.inputs[0]
    shape = x.type.shape
    if not shape or not isinstance(width := shape[-1], int):
        raise Error("IRC350", f"{node.kind} can be spelt out for a known last axis only", f"%{node.output.name}")
    axis, half = len(shape) - 1, width // 2
    interleaved = bool(node.attributes.get("interleaved", 0))
    starts, step = ((0, 1), 2) if interleaved else ((0, half), 1)
    first, second = (emit.slice(x, shape, axis, start, half, step) for start in starts)
    parts = [emit.op("Neg", [second], second.type.shape or ()), first]
    if not interleaved:
        return emit.op("Concat", parts, shape, axis=axis)
    pairs = emit.op("Concat", [emit.column(part) for part in parts], [*shape[:-1], half, 2], axis=axis + 1)
    return emit.op("Reshape", [pairs, emit.numbers([0] * axis + [width])], shape)


def _masked_softmax(node: Node, emit: Emitter) -> Value:
    x = node.inputs[0]
    if x.type.dtype is None:
        raise Error("IRC350", f"{node.kind} can be spelt out for a known element type only", f"%{node.output.name}")
    found = emit.typed("onnx::Softmax", [x], x.type, dict(node.attributes))
    test = emit.typed("onnx::IsNaN", [found], TensorType(DType.BOOL, x.type.shape), {})
    zero = emit.constant(np.zeros((), x.type.dtype.numpy))
    return emit.typed("onnx::Where", [test, zero, found], x.type, {})


_SPELLINGS: dict[str, Callable[[Node, Emitter], Value]] = {
    "irc::slice_scatter": _slice_scatter,
    LAYER_NORM: _normalization,
    RMS_NORM: _normalization,
    ROTATE_HALF: _rotate_half,
    MASKED_SOFTMAX: _masked_softmax,
    ATTENTION: spell_attention,
    GELU: _activation,
    SWISH: _activation,
}
