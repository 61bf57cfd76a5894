"""Settings for the whole suite."""

import gc
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib import import_module
from itertools import combinations
from typing import Any
from unittest.mock import Mock, patch

import pytest
from hypothesis import settings

from irc.passes import registry as passes
from irc.runtime.kernels import registry as kernels
from tests.effort import EXAMPLES, Spy, Tune

gc.disable()  # until tests are collected: what there is by then stays

if os.environ.get("IRC_BACKEND") == "numpy":
    sys.modules["llvmlite"] = None  # type: ignore[assignment]  # as if it were not installed

# No deadline: how long an example takes says nothing about whether it is right, and machines are shared.
settings.register_profile("irc", deadline=None, print_blob=True, max_examples=max(1, round(100 * EXAMPLES)))
settings.load_profile("irc")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark as slow what `covering` leaves out: cases all of whose n-tuples of parameter values others have too."""
    sweeps: dict[str, list[pytest.Function]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("covering"):
            sweeps.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for function, cases in sweeps.items():
        (strength,) = cases[0].get_closest_marker("covering").args
        covered: set[tuple[tuple[str, int], ...]] = set()
        random.Random(function).shuffle(cases)  # otherwise the first value of each parameter would be in most of them
        for case in cases:
            values = [(name, id(case.callspec.params[name])) for name in sorted(case.callspec.params)]
            tuples = set(combinations(values, strength))
            if tuples <= covered:
                case.add_marker(pytest.mark.slow)
            covered |= tuples


def pytest_collection_finish() -> None:
    """Keep the garbage collector from visiting the tests themselves and all modules: each visit takes a second."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> Iterator[None]:
    """Let SIGINT raise KeyboardInterrupt, also where a shell started the tests in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, signal.SIG_DFL if before is None else before)


@pytest.fixture
def spy() -> Iterator[Spy]:
    with ExitStack() as stack:

        def watch(owner: Any, name: str) -> Mock:
            plain, results = getattr(owner, name), []

            def run(*args: Any, **given: Any) -> Any:
                results.append(plain(*args, **given))
                return results[-1]

            mock = stack.enter_context(patch.object(owner, name, autospec=True, side_effect=run))
            mock.results = results
            return mock

        yield watch


@pytest.fixture
def own_registries() -> Iterator[None]:
    """Passes and kernels that a test registers are forgotten after it; irc's own, which load meanwhile, are not."""
    kept = dict(passes._PASSES), {kind: (list(a), list(b)) for kind, (a, b) in kernels._BINDERS.items()}
    yield
    for registry, before in zip((passes._PASSES, kernels._BINDERS), kept):
        for name, found in list(registry.items()):
            made = found[1] if isinstance(found, tuple) else [found]
            if any(not getattr(each, "__module__", "").startswith("irc.") for each in made):
                del registry[name]
        registry.update({name: each for name, each in before.items() if name not in registry})


@pytest.fixture
def tune(monkeypatch: pytest.MonkeyPatch) -> Tune:
    def set_number(name: str, value: float) -> None:
        module, _, number = name.rpartition(".")
        assert isinstance(getattr(import_module(module), number), int | float), "code is not changed: only numbers are"
        monkeypatch.setattr(name, value)

    return set_number
