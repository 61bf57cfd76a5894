"""Members of enumerations, from IR text; `tests/differential/test_enumerations.py` has PyTorch's."""

from enum import Enum
from pathlib import Path

import numpy as np
import pytest

import irc
from irc.cli import main
from irc.frontend.torchscript import import_torchscript
from irc.ir import EnumMember, parse_module
from tests.graphs import ir

TEXT = ir("""
    self: __torch__.Net; x: Float(2); given: Enum<__torch__.Color> -> y, other, name, value, both, colour
    red: "Enum<__torch__.Color>" = prim.Constant(value=__torch__.Color.RED)
    colour: "Enum<__torch__.Color>" = prim.GetAttr(self, name="colour")
    both: "Enum<__torch__.Color>[]" = prim.GetAttr(self, name="both"); is_: bool = eq(colour, red); y = prim.If(is_)
    with block(): n = neg(x); yield n
    with block(): yield x
    other: bool = ne(given, red); name: str = prim.EnumName(given); value: int = prim.EnumValue(colour)
""")


class Color(Enum):
    RED = 7
    BLUE = 8


RED, BLUE = (EnumMember.at(f"__torch__.Color.{c.name}", c.value) for c in Color)
WEIGHTS = {"colour": Color.RED, "both": [Color.BLUE, Color.RED]}
X = np.array([1, 2], np.float32)


@pytest.mark.parametrize("passes", ["none", "default", "freeze"])
@pytest.mark.parametrize("given", [Color.BLUE, BLUE, Color.RED])
def test_members_are_compared_named_and_told_what_they_stand_for(passes: str, given: object, tmp_path: Path) -> None:
    model = irc.compile(import_torchscript(TEXT, WEIGHTS), passes)
    model.save(tmp_path / "model.irc")
    for compiled in (model, irc.load(tmp_path / "model.irc")):
        found = compiled.run({"x": X, "given": given})
        np.testing.assert_array_equal(found.pop("y"), -X)
        blue = given is not Color.RED
        assert list(found.values()) == [blue, "BLUE" if blue else "RED", 7, [BLUE, RED], RED]
        assert found["colour"].value == 7


def test_of_text_alone_it_is_not_known_what_a_member_stands_for() -> None:
    text = ir("""
        -> v
        c: "Enum<__torch__.Color>" = prim.Constant(value=__torch__.Color.RED); v: int = prim.EnumValue(c)
    """)
    with pytest.raises(irc.Error, match=r"^IRC424: .*does not tell what __torch__.Color.RED stands for"):
        irc.compile(parse_module(text)).run({})
    assert irc.compile(parse_module(text.replace("RED]", "RED(7)]"))).run({}) == {"v": 7}


@pytest.mark.parametrize("given", ["RED", 7, None, EnumMember.at("__torch__.Other.RED", 7)])
def test_what_is_no_member_is_refused(given: object) -> None:
    model = irc.compile(import_torchscript(TEXT, WEIGHTS))
    with pytest.raises(irc.Error, match=r"^IRC412: .*input 'given': expected a member of Enum<__torch__.Color>"):
        model.run({"x": X, "given": given})


def test_members_are_written_by_their_names(tmp_path: Path) -> None:
    path, out = tmp_path / "model.ir", tmp_path / "out.npz"
    path.write_text(
        ir("""
        x: Float(2) -> l
        l: "Enum<__torch__.C>[]" = prim.Constant(value=[__torch__.C.A, __torch__.C.B(3)])
    """)
    )
    assert main(["run", str(path), "--seed", "0", "-o", str(out)]) == 0
    with np.load(out) as found:
        assert {name: str(found[name]) for name in found} == {"l[0]": "__torch__.C.A", "l[1]": "__torch__.C.B"}
