"""The way of a run from the caller to the plan and back: short, and as careful in later runs as in the first."""

import threading
from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from irc.ir import Module, Tensor
from irc.runtime.bounds import CURRENT, in_own_scope, in_turn
from irc.runtime.kernels.support import scratch
from irc.runtime.model import MAX_SIGNATURES, CompiledModel
from tests.graphs import typed_ir
from tests.runtime.helpers import f32, graph_of, model_of

PAIR = typed_ir("a, b: Float(n, 2)", "sum = Add(a, b); first = Identity(a); twice = Identity(sum)", "sum, first, twice")


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
