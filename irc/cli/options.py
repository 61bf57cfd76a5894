"""Options that several commands share, how they are read, and the model that a command is given.

A malformed option is a usage error.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any, BinaryIO

from irc.cli.output import emit, say
from irc.errors import Error, cannot, error_text, last_line, package_of
from irc.support.files import open_regular
from irc.support.formatting import first_of
from irc.support.plugins import packages

if TYPE_CHECKING:
    from irc.ir import Module
    from irc.passes.instruments import Instrument
    from irc.runtime.limits import Limits
    from irc.runtime.model import CompiledModel


# Python files named on the command line: their code is run, so that what it registers can be used.
#
# Nothing else makes irc run a file: not a model, and not a file that is merely in the folder.


_PATHS: set[str] = set()
"""Of files that are, or were, run, as they were given."""


def load(path: str) -> None:
    """Run the code of a file as a module, once in the life of the program.

    The module's name is its whole path, so that no import takes it for another module. Its folder is not added to the
    folders that modules are imported from.

    Raises:
        Error: IRC502 if the file cannot be read, IRC304 if its code fails; errors that irc raises meanwhile. These name
            the file and line.
    """
    try:
        name = os.path.realpath(path)
        if name in sys.modules:
            return
        with open_regular(path) as file:
            text = file.read()
    except (OSError, ValueError) as error:  # the latter for names that no file can have
        raise cannot("IRC502", "read the file", error, path) from None
    module = ModuleType(name)
    module.__file__ = path
    _PATHS.add(path)
    sys.modules[name] = module
    with blamed("IRC304", path):
        try:
            exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
        except BaseException:
            del sys.modules[name]
            raise


@contextmanager
def blamed(code: str = "IRC305", path: str = "") -> Generator[None]:
    """Turn errors in loaded files and plug-ins into an Error with ``code`` that names file and line.

    Args:
        code: the code for errors that are not irc's own.
        path: the file that is being loaded, if one is: then irc's own errors are blamed on it too, and errors without a
            line.
    """
    try:
        yield
    except (BrokenPipeError, MemoryError):
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, Error) and not path:
            raise
        place = _place(error) or path
        if not place:
            raise
        if isinstance(error, Error):
            raise Error(error.code, error.message, f"{place}, {error.where}".removesuffix(", ")) from error
        raise Error(code, error_text(error), place) from error


def _place(error: BaseException) -> str:
    """The last line of a loaded file or plug-in that ran before ``error``; "" if there is none."""
    if isinstance(error, SyntaxError) and error.lineno is not None and error.filename in _PATHS:
        return f"{error.filename}:{error.lineno}"
    offering = packages()

    def counts(frame: FrameType) -> bool:
        return frame.f_code.co_filename in _PATHS or package_of(frame.f_globals.get("__name__")) in offering

    return last_line(error, counts)


# -- options -------------------------------------------------------------------


INSTRUMENT_OPTIONS = ("timing", "print-after-all", "print-after-change", "verify-each", "verify-alias")
"""Instruments that are options of their own; ``--instrument`` takes all."""


Commands = Any
"""argparse's table of subcommands, whose class is private."""

Options = Any
"""A parser or a group of its options, whose class is private."""


