"""Gathering and scattering: reading and writing elements at places that are data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.ir.objects import address
from irc.runtime.kernels.combine import combine_at
from irc.runtime.kernels.registry import at_least, computes, one_of
from irc.runtime.kernels.support import Array, axis_in, c_order, counting, fresh

if TYPE_CHECKING:
    from irc.ir import Node


def _out_of_range(error: IndexError) -> Error:
    return Error("IRC423", f"an index is out of range: {error}")


@computes("onnx::Gather")
def gather(x: Array, indices: Array, *, axis: int = 0) -> Array:
    try:
        return np.asarray(x.take(indices, axis_in(axis, x.ndim)), x.dtype)  # one string is no array
    except IndexError as error:
        raise _out_of_range(error) from None


@computes("onnx::GatherElements")
def gather_elements(x: Array, indices: Array, *, axis: int = 0) -> Array:
    try:
        return c_order(x[_along(x, indices, axis)])
    except IndexError as error:
        raise _out_of_range(error) from None


def _along(x: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """Index arrays for the elements of ``x`` whose place along ``axis`` is given, and elsewhere is their own."""
    at = axis_in(axis, x.ndim)
    fits = all(i <= d for a, (i, d) in enumerate(zip(indices.shape, x.shape, strict=False)) if a != at)
    if indices.ndim != x.ndim or not fits:
        raise Error("IRC421", f"indices of shape {list(indices.shape)} do not fit data of shape {list(x.shape)}")
    own = np.ogrid[tuple(slice(0, d) for d in indices.shape)]
    return (*own[:at], indices, *own[at + 1 :])


@computes("onnx::GatherND", batch_dims=at_least("batch_dims", 0, 0))
def gather_nd(x: Array, indices: Array, *, batch_dims: int) -> Array:
    """The last dimension of the indices holds index tuples, after ``batch_dims`` dimensions shared with the data."""
    batch = x.shape[:batch_dims]
    depth = indices.shape[-1] if indices.ndim else 0
    if indices.ndim <= batch_dims or depth > x.ndim - batch_dims or indices.shape[:batch_dims] != batch:
        raise Error("IRC421", f"indices of shape {list(indices.shape)} do not fit data of shape {list(x.shape)}")
    own = np.ogrid[tuple(slice(0, d) for d in batch)] if batch else ()
    spread = (1,) * (indices.ndim - 1 - batch_dims)
    try:
        found = x[(*(o.reshape(o.shape + spread) for o in own), *np.moveaxis(indices, -1, 0))]
        return fresh(np.asarray(found, x.dtype), x)  # a single index tuple is basic indexing, which gives a view
    except IndexError as error:
        raise _out_of_range(error) from None


_COMBINED: dict[str, np.ufunc] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
"""By reduction: what combines what is there and what comes."""


def _write(out: Array, index: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    try:
        if reduction == "none":
            out[index] = updates if updates.ndim else updates[()]  # else an element of strings would be an array
        else:
            combine_at(_COMBINED[reduction], out, index, updates)
    except IndexError as error:
        raise _out_of_range(error) from None
    return out


def _begun(x: Array, out: Array | None) -> Array:
    """The elements of ``x``, to write others among them: in ``out`` if given, which may be that memory itself."""
    if out is None:
        return np.array(x, order="C")
    if out is not x and (address(out) != address(x) or out.strides != x.strides):
        np.copyto(out, x)
    return out


_REDUCTION = one_of("reduction", "none", ("none", *_COMBINED))


@computes("onnx::Scatter", "onnx::ScatterElements", reduction=_REDUCTION)
def scatter_elements(
    x: Array, indices: Array, updates: Array, out: Array | None = None, *, axis: int = 0, reduction: str
) -> Array:
    if updates.shape != indices.shape:
        raise Error("IRC421", f"updates of shape {list(updates.shape)} for indices of {list(indices.shape)}")
    places = _along(x, indices, axis)
    return _write(_begun(x, out), places, updates, reduction)


@computes("onnx::ScatterND", reduction=_REDUCTION)
def scatter_nd(x: Array, indices: Array, updates: Array, out: Array | None = None, *, reduction: str) -> Array:
    depth = indices.shape[-1] if indices.ndim else 0
    if not indices.ndim or depth > x.ndim or updates.shape != indices.shape[:-1] + x.shape[depth:]:
        shapes = f"{list(indices.shape)} and {list(updates.shape)}"
        raise Error("IRC421", f"indices and updates of shapes {shapes} do not fit data of shape {list(x.shape)}")
    return _write(_begun(x, out), tuple(np.moveaxis(indices, -1, 0)), updates, reduction)


@computes("irc::slice_scatter")
def slice_scatter(x: Array, updates: Array, out: Array | None = None, *, starts: list[int], steps: list[int]) -> Array:
    """A copy of the first input in which the elements at ``start + i * step`` of each axis are the second input's."""
    return slice_scatter_(_begun(x, out), updates, starts=starts, steps=steps)


