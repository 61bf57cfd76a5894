"""Inputs that must not be written, and interrupted runs: the model stays usable, what is kept stays as it is."""

import signal
from contextlib import AbstractContextManager, ExitStack
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import irc
from irc.runtime import array_memory
from irc.runtime import model as model_module
from irc.runtime.bounds import CURRENT
from irc.runtime.limits import LimitGuard, Limits
from tests.runtime.test_limits import compiled, f32, loop

CHAIN = "z = Mul(Relu(Add(x, y)), y)"


def chain(passes: str = "default", backend: str = "auto") -> Any:
    return compiled("x, y: Float(n)", CHAIN, "z", passes, backend=backend)


PASSES = ["default", "none", "default,in-place", "none,in-place"]


def expected(x: np.ndarray, y: np.ndarray) -> list[float]:
    return (np.maximum(x + y, 0) * y).tolist()


# -- donations -------------------------------------------------------------------


@pytest.mark.parametrize("passes", ["default", "default,in-place"])
@pytest.mark.parametrize(
    ("feeds", "donate", "says"),
    [
        (lambda m: {"x": m[:3], "y": m[:3]}, ["x"], "share memory with input 'y'"),
        (lambda m: {"x": m[:3], "y": m[:3]}, ["x", "y"], "share memory with input"),
        (lambda m: {"x": m[:3], "y": m[2:5]}, ["x"], "share memory with input 'y'"),
        (lambda m: {"x": m[:3], "y": m[2::-1]}, ["y"], "share memory with input 'x'"),
        (lambda m: {"x": _read_only(m[:3]), "y": m[3:6]}, ["x"], "read-only"),
        (lambda m: {"x": np.frombuffer(bytes(12), np.float32), "y": m[3:6]}, ["x"], "read-only"),
        (lambda m: {"x": as_strided(m, (3,), (0,)), "y": m[3:6]}, ["x"], "share memory"),
        (lambda m: {"x": m[:3], "y": [1.0, 2, 3]}, ["y"], "only arrays"),
        (lambda m: {"x": np.broadcast_to(m[:1], 3), "y": m[3:6]}, ["x"], "read-only"),
    ],
)
def test_donations_that_cannot_be(passes: str, feeds: Any, donate: list[str], says: str) -> None:
    memory = np.arange(1, 9, dtype=np.float32)
    compiled = chain(passes)
    with pytest.raises(irc.Error, match=says) as caught:
        compiled.run(feeds(memory), donate=donate)
    assert caught.value.code == "IRC416"
    assert memory.tolist() == list(range(1, 9))
    x, y = memory[:3], memory[3:6]
    assert compiled.run({"x": x, "y": y})["z"].tolist() == expected(x, y)


def test_lists_that_hold_themselves_are_refused() -> None:
    compiled, x = chain(), np.ones(3, np.float32)
    endless: list[Any] = []
    endless.append(endless)
    for feeds, donate, code in (
        ({"x": x, "y": endless}, [], "IRC415"),
        ({"x": x, "y": endless}, ["x"], "IRC415"),
        ({"x": x, "y": endless}, ["y"], "IRC416"),
        (endless, [], "IRC410"),
        ({"x": x, "y": x}, endless, "IRC416"),
    ):
        with pytest.raises(irc.Error) as caught:
            compiled.run(feeds, donate=donate)
        assert caught.value.code == code


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("passes", PASSES)
def test_inputs_that_overlap_each_other_or_themselves_are_read_only(passes: str) -> None:
    memory = np.arange(1, 9, dtype=np.float32)
    compiled = chain(passes)
    one = as_strided(memory, (4,), (0,))
    for x, y in [
        (memory[:4], memory[:4]),
        (memory[:4], memory[2:6]),
        (memory[3::-1], memory[:4]),
        (one, memory[:4]),
        (one, one),
        (_read_only(memory[:4]), memory[:4]),
    ]:
        assert compiled.run({"x": x, "y": y})["z"].tolist() == expected(x.copy(), y.copy())
        assert memory.tolist() == list(range(1, 9))


@pytest.mark.parametrize("order", ["C", "F", "reversed", "strided", "transposed", "empty", "one"])
def test_any_layout_without_overlaps_may_be_donated(order: str) -> None:
    whole = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
    x = {
        "C": whole,
        "F": np.asfortranarray(whole),
        "reversed": whole[::-1, :, ::-1],
        "strided": whole[:, ::2, 1::2],
        "transposed": whole.transpose(2, 0, 1),
        "empty": as_strided(whole, (0, 3, 4), (0, 0, 0)),
        "one": as_strided(whole, (1, 1, 4), (0, 0, 4)),
    }[order]
    want = np.maximum(x, 2) + 1
    model = compiled("x: Float(*, *, *); two, one: Float()", "z = Add(Max(x, two), one)", "z")
    found = model.run({"x": x, "two": np.float32(2), "one": np.float32(1)}, donate=["x"])
    np.testing.assert_array_equal(found["z"], want)


# -- interrupts ------------------------------------------------------------------


class Interrupted(LimitGuard):
    """Ctrl-C when so many steps have been made."""

    steps = 0

    def enter(self) -> None:
        Interrupted.steps -= 1
        if Interrupted.steps == 0:
            signal.raise_signal(signal.SIGINT)
        super().enter()


