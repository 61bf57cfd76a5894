"""The way of a run from the caller to the plan and back: short, and as careful in later runs as in the first."""

import sys
import threading
from typing import Any

import numpy as np
import pytest

import irc
from irc.errors import Error
from irc.ir import Module, Tensor
from irc.ir.graph import gc_paused
from irc.runtime.bounds import CURRENT, in_own_scope, in_turn
from irc.runtime.kernels.support import scratch
from irc.runtime.model import MAX_SIGNATURES, CompiledModel
from tests.graphs import typed_ir
from tests.runtime.helpers import f32, graph_of, model_of

RELU = "graph(%x : Float(8)):\n  %y : Float(8) = onnx::Relu(%x)\n  return (%y)\n"

PAIR = typed_ir("a, b: Float(n, 2)", "sum = Add(a, b); first = Identity(a); twice = Identity(sum)", "sum, first, twice")

WAY = {"model.py", "boundary.py", "bounds.py", "arguments.py", "objects.py"}


def python_calls(model: CompiledModel, feeds: dict[str, Any]) -> list[str]:
    """The file and function of each Python function that a run calls."""
    calls: list[str] = []

    def profile(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            calls.append(f"{frame.f_code.co_filename.rpartition('/')[2]} {frame.f_code.co_name}")

    before = sys.getprofile()
    with gc_paused():  # which Hypothesis, once it has run a test in this process, has a function called for
        sys.setprofile(profile)
        try:
            model.run(feeds)
        finally:
            sys.setprofile(before)
    return calls


@pytest.mark.parametrize("passes", ["", "default"])
def test_a_steady_run_of_one_operator_makes_few_calls(passes: str) -> None:
    model = irc.compile(graph_of(RELU), passes=passes)
    feeds = {"x": np.linspace(-1, 1, 8, dtype=np.float32)}
    for _ in range(3):
        model.run(feeds)
    calls = python_calls(model, feeds)
    assert len(calls) <= 7, calls
    assert len([call for call in calls if call.split()[0] in WAY]) == 1, calls


def test_later_runs_look_at_values_as_the_first_does() -> None:
    """Arrays of the shapes and types of the run before are bound at once; all others as if it had not been."""
    a, b = f32([1, 2]), f32([10, 20])
    odd: list[tuple[Any, Any, str]] = [
        (a, f32([1, 2], [3, 4]), "IRC414"),
        (a, f32([1, 2, 3]), "IRC413"),
        (a, a.astype(np.float64), "IRC412"),
        (a, np.ma.masked_array(b), "IRC412"),
        (a, None, "IRC415"),
        (f32([1, 2], [3, 4]), f32([1, 2], [3, 4]), ""),
        (a[::-1], b.astype(">f4"), ""),
        ([[1, 2]], b, ""),
        (a.view(np.recarray), b, ""),
        (a, b[:, ::-1], ""),
        (np.broadcast_to(f32(3), (1, 2)), b, ""),
        (a[:0], b[:0], ""),
    ]
    steady = model_of(PAIR)
    for first, second, code in odd:
        steady.run({"a": a, "b": b})
        feeds = {"a": first, "b": second}
        for _ in range(2):
            if code:
                with pytest.raises(Error) as caught:
                    steady.run(feeds)
                with pytest.raises(Error) as wanted:
                    model_of(PAIR).run(feeds)
                assert caught.value.code == wanted.value.code == code
                assert str(caught.value) == str(wanted.value)
            else:
                found, want = steady.run(feeds), model_of(PAIR).run(feeds)
                for name in want:
                    np.testing.assert_array_equal(found[name], want[name])


def test_an_array_that_is_two_outputs_is_copied_once() -> None:
    model = model_of(PAIR)
    feeds = {"a": f32([1, 2]), "b": f32([5, 6])}
    for names, copies in ((["sum", "twice"], 1), (["twice"], 0), (["first"], 1), (["twice", "first", "sum"], 2)):
        for _ in range(3):
            found = list(model.run(feeds, names).values())
            assert model.counters.copies == copies
            assert not any(np.shares_memory(x, y) for i, x in enumerate(found) for y in found[:i])


def test_sets_of_names_beyond_those_that_are_kept() -> None:
    count = 2 * MAX_SIGNATURES
    inputs = ", ".join(f"%x{i} : Float(2)" for i in range(count))
    outputs = "".join(f"  %y{i} : Float(2) = onnx::Neg(%x{i})\n" for i in range(count))
    graph = graph_of(f"graph({inputs}):\n{outputs}  return ({', '.join(f'%y{i}' for i in range(count))})\n")
    module = Module(graph)
    for i in range(count):
        module.defaults[f"x{i}"] = Tensor.of(f32(i, -i))
    model = CompiledModel(module)
    for _ in range(2):
        for i in range(count):
            found = model.run({f"x{i}": f32(100, 200)}, [f"y{i}", f"y{(i + 1) % count}"])
            other = (i + 1) % count
            assert found[f"y{i}"].tolist() == [-100, -200]
            assert found[f"y{other}"].tolist() == [-other, other]
            assert len(model._signatures) <= MAX_SIGNATURES


def test_a_default_that_is_written_to_stays() -> None:
    text = "graph(%x : Float(2), %w : Float(2)):\n  %y : Float(2) = onnx::Add_(%w, %x)\n  return (%y)\n"
    module = Module(graph_of(text))
    module.defaults["w"] = Tensor.of(f32(10, 100))
    model = CompiledModel(module)
    for _ in range(4):
        assert model.run({"x": f32(1, 2)})["y"].tolist() == [11, 102]
        assert model.counters.copies == 1


def test_sizes_of_defaults_are_those_of_other_inputs() -> None:
    text = "graph(%x : Float(n), %w : Float(n)):\n  %y : Float(n) = onnx::Add(%w, %x)\n  return (%y)\n"
    module = Module(graph_of(text))
    module.defaults["w"] = Tensor.of(f32(10, 100))
    model = CompiledModel(module)
    for _ in range(2):
        with pytest.raises(Error, match=r"IRC414.*'n'.*'x'|IRC414.*'n'.*'w'"):
            model.run({"x": f32(1)})
        assert model.run({"x": f32(1, 2)})["y"].tolist() == [11, 102]
        assert model.run({"x": f32(1), "w": f32(3)})["y"].tolist() == [4]


# -- the scope of a run ----------------------------------------------------------


class Guard:
    most_bytes = float("inf")

    def allocate(self, size: int) -> None: ...

    def work(self, products: int) -> None: ...

    def pace(self) -> None: ...


@pytest.mark.parametrize("state", ["raise", "warn", "ignore"])
def test_floating_point_errors_are_results_in_a_run_and_nowhere_else(state: Any) -> None:
    text = "graph(%x : Float(2)):\n  %y : Float(2) = onnx::Log(%x)\n  return (%y)\n"
    model = model_of(text)
    with np.errstate(all=state):
        before = np.geterr()
        for _ in range(3):
            assert np.isnan(model.run({"x": f32(-1, 0)})["y"][0])
            assert np.geterr() == before
        with pytest.raises(Error):
            model.run({"x": f32(1)})
        assert np.geterr() == before


def test_a_run_in_the_middle_of_another_has_a_scope_of_its_own() -> None:
    guards = Guard(), Guard()

    def inner() -> tuple[Any, int]:
        mine = scratch("test", (4,), np.dtype(np.int64))
        mine[:] = 2
        return CURRENT.scope.guard, mine.ctypes.data

    def outer(fails: bool) -> None:
        mine = scratch("test", (4,), np.dtype(np.int64))
        mine[:] = 1
        guard, address = in_own_scope(guards[1], in_turn, inner)
        assert guard is guards[1] and address != mine.ctypes.data and mine.tolist() == [1] * 4
        assert CURRENT.scope.guard is guards[0]
        assert scratch("test", (4,), np.dtype(np.int64)).ctypes.data == mine.ctypes.data
        if fails:
            raise KeyError

    def both() -> None:
        for fails in (False, True, False):
            try:
                in_own_scope(guards[0], in_turn, outer, fails)
            except KeyError:
                assert fails
            assert CURRENT.scope.guard is None

    both()
    thread = threading.Thread(target=both)
    thread.start()
    thread.join()


def test_work_memory_is_kept_from_run_to_run() -> None:
    def address() -> int:
        return scratch("test of runs", (1000,), np.dtype(np.float32)).ctypes.data

    assert in_own_scope(None, in_turn, address) == in_own_scope(None, in_turn, address)
