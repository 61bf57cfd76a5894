"""Timing contenders side by side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from irc.tools.benchmark import warm_up

T = TypeVar("T")

IRC = "irc"
"""The contender that may not fail."""


def race(
    contenders: Mapping[str, Callable[[T], Any]],
    argument: Callable[[str], T],
    turns: int,
    warm: bool = False,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[dict[str, list[float]], dict[str, Any]]:
    """The seconds that each contender took in each turn, and its last result.

    The contenders take turns, so that what else the machine does falls on all
    of them alike. Each is called with an ``argument(name)`` of its own, made
    outside that time. A contender that fails is said so and left out; irc's
    own errors are raised.

    Args:
        contenders: name -> what to time.
        argument: makes what a contender of that name is called with.
        turns: how many.
        warm: whether what is timed comes after a pause, in which others' threads go to sleep, and after runs that are
            not timed, which wake the contender's own.
        clock: gives seconds; ``time.process_time`` for contenders of one thread, which then do not mind a busy machine.
    """
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    results: dict[str, Any] = {}
    running = dict(contenders)
    for _ in range(turns):
        for name, contender in list(running.items()):
            try:
                if warm:
                    warm_up(lambda name=name, contender=contender: contender(argument(name)))
                given = argument(name)
                results.pop(name, None)  # its memory is not freed inside the clock
                start = clock()
                result = contender(given)
            except Exception as error:
                if name == IRC:
                    raise
                print(f"{name} fails: {type(error).__name__}: {str(error)[:200]}")
                del running[name]
                continue
            samples[name].append(clock() - start)
            results[name] = result
    return {name: samples[name] for name in running}, results
