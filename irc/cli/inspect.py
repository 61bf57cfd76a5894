"""``irc print`` and ``irc alias``: look at a model's IR and at what may share memory in it."""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Callable
from typing import TYPE_CHECKING

from irc.cli import models, options
from irc.cli.output import emit
from irc.errors import Error, suggestion

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.ir import Graph, Value

PRINT_EXAMPLES = """\
  irc print model.onnx > model.ir                as imported
  irc print model.irc                            as optimised"""

ALIAS_EXAMPLES = """\
  irc alias graph.ir                             what each value may point to, and who writes it
  irc alias graph.ir --format svg > graph.svg    the same as a picture
  irc alias graph.ir --why x y                   the facts that make two values share memory"""


def add_commands(commands: options.Commands) -> None:
    """Add ``print`` and ``alias``."""
    shown = options.add_command(commands, "print", "print a model as IR text", PRINT_EXAMPLES)
    options.add_model(shown)
    shown.set_defaults(run=print_ir)

    alias = options.add_command(commands, "alias", "show which values may share memory", ALIAS_EXAMPLES)
    options.add_model(alias)
    options.add_strict(alias)
    formats = "text (default), Graphviz's dot, or svg, drawn by Graphviz if it is installed"
    alias.add_argument("--format", choices=tuple(_FORMATS), default="text", help=formats)
    alias.add_argument(
        "--why", nargs=2, metavar=("A", "B"), help="why two values may share memory, and what writes them"
    )
    alias.set_defaults(run=print_alias)


def print_ir(given: argparse.Namespace) -> int:
    """Print the module's text."""
    module = given.model.module()
    models.say_passing(module)
    emit(str(module).rstrip("\n"))
    return 0


def print_alias(given: argparse.Namespace) -> int:
    """Print the alias graph, or why two values alias."""
    from irc.alias import analyze

    if given.why and given.format != "text":
        given.usage_error("--why is answered in text: leave out --format")
    module = given.model.module()
    models.check_operators(module, given.strict, given.model.path)
    db = analyze(module.main, module)
    if given.why:
        a, b = (_value(module.main, name, given.model.path) for name in given.why)
        lines = _why(db, a, b)
        for node in db.writing_nodes():
            seen = [f"%{value.name}" for value in dict.fromkeys((a, b)) if db.writes_to_alias(node, value)]
            if seen:
                lines.append(f"{node!r}    writes what {' and '.join(seen)} may be or hold")
        emit("\n".join(lines))
    else:
        emit(_FORMATS[given.format](db))
    return 0


def _svg(db: AliasDb) -> str:
    """A picture, drawn by Graphviz's dot; IRC503 if dot is not installed, or fails."""
    try:
        done = subprocess.run(["dot", "-Tsvg"], input=db.to_dot().encode(), capture_output=True, check=False)
    except OSError as error:
        reason = f"SVG is drawn by Graphviz's dot, which cannot be run ({error.strerror}): install it, or use dot"
        raise Error("IRC503", reason) from None
    if done.returncode:
        raise Error("IRC503", f"Graphviz's dot failed: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()


_FORMATS: dict[str, Callable[[AliasDb], str]] = {"text": str, "dot": lambda db: db.to_dot(), "svg": _svg}


def _why(db: AliasDb, a: Value, b: Value) -> list[str]:
    """The chains of facts from both values to where they meet, each under the value that it starts from."""
    from irc.alias.explain import meeting

    found = meeting(db, a, b)
    if found is None:
        return [f"%{a.name} and %{b.name} never share memory"]
    lines = [f"%{a.name} and %{b.name} meet at {found.location}"]
    for value, facts in {a: found.from_a, b: found.from_b}.items():
        lines += [f"from %{value.name}:", *(f"  {fact}" for fact in facts)]
    return lines


def _value(graph: Graph, name: str, where: str) -> Value:
    """The value called ``name``, which may be written with %; IRC311 if there is none."""
    for spelled in (name, name.removeprefix("%")):
        if graph.has_value(spelled):
            return graph.value(spelled)
    names = [value.name for value in [*graph.inputs, *(v for node in graph.walk() for v in node.outputs)]]
    raise Error("IRC311", f"the graph has no value {name!r}; {suggestion(name, names)}", where)
