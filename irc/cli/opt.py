"""``irc opt``: IR text in, passes, IR text out."""

from __future__ import annotations

import argparse
import sys

from irc.cli import common


def add_commands(commands: common.Commands) -> None:
    """Add ``opt``."""
    parser = commands.add_parser("opt", help="run passes over IR text")
    parser.add_argument("file", metavar="FILE.ir", help="IR text, or - for standard input; also ONNX and .irc files")
    parser.add_argument("-p", "--passes", default="", metavar="PIPELINE", help='such as "cse,dce,fuse{max-size=8}"')
    parser.add_argument("-o", "--output", metavar="OUT.ir", help="where to write the text (default: stdout)")
    parser.add_argument(
        "--instrument", action="append", default=[], metavar="NAME", help="verify-each, timing, print-after-all..."
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the module after the passes."""
    from irc.compiler import named_pipeline
    from irc.passes import PassManager, create_instruments

    if options.output:
        common.existing_folder(options.output)
    manager = PassManager(named_pipeline(options.passes), create_instruments(options.instrument))
    module = common.read_module(options.file)
    module.verify()
    manager.run(module)
    module.verify()
    text = str(module)
    if options.output:
        from irc.runtime.file import replacing

        with replacing(options.output) as file:
            file.write(text.encode())
    else:
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    return 0