def add_command(
    commands: Commands, name: str, purpose: str, examples: str, run: Callable[[argparse.Namespace], int] | None = None
) -> argparse.ArgumentParser:
    """Add a subcommand that ``run`` runs; its help says its ``purpose``, and ends with ``examples``.

    Its options have ``usage_error``, which reports what is wrong with them and ends the program.
    """
    parser = commands.add_parser(
        name,
        help=purpose,
        description=purpose[0].upper() + purpose[1:] + ".",
        epilog=f"examples:\n{examples}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(run=run, usage_error=parser.error)
    flag(parser, "--traceback", "show where in the program an error was raised, and what caused it")
    said = "run this file first: what it registers (passes, operators, kernels...) can be used (several times)"
    parser.add_argument("--load", action="append", default=[], metavar="FILE.py", help=said)
    return parser


def flag(parser: Options, name: str, said: str) -> None:
    """Add an option without a value."""
    parser.add_argument(name, action="store_true", help=said)


def option(parser: Options, name: str, metavar: str, said: str, read: Callable[[str], Any] = str) -> None:
    """Add an option whose value ``read`` takes; None if it is not given. ``-o/--output`` has a short name."""
    parser.add_argument(*name.split("/"), metavar=metavar, type=read, help=said)


def add(parser: Options, *options: Callable[[Options], None]) -> None:
    """Add options that several commands have, each by a function below."""
    for each in options:
        each(parser)


def add_model(
    parser: argparse.ArgumentParser, kinds: str = "ONNX file, .irc file, or IR text (.ir, .txt, - for stdin)"
) -> None:
    """The model that a command is about."""
    parser.add_argument("model", metavar="MODEL", type=ModelFile, help=kinds)
    passing = "(otherwise they pass through, and only running one fails)"
    flag(parser, "--refuse-unknown", f"refuse ONNX operators that irc does not know {passing}")


def add_strict(parser: argparse.ArgumentParser) -> None:
    """The option that refuses operators which irc does not know."""
    others = "(otherwise they may write whatever they can reach)"
    flag(parser, "--strict", f"refuse operators that irc does not know {others}")


def add_pipeline(parser: argparse.ArgumentParser, default: str | None = "default") -> None:
    """Add the options for passes; ``default`` None: "default" unless the model is compiled already."""
    shown = "default" if default is None else default or "none"
    said = f"'default', 'none', or passes such as 'cse,dce,fuse{{max-size=8}}' (default: {shown})"
    parser.add_argument("-p", "--passes", default=default, metavar="PIPELINE", help=said)
    said = "compile the model for this size of a named dimension of its inputs, and no other: the pass fix-sizes"
    _add_by_name(parser, "--fix", partial(_sizes, bits=63), f"{said}, before all others (several times for several)")
    listing = "show all passes and pipelines, those of --load before it too, and exit"
    parser.add_argument("--list-passes", action=_ListPasses, nargs=0, help=listing)


class _ListPasses(argparse.Action):
    """Writes the name of each pass, the first line of its docstring and its options to stdout."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, *_: Any) -> None:
        from irc.passes import registry
        from irc.passes.registry import defaults

        for path in namespace.load:
            load(path)
        named: dict[str, str] = {}
        for name in registry.names():
            try:
                if found := registry.find(name):
                    named[name] = (found.__doc__ or "").partition("\n")[0] + defaults(found)
            except Error as broken:  # a plug-in, which does not prevent using the others
                say(str(broken))
        named |= {name: passes or "no pass" for name, passes in registry.PIPELINES.items()}
        width = max(map(len, named))
        emit("\n".join(f"{name:{width}}  {said}" for name, said in named.items()))
        parser.exit()


def add_pipeline_unless_compiled(parser: argparse.ArgumentParser) -> None:
    """As `add_pipeline`, for a command whose model may be compiled already."""
    add_pipeline(parser, None)


def pipeline(given: argparse.Namespace) -> str:
    """The passes from the options of `add_pipeline`."""
    passes = "default" if given.passes is None else given.passes
    if not given.fix:
        return passes
    from irc.passes import FixSizes, print_pass

    return ",".join(filter(None, (print_pass(FixSizes.of(given.fix)), passes.strip())))


def pipeline_unless_compiled(given: argparse.Namespace) -> str:
    """As `pipeline`, for a model that may be compiled already: passes are a usage error then."""
    if given.model.kind is Kind.COMPILED and (given.fix or given.passes is not None):
        option = "-p/--passes" if given.passes is not None else "--fix"
        given.usage_error(f"{option}: the passes of a .irc file were chosen when it was compiled")
    return pipeline(given)


def add_backend(parser: Options) -> None:
    """Add ``--backend``."""
    said = "what computes fusion groups: auto, the fastest that is installed; numpy, operator by operator; or "
    parser.add_argument("--backend", metavar="NAME", default="auto", help=f"{said}another package's")


def add_instruments(parser: argparse.ArgumentParser) -> None:
    """The options that say what watches the passes."""
    from irc.passes.instruments import INSTRUMENTS, CrashReproducer

    group = parser.add_argument_group("watching the passes, on stderr")
    group.set_defaults(instruments=[])
    for name in INSTRUMENT_OPTIONS:
        said = (INSTRUMENTS[name].__doc__ or "").partition("\n")[0].removesuffix(".")
        purpose = said[:1].lower() + said[1:]
        group.add_argument(f"--{name}", action="append_const", dest="instruments", const=name, help=purpose)
    said = "when a pass raises, write the graph that it was given to this file, for irc opt"
    group.add_argument(
        "--crash-reproducer", action="append", dest="instruments", type=CrashReproducer, metavar="FILE.ir", help=said
    )
    said = "allow only the first N transformations of passes, and say which was the last (irc bisect finds a wrong one)"
    group.add_argument("--opt-limit", action="append", dest="instruments", type=_opt_limit, metavar="N", help=said)
    *others, last = sorted(INSTRUMENTS.keys() - INSTRUMENT_OPTIONS)
    said = f"another: {', '.join(others)} or {last} (several times for several)"
    group.add_argument("--instrument", action="append", dest="instruments", metavar="NAME", help=said)


def _opt_limit(text: str) -> Instrument:
    from irc.passes.instruments import OptimisationLimit

    return OptimisationLimit(_number(text, 0, 2**31 - 1, "on"))


def check_instruments(given: argparse.Namespace) -> None:
    """Refuse files of instruments that could not be written, before any work; as `check_output`."""
    from irc.passes.instruments import CrashReproducer

    for each in given.instruments:
        if isinstance(each, CrashReproducer):
            check_output(str(each.path), TEXT_SUFFIXES, given.model)


def add_explain(parser: Options) -> None:
    """``--explain``: None if it is not given, empty for all remarks."""
    said = "say how often passes did what, and what they left as it was: why, and what would change that"
    more = "; with NODE or PASS, a value's name or a pass, only what concerns that"
    parser.add_argument("--explain", nargs="?", const="", metavar="NODE|PASS", help=said + more)


def add_inputs(parser: Options) -> None:
    """The options that say what a model is run on."""
    said = "the value of an input, as numpy.save writes it, or of all that an archive has (several times for several)"
    form = "NAME=FILE.npy|FILE.npz"
    parser.add_argument("-i", "--input", action="append", default=[], type=_array_file, metavar=form, help=said)
    said = "size of a named dimension in inputs that are made up (default: chosen)"
    add_dim(parser, f"{said}; unlike --fix, it does not change the model")
    said = "shape of an input that is made up, such as x=1,3,640,640 (several times for several inputs)"
    _add_by_name(parser, "--shape", _shape, said, "shape")


def add_seed(parser: Options) -> None:
    """Add ``--seed``."""
    parser.add_argument("--seed", type=seed, default=0, help="seed of the inputs that are not given")


def add_dim(parser: Options, said: str) -> None:
    """``--dim``: sizes of named dimensions."""
    _add_by_name(parser, "--dim", partial(_sizes, bits=31), said)


def add_json(parser: Options) -> None:
    """``--json``."""
    flag(parser, "--json", "the result as JSON on stdout (docs/reference/json.md says what is in it)")


def add_limits(parser: argparse.ArgumentParser) -> None:
    """The options that bound what a run may use."""
    group = parser.add_argument_group("limits, for models that nobody vouches for")
    option(group, "--max-steps", "N", "nodes and iterations of loops", whole_number)
    memory = "memory of results at one time: 500000000, 500M (K, M, G, T are powers of 1024)"
    option(group, "--max-bytes", "N", memory, size)
    option(group, "--max-seconds", "S", "time", seconds)


def limits(given: argparse.Namespace) -> Limits | None:
    """The limits from the options of `add_limits`; None if there are none."""
    from irc.runtime.limits import Limits

    if given.max_steps is None and given.max_bytes is None and given.max_seconds is None:
        return None
    return Limits(steps=given.max_steps, bytes=given.max_bytes, seconds=given.max_seconds)


def size(text: str) -> int:
    """A number of bytes; K, M, G and T stand for the powers of 1024."""
    power = "KMGT".find(text[-1:].upper()) + 1 if text else 0
    digits = text[:-1] if power else text
    if not _is_number(digits, 18) or not int(digits):
        raise argparse.ArgumentTypeError(f"expected a number of bytes, such as 500000000 or 500M, not {text!r}")
    return int(digits) << (10 * power)


def seconds(text: str) -> float:
    """A time."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, not {text!r}")
    return found


