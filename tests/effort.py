"""What a test tries in `make test`, and what only in `make test-all`."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from unittest.mock import Mock, patch

import pytest
from hypothesis import HealthCheck, settings

EXAMPLES = float(os.environ.get("IRC_EXAMPLES", "1"))
"""What numbers of examples are multiplied by: less for a quick run, more for a search."""


def examples(count: int, *suppressed: HealthCheck) -> settings:
    """So many examples a run, times `EXAMPLES`; how long they take, or how many are filtered out, fails no test."""
    slow = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, *suppressed]
    return settings(max_examples=max(1, round(count * EXAMPLES)), deadline=None, suppress_health_check=slow)


def slow_if(cases: Collection[Any], slow: Collection[Any]) -> list[Any]:
    """The cases of a parameter, of which those in ``slow`` are left to `make test-all`."""
    parameters = [case if isinstance(case, tuple) else (case,) for case in cases]
    return [pytest.param(*p, marks=pytest.mark.slow if case in slow else ()) for p, case in zip(parameters, cases)]


def in_groups(cases: Iterable[Any], by: Callable[..., Any]) -> Callable[[Callable[..., None]], Callable[[Any], None]]:
    """Makes one test of all cases for which ``by`` gives the same; the error of a case says which one it is of.

    For functions of thousands of small cases: to report a test takes milliseconds.
    """
    groups: dict[Any, list[Any]] = {}
    for case in cases:
        groups.setdefault(by(*case), []).append(case)

    def decorate(test: Callable[..., None]) -> Callable[[Any], None]:
        @pytest.mark.parametrize("group", groups)
        def run(group: Any) -> None:
            for case in groups[group]:
                try:
                    test(*case)
                except BaseException as error:
                    error.add_note(f"of {case}")
                    raise

        return run

    return decorate


Spy = Callable[[Any, str], Mock]
"""Replaces a function of a class or module by one that does the same: a mock, which remembers its calls and, as
``results``, what they gave. The fixture ``spy``."""

Tune = Callable[[str, float], None]
"""Sets a number in a module of irc, given by its full name, for one test: the fixture ``tune``.

Such numbers decide between ways to the same result, or are limits: set low, small operands go the way of large ones.
"""


@contextmanager
def tuned(name: str, value: float) -> Iterator[None]:
    """The fixture ``tune`` for a part of a test: of one example, say."""
    module, _, number = name.rpartition(".")
    owner = import_module(module)
    assert isinstance(getattr(owner, number), int | float), "code is not changed: only numbers are"
    with patch.object(owner, number, value):
        yield
