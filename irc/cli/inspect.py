"""``irc print``, ``irc alias``, ``irc operators``: a model's IR, shared memory, facts on operators."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from irc.cli import options
from irc.cli.output import emit, emit_json, say, show
from irc.errors import Error, suggestion

if TYPE_CHECKING:
    from irc.alias import AliasDb
    from irc.cli.results import Aliasing, Why
    from irc.ir import Graph, Value
    from irc.tools.catalog import Operator

PRINT_EXAMPLES = """\
  irc print model.onnx > model.ir                as imported
  irc print model.irc                            as optimised
  irc print model.irc --format svg > model.svg   a picture"""

ALIAS_EXAMPLES = """\
  irc alias graph.ir                             what each value may point to, and who writes it
  irc alias graph.ir --format svg > graph.svg    the same as a picture
  irc alias graph.ir --why x y                   the facts that make two values share memory"""


def add_print_and_alias(commands: options.Commands) -> None:
    """Add ``print`` and ``alias``."""
    shown = options.add_command(commands, "print", "print a model as IR text", PRINT_EXAMPLES, print_ir)
    options.add_model(shown)
    shown.add_argument(
        "--format", choices=("text", "svg"), default="text", help="IR text (default), or a picture, as SVG"
    )
    options.add_json(shown)

    alias = options.add_command(commands, "alias", "show which values may share memory", ALIAS_EXAMPLES, print_alias)
    options.add(alias, options.add_model, options.add_strict)
    formats = "text (default), dot, which is Graphviz's language, or svg, a picture"
    alias.add_argument("--format", choices=tuple(_FORMATS), default="text", help=formats)
    said = "why two values may share memory, and what writes them"
    alias.add_argument("--why", nargs=2, metavar=("A", "B"), help=said)
    options.add_json(alias)


def print_ir(given: argparse.Namespace) -> int:
    """Print the module's text, or a picture of it."""
    module = given.model.module()
    if given.format == "svg":
        from irc.drawing import to_svg
        from irc.ir.drawing import picture_of

        text = to_svg(picture_of(module))
    else:
        text = str(module).rstrip("\n")
    if given.json:
        from irc.cli.results import Printed
        from irc.ops.opaque import opaque_operators

        unknown = {operator: len(nodes) for operator, nodes in opaque_operators(*module.graphs.values()).items()}
        emit_json(Printed(given.format, text, unknown).to_dict())
    else:
        options.say_passing(module)
        emit(text)
    return 0


def print_alias(given: argparse.Namespace) -> int:
    """Print the alias graph, or why two values alias."""
    from irc.alias import analyze

    if given.why and given.format != "text":
        given.usage_error("--why is answered in text: leave out --format")
    if given.json and given.format != "text":
        given.usage_error("--json has all that a picture shows: leave out --format")
    module = given.model.module()
    options.check_operators(module, given.strict, given.model.path)
    db = analyze(module.main, module)
    shown = _why(module.main, db, given) if given.why else _aliasing(module.main, db) if given.json else None
    if shown is None:
        emit(_FORMATS[given.format](db))
        return 0
    return show(shown, given.json)


def _aliasing(graph: Graph, db: AliasDb) -> Aliasing:
    from irc.cli.results import AliasedValue, Aliasing

    values = [*graph.inputs, *(value for node in graph.walk() for value in node.outputs)]
    rows = ((v, [repr(node) for node in db.writers(v)]) for v in values)
    return Aliasing([AliasedValue(v.name, sorted(map(str, db.locations(v))), writers) for v, writers in rows])


def _why(graph: Graph, db: AliasDb, given: argparse.Namespace) -> Why:
    """The chains of facts from both values to where they meet, and who writes what they may be or hold."""
    from irc.alias.explain import meeting
    from irc.cli.results import Why, Writer

    a, b = (_value(graph, name, given.model.path) for name in given.why)
    found, shown = meeting(db, a, b), Why(a.name, b.name)
    if found is not None:
        shown.meet = str(found.location)
        shown.from_a, shown.from_b = list(map(str, found.from_a)), list(map(str, found.from_b))
    for node in db.writing_nodes():
        if written := [value.name for value in dict.fromkeys((a, b)) if db.writes_to_alias(node, value)]:
            shown.writers.append(Writer(repr(node), written))
    return shown


def _svg(db: AliasDb) -> str:
    from irc.alias.drawing import picture_of
    from irc.drawing import to_svg

    return to_svg(picture_of(db))


_FORMATS: dict[str, Callable[[AliasDb], str]] = {"text": str, "dot": lambda db: db.to_dot(), "svg": _svg}


def _value(graph: Graph, name: str, where: str) -> Value:
    """The value called ``name``, which may be written with %; IRC311 if there is none."""
    for spelled in (name, name.removeprefix("%")):
        if graph.has_value(spelled):
            return graph.value(spelled)
    names = [value.name for value in [*graph.inputs, *(v for node in graph.walk() for v in node.outputs)]]
    raise Error("IRC311", f"the graph has no value {name!r}; {suggestion(name, names)}", where)


