"""Arithmetic, comparisons and logic on two or three operands, element by element; selection by a mask."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node
from irc.ir.types import INT, SCALAR
from irc.ops.aten.pointwise import truncated_quotient
from irc.runtime.kernels import elementwise
from irc.runtime.kernels.aten import layout, pointwise
from irc.runtime.kernels.aten.containers import changeable, join_lists, repeat_list, same
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    as_float,
    check_same_type,
    check_writable,
    element_of,
    is_floating,
    is_integral,
    result_type,
    single,
    tensor,
)
from irc.runtime.kernels.aten.pointwise import (
    Computation,
    Compute,
    Operand,
    Setup,
    computed,
    of_two,
    on_numbers,
    recorded,
    register,
    run,
    to_float,
)
from irc.runtime.kernels.aten.registering import aten, by_node, two
from irc.runtime.kernels.expressions import of_expression
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, broadcast_shape, check_size, chosen, common_shape, is_half, placed
from irc.runtime.values import is_array, is_sequence

# -- setups ---------------------------------------------------------------------


def _is_bool(x: Operand) -> bool:
    return x.dtype == BOOL if is_array(x) else isinstance(x, bool)


def _scaled(name: str, plain: np.ufunc) -> Setup:
    """The setup of ``aten::name``, x + alpha * y or x - alpha * y; ``plain`` is the ufunc for alpha 1."""
    whole = computed(name)

    def setup(x: Operand, y: Operand, alpha: Any = 1) -> Computation:
        dtype = result_type(x, y)
        if plain is np.subtract and (_is_bool(x) or _is_bool(y)):
            raise Error("IRC423", "bools have no difference; use ^, or convert them")
        if alpha == 1:
            return Computation(plain, (x, y), dtype)
        if (isinstance(alpha, float) and is_integral(dtype)) or (isinstance(alpha, complex) and dtype.kind != "c"):
            raise Error("IRC423", f"alpha is {alpha}, by which elements of type {dtype.name} cannot be multiplied")
        element_of(alpha, dtype)  # which refuses what does not fit
        return Computation(whole, (x, y, alpha), dtype)

    return setup


def _scaling(whole: Setup) -> Setup:
    """The setup of a product or quotient: torch does not round a 0-d second operand to a small float."""

    def setup(x: Operand, y: Operand) -> Computation:
        found = whole(x, y)
        return found._replace(exact=is_array(x) and x.dtype == found.dtype and not np.ndim(y))

    return setup


def _integral(compute: Compute) -> Setup:
    """A division that keeps integers, for which a divisor of 0 is an error."""

    def setup(x: Operand, y: Operand) -> Computation:
        dtype = result_type(x, y)
        if dtype == BOOL:
            raise Error("IRC421", "bools support only true division, and no remainder; convert them")
        if is_integral(dtype) and not np.all(y) and np.size(x):
            raise Error("IRC424", "an integer is divided by zero")
        return Computation(compute, (x, y), dtype)

    return setup


_quotient = of_two(np.divide)
_add, _subtract = _scaled("add", np.add), _scaled("sub", np.subtract)
_multiply = _scaling(recorded("mul"))
_true_divide = _scaling(two(lambda x, y: to_float(_quotient(x, y))))
_floor_divide = _scaling(_integral(computed("floor_divide")))
_quotient_to_zero = of_expression(truncated_quotient, 2, result=None)
_ROUNDED: dict[str | None, Setup] = {
    None: _true_divide,
    "floor": _floor_divide,
    "trunc": _scaling(_integral(_quotient_to_zero)),
}


def _divide(x: Operand, y: Operand, rounding_mode: str | None = None) -> Computation:
    """The quotient; rounded down (``floor``) or to zero (``trunc``) it keeps the operands' element type."""
    if rounding_mode not in _ROUNDED:
        raise Error("IRC423", f"rounding_mode is {rounding_mode!r}; it must be 'floor' or 'trunc'")
    return _ROUNDED[rounding_mode](x, y)


def _reversed_subtract(x: Operand, y: Operand, alpha: Any = 1) -> Computation:
    return _subtract(y, x, alpha)


_ROOTS: dict[Any, Compute] = {0.5: np.sqrt, -0.5: computed("rsqrt")}
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


_interpolated = computed("lerp")


def _lerp(x: Array, end: Array, weight: Operand) -> Computation:
    if end.dtype != x.dtype or (np.ndim(weight) and weight.dtype != x.dtype):
        raise Error("IRC423", "lerp takes tensors of one element type; convert them")
    if not is_array(weight):
        return Computation(_interpolated, (x, end, weight), x.dtype, exact=True)
    return Computation(_interpolated, (x, end, weight), result_type(x, end, weight))


