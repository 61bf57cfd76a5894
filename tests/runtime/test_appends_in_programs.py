"""Programs on caches, compiled in any way, give what they give if every Concat copies; nothing kept ever changes."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import irc
from irc.ir import parse_graph
from irc.runtime import GrowableArray
from irc.runtime.model import CompiledModel
from tests.effort import examples

PIPELINES = (
    "growable",
    "growable,in-place",
    "in-place,growable",
    "growable,cse,dce,fuse,dce",
    "growable,remove-mutation",
)

POINTWISE = ("onnx::Relu", "onnx::Exp", "onnx::Relu_", "onnx::Neg_")


class _Program:
    """Draws a program on two caches, ``%p`` and ``%q``, and new rows ``%x``; all float32 [*, 2]."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data
        self._count = 0
        self.lines: list[str] = []

    def pick(self, options: Any) -> Any:
        return self._data.draw(st.sampled_from(options))

    def block(self, values: list[str], steps: int, depth: int, indent: str) -> list[str]:
        """Emit some operators on ``values``, and give all that is then known."""
        known = list(values)
        for _ in range(self._data.draw(st.integers(1, steps))):
            known.append(self._operator(known, depth, indent))
        return known

    def _operator(self, known: list[str], depth: int, indent: str) -> str:
        kinds = ["Concat", "Concat", "Concat", "onnx::Identity", "slice", *POINTWISE]
        kind = self.pick([*kinds, "if", "loop"] if depth else kinds)
        a, name = self.pick(known), self._fresh()
        if kind == "Concat":
            several = ", ".join([a, *(self.pick(known) for _ in range(self.pick([1, 1, 2])))])
            self._emit(indent, f"{name} : Float(*, 2) = onnx::Concat[axis=0]({several})")
        elif kind == "slice":
            self._emit(indent, f"{name} : Float(*, 2) = onnx::Slice({a}, %one, %end)")
        elif kind == "if":
            self._emit(indent, f"{name} : Float(*, 2) = prim::If(%c)")
            for branch in range(2):
                self._emit(indent, f"  block{branch}():")
                inner = self.block(known, 2, depth - 1, indent + "    ")
                self._emit(indent, f"    -> ({self.pick(inner[-2:])})")
        elif kind == "loop":
            held = self._fresh()
            self._emit(indent, f"{name} : Float(*, 2) = onnx::Loop(%n, %go, {a})")
            self._emit(
                indent, f"  block0({self._fresh()} : Long(), {(go := self._fresh())} : Bool(), {held} : Float(*, 2)):"
            )
            inner = self.block([*known, held], 2, depth - 1, indent + "    ")
            self._emit(indent, f"    -> ({go}, {self.pick(inner[-3:])})")
        else:
            self._emit(indent, f"{name} : Float(*, 2) = {kind}({a})")
        return name

    def _fresh(self) -> str:
        self._count += 1
        return f"%v{self._count}"

    def _emit(self, indent: str, line: str) -> None:
        self.lines.append(f"  {indent}{line}")

    def text(self) -> str:
        known = self.block(["%p", "%q", "%x"], 7, 2, "")
        outputs = self._data.draw(st.lists(st.sampled_from(known[3:]), min_size=1, max_size=3, unique=True))
        constants = [
            "  %go : Bool() = prim::Constant[value={1}]()",
            "  %one : Long(1) = prim::Constant[value=tensor([1])]()",
            "  %end : Long(1) = prim::Constant[value=tensor([100])]()",
        ]
        inputs = "%c : Bool(), %n : Long(), %p : Float(*, 2), %q : Float(*, 2), %x : Float(*, 2)"
        return "\n".join([f"graph({inputs}):", *constants, *self.lines, f"  return ({', '.join(outputs)})"])


def rows(n: int, start: float) -> np.ndarray:
    return start + np.arange(2 * n, dtype=np.float32).reshape(n, 2) / 8


@examples(100)
@given(st.data())
def test_compiled_in_any_way(data):
    text = _Program(data).text()
    graph = parse_graph(text)
    expected_of = CompiledModel(parse_graph(text))
    options = irc.Options(threads=data.draw(st.sampled_from([None, 1, 3])))
    compiled = irc.compile(graph, data.draw(st.sampled_from(PIPELINES)), options=options)
    caches = [GrowableArray(rows(2, start), 0, data.draw(st.integers(2, 12))) for start in (-1, 1)]
    donated = data.draw(st.sampled_from([[], ["p"], ["p", "q"]]))
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    for c in (True, False):
        feeds = {
            "c": np.array(c),
            "n": np.int64(data.draw(st.integers(0, 3))),
            "x": rows(data.draw(st.integers(0, 2)), 3),
        }
        given = dict(zip("pq", (cache.array for cache in caches)))
        expected = expected_of.run({**feeds, **{name: array.copy() for name, array in given.items()}})
        before = {name: array.copy() for name, array in given.items() if name not in donated}
        found = compiled.run({**feeds, **given}, donate=donated)
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array, err_msg=text)
            kept.append((found[name], array))
        for name, array in before.items():
            np.testing.assert_array_equal(given[name], array, err_msg=text)
        for name, array in found.items():
            assert not any(np.shares_memory(array, other) for n, other in found.items() if n != name)
        if donated:
            break  # their contents are undefined
    for array, copy in kept:
        np.testing.assert_array_equal(array, copy, err_msg=text)
