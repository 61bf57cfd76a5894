"""Functions of one tensor or number, element by element."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels import numerics
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.arithmetic import rsqrt, wrapped
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    INT64,
    as_float,
    element_of,
    is_floating,
    is_integral,
    result_type,
    wide,
)
from irc.runtime.kernels.aten.operand_kinds import check_kind
from irc.runtime.kernels.aten.pointwise import (
    Computation,
    Compute,
    Setup,
    of_one,
    of_parameters,
    on_numbers,
    register,
    run,
)
from irc.runtime.kernels.aten.registering import aten, one, two
from irc.runtime.kernels.aten.special import (
    digamma,
    entropy,
    erfc,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    lgamma,
    polygamma,
    safely,
)
from irc.runtime.kernels.numerics import Function
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import AnyDType, Array
from irc.runtime.values import is_array


def _sigmoid(x: Array, out: Array | None = None) -> Any:
    if x.dtype.kind == "c":
        return np.reciprocal(1 + np.exp(-x), out=out)
    out = np.empty_like(x) if out is None else out
    numerics.sigmoid(x, out)
    return out


def _frac(x: Array, out: Array | None = None) -> Any:
    return np.subtract(x, np.trunc(x), out=out)


def _sgn(x: Array, out: Array | None = None) -> Any:
    if x.dtype.kind == "b":
        return np.logical_or(x, x, out=out)
    if x.dtype.kind != "c":
        return np.sign(np.where(np.isnan(x), x.dtype.type(0), x) if x.dtype.kind == "f" else x, out=out)
    size = np.abs(x)
    return np.divide(x, np.where(size == 0, 1, size), out=out)


def _square(x: Array) -> Computation:
    return Computation(np.square, (x,), INT64 if x.dtype == BOOL else x.dtype)


def _magnitude(x: Array) -> Computation:
    real = x.real.dtype if x.dtype.kind == "c" else None
    return Computation(np.absolute, (x,), x.dtype, real)


def _on_floats(function: Function) -> Setup:
    return of_parameters(lambda: function)


def _keeping_integers(ufunc: np.ufunc) -> Setup:
    """Roundings: they leave integers as they are."""

    def setup(x: Array) -> Computation:
        return Computation(np.positive if is_integral(x.dtype) else ufunc, (x,), x.dtype)

    return setup


def _round(x: Array, decimals: int | None = None) -> Computation:
    if decimals is not None and is_integral(x.dtype):
        raise Error("IRC423", f"round to decimals is of floating-point numbers, not of {x.dtype.name}")
    if not decimals:
        return _keeping_integers(np.rint)(x)
    # As torch does it: by a power of ten, which loses what the type cannot hold.
    factor = 10.0 ** abs(decimals)

    def compute(a: Array, out: Array | None = None) -> Any:
        scale = a.dtype.type(factor)
        return (
            np.divide(np.rint(a * scale), scale, out=out)
            if decimals > 0
            else np.multiply(np.rint(a / scale), scale, out=out)
        )

    return Computation(compute, (x,), x.dtype)


def _log_python(x: Any, base: Any = None) -> float:
    found = on_numbers(np.log)(x)
    return found if base is None else on_numbers(np.divide)(found, on_numbers(np.log)(base))


def _whole(rounding: np.ufunc) -> Kernel:
    def run(x: Any) -> int:
        value = float(rounding(np.float64(x)))
        if not math.isfinite(value) or wrapped(int(value)) != value:
            raise Error("IRC423", f"{value!r} does not fit into an integer of 64 bits")
        return int(value)

    return run


def _by_factor(factor: float) -> Setup:
    def compute(x: Array, out: Array | None = None) -> Any:
        return np.multiply(x, x.dtype.type(factor), out=out)

    return of_one(compute)


def _log_of_successor(x: Array, out: Array | None = None) -> Any:
    """log(1 + x); of complex numbers near 0 without the digits that 1 + x loses."""
    if x.dtype.kind != "c":
        return np.log1p(x, out=out)
    real, imaginary = x.real, x.imag
    near = np.log1p(real * (2 + real) + imaginary * imaginary) / 2
    length = np.where(np.abs(x) < 0.5, near, np.log(np.hypot(1 + real, imaginary)))
    found = np.empty(x.shape, x.dtype) if out is None else out
    angle = np.arctan2(imaginary, 1 + real)
    found.real, found.imag = length, angle
    return found


_UFUNCS: dict[str, np.ufunc] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
for _name, _ufunc in _UFUNCS.items():
    register(_name, _ufunc, python=_log_python if _name == "log" else on_numbers(_ufunc))
register("log1p", of_one(_log_of_successor), python=on_numbers(np.log1p))
for _name, _compute in (("sigmoid", _sigmoid), ("rsqrt", rsqrt), ("reciprocal", np.reciprocal)):
    register(_name, of_one(_compute))


def _angle(x: Array) -> Computation:
    """0 or pi, and not-a-number, of real numbers."""
    if x.dtype.kind == "c":
        return Computation(np.angle, (np.asarray(x, order="C"),), x.dtype, x.real.dtype)

    def compute(a: Array, out: Array | None = None) -> Any:
        return np.positive(np.where(np.isnan(a), a, np.less(a, 0) * a.dtype.type(np.pi)), out=out)

    return Computation(compute, (x,), as_float(x.dtype))


def _equal_to(value: float) -> Compute:
    def compute(x: Array, out: Array | None = None) -> Any:
        return np.equal(x, value, out=out)

    return compute


def _is_real(x: Array, out: Array | None = None) -> Any:
    return np.equal(x.imag, 0, out=out)


def _sinc(x: Array, out: Array | None = None) -> Any:
    return np.positive(np.sinc(x).astype(x.dtype), out=out)


def _is_negative(x: Array, out: Array | None = None) -> Any:
    return np.less(x, 0, out=out) if is_integral(x.dtype) else np.signbit(x, out=out)


@aten("frexp")
def parts(x: Any) -> tuple[Any, Any]:
    """Mantissa, from 0.5 to below 1, and exponent, of a number or of each element."""
    if not is_array(x):
        return math.frexp(x)
    if not is_floating(x.dtype):
        raise Error("IRC423", f"frexp takes apart floating-point numbers, not elements of type {x.dtype.name}")
    mantissa, exponent = np.frexp(x.astype(wide(x.dtype)))
    return layout.like(np.asarray(mantissa).astype(x.dtype), x), layout.like(np.asarray(exponent, np.int32), x)


register("angle", _angle, python=one(lambda x: float(np.angle(x))))
register("deg2rad", _by_factor(math.pi / 180))
register("rad2deg", _by_factor(180 / math.pi))
register("signbit", of_one(_is_negative))
for _name, _infinity in (("isposinf", np.inf), ("isneginf", -np.inf)):
    register(_name, of_one(_equal_to(_infinity)))
register("isreal", of_one(_is_real))
register("sinc", of_one(_sinc))
register("i0", _on_floats(i0))
for _name, _function in (("entr", entropy), ("i0e", i0e), ("i1", i1), ("i1e", i1e)):
    register(f"special_{_name}", _on_floats(_function))
register("neg", of_one(numerics.negative), python=one(lambda x: wrapped(-x)))
register("abs", _magnitude, python=one(lambda x: wrapped(abs(x))))
register("square", _square)
register("sign", of_one(_sgn))
register("sgn", of_one(_sgn))
register("frac", of_one(_frac))
register("ceil", _keeping_integers(np.ceil), python=_whole(np.ceil))
register("floor", _keeping_integers(np.floor), python=_whole(np.floor))
register("trunc", _keeping_integers(np.trunc))
register("round", _round, python=on_numbers(np.rint))

for _name, _function, _ufunc in (("erf", numerics.erf, math.erf), ("erfc", erfc, math.erfc)):
    register(_name, _on_floats(_function), python=_ufunc)
register("erfinv", _on_floats(erfinv))
register("lgamma", _on_floats(lgamma), python=safely(math.lgamma))
register("digamma", _on_floats(digamma))


def _derivative(x: Array, n: int) -> Computation:
    if n < 0:
        raise Error("IRC424", f"polygamma takes derivatives from the 0th on, not the {n}th")
    return of_parameters(polygamma)(x, n)


aten("polygamma")(two(lambda n, x: run(_derivative(x, n))))
aten("polygamma_")(two(lambda x, n: run(_derivative(x, n), into=x)))
register("bitwise_not", np.invert)
register("logical_not", np.logical_not)
for _name, _ufunc in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite)):
    register(_name, _ufunc, python=on_numbers(_ufunc, bool))


def _clamp(x: Array, low: Any = None, high: Any = None) -> Computation:
    """Between bounds that are numbers or tensors; the upper one wins."""
    given = [b for b in (low, high) if b is not None]
    if not given:
        raise Error("IRC424", "clamp needs a lower or an upper bound, or both")
    dtype = result_type(x, *given)
    check_kind("clamp", dtype)
    if dtype == BOOL and low is not None and high is not None:  # else the larger or smaller of both
        raise Error("IRC423", "clamp is not defined on bools; convert them")
    given = [b if is_array(b) else element_of(b, dtype) for b in given]  # which refuses numbers that do not fit

    def compute(a: Array, *bounds: Array, out: Array | None = None) -> Any:
        rest = iter(bounds)
        found = a if low is None else numerics.at_least(a, next(rest), None if high is not None else out)
        return found if high is None else numerics.at_most(found, next(rest), out)

    return Computation(compute, (x, *given), dtype)


def _nan_to_num(x: Array, nan: Any = None, above: Any = None, below: Any = None) -> Computation:
    """Numbers in place of what is not finite, by default 0 and the largest ones there are."""
    if is_integral(x.dtype):
        return Computation(np.bitwise_or, (x, x), x.dtype)
    limits = np.finfo(x.dtype) if x.dtype.kind != "V" else _small_limits(x.dtype)
    high = float(limits.max) if above is None else above
    low = float(limits.min) if below is None else below

    def compute(a: Array, out: Array | None = None) -> Any:
        return np.positive(np.nan_to_num(a, nan=nan or 0.0, posinf=high, neginf=low), out=out)

    return Computation(compute, (x,), x.dtype)


def _small_limits(dtype: AnyDType) -> Any:
    import ml_dtypes  # slow to import, needed only for its own types

    limits: Any = ml_dtypes.finfo
    return limits(dtype)


register("clamp", _clamp)
register("clamp_min", _clamp)
register("clamp_max", two(lambda x, high: _clamp(x, None, high)))
register("nan_to_num", _nan_to_num)