def _number(text: str, low: int, high: int, said: str) -> int:
    if not _is_number(text, 30) or not low <= int(text) <= high:
        raise argparse.ArgumentTypeError(f"expected an integer from {low} {said}, not {text!r}")
    return int(text)


def whole_number(text: str) -> int:
    """A number from 1 on."""
    return _number(text, 1, 2**31 - 1, "on")


def threads(text: str) -> int:
    """A number of threads that a run may have."""
    from irc.runtime.threads import MOST

    return _number(text, 1, MOST, f"to {MOST}")


def seed(text: str) -> int:
    """The seed of a random generator."""
    return _number(text, 0, 10**30, "on")


def _is_number(text: str, digits: int) -> bool:
    """Whether ``text`` is a number of at most ``digits`` digits: Python refuses thousands of them."""
    return text.isdecimal() and len(text) <= digits


def _array_file(text: str) -> str:
    name, _, path = text.partition("=")
    if (not name or not path) and not text.endswith(".npz"):
        raise argparse.ArgumentTypeError(f"expected NAME=FILE.npy or FILE.npz, not {text!r}")
    return text  # what is the name of an input, and what of a file, the model will tell


def _add_by_name(
    parser: Options, option: str, read: Callable[[str], dict[str, Any]], said: str, what: str = "size"
) -> None:
    """An option for sizes or shapes by name, which may be given several times."""
    action = partial(_ByName, what=what)
    parser.add_argument(option, action=action, default={}, type=read, metavar="NAME=SIZE,...", help=said)


