"""``--json`` of each command is what docs/reference/json-schema.json says."""

import argparse
import json
import shlex
from typing import Any

import fastjsonschema
import pytest

from irc.cli.commands import whole_parser
from tests.cli.helpers import Command, model, node, small_model
from tests.graphs import ir
from tests.json_schemas import COMMANDS, PATH, text

SCHEMA = json.loads(PATH.read_text("utf-8"))


def undescribed(schema: Any) -> Any:
    """``schema`` without descriptions, which are docstrings."""
    if isinstance(schema, list):
        return list(map(undescribed, schema))
    if not isinstance(schema, dict):
        return schema
    return {name: undescribed(each) for name, each in schema.items() if name != "description" or isinstance(each, dict)}


def test_the_schema_is_that_of_the_classes() -> None:
    assert undescribed(SCHEMA) == undescribed(json.loads(text())), "python -m tests.json_schemas writes it anew"


@pytest.mark.slow
def test_the_descriptions_are_those_of_the_classes() -> None:
    assert PATH.read_text("utf-8") == text(), "python -m tests.json_schemas writes it anew"


def commands_with_json(parser: argparse.ArgumentParser, name: str = "") -> set[str]:
    found: set[str] = set()
    for action in parser._actions:
        if "--json" in action.option_strings:
            found.add(name.split()[0])
        if isinstance(action, argparse._SubParsersAction):
            for inner, each in action.choices.items():
                found |= commands_with_json(each, f"{name} {inner}")
    return found


def test_every_command_has_json_and_a_schema() -> None:
    assert commands_with_json(whole_parser()) == set(COMMANDS)


def valid(command: str, result: Any) -> Any:
    schema = {**SCHEMA["definitions"][f"irc {command}"], "definitions": SCHEMA["definitions"]}
    return fastjsonschema.compile(schema)(result)


ODD = ir("x: Float(2)", "y: Float(2) = Relu_(x)", "y")


@pytest.mark.parametrize(
    "argv",
    [
        "compile m.onnx --check",
        "compile m.onnx --check --layers",
        "compile m.onnx -o m.irc --explain",
        "run m.onnx --seed 0 -o y.npz --profile",
        "run seq.onnx --seed 0",
        "opt odd.ir -p cse,fuse",
        "opt odd.ir -p dce -o out.ir",
        "print m.onnx",
        "print odd.ir --format svg",
        "alias odd.ir",
        "alias odd.ir --why x y",
        "operators",
        "operators Conv aten::add_ com.microsoft::Attention",
        "inspect m.onnx",
        "inspect seq.onnx --dim n=2",
        "diff m.onnx seq.onnx",
        "diff m.onnx m.onnx",
        "extract m.onnx --from q --to y -o part.onnx",
        "reduce m.onnx --command 'grep -q Relu' -o small.onnx",
        "bench m.onnx --runs 1 --warm-up 1 --threads 1",
        "batch inspect m.onnx seq.onnx nowhere.onnx -j 1",
    ],
)
def test_results_are_as_documented(argv: str, irc: Command) -> None:
    irc.write("m.onnx", small_model())
    irc.write("odd.ir", ODD)
    irc.write("seq.onnx", model([node("SequenceConstruct", "x x", "s"), node("Neg", "x", "t")], {"x": ["n"]}, ["t"]))
    result = irc(*shlex.split(argv), "--json")
    command = argv.split()[0]
    assert result.status == (1 if "diff m.onnx seq" in argv or command == "batch" else 0), result.err
    found = list(map(json.loads, result.out.splitlines())) if command == "batch" else [json.loads(result.out)]
    assert found and all(valid(command, each) for each in found)
    for each in found if command == "batch" else ():
        assert each["result"] is None or valid("inspect", each["result"])


def test_what_the_schema_does_not_allow() -> None:
    found = {"format": "text", "text": "graph", "unknown": {}}
    for wrong in ({**found, "more": 1}, {"format": "text", "text": "graph"}, {**found, "unknown": {"x": "y"}}):
        with pytest.raises(fastjsonschema.JsonSchemaException):
            valid("print", wrong)
    assert valid("print", found)


WRONG = """
from dataclasses import dataclass
from typing import ClassVar
from irc.ir.builder import Builder
from irc.passes.registry import register

@register
@dataclass(frozen=True)
class Wrong:
    '''Negate instead of rectifying.'''
    name: ClassVar[str] = "wrong"
    def run(self, graph, ctx):
        found = [node for node in graph.nodes if node.kind == "onnx::Relu"]
        for node in found:
            made = Builder.before(node).node("onnx::Neg", node.inputs, [node.output.type])
            node.output.replace_all_uses_with(made.output)
            node.erase()
        return bool(found)
"""


def test_what_bisect_finds(irc: Command, own_registries: None) -> None:
    irc.write("m.onnx", small_model())
    irc.write("wrong.py", WRONG)
    result = irc("bisect", "m.onnx", "--load", "wrong.py", "-p", "wrong", "--json")
    assert result.status == 0, result.err
    assert valid("bisect", json.loads(result.out))["name"] == "wrong"
