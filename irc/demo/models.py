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
    """Random values for the inputs that a caller of ``model`` must give, by name.

    Floats are normally distributed around 0 with deviation 1; from rank 3 on, part of that is one offset a channel
    (axis 1), so that two seeds still differ after a network has averaged over all positions. Integers lie in [0, 8).

    Args:
        model: its graph inputs must be tensors of numbers with a known rank.
        seed: the same seed gives the same values.
        dynamic: sizes of named dimensions; those not given here, and unnamed ones, are 1.

    Raises:
        Error: IRC102, an input is not a tensor of numbers or has no shape.
    """
    from onnx import helper

    rng = np.random.default_rng(seed)
    weights = {tensor.name for tensor in model.graph.initializer}
    sizes = dynamic or {}
    values: dict[str, Array] = {}
    for entry in model.graph.input:
        if entry.name in weights:
            continue
        tensor = entry.type.tensor_type
        if not tensor.HasField("shape"):
            raise Error("IRC102", "only tensors whose rank is known can be made up", f"input {entry.name}")
        shape = [d.dim_value if d.HasField("dim_value") else sizes.get(d.dim_param, 1) for d in tensor.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if dtype.kind in "OSUTc":
            raise Error("IRC102", f"values of type {dtype} cannot be made up", f"input {entry.name}")
        if dtype.kind in "biu":
            drawn = rng.integers(0, 2 if dtype.kind == "b" else 8, shape)
        elif len(shape) < 3:
            drawn = rng.normal(size=shape)
        else:
            drawn = 0.8 * rng.normal(size=shape) + 0.6 * rng.normal(size=[*shape[:2], *[1] * len(shape[2:])])
        values[entry.name] = drawn.astype(dtype)
    return values
