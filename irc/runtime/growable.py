"""Memory for arrays that grow along one axis in amortised constant time, such as KV caches.

A *growable buffer* is memory with capacity along one axis, of which a prefix is used.
Kernels see plain arrays: views of that prefix. `append` writes new elements
behind the prefix and returns a longer view, so views returned earlier still
show what they did. It does that only for a view that ends where the prefix does
(the high-water mark), in a buffer that the caller may write to. Such a view shows the
whole prefix, or the last positions of it (a sliding window). Appending to a view that
ends earlier makes a copy, so two continuations of one prefix never meet.

How an array leads to its buffer: ``view.base`` is an array of the whole buffer and
``view.base.base`` the buffer itself, because NumPy gives views of views the base
of the first array whose own base is not an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from irc.errors import Error
from irc.ir.types import DType, TensorType
from irc.runtime.arguments import Argument, accept, arrays_in, as_array
from irc.runtime.array_memory import address_of, aligned_bytes, is_shown_alone
from irc.runtime.execution import Frame, Slots, Step
from irc.runtime.kernels.support import MAX_BYTES, adding, axis_in, check_size
from irc.runtime.values import Array, integer

if TYPE_CHECKING:
    from irc.ir import Node
    from irc.runtime.lowering import Lowering


class GrowableBuffer:
    """Memory for an array that grows along one axis.

    Attributes:
        axis: the axis, counted from the front.
        axes: the axis, counted from the front and from the back.
        capacity: how many positions along the axis there is memory for.
        used: how many of them are in use: the high-water mark.
        append_only: whether its views are read-only, but may still be appended to.
    """

    def __init__(self, shape: Sequence[int], dtype: np.dtype[Any], axis: int) -> None:
        shape = check_size(shape, dtype)
        # It holds no view whose base it is: that would be a cycle, which only the collector frees.
        memory = aligned_bytes(prod(shape) * dtype.itemsize)
        self._whole: Array = np.ndarray(shape, dtype, memory)
        self._address = address_of(memory)
        self.__array_interface__ = {
            "version": 3,
            "shape": shape,
            "typestr": dtype.str,
            "data": (self._address, False),
        }
        self._before = (_ALL,) * axis
        self._around = shape[:axis], shape[axis + 1 :]
        self._fits: tuple[int, ...] | None = None
        self._dtype = self._whole.dtype
        self._is_raw = dtype.isbuiltin != 1  # NumPy's array interface does not know the element types of other packages
        self.axis = axis
        self.axes = axis, axis - len(shape)
        self.capacity = shape[axis]
        self.used = 0
        self.append_only = False
        self._turn = ["append"]  # the thread that has popped it may append: a lock takes five times as long
        self._latest: Callable[[], Array | None] = _none
        self._begin = 0  # where it begins

    def first(self, parts: Sequence[Array]) -> Array:
        """Put ``parts`` into the empty buffer, one after the other; return a view of them."""
        axis = self.axis
        end = sum([part.shape[axis] for part in parts])
        place = (*self._before, slice(end))
        np.concatenate(parts, axis, out=self._whole[place])
        both: Array = np.asarray(self)[place]
        if self._is_raw:
            both = both.view(self._dtype)
        self._latest, self.used = ref(both), end
        return both

    def extend(self, old: Array, new: Array, writes: bool = True) -> Array | None:
        """Write ``new`` behind ``old``, or leave room for it; return a view of both.

        None if ``old`` may not be extended or does not end at the high-water mark, if ``new`` does not fit or is too
        long, or while another append is in progress.
        """
        shape = new.shape
        if (shape != self._fits or new.dtype is not self._dtype) and not self.takes(new):
            return None
        if not (self.append_only or old.flags.writeable):
            return None
        # Two holders of one prefix may append at once: the first takes the place. Nobody waits for it: a signal handler
        # would for ever, if it interrupted the first.
        try:
            turn = self._turn.pop()
        except IndexError:
            return None
        try:
            start = self.used
            count = shape[self.axis]
            end = start + count
            if end > self.capacity or (self._latest() is not old and not self._ends(old)):
                return None
            face: Any = old.base
            both: Array = face[self._before + (slice(self._begin, end),)]  # noqa: RUF005  unpacking takes a third longer
            if self._is_raw:
                both = both.view(self._dtype)
            self._latest = ref(both)  # first: interrupted, an append leaves `used` as it is
            self.used = end
        finally:
            self._turn.append(turn)
        if writes:
            # A number and a new axis of one element are the same place as a slice of one, which takes longer to make.
            place = (start, None) if count == 1 else (slice(start, end),)
            self._whole[self._before + place] = new
        return both

    def go_back(self, view: Array) -> bool:
        """Free the positions behind ``view``, if no other view may show them; return whether it did."""
        try:
            turn = self._turn.pop()
        except IndexError:
            return False
        try:
            place = self._place(view)
            if place is None or not is_shown_alone(view):
                return False
            self._latest = _none
            _, self.used = place
        finally:
            self._turn.append(turn)
        return True

    def _place(self, view: Array) -> tuple[int, int] | None:
        """The first position of ``view``, a view of the buffer, and its end; None if it is laid out otherwise."""
        length = view.shape[self.axis] if self.axis < view.ndim else 0
        before, after = self._around
        strides = self._whole.strides
        if view.shape != (*before, length, *after) or view.strides != strides or view.dtype != self._dtype:
            return None
        begin, within = divmod(view.ctypes.data - self._address, strides[self.axis])
        return None if within else (begin, begin + length)

    def up_to(self, view: Array) -> tuple[Array, int]:
        """The whole buffer, which may be written to, and where in it ``view``, one of its own, ends."""
        place = self._place(view)
        assert place is not None, "views that appends give lie as the buffer does"
        return self._whole, place[1]

    def takes(self, new: Array) -> bool:
        """Whether ``new`` has the buffer's element type and, apart from the size along the axis, its shape."""
        shape, axis = new.shape, self.axis
        if len(shape) <= axis or (shape[:axis], shape[axis + 1 :]) != self._around or new.dtype != self._dtype:
            return False
        self._fits = shape
        return True

    def make_append_only(self, view: Array) -> None:
        """Make ``view``, and all that is derived from its base, read-only; appending to it stays possible."""
        view.flags.writeable = False
        face = view.base
        assert face is not None, "a view of a buffer has an array of the whole buffer as its base"
        face.flags.writeable = False
        self.append_only = True

    def _ends(self, array: Array) -> bool:
        """Whether ``array`` lies as the buffer and ends at the high-water mark; sets `_begin` if so."""
        place = self._place(array)
        if place is None or place[1] != self.used:
            return False
        self._latest = _none  # first: whose `_begin` it was
        self._begin, _ = place
        return True


