"""What `irc.tools.bisect` finds, and the files that show it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from irc.compiler import export
from irc.errors import Error, cannot
from irc.ir import Module
from irc.passes import Pipeline, print_pipeline
from irc.runtime.backends import NUMPY
from irc.runtime.model import CompiledModel
from irc.support.files import replacing
from irc.support.formatting import count
from irc.tools.archives import as_entries, write_archive

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Bisection:
    """What is wrong with a model, and the smallest part of it that shows this.

    Attributes:
        model: the path of the model, or its name.
        culprit: ``"pass"``, ``"backend"`` or ``"kernel"``.
        name: the pass as pipelines spell it, the backend, or the operator.
        rewrite: the transformation that is wrong, as the pass reports it; of a pass that reports none, the nodes that
            it changes. Of a backend or a kernel, the node.
        what: what happens then.
        module: the part, as it is before the pass.
        after: that part as the pass leaves it, if the pass does not do so where the part is all that there is.
        feeds: its inputs; None if they do not matter.
        pipeline: the passes that show it on the part.
        backend: what runs it.
        nodes: operators of the part.
        compilations: pipelines that ran, and models that were lowered without one, to find this.
        runs: of models, likewise.
        files: what was written.
        command: shows it again, from the files.
    """

    model: str
    culprit: str
    name: str
    rewrite: str
    what: str
    module: Module
    feeds: Values | None
    pipeline: Pipeline
    backend: str
    nodes: int
    compilations: int
    runs: int
    after: Module | None = None
    files: tuple[str, ...] = ()
    command: str = ""

    def to_dict(self) -> dict[str, Any]:
        """All but the part itself, as JSON has it."""
        found = {key: value for key, value in vars(self).items() if key not in ("module", "after", "feeds", "pipeline")}
        return {**found, "passes": self.passes}

    @property
    def passes(self) -> str:
        """The text of the pipeline."""
        return print_pipeline(self.pipeline) or "none"

    def __str__(self) -> str:
        by = {"pass": f"pass {self.name}", "backend": f"backend {self.name}", "kernel": f"the kernel of {self.name}"}
        lines = [by[self.culprit], f"  at   {self.rewrite}", f"  what {self.what}"]
        effort = f"{count(self.compilations, 'compilation')} and {count(self.runs, 'run')}"
        lines.append(f"  left {count(self.nodes, 'operator')} after {effort}")
        lines += [f"  file {path}" for path in self.files]
        return "\n".join([*lines, *([f"  show {self.command}"] if self.command else [])])


# -- files ---------------------------------------------------------------------


def check_folder(directory: str | os.PathLike[str]) -> None:
    """Raise IRC501 unless files can be written into ``directory``."""
    path = os.fsdecode(directory)
    try:
        is_folder = os.path.isdir(path)
    except ValueError as error:  # no name of a file
        raise cannot("IRC501", "write files", error, path) from None
    if not is_folder:
        raise Error("IRC501", "there is no such folder: make it first", path)
    if not os.access(path, os.W_OK | os.X_OK):
        raise Error("IRC501", "this folder may not be written", path)


def write_found(
    found: Bisection,
    directory: str | os.PathLike[str],
    shows: Callable[[str], bool],
    options: Sequence[str] = (),
    path: str = "",
    inputs: Sequence[str] = (),
) -> Bisection:
    """Write the finding into ``directory``: the part, its inputs, the fault and a command to show it.

    All files are written, or none.

    Args:
        found: what to write.
        directory: where to.
        shows: whether the ONNX model at a path shows the fault.
        options: further ones of the command.
        path: of the model, if that is not what it is called.
        inputs: options that say what the model is run on, for a fault that only the whole model shows.
    """
    path = path or found.model
    stem = "".join(c if c.isalnum() or c in "-_" else "-" for c in Path(path).stem) or "model"
    start = str(Path(os.fsdecode(directory)) / f"bisect-{stem}")
    files: list[str] = []
    try:
        files.append(_write_model(found, start, shows))
        command = ["irc", "bisect", files[0], "-p", found.passes, *options]
        command += [] if found.backend == NUMPY else ["--backend", found.backend]
        if found.feeds:
            files.append(f"{start}.npz")
            write_archive(files[-1], as_entries(found.feeds))
            command += ["-i", files[-1]]
        if found.after is not None:  # of which the pass makes nothing wrong: that takes the whole model
            files.append(_write_model(replace(found, module=found.after), f"{start}-after", shows))
            whole = ["irc", "bisect", path, "-p", found.passes, *options, *inputs]
            command = whole if os.path.isfile(path) else []
        written = replace(found, files=(*files, f"{start}.txt"), command=shlex.join(command))
        with replacing(f"{start}.txt") as file:
            file.write(f"{written}\n".encode())
    except Error:
        for each in files:
            Path(each).unlink(missing_ok=True)
        raise
    return written


def _write_model(found: Bisection, start: str, shows: Callable[[str], bool]) -> str:
    """Write the part as ONNX if what is read back shows the fault, else as ``.irc``; the path."""
    path = f"{start}.onnx"
    try:
        export(found.module, path)
        if found.after is not None or shows(path):
            return path
    except Error as error:
        if error.code == "IRC501":
            raise
    Path(path).unlink(missing_ok=True)
    CompiledModel(found.module.copy(), backend=NUMPY).save(f"{start}.irc")
    return f"{start}.irc"
