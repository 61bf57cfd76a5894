"""The operator sets that models are written in, and operators that these lack, as several others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import NONE, Builder, Dim, DType, Graph, ListType, Node, OptionalType, Tensor, TensorType, Type, Value
from irc.ir.kinds import ATTENTION, CONSTANT, GELU, LAYER_NORM, MASKED_SOFTMAX, RMS_NORM, ROTATE_HALF, SWISH
from irc.ir.metadata import provenance
from irc.ir.region_flow import DECLARED_INPUTS, DECLARED_ROWS
from irc.ops import record, schemas
from irc.ops.onnx_signatures import find, newest_opset, onnx_name, split_kind, versions
from irc.ops.opaque import is_opaque, opaque_operator

FOREVER = 2**31 - 1
"""In place of the opset that changes an operator which none has changed."""


def identity_since(type: Type) -> int:
    """The first opset whose Identity takes values of ``type``. It means the same in all of them."""
    return next((first for kind, first in _IDENTITY_SINCE.items() if isinstance(type, kind)), 1)


_IDENTITY_SINCE = {ListType: 14, OptionalType: 16}


def opsets_of(kind: str, version: int | None) -> tuple[int, int]:
    """The first and the last opset in which ``kind`` means its version ``version`` (None: the newest)."""
    known = versions(kind)
    if not known:
        return 1, FOREVER
    bound = known[-1] if version is None else version
    later = [v for v in known if v > bound]
    return bound, later[0] - 1 if later else FOREVER


@cache
def axes_became_input(kind: str) -> int:
    """The opset since which ``axes`` is an input, so that older versions can be rewritten as newer ones."""
    for version in versions(kind)[1:]:
        old, new = schema(kind, version - 1), schema(kind, version)
        if old.attributes.keys() - new.attributes.keys() == {"axes"} and new.inputs[-1].name == "axes":
            return version
    return FOREVER


@cache
def last_alike(kind: str, version: int | None) -> int:
    """The last opset in which ``kind`` means what it means at ``version``; newer ones may accept more."""
    _, last = opsets_of(kind, version)
    while last != FOREVER and _is_alike(kind, last + 1):
        _, last = opsets_of(kind, last + 1)
    return last


_UNIFORM_SINCE = 13
"""From this opset on, indices and axes may be negative everywhere: what takes more since takes no other values."""


def first_alike(node: Node) -> int:
    """The first opset in which ``node`` could be written: a version that later ones only extend."""
    first, _ = opsets_of(node.kind, node.version)
    while first > _UNIFORM_SINCE and _is_alike(node.kind, first) and _fits(node, first - 1):
        first = max(_UNIFORM_SINCE, *(version for version in versions(node.kind) if version < first))
    return first


def _fits(node: Node, opset: int) -> bool:
    """Whether ``opset``'s version surely accepts ``node``; False if a string attribute might be newer."""
    schema = find(node.kind, opset)
    attributes = {key: value for key, value in node.attributes.items() if key not in (DECLARED_INPUTS, DECLARED_ROWS)}
    if len(node.inputs) > schema.max_input or not attributes.keys() <= schema.attributes.keys():
        return False
    return not any(isinstance(value, str) for value in attributes.values()) and all(
        _takes(formals[min(i, len(formals) - 1)], value.type)
        for formals, values in ((schema.inputs, node.inputs), (schema.outputs, node.outputs))
        for i, value in enumerate(values)
    )


def _takes(formal: Any, type: Type) -> bool:
    if type == NONE:
        return True
    return isinstance(type, TensorType) and onnx_name(type) in formal.types


def _is_alike(kind: str, opset: int) -> bool:
    """Whether the version new in ``opset`` means the same as the one before; False if there was none."""
    return opset > versions(kind)[0] and opset not in record(kind).changes_meaning and _only_takes_more(kind, opset)


