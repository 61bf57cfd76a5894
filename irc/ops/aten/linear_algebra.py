# ruff: noqa: E501 - a row is one line
"""Products of matrices and vectors, linear algebra; windows, Fourier transforms, complex numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from irc.ir.types import DType, Shape, TensorType, Type
from irc.ops import sizes
from irc.ops.aten.call import (
    COMPLEX,
    REAL,
    Call,
    TorchFamily,
    as_float,
    common_type,
    if_float,
    like_first,
    resized,
    together,
)
from irc.ops.shape_rules import einsum_products, einsum_shape, matrix_product

ROWS = """
    aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor | takes=uifc layout=anew
    aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor | takes=uifc out=none
    aten::matmul(Tensor self, Tensor other) -> Tensor | takes=uifc layout=anew
    aten::{mm bmm}(Tensor self, Tensor mat2) -> Tensor | takes=uifc layout=anew
    aten::{mm bmm}.dtype(Tensor self, Tensor mat2, ScalarType out_dtype) -> Tensor
    aten::mv(Tensor self, Tensor vec) -> Tensor | takes=uifc
    aten::dot(Tensor self, Tensor tensor) -> Tensor | takes=uifc
    aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor | takes=uifc in-place layout=anew
    aten::addmm.dtype(Tensor self, Tensor mat1, Tensor mat2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor | takes=uifc in-place
    aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor | takes=uifc in-place layout=anew
    aten::baddbmm.dtype(Tensor self, Tensor batch1, Tensor batch2, ScalarType out_dtype, *, Scalar beta=1, Scalar alpha=1) -> Tensor
    aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor | takes=uifc in-place
    aten::einsum(str equation, Tensor(a)[] tensors, *, int[]? path=None) -> Tensor(a) | out=none
    aten::outer(Tensor self, Tensor vec2) -> Tensor | out=any
    aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor | takes=uifc
    aten::{inner vdot}(Tensor self, Tensor other) -> Tensor | takes=uifc
    aten::kron(Tensor self, Tensor other) -> Tensor | out=any
    aten::{linalg_inv linalg_det}(Tensor A) -> Tensor
    aten::linalg_cholesky(Tensor self, *, bool upper=False) -> Tensor
    aten::{cholesky cholesky_inverse}(Tensor self, bool upper=False) -> Tensor
    aten::linalg_solve(Tensor A, Tensor B, *, bool left=True) -> Tensor
    aten::linalg_svd(Tensor A, bool full_matrices=True, *, str? driver=None) -> (Tensor U, Tensor S, Tensor Vh)
    aten::linalg_qr(Tensor A, str mode="reduced") -> (Tensor Q, Tensor R)
    aten::linalg_svdvals(Tensor A, *, str? driver=None) -> Tensor
    aten::linalg_eigh(Tensor self, str UPLO="L") -> (Tensor eigenvalues, Tensor eigenvectors)
    aten::linalg_eigvalsh(Tensor self, str UPLO="L") -> Tensor
    aten::linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)
    aten::slogdet(Tensor self) -> (Tensor sign, Tensor logabsdet)
    aten::logdet(Tensor self) -> Tensor | out=none
    aten::linalg_matrix_power(Tensor self, int n) -> Tensor
    aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | takes=fc
    aten::linalg_matrix_norm.str_ord(Tensor self, str ord="fro", int[] dim=[-2, -1], bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor | takes=fc
    aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor
    aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor
    aten::linalg_pinv.atol_rtol_float(Tensor self, *, float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor
    aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor
    aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor
    aten::pinverse(Tensor self, float rcond=1.0000000000000001e-15) -> Tensor | out=none
    aten::{linalg_multi_dot block_diag}(Tensor[] tensors) -> Tensor
    aten::{linalg_eigvals linalg_matrix_exp}(Tensor self) -> Tensor
    aten::linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, bool unitriangular=False) -> Tensor
    aten::triangular_solve(Tensor self, Tensor A, bool upper=True, bool transpose=False, bool unitriangular=False) -> (Tensor solution, Tensor cloned_coefficient)
    aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor | in-place out=any
    aten::diagflat(Tensor self, int offset=0) -> Tensor | out=none
    aten::chain_matmul(Tensor[] matrices) -> Tensor
    aten::linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)
    aten::linalg_cholesky_ex(Tensor self, *, bool upper=False, bool check_errors=False) -> (Tensor L, Tensor info)
    aten::linalg_inv_ex(Tensor A, *, bool check_errors=False) -> (Tensor inverse, Tensor info)
    aten::linalg_solve_ex(Tensor A, Tensor B, *, bool left=True, bool check_errors=False) -> (Tensor result, Tensor info)
    aten::cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor
    aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor
    aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor | takes=fc
    aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor | takes=uifc
    """

SIGNALS = """
    aten::{hann_window hamming_window blackman_window kaiser_window}(int window_length, {options}) -> Tensor
    aten::{hann_window hamming_window blackman_window kaiser_window}.periodic(int window_length, bool periodic, {options}) -> Tensor
    aten::hamming_window.periodic_alpha(int window_length, bool periodic, float alpha, {options}) -> Tensor
    aten::hamming_window.periodic_alpha_beta(int window_length, bool periodic, float alpha, float beta, {options}) -> Tensor
    aten::kaiser_window.beta(int window_length, bool periodic, float beta, {options}) -> Tensor
    aten::{fft_fft fft_ifft fft_rfft fft_irfft}(Tensor self, int? n=None, int dim=-1, str? norm=None) -> Tensor
    aten::{fft_fft2 fft_ifft2 fft_rfft2 fft_irfft2}(Tensor self, int[1]? s=None, int[1] dim=[-2, -1], str? norm=None) -> Tensor
    aten::{fft_fftn fft_ifftn fft_rfftn fft_irfftn}(Tensor self, int[1]? s=None, int[1]? dim=None, str? norm=None) -> Tensor
    aten::{fft_fftshift fft_ifftshift}(Tensor self, int[1]? dim=None) -> Tensor | out=none
    aten::{fft_fftfreq fft_rfftfreq}(int n, float d=1., {options}) -> Tensor
    aten::stft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor | out=none
    aten::stft.center(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, str pad_mode="reflect", bool normalized=False, bool? onesided=None, bool? return_complex=None, bool? align_to_window=None) -> Tensor
    aten::complex(Tensor real, Tensor imag) -> Tensor | pointwise=wider
    aten::polar(Tensor abs, Tensor angle) -> Tensor | pointwise=wider
    aten::polar.{int float}({} a, {} b) -> complex
    aten::polar.int_float(int a, float b) -> complex
    aten::polar.float_int(float a, int b) -> complex
    aten::polar.Scalar_Scalar(Scalar a, Scalar b) -> Scalar
    aten::istft(Tensor self, int n_fft, int? hop_length=None, int? win_length=None, Tensor? window=None, bool center=True, bool normalized=False, bool? onesided=None, int? length=None, bool return_complex=False) -> Tensor | out=none
    """

FAMILY = TorchFamily(ROWS + SIGNALS)
FAMILY.each("cross linalg_pinv", size=sizes.broadcast)
FAMILY.each("mm bmm matmul mv", widened=(0, 1), value_operands=())
FAMILY.each("addmm baddbmm", widened=(0, 1, 2), value_operands=())
FAMILY.each("linear bilinear", widened=(1, 2, 3), value_operands=())
FAMILY.shape("cholesky", "linalg_cholesky", "linalg_inv", "linalg_matrix_exp", "linalg_matrix_power")(like_first)


def _product(a: TensorType, b: TensorType, c: Call) -> Shape | None:
    return matrix_product(c.types, a.shape, b.shape) if a.shape and b.shape else None


@FAMILY.shape("matmul", "mm", "bmm", "mv", "dot")
def matmul(c: Call) -> Type:
    a, b = c.tensor(0), c.tensor(1)
    return TensorType(common_type(a, b), _product(a, b, c))


@FAMILY.macs("matmul", "mm", "bmm", "mv", "dot", "linear")
def _products(c: Call, elements: int) -> int:
    return elements * c.sizes(0)[-1]


@FAMILY.macs("addmm", "baddbmm")
def _added_products(c: Call, elements: int) -> int:
    return elements * c.sizes(1)[-1]


@FAMILY.macs("einsum")
def _einsum_products(c: Call, elements: int) -> int:
    shapes = [cast("Sequence[int]", item.shape) for item in c.elements("tensors") or ()]
    return einsum_products(cast("str", c.arg("equation")), shapes)


@FAMILY.shape("addmm", "baddbmm")
def addmm(c: Call) -> Type:
    if c.schema.overload:
        return TensorType()
    a, b = c.tensor(1), c.tensor(2)
    return TensorType(common_type(c.tensor(0), a, b), _product(a, b, c))


@FAMILY.shape("linear")
def linear(c: Call) -> Type:
    x, weight = c.tensor("input"), c.tensor("weight")
    if x.shape is None or weight.shape is None or not x.shape or len(weight.shape) != 2:
        return TensorType(common_type(x, weight))
    return TensorType(common_type(x, weight), (*x.shape[:-1], weight.shape[0]))


@FAMILY.shape("outer")
def outer(c: Call) -> Type:
    a, b = c.tensor(0), c.tensor(1)
    return TensorType(None, (*a.shape, *b.shape) if a.shape is not None and b.shape is not None else None)


@FAMILY.shape("einsum")
def einsum(c: Call) -> Type:
    items, equation = c.elements("tensors"), c.arg("equation")
    if not items or not isinstance(equation, str):
        return TensorType()
    dtype = common_type(*items) if len(items) > 1 else if_float(items[0].dtype)  # sums of integers are wider
    return TensorType(dtype, einsum_shape(c.types, equation.replace(" ", ""), [t.shape for t in items], True))


# -- Fourier transforms and complex numbers ------------------------------------


FAMILY.shape("fft_fftshift", "fft_ifftshift")(like_first)


@FAMILY.shape("complex", "polar")
def of_parts(c: Call) -> Type | tuple[Type, ...]:
    if c.is_number():
        return ()
    found = together(c, list(map(c.types.plain_type, range(len(c.node.inputs)))))
    return TensorType(None if found.dtype is None else COMPLEX.get(found.dtype), found.shape)


def _complex_of(x: TensorType) -> DType | None:
    """The element type of a spectrum: integers are treated as float32."""
    dtype = as_float(x.dtype)
    return dtype if dtype in REAL and dtype not in COMPLEX else COMPLEX.get(dtype) if dtype else None


@FAMILY.shape(*(f"fft_{way}{dims}" for way in ("fft", "ifft") for dims in ("", "2", "n")), "fft_rfft")
def spectrum(c: Call) -> Type:
    x, dtype = c.tensor(0), _complex_of(c.tensor(0))
    if x.shape is None or c.has("n") or c.has("s"):
        return TensorType(dtype, None if x.shape is None else (None,) * len(x.shape))
    if c.schema.name != "aten::fft_rfft":
        return TensorType(dtype, x.shape)
    at = c.axis(c.arg("dim"), len(x.shape))
    if at is None:
        return TensorType(dtype, (None,) * len(x.shape))
    size = x.shape[at]
    return TensorType(dtype, resized(x.shape, at, size // 2 + 1 if isinstance(size, int) else None))
