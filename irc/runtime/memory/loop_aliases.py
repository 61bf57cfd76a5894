"""What loops carry, kept apart from what they are given, which may be needed elsewhere.

What a loop is given, at its beginning or by the trip before, is *handed over* if nothing else needs it. Else it is
*borrowed*: it enters as a read-only view, and so, like inputs and weights, is never overwritten, nor are views of it,
in whatever trip. Hence what a parameter or a result of a loop holds is its own wherever it may be written, and of a
class of its own. Such a value *shows* the classes of what the loop was given, which are in use as long as it is.

So does what holds it, but not all else of its class. What is in one tuple with a loop's result is of one class with it,
and may have been made before the loop; if it showed what the loop makes, each trip would borrow from the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from irc.alias.classes import FOREIGN
from irc.alias.memory_types import has_memory, may_hold
from irc.ir.ops.loops import carried

if TYPE_CHECKING:
    from irc.alias.classes import MemoryClasses
    from irc.ir import Node, Value

_MOST = 32
"""How many locations a value may show, roughly: those of one loop after the other, each given what one before gave."""


class _Column(NamedTuple):
    """What a loop carries in one place.

    Attributes:
        takers: the parameter and the result, if there is one.
        given: what the first trip is given, and later ones.
    """

    takers: tuple[Value, ...]
    given: tuple[Value, ...]

    @property
    def values(self) -> tuple[Value, ...]:
        return self.takers + self.given


class LoopAliases:
    """Which classes of memory the values of a graph may show.

    Args:
        loops: those whose parameters and results are apart from all else in ``classes``.
        classes: of the values of their graph; what cannot be kept apart is joined.
        written: the values that some node writes: a write must reach all that shows the memory.
    """

    def __init__(self, loops: Iterable[Node], classes: MemoryClasses, written: Collection[Value]) -> None:
        self._classes = classes
        self._found: dict[frozenset[int], frozenset[int]] = {}
        left = [one for node in loops for one in _carried(node)]
        while True:  # what is joined may make others reach what is written, or too many locations
            self._shows = _edges(left, classes.locations)
            changed = {FOREIGN, *map(classes.of, written)}
            joined = {one for one in left if self._must_be_joined(one, changed)}
            if not joined:
                return
            for one in joined:
                for value in one.values[1:]:
                    classes.join(one.values[0], value)
            left = [one for one in left if one not in joined]

    def of(self, value: Value) -> frozenset[int]:
        """The class of ``value``, and those that it, or what it holds, may show."""
        locations = self._classes.locations(value)
        found = self._found.get(locations)
        if found is None:
            reached = self._reached(locations, None)
            found = self._found[locations] = frozenset(map(self._classes.class_at, reached))
        return found

    def _must_be_joined(self, one: _Column, changed: Collection[int]) -> bool:
        """Whether memory of ``one`` cannot be borrowed, or is at too many locations to tell them apart."""
        return (
            any(may_hold(value.type) for value in one.values)  # what a container holds is not read-only if that is
            or any(self._classes.of(value) in changed for value in one.takers)
            or any(len(self._reached(self._classes.locations(value), _MOST)) > _MOST for value in one.takers)
        )

    def _reached(self, locations: Iterable[int], most: int | None) -> set[int]:
        found, pending = set(locations), list(locations)
        while pending and (most is None or len(found) <= most):
            further = self._shows.get(pending.pop(), set()) - found
            found |= further
            pending += further
        return found


def _carried(loop: Node) -> Iterator[_Column]:
    """What ``loop`` carries that has memory."""
    at = carried(loop)
    for block in loop.blocks:
        for i in range(at.many):
            takers = (*block.params[at.param + i :][:1], *loop.outputs[i:][:1])
            given = (*loop.inputs[at.input + i :][:1], *block.returns[at.returned + i :][:1])
            takers, given = (tuple([v for v in values if has_memory(v.type)]) for values in (takers, given))
            if takers and given:
                yield _Column(takers, given)


def _edges(apart: Collection[_Column], locations: Callable[[Value], Collection[int]]) -> dict[int, set[int]]:
    """Which locations what is at a location may show directly."""
    found: dict[int, set[int]] = {}
    for one in apart:
        given = {location for value in one.given for location in locations(value)}
        for taker in one.takers:
            for location in locations(taker):
                found.setdefault(location, set()).update(given)
    return found
