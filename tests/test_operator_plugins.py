"""docs/how-to/adding-an-operator.md does what it says, and so does an installed package that offers its example."""

import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.alias import analyze, register_rule
from irc.errors import Error, misfit
from irc.ir import parse_graph
from irc.ops import Effects, Movement, Operator, record, register, schemas
from irc.ops.schema_rules import check_schema
from irc.ops.shape_rules import shape_rule
from irc.runtime.arguments import checked
from irc.runtime.kernels.registry import kernel
from irc.tools.catalog import place
from tests.doc_blocks import blocks
from tests.graphs import ir, ir_graph
from tests.operators import operator_of, records_for_a_while
from tests.processes import python

ROOT = Path(__file__).parent.parent
BLOCKS = blocks(ROOT / "docs" / "how-to" / "adding-an-operator.md")
DEFINITION, USE, OF_TORCH, OF_ONNX = [block.text for block in BLOCKS if block.language == "python"]
(ENTRY_POINTS,) = [block.text for block in BLOCKS if block.language == "toml"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "example_operators.py").write_text(DEFINITION, "utf-8")
    return tmp_path


def test_records_of_torchs_operators_are_as_the_page_shows() -> None:
    made: dict[str, Any] = {}
    exec(OF_TORCH, made)
    found = made["FAMILY"].records
    assert [(each.kind, each.rows, each.out, each.changes) for each in found.values()] == [
        (kind, record(kind).rows, record(kind).out, record(kind).changes)
        for kind in ("aten::as_strided", "aten::as_strided_")
    ]
    assert inspect.getsource(inspect.unwrap(record("aten::as_strided").shape)) in OF_TORCH


def test_records_of_onnx_s_operators_are_as_the_page_shows() -> None:
    made: dict[str, Any] = {}
    exec(OF_ONNX, made)
    (found,), own = made["FAMILY"].records.values(), record("onnx::Flatten")
    assert (found.kind, found.movement, found.value_operands, found.kernel) == (
        *(own.kind, own.movement, own.value_operands),
        own.kernel,
    )
    assert inspect.getsource(own.shape) in OF_ONNX


def install(folder: Path, module: str = "example_operators") -> None:
    """What installing a package leaves behind, its entry point as the page gives it."""
    info = folder / "example_operators-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: example-operators\nVersion: 1.0\n")
    _, line = ENTRY_POINTS.strip().splitlines()
    name, object = re.fullmatch(r'"(.+)" = "(.+)"', line).groups()  # type: ignore[union-attr]
    assert object == "example_operators"
    assert ENTRY_POINTS.startswith('[project.entry-points."irc.operators"]')
    (info / "entry_points.txt").write_text(f"[irc.operators]\n{name} = {module}\n")


def write_model(folder: Path) -> str:
    graph = helper.make_graph(
        [
            helper.make_node("Scale", ["x"], ["s"], domain="com.example", factor=3.0),
            helper.make_node("EverySecond", ["s"], ["y"], domain="com.example"),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [5, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 2])],
    )
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("com.example", 1)]
    onnx.save_model(helper.make_model(graph, opset_imports=imports), folder / "m.onnx")
    np.save(folder / "x.npy", np.arange(10, dtype=np.float32).reshape(5, 2))
    return "m.onnx"


def test_everything_is_imported_from_where_it_is_offered() -> None:
    """Files inside of a layer may move."""
    for module, names in re.findall(r"^from (irc[.\w]*) import (.*)$", DEFINITION + USE, re.MULTILINE):
        offered = importlib.import_module(module).__all__
        assert set(names.split(", ")) <= set(offered), module


def test_a_kernel_asks_before_it_makes_a_large_result(folder: Path) -> None:
    (folder / "large.py").write_text(
        "import numpy as np\n"
        "import irc\n"
        "from irc.ir import parse_graph\n"
        "from irc.ops import Operator, register\n"
        "from irc.runtime import check_size, kernel\n"
        "register(Operator('com.example::Zeros', '(Tensor n) -> Tensor'))\n"
        "@kernel('com.example::Zeros')\n"
        "def zeros(node):\n"
        "    return lambda n: np.zeros(check_size(n, np.dtype(np.float32)), np.float32)\n"
        "graph = parse_graph('graph(%n : Long(2)):\\n  %y : Tensor = com.example::Zeros(%n)\\n  return (%y)')\n"
        "model = irc.compile(graph)\n"
        "for sizes, limit in (([2, 3], 100), ([200, 300], 100), ([1 << 30, 1 << 30], None)):\n"
        "    try:\n"
        "        print(model.run({'n': np.array(sizes)}, limits=irc.Limits(bytes=limit))['y'].shape)\n"
        "    except irc.Error as error:\n"
        "        print(error.code)\n",
        "utf-8",
    )
    result = python(folder, "large.py")
    assert result.stderr == ""
    assert result.stdout.splitlines() == ["(2, 3)", "IRC442", "IRC422"]


