"""The rest of huge numbers modulo π/2, one lane after another: M. Payne and R. Hanek's method.

A number is M 2^e, M an integer of 53 bits. Those bits of 2/π that times this are multiples of 4 do not matter, nor do
those which are far below 1: 192 in between do. Their product with M, modulo 2^192, is the quadrant (2 bits) and a
fraction.
"""

from __future__ import annotations

from typing import Any

from irc.native.lanes import Lanes
from irc.native.llvm import ir
from irc.ops.algebra import DOUBLE, SINGLE

_I1, _I32, _I64, _I128, _F64 = ir.IntType(1), ir.IntType(32), ir.IntType(64), ir.IntType(128), ir.DoubleType()
_NAME = "irc.quadrant"
_WORDS = 20
_BEFORE = 64
"""Zeros in front of the bits of 2/π, for the least operands."""


def huge_quadrants(is_huge: Lanes, x: Lanes, angle: Lanes, low: Lanes, quadrant: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """What is given of x, except where ``is_huge``: there what is computed anew, in a loop over lanes."""
    emitter = x.emitter
    builder, count = emitter.builder, emitter.count
    function = _quadrant_function(emitter.module)
    reduce = emitter.declare(f"llvm.vector.reduce.or.v{count}i1", _I1, [is_huge.value.type])
    before = builder.block
    loop, slow, following, done = (builder.append_basic_block(x) for x in ("lane", "huge", "next", "reduced"))
    builder.cbranch(builder.call(reduce, [is_huge.value]), loop, done)

    values = (angle, low, quadrant)
    builder.position_at_end(loop)
    index = builder.phi(_I32)
    index.add_incoming(ir.Constant(_I32, 0), before)
    carried = [builder.phi(v.value.type) for v in values]
    builder.cbranch(builder.extract_element(is_huge.value, index), slow, following)

    builder.position_at_end(slow)
    operand: Any = builder.extract_element(x.value, index)
    found = builder.call(function, [operand if x.dtype == DOUBLE else builder.fpext(operand, _F64)])
    parts = [builder.extract_value(found, i) for i in range(3)]
    if x.dtype == SINGLE:
        single = ir.FloatType()
        high = builder.fptrunc(parts[0], single)
        rest = builder.fsub(parts[0], builder.fpext(high, _F64))
        parts = [high, builder.fptrunc(rest, single), builder.trunc(parts[2], _I32)]
    changed = [builder.insert_element(old, new, index) for old, new in zip(carried, parts)]
    builder.branch(following)

    builder.position_at_end(following)
    merged = [builder.phi(v.value.type) for v in values]
    for new, old, phi in zip(changed, carried, merged):
        phi.add_incoming(old, loop)
        phi.add_incoming(new, slow)
    step = builder.add(index, ir.Constant(_I32, 1))
    index.add_incoming(step, following)
    for phi, value, new in zip(carried, values, merged):
        phi.add_incoming(value.value, before)
        phi.add_incoming(new, following)
    builder.cbranch(builder.icmp_unsigned("<", step, ir.Constant(_I32, count)), loop, done)

    builder.position_at_end(done)
    results: list[Lanes] = []
    for value, new in zip(values, merged):
        phi = builder.phi(value.value.type)
        phi.add_incoming(value.value, before)
        phi.add_incoming(new, following)
        results.append(value.made(phi))
    return results[0], results[1], results[2]


def _quadrant_function(module: Any) -> Any:
    """A function of a double x, finite and above 2^10: {r, s, q}, where x = q π/2 + r + s."""
    found = module.globals.get(_NAME)
    if found:
        return found
    function = ir.Function(module, ir.FunctionType(ir.LiteralStructType([_F64, _F64, _I64]), [_F64]), _NAME)
    function.linkage = "internal"
    function.attributes.add("noinline")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    x = function.args[0]
    bits = builder.bitcast(x, _I64)
    mantissa = builder.or_(builder.and_(bits, _word((1 << 52) - 1)), _word(1 << 52))
    exponent = builder.and_(builder.lshr(bits, _word(52)), _word(0x7FF))

    # x is M 2^e, e = exponent - 1075: multiples of 4 come of bits of 2/π above 2^-(e - 1), which is the (e - 2)nd.
    place = builder.add(exponent, _word(-1075 - 2 + _BEFORE))
    first, shift = builder.lshr(place, _word(6)), builder.and_(place, _word(63))
    table = _two_over_pi(module)
    words = [
        builder.load(builder.gep(table, [_word(0), builder.add(first, _word(i))], inbounds=True)) for i in range(4)
    ]
    funnel = _declared(module, "llvm.fshl.i64", _I64, [_I64] * 3)
    top, middle, bottom = (builder.call(funnel, [words[i], words[i + 1], shift]) for i in range(3))
    carry = builder.lshr(_wide_product(builder, mantissa, bottom), _wide(64))
    total = builder.add(_wide_product(builder, mantissa, middle), carry)
    total = builder.add(total, builder.shl(builder.zext(builder.mul(mantissa, top), _I128), _wide(64)))

    # The quadrant is to the nearest: the fraction is a signed number of 126 bits below the point.
    quadrant = builder.trunc(builder.lshr(builder.add(total, _wide(1 << 125)), _wide(126)), _I64)
    fraction = builder.sub(total, builder.shl(builder.zext(quadrant, _I128), _wide(126)))
    upper = builder.trunc(builder.lshr(fraction, _wide(64)), _I64)
    lower = builder.trunc(fraction, _I64)
    # In numbers that are exact: 32 bits of each.
    pieces = [
        builder.sitofp(builder.ashr(upper, _word(32)), _F64),
        builder.uitofp(builder.and_(upper, _word(0xFFFFFFFF)), _F64),
        builder.uitofp(builder.lshr(lower, _word(32)), _F64),
        builder.uitofp(builder.and_(lower, _word(0xFFFFFFFF)), _F64),
    ]
    scaled = [builder.fmul(p, _real(2.0 ** (96 - 32 * i - 126))) for i, p in enumerate(pieces)]
    high = builder.fadd(scaled[0], scaled[1])  # up to 64 bits: two sums whose errors are known
    low = builder.fsub(scaled[1], builder.fsub(high, scaled[0]))
    rest = builder.fadd(builder.fadd(low, scaled[2]), scaled[3])
    unit = builder.fadd(high, rest)
    unit_low = builder.fadd(builder.fsub(high, unit), rest)
    angle, angle_low = _times_half_pi(builder, unit, unit_low)

    is_negative = builder.icmp_signed("<", bits, _word(0))
    result: Any = ir.Constant(function.function_type.return_type, ir.Undefined)
    negated = (builder.fneg(angle), builder.fneg(angle_low), builder.neg(quadrant))
    for i, (value, minus) in enumerate(zip((angle, angle_low, quadrant), negated)):
        result = builder.insert_value(result, builder.select(is_negative, minus, value), i)
    builder.ret(result)
    return function


def _times_half_pi(builder: Any, high: Any, low: Any) -> tuple[Any, Any]:
    """The product of a sum of two numbers with π/2, as such a sum."""
    pi_high, pi_low = 1.5707963267948966, 6.123233995736766e-17
    # Halves of 26 bits, the products of which are exact: no fma is needed.
    mask = _word(-(1 << 27))
    upper = builder.bitcast(builder.and_(builder.bitcast(high, _I64), mask), _F64)
    lower = builder.fsub(high, upper)
    pi_upper = 1.5707963109016418
    pi_lower = pi_high - pi_upper
    product = builder.fmul(high, _real(pi_high))
    error = builder.fsub(builder.fmul(upper, _real(pi_upper)), product)
    error = builder.fadd(error, builder.fmul(upper, _real(pi_lower)))
    error = builder.fadd(error, builder.fmul(lower, _real(pi_upper)))
    error = builder.fadd(error, builder.fmul(lower, _real(pi_lower)))
    error = builder.fadd(error, builder.fmul(high, _real(pi_low)))
    error = builder.fadd(error, builder.fmul(low, _real(pi_high)))
    total = builder.fadd(product, error)
    return total, builder.fsub(error, builder.fsub(total, product))


def _two_over_pi(module: Any) -> Any:
    """The table of the bits of 2/π, `_BEFORE` of them 0, in words of 64."""
    name = "irc.two_over_pi"
    found = module.globals.get(name)
    if found:
        return found
    digits = _two_over_pi_bits(64 * _WORDS - _BEFORE)
    words = [(digits >> (64 * (_WORDS - 1 - i))) & ((1 << 64) - 1) for i in range(_WORDS)]
    kind = ir.ArrayType(_I64, _WORDS)
    table = ir.GlobalVariable(module, kind, name)
    table.linkage, table.global_constant = "internal", True
    table.initializer = ir.Constant(kind, words)
    return table


def _two_over_pi_bits(count: int) -> int:
    """The first ``count`` bits of 2/π, by π = 16 atan(1/5) - 4 atan(1/239) (J. Machin) in integers."""
    one = 1 << (count + 64)

    def inverse_tangent(n: int) -> int:
        term = total = one // n
        k = 1
        while abs(term) > 1:  # rounding down never lets -1 become 0
            term //= -n * n
            k += 2
            total += term // k
        return total

    pi = 16 * inverse_tangent(5) - 4 * inverse_tangent(239)
    return (2 * one << count) // pi


def _declared(module: Any, name: str, result: Any, arguments: list[Any]) -> Any:
    found = module.globals.get(name)
    return found or ir.Function(module, ir.FunctionType(result, arguments), name)


def _wide_product(builder: Any, x: Any, y: Any) -> Any:
    return builder.mul(builder.zext(x, _I128), builder.zext(y, _I128))


def _word(value: int) -> Any:
    return ir.Constant(_I64, value)


def _wide(value: int) -> Any:
    return ir.Constant(_I128, value)


def _real(value: float) -> Any:
    return ir.Constant(_F64, value)
