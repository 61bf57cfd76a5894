"""The decoder of `benchmarks.runtime.decoder` as one would write it for NumPy, with nothing between its calls.

What it takes is what NumPy takes: no interpreter on NumPy can be faster by much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from irc.ops import algebra
from irc.runtime.kernels.expressions import of_expression

Array = np.ndarray[Any, Any]

gelu = of_expression(algebra.gelu, 1)


class Decoder:
    """Steps of one token; a first step, of the prompt, is left to ``prompt``, which gives logits and caches.

    Args:
        proto: where the weights are.
        prompt: called with the feeds of the first step.
        layers: how many there are.
        heads: how many each of them has.
        positions: how many the caches have room for.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        prompt: Callable[[dict[str, Any]], list[Array]],
        layers: int,
        heads: int,
        positions: int,
    ) -> None:
        self._weights = {t.name: numpy_helper.to_array(t) for t in proto.graph.initializer}
        self._prompt = prompt
        self._layers = layers
        self._heads = heads
        self._positions = positions
        self._caches: list[Array] = []

    def __call__(self, feeds: dict[str, Any]) -> Array:
        if not feeds["use_cache"]:
            logits, *presents = self._prompt(feeds)
            heads, length, width = presents[0].shape[1:]
            self._caches = [np.empty((heads, self._positions, width), np.float32) for _ in presents]
            for cache, present in zip(self._caches, presents):
                cache[:, :length] = present[0]
            return logits
        return self._token(int(feeds["input_ids"][0, 0]), int(feeds["position_ids"][0, 0]))[None, None]

    def _token(self, token: int, at: int) -> Array:
        weights = self._weights
        x = weights["tokens"][token] + weights["positions"][at]
        for layer in range(self._layers):
            x = x + self._attention(self._norm(x, f"{layer}.norm"), layer, at)
            inner = np.dot(self._norm(x, f"{layer}.norm2"), weights[f"{layer}.up"])
            gelu(inner, inner)
            x = x + np.dot(inner, weights[f"{layer}.down"])
        return np.dot(self._norm(x, "norm"), weights["head"])

    def _norm(self, x: Array, name: str) -> Array:
        size = np.float32(x.size)
        x = x - np.add.reduce(x) / size
        x *= 1 / np.sqrt(np.dot(x, x) / size + np.float32(1e-5))
        x *= self._weights[f"{name}.scale"]
        x += self._weights[f"{name}.bias"]
        return x

    def _attention(self, x: Array, layer: int, at: int) -> Array:
        weights, heads = self._weights, self._heads
        keys, values = self._caches[2 * layer : 2 * layer + 2]
        query = np.dot(x, weights[f"{layer}.q"]).reshape(heads, 1, -1)
        keys[:, at] = np.dot(x, weights[f"{layer}.k"]).reshape(heads, -1)
        values[:, at] = np.dot(x, weights[f"{layer}.v"]).reshape(heads, -1)
        scores = np.matmul(query, keys[:, : at + 1].transpose(0, 2, 1))
        scores *= weights["scale"]
        scores -= np.maximum.reduce(scores, axis=-1, keepdims=True)
        np.exp(scores, scores)
        scores /= np.add.reduce(scores, axis=-1, keepdims=True)
        return np.dot(np.matmul(scores, values[:, : at + 1]).reshape(-1), weights[f"{layer}.out"])
