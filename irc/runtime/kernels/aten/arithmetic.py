"""Arithmetic on two or three operands, element by element."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.types import INT, SCALAR
from irc.runtime.kernels import elementwise
from irc.runtime.kernels.aten import pointwise
from irc.runtime.kernels.aten.containers import changeable, join_lists, repeat_list
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    as_float,
    element_of,
    is_floating,
    is_integral,
    result_type,
    tensor,
)
from irc.runtime.kernels.aten.pointwise import (
    Computation,
    Compute,
    Operand,
    Setup,
    of_two,
    on_numbers,
    register,
    to_float,
)
from irc.runtime.kernels.aten.registering import aten, by_node, table, two
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, is_half
from irc.runtime.values import is_array, is_sequence

if TYPE_CHECKING:
    from irc.ir import Node

# -- setups ---------------------------------------------------------------------


def _is_bool(x: Operand) -> bool:
    return x.dtype == BOOL if is_array(x) else isinstance(x, bool)


def _scaled(ufunc: np.ufunc) -> Setup:
    """``ufunc(x, alpha * y)``."""

    def setup(x: Operand, y: Operand, alpha: Any = 1) -> Computation:
        def compute(a: Array, b: Array, factor: Array, out: Array | None = None) -> Any:
            return ufunc(a, np.multiply(b, factor), out=out)

        dtype = result_type(x, y)
        if ufunc is np.subtract and (_is_bool(x) or _is_bool(y)):
            raise Error("IRC423", "bools have no difference; use ^, or convert them")
        if alpha == 1:
            return Computation(ufunc, (x, y), dtype)
        if (isinstance(alpha, float) and is_integral(dtype)) or (isinstance(alpha, complex) and dtype.kind != "c"):
            raise Error("IRC423", f"alpha is {alpha}, by which elements of type {dtype.name} cannot be multiplied")
        element_of(alpha, dtype)  # which refuses what does not fit
        return Computation(compute, (x, y, alpha), dtype)

    return setup


def _scaling(whole: Setup) -> Setup:
    """A product or quotient: of small floats, torch does not round a second operand that has no dimensions."""

    def setup(x: Operand, y: Operand) -> Computation:
        found = whole(x, y)
        return found._replace(exact=is_array(x) and x.dtype == found.dtype and not np.ndim(y))

    return setup


def _integral(compute: Compute) -> Setup:
    """A division that keeps integers, for which a divisor of 0 is an error."""

    def setup(x: Operand, y: Operand) -> Computation:
        dtype = result_type(x, y)
        if dtype == BOOL:
            raise Error("IRC421", "bools have no quotient but the true one, and no remainder; convert them")
        if is_integral(dtype) and not np.all(y) and np.size(x):
            raise Error("IRC424", "an integer is divided by zero")
        return Computation(compute, (x, y), dtype)

    return setup


def _truncated(a: Array, b: Array, out: Array | None = None) -> Any:
    if a.dtype.kind in "iu":
        return np.floor_divide(a - np.fmod(a, b), b, out=out)
    return np.trunc(np.divide(a, b), out=out)


def _remainder(a: Array, b: Array, out: Array | None = None) -> Any:
    """The remainder with the divisor's sign; a remainder of 0 has the dividend's, as torch computes it."""
    if a.dtype.kind in "iu":
        return np.remainder(a, b, out=out)
    rest = np.asarray(np.fmod(a, b))
    np.add(rest, b, out=rest, where=(rest != 0) & ((b < 0) != (rest < 0)))
    return np.positive(rest, out=out)


_quotient = of_two(np.divide)
_add, _subtract = _scaled(np.add), _scaled(np.subtract)
_multiply = _scaling(of_two(np.multiply))
_true_divide = _scaling(two(lambda x, y: to_float(_quotient(x, y))))
_floor_divide = _scaling(_integral(np.floor_divide))
_ROUNDED: dict[str | None, Setup] = {
    None: _true_divide,
    "floor": _floor_divide,
    "trunc": _scaling(_integral(_truncated)),
}


def _divide(x: Operand, y: Operand, rounding_mode: str | None = None) -> Computation:
    """The quotient; rounded down (``floor``) or to zero (``trunc``) it keeps the operands' element type."""
    if rounding_mode not in _ROUNDED:
        raise Error("IRC423", f"rounding_mode is {rounding_mode!r}; it must be 'floor' or 'trunc'")
    return _ROUNDED[rounding_mode](x, y)


