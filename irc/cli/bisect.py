"""``irc bisect`` and ``irc reduce``: what makes a model wrong, and the smallest part that shows it."""

from __future__ import annotations

import argparse
from pathlib import Path

from irc.cli import options
from irc.cli.options import Kind
from irc.cli.output import progress, show

BISECT_EXAMPLES = """\
  irc bisect model.onnx                          which rewrite of the default passes is wrong
  irc bisect model.onnx -p cse,fuse -o found     of these passes; files go into the folder found
  irc bisect model.onnx -i x=x.npy               on inputs that show the fault
  irc bisect model.onnx -p none                  whether a kernel is wrong"""


def add_bisect(commands: options.Commands) -> None:
    """Add ``bisect``."""
    purpose = "find the rewrite, kernel or backend that makes a model wrong, and the smallest part that shows it"
    parser = options.add_command(commands, "bisect", purpose, BISECT_EXAMPLES, run_bisect)
    options.add_model(parser)
    said = "folder for the part (.onnx, or .irc where ONNX cannot say it), its inputs (.npz), what was found (.txt)"
    parser.add_argument("-o", "--output", metavar="DIR", default=".", help=f"{said} (default: the current one)")
    options.add(parser, options.add_pipeline, options.add_backend)
    options.add(parser, options.add_inputs, options.add_seed, options.add_json)


def run_bisect(given: argparse.Namespace) -> int:
    """Print what is wrong, after the files have been written."""
    from irc.cli.arrays import read_inputs, stated_sizes
    from irc.compiler import load_module
    from irc.runtime.backends import NUMPY
    from irc.runtime.model import CompiledModel
    from irc.tools.bisect import bisect, check_folder, write

    check_folder(given.output)
    with progress() as tell:
        source = given.model.module() if given.model.kind is Kind.COMPILED else given.model.source()
        inputs, sizes = {}, {}
        if given.input or given.dim or given.shape:
            plain = CompiledModel(load_module(source)[0], backend=NUMPY)
            inputs = read_inputs(plain, given.input)
            sizes = stated_sizes(plain, inputs, given)
        found = bisect(
            source,
            options.pipeline(given),
            given=inputs,
            dims=sizes,
            seeds=(given.seed, given.seed + 1),
            backend=given.backend,
            progress=tell,
        )
        tell("writing")
        loaded = [word for path in given.load for word in ("--load", path)]
        found = write(found, given.output, loaded, given.model.path, _inputs(given))
    return show(found, given.json)


def _inputs(given: argparse.Namespace) -> list[str]:
    """The options that say what the model is run on, as they were given."""
    pairs = [("-i", text) for text in given.input]
    pairs += [("--dim", f"{name}={size}") for name, size in given.dim.items()]
    pairs += [("--shape", f"{name}={','.join(map(str, shape))}") for name, shape in given.shape.items()]
    pairs += [("--seed", str(given.seed)), ("--backend", given.backend)]
    return [word for pair in pairs for word in pair]


REDUCE_EXAMPLES = """\
  irc reduce model.onnx --command 'python crashes.py'            the model is the last argument
  irc reduce model.onnx --command 'python differs.py {} {inputs}' -o small.onnx
  irc reduce model.onnx --command '! other-runtime {}'           a shell reads it: ! turns the status around

The command must end with status 0 as long as the model still shows what you look for, and with any other if not:
then that part of the model is needed. It runs in the current folder."""


def add_reduce(commands: options.Commands) -> None:
    """Add ``reduce``."""
    purpose = "find the smallest part of a model for which a command still ends with status 0"
    parser = options.add_command(commands, "reduce", purpose, REDUCE_EXAMPLES, run_reduce)
    options.add_model(parser)
    said = (
        "ends with status 0 if a model still shows it; {} stands for the path of the model (default: last), "
        "{inputs} for that of a .npz archive of its inputs, for which irc runs the model"
    )
    parser.add_argument("--command", metavar="COMMAND", required=True, help=said)
    said = "end the command after S seconds; the model then does not show the fault (default: never)"
    options.option(parser, "--timeout", "S", said, options.seconds)
    said = "where to write the part, as ONNX; its inputs go beside it, as .npz (default: reduced-MODEL.onnx)"
    options.option(parser, "-o/--output", "OUT.onnx", said)
    options.add(parser, options.add_inputs, options.add_seed, options.add_json)


def run_reduce(given: argparse.Namespace) -> int:
    """Print what is left, after it has been written."""
    from irc.cli.arrays import complete, read_inputs
    from irc.compiler import load_module
    from irc.runtime.backends import NUMPY
    from irc.runtime.model import CompiledModel
    from irc.tools.reduce import Command, reduce

    reads_inputs = Command(given.command).reads_inputs
    if (given.input or given.dim or given.shape) and not reads_inputs:
        given.usage_error("--input, --dim and --shape are for a command with {inputs}")
    output = given.output or f"reduced-{Path(given.model.path).stem.strip('-') or 'model'}.onnx"
    options.check_output(output, (".onnx",), given.model)
    with progress() as tell:
        tell("importing")
        source = given.model.path if given.model.kind is Kind.ONNX else given.model.module()
        feeds = None
        if reads_inputs:
            plain = CompiledModel(load_module(source)[0], backend=NUMPY)
            feeds = complete(plain, read_inputs(plain, given.input), given)
        found = reduce(source, given.command, output, timeout=given.timeout, feeds=feeds, progress=tell)
    return show(found, given.json)
