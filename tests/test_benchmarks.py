"""What benchmarks conclude must not depend on who runs first or on who fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from benchmarks import peers
from benchmarks.__main__ import race
from irc.demo import bundled_model, randomize_weights, seeded_inputs


def test_contenders_take_turns_each_with_an_argument_of_its_own() -> None:
    calls: list[tuple[str, int]] = []
    arguments = iter(range(100))

    def contender(name: str):
        def run(argument: int) -> str:
            calls.append((name, argument))
            return name.upper()

        return run

    best, results = race({name: contender(name) for name in ("a", "b")}, lambda: next(arguments), turns=2)
    assert calls == [("a", 0), ("b", 1), ("a", 2), ("b", 3)]
    assert results == {"a": "A", "b": "B"}
    assert best.keys() == {"a", "b"}


def test_a_peer_that_fails_is_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("out of order")

    best, results = race({"irc": lambda x: x, "peer": fail}, lambda: 1, turns=3)
    assert best.keys() == results.keys() == {"irc"}
    assert capsys.readouterr().out == "peer fails: RuntimeError: out of order\n"
    with pytest.raises(RuntimeError):
        race({"irc": fail}, lambda: 1, turns=1)


def test_installed_leaves_out_what_cannot_be_imported() -> None:
    assert peers.installed({"onnx.reference": 1, "no_such_package.part": 2}) == {"onnx.reference": 1}


@pytest.mark.parametrize("name", peers.OPTIMIZERS)
def test_an_optimiser_keeps_what_a_model_computes(name: str) -> None:
    pytest.importorskip(name)  # the bench extra
    model = randomize_weights(bundled_model("shufflenet"), seed=0)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    feeds = seeded_inputs(model, seed=1)
    prepare = peers.RUNNERS["onnxruntime"]
    (expected,), (result,) = prepare(model)(feeds), prepare(peers.OPTIMIZERS[name](copy))(feeds)
    assert abs(result - expected).max() < 1e-3 * expected.max()


@pytest.mark.parametrize(("arguments", "message"), [(["lenet"], "lenet"), (["--turns", "0"], "--turns")])
def test_wrong_usage_is_refused(arguments: list[str], message: str) -> None:
    command = [sys.executable, "-m", "benchmarks", *arguments]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert message in done.stderr.splitlines()[-1]
