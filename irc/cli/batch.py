"""``irc batch``: one command for many models, in parallel."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from irc.cli import bench, compile, models, options
from irc.cli.output import emit, progress, say
from irc.errors import Error, cannot
from irc.support.formatting import count, one_line

if TYPE_CHECKING:
    from irc.tools.batch import Batch, Outcome

EXAMPLES = """\
  irc batch check models/                        compile all models below a folder, and check each
  irc batch compile -o out --format onnx zoo/*.onnx
  irc batch bench -j 1 --results times.jsonl models/ && irc batch bench -j 1 --results times.jsonl --resume models/
  irc batch check --executor dask://10.0.0.1:8786 /shared/models"""

ENDINGS = (".onnx",)
"""What counts as a model in a folder."""


def add_batch(commands: options.Commands) -> None:
    """Add ``batch``."""
    parser = options.add_command(commands, "batch", "run a command over many models, in parallel", EXAMPLES)
    inner = parser.add_subparsers(metavar="COMMAND", required=True, title="commands")
    for name, purpose, add in (
        ("compile", "compile each model", _add_compile),
        ("check", "compile each model, and compare what it computes with an oracle", _add_check),
        ("inspect", "say what each model takes, gives and costs", _add_inspect),
        ("bench", "time each model", bench.add_bench_options),
    ):
        each = options.add_command(inner, name, purpose, EXAMPLES, run_batch)
        said = "models, and folders whose .onnx files are meant, those in folders below too"
        each.add_argument("paths", nargs="+", metavar="PATH", help=said)
        unknown = "refuse ONNX operators that irc does not know"
        options.flag(each, "--refuse-unknown", unknown)
        add(each)
        group = each.add_argument_group("the batch")
        said = "processes (default: one for each processor)"
        group.add_argument("-j", "--jobs", type=options.whole_number, metavar="N", help=said)
        said = "write an outcome a line there as JSON, when it is there"
        options.option(group, "--results", "FILE.jsonl", said)
        options.flag(group, "--resume", "keep the outcomes in --results, and do the rest")
        said = "run it there, dask://host:port: workers need irc, and the same files under the same paths"
        options.option(group, "--executor", "ADDRESS", said)
        if name != "bench":
            options.option(group, "--threads", "N", "threads for each process (default 1)", options.threads)
            options.flag(group, "--json", "outcomes as JSON, one a line, on stdout instead of a table")
        each.set_defaults(command=name)


def _add_compile(parser: argparse.ArgumentParser) -> None:
    options.option(parser, "-o/--output", "FOLDER", "write what is compiled there, in folders as those of the models")
    formats = ("irc", "onnx")
    parser.add_argument("--format", choices=formats, default=formats[0], help="of what is written (default irc)")
    options.add(parser, options.add_pipeline, options.add_backend)


def _add_check(parser: argparse.ArgumentParser) -> None:
    options.add(parser, options.add_pipeline, options.add_backend, options.add_inputs)


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    options.add_dim(parser, "size of a named dimension that operations are counted for (default: 1)")


NOT_SETTINGS = ("run", "command", "paths", "jobs", "results", "resume", "executor", "json", "traceback", "usage_error")
"""Options that do not change what is done with a model."""


def run_batch(given: argparse.Namespace) -> int:
    """Print an outcome a line, or a table; the exit status is 1 unless all models are done."""
    from irc.passes import PassManager
    from irc.runtime.threads import usable_processors
    from irc.tools.batch import CRASHED, DONE, FAILED, Batch, Task, engine_at, local, run

    if given.resume and given.results is None:
        given.usage_error("--resume is for --results FILE")
    if given.executor is not None and given.jobs is not None:
        given.usage_error("--jobs is for processes of this machine, not for --executor")
    if hasattr(given, "passes"):
        PassManager(options.pipeline(given))  # refuses what all models would be refused for
    engine = None if given.executor is None else engine_at(given.executor)
    paths = _models(given.paths)
    settings = {name: value for name, value in vars(given).items() if name not in NOT_SETTINGS}
    if given.command != "bench":  # which lets runtimes choose
        settings["threads"] = given.threads or 1
    outputs = _outputs(given, paths)
    work = partial(do, given.command, settings, outputs)
    batch = Batch(given.command, json.dumps(settings, sort_keys=True, default=repr), work)
    tasks = list(map(Task.of, paths))
    jobs = min(given.jobs or usable_processors(), len(tasks))
    start, found, bad = time.perf_counter(), list["Outcome"](), 0
    with ExitStack() as stack:
        file = None if given.results is None else stack.enter_context(_results(given.results, given.resume, batch))
        tell = stack.enter_context(progress())
        tell(f"0 of {count(len(tasks), 'model')}")
        engine = engine or partial(local, jobs=jobs, threads=settings["threads"])
        outcomes = stack.enter_context(closing(run(batch, tasks, engine)))
        for outcome in outcomes:
            is_new = not (outcome.path in batch.known and batch.known[outcome.path] is outcome)
            line = json.dumps(outcome.to_dict())
            if file is not None and is_new:
                file.write(f"{line}\n".encode())
                file.flush()
            if given.json:
                emit(line)
            found.append(outcome)
            bad += outcome.status != DONE
            tell(f"{len(found)} of {count(len(tasks), 'model')}{f', {bad} not done' if bad else ''}")
    numbers = Counter(outcome.status for outcome in found)
    if not given.json:
        order = {path: i for i, path in enumerate(paths)}
        for line in _table(sorted(found, key=lambda outcome: order[outcome.path])):
            emit(line)
    cpu, taken = sum(o.cpu_seconds for o in found), time.perf_counter() - start
    kept = sum(map(batch.is_known, tasks))
    also = f", {kept} of them before" if kept else ""
    shown = ", ".join(f"{n} {status}" for status in (DONE, FAILED, CRASHED) if (n := numbers[status]))
    say(f"{count(len(found), 'model')}: {shown}{also}; {taken:,.1f} s, {cpu:,.1f} s of processor time")
    return int(bad > 0)


# -- what is done with one model -------------------------------------------------


def do(command: str, settings: dict[str, Any], outputs: dict[str, str], path: str) -> dict[str, Any]:
    """What ``irc COMMAND --json`` gives for the model at ``path``, in whichever process this is."""

    def usage_error(message: str) -> NoReturn:
        raise Error("IRC101", message, path)

    words = {**settings, "output": outputs.get(path), "usage_error": usage_error}
    given = argparse.Namespace(**words, model=options.ModelFile(path))
    for each in given.load:
        options.load(each)
    given.model.refuse_unknown = given.refuse_unknown
    with options.blamed():
        return _RESULTS[command](given)


def _compiled(given: argparse.Namespace, check: bool) -> dict[str, Any]:
    defaults: dict[str, Any] = {"input": [], "dim": {}, "shape": {}, "external_data": None, "instruments": []}
    words: dict[str, Any] = {**defaults, **vars(given), "check": check}
    if given.output is not None:
        _make_folder(os.path.dirname(given.output))
    return compile.result_of(compile.compiled(argparse.Namespace(**words)))


def _make_folder(path: str) -> None:
    try:
        os.makedirs(path or ".", exist_ok=True)
    except OSError as error:
        raise cannot("IRC501", "make the folder", error, path) from None


_RESULTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "compile": lambda given: _compiled(given, check=False),
    "check": lambda given: _compiled(given, check=True),
    "inspect": lambda given: models.inspected(given).to_dict(),
    "bench": lambda given: bench.bench(given).to_dict(),
}


# -- files -----------------------------------------------------------------------


def _models(given: Sequence[str]) -> list[str]:
    """The files meant by ``given``, each once; Error IRC120 if a folder has none."""
    found: dict[str, None] = {}
    for path in given:
        if not os.path.isdir(path):
            found[path] = None
            continue
        files = (each for each in Path(path).rglob("*") if each.suffix.lower() in ENDINGS and each.is_file())
        inside = sorted(map(str, files))
        if not inside:
            raise Error("IRC120", "no file below this folder ends in .onnx", path)
        found |= dict.fromkeys(inside)
    return list(found)


def _outputs(given: argparse.Namespace, paths: Sequence[str]) -> dict[str, str]:
    """Each model's output path, at the same place below the folder as the model below the common one.

    Raises:
        Error: IRC501 the folder cannot be made or written; IRC503 two models would become one file, or replace a model.
    """
    folder = getattr(given, "output", None)
    if folder is None:
        return {}
    root = os.path.commonpath([os.path.dirname(os.path.abspath(path)) for path in paths])
    found = {
        path: str(Path(folder, os.path.relpath(os.path.abspath(path), root)).with_suffix(f".{given.format}"))
        for path in paths
    }
    places: dict[str, str] = {}
    read = set(map(os.path.realpath, paths))
    for path, target in found.items():
        if places.setdefault(target, path) != path:
            raise Error("IRC503", f"{places[target]} would be written there, too: give them other names", target)
        if os.path.realpath(target) in read:
            raise Error("IRC503", "this is one of the models that are read: give another folder", target)
    _make_folder(folder)
    if not os.access(folder, os.W_OK):
        raise Error("IRC501", "the folder may not be written", folder)
    return found


def _results(path: str, resume: bool, batch: Batch) -> BinaryIO:
    """The file of outcomes, to be added to.

    Raises:
        Error: IRC501 it cannot be written, IRC503 it has outcomes already, and they are not to be kept.
    """
    if options.suffix(path) != ".jsonl":
        raise Error("IRC503", "the name of this output must end in .jsonl", path)
    try:
        if os.path.exists(path) and os.path.getsize(path):
            if not resume:
                message = "there are outcomes in this file: --resume keeps them and does the rest; else remove it"
                raise Error("IRC503", message, path)
            with open(path, encoding="utf-8", errors="replace") as before:
                batch.resume(before)
        file = open(path, "a+b")  # noqa: SIM115  # the caller closes it
        end = file.seek(0, os.SEEK_END)
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":  # the last line was cut off: it is not an outcome
                file.write(b"\n")
    except (OSError, ValueError) as error:
        raise cannot("IRC501", "write the file", error, path) from None
    return file


# -- the table -------------------------------------------------------------------


def _table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A line for each model: its path, what became of it, seconds, and what its result says in short."""
    width = max((len(outcome.path) for outcome in outcomes), default=0)
    for outcome in outcomes:
        said = outcome.error.partition("\n")[0] if outcome.result is None else _short(outcome.command, outcome.result)
        yield f"{one_line(outcome.path):<{width}}  {outcome.status:<7}  {outcome.seconds:8.2f} s  {one_line(said)}"


def _short(command: str, result: dict[str, Any]) -> str:
    if command == "bench":
        return ", ".join(
            f"{t['runtime']} {t['median'] * 1e3:,.3f} ms" + (f" ({t['ratio']:.2f} x)" if t["runtime"] != "irc" else "")
            for t in result["timings"]
        )
    if command == "inspect":
        costs = result["costs"]
        nodes = sum(cost["nodes"] for cost in costs["operators"].values())
        return f"{nodes:,} nodes, {costs['parameters']:,} parameters, {costs['macs']:,} MACs"
    before, after = (sum(result[f"operators_{when}"].values()) for when in ("before", "after"))
    return "; ".join([f"operators {before:,} -> {after:,}", *result["notes"]])
