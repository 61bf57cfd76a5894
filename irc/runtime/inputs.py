"""Binding the values that a caller passes to the inputs of a graph.

Memory that a run may not change enters it as read-only views: NumPy's views of
read-only memory are read-only, so no kernel writes an array of the caller, and a
result that shows one is seen at the exit (`irc.runtime.outputs`).

What the names of a call mean is found out once (`Signature`). Calls
with arrays of the same types and shapes as the call before need no other check.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error, suggestion
from irc.runtime.arena import kind_of
from irc.runtime.arguments import Argument, Sizes, accept, check_shape
from irc.runtime.layouts import overlaps_itself
from irc.runtime.memory.growable import plain
from irc.runtime.outputs import copied, read_only_view
from irc.runtime.typed_containers import typed
from irc.runtime.values import Array, arrays_once, describe, is_array, read_only

if TYPE_CHECKING:
    from irc.runtime.arena import Kind, PlannedRuns
    from irc.runtime.execution import Counters, Run
    from irc.runtime.results import Path


@dataclass(slots=True)
class Held:
    """What a session gives to a run, and keeps of it.

    Attributes:
        arrays: read-only arrays by input name. They may be extended in place, unless they have been extended already.
        lent: those of them that the run may overwrite, as if they were donated: no other array shows their contents.
        keep: paths of the results to return as arrays that nothing may change.
        again: whether inputs of the same shapes may come again. (Caches that grow do not.)
        begun: whether the run has begun; what it was lent has undefined contents from then on.
    """

    arrays: Mapping[str, Array] = field(default_factory=dict[str, Array])
    lent: Mapping[str, Array] = field(default_factory=dict[str, Array])
    keep: tuple[Path, ...] = ()
    again: bool = True
    begun: bool = False

    def begin(self) -> None:
        """Let the run write to what it is lent."""
        self.begun = True
        for array in self.lent.values():
            array.flags.writeable = True


NOTHING = Held()


Compute = Callable[[list[Any], "Run", "Kind | None"], list[Any]]
"""The outputs of a graph for values of its inputs."""

Arrays = tuple[tuple[int, str, Any, tuple[int, ...]], ...]
"""Position, name, element type and shape of all inputs that are passed: arrays, which a run borrows as they are."""


@dataclass(slots=True, eq=False)
class Signature:
    """What the names of a call mean.

    Attributes:
        runs: the plans of the graph, or of the part of it that the wanted results need.
        compute: what runs them.
        wanted: the paths of these results, by name.
        values: one for each input of the graph: the objects, the defaults of those that are left out, else None.
        passed: position and declaration of each input that is passed, in the model's order.
        donated: the names of those that may be overwritten.
        donated_at: their positions.
        copied: the positions of the others that a run may write to, objects apart.
        defaults: those of inputs that are left out, by name.
        sizes: what these give to named dimensions.
        recurs: whether a run on arrays of types and shapes that have been checked needs nothing else.
    """

    runs: PlannedRuns
    compute: Compute
    wanted: Mapping[str, Path]
    values: list[Any]
    passed: tuple[tuple[int, Argument], ...]
    donated: frozenset[str]
    donated_at: tuple[int, ...]
    copied: tuple[int, ...]
    defaults: dict[str, Any]
    sizes: Sizes
    recurs: bool

    def bind(
        self, feeds: Mapping[str, Any], held: Held, counters: Counters
    ) -> tuple[list[Any], Kind | None, Arrays | None]:
        """The values for the graph's inputs, in order, the kind of run that they make, and how to know another like it.

        (By arrays of these types and shapes; None if it takes other checks, or there will be none.)

        Args:
            feeds: what the caller passes, and a session.
            held: what a session gives of it.
            counters: where copies are counted.

        Raises:
            Error: IRC412 to IRC416, as `CompiledModel.run`.
        """
        values, sizes = self.values.copy(), dict(self.sizes)
        is_checked = bool(self.donated) and not held.lent
        if is_checked:
            feeds = {name: plain(value) for name, value in feeds.items()}
            _check_donation(feeds, self.donated)
        arrays: list[tuple[int, str, Any, tuple[int, ...]]] = []
        seen: set[Any] = set()
        for i, a in self.passed:
            value = feeds[a.name]
            if a.name in held.arrays:  # of the input's type, and many are alike: of those, one is looked at
                if (a.shape, value.shape) not in seen:
                    seen.add((a.shape, value.shape))
                    check_shape(value.shape, a.type, a.where, sizes)
            else:
                value = accept(value, a, sizes)
                if type(value) is np.ndarray and value.dtype is a.dtype and not value.dtype.hasobject:
                    arrays.append((i, a.name, a.dtype, value.shape))
                if a.name not in self.donated:
                    value = read_only(value) if is_array(value) else typed(read_only_view(value), a.type)
            values[i] = value
        if is_checked:
            _check_shared({**self.defaults, **{a.name: values[i] for i, a in self.passed}}, self.donated)
        for i in self.copied:
            values[i] = copied(values[i], counters)
        if not held.again:
            return values, None, None
        is_usual = self.recurs and len(arrays) == len(self.passed)
        return values, kind_of(values, self.donated_at), tuple(arrays) if is_usual else None


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


def _check_donation(feeds: Mapping[str, Any], donate: Iterable[str]) -> None:
    for name in donate:
        array = feeds[name]
        where = f"input {name!r}"
        if not is_array(array):
            raise Error("IRC416", f"only arrays can be donated, not {describe(array)}", where)
        if not array.flags.writeable:
            raise Error("IRC416", "a read-only array cannot be donated", where)
        if overlaps_itself(array):
            raise Error("IRC416", "the donated array has several elements in one place: give a copy", where)


def _check_shared(accepted: Mapping[str, Any], donate: Iterable[str]) -> None:
    """Check that no other input shares memory with a donated one, the arrays made of other objects included."""
    for name in donate:
        for other, value in accepted.items():
            if other != name and any(np.may_share_memory(accepted[name], x) for x in arrays_once([value])):
                raise Error("IRC416", f"the donated array may share memory with input {other!r}", f"input {name!r}")