def looped() -> Any:
    body = f"x0 = Neg(given)\n{loop('Add(x, x)', row='Abs(double)')}\nlast = Relu(again)"
    return compiled("given: Float(n); m: Long()", body, "last, rows")


def cached() -> Any:
    """Extends a cache."""
    return compiled("past: Float(t); x: Float(n)", "present = Concat(past, x, axis=0); y = Neg(present)", "present, y")


MODELS: dict[str, tuple[Any, dict[str, np.ndarray], list[str]]] = {
    "chain": (lambda: chain(backend="numpy"), {"x": f32(4) * 3, "y": f32(4) * -2}, ["x"]),
    "in place": (lambda: chain("default,in-place", "numpy"), {"x": f32(4) * 3, "y": f32(4) * -2}, ["y"]),
    "loop": (looped, {"given": f32(4), "m": np.array(3)}, ["given"]),
    "cache": (cached, {"past": f32(3), "x": f32(2)}, ["past"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_interrupted_after_any_step_a_model_runs_again(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept inputs are as they were, whether the run was the first or not, and whether something was donated."""
    make_model, feeds, donate = MODELS[name]
    before = {key: value.copy() for key, value in feeds.items()}
    compiled = make_model()
    want = make_model().run(feeds)
    kept = compiled.run(feeds)
    monkeypatch.setattr(model_module, "LimitGuard", Interrupted)
    interrupted = 0
    for steps in range(1, 60):
        for given in ([], donate):
            Interrupted.steps = steps
            copies = {key: value.copy() if key in given else value for key, value in feeds.items()}
            try:
                found = compiled.run(copies, donate=given, limits=Limits(steps=1000))
            except KeyboardInterrupt:
                interrupted += 1
            else:
                assert Interrupted.steps > 0
                _assert_same(found, want)
            assert CURRENT.scope.guard is None
            _assert_same(feeds, before)
            _assert_same(compiled.run(feeds), want)  # without limits: in memory that it keeps from run to run
        if Interrupted.steps > 0:
            break
    else:
        raise AssertionError("there is no end of steps")
    assert interrupted >= 6
    _assert_same(kept, want)
    _assert_same(make_model().run(feeds), want)


def _assert_same(found: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> None:
    assert found.keys() == want.keys()
    for key in want:
        np.testing.assert_array_equal(found[key], want[key])


def test_a_session_goes_on_after_an_interrupt() -> None:
    """The step that was interrupted has not happened: done again, it gives what it would have given."""
    body = "present_0 = Concat(past_0, x, axis=0); y = Neg(x)"
    session = irc.Session(compiled("past_0: Float(t); x: Float(n)", body, "present_0, y"), {"past_0": "present_0"})
    session.run({"past_0": f32(2), "x": f32(1)})

    with patch("irc.runtime.plan.execute", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        session.run({"x": f32(1) * 5})
    found = session.run({"x": f32(1) * 7})
    assert found["y"].tolist() == [-7]
    assert found["present_0"].tolist() == [1, 1, 1, 7]


# -- too little memory -----------------------------------------------------------


def _no_memory(*_: Any) -> Any:
    raise MemoryError("Unable to allocate")


def no_memory() -> AbstractContextManager[Any]:
    """Meanwhile, NumPy has none for `array_memory`; an Error says so."""
    stack = ExitStack()
    stack.enter_context(pytest.raises(irc.Error, match="IRC403: out of memory: Unable to allocate"))
    stack.enter_context(patch.object(array_memory, "np", SimpleNamespace(empty=_no_memory, uint8=np.uint8)))
    return stack


def test_without_memory_for_planned_results_a_run_fails_and_the_next_may_go_on() -> None:
    whole = "sum = ReduceSum(z, keepdims=0)"  # over z, nothing is made: it is planned
    model = compiled("x, y: Float(n)", f"{CHAIN}; {whole}", "sum", "none")
    feeds = {"x": f32(3), "y": f32(3)}
    model.run(feeds)
    with no_memory():
        model.run(feeds)
    assert model.run(feeds)["sum"] == sum(expected(feeds["x"], feeds["y"]))
    assert model.counters.planned


def test_without_memory_for_its_capacity_a_session_has_not_begun() -> None:
    made = compiled("past_0: Float(t); x: Float(n)", "present_0 = Concat(past_0, x, axis=0)", "present_0", "none")
    session = irc.Session(made, {"past_0": "present_0"}, capacity=100)
    with no_memory():
        session.run({"past_0": f32(2), "x": f32(1)})
    assert session.caches == {}
    assert session.run({"past_0": f32(2), "x": f32(1)})["present_0"].tolist() == [1, 1, 1]


def test_without_memory_a_growable_array_stays_as_it_is() -> None:
    grown = irc.runtime.GrowableArray(f32(2), 0)
    with no_memory():
        irc.runtime.GrowableArray(f32(2), 0, 100)
    with no_memory():
        grown.append(f32(1))
    assert grown.array.tolist() == [1, 1]
    assert grown.append(f32(1)) is False
    assert grown.array.tolist() == [1, 1, 1]


def test_without_memory_to_convert_an_input_a_run_fails() -> None:
    swapped = np.dtype(np.float32).newbyteorder()
    with pytest.raises(irc.Error, match="IRC403: input 'x': out of memory"):
        chain().run({"x": np.broadcast_to(np.ones((), swapped), 2**48), "y": f32(3)})
