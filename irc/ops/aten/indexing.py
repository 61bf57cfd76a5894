# ruff: noqa: E501 - a row is one line
"""Picking, placing, joining and repeating."""

from __future__ import annotations

from functools import reduce

from irc.ir import DType, OptionalType, Shape, TensorType, Type, types
from irc.ir.polynomials import plus, product
from irc.ops import sizes
from irc.ops.aten.call import Call, TorchFamily, like_first, resized, result_type

ROWS = """
    aten::nonzero(Tensor self) -> Tensor
    aten::nonzero_numpy(Tensor self) -> Tensor[]
    aten::{argwhere fliplr flipud}(Tensor self) -> Tensor | out=none
    aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
    aten::index.list_{Tensor bool float int str}({}[] self, {} el) -> int
    aten::index.str(str self, str substr, int start=0, int end=-1) -> int
    aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor | in-place layout=like-first
    aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor | in-place layout=like-first
    aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)
    aten::index_select(Tensor self, int dim, Tensor index) -> Tensor
    aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor | in-place layout=like-first
    aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor
    aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor | in-place layout=contiguous
    aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor | in-place layout=contiguous
    aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor | layout=contiguous
    aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor | in-place layout=contiguous
    aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
    aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
    aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor
    aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor | in-place layout=contiguous
    aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor | in-place
    aten::take(Tensor self, Tensor index) -> Tensor | layout=contiguous
    aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor
    aten::cat(Tensor[] tensors, int dim=0) -> Tensor | out=any
    aten::stack(Tensor[] tensors, int dim=0) -> Tensor | out=any layout=contiguous
    aten::{hstack vstack dstack column_stack}(Tensor[] tensors) -> Tensor | out=any
    aten::{tril triu}(Tensor self, int diagonal=0) -> Tensor | in-place layout=contiguous
    aten::flip(Tensor self, int[] dims) -> Tensor
    aten::roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor
    aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor
    aten::repeat(Tensor self, int[] repeats) -> Tensor | layout=contiguous
    aten::tile(Tensor self, int[] dims) -> Tensor | out=none layout=contiguous
    aten::repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor
    aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor
    aten::repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor
    aten::select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor
    aten::slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor
    aten::diag(Tensor self, int diagonal=0) -> Tensor
    aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
    aten::as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor | layout=seen+storage+gaps
    aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor
    aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor
    aten::index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor(a!)
    aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each("argwhere nonzero nonzero_numpy", size=sizes.nonzero)
FAMILY.each("index", size=sizes.indexed)
FAMILY.each("cat", size=sizes.listed)
FAMILY.each("select_scatter slice_scatter", scatters=True)
FAMILY.shape(
    *"""
    flip fliplr flipud roll tril triu index_add index_copy index_fill index_put index_reduce put scatter scatter_add
    scatter_reduce as_strided_scatter diagonal_scatter select_scatter slice_scatter
    """.split()
)(like_first)


FAMILY.shape("gather", "take")(lambda c: TensorType(c.tensor(0).dtype, c.tensor("index").shape))


@FAMILY.reshapes("index_select")
def index_select(c: Call, x: Shape) -> Shape | None:
    index, at = c.tensor("index").shape, c.axis(c.arg("dim"), len(x))
    return () if not x else None if at is None or index is None else resized(x, at, product(index))


@FAMILY.shape("nonzero", "argwhere")
def nonzero(c: Call) -> Type:
    x = c.tensor(0).shape
    return TensorType(DType.INT64, None if x is None else (None, len(x)))


@FAMILY.reshapes("index")
def index(c: Call, x: Shape) -> Shape | None:
    """Indexing with a single tensor of integers among slices; the size of a result of masks is unknown."""
    given = [(i, type) for i, type in enumerate(c.types.element_types(1) or ()) if type != types.NONE]
    tensors = [(i, t.elem if isinstance(t, OptionalType) else t) for i, t in given]
    if len(tensors) != 1 or tensors[0][0] >= len(x):
        return None
    at, found = tensors[0]
    if found.dtype not in (DType.INT64, DType.INT32) or found.shape is None:
        return None
    return resized(x, at, *found.shape)


@FAMILY.shape("cat", "stack")
def cat(c: Call) -> Type:
    items = c.elements("tensors")
    if not items:
        return TensorType()
    dtype = result_type(items) if len({t.dtype for t in items}) > 1 else items[0].dtype
    shapes = [t.shape for t in items if t.shape is not None]
    rank = len(shapes[0]) if shapes else 0
    if len(shapes) < len(items) or any(len(s) != rank for s in shapes):
        return TensorType(dtype)  # cat leaves out empty vectors among others
    stacks = c.schema.name == "aten::stack"
    at = c.axis(c.arg("dim"), rank + stacks)
    if at is None or (not stacks and not rank):
        return TensorType(dtype, (None,) * (rank + stacks))
    axes = enumerate(zip(*shapes, strict=True))
    together = [None if i == at and not stacks else c.types.same_dim(dims, "sizes") for i, dims in axes]
    if stacks:
        return TensorType(dtype, (*together[:at], len(items), *together[at:]))
    together[at] = reduce(plus, [s[at] for s in shapes])
    return TensorType(dtype, tuple(together))


@FAMILY.reshapes("repeat", "tile")
def repeat(c: Call, x: Shape) -> Shape | None:
    times = c.dims("repeats") or c.dims("dims")
    if not times:
        return None
    rank = max(len(times), len(x))
    sizes, factors = (1,) * (rank - len(x)) + x, [1] * (rank - len(times)) + times
    return tuple(product((n, m)) for n, m in zip(sizes, factors, strict=True))
