"""What other runtimes say, in one line that holds the reason."""

import pytest

from irc.tools.check.peers import MOST, reason

PLACE = "/onnxruntime_src/onnxruntime/core/graph/model.cc:256 "


@pytest.mark.parametrize(
    "signature",
    [
        "onnxruntime::Model::Model(onnx::ModelProto&&, const onnxruntime::PathString&)",
        "void onnxruntime::Map(std::function<void(int)>, long int) const",
        "onnxruntime::Map(int)::<lambda(int)>::operator()(int) const",
        "onnxruntime::python::addOrtValueMethods(pybind11::module&)::<lambda(const OrtValue*)>",
        "T onnxruntime::Read(const char*) [with T = float; U = int]",
    ],
)
def test_places_in_the_source_of_onnx_runtime_are_left_out(signature: str) -> None:
    said = f"[ONNXRuntimeError] : 1 : FAIL : while running Add: {PLACE}{signature} (a) != (b) was false. 2 by 3\nmore"
    assert reason(RuntimeError(said)) == "while running Add: (a) != (b) was false. 2 by 3"


def test_long_lines_keep_both_ends() -> None:
    said = reason(ValueError("first " + "x" * 1000 + " last"))
    assert said.startswith("first x") and said.endswith("x last") and "…" in said and len(said) <= MOST


def test_without_a_text_the_class_is_the_reason() -> None:
    assert reason(KeyError()) == "KeyError"
