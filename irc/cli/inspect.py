"""``irc print`` and ``irc alias``: look at a model's IR and at what may share memory in it."""

from __future__ import annotations

import argparse

from irc.cli import common
from irc.errors import Error


def add_commands(commands: common.Commands) -> None:
    """Add ``print`` and ``alias``."""
    shown = commands.add_parser("print", help="print a model as IR text")
    shown.add_argument("model", metavar="MODEL", help="ONNX file, .irc file, or IR text (.ir)")
    shown.set_defaults(run=print_ir)

    alias = commands.add_parser("alias", help="which values may share memory")
    alias.add_argument("model", metavar="MODEL", help="ONNX file, .irc file, or IR text (.ir)")
    alias.add_argument("--format", choices=("text", "dot"), default="text")
    alias.add_argument("--why", nargs=2, metavar=("A", "B"), help="why two values may share memory")
    alias.set_defaults(run=print_alias)


def print_ir(options: argparse.Namespace) -> int:
    """Print the module's text."""
    print(str(common.read_module(options.model)).rstrip("\n"))
    return 0


def print_alias(options: argparse.Namespace) -> int:
    """Print the alias graph, or why two values alias."""
    from irc.alias import analyze

    module = common.read_module(options.model)
    db = analyze(module.main, module)
    if options.why:
        for name in options.why:
            if not module.main.has_value(name):
                raise Error("IRC311", f"the graph has no value {name!r}", options.model)
        a, b = (module.main.value(name) for name in options.why)
        facts = db.why(a, b)
        for fact in facts:
            print(fact)
        if not facts:
            print(f"%{a.name} and %{b.name} never share memory")
    else:
        print(db.to_dot() if options.format == "dot" else str(db))
    return 0
