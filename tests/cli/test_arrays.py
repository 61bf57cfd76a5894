"""What .npy files hold, as inputs; and what is said of results."""

import os
import re

import numpy as np
import pytest

from tests.cli.helpers import Command, model, node
from tests.effort import Tune
from tests.graphs import ir

NUMBERS = """graph(%n : int, %f : float, %b : bool, %s : str, %o : int?, %l : float[]):
  return (%n, %f, %b, %s, %o, %l)
"""


def test_numbers_that_are_no_tensors(irc: Command) -> None:
    irc.write("g.ir", NUMBERS)
    values = {"n": 3, "f": np.float32(0.5), "b": True, "s": "a", "o": 4, "l": [1.0, 2.0]}
    given = [f"--input={name}={irc.write(f'{name}.npy', np.array(value))}" for name, value in values.items()]
    result = irc("run", "g.ir", *given)
    assert result.out == "n: 3\nf: 0.5\nb: True\ns: 'a'\no: 4\nl: list of 2: [1.0, 2.0]\n", result.err
    irc.write("n.npy", np.array(3.0))
    assert "IRC412: input 'n': expected a Python int, got float 3.0" in irc("run", "g.ir", *given).err
    result = irc("run", "g.ir", *given[1:])
    assert result.err.endswith("no value for 'n' (int): give --input NAME=FILE.npy, or --seed 0 to make values up\n")
    assert irc("run", "g.ir", "--seed", "0", *given[2:]).status == 0


def test_entries_without_the_slash_of_a_name(irc: Command) -> None:
    irc.write("g.ir", 'graph(%"/x" : float, %x : float, %"/y" : float):\n  return (%"/x", %x, %"/y")\n')
    np.savez("given.npz", x=np.array(1.0), y=np.array(2.0))
    irc.write("slash.npy", np.array(3.0))
    result = irc("run", "g.ir", "-i", "given.npz", "-i", "/x=slash.npy")
    assert result.out == "/x: 3.0\nx: 1.0\n/y: 2.0\n", result.err


LISTS = ir("l: Float(n)[]; t: (Long(), str[])", 'i[Long()], s["str[]"] = prim.TupleUnpack(t)', "l, i, s")


def test_lists_of_tensors_are_given_and_written_one_by_one(irc: Command) -> None:
    irc.write("g.ir", LISTS)
    for name, value in {"a": [1, 2], "b": [3, 4, 5]}.items():
        irc.write(f"{name}.npy", np.array(value, np.float32))
    irc.write("i.npy", np.array(7))
    irc.write("s.npy", np.array(["x", "yz"]))
    given = ["-i", "l=a.npy", "-i", "t=i.npy", "-i", "l=b.npy", "-i", "t=s.npy"]
    result = irc("run", "g.ir", *given, "-o", "y.npz")
    assert result.status == 0, result.err
    with np.load("y.npz") as found:
        assert {name: found[name].tolist() for name in found.files} == {
            "l[0]": [1, 2],
            "l[1]": [3, 4, 5],
            "i": 7,
            "s[0]": "x",
            "s[1]": "yz",
        }


def test_sizes_of_lists_are_those_of_what_is_made_up(irc: Command) -> None:
    lines = ["graph(%y : Float(n, 3)[], %z : Float(n, m)):", "  %i : int = prim::Constant[value=0]()"]
    lines += ["  %h : Tensor = aten::__getitem__(%y, %i)", "  %c : Tensor = onnx::Concat[axis=1](%z, %h)"]
    irc.write("g.ir", "\n".join([*lines, "  return (%c)"]))
    irc.write("y.npy", np.ones((2, 3), np.float32))
    given = ["-i", "y=y.npy", "-i", "y=y.npy"]
    result = irc("run", "g.ir", "--seed", "0", *given)
    assert (result.out[:18], result.err) == ("c: float32 [2, 4] ", "irc: assumed m=1 (--dim changes that)\n")
    assert irc("compile", "g.ir", "--check", *given).status == 0


def test_an_empty_list_is_missed_in_an_archive(irc: Command) -> None:
    irc.write("g.ir", "graph(%y : int[], %b : bool):\n  return (%y, %b)\n")
    irc.write("y.npy", np.zeros(0, np.int64))
    result = irc("run", "g.ir", "--seed", "0", "-i", "y=y.npy", "-o", "y.npz")
    assert (result.status, result.err) == (0, "irc: output 'y' is an empty list: y.npz has no entry for it\n")
    assert np.load("y.npz").files == ["b"]


