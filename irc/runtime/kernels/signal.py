"""Signals: Fourier transforms, the mel matrix; ImageDecoder, by Pillow.

Complex numbers are pairs along the last axis, real ones vectors of one element there.
"""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from numpy import fft

from irc.errors import Error
from irc.runtime.bounds import check_work, pace
from irc.runtime.kernels.registry import computes, element_type, one_of
from irc.runtime.kernels.support import AnyDType, Array, axis_in, c_order, check_size, is_half, needed, scalar

BLOCK_ELEMENTS = 1 << 18
"""Of frames that are transformed at once: measured twice as fast as all, and a run under limits looks at the clock."""


def _complex(x: Array) -> Array:
    """The numbers that ``x`` stands for: real if it has one component, of float32 or float64."""
    if not x.ndim or x.shape[-1] not in (1, 2):
        raise Error("IRC421", f"the last axis of the input, of shape {list(x.shape)}, must have 1 or 2 components")
    wide = x.astype(np.float32) if is_half(x.dtype) else x
    return wide[..., 0] if x.shape[-1] == 1 else wide[..., 0] + 1j * wide[..., 1]


def _components(y: Array, dtype: AnyDType) -> Array:
    """Numbers as vectors of their components, one of real numbers and two of complex ones."""
    if y.dtype.kind != "c":
        return y[..., None].astype(dtype, order="C")
    found: Array = np.empty((*y.shape, 2), dtype)
    found[..., 0], found[..., 1] = y.real, y.imag
    return found


