"""A bounded cache of memory plans by run key, with an admission policy that resists thrashing.

Plain LRU would fail here: if more keys than fit come in turn, it evicts each just before its next use and rebuilds
every plan for ever. So a new key is admitted only if it has come more recently than the least recently used entry.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from threading import RLock
from typing import Generic, TypeVar

Made = TypeVar("Made")

MET = 1 << 10
"""The number of uncached keys whose latest use is remembered, by their hashes."""

PAUSE = 64
"""The least number of runs between two evictions. Planning memory takes as long as 4 to 13 runs on small arrays: where
keys come at random, it must not be most of the work."""


@dataclass(slots=True)
class _Entry(Generic[Made]):
    made: Made
    cost: int
    last: int  # the time of the key's latest use


class PlanCache(Generic[Made]):
    """Cached values by key, bounded by their total cost. Several threads may use it at once.

    When the cache is full, a new key evicts the least recently used one if the new key has come twice since that one's
    latest use: of keys that come in turn some stay cached, and keys that stop coming leave.

    Args:
        budget: bound on the total cost of all entries; the last entry admitted may exceed it.
        least: this many entries fit whatever they cost.

    Attributes:
        budget: as given; it may be changed.
    """

    def __init__(self, budget: int, least: int) -> None:
        self.budget = budget
        self._least = least
        self._kept: OrderedDict[Hashable, _Entry[Made]] = OrderedDict()
        self._met: OrderedDict[int, int] = OrderedDict()  # hash of an uncached key -> the time of its latest use
        self._spent = 0
        self._now = 0
        self._resume = 0
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self._kept)

    def made(self) -> list[Made]:
        """All cached values, the most recently used last."""
        return [entry.made for entry in list(self._kept.values())]

    def get(self, key: Hashable) -> Made:
        """The value cached for ``key``, which counts as used now; KeyError if there is none."""
        with self._lock:
            self._now += 1
            entry = self._kept[key]
            entry.last = self._now
            self._kept.move_to_end(key)  # KeyError too: at any line, a signal handler may make runs that evict it
            return entry.made

    def admits(self, key: Hashable, new: bool = True) -> bool:
        """Whether to compute a value for ``key``, which is used now and not cached.

        Args:
            key: the key.
            new: whether a key that has not come before is admitted while the cache is not full.
        """
        with self._lock:
            before = self._met.pop(hash(key), 0)
            if len(self._kept) >= self._least and self._spent >= self.budget:
                found = before > 0 and self._now >= self._resume and before > self._oldest().last
            else:
                found = new or before > 0
            if not found:
                self._met[hash(key)] = self._now
                while len(self._met) > MET:
                    self._met.popitem(last=False)
            return found

    def put(self, key: Hashable, made: Made, cost: int) -> None:
        """Cache ``made`` for ``key``, which is used now, and evict what no longer fits."""
        with self._lock:
            self._kept.pop(key, None)  # to the end
            self._kept[key] = _Entry(made, cost, self._now)
            # Summed afresh: an interrupt may have come between the insertion of an entry and the addition of its cost.
            self._spent = sum([entry.cost for entry in list(self._kept.values())])
            while len(self._kept) > self._least and self._spent - self._oldest().cost >= self.budget:
                self._spent -= self._kept.popitem(last=False)[1].cost
                self._resume = self._now + PAUSE

    def _oldest(self) -> _Entry[Made]:
        return list(self._kept.values())[0]  # noqa: RUF015  in one call: a signal handler may make runs between two
