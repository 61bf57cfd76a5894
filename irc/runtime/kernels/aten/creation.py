"""Tensors made from nothing, from Python values, or like another one; random numbers and dropout."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import pace
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    COMPLEX64,
    FLOAT32,
    FLOAT64,
    INT64,
    as_float,
    check_result,
    check_writable,
    dtype_of,
    element_of,
    is_integral,
    number_dtype,
    overwrite,
    wide,
)
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.aten.views import sizes_of
from irc.runtime.kernels.registry import bound
from irc.runtime.kernels.support import AnyDType, Array, broadcast_shape, check_size, counting, in_rows
from irc.runtime.values import is_array

COMPLEX128 = np.dtype(np.complex128)

# Arguments that say where and how: (dtype, layout, device, pin_memory), for `like` memory_format too. All but the
# first and the last are the same to irc.


def _full(size: Sequence[int], value: Any, dtype: AnyDType) -> Array:
    return np.full(check_size(size, dtype), element_of(value, dtype), dtype)


def full(size: Any, value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full(sizes_of(size), value, dtype_of(dtype, number_dtype(value)))


def scalar_tensor(value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full((), value, dtype_of(dtype, FLOAT32))


def _filled(size: Any, dtype: int | None = None, *options: Any, value: int) -> Array:
    return _full(sizes_of(size), value, dtype_of(dtype, FLOAT32))


def _like_filled(x: Array, dtype: int | None = None, *options: Any, value: int) -> Array:
    return full_like(x, value, dtype, *options)


def _new(x: Array, size: Any, dtype: int | None = None, *options: Any, value: int) -> Array:
    return new_full(x, size, value, dtype)


def full_like(x: Array, value: Any, dtype: int | None = None, *options: Any) -> Array:
    """A tensor filled with ``value``, of ``x``'s shape and layout unless ``options`` say otherwise."""
    memory_format = options[3] if len(options) > 3 else None
    out = layout.empty_like(x, dtype_of(dtype, x.dtype), memory_format)
    out[...] = element_of(value, out.dtype)
    return out


