"""What a caller passes to a model, made into what its plan takes.

Which names may be passed together, and where their values go, is found out once
for each set of names (`_Recipe`): a decoder passes the same ones at each step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from irc.errors import Error, suggestion
from irc.ir import Tensor
from irc.runtime import boundary
from irc.runtime.arguments import Argument, Sizes, accept, check_shape
from irc.runtime.layouts import overlaps_itself
from irc.runtime.memory.likeness import plain
from irc.runtime.values import Array, describe, is_array, is_mapping

if TYPE_CHECKING:
    from irc.runtime.execution import Counters

KEPT = 16
"""Sets of names that recipes are kept for."""


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
    """Inputs that the caller does not pass: read-only arrays of a session, with their names.

    Attributes:
        names: the names of the inputs.
        arrays: an array for each.
        loan: the arrays among them that the run may overwrite.
    """

    names: tuple[str, ...] = ()
    arrays: Sequence[Array] = ()
    loan: Loan | None = None

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


@dataclass(frozen=True, slots=True)
class _Recipe:
    """Where the values of one set of input names go.

    Attributes:
        fresh: the arguments that the caller passes or whose default is taken, in the model's order.
        alike: groups of positions of held arrays, not passed by the caller, whose declared shapes are equal.
        copied: positions of held arrays that may be written to.
        order: for each input of the graph its position among all values: those held, the objects, then `fresh`.
    """

    fresh: tuple[Argument, ...]
    alike: tuple[tuple[int, ...], ...]
    copied: tuple[int, ...]
    order: tuple[int, ...]


class Intake:
    """Checks what is passed to a model and puts it in order.

    Args:
        order: the names of the graph's inputs, in order.
        arguments: those that a caller may pass.
        defaults: of optional ones.
        objects: those that the model has itself.
        written: the names of those that a run may write to.
    """

    def __init__(
        self,
        order: Sequence[str],
        arguments: Iterable[Argument],
        defaults: Mapping[str, Any],
        objects: Mapping[str, Any],
        written: Collection[str],
    ) -> None:
        self._order = order
        self._arguments = {a.name: a for a in arguments}
        self._defaults = defaults
        self._objects = objects
        self._written = written
        self._recipe = lru_cache(KEPT)(self._found)

    def take(self, feeds: Mapping[str, Any], donate: Collection[str], held: Held, counters: Counters) -> list[Any]:
        """The values for the graph's inputs, in order.

        Args:
            feeds: what the caller passes.
            donate: names of inputs that may be overwritten.
            held: values of inputs that are not in ``feeds``. (An input in both takes its value from ``feeds``.)
            counters: where copies are counted.

        Raises:
            Error: IRC410, IRC412 to IRC416, as `CompiledModel.run`.
        """
        if not is_mapping(feeds):
            raise Error("IRC410", f"inputs must be given as a dict from name to value, not {describe(feeds)}")
        recipe = self._recipe(tuple(feeds), held.names)
        if donate:
            feeds = {name: plain(value) for name, value in feeds.items()}
            _check_donation(feeds, donate)
        arrays = list(held.arrays)
        for i in recipe.copied:
            if held.names[i] not in held.lent:
                arrays[i] = boundary.copy(arrays[i], counters)
        values = [*arrays, *self._objects.values()]
        sizes: Sizes = {}
        accepted: dict[str, Any] = {}
        for argument in recipe.fresh:
            name = argument.name
            given = feeds[name] if name in feeds else _value(self._defaults[name])
            value = accept(given, argument, sizes)
            if donate:
                accepted[name] = value
            if name in donate:
                values.append(value)
            elif name in self._written:
                values.append(boundary.copy(value, counters))
            else:
                values.append(boundary.borrow(value))
        if donate:
            _check_shared(accepted, donate)
        # Many are alike (a decoder's caches): of those with equal sizes, one is looked at.
        for positions in recipe.alike:
            shapes = {arrays[i].shape: i for i in positions}
            for shape, i in shapes.items():
                try:
                    check_shape(shape, self._arguments[held.names[i]], sizes)
                except Error as error:
                    raise Error(
                        error.code, f"{error.message}; the last step has left it like that", error.where
                    ) from None
        return [values[i] for i in recipe.order]

    def _found(self, given: tuple[str, ...], held: tuple[str, ...]) -> _Recipe:
        known = self._arguments
        for name in given:
            if name not in known:
                raise Error("IRC410", f"the model has no input {name!r}; {suggestion(name, known)}")
        passed, taken = frozenset(given), frozenset(held).difference(given)
        fresh = tuple(a for name, a in known.items() if name not in taken)
        if absent := [a for a in fresh if not a.optional and a.name not in passed]:
            each = ", ".join(f"{a.name!r} ({a.type})" for a in absent)
            raise Error("IRC410", f"no value for input{'s' if len(absent) > 1 else ''} {each}")
        alike: dict[Any, list[int]] = {}
        for i, name in enumerate(held):
            if name in taken:
                alike.setdefault(known[name].shape, []).append(i)
        names = [*held, *self._objects, *(a.name for a in fresh)]
        place = {name: i for i, name in enumerate(names)}  # of what is held and passed, the latter
        return _Recipe(
            fresh,
            tuple(map(tuple, alike.values())),
            tuple(i for i, name in enumerate(held) if name in taken and name in self._written),
            tuple(place[name] for name in self._order),
        )


def _value(default: Any) -> Any:
    return default.numpy() if isinstance(default, Tensor) else default


def _check_donation(feeds: Mapping[str, Any], donate: Collection[str]) -> None:
    for name in sorted(donate):
        if name not in feeds:
            raise Error("IRC416", f"{name!r} is donated, but it is not among the inputs given")
        array = feeds[name]
        where = f"input {name!r}"
        if not is_array(array):
            raise Error("IRC416", f"only arrays can be donated, not {describe(array)}", where)
        if not array.flags.writeable:
            raise Error("IRC416", "a read-only array cannot be donated", where)
        if overlaps_itself(array):
            raise Error("IRC416", "the donated array has several elements in one place: give a copy", where)


def _check_shared(accepted: Mapping[str, Any], donate: Collection[str]) -> None:
    """Check that no other input shares memory with a donated one, the arrays made of other objects included."""
    for name in sorted(donate):
        for other, value in accepted.items():
            if other != name and boundary.overlaps(accepted[name], value):
                raise Error("IRC416", f"the donated array may share memory with input {other!r}", f"input {name!r}")
