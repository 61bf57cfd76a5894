"""A cache of what is made for kinds of runs, which may come again.

The oldest does not simply make way: of more kinds than there is room for, which come in turn, each would be thrown out
just before it comes again, and everything made anew for ever.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import RLock
from typing import Generic, TypeVar

Made = TypeVar("Made")

MET = 1 << 10
"""Kinds without anything that are remembered to have come, by their hashes."""

PAUSE = 64
"""Once there is no more room, a kind takes the place of another at most once in so many runs. To plan memory takes as
long as 4 to 13 runs on small arrays: where kinds come at random, that must not be most of the work."""


@dataclass(slots=True)
class _Entry(Generic[Made]):
    made: Made
    cost: int
    last: int  # when the kind came last


class PlanCache(Generic[Made]):
    """What was made for kinds that may come again. Several threads may use it at once.

    When there is no more room, a kind takes the place of the one that has not come for longest, if it has come twice
    since then: of kinds that come in turn some stay, and those that come no more do not.

    Args:
        budget: what all that is kept may cost; the last to find room may exceed it.
        least: for how many kinds there is room in any case.

    Attributes:
        budget: as given; it may be changed.
    """

    def __init__(self, budget: int, least: int) -> None:
        self.budget = budget
        self._least = least
        self._kept: OrderedDict[Hashable, _Entry[Made]] = OrderedDict()
        self._met: OrderedDict[int, int] = OrderedDict()  # when kinds for which nothing is kept came last
        self._spent = 0
        self._now = 0
        self._resume = 0
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._kept)

    def made(self) -> list[Made]:
        """All that is kept; that of the kind that came last is the last."""
        return [entry.made for entry in list(self._kept.values())]

    def get(self, kind: Hashable) -> Made:
        """What is kept for ``kind``, which comes now; KeyError if nothing is."""
        with self._lock:
            self._now += 1
            entry = self._kept[kind]
            entry.last = self._now
            self._kept.move_to_end(kind)  # KeyError too: at any line, a signal handler may make runs that throw it out
            return entry.made

    def admits(self, kind: Hashable, new: bool = True) -> bool:
        """Whether to make something for ``kind``, which has come now and for which nothing is cached.

        Args:
            kind: the kind.
            new: whether to do so where there is room, even if it has not come before.
        """
        with self._lock:
            before = self._met.pop(hash(kind), 0)
            if self._is_full():
                found = before > 0 and self._now >= self._resume and before > self._oldest().last
            else:
                found = new or before > 0
            if not found:
                self._met[hash(kind)] = self._now
                while len(self._met) > MET:
                    self._met.popitem(last=False)
            return found

    def put(self, kind: Hashable, made: Made, cost: int) -> None:
        """Keep ``made`` for ``kind``, which has come now, and of the others those that there is room for."""
        with self._lock:
            self._kept.pop(kind, None)  # to the end
            self._kept[kind] = _Entry(made, cost, self._now)
            # Added up anew, as an interrupt may have come between a kind and its cost.
            self._spent = sum([entry.cost for entry in list(self._kept.values())])
            while len(self._kept) > self._least and self._spent - self._oldest().cost >= self.budget:
                self._spent -= self._kept.popitem(last=False)[1].cost
                self._resume = self._now + PAUSE

    def _is_full(self) -> bool:
        return len(self._kept) >= self._least and self._spent >= self.budget

    def _oldest(self) -> _Entry[Made]:
        while True:
            try:
                return next(iter(self._kept.values()))
            except RuntimeError:  # a signal handler has made runs between these two calls
                continue