def test_pointwise_operators_fuse_and_run_in_place(folder: Path) -> None:
    install(folder)
    (folder / "pointwise.py").write_text(
        "import sys\n"
        "import numpy as np\n"
        "import irc\n"
        "from irc.ir import parse_module\n"
        "text = '''graph(%x : Float(512, 2000)):\n"
        "  %a : Tensor = onnx::Relu(%x)\n"
        "  %s : Tensor = com.example::Scale[factor=0.5](%a)\n"
        "  %y : Tensor = onnx::Exp(%s)\n"
        "  return (%y)\n"
        "'''\n"
        "x = np.linspace(-9, 9, 1_024_000, dtype=np.float32).reshape(512, 2000)\n"
        "expected = np.exp(np.maximum(x, 0) * np.float32(0.5))\n"
        "for passes in ('default', 'shape-inference'):\n"
        "    irc.compile(parse_module(text), passes).save('model.irc')\n"
        "    np.testing.assert_allclose(irc.load('model.irc').run({'x': x})['y'], expected, 1e-6)\n"
        "    model = irc.load('model.irc', backend='numpy')\n"
        "    for _ in range(2):\n"
        "        y = model.run({'x': x})['y']\n"
        "        c = model.profile({'x': x}).counters\n"
        "    print([node.kind for node in model.graph.nodes], c.in_place, c.planned)\n"
        "    assert np.array_equal(y, expected)\n",
        "utf-8",
    )
    result = python(folder, "pointwise.py")
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        "['prim::FusionGroup'] 1 2",  # the output is in memory of its own
        "['onnx::Relu', 'com.example::Scale', 'onnx::Exp'] 1 2",
    ]


def test_an_installed_package_is_found_by_the_namespace(folder: Path) -> None:
    install(folder)
    result = python(folder, "-m", "irc", "run", write_model(folder), "-i", "x=x.npy", "-o", "y.npz")
    assert result.returncode == 0, result.stderr
    with np.load(folder / "y.npz") as found:
        assert found["y"].tolist() == [[0, 3], [12, 15], [24, 27]]


def test_each_table_asks_for_the_package(folder: Path) -> None:
    install(folder)
    tables = {
        "from irc.ops import schemas as find": "com.example::Scale",
        "from irc.alias.rules import find_rule as find": "com.example::EverySecond",
        "from irc.ops import record\nfind = lambda kind: record(kind).shape": "com.example::Scale",
        "find = lambda k: __import__('irc.runtime.kernels.registry', fromlist='x').find_binder(k, None)": (
            "com.example::Scale"
        ),
    }
    for imports, kind in tables.items():
        found = python(folder, "-c", f"{imports}\nfound = find({kind!r})\nprint(bool(found))")
        assert found.stdout == "True\n", (imports, found.stderr)
    opaque = "from irc.alias.rules import find_rule, opaque\nprint(find_rule('com.example::EverySecond') is opaque)"
    assert python(folder, "-c", opaque).stdout == "False\n"