def test_lists_and_dictionaries_in_each_other_are_entries_of_archives(irc: Command) -> None:
    irc.write(
        "g.ir",
        ir("""
            x: Float(2); i: int -> y, e
            d: Dict(int, Float(2)) = prim.DictConstruct(i, x); e: Dict(int, Float(2)) = prim.DictConstruct()
            y: "Dict(int, Float(2))[]" = prim.ListConstruct(d, d)
        """),
    )
    irc.write("i.npy", np.array(7))
    result = irc("run", "g.ir", "--seed", "0", "-i", "i=i.npy", "-o", "y.npz")
    assert result.err == "irc: output 'e' is an empty dictionary: y.npz has no entry for it\n"
    with np.load("y.npz") as found:
        assert found.files == ["y[0][7]", "y[1][7]"] and found["y[1][7]"].shape == (2,)


def test_empty_ones_in_others_are_said_to_have_no_entry(irc: Command) -> None:
    irc.write(
        "g.ir",
        ir("""
            x: Float(2) -> y, none
            none: "Tensor[]" = prim.ListConstruct(); one: "Tensor[]" = prim.ListConstruct(x)
            y: "Tensor[][]" = prim.ListConstruct(none, one)
        """),
    )
    result = irc("run", "g.ir", "--seed", "0", "-o", "y.npz")
    said = "irc: output 'y[0]' is an empty list: y.npz has no entry for it, nor for 1 more that are empty\n"
    assert (result.status, result.err) == (0, said)
    with np.load("y.npz") as found:
        assert found.files == ["y[1][0]"]


def test_what_is_too_deep_or_too_much_is_in_no_archive(irc: Command, tune: Tune) -> None:
    lines = ["graph(%x : Float(1)):", "  %l0 : Tensor[] = prim::ListConstruct(%x, %x)"]
    lines += [f"  %l{i + 1} : Tensor{'[]' * (i + 2)} = prim::ListConstruct(%l{i}, %l{i})" for i in range(3)]
    irc.write("deep.ir", "\n".join([*lines, "  return (%l3)"]))
    result = irc("run", "deep.ir", "--seed", "0", "-o", "y.npz")
    assert "IRC503: output 'l3[0][0][0]': only tensors, numbers, strings, and lists and dictionaries" in result.err
    tune("irc.tools.archives.MOST_ENTRIES", 7)
    irc.write("wide.ir", "\n".join([*lines, "  return (%l2)"]))
    result = irc("run", "wide.ir", "--seed", "0", "-o", "y.npz")
    assert "IRC503: output 'l2[1][1][1]': more than 7 entries" in result.err and not os.path.exists("y.npz")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["t=i.npy"], "IRC412: input 't': expected a tuple"),
        (["t=i.npy"] * 3, r"IRC410: input 't': this input is given 3 times; it is \(Long\(\), str\[\]\)"),
        (["t=i.npy", "t=i.npy", "l=i.npy"], "IRC412: input 'l', element 0: expected elements of type float32"),
    ],
)
def test_lists_that_are_not_what_the_input_is(irc: Command, given: list[str], says: str) -> None:
    irc.write("g.ir", LISTS)
    irc.write("i.npy", np.array(7))
    result = irc("run", "g.ir", "--seed", "0", *[f"-i{text}" for text in given])
    assert result.status == 1 and re.search(f"^irc: {says}", result.err, re.MULTILINE), result.err


def test_entries_of_one_name_are_refused(irc: Command) -> None:
    irc.write("g.ir", 'graph(%l : Float(2)[], %"l[0]" : Float(2)):\n  return (%l, %"l[0]")\n')
    result = irc("run", "g.ir", "--seed", "0", "-o", "y.npz")
    assert "IRC503: output 'l[0]': this is the name of two entries" in result.err and not os.path.exists("y.npz")


def test_lists_that_hold_each_other_are_shown_down_to_a_level(irc: Command) -> None:
    lines = ["graph(%x : Float(1)):", "  %l0 : Tensor[] = prim::ListConstruct(%x, %x)"]
    lines += [f"  %l{i + 1} : Tensor{'[]' * (i + 2)} = prim::ListConstruct(%l{i}, %l{i})" for i in range(30)]
    lines += ["  %d : Dict(int, Any) = prim::DictConstruct()", "  %k : int = prim::Constant[value=7]()"]
    irc.write("g.ir", "\n".join([*lines, "   = aten::_set_item(%d, %k, %d)", "  return (%l30, %d)"]))
    result = irc("run", "g.ir", "--seed", "0", "--max-bytes", "10000")
    assert result.out.startswith("l30: list of 2: [list of 2: [list of 2: [list of 2: [...]"), result.err
    assert result.out.endswith("d: {7: {7: {7: {...}}}}\n")


