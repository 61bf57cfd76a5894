"""One model with everything that nests: If, Loop with scan outputs, Scan, captures, a local function."""

import numpy as np
import onnx
import onnx.parser
import pytest

import irc
from irc.passes import create_instruments
from irc.tools.check.peers import onnxruntime_session

MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
nested (float[n, 4] x, int64 iterations, bool again, bool choose)
    => (float[n, 4] last, float[t, n, 4] history, float[n, 4] chosen, float[4] total, float[n, 4] partial)
<float[4] w = {1, 2, 3, 4}, float half = {0.5}>
{
    scaled = local.ScaleAndShift (x, w)
    last, history = Loop (iterations, again, scaled) <body = body (int64 i, bool go, float[n, 4] state)
        => (bool still, float[n, 4] next, float[n, 4] seen)
        {
            shrunk = Mul (state, half)
            added = Add (shrunk, x)
            next = local.ScaleAndShift (added, half)
            seen = Sub (next, scaled)
            biggest = ReduceMax <keepdims = 0> (next)
            limit = Constant <value_float = 1000.0> ()
            small = Less (biggest, limit)
            still = And (go, small)
        }
    >
    chosen = If (choose) <
        then_branch = yes () => (float[n, 4] taken) {
            doubled = Add (last, last)
            taken = If (again) <
                then_branch = deep () => (float[n, 4] deep_result) { deep_result = Relu (doubled) },
                else_branch = flat () => (float[n, 4] flat_result) { flat_result = Neg (scaled) }
            >
        },
        else_branch = no () => (float[n, 4] refused) { refused = local.ScaleAndShift (scaled, w) }
    >
    zero = Constant <value = float[4] {0, 0, 0, 0}> ()
    total, partial = Scan <num_scan_inputs = 1, body = sum (float[4] sum_in, float[4] row)
        => (float[4] sum_out, float[4] so_far)
        {
            row_scaled = Mul (row, w)
            sum_out = Add (sum_in, row_scaled)
            so_far = Identity (sum_out)
        }
    > (zero, x)
}
<domain: "local", opset_import: ["" : 17]>
ScaleAndShift (data, factor) => (result)
{
    product = Mul (data, factor)
    one = Constant <value_float = 1.0> ()
    result = Add (product, one)
}
""")

PASSES = ["none", "default", "inline", "inline,fuse", "cse,dce", "inline,(canonicalize,constant-fold,cse,dce)*3,fuse"]


@pytest.fixture(scope="module")
def oracle():
    onnx.checker.check_model(MODEL)
    return onnxruntime_session(MODEL)


@pytest.fixture(scope="module", params=[*PASSES, "loaded"])
def compiled(request, tmp_path_factory):
    verify = create_instruments(["verify-each", "verify-alias"])
    if request.param != "loaded":
        return irc.compile(MODEL, passes=request.param, instruments=verify)
    path = tmp_path_factory.mktemp("model") / "nested.irc"
    irc.compile(MODEL).save(path)
    return irc.load(path)


@pytest.mark.covering(2)
@pytest.mark.parametrize("iterations", [0, 1, 4])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("choose", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
def test_same_as_onnx_runtime(compiled, oracle, iterations, again, choose, rows):
    x = np.random.default_rng(iterations + 10 * rows).normal(size=(rows, 4)).astype(np.float32)
    feeds = {"x": x, "iterations": np.array(iterations), "again": np.array(again), "choose": np.array(choose)}
    names = [output.name for output in MODEL.graph.output]
    expected = dict(zip(names, oracle.run(names, feeds)))
    found = compiled.run(feeds)
    assert list(found) == names
    for name in names:
        assert found[name].dtype == expected[name].dtype
        assert found[name].shape == expected[name].shape
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-5)
    assert len(found["history"]) == (iterations if again else 0)


def test_a_loop_ends_early_when_its_condition_fails(compiled, oracle):
    x = np.full((1, 4), 900, np.float32)
    feeds = {"x": x, "iterations": np.array(50), "again": np.array(True), "choose": np.array(True)}
    history = compiled.run(feeds)["history"]
    assert 0 < len(history) < 50
    np.testing.assert_allclose(history, oracle.run(["history"], feeds)[0], rtol=1e-5)
