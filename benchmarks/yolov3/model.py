"""YOLOv3 (Redmon and Farhadi, "YOLOv3: An Incremental Improvement", 2018) as ONNX.

Darknet-53 and three detection heads: 75 convolutions, 72 of them followed by
batch normalisation and LeakyReLU(0.1). Each head decodes its boxes in place,
as PyTorch programs do (``io[..., 0:2] = sigmoid(io[..., 0:2]) + grid``), which
an exporter turns into chains of Slice, Expand and ScatterND.

Weights are drawn from a seed: He-initialised convolutions, and batch-norm
statistics that fit what the layer before really gives, as in a trained
network, so that activations stay of the order of 1 through all layers.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmarks.yolov3.decode import decode
from benchmarks.yolov3.export import Exporter, Scope

OPSET = 17
IR_VERSION = 8
LEAK = 0.1
EPSILON = 1e-5

# Anchors in pixels (width, height), coarsest grid first, with the stride of that grid.
HEADS = (
    (32, ((116, 90), (156, 198), (373, 326))),
    (16, ((30, 61), (62, 45), (59, 119))),
    (8, ((10, 13), (16, 30), (33, 23))),
)

# Moments of LeakyReLU(z) for z ~ N(0, 1).
LEAKY_MEAN = (1 - LEAK) / math.sqrt(2 * math.pi)
LEAKY_POWER = (1 + LEAK**2) / 2


class Activation(NamedTuple):
    """A feature map ``[1, channels, size, size]`` and the expected mean and mean square of its elements."""

    name: str
    channels: int
    size: int
    mean: float
    power: float


def build(
    *,
    image_size: int = 416,
    width_divisor: int = 1,
    classes: int = 80,
    seed: int = 0,
    batch_norm: bool = False,
) -> onnx.ModelProto:
    """YOLOv3 with one input ``images`` and one output ``detections``.

    Args:
        image_size: height and width of the input in pixels, a multiple of 32.
        width_divisor: divides every layer's channels (1, 2, 4, 8 or 16): small models of the same structure.
        classes: classes a box is scored for.
        seed: of all weights; the same seed gives the same model.
        batch_norm: keep the BatchNormalization nodes, as an export with ``training=PRESERVE`` does (1,404 nodes). By
            default they are folded into the convolutions, as an export in evaluation mode does (1,332 nodes).

    Returns:
        A model of opset 17: ``images`` float32 [1, 3, image_size, image_size] (pixels in [0, 1]) to ``detections``
        float32 [1, boxes, 5 + classes]: box centre and size in pixels, objectness and class scores in [0, 1].
        With the default size there are 10,647 boxes and 248 MB of weights.

    Raises:
        ValueError: ``image_size`` or ``width_divisor`` is not one of those above.
    """
    if image_size <= 0 or image_size % 32:
        raise ValueError(f"image_size must be a positive multiple of 32, not {image_size}")
    if width_divisor not in (1, 2, 4, 8, 16):
        raise ValueError(f"width_divisor must be 1, 2, 4, 8 or 16, not {width_divisor}")
    network = _Network(width_divisor, classes, seed, batch_norm)
    network.forward(Activation("images", 3, image_size, mean=0.5, power=1 / 3))  # uniform pixels
    graph = network.export.graph
    graph.node[-1].output[0] = "detections"
    boxes = sum(len(anchors) * (image_size // stride) ** 2 for stride, anchors in HEADS)
    graph.input.append(helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, image_size, image_size]))
    graph.output.append(helper.make_tensor_value_info("detections", TensorProto.FLOAT, [1, boxes, 5 + classes]))
    opset = helper.make_opsetid("", OPSET)
    return onnx.ModelProto(ir_version=IR_VERSION, producer_name="irc", graph=graph, opset_import=[opset])


class _Network:
    """The layers, in the order in which a traced run of the network meets them.

    Parameters are named as in PyTorch's state dictionary: ``s1.1.a.0.weight``.
    """

    def __init__(self, width_divisor: int, classes: int, seed: int, batch_norm: bool) -> None:
        self.export = Exporter("main_graph")
        self.divisor = width_divisor
        self.classes = classes
        self.batch_norm = batch_norm
        self.rng = np.random.default_rng(seed)

    def forward(self, x: Activation) -> str:
        """The whole network; returns the name of its output."""
        root = Scope()
        x = self.conv(root.child("stem"), x, 32, kernel=3)
        stages: list[Activation] = []
        for number, (width, blocks) in enumerate([(64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)], 1):
            x = self.stage(root.child(f"s{number}"), x, width, blocks)
            stages.append(x)

        x = stages.pop()
        detections: list[str] = []
        for number, ((stride, anchors), width) in enumerate(zip(HEADS, (512, 256, 128), strict=True), 1):
            if number > 1:
                x = self.upsample(root.child(f"u{number - 1}"), x, width)
                x = self.concat(root, x, stages.pop())
            x = self.head(root.child(f"h{number}"), x, width)
            raw = self.output(root.child(f"o{number}"), x, 2 * width, len(anchors) * (5 + self.classes))
            scope = root.child(f"y{number}")
            detections.append(decode(self.export, scope, raw, x.size, 5 + self.classes, anchors, stride))
        return self.export.node(root, "Concat", *detections, axis=1)

    def stage(self, scope: Scope, x: Activation, width: int, blocks: int) -> Activation:
        """Halve the resolution, then ``blocks`` residual blocks of a 1x1 and a 3x3 convolution."""
        x = self.conv(scope.item(0), x, width, kernel=3, stride=2)
        for block in (scope.item(i) for i in range(1, blocks + 1)):
            branch = self.conv(block.child("a"), x, width // 2, kernel=1)
            branch = self.conv(block.child("b"), branch, width, kernel=3)
            name = self.export.node(block, "Add", x.name, branch.name)
            power = x.power + branch.power + 2 * x.mean * branch.mean
            x = x._replace(name=name, mean=x.mean + branch.mean, power=power)
        return x

    def head(self, scope: Scope, x: Activation, width: int) -> Activation:
        """Five convolutions, 1x1 and 3x3 in turn."""
        for i, (factor, kernel) in enumerate([(1, 1), (2, 3), (1, 1), (2, 3), (1, 1)]):
            x = self.conv(scope.item(i), x, factor * width, kernel)
        return x

    def output(self, scope: Scope, x: Activation, width: int, channels: int) -> str:
        """A 3x3 convolution and a linear 1x1 one whose ``channels`` are the raw boxes, of the order of 1."""
        x = self.conv(scope.item(0), x, width, kernel=3)
        last = scope.item(1)
        weight = self.normal((channels, x.channels, 1, 1), 1 / math.sqrt(x.channels * x.power))
        return self.conv_node(
            last,
            x.name,
            self.export.parameter(f"{last.parameter}.weight", weight),
            self.export.parameter(f"{last.parameter}.bias", self.normal((channels,), 0.1)),
        )

    def upsample(self, scope: Scope, x: Activation, width: int) -> Activation:
        """A 1x1 convolution, then nearest-neighbour upsampling by 2."""
        x = self.conv(scope.item(0), x, width, kernel=1)
        resize = scope.item(1)
        scales = self.export.constant(resize, [1, 1, 2, 2], np.float32)
        mode = {"coordinate_transformation_mode": "asymmetric", "mode": "nearest", "nearest_mode": "floor"}
        name = self.export.node(resize, "Resize", x.name, "", scales, cubic_coeff_a=-0.75, **mode)
        return x._replace(name=name, size=2 * x.size)

    def concat(self, scope: Scope, x: Activation, skip: Activation) -> Activation:
        """Join two maps of one size along channels."""
        name = self.export.node(scope, "Concat", x.name, skip.name, axis=1)
        channels = x.channels + skip.channels
        share = x.channels / channels
        mean = share * x.mean + (1 - share) * skip.mean
        return Activation(name, channels, x.size, mean, share * x.power + (1 - share) * skip.power)

    def conv(self, scope: Scope, x: Activation, width: int, kernel: int, stride: int = 1) -> Activation:
        """Convolution without bias, batch normalisation, LeakyReLU."""
        channels = width // self.divisor
        weight = self.normal((channels, x.channels, kernel, kernel), math.sqrt(2 / (x.channels * kernel**2)))
        variance = 2 * x.power * self.rng.uniform(0.75, 1.25, channels).astype(np.float32)
        statistics = {
            "weight": self.rng.uniform(0.8, 1.2, channels).astype(np.float32),
            "bias": self.normal((channels,), 0.1),
            "running_mean": self.normal((channels,), 0.1) * np.sqrt(variance),
            "running_var": variance,
        }
        convolution, normalisation, activation = (scope.item(i) for i in range(3))
        if self.batch_norm:
            name = self.export.parameter(f"{convolution.parameter}.weight", weight)
            y = self.conv_node(convolution, x.name, name, stride=stride, kernel=kernel)
            names = [self.export.parameter(f"{normalisation.parameter}.{k}", v) for k, v in statistics.items()]
            options = {"epsilon": EPSILON, "momentum": 0.9, "training_mode": 0}
            y = self.export.node(normalisation, "BatchNormalization", y, *names, **options)
        else:
            scale = statistics["weight"] / np.sqrt(variance + np.float32(EPSILON))
            bias = statistics["bias"] - statistics["running_mean"] * scale
            folded = [self.export.folded("Conv", v) for v in (weight * scale[:, None, None, None], bias)]
            y = self.conv_node(convolution, x.name, *folded, stride=stride, kernel=kernel)
        y = self.export.node(activation, "LeakyRelu", y, alpha=LEAK)
        return Activation(y, channels, x.size // stride, LEAKY_MEAN, LEAKY_POWER)

    def conv_node(self, scope: Scope, x: str, *weights: str, kernel: int = 1, stride: int = 1) -> str:
        """A Conv node with the padding that keeps ``size / stride``."""
        return self.export.node(
            scope,
            "Conv",
            x,
            *weights,
            dilations=[1, 1],
            group=1,
            kernel_shape=[kernel, kernel],
            pads=[kernel // 2] * 4,
            strides=[stride, stride],
        )

    def normal(self, shape: tuple[int, ...], deviation: float) -> np.ndarray[Any, np.dtype[np.float32]]:
        """Normally distributed float32 numbers around 0."""
        values = self.rng.standard_normal(shape, np.float32)
        values *= np.float32(deviation)
        return values
