"""``irc batch``: many models, bad ones among them, processes and workers that die, interrupts, batches resumed."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.cli.helpers import Command, model, node, small_model
from tests.cli.refusals import Cases, assert_refused, case_of, commands, refusals
from tests.effort import Tune

ROOT = Path(__file__).parent.parent.parent

PASSES = """
import os
import time
from dataclasses import dataclass
from typing import ClassVar
from irc.passes.registry import register

@register
@dataclass(frozen=True)
class Slow:
    '''Sleep, or end the process where the graph has an input of that name.'''
    name: ClassVar[str] = "slow"
    seconds: float = 0.05
    def run(self, graph, ctx):
        time.sleep(self.seconds)
        if graph.inputs[0].name == "deadly":
            os._exit(3)
        return False
"""


def named(name: str) -> Any:
    return model([node("Relu", name, "y")], {name: ["n", 3]}, ["y"])


def lines(text: str) -> dict[str, dict[str, Any]]:
    """Outcomes by path."""
    return {found["path"]: found for found in map(json.loads, text.splitlines())}


@pytest.fixture
def models(irc: Command, own_registries: None) -> str:
    """A folder of five models, one of which is not a model and one of which ends the process of the pass ``slow``."""
    (irc.folder / "models/more").mkdir(parents=True)
    irc.write("models/a.onnx", small_model())
    irc.write("models/b.onnx", named("x"))
    irc.write("models/broken.onnx", b"no model at all")
    irc.write("models/more/deadly.onnx", named("deadly"))
    irc.write("models/more/e.onnx", named("z"))
    irc.write("models/notes.txt", "not meant")
    irc.write("slow.py", PASSES)
    return "models"


def test_a_table(irc: Command, models: str) -> None:
    told = irc("batch", "inspect", models, "models/a.onnx", "missing.onnx", "-j", "2")
    assert told.status == 1
    rows = [line.split() for line in told.out.splitlines()]
    assert [row[0] for row in rows] == [
        *("models/a.onnx", "models/b.onnx", "models/broken.onnx", "models/more/deadly.onnx", "models/more/e.onnx"),
        "missing.onnx",
    ]
    assert [row[1] for row in rows] == ["done", "done", "failed", "done", "done", "failed"]
    assert "3 nodes, 32 parameters, 24 MACs" in told.out and "IRC121" in told.out and "IRC120" in told.out
    assert told.err.startswith("irc: 6 models: 4 done, 2 failed; ")


def test_a_model_that_ends_its_process(irc: Command, models: str) -> None:
    argv = ["batch", "compile", models, "-j", "2", "--load", "slow.py", "-p", "cse,slow,dce"]
    told = irc(*argv, "--json", "--results", "r.jsonl", "-o", "out", "--format", "onnx")
    found = lines(told.out)
    assert told.status == 1 and found == lines(Path("r.jsonl").read_text())
    assert {path: each["status"] for path, each in found.items()} == {
        "models/a.onnx": "done",
        "models/b.onnx": "done",
        "models/broken.onnx": "failed",
        "models/more/deadly.onnx": "crashed",
        "models/more/e.onnx": "done",
    }
    assert found["models/a.onnx"]["result"]["nodes_before"] == 3 and found["models/broken.onnx"]["code"] == "IRC121"
    written = sorted(str(path) for path in Path("out").rglob("*") if path.is_file())
    assert written == ["out/a.onnx", "out/b.onnx", "out/more/e.onnx"]
    assert irc("batch", "check", "models/a.onnx", "models/b.onnx", "-j", "1").status == 0


def test_a_batch_that_is_resumed(irc: Command, models: str) -> None:
    argv = ["batch", "bench", models, "--runs", "1", "--warm-up", "1", "--against", "none", "--results", "r.jsonl"]
    assert irc(*argv, "-j", "2").status == 1
    kept = Path("r.jsonl").read_text().splitlines(keepends=True)
    assert len(kept) == 5
    refused = irc(*argv)
    assert (
        refused.status == 1 and "IRC503: r.jsonl: there are outcomes in this file: --resume keeps them" in refused.err
    )
    Path("r.jsonl").write_text("".join(kept[:3]) + kept[3][:40])  # as if it had been ended while it wrote
    irc.write("models/broken.onnx", named("x"))
    before = {path: each["started"] for path, each in lines("".join(kept[:3])).items() if "broken" not in path}
    told = irc(*argv, "--resume", "--json")
    found = lines(told.out)
    assert told.status == 0 and {each["status"] for each in found.values()} == {"done"}
    assert {path for path in before if found[path]["started"] == before[path]} == set(before), "not done again"
    assert f"5 models: 5 done, {len(before)} of them before; " in told.err
    assert irc(*argv, "--resume").err.startswith("irc: 5 models: 5 done, 5 of them before; ")
    other = irc(*argv, "--resume", "--seed", "1")
    assert other.err.startswith("irc: 5 models: 5 done; "), "other options, other results"


def wait_for(condition: Any, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def test_an_interrupt_keeps_what_is_done(irc: Command, models: str) -> None:
    argv = [
        "batch",
        "compile",
        models,
        "-j",
        "2",
        "--load",
        "slow.py",
        "-p",
        "slow{seconds=0.7}",
        "--results",
        "r.jsonl",
    ]
    Path("models/more/deadly.onnx").unlink()
    irc.write("models/broken.onnx", named("x"))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "-m", "irc", *argv], env=environment, stderr=subprocess.PIPE, text=True
    ) as run:
        wait_for(lambda: Path("r.jsonl").exists() and Path("r.jsonl").stat().st_size)
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (130, "irc: interrupted\n")
    done = lines(Path("r.jsonl").read_text())
    assert 1 <= len(done) < 4
    workers = {each["worker"] for each in done.values()}
    wait_for(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    told = irc(*argv, "--resume")
    assert told.status == 0 and f"4 done, {len(done)} of them before" in told.err


# -- Dask ------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The address of a scheduler of Dask, and the processes: it and two workers of one thread."""
    pytest.importorskip("distributed")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "DASK_DISTRIBUTED__WORKER__DAEMON": "False"}
    file, started = tmp_path / "scheduler.json", list[subprocess.Popen[bytes]]()

    def start(what: str, *options: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", str(file), *options]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        started.append(stack.enter_context(subprocess.Popen(argv, env=environment, cwd=tmp_path, **quiet)))
        return started[-1]

    with ExitStack() as stack:
        try:
            start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--no-show")
            wait_for(lambda: file.exists() and file.read_text().rstrip().endswith("}"))
            for _ in range(2):
                start("worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1")
            yield json.loads(file.read_text())["address"].removeprefix("tcp://"), started
        finally:
            for process in reversed(started):
                process.kill()


def test_a_worker_that_ends_loses_nothing(irc: Command, models: str, cluster: tuple[str, list[Any]]) -> None:
    address, (_, *workers) = cluster
    for i in range(12):
        irc.write(f"models/m{i:02}.onnx", named(f"x{i}"))
    for name in ("broken.onnx", "more/deadly.onnx"):
        Path(models, name).unlink()
    paths = [irc.folder / models, "--load", irc.folder / "slow.py", "-p", "slow{seconds=0.2}"]
    ended: list[int] = []

    def end_one() -> None:
        wait_for(lambda: Path("r.jsonl").exists() and len(Path("r.jsonl").read_text().splitlines()) >= 4)
        used = [each["worker"] for each in lines(Path("r.jsonl").read_text()).values()]
        worker = next(each for each in workers if each.pid in used)
        worker.kill()
        ended.append(worker.pid)

    thread = threading.Thread(target=end_one)
    thread.start()
    told = irc("batch", "compile", *paths, "--executor", f"dask://{address}", "--results", "r.jsonl", "--json")
    thread.join()
    found = lines(told.out)
    assert told.status == 0, told.err
    assert len(found) == 15 == len(told.out.splitlines()) and {each["status"] for each in found.values()} == {"done"}
    by = [each["worker"] for each in found.values()]
    assert set(by) <= {worker.pid for worker in workers} and by[-1] != ended[0] and ended[0] in by


@pytest.mark.slow
def test_a_scheduler_that_ends(irc: Command, models: str, cluster: tuple[str, list[Any]]) -> None:
    address, (scheduler, *_) = cluster
    paths = [models, "--load", irc.folder / "slow.py", "-p", "slow{seconds=1.0}"]
    Path("models/more/deadly.onnx").unlink()

    def end() -> None:
        wait_for(lambda: Path("r.jsonl").exists() and Path("r.jsonl").read_text())
        scheduler.kill()

    thread = threading.Thread(target=end)
    thread.start()
    told = irc("batch", "compile", *paths, "--executor", f"dask://{address}", "--results", "r.jsonl")
    thread.join()
    assert (told.status, told.out) == (1, "")
    assert told.err == f"irc: IRC334: the scheduler at {address} is gone: --resume does the rest\n"
    done = len(lines(Path("r.jsonl").read_text()))
    assert f"{done} of them before" in irc("batch", "compile", *paths, "--results", "r.jsonl", "--resume").err


# -- bad input -------------------------------------------------------------------


CASES: Cases = commands("""
an unknown engine | batch check m.onnx --executor spark://here
    | IRC334: no engine is called 'spark://here': give dask://host:port
results in no folder | batch inspect m.onnx --results nowhere/r.jsonl | IRC501: nowhere/r.jsonl: cannot write
results in place of a model | batch inspect m.onnx --results m.onnx --resume
    | IRC503: m.onnx: the name of this output must end in .jsonl
an output folder that cannot be made | batch compile m.onnx -o m.onnx/out
    | IRC501: m.onnx/out: cannot make the folder
an output in place of a model | batch compile m.onnx -o . --format onnx
    | IRC503: m.onnx: this is one of the models that are read
a pass that is not there | batch compile m.onnx -p csee | IRC301: .*did you mean 'cse'
""")
case = case_of(CASES)


@case("IRC120: empty: no file below this folder ends in .onnx")
def a_folder_without_models(irc: Command):
    (irc.folder / "empty").mkdir()
    return ["batch", "inspect", "empty"]


@case("IRC503: out/m.irc: m.onnx would be written there, too")
def two_models_that_would_become_one_file(irc: Command):
    irc.write("m.ONNX", small_model())
    return ["batch", "compile", irc.write("m.onnx", small_model()), "m.ONNX", "-o", "out"]


test_bad_input_is_refused = refusals(CASES)


def test_a_scheduler_that_is_not_there(irc: Command, tune: Tune) -> None:
    pytest.importorskip("distributed")
    tune("irc.tools.batch.CONNECTING", 1)
    argv = ["batch", "check", irc.write("m.onnx", small_model()), "--executor", "dask://127.0.0.1:9"]
    assert_refused(irc, argv, "IRC334: no scheduler of Dask answers at 127.0.0.1:9")


def test_dask_that_is_not_installed(irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    irc.write("m.onnx", small_model())
    told = irc("batch", "check", "m.onnx", "--executor", "dask://127.0.0.1:9")
    assert told.status == 1 and "pip install 'irc[batch]'" in told.err


@pytest.mark.parametrize(
    "argv",
    ["batch", "batch check", "batch frobnicate m.onnx", "batch check m.onnx --resume", "batch check m.onnx -j 0",
     "batch check m.onnx -j 2 --executor dask://a:1", "batch bench m.onnx --runs 0"],
)  # fmt: skip
def test_wrong_usage(argv: str, irc: Command) -> None:
    result = irc(*argv.split())
    assert result.status == 2 and result.err.startswith("usage: irc batch") and result.out == ""
