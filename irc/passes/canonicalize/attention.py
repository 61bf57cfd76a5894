"""Attention of several operators, ``softmax(q @ k^T * scale + mask) @ v``, as `irc::attention`.

Between the two products there may be, in this order: a factor, a cap (``c * tanh(scores / c)``), terms that are added,
and a choice of which scores count; by operators of ONNX, or by those of PyTorch if all are of one known element type.
Nothing else may use any of these scores. What scales queries or keys, and what repeats keys and values for the heads
that share them, becomes part of the operator, too, so that no cache is copied.
When exported to ONNX, it is written as several operators again (`irc.frontend.onnx_export.decompositions`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from irc.ir import Node, Tensor, Value, constant_tensor, constant_value, is_constant, one_number
from irc.ir.kinds import ATTENTION, CONSTANT, MASKED_SOFTMAX, MATMUL, ROTATE_HALF
from irc.ir.types import NONE, Dim, DType, TensorType
from irc.ops import REARRANGING, record
from irc.ops.inference import NodeTypes
from irc.passes.canonicalize.match import Match, is_needed_once, rewrite
from irc.passes.quantised import is_dequantised

# Keys and values that are repeated for the heads that share them, as exporters of grouped-query attention write it.
#
# That copies the whole cache in each step; `irc::attention` reads them where they are. A target shape in which a 0
# copies a size is assumed to be for at least one key and a batch of at least one; without elements, the shape would be
# another.


_ONE_SIZE = TensorType(DType.INT64, (1,))


class Repeated(NamedTuple):
    """``Reshape(Expand(Unsqueeze(source)))``: ``shared`` heads, each repeated, become ``heads``."""

    source: Value
    shared: int
    heads: int
    made_by: list[Node]


def repeated(m: Match, value: Value) -> Repeated | None:
    """How ``value`` repeats heads; None if it does not, or does anything else."""
    nodes = _made_by(m, value, "onnx::Reshape", "onnx::Expand", "onnx::Unsqueeze")
    if nodes is None or not _is_between(m, nodes[2], nodes[1].output, value):
        return None
    reshape, expand, unsqueeze = nodes
    source = unsqueeze.inputs[0]
    sizes = (m.size(v, axis) for v, axis in ((source, 1), (expand.output, 2), (source, 3)))
    shared, group, width = (size if isinstance(size, int) else 0 for size in sizes)
    if is_constant(source) or not shared or group < 2 or not width:
        return None
    if not _repeats_only(m, source, expand) or not _joins_only(m, source, reshape, shared * group):
        return None
    return Repeated(source, shared, shared * group, nodes)


def _is_between(m: Match, unsqueeze: Node, expanded: Value, value: Value) -> bool:
    """Whether the axis that is put in stands behind that of heads, of four."""
    ranks = tuple([m.type_of(v).rank for v in (unsqueeze.inputs[0], expanded, value)])
    return ranks == (4, 5, 4) and m.types_of(unsqueeze).axes(1) in ([2], [-3])


def _repeats_only(m: Match, source: Value, expand: Node) -> bool:
    """Whether ``expand`` leaves all axes of ``source`` as they are."""
    return all(
        (size := m.size(source, axis)) is not None and size == m.size(expand.output, widened)
        for axis, widened in enumerate((0, 1, 3, 4))
    )


def _joins_only(m: Match, source: Value, reshape: Node, heads: int) -> bool:
    """Whether ``reshape`` only merges the heads of ``source`` and the count of each into ``heads``."""
    target = m.types_of(reshape)
    if target.version < 5:
        return False
    rows = _asked(target, 2)
    # If there are no rows, their 0 copies the size of the group, and a -1 elsewhere lets that pass.
    any_rest = -1 if target.attr("allowzero", 0) or (isinstance(rows, int) and rows) else None
    wanted = {0: m.size(source, 0), 1: heads, 2: m.size(source, 2), 3: m.size(source, 3)}
    # A -1 is what is left: the same, as nothing else changes.
    return all(_is_asked_for(m, reshape, axis, size, any_rest) for axis, size in wanted.items())


def _made_by(m: Match, value: Value, *kinds: str) -> list[Node] | None:
    """The nodes of ``kinds``, last first, that make ``value`` in the match's block; None if others do."""
    nodes: list[Node] = []
    for kind in kinds:
        node = value.made_by(kind)
        if node is None or node.block is not m.node.block:
            return None
        nodes.append(node)
        value = node.inputs[0]
    return nodes


