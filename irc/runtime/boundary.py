"""The boundary of a run: binding what a caller passes to the inputs of a graph, and detaching results.

Memory that a run may not change enters it as read-only views: NumPy's views of
read-only memory are read-only, so no kernel writes an array of the caller, and a
result that shows one is seen at the exit. What the names of a call mean is found out once (`Signature`). Calls
with arrays of the same types and shapes as the call before need no other check.

Nothing that a run returns shares memory with anything else that stays alive.
A result that is read-only is somebody else's, and is copied. Of writable
results, only views of one owner can share with each other; a result that owns its
memory leaves as it is. And results keep alive little more memory than they take,
those of one owner together.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from irc.errors import Error, suggestion
from irc.ops.sizes import object_bytes
from irc.runtime.arena import GrowingKeys, PlannedRuns, RunKey, run_key
from irc.runtime.arguments import Argument, Path, Sizes, accept, check_shape, element
from irc.runtime.array_memory import ANY, ArrayType, copy_as_it_lies, overlaps_itself
from irc.runtime.bounds import CURRENT, check_bytes
from irc.runtime.execution import Counters, Run
from irc.runtime.growable import GrowableBuffer, buffer_of, is_append_only, plain
from irc.runtime.kernels.support import check_size
from irc.runtime.values import (
    Array,
    arrays_once,
    attributes,
    containers,
    describe,
    is_array,
    is_tuple,
    read_only,
    rebuild,
    typed,
)

SPARE = 4
"""Results that take, together, less than this part of the memory that they show are copied, so that the rest of that is
freed: the last of many hidden states would keep all of them alive. To copy so little costs a fraction of having made
it all."""

SPARED_BYTES = 16384
"""Memory of up to this size stays alive: there is little to free, and views of it may be many."""


def read_only_view(value: Any) -> Any:
    """``value`` with every array replaced by a read-only view, and every list and dict by a new one."""
    return rebuild(value, read_only)


def copied(value: Any, counters: Counters) -> Any:
    """``value`` with every array, list and dict replaced by a copy.

    Arrays lie in memory as they did: whether flattening gives a view, through which a program then writes, depends on
    that.
    """
    return rebuild(value, lambda array: _copied(array, counters, copy_as_it_lies))


def detach(
    results: Sequence[Any],
    wanted: Mapping[str, Path],
    counters: Counters,
    held: Held,
    donated: Sequence[int] = (),
    of_model: Sequence[Array] = (),
) -> tuple[dict[str, Any], list[Array]]:
    """The results at the paths ``wanted``, by name, and those to ``keep``; arrays that share are copied.

    Lists, tuples, dicts and objects are always new.

    Args:
        results: all that the run returns.
        wanted: the paths of the results that leave, by name.
        counters: where copies are counted.
        held: what a session has kept, in memory that nobody writes; and which tensors it is to keep: nothing may change
            these arrays, and wanted ones are views of them.
        donated: the positions of inputs whose memory results may have.
        of_model: writable arrays that the model keeps for its next run.

    Raises:
        Error: IRC402, IRC403 a result cannot be copied, IRC442 the run may not use the memory for that; IRC417 what is
            to be kept is not a tensor.
    """
    found = None if of_model else _undetached(results, wanted, held.keep)
    if found is not None:
        return found
    leaving = {name: element(results, path) for name, path in wanted.items()}
    detacher = _Detacher(counters, of_model, held, chain((element(results, p) for p in held.keep), leaving.values()))
    kept = detacher.keep(results, held.keep)
    order = list(leaving)
    if donated:  # of results that share memory, the first stays where it is: the whole of what was donated has reserve
        order.sort(key=lambda name: 0 if buffer_of(leaving[name]) is None else -leaving[name].nbytes)
    released: dict[str, Any] = dict.fromkeys(wanted)
    for name in order:
        try:
            released[name] = detacher.release(leaving[name], wanted[name])
        except Error as error:
            raise Error(error.code, error.message, error.where or f"output {name!r}") from error
    return released, kept


def _undetached(
    results: Sequence[Any], wanted: Mapping[str, Path], keep: Iterable[Path]
) -> tuple[dict[str, Any], list[Array]] | None:
    """As `detach`, if nothing is to be copied, for that is quick to see; else None.

    That is so if results own their memory, and those to keep can only be appended to.
    """
    leaving: dict[str, Any] = {}
    for name, path in wanted.items():
        value = leaving[name] = results[path[0]] if len(path) == 1 else element(results, path)
        if type(value) is not np.ndarray or value.base is not None or not value.flags.carray:
            return None
    if len(leaving) > 1 and not _are_distinct(leaving.values()):
        return None
    kept: list[Array] = []
    for path in keep:
        value = results[path[0]] if len(path) == 1 else element(results, path)
        buffer = buffer_of(value)
        if buffer is None or not buffer.append_only or value.flags.writeable:
            return None
        kept.append(value)
    return leaving, kept


def _are_distinct(arrays: Collection[Any]) -> bool:
    """Whether no array comes twice."""
    return len(arrays) == 1 or len(set(map(id, arrays))) == len(arrays)


class _Detacher:
    """What has left of one run, so that what shares memory with it is copied.

    Args:
        counters: where copies are counted.
        of_model: as for `detach`.
        held: what a session has given to the run.
        leaving: all that will be released or kept.
    """

    def __init__(self, counters: Counters, of_model: Iterable[Array], held: Held, leaving: Iterable[Any]) -> None:
        self._counters = counters
        self._held = held
        self._leaving = leaving
        self._containers: set[int] = set()  # identities of containers whose copies have left
        self._made = 0  # bytes of copies of arrays, and of further ones of these
        self._handed_on: dict[Path, Array] = {}  # the arrays that `keep` has handed on to the next step
        self._left: dict[int, _Ranges] = {}  # by identity of the array that owns the memory
        for array in of_model:
            self._left.setdefault(id(_owner(array)), _Ranges()).take(array)

    def release(self, value: Any, path: Path) -> Any:
        """``value`` with arrays copied where they share memory.

        A value at ``path`` (or inside a tuple there) that `keep` took is returned as a view of the kept array.
        """
        if self._handed_on:
            if path in self._handed_on:
                return self._handed_on[path].view()
            if is_tuple(value) and any(other[: len(path)] == path for other in self._handed_on):
                return tuple(self.release(v, (*path, i)) for i, v in enumerate(value))
        if not is_array(value) and CURRENT.scope.guard is not None:
            found = {id(container): object_bytes(container) for container, _ in containers(value, attributes)}
            self._count(sum(found[key] for key in self._containers & found.keys()))
            self._containers |= found.keys()
        return rebuild(value, self._release, typed=False)

    def keep(self, values: Sequence[Any], paths: Sequence[Path]) -> list[Array]:
        """The tensors at ``paths``, read-only from now on; those with reserve may still be extended into it.

        Tensors that are append-only already, or that the session gave to the run, are not copied, even if they share
        memory: nothing can change them.
        """
        kept: list[Array] = []
        for path in paths:
            value = element(values, path)
            if not is_append_only(value) and id(value) not in self._session_ids:
                if not is_array(value):
                    raise Error("IRC417", f"only tensors can be caches, not {describe(value)}")
                value = self._release(value)
                value.flags.writeable = False
                if (buffer := buffer_of(value)) is not None:
                    buffer.make_append_only(value)
            kept.append(value)
        self._handed_on = dict(zip(paths, kept))
        return kept

    @cached_property
    def _session_ids(self) -> frozenset[int]:
        """The identities of the session's arrays that the run could not overwrite; growing caches need none."""
        return frozenset(id(array) for name, array in self._held.arrays.items() if name not in self._held.donated)

    @cached_property
    def _shown(self) -> dict[int, int]:
        """Bytes of each owner that leave without a copy; computed only if some result is a small part."""
        ranges: dict[int, _Ranges] = {}
        shown: dict[int, int] = {}
        for array in arrays_once(self._leaving, attributes):
            owner = id(_owner(array))
            if ranges.setdefault(owner, _Ranges()).take(array):
                shown[owner] = shown.get(owner, 0) + array.nbytes
        return shown

    def _count(self, size: int) -> None:
        """Count what leaves beside what the run has made; Error if it may not use so much."""
        check_bytes(self._made + size)
        self._made += size

    def _copied(self, array: Array) -> Array:
        self._count(array.nbytes)
        return _copied(array, self._counters, _without_gaps)

    def _release(self, array: Array) -> Array:
        # A result with several elements in one place would change in all of them when its owner writes to one.
        if not array.flags.carray and (not array.flags.writeable or overlaps_itself(array)):
            return self._copied(array)
        owner = _owner(array)
        if owner is not array:
            if type(owner) is GrowableBuffer:  # which knows its latest view by identity: a holder may set its shape
                array = array.view()
            elif _keeps_much(array.nbytes, owner) and _keeps_much(self._shown.get(id(owner), 0), owner):
                with suppress(Error):  # there is no memory for it, or the run may not use so much
                    return self._copied(array)
        # Bounds are enough: interleaved views of one array are rare, and a copy is always right.
        if not self._left.setdefault(id(owner), _Ranges()).take(array):
            return self._copied(array)
        return array


