"""RNN, GRU and LSTM against ONNX Runtime."""

from typing import Any

import numpy as np
import pytest

from irc.errors import Error
from tests.kernels.helpers import bind, check_against_ort, run_kernel

T, B, N, H = 5, 3, 4, 6  # steps, samples, inputs, hidden
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
OUTPUTS = {"RNN": 2, "GRU": 2, "LSTM": 3}


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32) * np.float32(0.6)


def example(op: str, directions: int = 1, lengths: list[int] | None = None) -> list[Any]:
    gates = GATES[op] * H
    inputs = [values(T, B, N), values(directions, gates, N), values(directions, gates, H)]
    inputs += [values(directions, 2 * gates), None if lengths is None else np.array(lengths, np.int32)]
    inputs += [values(directions, B, H, seed=1)]
    if op == "LSTM":
        inputs += [values(directions, B, H, seed=2), values(directions, 3 * H)]
    return inputs


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, [5, 2, 3], [1, 5, 0]], ids=str)
def test_layers(op, direction, lengths):
    inputs = example(op, 2 if direction == "bidirectional" else 1, lengths)
    attrs: dict[str, Any] = {"hidden_size": H, "direction": direction}
    variants: list[dict[str, Any]] = [{}, {"clip": 0.5}]
    variants += {"GRU": [{"linear_before_reset": 1}], "LSTM": [{"input_forget": 1}]}.get(op, [])
    for opset in (7, 14):
        for variant in variants:
            check_against_ort(op, inputs, attrs | variant, opset, OUTPUTS[op], rtol=1e-4, atol=1e-5)
    check_against_ort(op, inputs[:3], attrs, 22, 1, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("RNN", {"activations": ["Affine"], "activation_alpha": [0.7], "activation_beta": [0.1]}),
        ("RNN", {"activations": ["LeakyRelu"]}),
        ("RNN", {"activations": ["ThresholdedRelu"], "activation_alpha": [0.2]}),
        ("RNN", {"activations": ["Elu"]}),
        ("GRU", {"activations": ["HardSigmoid", "Softsign"]}),
        (
            "GRU",
            {
                "activations": ["HardSigmoid", "ScaledTanh"],
                "activation_alpha": [0.3, 0.9],
                "activation_beta": [0.4, 1.2],
            },
        ),
        ("LSTM", {"activations": ["sigmoid", "Relu", "tanh"]}),
        ("LSTM", {"activations": ["HardSigmoid", "Softplus", "LeakyRelu"], "activation_alpha": [0.3, 0.05]}),
    ],
)
def test_activations(op, attrs):
    check_against_ort(op, example(op), attrs | {"hidden_size": H}, 14, OUTPUTS[op], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", GATES)
def test_half_precision_is_computed_in_single(op):
    inputs = [None if v is None else v.astype(np.float16) for v in example(op)]
    exact = run_kernel(op, [None if v is None else v.astype(np.float32) for v in inputs], {"hidden_size": H}, 14)[0]
    found = run_kernel(op, inputs, {"hidden_size": H}, 14)[0]
    np.testing.assert_array_equal(found, exact.astype(np.float16))


def test_bad_layers():
    x, w, r = example("LSTM")[:3]
    with pytest.raises(Error, match="do not fit"):
        run_kernel("LSTM", [x, w[:, :-1], r], {"hidden_size": H}, 14, 3)
    with pytest.raises(Error, match="do not fit"):
        run_kernel("LSTM", [x, w, r], {"hidden_size": H + 1}, 14, 3)
    with pytest.raises(Error, match="do not fit"):
        run_kernel("LSTM", [x, w, values()], {}, 14, 3)
    for lengths in ([6, 1, 1], [-1, 1, 1], [1, 1]):
        with pytest.raises(Error, match="sequence_lens"):
            run_kernel("LSTM", [x, w, r, None, np.array(lengths, np.int32)], {"hidden_size": H}, 14, 3)
    with pytest.raises(Error, match="initial state"):
        run_kernel("LSTM", [x, w, r, None, None, values(1, 2, H)], {"hidden_size": H}, 14, 3)
    with pytest.raises(Error, match="initial state"):
        run_kernel("LSTM", [x.swapaxes(0, 1), w, r, None, None, values(H)], {"hidden_size": H, "layout": 1}, 14, 3)
    for attrs in ({"direction": "up"}, {"activations": ["Tanh"]}, {"activations": ["Sigmoid", "Tanh", "Sine"]}):
        with pytest.raises(Error):
            bind("LSTM", attrs, 14, 3, 3)
