"""The command line as a process: its streams, its exit status, what it imports."""

import errno
import importlib
import io
import os
import re
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from irc.cli import INTERRUPTED
from tests.cli.helpers import Command, small_model

ROOT = Path(__file__).parent.parent.parent
COMMAND = [sys.executable, "-m", "irc"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100"}

GRAPH = """graph(%"größe" : Float(2)):
  %y : Float(2) = onnx::Relu(%"größe")
  return (%y)
"""

pytestmark = pytest.mark.skipif(os.name != "posix", reason="streams are closed as POSIX shells do it")


def sh(script: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """What a shell makes of ``script``, in which ``$irc`` is the command."""
    words = " ".join(f"'{word}'" for word in COMMAND)
    return subprocess.run(
        ["sh", "-c", script.replace("$irc", words)], capture_output=True, env={**ENVIRONMENT, **environment}
    )


def python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT, check=True)
    return done.stdout.decode()


def imports(arguments: list[str]) -> set[str]:
    """The modules that a command imports."""
    code = f"""
import sys
from irc.cli import main
try:
    status = main({arguments!r})
except SystemExit as exit:
    status = exit.code
assert status == 0
print("\\n", *sys.modules, file=sys.stdout)
"""
    return set(python(code).splitlines()[-1].split())


def test_the_console_script_is_there() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, function = scripts["irc"].split(":")
    assert callable(getattr(importlib.import_module(module), function))


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_imports_nothing_heavy(option: str) -> None:
    assert not imports([option]) & {"onnx", "rich", "networkx", "onnxruntime", "importlib.metadata"}


def test_commands_import_only_what_they_use(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    of_compile = imports(["compile", "m.onnx", "-o", "m.irc"])
    assert not of_compile & {"networkx", "onnxruntime", "onnx.reference"}
    assert "onnx" in of_compile
    assert not imports(["run", "m.irc", "--seed", "0"]) & {"onnx", "rich", "networkx", "onnxruntime"}


def test_a_reader_that_has_seen_enough(irc: Command) -> None:
    text = "".join(f"  %v{i} : Float(2) = onnx::Relu(%x)\n" for i in range(20_000))
    irc.write("g.ir", f"graph(%x : Float(2)):\n{text}  return (%x)\n")
    done = sh("$irc print g.ir | head -n 1")
    assert done.stdout == b"graph(%x : Float(2)):\n"
    assert done.stderr == b""


def test_closed_streams(irc: Command) -> None:
    irc.write("g.ir", GRAPH)
    irc.write("m.onnx", small_model())
    lost = b"irc: IRC501: cannot write the results: Bad file descriptor\n"
    for script, said in {"$irc print g.ir >&-": lost, "$irc print g.ir <&- >&- 2>&-": b""}.items():
        done = sh(script)
        assert (done.returncode, done.stdout, done.stderr) == (1, b"", said)
    done = sh("$irc --version >&-")
    assert (done.returncode, done.stderr) == (1, lost)
    assert sh("$irc compile m.onnx -o m.irc >&- 2>&-").returncode == 0
    assert sh("$irc run m.irc --seed 0 2>&-").stdout.startswith(b"y: float32 [1, 8]"), "stderr is not stdout"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk(irc: Command) -> None:
    irc.write("g.ir", GRAPH)
    irc.write("m.onnx", small_model())
    done = sh("$irc print g.ir > /dev/full")
    assert done.returncode == 1
    assert done.stderr == b"irc: IRC501: cannot write the results: No space left on device\n"
    for written, unbuffered in (("--help", ""), ("opt --help", "1"), ("--version", ""), ("--version", "1")):
        done = sh(f"$irc {written} > /dev/full", PYTHONUNBUFFERED=unbuffered)
        assert done.returncode == 1
        assert done.stderr == b"irc: IRC501: cannot write the results: No space left on device\n"
    (irc.folder / "full.ir").symlink_to("/dev/full")
    done = sh("$irc opt g.ir -o full.ir")
    assert done.returncode == 1
    assert done.stderr == b"irc: IRC501: full.ir: cannot write the file: No space left on device\n"


def test_the_demo_is_a_program_among_others() -> None:
    demo = f"'{sys.executable}' -m irc.demo"
    seen = sh(f"{demo} | head -n 1")
    assert seen.stdout.startswith(b"squeezenet") and seen.stderr == b""
    told = sh(f"{demo} --help")
    assert told.returncode == 0 and told.stdout.startswith(b"usage: python -m irc.demo")
    assert sh(f"{demo} nonsense").returncode == 2
    if os.path.exists("/dev/full"):
        done = sh(f"{demo} > /dev/full")
        assert (
            done.returncode == 1 and done.stderr == b"irc: IRC501: cannot write the results: No space left on device\n"
        )


def test_text_goes_to_devices_and_pipes(irc: Command) -> None:
    irc.write("g.ir", GRAPH)
    assert sh("$irc opt g.ir -o /dev/stdout").stdout.decode() == GRAPH
    assert sh("cat g.ir | $irc print - | $irc opt -").stdout.decode() == GRAPH
    assert sh("$irc opt g.ir -o /dev/null").returncode == 0
    assert not os.path.isfile("/dev/null"), "it was replaced"


def test_results_are_utf8_whatever_the_locale(irc: Command) -> None:
    irc.write("g.ir", GRAPH)
    for settings in ({"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}):
        done = sh("$irc print g.ir", **settings)
        assert done.stdout.decode() == GRAPH
        assert done.stderr == b""


def test_interrupted(irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    irc.write("g.ir", GRAPH)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    for step in ("irc.cli.options.ModelFile.module", "irc.cli.commands.whole_parser"):
        monkeypatch.setattr(step, interrupt)
        result = irc("print", "g.ir")
        assert (result.status, result.err) == (INTERRUPTED, "irc: interrupted\n"), step


WHILE_IMPORTING = """
import os, runpy, signal, sys
marker, number = sys.argv[1], signal.Signals[sys.argv[2]]
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == marker:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Finder())
sys.argv[1:] = sys.argv[3:]
runpy.run_module("irc", run_name="__main__", alter_sys=True)
"""
"""Sends the process a signal when the command comes to import a module."""


@pytest.mark.parametrize("marker", ["irc.cli.output", "argparse", "irc.cli.commands", "irc.passes", "numpy", "onnx"])
def test_interrupted_while_importing(marker: str, irc: Command) -> None:
    irc.write("m.onnx", small_model())

    def sent(name: str) -> tuple[int, bytes, bytes]:
        code = [sys.executable, "-S", "-c", WHILE_IMPORTING, marker, name, "compile", "m.onnx", "-o", "m.irc"]
        environment = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        done = subprocess.run(code, capture_output=True, env=environment)
        return done.returncode, done.stdout, done.stderr

    assert sent("SIGINT") == (INTERRUPTED, b"", b"irc: interrupted\n")
    by_itself = (-signal.SIGTERM, b"", b"")
    told = (128 + signal.SIGTERM, b"", b"irc: ended by SIGTERM\n")
    assert sent("SIGTERM") == (by_itself if marker in ("irc.cli.output", "argparse") else told)
    assert os.listdir() == ["m.onnx"]


@pytest.mark.parametrize(
    ("program", "own"), [("irc.cli", {"irc.cli"}), ("irc.demo.__main__", {"irc.cli", "irc.demo", "irc.demo.__main__"})]
)
def test_little_is_imported_before_a_program_can_be_interrupted(program: str, own: set[str]) -> None:
    code = f"import sys; before = {{*sys.modules}}; import {program}; print(*sorted(sys.modules.keys() - before))"
    assert set(python(code).split()) - {"__future__"} == {"irc", "irc.cli", "irc.support", "irc.support.lazy", *own}


def interrupted() -> None:
    """As C code does that imports a module and finds that it cannot."""
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    raise ImportError("no module")


def exhausted(*words: str) -> None:
    raise MemoryError(*words)


@pytest.mark.parametrize(
    ("fail", "status", "says"),
    [
        (interrupted, INTERRUPTED, "interrupted"),
        (exhausted, 1, "IRC403: g.ir: memory is exhausted"),
        (partial(exhausted, "no room for 8 EiB"), 1, "IRC403: g.ir: memory is exhausted: no room for 8 EiB"),
    ],
)
def test_what_ends_the_reading_of_a_model(
    fail: Callable[[], None], status: int, says: str, irc: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    irc.write("g.ir", GRAPH)
    monkeypatch.setattr("irc.cli.options.ModelFile.module", lambda *_: fail())
    result = irc("print", "g.ir")
    assert (result.status, result.err) == (status, f"irc: {says}\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_ended_in_the_middle_of_writing(name: str, irc: Command) -> None:
    irc.write("m.onnx", small_model())
    number = signal.Signals[name]
    code = f"""
import os, signal, sys
import irc.runtime.file
from irc.cli import main
ignored = len(sys.argv) > 1
signal.signal({number}, signal.SIG_IGN if ignored else signal.SIG_DFL)  # nohup would have it ignored
write = irc.runtime.file.write_tensor
def ended(*arguments):
    os.kill(os.getpid(), {number})
    write(*arguments)
irc.runtime.file.write_tensor = ended
status = main(["compile", "m.onnx", "-o", "m.irc"])
assert signal.getsignal({number}) is (signal.SIG_IGN if ignored else signal.SIG_DFL)
sys.exit(status)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=ENVIRONMENT)
    assert (done.returncode, done.stderr.decode()) == (128 + number, f"irc: ended by {name}\n")
    assert os.listdir() == ["m.onnx"]
    done = subprocess.run([sys.executable, "-c", code, "ignored"], capture_output=True, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    assert sorted(os.listdir()) == ["m.irc", "m.onnx"]


def test_stdout_that_is_no_file_and_fails(irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that runs a command may have put anything in its place."""

    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    irc.write("g.ir", GRAPH)
    monkeypatch.setattr("sys.stdout", Full())
    result = irc("print", "g.ir")
    assert (result.status, result.err) == (1, "irc: IRC501: cannot write the results: No space left on device\n")


def on_terminal(*arguments: str) -> str:
    """What a command writes to a terminal."""
    import pty

    ours, theirs = pty.openpty()
    environment = {**ENVIRONMENT, "TERM": "xterm"}
    with subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, stdin=theirs, env=environment):
        os.close(theirs)
        written = b""
        while True:
            try:
                block = os.read(ours, 65536)
            except OSError:  # Linux's way to say that the other end is closed
                break
            if not block:
                break
            written += block
    os.close(ours)
    return written.decode()


def shown(written: str) -> str:
    """The lines that a terminal shows in the end, for programs that write, go back and erase to the right."""
    lines: list[str] = []
    for line in re.sub(r"\x1b\[[\d;]*m", "", written).split("\n"):
        cells, column = "", 0
        for part in re.split(r"(\r|\x1b\[K)", line):
            if part == "\r":
                column = 0
            elif part == "\x1b[K":
                cells = cells[:column]
            else:
                cells = cells[:column] + part + cells[column + len(part) :]
                column += len(part)
        lines.append(cells)
    return "\n".join(lines)


def test_the_terminal() -> None:
    assert shown("a...\rbc\n\x1b[1mlong...\r\x1b[Kd\x1b[0m") == "bc..\nd"


def test_progress_on_a_terminal_leaves_nothing_behind(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    written = on_terminal("compile", "m.onnx", "--check", "-o", "m.irc")
    for stage in ("importing", "optimising", "lowering", "checking", "writing"):
        assert f"{stage}..." in written
        assert f"{stage}..." not in shown(written)
    assert "\x1b[1m" in written, "labels are bold on a terminal"
    assert shown(written).startswith("model ")
    ran = on_terminal("run", "m.irc", "--seed", "0")
    assert "running..." in ran
    assert shown(ran).startswith("irc: assumed batch=1 (--dim changes that)\ny: float32 [1, 8]")
    failed = on_terminal("compile", "m.onnx", "-p", "inline", "--check", "-i", "x=nowhere.npy")
    assert "checking..." in failed
    assert shown(failed).startswith("irc: IRC502: nowhere.npy: cannot read the file")
