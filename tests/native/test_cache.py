"""What the cache of object code reads and writes: only the user's own, only what is whole, never too much."""

import hashlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import Tune

pytest.importorskip("llvmlite")

from irc.native import cache
from irc.native.cache import ObjectCache, default_folder
from irc.native.jit import Jit
from irc.native.loops import function
from irc.native.target import ir, named

ROOT = Path(__file__).parent.parent.parent
_INT = ir.IntType(64)


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "native"


def test_what_is_written_is_read(folder: Path) -> None:
    for code in (b"", b"code", bytes(range(256)) * 1000):
        ObjectCache(folder).write("name", code)
        assert ObjectCache(folder).read("name") == code
    assert ObjectCache(folder).read("another") is None
    assert [path.name for path in folder.iterdir()] == ["name"]


def test_folders_and_entries_are_the_users_alone(folder: Path) -> None:
    old = os.umask(0)
    try:
        ObjectCache(folder).write("name", b"code")
    finally:
        os.umask(old)
    assert mode(folder) == 0o700
    assert mode(folder / "name") == 0o600


@pytest.mark.parametrize("bits", [0o701, 0o710, 0o702, 0o720, 0o750, 0o777])
def test_folders_that_others_may_enter_are_not_used(folder: Path, bits: int) -> None:
    ObjectCache(folder).write("name", b"code")
    folder.chmod(bits)
    found = ObjectCache(folder)
    assert found.folder is None
    assert found.read("name") is None
    found.write("other", b"code")
    assert [path.name for path in folder.iterdir()] == ["name"]


def test_folders_of_others_are_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ObjectCache(folder).write("name", b"code")
    own = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: own + 1)
    assert ObjectCache(folder).read("name") is None


def test_links_are_not_followed(folder: Path, tmp_path: Path) -> None:
    ObjectCache(folder).write("name", b"code")
    link = tmp_path / "link"
    link.symlink_to(folder)
    assert ObjectCache(link).read("name") is None
    (folder / "linked").symlink_to(folder / "name")
    assert ObjectCache(folder).read("linked") is None


def test_entries_that_others_may_write_to_are_not_read(folder: Path) -> None:
    ObjectCache(folder).write("name", b"code")
    (folder / "name").chmod(0o666)
    assert ObjectCache(folder).read("name") is None


def test_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (None, tmp_path / "file", tmp_path / "file" / "below", Path("/proc/none")):
        found = ObjectCache(place)
        found.write("name", b"code")
        assert found.read("name") is None


@pytest.mark.parametrize("damage", ["empty", "cut", "short", "bit", "longer", "digest"])
def test_damaged_entries_count_as_absent(folder: Path, damage: str) -> None:
    ObjectCache(folder).write("name", b"some code" * 20)
    path = folder / "name"
    whole = path.read_bytes()
    changed = {
        "empty": b"",
        "cut": whole[:-1],
        "short": whole[:10],
        "bit": whole[:50] + bytes([whole[50] ^ 1]) + whole[51:],
        "longer": whole + b"\0",
        "digest": bytes(32) + whole[32:],
    }
    path.write_bytes(changed[damage])
    assert ObjectCache(folder).read("name") is None
    ObjectCache(folder).write("name", b"some code" * 20)
    assert path.read_bytes() == whole


def test_an_entry_is_read_under_its_own_name_alone(folder: Path) -> None:
    ObjectCache(folder).write("name", b"code")
    (folder / "name").rename(folder / "other")
    assert ObjectCache(folder).read("other") is None


