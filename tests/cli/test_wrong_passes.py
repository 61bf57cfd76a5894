"""Passes of others that are wrong: the command fails, names the pass, and leaves no file."""

import io
import re
import sys
from collections.abc import Iterator

import pytest

from irc.ir import Graph
from irc.passes import PassContext, create, registry
from tests.cli.helpers import Command, Result
from tests.cli.refusals import listing
from tests.graphs import ir
from tests.tables import rows

GRAPH = ir("""
    x: Float(2, 3); c: Bool() -> s, b
    f: Function = prim.Constant(name="f"); a: Float(2, 3) = Add(x, [1.0, 2.0, 3.0], since_version=14)
    b: Float(2, 3) = prim.If(c)
    with block(): i: Float(2, 3) = Sigmoid(a, since_version=13); k: Float(2, 3) = Exp(i, since_version=13); yield k
    with block(): j: Float(2, 3) = Neg(a, since_version=13); yield j
    t: Float(3, 2) = Transpose(b, since_version=13, perm=[1, 0]); z: Float(3, 2) = prim.CallFunction(f, t)
    s: Float(3, 2) = Softmax(z, since_version=13, axis=1)

    f | p: Float(3, 2) -> r
    q: Float(3, 2) = Tanh(p, since_version=13); r: Float(3, 2) = Abs(q, since_version=13)
""")

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

WRONG = """
# what is wrong | code | on which node or graph | what the pass does there
a definition behind its use | IRC212 | Add | n.move_after(find(graph, 'prim::If'))
a definition behind its use in a nested block | IRC212 | Sigmoid | n.move_after(find(graph, 'onnx::Exp'))
a definition behind its use in a function | IRC212 | Tanh | n.move_after(find(graph, 'onnx::Abs'))
a value of another block | IRC212 | Neg | n.set_inputs([graph.value('i')])
a value of another graph | IRC212 | Neg | n.set_inputs([graph.copy().value('a')])
a wrong element type | IRC214 | Sigmoid | n.output.type = TensorType(DType.DOUBLE, (2, 3))
a wrong shape | IRC214 | Softmax | n.output.type = TensorType(DType.FLOAT, (3, 7))
a wrong shape of an input | IRC305 | main | graph.inputs[0].type = TensorType(DType.FLOAT, (2, 5))
a wrong element type of an output | IRC305 | main
    | n = graph.block.return_node; if n.inputs[0].node.kind == 'onnx::Cast': return False;
    double = {'attributes': {'to': 11}, 'version': 13, 'type': TensorType(DType.DOUBLE, (3, 2))};
    to = ctx.rewriter(graph).op('onnx::Cast', n.inputs[0], before=n, **double); n.replace_input(0, to); to.name = 's'
a wrong shape in a function | IRC214 | Tanh | n.output.type = TensorType(DType.FLOAT, (3,))
an operand left out | IRC213 | Add | n.set_inputs(n.inputs[:1])
an attribute of a wrong type | IRC215 | Softmax | n.attributes.update(axis='1')
an attribute out of range | IRC310 | Softmax | n.attributes.update(axis=5)
an operator that does not exist | IRC217 | Neg | n.kind = 'onnx::Negate'
an attribute of no class of the IR | IRC215 | Transpose | n.attributes.update(perm=[np.int64(1), np.int64(0)])
a weight that is not in the table | IRC215 | Add
    | n.inputs[1].node.attributes['value'] = Tensor(DType.FLOAT, (3,), name='lost', array=np.ones(3, 'f'))
a weight of other contents | IRC215 | Add
    | n.inputs[1].node.attributes['value'] = Tensor(DType.FLOAT, (3,), array=np.ones(4, 'f'))
a name that is none | IRC210 | Neg | n.name = None
an operand that is none | IRC210 | Neg | n.inputs = (None,)
two values of one name | IRC211 | Sigmoid | n.output._name = 'a'
an output that is gone | IRC305 | main | graph.set_outputs(graph.outputs[:1])
an output that is another | IRC305 | main | graph.set_outputs([graph.outputs[0], graph.value('a')])
an input of another name | IRC305 | main | graph.inputs[0].name = 'renamed'
an output of the main graph gone while on a function | IRC305 | function
    | ctx.module.main.set_outputs(ctx.module.main.outputs[:1])
a function under another name | IRC210 | any
    | graphs = ctx.module.graphs; 'f' in graphs and graphs.update(g=graphs.pop('f'))
metadata that are not text | IRC215 | any | ctx.module.metadata['tag'] = 3
a default for no input | IRC210 | any | ctx.module.defaults['y'] = 3
an exception | IRC305 | main | n = find(graph, 'onnx::Softmax'); {}[n.kind]
an exception in a function | IRC305 | function | 1 / 0
an analysis that is not told | IRC340 | Softmax
    | ctx.alias_db(graph).location_set(n.output); new = graph.create('onnx::Softmax', n.inputs, [n.output.type]);
    new.insert_before(n); n.output.replace_all_uses_with(new.output); n.erase(); new.output.name = 's'
no answer | IRC305 | any | return
another operator | IRC330 | Sigmoid | n.kind = 'onnx::Tanh'
another operator in a function | IRC330 | Abs | n.kind = 'onnx::Neg'
another constant | IRC330 | Add | n.inputs[1].node.attributes['value'] = Tensor.of(np.array([1, 2, 4], 'f'))
another operand | IRC330 | Transpose | n.set_inputs([graph.value('a')]); ctx.drop_alias_db(graph)
"""
"""Those of IRC330 keep all rules: only what is computed tells."""


