"""Comparisons, logic on bits, and selection by a mask."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten import layout
from irc.runtime.kernels.aten.arithmetic import wrapped
from irc.runtime.kernels.aten.containers import same
from irc.runtime.kernels.aten.element_types import (
    BOOL,
    check_same_type,
    check_writable,
    element_of,
    result_type,
    single,
    tensor,
)
from irc.runtime.kernels.aten.pointwise import Computation, Operand, Setup, of_two, register, run
from irc.runtime.kernels.aten.registering import aten, table, two
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, broadcast_shape, check_size, chosen, is_half
from irc.runtime.values import is_array


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


@aten("equal")
def equal(x: Array, y: Array) -> bool:
    """Whether two tensors have the same shape and elements."""
    return x.shape == y.shape and bool(np.equal(x, y).all())


@aten("isclose")
def is_close(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Array:
    if not (rtol >= 0 and atol >= 0):
        raise Error("IRC424", f"tolerances are {rtol} and {atol}; they must not be negative")
    found = np.isclose(x, y, rtol, atol, equal_nan)
    out = layout.empty(np.shape(found), BOOL, (x, y))
    np.copyto(out, found)
    return out


@aten("allclose")
def all_close(x: Array, y: Array, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    return bool(is_close(x, y, rtol, atol, equal_nan).all())


# -- selection -----------------------------------------------------------------


def _choose(condition: Array, *branches: Operand, out: Array | None = None) -> Any:
    """``where(condition, x, y)``, or the indices of what is true."""
    if not branches:
        return [np.array(i) for i in np.nonzero(np.atleast_1d(condition))]
    if condition.dtype.kind not in "bu":
        raise _no_mask(condition)
    dtype = result_type(*branches)
    # Of what is too large for float16, torch makes infinities.
    x, y = (tensor(b, dtype) if is_array(b) or is_half(dtype) else element_of(b, dtype) for b in branches)
    try:
        shape = broadcast_shape(condition.shape, x.shape, y.shape)
    except ValueError:
        shapes = ", ".join(str(list(a.shape)) for a in (condition, x, y))
        raise Error("IRC421", f"the shapes {shapes} do not broadcast against each other") from None
    mask = condition.astype(bool, copy=False)
    if out is not None:  # which may be any of the operands
        return chosen(mask, x, y, out)
    made = layout.empty(shape, dtype, (condition, *branches))
    np.copyto(made, y)
    np.copyto(made, x, where=mask)
    return made


def _fill_where(x: Array, mask: Array, value: Operand) -> Array:
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
    return Error("IRC423", f"a tensor of {mask.dtype.name} is no mask; compare its elements, or convert them to bools")


def _misfit(x: Array, mask: Array) -> Error:
    return Error("IRC421", f"a mask of shape {list(mask.shape)} does not fit {list(x.shape)}")


def _filled_where(x: Array, mask: Array, value: Operand, *, out: Array | None = None) -> Array:
    spread = _spread(x, mask)
    if out is not None:  # which may be any of the operands
        return chosen(mask, single(value, x.dtype), spread, out)
    return _fill_where(np.array(spread, order="C"), mask, value)


def _masked_select(x: Array, mask: Array) -> Array:
    spread = _spread(x, mask)
    return spread[np.broadcast_to(mask, spread.shape)]


def _scatter_where(x: Array, mask: Array, source: Array) -> Array:
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


def _scattered_where(x: Array, mask: Array, source: Array) -> Array:
    spread = _spread(x, mask)
    check_size(spread.shape, x.dtype)
    return _scatter_where(np.array(spread, order="C"), mask, source)


table(
    {
        "where": _choose,
        "masked_fill": _filled_where,
        "masked_fill_": _fill_where,
        "masked_select": _masked_select,
        "masked_scatter": _scattered_where,
        "masked_scatter_": _scatter_where,
    }
)
