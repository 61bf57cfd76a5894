"""Limits of a run count strings, lists and dictionaries, and refuse what would be too large before it is there."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

from irc.runtime.limits import Limits
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


def test_what_nothing_refers_to_any_more_is_no_longer_counted() -> None:
    """Far more is made than fits, of which only one string at a time is needed."""
    step = "%z : int[] = prim::rangelist(%i)\n      %k : int = aten::len(%z)\n      %y : str = aten::{}(%x)"
    for way in ("upper", "lower"):
        compiled = model_of(LOOP.format(type="str", step=step.format(way)))
        result = compiled.run({"x0": TEXT, "n": 1000}, limits=Limits(bytes=MIB))["r"]
        assert result == getattr(TEXT, way)()


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
