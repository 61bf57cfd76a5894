"""YOLOv3 as benchmarks build it: the exporter's structure, and the right boxes."""

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.yolov3 import build
from tests.elsewhere import run_onnxruntime
from tests.processes import python

# What torch.onnx.export(YOLOv3, dynamo=False, opset_version=17) gives.
EXPORTED = Counter(
    Constant=497,
    Expand=96,
    Mul=87,
    ConstantOfShape=81,
    Equal=81,
    Where=81,
    Unsqueeze=81,
    Conv=75,
    LeakyRelu=72,
    Slice=39,
    Concat=36,
    Shape=30,
    Add=26,
    Reshape=21,
    ScatterND=15,
    Sigmoid=6,
    Transpose=3,
    Exp=3,
    Resize=2,
)

ANCHORS = {
    32: [(116, 90), (156, 198), (373, 326)],
    16: [(30, 61), (62, 45), (59, 119)],
    8: [(10, 13), (16, 30), (33, 23)],
}


def small(**options: object) -> onnx.ModelProto:
    return build(image_size=64, width_divisor=16, **options)


def run(model: onnx.ModelProto, x: np.ndarray, *more: str) -> list[np.ndarray]:
    extended = onnx.ModelProto()
    extended.CopyFrom(model)
    extended.graph.output.extend(onnx.ValueInfoProto(name=name) for name in more)
    return run_onnxruntime(extended, {"images": x})


def images(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).random((1, 3, 64, 64), np.float32)


def test_operators_are_those_of_an_export() -> None:
    assert Counter(node.op_type for node in small().graph.node) == EXPORTED
    assert Counter(node.op_type for node in small(batch_norm=True).graph.node) == EXPORTED + Counter(
        BatchNormalization=72
    )


def test_the_model_is_valid_and_its_weights_float32() -> None:
    model = small(classes=3)
    onnx.checker.check_model(model, full_check=True)
    assert {tensor.data_type for tensor in model.graph.initializer} == {onnx.TensorProto.FLOAT}


def test_outputs_are_finite_and_vary_with_the_input() -> None:
    model = small()
    first, second = (run(model, images(seed))[0] for seed in (1, 2))
    assert first.shape == (1, 3 * (2**2 + 4**2 + 8**2), 85)
    assert np.isfinite(first).all()
    assert np.abs(first).max() < 1e5
    scores = first[..., 4:]
    assert scores.min() > 0.001
    assert scores.max() < 0.999
    assert (np.abs(first - second) > 0.01 * np.abs(first)).mean() > 0.1


def test_folding_batch_normalisation_changes_no_box() -> None:
    plain, folded = (run(small(batch_norm=kept), images(1))[0] for kept in (True, False))
    np.testing.assert_allclose(folded, plain, rtol=1e-3, atol=1e-4)


def test_boxes_are_decoded_from_the_raw_heads() -> None:
    """Against the definition: centre (sigmoid + cell) * stride, size exp * anchor, scores sigmoid."""
    raw_names = [f"/o{head}/o{head}.1/Conv_output_0" for head in (1, 2, 3)]
    detections, *raw = run(small(), images(1), *raw_names)
    expected = []
    for (stride, anchors), head in zip(ANCHORS.items(), raw, strict=True):
        size = 64 // stride
        x = head.reshape(3, 85, size, size).transpose(0, 2, 3, 1).astype(np.float64)
        sigmoid = 1 / (1 + np.exp(-x))
        rows, columns = np.mgrid[:size, :size]
        box = sigmoid.copy()
        box[..., 0] = (sigmoid[..., 0] + columns) * stride
        box[..., 1] = (sigmoid[..., 1] + rows) * stride
        box[..., 2:4] = np.exp(x[..., 2:4]) * np.array(anchors)[:, None, None]
        expected.append(box.reshape(-1, 85))
    np.testing.assert_allclose(detections[0], np.concatenate(expected), rtol=1e-4)


def test_weights_depend_on_the_seed_alone() -> None:
    assert small(seed=1) == small(seed=1)
    assert small(seed=1) != small(seed=2)


@pytest.mark.parametrize("options", [{"image_size": 100}, {"image_size": 0}, {"width_divisor": 3}])
def test_sizes_that_do_not_fit_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        build(**options)


def test_the_command_writes_the_model(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    command = ["-m", "benchmarks.yolov3", "--image-size", "32", "--width-divisor", "16", "--write"]
    root = Path(__file__).parent.parent
    done = python(root, *command, str(file))
    assert done.returncode == 0 and "1,332 nodes" in done.stdout
    assert onnx.load(file) == build(image_size=32, width_divisor=16)
    nowhere = tmp_path / "no" / "folder"
    failed = python(root, *command, str(nowhere))
    assert failed.returncode == 2
    assert "No such file" in failed.stderr
    assert "Traceback" not in failed.stderr
