"""Operators of com.microsoft that compute with quantized numbers, against NumPy and ONNX Runtime."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

import irc
from irc.alias import analyze
from irc.ir.region_flow import with_subgraphs
from irc.runtime.prepack import lasting_nodes
from irc.tools.check import check_model
from irc.tools.check.peers import exact_onnxruntime
from tests.frontend.contrib import check, contrib, random
from tests.frontend.helpers import refused


def numbers(seed: int, *shape: int, dtype: Any = np.uint8) -> np.ndarray:
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def unpacked(x: np.ndarray, bits: int) -> np.ndarray:
    """The numbers in the bytes of each row."""
    return np.stack([x >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)], -1).reshape(len(x), -1)


def few_bits(bits: int, k: int, zeros: str, dtype: Any = np.float32) -> tuple[dict[str, np.ndarray | None], np.ndarray]:
    """Inputs of MatMulNBits, with 3 rows of weights in blocks of 16, and the weights."""
    n, blocks = 3, -(-k // 16)
    packed = numbers(0, n, blocks, 2 * bits)
    scales = np.abs(random(1, n, blocks, dtype=dtype)) / 16
    zero: np.ndarray | None = None
    offsets = np.full((n, blocks), 1 << (bits - 1))
    if zeros == "packed":
        zero = numbers(2, n, -(-blocks * bits // 8))
        offsets = unpacked(zero, bits)[:, :blocks].astype(int)
    elif zeros == "float":
        zero = offsets = random(2, n, blocks, dtype=dtype)
    codes = unpacked(packed.reshape(n, -1), bits).reshape(n, blocks, 16)
    real = ((codes - offsets[..., None].astype(dtype)) * scales[..., None]).reshape(n, -1)[:, :k]
    return {"a": random(3, 2, 4, k, dtype=dtype), "b": packed, "scales": scales, "zeros": zero}, real


@pytest.mark.covering(2)
@pytest.mark.parametrize("k", [32, 40])
@pytest.mark.parametrize("zeros", ["none", "packed", "float"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_weights_of_few_bits(bits: int, zeros: str, k: int, dtype: Any) -> None:
    arrays, real = few_bits(bits, k, zeros, dtype)
    expected = (arrays["a"].astype(float) @ real.T.astype(float)).astype(dtype)
    words = {"bits": bits, "block_size": 16, "N": 3, "K": k, "tolerance": 1e-4 if dtype is np.float32 else 0.05}
    check({"y": expected}, "MatMulNBits", arrays, **words)
    biased = {**arrays, "g": None, "bias": random(5, 3, dtype=dtype)}
    check({"y": expected + biased["bias"]}, "MatMulNBits", biased, **words)


def test_constant_weights_are_unpacked_once() -> None:
    arrays, real = few_bits(4, 40, "packed")
    model, feeds = contrib("MatMulNBits", arrays, "y", constants="b scales zeros", bits=4, block_size=16, N=3, K=40)
    compiled = irc.compile(model)
    kinds = [n.kind for n in with_subgraphs(compiled.graph)]
    assert "onnx::BitShift" not in kinds and "onnx::Cast" in kinds  # they are bytes, which are made floats by a run
    (group,) = [n for n in compiled.graph.nodes if n.kind == "prim::FusionGroup"]
    assert group in lasting_nodes(analyze(compiled.graph))
    np.testing.assert_allclose(compiled.run(feeds)["y"], arrays["a"] @ real.T, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("code", "words", "attributes"),
    [
        ("IRC127", "bits is 3", {"bits": 3}),
        ("IRC127", "block_size is 24", {"block_size": 24}),
        ("IRC127", "block_size is 8", {"block_size": 8}),
        ("IRC127", "N is 0", {"N": 0}),
        ("IRC127", "K is -1", {"K": -1}),
        ("IRC127", "sizes that are too large", {"K": (1 << 63) - 1}),
        ("IRC123", "weight_prepacked", {"weight_prepacked": 1}),
        ("IRC123", "input g_idx", {}),
    ],
)
def test_bad_weights_of_few_bits(code: str, words: str, attributes: dict[str, Any]) -> None:
    arrays, _ = few_bits(4, 32, "packed")
    given = {**arrays, "g": np.zeros(32, np.int32) if "g_idx" in words else None}
    refused(
        code,
        contrib("MatMulNBits", given, "y", **{"bits": 4, "block_size": 16, "N": 3, "K": 32, **attributes})[0],
        words,
    )


@pytest.mark.covering(2)
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("indices", [np.array(2), np.array([[0, 4, -1], [3, 3, 1]], np.int32)])
def test_rows_of_few_bits(indices: np.ndarray, bits: int, has_zeros: bool) -> None:
    packed, scales = numbers(0, 5, 6 * bits), np.abs(random(1, 5, 3))
    zeros = numbers(2, 5, -(-3 * bits // 8)) if has_zeros else None
    offsets = 1 << (bits - 1) if zeros is None else unpacked(zeros, bits)[:, :3].astype(np.float32)[..., None]
    real = ((unpacked(packed, bits).reshape(5, 3, 16) - np.float32(offsets)) * scales[..., None]).reshape(5, 48)
    arrays = {"data": packed, "indices": indices, "scales": scales, "zeros": zeros}
    words = {"constants": "data scales" + " zeros" * has_zeros, "bits": bits, "block_size": 16}
    check({"y": real[indices]}, "GatherBlockQuantized", arrays, **words)


@pytest.mark.parametrize(
    ("words", "change"),
    [
        ("an axis", {"gather_axis": 1}),
        ("an axis", {"quantize_axis": 0}),
        ("last block of 48 columns has less than 32", {"block_size": 32}),
        ("not a matrix of uint8", {"constants": ""}),
    ],
)
def test_tables_of_few_bits_that_are_not_supported(words: str, change: dict[str, Any]) -> None:
    arrays = {"data": numbers(0, 5, 24), "indices": np.array([1]), "scales": random(1, 5, 3)}
    model, _ = contrib("GatherBlockQuantized", arrays, "y", **{"constants": "data", "block_size": 16, **change})
    refused("IRC123", model, words)


@pytest.mark.parametrize("n", [4, 1 << 62])
def test_sizes_that_are_not_those_of_the_weights(n: int) -> None:
    arrays, _ = few_bits(4, 32, "packed")
    model, feeds = contrib("MatMulNBits", arrays, "y", bits=4, block_size=16, N=n, K=32)
    with pytest.raises(irc.Error):
        irc.compile(model).run(feeds)


@pytest.mark.covering(2)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("directions", [1, 2])
@pytest.mark.parametrize("lengths", [None, [6, 2, 4], [3, 0, 1]])
def test_recurrent_layers(directions: int, by_column: bool, dtype: Any, lengths: list[int] | None) -> None:
    samples, wide, hidden = 3, 5, 4
    parts = [directions, 4 * hidden] if by_column else [directions]
    zeros = [np.full(parts, 120 if dtype is np.uint8 else 0, dtype) for _ in "WR"]
    codes = [numbers(i, directions, n, 4 * hidden, dtype=dtype) for i, n in enumerate((wide, hidden))]
    scales = [0.002 + 0.01 * np.abs(random(i, *parts)) for i in (2, 3)]
    arrays: dict[str, np.ndarray | None] = {
        "x": random(7, 6, samples, wide),
        "w": codes[0],
        "r": codes[1],
        "b": random(4, directions, 8 * hidden),
        "lens": None if lengths is None else np.array(lengths, np.int32),
        "h": random(5, directions, samples, hidden),
        "c": None,
        "p": random(6, directions, 3 * hidden),
        **dict(zip(("ws", "wz", "rs", "rz"), (scales[0], zeros[0], scales[1], zeros[1]))),
    }
    words = {"hidden_size": hidden, "direction": "bidirectional" if directions > 1 else "reverse", "clip": 2.5}
    words |= {"activations": ["HardSigmoid", "Tanh", "Tanh"] * directions, "activation_alpha": [0.3] * directions}

    names = "y y_h y_c"
    model, feeds = contrib("DynamicQuantizeLSTM", arrays, names, constants="w r ws wz rs rz", **words)
    for output in model.graph.output:
        output.type.tensor_type.elem_type = TensorProto.FLOAT
    expected = exact_onnxruntime(model, "")(feeds, None)
    check(dict(zip(names.split(), expected)), "DynamicQuantizeLSTM", arrays, **words)
    check({"y": expected[0]}, "DynamicQuantizeLSTM", arrays, **words)
    compiled = irc.compile(model)
    assert [node.kind for node in compiled.graph.nodes if node.kind != "prim::Constant"] == [
        "com.microsoft::DynamicQuantizeLSTM"
    ]
    assert "agrees with ONNX Runtime" in str(check_model(compiled, model, given=feeds))
    del model.graph.output[1:]
    for passes in ("none", "default"):  # of which the latter drops results that nobody reads
        compiled = irc.compile(model, passes)
        compiled.module.verify()
        assert "agrees with ONNX Runtime" in str(check_model(compiled, model, given=feeds))


@pytest.mark.parametrize("name", ["ws", "wz", "rs", "rz"])
def test_recurrent_layers_with_scales_that_do_not_fit(name: str) -> None:
    scale, zero = np.ones(1, np.float32), np.zeros(1, np.uint8)
    arrays: dict[str, np.ndarray | None] = {
        "x": random(0, 2, 1, 3),
        "w": numbers(1, 1, 3, 8),
        "r": numbers(2, 1, 2, 8),
        **dict.fromkeys(("b", "lens", "h", "c", "p")),
        "ws": scale,
        "wz": zero,
        "rs": scale,
        "rz": zero,
    }
    arrays[name] = np.resize(arrays[name], (1, 7))  # type: ignore[arg-type]
    model, feeds = contrib("DynamicQuantizeLSTM", arrays, "y", hidden_size=2)
    with pytest.raises(irc.Error, match=r"IRC421.*has the shape \[1, 7\]; it must be \[1\]"):
        irc.compile(model, passes="none").run(feeds)


@pytest.mark.covering(2)
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_sums_and_products_element_by_element(op_type: str, dtype: Any, has_zeros: bool) -> None:
    a, b = numbers(0, 2, 3, 8, dtype=dtype), numbers(1, 8, dtype=dtype)
    scales = [np.array(x, np.float32) for x in (0.25, 0.5, 0.75)]
    zeros = [np.array(x, dtype) if has_zeros else None for x in (3, 5, 7)]
    x, y = ((v - (0 if z is None else float(z))) * s for v, s, z in zip((a, b), scales, zeros))
    made = np.round((x + y if op_type == "QLinearAdd" else x * y) / scales[2]) + (7 if has_zeros else 0)
    info = np.iinfo(dtype)
    names = ("a", "a_s", "a_z", "b", "b_s", "b_z", "c_s", "c_z")
    arrays = dict(zip(names, (a, scales[0], zeros[0], b, scales[1], zeros[1], scales[2], zeros[2])))
    check({"c": np.clip(made, info.min, info.max).astype(dtype)}, op_type, arrays)
