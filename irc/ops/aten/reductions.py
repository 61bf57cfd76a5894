# ruff: noqa: E501 - a row is one line
"""Reductions, scans, sorting and counting."""

from __future__ import annotations

from irc.ops import tags
from irc.ops.record import Family

ROWS = """
    aten::sum(Tensor self, *, ScalarType? dtype=None) -> Tensor
    aten::sum.bool(bool[] self) -> int
    aten::sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | out=dtype
    aten::sum.float(float[] self) -> float
    aten::sum.int(int[] self) -> int
    aten::mean(Tensor self, *, ScalarType? dtype=None) -> Tensor
    aten::mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | out=dtype
    aten::prod(Tensor self, *, ScalarType? dtype=None) -> Tensor
    aten::prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | out=dtype
    aten::std(Tensor self, bool unbiased=True) -> Tensor
    aten::std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
    aten::std.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
    aten::var(Tensor self, bool unbiased=True) -> Tensor
    aten::var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor
    aten::var.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> Tensor
    aten::std_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)
    aten::std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)
    aten::std_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)
    aten::var_mean(Tensor self, bool unbiased=True) -> (Tensor, Tensor)
    aten::var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> (Tensor, Tensor)
    aten::var_mean.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> (Tensor, Tensor)
    aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor | takes=buif
    aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor | takes=buif
    aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max) | takes=buif
    aten::max(Tensor self) -> Tensor | takes-both=buif
    aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    aten::max.other(Tensor self, Tensor other) -> Tensor | out=any
    aten::min(Tensor self) -> Tensor | takes-both=buif
    aten::min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    aten::min.other(Tensor self, Tensor other) -> Tensor | out=any
    aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor | takes=uif
    aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor | takes=uif
    aten::any(Tensor self) -> Tensor
    aten::any.bool(bool[] self) -> bool
    aten::any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
    aten::any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
    aten::any.float(float[] self) -> bool
    aten::any.int(int[] self) -> bool
    aten::any.str(str[] self) -> bool
    aten::all(Tensor self) -> Tensor
    aten::all.bool(bool[] self) -> bool
    aten::all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor
    aten::all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor
    aten::all.float(float[] self) -> bool
    aten::all.int(int[] self) -> bool
    aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor
    aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor
    aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, ScalarType dtype) -> Tensor
    aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor
    aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor
    aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor | in-place=uifc out=dtype
    aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor | in-place=uifc out=dtype
    aten::topk(Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices) | takes=uif
    aten::sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices) | takes=buif
    aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)
    aten::argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor | takes=buif
    aten::argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor
    aten::kthvalue(Tensor self, int k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) | takes=uif
    aten::median(Tensor self) -> Tensor | takes=uif
    aten::median.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    aten::mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices) | takes=buif
    aten::_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, Tensor, Tensor) | takes=buif
    aten::unique_consecutive(Tensor self, bool return_inverse=False, bool return_counts=False, int? dim=None) -> (Tensor, Tensor, Tensor) | takes=buif
    aten::count_nonzero(Tensor self, int? dim=None) -> Tensor
    aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor
    aten::bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor | takes=ui
    aten::histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor | takes=f
    aten::searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor | takes-both=buif
    aten::searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, str? side=None, Tensor? sorter=None) -> Tensor
    aten::bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor | takes-both=buif
    aten::bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor
    aten::trace(Tensor self) -> Tensor | takes=uifc
    aten::allclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> bool
    aten::isclose(Tensor self, Tensor other, float rtol=1.0000000000000001e-05, float atol=1e-08, bool equal_nan=False) -> Tensor | out=none
    aten::nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | takes=buif out=dtype
    aten::nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | takes=f out=dtype
    aten::cummax(Tensor self, int dim) -> (Tensor values, Tensor indices) | takes=buif
    aten::cummin(Tensor self, int dim) -> (Tensor values, Tensor indices) | takes=buif
    aten::logcumsumexp(Tensor self, int dim) -> Tensor
    aten::diff(Tensor(a) self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> Tensor(a)
    aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor
    aten::msort(Tensor self) -> Tensor | takes=buif
    aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> Tensor | out=none
    aten::trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor | out=none
    aten::trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor
    aten::trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor | out=none
    aten::trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor
    aten::corrcoef(Tensor self) -> Tensor | out=none
    aten::vander(Tensor x, int? N=None, bool increasing=False) -> Tensor | out=none
    aten::cartesian_prod(Tensor(a)[] tensors) -> Tensor(a) | out=none
    aten::combinations(Tensor self, int r=2, bool with_replacement=False) -> Tensor | out=none
    aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
    aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
    aten::nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
    aten::nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str interpolation="linear") -> Tensor
    aten::nanmedian(Tensor self) -> Tensor
    aten::nanmedian.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)
    aten::isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
    aten::isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, bool invert=False) -> Tensor
    aten::isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, bool invert=False) -> Tensor
    aten::segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor
    """

FAMILY = Family("aten", tags.statements(ROWS))
