"""Gathering and scattering: reading and writing elements at places that are data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from irc.errors import Error
from irc.ir.objects import address
from irc.runtime.kernels.combine import combine_at
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, axis_in, c_order, counting, fresh

if TYPE_CHECKING:
    from irc.ir import Node


def _out_of_range(error: IndexError) -> Error:
    return Error("IRC423", f"an index is out of range: {error}")


@kernel("onnx::Gather")
def gather(node: Node) -> Kernel:
    axis: int = node.attributes.get("axis", 0)

    def run(x: Array, indices: Array) -> Array:
        try:
            return np.asarray(x.take(indices, axis_in(axis, x.ndim)), x.dtype)  # one string is no array
        except IndexError as error:
            raise _out_of_range(error) from None

    return run


@kernel("onnx::GatherElements")
def gather_elements(node: Node) -> Kernel:
    axis: int = node.attributes.get("axis", 0)

    def run(x: Array, indices: Array) -> Array:
        try:
            return c_order(x[_along(x, indices, axis)])
        except IndexError as error:
            raise _out_of_range(error) from None

    return run


def _along(x: Array, indices: Array, axis: int) -> tuple[Array, ...]:
    """Index arrays for the elements of ``x`` whose place along ``axis`` is given, and elsewhere is their own."""
    at = axis_in(axis, x.ndim)
    fits = all(i <= d for a, (i, d) in enumerate(zip(indices.shape, x.shape, strict=False)) if a != at)
    if indices.ndim != x.ndim or not fits:
        raise Error("IRC421", f"indices of shape {list(indices.shape)} do not fit data of shape {list(x.shape)}")
    own = np.ogrid[tuple(slice(0, d) for d in indices.shape)]
    return (*own[:at], indices, *own[at + 1 :])


@kernel("onnx::GatherND")
def gather_nd(node: Node) -> Kernel:
    """The last dimension of the indices holds index tuples, after ``batch_dims`` dimensions shared with the data."""
    batch_dims: int = node.attributes.get("batch_dims", 0)
    if batch_dims < 0:
        raise Error("IRC320", f"batch_dims is {batch_dims}; it must not be negative")

    def run(x: Array, indices: Array) -> Array:
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

    return run


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


def _reduction(node: Node) -> str:
    reduction = node.attributes.get("reduction", "none")
    if reduction != "none" and reduction not in _COMBINED:
        raise Error(
            "IRC320", f"reduction is {reduction!r}; it must be 'none' or one of {', '.join(map(repr, _COMBINED))}"
        )
    return reduction


@kernel("onnx::Scatter")
@kernel("onnx::ScatterElements")
def scatter_elements(node: Node) -> Kernel:
    axis: int = node.attributes.get("axis", 0)
    reduction = _reduction(node)

    def run(x: Array, indices: Array, updates: Array, out: Array | None = None) -> Array:
        if updates.shape != indices.shape:
            raise Error("IRC421", f"updates of shape {list(updates.shape)} for indices of {list(indices.shape)}")
        places = _along(x, indices, axis)
        return _write(_begun(x, out), places, updates, reduction)

    return run


@kernel("onnx::ScatterND")
def scatter_nd(node: Node) -> Kernel:
    reduction = _reduction(node)

    def run(x: Array, indices: Array, updates: Array, out: Array | None = None) -> Array:
        depth = indices.shape[-1] if indices.ndim else 0
        if not indices.ndim or depth > x.ndim or updates.shape != indices.shape[:-1] + x.shape[depth:]:
            shapes = f"{list(indices.shape)} and {list(updates.shape)}"
            raise Error("IRC421", f"indices and updates of shapes {shapes} do not fit data of shape {list(x.shape)}")
        return _write(_begun(x, out), tuple(np.moveaxis(indices, -1, 0)), updates, reduction)

    return run


@kernel("irc::slice_scatter")
def slice_scatter(node: Node) -> Kernel:
    """A copy of the first input in which the elements at ``start + i * step`` of each axis are the second input's."""
    write = slice_scatter_(node)

    def run(x: Array, updates: Array, out: Array | None = None) -> Array:
        return write(_begun(x, out), updates)

    return run


@kernel("irc::slice_scatter_")
def slice_scatter_(node: Node) -> Kernel:
    """As ``irc::slice_scatter``, written into the first input itself."""
    starts: list[int] = node.attributes["starts"]
    steps: list[int] = node.attributes["steps"]

    def run(x: Array, updates: Array) -> Array:
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

    return run


@kernel("onnx::TensorScatter")
def tensor_scatter(node: Node) -> Kernel:
    """Writes ``update`` into a cache along ``axis``, from an index for each sample on; circular: wrapping around."""
    axis: int = node.attributes.get("axis", -2)
    mode = node.attributes.get("mode", "linear")
    if mode not in ("linear", "circular"):
        raise Error("IRC320", f"TensorScatter's mode is {mode!r}; it must be 'linear' or 'circular'")

    def run(cache: Array, update: Array, starts: Array | None = None, out: Array | None = None) -> Array:
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

    return run


@kernel("onnx::ReverseSequence")
def reverse_sequence(node: Node) -> Kernel:
    """The first ``lengths[i]`` steps of sample i in reverse, the others as they are."""
    batch_axis: int = node.attributes.get("batch_axis", 1)
    time_axis: int = node.attributes.get("time_axis", 0)
    if sorted((batch_axis, time_axis)) != [0, 1]:
        raise Error("IRC320", f"batch_axis {batch_axis} and time_axis {time_axis} must be 0 and 1, or 1 and 0")

    def run(x: Array, lengths: Array) -> Array:
        if x.ndim < 2 or lengths.shape != (x.shape[batch_axis],):
            raise Error("IRC421", f"{list(lengths.shape)} lengths do not fit the shape {list(x.shape)}")
        if ((lengths < 0) | (lengths > x.shape[time_axis])).any():
            raise Error("IRC424", f"a length in {lengths.tolist()} is not between 0 and {x.shape[time_axis]}")
        step = counting(x.shape[time_axis])
        source = np.where(step < lengths[:, None], lengths[:, None] - 1 - step, step)  # [sample, step]
        if time_axis == 0:
            return c_order(x[source.T, counting(x.shape[1])])
        return c_order(x[counting(x.shape[0])[:, None], source])

    return run
