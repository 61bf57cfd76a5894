"""Torch's element types: which one a result has, their numbers, and which operands are refused.

Tags of schema rows list the kinds (`irc.ops.record`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir.types import SCALAR_TYPES, DType, Type
from irc.ops import record
from irc.ops.aten.promotion import FLOATING, category, combined
from irc.runtime.kernels.numerics import narrowed, widened
from irc.runtime.kernels.registry import Kernel, takes_out
from irc.runtime.kernels.support import AnyDType, Array, is_half
from irc.runtime.values import is_array

_NUMBERS: dict[type, AnyDType] = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float32),  # torch's default floating-point type
    complex: np.dtype(np.complex64),
}

_NUMBER_OF = {dtype: number for number, dtype in SCALAR_TYPES.items()}


def dtype_of(number: int | None, default: AnyDType) -> AnyDType:
    """The element type that torch gives ``number``; ``default`` for None.

    Raises:
        Error: IRC423 if irc has no such type.
    """
    if number is None:
        return default
    try:
        return SCALAR_TYPES[number].numpy
    except KeyError:
        raise Error("IRC423", f"irc has no element type for torch's number {number}") from None


def number_of(dtype: AnyDType) -> int:
    """Torch's number of an element type."""
    return _NUMBER_OF[DType.from_numpy(dtype)]


FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
COMPLEX64 = np.dtype(np.complex64)
INT64 = np.dtype(np.int64)
BOOL = np.dtype(np.bool_)


def result_type(*operands: Any) -> AnyDType:
    """The element type of an arithmetic result on ``operands``: tensors and Python numbers."""
    tensors: list[Array] = [x for x in operands if is_array(x)]
    numbers = [number_dtype(x) for x in operands if not is_array(x)]
    return combined(([x.dtype for x in tensors if x.ndim], [x.dtype for x in tensors if not x.ndim], numbers))


def number_dtype(value: Any) -> AnyDType:
    """The element type that a Python number alone stands for."""
    try:
        return _NUMBERS[type(value)]
    except KeyError:
        raise Error("IRC423", f"expected a tensor or a number, got {type(value).__name__}") from None


def as_float(dtype: AnyDType) -> AnyDType:
    """``dtype`` if it is floating-point or complex, else float32: the type of a true division."""
    return dtype if category(dtype) >= FLOATING else FLOAT32


def is_floating(dtype: AnyDType) -> bool:
    """Whether elements are real floating-point numbers."""
    return category(dtype) == FLOATING


def real_type(dtype: AnyDType) -> AnyDType:
    """The type of the parts of complex numbers; any other type unchanged."""
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def is_integral(dtype: AnyDType) -> bool:
    """Whether elements are integers or bools."""
    return category(dtype) < FLOATING


def wide(dtype: AnyDType) -> AnyDType:
    """The type to compute in: float32 for smaller floats, else ``dtype`` itself."""
    return FLOAT32 if is_half(dtype) else dtype


def tensor(value: Any, dtype: AnyDType | None = None) -> Array:
    """``value``, a tensor or number, as an array of ``dtype``; not copied if it is one already."""
    if is_array(value):
        if dtype is None or value.dtype == dtype:
            return value
        return widened(value) if dtype == FLOAT32 and is_half(value.dtype) else narrowed(value, dtype)
    own = number_dtype(value)
    try:
        array: Array = np.asarray(value, np.float64 if own == FLOAT32 else np.complex128 if own.kind == "c" else own)
    except OverflowError:
        raise Error("IRC423", f"{value} does not fit into 64 bits") from None
    if dtype is not None and own.kind == "c" and dtype.kind not in "bc":
        array = array.real
    if dtype is not None and is_half(dtype):
        array = array.astype(np.float32)  # as torch converts: rounded twice
    return array.astype(dtype or own)


def element_of(value: Any, dtype: AnyDType) -> Array:
    """As `tensor`. Error IRC423 if ``value`` is a number that an element of type ``dtype`` cannot hold.

    A tensor without dimensions, of another type, is its number.
    """
    if is_array(value) and not value.ndim and value.dtype != dtype:
        value = value.item() if value.dtype.kind in "biufc" else float(value)
    found = tensor(value, dtype)
    if not is_array(value) and not _holds(dtype, value, found):
        raise Error("IRC423", f"{value} does not fit into an element of type {dtype.name}")
    return found


def single(value: Any, dtype: AnyDType) -> Array:
    """As `element_of`. Error IRC421 if ``value`` is a tensor with dimensions."""
    if is_array(value) and value.ndim:
        raise Error("IRC421", f"a tensor of shape {list(value.shape)} is not a single value to fill with")
    return element_of(value, dtype)


def _holds(dtype: AnyDType, value: Any, converted: Array) -> bool:
    """c10::overflows: whether it fits; unsigned types also take negatives down to minus their maximum."""
    if dtype.kind in "bc":
        return True
    if isinstance(value, complex):
        return not value.imag and _holds(dtype, value.real, converted)
    if dtype.kind not in "iu":
        return not math.isfinite(value) or bool(np.isfinite(converted))
    limits = _limits(dtype)
    least = -limits.max if dtype.kind == "u" and isinstance(value, int) else limits.min
    return math.isfinite(value) and least <= value <= limits.max


_limits = cache(np.iinfo)


def write(target: Array, compute: Callable[[Array], Any], dtype: AnyDType) -> Array:
    """Write into ``target`` what ``compute(out)`` writes into ``out`` of type ``dtype``; return it.

    Raises:
        Error: ``target`` may not be written, has another element on the same memory, or cannot hold ``dtype``.
    """
    check_writable(target)
    check_result(target, dtype)
    if dtype == target.dtype:
        compute(target)
    else:
        between = np.empty(target.shape, dtype)
        compute(between)
        np.copyto(target, between, casting="unsafe")
    return target


