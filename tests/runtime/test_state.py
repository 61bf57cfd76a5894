"""What a model keeps from run to run: as the last whole run left it, at little cost."""

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.alias import Analyses
from irc.errors import Error
from irc.frontend.torchscript import import_torchscript
from irc.ir import Module
from irc.runtime.model import CompiledModel
from irc.runtime.objects import State
from tests.counting import calls
from tests.graphs import ir
from tests.runtime.helpers import f32, interrupted

PAIR = ir("""
    self: __torch__.Pair; x: Tensor -> r
    one: int = prim.Constant(value=1); a: int = prim.GetAttr(self, name="a")
    b: "int[]" = prim.GetAttr(self, name="b"); a_1: int = add(a, one); prim.SetAttr(self, a_1, name="a")
    t = mul(x, x); prim.SetAttr(self, t, name="x"); b_1: "int[]" = append(b, one); u = matmul(t, x)
    prim.SetAttr(self, u, name="y"); n: int = len(b); r: "(int, int, Tensor)" = prim.TupleConstruct(a_1, n, u)
""")


def pair() -> CompiledModel:
    return irc.compile(import_torchscript(PAIR, {"a": 0, "b": [], "x": f32(0), "y": f32(0)}), "none")


def test_a_run_that_is_interrupted_changes_all_attributes_or_none() -> None:
    module = pair().module
    for at in range(1, 5000):
        model = CompiledModel(module)
        stopped = interrupted(lambda: model.run({"x": f32(1, 2)}), at)  # noqa: B023  # called at once
        attributes = {name: v for _, kept in model.state._kept for name, v in kept.items()}
        a, n, _ = model.run({"x": f32(1, 2)})["r"]
        assert (a, n) in ((1, 1), (2, 2))
        assert (len(attributes["b"]), attributes["x"].shape, attributes["y"].shape) == (
            (0, (1,), (1,)) if a == 1 else (1, (2,), ())
        )
        if not stopped:
            break
    assert 100 < at < 4999 and a == 2


def test_a_run_that_ends_in_an_error_changes_no_attribute() -> None:
    model = pair()
    with pytest.raises(Error):
        model.run({"x": np.ones((2, 3), np.float32)})  # matmul refuses it, after attributes were set
    assert model.run({"x": f32(1, 2)})["r"][:2] == (1, 1)


def test_a_result_that_cannot_leave_changes_no_attribute() -> None:
    text = ir("""
        self: __torch__.C; x: Tensor -> b, x
        a: int = prim.GetAttr(self, name="a"); b: int = add(a, 1); prim.SetAttr(self, b, name="a")
    """)
    model = irc.compile(import_torchscript(text, {"a": 0}), "none")
    assert model.run({"x": f32(0)})["b"] == 1
    with pytest.raises(Error, match="IRC442: output 'x'"):
        model.run({"x": np.ones(1000, np.float32)}, limits=irc.Limits(bytes=1000))
    assert model.run({"x": f32(0)})["b"] == 2


def test_an_interrupt_as_a_function_returns_leaves_no_run_going_on() -> None:
    """Its traceback may live on: what it holds is not to be waited for."""
    for at in range(1, 1000):
        model, returns = pair(), 0
        error = None

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal returns
            if not frame.f_code.co_filename.endswith(("contextlib.py", "objects.py", "model.py")):
                return None
            if event == "return":
                returns += 1
                if returns == at:  # noqa: B023  # called at once
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            model.run({"x": f32(1, 2)})
        except KeyboardInterrupt as caught:
            error = caught
        finally:
            sys.settrace(before)
        found: list[Any] = []
        model.run({"x": f32(1, 2)})
        other = threading.Thread(target=lambda: found.append(model.run({"x": f32(1, 2)})), daemon=True)  # noqa: B023
        other.start()
        other.join(60)
        assert found
        if error is None:
            break
    assert 10 < at < 999


@pytest.mark.parametrize("change", ["", "%c : int[] = aten::append(%l, %m)"], ids=["read", "changed"])
def test_runs_take_no_longer_for_numbers_that_a_model_keeps(change: str) -> None:
    text = f"""
    graph(%self : __torch__.Net, %x : Tensor):
      %l : int[] = prim::GetAttr[name="l"](%self)
      %m : int = prim::GetAttr[name="m"](%self)
      %n : int = aten::len(%l)
      %k : int = aten::add(%m, %n)
      prim::SetAttr[name="m"](%self, %k)
      {change}
      return (%k)
    """

    def work(size: int) -> int:
        model = irc.compile(import_torchscript(text, {"l": list(range(size)), "m": 0}), "none")
        model.run({"x": f32(1)})
        assert model.run({"x": f32(1)})["k"] == 2 * size + bool(change)
        return calls(lambda: model.run({"x": f32(1)}))

    assert work(10_000) == work(10)