def _asked(reshape: NodeTypes, axis: int) -> Dim:
    """What the target shape states for ``axis``."""
    target = reshape.numbers(1)
    return None if target is None else target[axis]


def _is_asked_for(m: Match, reshape: Node, axis: int, *wanted: Dim) -> bool:
    """Whether ``reshape``, if it succeeds, gives ``axis`` one of the sizes that are ``wanted``."""
    made, asked = m.size(reshape.output, axis), _asked(m.types_of(reshape), axis)
    found = (made,) if isinstance(made, int) else (made, asked)
    return any(size is not None and size in found for size in wanted)


@rewrite("Shape")
def shape_of_shared_heads(m: Match) -> Value | None:
    """The shape of repeated heads, taken without repeating them."""
    found = repeated(m, m.input())
    if found is None or not m.still_holds(*found.made_by):
        return None
    sizes = [
        m.new_constant(Tensor.of(np.array([found.heads])))
        if axis == 1
        else m.new("onnx::Shape", [found.source], _ONE_SIZE, {"start": axis, "end": axis + 1})
        for axis in range(4)[m.types.attr("start", 0) : m.types.attr("end")]
    ]
    return m.new("onnx::Concat", sizes, m.output.type, {"axis": 0}) if sizes else None


@rewrite("Reshape")
def transpose_of_heads_as_one(m: Match) -> Value | None:
    """A transposition of the last two axes between reshapes that merge and split the others."""
    nodes = _made_by(m, m.input(), "onnx::Transpose", "onnx::Reshape")
    if nodes is None or m.types.version < 5 or nodes[0].attributes.get("perm") != [0, 2, 1]:
        return None
    transpose, merge = nodes
    x = merge.inputs[0]
    own, rank = m.type_of(x).rank, m.output.type.rank
    if own is None or rank is None or min(own, rank) < 4 or (merge.version or 5) < 5:
        return None
    rows, width = m.size(x, own - 2), m.size(x, own - 1)
    asked = [(merge, 1, rows), (merge, 2, width), (m.node, rank - 2, width), (m.node, rank - 1, rows)]
    if not all(_is_asked_for(m, *each) for each in asked):
        return None
    if not m.can_share(x) or not m.still_holds(*nodes):
        return None
    first = [m.size(x, axis) for axis in range(rank - 2)] if own == rank else []
    # A 0 would copy a size of another axis, but for the first.
    stay = all(isinstance(size, int) and size for size in (*first[1:], width)) and bool(first)
    if not stay or not all(_is_asked_for(m, m.node, axis, size) for axis, size in enumerate(first)):
        shape = m.output.type.static_shape
        if shape is None or 0 in shape:
            return None
        plain = (*shape[:-2], shape[-1], shape[-2])
        target = m.new_constant(Tensor.of(np.array(plain)))
        x = m.new("onnx::Reshape", [x, target], TensorType(m.types.tensor(0).dtype, plain))
    perm = [*range(rank - 2), rank - 1, rank - 2]
    return m.new("onnx::Transpose", [x], m.output.type, {"perm": perm}, transpose.version)


# Softmax of scores that may all be masked, as PyTorch's exporters write it: ``where(isnan(s), 0, s)``.
#
# Masked scores are -inf, and the softmax of a row of nothing but -inf is NaN. Either all elements of a row are NaN or
# none is, so `irc::masked_softmax` need not look at all of them. When exported to ONNX, it is written as several
# operators again (`irc.frontend.onnx_export.decompositions`).


@rewrite("Where")
def masked_softmax(m: Match) -> Value | None:
    """0 where the result of a Softmax that nothing else uses is NaN."""
    condition, zero, found = m.node.inputs
    test, softmax = condition.made_by("onnx::IsNaN"), found.made_by("onnx::Softmax")
    if test is None or softmax is None or test.inputs[0] is not found or found.use_count != 2:
        return None
    number = one_number(zero)
    if number is None or number or math.copysign(1, number) < 0 or not m.type_of(found).rank:
        return None  # the number may have an axis
    if m.types_of(softmax).version < 13 or not m.still_holds_here([test, softmax]):
        return None
    return m.new(MASKED_SOFTMAX, [softmax.inputs[0]], m.output.type, {"axis": softmax.attributes.get("axis", -1)})


