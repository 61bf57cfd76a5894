"""Single nodes through the ONNX backend API; its whole suite is in test_onnx_backend.py."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.helper import make_node

import irc.backend
from irc.errors import Error

X = np.array([-1.0, 2.0], np.float32)


@pytest.mark.parametrize("version", [None, 13, np.int64(13)])
@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_both_names_of_the_default_domain(domain: str, version: int | None) -> None:
    (y,) = irc.backend.run_node(make_node("Relu", ["x"], ["y"], domain=domain), [X], opset_version=version)
    assert y.tolist() == [0.0, 2.0]


@pytest.mark.parametrize("device", ["CUDA", None, 3])
def test_other_devices_are_refused(device: Any) -> None:
    assert not irc.backend.supports_device(device)
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[1] x) => (float[1] y) {y = Neg(x)}'
    )
    assert not irc.backend.is_compatible(model, device)
    with pytest.raises(Error, match=r"^IRC326: "):
        irc.backend.prepare(model, device)


@pytest.mark.parametrize("version", ["13", 13.0, True, 0, -1, 1 << 70])
def test_versions_that_are_none_are_refused(version: Any) -> None:
    with pytest.raises(Error, match=r"^IRC326: "):
        irc.backend.run_node(make_node("Neg", ["x"], ["y"]), [np.float32([1])], opset_version=version)


def test_more_values_than_inputs() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13]> g (float[2] x) => (float[2] y) {y = Neg(x)}'
    )
    with pytest.raises(Error, match=r"IRC410: 2 values given, but the model has 1 input$"):
        irc.backend.prepare(model).run([X, X])


@pytest.mark.parametrize("inputs", [[X], [X, X], {"x": X}, X])
def test_one_input_at_two_places(inputs: Any) -> None:
    (y,) = irc.backend.run_node(make_node("Add", ["x", "x"], ["y"]), inputs)
    assert y.tolist() == [-2, 4]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([X, X.copy()], "Add has one input 'x' at two places: two values are given for it"),
        ([X, X, X], "Add needs 1 value; 3 are given"),
        ([], "Add needs 1 value; 0 are given"),
    ],
)
def test_values_that_one_input_at_two_places_cannot_have(inputs: Any, message: str) -> None:
    with pytest.raises(Error, match=f"IRC410: {message}"):
        irc.backend.run_node(make_node("Add", ["x", "x"], ["y"]), inputs)


def test_the_newest_version_of_another_domain_is_the_default() -> None:
    """LabelEncoder has these attributes since version 4 of its domain, and others in version 1."""
    names = {"keys_tensor": np.array([1.0, 2.0], np.float32), "values_tensor": np.array([10, 20])}
    attributes = {name: onnx.numpy_helper.from_array(array) for name, array in names.items()}
    node = make_node("LabelEncoder", ["x"], ["y"], domain="ai.onnx.ml", **attributes)
    assert irc.backend.run_node(node, [X])[0].tolist() == [-1, 20]
    with pytest.raises(Error, match="IRC12"):
        irc.backend.run_node(node, [X], opset_version=1)


@pytest.mark.parametrize("dtype", [np.longdouble, "M8[s]", "V3", [("a", "<f4")]], ids=str)
def test_arrays_of_types_that_no_tensor_has(dtype: Any) -> None:
    for value in (np.zeros(2, dtype), [np.zeros(2, dtype)]):
        with pytest.raises(Error, match=r"IRC412: input 'x': NumPy's .* is not an element type of tensors"):
            irc.backend.run_node(make_node("Relu", ["x"], ["y"]), {"x": value})


def test_tensors_of_a_sequence_may_differ_in_shape() -> None:
    node = make_node("ConcatFromSequence", ["s"], ["y"], axis=0)
    parts = [np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)]
    for sequence in (parts, parts[::-1], (*parts, parts[0])):
        np.testing.assert_array_equal(irc.backend.run_node(node, [sequence])[0], np.concatenate(sequence))


def test_tensors_of_a_sequence_are_of_one_element_type() -> None:
    node = make_node("SequenceLength", ["s"], ["y"])
    with pytest.raises(Error, match=r"IRC412: input 's', element 1: expected elements of type float32, got int64"):
        irc.backend.run_node(node, [[np.ones(2, np.float32), np.ones(3, np.int64)]])
