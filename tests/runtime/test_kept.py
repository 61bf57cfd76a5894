"""What operators of other packages keep from run to run: nobody writes over it, and no result shares memory with it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import parse_module
from irc.ops import Effects, register
from irc.runtime import kernel
from tests.operators import operator_of

register(operator_of("keeping::by_row(Tensor(a -> *) x) -> int", effects=Effects.SIDE_EFFECT))
register(operator_of("keeping::all_by_row(Tensor(a -> *)[] x) -> int", effects=Effects.SIDE_EFFECT))

KEPT: list[Any] = []


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    KEPT.clear()
    yield
    KEPT.clear()


def keep(node: Any) -> Any:
    return lambda x: KEPT.append(x) or 0


def keep_all(node: Any) -> Any:
    return lambda x: KEPT.extend(x) or 0


for kind in ("keeping::by_row", "keeping::by_no_row"):
    kernel(kind)(keep)
for kind in ("keeping::all_by_row", "keeping::all_by_no_row"):
    kernel(kind)(keep_all)


@kernel("keeping::before")
def before(node: Any) -> Any:
    """What it was given last time."""

    def run(x: Any) -> Any:
        KEPT.append(x)
        return KEPT[-2] if len(KEPT) > 1 else np.zeros_like(x)

    return run


def compiled(body: str, passes: str, results: str = "%z") -> irc.CompiledModel:
    return irc.compile(parse_module(f"graph(%x : Float(4)):\n{body}  return ({results})"), passes)


PASSES = pytest.mark.parametrize("passes", ["none", "default", "in-place"])

BODIES = {
    "itself": "  %n : int = keeping::{}(%y)\n",
    "a view": "  %v : Tensor = aten::t(%y)\n  %n : int = keeping::{}(%v)\n",
    "in a branch": """
  %p : bool = prim::Constant[value=1]()
  %i : int = prim::If(%p)
    block0():
      %n : int = keeping::{}(%y)
      -> (%n)
    block1():
      %m : int = prim::Constant[value=0]()
      -> (%m)
""",
    "in a list": "  %l : Tensor[] = prim::ListConstruct(%y)\n  %n : int = keeping::all_{}(%l)\n",
}


@PASSES
@pytest.mark.parametrize("row", ["by_row", "by_no_row"])
@pytest.mark.parametrize("body", BODIES.values(), ids=list(BODIES))
def test_what_they_keep_is_not_written_over(body: str, row: str, passes: str) -> None:
    text = f"  %y : Float(4) = onnx::Relu(%x)\n{body.format(row)}  %z : Float(4) = onnx::Neg(%y)\n"
    model = compiled(text, passes)
    for run in range(1, 5):
        assert model.run({"x": np.full(4, run, np.float32)})["z"].tolist() == [-run] * 4
        assert [k.ravel().tolist() for k in KEPT] == [[k + 1] * 4 for k in range(run)]


@PASSES
@pytest.mark.parametrize("row", ["by_row", "by_no_row"])
def test_what_was_donated_is_not_written_over_either(row: str, passes: str) -> None:
    model = compiled(f"  %n : int = keeping::{row}(%x)\n  %z : Float(4) = onnx::Neg(%x)\n", passes)
    for run in range(1, 4):
        model.run({"x": np.full(4, run, np.float32)}, donate=["x"])
        assert [k.tolist() for k in KEPT] == [[k + 1] * 4 for k in range(run)]


@PASSES
def test_results_share_no_memory_with_what_they_keep(passes: str) -> None:
    model = compiled(
        "  %y : Float(4) = onnx::Neg(%x)\n  %old : Float(4) = keeping::before(%y)\n"
        "  %z : (Float(4), Float(4)) = prim::TupleConstruct(%y, %old)\n",
        passes,
        "%y, %old, %z",
    )
    runs = [model.run({"x": np.full(4, run, np.float32)}) for run in (1, 2, 3)]
    assert [one["old"].tolist() for one in runs] == [[0] * 4, [-1] * 4, [-2] * 4]
    arrays = [a for one in runs for a in (one["y"], one["old"], *one["z"])]
    assert not any(np.shares_memory(a, b) for i, a in enumerate(arrays) for b in (*arrays[:i], *KEPT))
    assert all(a.flags.writeable for a in arrays)


def test_sessions_keep_copies_of_it() -> None:
    model = compiled("  %z : Float(4) = onnx::Neg(%x)\n  %n : int = keeping::by_row(%z)\n", "default")
    session = irc.Session(model, {"x": "z"})
    for _ in range(3):
        session.run({} if KEPT else {"x": np.ones(4, np.float32)})
    assert [k.tolist() for k in KEPT] == [[-1] * 4, [1] * 4, [-1] * 4]
    assert all(k.flags.writeable for k in KEPT)
