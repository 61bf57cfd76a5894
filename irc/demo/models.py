"""The models bundled with the onnx package, and values for the inputs of any model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

BUNDLED = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
"""Names of the models that come with the onnx package, as `bundled_model` takes them."""

Array = np.ndarray[Any, np.dtype[Any]]


def bundled_model(name: str) -> onnx.ModelProto:
    """The model ``light_<name>.onnx`` as the onnx package ships it, one of `BUNDLED`.

    Raises:
        Error: IRC101, there is no such model.
    """
    from pathlib import Path

    import onnx

    if name not in BUNDLED:
        raise Error("IRC101", f"no bundled model is called {name!r}; there are {', '.join(BUNDLED)}")
    file = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"
    model = onnx.ModelProto()
    model.ParseFromString(file.read_bytes())
    return model


def seeded_inputs(model: onnx.ModelProto, seed: int, dynamic: Mapping[str, int] | None = None) -> dict[str, Array]:
    """Random values for the inputs that a caller of ``model`` must give, by name: see `irc.tools.random_inputs`.

    Args:
        model: its graph inputs must be tensors of numbers with a known rank.
        seed: the same seed gives the same values.
        dynamic: sizes of named dimensions; those not given here, and unnamed ones, are 1.

    Raises:
        Error: IRC102, an input is not a tensor of numbers or has no shape.
    """
    from irc.frontend.onnx.types import from_proto
    from irc.runtime.arguments import Argument
    from irc.tools import random_inputs

    weights = {tensor.name for tensor in model.graph.initializer}
    free = [entry for entry in model.graph.input if entry.name not in weights]
    arguments = [Argument(entry.name, from_proto(entry.type, f"input {entry.name!r}")) for entry in free]
    return random_inputs.seeded_inputs(arguments, seed, dynamic)
