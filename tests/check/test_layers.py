"""Each value of a compiled model is compared with an oracle's, and the first wrong one is named."""

import json

import numpy as np
import pytest

import irc
from irc.check import compare_layers
from irc.ir import parse_module
from tests.check.test_wrong_passes import Wrong, parsed
from tests.cli.helpers import Command
from tests.effort import Spy, Tune
from tests.graphs import ir
from tests.tools.networks import network

MODEL = parsed(
    "float[n, 4] x",
    "a = Abs(x) r = Relu(x) s = Add(a, r) m = MatMul(s, w) e = Exp(m) y = Softmax(e)",
    "float[4, 4] w = {1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1}",
)


@pytest.mark.parametrize("budget", [2**28, 64])
def test_the_first_wrong_layer_is_named(budget: int, tune: Tune, spy: Spy) -> None:
    tune("irc.tools.layers.BUDGET", budget)
    compared = spy(irc.tools.layers, "values_of")
    found = compare_layers(irc.compile(MODEL, [Wrong("relu is dropped"), "fuse"]), MODEL, given={"x": X})
    assert [layer.value for layer in found.layers] == ["a", "r", "s", "m", "e", "y"]
    assert [layer.is_right for layer in found.layers] == [True, False, False, False, False, True]  # softmax hides it
    assert found.first_wrong is not None and found.first_wrong.value == "r"
    wanted = X.clip(0)
    assert found.layers[1].max_error == pytest.approx(np.abs(X - wanted).max() / wanted.max())
    assert found.layers[1].mean_error == pytest.approx(np.abs(X - wanted).mean() / wanted.max())
    assert found.layers[1].cosine == pytest.approx((X * wanted).sum() / np.linalg.norm(X) / np.linalg.norm(wanted))
    assert max(len(call.args[2]) for call in compared.call_args_list) <= (6 if budget > 64 else 2)


X = np.float32([[1, -2, 3, 0.5], [-1, 2, 0, 4]])


def test_values_that_are_no_numbers_and_lists() -> None:
    text = ir("""
        x: Float(n, 3) -> b, l, z
        zero: Float() = prim.Constant(value=splat(0.)); b: Bool(n, 3) = Greater(x, zero)
        d: Float(n, 3) = Div(x, zero); l: "Float(n, 3)[]" = SequenceConstruct(d, x); z: Float(n, 3) = Mul(x, zero)
    """)
    module = parse_module(text)
    found = compare_layers(irc.compile(module), module)
    rows = {layer.value: (layer.max_error, layer.mean_error, layer.cosine) for layer in found.layers}
    assert rows == {"b": (0.0, None, None), "d": (0.0, None, None), "z": (0.0, 0.0, 1.0)}
    assert found.oracle == "irc without passes" and found.first_wrong is None


def test_layers_on_the_command_line(irc_command: Command) -> None:
    irc_command.write("m.onnx", network(50))
    found = irc_command("compile", "m.onnx", "--check", "--layers")
    assert found.status == 0, found.err
    assert found.out.startswith("value") and found.out.endswith(": all are within the tolerance\n")
    told = json.loads(irc_command("compile", "m.onnx", "--check", "--layers", "--json").out)["layers"]
    assert told["first_wrong"] is None and len(told["layers"]) == len(found.out.splitlines()) - 2
    assert told["layers"][0]["operator"] == "onnx::MatMul"
    assert irc_command("compile", "m.onnx", "--layers").status == 2


@pytest.fixture
def irc_command(tmp_path, capsys, monkeypatch) -> Command:
    monkeypatch.chdir(tmp_path)
    return Command(tmp_path, capsys)
