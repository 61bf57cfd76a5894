"""Emitted values: lanes of one element type, with Python's operators, and their layout in memory.

Invariants:

- A value has an element type of NumPy, and `Emitter.count` lanes of the LLVM type that `register_type` gives: i1 of
  bools, integers and floats as they are.
- In memory, bools are bytes, of which any but 0 is true. float16 and bfloat16 are in memory only: they are read as
  float32, which holds all of their numbers, and are rounded to the nearest, ties to even, when they are written.
- Arithmetic of floats carries no fast-math flag, so that each operation is rounded as IEEE 754 says. Integers wrap.
  What is poison or undefined in LLVM is never emitted for operands that would make it so, except where a function says
  that its caller sees to that.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from irc.native.target import ir
from irc.ops.algebra import BOOL, DOUBLE, SINGLE, AnyDType

INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
UINT16, UINT32 = np.dtype(np.uint16), np.dtype(np.uint32)
HALF = np.dtype(np.float16)

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

    def call(self, name: str, result: Any, operands: Sequence[Any]) -> Any:
        """A call of the function ``name`` of LLVM."""
        return self.builder.call(self.declare(name, result, [x.type for x in operands]), operands)

    def library(self, name: str, result: Any, arguments: Sequence[Any], make: Any) -> Any:
        """A function of the library, whose module ``make`` emits (`irc.native.jit.Make`)."""
        self.needs[name] = make
        return self.declare(name, result, arguments)

    def intrinsic(self, name: str, *operands: Lanes, result: AnyDType | None = None) -> Lanes:
        """LLVM's ``llvm.NAME`` of operands of one type, of which the result has the type too, unless given."""
        dtype = result or operands[0].dtype
        kind = self.vector(dtype)
        suffix = f"v{self.count}{_SUFFIXES[operands[0].dtype.kind]}{8 * operands[0].dtype.itemsize}"
        return Lanes(self, self.call(f"llvm.{name}.{suffix}", kind, [x.value for x in operands]), dtype)


_SUFFIXES = {"f": "f", "i": "i", "u": "i"}


def _literal(value: complex, dtype: AnyDType) -> str:
    if dtype == BOOL:
        return "true" if value else "false"
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            number = float(np.asarray(value).astype(dtype))
        if math.isnan(number):
            number = math.copysign(math.nan, number)  # whatever its other bits are: `Lanes.is_constant` looks at them
        return "0x" + struct.pack(">d", number).hex().upper()  # LLVM writes float32 as the double that it equals
    return str(int(np.asarray(value).astype(dtype)) if not isinstance(value, int) else _wrapped(value, dtype))


def _wrapped(value: int, dtype: AnyDType) -> int:
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.kind == "i" and value >> (bits - 1) else value


def _binary(name: str, of_floats: str = "", is_swapped: bool = False) -> Callable[[Lanes, Lanes | complex], Lanes]:
    """An operator that LLVM's builder calls ``name``, or ``of_floats``."""

    def compute(x: Lanes, other: Lanes | complex) -> Lanes:
        method: Callable[..., Any] = getattr(x.emitter.builder, of_floats if x.is_float else name)
        operands = x.value, x.taken(other).value
        return x.made(method(*(operands[::-1] if is_swapped else operands)))

    return compute


