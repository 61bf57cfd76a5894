"""How elements lie in memory, and in registers.

Bools are bytes in memory, of which any but 0 is true. float16 and bfloat16 are read as float32, which holds all of
their numbers, and are rounded to the nearest, ties to even, when they are written.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.native.lanes import Emitter, Lanes, register_type, select, to_float, to_integer
from irc.native.llvm import ir
from irc.ops.algebra import BOOL, DOUBLE, SINGLE, AnyDType

UINT16, UINT32 = np.dtype(np.uint16), np.dtype(np.uint32)
HALF = np.dtype(np.float16)


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
    """float64 ``x`` as float32, its last bit set if digits are lost: rounded once more, it is as if rounded once."""
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