def _reversed_subtract(x: Operand, y: Operand, alpha: Any = 1) -> Computation:
    return _subtract(y, x, alpha)


def rsqrt(x: Array, out: Array | None = None) -> Any:
    return np.reciprocal(np.sqrt(x), out=out)


_ROOTS: dict[Any, Compute] = {0.5: np.sqrt, -0.5: rsqrt}
"""What torch computes for these exponents: of -inf and -0 it is not what IEEE 754 says of powers."""


def _power(x: Operand, y: Operand) -> Computation:
    dtype = result_type(x, y)
    if is_integral(dtype) and not is_array(y) and y < 0:
        raise Error("IRC424", f"integers cannot be raised to the power {y}, which is negative")
    if dtype == BOOL and is_array(y):
        raise Error("IRC421", "bools cannot be raised to bools; convert them")
    if not is_array(y) and (is_integral(dtype) or is_half(dtype)):
        element_of(y, dtype)  # which refuses what does not fit
    root = _ROOTS.get(y) if not is_array(y) and is_floating(dtype) and dtype != np.float16 else None
    if root is not None:
        return Computation(root, (x,), dtype)
    return Computation(np.power if dtype.kind == "c" else elementwise.power, (x, y), dtype)


def _xlogy(a: Array, b: Array, out: Array | None = None) -> Any:
    """``a log(b)``; 0 where a is 0, unless b is not a number."""
    zero = (a == 0) & ~np.isnan(b)
    return np.multiply(np.where(zero, a.dtype.type(0), a), np.where(zero, a.dtype.type(0), np.log(b)), out=out)


def _log_of_sum(x: Array, y: Array) -> Computation:
    """``log(exp(x) + exp(y))``, without overflow."""
    dtype = result_type(x, y)
    return Computation(complex_log_of_sum if dtype.kind == "c" else np.logaddexp, (x, y), dtype)


def complex_log_of_sum(a: Array, b: Array, out: Array | None = None) -> Any:
    """``log(exp(a) + exp(b))``, without overflow."""
    is_less = a.real < b.real
    low: Array = np.where(is_less, a, b)
    high: Array = np.where(is_less, b, a)
    angle = np.multiply(low.imag - high.imag, a.dtype.type(1j))
    gap = np.where(low.real == high.real, angle, low - high)  # of infinities too
    return np.add(high, np.log1p(np.exp(gap)), out=out)


def _lerp(x: Array, end: Array, weight: Operand) -> Computation:
    """``x + weight (end - x)``, from the nearer end, so that both ends are reached exactly."""

    def compute(a: Array, b: Array, w: Array, out: Array | None = None) -> Any:
        near = np.abs(w) < 0.5
        return np.add(np.where(near, a, b), np.where(near, w, w - 1) * (b - a), out=out)

    if end.dtype != x.dtype or (np.ndim(weight) and weight.dtype != x.dtype):
        raise Error("IRC423", "lerp takes tensors of one element type; convert them")
    if not is_array(weight):
        return Computation(compute, (x, end, weight), x.dtype, exact=True)
    return Computation(compute, (x, end, weight), result_type(x, end, weight))


