"""Small models, each of which irc once computed wrong: with and without passes, next to ONNX Runtime."""

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

import irc
from tests.elsewhere import run_onnxruntime

f32 = np.float32

# Name -> opset, the graph, its inputs.
MODELS: dict[str, tuple[int, str, dict[str, Any]]] = {
    "a bound of Clip in memory that nothing needs any more": (
        17,
        """(float[1] x, float[1] b) => (float[1] y) <float lo = {0}> { hi = Add(b, b) y = Clip(x, lo, hi) }""",
        {"x": f32([10]), "b": f32([1])},
    ),
    "a lower bound with an axis more than what is clipped": (
        17,
        """(float x, float[1] b) => (float y) <float hi = {9}> {
            lo = Add(b, b)
            flat = Identity(lo)
            y = Clip(x, flat, hi)
        }""",
        {"x": np.array(1, np.float32), "b": f32([1])},
    ),
    "sums of uint8": (
        17,
        """() => (int64[1] y) <uint8[1] a = {200}, uint8[1] b = {100}> { s = Add(a, b) y = Cast<to = 7>(s) }""",
        {},
    ),
    "int64 that does not fit into int32": (
        17,
        """() => (int64[1] y) <int64[1] a = {5000000000}> { s = Cast<to = 6>(a) y = Cast<to = 7>(s) }""",
        {},
    ),
    "a product of sizes in int32": (
        17,
        """(float[70000] x) => (int64[1] y) {
            shape = Shape(x)
            narrow = Cast<to = 6>(shape)
            product = Mul(narrow, narrow)
            y = Cast<to = 7>(product)
        }""",
        {"x": np.zeros(70_000, np.float32)},
    ),
    "ReduceProd over no axes": (
        18,
        """(float[2, 3] x) => (int64[N] y) {
            shape = Shape(x)
            y = ReduceProd<keepdims = 1, noop_with_empty_axes = 1>(shape)
        }""",
        {"x": np.zeros((2, 3), np.float32)},
    ),
    "ReduceProd over axes that are not known": (
        18,
        """(float[2, 3] x, int64[K] axes) => (int64[1] y) {
            shape = Shape(x)
            y = ReduceProd<keepdims = 1, noop_with_empty_axes = 1>(shape, axes)
        }""",
        {"x": np.zeros((2, 3), np.float32), "axes": np.array([0])},
    ),
    "one of many strings": (
        17,
        """(string[2] x) => (string[1] y) <int64 one = {1}, int64[1] zero = {0}, string[1] longer = {"longer"}> {
            s = Gather(x, one)
            u = Unsqueeze(s, zero)
            y = ScatterElements(u, zero, longer)
        }""",
        {"x": np.array(["ab", "c"], object)},
    ),
    "a iteration number with an axis": (
        17,
        """(int64 iterations, bool go) => (int64[N, M] y) {
            y = Loop(iterations, go)
                <body = body (int64[1] i, bool go_in) => (bool go_out, int64[K] row)
                    <int64[1] ten = {10}> { go_out = Identity(go_in) row = Concat<axis = 0>(i, ten) }>
        }""",
        {"iterations": np.array(3), "go": np.array(True)},
    ),
}


@pytest.mark.parametrize("passes", ["none", "default"])
@pytest.mark.parametrize("name", MODELS)
def test_small_models(name: str, passes: str) -> None:
    opset, text, feeds = MODELS[name]
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> g {text}')
    (expected,) = run_onnxruntime(model, feeds)
    found = irc.compile(model, passes).run(feeds)["y"]
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(found, expected)


SCALARS = {
    "Cast": (19, "(float x) => (float8e4m3fn y) { y = Cast<to = 17>(x) }", {"x": np.array(1, np.float32)}),
    "QLinearMatMul": (
        21,
        """(uint8[3] a) => (uint8 y) <float one = {1}, uint8 zero = {0}> {
            y = QLinearMatMul(a, one, zero, a, one, zero, one, zero)
        }""",
        {"a": np.array([1, 2, 3], np.uint8)},
    ),
}


@pytest.mark.parametrize("name", SCALARS)
def test_results_without_axes_are_arrays(name: str) -> None:
    opset, text, feeds = SCALARS[name]
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {text}')
    found = irc.compile(model).run(feeds)["y"]
    assert isinstance(found, np.ndarray) and found.shape == ()
    assert float(found) == {"Cast": 1, "QLinearMatMul": 14}[name]


@pytest.mark.parametrize("passes", ["none", "default"])
def test_a_root_mean_square_normalisation_is_of_its_scales_type(passes: str) -> None:
    text = """(float16[2, 4] x, float[4] scale) => (float16[2, 4] z) {
        y = RMSNormalization(x, scale)
        z = Cast<to = 10>(y)
    }"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> g {text}')
    feeds = {"x": np.ones((2, 4), np.float16), "scale": np.full(4, 2, np.float32)}
    z = irc.compile(model, passes).run(feeds)["z"]
    assert z.dtype == np.float16 and (np.abs(z - 2) < 1e-3).all()


def test_pads_that_remove_more_than_there_is() -> None:
    text = "(float[5] x) => (float[N] y) <int64[2] pads = {4, -10}> { y = Pad(x, pads) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> g {text}')
    with pytest.raises(irc.Error, match="remove more than"):
        irc.compile(model, "none").run({"x": np.zeros(5, np.float32)})


@pytest.mark.parametrize("passes", ["none", "default"])
def test_what_onnx_runtime_computes_wrong(passes: str) -> None:
    """It gives a part of -1 elements, and the length of a range by division of floats."""
    text = """(float[5] x) => (int64[1] c, int64[1] d, int64[1] n)
        <int64 a = {0}, int64 end = {112589990684262401}, int64 step = {1125899906842624}> {
            p, q, r, s = Split<num_outputs = 4>(x)
            c = Shape(r)
            d = Shape(s)
            range = Range(a, end, step)
            n = Shape(range)
        }"""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> g {text}')
    found = irc.compile(model, passes).run({"x": np.zeros(5, np.float32)})
    assert [found[name].tolist() for name in "cdn"] == [[1], [0], [101]]


def test_sizes_are_at_least_minus_1() -> None:
    text = "(float[4] x, int64[2] sizes) => (float[N, M] y) { y = Reshape(x, sizes) }"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17]> g {text}')
    with pytest.raises(irc.Error, match="at least -1"):
        irc.compile(model).run({"x": np.zeros(4, np.float32), "sizes": np.array([-2, 2])})


def test_large_blocks_of_scales_take_no_memory() -> None:
    text = """(uint8[2] x, float[1] scale) => (float[2] y) {
        y = DequantizeLinear<axis = 0, block_size = 1099511627776>(x, scale)
    }"""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    found = irc.compile(model).run({"x": np.array([1, 2], np.uint8), "scale": f32([3])})["y"]
    np.testing.assert_array_equal(found, f32([3, 6]))