NESTED = """
graph(%self : __torch__.Outer, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %inner : __torch__.Inner = prim::GetAttr[name="inner"](%self)
  %other : __torch__.Inner = prim::GetAttr[name="other"](%self)
  %l : int[] = prim::GetAttr[name="l"](%inner)
  %m : int[] = prim::GetAttr[name="l"](%other)
  %k : int[] = prim::GetAttr[name="k"](%inner)
  {change}
  %a : int = aten::len(%l)
  %b : int = aten::len(%m)
  %c : int = aten::len(%k)
  %y : Tensor = aten::matmul(%x, %x)
  %r : (int, int, int) = prim::TupleConstruct(%a, %b, %c)
  return (%r)
"""


def nested(change: str) -> Module:
    return import_torchscript(NESTED.format(change=change), {"inner.l": [], "other.l": [], "inner.k": [7]})


def test_objects_in_objects_are_kept_and_stay_one() -> None:
    change = 'prim::SetAttr[name="other"](%self, %inner)\n  %l.1 : int[] = aten::append(%l, %one)'
    model = irc.compile(nested(change), "none")
    assert model.run({"x": f32(1)})["r"] == (1, 0, 1)
    for _ in range(2):
        with pytest.raises(Error):
            model.run({"x": np.ones((2, 3), np.float32)})
    assert model.run({"x": f32(1)})["r"] == (2, 2, 1)
    assert model.run({"x": f32(1)})["r"] == (3, 3, 1)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ("", set()),
        ("%l.1 : int[] = aten::append(%l, %one)", {"inner", "l"}),
        ('prim::SetAttr[name="other"](%self, %inner)', {"other"}),
        ("%s : Tensor = mine::may_do_anything(%inner)", {"inner", "other", "l", "k"}),
    ],
    ids=["none", "list", "attribute", "unknown"],
)
def test_only_attributes_that_may_change_are_copied(change: str, names: set[str]) -> None:
    module = nested(change)
    state = State(module, module.main, Analyses(module))
    assert {name for _, kept in state._kept for name in kept} == names
    assert state.changes == bool(names)


def test_a_constant_list_that_is_set_stays_a_list() -> None:
    text = ir("""
        self: __torch__.Kept; x: Tensor -> l
        l: "(int[], int)" = prim.GetAttr(self, name="l"); k: "(int[], int)" = prim.Constant(value=([1, 2], 3))
        prim.SetAttr(self, k, name="l")
    """)
    model = irc.compile(import_torchscript(text, {"l": ([], 0)}), "none")
    assert [model.run({"x": f32(1)})["l"] for _ in range(3)] == [([], 0), ([1, 2], 3), ([1, 2], 3)]


def reloaded(model: CompiledModel, path: Path) -> CompiledModel:
    model.save(path / "m.irc")
    return irc.load(path / "m.irc")


def test_a_saved_model_goes_on_where_it_was(tmp_path: Path) -> None:
    model = pair()
    assert reloaded(model, tmp_path).run({"x": f32(1, 2)})["r"][:2] == (1, 1)
    model.run({"x": f32(1, 2)})
    with pytest.raises(Error):
        model.run({"x": np.ones((2, 3), np.float32)})  # changes no attribute
    again = reloaded(model, tmp_path)
    assert [model.run({"x": f32(1, 2)})["r"][:2] for _ in range(2)] == [(2, 2), (3, 3)]
    assert again.run({"x": f32(1, 2)})["r"][:2] == (2, 2)
    assert reloaded(again, tmp_path).run({"x": f32(1, 2)})["r"][:2] == (3, 3)
    assert CompiledModel(model.module).run({"x": f32(1, 2)})["r"][:2] == (1, 1)


def test_a_saved_model_has_what_was_written_to_arrays_which_share_memory_as_they_did(tmp_path: Path) -> None:
    text = ir("""
        self: __torch__.Net; x: Tensor -> old
        sum = prim.GetAttr(self, name="sum"); row = prim.GetAttr(self, name="row"); old = add(sum, row, 1)
        new = add_(sum, x, 1); prim.SetAttr(self, select(sum, 1, 1), name="row")
    """)
    weights = {"sum": np.zeros((2, 2), np.float32), "row": f32(0, 0)}
    model = irc.compile(import_torchscript(text, weights), "none")
    x = np.array([[1, 2], [3, 4]], np.float32)
    model.run({"x": x})
    again = reloaded(model, tmp_path)
    for _ in range(3):
        expected = model.run({"x": x})["old"]
        np.testing.assert_array_equal(again.run({"x": x})["old"], expected)
    assert expected.tolist() == [[9, 18], [15, 24]]  # sum is [[3, 6], [9, 12]], row is its second column


