"""`GrowableArray`: contents with reserve, which can be appended to in place."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir.types import DType, TensorType
from irc.runtime.arguments import Argument, accept, arrays_in, as_array
from irc.runtime.kernels.support import axis_in
from irc.runtime.memory.room import Room, filled, mismatch, moved
from irc.runtime.values import Array, integer


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
            elements without bytes, or is no array; IRC422 the capacity is more than any array may have.
    """

    def __init__(self, array: Any, axis: int, capacity: int = 0) -> None:
        start = _array(array, "array")
        if start.dtype.hasobject or start.dtype.kind in "SU":
            raise Error("IRC421", "a growable array cannot hold strings or other objects")
        if not start.dtype.itemsize:
            raise Error("IRC421", f"a growable array cannot hold elements without bytes, as {start.dtype} has them")
        self._axis = axis_in(_integer("IRC420", "axis", axis), start.ndim)
        if _integer("IRC419", "capacity", capacity) < 0:
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
        both = self._room.extend(self._view, rows)
        if both is None and not self._room.takes(rows):
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
    def _room(self) -> Room:
        return self._view.base.base  # type: ignore[reportOptionalMemberAccess]  # only rooms are ever viewed

    @property
    def axis(self) -> int:
        """The axis along which it grows."""
        return self._axis

    @property
    def capacity(self) -> int:
        """For how many positions along the axis there is memory."""
        return self._room.capacity

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
        known = None if dtype is None or array.dtype == dtype else _tensor(dtype)
        return accept(value, Argument(name, known), {}) if known else array
    except MemoryError as error:
        raise Error("IRC403", f"out of memory: {error}", name) from None
    except ValueError as error:
        raise Error("IRC421", f"this is no array: {error}", name) from None
    except Error as error:
        raise Error("IRC421" if error.code == "IRC415" else error.code, error.message, name) from None


def _tensor(dtype: np.dtype[Any]) -> TensorType | None:
    """The type of tensors of ``dtype``; None if that is not a type of numbers that irc knows."""
    try:
        found = DType.from_numpy(dtype)
    except KeyError:
        return None
    return None if found is DType.STRING else TensorType(found)


def _integer(code: str, name: str, value: Any) -> int:
    number = integer(value)
    if number is None:
        raise Error(code, f"{name} must be an integer, not {value!r}")
    return number
