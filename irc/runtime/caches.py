"""The caches of sessions: what the model says of them before any step, and the check of those that a step returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.ir.ops.joins import APPEND, joined
from irc.runtime.arguments import accept
from irc.runtime.kernels.support import check_size
from irc.runtime.outputs import copied
from irc.runtime.results import results_of, value_at
from irc.runtime.values import describe

if TYPE_CHECKING:
    from irc.ir import Node, Value
    from irc.ir.types import Dim, Shape
    from irc.runtime.arguments import Argument
    from irc.runtime.execution import Counters
    from irc.runtime.inputs import Held
    from irc.runtime.model import CompiledModel
    from irc.runtime.values import Array

_TAKING_PARTS = frozenset(
    {"onnx::Slice", "onnx::Gather", "onnx::Split"}
    | {f"aten::{name}" for name in ("slice", "narrow", "index", "index_select", "__getitem__")}
)
"""Operators whose results may be parts of their operand. (Elements of lists are what torch's split and chunk give.)"""

LENT_BYTES = 16384
"""Smaller caches are copied: that takes no longer than lending them, and a step that fails leaves them."""


class Caches:
    """The caches of the sessions of a model.

    Args:
        model: the model.
        pairs: from input to output.

    Attributes:
        paths: where among the outputs each cache is returned, in the order of the pairs.
        grow: whether a cache may have another size in another step.
        overwritten: the names of the caches that are lent to steps, which may write to them.
    """

    def __init__(self, model: CompiledModel, pairs: Mapping[str, str]) -> None:
        results = results_of(model.outputs)
        self.paths = tuple(results[output].path for output in pairs.values())
        made = {name: value_at(model.graph.outputs, path) for name, path in zip(pairs, self.paths)}
        self._inputs = {a.name: a for a in model.inputs}
        self._arguments = {name: self._inputs[name] for name in pairs}
        self._axes = {name: _grown_axis(value, self._arguments[name]) for name, value in made.items()}
        others = (a.shape for a in model.inputs if a.name not in pairs)
        self._stated = frozenset(dim for shape in others for dim in shape or () if isinstance(dim, str))
        shapes = [a.shape for a in self._arguments.values()]
        self.grow = any(shape is None or not all(isinstance(d, int) for d in shape) for shape in shapes)
        overwrites = model.runs.lowerer.writes.overwrites
        self.overwritten = frozenset(name for name in pairs if overwrites(made[name], name))

    def axis(self, name: str, array: Array) -> int | None:
        """The axis along which the model appends to ``array``, the cache ``name``; None if it does not append."""
        axis, rank = self._axes[name], array.ndim
        return None if axis is None or not -rank <= axis < rank else axis % rank

    def empty(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """Empty caches, for those that the first step is not given.

        Raises:
            Error: IRC418 for one that may be of several shapes.
        """
        sizes: dict[str, int] = {}
        for name, value in feeds.items():
            shape = self._inputs[name].shape if name in self._inputs else None
            if shape is None:
                continue
            with suppress(ValueError):  # a ragged list: the model says what is wrong with it
                sizes.update((dim, n) for dim, n in zip(shape, np.shape(value)) if isinstance(dim, str))
        absent = [a for name, a in self._arguments.items() if name not in feeds and not a.optional]
        return {a.name: _empty(a, sizes) for a in absent}

    def check(self, found: dict[str, Array], given: Mapping[str, Any], held: Held, counters: Counters) -> None:
        """Check what a step that was ``given`` something has ``found``, and put back what it left out.

        Raises:
            Error: IRC417 for an array that cannot be the input in the next step.
        """
        for name, array in found.items():
            before = held.arrays.get(name)
            if before is None or array.dtype is not before.dtype or array.ndim != before.ndim:
                _check_fit(array, self._arguments[name])
            if not array.size and name in given and name not in held.lent:
                found[name] = self._unless_left_out(array, name, given[name], held, counters)

    def _unless_left_out(self, array: Array, name: str, given: Any, held: Held, counters: Counters) -> Array:
        """``array``, which has no elements; or what the step was ``given``, if ``array`` is only a substitute for it.

        Exporters merge decoders so: the branch that uses an encoder's output does not return it, but a constant with a
        0 in its shape. A cache that has become empty, however, differs from what it was along one axis only, whose size
        no other input states.
        """
        argument = self._arguments[name]
        before = accept(given, argument, {})
        if not before.size or before.ndim != array.ndim:
            return array
        dims = argument.shape or (None,) * array.ndim
        differing = [dim for dim, m, n in zip(dims, before.shape, array.shape) if m != n]
        if len(differing) == 1 and not isinstance(differing[0], int) and differing[0] not in self._stated:
            return array
        if name not in held.arrays:
            before = copied(before, counters)
            before.flags.writeable = False
        return before


def _grown_axis(output: Value, cache: Argument) -> int | None:
    """The axis along which ``output`` is ``cache`` with more behind it, through any branch or loop; None if it is not.

    A Concat counts only if it appends to the input itself. `irc::append_` may extend something made from the input
    but not a part of it; a part is a sliding window.
    """
    for value, node in _sources(output):
        join = joined(node)
        if join is not None:
            first = _first(value)
            if first.name == cache.name or (node.kind == APPEND and not _is_part(first, cache, join.axis)):
                return join.axis
    return None


def _sources(value: Value) -> Iterator[tuple[Value, Node]]:
    """``value``, and the results in branches and loops that it may be, each with the node that it is a result of."""
    pending = [value]
    seen: set[Value] = set()
    while pending:
        value = pending.pop()
        node = value.node
        if node is not None and value not in seen:
            seen.add(value)
            yield value, node
            place = node.outputs.index(value) - len(node.outputs)  # from the end: a loop returns its condition first
            pending += [block.returns[place] for block in node.blocks]


def _first(value: Value) -> Value:
    """The value that others are appended to in ``value``."""
    while value.node is not None and (join := joined(value.node)) is not None:
        value = join.parts[0]
    return value


def _is_part(value: Value, cache: Argument, axis: int) -> bool:
    """Whether ``value``, in some branch, may be less than all that ``cache`` is along ``axis``."""
    size = _size(cache.shape, axis)
    if isinstance(size, int):
        return True  # it does not grow: what is put behind it takes the place of something
    if size is not None and _size(value.type.shape, axis) == size:
        return False
    taken = (found for found, node in _sources(value) if node.kind in _TAKING_PARTS)
    return any(size is None or _size(found.type.shape, axis) != size for found in taken)


def _size(shape: Shape | None, axis: int) -> Dim:
    """The size along ``axis``, or its name; None if that is not known."""
    return shape[axis] if shape is not None and -len(shape) <= axis < len(shape) else None


def _check_fit(array: Array, argument: Argument) -> None:
    """Raise if ``array``, an output, cannot be the input: a model's statements about its outputs may be wrong."""
    shape, dtype = argument.shape, argument.dtype
    if (dtype is not None and array.dtype != dtype) or (shape is not None and array.ndim != len(shape)):
        raise Error(
            "IRC417",
            f"the output for it is {describe(array)}, which is not the type of the input, {argument.type}",
            argument.where,
        )


def _empty(argument: Argument, sizes: Mapping[str, int]) -> Array:
    """A cache of which nothing is there yet."""
    where = argument.where
    if argument.dtype is None or argument.shape is None:
        raise Error("IRC418", "the first step needs this cache: its type is not known", where)
    shape = [dim if isinstance(dim, int) else sizes.get(str(dim)) for dim in argument.shape]
    if shape.count(None) > 1:
        raise Error(
            "IRC418",
            f"the first step needs this cache, {argument.type}: more than one of its sizes is open, an empty one "
            "should be given",
            where,
        )
    filler = "" if argument.dtype.hasobject else 0
    array = np.full(check_size([n or 0 for n in shape], argument.dtype), filler, argument.dtype)
    array.flags.writeable = False  # as all that is held
    return array
