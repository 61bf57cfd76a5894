"""Elements joined by the group that each belongs to."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import is_floating
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.combine import combine_at
from irc.runtime.kernels.support import Array, axis_in, check_size, counting

_REDUCTIONS: dict[str, tuple[np.ufunc, float]] = {
    "sum": (np.add, 0),
    "mean": (np.add, 0),
    "prod": (np.multiply, 1),
    "max": (np.maximum, -np.inf),
    "min": (np.minimum, np.inf),
}
"""By name: how two elements are joined, and what nothing is."""


def _of_segments(
    x: Array,
    reduce: str,
    lengths: Array | None = None,
    indices: Array | None = None,
    offsets: Array | None = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: Any = None,
) -> Array:
    """Segments of neighbours along ``axis``: of the ``lengths`` given, or from one offset to the next."""
    at = axis_in(axis, x.ndim)
    if reduce not in _REDUCTIONS or not is_floating(x.dtype) or not x.size:
        raise Error("IRC424", f"segment_reduce has no {reduce!r} of {x.dtype.name}{list(x.shape)}")
    if offsets is not None:
        lengths = np.diff(offsets, axis=-1)
    if indices is not None or lengths is None or lengths.dtype.kind != "i":
        raise Error("IRC424", "segment_reduce takes lengths or offsets, integers")
    if lengths.ndim != at + 1 or lengths.shape[:at] != x.shape[:at]:
        raise Error("IRC421", f"segments of shape {list(lengths.shape)} do not fit {list(x.shape)} along {at}")
    if (lengths < 0).any() or (lengths.sum(-1) != x.shape[at]).any():
        raise Error("IRC424", f"lengths of segments must not be negative, and amount to {x.shape[at]}")
    join, nothing = _REDUCTIONS[reduce]
    shape = check_size((*lengths.shape, *x.shape[at + 1 :]), x.dtype)
    found = np.full(shape, nothing if initial is None else initial, np.promote_types(x.dtype, np.float32))
    for place in np.ndindex(lengths.shape[:-1]):
        sizes: Array = lengths[place]
        combine_at(join, found[place], [counting(sizes.size).repeat(sizes)], x[place])
    if reduce == "mean":
        counts = lengths.reshape(*lengths.shape, *(1,) * (found.ndim - lengths.ndim))
        empty = np.nan if initial is None else found
        found = np.where(counts > 0, found / np.maximum(counts, 1), empty)
    return found.astype(x.dtype)


table({"segment_reduce": _of_segments})