class _Ranges:
    """Disjoint byte ranges of one array, in order: a Split may have thousands of results."""

    __slots__ = ("_bounds", "_first")

    def __init__(self) -> None:
        self._first: Array | None = None
        self._bounds: list[int] = []  # where each begins and ends

    def take(self, array: Array) -> bool:
        """Take the bytes from the first to the last of ``array``; return whether all of them were free."""
        if not array.size:
            return True
        if self._first is None:  # most arrays have one result: it need not be known where that lies
            self._first = array
            return True
        if not self._bounds:
            self._insert(self._first)
        return self._insert(array)

    def _insert(self, array: Array) -> bool:
        low, high = np.lib.array_utils.byte_bounds(array)
        first, last = bisect_right(self._bounds, low), bisect_left(self._bounds, high)
        is_free = first == last and first % 2 == 0
        # Ranges that overlap become one: a bound after an odd number of others is inside of one.
        self._bounds[first:last] = [low] * (first % 2 == 0) + [high] * (last % 2 == 0)
        return is_free


def _without_gaps(array: Array) -> Array:
    """A copy whose axes are in the order of those of ``array``, where that order is told by its strides."""
    return array.copy("C" if overlaps_itself(array) else "K")


def _copied(array: Array, counters: Counters, duplicate: Callable[[Array], Array]) -> Array:
    check_size(array.shape, array.dtype)
    try:
        copied = duplicate(array)
    except MemoryError as error:  # few bytes may be a view of any size, and a graph of views may return it
        raise Error("IRC403", f"out of memory: {error}") from None
    counters.copies += 1
    counters.copied_bytes += array.nbytes
    return copied


