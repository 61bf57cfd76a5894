"""Sequences and optional values."""

from __future__ import annotations

from irc.ir.types import DType, ListType, OptionalType, TensorType, Type
from irc.ops import Family, checks, sizes
from irc.ops.inference import NodeTypes

FAMILY = Family(
    "onnx",
    """
    onnx::Optional(t(a)? input=None) -> t(a)?
    onnx::OptionalGetElement(t(a)? input) -> t(a)
    onnx::SequenceConstruct(t(a) inputs, ...) -> t(a)[]
    onnx::SequenceAt(t(a)[] input_sequence, Tensor position) -> t(a)
    onnx::SequenceInsert(t(a)[] input_sequence, t(b) tensor, Tensor? position=None) -> t(a|b)[]
    onnx::SequenceErase(t(a)[] input_sequence, Tensor? position=None) -> t(a)[]
    onnx::SplitToSequence(Tensor(a) input, Tensor? split=None) -> Tensor(a)[]
    """,
)
FAMILY.each(
    "Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty SequenceErase "
    "SequenceInsert SequenceLength ConcatFromSequence SplitToSequence",
    value_operands=None,
    kernel="sequence",
)
FAMILY.each("ConcatFromSequence", requires=(checks.flags("new_axis"),), size=sizes.listed)
FAMILY.each("SplitToSequence", requires=(checks.rank("split", 1, 0, 1),))


@FAMILY.shape("SequenceConstruct")
def sequence_construct(c: NodeTypes) -> Type:
    types = [c.type(i) for i in range(len(c.node.inputs))]
    return ListType(types[0] if len(set(types)) == 1 else TensorType(c.dtype(0)))


FAMILY.shape("SequenceEmpty")(lambda c: ListType(TensorType(DType.from_onnx(c.attr("dtype", 1)))))


@FAMILY.shape("SequenceInsert")
def sequence_insert(c: NodeTypes) -> Type:
    element, inserted = c.element(0), c.type(1)
    return ListType(element if element == inserted else TensorType(c.dtype(1)))


FAMILY.shape("SequenceErase")(lambda c: c.type(0))
FAMILY.shape("SequenceAt")(lambda c: c.element(0))
FAMILY.shape("SequenceLength")(lambda c: TensorType(DType.INT64, ()))
FAMILY.shape("SplitToSequence")(lambda c: ListType(TensorType(c.dtype(0))))


@FAMILY.requires("SplitToSequence")
def check_split_to_sequence(c: NodeTypes) -> None:
    x, split = c.shape(0), c.ints(1)
    if x is None:
        return
    whole = x[c.axis(c.attr("axis", 0), len(x))]
    if split is None or not isinstance(whole, int):
        return
    if c.shape(1) == ():
        if split[0] <= 0:
            c.fail(f"parts must have 1 or more, not {split[0]}")
    elif sum(split) != whole:
        c.fail(f"parts {split} do not add up to {whole}")


FAMILY.shape("ConcatFromSequence")(lambda c: TensorType(c.element(0).dtype))


@FAMILY.requires("ConcatFromSequence")
def check_concat_from_sequence(c: NodeTypes) -> None:
    shape, axis = c.element(0).shape, c.attr("axis")
    if shape is not None and axis is not None:
        c.axis(axis, len(shape) + (c.attr("new_axis", 0) == 1))


@FAMILY.shape("Optional")
def optional(c: NodeTypes) -> Type:
    given = c.type(0) if c.has(0) else c.attr("type")  # the attribute is the type of what the optional may hold
    return OptionalType(given if isinstance(given, Type) else TensorType())


@FAMILY.shape("OptionalGetElement")
def optional_get_element(c: NodeTypes) -> Type:
    found = c.type(0)
    return found.elem if isinstance(found, OptionalType) else found


FAMILY.shape("OptionalHasElement")(lambda c: TensorType(DType.BOOL, ()))
