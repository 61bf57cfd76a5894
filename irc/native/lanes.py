"""Emitted values: so many lanes of one element type, with Python's operators.

Invariants:

- A value has an element type of NumPy, and `Emitter.count` lanes of the LLVM type that `register_type` gives: i1 of
  bools, integers and floats as they are. float16 and bfloat16 are in memory only (`irc.native.elements`); what is
  computed of them is float32.
- Arithmetic of floats carries no fast-math flag, so that each operation is rounded as IEEE 754 says. Integers wrap.
  What is poison or undefined in LLVM is never emitted for operands that would make it so, except where a function says
  that its caller sees to that.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.native.llvm import ir
from irc.ops.algebra import BOOL, SINGLE, AnyDType

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)

_FLOATS = {4: ir.FloatType(), 8: ir.DoubleType()}


def register_type(dtype: AnyDType) -> Any:
    """The LLVM type of one lane."""
    if dtype == BOOL:
        return ir.IntType(1)
    return _FLOATS[dtype.itemsize] if dtype.kind == "f" else ir.IntType(8 * dtype.itemsize)


class _Text(ir.Constant):
    """A constant that is written as a text: of vectors of equal elements, a short one."""

    def __init__(self, kind: Any, text: str) -> None:
        self.type, self.constant = kind, text

    def get_reference(self) -> str:
        return self.constant


class Emitter:
    """Emits instructions on vectors of ``count`` lanes where ``builder`` stands.

    Args:
        builder: of the function's current block.
        count: the number of lanes of each value.
        has_fma: whether the processor multiplies and adds with one rounding; else `fma` rounds twice.
        has_f16c: whether it converts float16.

    Attributes:
        needs: the functions of the library that were called, each with what emits it.
    """

    def __init__(self, builder: Any, count: int, has_fma: bool = True, has_f16c: bool = True) -> None:
        self.builder, self.count, self.has_fma, self.has_f16c = builder, count, has_fma, has_f16c
        self.needs: dict[str, Any] = {}

    @property
    def module(self) -> Any:
        return self.builder.module

    def vector(self, dtype: AnyDType) -> Any:
        """The LLVM type of values of ``dtype``."""
        return ir.VectorType(register_type(dtype), self.count)

    def constant(self, value: complex, dtype: AnyDType) -> Lanes:
        """``value``, rounded once to ``dtype``, in all lanes."""
        kind = self.vector(dtype)
        return Lanes(self, _Text(kind, f"splat ({kind.element} {_literal(value, dtype)})"), dtype)

    def splat(self, scalar: Any, dtype: AnyDType) -> Lanes:
        """A scalar of the register type in all lanes."""
        kind = self.vector(dtype)
        one = self.builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), self.count), None)
        return Lanes(self, self.builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros), dtype)

    def declare(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        """The function ``name`` of the module, declared if it is not there."""
        found = self.module.globals.get(name)
        return found or ir.Function(self.module, ir.FunctionType(result, arguments), name)

    def library(self, name: str, result: Any, arguments: Sequence[Any], make: Any) -> Any:
        """A function of the library, whose module ``make`` emits (`irc.native.jit.Make`)."""
        self.needs[name] = make
        return self.declare(name, result, arguments)

    def intrinsic(self, name: str, *operands: Lanes, result: AnyDType | None = None) -> Lanes:
        """LLVM's ``llvm.NAME`` of operands of one type, of which the result has the type too, unless given."""
        dtype = result or operands[0].dtype
        kind = self.vector(dtype)
        suffix = f"v{self.count}{_SUFFIXES[operands[0].dtype.kind]}{8 * operands[0].dtype.itemsize}"
        function = self.declare(f"llvm.{name}.{suffix}", kind, [x.value.type for x in operands])
        return Lanes(self, self.builder.call(function, [x.value for x in operands]), dtype)


_SUFFIXES = {"f": "f", "i": "i", "u": "i"}