def _sizes(text: str, bits: int) -> dict[str, int]:
    """One ``NAME=SIZE`` with any name and a size below ``2**bits``, or several, as `read_sizes` reads."""
    from irc.ir.declarations import GivenTwiceError, read_sizes

    try:
        sizes = read_sizes(text)
    except GivenTwiceError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    except ValueError:
        name, _, size = text.rpartition("=")
        sizes = {name: int(size)} if name and _is_number(size, 19) else {}
    if not sizes or max(sizes.values()) >= 2**bits:
        raise argparse.ArgumentTypeError(f"expected NAME=SIZE with an integer below 2**{bits}, not {text!r}")
    return sizes


def _shape(text: str) -> dict[str, tuple[int, ...]]:
    """``NAME=SIZE,...``, with any characters in the name."""
    name, _, sizes = text.rpartition("=")
    parts = sizes.split(",") if sizes.strip() else []
    if not name or not all(_is_number(part.strip(), 10) and int(part) < 2**31 for part in parts):
        raise argparse.ArgumentTypeError(f"expected NAME=SIZE,... with integers below 2**31, not {text!r}")
    return {name: tuple(map(int, parts))}


class _ByName(argparse.Action):
    """Collects sizes or shapes in a dict by name; a name that is given twice is a usage error."""

    def __init__(self, *args: Any, what: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.what = what

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, *_: Any) -> None:
        known: dict[str, Any] = getattr(namespace, self.dest)
        for name in values:
            if name in known:
                raise argparse.ArgumentError(self, f"the {self.what} of {name!r} is given twice")
        setattr(namespace, self.dest, {**known, **values})


