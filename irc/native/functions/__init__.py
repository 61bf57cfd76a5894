"""Mathematical functions on lanes, compiled once and called by groups."""

from __future__ import annotations

from collections.abc import Callable

from irc.native.functions import error_function, exponential, gamma, logarithmic, power, trigonometric
from irc.native.lanes import Lanes

FUNCTIONS: dict[str, Callable[..., Lanes]] = {
    "exp": exponential.exp,
    "exp_of_negative": exponential.exp_of_negative,
    "exp2": exponential.exp2,
    "expm1": exponential.expm1,
    "log": logarithmic.log,
    "log2": logarithmic.log2,
    "log10": logarithmic.log10,
    "log1p": logarithmic.log1p,
    "logaddexp": exponential.logaddexp,
    "logaddexp2": exponential.logaddexp2,
    "tanh": exponential.tanh,
    "sinh": exponential.sinh,
    "cosh": exponential.cosh,
    "asinh": logarithmic.asinh,
    "acosh": logarithmic.acosh,
    "atanh": logarithmic.atanh,
    "sin": trigonometric.sin,
    "cos": trigonometric.cos,
    "tan": trigonometric.tan,
    "asin": trigonometric.asin,
    "acos": trigonometric.acos,
    "atan": trigonometric.atan,
    "atan2": trigonometric.atan2,
    "hypot": trigonometric.hypot,
    "power": power.power,
    "erfc": error_function.erfc,
    "erfinv": error_function.erfinv,
    "lgamma": gamma.lgamma,
    "digamma": gamma.digamma,
    "erf": error_function.erf,
    "sigmoid": exponential.sigmoid,
    "silu": exponential.silu,
    "softplus": exponential.softplus,
    "mish": exponential.mish,
    "gelu": error_function.gelu,
    "gelu_tanh": exponential.gelu_tanh,
}
"""Name of a primitive of `irc.ops.algebra`, or of a function composed of several -> its emitter.

``exp_of_negative`` is exp, faster, of numbers that are not positive only: of what softmax takes it of, for instance.
"""

BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.2, 1.2),
    "exp_of_negative": (1.2, 1.2),
    "exp2": (1.6, 1.6),
    "expm1": (2.5, 2.5),
    "log": (1.2, 1.2),
    "log2": (2.0, 2.0),
    "log10": (2.5, 2.5),
    "log1p": (2.0, 2.0),
    "logaddexp": (2.0, 2.0),
    "logaddexp2": (2.0, 2.0),
    "tanh": (1.4, 1.4),
    "sinh": (2.0, 2.0),
    "cosh": (2.0, 2.0),
    "asinh": (4.0, 4.0),
    "acosh": (4.0, 4.0),
    "atanh": (4.0, 4.0),
    "sin": (2.0, 2.0),
    "cos": (2.0, 2.0),
    "tan": (3.0, 3.0),
    "asin": (3.0, 3.0),
    "acos": (2.0, 2.0),
    "atan": (3.0, 3.0),
    "atan2": (3.0, 3.0),
    "hypot": (1.5, 1.5),
    "power": (1.5, 1.5),
    "erfc": (2.0, 2.0),
    "erfinv": (5.0, 5.0),
    "lgamma": (8.0, 8.0),
    "digamma": (8.0, 8.0),
    "erf": (1.6, 1.6),
    "sigmoid": (3.0, 3.0),
    "silu": (3.0, 3.0),
    "softplus": (3.0, 3.0),
    "mish": (5.0, 5.0),
    "gelu": (3.0, 3.0),
    "gelu_tanh": (3.0, 3.0),
}
"""Name -> the largest error of float32 and float64 in units in the last place; of both Gelus, 2 x² more.

Where terms cancel these are relative to 1 or a term, if that is larger than the result: logaddexp, logaddexp2, lgamma
and digamma; of the last two, where they are reflected, the terms are those at 1 - x.
"""