_ALL = slice(None)


def _none() -> None:
    return None


def buffer_of(value: Any) -> GrowableBuffer | None:
    """The buffer that ``value`` is a view of, if it is an array in one."""
    try:
        buffer = value.base.base
    except AttributeError:  # dearer than asking before, but for caches it is not raised
        return None
    return buffer if type(buffer) is GrowableBuffer else None


def is_append_only(value: Any) -> bool:
    """Whether ``value`` is a read-only array in a buffer and may still be appended to."""
    buffer = buffer_of(value)
    return buffer is not None and buffer.append_only and not value.flags.writeable


def moved(old: Array, new: Array, axis: int, again: bool = False) -> Array:
    """``old`` and then ``new`` along ``axis``, counted from the front, in new memory.

    It is a buffer for twice the positions of ``old`` where that is in a buffer that may be appended to; and where that
    is longer than the result, if ``old`` may be written to, so that it is the run's, or if the result will be extended
    ``again``. Else both are joined as by Concat.

    Raises:
        Error: IRC403 if there is not enough memory; IRC421 if the shapes or element types do not fit together; IRC422
            if the result would be larger than any may be.
    """
    if old.dtype != new.dtype or len(old.shape) != len(new.shape):
        raise mismatch(old, new, axis)
    parts: Sequence[Array] = old, new
    if (old.shape[:axis], old.shape[axis + 1 :]) != (new.shape[:axis], new.shape[axis + 1 :]):
        parts = adding(parts, axis)
        if len(parts) == 2:
            raise mismatch(old, new, axis)
    size = old.shape[axis]
    length = size + new.shape[axis]
    buffer, is_ours = buffer_of(old), old.flags.writeable
    in_buffer = buffer is not None and buffer.axis == axis and (buffer.append_only or is_ours)
    if not in_buffer and (length >= 2 * size or not (again or is_ours) or old.dtype.hasobject):
        check_size((*parts[0].shape[:axis], length, *parts[0].shape[axis + 1 :]), old.dtype)
        from irc.runtime.kernels.shape import concatenate  # a family, which models without Concat do not need

        return concatenate(parts, axis)
    row = old.itemsize * prod(parts[0].shape[:axis]) * prod(parts[0].shape[axis + 1 :])
    # Twice the length, so that appending n positions one by one copies O(n) of them in all.
    capacity = min(2 * size, MAX_BYTES // row if row else length)
    if length < capacity:
        with suppress(Error):  # memory, or what a run may use of it, may do for what is needed
            return filled(parts, axis, capacity)
    return filled(parts, axis, length)


def filled(parts: Sequence[Array], axis: int, capacity: int) -> Array:
    """``parts``, one after the other, in a new buffer for ``capacity`` positions along ``axis``.

    Raises:
        Error: IRC403 if there is not so much memory; IRC422 if that is more than any array may take.
    """
    first = parts[0]
    return GrowableBuffer((*first.shape[:axis], capacity, *first.shape[axis + 1 :]), first.dtype, axis).first(parts)


def reserve(array: Array, axis: int, capacity: int) -> Array:
    """``array``, copied to where it can grow to ``capacity`` positions along ``axis`` by appends alone.

    Raises:
        Error: IRC403 if there is not so much memory; IRC422 if that is more than any array may take.
    """
    if array.dtype.hasobject:
        return array
    view = filled((array,), axis, max(capacity, array.shape[axis]))
    buffer = buffer_of(view)
    assert buffer is not None, "it has just been put into one"
    buffer.make_append_only(view)
    return view


def mismatch(old: Array, new: Array, axis: int) -> Error:
    """The error IRC421: ``new`` cannot be appended to ``old``."""
    same = old.dtype == new.dtype
    reason = "as by Concat, only the sizes along that axis may differ" if same else "the element types differ"
    return Error(
        "IRC421",
        f"{new.dtype}{list(new.shape)} cannot be appended to {old.dtype}{list(old.shape)} along axis {axis}: {reason}",
    )


def lower_append(lowering: Lowering, node: Node, ins: Slots, outs: Slots) -> Step:
    """Lower ``irc::append_``: as `append_to_slot`, with counts of what stayed and what moved."""
    (old, new), (out,), axis = ins, outs, node.attributes["axis"]
    dead = lowering.emptied(ins)

    def step(frame: Frame) -> None:
        append_to_slot(old, frame[new], out, axis, frame)
        for s in dead:
            frame[s] = None

    return step


def append_to_slot(old: int, new: Array, out: int, axis: int, frame: Frame, writes: bool = True) -> None:
    """Append ``new``, or room for it, to what slot ``old`` has; count what stays and what moves.

    Nothing that any array shows is changed. What cannot stay where it is moves, as by `moved`.
    """
    start, run = frame[old], frame[0]
    buffer = buffer_of(start)
    both = None if buffer is None or axis not in buffer.axes else buffer.extend(start, new, writes)
    if both is not None:
        run.in_place += 1
    else:
        both = moved(start, new, axis_in(axis, start.ndim), run.again)
        if both.base is not None:  # moved to a buffer; else it is Concat's new array, which is not a copy either
            run.copies += 1
            run.copied_bytes += start.nbytes
    frame[out] = both


def copy_behind(both: int, new: int, axis: int, dead: Slots, frame: Frame) -> None:
    """Copy what slot ``new`` has over the last positions of what slot ``both`` has; empty ``dead``."""
    whole, part = frame[both], frame[new]
    end, buffer = whole.shape[axis], buffer_of(whole)
    if buffer is not None:  # whose views may be read-only
        whole, end = buffer.up_to(whole)
    whole[(*[_ALL] * axis, slice(end - part.shape[axis], end))] = part
    for s in dead:
        frame[s] = None


class GrowableArray:
    """An array that can be appended to in amortised constant time, along one axis.

    `array` is a view of the contents. NumPy's functions take the object, too, and see such a view; so do indexing and
    ``len``. Operators and methods are those of `array`. Views stay as they are when it grows.

    As an input of a model that is donated, the model extends it in place while
    its capacity lasts; the output, a plain array, can be donated to the next
    run. Copies, unpickled ones too, have memory of their own, of the same
    capacity.

    Args:
        array: what it starts with; copied.
        axis: along which it grows.
        capacity: for how many positions along ``axis`` to reserve memory at least.

    Raises:
        Error: IRC403 there is not enough memory; IRC412 it is masked, or gives no array; IRC419 the capacity is no
            integer, or negative; IRC420 there is no such axis; IRC421 it holds strings, other objects or
            elements without bytes, or is not an array; IRC422 the capacity is more than any array may have.
    """

    def __init__(self, array: Any, axis: int, capacity: int = 0) -> None:
        start = _array(array, "array")
        if start.dtype.hasobject or start.dtype.kind in "SU":
            raise Error("IRC421", "a growable array cannot hold strings or other objects")
        if not start.dtype.itemsize:
            raise Error("IRC421", f"a growable array cannot hold elements without bytes, as {start.dtype} has them")
        self._axis = axis_in(checked_integer("IRC420", "axis", axis), start.ndim)
        if checked_integer("IRC419", "capacity", capacity) < 0:
            raise Error("IRC419", f"capacity must not be negative, but it is {capacity}")
        self._view = filled((start,), self._axis, max(int(capacity), start.shape[self._axis]))

    def append(self, rows: Any) -> bool:
        """Append ``rows``, an array like this one but for its size along the axis.

        Python's numbers, and lists of them, have no element type: they are converted if that loses nothing.

        Returns:
            Whether the rows were appended in place. If not, for want of capacity or because the same contents have been
            continued elsewhere, all is now in new memory of twice the size.

        Raises:
            Error: IRC403 if there is not enough memory; IRC412 if ``rows`` is masked, gives no array, or holds arrays
                of another type in a list; IRC421 if it does not fit; IRC422 if the array would be larger than any may
                be.
        """
        if type(rows) is not np.ndarray:
            rows = _array(rows, "rows", self.dtype)
        both = self._buffer.extend(self._view, rows)
        if both is None and not self._buffer.takes(rows):
            raise mismatch(self._view, rows, self._axis)
        self._view = moved(self._view, rows, self._axis) if both is None else both
        return both is not None

    @property
    def array(self) -> Array:
        """The contents: a view whose shape and strides its holder may set."""
        return self._view.view()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the contents."""
        return self._view.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self._view.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._view.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._view.size

    @property
    def nbytes(self) -> int:
        """The bytes of the contents, without the reserve."""
        return self._view.nbytes

    def __len__(self) -> int:
        return len(self._view)

    def __getitem__(self, index: Any) -> Any:
        return self._view[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self._view[index] = value

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.array, dtype=dtype, copy=copy)

    @property
    def _buffer(self) -> GrowableBuffer:
        return self._view.base.base  # type: ignore[reportOptionalMemberAccess]  # only buffers are ever viewed

    @property
    def axis(self) -> int:
        """The axis along which it grows."""
        return self._axis

    @property
    def capacity(self) -> int:
        """For how many positions along the axis there is memory."""
        return self._buffer.capacity

    def __getstate__(self) -> tuple[int, dict[str, Any]]:
        return self.capacity, vars(self)

    def __setstate__(self, state: tuple[int, dict[str, Any]]) -> None:
        capacity, attributes = state
        vars(self).update(attributes)  # those of subclasses, whose __init__ takes what it likes, too
        self._view = filled((self._view,), self._axis, capacity)

    def __repr__(self) -> str:
        return f"GrowableArray({self._view!r}, axis={self._axis}, capacity={self.capacity})"


def plain(value: Any) -> Any:
    """``value``, or the contents of a `GrowableArray`."""
    return value.array if isinstance(value, GrowableArray) else value


def _array(value: Any, name: str, dtype: np.dtype[Any] | None = None) -> Array:
    """``value`` as an array: a view of an array, or numbers converted to ``dtype`` if that loses nothing."""
    try:
        if hasattr(value, "__array__"):
            return as_array(value, name)
        for item in arrays_in(value, name):
            as_array(item, name)
        array = np.asarray(value)
        if dtype is not None and array.dtype != dtype:
            with suppress(KeyError):  # of a type that models do not have, nothing is converted
                return accept(value, Argument(name, TensorType(DType.from_numpy(dtype))), {})
        return array
    except MemoryError as error:
        raise Error("IRC403", f"out of memory: {error}", name) from None
    except ValueError as error:
        raise Error("IRC421", f"this is not an array: {error}", name) from None
    except Error as error:
        raise Error("IRC421" if error.code == "IRC415" else error.code, error.message, name) from None


def checked_integer(code: str, name: str, value: Any) -> int:
    """``value``, called ``name``, as Python's int; Error ``code`` if it is not an integer."""
    number = integer(value)
    if number is None:
        raise Error(code, f"{name} must be an integer, not {value!r}")
    return number