def _plus(name: str) -> Setup:
    """``aten::name``: ``x`` and ``value`` times a product or quotient."""
    whole = computed(name)

    def setup(x: Array, y: Array, z: Array, value: Any = 1) -> Computation:
        dtype = result_type(x, y, z)
        if not is_half(dtype):  # of float16, torch makes infinities
            element_of(value, dtype)
        if name == "addcdiv" and is_integral(y.dtype) and is_integral(z.dtype):
            raise Error("IRC423", "addcdiv does not divide integers; convert them")
        if dtype == BOOL:
            raise Error("IRC423", "addcmul is not defined on bools; convert them")
        if value == 1:
            return Computation(whole, (x, y, z), dtype)

        def compute(a: Array, b: Array, c: Array, out: Array | None = None) -> Any:
            return whole(a, b, c, tensor(value, b.dtype), out=out)

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
    """A float rounded to zero as a 64-bit integer; the least one if it does not fit, as on x86-64."""
    return int(value) if -_LIMIT <= value < _LIMIT else -_LIMIT


def check_numeral(text: str) -> None:
    """Error IRC423 for text that is a number in Python but not in C++: ``1_000``, and blanks at the end."""
    if "_" in text or text[-1:].isspace():
        raise Error("IRC423", f"{text!r} is not a number")


def parsed(text: str) -> int:
    """An integer written in decimal. Error IRC423 if the text is not one, or it does not fit into 64 bits."""
    check_numeral(text)
    try:
        value = int(text)
    except ValueError:
        raise Error("IRC423", f"{text!r} is not an integer") from None
    if wrapped(value) != value:
        raise Error("IRC423", f"{text} does not fit into 64 bits")
    return value


def _difference(x: Any, y: Any, alpha: Any = 1) -> Any:
    return wrapped(x - alpha * y)


def _divisible(compute: Callable[[Any, Any], Any], on_floats: Kernel) -> Kernel:
    """Division of Python numbers: integer by 0 is an error, float by 0 an infinity or NaN."""

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


def floordiv(x: Any, y: Any) -> Any:
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
    ("remainder", _integral(computed("remainder")), _divisible(_modulo, _modulo)),
    ("fmod", _integral(computed("fmod")), on_numbers(np.fmod)),
    ("atan2", None, on_numbers(np.arctan2)),
    ("copysign", None, on_numbers(np.copysign)),
    ("lerp", _lerp, None),
    ("addcmul", _plus("addcmul"), None),
    ("addcdiv", _plus("addcdiv"), None),
):
    register(_name, _planner, python=_python)
for _name in ("maximum", "minimum", "fmax", "fmin", "logaddexp2", "hypot", "xlogy", "lcm"):
    register(_name)
register("rsub", _reversed_subtract)
register("logaddexp", _log_of_sum)


register("gcd", python=two(lambda x, y: math.gcd(x, y)))


def _next(x: Array, y: Array) -> Computation:
    dtype = result_type(x, y)

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
    """``x * 2 ** y``; for integers without the power, which may overflow the result's element type."""
    if not is_integral(y.dtype) or x.dtype.kind == "c":
        return _times(x, pointwise.run(_power(2.0, y)))

    def compute(a: Array, b: Array, out: Array | None = None) -> Any:
        return np.ldexp(a, np.clip(b, -_FARTHEST, _FARTHEST).astype(np.int32), out=out)

    return Computation(compute, (x, y), as_float(result_type(x, y)))


_FARTHEST = 1 << 13
"""Exponents beyond which no float of 64 bits is left."""


_times = recorded("mul")


def _step(x: Array, y: Array) -> Computation:
    if x.dtype != y.dtype:
        raise Error("IRC423", f"heaviside takes tensors of one element type, not {x.dtype.name} and {y.dtype.name}")
    return Computation(computed("heaviside"), (x, y), x.dtype)


register("heaviside", _step)
register("nextafter", _next)
register("float_power", _float_power, in_place=_float_power_in_place)
register("ldexp", _with_exponent, python=two(math.ldexp))


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


def pow_(x: Array, y: Operand) -> Array:
    return pointwise.run(_power(x, y), into=x)


def _logical(ufunc: np.ufunc) -> Setup:
    """On truth values, whatever the elements are."""

    def setup(x: Array, y: Array) -> Computation:
        return Computation(ufunc, (x, y), BOOL)

    return setup


_COMPARISONS: dict[str, tuple[np.ufunc, Callable[[Any, Any], Any]]] = {
    "eq": (np.equal, same),
    "ne": (np.not_equal, lambda x, y: not same(x, y)),
    "lt": (np.less, operator.lt),
    "le": (np.less_equal, operator.le),
    "gt": (np.greater, operator.gt),
    "ge": (np.greater_equal, operator.ge),
}
for _name, (_ufunc, _python) in _COMPARISONS.items():
    register(_name, python=_python)
for _name, _ufunc in (("and", np.logical_and), ("or", np.logical_or), ("xor", np.logical_xor)):
    register(f"logical_{_name}", _logical(_ufunc))