def _transform(x: Array, length: int, axis: int, is_inverse: bool, is_onesided: bool) -> Array:
    """The transform of ``x``, cut or zero-filled to ``length``; real if of half a spectrum."""
    if length < 1:
        raise Error("IRC422", f"a Fourier transform of length {length} is not defined")
    shape = list(x.shape)
    shape[axis] = length
    check_size([*shape, 2], np.dtype(np.complex128))
    check_work(2 * int(np.prod(shape)) * length.bit_length())
    if is_inverse:
        return fft.irfft(x, length, axis) if is_onesided else fft.ifft(x, length, axis)
    if is_onesided and x.dtype.kind != "c":
        return fft.rfft(x, length, axis)
    found = fft.fft(x, length, axis)
    return found[(*(slice(None),) * axis, slice(length // 2 + 1))] if is_onesided else found


@computes("onnx::DFT", since=20)
def dft(
    x: Array, length: Array | None = None, axis: Array | None = None, *, inverse: bool = False, onesided: bool = False
) -> Array:
    """The axis is an input."""
    along = -2 if axis is None else int(scalar(axis, "axis"))
    return dft_along_attribute(x, length, axis=along, inverse=inverse, onesided=onesided)


@computes("onnx::DFT", since=17)
def dft_along_attribute(
    x: Array, length: Array | None = None, *, axis: int = 1, inverse: bool = False, onesided: bool = False
) -> Array:
    signal = _complex(x)
    at = axis_in(axis, x.ndim)
    if at == x.ndim - 1:
        raise Error("IRC420", f"axis {at} is the last one, which holds real and imaginary parts")
    size = signal.shape[at]
    default = 2 * (size - 1) if inverse and onesided else size
    n = default if length is None else int(scalar(length, "dft_length"))
    return _components(_transform(signal, n, at, inverse, onesided), x.dtype)


@computes("onnx::STFT")
def stft(
    x: Array, step: Array, window: Array | None = None, length: Array | None = None, *, onesided: bool = True
) -> Array:
    """Transforms of frames of a signal [batch, length, 1|2]: [batch, frames, frequencies, 2].

    A real signal may be [batch, length], as PyTorch's exporter writes it, and ONNX Runtime takes it.
    """
    if x.ndim not in (2, 3):
        shapes = "[batch, length] or [batch, length, 1 or 2]"
        raise Error("IRC421", f"the signal has shape {list(x.shape)}; it must be {shapes}")
    signal = _complex(x[..., None] if x.ndim == 2 else x)
    hop = int(scalar(step, "frame_step"))
    size = x.shape[1] if window is None else window.size
    size = size if length is None else int(scalar(length, "frame_length"))
    if hop < 1 or not 1 <= size <= x.shape[1]:
        raise Error("IRC424", f"frames of {size}, one every {hop}, cannot be taken of a signal of {x.shape[1]}")
    if window is not None and window.shape != (size,):
        raise Error("IRC421", f"the window has shape {list(window.shape)} and frames have {size} positions")
    frames = np.lib.stride_tricks.sliding_window_view(signal, size, axis=1)[:, ::hop]
    check_size(frames.shape, np.dtype(np.complex128))
    weights = None if window is None else window.astype(signal.real.dtype)

    def transformed(part: Array) -> Array:
        return _transform(part if weights is None else part * weights, size, 2, False, onesided)

    count = max(1, BLOCK_ELEMENTS // max(1, len(x) * size))
    if frames.shape[1] <= count:
        return _components(transformed(frames), x.dtype)
    out = np.empty((*frames.shape[:2], size // 2 + 1 if onesided else size, 2), x.dtype)
    for start in range(0, frames.shape[1], count):
        pace()
        found = transformed(frames[:, start : start + count])
        block = out[:, start : start + count]
        block[..., 0], block[..., 1] = found.real, found.imag
    return out


@computes("onnx::MelWeightMatrix", dtype=element_type("output_datatype", 1))
def mel_weight_matrix(bins: Array, length: Array, rate: Array, low: Array, high: Array, *, dtype: AnyDType) -> Array:
    """Triangles over the frequencies of a transform, evenly spaced in mel: [dft_length // 2 + 1, bins]."""
    count, size = int(scalar(bins, "num_mel_bins")), int(scalar(length, "dft_length"))
    samples = int(scalar(rate, "sample_rate"))
    if samples < 1:
        raise Error("IRC424", f"the sample rate is {samples}")
    shape = check_size([size // 2 + 1, count], np.dtype(np.float64))
    ends = [2595 / np.log(10) * np.log1p(float(scalar(f, "a frequency")) / 700) for f in (low, high)]
    mels = ends[0] + np.arange(count + 2) * ((ends[1] - ends[0]) / (count + 2))
    hertz = 700 * np.expm1(mels * (np.log(10) / 2595))
    edges = np.floor((size + 1) * hertz / samples).astype(np.int64)
    left, center, right = edges[:-2], edges[1:-1], edges[2:]
    at = np.arange(shape[0])[:, None]
    rising = (at - left) / np.maximum(center - left, 1)
    falling = (right - at) / np.maximum(right - center, 1)
    inside = [(at >= left) & (at < center), at == center, (at > center) & (at < right)]
    return np.select(inside, [rising, np.ones(shape), falling], 0.0).astype(dtype)


FORMATS = ("BMP", "JPEG", "JPEG2000", "PNG", "PPM", "TIFF", "WEBP")
"""What the specification names, by Pillow's names."""

CHANNELS = {"RGB": ("RGB", 3), "BGR": ("RGB", 3), "Grayscale": ("L", 1)}
"""Pixel format -> Pillow's mode, and how many channels it has."""

BYTE = np.dtype(np.uint8)


@computes(
    "onnx::ImageDecoder",
    pixel_format=one_of("pixel_format", "RGB", CHANNELS),
    pillow=lambda node: needed("PIL.Image", node.kind),
)
def image_decoder(encoded: Array, *, pixel_format: str, pillow: Any) -> Array:
    """The pixels [height, width, channels] of an encoded image as uint8; empty if it is invalid."""
    mode, channels = CHANNELS[pixel_format]
    if encoded.ndim != 1 or encoded.dtype != BYTE:
        raise Error("IRC421", f"an encoded image is a vector of uint8, not {encoded.dtype}{list(encoded.shape)}")
    try:
        pixels = _decode(pillow, encoded.tobytes(), mode, channels)
    except pillow.DecompressionBombError as error:
        raise Error("IRC422", str(error)) from None
    except (OSError, SyntaxError, ValueError, EOFError):  # what Pillow raises for files that it cannot read
        return np.zeros((0, 0, channels), BYTE)
    return c_order(pixels[:, :, ::-1] if pixel_format == "BGR" else pixels)


def _decode(pillow: Any, data: bytes, mode: str, channels: int) -> Array:
    """Pixels in ``mode``, [height, width, channels]; the size is checked before decoding."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pillow.DecompressionBombWarning)
        with pillow.open(io.BytesIO(data), formats=FORMATS) as image:
            shape = check_size((image.height, image.width, channels), BYTE)
            if image.mode.startswith("I;16"):  # Pillow's own conversion would cut off what is above 255
                image = pillow.fromarray((np.asarray(image) >> 8).astype(BYTE))
            return np.array(image.convert(mode)).reshape(shape)
