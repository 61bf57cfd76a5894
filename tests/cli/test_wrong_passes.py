"""Passes of others that are wrong: the command fails, names the pass, and leaves no file."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Iterator

import pytest

from irc.ir import Graph
from irc.passes import PassContext, create, registry
from tests.cli.helpers import Command, Result
from tests.cli.refusals import listing

GRAPH = """graph(%x : Float(2, 3), %c : Bool()):
  %f : Function = prim::Constant[name="f"]()
  %w : Float(3) = prim::Constant[value=tensor([1., 2., 3.])]()
  %a : Float(2, 3) = onnx::Add[since_version=14](%x, %w)
  %b : Float(2, 3) = prim::If(%c)
    block0():
      %i : Float(2, 3) = onnx::Sigmoid[since_version=13](%a)
      %k : Float(2, 3) = onnx::Exp[since_version=13](%i)
      -> (%k)
    block1():
      %j : Float(2, 3) = onnx::Neg[since_version=13](%a)
      -> (%j)
  %t : Float(3, 2) = onnx::Transpose[since_version=13, perm=[1, 0]](%b)
  %z : Float(3, 2) = prim::CallFunction(%f, %t)
  %s : Float(3, 2) = onnx::Softmax[since_version=13, axis=1](%z)
  return (%s, %b)

graph f(%p : Float(3, 2)):
  %q : Float(3, 2) = onnx::Tanh[since_version=13](%p)
  %r : Float(3, 2) = onnx::Abs[since_version=13](%q)
  return (%r)
"""

HEAD = """\
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from irc.ir import Tensor, types
from irc.ir.types import DType, TensorType
from irc.passes import register


def find(graph, kind):
    return next((node for node in graph.walk() if node.kind == kind), None)


@register
@dataclass(frozen=True)
class Wrong:
    name: ClassVar[str] = "wrong"

    def run(self, graph, ctx):