def _in_place(setup: Setup) -> Kernel:
    return two(lambda x, y: run(setup(x, y), into=x))


# Of counts torch takes the lowest 6 bits, as processors do.
_BITS: dict[str, tuple[np.ufunc, Kernel]] = {
    "and": (np.bitwise_and, two(lambda x, y: x & y)),
    "or": (np.bitwise_or, two(lambda x, y: x | y)),
    "xor": (np.bitwise_xor, two(lambda x, y: x ^ y)),
    "lshift": (np.left_shift, two(lambda x, y: wrapped(x << (y & 63)))),
    "rshift": (np.right_shift, two(lambda x, y: x >> (y & 63))),
}
for _name, (_ufunc, _python) in _BITS.items():
    register(f"__{_name}__", python=_python)
    aten(f"__i{_name}__")(_in_place(of_two(_ufunc)))
    _full = {"lshift": "left_shift", "rshift": "right_shift"}.get(_name, _name)
    register(f"bitwise_{_full}")


def equal(x: Array, y: Array) -> bool:
    """Whether two tensors have the same shape and elements."""
    return x.shape == y.shape and bool(np.equal(x, y).all())


def isclose(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    if not (rtol >= 0 and atol >= 0):
        raise Error("IRC424", f"tolerances are {rtol} and {atol}; they must not be negative")
    found = np.isclose(x, y, rtol, atol, equal_nan)
    return placed(found, layout.empty(np.shape(found), BOOL, (x, y)))


def allclose(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(isclose(x, y, rtol, atol, equal_nan).all())


# -- selection -----------------------------------------------------------------


def where(condition: Array, *branches: Operand, out: Array | None = None) -> Any:
    """``where(condition, x, y)``, or the indices of what is true."""
    if not branches:
        return [np.array(i) for i in np.nonzero(np.atleast_1d(condition))]
    if condition.dtype.kind not in "bu":
        raise _no_mask(condition)
    dtype = result_type(*branches)
    # Of what is too large for float16, torch makes infinities.
    x, y = (tensor(b, dtype) if is_array(b) or is_half(dtype) else element_of(b, dtype) for b in branches)
    shape = common_shape(condition.shape, x.shape, y.shape)
    mask = condition.astype(bool, copy=False)
    if out is not None:  # which may be any of the operands
        return chosen(mask, x, y, out)
    made = layout.empty(shape, dtype, (condition, *branches))
    np.copyto(made, y)
    np.copyto(made, x, where=mask)
    return made


def masked_fill_(x: Array, mask: Array, value: Operand) -> Array:
    check_writable(x, one_value=True)
    _check_mask(mask)
    try:
        np.copyto(x, single(value, x.dtype), where=mask)
    except ValueError:
        raise _misfit(x, mask) from None
    return x


def _spread(x: Array, mask: Array) -> Array:
    """``x`` with the dimensions that ``mask`` has, too: a view."""
    _check_mask(mask)
    try:
        shape = broadcast_shape(x.shape, mask.shape)
    except ValueError:
        raise _misfit(x, mask) from None
    return np.broadcast_to(x, shape)


def _check_mask(mask: Array) -> None:
    """Error IRC423 unless ``mask`` has truth values."""
    if mask.dtype != BOOL:
        raise _no_mask(mask)


def _no_mask(mask: Array) -> Error:
    return Error(
        "IRC423", f"a tensor of {mask.dtype.name} is not a mask; compare its elements, or convert them to bools"
    )


def _misfit(x: Array, mask: Array) -> Error:
    return Error("IRC421", f"a mask of shape {list(mask.shape)} does not fit {list(x.shape)}")


def masked_fill(x: Array, mask: Array, value: Operand, *, out: Array | None = None) -> Array:
    spread = _spread(x, mask)
    if out is not None:  # which may be any of the operands
        return chosen(mask, single(value, x.dtype), spread, out)
    return masked_fill_(np.array(spread, order="C"), mask, value)


def masked_select(x: Array, mask: Array) -> Array:
    spread = _spread(x, mask)
    return spread[np.broadcast_to(mask, spread.shape)]


def masked_scatter_(x: Array, mask: Array, source: Array) -> Array:
    """Elements of ``source``, in order, where the mask is true."""
    check_writable(x)
    check_same_type(x, source)
    _check_mask(mask)
    try:
        places = np.broadcast_to(mask, x.shape)
    except ValueError:
        raise _misfit(x, mask) from None
    count = int(np.count_nonzero(places))
    if source.size < count:
        raise Error("IRC421", f"masked_scatter needs {count} elements, the source has {source.size}")
    x[places] = source.reshape(-1)[:count]
    return x


def masked_scatter(x: Array, mask: Array, source: Array) -> Array:
    spread = _spread(x, mask)
    check_size(spread.shape, x.dtype)
    return masked_scatter_(np.array(spread, order="C"), mask, source)