# Rotary position embeddings as PyTorch's exporters write them.
#
# ``cat((-x[..., n // 2:], x[..., :n // 2]), -1)`` is four operators, and ``stack((-x[..., 1::2], x[..., ::2]),
# -1).flatten(-2)`` is seven. Each becomes one `irc::rotate_half`, which copies once; many decoders have two of them in
# each layer. When exported to ONNX, it is written as several operators again
# (`irc.frontend.onnx_export.decompositions`).


@rewrite("Concat")
def rotated_halves(m: Match) -> Value | None:
    """The second half of the last axis, negated, before the first half."""
    rank = m.output.type.rank
    if len(m.node.inputs) != 2 or not rank or m.types.attr("axis", 1) not in (-1, rank - 1):
        return None
    return _rotated(m, m.node.inputs, [], interleaved=False)


@rewrite("Reshape")
def rotated_pairs(m: Match) -> Value | None:
    """The elements of each pair on the last axis exchanged, the second of them negated."""
    concat = m.input().made_by("onnx::Concat")
    rank = m.output.type.rank
    if concat is None or len(concat.inputs) != 2 or not rank or m.types_of(concat).attr("axis", 1) not in (-1, rank):
        return None
    columns = [value.made_by("onnx::Unsqueeze") for value in concat.inputs]
    found = [node for node in columns if node is not None and m.types_of(node).axes(1) in ([-1], [rank])]
    if len(found) != 2 or not m.is_fixed(m.output):  # which shares with what Concat makes
        return None
    return _rotated(m, [node.inputs[0] for node in found], [concat, *found], interleaved=True)


def _rotated(m: Match, parts: Sequence[Value], between: Sequence[Node], *, interleaved: bool) -> Value | None:
    """The operator, if both parts are slices of one value and the first of them is negated."""
    sign, first = parts[0].made_by("onnx::Neg"), parts[1].made_by("onnx::Slice")
    second = None if sign is None else sign.inputs[0].made_by("onnx::Slice")
    if sign is None or first is None or second is None or second.inputs[0] is not first.inputs[0]:
        return None
    x = first.inputs[0]
    width = m.size(x, -1) if m.type_of(x).rank else None
    if not isinstance(width, int) or width < 2 or width % 2 or (interleaved and not m.same_type(x)):
        return None  # the parts of Concat are as large as it is, but for its axis
    half = width // 2
    begin, step = (1, 2) if interleaved else (half, 1)
    if _begins(m, first, half, step) not in (0, -width) or _begins(m, second, half, step) not in (begin, begin - width):
        return None
    earlier = [sign, first, second, *between]
    attributes = {"interleaved": 1} if interleaved else {}
    return m.new(ROTATE_HALF, [x], m.output.type, attributes) if m.still_holds_here(earlier) else None


def _begins(m: Match, node: Node, count: int, step: int) -> int | None:
    """The start of ``node``, a slice of ``count`` positions of the last axis with that step; else None."""
    (starts, _, axes, steps), rank = m.types_of(node).slices(), m.type_of(node.inputs[0]).rank
    if starts is None or len(starts) != 1 or not rank or axes not in ([-1], [rank - 1]) or steps != [step]:
        return None
    start = starts[0]
    return start if isinstance(start, int) and m.size(node.output, -1) == count else None


# -- attention -----------------------------------------------------------------


_FLOATS = (DType.FLOAT, DType.DOUBLE, DType.FLOAT16, DType.BFLOAT16)

_FACTOR, _CAP, _TERM, _CHOICE = range(1, 5)
"""What may be done to scores, in this order."""

_BROADCASTING = 7
"""The version from which on arithmetic broadcasts as in NumPy."""

_ALONG_ONE_AXIS = 13
"""The version from which on Softmax goes along one axis, not along all from there on."""


class _Scores(NamedTuple):
    """Scores, and what is done to them.

    Attributes:
        product: the product of queries and keys.
        nodes: what follows, in order.
        scale: what the scores are multiplied with.
        softcap: their cap; 0: none.
        terms: what is added.
        mask: which of them count; None: all.
        fill: what the others become.
        excludes: whether the mask says which of them do not count.
    """

    product: Node
    nodes: tuple[Node, ...] = ()
    scale: float = 1.0
    softcap: float = 0.0
    terms: tuple[Value, ...] = ()
    mask: Value | None = None
    fill: float = 0.0
    excludes: bool = False

    def then(self, *nodes: Node, **changes: Any) -> _Scores:
        """These scores after ``nodes``."""
        return self._replace(nodes=(*self.nodes, *nodes), **changes)


