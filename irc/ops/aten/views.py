# ruff: noqa: E501 - a row is one line
"""Results that are, or may be, views of an argument."""

from __future__ import annotations

from irc.ops import tags
from irc.ops.record import Family

ROWS = """
    aten::view(Tensor(a) self, int[] size) -> Tensor(a=) | out=none
    aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a=)
    aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a=) | out=none
    aten::reshape(Tensor(a) self, int[] shape) -> Tensor(a) | out=none
    aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a) | out=none
    aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a) | out=none
    aten::unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a=) | out=none
    aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a=) | out=none
    aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
    aten::t(Tensor(a) self) -> Tensor(a=) | out=none
    aten::t_(Tensor(a!) self) -> Tensor(a!)
    aten::permute(Tensor(a) self, int[] dims) -> Tensor(a=) | out=none
    aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a=) | out=none
    aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a=)
    aten::squeeze(Tensor(a) self) -> Tensor(a=) | out=none
    aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a=)
    aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a=)
    aten::squeeze_(Tensor(a!) self) -> Tensor(a!)
    aten::squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)
    aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)
    aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a=) | out=none
    aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)
    aten::expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a=) | out=none
    aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a=) | out=none
    aten::broadcast_to(Tensor(a) self, int[] size) -> Tensor(a=) | out=none
    aten::broadcast_tensors(Tensor(a)[] tensors) -> Tensor(a)[]
    aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a<) | out=none
    aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a<) | out=none
    aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str
    aten::narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a<) | out=none
    aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a<)
    aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a<) | out=none
    aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a<) | out=none
    aten::as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a) | out=none
    aten::as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!)
    aten::chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]
    aten::split(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]
    aten::split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]
    aten::split.sizes(Tensor(a) self, int[] split_size, int dim=0) -> Tensor(a)[]
    aten::split.str(str self, str? separator=None, int max=-1) -> str[]
    aten::split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]
    aten::unsafe_split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]
    aten::unsafe_chunk(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]
    aten::tensor_split.indices(Tensor(a) self, int[] indices, int dim=0) -> Tensor(a)[]
    aten::tensor_split.sections(Tensor(a) self, int sections, int dim=0) -> Tensor(a)[]
    aten::tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]
    aten::hsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]
    aten::hsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]
    aten::vsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]
    aten::vsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]
    aten::dsplit.array(Tensor(a) self, int[] indices) -> Tensor(a)[]
    aten::dsplit.int(Tensor(a) self, int sections) -> Tensor(a)[]
    aten::unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[]
    aten::detach(Tensor(a) self) -> Tensor(a=) | out=none
    aten::detach_(Tensor(a!) self) -> Tensor(a!)
    aten::alias(Tensor(a) self) -> Tensor(a=) | out=none
    aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a) | out=none
    aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a) | out=none
    aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
    aten::to.dtype_layout(Tensor(a) self, {options}, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
    aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
    aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)
    aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)
    aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)
    aten::type_as(Tensor(a) self, Tensor other) -> Tensor(a) | out=none
    aten::real(Tensor(a) self) -> Tensor(a) | out=none
    aten::imag(Tensor(a) self) -> Tensor(a<) | out=none
    aten::view_as_real(Tensor(a) self) -> Tensor(a=) | takes=c out=none
    aten::view_as_complex(Tensor(a) self) -> Tensor(a=) | takes=f out=none
    aten::numpy_T(Tensor(a) self) -> Tensor(a=) | out=none
    aten::numpy_T.a(Tensor(a) self) -> Tensor(a=)
    aten::mT(Tensor(a) self) -> Tensor(a=) | out=none
    aten::mT.a(Tensor(a) self) -> Tensor(a=)
    aten::mH(Tensor(a) self) -> Tensor(a=) | out=none
    aten::mH.a(Tensor(a) self) -> Tensor(a=)
    aten::matrix_H(Tensor(a) self) -> Tensor(a=) | out=none
    aten::matrix_H.a(Tensor(a) self) -> Tensor(a=)
    aten::ravel(Tensor(a) self) -> Tensor(a) | out=none
    aten::data(Tensor(a) self) -> Tensor(a=) | out=none
    aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)
    aten::lift_fresh(Tensor(a) self) -> Tensor(a==) | out=none
    aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor
    aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor
    aten::channel_shuffle(Tensor self, int groups) -> Tensor
    aten::atleast_1d(Tensor(a) self) -> Tensor(a) | out=none
    aten::atleast_1d.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]
    aten::atleast_2d(Tensor(a) self) -> Tensor(a) | out=none
    aten::atleast_2d.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]
    aten::atleast_3d(Tensor(a) self) -> Tensor(a) | out=none
    aten::atleast_3d.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]
    aten::positive(Tensor(a) self) -> Tensor(a==) | takes=uifc out=none
    aten::conj(Tensor(a) self) -> Tensor(a=) | out=none
    aten::resolve_conj(Tensor(a) self) -> Tensor(a) | out=none
    aten::resolve_neg(Tensor(a) self) -> Tensor(a) | out=none
    aten::meshgrid(Tensor(a)[] tensors) -> Tensor(a)[]
    aten::meshgrid.indexing(Tensor(a)[] tensors, *, str indexing) -> Tensor(a)[]
    aten::cpu(Tensor(a) self) -> Tensor(b|a) | out=none
    aten::cuda(Tensor(a) self) -> Tensor(b|a) | out=none
    aten::values(Tensor(a) self) -> Tensor(a) | out=none
    aten::indices(Tensor(a) self) -> Tensor(a) | out=none
    aten::_conj(Tensor(a) self) -> Tensor(a=) | out=none
    aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a<) | out=none
    """

FAMILY = Family("aten", tags.statements(ROWS))
