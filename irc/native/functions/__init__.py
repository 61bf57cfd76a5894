"""Mathematical functions on lanes, compiled once and called by groups.

Those that are rare, and that other runtimes compute element by element, are left to NumPy.
"""

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
    "tanh": (exponential.tanh, 1.4),
    "sin": (trigonometric.sin, 2.0),
    "cos": (trigonometric.cos, 2.0),
    "asin": (trigonometric.asin, 3.0),
    "acos": (trigonometric.acos, 2.0),
    "atan": (trigonometric.atan, 3.0),
    "power": (exponential.power, 1.5),
    "erfc": (special.erfc, 2.0),
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
"""Name -> the largest error of float32 and float64 in units in the last place; of both Gelus, 2 x² more."""