_PRODUCTS = (MATMUL, "aten::matmul", "aten::bmm")
"""Products of matrices, one for each index of the axes before, which broadcast."""


@rewrite(*_PRODUCTS)
def attention(m: Match) -> Value | None:
    """The product of weights, which a softmax makes of scores, with values."""
    if not _is_product(m, m.node):
        return None
    weights, value = m.node.inputs
    dtype, rank = m.type_of(value).dtype, m.type_of(value).rank
    if dtype not in _FLOATS or not rank or rank < 2 or is_constant(value):
        return None
    nodes: list[Node] = []
    softmax = _maker(m, weights)
    if softmax is not None and softmax.kind == "onnx::Cast":
        nodes.append(softmax)
        softmax = _maker(m, softmax.inputs[0])
    if softmax is None or not _goes_along_rows(m, softmax):
        return None
    nodes.append(softmax)
    found = _scores(m, softmax.inputs[0], _CHOICE)
    if found is None:
        return None
    query, key = found.product.inputs
    ranks = [m.type_of(v).rank or 0 for v in (query, key)]
    if min(ranks) < 2 or any(m.type_of(v).dtype is not dtype or is_constant(v) for v in (query, key)):
        return None
    if any(map(is_dequantised, (query, key, value))):
        return None  # a runtime may compute the products with integers
    if not _is_of_one_type(m, found, [*nodes, m.node]):
        return None
    if not m.still_holds_here([found.product, *found.nodes, *nodes]):
        return None
    attributes: dict[str, Any] = {"scale": found.scale}
    if found.softcap:
        attributes["softcap"] = found.softcap
    if softmax.kind == MASKED_SOFTMAX:
        attributes["zero_rows"] = "nan"
    if found.mask is not None and found.fill != -math.inf:
        attributes["fill"] = found.fill
    inputs = [query, _transposed(m, key, ranks[1]), value, *_masks(m, found)]
    return m.new(ATTENTION, inputs, m.output.type, attributes)


def _is_product(m: Match, node: Node) -> bool:
    """Whether ``node`` multiplies as NumPy does: `bmm` broadcasts no batches and may be told a type."""
    if node.kind != "aten::bmm":
        return True
    first, second = (m.size(x, 0) if m.type_of(x).rank else None for x in node.inputs[:2])
    return len(node.inputs) == 2 and first is not None and first == second


def _is_of_one_type(m: Match, found: _Scores, others: list[Node]) -> bool:
    """Whether PyTorch's operators convert neither operands nor results."""
    nodes = [found.product, *found.nodes, *others]
    if not any(node.kind.startswith("aten::") for node in nodes):
        return True
    types = {m.type_of(v).dtype for v in (*[node.output for node in nodes], *found.terms)}
    return len(types) == 1 and (found.mask is None or m.type_of(found.mask).dtype is DType.BOOL)


def _maker(m: Match, value: Value) -> Node | None:
    """What makes ``value`` in the block of the match; None if it has other uses, too."""
    node = value.node
    return node if node is not None and node.block is m.node.block and is_needed_once(value) else None


def _goes_along_rows(m: Match, node: Node) -> bool:
    """Whether ``node`` is a softmax along the last axis alone."""
    if node.kind == "aten::softmax":
        axis = constant_value(node.inputs[1])
        return axis == -1 or axis == (m.type_of(node.inputs[0]).rank or 0) - 1
    if node.kind not in ("onnx::Softmax", MASKED_SOFTMAX):
        return False
    is_old = node.kind != MASKED_SOFTMAX and (node.version or _ALONG_ONE_AXIS) < _ALONG_ONE_AXIS
    axis, rank = node.attributes.get("axis", 1 if is_old else -1), m.type_of(node.inputs[0]).rank
    return axis == -1 or (rank is not None and axis == rank - 1)


def _scores(m: Match, value: Value, stage: int) -> _Scores | None:
    """How ``value`` comes from a matrix product by steps allowed up to ``stage``; None if it does not."""
    node = _maker(m, value)
    if node is None:
        return None
    if node.kind in _PRODUCTS:
        return _Scores(node) if _is_product(m, node) else None
    rule = _STEPS.get(node.kind)
    is_old = node.kind != "onnx::Cast" and (node.version or _BROADCASTING) < _BROADCASTING
    return None if rule is None or is_old else rule(m, node, stage)


