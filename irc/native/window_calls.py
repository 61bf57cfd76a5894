"""Calls of loops over windows (`irc.native.windows`) for arrays and the attributes of operators.

Invariant: what is called for arrays that lie like some others reads and writes nothing outside of arrays like those.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from irc.ir.tensor import Array
from irc.native.elements import computed, is_supported
from irc.native.jit import Code, process_jit
from irc.native.kernels import Call
from irc.native.target import current
from irc.native.windows import COLUMNS, MEANS, PRODUCTS, Form, Layout, emit_windows
from irc.ops.algebra import BOOL, DOUBLE, SINGLE, AnyDType
from irc.runtime.kernels.windows import Axis

if TYPE_CHECKING:
    from irc.runtime.kernels.windows import Axes


MOST_TAPS = 64
"""Of a kernel: code has them one by one."""

MOST_COLUMNS = 12
"""Taps of a row of a kernel whose columns are made: of more, NumPy copies as fast or, of large ones, in a third of the
time."""

MOST_STRIDE = 8
"""Along rows: a vector is picked from so many."""

_MOST_ROWS = 7
"""Of results that are made at once."""

_MOST_PRODUCTS = 200
"""For those, tap by tap."""

MOST_POSITIONS = 1 << 28
"""Along an axis with its padding: code counts columns in 32 bits."""

_CODES: dict[Form, Code] = {}
_LOCK = Lock()


def call_for(work: str, arrays: Sequence[Array], axes: Axes) -> Call | None:
    """A call for arrays that lie like these; None if there is no code for them.

    Args:
        work: what is computed.
        arrays: the operands (see there) and the result; of the first one, elements of a row lie side by side, and the
            others are in C order.
        axes: the windows.
    """
    x, out = arrays[0], arrays[-1]
    height, width = (Axis(1, 1, 1, 1, 1, 0, 0), *axes)[-2:]
    if len(axes) > 2 or x.size == 0 or out.size == 0 or not _fits(work, [a.dtype for a in arrays], height, width):
        return None
    form = _form(work, tuple([a.dtype for a in arrays]), height, width, out.shape[1] // max(1, x.shape[1]))
    layout = Layout(
        channels=out.shape[1],
        image=x.strides[0],
        channel=x.strides[1],
        row=x.strides[-2],
        height=height.size,
        width=width.size,
        result_height=height.out,
        result_width=width.out,
        top=height.begin,
        left=width.begin,
        first=-(-width.begin // width.stride),
        last=(width.size + width.begin - form.reach) // width.stride,
    )
    return _call(form, layout, out.shape[0] * out.shape[1])


def call_for_columns(x: Array, axes: Axes, start: int, out: Array) -> Call | None:
    """A call that makes columns of an image: see `irc.runtime.kernels.windows.columns`; None if there is no code.

    Args:
        x: (C, spatial...), of which elements of a row lie side by side.
        axes: the windows.
        start: the row of windows to begin with.
        out: (C, kernel..., rows, windows of a row), in C order.
    """
    height, width = (Axis(1, 1, 1, 1, 1, 0, 0), *axes)[-2:]
    bits = np.dtype(f"u{x.itemsize}") if x.itemsize in (1, 2, 4, 8) else x.dtype
    if len(axes) > 2 or x.size == 0 or out.size == 0 or not _fits(COLUMNS, [bits, bits], height, width):
        return None
    rows = out.shape[-2] if len(axes) == 2 else 1
    first, second = (start, 0) if len(axes) == 2 else (0, start)
    line, place = (
        height._replace(kernel=1, dilation=1, out=rows),
        width._replace(kernel=1, dilation=1, out=out.shape[-1]),
    )
    form = _form(COLUMNS, (bits, bits), line, place, 1)
    layout = Layout(
        channels=height.kernel * width.kernel,
        image=x.strides[0],
        channel=0,
        row=x.strides[-2],
        height=height.size,
        width=width.size,
        result_height=rows,
        result_width=out.shape[-1],
        top=height.begin - first * height.stride,
        left=width.begin - second * width.stride,
        first=0,
        last=0,
        taps=width.kernel,
        down=height.dilation,
        across=width.dilation,
    )
    return _call(form, layout, x.shape[0] * layout.channels)


def _call(form: Form, layout: Layout, planes: int) -> Call:
    """A call of the code for so many planes of results."""
    with _LOCK:
        code = _CODES.get(form)
        if code is None:
            name = "irc.windows"
            code = _CODES[form] = process_jit().load(name, form.key, lambda: emit_windows(name, form, current()))
    rows = planes * layout.result_height
    taps = form.kernel[0] * form.kernel[1] * form.strides[1]
    work = rows * -(-layout.result_width // form.lanes) * (2 + taps) * 0.3
    return Call.of(code, [None] * len(form.dtypes), layout, rows, work)


def _fits(work: str, dtypes: Sequence[AnyDType], height: Axis, width: Axis) -> bool:
    """Whether there is code for such windows."""
    if not all(map(is_supported, dtypes)) or dtypes[0] == BOOL or dtypes[0] != dtypes[-1]:
        return False
    inner = computed(dtypes[0])
    if work in (PRODUCTS, MEANS) and (inner not in (SINGLE, DOUBLE) or any(computed(d) != inner for d in dtypes)):
        return False
    spans = [max(a.size + a.begin + a.end, a.out * a.stride + a.reach) for a in (height, width)]
    is_small = width.kernel <= MOST_COLUMNS if work == COLUMNS else height.kernel * width.kernel <= MOST_TAPS
    return is_small and width.stride <= MOST_STRIDE and max(spans) < MOST_POSITIONS


def _rows_at_once(height: Axis, taps: int) -> int:
    """How many rows of results to make at once, so that rows of the input are read seldom; code has them one by one."""

    def reads(rows: int) -> int:
        of_several, of_one = (rows - 1) * height.stride + height.kernel, height.kernel
        return height.out // rows * of_several + height.out % rows * of_one

    most = max(1, min(_MOST_ROWS, _MOST_PRODUCTS // taps, height.out))
    return min(range(most, most // 2, -1), key=reads)


def _form(work: str, dtypes: tuple[AnyDType, ...], height: Axis, width: Axis, sharing: int) -> Form:
    most = current().vector_bytes // computed(dtypes[0]).itemsize
    lanes = min(most, max(2, 1 << (width.out - 1).bit_length()))
    return Form(
        work,
        dtypes,
        (height.kernel, width.kernel),
        (height.stride, width.stride),
        (height.dilation, width.dilation),
        lanes,
        _rows_at_once(height, height.kernel * width.kernel),
        width.out <= lanes,
        sharing,
    )
