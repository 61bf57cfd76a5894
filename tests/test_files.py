"""Files appear whole or not at all."""

import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from irc.errors import Error
from irc.support import files
from irc.support.files import replacing


def write(path, text: bytes = b"new") -> None:
    with replacing(path) as file:
        file.write(text)


def test_the_file_is_there_when_the_block_has_ended_and_nothing_else_is(tmp_path: Path):
    path = tmp_path / "x.bin"
    with replacing(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["x.bin"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, OSError, Error])
def test_if_the_block_fails_the_old_file_stays(tmp_path: Path, error: type[BaseException]):
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    raised = error("IRC999", "message") if error is Error else error("message")

    def write() -> None:
        with replacing(path) as file:
            file.write(b"new")
            raise raised

    with pytest.raises(Error if error is OSError else error):
        write()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["x.bin"]


def test_an_interrupt_when_the_file_has_just_been_made_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def opened(*arguments: Any, **options: Any) -> BinaryIO:
        open(*arguments, **options).close()
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "open", opened, raising=False)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_links_are_followed_and_permissions_kept(tmp_path: Path):
    path, link = tmp_path / "x.bin", tmp_path / "link"
    path.write_bytes(b"old")
    path.chmod(0o640)
    link.symlink_to(path)
    write(link)
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_what_few_may_read_is_never_open_to_more(tmp_path: Path):
    path = tmp_path / "x.bin"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(b"new")
    assert path.read_bytes() == b"new" and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_name_of_the_greatest_length(tmp_path: Path):
    path = tmp_path / ("x" * 255)
    write(path)
    assert path.read_bytes() == b"new"


def test_a_pipe_is_written_and_not_replaced(tmp_path: Path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(path)
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_what_cannot_be_written_is_an_error_that_says_why(tmp_path: Path):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for name, reason in {
        "folder": "folder",
        "missing/x": "No such file",
        "file/x": "Not a directory",
        "x" * 256: "too long",
        "a\0b": "null character",
        "\ud800": "surrogate",
    }.items():
        with pytest.raises(Error, match=reason) as error:
            write(tmp_path / name)
        assert error.value.code == "IRC501"
        assert error.value.where == str(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]
