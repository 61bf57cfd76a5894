"""Finds what the elements of inputs may be by looking at the operators that read them.

An input is followed through operators that only move its elements (Cast, Reshape, Concat...), that add a constant, into
branches, loops, functions and fusion groups. At each other operator, `READERS` says what its operand must be: indices
lie within what they index, a shape is one that the operator accepts. Sizes come from the types in the graph, which
should be as exact as inference makes them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from irc.ir import DType, Graph, Node, Shape, TensorType, Value, constant_tensor, one_number
from irc.ir.kinds import CALL, GROUP, IF, LOOPS, ONNX_LOOP
from irc.ir.region_flow import callee, inner_graph, slots
from irc.ops import records
from irc.ops.record import MOVING
from irc.tools.random_inputs.draw import Domain

SMALL_SHAPE = 64
"""The most elements of tensors that may be shapes, axes, sizes or pads."""

_DATA_MOVEMENT = (
    {each.kind for each in records("onnx") if each.movement in MOVING}
    | {f"onnx::{name}" for name in "Cast CastLike Dropout Gather GatherElements GatherND Pad".split()}
    | {
        f"aten::{name}"
        for name in (
            "clone contiguous detach expand flatten movedim permute repeat reshape select slice squeeze t to transpose "
            "unsqueeze view"
        ).split()
    }
)
"""Operators whose results are elements of the first operand."""

_REDUCTIONS = frozenset(f"onnx::Reduce{name}" for name in "L1 L2 Max Mean Min Prod Sum SumSquare".split())
_LOGARITHMIC = frozenset({"onnx::ReduceLogSum", "onnx::ReduceLogSumExp"})


_COMPUTING = {each.kind for each in records() if each.pointwise or each.result_type is not None} | _REDUCTIONS
"""Operators that take any numbers."""


class Flow(NamedTuple):
    """Elements of an input, plus ``offset``, at an operand of ``node``."""

    node: Node
    operand: int
    offset: int

    @property
    def operands(self) -> tuple[Value, ...]:
        return self.node.inputs

    def shape(self, operand: int) -> Shape | None:
        """The shape of another operand."""
        return self.operands[operand].type.shape if operand < len(self.operands) else None

    def size(self, operand: int, axis: int) -> int | None:
        """The size of another operand along ``axis``; None if it is not known."""
        shape = self.shape(operand)
        if shape is None or not -len(shape) <= axis < len(shape):
            return None
        size = shape[axis]
        return size if isinstance(size, int) else None

    def attribute(self, name: str, default: int) -> int:
        value = self.node.attributes.get(name, default)
        return value if isinstance(value, int) else default

    def axis(self, axis: int | str, default: int) -> int:
        """An axis, or the value of the attribute of that name."""
        return axis if isinstance(axis, int) else self.attribute(axis, default)

    def few(self) -> int | None:
        """How many elements the operand has, if it is small."""
        shape = self.shape(self.operand)
        if shape is None or not all(isinstance(d, int) for d in shape):
            return None
        count = math.prod(d for d in shape if isinstance(d, int))
        return count if count <= SMALL_SHAPE else None


Reader = Callable[[Flow, Domain], None]
"""Narrows what elements may be by what an operator requires of them at an operand."""

Elements = Callable[[Flow, int], "list[float] | None"]
"""The elements of a small tensor, from their number."""


def domains(graph: Graph) -> dict[str, Domain]:
    """What the elements of each input of ``graph`` may be, by name."""
    return {value.name: domain_of(value) for value in graph.inputs if isinstance(value.type, TensorType)}


def domain_of(value: Value) -> Domain:
    """What the elements of ``value``, an input, may be."""
    domain = Domain()
    name = value.name.lower()
    for flow in _flows(value):
        kind = flow.node.kind
        reader = READERS.get((kind, flow.operand))
        if reader is not None:
            reader(flow, domain)
            domain.is_arithmetic = False
        elif kind not in _COMPUTING and kind not in _DATA_MOVEMENT and not flow.node.is_return:
            domain.is_arithmetic = False
        else:
            _note_arithmetic(flow, domain)
    if "mask" in name and domain.bounds is None and domain.elements is None:
        domain.is_mask = True
    return domain


def _flows(value: Value) -> Iterator[Flow]:
    """Where the elements of ``value`` get to."""
    pending: list[tuple[Value, int]] = [(value, 0)]
    seen = {value}
    callers: dict[Graph, list[Node]] = {}
    while pending:
        at, offset = pending.pop()
        for user, operand in at.uses:
            yield Flow(user, operand, offset)
            for target, added in _forwarded(user, operand, callers):
                if target not in seen:
                    seen.add(target)
                    pending.append((target, offset + added))


def _forwarded(node: Node, operand: int, callers: dict[Graph, list[Node]]) -> Iterator[tuple[Value, int]]:
    """The values that have the elements of an operand of ``node``, and what was added to them.

    ``callers`` has the nodes through which graphs were entered: fusion groups and calls.
    """
    kind = node.kind
    if kind in _DATA_MOVEMENT and operand == 0:
        yield from ((output, 0) for output in node.outputs)
    elif (
        kind in ("onnx::Concat", "onnx::Max", "onnx::Min")
        or (kind in ("onnx::Where", "aten::where") and operand > 0)
        or (kind in ("onnx::Clip",) and operand == 0)
    ):
        yield node.outputs[0], 0
    elif kind in ("onnx::Add", "onnx::Sub", "aten::add", "aten::sub") and len(node.inputs) > 1:
        other = one_number(node.inputs[1 - operand]) if operand < 2 else None
        if other is not None and other == int(other) and (operand == 0 or kind.endswith("dd")):
            yield node.outputs[0], int(other) if kind.endswith("dd") else -int(other)
    elif kind in (GROUP, CALL):
        first = int(kind == CALL)  # what is called comes first
        called = _called(node)
        if called is not None and first <= operand < len(called.inputs) + first:
            callers.setdefault(called, []).append(node)
            yield called.inputs[operand - first], 0
    elif kind in LOOPS:
        for slot in slots(node) or ():
            if slot.input == operand:
                if slot.param is not None:
                    yield node.blocks[0].params[slot.param], 0
                if slot.output is not None:
                    yield node.outputs[slot.output], 0
    elif node.is_return and node.outer is not None:
        outer = node.outer
        if outer.kind == IF:
            yield outer.outputs[operand], 0
        elif outer.kind in LOOPS:
            for slot in slots(outer) or ():
                if slot.returned == operand and slot.output is not None:
                    yield outer.outputs[slot.output], 0
    elif node.is_return:
        yield from ((caller.outputs[operand], 0) for caller in callers.get(node.graph, ()))


def _called(node: Node) -> Graph | None:
    """The graph that a fusion group or a call runs."""
    if node.kind == GROUP:
        return inner_graph(node)
    name, module = callee(node), node.graph.module
    return None if name is None or module is None else module.graphs.get(name)


# -- what operands must be -----------------------------------------------------


def _index(data: int, axis: int | str, default: int = 0) -> Reader:
    """A reader of indices into operand ``data`` along an axis, which an attribute may name."""
    return lambda flow, domain: _within(flow.size(data, flow.axis(axis, default)), flow, domain)


def _within(size: int | None, flow: Flow, domain: Domain) -> None:
    """Indices into ``size`` positions; if that is not known, the first one, which all have that have any."""
    domain.between(-flow.offset, (1 if size is None else max(size, 1)) - 1 - flow.offset)


def _torch_index(data: int, axis: int) -> Reader:
    """A reader of indices along the axis that operand ``axis`` says."""

    def narrow(flow: Flow, domain: Domain) -> None:
        at = one_number(flow.operands[axis])
        node = flow.operands[axis].node
        value = node.attributes.get("value") if node is not None else None
        along = int(at) if at is not None else value if isinstance(value, int) else None
        _within(None if along is None else flow.size(data, along), flow, domain)

    return narrow


def _scattered(flow: Flow, domain: Domain) -> None:
    axis = flow.attribute("axis", 0)
    _within(flow.size(0, axis), flow, domain)
    domain.distinct = axis


def _coordinates(first: int | str) -> Reader:
    """A reader of coordinates: the last axis indexes the data's axes from ``first`` on."""

    def narrow(flow: Flow, domain: Domain) -> None:
        start = flow.axis(first, 0)
        many = flow.size(flow.operand, -1)
        shape = flow.shape(0) or ()
        sizes = [flow.size(0, i) for i in range(start, min(len(shape), start + (many or 1)))]
        known = [size for size in sizes if size is not None]
        _within(min(known) if known and len(known) == len(sizes) else None, flow, domain)
        if flow.node.kind == "onnx::ScatterND":
            domain.distinct = 0

    return narrow


