"""Decoding step by step: outputs of one step become inputs of the next.

A session holds the caches as read-only arrays that only `irc::append_` may
extend, and only behind the positions that any view shows. So a session can return
them, and share them with its forks, without copying: the first continuation of a
prefix stays in place, later ones get memory of their own. Caches of fixed size, in
which each step writes some elements, are lent to the step if nothing else refers to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.cache_bindings import check_bindings, find_bindings, some
from irc.runtime.caches import LENT_BYTES, Caches
from irc.runtime.execution import Counters
from irc.runtime.inputs import Held
from irc.runtime.memory.references import is_alone, is_shown_alone
from irc.runtime.memory.room import reserve, room_of
from irc.runtime.model import CompiledModel
from irc.runtime.options import check_number
from irc.runtime.values import integer, is_mapping

if TYPE_CHECKING:
    from irc.runtime.guards.limits import Limits
    from irc.runtime.values import Array


class Session:
    """A model, and the caches that its steps hand on.

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
            capacity is no positive integer.
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
        self._due: frozenset[str] = frozenset(self.pairs)  # those that get the capacity in the next step
        self._held: Mapping[str, Array] = {}
        self._lent: Mapping[str, Array] = {}  # to the step that is going on, or to one that has failed
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
            self._held, self._due, self._lent = {}, frozenset(self.pairs), {}

    def truncate(self, length: int) -> None:
        """Go back: caches that grow keep their first ``length`` positions, or all but the last ``-length``.

        Where nothing else shows the others (no output that somebody keeps, no fork), the next step puts its own in
        their place; else it copies. All other caches stay as they are. For those of an encoder that is right; to go
        back with windows that slide, or with states that each step computes anew, keep a `fork`.

        Raises:
            Error: IRC419 there are no caches that grow, no step was made, or they have not so many positions; IRC436
                this very thread is in the middle of a step; IRC437 one has failed that wrote to caches. The caches are
                then what they were.
        """
        with self._lock:
            self._check_idle()
            shorter = self._cut(length)
            self._held = {**self._held, **shorter}  # first, so that nothing longer can be taken from here any more
            self._due |= _without_room(shorter)

    def _cut(self, length: int) -> dict[str, Array]:
        """The caches longer than `truncate` allows, each cut to the length that remains."""
        number = integer(length)
        if number is None:
            raise Error("IRC419", f"a length must be an integer, not {length!r}")
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
        other._lock, other._is_stepping, other._lent = RLock(), False, {}
        # Of a room, forks have views of their own. Other arrays they share: then neither is lent them.
        other._held = {name: array if room_of(array) is None else array.view() for name, array in caches.items()}
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
            if self._lent:
                raise _lost(self._lent)
            return self._held

    def _check_idle(self) -> None:
        if self._is_stepping:
            raise Error("IRC436", "a step of this session is going on in this very thread")

    def _step(
        self, feeds: Mapping[str, Any], outputs: Iterable[str] | None, limits: Limits | None, threads: int | None
    ) -> dict[str, Any]:
        if not is_mapping(feeds):
            return self._model.run(feeds)  # which says what is wrong
        caches, lost = self._caches, self._lent
        held = Held(*self._lending(feeds), keep=caches.paths, again=not caches.grow)
        given = {**held.arrays, **feeds}
        try:
            self._lent = held.lent or lost
            results, kept, counters = self._model.execute(given, outputs, tuple(held.lent), limits, threads, held=held)
            found = dict(zip(self.pairs, kept))
            caches.check(found, given, held, counters)
            for name in self._due if self.capacity else ():
                before = given.get(name, self._model.module.defaults.get(name))
                axis = caches.axis(name, found[name])
                axis = _differing_axis(before, found[name]) if axis is None else axis
                if axis is not None:
                    found[name] = reserve(found[name], axis, self.capacity or 0)
            self._held, self.counters = found, counters
            self._due, self._lent = frozenset(()), {}
        except BaseException as error:
            if not held.begun or not self._held:  # a first step may be made again
                self._lent = lost
            where = {f"input {name!r}" for name in held.arrays}
            if isinstance(error, Error) and error.code in ("IRC413", "IRC414") and error.where in where:
                raise Error(error.code, f"{error.message}; the last step has left it like that", error.where) from None
            raise
        return results

    def _lending(self, feeds: Mapping[str, Any]) -> tuple[Mapping[str, Array], Mapping[str, Array]]:
        """The caches that the session gives to a step, and those of them that the step may overwrite."""
        caches = self._caches
        held = self._held or caches.empty(feeds)
        lent: dict[str, Array] = {}
        if not self._lent:
            names = [name for name in held if name in caches.overwritten and name not in feeds]
            lent = {name: held[name] for name in names if is_alone(held, name) and _can_be_lent(held[name])}
        elif not self._lent.keys() <= feeds.keys():  # the last step has failed
            raise _lost(self._lent)
        return {name: array for name, array in held.items() if name not in feeds}, lent


def _without_room(shorter: Mapping[str, Array]) -> frozenset[str]:
    """The names of cut caches that cannot free their room's tail: they are in none, or another view shows it."""
    rooms = [(name, array, room_of(array)) for name, array in shorter.items()]
    return frozenset(name for name, array, room in rooms if room is None or not room.go_back(array))


def _can_be_lent(array: Array) -> bool:
    """Whether only ``array``, to which there is one reference, shows its memory."""
    if array.nbytes < LENT_BYTES:
        return False
    base = array.base
    if base is None:
        return True
    whole = type(base) is np.ndarray and base.base is None and base.flags.writeable and base.nbytes == array.nbytes
    del base
    return whole and is_shown_alone(array)


def _lost(lent: Iterable[str]) -> Error:
    return Error(
        "IRC437",
        f"a step has failed while it wrote to {some(map(repr, lent))}: reset the session, go on from a "
        "fork, or give the step these caches",
    )


def _differing_axis(given: Any, array: Array) -> int | None:
    """The one axis along which ``array`` has another size than ``given``."""
    shape = np.shape(given)
    differing = [axis for axis, (a, b) in enumerate(zip(shape, array.shape)) if a != b]
    return differing[0] if len(shape) == array.ndim and len(differing) == 1 else None