def test_irc_operators_says_all_about_them(folder: Path) -> None:
    install(folder)
    page = python(folder, "-m", "irc", "operators", "Scale", "com.example::EverySecond")
    assert page.stderr == ""
    numbered = list(enumerate(DEFINITION.splitlines(), 1))
    scale_kernel, every_kernel = (number for number, line in numbered if line.startswith("@kernel"))
    scale_rule, every_rule = (number for number, line in numbered if line.startswith("@shape_rule"))
    assert page.stdout.splitlines() == [
        "com.example::Scale",
        "  schema       com.example::Scale(Tensor x) -> Tensor",
        "  memory       writes nothing; the result is fresh memory",
        "  fuses        pointwise",
        f"  shape rule   example_operators.py:{scale_rule}",
        "  record       value_operands: none",
        f"  kernel       example_operators.py:{scale_kernel}",
        f"  verified by  {place(check_schema)}",
        "  as ONNX      yes",
        "",
        "com.example::EverySecond",
        "  schema       com.example::EverySecond(Tensor(a) x) -> Tensor(a)",
        "  memory       writes nothing; the result may share with x",
        "  fuses        no",
        f"  shape rule   example_operators.py:{every_rule}",
        f"  kernel       example_operators.py:{every_kernel}",
        f"  verified by  {place(check_schema)}",
        "  as ONNX      yes",
    ]
    listed = python(folder, "-m", "irc", "operators").stdout.splitlines()
    assert ["com.example::Scale", "schemas=1", "runs", "shape", "fuses", "-", "onnx"] in map(str.split, listed)


def test_without_the_package_the_operators_are_unknown(folder: Path) -> None:
    path = write_model(folder)
    for options, code, words in (
        (["compile", path, "--refuse-unknown"], "IRC123", "EverySecond (domain com.example"),
        (["run", path, "--seed", "0"], "IRC323", "EverySecond: domain com.example"),
    ):
        result = python(folder, "-m", "irc", *options)
        assert result.returncode == 1
        assert code in result.stderr and words in result.stderr
    assert python(folder, "-m", "irc", "compile", path).returncode == 0


def test_a_package_that_cannot_be_imported(folder: Path) -> None:
    install(folder, "example_that_is_not_there")
    result = python(folder, "-m", "irc", "compile", write_model(folder))
    assert result.returncode == 1
    assert "IRC304: m.onnx, example_that_is_not_there: the plug-in of the operators com.example::" in result.stderr
    assert "Traceback" not in result.stderr


BROKEN = """from irc.ops import Operator, register
register(Operator("com.broken::Half", "(Tensor x) -> Tensor"))
{}
"""


@pytest.mark.parametrize(
    ("ends", "says"),
    [
        ("{}['a']", "KeyError: 'a'"),
        pytest.param("raise SystemExit(0)", "SystemExit: 0", marks=pytest.mark.slow),
        pytest.param("x = (", "SyntaxError: .*never closed", marks=pytest.mark.slow),
    ],
)
def test_a_broken_package_keeps_nobody_from_the_other_operators(ends: str, says: str, folder: Path) -> None:
    install(folder)
    (folder / "broken.py").write_text(BROKEN.format(ends), "utf-8")
    with (folder / "example_operators-1.0.dist-info" / "entry_points.txt").open("a") as points:
        points.write("com.broken = broken\n[irc.passes]\ntest-broken = broken:Pass\n")
    warning = rf"irc: IRC304: broken: the plug-in of the operators com\.broken:: cannot be loaded: {says}.*"
    for names, found in ([], "com.example::Scale  "), (["Scale"], "com.example::Scale\n"), (["--json"], '"onnx::Relu"'):
        listed = python(folder, "-m", "irc", "operators", *names)
        assert listed.returncode == 0 and found in listed.stdout and "com.broken" not in listed.stdout
        assert re.fullmatch(rf"{warning}; its operators are left out\n", listed.stderr), listed.stderr
    unknown = python(folder, "-m", "irc", "operators", "com.broken::Half")
    assert unknown.returncode == 1 and "IRC217: irc knows no operator 'com.broken::Half'" in unknown.stderr
    passes = python(folder, "-m", "irc", "opt", "--list-passes")
    assert passes.returncode == 0 and "\ncse  " in passes.stdout and "test-broken" not in passes.stdout
    assert re.fullmatch(rf"irc: IRC304: broken:Pass: the plug-in pass 'test-broken' .*: {says}.*\n", passes.stderr)


def test_what_a_package_raises_later_names_its_file(folder: Path) -> None:
    (folder / "fails.py").write_text(
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "@dataclass(frozen=True)\n"
        "class Fails:\n"
        "    name: ClassVar[str] = 'test-fails'\n"
        "    def run(self, graph, ctx):\n"
        "        return ctx.alias_db(3)\n",
        "utf-8",
    )
    install(folder)
    points = folder / "example_operators-1.0.dist-info" / "entry_points.txt"
    points.write_text("[irc.passes]\ntest-fails = fails:Fails\n")
    (folder / "g.ir").write_text("graph(%x : Tensor):\n  return (%x)\n")
    result = python(folder, "-m", "irc", "opt", "g.ir", "-p", "test-fails")
    assert result.returncode == 1
    says = r"irc: IRC305: \S*fails\.py:7: TypeError: a Graph is analysed, not a int \(raised by pass test-fails\)\n"
    assert re.fullmatch(says, result.stderr), result.stderr


