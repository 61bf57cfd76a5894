"""Which arrays share memory, by their addresses, as named tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from irc.errors import Error
from irc.ir.objects import Strided
from irc.ir.tensor import Array, Tensor, free_name
from irc.ir.types import DType


def named_tensors(arrays: Mapping[str, Array], taken: Iterable[str] = ()) -> dict[str, Tensor | Strided]:
    """A tensor for each array, with copied contents.

    Names of one array have one tensor. Different arrays that overlap, even if they show the same, become views of one
    storage, named after the first of them: each has a shape and strides of its own, which may change.

    Args:
        arrays: arrays by name.
        taken: names that may not be used.

    Raises:
        Error: IRC143 if arrays of different element types overlap.
    """
    names = set(taken)
    found: dict[str, Tensor | Strided] = {}
    known: dict[int, str] = {}
    for name, array in arrays.items():
        known.setdefault(id(array), name)
    for group in _overlapping({name: arrays[name] for name in known.values()}):
        first = arrays[group[0]]
        key = free_name(group[0], names)
        names.add(key)
        for other in group[1:]:
            if arrays[other].dtype != first.dtype:
                message = f"it shares memory with {group[0]!r}, whose elements are of another type"
                raise Error("IRC143", message, f"attribute {other!r}")
        if len(group) == 1 and is_dense(first):
            found[group[0]] = Tensor(_dtype(first, group[0]), first.shape, name=key, array=first.copy(order="K"))
        else:
            found.update(_views({name: arrays[name] for name in group}, key))
    return {name: found[known[id(array)]] for name, array in arrays.items()}


def _views(arrays: dict[str, Array], key: str) -> dict[str, Strided]:
    """Views of one storage that spans all memory between the first and the last element of ``arrays``."""
    bounds = [_bounds(array) for array in arrays.values()]
    low, high = min(a for a, _ in bounds), max(b for _, b in bounds)
    name, array = next(iter(arrays.items()))
    item = array.itemsize
    storage = np.zeros((high - low) // item, array.dtype)
    views: dict[str, Strided] = {}
    tensor = Tensor(_dtype(array, name), storage.shape, name=key, array=storage)
    for name, array in arrays.items():
        start, _ = _bounds(array)
        steps = tuple(s // item for s in array.strides)
        offset = (address(array) - low) // item
        if (start - low) % item or any(s % item or s < 0 for s in array.strides):
            raise Error("IRC143", "its elements lie at odd places in memory; copy it first", f"attribute {name!r}")
        views[name] = Strided(tensor, array.shape, steps, offset)
        np.copyto(views[name].of(storage), array)
    return views


def _overlapping(arrays: Mapping[str, Array]) -> list[list[str]]:
    """Names of arrays whose ranges of memory overlap, in groups."""
    groups: list[list[str]] = []
    end = -1
    order = {name: i for i, name in enumerate(arrays)}
    for name in sorted(arrays, key=lambda n: (arrays[n].size > 0, _bounds(arrays[n]))):  # empty ones first
        low, high = _bounds(arrays[name])
        if low < end and arrays[name].size:
            groups[-1].append(name)
        else:
            groups.append([name])
        end = max(end, high) if arrays[name].size else end
    return [sorted(group, key=order.__getitem__) for group in groups]


def _bounds(array: Array) -> tuple[int, int]:
    low, high = np.lib.array_utils.byte_bounds(array)
    return low, high


def address(array: Array) -> int:
    """Where in memory the first element lies."""
    return array.__array_interface__["data"][0]


def is_dense(array: Array) -> bool:
    """Whether the elements fill their range of memory, each at a place of its own."""
    low, high = _bounds(array)
    extent = 1
    for stride, size in sorted(zip(array.strides, array.shape, strict=True)):
        if size > 1:
            if stride != extent * array.itemsize:
                return False
            extent *= size
    return not array.size or high - low == math.prod(array.shape) * array.itemsize


def _dtype(array: Array, name: str) -> DType:
    try:
        return DType.from_numpy(array.dtype)
    except KeyError:
        raise Error("IRC143", f"irc has no element type for {array.dtype}", f"attribute {name!r}") from None