def _comparison(sign: str) -> Callable[[Lanes, Lanes | complex], Lanes]:
    """The comparison that LLVM's builder calls ``sign``: False of NaN, but for that whether lanes differ."""

    def compute(x: Lanes, other: Lanes | complex) -> Lanes:
        builder, right = x.emitter.builder, x.taken(other).value
        if x.is_float:
            compare = builder.fcmp_unordered if sign == "!=" else builder.fcmp_ordered
        else:
            compare = builder.icmp_signed if x.is_signed else builder.icmp_unsigned
        return x.made(compare(sign, x.value, right), BOOL)

    return compute


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

    __add__, __sub__, __mul__ = _binary("add", "fadd"), _binary("sub", "fsub"), _binary("mul", "fmul")
    __radd__, __rmul__ = __add__, __mul__
    __rsub__ = _binary("sub", "fsub", is_swapped=True)
    __truediv__, __rtruediv__ = _binary("", "fdiv"), _binary("", "fdiv", is_swapped=True)
    __and__, __or__, __xor__ = _binary("and_"), _binary("or_"), _binary("xor")
    __lt__, __le__, __gt__, __ge__ = _comparison("<"), _comparison("<="), _comparison(">"), _comparison(">=")
    equals, differs = _comparison("=="), _comparison("!=")

    def __neg__(self) -> Lanes:
        builder = self.emitter.builder
        return self.made(builder.fneg(self.value) if self.is_float else builder.neg(self.value))

    def __invert__(self) -> Lanes:
        return self.made(self.emitter.builder.not_(self.value))

    def __lshift__(self, count: Lanes | int) -> Lanes:
        """Shifted left; the caller keeps the count at least 0 and below the number of bits."""
        return self.made(self.emitter.builder.shl(self.value, self.taken(count).value))

    def __rshift__(self, count: Lanes | int) -> Lanes:
        """Shifted right, with the sign if there is one; likewise."""
        builder = self.emitter.builder
        method = builder.ashr if self.is_signed else builder.lshr
        return self.made(method(self.value, self.taken(count).value))

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


def joined(builder: Any, *found: tuple[Any, Any]) -> Any:
    """The value, of those that are given with blocks, of the block that this one is entered from."""
    phi = builder.phi(found[0][0].type)
    for value, block in found:
        phi.add_incoming(value, block)
    return phi


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


def sum_of_parts(vectors: Sequence[Lanes], count: int) -> list[Lanes]:
    """The sums of every ``count``-th vector, halves by halves."""
    found = list(vectors)
    while len(found) > count:
        half = len(found) // 2
        found = [x + y for x, y in zip(found[:half], found[half:])]
    return found


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


def whole(x: Lanes) -> Lanes:
    """float32 that are integers of 32 bits, as such; 0 of NaN."""
    number = select(x.is_nan(), 0.0, x)
    return x.made(x.emitter.builder.fptosi(number.value, x.emitter.vector(INT32)), INT32)


def to_integer(x: Lanes, dtype: AnyDType) -> Lanes:
    """Integers or bools as integers of ``dtype``: high bits are dropped, or made by the sign."""
    source, target = x.bits, 8 * dtype.itemsize
    if source == target:
        return x.made(x.value, dtype)
    builder = x.emitter.builder
    method = builder.trunc if source > target else builder.sext if x.is_signed else builder.zext
    return x.made(method(x.value, x.emitter.vector(dtype)), dtype)


def is_brain(dtype: AnyDType) -> bool:
    """Whether ``dtype`` is bfloat16."""
    return dtype.kind == "V" and dtype.name == "bfloat16"


def is_small(dtype: AnyDType) -> bool:
    """Whether ``dtype`` is float16 or bfloat16."""
    return dtype == HALF or is_brain(dtype)


def is_supported(dtype: AnyDType) -> bool:
    """Whether code can be emitted for arrays of ``dtype``."""
    if not dtype.isnative:
        return False
    return dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize <= 8) or is_brain(dtype)


def computed(dtype: AnyDType) -> AnyDType:
    """The element type in registers."""
    return SINGLE if is_small(dtype) else dtype


def memory_type(dtype: AnyDType) -> Any:
    """The LLVM type of an element in memory."""
    return ir.IntType(8 * dtype.itemsize) if dtype == BOOL or is_small(dtype) else register_type(dtype)


def load(emitter: Emitter, pointer: Any, dtype: AnyDType) -> Lanes:
    """Elements that lie side by side from ``pointer`` on."""
    builder = emitter.builder
    vector = ir.VectorType(memory_type(dtype), emitter.count)
    return widened(emitter, builder.load(pointer, typ=vector, align=dtype.itemsize), dtype)


def load_one(emitter: Emitter, pointer: Any, dtype: AnyDType) -> Lanes:
    """The element at ``pointer``, in all lanes."""
    builder = emitter.builder
    kind = memory_type(dtype)
    vector = ir.VectorType(kind, emitter.count)
    scalar = builder.load(pointer, typ=kind, align=dtype.itemsize)
    undefined = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(undefined, scalar, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), emitter.count), None)
    return widened(emitter, builder.shuffle_vector(one, undefined, zeros), dtype)


