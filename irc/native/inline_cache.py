"""Inline caches of small operators: what computed the latest input computes one like it.

Most of what small ones take is to find out what their operands are. Each of a model mostly meets inputs of one shape,
and the same weights.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import is_
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.ir.tensor import Array
from irc.native.inner_loops import LOOPS
from irc.ops.algebra import SINGLE
from irc.runtime.bounds import CURRENT, check_work
from irc.runtime.kernels.convolution import repeats_one_filter
from irc.runtime.kernels.registry import takes_out
from irc.runtime.kernels.shape import kept_and_added
from irc.runtime.kernels.support import check_size, filled, ints, is_constant
from irc.runtime.kernels.windows import resolver

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.kernels.registry import Kernel


class Latest(NamedTuple):
    """Operands, and what computes others like them.

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

    @staticmethod
    def of(x: Array, constants: tuple[Array | None, ...], result: tuple[int, ...], compute: Any) -> Latest:
        """For inputs like ``x``."""
        return Latest((x.shape, x.strides, x.dtype), constants, result, compute)

    def suits(self, x: Array, *constants: Array | None) -> bool:
        """Whether operands are like these."""
        return (x.shape, x.strides, x.dtype) == self.x and all(map(is_, constants, self.constants))


def convolving(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of the Conv ``node``, with an inline cache."""
    group, resolve = node.attributes.get("group", 1), resolver(node)

    def look(x: Array, made: Array, w: Array, b: Array | None = None) -> Latest | None:
        if x.dtype != SINGLE or not x.flags.c_contiguous or not made.size or not _are_constant(w, b):
            return None
        convolve = LOOPS.convolver(x, w, b, group, resolve(x.shape[2:], w.shape[2:]), made)
        return Latest.of(x, (w, b), made.shape, convolve)

    return _looking_at_results(kernel, look)


def padding(node: Node, kernel: Kernel) -> Kernel:
    """``kernel`` of the Pad ``node`` with an inline cache, if nothing is removed and only ``x`` varies."""
    mode: str = node.attributes.get("mode", "constant")

    def look(x: Array, made: Array, *others: Array | None) -> Latest | None:
        if not (made.size and x.ndim and others and all(each is None or is_constant(each) for each in others)):
            return None
        pads, value, axes = filled(others, *[None] * 3)
        kept, added = kept_and_added(x, ints(pads), None if axes is None else ints(axes))
        if kept.shape != x.shape or not x.size:
            return None
        constant = np.full(1, 0 if value is None else value.item(), x.dtype)
        return Latest.of(x, others, made.shape, LOOPS.padder(x, added, mode, constant, made))

    return _looking_at_results(kernel, look)


def _looking_at_results(kernel: Kernel, look: Callable[..., Latest | None]) -> Kernel:
    """``kernel`` with an inline cache of what ``look`` finds for input, result and constant operands.

    As the kernel has made a result of these operands, they fit.
    """

    def compute(*operands: Array | None, out: Array | None) -> Array:
        return kernel(*operands, out=out) if takes else kernel(*operands)

    takes = takes_out(kernel)
    latest: Latest | None = None

    def run(x: Array, *others: Array | None, out: Array | None = None) -> Array:
        nonlocal latest
        known = latest
        if known is None or not known.suits(x, *others):
            made: Array = compute(x, *others, out=out)
            latest = look(x, made, *others)
            return made
        if known.compute is not None and CURRENT.scope.guard is None:
            result = np.empty(known.result, x.dtype) if out is None else out
            if known.compute(x, result):
                return result
        return compute(x, *others, out=out)

    def run_without(x: Array, *others: Array | None) -> Array:
        return run(x, *others)

    return run if takes else run_without


def multiplying(node: Node, kernel: Kernel) -> Kernel:
    """``kernel`` of the MatMul or Gemm ``node`` with an inline cache for several rows times constants.

    Whether the first operand has been met before decides about no bit of the result.
    """
    given = node.attributes
    broadcasts = given.get("broadcast", node.version is None or node.version > 6)
    if given.get("alpha", 1) != 1 or given.get("beta", 1) != 1 or given.get("transA") or not broadcasts:
        return kernel
    is_gemm, is_turned = node.kind == "onnx::Gemm", bool(given.get("transB"))
    latest: Latest | None = None

    def run(x: Array, w: Array, b: Array | None = None, out: Array | None = None) -> Array:
        nonlocal latest
        known = latest
        if known is None or not known.suits(x, w, b):
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
    nothing = Latest.of(x, (w, b), (), None)
    if x.dtype != SINGLE or x.ndim < 2 or w.ndim != 2 or not x.flags.c_contiguous or (is_gemm and x.ndim > 2):
        return nothing
    depth, columns = w.shape[::-1] if is_turned else w.shape
    if x.shape[-1] != depth or not x.size:
        return nothing
    if b is not None and (b.dtype != SINGLE or b.shape not in ((columns,), (1, columns))):
        return nothing
    return nothing._replace(result=(*x.shape[:-1], columns), compute=LOOPS.multiplier(x, w, is_turned))


def multiplying_integers(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of a MatMulInteger, with an inline cache for products with constants."""
    latest: Latest | None = None

    def run(
        a: Array,
        b: Array,
        a_zero: Array | None = None,
        b_zero: Array | None = None,
        out: Array | None = None,
    ) -> Array:
        nonlocal latest
        known = latest
        if known is None or not known.suits(a, b, b_zero):
            known = latest = _product_of_integers(a, b, b_zero)
        is_one = a_zero is None or (a_zero.size == 1 and a_zero.dtype == a.dtype)
        if known is not None and known.compute is not None and is_one and CURRENT.scope.guard is None:
            made = np.empty(known.result, _INT32) if out is None else out
            if known.compute(a, a_zero, made):
                return made
        return kernel(a, b, a_zero, b_zero, out=out)

    return run


def _product_of_integers(a: Array, b: Array, zero: Array | None) -> Latest | None:
    """What multiplies operands like these; None of what a run makes, which must not live longer than that."""
    if not is_constant(b) or not (zero is None or is_constant(zero)):
        return None
    compute = LOOPS.integer_multiplier(a, b, zero) if a.flags.c_contiguous and b.ndim > 1 < a.ndim else None
    return Latest.of(a, (b, zero), (*a.shape[:-1], b.shape[-1]), compute)


def quantizing(node: Node, kernel: Kernel) -> Kernel:
    """``kernel``, of a DynamicQuantizeLinear, with an inline cache."""
    latest: Latest | None = None

    def run(x: Array, outs: tuple[Array, Array, Array] | None = None) -> tuple[Array, Array, Array]:
        nonlocal latest
        known = latest
        if known is None or not known.suits(x):
            if x.flags.c_contiguous:
                latest = Latest.of(x, (), x.shape, LOOPS.quantizer(x))
        elif known.compute is not None and CURRENT.scope.guard is None:
            made = outs or (np.empty(known.result, _UINT8), np.empty((), SINGLE), np.empty((), _UINT8))
            if known.compute.run((x, *made)):
                return made
        return kernel(x, outs=outs)

    return run


_UINT8, _INT32 = np.dtype(np.uint8), np.dtype(np.int32)


def _are_constant(w: Array, b: Array | None) -> bool:
    return is_constant(w) and (b is None or is_constant(b)) and w.dtype == SINGLE and not repeats_one_filter(w)


CACHED: dict[str, Callable[[Node, Kernel], Kernel]] = {
    "convolution": convolving,
    "product": multiplying,
    "product of integers": multiplying_integers,
    "quantization": quantizing,
    "padding": padding,
}
"""By family of operators, what adds the cache to a kernel."""