def _only_takes_more(kind: str, opset: int) -> bool:
    """Whether the version new in ``opset`` only accepts more than the one before it.

    Optional parts are attributes, and inputs after the earlier ones.
    """
    old, new = find(kind, opset - 1), find(kind, opset)
    if new.deprecated or (old.min_input, _outputs(old)) != (new.min_input, _outputs(new)):
        return False
    before, after = _attributes(old), _attributes(new)
    inputs = list(zip(old.inputs, new.inputs))
    return (
        len(inputs) == len(old.inputs)
        and [_input(a) for a, _ in inputs] == [_input(b) for _, b in inputs]
        and all(added.option.name == "Optional" for added in new.inputs[len(inputs) :])
        and all(after.get(key) == attribute for key, attribute in before.items())
        and not any(new.attributes[key].required for key in after.keys() - before.keys())
        and all(a.types <= b.types for a, b in [*inputs, *zip(old.outputs, new.outputs, strict=True)])
    )


def _attributes(schema: Any) -> dict[str, tuple[Any, ...]]:
    return {key: (a.type, a.required, a.default_value.SerializeToString()) for key, a in schema.attributes.items()}


def _input(formal: Any) -> tuple[Any, ...]:
    return formal.name, formal.option, formal.is_homogeneous


def _outputs(schema: Any) -> tuple[Any, ...]:
    return [(o.name, o.option) for o in schema.outputs], schema.min_output, schema.max_output


@cache
def schema(kind: str, opset: int) -> Any:
    """The operator's ``OpSchema`` in an opset of its domain; None if the onnx package does not know it."""
    return find(kind, opset)


def is_known(kind: str) -> bool:
    """Whether a model may hold the operator ``kind``: ONNX's, or one registered under its own domain."""
    domain, _ = split_kind(kind)
    return bool(versions(kind)) or (domain not in ("", "aten", "irc", "prim") and bool(schemas(kind)))


# -- decompositions ------------------------------------------------------------


_SIZE, _SIZES = TensorType(DType.INT64, ()), TensorType(DType.INT64, (None,))
_TRUTH = TensorType(DType.BOOL)


class Emitter:
    """Inserts operators of ``opset`` before ``node``."""

    def __init__(self, node: Node, opset: int) -> None:
        self._builder = Builder.before(node)
        self._stem = node.output.name
        self.opset = opset
        self._metadata = provenance([node])

    def __call__(self, name: str, *operands: Value | Any, type: Type | None = None, **attributes: Any) -> Value:
        """The result of an operator, of the type of its first operand if no other is given.

        Operands that are no values are constants of integers.
        """
        inputs = [x if isinstance(x, Value) else self.constant(np.array(x, np.int64)) for x in operands]
        return self.typed(f"onnx::{name}", inputs, type or inputs[0].type, attributes)

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

    def shaped(self, name: str, x: Value, *operands: Value | Any, shape: Sequence[Dim], **attributes: Any) -> Value:
        """The result of an operator, which has the element type of ``x``, its first operand."""
        return self(name, x, *operands, type=TensorType(x.type.dtype, tuple(shape)), **attributes)

    def along(self, name: str, x: Value, axis: int, type: Type, **attributes: Any) -> Value:
        """The result of an operator along one axis of ``x``, which is an input or an attribute."""
        if self.opset >= axes_became_input(f"onnx::{name}"):
            return self(name, x, [axis], type=type, **attributes)
        return self(name, x, type=type, axes=[axis], **attributes)

    def column(self, x: Value) -> Value:
        """``x``, whose rank is known, with another axis, of size 1, at its end."""
        shape = (*(x.type.shape or ()), 1)
        return self.along("Unsqueeze", x, len(shape) - 1, TensorType(x.type.dtype, shape))

    def mean(self, x: Value) -> Value:
        """The mean of each row."""
        shape = x.type.shape
        # Before opset 11, axes are not negative.
        last = -1 if shape is None or self.opset >= axes_became_input("onnx::ReduceMean") else len(shape) - 1
        return self.along("ReduceMean", x, last, TensorType(x.type.dtype, shape and (*shape[:-1], 1)), keepdims=1)

    def constant(self, array: np.ndarray[Any, Any]) -> Value:
        """A constant."""
        tensor = Tensor.of(array)
        node = self._builder.node(CONSTANT, (), [tensor.type], names=[self._stem], attributes={"value": tensor})
        return node.output

    def number(self, value: float, x: Value) -> Value:
        """A constant of the element type of ``x``."""
        return self.constant(np.array(value, np.float64 if x.type.dtype is DType.DOUBLE else np.float32))

    def cast(self, x: Value, dtype: DType | None) -> Value:
        """``x`` in another element type, if that is known and another."""
        if dtype is None or x.type.dtype is dtype:
            return x
        return self("Cast", x, type=TensorType(dtype, x.type.shape), to=dtype.onnx)

    def part(self, x: Value, type: Type, axis: int, start: int, end: int, *step: int) -> Value:
        """What ``axis`` has from ``start`` to ``end``, ``type`` in all."""
        if self.opset < 10 and step in ((), (1,)):
            return self("Slice", x, type=type, starts=[start], ends=[end], axes=[axis])
        return self("Slice", x, *([n] for n in (start, end, axis, *step)), type=type)

    def slice(self, x: Value, shape: Sequence[Dim], axis: int, start: int, count: int, step: int = 1) -> Value:
        """``count`` elements of ``axis`` from ``start`` on; ``x`` itself if those are all."""
        if count == shape[axis]:
            return x
        type = TensorType(x.type.dtype, (*shape[:axis], count, *shape[axis + 1 :]))
        return self.part(x, type, axis, start, start + (count - 1) * step + 1, step)


