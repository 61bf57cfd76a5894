"""What a model declares of its intermediate values is not believed: passes would act on it."""

import numpy as np
import onnx.parser

import irc

# y is declared [2, 3], but its shape is what the caller says.
MODEL = onnx.parser.parse_model("""
<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x, int64[2] s) => (float[2, 3] z) <float[2, 3] y>
{
    y = Reshape (x, s)
    t = Constant <value = int64[2] {2, 3}> ()
    w = Reshape (y, t)
    z = Neg (w)
}
""")


def test_a_wrong_value_info_changes_no_result():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    result = irc.compile(MODEL).run({"x": x, "s": np.array([3, 2])})["z"]
    np.testing.assert_array_equal(result, -x)


def test_a_wrong_output_shape_changes_no_result_either():
    """Models whose batch size somebody has made a name often still declare the old number for their outputs."""
    model = onnx.parser.parse_model("""
    <ir_version: 8, opset_import: ["" : 17]>
    g (float[N, 3] x, int64[2] p) => (float[1, 3] y, float[1, 3] z)
    {
        y = Tile (x, p)
        s = Shape (y)
        t = Constant <value = int64[2] {3, -1}> ()
        u = Reshape (y, t)
        z = Reshape (u, s)
    }
    """)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = irc.compile(model).run({"x": x, "p": np.array([1, 1])})
    np.testing.assert_array_equal(results["y"], x)
    np.testing.assert_array_equal(results["z"], x)
