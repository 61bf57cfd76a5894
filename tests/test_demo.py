"""`make demo`: what it prints and when it fails."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import irc
from irc.demo import bundled_model, randomize_weights
from irc.demo.__main__ import main


def test_the_demo_compiles_runs_and_checks_a_real_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0
    out = capsys.readouterr().out
    assert "squeezenet" in out
    assert (
        str(irc.compile(randomize_weights(bundled_model("squeezenet"), seed=0)).report).splitlines()[:8]
        == out.splitlines()[2:10]
    )
    assert "the two outputs differ by" in out


def test_the_demo_needs_no_other_runtime(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # an import of it fails
    assert main() == 0
    assert "relative to max|ref| (irc without passes)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(lambda y: y * 1.01, "not what ONNX Runtime computes"), (np.zeros_like, "both inputs give the same output")],
)
def test_the_demo_fails_if_the_compiled_model_is_wrong(
    spoil, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compile_right = irc.compile

    def compile_wrong(model, **_):
        right = compile_right(model)
        wrong = SimpleNamespace(report=right.report, outputs=right.outputs)
        wrong.run = lambda feeds: {name: spoil(y) for name, y in right.run(feeds).items()}
        return wrong

    monkeypatch.setattr(irc, "compile", compile_wrong)
    assert main() == 1
    assert message in capsys.readouterr().err
