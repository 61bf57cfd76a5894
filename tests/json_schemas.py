"""Write docs/reference/json-schema.json from the classes of results: ``python -m tests.json_schemas``."""

import inspect
import json
import re
import sys
from dataclasses import fields, is_dataclass
from functools import cached_property
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from irc.cli import results
from irc.runtime.report import Report
from irc.support.remarks import Remark
from irc.tools.batch import Outcome
from irc.tools.benchmark import Benchmark
from irc.tools.bisect import Bisection
from irc.tools.catalog import Operator, Said
from irc.tools.comparison import Diff
from irc.tools.costs import Costs
from irc.tools.inspection import Inspection
from irc.tools.layers import Layer, Layers
from irc.tools.reduce import Reduction

PATH = Path(__file__).parent.parent / "docs/reference/json-schema.json"

COMMANDS: dict[str, Any] = {
    "compile": Report,
    "run": results.Ran,
    "opt": results.Optimised,
    "print": results.Printed,
    "alias": results.Aliasing | results.Why,
    "operators": list[Operator],
    "inspect": Inspection,
    "diff": Diff,
    "extract": results.Extracted,
    "bisect": Bisection,
    "reduce": Reduction,
    "bench": Benchmark,
    "batch": Outcome,
}
"""Command -> what it prints with ``--json``; of ``batch``, each line."""

ADDED: dict[Any, dict[str, Any]] = {
    Report: {"remarks": list[Remark], "layers": Layers | None},
    Layers: {"first_wrong": str | None},
    Layer: {"max_error": float | str, "mean_error": float | str | None, "cosine": float | str | None},
    Costs: {"macs": int, "flops": int},
    Bisection: {"passes": str},
    Operator: {"kind": str, "memory": list[Said] | None},
}
"""What ``to_dict`` adds to the fields, and types that are others than those of the fields."""

LEFT_OUT = {Bisection: ("module", "after", "feeds", "pipeline")}

SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}


def schema() -> dict[str, Any]:
    """The whole schema: under ``definitions``, one for each command, called ``irc COMMAND``, and what these share."""
    definitions: dict[str, Any] = {}
    commands = {f"irc {name}": of(kind, definitions) for name, kind in COMMANDS.items()}
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "What the commands of irc print with --json",
        "definitions": {**commands, **dict(sorted(definitions.items()))},
    }


def of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a type; those of classes are added to ``definitions``."""
    origin, parameters = get_origin(kind), get_args(kind)
    if kind in SCALARS:
        return {"type": SCALARS[kind]}
    if kind is Any:
        return {}
    if origin in (UnionType, Union):
        if all(each in SCALARS for each in parameters):
            return {"type": [SCALARS[each] for each in parameters]}
        return {"anyOf": [of(each, definitions) for each in parameters]}
    if origin in (list, tuple):
        return {"type": "array", "items": of(parameters[0], definitions)}
    if origin is dict:
        return {"type": "object", "additionalProperties": of(parameters[1], definitions)}
    if kind.__name__ not in definitions:
        definitions[kind.__name__] = {}  # before its fields, which may be of the same class
        definitions[kind.__name__].update(_object(kind, definitions))
    return {"$ref": f"#/definitions/{kind.__name__}"}


def _object(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    types = {**_types(kind), **ADDED.get(kind, {})}
    said = _said(kind)
    properties: dict[str, Any] = {}
    for name, type in types.items():
        found = of(type, definitions)
        about = {"description": said[name]} if name in said else {}
        # Beside a reference, draft 7 ignores all else.
        properties[name] = {**about, "allOf": [found]} if about and "$ref" in found else {**about, **found}
    summary = (kind.__doc__ or "").strip().partition("\n\n")[0]
    return {
        "description": " ".join(summary.split()),
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _types(kind: Any) -> dict[str, Any]:
    if is_dataclass(kind):
        names = vars(sys.modules[kind.__module__])
        left_out = LEFT_OUT.get(kind, ())
        return {each.name: eval(str(each.type), names) for each in fields(kind) if each.name not in left_out}
    if kind is Operator:
        members = {name: member for name, member in vars(kind).items() if isinstance(member, cached_property)}
        return {name: get_type_hints(member.func)["return"] for name, member in members.items() if name != "memory"}
    return get_type_hints(kind)


def _said(kind: Any) -> dict[str, str]:
    """What the docstring of a class says of each attribute."""
    text = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2]
    found: dict[str, str] = {}
    for part in re.split(r"\n(?=    \w)", inspect.cleandoc(text).join(("\n", "")).replace("\n", "\n    ")):
        names, _, about = " ".join(part.split()).partition(": ")
        found |= dict.fromkeys(names.split(", "), about)
    return found


def text() -> str:
    """The file."""
    return json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), "utf-8")
