"""The models that demonstrations, tests and benchmarks run are worth running: real functions of their inputs."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from irc.demo import BUNDLED, bundled_model, randomize_weights, seeded_inputs
from irc.errors import Error
from irc.tools.check.peers import onnxruntime_session
from tests.effort import slow_if
from tests.test_models import LARGE


def with_activations(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every value it computes as a further output."""
    outputs = {output.name for output in model.graph.output}
    names = {name for node in model.graph.node for name in node.output} - outputs
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(names))
    return model


@pytest.mark.parametrize("name", slow_if(BUNDLED, LARGE))
def test_seeded_weights_make_a_bundled_model_a_real_function(name: str) -> None:
    shipped = bundled_model(name)
    model = randomize_weights(shipped, seed=0)
    assert shipped == bundled_model(name), "the argument was changed"
    assert all(node.op_type != "ConstantOfShape" for node in model.graph.node)
    assert [o.name for o in model.graph.output] == [o.name for o in shipped.graph.output]
    is_classifier = model.graph.node[-1].op_type == "Softmax"

    feeds = [seeded_inputs(model, seed) for seed in (1, 2)]
    run = onnxruntime_session(with_activations(model), threads=1).run
    (first, *activations), (second, *_) = (run(None, feed) for feed in feeds)

    for values in (first, *activations):
        assert np.isfinite(values).all()
        assert np.abs(values).max() < 100
    assert np.abs(first - second).max() > 0.05 * np.abs(first).max(), "two inputs give the same output"
    if is_classifier:
        assert first.max() < 0.9, "the softmax is saturated"


def test_the_models_as_shipped_are_constant_functions() -> None:
    """Why `randomize_weights` exists."""
    model = bundled_model("squeezenet")
    run = onnxruntime_session(model, threads=1).run
    first, second = (run(None, seeded_inputs(model, seed))[0] for seed in (1, 2))
    np.testing.assert_array_equal(first, second)


def test_weights_depend_on_the_seed_alone() -> None:
    one, same, other = (randomize_weights(bundled_model("squeezenet"), seed) for seed in (7, 7, 8))
    assert one == same
    assert one != other


def test_weights_of_one_axis() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 300])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])
    w = numpy_helper.from_array(np.ones(300, np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    model = randomize_weights(helper.make_model(helper.make_graph([node], "g", [x], [y], [w])), seed=0)
    drawn = numpy_helper.to_array(model.graph.initializer[0])
    assert drawn.shape == (300,)
    assert 0.8 < drawn.std() / np.sqrt(2 / 300) < 1.2


def test_an_unknown_bundled_model_is_an_error_that_lists_those_there_are() -> None:
    with pytest.raises(Error, match=r"'lenet'.*squeezenet"):
        bundled_model("lenet")


def model_with_input(elem_type: int, shape: list[int | str] | None) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", elem_type, shape)
    return helper.make_model(helper.make_graph([], "g", [x], []))


def test_inputs_fit_their_declared_types() -> None:
    for elem_type, kind in ((TensorProto.FLOAT16, "f"), (TensorProto.INT64, "i"), (TensorProto.BOOL, "b")):
        x = seeded_inputs(model_with_input(elem_type, ["batch", 3, "length"]), 0, {"length": 5})["x"]
        assert x.shape == (1, 3, 5)
        assert x.dtype.kind == kind
        assert len(np.unique(x)) > 1


def test_an_input_that_cannot_be_made_up_is_an_error_that_names_it() -> None:
    with pytest.raises(Error, match="input 'x'"):
        seeded_inputs(model_with_input(TensorProto.FLOAT, None), 0)
