"""Python as a process of its own, without the time that it takes to start one and to import irc.

Processes are forked from a server that has imported irc and done nothing else: nobody has registered a pass or an
operator, and no model was compiled. What is imported when, and what signals and closed streams do, only ``subprocess``
shows.
"""

import atexit
import contextlib
import gc
import json
import os
import pkgutil
import runpy
import socket
import socketserver
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parent.parent
ADDRESS = "IRC_TEST_SERVER"
"""The variable that tells forked processes, whose own state is not that of a new one, where the server listens."""


def python(
    folder: str | Path, *argv: str, is_merged: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run ``python SCRIPT ...``, ``python -m MODULE ...`` or ``python -c CODE`` in a folder; stdin is empty.

    With ``is_merged``, stderr goes to stdout.
    """
    address = os.environ.get(ADDRESS) or _started()
    with tempfile.TemporaryDirectory() as kept, socket.socket(socket.AF_UNIX) as client:
        streams = [os.path.join(kept, name) for name in ("out", "out" if is_merged else "err")]
        client.connect(address)
        settings = {**os.environ, **environment, ADDRESS: address}
        client.sendall(json.dumps([str(folder), argv, settings, streams]).encode() + b"\n")
        status = int(client.makefile().read())
        out, err = (Path(stream).read_text("utf-8") for stream in streams)
    return subprocess.CompletedProcess(argv, status, out, "" if is_merged else err)


@cache
def _started() -> str:
    """The address of a new server, which ends with this process."""
    kept = tempfile.TemporaryDirectory()
    address = os.path.join(kept.name, "socket")
    command = [sys.executable, "-m", "tests.processes", address]
    server = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    def stop() -> None:
        server.terminate()
        server.wait()
        kept.cleanup()

    atexit.register(stop)
    assert server.stdout is not None
    server.stdout.readline()  # it listens
    return address


class _Server(socketserver.ForkingMixIn, socketserver.UnixStreamServer):
    parent = os.getppid()

    def service_actions(self) -> None:
        super().service_actions()
        if os.getppid() != self.parent:
            sys.exit()


class _Request(socketserver.StreamRequestHandler):
    """In a child of the server: forks once more, and says how that process ended."""

    def handle(self) -> None:
        given = json.loads(self.rfile.readline())
        child = os.fork()
        if child == 0:
            self.request.close()
            _run(*given)
        self.wfile.write(b"%d" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def _run(folder: str, argv: list[str], environment: dict[str, str], streams: list[str]) -> None:
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, stream in enumerate(streams, 1):
        os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT | os.O_APPEND), number)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8") for number in (1, 2))
    sys.path[:0] = [folder, *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
    status = 0
    try:
        first, sys.argv = argv[0], argv[1:] if argv[0] == "-m" else argv
        if first == "-m":
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        elif first == "-c":
            exec(argv[1], {"__name__": "__main__"})
        else:
            runpy.run_path(first, run_name="__main__")
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else int(exit.code is not None)
        if isinstance(exit.code, str):
            print(exit.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _import_irc() -> None:
    """Import all modules of irc, and what they import when they are asked for something."""
    import irc

    names = [found.name for found in pkgutil.walk_packages(irc.__path__, "irc.")]
    for name in (*names, "onnxruntime", "rich.console", "xml.sax.saxutils"):
        if not name.endswith("__main__"):
            with contextlib.suppress(ImportError):  # of a package that is not installed
                import_module(name)


if __name__ == "__main__":
    _import_irc()
    gc.freeze()  # or each process would copy what its collections mark
    with _Server(sys.argv[1], _Request) as server:
        print(flush=True)
        server.serve_forever()
