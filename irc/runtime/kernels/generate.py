"""Tensors that are made of no other: constants, ranges, random numbers.

With a ``seed`` attribute every run draws the same numbers, those that ONNX's
reference implementation draws for it: NumPy's `RandomState`, whose stream of
numbers never changes. Without, the node has a generator of its own, seeded by
the operating system.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import RandomState

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import (
    AnyDType,
    Array,
    axis_in,
    blank,
    check_size,
    counting,
    ints,
    is_half,
    numpy_dtype,
    scalar,
)

if TYPE_CHECKING:
    from irc.ir import Node

    Draw = Callable[[RandomState, tuple[int, ...]], Any]


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


@kernel("onnx::ConstantOfShape")
def constant_of_shape(node: Node) -> Kernel:
    given = node.attributes.get("value")
    whole: Array = np.zeros((), np.float32) if given is None else given.numpy()
    if whole.size != 1:
        raise Error("IRC320", f"value must have one element, not {whole.size}")
    value = whole.reshape(())

    def run(shape: Array) -> Array:
        return np.full(check_size(ints(shape), value.dtype), value, value.dtype)

    return run


@kernel("onnx::Range")
def arange(node: Node) -> Kernel:
    """Elements ``start + i delta``, ``max(ceil((limit - start) / delta), 0)`` of them."""

    def run(start: Array, limit: Array, delta: Array) -> Array:
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

    return run


@kernel("onnx::EyeLike")
def eye_like(node: Node) -> Kernel:
    number: int | None = node.attributes.get("dtype")
    dtype = None if number is None else numpy_dtype(number)
    diagonal: int = node.attributes.get("k", 0)

    def run(x: Array) -> Array:
        if x.ndim != 2:
            raise Error("IRC421", f"EyeLike's input must have 2 dimensions; its shape is {list(x.shape)}")
        return np.eye(*x.shape, k=diagonal).astype(x.dtype if dtype is None else dtype)

    return run


@kernel("onnx::OneHot")
def one_hot(node: Node) -> Kernel:
    """From version 11 on indices in ``[-depth, depth)`` count, before in ``[0, depth)``; others give no "on"."""
    axis: int = node.attributes.get("axis", -1)
    negative = node.version is None or node.version >= 11

    def run(indices: Array, depth: Array, values: Array) -> Array:
        size = int(scalar(depth, "depth"))
        if values.shape != (2,):
            raise Error("IRC421", f"values must have shape [2], off and on; it has {list(values.shape)}")
        along = axis_in(axis, indices.ndim + 1)
        shape = check_size((*indices.shape[:along], size, *indices.shape[along:]), values.dtype)
        place = np.expand_dims(indices.astype(np.int64), along)
        if negative:
            place = np.where(place < 0, place + size, place)
        classes = counting(size).reshape((size,) + (1,) * (indices.ndim - along))
        out = np.full(shape, values[0], values.dtype)
        np.copyto(out, values[1], where=place == classes)
        return out

    return run


@kernel("onnx::Trilu")
def trilu(node: Node) -> Kernel:
    """The upper or lower triangle of the last two dimensions, up to diagonal k; zeros (empty strings) elsewhere."""
    upper = bool(node.attributes.get("upper", 1))

    def run(x: Array, k: Array | None = None) -> Array:
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

    return run


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


def _dtype(node: Node) -> AnyDType | None:
    number: int | None = node.attributes.get("dtype")
    return None if number is None else numpy_dtype(number)


_DRAWN = np.dtype(np.float64)  # numbers are drawn so, whatever they become


def _normal(node: Node) -> Draw:
    mean, scale = node.attributes.get("mean", 0.0), node.attributes.get("scale", 1.0)
    return lambda generator, shape: generator.normal(mean, scale, check_size(shape, _DRAWN))


def _uniform(node: Node) -> Draw:
    low, high = node.attributes.get("low", 0.0), node.attributes.get("high", 1.0)
    return lambda generator, shape: generator.uniform(low, high, check_size(shape, _DRAWN))


def _unit(generator: RandomState, shape: tuple[int, ...]) -> Array:
    """Numbers drawn evenly from [0, 1)."""
    return np.asarray(generator.random_sample(check_size(shape, _DRAWN)))


def _register(name: str, distribution: Callable[[Node], Draw]) -> None:
    @kernel(f"onnx::{name}")
    def of_shape(node: Node) -> Kernel:  # pyright: ignore[reportUnusedFunction]  registered
        draw, generator = distribution(node), _generator(node)
        dtype = _dtype(node) or np.dtype(np.float32)
        shape = check_size(node.attributes["shape"], dtype)  # that none can be made, models are told before they run
        return lambda: np.asarray(draw(generator(), shape)).astype(dtype)

    @kernel(f"onnx::{name}Like")
    def like(node: Node) -> Kernel:  # pyright: ignore[reportUnusedFunction]  registered
        draw, generator, dtype = distribution(node), _generator(node), _dtype(node)

        def run(x: Array) -> Array:
            return np.asarray(draw(generator(), x.shape)).astype(dtype or x.dtype)

        return run


_register("RandomNormal", _normal)
_register("RandomUniform", _uniform)


@kernel("onnx::Bernoulli")
def bernoulli(node: Node) -> Kernel:
    """1 with the probability that the input gives, else 0."""
    generator, dtype = _generator(node), _dtype(node)

    def run(p: Array) -> Array:
        drawn = _unit(generator(), p.shape)
        wide = p.astype(np.float64)
        if not ((wide >= 0) & (wide <= 1)).all():
            raise Error("IRC424", "a probability given to Bernoulli is not between 0 and 1")
        return np.less(drawn, wide).astype(dtype or p.dtype)

    return run


@kernel("onnx::Multinomial")
def multinomial(node: Node) -> Kernel:
    """Class numbers, [batch, sample_size], drawn by unnormalised log-probabilities [batch, class]."""
    generator, dtype = _generator(node), _dtype(node) or np.dtype(np.int32)
    count: int = node.attributes.get("sample_size", 1)

    def run(logits: Array) -> Array:
        if logits.ndim != 2 or not logits.shape[1]:
            raise Error("IRC421", f"Multinomial needs an input [batch, classes]; its shape is {list(logits.shape)}")
        x = logits.astype(np.float64)
        shape = check_size((x.shape[0], count), np.dtype(np.int64))
        ladder = np.cumsum(np.exp(x - x.max(axis=1, keepdims=True)), axis=1)
        drawn = _unit(generator(), shape) * ladder[:, -1:]
        found = np.empty(shape, np.int64)
        for row, steps in enumerate(ladder):
            found[row] = steps.searchsorted(drawn[row], side="right")
        return np.minimum(found, x.shape[1] - 1).astype(dtype)

    return run


@kernel("onnx::Dropout", since=12)
def dropout(node: Node) -> Kernel:
    """Drops elements only in training mode, and scales those that stay by 1 / (1 - ratio)."""
    generator = _generator(node)
    with_mask = len(node.outputs) > 1

    def run(x: Array, ratio: Array | None = None, training: Array | None = None) -> Any:
        rate = 0.5 if ratio is None else float(scalar(ratio, "ratio"))
        if training is None or not scalar(training, "training_mode") or rate == 0:
            return (x, np.ones(x.shape, bool)) if with_mask else x
        if not 0 <= rate < 1:
            raise Error("IRC424", f"the ratio of dropout is {rate}; it must be in [0, 1)")
        mask = _unit(generator(), x.shape) >= rate
        out = np.where(mask, x.astype(np.float64) / (1 - rate), 0).astype(x.dtype, order="C")
        return (out, mask) if with_mask else out

    return run


@kernel("onnx::Dropout", since=1)
def dropout_at_inference(node: Node) -> Kernel:
    """Before version 12 training was the framework's business: here the input passes, whatever ``is_test`` says."""
    with_mask = len(node.outputs) > 1
    boolean = node.version is not None and node.version >= 10

    def run(x: Array) -> Any:
        return (x, np.ones(x.shape, bool if boolean else x.dtype)) if with_mask else x

    return run
