"""``irc inspect``, ``irc diff`` and ``irc extract``: what a model is, how two differ, a part of one."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection
from typing import TYPE_CHECKING

from irc.cli import options
from irc.cli.output import emit, emit_json, show
from irc.support.formatting import count

if TYPE_CHECKING:
    from irc.tools.inspection import Inspection

INSPECT_EXAMPLES = """\
  irc inspect model.onnx                         inputs, outputs, operators, operations, weights
  irc inspect model.onnx --dim batch=8           operations for another size than 1"""


def add_inspect(commands: options.Commands) -> None:
    """Add ``inspect``."""
    purpose = "say what a model takes, gives and costs"
    parser = options.add_command(commands, "inspect", purpose, INSPECT_EXAMPLES, run_inspect)
    options.add_model(parser)
    options.add_dim(parser, "size of a named dimension that operations are counted for (default: 1)")
    options.add_json(parser)


def inspected(given: argparse.Namespace) -> Inspection:
    """What the model is."""
    from irc.tools.inspection import inspect

    found = inspect(given.model.module(), given.dim)
    found.name = given.model.path
    return found


def run_inspect(given: argparse.Namespace) -> int:
    """Print what the model is."""
    return show(inspected(given), given.json)


EXTRACT_EXAMPLES = """\
  irc extract model.onnx --to features -o part.onnx              all that leads to a value
  irc extract model.onnx --from a,b --to y -o part.onnx          what lies between
  irc extract model.onnx --from a --to y,z -o part.irc           compiled, without passes"""


def add_extract(commands: options.Commands) -> None:
    """Add ``extract``."""
    purpose = "write a part of a model as a model"
    parser = options.add_command(commands, "extract", purpose, EXTRACT_EXAMPLES, run_extract)
    options.add_model(parser)
    said = "values that the part is given, its inputs (default: the model's inputs that it needs)"
    parser.add_argument("--from", dest="start", action="append", metavar="NAMES", help=said)
    said = "values that the part computes, its outputs"
    parser.add_argument("--to", dest="end", action="append", metavar="NAMES", required=True, help=said)
    said = "where to write it: OUT.onnx, with the nodes of an ONNX file as they are, OUT.irc or OUT.ir"
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help=said)
    said = "OUT.onnx: weights of that many bytes or more go to OUT.onnx.data; by default, if the part exceeds 2 GB"
    options.option(parser, "--external-data", "BYTES", said, options.size)
    options.add_json(parser)


def run_extract(given: argparse.Namespace) -> int:
    """Write the part; print what it takes and gives."""
    from irc.cli.results import Extracted
    from irc.compiler import compile, count_nodes, write_onnx
    from irc.support.files import replacing, spare_sources
    from irc.tools.extract import extract, extract_file
    from irc.tools.inspection import Interface

    path: str = given.output
    ending = options.suffix(path)
    options.check_output(path, options.TEXT_SUFFIXES if ending in options.TEXT_SUFFIXES else ONE_OF, given.model)
    if given.external_data is not None and ending != ".onnx":
        given.usage_error("--external-data is for -o OUT.onnx")
    module = given.model.module()
    known = {value.name for value in module.main.values()}
    start = None if given.start is None else _names(given.start, known)
    end = _names(given.end, known)
    part = extract(module, start, end)
    spare_sources(module.sources, [path])
    if ending == ".onnx":
        if given.model.kind is options.Kind.ONNX:
            size = extract_file(given.model.path, start, end, path, given.external_data).bytes
        else:
            size = write_onnx(part, path, given.external_data).bytes
    elif ending == ".irc":
        compile(part, "none").save(path)
        size = os.path.getsize(path)
    else:
        text = str(part).rstrip("\n").encode() + b"\n"
        with replacing(path) as file:
            file.write(text)
        size = len(text)
    ends = [
        [Interface(v.name, str(v.type), v.name in part.defaults) for v in values]
        for values in (part.main.inputs, part.main.outputs)
    ]
    found = Extracted(path, size, count_nodes(part.main), *ends)
    if given.json:
        emit_json(found.to_dict())
        return 0
    emit(f"{path}: {count(found.nodes, 'node')} of {count_nodes(module.main):,}, {size:,} bytes")
    for what, values in (("input", found.inputs), ("output", found.outputs)):
        for value in values:
            emit(f"  {what:6}  %{value.name} : {value.type}")
    return 0


ONE_OF = (".onnx", ".irc", *options.TEXT_SUFFIXES)


def _names(given: list[str], known: Collection[str]) -> list[str]:
    """The names in an option's values: a value is one name if the model has it, else names with commas."""
    found: list[str] = []
    for text in given:
        parts = [text] if text in known else text.split(",")
        found += [part if part in known else part.strip().removeprefix("%") for part in parts]
    return found


DIFF_EXAMPLES = """\
  irc diff before.onnx after.onnx                nodes, weights and interface that differ
  irc diff model.onnx model.irc --json           what compiling changed, as JSON"""


def add_diff(commands: options.Commands) -> None:
    """Add ``diff``."""
    parser = options.add_command(commands, "diff", "say what differs between two models", DIFF_EXAMPLES, run_diff)
    parser.epilog = f"{parser.epilog}\n\nThe exit status is 1 if anything differs, else 0, and then nothing is printed."
    for name in ("A", "B"):
        said = "ONNX file, .irc file, or IR text (.ir, .txt, - for stdin)"
        parser.add_argument(name.lower(), metavar=name, type=options.ModelFile, help=said)
    options.add_json(parser)


def run_diff(given: argparse.Namespace) -> int:
    """Print what differs; the exit status tells whether anything does."""
    from irc.tools.comparison import diff

    found = diff(given.a.module(), given.b.module())
    found.before, found.after = given.a.path, given.b.path
    if given.json:
        emit_json(found.to_dict())
    elif found:
        emit(str(found))
    return int(bool(found))