# Reading what a command is given: ONNX files, .irc files, IR text.


TEXT_SUFFIXES = (".ir", ".txt")

MAX_TEXT = 2**30
"""Bytes of IR text that are read: weights are not in it, and a million nodes take some 100 MB."""

_CHUNK = 2**20


class Kind(Enum):
    """What a model file holds."""

    TEXT = "IR text"
    COMPILED = "a compiled model"
    ONNX = "an ONNX model"


class ModelFile:
    """A model as a command is given it: a path, or ``-`` for text on standard input.

    Attributes:
        path: as given.
        kind: a compiled model if the file begins like one, else as its name says. Determined when first needed.
        refuse_unknown: whether operators that irc does not know, and that only pass through, are an error (IRC123).
    """

    refuse_unknown = False

    def __init__(self, path: str) -> None:
        self.path = path

    @cached_property
    def kind(self) -> Kind:
        from irc.runtime.file import is_saved

        ending = suffix(self.path)
        if self.path == "-":
            return Kind.TEXT
        if ending == ".irc" or is_saved(self.path):
            return Kind.COMPILED
        return Kind.TEXT if ending in TEXT_SUFFIXES else Kind.ONNX

    def module(self) -> Module:
        """The module in it, verified. Of a compiled model nothing else is read, as kernels may be missing."""
        if self.kind is Kind.TEXT:
            module = self._parse()
            module.verify()
        elif self.kind is Kind.COMPILED:
            from irc.runtime.file import read

            module = read(self.path)[0]
        else:
            from irc.frontend.onnx import import_model

            module = import_model(self.path, refuse_unknown=self.refuse_unknown)
            module.verify()
        self._refuse_unknown(module)
        return module

    def _refuse_unknown(self, module: Module) -> None:
        if self.refuse_unknown:
            from irc.compiler import refuse_opaque

            refuse_opaque(module, self.path)

    def source(self) -> str | Module:
        """What ``irc.compile`` takes, and verifies.

        Raises:
            Error: IRC101 this is compiled already; IRC502 or IRC510 it only has the name of such a file.
        """
        from irc.runtime.file import is_saved, read

        if self.kind is Kind.COMPILED:
            if not is_saved(self.path):
                read(self.path)  # raises what is wrong with it
            message = "this is compiled already: use it with irc run, print, opt, alias or bench"
            raise Error("IRC101", message, self.path)
        return self._parse() if self.kind is Kind.TEXT else self.path

    def compiled(self, passes: str, tell: Callable[[str], None] | None = None, backend: str = "auto") -> CompiledModel:
        """The model, compiled by ``passes`` unless it is compiled already, to be run by ``backend``."""
        if self.kind is Kind.COMPILED:
            from irc import load

            model = load(self.path, backend=backend)
            self._refuse_unknown(model.module)
            return model
        from irc.compiler import compile

        return compile(self.source(), passes, progress=tell, refuse_unknown=self.refuse_unknown, backend=backend)

    def _parse(self) -> Module:
        from irc.frontend.torchscript import copy_into_outs
        from irc.ir import parse_module

        module = parse_module(self._text, filename="<stdin>" if self.path == "-" else self.path)
        copy_into_outs(module)
        return module

    @cached_property
    def _text(self) -> str:
        """Its text, kept as standard input can be read once.

        Raises:
            Error: IRC502 it cannot be read, IRC504 it is not text, IRC113 it is too large.
        """
        try:
            if self.path == "-":
                data = _bounded(sys.stdin.buffer)
            else:
                with open(self.path, "rb") as file:
                    data = _bounded(file) if os.path.getsize(self.path) <= MAX_TEXT else None
        except (OSError, ValueError) as error:  # the latter for names that no file can have
            raise cannot("IRC502", "read the file", error, self.path) from None
        if data is None:
            raise Error("IRC113", f"IR text has at most {MAX_TEXT} bytes, and this has more", self.path)
        try:
            return data.decode("utf-8-sig")  # some editors begin with a byte order mark
        except UnicodeDecodeError as error:
            raise Error("IRC504", f"this is not UTF-8 text (byte {error.start}), so not IR text", self.path) from None


