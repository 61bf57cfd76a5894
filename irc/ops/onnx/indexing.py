"""Elements chosen by indices, conditions or order, and elements put where indices say."""

from __future__ import annotations

from irc.ir.types import DType, Shape, TensorType, Type
from irc.ops import Family, Movement, checks, sizes
from irc.ops.inference import Contents, NodeTypes, dims_array
from irc.ops.shape_rules import same_as_first

FAMILY = Family("onnx")
FAMILY.each("Gather GatherElements GatherND", movement=Movement.GATHERED, kernel="index")
FAMILY.each("Scatter ScatterElements ScatterND", shape=same_as_first, scatters=True, kernel="index")
FAMILY.each("ScatterElements ScatterND", attributes={"reduction": ("none", "add", "mul", "max", "min")})
FAMILY.each(
    "TensorScatter",
    shape=same_as_first,
    scatters=True,
    attributes={"mode": ("linear", "circular")},
    requires=(checks.rank("write_indices", 2, 1),),
    kernel="index",
)
FAMILY.each("ReverseSequence", shape=same_as_first, requires=(checks.rank("sequence_lens", 1, 1),), kernel="index")
FAMILY.each("Trilu", shape=same_as_first, kernel="generate")
FAMILY.each(
    "TopK", value_operands=(1,), requires=(checks.elements("K", 1, 1), checks.at_least("K", 1, 0)), kernel="index"
)
FAMILY.each("Compress", movement=Movement.GATHERED, size=sizes.all_elements, kernel="index")
FAMILY.each("NonZero", size=sizes.nonzero, kernel="index")
FAMILY.each("Compress NonZero Unique", value_operands=None)
FAMILY.each("Unique", needed_outputs=1, size=sizes.all_elements, kernel="index")


@FAMILY.reshapes("Gather")
def gather(c: NodeTypes, x: Shape) -> Shape | None:
    axis, indices = c.axis(c.attr("axis", 0), len(x)), c.shape(1)
    return None if indices is None else (*x[:axis], *indices, *x[axis + 1 :])


@FAMILY.contents("Gather")
def gathered_contents(c: NodeTypes) -> Contents | None:
    x, indices = c.contents_of(0), c.ints(1)
    shape = c.shape(1)
    if x is None or indices is None or shape is None or len(shape) > 1 or x.ndim != 1:
        return None
    if not all(-len(x) <= i < len(x) for i in indices):
        return None  # if this ever runs, the run says so
    return dims_array([x[i] for i in indices]) if shape else dims_array(x[indices[0]])


FAMILY.shape("GatherElements")(lambda c: TensorType(c.dtype(0), c.shape(1)))


@FAMILY.reshapes("GatherND")
def gather_nd(c: NodeTypes, x: Shape) -> Shape | None:
    indices, batch = c.shape(1), c.attr("batch_dims", 0)
    if not indices or not isinstance(indices[-1], int):
        return None
    if batch + indices[-1] > len(x):
        c.fail(f"index vectors of {indices[-1]} elements do not fit rank {len(x)}")
    return (*indices[:-1], *x[batch + indices[-1] :])


@FAMILY.requires("TensorScatter")
def check_tensor_scatter(c: NodeTypes) -> None:
    x = c.shape(0)
    if x is None:
        return
    c.axis(c.attr("axis", -2), len(x))
    checks.size(c, "write_indices", 2, x[0] if x else None, "as many samples as the first dimension has")


@FAMILY.requires("ReverseSequence")
def check_reverse_sequence(c: NodeTypes) -> None:
    x, at = c.shape(0), c.attr("batch_axis", 1)
    if x is not None and at in (0, 1) and len(x) > 1:
        checks.size(c, "sequence_lens", 1, x[at], f"{x[at]} sequences")


@FAMILY.shape("TopK")
def top_k(c: NodeTypes) -> list[Type]:
    x = c.shape(0)
    if x is None:
        return [TensorType(c.dtype(0)), TensorType(DType.INT64)]
    axis = c.axis(c.attr("axis", -1), len(x))
    given = c.ints(1) if c.version >= 10 else [c.attr("k")]
    out = (*x[:axis], given[0] if given else None, *x[axis + 1 :])
    return [TensorType(c.dtype(0), out), TensorType(DType.INT64, out)]


@FAMILY.requires("TopK")
def check_top_k(c: NodeTypes) -> None:
    x, count = c.shape(0), c.ints(1)
    if c.version < 10 or x is None or not count:
        return
    size = x[c.axis(c.attr("axis", -1), len(x))]
    if isinstance(size, int) and count[0] > size:
        c.fail(f"K is {count[0]}, but there are {size} elements along the axis")


@FAMILY.shape("NonZero")
def non_zero(c: NodeTypes) -> Type:
    x = c.shape(0)
    return TensorType(DType.INT64, (None if x is None else len(x), None))


@FAMILY.shape("Compress")
def compress(c: NodeTypes) -> Type:
    x, axis = c.shape(0), c.attr("axis")
    if axis is None:
        return TensorType(c.dtype(0), (None,))
    if x is None:
        return TensorType(c.dtype(0))
    at = c.axis(axis, len(x))
    return TensorType(c.dtype(0), (*x[:at], None, *x[at + 1 :]))


@FAMILY.shape("Unique")
def unique(c: NodeTypes) -> list[Type]:
    x, axis = c.shape(0), c.attr("axis")
    indices = TensorType(DType.INT64, (None,))
    if axis is None or x is None:
        return [TensorType(c.dtype(0), (None,) if axis is None else None), indices, indices, indices]
    at = c.axis(axis, len(x))
    return [TensorType(c.dtype(0), (*x[:at], None, *x[at + 1 :])), indices, indices, indices]