def source(place: str, statements: str) -> str:
    """A file with a pass that does this to the first such operator, or the main graph, functions or any graph."""
    begins = {"any": "pass", "main": "if not graph.is_main: return False", "function": "if graph.is_main: return False"}
    begin = begins.get(place, f"n = find(graph, 'onnx::{place}'); if n is None: return False")
    return HEAD + "".join(f"        {line}\n" for line in f"{begin}; {statements}; return True".split("; "))


SOURCES = {what: source(*body) for what, _, *body in rows(WRONG)}
BROKEN = {what: code for what, code, *_ in rows(WRONG) if code != "IRC330"}
VALUES = SOURCES.keys() - BROKEN.keys()


@pytest.fixture(autouse=True)
def registered_for_one_test() -> Iterator[None]:
    yield
    registry._PASSES.pop("wrong", None)


def compiled(irc: Command, what: str, *arguments: str) -> Result:
    """Compile with a wrong pass to a file that exists already; nothing in the folder may change."""
    irc.write("wrong.py", SOURCES[what])
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
    result = compiled(irc, what, "-p", passes, "-o", output)
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith(f"irc: {BROKEN[what]}: "), result.err
    assert re.search(r"\bpass wrong\b", result.err), result.err
    assert "Traceback" not in result.err and result.err.count("irc: IRC") == 1


@pytest.mark.parametrize(
    "what", ["a definition behind its use", "a wrong shape", "an exception", "an output that is gone"]
)
def test_nor_with_a_check(irc: Command, what: str) -> None:
    result = compiled(irc, what, "-p", "wrong,default", "-o", "out.irc", "--check")
    assert result.status == 1 and result.err.startswith(f"irc: {BROKEN[what]}: ") and "pass wrong" in result.err


@pytest.mark.parametrize("command", ["run --seed 0", "bench --against none --runs 1", "opt", "opt -o out.ir"])
@pytest.mark.parametrize("what", ["a definition behind its use in a nested block", "an exception", "a wrong shape"])
def test_other_commands_fail_likewise(irc: Command, what: str, command: str) -> None:
    irc.write("wrong.py", SOURCES[what])
    irc.write("g.ir", GRAPH)
    before = listing(irc)
    name, *options = command.split()
    result = irc(name, "g.ir", "--load", "wrong.py", "-p", "wrong,cse", *options)
    assert (result.status, result.out, listing(irc)) == (1, "", before)
    assert result.err.startswith(f"irc: {BROKEN[what]}: ") and "pass wrong" in result.err


@pytest.mark.covering(1)
@pytest.mark.parametrize("output", ["out.irc", "out.onnx"])
@pytest.mark.parametrize("passes", ["wrong", "cse,wrong,default", "inline,(wrong,dce)*2,default"])
@pytest.mark.parametrize("what", sorted(VALUES))
def test_what_changes_values_fails_a_check(irc: Command, what: str, passes: str, output: str) -> None:
    if "function" in what:
        passes = passes.removeprefix("inline,")
    result = compiled(irc, what, "-p", passes, "-o", output, "--check")
    assert (result.status, result.out) == (1, "")
    assert result.err.startswith("irc: IRC330: output '"), result.err
    assert re.search(r"the first value that differs is %|no intermediate value", result.err)
    assert "it is right before pass wrong, and wrong after it" in result.err


def test_a_traceback_is_shown_on_request(irc: Command) -> None:
    irc.write("wrong.py", SOURCES["an exception"])
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
