"""The inner loops of the interpreter's kernels, as machine code.

What is called is made for element types, shapes and strides, and kept. Nothing that imports llvmlite is imported before
the first of that is made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irc.errors import Error
from irc.ir.tensor import Array
from irc.native.availability import unusable
from irc.native.packed import PACKED
from irc.ops.algebra import SINGLE
from irc.runtime.backends import KernelKey, KernelsByType, Unsupported, suits_nothing
from irc.runtime.bounds import InnerLoops
from irc.runtime.kernels.support import WORTH_COPYING, check_size, in_c_order, is_constant, origin, scratch

if TYPE_CHECKING:
    from irc.native.convolution_calls import Convolution
    from irc.native.convolution_rows import ConvolutionOfRows
    from irc.native.groups import Group
    from irc.native.kernels import Call
    from irc.runtime.kernels.ml import Decide, Decided, Machine
    from irc.runtime.kernels.ml_trees import TreeTables
    from irc.runtime.kernels.recurrent import Cells, Recurrence
    from irc.runtime.kernels.registry import Kernel
    from irc.runtime.kernels.windows import Axes, Axis


T = TypeVar("T")

Compute = Callable[[Array, Array], bool]
"""Whether the second array is made of the first one."""

ComputeIntegers = Callable[[Array, "Array | None", Array], bool]
"""Likewise, given the zero point of the first one, of its type, or None for 0."""

_MOST_CALLS = 512
"""That are kept."""

_MOST_TAPS = 36
"""Of a window whose elements are looked at together."""

MOST_ROWS = 32
"""Rows of a product of floats for which OpenBLAS takes much longer, as it packs the constant matrix each time."""

LEAST_COLUMNS = 128
"""Of a product of floats: of fewer, it takes as long to pack the first matrix, or to read what fills the last panel."""

LEAST_PRODUCTS = 1 << 14
"""Multiplications: of fewer, calls take longer than they save."""

_BYTES = np.dtype(np.int8), np.dtype(np.uint8)
_SMALL = (*_BYTES, np.dtype(np.int16), np.dtype(np.uint16))

LANES = 64
"""The most lanes of a vector."""

NOWHERE = -(1 << 63)
"""The place of a row of constants."""

_NANOSECONDS = 0.1
"""For a product of attention, by estimate."""


class OneCall(NamedTuple):
    """A call that makes a result: one way to compute (`Compute`).

    Attributes:
        call: takes the operand, the constants and the result.
        constants: arrays that never change.
    """

    call: Call
    constants: tuple[Array, ...]

    def __call__(self, x: Array, out: Array) -> bool:
        return self.call.run((x, *self.constants, out))


class CheckedCall(NamedTuple):
    """A call that may fail to make a result: one way to compute (`Compute`).

    Attributes:
        call: takes the operand, the constants, one int32, which is 0 before, and the result.
        constants: arrays that never change.
        most: of what that number is afterwards if the result is right.
    """

    call: Call
    constants: tuple[Array, ...]
    most: int

    def __call__(self, x: Array, out: Array) -> bool:
        met = np.zeros(1, np.int32)
        return self.call.run((x, *self.constants, met, out)) and bool(met[0] <= self.most)


class _Loop(NamedTuple):
    """What is called for arrays of one kind.

    Attributes:
        call: takes the operands, ``others`` and the result; None if there is no code for them.
        others: arrays that depend on the kind alone.
    """

    call: Call | None
    others: tuple[Array, ...] = ()

    def run(self, *arrays: Array) -> bool:
        """Whether the last array was made of the others."""
        return self.call is not None and self.call.run((*arrays[:-1], *self.others, arrays[-1]))


class Compiling(KernelsByType["Kernel"]):
    """The native kernels of a group of operators, which is made for the first operands."""

    def __init__(self, make: Callable[[], Group]) -> None:
        super().__init__()
        self._make = cache(make)
        self._latest: Kernel = suits_nothing

    def compile(self, key: KernelKey) -> Kernel | None:
        types = [each for each in key if each is not None]
        if len(types) < len(key) or unusable():
            return None
        try:
            return self._make().kernel(types)
        except Unsupported:
            return None

    def run(self, operands: Sequence[Any], out: Any = None) -> Any:
        """The result, or results; `NotImplemented` if there is no code for such operands."""
        made = self._latest(*operands, out=out)
        if made is NotImplemented:
            kernel = self.kernel(operands)
            if kernel is not None:
                self._latest = kernel
                made = kernel(*operands, out=out)
        return made


@cache
def _compiling(text: str) -> Compiling:
    """The kernels of a graph."""

    def make() -> Group:
        from irc.native.groups import group_of_text

        return group_of_text(text)

    return Compiling(make)


class NativeLoops(InnerLoops):
    """Those of this process."""

    def __init__(self) -> None:
        self._loops: dict[Any, _Loop] = {}
        self._convolutions: dict[Any, Convolution | ConvolutionOfRows | None] = {}

    def depthwise(self, x: Array, w: Array, b: Array | None, axes: Axes, out: Array) -> bool:
        x = _dense_rows(x)
        convolve = self._depthwise(x, w, b, axes, out)
        return convolve is not None and convolve(x, out)

    def _depthwise(self, x: Array, w: Array, b: Array | None, axes: Axes, out: Array) -> Compute | None:
        others = tuple([np.ascontiguousarray(a) for a in (w, b) if a is not None])
        arrays = x, *others, out
        kind = "products", tuple([(a.dtype, a.shape) for a in arrays]), x.strides, axes
        loop = self._loops.get(kind) or self._keep(kind, "windows", "call_for", "products", arrays, axes)
        return None if loop.call is None else OneCall(loop.call, others)

    def convolution(
        self, x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array, exact: bool = False
    ) -> bool:
        if x.dtype != SINGLE or not is_constant(w) or unusable():
            return False
        x = _dense_rows(x)
        convolve = self._convolution(x, w, b, group, axes, out, exact)
        return convolve is not None and convolve(x, out)

    def convolver(self, x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array) -> Compute | None:
        """What convolves inputs that lie in C order like ``x``, of float32, with these constants."""
        if unusable():
            return None
        convolve = self._depthwise(x, w, b, axes, out) if w.shape[1] == 1 else None
        return convolve or self._convolution(x, w, b, group, axes, out)

    def padded_convolution(
        self, x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array
    ) -> tuple[Call, int, OneCall] | None:
        """If `convolver` stores a padded image: the call that does, its bytes, what convolves the image."""
        if len(x) > 1 or (w.shape[1] == 1 and self._depthwise(x, w, b, axes, out) is not None):
            return None
        from irc.native.convolution_rows import ConvolutionOfRows

        how, weights = self._how(x, w, b, group, axes, out) or (None, ())
        padding = how.padding() if isinstance(how, ConvolutionOfRows) else None
        if padding is None or not isinstance(how, ConvolutionOfRows):
            return None
        return *padding, OneCall(how.call, how.of_stored(weights))

    def _convolution(
        self, x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array, exact: bool = False
    ) -> Compute | None:
        found = self._how(x, w, b, group, axes, out, exact)
        if found is None:
            return self._stacked(x, w, b, axes, out, exact) if len(axes) == 3 and group == 1 else None
        how, weights = found
        compute = how.compute(weights) if len(x) == 1 and x.flags.c_contiguous else None
        return compute or (lambda x, out: how.run(x, weights, out))

    def _stacked(self, x: Array, w: Array, b: Array | None, axes: Axes, out: Array, exact: bool) -> Compute | None:
        """Convolution along three axes, plane by plane: a window's planes are channels of one image."""
        depth, *plane = axes
        features, channels, kernel = w.shape[:3]
        planes = max(depth.begin + depth.size, (depth.out - 1) * depth.stride + kernel)
        kept, sums = (planes, channels, *x.shape[3:]), (depth.out, features, *out.shape[3:])
        if depth.dilation > 1 or not x.size or not out.size or not _has_room(kept, sums):
            return None
        row, size = SINGLE.itemsize * x.shape[-1], SINGLE.itemsize
        strides = depth.stride * channels * row * x.shape[-2], row * x.shape[-2], row, size

        def images(stored: Array) -> Array:
            return as_strided(stored, (depth.out, kernel * channels, *x.shape[3:]), strides)

        filters = (features, kernel * channels, *w.shape[3:])
        like = np.empty(filters, SINGLE)
        how = self._look(images(np.empty(kept, SINGLE)), like, 1, tuple(plane), np.empty(sums, SINGLE), exact)
        if how is None:
            return None
        pack, purpose = how.packed, ("stacked", how.purpose)
        form = how.packed_form(like)

        def packed(*saved: Array) -> tuple[Array, ...] | None:
            return pack(w.swapaxes(1, 2).reshape(filters), b, *saved)

        weights = PACKED.of((w, b), purpose, lambda: form, packed)
        if weights is None:
            return None

        def compute(x: Array, out: Array) -> bool:
            stored, made = scratch("planes", kept, SINGLE), scratch("sums of planes", sums, SINGLE)
            stored.fill(0)
            for image, result in zip(x, out):
                np.copyto(stored[depth.begin : depth.begin + depth.size], image.swapaxes(0, 1))
                if not how.run(images(stored), weights, made):
                    return False
                np.copyto(result, made.swapaxes(0, 1))
            return True

        return compute

    def _how(
        self, x: Array, w: Array, b: Array | None, group: int, axes: Axes, out: Array, exact: bool = False
    ) -> tuple[Convolution | ConvolutionOfRows, tuple[Array, ...]] | None:
        """How to convolve, and packed weights."""
        how = self._look(x, w, group, axes, out, exact)
        if how is None:
            return None
        weights = PACKED.of((w, b), how.purpose, lambda: how.packed_form(w), partial(how.packed, w, b))
        return None if weights is None else (how, weights)

    def _look(
        self, x: Array, w: Array, group: int, axes: Axes, out: Array, exact: bool
    ) -> Convolution | ConvolutionOfRows | None:
        """How to convolve arrays like these, if there is room for it."""
        from irc.native.convolution_calls import convolution_of

        kind = "convolution", x.shape, x.strides, w.shape, group, axes, exact
        how = self._convolutions.get(kind, ...)
        if how is ...:
            how = convolution_of(x, w, group, axes, out, exact)
            self._convolutions = _with(self._convolutions, kind, how)
        return how if how is not None and how.call.has_room() else None

    def product(self, a: Array, b: Array, out: Array) -> bool:
        if a.dtype != SINGLE or not out.flags.c_contiguous:
            return False
        a = _dense_rows(a)
        multiply = self.multiplier(a, b)
        return multiply is not None and multiply(a, out)

    def multiplier(self, a: Array, b: Array, is_turned: bool = False) -> Compute | None:
        """What multiplies float32 arrays that lie like ``a`` by the constant ``b``, perhaps ``is_turned``."""
        depth, columns = a.shape[-1], b.shape[0 if is_turned else 1]
        if a.size == depth:
            return None if is_turned else self.row_multiplier(b)
        if columns < LEAST_COLUMNS or a.size * columns < 4 * LEAST_PRODUCTS or b.dtype != SINGLE or unusable():
            return None
        from irc.native.panels import FLOAT
        from irc.native.products import is_blas_behind

        if a.size > MOST_ROWS * depth and not is_blas_behind():
            return None
        packed = self._panels_of(b, is_turned)
        if packed is None:
            return None
        panels, begun = packed
        loop = self._product(a.reshape(-1, depth), columns, FLOAT)
        if loop.call is None or not (a.ndim == 2 or a.flags.c_contiguous):
            return lambda a, out: loop.run(a.reshape(-1, depth), panels, begun, out)
        return OneCall(loop.call, (panels, begun))

    def row_multiplier(self, b: Array) -> Compute | None:
        """What multiplies one row of float32 by the constant ``b`` (K, N), maybe made of 4-bit codes."""
        if b.dtype != SINGLE or b.size < LEAST_PRODUCTS or unusable():
            return None
        parts = origin(b)
        coded = self._coded_multiplier(b, parts) if parts and b.T.flags.c_contiguous else None
        if coded is not None or b.shape[1] < LEAST_COLUMNS:
            return coded
        packed = self._panels_of(b)
        if packed is None and not b.flags.c_contiguous:
            return None
        kind = "row", b.shape, packed is not None
        loop = self._loops.get(kind) or self._keep(kind, "one_row", "call_for_row", *b.shape, packed is not None)
        return None if loop.call is None else OneCall(loop.call, (b,) if packed is None else packed[:1])

    def _coded_multiplier(self, b: Array, parts: Sequence[Array]) -> Compute | None:
        """As `row_multiplier`, if 4-bit codes among ``parts`` made ``b``."""
        from irc.native.few_bits import packed, packed_bytes

        found = PACKED.of((b,), "few bits", lambda: packed_bytes(*b.shape), lambda: packed(b, parts))
        if found is None:
            return None
        words, scales, *zeros = found
        kind = "few bits", b.shape, scales.shape[1], len(zeros)
        words_of_block = words.shape[1] // scales.shape[1]
        make = "few_bits", "call_for_row", words_of_block, scales.shape[1], b.shape[1], len(zeros)
        call = (self._loops.get(kind) or self._keep(kind, *make)).call
        return None if call is None else OneCall(call, found)

    def _panels_of(self, b: Array, is_turned: bool = False) -> tuple[Array, ...] | None:
        """The constant ``b``, perhaps ``is_turned``, as products of floats read it."""
        from irc.native.products import packed_bytes, packed_floats

        b_as_read = b.T if is_turned else b
        size, make = partial(packed_bytes, *b_as_read.shape), partial(packed_floats, b_as_read)
        return PACKED.of((b,), ("product", is_turned), size, make)

    def integers(self, a: Array, zero: int, b: Array, out: Array) -> bool:
        if a.dtype not in _BYTES or not is_constant(b) or a.size * b.shape[-1] < LEAST_PRODUCTS or unusable():
            return False
        packed = self._packed_integers(b, None, lambda: b)
        return packed is not None and self._multiply_integers(a, zero, packed, out)

    def integer_multiplier(self, a: Array, b: Array, zero: Array | None) -> ComputeIntegers | None:
        """What multiplies arrays like ``a`` by constant 8-bit ``b`` minus its ``zero`` points."""
        packed = self._panels_of_integers(a, b, zero)
        if packed is None:
            return None
        found, multiply, none = self.integer_product(a, b, zero), self._multiply_integers, np.zeros((), np.uint8)
        if found is None:
            return lambda a, zero, out: multiply(a, 0 if zero is None else int(zero.item()), packed, out)
        compute, constants = found.call.run, found.constants
        return lambda a, zero, out: compute((a, *constants, none if zero is None else zero, out))

    def integer_product(self, a: Array, b: Array, zero: Array | None) -> OneCall | None:
        """A call for such arrays that takes the zero point of the first one, of uint8, before the result."""
        from irc.native.panels import QUAD

        packed = self._panels_of_integers(a, b, zero)
        is_fit = a.dtype.kind == "u" and a.flags.c_contiguous and not len(b) % QUAD
        if packed is None or packed[0].shape[-1] != QUAD or not is_fit:
            return None
        call = self._product(a.reshape(-1, len(b)).view(np.int32), b.shape[1], QUAD, has_zero=True).call
        return None if call is None else OneCall(call, packed)

    def _panels_of_integers(self, a: Array, b: Array, zero: Array | None) -> tuple[Array, ...] | None:
        """The constants ``b``, less ``zero``, as products read them; None if that is not worth it."""
        is_fit = b.ndim == 2 <= a.ndim and a.shape[-1] == len(b) and a.dtype in _BYTES and b.dtype in _BYTES
        if not is_fit or a.size * b.shape[-1] < LEAST_PRODUCTS or unusable():
            return None
        from irc.runtime.kernels.quantized import columns

        return self._packed_integers(b, zero, lambda: columns(b, zero).values)

    def _packed_integers(self, b: Array, zero: Array | None, make: Callable[[], Array]) -> tuple[Array, ...] | None:
        """Floats that are integers, which are made of constants, as products read them."""
        from irc.native.products import packed_bytes, packed_integers

        return PACKED.of((b, zero), "integers", lambda: packed_bytes(*b.shape), lambda: packed_integers(make()))

    def _multiply_integers(self, a: Array, zero: int, packed: tuple[Array, ...], out: Array) -> bool:
        from irc.native.products import rows_of_numbers

        panels, sums = packed
        numbers = panels.shape[-1]
        rows, zero = rows_of_numbers(a, zero, numbers)
        return self._product(rows, out.shape[-1], numbers).run(rows, panels, sums * np.int32(zero), out)

    def _product(self, a: Array, columns: int, numbers: int, has_zero: bool = False) -> _Loop:
        """The product of rows like those of ``a`` with packed panels: see `irc.native.products`."""
        kind = "product", a.shape, a.strides, columns, numbers, has_zero
        return self._loops.get(kind) or self._keep(kind, "products", "call_for_product", a, columns, numbers, has_zero)

    def linear(self, x: Array, scale: Array, zero: Array | None, axis: int, out: Array) -> bool:
        integers = out if x.dtype == SINGLE else x
        if {x.dtype, out.dtype} != {SINGLE, integers.dtype} or integers.dtype not in _SMALL or scale.dtype != SINGLE:
            return False
        if not x.size or unusable():
            return False
        inner = math.prod(x.shape[axis + 1 :])
        kind = "linear", x.dtype, out.dtype, x.shape, scale.size, inner
        loop = self._loops.get(kind) or self._keep(kind, "quantization", "call_for_linear", x, scale.size, inner, out)
        zeros = np.zeros(scale.size, SINGLE) if zero is None else zero.astype(SINGLE)
        return loop.run(np.ascontiguousarray(x), np.ascontiguousarray(scale), zeros, out)

    def quantize(self, x: Array, out: Array, scale: Array, zero: Array) -> bool:
        call = self.quantizer(x)
        return call is not None and call.run((np.ascontiguousarray(x), out, scale, zero))

    def quantizer(self, x: Array) -> Call | None:
        """A call for arrays like ``x``, in C order, that takes what `quantize` does."""
        if x.dtype != SINGLE or not x.size:
            return None
        kind = "quantize", x.size
        return (self._loops.get(kind) or self._keep(kind, "quantization", "call_for_quantization", x)).call

    def maxima(self, x: Array, axes: Axes, out: Array) -> bool:
        if _have_many_taps(axes):
            return self._maxima_by_axes(x, axes, out)
        if len(axes) == 3:
            return self._maxima_by_planes(x, axes, out)
        x = _dense_rows(x)
        return self._maxima(x, axes, out).run(x, out)

    def _maxima(self, x: Array, axes: Axes, out: Array) -> _Loop:
        kind = "maxima", x.dtype, x.shape, x.strides, axes
        return self._loops.get(kind) or self._keep(kind, "windows", "call_for", "maxima", (x, out), axes)

    def pooling(self, x: Array, axes: Axes, out: Array, include: bool | None) -> OneCall | None:
        """What `maxima` calls, or, if padding is said to be included or not, `means`, if that is one call."""
        if include is not None:
            loop = self._means(x, axes, include, None, out)
        else:
            loop = _Loop(None) if _have_many_taps(axes) else self._maxima(x, axes, out)
        return None if loop.call is None else OneCall(loop.call, loop.others)

    def _maxima_by_axes(self, x: Array, axes: Axes, out: Array) -> bool:
        """Maxima over the windows of columns, then of rows: of large windows that is less work."""
        columns, rows = axes
        between = scratch("maxima of columns", (*out.shape[:3], x.shape[3]), x.dtype)
        first, second = (columns, _whole(rows.size)), (_whole(columns.out), rows)
        return self.maxima(x, first, between) and self.maxima(between, second, out)

    def _maxima_by_planes(self, x: Array, axes: Axes, out: Array) -> bool:
        """Maxima over the windows of each plane, then of planes."""
        depth, *plane = axes
        (n, c, planes), inner = x.shape[:3], tuple(a.out for a in plane)
        between = scratch("maxima of planes", (n, c * planes, *inner), x.dtype)
        rows = n, c, planes, math.prod(inner)
        return self.maxima(in_c_order(x).reshape(n, c * planes, *x.shape[3:]), tuple(plane), between) and self.maxima(
            between.reshape(rows), (depth, _whole(rows[-1])), out.reshape(n, c, depth.out, rows[-1])
        )

    def means(self, x: Array, axes: Axes, include: bool, divisor: int | None, out: Array) -> bool:
        x = _dense_rows(x)
        return self._means(x, axes, include, divisor, out).run(x, out)

    def _means(self, x: Array, axes: Axes, include: bool, divisor: int | None, out: Array) -> _Loop:
        kind = "means", x.dtype, x.shape, x.strides, axes, include, divisor
        loop = self._loops.get(kind)
        if loop is None:
            from irc.runtime.kernels.pool import counts_of

            *before, widths = counts_of(axes, include, divisor, x.dtype)
            spare = np.ones(LANES, widths.dtype)  # for the lanes of a vector that a row has no room for
            others = before[-1] if before else spare, np.concatenate([widths, spare])
            loop = self._keep(kind, "windows", "call_for", "means", (x, *others, out), axes, others=others)
        return loop

    def columns(self, x: Array, axes: Axes, start: int, out: Array) -> bool:
        kind = "columns", x.itemsize, x.shape, x.strides, axes, start, out.shape
        loop = self._loops.get(kind) or self._keep(kind, "windows", "call_for_columns", x, axes, start, out)
        return loop.run(x, out)

    def copy(self, x: Array, out: Array) -> bool:
        if x.flags.c_contiguous:
            return False
        kind = "copy", x.dtype, x.shape, x.strides
        loop = self._loops.get(kind) or self._keep(kind, "moves", "call_for_copy", x, out)
        return loop.run(x, out)

    def pad(self, x: Array, added: Sequence[tuple[int, int]], mode: str, constant: Array, out: Array) -> bool:
        pad = self.padder(x, added, mode, constant, out)
        return pad is not None and pad(x, out)

    def padder(
        self, x: Array, added: Sequence[tuple[int, int]], mode: str, constant: Array, out: Array
    ) -> Compute | None:
        """What pads arrays that lie like ``x``, as `pad` does."""
        if x.strides[-1] != x.itemsize and x.shape[-1] > 1:
            return None
        kind = "pad", x.dtype, x.shape, x.strides, tuple(added), mode
        loop = self._loops.get(kind)
        if loop is None:
            from irc.runtime.kernels.shape import sources_of

            *sources, last = [sources_of(n, *ends, mode) for n, ends in zip(x.shape, added)]
            before, after = added[-1][0], added[-1][0] + x.shape[-1]
            others = places_of(sources, x.strides), np.concatenate([last[:before], last[after:]])
            loop = self._keep(kind, "moves", "call_for_padding", x, before, out, others=others)
        return None if loop.call is None else OneCall(loop.call, (*loop.others, constant.repeat(out.shape[-1])))

    def attend(
        self,
        query: Array,
        key: Array,
        value: Array,
        scale: float,
        out: Array,
        bias: Array | None = None,
        mask: Array | None = None,
        fill: float = -math.inf,
    ) -> bool:
        keys = key.shape[-2]
        more, has_rows = list[Array](), [1, 1]
        for i, x in enumerate((mask, bias)):
            if x is not None:
                has_rows[i] = int(not is_one_row(x.shape, keys))
                x = np.broadcast_to(x, (*query.shape[:-1], keys)) if has_rows[i] else x
                more.append(np.ascontiguousarray(x))
        given = None if mask is None else fill
        found = self.attention(query, key, value, scale, given, bias is not None, tuple(has_rows))
        if found is None or not out.flags.c_contiguous or (bias is not None and bias.dtype != query.dtype):
            return False
        call, (layout,) = found
        scores = scratch("scores", (call.size, keys + LANES), query.dtype)
        query = query if query.flags.c_contiguous else np.ascontiguousarray(query)
        return call.run((query, key, value, np.array(keys), layout, scores, *more, out))

    def attention(
        self,
        query: Array,
        key: Array,
        value: Array,
        scale: float,
        fill: float | None,
        has_bias: bool,
        has_rows: tuple[int, ...] = (1, 1),
    ) -> OneCall | None:
        """What `attend` calls, and the layout that it takes: see `irc.native.attention.call_for_attention`."""
        shapes, strides = (query.shape, key.shape[:-2], value.shape[-1]), (key.strides, value.strides)
        kind = "attend", query.dtype, shapes, strides, scale, fill, has_bias, has_rows
        loop = self._loops.get(kind)
        if loop is None:
            from irc.native.attention import layout_of

            layout = layout_of(key, value, *has_rows)
            made = "attention", "call_for_attention", query, key, value, scale, fill, has_bias
            loop = self._keep(kind, *made, others=() if layout is None else (layout,))
        if loop.call is None or not loop.others:
            return None
        width = query.shape[-1] + value.shape[-1]
        work = query.size // query.shape[-1] * width * key.shape[-2] * _NANOSECONDS
        return OneCall(loop.call.of_work(work), loop.others)

    def recurrence(self, cells: Cells, share: Array, out: Array) -> Recurrence | None:
        kind, r, direction, late, zero = cells
        if share.dtype != SINGLE or not out.size or not is_constant(r) or unusable():
            return None
        if not (share[0].flags.c_contiguous and out[0].flags.c_contiguous):
            return None
        from irc.native import recurrent

        def pack() -> tuple[Array, ...] | None:
            return recurrent.packed(r[direction], None if zero is None else zero[direction], kind)

        weights = PACKED.of((r, zero), (kind, direction), lambda: recurrent.packed_bytes(kind, out.shape[-1]), pack)
        if weights is None or (zero is not None and out.shape[1] > 1):  # states of all samples are quantized as one
            return None
        form = kind, weights[0].dtype, out.shape, share.strides[0], out.strides[0]
        loop = self._loops.get(form) or self._keep(form, "recurrent", "call_for_cells", *form[:2], share, out)
        if loop.call is None:
            return None
        constants = *weights, recurrent.padded(late, out.shape[-1]) if kind in recurrent.READ_LATE else late
        compute = loop.call.run
        return lambda share, lengths, state, out: compute((share, *constants, lengths, state[0], state[-1], out))

    def fused(self, text: str, operands: Sequence[Array]) -> Array | None:
        made = _compiling(text).run(operands)
        return None if made is NotImplemented else made

    def decider(self, rows: int, machine: Machine) -> Decide | None:
        vectors, classes, has_chances = machine.table.shape[1], len(machine.ends) - 1, machine.slopes.size > 0
        kind = "decide", rows, vectors, classes, has_chances
        loop = self._loops.get(kind) or self._keep(kind, "machines", "call_for_machine", *kind[1:])
        if loop.call is None or not rows:
            return None
        compute = loop.call.run
        pairs, columns = (rows, len(machine.rho)), (rows, classes if has_chances else 0)

        def decide(similarities: Array) -> Decided | None:
            best, scores, chances = np.empty(rows, np.int64), np.empty(pairs, SINGLE), np.empty(columns, SINGLE)
            if not similarities.flags.c_contiguous or not compute((similarities, *machine, best, scores, chances)):
                return None
            return best, scores, chances if has_chances else None

        return decide

    def voter(self, x: Array, trees: TreeTables, found: Array) -> Compute | None:
        dense = _dense_rows(x)
        *tables, modes, depth = trees
        sizes = len(trees.roots), modes, depth
        kind = "vote", x.dtype, x.shape, dense.strides, found.shape, found.dtype, *sizes
        loop = self._loops.get(kind) or self._keep(kind, "trees", "call_for_trees", dense, found, *sizes)
        if loop.call is None:
            return None
        vote = OneCall(loop.call, tuple(tables))
        return vote if dense is x else lambda x, found: vote(_dense_rows(x), found)

    def _keep(self, kind: Any, module: str, make: str, *arguments: Any, others: tuple[Array, ...] = ()) -> _Loop:
        """Make and keep a loop, by a function of a module that emits code; none where that cannot be used."""
        call = None if unusable() else getattr(import_module(f"irc.native.{module}"), make)(*arguments)
        loop = _Loop(call, others)
        self._loops = _with(self._loops, kind, loop)
        return loop


