"""``--load``: files whose code is run before a command begins."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from irc.passes import registry
from tests.cli.helpers import GRAPH, Command, small_model
from tests.cli.refusals import case_of, commands, contents, refusals
from tests.doc_blocks import file_of
from tests.graphs import ir
from tests.operators import records_for_a_while
from tests.tables import rows

DOCS = Path(__file__).parents[2] / "docs"
SQUARED = ir("""
    x: Float(3) -> y
    y: Float(3) = Pow(x, 2.0)
""")


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

FUSER = """\
from irc.fuser import Fuse
from irc.passes import register

@register
class Mine(Fuse):
    name = "test-fuse"

    def policy(self, graph):
        return None
"""
ASKS = FAILING_PASS.format("x = Graph().add_input(TENSOR); ctx.alias_db(graph).may_alias(x, x)")
ASKS = f"from irc.ir import Graph\nfrom irc.ir.types import TENSOR\n{ASKS}"
Y = "Operator('com.example::Y', '(Tensor x')"
NULL = r"IRC304: bad\.py:?\d*: (SyntaxError|ValueError): source code (string )?cannot contain null bytes"
ARGUMENTS = r"IRC304: bad\.py:6, Failing: .* run \(bad\.py:11\) must take \(self, graph, ctx\), not \(self, graph\)"
MISSING = r"IRC305: bad\.py:12: TypeError: .*<lambda>\(\) missing 1 required positional argument: 'x'"
REFUSAL = r"IRC305: .*pass test-fuse: Mine\.refusal \(bad\.py:5\) must take \(producer, cluster\), not \(producer\)"
LOADED = "opt x.ir --load bad.py"
BY_ZERO = FAILING_PASS.format("1 / 0"), r"IRC305: bad\.py:12: ZeroDivisionError: "

CASES = commands(
    r"""
