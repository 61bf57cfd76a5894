"""``--fix``: models compiled for given sizes."""

import numpy as np
import onnx
import pytest

import irc as package
from tests.cli.helpers import Command, model, node, small_model, small_result
from tests.cli.refusals import commands, contents, refusals
from tests.graphs import ir

DECODER = ir("""
    ids: Float(batch, new); mask: Float(batch, "past + new"); past: Float(batch, past) -> y
    all = Concat(past, ids, axis=1); y = Mul(all, mask)
""")


def test_a_model_compiled_for_a_size(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    compiled = irc("compile", "m.onnx", "--fix", "batch=4", "-o", "m.irc", "--check")
    assert compiled.status == 0 and "agrees with" in compiled.err and "(with" not in compiled.err
    assert package.load("m.irc").module.metadata["irc.pipeline"].startswith('fix-sizes{sizes="batch=4"},inline,')
    assert irc("run", "m.irc", "--seed", "0").err == ""
    assert irc("run", "m.irc", "--seed", "0").out.startswith("y: float32 [4, 8]")


def test_onnx_that_is_written_has_the_sizes(irc: Command) -> None:
    source = small_model()
    source.graph.output[0].CopyFrom(onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", 8]))
    irc.write("m.onnx", source)
    for passes in ("default", "none"):
        assert irc("compile", "m.onnx", "--fix", "batch=4", "-p", passes, "-o", "out.onnx").status == 0
        graph = onnx.load("out.onnx").graph
        for value, sizes in ((graph.input[0], [4, 3]), (graph.output[0], [4, 8])):
            assert [dim.dim_value for dim in value.type.tensor_type.shape.dim] == sizes
        x = np.ones((4, 3), np.float32)
        (y,) = package.compile("out.onnx").run({"x": x}).values()
        np.testing.assert_allclose(y, small_result(x), rtol=1e-5)


def test_inputs_that_are_made_up_follow(irc: Command) -> None:
    """Those named after dimensions that have been fixed, too; also when the model was written as ONNX meanwhile."""
    irc.write("m.ir", DECODER)
    result = irc("run", "m.ir", "--fix", "past=5", "--fix", "batch=2", "--seed", "0", "--dim", "new=3")
    assert result.out.startswith("y: float32 [2, 8]")
    assert result.err == 'irc: assumed "past + new"=8 (--dim changes that)\n'
    assert irc("compile", "m.ir", "--fix", "past=5", "--check").status == 0
    assert irc("bench", "m.ir", "--fix", "past=5", "--fix", "new=1", "--runs", "1").status == 0
    assert irc("compile", "m.ir", "--fix", "past=5", "-o", "m.onnx").status == 0
    assert irc("compile", "m.onnx", "--fix", "new=2", "-o", "again.onnx").status == 0
    assert irc("run", "again.onnx", "--seed", "0").out.startswith("y: float32 [1, 7]")


@pytest.mark.parametrize("option", ["--fix", "--dim"])
def test_a_name_that_has_two_sizes_in_one_option(option: str, irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc("run", "m.onnx", "--seed", "0", option, 'batch=1, "batch"=2')
    assert result.status == 2 and f"error: argument {option}: the size of 'batch' is given twice" in result.err


def test_text_with_the_sizes(irc: Command) -> None:
    irc.write("m.ir", DECODER)
    fixed = irc("opt", "m.ir", "--fix", "past + new=6", "--fix", "batch=2")
    assert fixed.out.startswith(
        "graph(%ids : Float(2, new),\n      %mask : Float(2, 6),\n      %past : Float(2, past)):\n"
    )
    inferred = irc("opt", "m.ir", "--fix", "past=2", "--fix", "new=4", "-p", " shape-inference ")
    assert "%all : Float(batch, 6) = " in inferred.out
    assert irc("opt", "m.ir", "-p", 'fix-sizes{sizes="past=2,new=4"},shape-inference').out == inferred.out
    assert irc("opt", "m.ir", "--fix", "past=2,new=4", "-p", "shape-inference").out == inferred.out


def test_passes_of_compiled_models_were_chosen(irc: Command) -> None:
    irc.write("m.onnx", small_model())
    assert irc("compile", "m.onnx", "-o", "m.irc").status == 0
    for command in ("run", "bench"):
        result = irc(command, "m.irc", "--fix", "batch=2")
        assert result.status == 2
        assert "--fix: the passes of a .irc file were chosen when it was compiled" in result.err
    assert "Float(2, 3)" in irc("opt", "m.irc", "--fix", "batch=2").out


def test_several_sizes_and_names_that_hold_commas(irc: Command) -> None:
    irc.write("m.ir", 'graph(%x : Float(n, m, "a,b")):\n  %y : Tensor = onnx::Relu(%x)\n  return (%y)\n')
    assert "float32 [2, 3, 4]" in irc("run", "m.ir", "--fix", "n=2,m=3", "--dim", "a,b=4", "--seed", "0").out
    assert "float32 [2, 3, 4]" in irc("run", "m.ir", "--dim", 'm = 3, "a,b"=4, n=2', "--seed", "0").out


@pytest.mark.parametrize(
    "fix",
    [
        ["batch"],
        ["batch=-1"],
        ["=1"],
        ["batch=x"],
        ["batch=9223372036854775808"],
        ["batch=1", "--fix", "batch=1"],
        ["n=1,batch"],
        ["batch=1,batch=2"],
    ],
)
def test_wrong_usage(fix: list[str], irc: Command) -> None:
    irc.write("m.onnx", small_model())
    result = irc("compile", "m.onnx", "--fix", *fix)
    assert result.status == 2 and "error: argument --fix: " in result.err


CASES = commands(r"""
an unknown dimension | compile m.onnx --fix bach=2 -o m.irc
    | IRC311: the model has no named dimension 'bach'; did you mean 'batch'\?
another size of an input that is made up | run m.onnx --fix batch=2 --seed 0 --dim batch=3
    | IRC311: the model was compiled for batch=2: --dim cannot change that
""")
OTHER = (
    r"IRC413: input 'x': expected 2 on axis 0, Float\(2, 3\); got shape \[4, 3\]; the model was compiled for batch=2"
)
CASES |= contents(
    "x.npy", "run m.onnx --fix batch=2 -i x=x.npy", {"an array of another size": (np.zeros((4, 3), np.float32), OTHER)}
)
SUM = model([node("Add", "a b", "y")], {"a": ["m"], "b": ["n"]}, ["y"])
CASES |= contents(
    "m.onnx", "compile m.onnx --fix m=2 --fix n=3", {"sizes that do not fit together": (SUM, "IRC310: .*broadcast")}
)
test_refusals = refusals(CASES)
