"""Mathematical functions on lanes, compiled once and called by groups."""

from __future__ import annotations

from collections.abc import Callable

from irc.native.functions import error_function, exponential, logarithmic
from irc.native.lanes import Lanes

FUNCTIONS: dict[str, Callable[..., Lanes]] = {
    "exp": exponential.exp,
    "log": logarithmic.log,
    "tanh": exponential.tanh,
    "erf": error_function.erf,
    "sigmoid": exponential.sigmoid,
    "silu": exponential.silu,
    "softplus": exponential.softplus,
    "mish": exponential.mish,
    "gelu": error_function.gelu,
    "gelu_tanh": exponential.gelu_tanh,
}
"""Name of a primitive of `irc.ops.algebra`, or of a function composed of several -> its emitter."""

BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.2, 1.2),
    "log": (1.2, 1.2),
    "tanh": (1.4, 1.4),
    "erf": (1.6, 1.6),
    "sigmoid": (3.0, 3.0),
    "silu": (3.0, 3.0),
    "softplus": (3.0, 3.0),
    "mish": (5.0, 5.0),
    "gelu": (3.0, 3.0),
    "gelu_tanh": (3.0, 3.0),
}
"""Name -> the largest error of float32 and float64 in units in the last place; of both Gelus, 2 x² more."""
