"""What the rungs count and clock, so that it can be seen why each is slow."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from irc.alias import AliasDb
from irc.alias.incremental import IncrementalSolution


@dataclass
class Counters:
    """Work done by alias analyses.

    Attributes:
        builds: alias analyses built.
        visited: elements that searches visited; with a memo, those whose locations were computed.
        rescans: writes, loads and stores that were looked at again because of a new edge or wildcard; with a memo,
            known sets that grew.
        unions: sets of locations united.
    """

    builds: int = 0
    visited: int = 0
    rescans: int = 0
    unions: int = 0

    def to_dict(self) -> dict[str, int]:
        return asdict(self)


PHASES = ("build-up", "indices", "queries", "updates", "passes")
"""What a compilation spends its time on: recording facts, making indices of them, asking, telling of changes, the rest.
Where indices are kept right while facts are recorded, both count as indices."""


class PhaseClock:
    """Processor seconds by phase. Phases nest; what runs inside another counts as its own."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(PHASES, 0.0)
        self._stack: list[str] = ["passes"]
        self._since = time.process_time()

    def total(self) -> float:
        """Seconds since the clock was made."""
        self._charge()
        return sum(self.seconds.values())

    @contextmanager
    def phase(self, name: str) -> Generator[None]:
        """What runs inside counts as ``name``."""
        self._charge()
        self._stack.append(name)
        try:
            yield
        finally:
            self._charge()
            self._stack.pop()

    def watch(self, db: AliasDb) -> None:
        """Clock what ``db`` is asked and told. A call costs a microsecond more from now on."""
        for phase, names in _CALLS.items():
            for name in names:
                setattr(db, name, self._clocked(getattr(db, name), phase))

    def _clocked(self, function: Callable[..., Any], phase: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if self._stack[-1] == phase:  # a query that asks another
                return function(*args, **kwargs)
            with self.phase(phase):
                return function(*args, **kwargs)

        return call

    def _charge(self) -> None:
        now = time.process_time()
        self.seconds[self._stack[-1]] += now - self._since
        self._since = now


def _methods(cls: type) -> set[str]:
    return {name for name, what in vars(cls).items() if callable(what) and not name.startswith("_")}


_UPDATES = (_methods(IncrementalSolution) | {"replace_value"}) & _methods(AliasDb) - {"counters"}
_CALLS = {
    "queries": _methods(AliasDb) - _UPDATES - {"rewrite", "check", "counters", "to_dot", "to_networkx", "why"},
    "updates": _UPDATES,
}
