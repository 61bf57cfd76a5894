# ruff: noqa: E501 - a row is one line
"""Results that are, or may be, views of an argument."""

from __future__ import annotations

from irc.ir import MAX_SIZE, Dim, ListType, Shape, TensorType, Type
from irc.ir.polynomials import product
from irc.ops import regions, sizes, views
from irc.ops.aten.call import COMPLEX, REAL, Call, TorchFamily, element_type, like_first, resized
from irc.ops.record import Change
from irc.ops.shape_rules import sliced
from irc.ops.views import View

ROWS = """
    aten::view(Tensor(a) self, int[] size) -> Tensor(a=) | out=none layout=seen+in-order copied
    aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a=) | copied
    aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a=) | out=none layout=seen+in-order
    aten::reshape(Tensor(a) self, int[] shape) -> Tensor(a) | out=none layout=view-or-copy+in-order
    aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a) | out=none layout=view-or-copy+in-order
    aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a) | out=none layout=view-or-copy+in-order
    aten::unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a=) | out=none layout=seen+in-order
    aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a=) | out=none copied
    aten::transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)
    aten::t(Tensor(a) self) -> Tensor(a=) | out=none copied
    aten::{t_ squeeze_ detach_}(Tensor(a!) self) -> Tensor(a!)
    aten::permute(Tensor(a) self, int[] dims) -> Tensor(a=) | out=none copied
    aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a=) | out=none
    aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a=)
    aten::{squeeze detach alias}(Tensor(a) self) -> Tensor(a=) | out=none layout=in-order copied
    aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a=) | copied
    aten::squeeze.dims(Tensor(a) self, int[] dim) -> Tensor(a=) | copied
    aten::squeeze_.dim(Tensor(a!) self, int dim) -> Tensor(a!)
    aten::squeeze_.dims(Tensor(a!) self, int[] dim) -> Tensor(a!)
    aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a=) | out=none layout=in-order copied
    aten::unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)
    aten::expand(Tensor(a) self, int[] size, *, bool implicit=False) -> Tensor(a=) | out=none copied
    aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a=) | out=none
    aten::broadcast_to(Tensor(a) self, int[] size) -> Tensor(a=) | out=none
    aten::{broadcast_tensors meshgrid}(Tensor(a)[] tensors) -> Tensor(a)[]
    aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a<) | out=none layout=part copied
    aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor(a<) | out=none layout=part copied
    aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str
    aten::slice.t(t(b)[] l, int? start=None, int? end=None, int step=1) -> t(b)[]
    aten::narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a<) | out=none layout=part copied
    aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a<)
    aten::diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a<) | out=none copied
    aten::unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a<) | out=none copied
    aten::as_strided(Tensor(a) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a) | out=none layout=seen+storage copied
    aten::as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> Tensor(a!) | layout=seen+storage
    aten::{chunk unsafe_chunk}(Tensor(a) self, int chunks, int dim=0) -> Tensor(a)[]
    aten::split(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[]
    aten::split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[] | copied
    aten::split.sizes(Tensor(a) self, int[] split_size, int dim=0) -> Tensor(a)[]
    aten::split.str(str self, str? separator=None, int max=-1) -> str[]
    aten::split_with_sizes(Tensor(a) self, int[] split_sizes, int dim=0) -> Tensor(a)[] | copied
    aten::unsafe_split.Tensor(Tensor(a) self, int split_size, int dim=0) -> Tensor(a)[]
    aten::tensor_split.indices(Tensor(a) self, int[] indices, int dim=0) -> Tensor(a)[]
    aten::tensor_split.sections(Tensor(a) self, int sections, int dim=0) -> Tensor(a)[]
    aten::tensor_split.tensor_indices_or_sections(Tensor(a) self, Tensor tensor_indices_or_sections, int dim=0) -> Tensor(a)[]
    aten::{hsplit vsplit dsplit}.array(Tensor(a) self, int[] indices) -> Tensor(a)[]
    aten::{hsplit vsplit dsplit}.int(Tensor(a) self, int sections) -> Tensor(a)[]
    aten::unbind.int(Tensor(a) self, int dim=0) -> Tensor(a)[] | copied
    aten::contiguous(Tensor(a) self, *, MemoryFormat memory_format=0) -> Tensor(a) | out=none layout=view-or-copy+contiguous
    aten::to.device(Tensor(a) self, Device device, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a) | out=none layout=view-or-copy
    aten::to.dtype(Tensor(a) self, ScalarType dtype, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
    aten::to.dtype_layout(Tensor(a) self, {options}, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
    aten::to.other(Tensor(a) self, Tensor other, bool non_blocking=False, bool copy=False, MemoryFormat? memory_format=None) -> Tensor(a)
    aten::to.prim_Device(Tensor(a) self, Device? device, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)
    aten::to.prim_dtype(Tensor(a) self, int? dtype=None, bool non_blocking=False, bool copy=False) -> Tensor(b|a)
    aten::to.prim_other(Tensor(a) self, bool non_blocking=False, bool copy=False) -> Tensor(b|a)
    aten::type_as(Tensor(a) self, Tensor other) -> Tensor(a) | out=none
    aten::{real atleast_1d atleast_2d atleast_3d resolve_conj resolve_neg indices}(Tensor(a) self) -> Tensor(a) | out=none
    aten::imag(Tensor(a) self) -> Tensor(a<) | takes=c out=none
    aten::view_as_real(Tensor(a) self) -> Tensor(a=) | takes=c out=none copied
    aten::view_as_complex(Tensor(a) self) -> Tensor(a=) | takes=f out=none layout=seen copied
    aten::{numpy_T mT mH matrix_H data conj _conj}(Tensor(a) self) -> Tensor(a=) | out=none
    aten::{numpy_T mT mH matrix_H}.a(Tensor(a) self) -> Tensor(a=)
    aten::ravel(Tensor(a) self) -> Tensor(a) | out=none layout=view-or-copy+in-order
    aten::requires_grad_(Tensor(a!) self, bool requires_grad=True) -> Tensor(a!)
    aten::lift_fresh(Tensor(a) self) -> Tensor(a==) | out=none layout=in-order
    aten::pixel_shuffle(Tensor self, int upscale_factor) -> Tensor
    aten::pixel_unshuffle(Tensor self, int downscale_factor) -> Tensor
    aten::channel_shuffle(Tensor self, int groups) -> Tensor
    aten::{atleast_1d atleast_2d atleast_3d}.Sequence(Tensor(a)[] tensors) -> Tensor(a)[]
    aten::positive(Tensor(a) self) -> Tensor(a==) | takes=uifc out=none layout=in-order
    aten::meshgrid.indexing(Tensor(a)[] tensors, *, str indexing) -> Tensor(a)[]
    aten::{cpu cuda}(Tensor(a) self) -> Tensor(b|a) | out=none
    aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a<) | out=none
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each("alias contiguous detach flatten reshape squeeze unflatten unsqueeze view", covers_operand=True)
FAMILY.each("squeeze_ t_ transpose_ unsqueeze_", changes=Change.SHAPE)
FAMILY.each("as_strided_ set_", changes=Change.MEMORY)
FAMILY.each("split", size=sizes.split)

FAMILY.each("select", region=regions.select, view=View(views.scatter("aten::select_scatter"), copies=True))
FAMILY.each("slice", region=regions.slice_, keeps_elements=views.of_an_end)
FAMILY.each("slice", view=View(views.scatter("aten::slice_scatter"), copies=True))
FAMILY.each("narrow", region=regions.narrow, keeps_elements=views.at_least_one(3), view=View(views.narrow, copies=True))
FAMILY.each("diagonal linalg_diagonal", keeps_elements=views.on_the_diagonal)
FAMILY.each("diagonal", region=regions.diagonal, view=View(views.scatter("aten::diagonal_scatter"), copies=True))
FAMILY.each("linalg_diagonal", view=View(views.diagonal_of_last, copies=True))
FAMILY.each("unfold", view=View(views.unfold, can_put=views.has_separate_windows, copies=True))
FAMILY.each("unfold", region=regions.repeated, keeps_elements=views.at_least_one(2))
FAMILY.each("as_strided", region=regions.as_strided)
FAMILY.each("as_strided", view=View(views.scatter("aten::as_strided_scatter"), copies=True, of_storage=True))
FAMILY.each("t transpose numpy_T mT mH matrix_H conj _conj", view=View(views.swap, turns=True))
FAMILY.each("transpose", region=regions.transpose)
FAMILY.each("permute", region=regions.permute, view=View(views.permute, can_put=views.can_permute, turns=True))
FAMILY.each("movedim", view=View(views.move_back, turns=True))
FAMILY.each("unsqueeze", region=regions.unsqueeze, view=View(views.unsqueeze, turns=True))
FAMILY.each("ravel", region=regions.renumbered)
FAMILY.each("view reshape", region=regions.view)
FAMILY.each("flatten", region=regions.flatten)
FAMILY.each("squeeze", region=regions.squeeze)
FAMILY.each("t", region=regions.t)
FAMILY.each("squeeze view unflatten atleast_1d atleast_2d atleast_3d", view=View(views.reshape))
FAMILY.each("view_as", view=View(views.reshape, like_other=True))
FAMILY.each("flatten ravel reshape", view=View(views.reshape, when_contiguous=True))
FAMILY.each("reshape_as", view=View(views.reshape, when_contiguous=True, like_other=True))
FAMILY.each("contiguous", view=View(views.same, turns=True, when_contiguous=True))
FAMILY.each("alias contiguous detach lift_fresh positive", region=regions.same)
FAMILY.each("alias data detach positive", view=View(views.same, turns=True))
FAMILY.each("view_as_real", view=View(views.inverse("aten::view_as_complex")))
FAMILY.each("view_as_complex", view=View(views.inverse("aten::view_as_real")))
FAMILY.each("broadcast_to expand expand_as", region=regions.repeated)
FAMILY.each("expand broadcast_to", view=View(), keeps_elements=views.to_sizes)
FAMILY.each("expand_as", view=View(like_other=True), keeps_elements=views.never)
FAMILY.each("split split_with_sizes unsafe_split", region=regions.split, view=views.pieces(views.one_of_split))
FAMILY.each("chunk unsafe_chunk", region=regions.pieces, view=views.pieces(views.one_of_chunk))
FAMILY.each("tensor_split", region=regions.tensor_split, view=views.pieces(views.one_of_tensor_split))
FAMILY.each("hsplit", view=views.pieces(views.one_along(1), views.is_matrix))
FAMILY.each("vsplit", view=views.pieces(views.one_along(0)))
FAMILY.each("dsplit", view=views.pieces(views.one_along(2)))
FAMILY.each("unbind", region=regions.unbind)
FAMILY.each("unbind", view=View(put_piece=views.one_of_unbind, can_put_any=views.always, copies=True))
FAMILY.shape(
    *"_conj alias channel_shuffle conj contiguous cpu cuda data detach lift_fresh positive resolve_conj resolve_neg".split()
)(like_first)


@FAMILY.shape("view", "reshape")
def view(c: Call) -> Type:
    x = c.tensor("self")
    if c.schema.overload == "dtype":
        return TensorType(element_type(c.arg("dtype")))
    sizes = c.dims("size") if c.has("size") else c.dims("shape")
    if sizes is None:
        return TensorType(x.dtype)
    if -1 in sizes:
        at = sizes.index(-1)
        whole = None if x.shape is None else product(x.shape)
        rest = product(sizes[:at] + sizes[at + 1 :])
        if isinstance(whole, int) and isinstance(rest, int) and rest > 0 and whole % rest == 0:
            sizes[at] = whole // rest
        else:
            sizes[at] = whole if rest == 1 else None
    return TensorType(x.dtype, tuple(sizes))


@FAMILY.shape("expand")
def expand(c: Call) -> Type:
    x, sizes = c.tensor(0), c.dims("size")
    if sizes is None:
        return TensorType(x.dtype)
    out = list(sizes)
    for i, size in enumerate(sizes):
        back = len(sizes) - i
        if size == -1:
            out[i] = x.shape[-back] if x.shape is not None and back <= len(x.shape) else None
    return TensorType(x.dtype, tuple(out))


FAMILY.shape("expand_as", "view_as", "reshape_as")(lambda c: TensorType(c.tensor(0).dtype, c.tensor("other").shape))


@FAMILY.shape("permute")
def permute(c: Call) -> Type:
    x, order = c.tensor(0), c.dims("dims")
    if x.shape is None or order is None:
        return TensorType(x.dtype, None if order is None else (None,) * len(order))
    axes = [c.axis(d, len(x.shape)) for d in order]
    return TensorType(x.dtype, tuple(None if a is None else x.shape[a] for a in axes))


@FAMILY.reshapes("transpose")
def transpose(c: Call, x: Shape) -> Shape:
    a, b = (c.axis(c.arg(name), len(x)) for name in ("dim0", "dim1"))
    if a is None or b is None or not x:
        return (None,) * len(x)
    out = list(x)
    out[a], out[b] = out[b], out[a]
    return tuple(out)


FAMILY.reshapes("t", "numpy_T")(lambda c, x: x[::-1])
FAMILY.reshapes("mT", "mH", "matrix_H")(lambda c, x: (*x[:-2], x[-1], x[-2]) if len(x) > 1 else None)


@FAMILY.reshapes("unsqueeze")
def unsqueeze(c: Call, x: Shape) -> Shape | None:
    at = c.axis(c.arg("dim"), len(x) + 1)
    return None if at is None else (*x[:at], 1, *x[at:])


@FAMILY.reshapes("squeeze")
def squeeze(c: Call, x: Shape) -> Shape | None:
    dims = c.dims("dim") if c.has("dim") else list[Dim](range(len(x)))
    axes = [c.axis(d, len(x)) for d in dims or ()]
    if dims is None or any(a is None or (x and not isinstance(x[a], int)) for a in axes):
        return None
    return tuple(d for i, d in enumerate(x) if i not in axes or d != 1)


@FAMILY.reshapes("flatten")
def flatten(c: Call, x: Shape) -> Shape | None:
    if c.schema.overload != "using_ints":
        return None
    first, last = c.axis(c.arg("start_dim"), len(x)), c.axis(c.arg("end_dim"), len(x))
    if first is None or last is None or first > last:
        return None
    return (*x[:first], product(x[first : last + 1]), *x[last + 1 :])


@FAMILY.shape("ravel")
def ravel(c: Call) -> Type:
    x = c.tensor(0)
    return TensorType(x.dtype, (None if x.shape is None else product(x.shape),))


@FAMILY.reshapes("select")
def select(c: Call, x: Shape) -> Shape:
    at = c.axis(c.arg("dim"), len(x))
    return (None,) * (len(x) - 1) if at is None else resized(x, at)


@FAMILY.reshapes("slice", "narrow")
def slice_(c: Call, x: Shape) -> Shape:
    at = c.axis(c.arg("dim"), len(x))
    if at is None:
        return (None,) * len(x)
    size, step = c.number("length"), c.number("step")
    if not c.has("length") and step is not None and step > 0:
        size = sliced(x[at], c.number("start", 0), c.number("end", MAX_SIZE), step)
    return resized(x, at, size)


@FAMILY.shape("as_strided")
def as_strided(c: Call) -> Type:
    sizes = c.dims("size")
    return TensorType(c.tensor(0).dtype, None if sizes is None else tuple(sizes))


@FAMILY.reshapes("diagonal")
def diagonal(c: Call, x: Shape) -> Shape | None:
    offset, (a, b) = c.number("offset"), (c.axis(c.arg(name), len(x)) for name in ("dim1", "dim2"))
    if a is None or b is None or a == b:
        return (None,) * (len(x) - 1) if len(x) > 1 else None
    rows, columns, size = x[a], x[b], None
    if offset is not None and isinstance(rows, int) and isinstance(columns, int):
        size = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    return (*(d for i, d in enumerate(x) if i not in (a, b)), size)


@FAMILY.reshapes("unfold")
def unfold(c: Call, x: Shape) -> Shape:
    size, step, at = c.number("size"), c.number("step"), c.axis(c.arg("dimension"), len(x))
    if at is None or not x:
        return (*(None for _ in x), size)
    count, whole = None, x[at]
    if isinstance(whole, int) and size is not None and step is not None and step > 0 and 0 <= size <= whole:
        count = (whole - size) // step + 1
    return (*resized(x, at, count), size)


@FAMILY.shape("chunk", "split", "unbind", "split_with_sizes", "tensor_split")
def parts(c: Call) -> Type | tuple[Type, ...]:
    found = c.node.outputs[0]
    is_list = isinstance(found.type, ListType) and isinstance(found.type.elem, TensorType)
    return ListType(TensorType(c.tensor(0).dtype)) if is_list and c.types.is_fixed(found) else ()


@FAMILY.shape("broadcast_to")
def broadcast_to(c: Call) -> Type:
    sizes = c.dims("size")
    known = None if sizes is None else tuple(None if n == -1 else n for n in sizes)
    return TensorType(c.tensor(0).dtype, known)


@FAMILY.shape("to", "type_as")
def to(c: Call) -> Type:
    x = c.tensor(0)
    if c.has("other"):
        return TensorType(c.tensor("other").dtype, x.shape)
    given = c.arg("dtype")
    return TensorType(x.dtype if given is None else element_type(given), x.shape)


@FAMILY.shape("view_as_real", "view_as_complex", "real", "imag")
def real_and_complex(c: Call) -> Type:
    x, name = c.tensor(0), c.schema.name
    if name == "aten::view_as_complex":
        return TensorType(None if x.dtype is None else COMPLEX.get(x.dtype), None if x.shape is None else x.shape[:-1])
    shape = (*x.shape, 2) if name == "aten::view_as_real" and x.shape is not None else x.shape
    return TensorType(None if x.dtype is None else REAL.get(x.dtype), shape)


@FAMILY.reshapes("pixel_shuffle", "pixel_unshuffle")
def pixels(c: Call, x: Shape) -> Shape | None:
    up = c.schema.name == "aten::pixel_shuffle"
    r = c.arg("upscale_factor" if up else "downscale_factor")
    if len(x) < 3 or not isinstance(r, int) or r < 1:
        return None
    *rest, channels, height, width = x
    sizes: list[Dim] = [None] * 3
    if isinstance(channels, int):
        sizes[0] = channels // (r * r) if up else channels * r * r
    for i, n in ((1, height), (2, width)):
        sizes[i] = None if not isinstance(n, int) else n * r if up else n // r
    return (*rest, *sizes)