def _up_to(data: int, axis: int | str, low: int = 1, default: int = -1) -> Reader:
    """A reader of lengths: from ``low`` to the size of operand ``data`` along an axis."""
    return lambda flow, domain: domain.between(low, max(low, flow.size(data, flow.axis(axis, default)) or low))


def _between(low: int, high: int) -> Reader:
    return lambda flow, domain: domain.between(low, high)


def _all_elements(elements: Elements) -> Reader:
    """A reader of a small tensor as a whole, from the number of its elements."""

    def narrow(flow: Flow, domain: Domain) -> None:
        count = flow.few()
        found = None if count is None else elements(flow, count)
        if found is not None and count is not None and domain.elements is None:
            domain.elements = [float(x) for x in (found + [found[-1] if found else 1.0] * count)[:count]]
        elif domain.elements is None:
            domain.between(1, 2)

    return narrow


def _known(shape: Shape | None) -> list[int]:
    return [size if isinstance(size, int) else 1 for size in shape or ()]


def _target(flow: Flow, count: int) -> list[float] | None:
    """A shape with as many elements as the data: its own, or all along the first axis."""
    sizes = _known(flow.shape(0))
    return list(map(float, sizes)) if len(sizes) == count else [-1.0] + [1.0] * (count - 1)


def _broadcast(flow: Flow, count: int) -> list[float] | None:
    """A shape that the data broadcasts to."""
    sizes = _known(flow.shape(0))
    wide = [2] * max(0, count - len(sizes)) + sizes[max(0, len(sizes) - count) :]
    return [float(size) for size in wide]