def suffix(path: str) -> str:
    """The end of a file's name, in lower case: ``.onnx``."""
    return Path(path).suffix.lower()


def _bounded(file: BinaryIO) -> bytearray | None:
    """The contents of a file, which may be a pipe or a device; None if it has more than `MAX_TEXT` bytes."""
    data = bytearray()
    while chunk := file.read(_CHUNK):
        data += chunk
        if len(data) > MAX_TEXT:
            return None
    return data


def check_output(path: str, suffixes: Sequence[str], source: ModelFile) -> None:
    """Refuse, before any work is done, a file that could not be written or should not be.

    Raises:
        Error: IRC501 the folder does not exist or cannot be written, or the name is too long; IRC503 the name does not
            end in one of ``suffixes``, or it is the file ``source`` that is read, and not text.
    """
    target = Path(path)
    folder = target.parent
    try:
        if suffixes is TEXT_SUFFIXES and target.exists() and not target.is_file() and not target.is_dir():
            return  # a device or a pipe, /dev/stdout say; binary files need one that can tell where it is
        if suffix(path) not in suffixes:
            raise Error("IRC503", f"the name of this output must end in {' or '.join(suffixes)}", path)
        if target.is_dir():
            raise Error("IRC501", "this is a folder, not a file to write", path)
        if not folder.is_dir():
            raise Error("IRC501", f"there is no folder {str(folder)!r}: make it first", path)
        if not os.access(folder, os.W_OK):
            raise Error("IRC501", f"the folder {str(folder)!r} may not be written", path)
        is_read = source.kind is not Kind.TEXT and target.exists() and os.path.exists(source.path)
        if is_read and target.samefile(source.path):
            raise Error("IRC503", "this is the model that is read: give the output another name", path)
    except OSError as error:  # a name that is too long cannot even be asked about
        raise cannot("IRC501", "write the file", error, path) from None


def say_passing(module: Module) -> None:
    """Print which operators of an ONNX model are unknown to irc, and only pass through."""
    from irc.ops.opaque import opaque_operators

    passing = opaque_operators(*module.graphs.values())
    if passing:
        say(f"note: irc does not know these operators, and passes them through: {', '.join(passing)}")


def check_operators(module: Module, strict: bool, path: str) -> None:
    """Print which operators are unknown to irc; with ``strict``, refuse them (IRC342)."""
    from irc.alias.rules import unknown_operators
    from irc.ir.kinds import CALL
    from irc.ops.opaque import opaque_operators

    lines = [f"  {operator}" for operator in opaque_operators(*module.graphs.values())] if strict else []
    if not strict:
        say_passing(module)
    for graph in module.graphs.values():
        for kind, nodes in unknown_operators(graph).items():
            name = next((f"%{v.name}" for v in nodes[0].outputs), nodes[0].name or "without results")
            missing = " of functions that the model does not have" if kind == CALL else ""
            lines.append(f"  {kind}{missing}: {first_of(len(nodes), 'node', name)}")
    if lines and strict:
        raise Error("IRC342", "irc does not know these operators:\n" + "\n".join(lines), path)
    if lines:
        say("note: irc does not know these operators, and takes them to write whatever they can reach:")
        for line in lines:
            say(line)
