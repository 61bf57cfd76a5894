"""Mathematical functions on lanes, compiled once and called by groups."""

from __future__ import annotations

from collections.abc import Callable

from irc.native.functions import exponential, logarithmic, special, trigonometric
from irc.native.lanes import Lanes

_TABLE: dict[str, tuple[Callable[..., Lanes], float]] = {
    "exp": (exponential.exp, 1.2),
    "exp_of_negative": (exponential.exp_of_negative, 1.2),
    "exp2": (exponential.exp2, 1.6),
    "expm1": (exponential.expm1, 2.5),
    "log": (logarithmic.log, 1.2),
    "log2": (logarithmic.log2, 2.0),
    "log10": (logarithmic.log10, 2.5),
    "log1p": (logarithmic.log1p, 2.0),
    "logaddexp": (exponential.logaddexp, 2.0),
    "logaddexp2": (exponential.logaddexp2, 2.0),
    "tanh": (exponential.tanh, 1.4),
    "sinh": (exponential.sinh, 2.0),
    "cosh": (exponential.cosh, 2.0),
    "asinh": (logarithmic.asinh, 4.0),
    "acosh": (logarithmic.acosh, 4.0),
    "atanh": (logarithmic.atanh, 4.0),
    "sin": (trigonometric.sin, 2.0),
    "cos": (trigonometric.cos, 2.0),
    "tan": (trigonometric.tan, 3.0),
    "asin": (trigonometric.asin, 3.0),
    "acos": (trigonometric.acos, 2.0),
    "atan": (trigonometric.atan, 3.0),
    "atan2": (trigonometric.atan2, 3.0),
    "hypot": (trigonometric.hypot, 1.5),
    "power": (exponential.power, 1.5),
    "erfc": (special.erfc, 2.0),
    "erfinv": (special.erfinv, 5.0),
    "lgamma": (special.lgamma, 8.0),
    "digamma": (special.digamma, 8.0),
    "erf": (special.erf, 1.6),
    "sigmoid": (exponential.sigmoid, 3.0),
    "silu": (exponential.silu, 3.0),
    "softplus": (exponential.softplus, 3.0),
    "mish": (exponential.mish, 5.0),
    "gelu": (special.gelu, 3.0),
    "gelu_tanh": (exponential.gelu_tanh, 3.0),
}
"""Name of a primitive of `irc.ops.algebra`, or of a function composed of several -> its emitter, and its `BOUNDS`.

``exp_of_negative`` is exp, faster, of numbers that are not positive only: of what softmax takes it of, for instance.
"""

FUNCTIONS = {name: emit for name, (emit, _) in _TABLE.items()}
"""Name -> emitter."""

BOUNDS = {name: ulp for name, (_, ulp) in _TABLE.items()}
"""Name -> the largest error of float32 and float64 in units in the last place; of both Gelus, 2 x² more.

Where terms cancel these are relative to 1 or a term, if that is larger than the result: logaddexp, logaddexp2, lgamma
and digamma; of the last two, where they are reflected, the terms are those at 1 - x.
"""