# `irc::attention` written as the operators that exporters write it with: two products with a softmax between them.


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
        raise _unknown("a known element type", node)
    return _Attention(node, emit, dtype).write()


def _unknown(what: str, node: Node) -> Error:
    return Error("IRC350", f"{node.kind} can be decomposed for {what} only", f"%{node.output.name}")


class _Attention:
    """Writes one node; all scores have the element type ``dtype``."""

    def __init__(self, node: Node, emit: Emitter, dtype: DType) -> None:
        self._node, self._emit, self._dtype = node, emit, dtype
        self._query, self._key, self._value = node.inputs[:3]
        optional = [None if value.type == NONE else value for value in node.inputs[3:]]
        self._bias, self._mask, self._sink = (*optional, None, None, None)[:3]

    def write(self) -> Value:
        """The result of the operators that are inserted."""
        given, op = self._node.attributes, self._op
        heads = [v.type.shape[-3] if v.type.shape and len(v.type.shape) > 2 else None for v in self._node.inputs[:3]]
        is_shared = bool(given.get("grouped")) and not (isinstance(heads[0], int) and heads[0] == heads[1])
        scores = self._product(self._scaled_query(), self._transposed_key(), self._key, is_shared)
        if given.get("softcap"):
            cap = self._number(given["softcap"])
            scores = op("Mul", op("Tanh", op("Div", scores, cap)), cap)
        if self._bias is not None:
            scores = op("Add", scores, self._emit.cast(self._bias, self._dtype))
        if self._mask is not None:
            scores = op("Where", self._mask, scores, self._number(given.get("fill", -math.inf)))
        if given.get("causal"):
            scores = op("Where", self._later(), self._number(-math.inf), scores)
        weights = self._without_rows(self._softmax(scores))
        return self._product(weights, self._value, self._value, is_shared)

    def _softmax(self, scores: Value) -> Value:
        """The weights; with a sink, they are computed step by step, as its score counts in maxima and sums."""
        rank, op = self._query.type.rank, self._op
        if self._sink is None:
            return op("Softmax", scores, axis=-1 if rank is None else rank - 1)
        column = op("Reshape", self._emit.cast(self._sink, self._dtype), [-1, 1, 1])
        highest = op("Max", self._reduced("ReduceMax", scores), column)
        powers = op("Exp", op("Sub", scores, highest))
        away = op("Exp", op("Sub", column, highest))
        return op("Div", powers, op("Add", self._reduced("ReduceSum", powers), away))

    def _reduced(self, name: str, x: Value) -> Value:
        """``x`` reduced along its last axis, which stays."""
        return self._emit.along(name, x, -1, TensorType(self._dtype), keepdims=1)

    def _op(self, name: str, *operands: Value | Any, **attributes: Any) -> Value:
        return self._emit(name, *operands, type=TensorType(self._dtype), **attributes)

    def _number(self, value: float) -> Value:
        with np.errstate(over="ignore"):
            return self._emit.constant(np.array(value, np.float64).astype(self._dtype.numpy))

    def _scaled_query(self) -> Value:
        scale, shape = self._node.attributes.get("scale"), self._query.type.shape
        width = shape[-1] if shape else None
        if scale is None and isinstance(width, int):
            scale = 1 / math.sqrt(width or 1)
        if scale is None:
            width = self._op("Cast", self._size(self._query, 1), to=DType.FLOAT.onnx)
            root = self._emit("Sqrt", width, type=TensorType(DType.FLOAT, ()))
            return self._op("Div", self._query, self._emit.cast(root, self._dtype))
        return self._query if scale == 1 else self._op("Mul", self._query, self._number(scale))

    def _transposed_key(self) -> Value:
        rank = self._key.type.rank
        if rank is None:
            return self._op("Einsum", self._key, equation="...ij->...ji")
        return self._op("Transpose", self._key, perm=[*range(rank - 2), rank - 1, rank - 2])

    def _product(self, rows: Value, matrix: Value, source: Value, is_shared: bool) -> Value:
        """The product with ``matrix``, which is made of ``source``.

        If heads share that, the rows of all that share one are the rows of one product.
        """
        if not is_shared:
            return self._op("MatMul", rows, matrix)
        query = self._query
        group = self._emit("Div", self._sizes(query, 3), self._sizes(source, 3), type=_SIZES)
        length = self._emit("Mul", group, self._sizes(query, 2), type=_SIZES)
        together = [self._sizes(query, None, 3), self._sizes(source, 3), length, self._sizes(rows, 1)]
        product = self._op("MatMul", self._reshaped(rows, together), matrix)
        return self._reshaped(product, [self._sizes(query, None, 1), self._sizes(matrix, 1)])

    def _reshaped(self, x: Value, sizes: list[Value]) -> Value:
        return self._op("Reshape", x, self._emit("Concat", *sizes, type=_SIZES, axis=0))

    def _sizes(self, x: Value, first: int | None, last: int | None = None) -> Value:
        """Sizes of ``x``: of its axis ``first``, counted from the end, or of all, up to ``last`` excluded."""
        rank = self._query.type.rank or 0
        start = 0 if first is None else rank - first
        end = (2**31 - 1 if first == 1 else start + 1) if last is None else rank - last
        return self._emit.part(self._emit("Shape", x, type=_SIZES), _SIZES, 0, start, end)

    def _size(self, x: Value, axis: int) -> Value:
        """The size of ``x`` along ``axis``, counted from the end, as a scalar."""
        whole, rank = self._emit("Shape", x, type=_SIZES), x.type.rank
        return self._emit("Gather", whole, -axis if rank is None else rank - axis, type=_SIZE)

    def _later(self) -> Value:
        """Which keys each query does not see, (L, S)."""
        emit = self._emit
        rows, keys = self._size(self._query, 2), self._size(self._key, 2)
        zero, one = (emit.constant(np.array(n, np.int64)) for n in (0, 1))
        queries = emit("Range", zero, rows, one, type=_SIZES)
        if self._node.attributes["causal"] == "last":
            queries = emit("Add", queries, emit("Sub", keys, rows, type=_SIZE), type=_SIZES)
        column = emit("Reshape", queries, [-1, 1], type=TensorType(DType.INT64, (None, 1)))
        every = emit("Range", zero, keys, one, type=_SIZES)
        return emit("Greater", every, column, type=TensorType(DType.BOOL, (None, None)))

    def _without_rows(self, weights: Value) -> Value:
        """``weights`` with zeros in the rows that the attribute ``zero_rows`` names."""
        given, emit = self._node.attributes, self._emit
        if not given.get("zero_rows"):
            return weights
        zero = self._number(0)
        if given["zero_rows"] == "nan":
            return self._op("Where", emit("IsNaN", weights, type=_TRUTH), zero, weights)
        excluded = zero if self._bias is None else emit.cast(self._bias, self._dtype)
        if self._mask is not None:
            excluded = self._op("Where", self._mask, excluded, self._number(given.get("fill", -math.inf)))
        if given.get("causal"):
            excluded = self._op("Where", self._later(), self._number(-math.inf), excluded)
        if excluded is zero:
            return weights
        none = emit("Equal", self._reduced("ReduceMax", excluded), self._number(-math.inf), type=_TRUTH)
        return self._op("Where", none, zero, weights)