def nothing(*_: Any) -> Any:
    """Whatever is asked for: this is never called."""


@pytest.mark.parametrize("decorator", [kernel, shape_rule], ids=["kernel", "shape_rule"])
def test_decorators_of_operators_refuse_what_is_no_function_and_no_kind(decorator: Any) -> None:
    with pytest.raises(Error, match=r"IRC304.*must be a function, not 3"):
        decorator("com.example::Refused")(3)
    with pytest.raises(Error, match=r"IRC304.*such as 'com.example::Scale', not for <function nothing"):
        decorator(nothing)  # the brackets are forgotten
    with pytest.raises(Error, match=r"IRC304.*not for 'com.example::'"):
        decorator("com.example::")


def test_kernels_need_the_namespace_of_their_kind() -> None:
    with pytest.raises(Error, match=r"IRC304.*not for 'Scale'"):
        kernel("Scale")


@pytest.mark.parametrize("since", ["a", 0, -5, 1.0, True, None])
def test_kernels_are_for_versions_that_there_are(since: Any) -> None:
    with pytest.raises(Error, match=rf"IRC304: com\.example::Refused: .*a positive integer on, not {since!r}"):
        kernel("com.example::Refused", since=since)


@pytest.mark.parametrize("row", [None, 1, b"com.example::Refused(Tensor x) -> Tensor"])
def test_rows_are_text(row: Any) -> None:
    with pytest.raises(Error, match="IRC203: schema: a row is text such as"):
        register(Operator("com.example::Refused", (row,)))


@pytest.mark.parametrize("effects", ["x", None, 1])
def test_effects_are_such_as_there_are(effects: Any) -> None:
    with pytest.raises(Error, match=rf"IRC203: schema: effects are such as .*, not {effects!r}"):
        register(operator_of("com.example::Refused(Tensor x) -> Tensor", effects=effects))
    assert not schemas("com.example::Refused")


def test_alias_rules_are_checked_when_they_are_registered() -> None:
    with pytest.raises(Error, match=r"IRC304.*must be a function, not 42"):
        register_rule("com.example::Refused", 42)  # type: ignore[arg-type]
    with pytest.raises(Error, match=r"IRC304.*not for 'Refused'"):
        register_rule("Refused", None)


def test_a_row_takes_the_place_of_one_for_the_same_overload() -> None:
    graph = ir_graph("x: Float(3)", "a: Float(3) = Neg(x); u = com.example.Corrected(a)", "a")
    register(
        operator_of(
            "com.example::Corrected(Tensor x) -> Tensor", "com.example::Corrected.two(Tensor x, Tensor y) -> Tensor"
        )
    )
    assert not analyze(graph).has_writers(graph.value("a"))
    for _ in range(2):
        register(operator_of("com.example::Corrected(Tensor(a!) x) -> Tensor(a!)"))
        assert analyze(graph).has_writers(graph.value("a"))
        assert [str(s.returns[0]) for s in schemas("com.example::Corrected")] == ["Tensor", "Tensor(a!)"]


def test_of_rows_for_one_overload_the_last_counts() -> None:
    register(operator_of("com.example::Twice(Tensor x) -> Tensor", "com.example::Twice(Tensor(a) x) -> Tensor(a)"))
    assert list(map(str, schemas("com.example::Twice"))) == ["com.example::Twice(Tensor(a) x) -> Tensor(a)"]


def test_rows_of_irc_stay() -> None:
    with pytest.raises(Error, match=r"IRC203.*irc has another row for aten::relu_: .*name of its own"):
        register(operator_of("aten::relu_(Tensor self) -> Tensor"))
    own = schemas("aten::relu_")
    register(operator_of(*map(str, own)))
    assert schemas("aten::relu_") == own


def test_two_shape_rules_for_a_kind_are_refused() -> None:
    with pytest.raises(Error, match=rf"IRC304.*irc\.ops\.shape_rules and {__name__}"):
        shape_rule("Relu")(nothing)


