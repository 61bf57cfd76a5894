"""Windows, Fourier transforms, complex numbers made of their parts, spectrograms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import FLOAT32, as_float, dtype_of, is_floating, real_type, result_type
from irc.runtime.kernels.aten.pointwise import Computation, Operand, register
from irc.runtime.kernels.aten.registering import table, two
from irc.runtime.kernels.support import AnyDType, Array, axes_in, check_size, counting, filled

# -- windows -------------------------------------------------------------------


def _window(shape: Callable[..., Any], length: int, *arguments: Any) -> Array:
    """A window by length, periodicity, parameters and options (the first is the element type)."""
    given = [a for a in arguments[:3] if isinstance(a, (bool, float))]
    dtype = _floating((*arguments[len(given) :], None)[0])
    is_periodic, parameters = (given or [True])[0], given[1:]
    check_size((length,), dtype)
    if length <= 1:
        return np.ones(length, dtype)
    last = length if is_periodic else length - 1
    return np.asarray(shape(counting(length) / last, *parameters)).astype(dtype)


def _floating(number: int | None) -> AnyDType:
    dtype = dtype_of(number, FLOAT32)
    if not is_floating(dtype):
        raise Error("IRC423", f"windows and frequencies are floating-point numbers, not of {dtype.name}")
    return dtype


def _hamming(place: Array, alpha: float = 0.54, beta: float = 0.46) -> Any:
    return alpha - beta * np.cos(2 * np.pi * place)


def _blackman(place: Array) -> Any:
    return 0.08 * np.cos(4 * np.pi * place) - 0.5 * np.cos(2 * np.pi * place) + 0.42


def _kaiser(place: Array, beta: float = 12.0) -> Any:
    inside = np.maximum(1 - np.square(2 * place - 1), 0)
    return np.i0(beta * np.sqrt(inside)) / np.i0(beta)


# -- Fourier transforms --------------------------------------------------------

_NORMS = (None, "backward", "ortho", "forward")


def _transform(
    compute: Callable[..., Any], x: Array, sizes: Sequence[int] | None, dims: Sequence[int], norm: str | None
) -> Array:
    """A transform over several dimensions; ``compute`` is NumPy's function for them."""
    takes_complex, gives_real = compute is not np.fft.rfftn, compute is np.fft.irfftn
    dtype = as_float(x.dtype)
    if dtype.char not in "fdFD" or (dtype.kind == "c" and not takes_complex):
        raise Error("IRC423", f"this Fourier transform is not defined on elements of {x.dtype.name}")
    if norm not in _NORMS:
        raise Error("IRC424", f"norm is {norm!r}; it must be 'backward', 'ortho' or 'forward'")
    axes = axes_in(dims, x.ndim)
    if sizes is not None and len(sizes) != len(axes):
        raise Error("IRC421", f"{len(sizes)} sizes are given for {len(axes)} dimensions")
    whole = [x.shape[a] for a in axes]
    if gives_real:
        whole[-1] = 2 * (whole[-1] - 1)
    if sizes is not None:
        whole = [n if s == -1 else s for n, s in zip(whole, sizes)]
    if any(n < 1 for n in whole):
        raise Error("IRC421", f"there is no Fourier transform of {min(whole)} elements")
    shape = list(x.shape)
    for axis, n in zip(axes, whole):
        shape[axis] = n
    check_size(shape, np.dtype(np.complex128))
    single = dtype.char in "fF"
    kind = ("f4" if single else "f8") if gives_real else ("c8" if single else "c16")
    found = np.asarray(compute(x.astype(dtype, copy=False), whole, axes, norm=norm))
    is_padded = any(n > m for n, m in zip(shape, x.shape))
    order = _order(x, axes, is_padded, is_last_fixed=gives_real or not takes_complex)
    out = layout.empty_in_order(found.shape, np.dtype(kind), order)
    np.copyto(out, found, casting="same_kind")
    return out


def _along(
    compute: Callable[..., Any], x: Array, n: int | None = None, dim: int = -1, norm: str | None = None
) -> Array:
    if n is not None and n < 1:
        raise Error("IRC421", f"there is no Fourier transform of {n} elements")
    return _transform(compute, x, None if n is None else [n], [dim], norm)


