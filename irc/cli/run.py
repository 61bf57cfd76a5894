"""``irc run``."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.cli import common
from irc.errors import Error

if TYPE_CHECKING:
    from irc.runtime.model import CompiledModel


def add_commands(commands: common.Commands) -> None:
    """Add ``run``."""
    parser = commands.add_parser("run", help="run a model on .npy inputs")
    parser.add_argument("model", metavar="MODEL", help="ONNX file, .irc file, or IR text (.ir)")
    parser.add_argument(
        "--input", "-i", action="append", default=[], metavar="NAME=FILE.npy", help="the value of an input"
    )
    parser.add_argument("--seed", type=int, help="make up the inputs that are not given, from this seed")
    parser.add_argument("--output", "-o", metavar="OUT.npz", help="where to write the outputs")
    common.add_pipeline(parser)
    common.add_sizes(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the model; print a line an output."""
    if options.output:
        common.existing_folder(options.output)
    given = dict(_read(text) for text in options.input)
    model = common.compiled(options.model, options)
    results = model.run(_complete(model, given, options))
    if options.output:
        _write(options.output, results)
    for name, value in results.items():
        print(f"{name}: {summary(value)}")
    return 0


def summary(value: Any) -> str:
    """A value in one line: type, shape and range of a tensor, length of a list."""
    if value is None:
        return "None"
    if isinstance(value, list):
        items: list[Any] = value
        return f"list of {len(items)}: [{', '.join(map(summary, items[:4]))}{', ...' if len(items) > 4 else ''}]"
    if not isinstance(value, np.ndarray):
        return repr(value)
    array: np.ndarray[Any, Any] = value
    text = f"{array.dtype} {list(array.shape)}"
    if array.size == 0:
        return text
    if array.size <= 8 or array.dtype.kind in "OUSTc":
        return f"{text} {array.ravel()[:8].tolist()}{' ...' if array.size > 8 else ''}"
    wide = array.astype(np.float64)
    return f"{text} min {wide.min():.6g}, max {wide.max():.6g}, mean {wide.mean():.6g}"


def _read(text: str) -> tuple[str, Any]:
    name, sep, path = text.partition("=")
    if not sep or not name or not path:
        raise Error("IRC410", "expected NAME=FILE.npy", f"--input {text}")
    try:
        array = np.load(path, allow_pickle=False, mmap_mode="r")
    except OSError as error:
        raise Error("IRC502", f"cannot be read: {error.strerror or error}", path) from None
    except ValueError as error:  # what NumPy raises for anything that is no array file
        raise Error("IRC502", f"is not a NumPy array file: {error}", path) from None
    if not isinstance(array, np.ndarray):
        raise Error("IRC502", "holds several arrays (.npz); give one .npy file an input", path)
    return name, np.asarray(array)


def _complete(model: CompiledModel, given: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    if options.seed is None:
        return given
    from irc.seeded import assumed_sizes, seeded_inputs

    sizes = common.sizes_of(options)
    missing = [a for a in model.inputs if a.name not in given]
    assumed = assumed_sizes(missing, sizes)
    if assumed:
        print("assumed " + ", ".join(f"{n}={s}" for n, s in assumed.items()), file=sys.stderr)
    return {**seeded_inputs(missing, options.seed, sizes), **given}


def _write(path: str, results: dict[str, Any]) -> None:
    from irc.runtime.file import replacing

    arrays = {name: value for name, value in results.items() if isinstance(value, np.ndarray)}
    if len(arrays) < len(results):
        raise Error("IRC503", "only tensors can be written to .npz; the model returns other values too", path)
    with replacing(path) as file:
        np.savez(file, allow_pickle=False, **arrays)