a file that is not there | opt x.ir --load nowhere.py | IRC502: nowhere\.py: cannot read the file: No such file
a file that is none | opt x.ir --load /dev/null | IRC502: /dev/null: .*not a regular file
a name that no file can have | opt x.ir --load 'a\0b.py' | IRC502: .*null
""".replace(r"\0", "\0")
)
CASES |= contents(
    "bad.py",
    LOADED,
    {
        "a syntax error": ("import json\nx = (1\n", r"IRC304: bad\.py:2: SyntaxError: '\(' was never closed"),
        "an exception in a function": ("def f():\n    return {}['a']\n\nf()\n", r"IRC304: bad\.py:2: KeyError: 'a'"),
        "an exception in what the file calls": (
            "import json\n\njson.loads('')\n",
            r"IRC304: bad\.py:3: json\.decoder\.JSONDecodeError: Expecting value",
        ),
        "an import of nothing": (
            "import json\nimport not_to_be_found\n",
            r"IRC304: bad\.py:2: ModuleNotFoundError: No module named 'not_to_be_found'",
        ),
        "a syntax error in another file": (
            "text = '('\ncompile(text, 'other', 'exec')\n",
            r"IRC304: bad\.py:2: SyntaxError: .*\(other, line 1\)",
        ),
        "an error of irc": (
            "from irc.passes import register\n\nregister(3)\n",
            r"IRC304: bad\.py:3: this cannot be registered as a pass: 3 is not a class",
        ),
        "an error of irc that has a place": (
            f"from irc.ops import Operator, register\nregister({Y})\n",
            r"IRC203: bad\.py:2, schema: expected",
        ),
        "a file that ends the program": ("import sys\nsys.exit(0)\n", r"IRC304: bad\.py:2: SystemExit: 0"),
        "an error that looks like one of writing results": (
            "\nraise OSError('the disk is full')\n",
            r"IRC304: bad\.py:2: OSError: the disk is full",
        ),
        "a file of bytes": (b"x = 1\n\0", NULL),
        "another encoding": (b"x = '\xff'\n", r"IRC304: bad\.py:?\d*: SyntaxError: .*can't decode byte 0xff"),
        "a pass that fails": (*BY_ZERO, f"{LOADED} -p cse,test-failing"),
        "a pass that fails when a model is compiled": (
            *BY_ZERO,
            "compile x.ir --load bad.py -p cse,test-failing -o out.irc",
        ),
        "a fuser without a policy": (
            FUSER,
            r"IRC305: .*pass test-fuse: policy must return a Policy, not None",
            f"{LOADED} -p test-fuse",
        ),
        "a policy that cannot be asked": (POLICY.format("refusal(self, producer)"), REFUSAL, f"{LOADED} -p test-fuse"),
        "a policy that nodes are not shown to": (
            POLICY.format("fuses(self)"),
            r"IRC305: .*pass test-fuse: Mine\.fuses \(bad\.py:5\) must take \(node\), not \(\)",
            f"{LOADED} -p test-fuse",
        ),
    },
)
CASES |= contents(
    "bad.py",
    f"{LOADED} -p test-failing",
    {
        "a pass that calls what is not there": (
            FAILING_PASS.format("ctx.alias_db(graph).no_such_query()"),
            r"IRC305: bad\.py:12: AttributeError: ",
        ),
        "a pass that asks what cannot be asked": (ASKS, "IRC343: "),
        "a pass that does not say whether it changed anything": (
            FAILING_PASS.format("pass"),
            r"IRC305: .*(bad\.py|test-failing)",
        ),
        "a pass that cannot be run": (FAILING_PASS.replace(", ctx)", ")").format("return False"), ARGUMENTS),
        "a pass that calls another function wrong": (FAILING_PASS.format("return (lambda x: x)()"), MISSING),
    },
)
case = case_of(CASES)


@case(r"IRC304: bad\.py:1: ModuleNotFoundError: No module named 'beside'")
def an_import_of_what_lies_beside_it(irc: Command):
    irc.write("beside.py", "")
    return ["opt", irc.write("g.ir", GRAPH), "--load", irc.write("bad.py", "import beside\n")]


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


REGISTERED = rows(r"""
A: a shape rule that is shown nothing | shape_rule(KIND)(lambda: None)
    | IRC304: bad\.py:7, com\.example\.wrong::A: a shape rule \(bad\.py:7\) must take \(types\), not \(\)
B: a kernel that is not bound first | kernel(KIND)(lambda node, x: x)
    | IRC304: .*a kernel's binder \(bad\.py:7\) must take \(node\), not \(node, x\)
C: a kernel of other inputs | kernel(KIND)(lambda node: lambda x, y: x)
    | IRC304: .*::C '%y': the kernel that .*<lambda> makes \(bad\.py:7\) must take \(x\), not \(x, y\)
D: a binder without a kernel | kernel(KIND)(lambda node: None)
    | IRC304: .*::D '%y': the kernel that .*<lambda> makes must be a function, not None
E: an alias rule that is not shown the node | register_rule(KIND, lambda rec: None)
    | IRC304: .*an alias rule \(bad\.py:7\) must take \(rec, node\), not \(rec\)
F: a rule that yields no blocks | register_rule(KIND, lambda rec, node: iter([3])); kernel(KIND)(lambda node: abs)
    | IRC305: com\.example\.wrong::F: its alias rule must yield the blocks that run, not 3
""")
CASES |= {name: (says, partial(registering, name=name[0], text=text)) for name, text, says in REGISTERED}

test_refusals = refusals(CASES)


def test_a_file_that_failed_is_run_again(irc: Command) -> None:
    irc.write("g.ir", GRAPH)
    irc.write("grows.py", "1 / 0\n")
    assert irc("opt", "g.ir", "--load", "grows.py").status == 1
    irc.write("grows.py", "open('ran', 'w').close()\n")
    assert irc("opt", "g.ir", "--load", "grows.py").status == 0
    assert (irc.folder / "ran").exists()