def _keeps_much(shown: int, owner: Any) -> bool:
    """Whether ``shown`` bytes are a small part of the array that they keep alive; buffers are exempt."""
    return is_array(owner) and (size := owner.nbytes) > SPARED_BYTES and size > SPARE * shown


def _owner(array: Array) -> Any:
    owner: Any = array
    while (base := getattr(owner, "base", None)) is not None:
        owner = base
    return owner


@dataclass(slots=True)
class Held:
    """What a session gives to a run, and keeps of it.

    Attributes:
        arrays: read-only arrays by input name. They may be extended in place, unless they have been extended already.
        donated: those of them that the run may overwrite: no other array shows their memory.
        keep: paths of the results to return as arrays that nothing may change.
        keys: of the session's steps, if caches grow; None: inputs of the same shapes come again.
        begun: whether the run has begun; from then on, donated arrays have undefined contents.
    """

    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])
    donated: Mapping[str, Array] = field(default_factory=dict[str, Array])
    keep: tuple[Path, ...] = ()
    keys: GrowingKeys | None = None
    begun: bool = False

    def begin(self) -> None:
        """Let the run write to the donated arrays."""
        self.begun = True
        for array in self.donated.values():
            array.flags.writeable = True


NOTHING = Held()


_KINDS = 4
"""Kinds of runs that a signature knows: steps of one token, of several."""

