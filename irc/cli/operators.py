"""``irc operators``: what irc knows, and all about one operator."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from irc.cli import options
from irc.cli.output import emit, say
from irc.errors import Error

if TYPE_CHECKING:
    from irc.tools.catalog import Operator

EXAMPLES = """\
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


def add_commands(commands: options.Commands) -> None:
    """Add ``operators``."""
    parser = options.add_command(commands, "operators", "list operators, or say all about some", EXAMPLES)
    parser.description = f"{parser.description}\n\n{COLUMNS}"
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as Conv, onnx::Conv, aten::add_")
    parser.add_argument("--json", action="store_true", help="all about them as JSON")
    parser.set_defaults(run=run)


def run(given: argparse.Namespace) -> int:
    """Print the operators named, or all of them."""
    from irc.tools.catalog import Operator, find, kinds

    def tell(broken: Error) -> None:
        say(f"{broken}; its operators are left out")

    found = find(given.names, tell) if given.names else [Operator(kind) for kind in kinds(tell)]
    if given.json:
        emit(json.dumps([operator.to_dict() for operator in found], indent=2))
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
