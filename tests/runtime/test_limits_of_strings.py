"""Limits of a run count strings, lists and dictionaries, and refuse what would be too large before it is there."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import irc
from irc.runtime.limits import LimitGuard, Limits, ObjectBytes
from tests.runtime.helpers import model_of
from tests.runtime.test_limits import refused

MIB = 1 << 20
TEXT, NUMBERS = "ab" * 50_000, list(range(10_000))

LONG: dict[str, tuple[str, dict[str, tuple[str, Any]]]] = {
    "ljust": ("str", {"x": ("str", "a"), "n": ("int", 4 * MIB), "f": ("str", " ")}),
    "rjust": ("str", {"x": ("str", "a"), "n": ("int", 4 * MIB), "f": ("str", " ")}),
    "center": ("str", {"x": ("str", "a"), "n": ("int", 4 * MIB), "f": ("str", "é")}),
    "zfill": ("str", {"x": ("str", "a"), "n": ("int", 4 * MIB)}),
    "add": ("str", {"x": ("str", "a" * 2 * MIB), "y": ("str", "b" * 2 * MIB)}),
    "join": ("str", {"s": ("str", TEXT), "x": ("str[]", ["a"] * 100)}),
    "replace": ("str", {"x": ("str", TEXT), "old": ("str", "a"), "new": ("str", "x" * 100)}),
    "format": ("str", {"x": ("str", "{}{}"), "a": ("str[]", [TEXT] * 50), "b": ("str", "b")}),
    "percentFormat": ("str", {"x": ("str", "%s"), "y": ("str[]", [TEXT] * 50)}),
    "str": ("str", {"x": ("str[]", [TEXT] * 50)}),
    "split": ("str[]", {"x": ("str", TEXT), "s": ("str", "b")}),
    "rsplit": ("str[]", {"x": ("str", TEXT), "s": ("str", "b")}),
    "splitlines": ("str[]", {"x": ("str", TEXT.replace("b", "\n"))}),
    "list": ("str[]", {"x": ("str", TEXT)}),
    "mul": ("int[]", {"x": ("int[]", [1, 2]), "n": ("int", 50_000)}),
    "mul_": ("int[]", {"x": ("int[]", [1, 2]), "n": ("int", 50_000)}),
    "prim::rangelist": ("int[]", {"n": ("int", 50_000)}),
    "prim::tolist": ("int[]", {"x": ("Long(*)", np.arange(100_000)), "n": ("int", 1), "m": ("int", 0)}),
    "items": ("(int, int)[]", {"x": ("Dict(int, int)", dict.fromkeys(NUMBERS, 1))}),
}
"""The type of the result, and operands: by name their type and value."""


@pytest.mark.parametrize("op", LONG)
def test_what_would_be_too_long_is_refused_before_it_is_there(op: str) -> None:
    type, operands = LONG[op]
    kind = op if ":" in op else f"aten::{op}"
    inputs = ", ".join(f"%{name} : {declared}" for name, (declared, _) in operands.items())
    names = ", ".join(f"%{name}" for name in operands)
    compiled = model_of(f"graph({inputs}):\n  %z : {type} = {kind}({names})\n  return (%z)\n")
    feeds = {name: value for name, (_, value) in operands.items()}
    tracemalloc.start()
    try:
        refused(compiled, feeds, "IRC442", op, "needed", "Limits.bytes", bytes=MIB)
        assert tracemalloc.get_traced_memory()[1] < MIB
    finally:
        tracemalloc.stop()
    assert compiled.run(feeds, limits=Limits(bytes=256 * MIB))["z"] == compiled.run(feeds)["z"]


LOOP = """
graph(%x0 : {type}, %n : int):
  %go : bool = prim::Constant[value=1]()
  %r : {type} = prim::Loop(%n, %go, %x0)
    block0(%i : int, %x : {type}):
      {step}
      -> (%go, %y)
  return (%r)
