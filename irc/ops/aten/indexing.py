# ruff: noqa: E501 - a row is one line
"""Picking, placing, joining and repeating."""

from __future__ import annotations

from irc.ops import tags
from irc.ops.record import Family

ROWS = """
    aten::nonzero(Tensor self) -> Tensor
    aten::nonzero_numpy(Tensor self) -> Tensor[]
    aten::argwhere(Tensor self) -> Tensor | out=none
    aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor
    aten::index.list_Tensor(Tensor[] self, Tensor el) -> int
    aten::index.list_bool(bool[] self, bool el) -> int
    aten::index.list_float(float[] self, float el) -> int
    aten::index.list_int(int[] self, int el) -> int
    aten::index.list_str(str[] self, str el) -> int
    aten::index.str(str self, str substr, int start=0, int end=-1) -> int
    aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor | in-place
    aten::put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor | in-place
    aten::fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)
    aten::index_select(Tensor self, int dim, Tensor index) -> Tensor
    aten::index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor | in-place
    aten::index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor
    aten::index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor | in-place
    aten::index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor | in-place
    aten::gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor
    aten::scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor | in-place
    aten::scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor
    aten::scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor
    aten::scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor
    aten::scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor | in-place
    aten::scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) -> Tensor | in-place
    aten::take(Tensor self, Tensor index) -> Tensor
    aten::take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor
    aten::cat(Tensor[] tensors, int dim=0) -> Tensor | out=any
    aten::stack(Tensor[] tensors, int dim=0) -> Tensor | out=any
    aten::hstack(Tensor[] tensors) -> Tensor | out=any
    aten::vstack(Tensor[] tensors) -> Tensor | out=any
    aten::dstack(Tensor[] tensors) -> Tensor | out=any
    aten::column_stack(Tensor[] tensors) -> Tensor | out=any
    aten::tril(Tensor self, int diagonal=0) -> Tensor | in-place
    aten::triu(Tensor self, int diagonal=0) -> Tensor | in-place
    aten::flip(Tensor self, int[] dims) -> Tensor
    aten::fliplr(Tensor self) -> Tensor | out=none
    aten::flipud(Tensor self) -> Tensor | out=none
    aten::roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor
    aten::rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor
    aten::repeat(Tensor self, int[] repeats) -> Tensor
    aten::tile(Tensor self, int[] dims) -> Tensor | out=none
    aten::repeat_interleave.Tensor(Tensor repeats, *, int? output_size=None) -> Tensor
    aten::repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, int? output_size=None) -> Tensor
    aten::repeat_interleave.self_int(Tensor self, int repeats, int? dim=None, *, int? output_size=None) -> Tensor
    aten::select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor
    aten::slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor
    aten::diag(Tensor self, int diagonal=0) -> Tensor
    aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor
    aten::as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? storage_offset=None) -> Tensor
    aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor | takes=uifc
    aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor
    aten::index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor
    aten::index_reduce_(Tensor(a!) self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor(a!)
    aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)
    """

FAMILY = Family("aten", tags.statements(ROWS))