"""

BROKEN = {
    "a definition behind its use": "IRC212",
    "a definition behind its use in a nested block": "IRC212",
    "a definition behind its use in a function": "IRC212",
    "a value of another block": "IRC212",
    "a value of another graph": "IRC212",
    "a wrong element type": "IRC214",
    "a wrong shape": "IRC214",
    "a wrong shape of an input": "IRC305",
    "a wrong element type of an output": "IRC305",
    "a wrong shape in a function": "IRC214",
    "an operand left out": "IRC213",
    "an attribute of a wrong type": "IRC215",
    "an attribute out of range": "IRC310",
    "an operator that does not exist": "IRC217",
    "an attribute of no class of the IR": "IRC215",
    "a weight that is not in the table": "IRC215",
    "a weight of other contents": "IRC215",
    "a name that is none": "IRC210",
    "an operand that is none": "IRC210",
    "two values of one name": "IRC211",
    "an output that is gone": "IRC305",
    "an output that is another": "IRC305",
    "an input of another name": "IRC305",
    "an output of the main graph gone while on a function": "IRC305",
    "a function under another name": "IRC210",
    "metadata that are not text": "IRC215",
    "a default for no input": "IRC210",
    "an exception": "IRC305",
    "an exception in a function": "IRC305",
    "an analysis that is not told": "IRC340",
    "no answer": "IRC305",
}
"""What a pass does, and the code of the error. ``BODIES`` has the code of each."""

BODIES = {
    "a definition behind its use": (
        "n = find(graph, 'onnx::Add'); n and n.move_after(find(graph, 'prim::If')); return bool(n)"
    ),
    "a definition behind its use in a nested block": (
        "n = find(graph, 'onnx::Sigmoid'); n and n.move_after(find(graph, 'onnx::Exp')); return bool(n)"
    ),
    "a definition behind its use in a function": (
        "n = find(graph, 'onnx::Tanh'); n and n.move_after(find(graph, 'onnx::Abs')); return bool(n)"
    ),
    "a value of another block": (
        "n = find(graph, 'onnx::Neg'); n and n.set_inputs([graph.value('i')]); return bool(n)"
    ),
    "a value of another graph": (
        "n = find(graph, 'onnx::Neg'); n and n.set_inputs([graph.copy().value('a')]); return bool(n)"
    ),
    "a wrong element type": (
        "n = find(graph, 'onnx::Sigmoid')\n        if n: n.output.type = TensorType(DType.DOUBLE, (2, 3))\n"
        "        return bool(n)"
    ),
    "a wrong shape": (
        "n = find(graph, 'onnx::Softmax')\n        if n: n.output.type = TensorType(DType.FLOAT, (3, 7))\n"
        "        return bool(n)"
    ),
    "a wrong shape of an input": (
        "if graph.is_main: graph.inputs[0].type = TensorType(DType.FLOAT, (2, 5))\n        return graph.is_main"
    ),
    "a wrong element type of an output": (
        "n = graph.is_main and graph.block.return_node\n"
        "        if not n or n.inputs[0].node.kind == 'onnx::Cast': return False\n"
        "        to = ctx.rewriter(graph).op('onnx::Cast', n.inputs[0], before=n, attributes={'to': 11}, version=13,\n"
        "                                    type=TensorType(DType.DOUBLE, (3, 2)))\n"
        "        n.replace_input(0, to); to.name = 's'; return True"
    ),
    "a wrong shape in a function": (
        "n = find(graph, 'onnx::Tanh')\n        if n: n.output.type = TensorType(DType.FLOAT, (3,))\n"
        "        return bool(n)"
    ),
    "an operand left out": "n = find(graph, 'onnx::Add'); n and n.set_inputs(n.inputs[:1]); return bool(n)",
    "an attribute of a wrong type": (
        "n = find(graph, 'onnx::Softmax'); n and n.attributes.update(axis='1'); return bool(n)"
    ),
    "an attribute out of range": (
        "n = find(graph, 'onnx::Softmax'); n and n.attributes.update(axis=5); return bool(n)"
    ),
    "an operator that does not exist": (
        "n = find(graph, 'onnx::Neg')\n        if n: n.kind = 'onnx::Negate'\n        return bool(n)"
    ),
    "an attribute of no class of the IR": (
        "n = find(graph, 'onnx::Transpose'); n and n.attributes.update(perm=[np.int64(1), np.int64(0)]); return bool(n)"
    ),
    "a weight that is not in the table": (
        "n = find(graph, 'onnx::Add')\n"
        "        lost = Tensor(DType.FLOAT, (3,), name='lost', array=np.ones(3, 'f'))\n"
        "        if n: n.inputs[1].node.attributes['value'] = lost\n"
        "        return bool(n)"
    ),
    "a weight of other contents": (
        "n = find(graph, 'onnx::Add')\n"
        "        if n: n.inputs[1].node.attributes['value'] = Tensor(DType.FLOAT, (3,), array=np.ones(4, 'f'))\n"
        "        return bool(n)"
    ),
    "a name that is none": ("n = find(graph, 'onnx::Neg')\n        if n: n.name = None\n        return bool(n)"),
    "an operand that is none": (
        "n = find(graph, 'onnx::Neg')\n        if n: n.inputs = (None,)\n        return bool(n)"
    ),
    "two values of one name": (
        "n = find(graph, 'onnx::Sigmoid')\n        if n: n.output._name = 'a'\n        return bool(n)"
    ),
    "an output that is gone": "graph.is_main and graph.set_outputs(graph.outputs[:1]); return graph.is_main",
    "an output that is another": (
        "graph.is_main and graph.set_outputs([graph.outputs[0], graph.value('a')]); return graph.is_main"
    ),
    "an input of another name": ("if graph.is_main: graph.inputs[0].name = 'renamed'\n        return graph.is_main"),
    "an output of the main graph gone while on a function": (
        "main = ctx.module.main\n        if not graph.is_main: main.set_outputs(main.outputs[:1])\n"
        "        return not graph.is_main"
    ),
    "a function under another name": (
        "graphs = ctx.module.graphs\n        if 'f' in graphs: graphs['g'] = graphs.pop('f')\n        return True"
    ),
    "metadata that are not text": "ctx.module.metadata['tag'] = 3; return True",
    "a default for no input": "ctx.module.defaults['y'] = 3; return True",
    "an exception": "node = find(graph, 'onnx::Softmax')\n        return graph.is_main and {}[node.kind]",
    "an exception in a function": "return not graph.is_main and 1 / 0",
    "an analysis that is not told": (
        "node = find(graph, 'onnx::Softmax'); db = ctx.alias_db(graph)\n"
        "        if node is None: return False\n"
        "        db.location_set(node.output); new = graph.create('onnx::Softmax', node.inputs, [node.output.type])\n"
        "        new.insert_before(node); node.output.replace_all_uses_with(new.output); node.erase()\n"
        "        new.output.name = 's'\n"
        "        return True"
    ),
    "no answer": "pass",
}

VALUES = {
    "another operator": (
        "node = find(graph, 'onnx::Sigmoid')\n        if node: node.kind = 'onnx::Tanh'\n        return bool(node)"
    ),
    "another operator in a function": (
        "node = find(graph, 'onnx::Abs')\n        if node: node.kind = 'onnx::Neg'\n        return bool(node)"
    ),
    "another constant": (
        "node = find(graph, 'onnx::Add')\n"
        "        if node: node.inputs[1].node.attributes['value'] = Tensor.of(np.array([1, 2, 4], 'f'))\n"
        "        return bool(node)"
    ),
    "another operand": (
        "node = find(graph, 'onnx::Transpose')\n        if node: node.set_inputs([graph.value('a')])\n"
        "        ctx.drop_alias_db(graph)\n"
        "        return bool(node)"
    ),
}
"""Wrong passes that keep all rules: only what is computed tells."""


@pytest.fixture(autouse=True)
def registered_for_one_test() -> Iterator[None]:
    yield
    registry._PASSES.pop("wrong", None)


def compiled(irc: Command, body: str, *arguments: str) -> Result:
    """Compile with a wrong pass to a file that exists already; nothing in the folder may change."""
    irc.write("wrong.py", f"{HEAD}        {body}\n")
    irc.write("g.ir", GRAPH)
    for name in ("out.irc", "out.onnx", "out.onnx.data"):
        irc.write(name, b"as it was")
    before = listing(irc)
    result = irc("compile", "g.ir", "--load", "wrong.py", *arguments)
    assert listing(irc) == before
    return result


@pytest.mark.covering(1)
@pytest.mark.parametrize("output", ["out.irc", "out.onnx"])
@pytest.mark.parametrize("passes", ["wrong", "cse,wrong,default", "inline,(wrong,dce)*2,default"])
@pytest.mark.parametrize("what", BROKEN)
def test_what_breaks_a_rule_is_not_written(irc: Command, what: str, passes: str, output: str) -> None:
    if passes.startswith("inline") and "function" in what:
        passes = passes.removeprefix("inline,")
    result = compiled(irc, BODIES[what], "-p", passes, "-o", output)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"irc: {BROKEN[what]}: "), result.err
    assert re.search(r"\bpass wrong\b", result.err), result.err
    assert "Traceback" not in result.err and result.err.count("irc: IRC") == 1


@pytest.mark.parametrize(
    "what", ["a definition behind its use", "a wrong shape", "an exception", "an output that is gone"]
)
def test_nor_with_a_check(irc: Command, what: str) -> None:
    result = compiled(irc, BODIES[what], "-p", "wrong,default", "-o", "out.irc", "--check")
    assert result.status == 1 and result.err.startswith(f"irc: {BROKEN[what]}: ") and "pass wrong" in result.err


@pytest.mark.parametrize("command", ["run --seed 0", "bench --against none --runs 1", "opt", "opt -o out.ir"])
@pytest.mark.parametrize("what", ["a definition behind its use in a nested block", "an exception", "a wrong shape"])
def test_other_commands_fail_likewise(irc: Command, what: str, command: str) -> None:
    irc.write("wrong.py", f"{HEAD}        {BODIES[what]}\n")
    irc.write("g.ir", GRAPH)
    before = listing(irc)
    name, *options = command.split()
    result = irc(name, "g.ir", "--load", "wrong.py", "-p", "wrong,cse", *options)
    assert (result.status, result.out, listing(irc)) == (1, "", before)
    assert result.err.startswith(f"irc: {BROKEN[what]}: ") and "pass wrong" in result.err


@pytest.mark.covering(1)
@pytest.mark.parametrize("output", ["out.irc", "out.onnx"])
@pytest.mark.parametrize("passes", ["wrong", "cse,wrong,default", "inline,(wrong,dce)*2,default"])
@pytest.mark.parametrize("what", VALUES)
def test_what_changes_values_fails_a_check(irc: Command, what: str, passes: str, output: str) -> None:
    if "function" in what:
        passes = passes.removeprefix("inline,")
    result = compiled(irc, VALUES[what], "-p", passes, "-o", output, "--check")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("irc: IRC330: output '"), result.err
    assert re.search(r"the first value that differs is %|no intermediate value", result.err)
    assert "it is right before pass wrong, and wrong after it" in result.err


def test_a_traceback_is_shown_on_request(irc: Command) -> None:
    irc.write("wrong.py", f"{HEAD}        {BODIES['an exception']}\n")
    irc.write("g.ir", GRAPH)
    for command in ("compile", "opt", "run"):
        result = irc(command, "g.ir", "--load", "wrong.py", "-p", "wrong", "--traceback")
        assert result.status == 1 and result.out == ""
        first, _, last = result.err.partition("irc: IRC305: ")
        assert 'File "wrong.py", line ' in first and "KeyError: 'onnx::Softmax'" in first
        assert "wrong.py:" in last and "at %s = onnx::Softmax" in last and "Traceback" not in last
    shown = irc("print", "nowhere.onnx", "--traceback")
    assert shown.status == 1 and shown.err.startswith("Traceback ")


def test_text_of_standard_input_is_read_once(irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Input:
        buffer = io.BytesIO(GRAPH.encode())

    def late(self: object, graph: Graph, ctx: PassContext) -> bool:
        graph.value("a").node.move_after(graph.block.return_node.prev)  # type: ignore[arg-type, union-attr]
        return True

    monkeypatch.setattr(sys, "stdin", Input())
    monkeypatch.setattr(type(create("cse")), "run", late)  # irc's own: compiled again, and so read again, to be named
    result = irc("opt", "-", "-p", "dce,cse")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("irc: IRC212: ") and "after pass cse" in result.err
