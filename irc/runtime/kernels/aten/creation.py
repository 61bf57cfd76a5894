"""Tensors made from nothing, from Python values, or like another one; random numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.bounds import pace
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    FLOAT32,
    FLOAT64,
    INT64,
    as_float,
    check_writable,
    dtype_of,
    element_of,
    is_integral,
    number_dtype,
    overwrite,
    wide,
)
from irc.runtime.kernels.aten.registering import aten, table
from irc.runtime.kernels.aten.views import sizes_of
from irc.runtime.kernels.support import AnyDType, Array, broadcast_shape, check_size, counting, in_rows
from irc.runtime.values import is_array

# Arguments that say where and how: (dtype, layout, device, pin_memory), for `like` memory_format too. All but the
# first and the last are the same to irc.


def _filled(value: Any) -> Callable[..., Array]:
    def run(size: Any, dtype: int | None = None, *options: Any) -> Array:
        return _full(sizes_of(size), value, dtype_of(dtype, FLOAT32))

    return run


def _full(size: Sequence[int], value: Any, dtype: AnyDType) -> Array:
    return np.full(check_size(size, dtype), element_of(value, dtype), dtype)


def _full_of(size: Any, fill_value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full(sizes_of(size), fill_value, dtype_of(dtype, number_dtype(fill_value)))


def _like(x: Array, value: Any, dtype: int | None, options: Sequence[Any]) -> Array:
    memory_format = options[3] if len(options) > 3 else None
    out = layout.empty_like(x, dtype_of(dtype, x.dtype), memory_format)
    out[...] = element_of(value, out.dtype)
    return out


def _like_filled(value: Any) -> Callable[..., Array]:
    def run(x: Array, dtype: int | None = None, *options: Any) -> Array:
        return _like(x, value, dtype, options)

    return run


def _new(value: Any) -> Callable[..., Array]:
    def run(x: Array, size: Any, dtype: int | None = None, *options: Any) -> Array:
        return _new_full(x, size, value, dtype)

    return run


def _new_full(x: Array, size: Any, value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full(sizes_of(size), value, dtype_of(dtype, x.dtype))


def _full_like(x: Array, value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _like(x, value, dtype, options)


def _of_number(value: Any, dtype: int | None = None, *options: Any) -> Array:
    return _full((), value, dtype_of(dtype, FLOAT32))


def _empty(size: Any, dtype: int | None = None, *options: Any) -> Array:
    """Zeros: what a program reads before it writes is at least always the same."""
    memory_format = options[3] if len(options) > 3 and options[3] is not None else layout.CONTIGUOUS
    out = layout.empty_in_format(sizes_of(size), dtype_of(dtype, FLOAT32), memory_format)
    out[...] = 0
    return out


def _empty_strided(size: Sequence[int], stride: Sequence[int], dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, FLOAT32)
    sizes = check_size(size, element)
    extent = 1 + sum((n - 1) * s for n, s in zip(sizes, stride, strict=True)) if math.prod(sizes) else 0
    return layout.strided(np.zeros(check_size((extent,), element), element), sizes, stride, 0)


# -- ranges --------------------------------------------------------------------


@aten("arange")
def arange(*arguments: Any) -> Array:
    """``arange(end)``, ``(start, end)``, ``(start, end, step)``, each with options (dtype, ...) or without."""
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


def _linspace(start: Any, end: Any, steps: int, dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, FLOAT32)
    if element == BOOL:
        raise Error("IRC423", "linspace makes numbers, not bools")
    check_size((steps,), FLOAT64)
    low, high = (float(v) for v in (start, end))
    within = wide(element) if element.kind in "fV" else np.dtype(np.float64)
    if steps == 1:
        return np.full(1, low, element)
    step = within.type((high - low) / (steps - 1))
    places: Array = counting(steps)
    # From both ends, so that both are exact.
    left = within.type(low) + step * places.astype(within)
    right = within.type(high) - step * (steps - 1 - places).astype(within)
    return np.where(places < steps // 2, left, right).astype(element)


def _logspace(start: Any, end: Any, steps: int, base: float = 10.0, dtype: int | None = None, *options: Any) -> Array:
    element = dtype_of(dtype, FLOAT32)
    exponents = _linspace(start, end, steps, 7)
    return np.power(float(base), exponents).astype(element)


def _eye(n: int, *arguments: Any) -> Array:
    """``eye(n, options...)`` or ``eye(n, m, options...)``."""
    m, dtype = (arguments[0], (*arguments, None)[1]) if len(arguments) in (1, 5) else (n, (*arguments, None)[0])
    element = dtype_of(dtype, FLOAT32)
    return np.eye(*check_size((n, m), element), dtype=element)


def _triangle_indices(upper: bool) -> Callable[..., Array]:
    def run(row: int, col: int, offset: int = 0, dtype: int | None = 4, *options: Any) -> Array:
        check_size((2, row, col), INT64)
        difference = counting(col) - counting(row)[:, None]
        kept = difference >= offset if upper else difference <= offset
        return np.stack(np.nonzero(kept)).astype(dtype_of(dtype, INT64))

    return run


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
    return np.array(numbers, None if numbers else element).astype(element).reshape(shape)


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


def _as_tensor(data: Any, dtype: int | None = None, *options: Any) -> Array:
    """``data`` itself if it is a tensor of that element type."""
    if not is_array(data):
        return from_python(data, dtype)
    wanted = dtype_of(dtype, data.dtype)
    return data if wanted == data.dtype else data.astype(wanted)


# -- random numbers ------------------------------------------------------------

_BLOCK = 1 << 16
"""So many are drawn by weights between two looks at the clock."""

_GENERATOR: Any = np.random.default_rng()


def _uniform(shape: Sequence[int]) -> Array:
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
        return overwrite(_like(x, 0, dtype, options), draw(x.shape))

    return of_size, like


_rand, _rand_like = _random(_uniform)
_randn, _randn_like = _random(_gaussian)


def _randint(*arguments: Any) -> Array:
    """``randint(high, size, options)`` or ``randint(low, high, size, options)``."""
    bounds = 1 if isinstance(arguments[1], (list, tuple)) else 2
    low, high = (0, arguments[0]) if bounds == 1 else arguments[:2]
    size, dtype = (*arguments[bounds:], None)[:2]
    element = dtype_of(dtype, INT64)
    return _integers(low, high, sizes_of(size)).astype(element)


def _integers(low: int, high: int, shape: Sequence[int]) -> Array:
    if low >= high:
        raise Error("IRC424", f"there is no integer from {low} to below {high}")
    return np.asarray(_GENERATOR.integers(low, high, check_size(shape, INT64)))


def _randint_like(x: Array, *arguments: Any) -> Array:
    """``(high, options)`` or ``(low, high, options)``, both with a generator before the five options or without."""
    count = len(arguments)
    bounds = 2 if count in (2, 8) or (count == 7 and isinstance(arguments[1], int)) else 1
    low, high = (0, arguments[0]) if bounds == 1 else arguments[:2]
    options = arguments[bounds:][-5:]
    out = _like(x, 0, options[0] if options else None, options[1:])
    return overwrite(out, _integers(int(low), int(high), x.shape).astype(out.dtype))


def _randperm(n: int, dtype: int | None = 4, *options: Any) -> Array:
    element = dtype_of(dtype, INT64)
    check_size((n,), INT64)
    return _GENERATOR.permutation(n).astype(element)


def _normal(mean: Any = 0.0, std: Any = 1.0, *arguments: Any) -> Array:
    """Of tensors of means and deviations, or of numbers and a size."""
    if not is_array(mean) and not is_array(std):
        size, _, dtype = (*arguments, None, None)[:3]
        element = dtype_of(dtype, FLOAT32)
        return (mean + std * _gaussian(sizes_of(size))).astype(element)
    shape = broadcast_shape(np.shape(mean), np.shape(std))
    dtype = as_float((mean if is_array(mean) else std).dtype)
    return np.asarray(mean + std * _gaussian(shape)).astype(dtype)


def _bernoulli(x: Array, p: Any = None, *ignored: Any) -> Array:
    """1 with the probability that the tensor, or ``p``, says."""
    chance = x if p is None or not (is_array(p) or isinstance(p, float)) else p
    return _ones(x, chance).astype(x.dtype)


def _multinomial(x: Array, num_samples: int, replacement: bool = False, *ignored: Any) -> Array:
    """Indices drawn by weights, which the rows hold."""
    rows = in_rows(x).astype(np.float64)
    totals = rows.sum(axis=1, keepdims=True)
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
    return np.asarray(_GENERATOR.poisson(x.astype(np.float64))).astype(x.dtype)


def _drawn_into(draw: Callable[..., Any]) -> Callable[..., Array]:
    def run(x: Array, *parameters: Any) -> Array:
        check_writable(x)
        np.copyto(x, draw(x, *(p for p in parameters if p is not None)), casting="unsafe")
        return x

    return run


def _normals(x: Array, mean: float = 0.0, std: float = 1.0) -> Array:
    return mean + std * _gaussian(x.shape)


def _between(x: Array, low: float = 0.0, high: float = 1.0) -> Array:
    return low + (high - low) * _uniform(x.shape)


def _ones(x: Array, p: Any = 0.5) -> Array:
    """Where to write 1, with a probability or those of a tensor, at which torch does not look if ``x`` is empty."""
    if is_array(p) and not x.size:
        return np.zeros(x.shape, BOOL)
    if not np.all((np.asarray(p) >= 0) & (np.asarray(p) <= 1)):
        raise Error("IRC424", "a probability is not between 0 and 1")
    try:
        chances = np.broadcast_to(p, x.shape)
    except ValueError:
        raise Error("IRC421", f"probabilities of shape {list(np.shape(p))} for one of {list(x.shape)}") from None
    return np.asarray(_uniform(x.shape) < chances)


def _exponentials(x: Array, rate: float = 1.0) -> Array:
    return _GENERATOR.exponential(1 / rate, check_size(x.shape, FLOAT64))


def _any_integers(x: Array, *bounds: int) -> Array:
    """From 0 on, as far as the element type reaches and floats are exact."""
    digits = {"f": {2: 11, 4: 24, 8: 53}, "V": {2: 8}}.get(x.dtype.kind, {}).get(x.itemsize)
    most = 2**digits + 1 if digits else 2 if x.dtype.kind == "b" else np.iinfo(x.dtype).max
    low, high = (0, most) if not bounds else (0, bounds[0]) if len(bounds) == 1 else bounds
    return _integers(low, high, x.shape)


table(
    {
        "zeros": _filled(0),
        "ones": _filled(1),
        "full": _full_of,
        "empty": _empty,
        "empty_strided": _empty_strided,
        "zeros_like": _like_filled(0),
        "ones_like": _like_filled(1),
        "empty_like": _like_filled(0),
        "full_like": _full_like,
        "new_zeros": _new(0),
        "new_ones": _new(1),
        "new_empty": _new(0),
        "new_full": _new_full,
        "linspace": _linspace,
        "logspace": _logspace,
        "eye": _eye,
        "tril_indices": _triangle_indices(False),
        "triu_indices": _triangle_indices(True),
        "tensor": from_python,
        "as_tensor": _as_tensor,
        "scalar_tensor": _of_number,
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
        "random_": _drawn_into(_any_integers),
    }
)
