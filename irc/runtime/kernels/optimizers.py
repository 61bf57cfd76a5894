"""Steps of optimisers, as ``ai.onnx.preview.training`` defines them: one step for any number of tensors."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Reader, always, computes, one_of
from irc.runtime.kernels.support import Array, c_order, scalar

if TYPE_CHECKING:
    from irc.ir import Node

Step = Callable[..., tuple[Array, ...]]
"""From the attributes, the learning rate, the number of steps made, and tensor, slope and states: the new tensor and
states."""


_NUMBERS = {"decay_factor": 0.0, "epsilon": 1e-6, "norm_coefficient": 0.0, "norm_coefficient_post": 0.0}
_OF_ADAM = {"alpha": 0.9, "beta": 0.999}


def _numbers(node: Node) -> SimpleNamespace:
    """Attributes, in a type whose powers and quotients overflow to infinity."""
    defaults = _NUMBERS | (_OF_ADAM if node.kind.endswith("Adam") else dict.fromkeys(_OF_ADAM, 0.0))
    return SimpleNamespace(**{name: np.float64(node.attributes.get(name, value)) for name, value in defaults.items()})


def _steps(rate: Array, count: Array, *inputs: Array, step: Step, states: int, given: Any) -> Any:
    """Of inputs R, T, all tensors, all gradients, all first states...: all new tensors, all first states..."""
    kinds = 2 + states
    tensors, left = divmod(len(inputs), kinds)
    if left or not tensors:
        raise Error("IRC421", f"{len(inputs)} tensors, gradients and states are not {kinds} for each tensor")
    r, t = np.float64(scalar(rate, "the learning rate")), int(scalar(count, "the number of steps"))
    found: list[tuple[Array, ...]] = []
    for i in range(tensors):
        x, gradient, *own = group = list(inputs[i::tensors])
        if len({x.shape for x in group}) != 1:
            shapes = ", ".join(str(list(x.shape)) for x in group)
            raise Error("IRC421", f"a tensor, its gradient and states have different shapes: {shapes}")
        made = step(given, r, t, x, given.norm_coefficient * x + gradient, *own)
        found.append(tuple(c_order(y.astype(x.dtype)) for y, x in zip(made, [x, *own])))
    return tuple(group[k] for k in range(kinds - 1) for group in found)


def _adagrad(given: Any, rate: np.float64, count: int, x: Array, slope: Array, squares: Array) -> tuple[Array, ...]:
    total = squares + slope * slope
    return x - rate / (1 + count * given.decay_factor) * slope / (np.sqrt(total) + given.epsilon), total


def _adam(
    given: Any, rate: np.float64, count: int, x: Array, slope: Array, mean: Array, square: Array
) -> tuple[Array, ...]:
    mean = given.alpha * mean + (1 - given.alpha) * slope
    square = given.beta * square + (1 - given.beta) * slope * slope
    if count > 0:
        rate = rate * np.sqrt(1 - given.beta**count) / (1 - given.alpha**count)
    moved = x - rate * mean / (np.sqrt(square) + given.epsilon)
    return (1 - given.norm_coefficient_post) * moved, mean, square


def _momentum(given: Any, rate: np.float64, count: int, x: Array, slope: Array, velocity: Array) -> tuple[Array, ...]:
    velocity = given.alpha * velocity + (given.beta if count > 0 else 1) * slope
    return x - rate * velocity, velocity


def _nesterov(given: Any, rate: np.float64, count: int, x: Array, slope: Array, velocity: Array) -> tuple[Array, ...]:
    velocity = given.alpha * velocity + (given.beta if count > 0 else 1) * slope
    return x - rate * (slope + given.alpha * velocity), velocity


_MODES: dict[str, Step] = {"standard": _momentum, "nesterov": _nesterov}


def _of_momentum(node: Node) -> Step:
    return _MODES[one_of("mode", None, _MODES)(node)]


_STEPS: tuple[tuple[str, int, Reader], ...] = (
    ("Adagrad", 1, always(_adagrad)),
    ("Adam", 2, always(_adam)),
    ("Momentum", 1, _of_momentum),
)
for _name, _states, _step in _STEPS:
    computes(f"ai.onnx.preview.training::{_name}", step=_step, states=always(_states), given=_numbers)(_steps)
