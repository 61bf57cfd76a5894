"""What the commands do with good input."""

import json
import os
import re
import zipfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import ml_dtypes
import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
from onnx import TensorProto, helper

from irc.ir import parse_module
from irc.passes import instruments, registry
from irc.runtime.execution import Counters
from irc.runtime.model import load
from irc.runtime.profile import NodeProfile, Profile
from irc.runtime.report import FusionGroup, Memory, Report, Totals
from irc.support.remarks import PassRun, Remark, move_before
from irc.tools.report_text import MOST_GROUPS
from tests.cli.helpers import Command, model, node, small_model, small_result
from tests.elsewhere import run_onnxruntime
from tests.graphs import ir, typed_ir

GRAPH = typed_ir("x: Float(2, 3)", "a = Unsqueeze(x, [0]); b = Relu(a); c = Relu(a); y = Add(b, c)", "y")


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)


def test_compile_prints_a_table_on_stderr_alone(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc("compile", "m.onnx", "--verbose")
    assert result.status == 0
    assert result.out == ""
    assert "\x1b" not in result.err, "no colour where there is no terminal"
    for text in (
        r"model +m\.onnx",
        r"MatMul +1 +1",
        r"in all +3 +3",
        r"fuse +[\d.]+",
        "1 group with 3 operators",
        "weights",
    ):
        assert re.search(text, result.err), f"{text} is not in\n{result.err}"
    assert os.listdir() == ["m.onnx"]


def test_compile_writes_onnx(irc: Command, x: np.ndarray) -> None:
    irc.write("m.onnx", small_model())
    result = irc("compile", "m.onnx", "-o", "out.onnx", "--external-data", "8")
    assert result.status == 0, result
    assert sorted(os.listdir()) == ["m.onnx", "out.onnx", "out.onnx.data"]
    assert "written to out.onnx" in result.err
    written = onnx.load("out.onnx")
    onnx.checker.check_model("out.onnx", full_check=True)
    assert {p.key for p in written.metadata_props} >= {"irc.version", "irc.pipeline"}
    (found,) = run_onnxruntime("out.onnx", {"x": x})
    np.testing.assert_allclose(found, small_result(x), rtol=1e-5)


def test_compile_does_not_replace_the_data_of_its_model(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    for _ in range(2):  # what was written before may be
        assert irc("compile", "m.onnx", "-o", "out.onnx", "--external-data", "8").status == 0
    os.rename("out.onnx", "in.onnx")
    before = Path("out.onnx.data").read_bytes()
    result = irc("compile", "in.onnx", "-o", "out.onnx", "--external-data", "1")
    assert result.status == 1
    assert "IRC503" in result.err and "give the output another name" in result.err
    assert sorted(os.listdir()) == ["in.onnx", "m.onnx", "out.onnx.data"]
    assert Path("out.onnx.data").read_bytes() == before


@pytest.mark.parametrize(
    "argv",
    [
        ["compile", "m.onnx", "-o", "w.irc"],
        ["run", "m.onnx", "--seed", "0", "-o", "w.npz"],
        ["run", "m.onnx", "--seed", "0", "--trace", "w.json"],
        ["run", "m.onnx", "--seed", "0", "-o", "y.npz", "--trace", "w.json"],
        ["opt", "m.onnx", "-o", "w.txt"],
    ],
)
def test_no_output_replaces_the_data_of_its_model(argv: list[str], irc: Command) -> None:
    data = argv[-1]
    model = small_model()
    onnx.save(model, "m.onnx", save_as_external_data=True, location=data, size_threshold=0)
    before = Path(data).read_bytes()
    result = irc(*argv)
    assert result.status == 1 and f"IRC503: {data}: the model is read from this file" in result.err
    assert sorted(os.listdir()) == sorted(["m.onnx", data]) and Path(data).read_bytes() == before


@pytest.mark.parametrize("argv", [["-o", "in.npz"], ["--trace", "in.json"]])
def test_no_output_replaces_an_input(argv: list[str], irc: Command, x: np.ndarray) -> None:
    irc.write("m.onnx", small_model())
    irc.write("x.npy", x)
    os.rename("x.npy", argv[1])  # what a file holds is not told by its name
    before = Path(argv[1]).read_bytes()
    result = irc("run", "m.onnx", "-i", f"x={argv[1]}", *argv)
    assert result.status == 1 and f"IRC503: {argv[1]}: an input is read from this file: give" in result.err
    assert sorted(os.listdir()) == sorted(["m.onnx", argv[1]]) and Path(argv[1]).read_bytes() == before


def test_other_files_that_are_taken_for_models(irc: Command) -> None:
    with zipfile.ZipFile("m.pt", "w") as archive:
        archive.writestr("data.pkl", "nothing")
    assert "IRC121: m.pt: this is not an ONNX model, but an archive: what torch.jit.save" in irc("compile", "m.pt").err
    irc.write("graph.text", GRAPH)
    assert "IRC121: graph.text: this is not an ONNX model, but IR text" in irc("compile", "graph.text").err


def test_calls_of_functions_that_are_not_there_are_called_so(irc: Command) -> None:
    text = ir("x: Tensor", 'f: Function = prim.Constant(name="h"); y = prim.CallFunction(f, x)', "y")
    irc.write("calls.ir", text)
    assert "prim::CallFunction of functions that the model does not have: 1 node %y" in irc("alias", "calls.ir").err


def test_external_data_is_for_onnx(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc("compile", "m.onnx", "-o", "m.irc", "--external-data", "8")
    assert result.status == 2
    assert os.listdir() == ["m.onnx"]


@pytest.mark.parametrize("columns", [10, 20, 40, 80, 200])
def test_the_table_fits_the_terminal(columns: int, irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    irc.write("m.onnx", small_model())
    lines = irc("compile", "m.onnx", "--verbose").err.splitlines()
    assert max(map(len, lines)) <= max(columns, 40)
    assert any(re.search(r"MatMul +1 +\d", line) for line in lines), lines
    assert any(re.search(r"fuse +\d+\.\d +\d", line) for line in lines), lines


@pytest.mark.parametrize(("backend", "operator"), [("numpy", "MatMul"), ("auto", r"(MatMul|prim::\w*)")])
@pytest.mark.parametrize("columns", [10, 40, 80])
def test_no_terminal_is_too_narrow_for_profiles(
    columns: int, backend: str, operator: str, irc: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    irc.write("m.onnx", small_model())
    lines = irc("run", "m.onnx", "--seed", "0", "--profile", "--backend", backend).err.splitlines()
    assert max(map(len, lines)) <= max(columns, 60)
    assert any(re.search(rf"{operator} +\d+\.\d+ +\d+\.\d% +1 +1 +\d", line) for line in lines), lines


def test_compile_explain(irc: Command) -> None:
    nodes = [node("Relu", "x", "a"), node("Add", "a a", "b"), node("MatMul", "a w", "c"), node("Add", "b c", "y")]
    irc.write("m.onnx", model(nodes, {"x": [2, 2]}, ["y"], {"w": np.eye(2, dtype=np.float32)}))
    err = irc("compile", "m.onnx", "--explain").err
    explained = err[err.index("\nfuse: ") :]
    assert re.search(r"\n  %\w+ = onnx::\w+.*\n    does not join %\w+: it .+", explained), explained


def test_compile_says_all_remarks_or_those_on_one_node_or_pass(irc: Command) -> None:
    nodes = [node("Relu", "x", "a"), node("Softmax", "a", "b"), node("Concat", "b b", "y", axis=0)]
    irc.write("m.onnx", model(nodes, {"x": [3]}, ["y"]))
    err = irc("compile", "m.onnx", "--explain").err
    assert "remedy: give up the caller's arrays: model.run(feeds, donate=['x'])" in err, err
    assert "%y = onnx::Concat" in err and "are in use: " in err
    err = irc("compile", "m.onnx", "--explain", "a").err
    assert "donate=['x']" in err and "%y = onnx::Concat\n" not in err, err
    err = irc("compile", "m.onnx", "--explain", "growable").err
    assert "growable: 1 remark" in err and "donate" not in err, err
    assert "no remarks on nothing-so-called" in irc("compile", "m.onnx", "--explain", "nothing-so-called").err
    told = json.loads(irc("compile", "m.onnx", "--json").out)["remarks"]
    assert {remark["what"] for remark in told} >= {"not in place", "copied", "peak memory"}
    assert next(remark["remedy"]["targets"] for remark in told if remark["where"] == "%a = onnx::Relu") == ["x"]


def test_opt_explains_too(irc: Command) -> None:
    irc.write(
        "g.ir",
        "graph(%x : Float(2)):\n  %y : Float(2) = onnx::Relu(%x)\n  %z : Float(2) = onnx::Exp(%x)\n  return (%z)",
    )
    result = irc("opt", "g.ir", "-p", "dce", "--explain")
    assert result.status == 0 and "Relu" not in result.out
    assert result.err == "alias.built: 1\ndce.erased: 1\nno remarks\n"


def test_compile_json(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc("compile", "m.onnx", "--json")
    report = Report.from_dict(json.loads(result.out))
    assert result.err == ""
    assert report.name == "m.onnx"
    assert report.operators_after == {"onnx::Add": 1, "onnx::MatMul": 1, "onnx::Relu": 1}
    assert {"inline", "cse", "fuse"} <= {timing.name for timing in report.passes}


WRITTEN = """<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
g (float[n, 4] x, bool c, int64 iterations) => (float[n, 4] y, float[n, 4] z) {
    s = Sigmoid (x)
    swish = Mul (x, s)
    b = If (c) <
        then_branch = t () => (float[n, 4] p) { e = Exp (swish) p = Neg (e) },
        else_branch = f () => (float[n, 4] q) { q = Abs (swish) }
    >
    y = Loop (iterations, c, b) <body = l (int64 i, bool go, float[n, 4] v) => (bool on, float[n, 4] w) {
        on = Not (go)
        h = Sigmoid (v)
        w = Mul (v, h)
    }>
    z = local.twice (swish)
}
<domain: "local", opset_import: ["" : 17]> twice (a) => (d) { d = Add (a, a) }
"""


@pytest.mark.parametrize("passes", ["none", "canonicalize,cse,dce", "default", "default,in-place"])
def test_compile_counts_what_it_writes(irc: Command, passes: str) -> None:
    """Not operators of irc's own, groups and calls, but what the file has instead, nested graphs and functions too."""
    irc.write("m.onnx", onnx.parser.parse_model(WRITTEN).SerializeToString())
    result = irc("compile", "m.onnx", "-p", passes, "-o", "out.onnx", "--json")
    report = Report.from_dict(json.loads(result.out))
    written = onnx.load("out.onnx")
    nodes = [*written.graph.node, *(node for function in written.functions for node in function.node)]
    for each in nodes:  # grows
        nodes += [inner for attribute in each.attribute for inner in attribute.g.node]
    counts = Counter(each.op_type for each in nodes if each.op_type != "Constant")
    assert Counter({kind.partition("::")[2]: n for kind, n in report.operators_after.items()}) == counts
    assert counts["Sigmoid"] == 2 and not counts["Swish"]
    assert report.nodes_after == sum(each.op_type != "Constant" for each in written.graph.node)
    assert not report.groups
    kept = Report.from_dict(json.loads(irc("compile", "m.onnx", "-p", passes, "--json").out))
    assert bool(kept.groups) == ("default" in passes)


@pytest.mark.parametrize("option", ["--print-after-all", "--print-after-change", "--timing"])
def test_what_watches_the_passes_writes_to_stderr(option: str, irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc("compile", "m.onnx", option)
    assert (result.status, result.out) == (0, "")
    assert re.search(
        {"--timing": "inline .*fuse"}.get(option, "# after fuse.*prim::FusionGroup"), result.err, re.DOTALL
    )


def test_verification_after_each_pass(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "--verify-each", "--verify-alias").status == 0


def test_passes_are_listed(irc: Command) -> None:
    listed = irc("opt", "--list-passes")
    assert listed.status == 0
    assert re.search(r"^dce +\w.*\.$", listed.out, re.MULTILINE)
    assert re.search(r"^default +inline,", listed.out, re.MULTILINE)
    assert re.search(r"^fuse +\w.*\. \{max-size=64\}$", listed.out, re.MULTILINE)
    assert re.search(r"^fix-sizes +\w.*\. \{sizes=?.*\}$", listed.out, re.MULTILINE)


def test_a_compiled_model_runs_as_its_source_does(irc: Command, x: np.ndarray) -> None:
    irc.write("m.onnx", small_model())
    irc.write("x.npy", x)
    compiled = irc("compile", "m.onnx", "-o", "m.irc", "--check")
    assert compiled.status == 0
    told = r"agrees with ONNX Runtime in 3 runs \(batch=2; batch=3, large and tiny numbers; batch=1\): max error"
    assert re.search(told, " ".join(compiled.err.split()))
    assert re.search(r"written to m.irc", compiled.err)
    for name in ("m.irc", "m.onnx"):
        result = irc("run", name, "--input", "x=x.npy", "-o", "y.npz")
        assert result.status == 0
        assert re.fullmatch(r"y: float32 \[4, 8\] min [\d.e-]+, max [\d.e-]+, mean [\d.e-]+\n", result.out)
        np.testing.assert_allclose(np.load("y.npz")["y"], small_result(x), rtol=1e-5)


def test_check_takes_inputs_and_sizes(irc: Command, x: np.ndarray) -> None:
    irc.write("m.onnx", small_model())
    irc.write("x.npy", x)
    checked = irc("compile", "m.onnx", "--check", "--dim", "batch=7")
    assert "in 2 runs (batch=7; batch=7, large and tiny numbers)" in " ".join(checked.err.split())
    shaped = irc("compile", "m.onnx", "--check", "--shape", "x=5,3")
    assert "in 2 runs (batch=5; batch=5, large and tiny numbers)" in " ".join(shaped.err.split())
    nothing = irc("compile", "m.onnx", "--check", "--dim", "batch=0")
    assert "nothing was compared but types and shapes, as no output has elements" in " ".join(nothing.err.split())
    given = irc("compile", "m.onnx", "--check", "-i", "x=x.npy")
    assert "in one run (batch=4): max error" in " ".join(given.err.split())


def test_run_makes_inputs_up(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    first, same, other = (irc("run", "m.onnx", "--seed", seed) for seed in "007")
    assert first.out == same.out != other.out
    assert first.err == "irc: assumed batch=1 (--dim changes that)\n"
    sized = irc("run", "m.onnx", "--seed", "0", "--dim", "batch=5")
    assert sized.out.startswith("y: float32 [5, 8]")
    assert sized.err == ""


@pytest.mark.parametrize("backend", ["numpy", "auto"])
def test_run_says_where_time_and_memory_go(backend: str, irc: Command) -> None:
    irc.write("m.onnx", small_model())
    call = "run", "m.onnx", "--seed", "0", "--dim", "batch=2", "--backend", backend
    plain = irc(*call)
    result = irc(*call, "--profile", "--trace", "t.json", "--max-steps", "99")
    assert (result.status, result.out) == (0, plain.out)
    is_one_step = "as one step: MatMul, Relu, Add" in " ".join(result.err.split())
    assert not (is_one_step and backend == "numpy")
    for words in ("bytes alive at the peak", "operators", "nodes", "groups", "MatMul", "for following them"):
        assert words in result.err
    assert re.search(r"results +operator +calls +in place +fresh", result.err)
    assert is_one_step or "itself" in result.err
    assert re.search(r"prim::FusionGroup +1 +0 +1 *\n" if is_one_step else r"Relu +1 +1 +0 *\n", result.err)
    calls = [e for e in json.loads((irc.folder / "t.json").read_text())["traceEvents"] if e["ph"] == "X"]
    if is_one_step:
        assert [e["args"].get("fused") for e in calls] == ["onnx::MatMul, onnx::Relu, onnx::Add"]
    else:
        assert "MatMul" in {e["name"] for e in calls}
    (irc.folder / "t.json").unlink()
    alone = irc(*call, "--trace", "t.json")
    assert (alone.err, (irc.folder / "t.json").exists()) == ("", True)
    assert "IRC441" in irc("run", "m.onnx", "--seed", "0", "--profile", "--max-steps", "1").err
    assert "IRC503" in irc("run", "m.onnx", "--seed", "0", "--trace", "t.txt").err
    assert "IRC501" in irc("run", "m.onnx", "--seed", "0", "--trace", "no/t.json").err


def test_tables_of_profiles_sum_up_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    from irc.cli.tables import MOST_ROWS, print_profile

    nodes = [
        NodeProfile(f"onnx::Kind{i}", f"onnx::Kind{i} '%{i}'", calls=1, own=1000 + i) for i in range(MOST_ROWS + 3)
    ]
    nodes.append(NodeProfile("prim::FusionGroup", "prim::FusionGroup '%g'", calls=1, own=500, total=900))
    profile = Profile(10**9, sum(n.own for n in nodes), 0, nodes, [], [], 0, 5, Counters(), {})
    print_profile(profile)
    shown = capsys.readouterr().err
    assert "4 other kinds" in shown
    assert "4 others" in shown
    assert "5 events in the tables" in shown
    assert "itself 100.0%" in shown


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 3), np.float32),
        np.array(1.5, np.float32),
        np.array(["a", "bc"]),
        np.asfortranarray(np.ones((2, 3), np.float32)),
        np.arange(3, dtype=">f4"),
        np.ones(3, ml_dtypes.bfloat16),
        np.ones(3, ml_dtypes.float8_e5m2).view("V1"),
    ],
)
def test_arrays_of_every_kind_go_in_and_out(array: np.ndarray, irc: Command) -> None:
    elem = TensorProto.STRING if array.dtype.kind == "U" else TensorProto.FLOAT
    elem = {np.dtype(ml_dtypes.bfloat16): TensorProto.BFLOAT16, np.dtype("V1"): TensorProto.FLOAT8E5M2}.get(
        array.dtype, elem
    )
    same = model([node("Identity", "x", "file")], {}, [])
    same.opset_import[0].version, same.ir_version = 19, 9  # the first that knows floats of 8 bits
    for values, name in ((same.graph.input, "x"), (same.graph.output, "file")):
        values.append(helper.make_tensor_value_info(name, elem, array.shape))
    irc.write("m.onnx", same)
    irc.write("x.npy", array)
    result = irc("run", "m.onnx", "-i", "x=x.npy", "-o", "y.npz")
    assert result.status == 0, result.err
    found = np.load("y.npz")["file"]
    np.testing.assert_array_equal(found.view(array.dtype) if found.dtype.kind == "V" else found, array)
    # what one run wrote, the next one reads
    np.save("again.npy", found)
    assert irc("run", "m.onnx", "-i", "x=again.npy").out == result.out


def test_outputs_whose_names_are_no_file_names(irc: Command) -> None:
    made = model([node("Relu", "x", "a/b:0"), node("Neg", "x", "../c")], {"x": [1]}, ["a/b:0"])
    irc.write("m.onnx", made)
    assert irc("run", "m.onnx", "--seed", "0", "-o", "y.npz").status == 0
    assert np.load("y.npz").files == ["a/b:0"]
    made.graph.output.append(helper.make_tensor_value_info("../c", TensorProto.FLOAT, [1]))
    irc.write("m.onnx", made)
    result = irc("run", "m.onnx", "--seed", "0", "-o", "z.npz")
    assert (result.status, os.path.exists("z.npz")) == (1, False)
    assert "output '../c': this name cannot be" in result.err


def test_outputs_that_are_no_tensors(irc: Command) -> None:
    made = model([node("SequenceConstruct", "x x x x x", "s")], {"x": [1]}, [])
    made.graph.output.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [1]))
    irc.write("m.onnx", made)
    assert re.fullmatch(
        r"s: list of 5: \[(float32 \[1\] \[[\d.-]+\], ){4}\.\.\.\]\n", irc("run", "m.onnx", "--seed", "0").out
    )
    assert irc("run", "m.onnx", "--seed", "0", "-o", "y.npz").status == 0
    assert np.load("y.npz").files == [f"s[{i}]" for i in range(5)]


@pytest.mark.parametrize("command", ["compile", "opt"])
def test_help_names_every_instrument(irc: Command, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    class Wiring(instruments.Instrument):
        """Draws the wires."""

    monkeypatch.setitem(instruments.INSTRUMENTS, "wiring", Wiring)
    monkeypatch.setattr(instruments.Timing, "__doc__", "Tells the time.\n\nIn seconds.")
    said = " ".join(irc(command, "--help").out.split())
    assert "--timing tells the time --print-after-all" in said
    assert "another: diff, print-after-failure, verify-changed or wiring (" in said


def test_opt_reads_and_writes_ir_text(irc: Command) -> None:
    irc.write("g.ir", GRAPH)
    result = irc("opt", "g.ir", "-p", "cse,dce", "--instrument", "timing")
    assert result.status == 0
    assert result.err.startswith("pass")
    assert irc("opt", "g.ir", "-p", "cse,dce", "--timing").err.startswith("pass"), "as compile has it"
    module = parse_module(result.out)
    assert [n.kind for n in module.main.nodes].count("onnx::Relu") == 1
    assert str(module) == result.out
    assert irc("opt", "g.ir", "-p", "cse,dce", "-o", "g.ir").out == ""
    assert (irc.folder / "g.ir").read_text() == result.out, "in place, for text"


def test_text_from_standard_input(irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    irc.write("g.ir", GRAPH)
    printed = irc("print", "g.ir").out
    with open("g.ir") as text:
        monkeypatch.setattr("sys.stdin", text)
        assert irc("print", "-").out == printed
    with open("g.ir") as text:
        monkeypatch.setattr("sys.stdin", text)
        assert irc("run", "-", "--seed", "0").out.startswith("y: float32 [1, 2, 3]")


def test_print_shows_a_model_before_and_after(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    irc("compile", "m.onnx", "-o", "m.irc")
    before, after = irc("print", "m.onnx").out, irc("print", "m.irc").out
    assert "prim::FusionGroup" in after and "prim::FusionGroup" not in before
    assert str(parse_module(before)) == before
    assert str(parse_module(after)) == after


def test_alias(irc: Command) -> None:
    irc.write("g.ir", GRAPH)
    assert "%a" in irc("alias", "g.ir").out
    assert irc("alias", "g.ir", "--format", "dot").out.startswith("digraph")
    assert "never" not in irc("alias", "g.ir", "--why", "x", "%a").out
    assert irc("alias", "g.ir", "--why", "x", "y").out == "%x and %y never share memory\n"
    irc.write(
        "w.ir", "graph(%x : Tensor):\n  %v : Tensor = aten::t(%x)\n  %w : Tensor = aten::relu_(%v)\n  return (%x)\n"
    )
    *_, last = irc("alias", "w.ir", "--why", "x", "v").out.splitlines()
    assert last == "%w = aten::relu_(%v)    writes what %x and %v may be or hold"


@pytest.mark.skipif(os.name != "posix", reason="stands in for a program by a script")
def test_text_with_results_that_go_into_given_tensors(irc: Command) -> None:
    irc.write(
        "out.ir", ir("x, y: Tensor", "one: int = prim.Constant(value=1); z = relu(x); r = add(x, y, one, z)", "r, z")
    )
    printed = irc("alias", "out.ir")
    assert "writes  temporary %z" in printed.out and "does not know" not in printed.err
    assert "does not know" not in irc("compile", "out.ir").err
    assert "aten::add(%x, %y, %one)\n" in irc("print", "out.ir").out


def test_pictures_need_no_other_program(irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    irc.write("g.ir", GRAPH)
    monkeypatch.setenv("PATH", str(irc.folder))
    for command in ("print", "alias"):
        drawn = irc(command, "g.ir", "--format", "svg")
        assert drawn.status == 0 and drawn.out.startswith("<svg ") and drawn.out.endswith("</svg>\n")
    assert irc("print", "g.ir", "--format", "text").out == irc("print", "g.ir").out


def test_why_tells_the_chains_of_the_two_values_apart(irc: Command) -> None:
    irc.write(
        "w.ir", "graph(%x : Tensor):\n  %v : Tensor = aten::t(%x)\n  %w : Tensor = aten::t(%x)\n  return (%v, %w)\n"
    )
    meeting, from_v, *lines = irc("alias", "w.ir", "--why", "v", "w").out.splitlines()
    assert meeting.startswith("%v and %w meet at ")
    assert from_v == "from %v:"
    second = lines.index("from %w:")
    assert lines[:second] and all(line.startswith("  ") for line in lines[:second])
    assert lines[0].startswith("  %v may be %x ") and lines[second + 1].startswith("  %w may be %x ")
    same = irc("alias", "w.ir", "--why", "v", "v").out.splitlines()
    assert same.count("from %v:") == 1 and same == list(dict.fromkeys(same))


def test_bench(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    line = r"{} +[\d.]+ ms +[\d.]+ x irc  p5 [\d.]+  p95 [\d.]+  spread [\d.]+%.*\n"
    beside = irc("bench", "m.onnx", "--runs", "2", "--against", "onnxruntime", "--against", "onnx.reference")
    assert beside.status == 0
    assert re.fullmatch("".join(map(line.format, ("irc", "onnxruntime", "onnx.reference"))), beside.out)
    assert re.fullmatch(line.format("irc") + line.format("onnxruntime"), irc("bench", "m.onnx", "--runs", "1").out)
    assert re.fullmatch(line.format("irc"), irc("bench", "m.onnx", "--runs", "1", "--against", "none").out)
    irc("compile", "m.onnx", "-o", "m.irc")
    assert re.fullmatch(line.format("irc"), irc("bench", "m.irc", "--runs", "1").out)


@pytest.mark.parametrize("dtype", ["bfloat16", "float8e4m3fn", "int4"])
def test_bench_of_types_that_numpy_has_no_names_for(irc: Command, dtype: str) -> None:
    text = f'<ir_version: 13, opset_import: ["" : 25]> g ({dtype}[3] x) => ({dtype}[3] y) {{ y = Transpose(x) }}'
    irc.write("m.onnx", onnx.parser.parse_model(text))
    result = irc("bench", "m.onnx", "--runs", "1", "--against", "onnxruntime")
    assert result.status == 0, result
    assert re.search(r"^onnxruntime +[\d.]+ ms", result.out, re.MULTILINE)


@pytest.mark.parametrize(
    ("nodes", "opset", "why"),
    [
        ([node("Relu", "x", "y")], 9, "it is not right for opset 9"),
        ([node("LRN", "x", "y", size=3)], 20, "it is not known to be right for LRN"),
    ],
)
def test_bench_of_what_another_runtime_cannot_run(irc: Command, nodes: Any, opset: int, why: str) -> None:
    """Nor is a time given of one that computes something else."""
    irc.write("m.onnx", model(nodes, {"x": [2, 4, 3]}, ["y"], opset=opset))
    result = irc("bench", "m.onnx", "--runs", "1", "--against", "onnx.reference")
    assert (result.status, result.out) == (1, "")
    assert f"irc: IRC331: m.onnx: onnx.reference cannot run it: {why}\n" in result.err
    assert "Traceback" not in result.err


def test_bench_leaves_out_a_default_that_cannot_run_the_model(irc: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> None:
        """As releases do that are older than the onnx with which a model was made."""
        raise RuntimeError(
            "[ONNXRuntimeError] : 1 : FAIL : Unsupported model IR version: 14, max supported IR version: 13"
        )

    monkeypatch.setattr(onnxruntime, "InferenceSession", refuse)
    irc.write("m.onnx", small_model())
    result = irc("bench", "m.onnx", "--runs", "1")
    assert result.status == 0
    assert re.fullmatch(r"irc +[\d.]+ ms +1.00 x irc.*\n", result.out)
    assert re.search(r"irc: onnxruntime cannot run it: .*Unsupported model IR version: .*; left out\n", result.err)
    asked = irc("bench", "m.onnx", "--runs", "1", "--against", "onnxruntime")
    assert asked.status == 1
    assert "irc: IRC331: m.onnx: onnxruntime cannot run it: Unsupported model IR version" in asked.err
    checked = irc("compile", "m.onnx", "--check").err
    assert "; not with ONNX Runtime: Unsupported model IR version" in " ".join(checked.split())


@dataclass(frozen=True)
class Sabotage:
    """A wrong pass: a - b becomes b - a."""

    name: ClassVar[str] = "test-sabotage"

    def run(self, graph, ctx) -> bool:
        subtractions = [n for n in graph.walk() if n.kind == "onnx::Sub"]
        for subtraction in subtractions:
            a, b = subtraction.inputs
            subtraction.replace_input(0, b)
            subtraction.replace_input(1, a)
        return bool(subtractions)


@pytest.fixture
def sabotage(own_registries: None) -> str:
    registry._PASSES[Sabotage.name] = Sabotage
    return Sabotage.name


def test_a_model_that_fails_its_check_is_not_written(irc: Command, sabotage: str) -> None:
    nodes = [node("Relu", "x", "a"), node("Sub", "a b", "d"), node("Tanh", "d", "t"), node("Neg", "t", "y")]
    irc.write("m.onnx", model(nodes, {"x": [3]}, ["y"], {"b": np.ones(3, np.float32)}))
    assert irc("compile", "m.onnx", "-o", "m.irc", "-p", sabotage).status == 0
    os.remove("m.irc")
    result = irc("compile", "m.onnx", "-o", "m.irc", "-p", sabotage, "--check")
    assert result.status == 1
    assert os.listdir() == ["m.onnx"]
    wrong = r"irc: IRC330: output 'y': the compiled model is wrong: .*compared with ONNX Runtime; "
    assert re.match(wrong + "the first value that differs is %d, of onnx::Sub", result.err), result.err


def test_remarks_are_grouped_by_pass_and_node(capsys: pytest.CaptureFixture[str]) -> None:
    from irc.cli.tables import print_explained

    remedy = move_before(["y"], "x")
    found = [Remark("a", "%x", "one"), Remark("b", "%x", "two", blocker="y", aliasing=["fact"], remedy=remedy)]
    print_explained({"a.n": 1, "b.n": 2}, [*found, Remark("a", "%x", "three")])
    assert capsys.readouterr().err.splitlines() == [
        *("a.n: 1", "b.n: 2"),
        *("a: 2 remarks", "  %x", "    one", "    three"),
        *("b: 1 remark", "  %x", "    two", "      fact", "    remedy: move %y before %x"),
    ]
    for wanted in ("b", "%y", "y"):
        print_explained({"a.n": 1, "b.n": 2}, found, wanted)
        shown = capsys.readouterr().err.splitlines()
        assert ["a.n: 1" in shown, "b.n: 2" in shown, "    two" in shown] == [False, wanted == "b", True]
    print_explained({}, found, "z")
    assert capsys.readouterr().err == "no remarks on z\n"
    print_explained({}, [])
    assert capsys.readouterr().err == "no remarks\n"


def test_the_table_of_a_large_report(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from irc.cli.tables import MOST_ROWS, print_report

    monkeypatch.setenv("COLUMNS", "100")
    kinds = {f"onnx::Op{i}": i for i in range(1, MOST_ROWS + 6)}
    groups = [FusionGroup(f"v{i}", ["onnx::Relu"] * (i + 1)) for i in range(MOST_GROUPS + 2)]
    report = Report("[red]m\x1b", operators_before=kinds, groups=groups, fallbacks={"onnx::Det": 2}, notes=["a note"])
    report.passes = [PassRun("cse", 0.5, True), PassRun("dce", 0.25, False), PassRun("cse", 0.25, False)]
    print_report(report, verbose=True)
    err = capsys.readouterr().err
    assert "[red]m\\x1b" in err, "names are no markup, and cannot steer the terminal"
    assert re.search(r"5 other kinds +15 +0", err)
    assert re.search(r"in all +231 +0", err)
    assert "and 2 other kinds" in err
    assert re.search(r"cse +750 +2 +1 ", err)
    assert re.search(r"dce +250 +1 +- ", err)
    assert "onnx::Det (2)" in err
    assert "a note" in err
    assert err.startswith(f"{report}\n")
    for text in ("[red]m\\x1b", "onnx::Det", "a note", "operators                     231            0"):
        assert text in str(report)


def test_a_report_at_a_glance_fits_a_terminal_whatever_the_model() -> None:
    many = [f"%{i}\n{'n' * 90}: Float(1, 3)" for i in range(20)]
    operators = {f"com.example::{'Op' * 20}{i}\n": i for i in range(40)}
    report = Report("m" * 200 + "\n", operators_before=operators, operators_after={"onnx::Add": 10**9})
    report.inputs, report.outputs, report.notes = many, many, [f"{i} " + "word " * 100 for i in range(9)]
    report.before, report.after = Totals(10**12, 10**13, 10**17, 10**17, 3), Totals(None, 10, 0, 999_999)
    report.sizes, report.fallbacks = {f"n{i}": i for i in range(99)}, {f"onnx::Op{i}": 1 for i in range(60)}
    report.memory, report.seconds = Memory(1, 2, 3, 4), {"import": 1.0, "passes": 2000.0}
    lines = str(report).split("\n")
    assert len(lines) <= 25 and max(map(len, lines)) <= 80, str(report)
    assert "8 word" in lines[-1] and lines[-1].endswith("..."), "what was checked and written is said last"
    for text in (
        "1.00 TB",
        "at least, n0=0",
        "com.example::Op...",
        "... 20 in all",
        "weights 1 byte, values at most 2 bytes",
    ):
        assert text in str(report)


@pytest.mark.parametrize("out", ["out.irc", "out.onnx"])
def test_compile_prints_the_totals_of_what_it_was_given_and_of_what_it_wrote(irc: Command, out: str) -> None:
    irc.write("m.onnx", small_model())
    result = irc("compile", "m.onnx", "-o", out, "--json")
    report = Report.from_dict(json.loads(result.out))
    assert (report.before.bytes, report.after.bytes) == (os.path.getsize("m.onnx"), os.path.getsize(out))
    assert (report.before.parameters, report.after.parameters) == (32, 32)
    assert report.before.macs == report.after.macs > 0
    assert [text.partition(":")[0] for text in (*report.inputs, *report.outputs)] == ["x", "y"]
    shown = irc("compile", "m.onnx", "-o", out).err
    again = load(out).report if out == "out.irc" else None
    assert f"written to {out}" in shown and len(shown.splitlines()) <= 25
    assert again is None or str(again).splitlines()[3:8] == shown.splitlines()[3:8]


@pytest.mark.parametrize("more", [[], ["--profile"]])
def test_threads_are_those_asked_for(irc: Command, monkeypatch: pytest.MonkeyPatch, more: list[str]) -> None:
    from irc.runtime import model
    from irc.runtime.arena import PlannedRuns
    from irc.runtime.bounds import CURRENT

    asked: list[int] = []
    plain = PlannedRuns.run

    def noted(self: PlannedRuns, *arguments: Any, **others: Any) -> Any:
        share: Any = CURRENT.scope.share
        assert share.func is model.share
        asked.append(share.keywords["threads"])
        return plain(self, *arguments, **others)

    monkeypatch.setattr(PlannedRuns, "run", noted)
    monkeypatch.setattr(model, "usable_processors", lambda: 7)
    irc.write("m.onnx", small_model())
    for threads, wanted in (([], 7), (["--threads", "3"], 3)):
        assert irc("run", "m.onnx", "--seed", "0", "--dim", "batch=2", *threads, *more).status == 0
        assert set(asked) == {wanted}
        asked.clear()


def test_threads_change_no_result(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    results = [irc("run", "m.onnx", "--seed", "0", "--dim", "batch=2", *more) for more in ([], ["--threads", "2"])]
    assert [r.status for r in results] == [0, 0], results
    assert results[0].out == results[1].out != ""
    for number in ("0", "65", "1000"):
        wrong = irc("run", "m.onnx", "--seed", "0", "--threads", number)
        assert wrong.status == 2 and "from 1 to 64" in wrong.err


def test_operators_are_listed_in_columns(irc: Command) -> None:
    lines = irc("operators").out.splitlines()
    assert len(lines) > 1000 and lines == sorted(lines, key=lambda line: line.split()[0].rpartition("::"))
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert {len(row) for row in rows.values()} == {6}
    assert rows["onnx::Relu"] == ["since=1,6,13,14", "runs", "shape", "fuses", "in-place", "onnx"]
    assert rows["aten::topk"] == ["schemas=1", "runs", "shape", "-", "-", "-"]
    assert rows["com.microsoft::Gelu"] == ["schemas=1", "runs:expanded", "-", "-", "-", "onnx"]
    assert rows["aten::set_"] == ["schemas=0", "-", "-", "-", "-", "-"]


def test_all_about_some_operators(irc: Command) -> None:
    result = irc("operators", "Conv", "aten::clip_", "com.microsoft::Attention", "prim::If", "prim::Constant")
    assert (result.status, result.err) == (0, "")
    conv, clamp, attention, branch, constant = result.out.split("\n\n")
    assert re.fullmatch(
        r"onnx::Conv\n"
        r"  schema       onnx::Conv\(Tensor X, Tensor W, Tensor\? B\) -> Tensor Y\n"
        r"  attributes   auto_pad, dilations, group, kernel_shape, pads, strides\n"
        r"  changed in   opset 1, opset 11, opset 22\n"
        r"  memory       writes nothing; results are fresh memory\n"
        r"  fuses        pointwise operators join it\n"
        r"  shape rule   irc/ops/onnx/convolution\.py:\d+\n"
        r"  record       macs: irc/ops/onnx/convolution\.py:\d+\n"
        r"               epilogues: yes\n"
        r"               widened: 1, 2\n"
        r"               value_operands: none\n"
        r"               attributes: auto_pad: NOTSET SAME_UPPER SAME_LOWER VALID\n"
        r"  kernel       irc/runtime/kernels/convolution\.py:\d+\n"
        r"  verified by  irc/ops/onnx_signatures\.py:\d+\n"
        r"  as ONNX      yes",
        conv,
    )
    assert re.match(r"aten::clamp_\n  schemas      aten::clamp_\(.*\n               aten::clamp_.Tensor\(", clamp)
    assert "\n  memory       writes self; the result is self\n  functional   aten::clamp\n" in clamp
    assert "\n  also called  aten::clip_\n" in clamp
    assert "that of the operators that it is expanded into" in attention and "none: expanded into other" in attention
    assert re.search(r"memory .*either block returns for it\n +irc/alias/rules/by_kind\.py:\d+\n", branch)
    assert "\n  kernel       constants need none\n" in constant


def test_operators_as_json(irc: Command) -> None:
    (found,) = json.loads(irc("operators", "Clip", "--json").out)
    assert list(found["kernels"]) == ["1", "6", "11"] and found["in_place"] == "onnx::Clip_"
    assert found["memory"] == [{"overloads": [], "statements": ["writes nothing", "results are fresh memory"]}]


def test_operators_that_there_are_not(irc: Command) -> None:
    result = irc("operators", "Relu", "Cnov")
    assert (result.status, result.out) == (1, "")
    assert result.err == "irc: IRC217: irc knows no operator 'Cnov'; did you mean 'onnx::Conv'?\n"
