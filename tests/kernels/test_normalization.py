"""Normalisations against ONNX Runtime and the definitions."""

import numpy as np
import pytest

from irc.errors import Error
from irc.runtime.kernels import normalization  # noqa: F401
from tests.kernels.helpers import assert_same, run_kernel, values


def batch_norm_inputs(shape: tuple[int, ...], parameters: tuple[int, ...]) -> list[np.ndarray]:
    scale, b, mean, var = (values(*parameters, seed=i) for i in range(1, 5))
    return [values(*shape), scale, b, mean, np.abs(var) + 0.1]


def test_batch_norm_6_at_inference_keeps_the_statistics():
    inputs = batch_norm_inputs((2, 3, 4, 5), (3,))
    ours = run_kernel("BatchNormalization", inputs, {"is_test": 1}, 6, 5)
    assert_same(ours, [*run_kernel("BatchNormalization", inputs, {}, 9), *inputs[3:], *inputs[3:]])


def test_batch_norm_mixed_types():
    """Since 15 the statistics may have another type than the input."""
    x, *parameters = batch_norm_inputs((2, 3, 4), (3,))
    (expected,) = run_kernel("BatchNormalization", [x.astype(np.float16).astype(np.float32), *parameters], {}, 15)
    (ours,) = run_kernel("BatchNormalization", [x.astype(np.float16), *parameters], {}, 15)
    assert_same([ours], [expected.astype(np.float16)], rtol=2e-3, atol=1e-3)
    trained = run_kernel("BatchNormalization", [x.astype(np.float16), *parameters], {"training_mode": 1}, 15, 3)
    assert [v.dtype for v in trained] == [np.float16, np.float32, np.float32]


@pytest.mark.parametrize("shape", [(1, 40), (1, 1, 40), (40,), (1, 1), (1, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_layer_norm_of_one_row_is_as_of_that_row_among_others(shape, dtype):
    """Decoders have one; it is computed in another way."""
    x, scale, b = (v.astype(dtype) for v in (values(*shape), values(shape[-1], seed=1), values(shape[-1], seed=2)))
    among = np.stack([x.reshape(-1), values(shape[-1], seed=3).astype(dtype)])
    tolerance = 1e-2 if dtype is np.float16 else 1e-6
    given = [[scale, b], [scale], [scale[:1], b], [scale, np.float32(b)], *([[scale[None], b]] if x.ndim > 1 else [])]
    for parameters in given:
        (ours,) = run_kernel("LayerNormalization", [x, *parameters], {}, 17)
        (both,) = run_kernel("LayerNormalization", [among, *parameters], {}, 17)
        assert (ours.shape, ours.dtype) == (shape, dtype)
        assert_same([ours.reshape(-1)], [both[0]], tolerance, tolerance)


BAD = {
    "scale": ("BatchNormalization", [values(1, 3, 2), *[values(2)] * 4], {}, 9, "scale"),
    "scalar": ("BatchNormalization", [values(), *[values(1)] * 4], {}, 9, "scale"),
    "nothing to train": (
        "BatchNormalization",
        [values(0, 3, 2), *[values(3)] * 4],
        {"training_mode": 1},
        15,
        "no mean",
    ),
    "not spatial": ("BatchNormalization", [values(1, 3, 2), *[values(3, 1)] * 4], {"spatial": 0}, 7, "scale"),
    "of channels": ("BatchNormalization", [values(1, 3, 2), *[values(3)] * 4], {"spatial": 0}, 7, "scale"),
    "instance": ("InstanceNormalization", [values(1, 3, 2), values(2), values(2)], {}, 6, "scale"),
    "instance rank": ("InstanceNormalization", [values(3), values(3), values(3)], {}, 6, "channels"),
    "groups": ("GroupNormalization", [values(1, 3, 2), values(3), values(3)], {"num_groups": 2}, 21, "num_groups"),
    "no groups": ("GroupNormalization", [values(1, 3, 2), values(3), values(3)], {"num_groups": 0}, 21, "num_groups"),
    "layer axis": ("LayerNormalization", [values(3, 4), values(4)], {"axis": 2**63 - 1}, 17, "axis"),
    "layer scale": ("LayerNormalization", [values(3, 4), values(3)], {}, 17, "broadcast"),
    "layer scale larger": ("LayerNormalization", [values(1, 4), values(3, 4)], {}, 17, "broadcast"),
    "stash_type": ("LayerNormalization", [values(3, 4), values(4)], {"stash_type": 99}, 17, "element type"),
    "rms axis": ("RMSNormalization", [values(3, 4), values(4)], {"axis": -3}, 23, "axis"),
    "axes": ("MeanVarianceNormalization", [values(3, 4)], {}, 13, "axis"),
    "lp axis": ("LpNormalization", [values(3, 4)], {"axis": 2}, 1, "axis"),
    "lp p": ("LpNormalization", [values(3, 4)], {"p": 3}, 1, "p is 3"),
    "lrn size": ("LRN", [values(1, 3, 4)], {"size": 0}, 13, "size"),
    "lrn rank": ("LRN", [values(3)], {"size": 3}, 13, "channels"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_operands_are_errors(case):
    op_type, inputs, attrs, version, message = BAD[case]
    with pytest.raises(Error, match=message):
        run_kernel(op_type, inputs, attrs, version)


@pytest.mark.parametrize("size", [1, 7, 63, 64, 65, 256, 4097, 16383, 16384, 20000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_a_row_alone_is_as_among_others(op, size, dtype):
    """To the last bit, however long it is: a decoder's rows are those of the prompt."""
    x = values(3, size).astype(dtype)
    x[1] = 10 + x[1] / 10
    parameters = [values(size, seed=i).astype(dtype) for i in range(1, 3)][: 2 if op == "LayerNormalization" else 1]
    version = 17 if op == "LayerNormalization" else 23
    (together,) = run_kernel(op, [x, *parameters], {}, version)
    for i, row in enumerate(x):
        (alone,) = run_kernel(op, [row[None], *parameters], {}, version)
        assert alone[0].tobytes() == together[i].tobytes()
    wide = x.astype(np.float64)
    mean = wide.mean(1, keepdims=True) if op == "LayerNormalization" else 0
    spread = np.square(wide - mean).mean(1, keepdims=True)
    wanted = (wide - mean) / np.sqrt(spread + 1e-5) * parameters[0] + (parameters[1] if len(parameters) > 1 else 0)
    np.testing.assert_allclose(together, wanted, rtol=1e-3, atol=1e-3)