def test_kernels_of_others_come_before_those_of_irc_whenever_these_are_loaded() -> None:
    """In a process of its own: nothing was bound yet."""
    text = """
from irc.runtime.kernels.registry import find_binder, kernel
@kernel("onnx::Gelu", since=20)
def mine(node): return None
assert find_binder("onnx::Gelu", 20) is mine
"""
    subprocess.run([sys.executable, "-c", text], check=True)


@pytest.mark.parametrize(
    "row",
    [
        "com.example::Refused(Tensor(a) x) -> Tensor(a)",
        "com.example::Refused(Tensor(a!) x) -> Tensor",
        "com.example::Refused(Tensor x) -> (Tensor, Tensor)",
        "com.example::Refused(Tensor x, float by) -> Tensor",
        "com.example::Refused(Tensor[] x) -> Tensor",
        "com.example::Refused(Tensor x, ...) -> Tensor",
    ],
)
def test_rows_of_pointwise_operators_say_what_such_do(row: str) -> None:
    with pytest.raises(Error, match=r"IRC203.*a pointwise operator makes one tensor of tensors"):
        register(operator_of(row, pointwise=True))
    with pytest.raises(Error, match=r"IRC203.*a pointwise operator makes one tensor of tensors"):
        register(operator_of(row.replace("com.example::Refused", "onnx::Relu")))


@pytest.mark.parametrize("passes", ["none", "default"])
def test_operands_of_pointwise_operators_may_be_absent(passes: str) -> None:
    register(operator_of("com.example::Scaled(Tensor x, Tensor? by) -> Tensor", pointwise=True))
    scaled = kernel("com.example::Scaled")
    scaled(lambda node: lambda x, by=None, out=None: np.multiply(x, 2 if by is None else by, out=out))
    text = ir("""
        x: Float(3, 2) -> z
        none: NoneType = prim.Constant(); n: Float(3, 2) = Neg(x); y: Float(3, 2) = com.example.Scaled(n, none)
        z: Float(3, 2) = com.example.Scaled(y, x)
    """)
    model = irc.compile(parse_graph(text), passes)
    assert model.run({"x": np.full((3, 2), 3, np.float32)})["z"].tolist() == [[-18, -18]] * 3


def test_pointwise_operators_have_no_effects() -> None:
    with pytest.raises(Error, match=r"IRC203.*does nothing else"):
        register(operator_of("com.example::Refused(Tensor x) -> Tensor", pointwise=True, effects=Effects.RANDOM))


def test_what_a_pointwise_kernel_is_given_as_out_it_returns() -> None:
    (node,) = parse_graph("graph(%x : Float(2)):\n  %y : Float(2) = com.example::Odd(%x)\n  return (%y)\n").nodes
    run = checked(lambda x, out=None: x + 1, node, nothing, takes_out=True)
    x = np.zeros(2, np.float32)
    assert run(x).tolist() == [1, 1]
    with pytest.raises(Error, match=r"IRC401.*not what it is given as out"):
        run(x, out=np.empty(2, np.float32))


def test_what_has_no_signature_to_be_read_is_taken_as_it_is() -> None:
    class Rule:
        __signature__ = "none"

        def __call__(self, types: object) -> list[object]:
            return []

    assert misfit("a rule", Rule(), "types") == ""


def test_fields_of_records_are_registered() -> None:
    with records_for_a_while():
        register(Operator("com.example::Kept", "(Tensor x) -> Tensor", shape=nothing, movement=Movement.PERMUTED))
        register(Operator("com.example::Kept", pointwise=True))
        found = record("com.example::Kept")
        assert (found.shape, found.movement, found.value_operands) == (nothing, Movement.PERMUTED, ())
        with pytest.raises(Error, match=r"IRC304: onnx::Relu: irc's own record says kernel='elementwise'"):
            register(Operator("onnx::Relu", kernel="cast"))
        with pytest.raises(Error, match="IRC304"):
            register(Operator("com.example::Kept", shape=lambda: None))
        assert record("com.example::Kept") is found


def test_the_former_way_to_register_says_what_the_new_one_is() -> None:
    with pytest.raises(ImportError, match=r"irc\.ops\.register"):
        importlib.import_module("irc.ir.ops")
    with pytest.raises(Error, match=r"IRC304: register takes records, such as irc\.ops\.Operator\('com\.example::"):
        register("com.example::Former(Tensor x) -> Tensor")  # type: ignore[arg-type]