# -- others --------------------------------------------------------------------


def first_opset(node: Node) -> int:
    """The first opset that has all operators that ``node`` is written with; ``node`` can be decomposed."""
    if node.kind == ATTENTION:
        return first_opset_of_attention(node)
    if node.attributes.get("interleaved"):
        return 10  # slices with steps
    needs_erf = node.kind == GELU and node.attributes.get("approximate", "none") == "none"
    return min(versions("onnx::Erf")) if needs_erf else DECOMPOSITIONS[node.kind][0]


def can_be_decomposed(node: Node) -> bool:
    """Whether ``node`` can be decomposed; an ONNX operator must be of a form that passes create."""
    if node.kind in (GELU, SWISH):
        return node.inputs[0].type.dtype in (DType.FLOAT, DType.DOUBLE)  # others are rounded once
    if node.kind not in (LAYER_NORM, RMS_NORM):
        return node.kind in DECOMPOSITIONS
    axis, scale, x = node.attributes.get("axis", -1), node.inputs[1].type, node.inputs[0].type
    plain = node.attributes.get("stash_type", 1) == 1 and len(node.outputs) == 1
    is_last = axis == -1 or axis + 1 == x.rank
    return plain and is_last and scale.dtype is x.dtype and x.dtype in (DType.FLOAT, DType.FLOAT16)


