"""Random tensors, and Dropout.

With a ``seed`` attribute every run draws the same numbers, those that ONNX's
reference implementation draws for it: NumPy's `RandomState`, whose stream of
numbers never changes. Without, the node has a generator of its own, seeded by
the operating system.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import RandomState

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import AnyDType, Array, check_size, numpy_dtype, scalar

if TYPE_CHECKING:
    from irc.ir import Node

    Draw = Callable[[RandomState, tuple[int, ...]], Any]


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
