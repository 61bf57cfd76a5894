"""Random numbers and dropout."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import pace
from irc.runtime.kernels.aten.creation import full_like
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    as_float,
    check_result,
    check_writable,
    dtype_of,
    element_of,
    overwrite,
)
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.aten.views import sizes_of
from irc.runtime.kernels.support import Array, broadcast_shape, check_size, in_rows
from irc.runtime.values import is_array

_BLOCK = 1 << 16
"""How many numbers are drawn by weights between two looks at the clock."""

_LARGE_RATE = float(1 << 60)
"""Rates up to this one have numbers of events that 64 bits hold."""

_GENERATOR: Any = np.random.default_rng()


def uniform(shape: Sequence[int]) -> Array:
    """From [0, 1)."""
    return np.asarray(_GENERATOR.random(check_size(shape, FLOAT64)))


def _gaussian(shape: Sequence[int]) -> Array:
    return np.asarray(_GENERATOR.standard_normal(check_size(shape, FLOAT64)))


def _random(draw: Callable[[Sequence[int]], Array]) -> tuple[Callable[..., Array], Callable[..., Array]]:
    """``name(size, options)`` and ``name_like(x, options)``."""

    def of_size(size: Any, *options: Any) -> Array:
        dtype = dtype_of(next((o for o in options[:1]), None), FLOAT32)
        return draw(sizes_of(size)).astype(dtype)

    def like(x: Array, dtype: int | None = None, *options: Any) -> Array:
        return overwrite(full_like(x, 0, dtype, *options), draw(x.shape))

    return of_size, like


_rand, _rand_like = _random(uniform)
_randn, _randn_like = _random(_gaussian)


def _randint(*arguments: Any) -> Array:
    """``randint(high, size, options)`` or ``randint(low, high, size, options)``."""
    bounds = 1 if isinstance(arguments[1], (list, tuple)) else 2
    low, high = (0, arguments[0]) if bounds == 1 else arguments[:2]
    size, *options = arguments[bounds:]
    element = dtype_of(options[0], FLOAT32) if options else INT64
    return _integers(low, high, sizes_of(size)).astype(element)


def _integers(low: int, high: int, shape: Sequence[int]) -> Array:
    if low >= high:
        raise Error("IRC424", f"there is no integer from {low} to below {high}")
    return np.asarray(_GENERATOR.integers(low, high - 1, check_size(shape, INT64), endpoint=True))


def _randint_like(x: Array, *arguments: Any) -> Array:
    """``(high, options)`` or ``(low, high, options)``, both with a generator before the five options or without."""
    count = len(arguments)
    bounds = 2 if count in (2, 8) or (count == 7 and isinstance(arguments[1], int)) else 1
    low, high = (0, arguments[0]) if bounds == 1 else arguments[:2]
    options = arguments[bounds:][-5:]
    out = full_like(x, 0, *options)
    return overwrite(out, _integers(int(low), int(high), x.shape).astype(out.dtype))


def _randperm(n: int, dtype: int | None = 4, *options: Any) -> Array:
    element = dtype_of(dtype, INT64)
    check_size((n,), INT64)
    return _GENERATOR.permutation(n).astype(element)


def _normal(mean: Any = 0.0, std: Any = 1.0, *arguments: Any) -> Array:
    """Of tensors of means and deviations, or of numbers and a size."""
    if is_array(std) and std.dtype.kind == "c":
        raise Error("IRC423", "a deviation is a real number; take the real part")
    if not np.all(np.asarray(std) >= 0):
        raise Error("IRC424", "a deviation is negative")
    if not is_array(mean) and not is_array(std):
        size, _, dtype = (*arguments, None, None)[:3]
        element = dtype_of(dtype, FLOAT32)
        return np.asarray(mean + std * _gaussian(sizes_of(size))).astype(element)
    shape = broadcast_shape(np.shape(mean), np.shape(std))
    dtype = as_float((mean if is_array(mean) else std).dtype)
    return np.asarray(mean + std * _gaussian(shape)).astype(dtype)


def _bernoulli(x: Array, p: Any = None, *ignored: Any) -> Array:
    """1 with the probability that the tensor, or ``p``, says."""
    chance = x if p is None or not (is_array(p) or isinstance(p, float)) else p
    return _ones(x, chance).astype(x.dtype)


def _multinomial(x: Array, num_samples: int, replacement: bool = False, *ignored: Any) -> Array:
    """Indices drawn by weights, which the rows hold."""
    if x.ndim not in (1, 2):
        raise Error("IRC421", f"weights to draw by are a vector or rows of a matrix, not of shape {list(x.shape)}")
    rows = in_rows(x).astype(np.float64)
    totals = rows.sum(axis=1, keepdims=True)
    if not len(rows):
        return np.empty(check_size((*x.shape[:-1], num_samples), INT64), INT64)
    if not (rows >= 0).all() or not (totals > 0).all():
        raise Error("IRC424", "weights to draw by must not be negative, nor all 0")
    if not replacement and num_samples > int((rows > 0).sum(axis=1).min()):
        raise Error("IRC424", f"{num_samples} different indices cannot be drawn by these weights")
    drawn = np.empty(check_size((len(rows), num_samples), INT64), INT64)
    block = max(rows.shape[1], _BLOCK) if replacement else max(num_samples, 1)
    for found, chances in zip(drawn, rows / totals, strict=True):
        for start in range(0, num_samples, block):
            pace()
            part = found[start : start + block]
            part[:] = _GENERATOR.choice(len(chances), part.size, replacement, chances)
    return drawn.reshape(*x.shape[:-1], num_samples)


def _poisson(x: Array, *ignored: Any) -> Array:
    """Numbers of events of these rates. Of very large ones they are normally distributed."""
    rates = x.astype(np.float64)
    if (rates < 0).any():
        raise Error("IRC424", "a rate is negative")
    is_large = ~(rates <= _LARGE_RATE)  # or is not a number
    found = np.asarray(_GENERATOR.poisson(np.where(is_large, 0.0, rates)), np.float64)
    if is_large.any():
        spread = np.sqrt(np.where(np.isfinite(rates), rates, 0.0))
        found = np.where(is_large, rates + spread * _gaussian(x.shape), found)
    return found.astype(x.dtype)


def _drawn_into(draw: Callable[..., Any]) -> Callable[..., Array]:
    def run(x: Array, *parameters: Any) -> Array:
        check_writable(x)
        np.copyto(x, draw(x, *(p for p in parameters if p is not None)), casting="unsafe")
        return x

    return run


def _normals(x: Array, mean: float = 0.0, std: float = 1.0) -> Array:
    if not std >= 0:
        raise Error("IRC424", f"the deviation {std} is negative or not a number")
    return mean + std * _gaussian(x.shape)


def _between(x: Array, low: float = 0.0, high: float = 1.0) -> Array:
    if not low <= high:
        raise Error("IRC424", f"there is no number from {low} to {high}")
    for bound in (low, high):
        if math.isinf(bound):
            raise Error("IRC424", f"there are no bounds at {bound}")
        element_of(bound, x.dtype)  # which refuses what does not fit
    return low + (high - low) * uniform(x.shape)


def _ones(x: Array, p: Any = 0.5) -> Array:
    """Where to write 1, with one probability or a tensor of them; torch ignores these if ``x`` is empty."""
    if is_array(p) and not x.size:
        return np.zeros(x.shape, BOOL)
    if not np.all((np.asarray(p) >= 0) & (np.asarray(p) <= 1)):
        raise Error("IRC424", "a probability is not between 0 and 1")
    try:
        chances = np.broadcast_to(p, x.shape)
    except ValueError:
        raise Error("IRC421", f"probabilities of shape {list(np.shape(p))} for one of {list(x.shape)}") from None
    return np.asarray(uniform(x.shape) < chances)


def _exponentials(x: Array, rate: float = 1.0) -> Array:
    if not rate > 0:
        raise Error("IRC424", f"exponential numbers have a rate above 0, not {rate}")
    return _GENERATOR.exponential(1 / rate, check_size(x.shape, FLOAT64))


def _random_into(x: Array, *arguments: Any) -> Array:
    """``(generator)``, ``(to, generator)`` or ``(from, to, generator)``: without ``to``, as far as the type reaches."""
    check_writable(x)
    bounds = arguments[:-1] if arguments and arguments[-1] is None else arguments
    both: tuple[Any, ...] = (0, *bounds, None)[:2] if len(bounds) < 2 else bounds
    low, high = both
    np.copyto(x, _integers(low, _beyond(x.dtype) if high is None else high, x.shape), casting="unsafe")
    return x


def _beyond(dtype: np.dtype[Any]) -> int:
    """One more than the largest integer to draw: as far as the element type reaches and floats are exact."""
    if dtype.kind == "c":
        raise Error("IRC423", "random integers are no complex numbers")
    digits = {"f": {2: 11, 4: 24, 8: 53}, "V": {2: 8}}.get(dtype.kind, {}).get(dtype.itemsize)
    return 2**digits + 1 if digits else 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1


table(
    {
        "rand": _rand,
        "randn": _randn,
        "rand_like": _rand_like,
        "randn_like": _randn_like,
        "randint": _randint,
        "randint_like": _randint_like,
        "randperm": _randperm,
        "normal": _normal,
        "bernoulli": _bernoulli,
        "multinomial": _multinomial,
        "poisson": _poisson,
        "normal_": _drawn_into(_normals),
        "uniform_": _drawn_into(_between),
        "bernoulli_": _drawn_into(_ones),
        "exponential_": _drawn_into(_exponentials),
        "random_": _random_into,
    }
)


# -- Dropout, of elements or whole channels ------------------------------------


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise Error("IRC424", f"the probability of dropout is {p}; it must be between 0 and 1")


def _kept(shape: tuple[int, ...], p: float) -> Array:
    _check_probability(p)
    return np.asarray(uniform(shape) >= p)


def _dropped_together(x: Array) -> tuple[int, ...]:
    """The shape of what is dropped or kept as a whole: channels. Error IRC421 if there are none."""
    if x.ndim < 2:
        raise Error("IRC421", f"channels are dropped of at least 2 dimensions; the shape is {list(x.shape)}")
    return (*x.shape[:2], *(1,) * (x.ndim - 2))


def factors(x: Array, p: float, features: bool = False) -> Array:
    """What to multiply ``x`` by: 0 where something is dropped, 1 / (1 - p) elsewhere; Error unless ``0 <= p <= 1``.

    Integers are dropped all or none.
    """
    if p == 1:
        return np.zeros((), x.dtype)
    check_result(x, FLOAT32)
    return np.asarray(_kept(_dropped_together(x) if features else x.shape, p) / (1 - p if p < 1 else 1)).astype(x.dtype)


def _dropout(features: bool) -> Callable[..., Array]:
    def run(x: Array, p: float, train: bool) -> Array:
        _check_probability(p)
        return np.asarray(x * factors(x, p, features)) if train and p and x.size else x

    return run


def _dropout_in_place(features: bool) -> Callable[..., Array]:
    def run(x: Array, p: float, train: bool) -> Array:
        _check_probability(p)
        if train and p:
            check_writable(x)
            np.multiply(x, factors(x, p, features), out=x)
        return x

    return run


def _native_dropout(x: Array, p: float, train: bool | None = True) -> tuple[Array, Array]:
    if not x.size:
        return x, np.empty_like(x)
    if train is False or p == 0:  # None means training, too
        return x.copy(), np.ones(x.shape, bool)
    check_result(x, FLOAT32)
    kept = _kept(x.shape, p)
    return np.asarray(x * kept / (1 - p if p < 1 else 1)).astype(x.dtype), kept


def _alpha_dropout(features: bool) -> Callable[..., Array]:
    """Dropped elements become the value that selu saturates at, then mean and variance are restored."""

    def run(x: Array, p: float, train: bool) -> Array:
        _check_probability(p)
        if not train or p == 0 or not x.size:
            return x
        if p == 1:
            return np.asarray(x * x.dtype.type(0))
        check_result(x, FLOAT32)
        saturation = -1.7580993408473766
        kept = _kept(_dropped_together(x) if features else x.shape, p)
        scale = 1 / math.sqrt((saturation**2 * p + 1) * (1 - p))
        return np.asarray(np.where(kept, x, saturation) * scale - saturation * p * scale).astype(x.dtype)

    return run


def _written(run: Callable[..., Array]) -> Callable[..., Array]:
    def writing(x: Array, p: float, train: bool) -> Array:
        found = run(x, p, train)
        return x if found is x else overwrite(x, found)

    return writing


table(
    {
        "dropout": _dropout(False),
        "dropout_": _dropout_in_place(False),
        "feature_dropout": _dropout(True),
        "feature_dropout_": _dropout_in_place(True),
        "native_dropout": _native_dropout,
        "alpha_dropout": _alpha_dropout(False),
        "alpha_dropout_": _written(_alpha_dropout(False)),
        "feature_alpha_dropout": _alpha_dropout(True),
        "feature_alpha_dropout_": _written(_alpha_dropout(True)),
    }
)
