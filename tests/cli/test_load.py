"""``--load``: files whose code is run before a command begins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from irc.passes import registry
from tests.cli.helpers import GRAPH, Command, small_model
from tests.cli.refusals import Cases, case_of, refusals
from tests.doc_blocks import file_of
from tests.operators import records_for_a_while

DOCS = Path(__file__).parents[2] / "docs"
SQUARED = """graph(%x : Float(3)):
  %two : Float() = prim::Constant[value=tensor([2.])]()
  %y : Float(3) = onnx::Pow(%x, %two)
  return (%y)
"""


@pytest.fixture(autouse=True)
def registered_for_one_test(own_registries: None) -> Iterator[None]:
    with records_for_a_while():
        yield


def test_the_passes_of_a_file_are_named_in_pipelines(irc: Command) -> None:
    irc.write("square.py", file_of(DOCS / "how-to/writing-a-pass.md", "square.py"))
    irc.write("g.ir", SQUARED)
    without = irc("opt", "g.ir", "-p", "square")
    assert without.status == 1 and "IRC301" in without.err
    result = irc("opt", "g.ir", "--load", "square.py", "-p", "square,dce")
    assert (result.status, result.err) == (0, "") and "onnx::Mul" in result.out
    assert "square           Replace" in irc("opt", "--load", "square.py", "--list-passes").out
    compiled = irc("compile", "g.ir", "--load", "square.py", "-p", "unfused,square,fuse,dce", "--check", "--json")
    assert compiled.status == 0 and '"onnx::Mul": 1' in compiled.out


def test_all_pieces_of_default_are_in_pipelines_of_their_own() -> None:
    assert registry.PIPELINES["default"] == registry.PIPELINES["unfused"] + ",fuse,dce"


def test_a_file_is_run_once_by_whatever_name(irc: Command) -> None:
    irc.write("note.py", "with open('notes', 'a') as file:\n    print(__name__, __file__, file=file)\n")
    (irc.folder / "link.py").symlink_to("note.py")
    irc.write("g.ir", GRAPH)
    assert irc("opt", "g.ir", "--load", "note.py", "--load", "./note.py", "--load", "link.py").status == 0
    assert irc("print", "g.ir", "--load", "note.py").status == 0
    assert (irc.folder / "notes").read_text() == f"{irc.folder.resolve() / 'note.py'} note.py\n"


def test_files_are_run_in_their_order_and_no_others(irc: Command) -> None:
    for name in "abc":
        irc.write(f"{name}.py", f"with open('notes', 'a') as file:\n    file.write('{name}')\n")
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "--load", "b.py", "--load", "a.py").status == 0
    assert (irc.folder / "notes").read_text() == "ba"


def test_the_operators_of_a_file_run(irc: Command) -> None:
    text = file_of(DOCS / "how-to/adding-an-operator.md", "example_operators.py").replace(
        "com.example::", "com.example.loaded::"
    )
    irc.write("operators.py", text)
    nodes = [helper.make_node("EverySecond", ["x"], ["y"], domain="com.example.loaded")]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 2]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y])
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.example.loaded", 1)]
    irc.write("m.onnx", helper.make_model(graph, opset_imports=imports))
    irc.write("x.npy", np.arange(10, dtype=np.float32).reshape(5, 2))
    assert "IRC123" in irc("run", "m.onnx", "-i", "x=x.npy", "--refuse-unknown").err
    assert "IRC323" in irc("run", "m.onnx", "-i", "x=x.npy").err
    result = irc("run", "m.onnx", "-i", "x=x.npy", "--load", "operators.py", "-o", "y.npz")
    assert (result.status, result.err) == (0, "")
    assert np.load("y.npz")["y"].tolist() == [[0, 1], [4, 5], [8, 9]]
    page = irc("operators", "com.example.loaded::Scale").out
    line = text.splitlines().index('@kernel("com.example.loaded::Scale")') + 1
    assert f"  kernel       operators.py:{line}\n" in page


def test_nothing_in_a_model_has_a_file_run(irc: Command) -> None:
    irc.write("ran.py", "open('ran', 'w')\n")
    model = small_model()
    helper.set_model_props(model, {"irc.pipeline": "ran", "irc.load": "ran.py", "--load": "ran.py"})
    model.graph.node[0].name, model.doc_string = "--load ran.py", "--load=ran.py"
    irc.write("m.onnx", model)
    assert irc("compile", "m.onnx", "-o", "m.irc").status == 0
    assert irc("run", "m.irc", "--seed", "0").status == 0
    assert irc("compile", "m.onnx", "-o", "out.onnx").status == 0
    assert onnx.load("out.onnx").graph and not (irc.folder / "ran").exists()


# -- what fails ------------------------------------------------------------------

CASES: Cases = {}
case = case_of(CASES)

FAILING_PASS = """\
from dataclasses import dataclass
from typing import ClassVar

