"""What `irc.compile` is given by mistake is told from a damaged model."""

from pathlib import Path

import pytest

import irc
from tests.cli.helpers import small_model

TEXT = "graph(%x : Float(2)):\n  %y : Float(2) = onnx::Relu(%x)\n  return (%y)\n"


def refusal(given: object) -> irc.Error:
    with pytest.raises(irc.Error) as caught:
        irc.compile(given)
    assert caught.value.code == "IRC101"
    return caught.value


def test_a_compiled_model() -> None:
    assert "compiled already" in refusal(irc.compile(small_model())).message


@pytest.mark.parametrize("name", ["m.irc", "m.onnx"])
def test_a_compiled_file_whatever_its_name(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    irc.compile(small_model()).save(str(tmp_path / "saved.irc"))
    path.write_bytes((tmp_path / "saved.irc").read_bytes())
    error = refusal(path)
    assert "irc.load" in error.message and error.where == str(path)


@pytest.mark.parametrize("name", ["m.ir", "m.txt", "m.IR"])
def test_ir_text(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(TEXT)
    assert "irc.ir.parse_module" in refusal(str(path)).message
    assert irc.compile(irc.ir.parse_module(path.read_text())).run({"x": [1.0, -1.0]})["y"].tolist() == [1, 0]


def test_no_file_of_that_name(tmp_path: Path) -> None:
    with pytest.raises(irc.Error, match="no such file"):
        irc.compile(tmp_path / "m.ir")