def _of_cast(m: Match, node: Node, stage: int) -> _Scores | None:
    """To a type that is wide enough: all is computed in one."""
    if m.type_of(node.output).dtype not in _FLOATS[:2] or m.type_of(node.inputs[0]).dtype not in _FLOATS:
        return None
    found = _scores(m, node.inputs[0], stage)
    return found and found.then(node)


def _of_choice(m: Match, node: Node, stage: int) -> _Scores | None:
    if stage < _CHOICE or len(node.inputs) != 3:
        return None
    condition, first, second = node.inputs
    if node.kind == "aten::masked_fill":
        condition, first, second = first, second, condition
    for scores, other, excludes in ((first, second, False), (second, first, True)):
        fill = _number(m, other, node)
        found = None if fill is None or math.isnan(fill) else _scores(m, scores, _TERM)
        if found is not None:
            return found.then(node, mask=condition, fill=fill, excludes=excludes)
    return None


def _of_sum(m: Match, node: Node, stage: int) -> _Scores | None:
    first, second, *factor = node.inputs
    if stage < _TERM or (factor and constant_value(factor[0]) != 1):
        return None
    for scores, other in ((first, second), (second, first)):
        found = _scores(m, scores, _TERM)
        if found is not None:
            return found.then(node, terms=(*found.terms, other))
    return None


def _of_product(m: Match, node: Node, stage: int) -> _Scores | None:
    first, second = node.inputs
    for scores, other in ((first, second), (second, first)):
        factor = _number(m, other, node)
        if factor is None:
            continue
        tanh = _maker(m, scores)
        if tanh is not None and tanh.kind in ("onnx::Tanh", "aten::tanh"):
            return _capped(m, node, tanh, factor) if stage >= _CAP else None
        found = _scores(m, scores, _FACTOR)
        if found is not None:
            return found.then(node, scale=found.scale * factor)
    return None


def _capped(m: Match, node: Node, tanh: Node, cap: float) -> _Scores | None:
    """``cap * tanh(scores / cap)``."""
    divided = _scores(m, tanh.inputs[0], _FACTOR)
    if divided is None or not cap > 0:
        return None
    return divided.then(tanh, node, scale=divided.scale * cap, softcap=cap)


def _of_quotient(m: Match, node: Node, stage: int) -> _Scores | None:
    if len(node.inputs) != 2:
        return None  # it is rounded
    divisor = _number(m, node.inputs[1], node)
    found = _scores(m, node.inputs[0], _FACTOR) if divisor else None
    return found and found.then(node, scale=found.scale / (divisor or 1))


_STEPS = {
    "aten::add": _of_sum,
    "aten::div": _of_quotient,
    "aten::masked_fill": _of_choice,
    "aten::mul": _of_product,
    "aten::where": _of_choice,
    "onnx::Add": _of_sum,
    "onnx::Cast": _of_cast,
    "onnx::Div": _of_quotient,
    "onnx::Mul": _of_product,
    "onnx::Where": _of_choice,
}


def _number(m: Match, value: Value, node: Node) -> float | None:
    """``value`` if it is one number that adds no axis to ``node``'s result, matrices; else None."""
    content = constant_value(value)
    if type(content) in (int, float):
        return float(content)
    tensor = constant_tensor(value)
    if tensor is None or tensor.numel != 1 or len(tensor.shape) > (m.type_of(node.output).rank or 2):
        return None
    return float(tensor.scalar)


def _transposed(m: Match, value: Value, rank: int) -> Value:
    """``value`` with its last two axes in the other order."""
    perm = [*range(rank - 2), rank - 1, rank - 2]
    transpose = value.node
    if transpose is not None and _permutation(transpose, rank) == perm and m.still_holds_here([transpose]):
        return transpose.inputs[0]
    shape = value.type.shape
    type = TensorType(value.type.dtype, shape and (*shape[:-2], shape[-1], shape[-2]))
    version = None if type.dtype is DType.BFLOAT16 else 1  # the first one, so that exports are free to choose an opset
    return m.new("onnx::Transpose", [value], type, {"perm": perm}, version)