from irc.passes import register

@register
@dataclass(frozen=True)
class Failing:
    name: ClassVar[str] = "test-failing"

    def run(self, graph, ctx):
        {}
"""


def loading(irc: Command, text: str | bytes, *passes: str) -> list[str]:
    return ["opt", irc.write("g.ir", GRAPH), "--load", irc.write("bad.py", text), *passes]


@case(r"IRC304: bad\.py:2: SyntaxError: '\(' was never closed")
def a_syntax_error(irc: Command):
    return loading(irc, "import json\nx = (1\n")


@case(r"IRC304: bad\.py:2: KeyError: 'a'")
def an_exception_in_a_function_of_the_file(irc: Command):
    return loading(irc, "def f():\n    return {}['a']\n\nf()\n")


@case(r"IRC304: bad\.py:3: json\.decoder\.JSONDecodeError: Expecting value")
def an_exception_in_what_the_file_calls(irc: Command):
    return loading(irc, "import json\n\njson.loads('')\n")


@case(r"IRC304: bad\.py:2: ModuleNotFoundError: No module named 'not_to_be_found'")
def an_import_of_nothing(irc: Command):
    return loading(irc, "import json\nimport not_to_be_found\n")


@case(r"IRC304: bad\.py:1: ModuleNotFoundError: No module named 'beside'")
def an_import_of_what_lies_beside_it(irc: Command):
    irc.write("beside.py", "")
    return loading(irc, "import beside\n")


@case(r"IRC304: bad\.py:2: SyntaxError: .*\(other, line 1\)")
def a_syntax_error_in_another_file(irc: Command):
    return loading(irc, "text = '('\ncompile(text, 'other', 'exec')\n")


@case(r"IRC304: bad\.py:3: this cannot be registered as a pass: 3 is not a class")
def an_error_of_irc(irc: Command):
    return loading(irc, "from irc.passes import register\n\nregister(3)\n")


@case(r"IRC203: bad\.py:2, schema: expected")
def an_error_of_irc_that_has_a_place(irc: Command):
    return loading(irc, "from irc.ops import Operator, register\nregister(Operator('com.example::Y', '(Tensor x'))\n")


@case(r"IRC304: bad\.py:2: SystemExit: 0")
def a_file_that_ends_the_program(irc: Command):
    return loading(irc, "import sys\nsys.exit(0)\n")


@case(r"IRC304: bad\.py:2: OSError: the disk is full")
def an_error_that_looks_like_one_of_writing_results(irc: Command):
    return loading(irc, "\nraise OSError('the disk is full')\n")


@case(r"IRC304: bad\.py:?\d*: (SyntaxError|ValueError): source code (string )?cannot contain null bytes")
def a_file_of_bytes(irc: Command):
    return loading(irc, b"x = 1\n\0")


@case(r"IRC304: bad\.py:?\d*: SyntaxError: .*can't decode byte 0xff")
def a_file_in_another_encoding(irc: Command):
    return loading(irc, b"x = '\xff'\n")


@case(r"IRC502: nowhere\.py: cannot read the file: No such file")
def a_file_that_is_not_there(irc: Command):
    return ["opt", irc.write("g.ir", GRAPH), "--load", "nowhere.py"]


@case(r"IRC502: /dev/null: .*not a regular file")
def a_file_that_is_none(irc: Command):
    return ["opt", irc.write("g.ir", GRAPH), "--load", "/dev/null"]


@case(r"IRC502: .*null")
def a_name_that_no_file_can_have(irc: Command):
    return ["opt", irc.write("g.ir", GRAPH), "--load", "a\0b.py"]


@case(r"IRC305: bad\.py:12: ZeroDivisionError: ")
def a_pass_that_fails(irc: Command):
    return loading(irc, FAILING_PASS.format("1 / 0"), "-p", "cse,test-failing")


@case(r"IRC305: bad\.py:12: ZeroDivisionError: ")
def a_pass_that_fails_when_a_model_is_compiled(irc: Command):
    return ["compile", *loading(irc, FAILING_PASS.format("1 / 0"), "-p", "cse,test-failing", "-o", "out.irc")[1:]]


@case(r"IRC305: bad\.py:12: AttributeError: ")
def a_pass_that_calls_what_is_not_there(irc: Command):
    return loading(irc, FAILING_PASS.format("ctx.alias_db(graph).no_such_query()"), "-p", "test-failing")


@case(r"IRC343: ")
def a_pass_that_asks_what_cannot_be_asked(irc: Command):
    text = FAILING_PASS.format("x = Graph().add_input(TENSOR); ctx.alias_db(graph).may_alias(x, x)")
    return loading(irc, f"from irc.ir import Graph\nfrom irc.ir.types import TENSOR\n{text}", "-p", "test-failing")


@case(r"IRC305: .*(bad\.py|test-failing)")
def a_pass_that_does_not_say_whether_it_changed_anything(irc: Command):
    return loading(irc, FAILING_PASS.format("pass"), "-p", "test-failing")


@case(r"IRC305: .*pass test-fuse: policy must return a Policy, not None")
def a_fuser_without_a_policy(irc: Command):
    fuser = """\