def new_full(x: Array, size: Any, value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full(sizes_of(size), value, dtype_of(dtype, x.dtype))


def empty(size: Any, dtype: int | None = None, *options: Any) -> Array:
    """Zeros: what a program reads before it writes is at least always the same."""
    memory_format = options[3] if len(options) > 3 and options[3] is not None else layout.CONTIGUOUS
    out = layout.empty_in_format(sizes_of(size), dtype_of(dtype, FLOAT32), memory_format)
    out[...] = 0
    return out


def empty_strided(size: Sequence[int], stride: Sequence[int], dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, FLOAT32)
    sizes = check_size(size, element)
    extent = 1 + sum((n - 1) * s for n, s in zip(sizes, stride, strict=True)) if math.prod(sizes) else 0
    return layout.strided(np.zeros(check_size((extent,), element), element), sizes, stride, 0)


# -- ranges --------------------------------------------------------------------


def arange(*arguments: Any) -> Array:
    """``arange(end)``, ``(start, end)`` or ``(start, end, step)``, with options (dtype, ...) or not."""
    count = len(arguments) - 4 if len(arguments) > 3 else len(arguments)
    numbers: list[Any] = list(arguments[:count])
    options = arguments[count:]
    start, end, step = [0, *numbers, 1] if count == 1 else [*numbers, 1][:3]
    whole = all(isinstance(v, int) for v in (start, end, step))
    dtype = dtype_of(options[0] if options else None, INT64 if whole else FLOAT32)
    if step == 0 or not all(map(math.isfinite, (start, end, step))) or (end - start) * step < 0:
        raise Error("IRC424", f"there is no range from {start} to {end} by {step}")
    if dtype == INT64 and not whole:  # torch converts first to this type, but to no other
        return arange(int(start), int(end), int(step))
    size = -((start - end) // step) if whole else math.ceil((end - start) / step)
    check_size((int(size),), INT64)
    steps: Array = counting(int(size))
    if is_integral(dtype):
        return (int(start) + steps * int(step)).astype(dtype)
    return (np.float64(start) + steps * np.float64(step)).astype(dtype)


def _type_between(start: Any, end: Any) -> AnyDType:
    """Element type of numbers between two, where none is asked for."""
    is_complex = any(v.dtype.kind == "c" if is_array(v) else isinstance(v, complex) for v in (start, end))
    return COMPLEX64 if is_complex else FLOAT32


def linspace(start: Any, end: Any, steps: int, dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, _type_between(start, end))
    return _evenly(start, end, steps, element).astype(element)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, _type_between(start, end))
    exponents = _evenly(start, end, steps, FLOAT64 if element == FLOAT32 else element)
    if element.kind == "c":
        return np.power(complex(base), exponents).astype(element)
    return np.power(float(base), exponents.astype(np.float64)).astype(element)


def _evenly(start: Any, end: Any, steps: int, element: AnyDType) -> Array:
    """Evenly spaced numbers from ``start`` to ``end``, elements of ``element``; floats in between."""
    if np.ndim(start) or np.ndim(end):
        raise Error("IRC421", f"steps go from one number to another, not from {np.shape(start)} to {np.shape(end)}")
    check_size((steps,), FLOAT64)
    within = wide(element) if element.kind in "fV" else COMPLEX128 if element.kind == "c" else FLOAT64
    if not steps:
        return np.empty(0, within)
    low: Any = element_of(start, element).astype(within).item()
    if steps == 1:
        return np.full(1, low, within)
    if element == BOOL:
        raise Error("IRC423", "there are no steps between bools")
    high: Any = element_of(end, element).astype(within).item()
    step = within.type((high - low) / (steps - 1))
    places: Array = counting(steps)
    # From both ends, so that both are exact.
    left = within.type(low) + step * places.astype(within)
    right = within.type(high) - step * (steps - 1 - places).astype(within)
    return np.where(places < steps // 2, left, right)


def eye(n: int, *arguments: Any) -> Array:
    """``eye(n, options...)`` or ``eye(n, m, options...)``."""
    m, dtype = (arguments[0], (*arguments, None)[1]) if len(arguments) in (1, 5) else (n, (*arguments, None)[0])
    element = dtype_of(dtype, FLOAT32)
    return np.eye(*check_size((n, m), element), dtype=element)


def _triangle_indices(
    row: int, col: int, offset: int = 0, dtype: int | None = 4, *options: Any, kept: Callable[[Any, Any], Any]
) -> Array:
    check_size((2, row, col), INT64)
    difference = counting(col) - counting(row)[:, None]
    return np.stack(np.nonzero(kept(difference, offset))).astype(dtype_of(dtype, INT64))


# -- from Python values --------------------------------------------------------


_RANK = {bool: 0, int: 1, float: 2, complex: 3}


def from_python(data: Any, dtype: int | None = None, *options: Any) -> Array:
    """A tensor with the contents of a number, or of a list, which may be nested; always in new memory."""
    numbers: list[Any] = []
    shape = _shape(data, numbers)
    kinds: list[type] = [type(n) for n in numbers]  # type: ignore[reportUnknownVariableType]  # of what is not known
    for kind in kinds:
        if kind not in _RANK:
            raise Error("IRC423", f"a tensor cannot be made of {kind.__name__}")
    own = number_dtype(max(kinds, key=_RANK.__getitem__)()) if kinds else FLOAT32
    element = dtype_of(dtype, own)
    # Numbers become elements of the default type first: 0.1 as float64 has the digits of a float32, as in TorchScript.
    return np.array(numbers, None if numbers else element).astype(own).astype(element).reshape(shape)


def _shape(data: Any, numbers: list[Any]) -> tuple[int, ...]:
    """The shape of nested lists, whose numbers are appended to ``numbers``."""
    if is_array(data):
        numbers.extend(data.reshape(-1).tolist())
        return data.shape
    if not isinstance(data, (list, tuple)):
        numbers.append(data)
        return ()
    items: list[Any] = list(data)  # type: ignore[reportUnknownArgumentType]
    shapes = [_shape(item, numbers) for item in items]
    if any(shape != shapes[0] for shape in shapes):
        raise Error("IRC421", f"the lists are of different lengths: {shapes[:4]}")
    return (len(items), *(shapes[0] if shapes else ()))


def as_tensor(data: Any, dtype: int | None = None, *options: Any) -> Array:
    """``data`` itself if it is a tensor of that element type."""
    if not is_array(data):
        return from_python(data, dtype)
    wanted = dtype_of(dtype, data.dtype)
    return data if wanted == data.dtype else data.astype(wanted)


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


def _random(size: Any, dtype: int | None = None, *options: Any, draw: Callable[[Sequence[int]], Array]) -> Array:
    return draw(sizes_of(size)).astype(dtype_of(dtype, FLOAT32))


def _random_like(x: Array, dtype: int | None = None, *options: Any, draw: Callable[[Sequence[int]], Array]) -> Array:
    return overwrite(full_like(x, 0, dtype, *options), draw(x.shape))


def randint(*arguments: Any) -> Array:
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


def randint_like(x: Array, *arguments: Any) -> Array:
    """``(high, options)`` or ``(low, high, options)``, both with or without a generator before."""
    count = len(arguments)
    bounds = 2 if count in (2, 8) or (count == 7 and isinstance(arguments[1], int)) else 1
    low, high = (0, arguments[0]) if bounds == 1 else arguments[:2]
    options = arguments[bounds:][-5:]
    out = full_like(x, 0, *options)
    return overwrite(out, _integers(int(low), int(high), x.shape).astype(out.dtype))


def randperm(n: int, dtype: int | None = 4, *options: Any) -> Array:
    element = dtype_of(dtype, INT64)
    check_size((n,), INT64)
    return _GENERATOR.permutation(n).astype(element)


def normal(mean: Any = 0.0, std: Any = 1.0, *arguments: Any) -> Array:
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


def bernoulli(x: Array, p: Any = None, *ignored: Any) -> Array:
    """1 with the probability that the tensor, or ``p``, says."""
    chance = x if p is None or not (is_array(p) or isinstance(p, float)) else p
    return _ones(x, chance).astype(x.dtype)


def multinomial(x: Array, num_samples: int, replacement: bool = False, *ignored: Any) -> Array:
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


def poisson(x: Array, *ignored: Any) -> Array:
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


def _drawn_into(draw: Callable[..., Any], x: Array, *parameters: Any) -> Array:
    check_writable(x)
    np.copyto(x, draw(x, *(p for p in parameters if p is not None)), casting="unsafe")
    return x


def _normals(x: Array, mean: float = 0.0, std: float = 1.0) -> Array:
    if not std >= 0:
        raise Error("IRC424", f"the deviation {std} is negative or not a number")
    return mean + std * _gaussian(x.shape)


def _between(x: Array, low: float = 0.0, high: float = 1.0) -> Array:
    if not low <= high:
        raise Error("IRC424", f"there is no number from {low} to {high}")
    for end in (low, high):
        if math.isinf(end):
            raise Error("IRC424", f"there are no bounds at {end}")
        element_of(end, x.dtype)  # which refuses what does not fit
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


def random_(x: Array, *arguments: Any) -> Array:
    """``(generator)``, ``(to, generator)`` or ``(from, to, generator)``; ``to``: the type's limit."""
    check_writable(x)
    bounds = arguments[:-1] if arguments and arguments[-1] is None else arguments
    both: tuple[Any, ...] = (0, *bounds, None)[:2] if len(bounds) < 2 else bounds
    low, high = both
    np.copyto(x, _integers(low, _beyond(x.dtype) if high is None else high, x.shape), casting="unsafe")
    return x


def _beyond(dtype: np.dtype[Any]) -> int:
    """One more than the largest integer to draw: as far as the element type reaches and floats are exact."""
    if dtype.kind == "c":
        raise Error("IRC423", "random integers are not complex numbers")
    digits = {"f": {2: 11, 4: 24, 8: 53}, "V": {2: 8}}.get(dtype.kind, {}).get(dtype.itemsize)
    return 2**digits + 1 if digits else 2 if dtype.kind == "b" else int(np.iinfo(dtype).max) + 1


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
    """Dropout factors: 0 where dropped, 1 / (1 - p) elsewhere; Error unless ``0 <= p <= 1``.

    Integers are dropped all or none.
    """
    if p == 1:
        return np.zeros((), x.dtype)
    check_result(x, FLOAT32)
    return np.asarray(_kept(_dropped_together(x) if features else x.shape, p) / (1 - p if p < 1 else 1)).astype(x.dtype)


def native_dropout(x: Array, p: float, train: bool | None = True) -> tuple[Array, Array]:
    if not x.size:
        return x, np.empty_like(x)
    if train is False or p == 0:  # None means training, too
        return x.copy(), np.ones(x.shape, bool)
    check_result(x, FLOAT32)
    kept = _kept(x.shape, p)
    return np.asarray(x * kept / (1 - p if p < 1 else 1)).astype(x.dtype), kept


def _dropout(x: Array, p: float, train: bool, *, features: bool) -> Array:
    _check_probability(p)
    return np.asarray(x * factors(x, p, features)) if train and p and x.size else x


def _alpha_dropout(x: Array, p: float, train: bool, *, features: bool) -> Array:
    """Dropped elements become the value that selu saturates at, then mean and variance are restored."""
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


table(
    zeros=bound(_filled, value=0),
    ones=bound(_filled, value=1),
    zeros_like=bound(_like_filled, value=0),
    ones_like=bound(_like_filled, value=1),
    empty_like=bound(_like_filled, value=0),
    new_zeros=bound(_new, value=0),
    new_ones=bound(_new, value=1),
    new_empty=bound(_new, value=0),
    tril_indices=bound(_triangle_indices, kept=operator.le),
    triu_indices=bound(_triangle_indices, kept=operator.ge),
    tensor=from_python,
    rand=bound(_random, draw=uniform),
    randn=bound(_random, draw=_gaussian),
    rand_like=bound(_random_like, draw=uniform),
    randn_like=bound(_random_like, draw=_gaussian),
    normal_=partial(_drawn_into, _normals),
    uniform_=partial(_drawn_into, _between),
    bernoulli_=partial(_drawn_into, _ones),
    exponential_=partial(_drawn_into, _exponentials),
    dropout=bound(_dropout, features=False),
    feature_dropout=bound(_dropout, features=True),
    alpha_dropout=bound(_alpha_dropout, features=False),
    feature_alpha_dropout=bound(_alpha_dropout, features=True),
)