"""


@pytest.mark.parametrize(("type", "x"), [("str", "ab"), ("int[]", [1, 2])])
def test_what_doubles(type: str, x: Any) -> None:
    compiled = model_of(LOOP.format(type=type, step=f"%y : {type} = aten::add(%x, %x)"))
    refused(compiled, {"x0": x, "n": 62}, "IRC442", "aten::add", bytes=MIB)
    assert compiled.run({"x0": x, "n": 3}, limits=Limits(bytes=MIB)) == {"r": x * 8}


def test_what_nothing_refers_to_any_more_is_no_longer_counted() -> None:
    """Far more is made than fits, of which only one string at a time is needed."""
    step = "%z : int[] = prim::rangelist(%i)\n      %k : int = aten::len(%z)\n      %y : str = aten::{}(%x)"
    for way in ("upper", "lower"):
        compiled = model_of(LOOP.format(type="str", step=step.format(way)))
        result = compiled.run({"x0": TEXT, "n": 1000}, limits=Limits(bytes=MIB))["r"]
        assert result == getattr(TEXT, way)()


def test_lists_that_grow_in_place() -> None:
    text = """
graph(%n : int, %s : str):
  %go : bool = prim::Constant[value=1]()
  %l : {type}[] = prim::ListConstruct()
  = prim::Loop(%n, %go)
    block0(%i : int):
      {step}
      -> (%go)
  %k : int = aten::len(%l)
  return (%k)
"""
    steps = {
        "int": "%q : int[] = aten::append(%l, %i)",
        "str": "%u : str = aten::upper(%s)\n      %q : str[] = aten::append(%l, %u)",
        "int[]": "%u : int[] = prim::rangelist(%i)\n      %q : int[][] = aten::append(%l, %u)",
    }
    for type, step in steps.items():
        compiled = model_of(text.format(type=type, step=step))
        refused(compiled, {"n": 100_000, "s": "text" * 100}, "IRC442", bytes=MIB)
        assert compiled.run({"n": 100, "s": "text" * 100}, limits=Limits(bytes=MIB)) == {"k": 100}


def test_inputs_do_not_count() -> None:
    compiled = model_of("graph(%x : str, %l : int[]):\n  %k : int = aten::len(%x)\n  return (%k, %x, %l)\n")
    feeds = {"x": "x" * MIB, "l": NUMBERS}
    assert compiled.run(feeds, limits=Limits(bytes=64))["k"] == MIB


def test_what_is_held_is_let_go_of_with_all_that_only_it_holds() -> None:
    guard = LimitGuard(Limits(bytes=100_000))
    frame: list[Any] = [None, [[("x" * 50_000, "y")], "z" * 40_000]]
    node: Any = None
    guard.after(node, frame, (1, 1))
    kept = frame[1][1]
    with pytest.raises(irc.Error, match="IRC442"):
        guard.allocate(50_000)
    frame.clear()
    guard.allocate(50_000)
    with pytest.raises(irc.Error, match="IRC442"):
        guard.allocate(100_000 - len(kept))


def test_lists_are_counted_by_what_they_have_become() -> None:
    grown: list[int] = []
    held = ObjectBytes([NUMBERS])
    held.count([grown, NUMBERS, grown])
    assert held.now == 0
    grown.extend(range(100))
    held.resize(grown)
    assert 100 * 8 <= held.now <= 100 * 100
    grown.clear()
    held.count([grown])
    held.let_go()
    assert held.now == 0


def test_text_needs_as_many_bytes_as_it_has_characters() -> None:
    compiled = model_of("graph(%p : str, %x : str[]):\n  %z : str = aten::format(%p, %x)\n  return (%z)\n")
    feeds = {"p": "{}", "x": [TEXT] * 5}
    assert compiled.run(feeds, limits=Limits(bytes=MIB))["z"].count("ab") == 5 * 50_000
    refused(compiled, {**feeds, "p": "é{}"}, "IRC442", "format", "needed", bytes=MIB)


def test_lists_that_hold_each_other_are_measured_at_once() -> None:
    """Written, this one has 2 ** 24 numbers."""
    lines = ["graph(%p : str, %i : int):", "  %x0 : int[] = prim::ListConstruct(%i, %i)"]
    lines += [f"  %x{i + 1} : int{'[]' * (i + 2)} = prim::ListConstruct(%x{i}, %x{i})" for i in range(23)]
    compiled = model_of("\n".join([*lines, "  %z : str = aten::format(%p, %x23)", "  return (%z)\n"]))
    refused(compiled, {"p": "{}", "i": 1}, "IRC442", "format", "needed", bytes=MIB)