def _reshaped_image(flow: Flow, count: int) -> list[float] | None:
    """Sizes twice as large as the data, but for the first two axes."""
    sizes = _known(flow.shape(0))
    skipped = max(0, count - max(0, len(sizes) - 2))
    return [float(s) if i < skipped else 2.0 * s for i, s in enumerate(sizes[len(sizes) - count :])] or None


def _scales(flow: Flow, count: int) -> list[float] | None:
    rank = len(flow.shape(0) or ())
    skipped = max(0, count - max(0, rank - 2))
    return [1.0] * skipped + [2.0] * (count - skipped)


def _axes(flow: Flow, count: int) -> list[float] | None:
    rank = len(flow.shape(0) or ())
    return [float(i) for i in range(max(0, rank - count), rank)] or [0.0]


def _single_axes(flow: Flow, count: int) -> list[float] | None:
    """Axes of size 1."""
    return [float(i) for i, size in enumerate(flow.shape(0) or ()) if size == 1] or None


def _parts(flow: Flow, count: int) -> list[float] | None:
    size = flow.size(0, flow.attribute("axis", 0))
    if size is None:
        return None
    part, rest = divmod(size, max(count, 1))
    return [float(part)] * (count - 1) + [float(part + rest)]


def _grid(flow: Flow, count: int) -> list[float] | None:
    """The shape of the images that a grid is for: as many as there are matrices."""
    return [float(flow.size(0, 0) or 1), 1.0, *[2.0, 3.0, 4.0][: count - 2]]


def _image(flow: Flow, count: int) -> list[float] | None:
    """The sizes of an image that has one block of one element for each of the columns given."""
    return [1.0] * (count - 1) + [float(flow.size(0, -1) or 1)]


def _same(*numbers: float) -> Elements:
    return lambda flow, count: [float(numbers[i % len(numbers)]) for i in range(count)]


def _one(low: float) -> Reader:
    """A reader of one number."""

    def narrow(flow: Flow, domain: Domain) -> None:
        domain.elements = [low] if domain.elements is None and flow.few() == 1 else domain.elements

    return narrow


def _positive(flow: Flow, domain: Domain) -> None:
    domain.is_positive = True
    if domain.low is None or domain.low < 1:
        dtype = flow.operands[flow.operand].type.dtype
        if dtype is not None and dtype.is_integer:
            domain.low = 1
            domain.high = 7 if domain.high is None else domain.high


def _zero_point(flow: Flow, domain: Domain) -> None:
    """Of floats, the standard allows none but 0."""
    dtype = flow.operands[flow.operand].type.dtype
    if dtype is not None and dtype.is_float:
        domain.between(0, 0)


def _masking(flow: Flow, domain: Domain) -> None:
    domain.is_mask = True


def _cast(flow: Flow, domain: Domain) -> None:
    if flow.node.attributes.get("to") == DType.BOOL.onnx:
        domain.is_mask = True


def _compared(flow: Flow, domain: Domain) -> None:
    other = constant_tensor(flow.operands[1 - flow.operand]) if len(flow.operands) == 2 else None
    if other is not None and other.numel == 1:
        number = float(other.scalar) - flow.offset
        if math.isfinite(number) and number == int(number):
            domain.compared.append(int(number))


def _subtracted(flow: Flow, domain: Domain) -> None:
    if one_number(flow.operands[0]) == 1:
        domain.is_mask = True


def _note_arithmetic(flow: Flow, domain: Domain) -> None:
    reader = ARITHMETIC.get((flow.node.kind, flow.operand))
    if reader is not None:
        reader(flow, domain)


def _table(*rows: tuple[Reader, str]) -> dict[tuple[str, int], Reader]:
    """(operator, operand) -> reader, for readers of operands like ``Pad.1`` (of ``onnx::Pad``)."""
    found: dict[tuple[str, int], Reader] = {}
    for reader, operands in rows:
        for name, _, number in (each.rpartition(".") for each in operands.split()):
            found[name if "::" in name else f"onnx::{name}", int(number)] = reader
    return found