def overwrite(target: Array, result: Array) -> Array:
    """Write ``result`` into ``target``, which has its shape; return that, untouched if it is the result.

    Raises:
        Error: ``target`` may not be written, has another shape, or cannot hold the element type of ``result``.
    """
    if result is target:
        return target
    check_writable(target)
    check_result(target, result.dtype)
    if result.shape != target.shape:
        shapes = f"{list(result.shape)} cannot be written into a tensor of shape {list(target.shape)}"
        raise Error("IRC421", f"a result of shape {shapes}")
    np.copyto(target, result, casting="unsafe")
    return target


def check_result(target: Array, dtype: AnyDType) -> None:
    """Error IRC431 if an in-place result of element type ``dtype`` does not fit into ``target``."""
    if category(dtype) > category(target.dtype):
        raise Error("IRC431", f"a result of type {dtype.name} cannot be written into a tensor of {target.dtype.name}")


def check_same_type(target: Array, source: Array) -> None:
    """Error IRC421 if ``source``, which would be written into ``target``, has another element type."""
    if source.dtype != target.dtype:
        types = f"{source.dtype.name} cannot be written into one of {target.dtype.name}"
        raise Error("IRC421", f"a tensor of {types} here: convert it first")


def check_writable(target: Array, one_value: bool = False) -> None:
    """Error IRC431 if ``target`` is read-only, or several of its elements share memory.

    The latter does not matter if all elements become ``one_value``.
    """
    if not target.flags.writeable:
        raise Error("IRC431", "an in-place operator would write into memory that may not be changed")
    if not one_value and target.size and any(s == 0 and n > 1 for s, n in zip(target.strides, target.shape)):
        raise Error("IRC431", "an in-place operator would write into an expanded tensor; clone it first")


# -- kinds of operands that are refused ----------------------------------------


# Kinds are NumPy's characters: b of bool, u and i of integers, f of floats (V of bfloat16 and smaller), c of complex.


_RANKS = {kind: rank for rank, kinds in enumerate(("b", "ui", "fV", "c")) for kind in kinds}
_WORDS = {"b": "bools", **dict.fromkeys("ui", "integers"), **dict.fromkeys("fV", "floats"), "c": "complex numbers"}
_NUMBER_KINDS: dict[Any, str] = {bool: "b", int: "i", float: "f", complex: "c"}


def refusing(name: str, run: Kernel, types: Sequence[Type] = ()) -> Kernel:
    """``run``, or a kernel that refuses the kinds of operands that torch's operator ``name`` refuses.

    No check is made at run time if ``types``, those of the arguments, show that the kinds are taken.
    """
    for refused, count, checked in zip(refused_kinds(name), (1, 2), (_refusing_first, _refusing_common), strict=True):
        is_known = types and all(_is_taken(type, refused) for type in types[:count])
        if refused and not is_known:
            run = checked(name, refused, run)
    return run


def refused_kinds(name: str) -> tuple[str, str]:
    """The kinds that torch's operator ``name`` refuses: for the first operand, and for two in common."""
    operator = record(f"aten::{name}")
    return _others(operator.takes), _others(operator.takes_both)


def _others(taken: str) -> str:
    return "".join(kind for kind in "buifVc" if kind not in taken.replace("f", "fV")) if taken else ""


def takes_floats(name: str) -> bool:
    """Whether torch's operator ``name`` takes floats."""
    return all("f" not in refused for refused in refused_kinds(name))


def _is_taken(type: Type, refused: str) -> bool:
    return type.dtype is not None and type.dtype.numpy.kind not in refused


def check_kind(name: str, dtype: AnyDType, computed_by: str | None = None) -> None:
    """Error IRC423 if torch's operator ``name`` refuses a first operand of ``dtype``.

    ``computed_by``: the operator by which torch computes it, and whose row tells, if ``name``'s own does not.
    """
    if dtype.kind in refused_kinds(computed_by or name)[0]:
        raise _error(name, dtype.kind)


def _refusing_first(name: str, refused: str, run: Kernel) -> Kernel:
    def check(arguments: Sequence[Any]) -> None:
        dtype = getattr(arguments[0], "dtype", None)
        if dtype is not None and dtype.kind in refused:
            raise _error(name, dtype.kind)

    return _checked(check, run)


def _refusing_common(name: str, refused: str, run: Kernel) -> Kernel:
    def check(arguments: Sequence[Any]) -> None:
        for x in arguments[:2]:
            dtype = getattr(x, "dtype", None)
            if dtype is not None and dtype.kind in refused:
                common = max(map(_kind, arguments[:2]), key=_RANKS.__getitem__)
                if common in refused:
                    raise _error(name, common)

    return _checked(check, run)


def _checked(check: Callable[[Sequence[Any]], None], run: Kernel) -> Kernel:
    def checked(*arguments: Any) -> Any:
        check(arguments)
        return run(*arguments)

    def checked_into(*arguments: Any, out: Array | None = None) -> Any:
        check(arguments)
        return run(*arguments, out=out)

    return checked_into if takes_out(run) else checked


def _kind(x: Any) -> str:
    return x.dtype.kind if is_array(x) else _NUMBER_KINDS.get(type(x), "b")


def _error(name: str, kind: str) -> Error:
    return Error("IRC423", f"aten::{name} is not defined on {_WORDS[kind]}; convert them first")