def npy(descr: str, shape: str, content: bytes) -> bytes:
    """A .npy file of version 1.0."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (npy("<U0", "(150000000,)", b"some"), "150000000 elements that take no bytes"),
        (npy("|S0", "(150000000,)", b"some"), "150000000 elements that take no bytes"),
        (npy("<U1", "(1,)", b"\xff\xff\xff\x7f"), "not characters"),
        (npy("<U1", "()", b"\xff\xff\xff\x7f"), "not characters"),
        (npy(">U1", "(2,)", b"\0\0\0a\0\x11\0\0"), "not characters"),
    ],
)
def test_strings_that_are_none(content: bytes, says: str, irc: Command) -> None:
    irc.write("g.ir", "graph(%x, %s : str):\n  return (%x)\n")
    irc.write("a.npy", content)
    irc.write("b.npy", np.array("text"))
    for x, s in ("ab", "ba"):
        result = irc("run", "g.ir", "-i", f"x={x}.npy", "-i", f"s={s}.npy")
        assert result.status == 1
        assert re.fullmatch(rf"irc: IRC504: a\.npy: this \.npy file is damaged or truncated: .*{says}\n", result.err)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_pipes_are_no_arrays_and_no_compiled_models(irc: Command) -> None:
    """Neither can be read from one, as they are mapped; and a pipe without a writer would be waited for."""
    irc.write("g.ir", "graph(%x):\n  return (%x)\n")
    os.mkfifo("pipe.npy")
    os.mkfifo("pipe.irc")
    for argv in (["run", "g.ir", "-i", "x=pipe.npy"], ["run", "pipe.irc"]):
        result = irc(*argv)
        assert result.status == 1 and "IRC502" in result.err and "not a regular file" in result.err


def test_names_and_files_that_hold_equals_signs(irc: Command) -> None:
    one, other = np.arange(6, dtype=np.float32).reshape(2, 3)
    nodes = [node("Identity", "x", "a"), node("Identity", "x=1", "b")]
    irc.write("m.onnx", model(nodes, {"x": [3], "x=1": [3]}, ["a", "b"]))
    irc.write("1=f.npy", one)
    irc.write("f.npy", other)
    result = irc("run", "m.onnx", "-i", "x=1=f.npy", "-i", "x=./1=f.npy", "-o", "y.npz")
    assert result.status == 0, result.err
    np.testing.assert_array_equal(np.load("y.npz")["a"], one)
    np.testing.assert_array_equal(np.load("y.npz")["b"], other)


def test_results_that_have_no_mean(irc: Command) -> None:
    irc.write("m.onnx", model([node("Identity", "x", "y")], {"x": [10]}, ["y"]))
    irc.write("x.npy", np.array([np.inf, -np.inf, *range(8)], np.float32))
    result = irc("run", "m.onnx", "-i", "x=x.npy")
    assert (result.out, result.err) == ("y: float32 [10] min -inf, max inf, mean nan\n", "")


def test_inputs_are_made_up_in_the_sizes_of_those_given(irc: Command) -> None:
    proto = model([node("Concat", "x t u", "y", axis=1)], {"x": ["n", 2], "t": ["n", "m"], "u": ["n", "2*n"]}, ["y"])
    irc.write("m.onnx", proto)
    irc.write("x.npy", np.zeros((3, 2), np.float32))
    given = ("--input", "x=x.npy")
    ran = irc("run", "m.onnx", *given, "--seed", "1")
    assert (ran.status, ran.err) == (0, 'irc: assumed m=1, "2*n"=6 (--dim changes that)\n')
    assert "float32 [3, 9]" in ran.out
    assert irc("bench", "m.onnx", *given, "--dim", "m=2").status == 0
    checked = irc("compile", "m.onnx", "--check", *given)
    assert checked.status == 0
    assert '(n=3, m=2, "2*n"=6; n=3, m=3, "2*n"=6, large and tiny numbers; n=3, m=1, "2*n"=6)' in " ".join(
        checked.err.split()
    )
