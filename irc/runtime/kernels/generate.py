"""Tensors that are made of no other: constants, ranges, random numbers.

With a ``seed`` attribute every run draws the same numbers, those that ONNX's
reference implementation draws for it: NumPy's `RandomState`, whose stream of
numbers never changes. Without, the node has a generator of its own, seeded by
the operating system.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.random import RandomState

from irc.errors import Error
from irc.ir import Node
from irc.runtime.kernels.registry import Kernel, Reader, always, computes, element_type, kernel
from irc.runtime.kernels.support import AnyDType, Array, axis_in, blank, check_size, counting, ints, is_half, scalar

Draw = Callable[..., Any]


_CONSTANT_FORMS: dict[str, Any] = {
    "value_int": np.int64,
    "value_ints": np.int64,
    "value_float": np.float32,
    "value_floats": np.float32,
    "value_string": object,
    "value_strings": object,
}


@kernel("onnx::Constant")
def constant(node: Node) -> Kernel:
    forms = [a for a in node.attributes if a == "value" or a in _CONSTANT_FORMS]
    if len(forms) != 1:
        raise Error("IRC320", f"Constant needs exactly one of the attributes value, {', '.join(_CONSTANT_FORMS)}")
    form = forms[0]
    given = node.attributes[form]
    value: Array = given.numpy() if form == "value" else np.array(given, _CONSTANT_FORMS[form])
    return lambda: value.copy()


def _single(node: Node) -> Array:
    given = node.attributes.get("value")
    whole: Array = np.zeros((), np.float32) if given is None else given.numpy()
    if whole.size != 1:
        raise Error("IRC320", f"value must have one element, not {whole.size}")
    return whole.reshape(())


@computes("onnx::ConstantOfShape", value=_single)
def constant_of_shape(shape: Array, *, value: Array) -> Array:
    return np.full(check_size(ints(shape), value.dtype), value, value.dtype)


@computes("onnx::Range")
def arange(start: Array, limit: Array, delta: Array) -> Array:
    """Elements ``start + i delta``, ``max(ceil((limit - start) / delta), 0)`` of them."""
    first, last, step = (scalar(v, what) for v, what in ((start, "start"), (limit, "limit"), (delta, "delta")))
    if step == 0 or not all(map(math.isfinite, (first, last, step))):
        raise Error("IRC424", f"there is no range from {first} to {last} by {step}")
    if isinstance(first, int):
        count = max(0, -((first - last) // step))
    else:
        count = max(0, math.ceil((last - first) / step))
    check_size((count,), start.dtype)
    wide = np.dtype(np.float32) if is_half(start.dtype) else start.dtype
    steps = np.arange(count, dtype=np.int64).astype(wide)
    return (wide.type(first) + steps * wide.type(step)).astype(start.dtype, copy=False)


@computes("onnx::EyeLike", dtype=element_type("dtype"))
def eye_like(x: Array, *, dtype: AnyDType | None, k: int = 0) -> Array:
    if x.ndim != 2:
        raise Error("IRC421", f"EyeLike's input must have 2 dimensions; its shape is {list(x.shape)}")
    return np.eye(*x.shape, k=k).astype(dtype or x.dtype)


@computes("onnx::OneHot", since=11)
def one_hot(indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    """Indices in ``[-depth, depth)`` count; others give no "on"."""
    numbers = indices.astype(np.int64)
    return one_hot_9(np.where(numbers < 0, numbers + int(scalar(depth, "depth")), numbers), depth, values, axis=axis)


@computes("onnx::OneHot", since=9)
def one_hot_9(indices: Array, depth: Array, values: Array, *, axis: int = -1) -> Array:
    """Indices in ``[0, depth)`` count."""
    size = int(scalar(depth, "depth"))
    if values.shape != (2,):
        raise Error("IRC421", f"values must have shape [2], off and on; it has {list(values.shape)}")
    along = axis_in(axis, indices.ndim + 1)
    shape = check_size((*indices.shape[:along], size, *indices.shape[along:]), values.dtype)
    classes = counting(size).reshape((size,) + (1,) * (indices.ndim - along))
    out = np.full(shape, values[0], values.dtype)
    np.copyto(out, values[1], where=np.expand_dims(indices.astype(np.int64), along) == classes)
    return out


@computes("onnx::Trilu")
def trilu(x: Array, k: Array | None = None, *, upper: bool = True) -> Array:
    """The upper or lower triangle of the last two dimensions up to diagonal k, zeros elsewhere."""
    if x.ndim < 2:
        raise Error("IRC421", f"Trilu's input must have at least 2 dimensions; its shape is {list(x.shape)}")
    rows, columns = x.shape[-2:]
    # Diagonals beyond the corners are all alike; so k, whatever its size, fits the arithmetic below.
    diagonal = 0 if k is None else max(-rows - 1, min(int(scalar(k, "k")), columns + 1))
    edge = diagonal if upper else diagonal + 1  # in each row, what is left of the column there goes, or stays
    out, nothing = np.empty(x.shape, x.dtype), np.full(columns, blank(x.dtype), x.dtype)
    step = max(_STRIP, -(-rows // _STRIPS))
    for start in range(0, rows, step):
        strip, end = (..., slice(start, start + step)), min(rows, start + step)
        low, high = (max(0, min(at + edge, columns)) for at in (start, end))
        kept, zero = slice(low, None), slice(None, low)
        if not upper:
            kept, zero = slice(None, high), slice(high, None)
        out[(*strip, kept)] = x[(*strip, kept)]
        out[(*strip, zero)] = nothing[zero]
        is_left = counting(columns)[low:high] < counting(rows)[start:end, None] + edge
        np.copyto(out[(*strip, slice(low, high))], nothing[low:high], where=is_left if upper else ~is_left)
    return out


_STRIP, _STRIPS = 64, 16
"""Rows of a triangle that are written together: at least this many, and no more strips than this."""


# -- random tensors, and Dropout -----------------------------------------------


def _generator(node: Node) -> Callable[[], RandomState]:
    """What gives the generator to use in a run."""
    seed: float | None = node.attributes.get("seed")
    if seed is None:
        own = RandomState()
        return lambda: own
    return lambda: RandomState(int(seed) & 0xFFFFFFFF)


_READ: dict[str, Reader] = {"generator": _generator, "dtype": element_type("dtype")}


_DRAWN = np.dtype(np.float64)  # numbers are drawn so, whatever they become


def _unit(generator: RandomState, shape: tuple[int, ...]) -> Array:
    """Numbers drawn evenly from [0, 1)."""
    return np.asarray(generator.random_sample(check_size(shape, _DRAWN)))


def _register(name: str, first: tuple[str, float], second: tuple[str, float], draw: Draw) -> None:
    """``name`` and ``nameLike``: of numbers drawn by two attributes, which are given with their defaults."""

    def parameters(node: Node) -> list[float]:
        return [node.attributes.get(name, default) for name, default in (first, second)]

    def drawn(shape: Sequence[int], dtype: AnyDType, generator: RandomState, by: list[float]) -> Array:
        return np.asarray(draw(generator, *by, check_size(shape, _DRAWN))).astype(dtype)

    @kernel(f"onnx::{name}")
    def of_shape(node: Node) -> Kernel:  # pyright: ignore[reportUnusedFunction]  registered
        by, generator, dtype = parameters(node), _generator(node), _FLOATS(node)
        shape = check_size(node.attributes["shape"], dtype)  # that none can be made, models are told before they run
        return lambda: drawn(shape, dtype, generator(), by)

    @computes(f"onnx::{name}Like", by=parameters, read=_READ)
    def like(x: Array, *, by: list[float], generator: Any, dtype: AnyDType | None) -> Array:  # pyright: ignore[reportUnusedFunction]  registered
        return drawn(x.shape, dtype or x.dtype, generator(), by)


_FLOATS = element_type("dtype", 1)

_register("RandomNormal", ("mean", 0.0), ("scale", 1.0), RandomState.normal)
_register("RandomUniform", ("low", 0.0), ("high", 1.0), RandomState.uniform)


@computes("onnx::Bernoulli", read=_READ)
def bernoulli(p: Array, *, generator: Any, dtype: AnyDType | None) -> Array:
    """1 with the probability that the input gives, else 0."""
    drawn = _unit(generator(), p.shape)
    wide = p.astype(np.float64)
    if not ((wide >= 0) & (wide <= 1)).all():
        raise Error("IRC424", "a probability given to Bernoulli is not between 0 and 1")
    return np.less(drawn, wide).astype(dtype or p.dtype)


@computes("onnx::Multinomial", generator=_generator, dtype=element_type("dtype", 6))
def multinomial(logits: Array, *, generator: Any, dtype: AnyDType, sample_size: int = 1) -> Array:
    """Class numbers, [batch, sample_size], drawn by unnormalised log-probabilities [batch, class]."""
    if logits.ndim != 2 or not logits.shape[1]:
        raise Error("IRC421", f"Multinomial needs an input [batch, classes]; its shape is {list(logits.shape)}")
    x = logits.astype(np.float64)
    shape = check_size((x.shape[0], sample_size), np.dtype(np.int64))
    ladder = np.cumsum(np.exp(x - x.max(axis=1, keepdims=True)), axis=1)
    drawn = _unit(generator(), shape) * ladder[:, -1:]
    found = np.empty(shape, np.int64)
    for row, steps in enumerate(ladder):
        found[row] = steps.searchsorted(drawn[row], side="right")
    return np.minimum(found, x.shape[1] - 1).astype(dtype)


@computes("onnx::Dropout", since=12, generator=_generator)
def dropout(
    x: Array, ratio: Array | None = None, training: Array | None = None, *, generator: Any, outputs: int
) -> Any:
    """Drops elements only in training mode, and scales those that stay by 1 / (1 - ratio)."""
    rate = 0.5 if ratio is None else float(scalar(ratio, "ratio"))
    if training is None or not scalar(training, "training_mode") or rate == 0:
        return (x, np.ones(x.shape, bool)) if outputs > 1 else x
    if not 0 <= rate < 1:
        raise Error("IRC424", f"the ratio of dropout is {rate}; it must be in [0, 1)")
    mask = _unit(generator(), x.shape) >= rate
    out = np.where(mask, x.astype(np.float64) / (1 - rate), 0).astype(x.dtype, order="C")
    return (out, mask) if outputs > 1 else out


@computes("onnx::Dropout", since=10, mask=always(bool))
@computes("onnx::Dropout", since=1, mask=always(None))
def dropout_at_inference(x: Array, *, outputs: int, mask: type | None) -> Any:
    """Dropout before version 12, in inference: the input, whatever ``is_test`` says.

    The elements of ``mask`` are of the input's type if it is None.
    """
    return (x, np.ones(x.shape, mask or x.dtype)) if outputs > 1 else x