def decompose(graph: Graph, opset: int) -> None:
    """Replace in ``graph`` the operators that ``opset`` lacks by several that it has. Raises IRC350."""
    for node in list(graph.walk()):
        # ONNX Runtime (1.31) cannot run Swish, but what it is made of, which it fuses.
        is_new = node.kind == SWISH or min(versions(node.kind), default=FOREVER) > opset
        write = DECOMPOSITIONS[node.kind][1] if is_new and can_be_decomposed(node) else None
        if write is None and node.version is not None and node.version < axes_became_input(node.kind) <= opset:
            write = _axes_as_input
        if write is None:
            continue
        result, old = write(node, Emitter(node, opset)), node.output
        if result.node is not None:
            result.node.name = result.node.name or node.name
        old.replace_all_uses_with(result)
        node.erase()
        result.succeed(old)


def _axes_as_input(node: Node, emit: Emitter) -> Value:
    attributes = {key: value for key, value in node.attributes.items() if key != "axes"}
    axes = node.attributes.get("axes")
    given = [emit.constant(np.array(axes, np.int64))] if axes else []  # without: all of them
    return emit.typed(node.kind, [*node.inputs, *given], node.output.type, attributes, node.name)


def _slice_scatter(node: Node, emit: Emitter) -> Value:
    data, source = node.inputs
    shape, count = (v.type.static_shape for v in (data, source))
    starts, steps = node.attributes["starts"], node.attributes["steps"]
    if shape is None or count is None:
        raise _unknown("known shapes", node)

    def put(data: Value, shape: list[int], source: Value, axes: list[int]) -> Value:
        """``data`` with a box replaced by ``source``, of equal size along all axes not in ``axes``."""
        axis, *rest = axes
        start, step, n, size = starts[axis], steps[axis], count[axis], shape[axis]
        if rest:
            lines = emit.slice(data, shape, axis, start, n, step)
            source = put(lines, [*shape[:axis], n, *shape[axis + 1 :]], source, rest)
        if n > 1 and step > 1:
            return _interleave(emit, data, shape, source, axis, range(start, start + n * step, step))
        parts = [source]
        if start:
            parts.insert(0, emit.slice(data, shape, axis, 0, start))
        if start + n < size:
            parts.append(emit.slice(data, shape, axis, start + n, size - start - n))
        return emit.shaped("Concat", *parts, shape=shape, axis=axis)

    box = [axis for axis, (n, size) in enumerate(zip(count, shape)) if n != size]
    if 0 in count or not box:
        return emit.shaped("Identity", data if 0 in count else source, shape=shape)
    return put(data, list(shape), source, box)


