"""Which kind of model a file is, and how much of one is read."""

import io
from pathlib import Path

import onnx
import pytest

from tests.cli.helpers import GRAPH, Command, small_model
from tests.effort import Tune


@pytest.mark.parametrize("name", ["m.IR", "m.Txt"])
def test_text_by_its_name(name: str, irc: Command) -> None:
    irc.write(name, GRAPH)
    assert irc("print", name).out == GRAPH
    assert irc("run", name, "--seed", "0").status == 0


@pytest.mark.parametrize("name", ["m.IRC", "w.onnx", "m.ir", "model"])
def test_a_compiled_model_by_how_it_begins(name: str, irc: Command) -> None:
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "-o", "saved.irc").status == 0
    Path("saved.irc").rename(name)
    printed = irc("print", name)
    assert printed.out.startswith("graph"), printed.err
    assert irc("run", name, "--seed", "0").out.startswith("y: float32 [1, 8]")
    assert irc("bench", name, "--runs", "1", "--against", "none").status == 0
    assert irc("run", name, "-p", "none").status == 2, "the passes were chosen"
    assert f"IRC101: {name}: this is compiled already" in irc("compile", name).err
    assert irc("opt", name, "-o", name).err.startswith("irc: IRC503"), "neither as text nor over the model that is read"


@pytest.mark.parametrize(
    ("contents", "message"), [(None, "IRC502: m.irc: cannot read"), (b"", "IRC510"), (b"x", "IRC510")]
)
@pytest.mark.parametrize("command", ["compile", "print", "bench"])
def test_what_only_has_the_name_of_a_compiled_model(
    command: str, contents: bytes | None, message: str, irc: Command
) -> None:
    if contents is not None:
        Path("m.irc").write_bytes(contents)
    result = irc(command, "m.irc")
    assert result.status == 1
    assert message in result.err


def test_outputs_in_capitals(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "-o", "M.IRC").status == 0
    assert irc("run", "M.IRC", "--seed", "0", "-o", "Y.NPZ", "--trace", "T.JSON").status == 0
    assert irc("compile", "m.onnx", "-o", "O.ONNX").status == 0
    assert onnx.load("O.ONNX").graph.node


def test_a_compiled_model_is_looked_at_without_kernels(irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "-o", "m.irc").status == 0

    def fail(*_: object) -> None:
        raise AssertionError("it is lowered")

    monkeypatch.setattr("irc.runtime.model.Lowerer", fail)
    assert "onnx::Relu" in irc("print", "m.irc").out
    assert "%y" in irc("alias", "m.irc").out
    assert irc("opt", "m.irc").out == irc("print", "m.irc").out


def test_text_that_begins_with_a_byte_order_mark(irc: Command) -> None:
    irc.write("g.ir", "\ufeff" + GRAPH)
    assert irc("print", "g.ir").out == GRAPH


def test_no_more_text_is_read_than_the_limit(irc: Command, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    with open("huge.ir", "wb") as file:
        file.truncate(20 << 30)  # takes no room where files may have holes
    assert "IRC113: huge.ir: IR text has at most" in irc("print", "huge.ir").err

    class Endless(io.RawIOBase):
        read_so_far = 0

        def readable(self) -> bool:
            return True

        def readinto(self, into: memoryview) -> int:  # type: ignore[override]
            into[:] = b"#" * len(into)
            Endless.read_so_far += len(into)
            return len(into)

    tune("irc.cli.options.MAX_TEXT", 1000)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(Endless())))
    assert irc("print", "-").err == "irc: IRC113: -: IR text has at most 1000 bytes, and this has more\n"
    assert Endless.read_so_far < 2**22
    irc.write("m.ir", GRAPH.ljust(1000, "#"))
    assert irc("print", "m.ir").status == 0
    irc.write("m.ir", GRAPH.ljust(1001, "#"))
    assert irc("print", "m.ir").status == 1