def _literal(value: complex, dtype: AnyDType) -> str:
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            number = float(np.asarray(value).astype(dtype))
        return "0x" + struct.pack(">d", number).hex().upper()  # LLVM writes float32 as the double that it equals
    return str(int(np.asarray(value).astype(dtype)) if not isinstance(value, int) else _wrapped(value, dtype))


def _wrapped(value: int, dtype: AnyDType) -> int:
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


class Lanes:
    """A value in registers. A Python number among operands becomes a constant of the other one's type."""

    __slots__ = ("dtype", "emitter", "value")

    def __init__(self, emitter: Emitter, value: Any, dtype: AnyDType) -> None:
        self.emitter, self.value, self.dtype = emitter, value, dtype

    @property
    def is_float(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_constant(self) -> bool:
        """Whether all lanes are one number, which is known, and is not NaN."""
        return isinstance(self.value, _Text) and "FF8000000000000" not in self.value.constant

    @property
    def is_signed(self) -> bool:
        return self.dtype.kind == "i"

    @property
    def bits(self) -> int:
        """Of one lane."""
        return 1 if self.dtype == BOOL else 8 * self.dtype.itemsize

    def constant(self, value: complex) -> Lanes:
        """``value`` as a constant of this type."""
        return self.emitter.constant(value, self.dtype)

    def taken(self, other: Lanes | complex) -> Lanes:
        """``other`` as lanes of this type. Raises TypeError if it has another type."""
        if not isinstance(other, Lanes):
            return self.constant(other)
        if other.dtype != self.dtype:
            raise TypeError(f"{self.dtype} with {other.dtype}")
        return other

    def made(self, value: Any, dtype: AnyDType | None = None) -> Lanes:
        return Lanes(self.emitter, value, dtype or self.dtype)

    def _binary(self, name: str, other: Lanes | complex) -> Lanes:
        method: Callable[..., Any] = getattr(self.emitter.builder, f"f{name}" if self.is_float else name)
        return self.made(method(self.value, self.taken(other).value))

    def __add__(self, other: Lanes | complex) -> Lanes:
        return self._binary("add", other)

    def __radd__(self, other: complex) -> Lanes:
        return self.constant(other) + self

    def __sub__(self, other: Lanes | complex) -> Lanes:
        return self._binary("sub", other)

    def __rsub__(self, other: complex) -> Lanes:
        return self.constant(other) - self

    def __mul__(self, other: Lanes | complex) -> Lanes:
        return self._binary("mul", other)

    def __rmul__(self, other: complex) -> Lanes:
        return self.constant(other) * self

    def __truediv__(self, other: Lanes | complex) -> Lanes:
        """The quotient of floats."""
        return self.made(self.emitter.builder.fdiv(self.value, self.taken(other).value))

    def __rtruediv__(self, other: complex) -> Lanes:
        return self.constant(other) / self

    def __neg__(self) -> Lanes:
        builder = self.emitter.builder
        return self.made(builder.fneg(self.value) if self.is_float else builder.neg(self.value))

    def __and__(self, other: Lanes | int) -> Lanes:
        return self.made(self.emitter.builder.and_(self.value, self.taken(other).value))

    def __or__(self, other: Lanes | int) -> Lanes:
        return self.made(self.emitter.builder.or_(self.value, self.taken(other).value))

    def __xor__(self, other: Lanes | int) -> Lanes:
        return self.made(self.emitter.builder.xor(self.value, self.taken(other).value))

    def __invert__(self) -> Lanes:
        return self.made(self.emitter.builder.not_(self.value))

    def __lshift__(self, count: Lanes | int) -> Lanes:
        """Shifted left. The caller sees to it that the count is neither negative nor the number of bits or more."""
        return self.made(self.emitter.builder.shl(self.value, self.taken(count).value))

    def __rshift__(self, count: Lanes | int) -> Lanes:
        """Shifted right, with the sign if there is one; likewise."""
        builder = self.emitter.builder
        method = builder.ashr if self.is_signed else builder.lshr
        return self.made(method(self.value, self.taken(count).value))

    def _compare(self, sign: str, other: Lanes | complex) -> Lanes:
        builder, right = self.emitter.builder, self.taken(other).value
        if self.is_float:
            compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
        else:
            compare = builder.icmp_signed if self.is_signed else builder.icmp_unsigned
        return self.made(compare(sign, self.value, right), BOOL)

    def __lt__(self, other: Lanes | complex) -> Lanes:
        return self._compare("<", other)

    def __le__(self, other: Lanes | complex) -> Lanes:
        return self._compare("<=", other)

    def __gt__(self, other: Lanes | complex) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other: Lanes | complex) -> Lanes:
        return self._compare(">=", other)

    def equals(self, other: Lanes | complex) -> Lanes:
        """Whether lanes are equal; False of NaN."""
        return self._compare("==", other)

    def differs(self, other: Lanes | complex) -> Lanes:
        """Whether lanes differ; True of NaN."""
        return self._compare("!=", other)

    def is_nan(self) -> Lanes:
        """Whether lanes of floats are NaN."""
        return self.made(self.emitter.builder.fcmp_unordered("uno", self.value, self.value), BOOL)

    def bitcast(self, dtype: AnyDType) -> Lanes:
        """The bits read as another type of the same size."""
        if dtype.kind in "iu" and self.dtype.kind in "iu":
            return self.made(self.value, dtype)
        return self.made(self.emitter.builder.bitcast(self.value, self.emitter.vector(dtype)), dtype)

    def bits_as_integers(self) -> Lanes:
        """The bits of floats, as signed integers."""
        return self.bitcast(INT32 if self.dtype == SINGLE else INT64)

    def fma(self, factor: Lanes | complex, addend: Lanes | complex) -> Lanes:
        """``self * factor + addend``: rounded once if the processor can, else twice.

        For mathematical functions whose error stays in bounds either way.
        """
        factor, addend = self.taken(factor), self.taken(addend)
        if not self.emitter.has_fma:
            return self * factor + addend
        return self.emitter.intrinsic("fma", self, factor, addend)