def _interleave(
    emit: Emitter, data: Value, shape: list[int], source: Value, axis: int, positions: Sequence[int]
) -> Value:
    """``data`` with the lines at ``positions`` of ``axis`` replaced by those of ``source``."""
    indices = emit.constant(np.array([[p] for p in positions], np.int64))
    order = list(range(len(shape)))
    order[0], order[axis] = axis, 0  # its own inverse

    def swap(x: Value, sizes: Sequence[int]) -> Value:
        return emit.shaped("Transpose", x, shape=[sizes[i] for i in order], perm=order) if axis else x

    sizes = [shape[i] for i in order]
    whole, part = swap(data, shape), swap(source, [*shape[:axis], len(positions), *shape[axis + 1 :]])
    return swap(emit.shaped("ScatterND", whole, indices, part, shape=sizes), sizes)


def _normalization(node: Node, emit: Emitter) -> Value:
    """Computed in float32, whatever the operands are."""
    x, scale, *bias = node.inputs
    given = x.type.dtype or DType.FLOAT
    x = emit.cast(x, DType.FLOAT)
    if node.kind == LAYER_NORM:
        x = emit("Sub", x, emit.mean(x))
    epsilon = emit.constant(np.array(node.attributes.get("epsilon", 1e-5), np.float32))
    root = emit("Sqrt", emit("Add", emit.mean(emit("Mul", x, x)), epsilon))
    y = emit("Mul", emit.cast(emit("Div", x, root), given), scale)
    return emit("Add", y, *bias) if bias else y


def _activation(node: Node, emit: Emitter) -> Value:
    """The activation as exporters write it, in a form that other runtimes recognise."""
    x = node.inputs[0]

    def op(name: str, y: Value, by: Value | float | None = None) -> Value:
        inputs = [y] if by is None else [y, by if isinstance(by, Value) else emit.number(by, x)]
        return emit(name, *inputs, type=x.type)

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
        raise _unknown("a known last axis", node)
    axis, half = len(shape) - 1, width // 2
    interleaved = bool(node.attributes.get("interleaved", 0))
    starts, step = ((0, 1), 2) if interleaved else ((0, half), 1)
    first, second = (emit.slice(x, shape, axis, start, half, step) for start in starts)
    parts = [emit("Neg", second), first]
    if not interleaved:
        return emit.shaped("Concat", *parts, shape=shape, axis=axis)
    columns = [emit.column(part) for part in parts]
    pairs = emit.shaped("Concat", *columns, shape=[*shape[:-1], half, 2], axis=axis + 1)
    return emit.shaped("Reshape", pairs, [0] * axis + [width], shape=shape)


def _masked_softmax(node: Node, emit: Emitter) -> Value:
    x = node.inputs[0]
    if x.type.dtype is None:
        raise _unknown("a known element type", node)
    found = emit("Softmax", x, **node.attributes)
    test = emit("IsNaN", found, type=TensorType(DType.BOOL, x.type.shape))
    return emit("Where", test, emit.constant(np.zeros((), x.type.dtype.numpy)), found, type=x.type)


DECOMPOSITIONS: dict[str, tuple[int, Callable[[Node, Emitter], Value]]] = {
    "irc::slice_scatter": (11, _slice_scatter),
    LAYER_NORM: (7, _normalization),
    RMS_NORM: (7, _normalization),
    ROTATE_HALF: (7, _rotate_half),
    MASKED_SOFTMAX: (13, _masked_softmax),
    ATTENTION: (7, spell_attention),
    GELU: (7, _activation),
    SWISH: (7, _activation),
}
"""Operators with a decomposition: the first opset that has its operators, and the function that writes it."""


