"""Inline caches of small operators: what computed the latest input computes one like it.

Most of what small ones take is to find out what their operands are. Each of a model mostly meets inputs of one shape,
and the same weights.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.inner_loops import LOOPS, Compute
from irc.ops.algebra import SINGLE
from irc.runtime.bounds import CURRENT, check_work
from irc.runtime.kernels.convolution import repeats_one_filter
from irc.runtime.kernels.numerics import FEW_ROWS
from irc.runtime.kernels.shape import kept_and_added
from irc.runtime.kernels.support import check_size, filled, ints, is_constant
from irc.runtime.kernels.windows import resolver

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.kernels.registry import Kernel


class Latest(NamedTuple):
    """Operands, and what computes others like them.

    Attributes:
        shape: of the input.
        strides: likewise.
        w: the weights.
        b: the bias, or None.
        result: the shape of the result.
        compute: of an input and an array for the result, whether it made that; None if there is no code.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    w: Array
    b: Array | None
    result: tuple[int, ...]
    compute: Compute | None

    def suits(self, x: Array, w: Array, b: Array | None) -> bool:
        """Whether operands, of the same type, are like these."""
        return self.w is w and self.b is b and self.shape == x.shape and self.strides == x.strides


def convolving(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of the Conv ``node``, with an inline cache."""
    group, resolve = node.attributes.get("group", 1), resolver(node)
    latest: Latest | None = None

    def run(x: Array, w: Array, b: Array | None = None, out: Array | None = None) -> Array:
        nonlocal latest
        known = latest
        if known is None or x.dtype != SINGLE or not known.suits(x, w, b):
            made: Array = kernel(x, w, b, out=out)
            if x.dtype == SINGLE and x.flags.c_contiguous and made.size and _are_constant(w, b):
                convolve = LOOPS.convolver(x, w, b, group, resolve(x.shape[2:], w.shape[2:]), made)
                latest = Latest(x.shape, x.strides, w, b, made.shape, convolve)
            return made
        if known.compute is not None and CURRENT.scope.guard is None:
            result = np.empty(known.result, SINGLE) if out is None else out
            if known.compute(x, result):
                return result
        return kernel(x, w, b, out=out)

    return run


def multiplying(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of the MatMul or Gemm ``node``, with an inline cache for products of several rows with constants.

    Whether the first operand has been met before decides about no bit of the result.
    """
    given = node.attributes
    if given.get("alpha", 1) != 1 or given.get("beta", 1) != 1 or given.get("transA") or given.get("broadcast", 1) != 1:
        return kernel
    is_gemm, is_turned = node.kind == "onnx::Gemm", bool(given.get("transB"))
    latest: Latest | None = None

    def run(x: Array, w: Array, b: Array | None = None, out: Array | None = None) -> Array:
        nonlocal latest
        known = latest
        if known is None or x.dtype != SINGLE or not known.suits(x, w, b):
            known = latest = product_like(x, w, b, is_turned, is_gemm)
        if known is not None and known.compute is not None:
            if CURRENT.scope.guard is not None:
                check_work(x.size * known.result[-1])
            result = np.empty(check_size(known.result, SINGLE), SINGLE) if out is None else out
            if known.compute(x, result):
                return result if b is None else np.add(result, b, out=result)
        return kernel(x, w, out=out) if b is None else kernel(x, w, b, out=out)

    return run


def product_like(x: Array, w: Array, b: Array | None, is_turned: bool, is_gemm: bool) -> Latest | None:
    """What multiplies operands like these; None of what a run makes, which must not live longer than that."""
    if not is_constant(w) or not (b is None or is_constant(b)):
        return None
    nothing = Latest(x.shape, x.strides, w, b, (), None)
    if x.dtype != SINGLE or x.ndim < 2 or w.ndim != 2 or not x.flags.c_contiguous or (is_gemm and x.ndim > 2):
        return nothing
    depth, columns = w.shape[::-1] if is_turned else w.shape
    if x.shape[-1] != depth or x.size <= FEW_ROWS * depth:
        return nothing
    if b is not None and (b.dtype != SINGLE or b.shape not in ((columns,), (1, columns))):
        return nothing
    return nothing._replace(result=(*x.shape[:-1], columns), compute=LOOPS.multiplier(x, w, is_turned))


class _LatestOfType(NamedTuple):
    """An input and constants, and what computes others like them.

    Attributes:
        x: the shape, strides and element type of the input.
        constants: the other operands, but those that change.
        result: the shape of the result.
        compute: as it is called for such operators; None if there is no code.
    """

    x: tuple[Any, ...]
    constants: tuple[Array | None, ...]
    result: tuple[int, ...]
    compute: Any


def multiplying_integers(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of a MatMulInteger, with an inline cache for products with constants."""
    latest: _LatestOfType | None = None

    def run(a: Array, b: Array, a_zero: Array | None = None, b_zero: Array | None = None) -> Array:
        nonlocal latest
        known = latest
        if known is None or (a.shape, a.strides, a.dtype) != known.x or not all(map(is_, (b, b_zero), known.constants)):
            known = latest = _product_of_integers(a, b, b_zero)
        is_one = a_zero is None or (a_zero.size == 1 and a_zero.dtype == a.dtype)
        if known is not None and known.compute is not None and is_one and CURRENT.scope.guard is None:
            out = np.empty(known.result, _INT32)
            if known.compute(a, a_zero, out):
                return out
        return kernel(a, b, a_zero, b_zero)

    return run


def _product_of_integers(a: Array, b: Array, zero: Array | None) -> _LatestOfType | None:
    """What multiplies operands like these; None of what a run makes, which must not live longer than that."""
    if not is_constant(b) or not (zero is None or is_constant(zero)):
        return None
    is_fit = b.ndim == 2 <= a.ndim and a.shape[-1] == len(b) and a.flags.c_contiguous
    compute = LOOPS.integer_multiplier(a, b, zero) if is_fit else None
    return _LatestOfType((a.shape, a.strides, a.dtype), (b, zero), (*a.shape[:-1], b.shape[-1]), compute)


def quantizing(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of a DynamicQuantizeLinear, with an inline cache."""
    latest: _LatestOfType | None = None

    def run(x: Array) -> tuple[Array, Array, Array]:
        nonlocal latest
        known = latest
        if known is None or (x.shape, x.strides, x.dtype) != known.x:
            if x.flags.c_contiguous:
                latest = _LatestOfType((x.shape, x.strides, x.dtype), (), x.shape, LOOPS.quantizer(x))
        elif known.compute is not None and CURRENT.scope.guard is None:
            made = np.empty(known.result, _UINT8), np.empty((), SINGLE), np.empty((), _UINT8)
            if known.compute.run((x, *made)):
                return made
        return kernel(x)

    return run


_UINT8, _INT32 = np.dtype(np.uint8), np.dtype(np.int32)


def padding(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of the Pad ``node``, with an inline cache where nothing is removed and all but ``x`` is constant."""
    mode: str = node.attributes.get("mode", "constant")
    latest: _LatestOfType | None = None

    def run(x: Array, *others: Array | None) -> Array:
        nonlocal latest
        known = latest
        if known is None or (x.shape, x.strides, x.dtype) != known.x or not all(map(is_, others, known.constants)):
            made: Array = kernel(x, *others)
            if made.size and x.size and others and all(x is None or is_constant(x) for x in others):
                latest = _padding_like(x, others, mode, made)
            return made
        if CURRENT.scope.guard is None:
            result = np.empty(known.result, x.dtype)
            if known.compute(x, result):
                return result
        return kernel(x, *others)

    return run


def _padding_like(x: Array, others: tuple[Array | None, ...], mode: str, made: Array) -> _LatestOfType | None:
    """What pads arrays like ``x``, of which padding by these operands has ``made`` the result."""
    pads, value, axes = filled(others, *[None] * 3)
    kept, added = kept_and_added(x, ints(pads), None if axes is None else ints(axes))
    if kept.shape != x.shape or not x.ndim:
        return None
    constant = np.full(1, 0 if value is None else value.item(), x.dtype)
    compute = LOOPS.padder(x, added, mode, constant, made)
    return None if compute is None else _LatestOfType((x.shape, x.strides, x.dtype), others, made.shape, compute)


def _are_constant(w: Array, b: Array | None) -> bool:
    return is_constant(w) and (b is None or is_constant(b)) and w.dtype == SINGLE and not repeats_one_filter(w)
