"""Scan outputs of loops: what each trip yields, stacked along a new axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.support import axis_in, check_size
from irc.runtime.values import Array, describe, is_array

if TYPE_CHECKING:
    from irc.ir.types import TensorType

_FIRST_ROWS = 16


class Stack:
    """Collects equally shaped arrays as rows of one.

    Rows are copied when they come, so that later trips may write where they
    were. The room for them doubles when it is used up.

    Args:
        row: the type of a row, needed if there is no trip; see `irc.ir.ops.loops.row_type`.
        rows: the most rows that can come; None: unknown.
    """

    def __init__(self, row: TensorType, rows: int | None = None) -> None:
        self._row = row
        self._most = rows
        self._buffer: Array | None = None
        self._count = 0

    def append(self, row: Any) -> None:
        """Add a copy of ``row``; Error IRC432 if it is no tensor, or its type or shape differs from the first's."""
        if not is_array(row):
            raise Error("IRC432", f"a scan output must be a tensor in each trip; got {describe(row)}")
        buffer = self._buffer
        if buffer is not None and (row.shape != buffer.shape[1:] or row.dtype != buffer.dtype):
            first = describe(buffer[0])
            raise Error("IRC432", f"a scan output was {first} in the first trip and is {describe(row)} in a later one")
        if buffer is None or self._count == len(buffer):
            rows = 2 * self._count or _FIRST_ROWS
            rows = rows if self._most is None else min(self._most, rows)
            larger = np.empty(check_size((rows, *row.shape), row.dtype), row.dtype)
            if buffer is not None:
                larger[: self._count] = buffer
            buffer = self._buffer = larger
        buffer[self._count, ...] = row  # without the ellipsis, a string would become an array
        self._count += 1

    def result(self, axis: int = 0, backwards: bool = False) -> Array:
        """All rows along ``axis`` of the result, the last first if ``backwards``; C order, not shared.

        With no rows, the declared type gives the shape; sizes that it does not state are 0, as in ONNX Runtime.
        """
        if self._buffer is None:
            return self._no_rows(axis)
        rows = self._buffer[: self._count]
        if backwards:
            rows = rows[::-1]
        axis = axis_in(axis, rows.ndim)
        if axis or backwards:
            return np.ascontiguousarray(np.moveaxis(rows, 0, axis))
        return rows if self._count == len(self._buffer) else rows.copy()

    def _no_rows(self, axis: int) -> Array:
        if self._row.dtype is None:
            raise Error(
                "IRC432",
                "no trip was made, and nothing says of what element type a scan output is: declare it in the body, "
                "or inline the function that the loop is in",
            )
        shape = [d if isinstance(d, int) else 0 for d in self._row.shape or ()]
        shape.insert(axis_in(axis, len(shape) + 1), 0)
        return np.empty(check_size(shape, self._row.dtype.numpy), self._row.dtype.numpy)
