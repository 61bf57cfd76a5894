"""Arrays that go through ONNX Runtime are those that come back, whatever their type and however they lie in memory."""

import numpy as np
import onnx.parser
import pytest

from irc.ir.types import DType
from irc.tools.check.peers import onnxruntime_session, run_session

FOREIGN = [
    *(DType.BFLOAT16, DType.FLOAT8E4M3FN, DType.FLOAT8E4M3FNUZ, DType.FLOAT8E5M2, DType.FLOAT8E5M2FNUZ),
    *(DType.INT4, DType.UINT4, DType.INT2, DType.UINT2),
]
"""Types that NumPy has no names for, of those that ONNX Runtime casts."""


@pytest.mark.parametrize("shape", [(), (5,), (3, 5), (0, 2)])
@pytest.mark.parametrize("dtype", FOREIGN)
def test_arrays_of_all_types(dtype: DType, shape: tuple[int, ...]) -> None:
    sizes = f"[{', '.join(map(str, shape))}]" if shape else ""
    own = f"{dtype.name.lower()}{sizes}"
    model = onnx.parser.parse_model(f"""
        <ir_version: 13, opset_import: ["" : 25]>
        g ({own} x, float{sizes} f) => (float{sizes} sum, {own} y) {{
            z = Cast<to=1>(x) sum = Add(z, f) y = Cast<to={dtype.onnx}>(z)
        }}
    """)
    session = onnxruntime_session(model, threads=1)
    numbers = (np.arange(2 * np.prod(shape, dtype=int)) * 5 % 7 % 2 ** min(dtype.bits - 1, 3)).astype(np.float32)
    x = np.asarray(numbers.astype(dtype.numpy).reshape(*shape, 2)[..., 0])  # every second number: with gaps between
    f = np.ones(shape, np.float32)
    total, y = run_session(session, {"x": x, "f": f})
    assert (y.dtype, y.shape) == (x.dtype, shape)
    np.testing.assert_array_equal(y, x)
    np.testing.assert_array_equal(total, x.astype(np.float32) + 1)
    (total,) = run_session(session, {"x": x, "f": f}, ["sum"])
    np.testing.assert_array_equal(total, x.astype(np.float32) + 1)


def test_lists_and_strings_beside_them() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 10, opset_import: ["" : 21]>
        g (bfloat16[2] x, seq(float[2]) s, string[1] t) => (float[2] y, string[1] u) {
            zero = Constant<value_int=0>() first = SequenceAt(s, zero)
            z = Cast<to=1>(x) y = Add(first, z) u = Identity(t)
        }
    """)
    x = np.array([1, 2]).astype(DType.BFLOAT16.numpy)
    feeds = {"x": x, "s": [np.array([3, 5], np.float32)], "t": np.array(["a"], object)}
    y, u = run_session(onnxruntime_session(model), feeds)
    assert (y.tolist(), u.tolist()) == ([4, 7], ["a"])