Compute = Callable[[list[Any], "Run", "RunKey | None"], list[Any]]
"""The outputs of a graph for values of its inputs."""


class Like(NamedTuple):
    """What inputs are like in runs that have one key: arrays, which a run reads where they are.

    Attributes:
        key: the key.
        inputs: position, name, element type and sizes of each; for a size that differs from run to run, its name.
        sizes: the sizes that are fixed, by their names and by themselves.
    """

    key: RunKey
    inputs: Sequence[tuple[int, str, Any, tuple[Any, ...]]]
    sizes: dict[Any, int]

    @staticmethod
    def of(key: RunKey, feeds: Mapping[str, Any], passed: Iterable[tuple[int, Argument]], given: Sizes) -> Like | None:
        """For ``feeds`` that have been checked, where sizes are ``given``; None if more is to be checked."""
        inputs: list[tuple[int, str, Any, tuple[Any, ...]]] = []
        sizes: dict[Any, int] = {name: size for name, (size, _) in given.items()}
        for i, a in passed:
            form = key[i]
            is_array = type(feeds[a.name]) is np.ndarray and isinstance(form, ArrayType)
            if not is_array or form.dtype is not a.dtype or form.dtype.hasobject:
                return None
            named = [dim or (i, axis) for axis, dim in enumerate(a.shape or (None,) * len(form.shape))]
            inputs.append((i, a.name, form.dtype, tuple([n if m == ANY else m for m, n in zip(form.shape, named)])))
            for size, name in zip(form.shape, named):
                if size != ANY:
                    sizes[name] = sizes[size] = size
        return Like(key, inputs, sizes)

    def bind(self, values: list[Any], feeds: Mapping[str, Any], held: Mapping[str, Array]) -> bool:
        """Put the inputs into ``values``, if they are such."""
        sizes = self.sizes.copy()
        latest: tuple[Any, ...] = ()  # what has been looked at: caches of a session mostly are alike
        for i, name, dtype, dims in self.inputs:
            value = feeds[name]
            if type(value) is not np.ndarray or value.dtype is not dtype:
                return False
            shape = value.shape
            if shape != dims and latest != (shape, dims):
                if len(shape) != len(dims):
                    return False
                for size, dim in zip(shape, dims):
                    if sizes.setdefault(dim, size) != size:
                        return False
                latest = shape, dims
            if name not in held:
                value = value.view()
                value.setflags(False)  # type: ignore[reportCallIssue]  # a keyword takes three times as long
            values[i] = value
        return True