# The operator sets of a model that is being written: in them, every node means the version it is bound to.
#
# Perhaps no operator set has all versions, such as after a function with other imports was inlined. Then a node
# may be written as a newer version that only accepts more (types, attributes, inputs), or as an older one if the node
# uses nothing that the newer one added.


_IMPORT = "opset_import."

DEFAULT = 17
"""The opset of graphs that no operator ties to one."""


def choose(nodes: Iterable[Node], metadata: Mapping[str, str]) -> dict[str, int]:
    """Domain -> opset: that of the imported model, or the nearest to it that fits all nodes.

    Args:
        nodes: all nodes of the module, nested ones too.
        metadata: the module's; it names the operator sets of the imported model.

    Raises:
        Error: IRC351 if no version fits all nodes.
    """
    wanted: dict[str, int] = {}
    for key, version in metadata.items():
        if key.startswith(_IMPORT) and version.isascii() and version.isdecimal():
            domain = key.removeprefix(_IMPORT)
            wanted["" if domain == "ai.onnx" else domain] = int(version)
    bounds: dict[str, list[tuple[int, int, Node]]] = {"": []}
    for node in nodes:
        namespace = node.kind.partition("::")[0]
        if can_be_decomposed(node):
            bounds[""].append((first_opset(node), FOREVER, node))
        elif node.kind == "onnx::Identity" and node.version is None:  # passes put it in to keep a name
            bounds[""].append((identity_since(node.output.type), FOREVER, node))
        elif is_opaque(node.kind):
            version = node.version or 1
            bounds.setdefault(opaque_operator(node.kind)[0], []).append((version, version, node))
        elif namespace != "prim":
            first, last = opsets_of(node.kind, node.version)
            since = axes_became_input(node.kind)
            if last < since < FOREVER:
                last = last_alike(node.kind, since)  # decomposed as newer ones are
            bounds.setdefault(split_kind(node.kind)[0], []).append((first, last, node))
    for found in bounds.values():
        if found and max(first for first, _, _ in found) > min(last for _, last, _ in found):
            found[:] = [_widened(*bound) for bound in found]
    return {domain: _meet(domain, found, wanted.get(domain)) for domain, found in bounds.items()}


def _widened(first: int, last: int, node: Node) -> tuple[int, int, Node]:
    """Opsets from the first to the last in which ``node`` could be written, perhaps as another version."""
    if not versions(node.kind):
        return first, last, node
    return min(first, first_alike(node)), max(last, last_alike(node.kind, node.version)), node


def _meet(domain: str, bounds: list[tuple[int, int, Node]], wanted: int | None) -> int:
    known = newest_opset(domain, 0)
    newest = known or FOREVER  # of domains that the onnx package does not know, there may be any
    first = max(bounds, key=lambda bound: bound[0], default=None)
    last = min(bounds, key=lambda bound: bound[1], default=None)
    if first is None or last is None:
        return min(wanted or DEFAULT, newest)
    if first[0] > last[1]:
        old, new = last[2], first[2]
        before = f"{old.kind} as it was up to version {last[1]} (%{old.outputs[0].name})"
        after = f"{new.kind} as it is from version {first[0]} on (%{new.outputs[0].name})"
        raise Error("IRC351", f"no operator set of {domain or 'ai.onnx'} has both {before} and {after}", new.name)
    if first[0] > newest:
        unknown = f"the installed onnx knows no operator set of {domain or 'ai.onnx'} after {newest}"
        message = f"{first[2].kind} is bound to version {first[0]}, but {unknown}"
        raise Error("IRC351", message, f"%{first[2].outputs[0].name}")
    if wanted is None:
        wanted = DEFAULT if domain == "" else known or 1
    return min(max(wanted, first[0]), last[1], newest)