def _permutation(node: Node, rank: int) -> list[int] | None:
    """The order in which ``node`` puts the ``rank`` axes of its operand; None if it does more."""
    if node.kind == "onnx::Transpose":
        return node.attributes.get("perm")
    if node.kind != "aten::transpose":
        return None
    axes = [constant_value(v) for v in node.inputs[1:]]
    if not all(isinstance(axis, int) and -rank <= axis < rank for axis in axes):
        return None
    perm, (first, second) = [*range(rank)], axes
    perm[first], perm[second] = perm[second], perm[first]
    return perm


def _masks(m: Match, found: _Scores) -> list[Value]:
    """The operator's inputs for what is added to scores, and for which of them count."""
    bias: Value | None = None
    version = next((node.version for node in found.nodes if node.kind == "onnx::Add"), None)  # none of PyTorch's
    for term in found.terms:
        type = TensorType(term.type.dtype)
        bias = term if bias is None else m.new("onnx::Add", [bias, term], type, version=version)
    if found.mask is None:
        return [] if bias is None else [bias]
    mask = found.mask
    if found.excludes:
        mask = m.new("onnx::Not", [mask], TensorType(DType.BOOL, mask.type.shape))
    return [m.new(CONSTANT, [], NONE) if bias is None else bias, mask]


_MOST_MOVES = 8
"""How many operators between a scale and the product are looked at."""

_LEAST = 2.0**-12
"""Smaller factors may take bits from small numbers, where they are moved to; scales of attention are not so small."""

_SCALED_TYPES = (DType.FLOAT, DType.DOUBLE)
"""Results in half precision depend too much on where they are rounded."""


class _Scaled(NamedTuple):
    """``moved(source * factor)``; no part of it has another use."""

    source: Value
    factor: float
    moved: list[Node]


def _scaled(m: Match, value: Value) -> _Scaled | None:
    """How ``value`` is a product with a single number; None if it is not."""
    moved: list[Node] = []
    for _ in range(_MOST_MOVES):
        node = value.node
        if node is None or not is_needed_once(value) or node.block is not m.node.block or not m.still_holds(node):
            return None
        if record(node.kind).movement not in REARRANGING:
            break  # others would come before a scale at another cost than after it
        moved.append(node)
        value = node.inputs[0]
    else:
        return None
    if node.kind != "onnx::Mul" or (node.version or 7) < 7:
        return None
    for source, number in (node.inputs, node.inputs[::-1]):
        tensor = constant_tensor(number)
        if tensor is None or tensor.numel != 1 or is_constant(source):
            continue
        type = m.type_of(source)
        if type.dtype in _SCALED_TYPES and len(tensor.shape) <= (type.rank or 0):
            return _Scaled(source, float(tensor.scalar), moved)
    return None


@rewrite(ATTENTION)
def scale_of_attention(m: Match) -> Value | None:
    """What scales queries, or keys, scales scores as well."""
    scale: Any = m.types.attr("scale")
    if scale is None:
        width = m.size(m.input(), -1) if m.type_of(m.input()).rank else None
        if not isinstance(width, int) or not width:
            return None
        scale = width**-0.5
    for index in (0, 1):
        found = _scaled(m, m.input(index))
        # Scores that are scaled by less might have overflown before.
        if found is None or not abs(scale * found.factor) >= _LEAST:
            continue
        plain = found.source
        for node in reversed(found.moved):
            plain = m.new(node.kind, [plain, *node.inputs[1:]], node.output.type, dict(node.attributes), node.version)
        inputs = [*m.node.inputs]
        inputs[index] = plain
        return m.new(ATTENTION, inputs, m.output.type, {**m.node.attributes, "scale": scale * found.factor})
    return None


@rewrite(ATTENTION)
def attention_of_shared_heads(m: Match) -> Value | None:
    """Keys and values that are repeated for the heads that share them need not be."""
    if m.types.attr("grouped"):
        return None
    query, key, value, *masks = m.node.inputs
    keys, values = repeated(m, key), repeated(m, value)
    if keys is None or values is None or (keys.shared, keys.heads) != (values.shared, values.heads):
        return None
    if m.type_of(query).rank != 4 or m.size(query, 1) != keys.heads:
        return None
    if not m.still_holds(*keys.made_by, *values.made_by):
        return None
    inputs = [query, keys.source, values.source, *masks]
    return m.new(ATTENTION, inputs, m.output.type, {**m.node.attributes, "grouped": 1})
