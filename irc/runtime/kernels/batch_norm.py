"""BatchNormalization, at inference and in training mode (Ioffe and Szegedy, 2015)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from irc.errors import Error
from irc.runtime.kernels.registry import Kernel, kernel
from irc.runtime.kernels.support import Array, is_half

if TYPE_CHECKING:
    from irc.ir import Node


def _is_test(node: Node) -> bool:
    # "Output case #2: Y (test mode)": with Y alone there is nothing to train.
    return bool(node.attributes.get("is_test", 0)) or len(node.outputs) == 1


def _one_output(node: Node) -> bool:
    return len(node.outputs) == 1


def _not_training(node: Node) -> bool:
    return not node.attributes.get("training_mode", 0)


def _register(since: int, at_inference: Callable[[Node], bool]) -> None:
    """What says that the operator runs at inference has changed with its versions."""

    @kernel("onnx::BatchNormalization", since=since)
    def bind(node: Node) -> Kernel:  # pyright: ignore[reportUnusedFunction]  # registered
        return _infer(node, since) if at_inference(node) else _train(node)


_register(1, _is_test)
_register(7, _one_output)
_register(14, _not_training)


def _infer(node: Node, since: int) -> Kernel:
    spatial = bool(node.attributes.get("spatial", 1))
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    outputs = len(node.outputs)

    def run(x: Array, scale: Array, b: Array, mean: Array, var: Array, out: Array | None = None) -> Any:
        # Versions before 7 contradict themselves on what has one dimension where nothing is spatial.
        _check(x, scale, b, mean, var, spatial=spatial or (since < 7 and scale.ndim == 1))
        y = _affine(x, *_coefficients(scale, b, mean, var, epsilon), out)
        # Further outputs are for training; where they are declared all the same, the statistics are as they were.
        return (y, *(v.copy() for v in (mean, var, mean, var)[: outputs - 1])) if outputs > 1 else y

    return run


def _train(node: Node) -> Kernel:
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    momentum = float(node.attributes.get("momentum", 0.9))
    spatial = bool(node.attributes.get("spatial", 1))
    outputs = len(node.outputs)

    def run(x: Array, scale: Array, b: Array, mean: Array, var: Array) -> Any:
        _check(x, scale, b, mean, var, spatial=spatial)
        if not x.size:
            raise Error("IRC421", f"an input of shape {list(x.shape)} has no mean to train with")
        axes = tuple(i for i in range(x.ndim) if i != 1) if spatial else (0,)
        batch = np.asarray(np.mean(x, axis=axes, dtype=np.float64))
        spread = np.asarray(np.var(x, axis=axes, dtype=np.float64))  # of the population, not N - 1
        running = [
            (old * momentum + new * (1 - momentum)).astype(old.dtype) for old, new in ((mean, batch), (var, spread))
        ]
        saved = [batch.astype(mean.dtype), spread.astype(var.dtype)]
        y = _affine(x, *_coefficients(scale, b, batch, spread, epsilon), None)
        return (y, *running, *saved)[:outputs] if outputs > 1 else y

    return run


def _check(x: Array, *parameters: Array, spatial: bool) -> None:
    channels = x.shape[1] if x.ndim > 1 else 1  # a single axis is the batch, of one channel
    expected = (channels,) if spatial else x.shape[1:]
    if not x.ndim or any(p.shape != expected for p in parameters):
        shapes = ", ".join(str(list(p.shape)) for p in parameters)
        raise Error(
            "IRC421",
            f"scale, bias, mean and variance have shapes {shapes}; an input of shape {list(x.shape)} "
            f"needs {list(expected)} each",
        )


def _coefficients(scale: Array, b: Array, mean: Array, var: Array, epsilon: float) -> tuple[Array, Array]:
    """What to multiply with and what to add: computed in float64, they are few."""
    factor = scale.astype(np.float64) / np.sqrt(var.astype(np.float64) + epsilon)
    return factor, b.astype(np.float64) - mean.astype(np.float64) * factor


def _affine(x: Array, factor: Array, shift: Array, out: Array | None) -> Array:
    """``x * factor + shift`` for each channel, or for each position of an image, by the factor's rank."""
    result: Array = np.empty(x.shape, x.dtype) if out is None else out
    wide = np.dtype(np.float32) if is_half(x.dtype) else x.dtype
    if factor.ndim == 1 and x.ndim > 1:
        factor, shift = (v.reshape(-1, *(1,) * (x.ndim - 2)) for v in (factor, shift))
    scaled = np.multiply(x.astype(wide, copy=False), factor.astype(wide), out=result if wide == x.dtype else None)
    return np.add(scaled, shift.astype(wide), out=result, casting="same_kind")
