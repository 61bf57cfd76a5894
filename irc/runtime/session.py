"""Decoding step by step: outputs of one step become inputs of the next.

A session holds the caches as read-only arrays that only `irc::append_` may
extend, and only behind the positions that any view shows. So a session can return
them, and share them with its forks, without copying: the first continuation of a
prefix stays in place, later ones get memory of their own. Caches of fixed size, in
which each step writes some elements, are donated to the step if nothing else refers to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from threading import RLock
from typing import Any

import numpy as np

from irc.errors import Error
from irc.ir import Node, Value
from irc.ir.types import Dim, Shape, TensorType, may_be_equal
from irc.ops.axes import APPEND, joined
from irc.runtime.arena import GrowingKeys
from irc.runtime.arguments import Argument, accept, named, results_of, value_at
from irc.runtime.array_memory import is_alone, is_shown_alone
from irc.runtime.boundary import Held, copied
from irc.runtime.execution import Counters
from irc.runtime.growable import buffer_of, checked_integer, reserve
from irc.runtime.kernels.support import check_size
from irc.runtime.limits import Limits
from irc.runtime.model import CompiledModel, check_number
from irc.runtime.values import Array, describe, is_mapping


class Session:
    """A model, and the caches that each of its steps passes to the next.

    Args:
        model: the compiled model. Several sessions may share one.
        pairs: input name -> name of the output that it is in the next step, ``output.1`` for an element of one that is
            a tuple. By default, those called
            ``past_key_values.*`` and ``present.*``, ``past_*`` and ``present_*``, or ``past.*`` and ``present.*``.
        capacity: for how many positions caches that the model appends to, or that have grown in the first step, get
            memory then: none is copied until it is full. Without, and beyond, they move whenever their length has
            doubled.

    Attributes:
        pairs: as given or found.
        capacity: as given.
        counters: what the last step did.

    Raises:
        Error: IRC417 there is no such input or output, they are not tensors of one type, or none are found; IRC419 the
            capacity is not a positive integer.
    """

    def __init__(
        self, model: CompiledModel, pairs: Mapping[str, str] | None = None, capacity: int | None = None
    ) -> None:
        if not isinstance(model, CompiledModel):  # type: ignore[reportUnnecessaryIsInstance]  # callers may not be typed
            raise Error("IRC417", f"a session needs what irc.compile or irc.load gives, not a {type(model).__name__}")
        self._model = model
        self.capacity = check_number("capacity", capacity)
        self.pairs = find_bindings(model) if pairs is None else check_bindings(model, pairs)
        self._caches = Caches(model, self.pairs)
        self._keys = GrowingKeys() if self._caches.grow else None
        self._has_failed = False  # the step before, which may have made room behind what is held
        self._due: frozenset[str] = frozenset(self.pairs)  # those that get the capacity in the next step
        self._held: Mapping[str, Array] = {}
        self._donated: Mapping[str, Array] = {}  # to the step that is going on, or to one that has failed
        self._lock = RLock()
        self._is_stepping = False
        self.counters = Counters()

    @property
    def caches(self) -> dict[str, Array]:
        """The caches by input name, read-only; none before the first step. Later steps do not change them.

        Raises:
            Error: as `fork`.
        """
        return {name: array.view() for name, array in self._shown().items()}

    def run(
        self,
        feeds: Mapping[str, Any],
        outputs: Iterable[str] | None = None,
        *,
        limits: Limits | None = None,
        threads: int | None = None,
    ) -> dict[str, Any]:
        """Make a step.

        Args:
            feeds: as for `CompiledModel.run`, without the caches. Those that are there nevertheless are taken instead
                of what the session has. Caches that the first step is not given are empty: sizes with the names that
                other inputs' have are as there, one more may be open and is 0. (Where none is open, they are zeros.)
                Where a step gives nothing in a cache's place (a constant of no elements), the cache stays as it was.
            outputs: names of the outputs wanted; all by default. Caches among them are read-only; one of fixed size
                that is kept until the next step makes that copy it, instead of writing its elements into it.
            limits: as for `CompiledModel.run`.
            threads: as for `CompiledModel.run`.

        Raises:
            Error: as `CompiledModel.run`; IRC403 there is not so much memory as the capacity asks for, and IRC422
                no array can be so large; IRC418 a cache is not given, and more than one of its sizes is open; IRC436
                this very thread is in the middle of a step. The caches are then what they were, but for those of fixed
                size that the step, once begun, writes to in place: until the session is reset, or given these, all
                that needs them is IRC437.
        """
        with self._lock:
            self._check_idle()
            try:
                self._is_stepping = True
                return self._step(feeds, outputs, limits, threads)
            finally:
                self._is_stepping = False

    def reset(self) -> None:
        """Forget the caches: the next step is a first one."""
        with self._lock:
            self._check_idle()
            self._held, self._due, self._donated = {}, frozenset(self.pairs), {}

    def truncate(self, length: int) -> None:
        """Go back: caches that grow keep their first ``length`` positions, or all but the last ``-length``.

        Where nothing else shows the others (no output that somebody keeps, no fork), the next step puts its own in
        their place; else it copies. All other caches stay as they are. For those of an encoder that is right; to go
        back with windows that slide, or with states that each step recomputes, keep a `fork`.

        Raises:
            Error: IRC419 there are no caches that grow, no step was made, or they have too few positions; IRC436
                this very thread is in the middle of a step; IRC437 one has failed that wrote to caches. The caches are
                then what they were.
        """
        with self._lock:
            self._check_idle()
            shorter = self._cut(length)
            self._held = {**self._held, **shorter}  # first, so that nothing longer can be taken from here any more
            for name, array in shorter.items():
                buffer = buffer_of(array)
                if buffer is None or not buffer.go_back(array):  # another view may show what is to be overwritten
                    self._due |= {name}

    def _cut(self, length: int) -> dict[str, Array]:
        """The caches longer than `truncate` allows, each cut to the length that remains."""
        number = checked_integer("IRC419", "a length", length)
        held = self._shown()
        if not held:
            raise Error("IRC419", "there is nothing to truncate before the first step")
        axes = {name: self._caches.axis(name, array) for name, array in held.items()}
        growing = {name: axis for name, axis in axes.items() if axis is not None}
        if not growing:
            raise Error("IRC419", "no cache can be truncated: there is none that the model appends to")
        shorter: dict[str, Array] = {}
        for name, axis in growing.items():
            size = held[name].shape[axis]
            if not -size <= number <= size:
                raise Error("IRC419", f"input {name!r} has {size} positions: it has no {abs(number)}")
            end = number if number >= 0 else size + number
            if end < size:
                shorter[name] = held[name][(*[slice(None)] * axis, slice(end))]
        return shorter

    def fork(self) -> Session:
        """Another session that goes on from here.

        What grows is not copied until both have gone on; of what has a fixed size, whoever goes on first gets a copy.

        Raises:
            Error: Of sessions with caches of fixed size that steps write to: IRC436 this very thread is in the middle
                of a step (others wait until it has ended); IRC437 one has failed.
        """
        caches = self._shown()
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.pairs, other.counters = dict(self.pairs), Counters()
        other._has_failed = False
        other._keys = None if self._keys is None else GrowingKeys()
        other._lock, other._is_stepping, other._donated = RLock(), False, {}
        # Of a buffer, forks have views of their own. Other arrays they share: then neither may donate them.
        other._held = {name: array if buffer_of(array) is None else array.view() for name, array in caches.items()}
        return other

    __copy__ = fork

    def __deepcopy__(self, memo: dict[int, Any]) -> Session:
        return self.fork()

    def _shown(self) -> Mapping[str, Array]:
        """The caches; Error while a step writes in them, or if such a step has failed."""
        if not self._caches.overwritten:
            return self._held
        with self._lock:
            self._check_idle()
            if self._donated:
                raise _cache_lost(self._donated)
            return self._held

    def _check_idle(self) -> None:
        if self._is_stepping:
            raise Error("IRC436", "a step of this session is running on this thread already")

    def _step(
        self, feeds: Mapping[str, Any], outputs: Iterable[str] | None, limits: Limits | None, threads: int | None
    ) -> dict[str, Any]:
        if not is_mapping(feeds):
            return self._model.run(feeds)  # which says what is wrong
        caches, lost = self._caches, self._donated
        for array in self._held.values() if self._has_failed else ():
            if (buffer := buffer_of(array)) is not None:
                buffer.go_back(array)
        self._has_failed = False
        held = Held(*self._given_caches(feeds), keep=caches.paths, keys=self._keys)
        given = {**held.arrays, **feeds}
        try:
            self._donated = held.donated or lost
            results, kept, counters = self._model.execute(
                given, outputs, tuple(held.donated), limits, threads, held=held
            )
            found = dict(zip(self.pairs, kept))
            caches.check(found, given, held, counters)
            for name in self._due if self.capacity else ():
                before = given.get(name, self._model.module.defaults.get(name))
                axis = caches.axis(name, found[name])
                axis = _differing_axis(before, found[name]) if axis is None else axis
                if axis is not None:
                    found[name] = reserve(found[name], axis, self.capacity or 0)
            self._held, self.counters = found, counters
            self._due, self._donated = frozenset(()), {}
        except BaseException as error:
            self._has_failed = True
            if not held.begun or not self._held:  # a first step may be made again
                self._donated = lost
            where = {f"input {name!r}" for name in held.arrays}
            if isinstance(error, Error) and error.code in ("IRC413", "IRC414") and error.where in where:
                raise Error(error.code, f"{error.message}; the last step returned it so", error.where) from None
            raise
        return results

    def _given_caches(self, feeds: Mapping[str, Any]) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
        """The caches that the session gives to a step, and those of them that the step may overwrite."""
        caches = self._caches
        held = self._held or caches.empty(feeds)
        donated: dict[str, Array] = {}
        if caches.overwritten and not self._donated:
            names = [name for name in held if name in caches.overwritten and name not in feeds]
            donated = {name: held[name] for name in names if is_alone(held, name) and _is_donatable(held[name])}
        elif self._donated and not self._donated.keys() <= feeds.keys():  # the last step has failed
            raise _cache_lost(self._donated)
        if held.keys().isdisjoint(feeds):
            return held, donated
        return {name: array for name, array in held.items() if name not in feeds}, donated


def _is_donatable(array: Array) -> bool:
    """Whether only ``array``, to which there is one reference, shows its memory."""
    if array.nbytes < DONATED_BYTES:
        return False
    base = array.base
    if base is None:
        return True
    whole = type(base) is np.ndarray and base.base is None and base.flags.writeable and base.nbytes == array.nbytes
    del base
    return whole and is_shown_alone(array)


def _cache_lost(donated: Iterable[str]) -> Error:
    remedy = "reset the session, go on from a fork, or give the step these caches"
    return Error("IRC437", f"a step has failed while it wrote to {some(map(repr, donated))}: {remedy}")


def _differing_axis(given: Any, array: Array) -> int | None:
    """The one axis along which ``array`` has another size than ``given``."""
    shape = np.shape(given)
    differing = [axis for axis, (a, b) in enumerate(zip(shape, array.shape)) if a != b]
    return differing[0] if len(shape) == array.ndim and len(differing) == 1 else None


_TAKING_PARTS = frozenset(
    {"onnx::Slice", "onnx::Gather", "onnx::Split"}
    | {f"aten::{name}" for name in ("slice", "narrow", "index", "index_select", "__getitem__")}
)
"""Operators whose results may be parts of their operand. (Elements of lists are what torch's split and chunk give.)"""

DONATED_BYTES = 16384
"""Smaller caches are copied: a copy takes no longer than a donation, and survives a step that fails."""


class Caches:
    """The caches of the sessions of a model.

    Args:
        model: the model.
        pairs: from input to output.

    Attributes:
        paths: where among the outputs each cache is returned, in the order of the pairs.
        grow: whether a cache may have another size in another step.
        overwritten: the names of the caches that are donated to steps, which may write to them.
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
            if not array.size and name in given and name not in held.donated:
                found[name] = self._unless_left_out(array, name, given[name], held, counters)

    def _unless_left_out(self, array: Array, name: str, given: Any, held: Held, counters: Counters) -> Array:
        """``array``, which is empty; or what the step was ``given``, if ``array`` only substitutes it.

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
    """The axis along which ``output`` extends ``cache``, through any branch or loop; or None.

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
    """``value`` and the results in branches and loops that it may be, each with its node."""
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
    """Raise unless ``array``, an output, can be the input: declared output types may be wrong."""
    shape, dtype = argument.shape, argument.dtype
    if (dtype is not None and array.dtype != dtype) or (shape is not None and array.ndim != len(shape)):
        message = f"the output for it is {describe(array)}, which is not the type of the input, {argument.type}"
        raise Error("IRC417", message, argument.where)


def _empty(argument: Argument, sizes: Mapping[str, int]) -> Array:
    """A cache of which nothing is there yet."""
    where = argument.where
    if argument.dtype is None or argument.shape is None:
        raise Error("IRC418", "the first step needs this cache: its type is not known", where)
    shape = [dim if isinstance(dim, int) else sizes.get(str(dim)) for dim in argument.shape]
    if shape.count(None) > 1:
        why = "more than one of its sizes is open, an empty one should be given"
        raise Error("IRC418", f"the first step needs this cache, {argument.type}: {why}", where)
    filler = "" if argument.dtype.hasobject else 0
    array = np.full(check_size([n or 0 for n in shape], argument.dtype), filler, argument.dtype)
    array.flags.writeable = False  # as all that is held
    return array


CONVENTIONS = (("past_key_values.", "present."), ("past_", "present_"), ("past.", "present."))
"""How exporters call a cache as an input and as an output, up to what follows."""


def find_bindings(model: CompiledModel) -> dict[str, str]:
    """The pairs of an input and an output whose names follow a convention and whose types agree.

    Raises:
        Error: IRC417 there is none.
    """
    results = results_of(model.outputs)
    pairs: dict[str, str] = {}
    misfits: list[str] = []
    for a in model.inputs:
        for past, present in reversed(CONVENTIONS):  # so that the first of several stays
            result = results.get(present + a.name.removeprefix(past)) if a.name.startswith(past) else None
            if result is not None and (misfit := _misfit(a, result.argument)) is not None:
                misfits.append(misfit)
            elif result is not None:
                pairs[a.name] = result.argument.name
    if pairs:
        return pairs
    remedy = "give pairs from input to output"
    conventions = " or ".join(f"{past}* and {present}*" for past, present in CONVENTIONS)
    inputs, outputs = (some(map(repr, names)) for names in ([a.name for a in model.inputs], results))
    why = f"no input is called like an output, as {conventions} are: {remedy}; inputs are {inputs}, outputs {outputs}"
    if misfits:
        why = f"no output that is called like an input can be that in the next step, {remedy}: {some(misfits)}"
    raise Error("IRC417", why)


def check_bindings(model: CompiledModel, pairs: Mapping[str, str]) -> dict[str, str]:
    """``pairs``, from input to output.

    Raises:
        Error: IRC417 there are none, no such input or output, or they are not tensors of one type.
    """
    if not isinstance(pairs, Mapping) or not pairs:  # type: ignore[reportUnnecessaryIsInstance]
        raise Error("IRC417", "pairs must be a dict from input to output, which is not empty")
    inputs = {a.name: a for a in model.inputs}
    outputs = {name: result.argument for name, result in results_of(model.outputs).items()}
    for name, output in pairs.items():
        if not isinstance(name, str) or not isinstance(output, str):  # type: ignore[reportUnnecessaryIsInstance]
            given = f"{{{name!r}: {output!r}}}"
            raise Error("IRC417", f"pairs go from the name of an input to the name of an output: {given}")
        if name not in inputs and output not in outputs and name in outputs and output in inputs:
            raise Error("IRC417", f"pairs go from input to output: {{{output!r}: {name!r}}}, not the other way round")
        misfit = _misfit(named("IRC417", name, inputs, "input"), named("IRC417", output, outputs, "output"))
        if misfit is not None:
            raise Error("IRC417", misfit)
    return dict(pairs)


def _misfit(past: Argument, present: Argument) -> str | None:
    """The reason why ``present`` can never be ``past``; None if it can."""
    if not isinstance(past.type, TensorType) or not isinstance(present.type, TensorType):
        return f"only tensors can be caches: {past.name!r} is {past.type}, {present.name!r} {present.type}"
    if not may_be_equal(past.type, present.type):
        return f"output {present.name!r}, {present.type}, can never be input {past.name!r}, {past.type}"
    return None


def some(words: Iterable[str]) -> str:
    """The first twenty of ``words``, with a note if there are more."""
    words = list(words)
    return ", ".join(words[:20]) + (", ..." if len(words) > 20 else "")
