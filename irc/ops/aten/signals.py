# ruff: noqa: E501 - a row is one line
"""Windows, Fourier transforms, complex numbers."""

from __future__ import annotations

from irc.ir.types import DType, TensorType, Type
from irc.ops.aten.call import Call, TorchFamily, resized
from irc.ops.aten.promotion import COMPLEX, REAL, as_float, like_first, together

ROWS = """
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

FAMILY = TorchFamily(ROWS)
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