def test_writing_ends_in_the_middle(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ObjectCache(folder)
    found.write("name", b"before")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        found.write("name", b"after")
    assert found.read("name") == b"before"
    assert [path.name for path in folder.iterdir()] == ["name"]


@pytest.mark.parametrize("what", ["mkstemp", "replace"])
def test_what_the_disk_refuses_is_not_kept(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ObjectCache(folder)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cache.tempfile if what == "mkstemp" else os, what, full)
    found.write("name", b"code")
    assert found.read("name") is None
    assert not list(folder.iterdir())


def test_the_oldest_entries_go(folder: Path, tune: Tune) -> None:
    tune("irc.native.cache.MOST_BYTES", 10_000)
    ObjectCache(folder).write("start", b"")
    for i in range(30):
        ObjectCache(folder).write(f"entry {i}", b"x" * 1000)
        os.utime(folder / f"entry {i}", (1000 + i, 1000 + i))
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert sum(sizes.values()) <= 12_000
    assert "entry 29" in sizes
    assert "entry 0" not in sizes


def test_entries_that_go_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch, tune: Tune) -> None:
    """Another process trims, too."""
    tune("irc.native.cache.MOST_BYTES", 1000)
    found = ObjectCache(folder)
    for i in range(5):
        found.write(f"entry {i}", b"x" * 1000)
    listed = Path.iterdir

    def vanishing(path: Path) -> list[Path]:
        return [*listed(path), path / "gone"]

    monkeypatch.setattr(Path, "iterdir", vanishing)
    ObjectCache(folder).write("last", b"code")
    monkeypatch.undo()
    assert ObjectCache(folder).read("last") == b"code"


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"IRC_CACHE_DIR": "/somewhere"}, "/somewhere/native"),
        ({"IRC_CACHE_DIR": ""}, None),
        ({"XDG_CACHE_HOME": "/cache"}, "/cache/irc/native"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/one"}, "/home/one/.cache/irc/native"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/one"}, "/home/one/.cache/irc/native"),
        ({"HOME": "relative"}, None),
    ],
)
def test_where_it_is(environment: dict[str, str], folder: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("IRC_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert default_folder() == (None if folder is None else Path(folder))


# -- what is compiled -----------------------------------------------------------


def identity(result: int) -> str:
    made, builder = function("f", [], _INT)
    builder.ret(_INT(result))
    return str(made.module)


def test_damaged_code_is_compiled_anew(folder: Path) -> None:
    def compiled() -> int:
        jit = Jit(ObjectCache(folder), named(""))
        jit.load("f", "key", lambda: (identity(7), {}))
        return jit.compiled

    assert [compiled(), compiled()] == [1, 0]
    (entry,) = folder.iterdir()
    for content in (b"", entry.read_bytes()[:-1], os.urandom(500)):
        entry.write_bytes(content)
        assert [compiled(), compiled()] == [1, 0]


def test_whole_entries_that_are_no_code(folder: Path) -> None:
    """Its hash is right, but LLVM does not read it: it is compiled anew."""
    Jit(ObjectCache(folder), named("")).load("f", "key", lambda: (identity(7), {}))
    (entry,) = folder.iterdir()
    ObjectCache(folder).write(entry.name, b"")
    jit = Jit(ObjectCache(folder), named(""))
    jit.load("f", "key", lambda: (identity(7), {}))
    assert jit.compiled == 1


def test_entries_depend_on_the_processor(folder: Path) -> None:
    for cpu in ("", "x86-64", "x86-64-v2"):
        jit = Jit(ObjectCache(folder), named(cpu))
        jit.load("f", "key", lambda: (identity(7), {}))
        assert jit.compiled == 1
    assert len(list(folder.iterdir())) == 3
    assert all(len(path.name) == 2 * hashlib.sha256().digest_size for path in folder.iterdir())


def test_two_processes_at_once(folder: Path) -> None:
    code = """
import numpy as np
from pathlib import Path
import irc
from irc.ir import parse_graph
text = "graph(%x : Float(*)):\\n" + "".join(
    f"  %v{i} = onnx::{name}(%{'x' if i == 0 else f'v{i - 1}'})\\n"
    for i, name in enumerate(["Exp", "Tanh", "Abs", "Sqrt", "Neg"] * 4)
) + "  return (%v19)"
model, other = (irc.compile(parse_graph(text), backend=name) for name in ("native", "numpy"))
x = np.linspace(-1, 1, 101, dtype=np.float32)
for size in range(1, 101, 10):
    found = model.run({"x": x[:size]})["v19"]
    assert model.counters.compiled == 1
    wanted = other.run({"x": x[:size]})["v19"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
"""
    given = {**os.environ, "PYTHONPATH": str(ROOT), "IRC_CACHE_DIR": str(folder)}
    for count in (3, 1):  # the second time, all is there
        processes = [
            subprocess.Popen([sys.executable, "-W", "error", "-c", code], env=given, stderr=subprocess.PIPE, text=True)
            for _ in range(count)
        ]
        for process in processes:
            _, errors = process.communicate()
            assert process.returncode == 0, errors
    assert not [path for path in (folder / "native").iterdir() if path.name.startswith(".")]


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_that_code_is_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, plain = _Terminal(), io.StringIO()
    jit = Jit(ObjectCache(None), named(""))
    monkeypatch.setattr(sys, "stderr", terminal)
    kept = jit.load("f", "a key", lambda: (identity(7), {}))
    shown, _, rest = terminal.getvalue().partition("\r")
    assert "compiles native code (1)" in shown
    assert rest == "\x1b[K", "the line is taken back"
    assert jit.load("f", "a key", lambda: (identity(7), {})) is kept
    assert terminal.getvalue() == shown + "\r" + rest
    monkeypatch.setattr(sys, "stderr", plain)
    jit.load("f", "another key", lambda: (identity(8), {}))
    assert plain.getvalue() == ""
