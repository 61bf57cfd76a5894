"""Helpers for all kernels: axes, sizes, types, fresh arrays, work memory, optional packages.

Work memory is kept from run to run. Fresh memory costs page faults and cold caches; columns and padded images need
it at every convolution. Each thread has its own, so kernels may run in several
threads at once. A run that begins in the middle of another one on the same
thread gets others (`irc.runtime.bounds.in_own_scope`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any
from weakref import WeakValueDictionary, ref

import numpy as np

from irc.errors import Error
from irc.ir import MAX_RANK, DType
from irc.runtime.bounds import CURRENT, NONE
from irc.runtime.values import Array, owner

AnyDType = np.dtype[Any]

MAX_BYTES = 1 << 40
"""A result larger than this is taken for an error in the model, not for work to do."""


WORTH_COPYING = 1 << 12
"""Elements from which on it is worth it to choose how they are copied."""


_CONSTANTS: WeakValueDictionary[int, Array] = WeakValueDictionary()


def as_constant(x: Array) -> Array:
    """``x``, whose elements never change: what is made of them once may be kept as long as it lives."""
    _CONSTANTS[id(x)] = x
    return x


def is_constant(x: Array) -> bool:
    """Whether ``x`` is a constant of a model."""
    return _CONSTANTS.get(id(x)) is x


_MADE_OF: dict[int, tuple[ref[Array], Sequence[Array]]] = {}


def note_origin(x: Array, parts: Sequence[Array]) -> None:
    """Note the arrays that the constant ``x`` was made of, pointwise."""
    own = owner(x)
    key = id(own)
    # As a default, the table is still there when Python ends and clears modules.
    _MADE_OF[key] = ref(own, lambda _, table=_MADE_OF: table.pop(key, None)), parts


def origin(x: Array) -> Sequence[Array]:
    """What the memory of ``x`` was made of; empty if that is not known."""
    own = owner(x)
    known = _MADE_OF.get(id(own))
    return known[1] if known is not None and known[0]() is own else ()


def axis_in(axis: int, rank: int) -> int:
    """``axis`` counted from the front; Error if it is outside ``[-rank, rank)``."""
    if not -rank <= axis < rank:
        raise Error("IRC420", f"axis {axis} is out of range: the tensor has {rank} dimensions")
    return axis + rank if axis < 0 else axis


def axes_in(axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """All ``axes`` counted from the front; Error if one is out of range or given twice."""
    found = tuple([axis_in(int(a), rank) for a in axes])
    if len(found) > 1 and len(set(found)) != len(found):
        raise Error("IRC420", f"an axis is given twice in {list(found)}")
    return found


def check_size(shape: Sequence[int], dtype: AnyDType) -> tuple[int, ...]:
    """``shape`` as a tuple; Error if a size is negative, or too large for the run or any machine.

    Shapes that come from data are checked here before anything is allocated.
    """
    sizes = tuple(map(int, shape))
    if sizes and min(sizes) < 0:
        raise Error("IRC422", f"a size is negative in the shape {list(sizes)}")
    if len(sizes) > MAX_RANK:
        raise Error("IRC422", f"a tensor would have {len(sizes)} dimensions; at most {MAX_RANK} are possible")
    size = (math.prod(sizes) or math.prod(filter(None, sizes))) * dtype.itemsize  # of an empty array, too, NumPy counts
    if size > MAX_BYTES:
        raise Error("IRC422", f"a tensor of shape {list(sizes)} would take more than {MAX_BYTES >> 30} GiB")
    if CURRENT.scope.guard is not None and 0 not in sizes:
        CURRENT.scope.guard.allocate(size)
    return sizes


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """As `numpy.broadcast_shapes`, for up to 64 dimensions instead of 32; ValueError likewise."""
    rank = max(map(len, shapes), default=0)
    if rank <= 32:
        return np.broadcast_shapes(*shapes)
    whole = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return np.broadcast_shapes(*(s[:-32] for s in whole)) + np.broadcast_shapes(*(s[-32:] for s in whole))


def common_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """As `broadcast_shape`; Error IRC421 if the shapes do not broadcast."""
    try:
        return broadcast_shape(*shapes)
    except ValueError:
        texts = " and ".join([str(list(s)) for s in shapes])
        raise Error("IRC421", f"the shapes {texts} do not broadcast against each other") from None


def shapes_of(*arrays: Array | None) -> str:
    """The shapes of those that are given, for a message: ``[2, 3], [4] and []``."""
    texts = [str(list(x.shape)) for x in arrays if x is not None]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def filled(arguments: Sequence[Any], *defaults: Any) -> tuple[Any, ...]:
    """``arguments``, and the defaults of those at the end that are left out; Error if there are more."""
    more = len(arguments) - len(defaults)
    if more > 0:
        raise Error("IRC423", f"irc does not know the overload that has {more} more arguments")
    return (*arguments, *defaults[len(arguments) :])


def shapes_differ(error: ValueError, *inputs: Array) -> Error:
    """What to raise when NumPy refuses to broadcast ``inputs``."""
    return Error("IRC421", f"the shapes {shapes_of(*inputs)} do not broadcast against each other ({error})")


def vector(values: Array) -> list[Any]:
    """The elements of a 0-d or 1-d tensor; Error if it has more dimensions."""
    if values.ndim > 1:
        raise Error("IRC421", f"sizes, axes and positions are given as a vector, not as {list(values.shape)}")
    found = values.tolist()
    return found if values.ndim else [found]


def ints(values: Array) -> list[int]:
    """As `vector`, of integers."""
    return vector(values)


def counting(n: int) -> Array:
    """The numbers 0, 1, ... n - 1."""
    return np.arange(n)


def scalar(value: Array, what: str) -> Any:
    """The one element of ``value``, of whatever rank; Error if it has more or none."""
    if value.size != 1:
        raise Error("IRC421", f"{what} must have exactly one element; its shape is {list(value.shape)}")
    return value.item()


def blank(dtype: AnyDType) -> Any:
    """What fills a tensor of ``dtype`` where nothing is given: zero, or the empty string."""
    return "" if dtype.hasobject else np.zeros((), dtype)


def numpy_dtype(number: int) -> AnyDType:
    """The NumPy dtype for ``TensorProto`` element type ``number``; Error if there is none."""
    try:
        return DType.from_onnx(number).numpy
    except KeyError:
        raise Error("IRC320", f"{number} is not an element type of ONNX") from None


def adding(parts: Sequence[Array], axis: int) -> Sequence[Array]:
    """The ``parts`` that add something to a concatenation along ``axis``; the first if none does.

    The others need not fit in their other sizes: decoders are begun with dummies for caches, such as (1, 0, 0, 0).
    """
    return [part for part in parts if part.shape[axis]] or parts[:1]


def in_rows(x: Array) -> Array:
    """``x`` (..., n) as (rows, n): for -1, NumPy finds no number of rows where there are no elements."""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def c_order(array: Any) -> Array:
    """``array`` (or NumPy scalar) as an ndarray in C order, copied only if it must be."""
    return np.asarray(array, order="C")


def in_c_order(x: Array) -> Array:
    """``x``, or a copy in C order if it does not lie so."""
    if x.flags.c_contiguous:
        return x
    return copied_to(np.empty(check_size(x.shape, x.dtype), x.dtype), x)


def copied_to(out: Array, x: Array) -> Array:
    """``out``, in C order, with the elements of ``x``, of its shape."""
    if not CURRENT.scope.loops.copy(x, out):
        np.copyto(out, x)
    return out


def placed(x: Array, out: Array | None) -> Array:
    """``x``, or ``out`` with the elements of ``x`` if it is given."""
    if out is None:
        return x
    np.copyto(out, x)
    return out


def reshaped(x: Array, shape: Sequence[int]) -> Array:
    """``x.reshape(shape)``; if elements have to be copied for that, maybe by machine code."""
    if CURRENT.scope.loops is NONE or x.flags.c_contiguous or x.size < WORTH_COPYING:
        return x.reshape(shape)
    try:
        return x.reshape(shape, copy=False)
    except ValueError:
        return in_c_order(x).reshape(shape)
    except TypeError:  # NumPy 2.0 cannot say
        return x.reshape(shape)


def spread_out(x: Array, shape: tuple[int, ...]) -> Array:
    """``x`` repeated to a small ``shape`` that it broadcasts to: NumPy is faster on equal shapes."""
    return np.broadcast_to(x, shape).copy() if math.prod(shape) <= WORTH_COPYING else x


def may_be_view(array: Array, other: Array) -> bool:
    """Whether ``array`` may be a view of ``other``, or of what that is one of.

    NumPy says of arrays without elements that they share nothing, even if one is a read-only view of the other.
    """
    return not array.size or np.may_share_memory(array, other)


def fresh(array: Array, *inputs: Array) -> Array:
    """``array`` in C order, copied if its memory may be that of one of ``inputs``."""
    if any(may_be_view(array, x) for x in inputs):
        return array.copy()
    return np.asarray(array, order="C")


def chosen(condition: Array, x: Array, y: Array, out: Array | None = None) -> Array:
    """``np.where`` of two arrays of one type; of many, by bits: irregular masks mispredict branches.

    So it takes a number a clock, whatever the mask: `np.where` takes from one to six. ``out`` may be the memory of
    any of them: it is written last, at once.
    """
    bits = _BITS.get(x.dtype.itemsize)
    if bits is None or condition.dtype != np.bool_ or condition.size < _BY_BITS or x.dtype.hasobject:
        selected = np.where(condition, x, y)
        if out is None:  # `placed`, of which a call takes a thirtieth of the time for few elements
            return selected
        np.copyto(out, selected)
        return out
    mask = condition.view(np.int8).astype(bits)
    np.negative(mask, out=mask)
    first, second = x.view(bits), y.view(bits)
    found: Array = mask & (first ^ second)
    np.bitwise_xor(found, second, out=found if out is None else out.view(bits))
    return found.view(x.dtype) if out is None else out


_BY_BITS = 1 << 14
"""Smaller arrays are left to NumPy: a few calls take as long, and the branch predictor learns a mask of that size."""

_BITS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
"""The integers of a size."""


def is_half(dtype: AnyDType) -> bool:
    """Whether arithmetic on ``dtype`` is to be done in float32: float16, bfloat16 and smaller floats."""
    return (dtype.kind == "f" and dtype.itemsize < 4) or dtype.kind == "V"


# -- work memory for kernels, kept from run to run -----------------------------


KEEP_BYTES = 32 << 20
"""Larger buffers are not kept."""


def scratch(purpose: str, shape: Sequence[int], dtype: AnyDType) -> Array:
    """An uninitialised C-order array, valid until this thread asks for the same ``purpose`` again.

    Must not become part of a result.
    """
    size = math.prod(shape) * dtype.itemsize
    scope = CURRENT.scope
    buffer = scope.scratch.get(purpose)
    if buffer is None or buffer.size < size or scope.guard is not None:
        check_size(shape, dtype)
    if buffer is None or buffer.size < size:
        buffer = np.empty(size, np.uint8)
        if size <= KEEP_BYTES:
            scope.scratch[purpose] = buffer
    return np.ndarray(shape, dtype, buffer)


# -- packages that only a few operators need -----------------------------------


EXTRAS = {"PIL.Image": "images", "re2": "regex"}
"""Module -> the extra of irc that installs it."""


def needed(module: str, kind: str) -> Any:
    """``module``, which nodes of ``kind`` are computed by; Error IRC321 if it is not installed."""
    try:
        return import_module(module)
    except ImportError as error:
        install = f"pip install 'irc[{EXTRAS[module]}]'"
        raise Error("IRC321", f"irc computes {kind} by the package {module}: {install} ({error})") from None