def _over(compute: Callable[..., Any], x: Array, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Array:
    """A transform over as many of the last dimensions as sizes are given, or over all, if ``dim`` is None."""
    count = x.ndim if s is None else len(s)
    return _transform(compute, x, s, range(-count, 0) if dim is None else dim, norm)


def _over_all(compute: Callable[..., Any], x: Array, s: Any = None, dim: Any = None, norm: str | None = None) -> Array:
    return _over(compute, x, s, dim, norm)


def _order(x: Array, axes: Sequence[int], is_dense: bool, is_last_fixed: bool) -> list[int]:
    """How torch lays out a result: transformed axes are the fastest, the others lie as in ``x``."""
    steps = [-i for i in range(x.ndim)] if is_dense else x.strides
    last = axes[-1:] if is_last_fixed else ()
    rest = [i for i in range(x.ndim) if i not in last]
    return [*sorted(rest, key=lambda i: (i in axes, -steps[i])), *last]


def _shift(shift: Callable[..., Any], x: Array, dim: Any = None) -> Array:
    return np.array(shift(x, None if dim is None else axes_in(dim, x.ndim)), order="C")


def _frequencies(
    frequencies: Callable[..., Any], n: int, d: float = 1.0, dtype: int | None = None, *options: Any
) -> Array:
    element = _floating(dtype)
    check_size((n,), element)
    if not n:
        return np.asarray(frequencies(1, 1.0)).astype(element)[: int(frequencies is np.fft.rfftfreq)]
    return (np.asarray(frequencies(n, 1.0)) / np.float64(d)).astype(element)


_TRANSFORMS = {name: getattr(np.fft, f"{name}n") for name in ("fft", "ifft", "rfft", "irfft")}


# -- complex numbers -----------------------------------------------------------


def _of_parts(
    real: Callable[[Array, Array], Any], imaginary: Callable[[Array, Array], Any], x: Operand, y: Operand
) -> Computation:
    if x.dtype != y.dtype or x.dtype.char not in "fd":
        types = f"{x.dtype.name} and {y.dtype.name}"
        raise Error("IRC423", f"complex numbers are made of float32 or float64, both parts alike, not of {types}")
    kind = np.dtype(np.complex64 if x.dtype == FLOAT32 else np.complex128)

    def compute(a: Array, b: Array, out: Array | None = None) -> Any:
        found = np.empty(np.broadcast(a, b).shape, kind) if out is None else out
        found.real, found.imag = real(a, b), imaginary(a, b)
        return found

    return Computation(compute, (x, y), x.dtype, kind)


register("complex", partial(_of_parts, two(lambda a, b: a), two(lambda a, b: b)))
register(
    "polar",
    partial(_of_parts, two(lambda a, b: a * np.cos(b)), two(lambda a, b: a * np.sin(b))),
    python=two(lambda a, b: complex(np.float64(a) * np.cos(np.float64(b)), np.float64(a) * np.sin(np.float64(b)))),
)


# -- spectrograms --------------------------------------------------------------


_STFT = (None, None, None, False, None, None, None)
"""Hop, length, window, normalized, onesided, return_complex, align_to_window, if left out."""

_ISTFT = (None, None, None, True, False, None, None, False)
"""Hop, length, window, center, normalized, onesided, size, return_complex, if left out."""


def stft(x: Array, n_fft: int, *options: Any) -> Array:
    """The spectra of ``n_fft`` elements each, from every ``hop`` th on."""
    hop, length, window, normalized, onesided, return_complex, *others = filled(options, *_STFT)
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
    """Factors for ``n_fft`` elements: the middle ``length`` are ``window``, or ones without it."""
    if window is not None and (window.ndim != 1 or window.size != length):
        raise Error("IRC421", f"a window of shape {list(window.shape)} is none of {length} elements")
    factors = np.zeros(n_fft, dtype if window is None else window.dtype)
    start = (n_fft - length) // 2
    factors[start : start + length] = 1 if window is None else window
    return factors


def istft(x: Array, n_fft: int, *options: Any) -> Array:
    """The signal, of ``size`` elements, that frames through a window give back where they overlap."""
    hop, length, window, center, normalized, onesided, size, return_complex = filled(options, *_ISTFT)
    hop, length = n_fft // 4 if hop is None else hop, n_fft if length is None else length
    bins, count = x.shape[-2:] if x.ndim in (2, 3) else (0, 0)
    onesided = bins != n_fft if onesided is None else onesided
    if x.dtype.char not in "FD" or not x.size or bins != (n_fft // 2 + 1 if onesided else n_fft):
        raise Error("IRC421", f"no istft of {n_fft} elements of {x.dtype.name}{list(x.shape)}")
    if not 0 < hop <= length <= n_fft:
        raise Error("IRC424", f"istft needs 0 < hop length {hop} <= window length {length} <= {n_fft}")
    factors = _centred(window, n_fft, length, real_type(x.dtype))
    if onesided if return_complex else window is not None and window.dtype.kind == "c":
        raise Error("IRC424", "istft gives complex numbers of both sides of spectra, and real ones by real windows")
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


table(
    hann_window=partial(_window, partial(_hamming, alpha=0.5, beta=0.5)),
    hamming_window=partial(_window, _hamming),
    blackman_window=partial(_window, _blackman),
    kaiser_window=partial(_window, _kaiser),
    **{f"fft_{name}": partial(_along, compute) for name, compute in _TRANSFORMS.items()},
    **{f"fft_{name}2": partial(_over, compute) for name, compute in _TRANSFORMS.items()},
    **{f"fft_{name}n": partial(_over_all, compute) for name, compute in _TRANSFORMS.items()},
    fft_fftshift=partial(_shift, np.fft.fftshift),
    fft_ifftshift=partial(_shift, np.fft.ifftshift),
    fft_fftfreq=partial(_frequencies, np.fft.fftfreq),
    fft_rfftfreq=partial(_frequencies, np.fft.rfftfreq),
)
