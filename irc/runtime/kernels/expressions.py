"""Kernels of operators whose semantics are an expression of several primitives, or of one and a constant.

They are evaluated in blocks that stay in the cache. Small floats are converted to float32, block by block, and the
result is rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from irc.ops import algebra
from irc.ops.algebra import SINGLE, AnyDType, Apply, walk
from irc.ops.scalar import trace
from irc.runtime.kernels import float16
from irc.runtime.kernels.float16 import HALF, narrowed, widened
from irc.runtime.kernels.numerics import BY
from irc.runtime.kernels.primitives import UNLESS_HALF
from irc.runtime.kernels.programs import Program, compiled, evaluate, flat
from irc.runtime.kernels.registry import Kernel
from irc.runtime.kernels.support import Array, is_half, scratch

_EXACT = frozenset(
    {
        *(algebra.maximum, algebra.minimum, algebra.at_least, algebra.at_most),
        *(algebra.equal, algebra.not_equal, algebra.is_nan, algebra.is_infinite),
        *(algebra.less, algebra.less_equal, algebra.greater, algebra.greater_equal),
    }
)
"""Primitives that choose or compare: for them, small floats need not be converted."""

Semantics = Callable[..., Any]
SEMANTICS = "semantics"
"""An attribute of the kernels that `of_expression` makes: what it was given."""

_Key = tuple[Any, ...]
"""For each operand its element type, in a tuple if it has no dimensions where the first one has; None: absent."""

_Compute = Callable[..., Array]
"""``(*operands, out) -> result``"""


def of_expression(semantics: Semantics, arity: int, floats: bool = False, result: int | None = 0) -> Kernel:
    """The kernel for what a record says of an operator that has no single primitive.

    Args:
        semantics: a function of ``arity`` expressions; attributes are bound by `functools.partial`, if at all.
        arity: the number of operands; absent ones at the end may be left out.
        floats: as in `irc.ops.Operator`.
        result: likewise.
    """
    known: dict[Any, _Compute] = {}
    if arity == 1:

        def of_one(x: Array, out: Array | None = None) -> Array:
            compute = known.get(x.dtype)
            if compute is None:
                compute = known[x.dtype] = _computing(semantics, floats, result, (x.dtype,))
            return compute(x, out)

        setattr(of_one, SEMANTICS, semantics)
        return of_one

    def of_many(*operands: Array | None, out: Array | None = None) -> Array:
        key: _Key = ()
        for x in operands:
            key += (None if x is None else x.dtype if x.ndim or not key else (x.dtype,),)
        compute = known.get(key)
        if compute is None:
            compute = known[key] = _computing(semantics, floats, result, key)
        return compute(*operands, out)

    def of_two(x: Array, y: Array, out: Array | None = None) -> Array:
        key = (x.dtype, y.dtype) if y.ndim else (x.dtype, (y.dtype,))
        compute = known.get(key)
        if compute is None:
            compute = known[key] = _computing(semantics, floats, result, key)
        return compute(x, y, out)

    found = of_two if arity == 2 else of_many
    setattr(found, SEMANTICS, semantics)
    return found


def _computing(semantics: Semantics, floats: bool, result: int | None, key: _Key) -> _Compute:
    """What computes operands of these types."""
    is_bound = isinstance(semantics, partial)
    function, parameters = (semantics.func, tuple(semantics.keywords.items())) if is_bound else (semantics, ())
    program, converted = _program(function, parameters, repr(parameters), floats, key)
    final = program.dtype if result is None else _dtypes(key)[result]
    assert final is not None
    if not converted and final == program.dtype:
        return _of_one(program) if len(key) == 1 else program.small
    if len(key) == 1 and final != program.dtype == SINGLE:
        return _of_small_float(program, final)
    return lambda *given: _converting(program, converted, final, given[:-1], given[-1])


def _dtypes(key: _Key) -> list[AnyDType | None]:
    return [each[0] if isinstance(each, tuple) else each for each in key]


def _of_one(program: Program) -> _Compute:
    """What evaluates a program of one operand: that of one function and a constant is only that."""
    call, arguments, _ = program.steps[0]
    if len(program.steps) == 1 and arguments == ("x0", "k0") and not isinstance(call, np.ufunc):
        constant = program.constants[0]
        if constant.dtype != HALF:
            call = getattr(call, UNLESS_HALF, call)
        if hasattr(call, BY):
            return getattr(call, BY)(constant)

        def compute(x: Array, out: Array | None) -> Array:
            return call(x, constant, out)

        return compute
    return program.small


def _of_small_float(program: Program, final: AnyDType) -> _Compute:
    """`_converting` of one operand that is to be float32, as the result is."""
    compute = _of_one(program)

    def convert(x: Array, out: Array | None) -> Array:
        if x.size > float16.BLOCK:
            return _converting(program, _FIRST, final, (x,), out)
        wide = widened(x, scratch("wide 0", x.shape, SINGLE))
        return narrowed(compute(wide, wide), final, np.empty(x.shape, final) if out is None else out)

    return convert


_FIRST = frozenset({0})


@lru_cache(maxsize=1024)
def _program(
    function: Semantics, parameters: tuple[tuple[str, Any], ...], _: str, floats: bool, key: _Key
) -> tuple[Program, frozenset[int]]:
    """The program for operands of these types, and the operands that it takes as float32, not as they are.

    The parameters' text tells apart -0 and 0, which are equal.
    """
    semantics, dtypes = partial(function, **dict(parameters)), _dtypes(key)
    small = frozenset(i for i, dtype in enumerate(dtypes) if dtype is not None and is_half(dtype))
    if small:
        expression = trace(semantics, dtypes)
        if all(node.primitive in _EXACT for node in walk(expression) if isinstance(node, Apply)):
            small = frozenset[int]()
    wide = [SINGLE if i in small else dtype for i, dtype in enumerate(dtypes)]
    scalars = frozenset(i for i, each in enumerate(key) if isinstance(each, tuple))
    return compiled(trace(semantics, wide, floats), len(key), scalars), small


def _converting(
    program: Program, converted: frozenset[int], final: AnyDType, operands: Any, out: Array | None = None
) -> Array:
    """As `_evaluate`, where operands are ``converted`` before, or the result is to be of another type."""
    first = operands[0]
    shape, are_in_order = first.shape, out is None or out.flags.c_contiguous
    for x in operands:
        if x is not None and x.ndim:
            if x.shape != shape:
                shape = None
                break
            are_in_order = are_in_order and x.flags.c_contiguous
    if shape is None or (first.size > float16.BLOCK and not are_in_order):
        wide = [widened(x) if i in converted else x for i, x in enumerate(operands)]
        return _finished(evaluate(program, wide), final, out)
    if out is None:
        out = np.empty(shape, final)
    if first.size <= float16.BLOCK:
        _convert_block(program, converted, operands, out)
        return out
    rows, target = [flat(x) for x in operands], out.reshape(-1)
    for start in range(0, first.size, float16.BLOCK):
        part = slice(start, start + float16.BLOCK)
        parts = [x[part] if x is not None and x.ndim else x for x in rows]
        _convert_block(program, converted, parts, target[part])
    return out


def _finished(x: Array, final: AnyDType, out: Array | None) -> Array:
    if x.dtype == final:
        if out is None:
            return x
        np.copyto(out, x)
        return out
    return narrowed(x, final, np.empty(x.shape, final) if out is None else out)


def _convert_block(program: Program, converted: frozenset[int], operands: Sequence[Any], out: Array) -> None:
    wide = [widened(x, scratch(f"wide {i}", x.shape, SINGLE)) if i in converted else x for i, x in enumerate(operands)]
    if out.dtype == program.dtype:
        evaluate(program, wide, out)
        return
    # The program may write its result over an operand, so that there is one array less in the cache.
    is_free = 0 in converted and program.dtype == SINGLE and wide[0].shape == out.shape
    result = wide[0] if is_free else scratch("wide result", out.shape, program.dtype)
    narrowed(evaluate(program, wide, result), out.dtype, out)