from irc.fuser import Fuse
from irc.passes import register

@register
class Mine(Fuse):
    name = "test-fuse"

    def policy(self, graph):
        return None
"""
    return loading(irc, fuser, "-p", "test-fuse")


@case(r"IRC304: bad\.py:6, Failing: .* run \(bad\.py:11\) must take \(self, graph, ctx\), not \(self, graph\)")
def a_pass_that_cannot_be_run(irc: Command):
    return loading(irc, FAILING_PASS.replace(", ctx)", ")").format("return False"), "-p", "test-failing")


@case(r"IRC305: bad\.py:12: TypeError: .*<lambda>\(\) missing 1 required positional argument: 'x'")
def a_pass_that_calls_another_function_wrong(irc: Command):
    return loading(irc, FAILING_PASS.format("return (lambda x: x)()"), "-p", "test-failing")


POLICY = """\
from irc.fuser import Fuse, Policy
from irc.passes import register

class Mine(Policy):
    def {}:
        return None

@register
class FuseMine(Fuse):
    name = "test-fuse"

    def policy(self, graph):
        return Mine(graph)
"""


@case(r"IRC305: .*pass test-fuse: Mine\.refusal \(bad\.py:5\) must take \(producer, cluster\), not \(producer\)")
def a_policy_that_cannot_be_asked(irc: Command):
    return loading(irc, POLICY.format("refusal(self, producer)"), "-p", "test-fuse")


@case(r"IRC305: .*pass test-fuse: Mine\.fuses \(bad\.py:5\) must take \(node\), not \(\)")
def a_policy_that_nodes_are_not_shown_to(irc: Command):
    return loading(irc, POLICY.format("fuses(self)"), "-p", "test-fuse")


REGISTERING = """\
from irc.alias import register_rule
from irc.ops import Operator, register
from irc.passes import shape_rule
from irc.runtime import kernel

register(Operator("com.example.wrong::{0}", "(Tensor x) -> Tensor"))
{1}
"""


def registering(irc: Command, name: str, text: str) -> list[str]:
    """A model of one operator, for which a file registers what ``text`` says."""
    irc.write("bad.py", REGISTERING.format(name, text.replace("KIND", f'"com.example.wrong::{name}"')))
    graph = f"graph(%x : Float(3)):\n  %y : Tensor = com.example.wrong::{name}(%x)\n  return (%y)\n"
    return ["compile", irc.write("g.ir", graph), "--load", "bad.py", "-o", "out.irc"]


@case(r"IRC304: bad\.py:7, com\.example\.wrong::A: a shape rule \(bad\.py:7\) must take \(types\), not \(\)")
def a_shape_rule_that_is_shown_nothing(irc: Command):
    return registering(irc, "A", "shape_rule(KIND)(lambda: None)")


@case(r"IRC304: .*a kernel's binder \(bad\.py:7\) must take \(node\), not \(node, x\)")
def a_kernel_that_is_not_bound_first(irc: Command):
    return registering(irc, "B", "kernel(KIND)(lambda node, x: x)")


@case(r"IRC304: .*::C '%y': the kernel that .*<lambda> makes \(bad\.py:7\) must take \(x\), not \(x, y\)")
def a_kernel_of_other_inputs(irc: Command):
    return registering(irc, "C", "kernel(KIND)(lambda node: lambda x, y: x)")


@case(r"IRC304: .*::D '%y': the kernel that .*<lambda> makes must be a function, not None")
def a_binder_without_a_kernel(irc: Command):
    return registering(irc, "D", "kernel(KIND)(lambda node: None)")


@case(r"IRC304: .*an alias rule \(bad\.py:7\) must take \(rec, node\), not \(rec\)")
def an_alias_rule_that_is_not_shown_the_node(irc: Command):
    return registering(irc, "E", "register_rule(KIND, lambda rec: None)")


@case(r"IRC305: com\.example\.wrong::F: its alias rule must yield the blocks that run, not 3")
def an_alias_rule_that_yields_no_blocks(irc: Command):
    return registering(irc, "F", "register_rule(KIND, lambda rec, node: iter([3]))\nkernel(KIND)(lambda node: abs)")


test_refusals = refusals(CASES)


def test_a_file_that_failed_is_run_again(irc: Command) -> None:
    irc.write("g.ir", GRAPH)
    irc.write("grows.py", "1 / 0\n")
    assert irc("opt", "g.ir", "--load", "grows.py").status == 1
    irc.write("grows.py", "open('ran', 'w').close()\n")
    assert irc("opt", "g.ir", "--load", "grows.py").status == 0
    assert (irc.folder / "ran").exists()
