"""Names of any kind, from models and for files: nothing that is printed or written goes wrong for them."""

import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from irc.ir.text.names import value_text
from irc.tools.archives import MAX_NAME
from tests.cli.helpers import GRAPH, Command, small_model
from tests.cli.refusals import assert_refused

CLEAR = "\x1b[2Jy"
SURROGATE = "\ud800"


def named(name: str) -> str:
    """A graph whose result, of ``name``, shares memory with its input."""
    y = value_text(name)
    return f"graph(%x : Float(2)):\n  {y} : Float(2) = aten::view_as(%x, %x)\n  return ({y})\n"


@pytest.mark.parametrize("name", [CLEAR, SURROGATE, "\x9b2J", "\rb", "\u202ey"])
@pytest.mark.parametrize("command", ["print", "alias", "alias --why", "alias --format dot", "run --seed 0"])
def test_what_is_printed_cannot_steer_the_terminal(command: str, name: str, irc: Command) -> None:
    irc.write("g.ir", named(name))
    command, *options = command.split()
    result = irc(command, "g.ir", *options, *(["x", name] if options == ["--why"] else []))
    assert result.status == 0, result
    assert result.out.replace("\n", "").isprintable()
    escaped = value_text(name) if command == "print" else name.encode("unicode_escape").decode()
    assert escaped in result.out


def test_a_line_end_in_a_name_ends_no_line_of_results(irc: Command) -> None:
    irc.write("g.ir", named("a\nb: float32 [9]"))
    assert irc("run", "g.ir", "--seed", "0").out.startswith("a\\nb: float32 [9]: float32 [2]")


@pytest.mark.parametrize("name", [CLEAR, SURROGATE])
def test_pictures_of_any_name(name: str, irc: Command) -> None:
    irc.write("g.ir", named(name))
    escaped = name.encode("unicode_escape").decode()
    dot = irc("alias", "g.ir", "--format", "dot").out
    assert 'label="%{} : Float(2)"'.format(escaped.replace("\\", "\\\\")) in dot
    drawn = ElementTree.fromstring(irc("alias", "g.ir", "--format", "svg").out)
    assert f"%{escaped} : Float(2)" in {each.text for each in drawn.iter("{http://www.w3.org/2000/svg}title")}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("a" * (MAX_NAME + 1), "65532 bytes, and at most 65531"),
        ("é" * 40_000, "80000 bytes"),
        (SURROGATE, "half a surrogate pair"),
        ("a\0b", "null character"),
        ("/a", "out of the folder"),
        ("a/../../b", "out of the folder"),
    ],
    ids=["long", "long in UTF-8", "surrogate", "null", "absolute", "upwards"],
)
def test_names_that_no_entry_of_an_archive_can_have(name: str, says: str, irc: Command) -> None:
    irc.write("g.ir", named(name))
    assert_refused(irc, ["run", "g.ir", "--seed", "0", "-o", "y.npz"], f"IRC503: output .*{says}")


def test_the_longest_name_of_an_entry(irc: Command) -> None:
    name = "a" * MAX_NAME
    irc.write("g.ir", named(name))
    assert irc("run", "g.ir", "--seed", "0", "-o", "y.npz").status == 0
    assert np.load("y.npz")[name].shape == (2,)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="how long names may be is the system's to say")
@pytest.mark.parametrize(
    "argv",
    [
        ["compile", "m.onnx", "-o", "a" * 300 + ".irc"],
        ["compile", "m.onnx", "-o", "a" * 300 + "/m.onnx"],
        ["run", "m.onnx", "--seed", "0", "-o", "a" * 300 + ".npz"],
        ["opt", "g.ir", "-o", "a" * 300 + ".ir"],
    ],
)
def test_outputs_whose_names_are_too_long(argv: list[str], irc: Command) -> None:
    irc.write("m.onnx", small_model())
    irc.write("g.ir", GRAPH)
    assert_refused(irc, argv, "IRC501: a{300}.*: cannot write the file: File name too long")
