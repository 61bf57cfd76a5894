"""Binding the values that a caller passes to the inputs of a graph.

Memory that a run may not change enters it as read-only views: NumPy's views of
read-only memory are read-only, so no kernel writes an array of the caller, and a
result that shows one is seen at the exit (`irc.runtime.outputs`).

Where the values of one set of names go is found out once (`Binding`). Calls
with arrays of the same types and shapes as the call before need no other check.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from irc.errors import Error, suggestion
from irc.ir import Tensor
from irc.ir.fixed_sizes import sizes_text
from irc.runtime.arguments import Argument, Sizes, accept, check_shape
from irc.runtime.layouts import overlaps_itself
from irc.runtime.memory.growable import plain
from irc.runtime.outputs import copied, read_only_view
from irc.runtime.values import Array, arrays_once, describe, is_array

if TYPE_CHECKING:
    from irc.runtime.execution import Counters
    from irc.runtime.results import Path


@dataclass(slots=True)
class Loan:
    """Arrays of a session, by input name, that a run may overwrite: no other array shows their contents.

    Attributes:
        arrays: the arrays; if one is a view, no other array shows the memory that it is a view of.
        taken: whether a run has got them. Their contents are undefined from then on.
    """

    arrays: Mapping[str, Array]
    taken: bool = False

    def take(self) -> None:
        self.taken = True
        for array in self.arrays.values():
            array.flags.writeable = True


class Held(NamedTuple):
    """What a session has kept of its last step, and is to keep of the next one.

    Attributes:
        names: the names of inputs that the caller does not pass.
        arrays: a read-only array for each. It may be extended in place, unless it has been extended already.
        loan: the arrays among them that the run may overwrite; they count as donated.
        keep: paths of the results to return as arrays that nothing may change.
        again: whether inputs of the same shapes may come again. (Caches that grow do not.)
    """

    names: tuple[str, ...] = ()
    arrays: Sequence[Array] = ()
    loan: Loan | None = None
    keep: tuple[Path, ...] = ()
    again: bool = True

    @property
    def by_name(self) -> dict[str, Array]:
        return dict(zip(self.names, self.arrays))

    @property
    def lent(self) -> Collection[str]:
        """The names of the arrays that the run may overwrite."""
        return () if self.loan is None else self.loan.arrays

    @property
    def not_lent(self) -> Sequence[Array]:
        """The arrays that the run may not overwrite."""
        if self.loan is None:
            return self.arrays
        return [array for name, array in zip(self.names, self.arrays) if name not in self.loan.arrays]


NOTHING = Held()


@dataclass(slots=True, eq=False)
class Binding:
    """Where the values of one set of input names go.

    Attributes:
        values: one for each input of the graph: the objects, the defaults of those that are left out, else None.
        passed: position and name of each input that the caller passes, in the model's order.
        donated: the names among them whose arrays may be overwritten.
        defaults: the values of those that are left out, by name, and the sizes that these give to named dimensions.
        held: for each array that the session gives, its number there and its position here.
        alike: the numbers of arrays that the session gives, those of equal declared shapes together.
        copied: position and name of each input that is left out, or given by the session, and may be written to.
        last: position, name, NumPy's element type and shape of each array of the last call, if it passed nothing but
            arrays of the stated element types, and none of them is donated or may be written to; else None.
    """

    values: list[Any]
    passed: tuple[tuple[int, str], ...]
    donated: tuple[str, ...]
    defaults: tuple[dict[str, Any], Sizes]
    held: tuple[tuple[int, int], ...]
    alike: tuple[tuple[int, ...], ...]
    copied: tuple[tuple[int, str], ...]
    last: tuple[tuple[int, str, Any, tuple[int, ...]], ...] | None = None


class Inputs:
    """The inputs of a graph.

    Args:
        order: their names, in order.
        arguments: those that a caller may pass.
        defaults: of optional ones.
        objects: those that the model has itself.
        written: the names of those that a run may write to.
        sizes: the sizes of named dimensions that the graph was compiled for.
    """

    def __init__(
        self,
        order: Sequence[str],
        arguments: Iterable[Argument],
        defaults: Mapping[str, Any],
        objects: Mapping[str, Any],
        written: frozenset[str],
        sizes: Mapping[str, int],
    ) -> None:
        self._place = {name: i for i, name in enumerate(order)}
        self._arguments = {a.name: a for a in arguments}
        self._defaults = defaults
        self._objects = objects
        self._written = written
        self._sizes = sizes

    def places(self, names: Collection[str]) -> tuple[int, ...]:
        """The positions of the inputs called ``names``, in order."""
        return tuple(i for name, i in self._place.items() if name in names)

    def binding(self, given: Sequence[str], donate: Iterable[str] = (), held: Sequence[str] = ()) -> Binding:
        """How values are bound if a caller passes those called ``given`` and donates some, and a session has others.

        (An input that both give takes its value from the caller.)

        Raises:
            Error: IRC410 an input is unknown or missing; IRC416 one is donated and not given; others if a default is
                no value of its input.
        """
        known, place = self._arguments, self._place
        for name in given:
            if name not in known:
                raise Error("IRC410", f"the model has no input {name!r}; {suggestion(name, known)}")
        fresh, taken = frozenset(given), {name: k for k, name in enumerate(held) if name not in given}
        left_out = [a for name, a in known.items() if name not in fresh and name not in taken]
        if absent := [a for a in left_out if not a.optional]:
            each = ", ".join(f"{a.name!r} ({a.type})" for a in absent)
            raise Error("IRC410", f"no value for input{'s' if len(absent) > 1 else ''} {each}")
        donated = tuple(sorted(set(donate)))
        for name in donated:
            if name not in fresh:
                raise Error("IRC416", f"{name!r} is donated, but it is not among the inputs given")
        sizes: Sizes = {}
        defaults = {a.name: accept(_value(self._defaults[a.name]), a, sizes) for a in left_out}
        values: dict[str, Any] = {**self._objects, **{name: read_only_view(v) for name, v in defaults.items()}}
        alike: dict[Any, list[int]] = {}
        for name, k in taken.items():
            alike.setdefault(known[name].shape, []).append(k)
        return Binding(
            [values.get(name) for name in place],
            tuple((place[name], name) for name in known if name in fresh),
            donated,
            (defaults, sizes),
            tuple((k, place[name]) for name, k in taken.items()),
            tuple(map(tuple, alike.values())),
            tuple((place[name], name) for name in (*taken, *defaults) if name in self._written),
        )

    def bind(self, binding: Binding, feeds: Mapping[str, Any], held: Held, counters: Counters) -> list[Any]:
        """The values for the graph's inputs, in order.

        Args:
            binding: of the names in ``feeds``, those of ``held`` and the donated ones.
            feeds: what the caller passes.
            held: what a session gives.
            counters: where copies are counted.

        Raises:
            Error: IRC412 to IRC416, as `CompiledModel.run`.
        """
        values = binding.values.copy()
        if binding.last is not None:
            for i, name, dtype, shape in binding.last:
                value = feeds[name]
                if type(value) is not np.ndarray or value.dtype is not dtype or value.shape != shape:
                    break
                values[i] = view = value.view()
                view.setflags(write=False)
            else:
                return values
        try:
            return self._bind_any(binding, values, feeds, held, counters)
        except Error as error:
            if error.code != "IRC413" or not self._sizes:
                raise
            message = f"{error.message}; the model was compiled for {sizes_text(self._sizes)}"
            raise Error(error.code, message, error.where) from None

    def _bind_any(
        self, binding: Binding, values: list[Any], feeds: Mapping[str, Any], held: Held, counters: Counters
    ) -> list[Any]:
        """As `bind`, for values of any kind; it sets ``binding.last``."""
        written, donated = self._written, binding.donated
        if donated:
            feeds = {name: plain(value) for name, value in feeds.items()}
            _check_donation(feeds, donated)
        defaults, sizes = binding.defaults[0], dict(binding.defaults[1])
        accepted: dict[str, Any] = {}
        for i, name in binding.passed:
            value = accepted[name] = accept(feeds[name], self._arguments[name], sizes)
            if name not in donated:
                value = copied(value, counters) if name in written else read_only_view(value)
            values[i] = value
        _check_shared({**defaults, **accepted}, donated)
        for k, i in binding.held:
            values[i] = held.arrays[k]
        for i, name in binding.copied:
            if name not in held.lent:
                values[i] = copied(values[i], counters)
        # Many are alike (a decoder's caches): of those with equal sizes, one is looked at.
        for numbers in binding.alike:
            for shape, k in {held.arrays[k].shape: k for k in numbers}.items():
                try:
                    check_shape(shape, self._arguments[held.names[k]], sizes)
                except Error as error:
                    raise Error(
                        error.code, f"{error.message}; the last step has left it like that", error.where
                    ) from None
        binding.last = None
        if not (donated or held.names or binding.copied) and written.isdisjoint(accepted):
            found = [(i, name, self._arguments[name].dtype, accepted[name]) for i, name in binding.passed]
            if all(type(x) is np.ndarray and x.dtype is dtype and not x.dtype.hasobject for _, _, dtype, x in found):
                binding.last = tuple([(i, name, dtype, x.shape) for i, name, dtype, x in found])
        return values


def _value(default: Any) -> Any:
    return default.numpy() if isinstance(default, Tensor) else default


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
