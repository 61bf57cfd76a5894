"""Writes ONNX graphs the way PyTorch's TorchScript exporter does.

What its files have in common: each value is named after the module that made
it (``/s1/s1.1/a/a.0/Conv_output_0``), every literal is a ``Constant`` node of
its own, and ``expand`` is spelled out with ConstantOfShape, Mul, Equal and
Where, because -1 in a PyTorch shape means "keep" and ONNX has no such thing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import helper, numpy_helper

INT64_MAX = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Scope:
    """A place in the tree of modules: as node names spell it, and as parameter names do."""

    path: str = ""
    parameter: str = ""

    def child(self, name: str) -> Scope:
        """The submodule held in attribute ``name``."""
        return Scope(f"{self.path}/{name}", f"{self.parameter}.{name}".lstrip("."))

    def item(self, index: int) -> Scope:
        """Entry ``index`` of a ``Sequential``: the exporter repeats the container's own name."""
        name = self.path.rpartition("/")[2]
        return Scope(f"{self.path}/{name}.{index}", f"{self.parameter}.{index}")


class Exporter:
    """A graph under construction; every method appends nodes and returns the name of the result."""

    def __init__(self, name: str) -> None:
        self.graph = onnx.GraphProto(name=name)
        self._used: Counter[str] = Counter()

    def node(self, scope: Scope, op_type: str, *inputs: str, **attributes: Any) -> str:
        """Append one node; its output is named after the scope, the operator and how many it has had there."""
        stem = f"{scope.path}/{op_type}"
        number = self._used[stem]
        self._used[stem] += 1
        name = f"{stem}_{number}" if number else stem
        output = f"{name}_output_0"
        self.graph.node.append(helper.make_node(op_type, inputs, [output], name, **attributes))
        return output

    def constant(self, scope: Scope, value: ArrayLike, dtype: type[np.generic] = np.int64) -> str:
        """A literal, as a Constant node."""
        return self.node(scope, "Constant", value=_tensor(np.asarray(value, dtype)))

    def anonymous_constant(self, user: str, value: ArrayLike) -> str:
        """An int64 literal that constant folding left: it is named after its user, outside any scope."""
        name = self._anonymous(user)
        tensor = _tensor(np.asarray(value, np.int64))
        self.graph.node.append(helper.make_node("Constant", [], [name], f"Constant_{name}", value=tensor))
        return name

    def parameter(self, name: str, value: np.ndarray[Any, Any]) -> str:
        """A named weight, as an initializer."""
        self.graph.initializer.append(_tensor(value, name))
        return name

    def folded(self, user: str, value: np.ndarray[Any, Any]) -> str:
        """A weight that constant folding computed: an initializer named after its user."""
        return self.parameter(self._anonymous(user), value)

    def expand(self, scope: Scope, x: str, shape: str, rank: int) -> str:
        """``x.expand(shape)``, with -1 in ``shape`` meaning 1; ``shape`` names an int64 tensor of ``rank`` elements."""
        ones = self.node(scope, "ConstantOfShape", self.constant(scope, [rank]), value=_tensor(np.ones(1, np.int64)))
        keep = self.node(scope, "Mul", ones, self.constant(scope, -1))
        is_keep = self.node(scope, "Equal", shape, keep)
        return self.node(scope, "Expand", x, self.node(scope, "Where", is_keep, ones, shape))

    def reshape(self, scope: Scope, x: str, shape: str) -> str:
        """``x.reshape(shape)``; ``shape`` names an int64 tensor."""
        return self.node(scope, "Reshape", x, shape, allowzero=0)

    def unsqueeze(self, scope: Scope, x: str, axis: int) -> str:
        """``x.unsqueeze(axis)``."""
        return self.node(scope, "Unsqueeze", x, self.constant(scope, [axis]))

    def slice(self, scope: Scope, x: str, axis: int, start: int, end: int = INT64_MAX) -> str:
        """``x[start:end]`` along ``axis``."""
        axes = self.constant(scope, [axis])
        starts, ends, steps = (self.constant(scope, [v]) for v in (start, end, 1))
        return self.node(scope, "Slice", x, starts, ends, axes, steps)

    def _anonymous(self, user: str) -> str:
        self._used["anonymous"] += 1
        return f"onnx::{user}_{self._used['anonymous']}"


def _tensor(value: np.ndarray[Any, Any], name: str = "") -> onnx.TensorProto:
    return numpy_helper.from_array(value, name)