@dataclass(slots=True, eq=False)
class Signature:
    """What the names of a call mean.

    Attributes:
        runs: the plans of the graph, or of the part of it that the wanted results need.
        compute: what runs them.
        wanted: the paths of these results, by name.
        values: one for each input of the graph: the objects, the defaults of those that are left out, else None.
        passed: position and declaration of each input that is passed, in the model's order.
        donated_at: the positions of those that may be overwritten.
        copied: the positions of the others that a run may write to, objects apart.
        defaults: those of inputs that are left out, by name.
        sizes: what these give to named dimensions.
        recurs: whether a run on arrays of types and shapes that have been checked needs nothing else.
        likes: what inputs were like in the latest kinds of runs, the latest first.
    """

    runs: PlannedRuns
    compute: Compute
    wanted: Mapping[str, Path]
    values: list[Any]
    passed: tuple[tuple[int, Argument], ...]
    donated_at: tuple[int, ...]
    copied: tuple[int, ...]
    defaults: dict[str, Any]
    sizes: Sizes
    recurs: bool
    likes: tuple[Like, ...] = ()

    def bind(self, feeds: Mapping[str, Any], held: Held, counters: Counters) -> tuple[list[Any], RunKey | None]:
        """The values of the graph's inputs, and the run's key.

        Args:
            feeds: what the caller passes, and a session.
            held: what a session gives of it.
            counters: where copies are counted.

        Raises:
            Error: IRC412 to IRC416, as `CompiledModel.run`.
        """
        values, sizes = self.values.copy(), dict(self.sizes)
        for like in self.likes:
            if like.bind(values, feeds, held.arrays):
                if like is not self.likes[0]:
                    self._note(like)
                return values, like.key
        checked = () if held.donated else self.donated_at
        for i, a in self.passed:
            value = feeds[a.name]
            if i in checked:
                value = plain(value)
                _check_donation(value, a.where)
            if a.name in held.arrays:  # of the input's type
                check_shape(value.shape, a.type, a.where, sizes)
            else:
                value = accept(value, a, sizes)
                if i not in self.donated_at:
                    value = read_only(value) if is_array(value) else typed(read_only_view(value), a.type)
            values[i] = value
        if checked:
            passed = {a.name: values[i] for i, a in self.passed}
            _check_shared({**self.defaults, **passed}, [a.name for i, a in self.passed if i in checked])
        for i in self.copied:
            values[i] = copied(values[i], counters)
        key: RunKey | None = run_key(values, self.donated_at)
        if held.keys is not None:
            key = held.keys.key(key)
        may_recur = self.recurs or (held.keys is not None and not (self.donated_at or self.copied))
        if key is not None and may_recur and (like := Like.of(key, feeds, self.passed, self.sizes)) is not None:
            self._note(like)
        return values, key

    def _note(self, latest: Like) -> None:
        self.likes = latest, *[like for like in self.likes if like is not latest][: _KINDS - 1]


def left_out(known: Mapping[str, Argument], given: Collection[str], donate: Iterable[str]) -> list[Argument]:
    """The inputs that are not ``given``, which have defaults.

    Args:
        known: those that a caller may pass, by name.
        given: the names of those that it passes.
        donate: the names of those that it donates.

    Raises:
        Error: IRC410 an input is unknown or missing; IRC416 one is donated and not given.
    """
    for name in given:
        if name not in known:
            raise Error("IRC410", f"the model has no input {name!r}; {suggestion(name, known)}")
    found = [a for name, a in known.items() if name not in given]
    if absent := [a for a in found if not a.optional]:
        each = ", ".join(f"{a.name!r} ({a.type})" for a in absent)
        raise Error("IRC410", f"no value for input{'s' if len(absent) > 1 else ''} {each}")
    for name in sorted(set(donate).difference(given)):
        raise Error("IRC416", f"{name!r} is donated, but it is not among the inputs given")
    return found


def _check_donation(value: Any, where: str) -> None:
    if not is_array(value):
        raise Error("IRC416", f"only arrays can be donated, not {describe(value)}", where)
    if not value.flags.writeable:
        raise Error("IRC416", "a read-only array cannot be donated", where)
    if overlaps_itself(value):
        raise Error("IRC416", "elements of the donated array share memory: give a copy", where)


def _check_shared(accepted: Mapping[str, Any], donate: Iterable[str]) -> None:
    """Check that no other input, arrays made of objects included, shares memory with a donated one."""
    for name in donate:
        for other, value in accepted.items():
            if other != name and any(np.may_share_memory(accepted[name], x) for x in arrays_once([value])):
                raise Error("IRC416", f"the donated array may share memory with input {other!r}", f"input {name!r}")
