"""Short-time Fourier transforms, and their inverses."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import real_type, result_type
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.support import AnyDType, Array, check_size


def _stft(
    x: Array,
    n_fft: int,
    hop: int | None = None,
    length: int | None = None,
    window: Array | None = None,
    normalized: bool = False,
    onesided: Any = None,
    return_complex: bool | None = None,
    *others: Any,
) -> Array:
    """The spectra of ``n_fft`` elements each, from every ``hop`` th on."""
    if isinstance(onesided, str) or any(o is not None for o in others):
        raise Error("IRC423", "stft neither pads nor aligns to its window here: torch.stft in Python pads before")
    hop, length = n_fft // 4 if hop is None else hop, n_fft if length is None else length
    size = x.shape[-1] if x.ndim in (1, 2) else 0
    if x.dtype.char not in "fdFD" or not 0 < n_fft <= size or hop < 1 or not 0 < length <= n_fft:
        raise Error("IRC421", f"no stft of {n_fft} elements, by {hop}, of {x.dtype.name}{list(x.shape)}")
    is_complex = x.dtype.kind == "c" or (window is not None and window.dtype.kind == "c")
    factors = _centred(window, n_fft, length, x.dtype)
    if return_complex is None and not is_complex:
        raise Error("IRC423", "stft needs return_complex of real numbers")
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise Error("IRC424", "one side of a spectrum is enough of real numbers only")
    check_size((*x.shape[:-1], (size - n_fft) // hop + 1, n_fft), np.dtype(np.complex128))
    frames = np.lib.stride_tricks.sliding_window_view(x, n_fft, -1)[..., ::hop, :] * factors
    frames = frames.astype(x.dtype if window is None else result_type(x, window), copy=False)
    transform = np.fft.rfft if onesided else np.fft.fft
    single = frames.dtype.char in "fF"
    found: Array = transform(frames, norm="ortho" if normalized else None).astype(
        np.complex64 if single else np.complex128
    )
    turned = np.swapaxes(found, -1, -2)
    if return_complex or return_complex is None:
        return turned
    return found.view(np.float32 if single else np.float64).reshape(*found.shape, 2).swapaxes(-2, -3)


def _centred(window: Array | None, n_fft: int, length: int, dtype: AnyDType) -> Array:
    """Factors for ``n_fft`` elements: the ``length`` in the middle are ``window``, or ones without a window."""
    if window is not None and (window.ndim != 1 or window.size != length):
        raise Error("IRC421", f"a window of shape {list(window.shape)} is none of {length} elements")
    factors = np.zeros(n_fft, dtype if window is None else window.dtype)
    start = (n_fft - length) // 2
    factors[start : start + length] = 1 if window is None else window
    return factors


def _istft(
    x: Array,
    n_fft: int,
    hop: int | None = None,
    length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    size: int | None = None,
    return_complex: bool = False,
) -> Array:
    """The signal, of ``size`` elements, that frames through a window give back where they overlap."""
    hop, length = n_fft // 4 if hop is None else hop, n_fft if length is None else length
    bins, count = x.shape[-2:] if x.ndim in (2, 3) else (0, 0)
    onesided = bins != n_fft if onesided is None else onesided
    if x.dtype.char not in "FD" or not x.size or bins != (n_fft // 2 + 1 if onesided else n_fft):
        raise Error("IRC421", f"no istft of {n_fft} elements of {x.dtype.name}{list(x.shape)}")
    if not 0 < hop <= length <= n_fft:
        raise Error("IRC424", f"istft needs 0 < hop length {hop} <= window length {length} <= {n_fft}")
    factors = _centred(window, n_fft, length, real_type(x.dtype))
    if onesided if return_complex else window is not None and window.dtype.kind == "c":
        raise Error(
            "IRC424", "istft gives complex numbers of both sides of spectra only, real ones by real windows only"
        )
    whole = n_fft + hop * (count - 1)
    check_size((*x.shape[:-2], max(whole, size or 0)), np.dtype(np.complex128))
    spectra = np.swapaxes(x, -1, -2)
    norm = "ortho" if normalized else None
    if return_complex:
        frames = np.fft.ifft(spectra, norm=norm)
    else:
        frames = np.fft.irfft(spectra[..., : n_fft // 2 + 1], n_fft, norm=norm)
    frames = frames * factors
    found = np.zeros((*x.shape[:-2], whole), frames.dtype)
    weight = np.zeros(whole, np.square(factors).dtype)
    for i in range(count):
        found[..., i * hop : i * hop + n_fft] += frames[..., i, :]
        weight[i * hop : i * hop + n_fft] += np.square(factors)
    first = n_fft // 2 if center else 0
    last = whole - (n_fft // 2 if center else 0) if size is None else first + size
    if not first < last:
        raise Error("IRC424", f"istft of {count} frames leaves no elements")
    found, weight = found[..., first:last], weight[first:last]
    if not weight.size or np.abs(weight).min() <= 1e-11:
        raise Error("IRC424", "istft: windows do not overlap everywhere")
    rest = last - first - weight.size
    found = np.pad(found / weight, [(0, 0)] * (x.ndim - 2) + [(0, rest)])
    return found.astype(x.dtype if return_complex else real_type(x.dtype))


table({"stft": _stft, "istft": _istft})