# ``irc operators``: what irc knows, and all about one operator.


OPERATORS_EXAMPLES = """\
  irc operators                                  a line an operator
  irc operators | grep aten:: | grep -v runs     what of torch's irc has no kernels for
  irc operators Conv                             all about one, and in which files to read on
  irc operators aten::add_ com.microsoft::Attention"""

COLUMNS = """\
Without names, a line for each: the operator; since= the opsets that changed it, or
how many schemas= it has; then as far as it is so
  runs      it has a kernel; runs:expanded, models get other operators for it;
            runs:reference, onnx.reference computes it
  shape     types of its results are inferred
  fuses     it joins fusion groups
  in-place  there is an operator that writes its result into the first input
  onnx      models with it can be written as ONNX"""


def add_operators(commands: options.Commands) -> None:
    """Add ``operators``."""
    purpose = "list operators, or say all about some"
    parser = options.add_command(commands, "operators", purpose, OPERATORS_EXAMPLES, print_operators)
    parser.description = f"{parser.description}\n\n{COLUMNS}"
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as Conv, onnx::Conv, aten::add_")
    options.add_json(parser)


def print_operators(given: argparse.Namespace) -> int:
    """Print the operators named, or all of them."""
    from irc.tools.catalog import Operator, find, kinds

    def tell(broken: Error) -> None:
        say(f"{broken}; its operators are left out")

    found = find(given.names, tell) if given.names else [Operator(kind) for kind in kinds(tell)]
    if given.json:
        emit_json([operator.to_dict() for operator in found])
    elif given.names:
        emit("\n\n".join("\n".join(_page(operator)) for operator in found))
    else:
        emit("\n".join(_table([_row(operator) for operator in found])))
    return 0


def _row(operator: Operator) -> list[str]:
    versions = ",".join(map(str, operator.versions))
    marks = {
        "runs" if operator.runs == "kernel" else f"runs:{operator.runs}": operator.runs,
        "shape": operator.shape_rule,
        "fuses": operator.fuses,
        "in-place": operator.in_place,
        "onnx": operator.exports,
    }
    about = f"since={versions}" if versions else f"schemas={len(operator.schemas)}"
    return [operator.kind, about, *(mark if is_so else "-" for mark, is_so in marks.items())]


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        yield "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths)).rstrip()


def _page(operator: Operator) -> Iterator[str]:
    """A page about one operator: its name, then a label and one or more lines for each of its properties."""
    yield operator.kind
    facts = [(label, lines) for label, lines in _facts(operator) if lines]
    width = max(len(label) for label, _ in facts)
    for label, lines in facts:
        for i, line in enumerate(lines):
            yield f"  {'' if i else label:{width}}  {line}"


def _facts(operator: Operator) -> Iterator[tuple[str, Sequence[str]]]:
    yield "schemas" if len(operator.schemas) > 1 else "schema", operator.schemas
    yield "attributes", _joined(operator.attributes)
    yield "changed in", _joined([f"opset {version}" for version in operator.versions])
    yield "memory", list(_memory(operator))
    by_pass = "" if operator.is_put_in_place else " (which no pass puts in its place)"
    yield "in place", [f"{operator.in_place}{by_pass}"] if operator.in_place else []
    yield "functional", [operator.functional] if operator.functional else []
    yield "also called", _joined(operator.other_names)
    yield "fuses", [operator.fuses or "no"]
    yield "shape rule", [operator.shape_rule or "none"]
    yield "record", [f"{name}: {', '.join(texts) or 'none'}" for name, texts in operator.record.items()]
    yield "kernel", list(_kernels(operator))
    yield "verified by", operator.verified or ["nothing but what holds for all nodes"]
    yield "as ONNX", ["yes" if operator.exports else "no"]


def _joined(words: Sequence[str]) -> list[str]:
    return [", ".join(words)] if words else []


def _memory(operator: Operator) -> Iterator[str]:
    memory = operator.memory
    if memory is None:
        yield "that of the operators that it is expanded into"
        return
    for said in memory.said:
        statements = "; ".join(said.statements)
        yield f"{statements} ({', '.join(said.overloads)})" if said.overloads else statements
    if operator.alias_rule is not None:
        yield operator.alias_rule


def _kernels(operator: Operator) -> Iterator[str]:
    if operator.expanded_by is not None:
        yield f"none: expanded into other operators by {operator.expanded_by}"
    elif operator.runs == "reference":
        yield "none: onnx.reference computes it"
    elif not operator.kernels:
        yield "constants need none" if operator.runs else "none"
    places = {place: since for since, place in reversed(operator.kernels.items())}
    for place, since in reversed(places.items()):
        yield place if since == 1 else f"{place}, from version {since} on"