@computes("irc::slice_scatter_")
def slice_scatter_(x: Array, updates: Array, *, starts: list[int], steps: list[int]) -> Array:
    """As ``irc::slice_scatter``, written into the first input itself."""
    ends = [start + step * n for start, step, n in zip(starts, steps, updates.shape, strict=False)]
    fits = len(starts) == len(steps) == x.ndim == updates.ndim and min([*steps, 1]) > 0 and min([*starts, 0]) >= 0
    if not fits or any(n and e - s >= d for n, e, s, d in zip(updates.shape, ends, steps, x.shape, strict=True)):
        raise Error(
            "IRC421",
            f"a slice of shape {list(updates.shape)} from {starts} by {steps} does not fit {list(x.shape)}",
        )
    if not x.flags.writeable:
        raise Error("IRC431", "an in-place operator would write into memory that may not be changed")
    x[(*map(slice, starts, ends, steps), ...)] = updates  # without the ellipsis, a string would become an array
    return x


@computes("onnx::TensorScatter", mode=one_of("mode", "linear", ("linear", "circular")))
def tensor_scatter(
    cache: Array, update: Array, starts: Array | None = None, out: Array | None = None, *, axis: int = -2, mode: str
) -> Array:
    """Writes ``update`` into a cache along ``axis``, from an index for each sample on; circular: wrapping around."""
    at = axis_in(axis, cache.ndim)
    rest = (*cache.shape[:at], *cache.shape[at + 1 :])
    if at == 0 or update.ndim != cache.ndim or (*update.shape[:at], *update.shape[at + 1 :]) != rest:
        raise Error("IRC421", f"an update of shape {list(update.shape)} does not fit {list(cache.shape)}")
    length, capacity = update.shape[at], cache.shape[at]
    first = np.zeros(cache.shape[0], np.int64) if starts is None else starts
    if first.shape != cache.shape[:1]:
        raise Error("IRC421", f"starts of shape {list(first.shape)} do not fit {len(cache)} samples")
    if mode == "circular" and capacity:
        first = first % capacity
    elif (first < 0).any() or (first > capacity - length).any():
        raise Error("IRC423", f"{length} elements from {first.tolist()} on do not fit a cache of {capacity}")
    places = (first[:, None] + counting(length)) % max(capacity, 1)
    result = _begun(cache, out)
    np.moveaxis(result, at, 1)[counting(len(result))[:, None], places] = np.moveaxis(update, at, 1)
    return result


def _time_axis(node: Node) -> int:
    batch, time = node.attributes.get("batch_axis", 1), node.attributes.get("time_axis", 0)
    if sorted((batch, time)) != [0, 1]:
        raise Error("IRC320", f"batch_axis {batch} and time_axis {time} must be 0 and 1, or 1 and 0")
    return time


@computes("onnx::ReverseSequence", time_axis=_time_axis)
def reverse_sequence(x: Array, lengths: Array, *, time_axis: int) -> Array:
    """The first ``lengths[i]`` steps of sample i in reverse, the others as they are."""
    if x.ndim < 2 or lengths.shape != (x.shape[1 - time_axis],):
        raise Error("IRC421", f"{list(lengths.shape)} lengths do not fit the shape {list(x.shape)}")
    if ((lengths < 0) | (lengths > x.shape[time_axis])).any():
        raise Error("IRC424", f"a length in {lengths.tolist()} is not between 0 and {x.shape[time_axis]}")
    step = counting(x.shape[time_axis])
    source = np.where(step < lengths[:, None], lengths[:, None] - 1 - step, step)  # [sample, step]
    if time_axis == 0:
        return c_order(x[source.T, counting(x.shape[1])])
    return c_order(x[counting(x.shape[0])[:, None], source])
