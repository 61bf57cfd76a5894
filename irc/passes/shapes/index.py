"""Shape rules of reductions, gathering, selection, sequences and optionals."""

from __future__ import annotations

from irc.ir.types import Dim, DType, ListType, OptionalType, TensorType, Type
from irc.ops.inference import NodeTypes
from irc.ops.shape_rules import shape_rule

_REDUCTIONS = "Sum Mean Max Min Prod L1 L2 LogSum LogSumExp SumSquare".split()


@shape_rule(*(f"Reduce{name}" for name in _REDUCTIONS))
def reduce(c: NodeTypes) -> Type:
    x, axes, keep = c.shape(0), c.axes(1), c.attr("keepdims", 1)
    if x is None:
        return TensorType(c.dtype(0))
    if axes is None and c.has(1):
        return TensorType(c.dtype(0), (None,) * len(x) if keep else None)
    if not axes and c.attr("noop_with_empty_axes", 0):
        return c.type(0)
    gone = {c.axis(a, len(x)) for a in axes} if axes else set(range(len(x)))
    if keep:
        return TensorType(c.dtype(0), tuple(1 if i in gone else d for i, d in enumerate(x)))
    return TensorType(c.dtype(0), tuple(d for i, d in enumerate(x) if i not in gone))


@shape_rule("ArgMax", "ArgMin")
def arg_reduce(c: NodeTypes) -> Type:
    x = c.shape(0)
    if x is None:
        return TensorType(DType.INT64)
    axis = c.axis(c.attr("axis", 0), len(x))
    kept: tuple[Dim, ...] = (1,) if c.attr("keepdims", 1) else ()
    return TensorType(DType.INT64, (*x[:axis], *kept, *x[axis + 1 :]))


@shape_rule("Gather")
def gather(c: NodeTypes) -> Type:
    x, indices = c.shape(0), c.shape(1)
    if x is None or indices is None:
        return TensorType(c.dtype(0))
    axis = c.axis(c.attr("axis", 0), len(x))
    return TensorType(c.dtype(0), (*x[:axis], *indices, *x[axis + 1 :]))


@shape_rule("GatherElements")
def gather_elements(c: NodeTypes) -> Type:
    return TensorType(c.dtype(0), c.shape(1))


@shape_rule("GatherND")
def gather_nd(c: NodeTypes) -> Type:
    x, indices = c.shape(0), c.shape(1)
    if x is None or not indices or not isinstance(indices[-1], int):
        return TensorType(c.dtype(0))
    batch = c.attr("batch_dims", 0)
    if batch + indices[-1] > len(x):
        c.fail(f"index vectors of {indices[-1]} elements do not fit rank {len(x)}")
    return TensorType(c.dtype(0), (*indices[:-1], *x[batch + indices[-1] :]))


@shape_rule("TopK")
def top_k(c: NodeTypes) -> list[Type]:
    x = c.shape(0)
    if x is None:
        return [TensorType(c.dtype(0)), TensorType(DType.INT64)]
    axis = c.axis(c.attr("axis", -1), len(x))
    given = c.ints(1) if c.version >= 10 else [c.attr("k")]
    out = (*x[:axis], given[0] if given else None, *x[axis + 1 :])
    return [TensorType(c.dtype(0), out), TensorType(DType.INT64, out)]


@shape_rule("NonZero")
def non_zero(c: NodeTypes) -> Type:
    x = c.shape(0)
    return TensorType(DType.INT64, (None if x is None else len(x), None))


@shape_rule("Compress")
def compress(c: NodeTypes) -> Type:
    x, axis = c.shape(0), c.attr("axis")
    if axis is None:
        return TensorType(c.dtype(0), (None,))
    if x is None:
        return TensorType(c.dtype(0))
    at = c.axis(axis, len(x))
    return TensorType(c.dtype(0), (*x[:at], None, *x[at + 1 :]))


@shape_rule("Unique")
def unique(c: NodeTypes) -> list[Type]:
    x, axis = c.shape(0), c.attr("axis")
    indices = TensorType(DType.INT64, (None,))
    if axis is None or x is None:
        return [TensorType(c.dtype(0), (None,) if axis is None else None), indices, indices, indices]
    at = c.axis(axis, len(x))
    return [TensorType(c.dtype(0), (*x[:at], None, *x[at + 1 :])), indices, indices, indices]


@shape_rule("NonMaxSuppression")
def non_max_suppression(c: NodeTypes) -> Type:
    return TensorType(DType.INT64, (None, 3))


@shape_rule("RoiAlign", "MaxRoiPool")
def roi(c: NodeTypes) -> Type:
    x, rois = c.shape(0), c.shape(1)
    sizes = c.attr("pooled_shape") or [c.attr("output_height", 1), c.attr("output_width", 1)]
    return TensorType(c.dtype(0), (rois[0] if rois else None, x[1] if x else None, *sizes))


# -- sequences and optionals ---------------------------------------------


@shape_rule("SequenceConstruct")
def sequence_construct(c: NodeTypes) -> Type:
    types = [c.type(i) for i in range(len(c.node.inputs))]
    return ListType(types[0] if len(set(types)) == 1 else TensorType(c.dtype(0)))


@shape_rule("SequenceEmpty")
def sequence_empty(c: NodeTypes) -> Type:
    return ListType(TensorType(DType.from_onnx(c.attr("dtype", 1))))


@shape_rule("SequenceInsert")
def sequence_insert(c: NodeTypes) -> Type:
    element, inserted = c.element(0), c.type(1)
    return ListType(element if element == inserted else TensorType(c.dtype(1)))


@shape_rule("SequenceErase")
def sequence_erase(c: NodeTypes) -> Type:
    return c.type(0)


@shape_rule("SequenceAt")
def sequence_at(c: NodeTypes) -> Type:
    return c.element(0)


@shape_rule("SequenceLength")
def sequence_length(c: NodeTypes) -> Type:
    return TensorType(DType.INT64, ())


@shape_rule("SplitToSequence")
def split_to_sequence(c: NodeTypes) -> Type:
    return ListType(TensorType(c.dtype(0)))


@shape_rule("ConcatFromSequence")
def concat_from_sequence(c: NodeTypes) -> Type:
    element = c.element(0)
    return TensorType(element.dtype)


@shape_rule("Optional")
def optional(c: NodeTypes) -> Type:
    given = c.type(0) if c.has(0) else c.attr("type")  # the attribute is the type of what the optional may hold
    return OptionalType(given if isinstance(given, Type) else TensorType())


@shape_rule("OptionalGetElement")
def optional_get_element(c: NodeTypes) -> Type:
    found = c.type(0)
    return found.elem if isinstance(found, OptionalType) else found


@shape_rule("OptionalHasElement")
def optional_has_element(c: NodeTypes) -> Type:
    return TensorType(DType.BOOL, ())


@shape_rule("StringNormalizer")
def string_normalizer(c: NodeTypes) -> Type:
    return TensorType(DType.STRING)


@shape_rule("Det")
def det(c: NodeTypes) -> Type:
    x = c.shape(0)
    return TensorType(c.dtype(0), None if x is None else x[:-2])