LISTS = ir("""
    self: __torch__.Lists; x: Tensor -> n
    a: "int[]" = prim.GetAttr(self, name="a"); b: "int[]" = prim.GetAttr(self, name="b"); n: int = len(b)
    a_1: "int[]" = append(a, n); prim.SetAttr(self, a, name="b")
""")


def test_a_list_at_two_places_cannot_be_saved(tmp_path: Path) -> None:
    model = irc.compile(import_torchscript(LISTS, {"a": [1], "b": [1]}), "none")
    model.save(tmp_path / "m.irc")
    model.run({"x": f32(1)})
    with pytest.raises(Error, match=r"IRC142: attribute 'self.b': the list .* more than once"):
        model.save(tmp_path / "m.irc")


def test_lists_that_hold_each_other_take_no_longer() -> None:
    """As a tree, the last state has 2 ** 60 lists; and one holds itself."""
    text = ir("""
        self: __torch__.Kept; x: Tensor -> n, l
        old: Any = prim.GetAttr(self, name="v"); own: "Any[]" = prim.GetAttr(self, name="own")
        l: "Any[]" = prim.ListConstruct(old, old); prim.SetAttr(self, l, name="v"); own_1: "Any[]" = append(own, own)
        n: int = len(own)
    """)
    model = irc.compile(import_torchscript(text, {"v": f32(1), "own": []}), "none")
    for i in range(60):
        assert model.run({"x": f32(1)}, limits=irc.Limits(bytes=1 << 16))["n"] == i + 1
    (state,) = (kept for _, kept in model.state._kept)
    assert all(item is state["own"] for item in state["own"])


def test_objects_that_leave_share_nothing_with_what_is_kept() -> None:
    text = ir("""
        self: __torch__.Net; x: Tensor -> box
        sum = prim.GetAttr(self, name="sum"); new = add_(sum, x, 1); box: "__torch__.Box" = prim.CreateObject()
        prim.SetAttr(box, sum, name="t")
    """)
    model = irc.compile(import_torchscript(text, {"sum": f32(0)}), "none")
    first = model.run({"x": f32(1)})["box"].attributes["t"]
    second = model.run({"x": f32(1)})["box"].attributes["t"]
    assert (first.tolist(), second.tolist()) == ([1], [2])
    second[:] = 100
    assert model.run({"x": f32(1)})["box"].attributes["t"].tolist() == [3]


def test_an_object_at_two_places_cannot_be_saved(tmp_path: Path) -> None:
    change = 'prim::SetAttr[name="other"](%self, %inner)\n  %l.1 : int[] = aten::append(%l, %one)'
    model = irc.compile(nested(change), "none")
    model.run({"x": f32(1)})
    with pytest.raises(Error, match=r"IRC142: attribute 'self.other': .* more than once"):
        model.save(tmp_path / "m.irc")
    assert not list(tmp_path.iterdir())


SHARED = """
graph(%self : __torch__.Shared, %x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %l : Tensor[] = {}
  %v : Tensor = aten::neg(%x)
  %l.1 : Tensor[] = aten::append(%l, %v)
  %e : Tensor = aten::__getitem__(%l, %zero)
  %w : Tensor = aten::add_(%e, %one, %one)
  %n : int = aten::len(%l)
  %u : Tensor = aten::matmul(%v, %x)
  %r : (Tensor, int, Tensor) = prim::TupleConstruct(%v, %n, %u)
  return (%r)
"""
READ = 'prim::GetAttr[name="l"](%self)'
GROUP = f"""with prim::FusionGroup_0 = graph(%self : __torch__.Shared):
  %l : Tensor[] = {READ}
  return (%l)
"""


@pytest.mark.parametrize(
    "text", [SHARED.format(READ), SHARED.format("prim::FusionGroup_0(%self)") + GROUP], ids=["alone", "in a group"]
)
@pytest.mark.parametrize("passes", ["none", "default"])
def test_attributes_may_be_read_anywhere(text: str, passes: str) -> None:
    model = irc.compile(import_torchscript(text, {"l": []}), passes)
    v, n, _ = model.run({"x": f32(1, 2)})["r"]
    with pytest.raises(Error):
        model.run({"x": np.ones((2, 3), np.float32)})
    assert (v.tolist(), n) == ([0, -1], 1)
    assert model.run({"x": f32(1, 2)})["r"][1] == 2
    assert v.tolist() == [0, -1]