def _plus(combine: np.ufunc) -> Setup:
    """``x + value * combine(y, z)``."""

    def setup(x: Array, y: Array, z: Array, value: Any = 1) -> Computation:
        def compute(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
            return np.add(a, combine(b, c) if value == 1 else combine(b * tensor(value, b.dtype), c), out=out)

        dtype = result_type(x, y, z)
        if not is_half(dtype):  # of float16, torch makes infinities
            element_of(value, dtype)
        if combine is np.divide and is_integral(y.dtype) and is_integral(z.dtype):
            raise Error("IRC423", "addcdiv does not divide integers; convert them")
        if dtype == BOOL:
            raise Error("IRC423", "addcmul is not defined on bools; convert them")
        return Computation(compute, (x, y, z), dtype)

    return setup


# -- Python's numbers, strings and lists ---------------------------------------

_LIMIT = 2**63
"""Integers have 64 bits: they lie from -_LIMIT to below _LIMIT."""


def wrapped(value: Any) -> Any:
    """An integer wrapped around to 64 bits; any other value unchanged."""
    if isinstance(value, int) and not -_LIMIT <= value < _LIMIT:
        return (value + _LIMIT) % (2 * _LIMIT) - _LIMIT
    return value


def truncated(value: float) -> int:
    """A float rounded to zero, as an integer of 64 bits; the smallest one if it does not fit, as on x86-64."""
    return int(value) if -_LIMIT <= value < _LIMIT else -_LIMIT


def check_numeral(text: str) -> None:
    """Error IRC423 for text that is a number in Python but not in C++: ``1_000``, and blanks at the end."""
    if "_" in text or text[-1:].isspace():
        raise Error("IRC423", f"{text!r} is no number")


def parsed(text: str) -> int:
    """An integer written in decimal. Error IRC423 if the text is not one, or it does not fit into 64 bits."""
    check_numeral(text)
    try:
        value = int(text)
    except ValueError:
        raise Error("IRC423", f"{text!r} is no integer") from None
    if wrapped(value) != value:
        raise Error("IRC423", f"{text} does not fit into 64 bits")
    return value


def _difference(x: Any, y: Any, alpha: Any = 1) -> Any:
    return wrapped(x - alpha * y)


def _divisible(compute: Callable[[Any, Any], Any], on_floats: Kernel) -> Kernel:
    """A division of Python numbers: dividing an integer by 0 is an error, a float gives an infinity or NaN."""

    def run(x: Any, y: Any) -> Any:
        if y:
            return compute(x, y)
        if isinstance(x, int) and isinstance(y, int):
            raise Error("IRC424", f"{x} is divided by zero")
        return on_floats(x, y)

    return run


def _modulo(x: Any, y: Any) -> Any:
    """The remainder with the divisor's sign; for an infinite divisor, torch's is NaN."""
    if isinstance(x, int) and isinstance(y, int):
        return x % y
    return float(np.fmod(np.fmod(np.float64(x), np.float64(y)) + np.float64(y), np.float64(y)))


def _floor_of_quotient(x: Any, y: Any) -> Any:
    """For floats, the quotient rounded down, which Python's ``//`` is not if it is infinite."""
    if isinstance(x, int) and isinstance(y, int):
        if y == 0:
            raise Error("IRC424", f"{x} is divided by zero")
        return wrapped(x // y)
    return float(np.floor(np.divide(np.float64(x), np.float64(y))))


def _add_python(x: Any, y: Any, alpha: Any = None) -> Any:
    if is_sequence(x):
        if alpha is not None:
            raise TypeError("lists take no factor")
        return join_lists(x, y)
    return wrapped(x + (y if alpha is None else alpha * y))


def _mul_python(x: Any, y: Any) -> Any:
    if is_sequence(x):
        return repeat_list(x, y)
    return repeat_list(y, x) if is_sequence(y) else wrapped(x * y)


def _add_to_list(x: Any, y: Any) -> Any:
    changeable(x).extend(list(y))
    return x


def _repeat_in_place(x: Any, n: int) -> Any:
    changeable(x)[:] = repeat_list(x, n)
    return x


register("add", _add, compute=np.add, rest=(1,), python=_add_python, python_in_place=_add_to_list)
register("mul", _multiply, compute=np.multiply, python=_mul_python, python_in_place=_repeat_in_place)
register("sub", _subtract, compute=np.subtract, rest=(1,), python=_difference)
register("div", _divide, compute=np.divide, rest=(None,), python=on_numbers(np.divide))
for _name, _planner, _python in (
    ("floor_divide", _floor_divide, None),
    ("remainder", _integral(_remainder), _divisible(_modulo, _modulo)),
    ("fmod", _integral(np.fmod), on_numbers(np.fmod)),
    ("atan2", np.arctan2, on_numbers(np.arctan2)),
    ("copysign", np.copysign, on_numbers(np.copysign)),
    ("lerp", _lerp, None),
    ("addcmul", _plus(np.multiply), None),
    ("addcdiv", _plus(np.divide), None),
):
    register(_name, _planner, python=_python)
for _name, _planner in (
    ("rsub", _reversed_subtract),
    ("maximum", np.maximum),
    ("minimum", np.minimum),
    ("fmax", np.fmax),
    ("fmin", np.fmin),
    ("logaddexp", _log_of_sum),
    ("logaddexp2", np.logaddexp2),
):
    register(_name, _planner)
register("hypot", np.hypot)
register("xlogy", of_two(_xlogy))


def _common_divisor(x: int, y: int) -> int:
    return math.gcd(x, y)


register("gcd", np.gcd, python=_common_divisor)
register("lcm", np.lcm)


def _next(x: Array, y: Array) -> Computation:
    dtype = result_type(x, y)
    if not is_floating(dtype):
        raise Error("IRC423", f"nextafter is of floats, not of {dtype.name}")

    def compute(a: Array, b: Array, out: Array | None = None) -> Any:
        """Computed in the element type itself; small floats are computed in float32."""
        return np.nextafter(a.astype(dtype, copy=False), b.astype(dtype, copy=False), out=out)

    return Computation(compute, (x, y), dtype, dtype)


def _float_power(x: Operand, y: Operand) -> Computation:
    dtype = np.dtype(np.complex128 if result_type(x, y).kind == "c" else np.float64)
    return _power(tensor(x, dtype), tensor(y, dtype) if is_array(y) else y)


def _float_power_in_place(x: Array, y: Operand) -> Computation:
    found = _float_power(x, y)
    if x.dtype != found.dtype:
        raise Error("IRC431", f"float_power gives {found.dtype.name}: a tensor of {x.dtype.name} cannot hold that")
    return found


def _with_exponent(x: Array, y: Array) -> Computation:
    """``x * 2 ** y``; by integers without the power, which may not fit into the element type of the result."""
    if not is_integral(y.dtype) or x.dtype.kind == "c":
        return _times(x, pointwise.run(_power(2.0, y)))

    def compute(a: Array, b: Array, out: Array | None = None) -> Any:
        return np.ldexp(a, np.clip(b, -_FARTHEST, _FARTHEST).astype(np.int32), out=out)

    return Computation(compute, (x, y), as_float(result_type(x, y)))


_FARTHEST = 1 << 13
"""Exponents beyond which no float of 64 bits is left."""


_times = of_two(np.multiply)


def _step(x: Array, y: Array) -> Computation:
    """0 below 0 and for NaN, 1 above, and ``y`` at it."""

    def compute(a: Array, b: Array, out: Array | None = None) -> Any:
        found = np.where(a == 0, b, (a > 0).astype(a.dtype))
        if out is None:
            return found
        np.copyto(out, found)
        return out

    if x.dtype != y.dtype:
        raise Error("IRC423", f"heaviside takes tensors of one element type, not {x.dtype.name} and {y.dtype.name}")
    return Computation(compute, (x, y), x.dtype)


register("heaviside", _step)
register("nextafter", _next)
register("float_power", _float_power, in_place=_float_power_in_place)
register("ldexp", _with_exponent, python=two(math.ldexp))
table({"floordiv": _floor_of_quotient})


def _power_python(result: Any, operands: tuple[Any, ...]) -> Kernel:
    """Two integers give an integer or a float, as declared; complex numbers a complex one, others a float.

    Negative powers of 0 are refused, but not of what is declared as any number: these have the arithmetic of tensors.
    """
    floats = on_numbers(np.float_power)  # np.power takes the square root of -inf for its power

    def run(x: Any, y: Any) -> Any:
        if isinstance(x, complex) or isinstance(y, complex):
            return floats(x, y)
        if x == 0 and y < 0 and SCALAR not in operands:
            raise Error("IRC424", f"0 cannot be raised to the power {y}, which is negative")
        if result != INT or y < 0:
            return floats(x, y)
        return int(np.power(np.int64(x), np.int64(y)))

    return run


@by_node("pow")
def power(node: Node) -> Kernel:
    result = getattr(next(iter(node.outputs), None), "type", None)
    python = _power_python(result, tuple(value.type for value in node.inputs))

    def run(x: Operand, y: Operand, *, out: Array | None = None) -> Any:
        if not is_array(x) and not is_array(y):
            return python(x, y)
        found = pointwise.run(_power(x, y), into=out)
        return found if is_array(x) or out is not None else np.asarray(found, order="C")

    return run


@aten("pow_")
def power_in_place(x: Array, y: Operand) -> Array:
    return pointwise.run(_power(x, y), into=x)
