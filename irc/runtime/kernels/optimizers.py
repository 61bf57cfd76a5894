"""Steps of optimisers, as ``ai.onnx.preview.training`` defines them: one step for any number of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, c_order, scalar

if TYPE_CHECKING:
    from irc.ir import Node

Step = Callable[[np.float64, int, list[Array]], tuple[Array, ...]]
"""From the learning rate, the number of steps made, and tensor, gradient and states: the new tensor and states."""


def _bind(states: int, step: Step) -> Kernel:
    """A kernel of inputs R, T, all tensors, all gradients, all first states...: all new tensors, all first states..."""
    kinds = 2 + states

    def run(rate: Array, count: Array, *inputs: Array) -> Array | tuple[Array, ...]:
        tensors, left = divmod(len(inputs), kinds)
        if left or not tensors:
            raise Error("IRC421", f"{len(inputs)} tensors, gradients and states are not {kinds} for each tensor")
        r, t = np.float64(scalar(rate, "the learning rate")), int(scalar(count, "the number of steps"))
        found: list[tuple[Array, ...]] = []
        for i in range(tensors):
            group = list(inputs[i::tensors])
            if len({x.shape for x in group}) != 1:
                shapes = ", ".join(str(list(x.shape)) for x in group)
                raise Error("IRC421", f"a tensor, its gradient and states have different shapes: {shapes}")
            found.append(tuple(c_order(y.astype(x.dtype)) for y, x in zip(step(r, t, group), [group[0], *group[2:]])))
        return tuple(group[k] for k in range(kinds - 1) for group in found)

    return run


def _number(node: Node, name: str, default: float) -> np.float64:
    """An attribute, in a type whose powers and quotients overflow to infinity."""
    return np.float64(node.attributes.get(name, default))


@kernel("ai.onnx.preview.training::Adagrad")
def adagrad(node: Node) -> Kernel:
    decay, epsilon = _number(node, "decay_factor", 0.0), _number(node, "epsilon", 1e-6)
    norm = _number(node, "norm_coefficient", 0.0)

    def step(rate: np.float64, count: int, group: list[Array]) -> tuple[Array, ...]:
        x, gradient, squares = group
        slope = norm * x + gradient
        total = squares + slope * slope
        return x - rate / (1 + count * decay) * slope / (np.sqrt(total) + epsilon), total

    return _bind(1, step)


@kernel("ai.onnx.preview.training::Adam")
def adam(node: Node) -> Kernel:
    alpha, beta = _number(node, "alpha", 0.9), _number(node, "beta", 0.999)
    norm, after = _number(node, "norm_coefficient", 0.0), _number(node, "norm_coefficient_post", 0.0)
    epsilon = _number(node, "epsilon", 1e-6)

    def step(rate: np.float64, count: int, group: list[Array]) -> tuple[Array, ...]:
        x, gradient, mean, square = group
        slope = norm * x + gradient
        mean = alpha * mean + (1 - alpha) * slope
        square = beta * square + (1 - beta) * slope * slope
        if count > 0:
            rate = rate * np.sqrt(1 - beta**count) / (1 - alpha**count)
        moved = x - rate * mean / (np.sqrt(square) + epsilon)
        return (1 - after) * moved, mean, square

    return _bind(2, step)


@kernel("ai.onnx.preview.training::Momentum")
def momentum(node: Node) -> Kernel:
    alpha, beta, norm = (_number(node, name, 0.0) for name in ("alpha", "beta", "norm_coefficient"))
    mode = node.attributes.get("mode")
    if mode not in ("standard", "nesterov"):
        raise Error("IRC320", f"mode is {mode!r}; it must be 'standard' or 'nesterov'")

    def step(rate: np.float64, count: int, group: list[Array]) -> tuple[Array, ...]:
        x, gradient, velocity = group
        slope = norm * x + gradient
        velocity = alpha * velocity + (beta if count > 0 else 1) * slope
        return x - rate * (slope + alpha * velocity if mode == "nesterov" else velocity), velocity

    return _bind(1, step)