def store(x: Lanes, pointer: Any, dtype: AnyDType) -> None:
    """Write elements side by side from ``pointer`` on."""
    x.emitter.builder.store(narrowed(x, dtype), pointer, align=dtype.itemsize)


def widened(emitter: Emitter, value: Any, dtype: AnyDType) -> Lanes:
    """What was read from memory, as it is computed with."""
    if dtype == BOOL:
        zero = ir.Constant(value.type, None)
        return Lanes(emitter, emitter.builder.icmp_unsigned("!=", value, zero), BOOL)
    if dtype == HALF:
        return _from_half(Lanes(emitter, value, UINT16))
    if is_brain(dtype):
        return (to_integer(Lanes(emitter, value, UINT16), UINT32) << 16).bitcast(SINGLE)
    return Lanes(emitter, value, dtype)


def narrowed(x: Lanes, dtype: AnyDType) -> Any:
    """What is written to memory, as LLVM's value."""
    if dtype == BOOL:
        return x.emitter.builder.zext(x.value, ir.VectorType(ir.IntType(8), x.emitter.count))
    if dtype == HALF:
        return _to_half(x).value
    return _to_brain(x).value if is_brain(dtype) else x.value


def rounded(x: Lanes, dtype: AnyDType) -> Lanes:
    """float32 ``x``, rounded to a small type; ``x`` itself if ``dtype`` is none."""
    return widened(x.emitter, narrowed(x, dtype), dtype) if is_small(dtype) else x


def rounded_to_odd(x: Lanes) -> Lanes:
    """float64 ``x`` as float32 rounded to odd, so that rounding again is as if rounded once."""
    near = to_float(x, SINGLE)
    back = to_float(near, DOUBLE)
    bits = near.bitcast(UINT32)
    toward_zero = select(x.emitter.intrinsic("fabs", back) > x.emitter.intrinsic("fabs", x), bits - 1, bits)
    return select(back.equals(x) | x.is_nan(), bits, toward_zero | 1).bitcast(SINGLE)


def _from_half(bits: Lanes) -> Lanes:
    """By the bits: read as those of a float32, they stand for 2**-112 times the number."""
    emitter = bits.emitter
    if emitter.has_f16c:
        builder = emitter.builder
        half = builder.bitcast(bits.value, ir.VectorType(ir.HalfType(), emitter.count))
        return Lanes(emitter, builder.fpext(half, emitter.vector(SINGLE)), SINGLE)
    wide = to_integer(bits, UINT32)
    size = wide & 0x7FFF
    finite = ((size << 13).bitcast(SINGLE) * 2.0**112).bitcast(UINT32)
    found = select(size >= 0x7C00, (size << 13) | 0x7F800000, finite)
    return (found | ((wide & 0x8000) << 16)).bitcast(SINGLE)


def _to_half(x: Lanes) -> Lanes:
    emitter = x.emitter
    if emitter.has_f16c:
        builder = emitter.builder
        half = builder.fptrunc(x.value, ir.VectorType(ir.HalfType(), emitter.count))
        bits = builder.bitcast(half, ir.VectorType(ir.IntType(16), emitter.count))
        return Lanes(emitter, bits, UINT16)
    bits = x.bitcast(UINT32)
    size = bits & 0x7FFFFFFF
    sign = (bits >> 16) & 0x8000
    # Half of a unit, less one if the last bit is even, carries into what is kept where the rest is more than half.
    normal = (size - 0x38000000 + 0xFFF + ((size >> 13) & 1)) >> 13
    # Added to 0.5, a number below 2**-14 is rounded to units of 2**-24, float16's smallest.
    tiny = (size.bitcast(SINGLE) + 0.5).bitcast(UINT32) - 0x3F000000
    found = select(size < 0x38800000, tiny, normal)
    found = select(size >= 0x47800000, size.constant(0x7C00), found)
    found = select(size > 0x7F800000, size.constant(0x7E00), found)
    return to_integer(found | sign, UINT16)


def _to_brain(x: Lanes) -> Lanes:
    bits = x.bitcast(UINT32)
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    quiet = (bits >> 16) | 0x40
    return to_integer(select(x.is_nan(), quiet, nearest), UINT16)
