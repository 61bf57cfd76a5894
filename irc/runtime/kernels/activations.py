"""Activation functions: one table from operator to function and default attributes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels import numerics
from irc.runtime.kernels.numerics import Function
from irc.runtime.kernels.pointwise import of_function, of_function_of_two
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array

if TYPE_CHECKING:
    from irc.ir import Node

_FIXED: dict[str, Function] = {
    "Sigmoid": numerics.sigmoid,
    "Softplus": numerics.softplus,
    "Softsign": numerics.softsign,
    "Mish": numerics.mish,
    "HardSwish": numerics.hard_swish(),
    "Erf": numerics.erf,
}

_WITH_ATTRIBUTES: dict[tuple[str, int], tuple[Callable[..., Function], dict[str, float]]] = {
    ("LeakyRelu", 1): (numerics.leaky_relu, {"alpha": 0.01}),
    ("Elu", 1): (numerics.elu, {"alpha": 1.0}),
    ("Selu", 1): (numerics.scaled_elu, {"alpha": 1.6732, "gamma": 1.0507}),
    ("Selu", 6): (numerics.scaled_elu, {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}),
    ("Celu", 12): (numerics.celu, {"alpha": 1.0}),
    ("HardSigmoid", 1): (numerics.hard_sigmoid, {"alpha": 0.2, "beta": 0.5}),
    ("ThresholdedRelu", 10): (numerics.thresholded_relu, {"alpha": 1.0}),
    ("Shrink", 9): (numerics.shrink, {"lambd": 0.5, "bias": 0.0}),
    ("Swish", 24): (numerics.swish, {"alpha": 1.0}),
}
"""(operator, first version): the function's factory and its parameters' defaults."""


def _register(name: str, since: int, make: Callable[..., Function], defaults: dict[str, float]) -> None:
    @kernel(f"onnx::{name}", since=since)
    def activation(node: Node) -> Kernel:  # pyright: ignore[reportUnusedFunction]  registered
        return of_function(make(**{a: node.attributes.get(a, value) for a, value in defaults.items()}))


def _always(function: Function) -> Callable[[], Function]:
    return lambda: function


for _name, _function in _FIXED.items():
    _register(_name, 1, _always(_function), {})
for (_name, _since), (_make, _defaults) in _WITH_ATTRIBUTES.items():
    _register(_name, _since, _make, _defaults)


@kernel("onnx::Gelu")
def gelu(node: Node) -> Kernel:
    approximate = node.attributes.get("approximate", "none")
    functions = {"none": numerics.gelu, "tanh": numerics.gelu_tanh}
    if approximate not in functions:
        raise Error("IRC320", f"Gelu's approximate is {approximate!r}; it must be 'none' or 'tanh'")
    return of_function(functions[approximate])


@kernel("onnx::SwiGLU")
def swiglu(node: Node) -> Kernel:
    swish = numerics.swish(node.attributes.get("alpha", 1.0))

    def function(gate: Array, value: Array, out: Array) -> None:
        activated = np.empty_like(gate)
        swish(gate, activated)
        np.multiply(activated, value, out)

    return of_function_of_two(function)


@kernel("onnx::PRelu", since=7)
def prelu(node: Node) -> Kernel:
    return of_function_of_two(numerics.prelu)


@kernel("onnx::PRelu", since=1)
def prelu_by_channel(node: Node) -> Kernel:
    """Before version 7 a slope of several elements belongs to the channels, axis 1."""
    broadcasting = of_function_of_two(numerics.prelu)

    def run(x: Array, slope: Array, out: Array | None = None) -> Array:
        aligned: Any = slope.reshape((-1,) + (1,) * max(x.ndim - 2, 0)) if slope.ndim <= 1 else slope
        return broadcasting(x, aligned, out)

    return run