def select(condition: Lanes, x: Lanes | complex, y: Lanes | complex) -> Lanes:
    """The lanes of ``x`` where ``condition`` holds, else those of ``y``; one of both may be a number."""
    typed = x if isinstance(x, Lanes) else y
    if not isinstance(typed, Lanes):
        raise TypeError("one of both has to have a type")
    x, y = typed.taken(x), typed.taken(y)
    return typed.made(typed.emitter.builder.select(condition.value, x.value, y.value))


def only(x: Lanes) -> Any:
    """The first lane, as LLVM's value."""
    return x.emitter.builder.extract_element(x.value, ir.Constant(ir.IntType(32), 0))


def tree(x: Lanes, combine: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
    """All lanes combined, halves by halves, in a vector of one lane."""
    emitter = x.emitter
    builder, count = emitter.builder, emitter.count
    while count > 1:
        count //= 2
        half = Emitter(builder, count, emitter.has_fma, emitter.has_f16c)
        places = [ir.Constant(ir.VectorType(ir.IntType(32), count), list(range(i, i + count))) for i in (0, count)]
        x = combine(*[Lanes(half, builder.shuffle_vector(x.value, x.value, each), x.dtype) for each in places])
    return x


def to_float(x: Lanes, dtype: AnyDType) -> Lanes:
    """Integers, bools or floats as floats of ``dtype``, to the nearest."""
    if x.dtype == dtype:
        return x
    builder, target = x.emitter.builder, x.emitter.vector(dtype)
    if x.is_float:
        method = builder.fpext if dtype.itemsize > x.dtype.itemsize else builder.fptrunc
    else:
        method = builder.sitofp if x.is_signed else builder.uitofp
    return x.made(method(x.value, target), dtype)


def to_integer(x: Lanes, dtype: AnyDType) -> Lanes:
    """Integers or bools as integers of ``dtype``: high bits are dropped, or made by the sign."""
    source, target = x.bits, 8 * dtype.itemsize
    if source == target:
        return x.made(x.value, dtype)
    builder = x.emitter.builder
    method = builder.trunc if source > target else builder.sext if x.is_signed else builder.zext
    return x.made(method(x.value, x.emitter.vector(dtype)), dtype)