ARITHMETIC = _table(
    (_cast, "Cast.0"),
    (_positive, "Div.1 Log.0 Mod.1 Reciprocal.0 Sqrt.0 aten::div.1"),
    (_positive, "aten::log.0 aten::sqrt.0 aten::rsqrt.0 aten::reciprocal.0 aten::log2.0 aten::log10.0"),
    (_subtracted, "Sub.1"),
    (_masking, "Where.0 aten::where.0"),
    (_compared, "Equal.0 Equal.1 Greater.0 Greater.1 GreaterOrEqual.0 GreaterOrEqual.1 Less.0 Less.1"),
    (_between(0, 3), "BitShift.1 Pow.1"),
)
"""What pointwise operators make of an operand: they take any, but not all results tell anything."""

READERS = _table(
    (_index(0, "axis"), "Gather.1 GatherElements.1"),
    (_index(0, -1), "ai.onnx.ml::ArrayFeatureExtractor.1"),
    (_index(0, 0), "RoiAlign.2 aten::embedding.1 aten::embedding_bag.1"),
    (_index(0, 1), "NegativeLogLikelihoodLoss.1 SoftmaxCrossEntropyLoss.1 aten::nll_loss.1 aten::cross_entropy_loss.1"),
    (_index(1, 0), "RotaryEmbedding.3"),
    (_torch_index(0, 1), "aten::index_select.2 aten::gather.2 aten::scatter.2 aten::scatter_add.2"),
    (_scattered, "Scatter.1 ScatterElements.1"),
    (_coordinates("batch_dims"), "GatherND.1"),
    (_coordinates(0), "ScatterND.1"),
    (_up_to(0, "axis"), "TopK.1"),
    (_up_to(0, "time_axis", default=0), "ReverseSequence.1"),
    (_up_to(0, 0), "RNN.4 GRU.4 LSTM.4"),
    (_up_to(1, -2), "Attention.6"),
    (_between(0, 0), "TensorScatter.2 SequenceAt.1 SequenceInsert.2 SequenceErase.1 aten::take.1"),
    (_between(0, 1), "OneHot.0"),
    (_between(0, 3), "aten::one_hot.0"),
    (_between(-1, 1), "Trilu.1"),
    (_one(0.0), "CumSum.1 CumProd.1 Range.0 MelWeightMatrix.3 Dropout.2"),
    (_one(0.1), "NonMaxSuppression.4"),
    (_one(0.5), "NonMaxSuppression.3 Dropout.1"),
    (_one(1.0), f"DFT.2 Range.2 {ONNX_LOOP}.1"),
    (_one(2.0), "STFT.1"),
    (_one(3.0), f"NonMaxSuppression.2 {ONNX_LOOP}.0"),
    (_one(4.0), "OneHot.1 DFT.1 STFT.3 MelWeightMatrix.0"),
    (_one(5.0), "Range.1"),
    (_one(16.0), "MelWeightMatrix.1"),
    (_one(8000.0), "MelWeightMatrix.4"),
    (_one(16000.0), "MelWeightMatrix.2"),
    (_positive, "DequantizeLinear.1 QuantizeLinear.1 BatchNormalization.4"),
    (_zero_point, "DequantizeLinear.2 QuantizeLinear.2"),
    (_all_elements(_target), "Reshape.1"),
    (_all_elements(_broadcast), "Expand.1"),
    (_all_elements(_scales), "Resize.2 Upsample.1"),
    (_all_elements(_reshaped_image), "Resize.3 CenterCropPad.1"),
    (_all_elements(_grid), "AffineGrid.1"),
    (_all_elements(_image), "Col2Im.1"),
    (_all_elements(_parts), "Split.1 SplitToSequence.1"),
    (_all_elements(_single_axes), "Squeeze.1"),
    (_all_elements(lambda flow, count: [float(i) for i in range(count)]), "Pad.3 Unsqueeze.1"),
    (_all_elements(_axes), f"Slice.3 {' '.join(f'{kind}.1' for kind in sorted(_REDUCTIONS | _LOGARITHMIC))}"),
    (_all_elements(_same(0)), "Slice.1"),
    (_all_elements(_same(0, 1)), "Pad.1"),
    (_all_elements(_same(1)), "Col2Im.2 Slice.4"),
    (_all_elements(_same(1, 2)), "Tile.1"),
    (_all_elements(_same(2, 1)), "Slice.2"),
    (_all_elements(_same(2, 3, 1)), "ConstantOfShape.0"),
)
"""What operators require of an operand. (Graph's own operators, such as `ONNX_LOOP`, too.)"""
