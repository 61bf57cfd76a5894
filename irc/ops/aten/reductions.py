# ruff: noqa: E501 - a row is one line
"""Reductions, scans, sorting and counting."""

from __future__ import annotations

from collections.abc import Sequence

from irc.ir import DType, Node, Shape, TensorType, Type
from irc.ops import sizes
from irc.ops.aten.call import (
    Call,
    TorchFamily,
    as_float,
    element_type,
    if_float,
    is_integral,
    like_first,
    like_first_if_float,
    resized,
    result_type,
)
from irc.ops.axes import torch_reduction
from irc.ops.inference import UNKNOWN

ROWS = """
    aten::{sum mean prod}(Tensor self, *, ScalarType? dtype=None) -> Tensor
    aten::sum.{bool int}({}[] self) -> int
    aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | out=dtype
    aten::sum.float(float[] self) -> float
    aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | out=dtype
    aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | out=dtype
    aten::{std var}(Tensor self, bool unbiased=True) -> Tensor | takes=fc
    aten::{std var}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
    aten::{std var}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
    aten::{std_mean var_mean}(Tensor self, bool unbiased=True) -> (Tensor, Tensor) | takes=fc
    aten::{std_mean var_mean}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)
    aten::{std_mean var_mean}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)
    aten::{amax amin}(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor | takes=buif
    aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max) | takes=buif
    aten::{max min}(Tensor self) -> Tensor | takes-both=buif
    aten::{argmax argmin}(Tensor self, int? dim=None, bool keepdim=False) -> Tensor | takes=uif
    aten::{any all nanmedian}(Tensor self) -> Tensor
    aten::{any all}.{bool float int}({}[] self) -> bool
    aten::{any all}.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
    aten::{any all}.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
    aten::any.str(str[] self) -> bool
    aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor | takes=fc
    aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
    aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor
    aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor
    aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | takes=fc
    aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
    aten::{cumsum cumprod}(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor | in-place=uifc out=dtype
    aten::topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices) | takes=uif
    aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices) | takes=buif
    aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
    aten::sort.{int float bool str Tensor}({}[](a!) self, bool reverse=False) -> ()
    aten::sort.any(t[](a!) self, bool reverse=False) -> ()
    aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor | takes=buif
    aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor
    aten::kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) | takes=uif
    aten::median(Tensor self) -> Tensor | takes=uif
    aten::{max min median nanmedian}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    aten::{max min}.other(Tensor self, Tensor other) -> Tensor | out=any
    aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) | takes=buif
    aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor) | takes=buif
    aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor) | takes=buif
    aten::count_nonzero(Tensor self, int? dim=None) -> Tensor
    aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor
    aten::bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor | takes=ui
    aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor | takes=f
    aten::searchsorted.{Scalar Tensor}(Tensor sorted_sequence, {} self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor | takes-both=buif
    aten::bucketize.{Scalar Tensor}({} self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor | takes-both=buif
    aten::trace(Tensor self) -> Tensor | takes=uifc
    aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> bool
    aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> Tensor | out=none
    aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | takes=buif out=dtype
    aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | takes=f out=dtype
    aten::{cummax cummin}(Tensor self, int dim) -> (Tensor values, Tensor indices) | takes=buif
    aten::logcumsumexp(Tensor self, int dim) -> Tensor | takes=fc
    aten::diff(Tensor(a) self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor(a)
    aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor | takes-both=fc
    aten::msort(Tensor self) -> Tensor | takes=buif
    aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor | out=none
    aten::{trapezoid trapz}.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor | out=none
    aten::trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor
    aten::trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor
    aten::corrcoef(Tensor self) -> Tensor | out=none
    aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor | out=none
    aten::cartesian_prod(Tensor(a)[] tensors) -> Tensor(a) | out=none
    aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor | out=none
    aten::{quantile nanquantile}(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
    aten::{quantile nanquantile}.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
    aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
    aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor
    aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
    aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor
    """

FAMILY = TorchFamily(ROWS)
FAMILY.each("allclose dist isclose", size=sizes.broadcast)
FAMILY.shape("msort")(like_first)
FAMILY.shape("logcumsumexp")(like_first_if_float)


