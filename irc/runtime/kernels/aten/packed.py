"""Packed sequences of several lengths: all first elements, then all second ones, and so on, longer sequences first."""

from __future__ import annotations

from typing import Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.aten.element_types import INT64, element_of
from irc.runtime.kernels.aten.registering import table
from irc.runtime.kernels.support import Array, check_size, counting


def alive(sizes: Array, batch: int) -> Array:
    """Of each step and sequence, whether the sequence goes on; ``sizes`` are how many do, step by step."""
    return np.asarray(counting(batch) < sizes[:, None])


def _pack(x: Array, lengths: Array, batch_first: bool) -> tuple[Array, Array]:
    steps = x.swapaxes(0, 1) if batch_first else x
    if x.ndim < 2 or not x.size or lengths.ndim != 1 or lengths.dtype != INT64 or lengths.size != steps.shape[1]:
        given = f"{lengths.dtype.name}{list(lengths.shape)}"
        raise Error("IRC421", f"a tensor of shape {list(x.shape)} holds no sequences of which the lengths are {given}")
    if lengths[-1] < 1 or lengths[0] > steps.shape[0] or (np.diff(lengths) > 0).any():
        raise Error("IRC424", f"lengths must be from {steps.shape[0]} down to 1, longer ones first")
    sizes = (lengths > counting(int(lengths[0]))[:, None]).sum(1)
    return steps[: len(sizes)][alive(sizes, lengths.size)], sizes


def _pad(data: Array, sizes: Array, batch_first: bool, padding: Any, total: int) -> tuple[Array, Array]:
    if sizes.ndim != 1 or not sizes.size or sizes.dtype != INT64 or sizes.sum() != len(data) or sizes[-1] < 1:
        raise Error("IRC421", f"{len(data)} packed elements are no steps of sizes {sizes.tolist()[:8]}")
    if 0 < total < sizes.size:
        raise Error("IRC424", f"sequences of length {sizes.size} cannot be padded to length {total}")
    goes_on = alive(sizes, int(sizes[0]))
    shape = check_size((max(total, sizes.size), *goes_on.shape[1:], *data.shape[1:]), data.dtype)
    out = np.full(shape, element_of(padding, data.dtype))
    out[: sizes.size][goes_on] = data
    return out.swapaxes(0, 1) if batch_first else out, goes_on.sum(0)


table({"_pack_padded_sequence": _pack, "_pad_packed_sequence": _pad})
