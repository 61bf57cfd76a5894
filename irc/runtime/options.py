"""How a model is run, as far as users may choose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from irc.errors import Error
from irc.runtime.bounds import Share, in_turn
from irc.runtime.threads import workers
from irc.runtime.threads.processors import usable_processors
from irc.runtime.values import integer


@dataclass(frozen=True)
class Options:
    """How a compiled model runs. Results are the same whatever they are.

    Args:
        threads: how many threads may work at one run, that of the caller included. Large matrix products
            are made in parts, which are shared among them. None: as many as pay.
        bulk: how many operators may be dispatched as one unit; None for any number.

    Raises:
        Error: IRC419 if a number is not positive, or of threads above 64.
    """

    threads: int | None = None
    bulk: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "threads", check_number("threads", self.threads, workers.MOST))
        object.__setattr__(self, "bulk", check_number("bulk", self.bulk))


def sharing(threads: int | None) -> Share:
    """What does work on so many threads; None: on as many as pay. Error IRC419 if a run may not have so many."""
    number = check_number("threads", threads, workers.MOST) or usable_processors()
    if number == 1:
        return in_turn
    return partial(workers.share, threads=number)


def check_number(name: str, value: Any, most: int | None = None) -> int | None:
    """``value``, called ``name``; Error IRC419 unless it is a positive integer of at most ``most``, or None."""
    if value is None:
        return None
    number = integer(value)
    if number is None or number < 1 or (most is not None and number > most):
        limit = "" if most is None else f" of at most {most}"
        raise Error("IRC419", f"{name} must be a positive integer{limit}, or None, not {value!r}")
    return number


DEFAULTS = Options()