def reduced(c: Call) -> Shape | None:
    """The shape without the axes of ``dim``, or with 1 there; no ``dim``: all of them."""
    x, keep = c.tensor(0).shape, c.arg("keepdim", False)
    if x is None or keep is UNKNOWN:
        return None
    given = c.dims("dim") if c.has("dim") else []
    if given is None:
        return None
    axes = [c.axis(d, len(x)) for d in given] or list(range(len(x)))
    if any(a is None for a in axes):
        return None
    if keep:
        return tuple(1 if i in axes else d for i, d in enumerate(x))
    return tuple(d for i, d in enumerate(x) if i not in axes)


@FAMILY.shape("sum", "prod", "mean", "nansum", "nanmean")
def total(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    dtype, given = c.tensor(0).dtype, c.arg("dtype")
    if given is not None:
        dtype = element_type(given)
    elif c.schema.name == "aten::mean":
        dtype = if_float(dtype)
    elif dtype is not None and is_integral(dtype):
        dtype = DType.INT64
    return TensorType(dtype, reduced(c))


@FAMILY.shape("amax", "amin", "std", "var")
def extreme(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    x = c.tensor(0)
    return TensorType(if_float(x.dtype) if c.schema.name in ("aten::std", "aten::var") else x.dtype, reduced(c))


@FAMILY.shape("max", "min")
def extreme_and_where(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    x = c.tensor(0)
    if len(c.node.outputs) == 2:
        shape = reduced(c)
        return TensorType(x.dtype, shape), TensorType(DType.INT64, shape)
    if c.has("other"):
        other = c.tensor("other")
        return TensorType(result_type([x, other]), c.broadcast([x.shape, other.shape]))
    return TensorType(x.dtype, reduced(c))


FAMILY.shape("logsumexp")(lambda c: TensorType(as_float(c.tensor(0).dtype), reduced(c)))


@FAMILY.shape("any", "all")
def some(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    x = c.tensor(0)
    kept = None if x.dtype is None else x.dtype if x.dtype is DType.UINT8 else DType.BOOL
    is_whole = c.has("dim") and c.dims("dim") == []  # of no dimensions, each element by itself
    return TensorType(kept, None if is_whole else reduced(c))


FAMILY.shape("count_nonzero", "argmax", "argmin")(lambda c: TensorType(DType.INT64, reduced(c)))


@FAMILY.shape("median", "nanmedian", "mode", "kthvalue")
def chosen(c: Call) -> Type | tuple[Type, ...]:
    x = c.tensor(0)
    if len(c.node.outputs) == 1:
        return TensorType(x.dtype, ())
    shape = reduced(c) if isinstance(c.arg("dim"), int) else None
    return TensorType(x.dtype, shape), TensorType(DType.INT64, shape)


@FAMILY.shape("std_mean", "var_mean", "aminmax")
def two(c: Call) -> tuple[Type, ...]:
    found = TensorType(if_float(c.tensor(0).dtype), reduced(c))
    return found, found


@FAMILY.shape("topk")
def topk(c: Call) -> tuple[Type, ...]:
    x, k = c.tensor(0), c.number("k")
    at = None if not x.shape else c.axis(c.arg("dim"), len(x.shape))
    shape = None if x.shape is None or at is None else resized(x.shape, at, k)
    return TensorType(x.dtype, shape), TensorType(DType.INT64, shape)


FAMILY.shape("cummax", "cummin")(lambda c: (c.tensor(0), TensorType(DType.INT64, c.tensor(0).shape)))


@FAMILY.shape("cumsum", "cumprod")
def cumulative(c: Call) -> Type:
    x, given = c.tensor(0), c.arg("dtype")
    if given is not None:
        return TensorType(element_type(given), x.shape)
    return TensorType(DType.INT64 if x.dtype is not None and is_integral(x.dtype) else x.dtype, x.shape)


@FAMILY.shape("sort")
def sort(c: Call) -> tuple[Type, ...]:
    x = c.tensor(0)
    return (x, TensorType(DType.INT64, x.shape)) if len(c.node.outputs) == 2 else ()


FAMILY.shape("argsort")(lambda c: TensorType(DType.INT64, c.tensor(0).shape))


@FAMILY.shape("isclose")
def is_close(c: Call) -> Type:
    return TensorType(DType.BOOL, c.broadcast([c.tensor("self").shape, c.tensor("other").shape]))


@FAMILY.reduces("sum", "mean", "amax", "amin")
def reduced_axes(node: Node, rank: int) -> Sequence[int] | None:
    found = torch_reduction(node)
    if found is None or not rank:
        return None
    dim, _ = found
    return [dim] if isinstance(dim, int) else dim or range(rank)