def _with(kept: dict[Any, T], kind: Any, made: T) -> dict[Any, T]:
    """``kept`` and ``made`` in a new dict, as other threads read the old; ``made`` alone once it is full."""
    return {**(kept if len(kept) < _MOST_CALLS else {}), kind: made}


LOOPS = NativeLoops()


def _has_room(*shapes: Sequence[int]) -> bool:
    """Whether the run may have arrays of float32 of these shapes besides its own."""
    try:
        for shape in shapes:
            check_size(shape, SINGLE)
    except Error:
        return False
    return True


def is_one_row(shape: Sequence[int], keys: int) -> bool:
    """Whether a mask or bias of ``shape`` is the same for all rows of scores."""
    return bool(shape) and shape[-1] == keys and math.prod(shape[:-1]) == 1


def _have_many_taps(axes: Axes) -> bool:
    """Whether it is less work to look for maxima along one axis and then along the other."""
    return len(axes) == 2 and min(a.kernel for a in axes) > 1 and axes[0].kernel * axes[1].kernel > _MOST_TAPS


def _whole(size: int) -> Axis:
    """An axis that is not reduced."""
    from irc.runtime.kernels.windows import Axis

    return Axis(size, size, 1, 1, 1, 0, 0)


def straightened(x: Array) -> Array:
    """``x``, or a copy in C order if its rows lie across: to read it so takes longer than the copy."""
    if x.ndim < 2 or x.size < WORTH_COPYING or x.strides[-1] == x.itemsize or not x.strides[-1]:
        return x
    out = np.empty(check_size(x.shape, x.dtype), x.dtype)
    return out if LOOPS.copy(x, out) else x


def _dense_rows(x: Array) -> Array:
    """``x``, or a copy in C order if there are gaps between the elements of a row."""
    return x if x.strides[-1] == x.itemsize or x.shape[-1] == 1 else in_c_order(x)


def places_of(sources: Sequence[Array], strides: Sequence[int]) -> Array:
    """Offsets in bytes of each row of a padded array from the first element; `NOWHERE` for constant rows."""
    places: Array = np.zeros((), np.int64)
    is_nowhere: Array = np.zeros((), np.bool_)
    for source, stride in zip(sources, strides):
        places = np.add.outer(places, source * stride)
        is_nowhere = np.logical_or.outer(is_nowhere, source < 0)
    return np.where(is_nowhere, NOWHERE, places).reshape(-1)
